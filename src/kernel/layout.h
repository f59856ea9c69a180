// The shared memory of a block, as its schedule has it: one place for the rules, which count it, and for the
// emitters.
#pragma once
#include "rtile/rtile.h"

/*     | partial: what threads leave for each other | staged tiles, each with all that is made together … |
 *
 * Few bytes of partial, since L1 is what shared memory leaves of an SM, in large steps (tuning-log 29). Of rows every read has a
 * tile that is copied, be it another for each row or the same for many: a scale[b] of rows (b,t) is as long as the row is. */
typedef struct ScheduleLayout {
    int64_t partial_bytes;
    int64_t at[MAX_DATA_TILES];   // where a staged tile begins that is kept as one run
    int64_t bytes;                // of these and of partial
} ScheduleLayout;

ScheduleLayout schedule_layout(const TileRules *rules);

/* The rules' shared memory follows from their schedule: PARTIAL, and behind it COPIES of rows. */
void schedule_set_shared(TileRules *rules);
