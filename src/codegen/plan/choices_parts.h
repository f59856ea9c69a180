// What the parts of the planner of one fusion share: choices.c takes from choices_parts.c, and both from choices_ways.c.
#pragma once
#include "codegen/plan/choices.h"

enum {
    MAX_PARTS = 256,   // of a split reduction
    PARTIAL_KEPT = 3   // limit of the search: kernels considered for the first half of each split
};

static const double PAST_THE_BEST = 1.25;   // times the least so far: more parts take longer still

typedef ChoiceList Ways(Planner *, const Fusion *);

// ---- choices_ways.c ----

void choices_add(Planner *planner, ChoiceList *list, Choice choice);
/* Of all families but some (bit f). */
void choices_add_families(Planner *planner, ChoiceList *list, Viewed *viewed, uint64_t others);
void choices_add_launches(Planner *planner, ChoiceList *list, const Fusion *fusion, uint64_t others);
/* Ways in one launch. */
Ways choices_single;
/* The best few ways of a part of the fusion. The others make room for those of the next part. */
ChoiceList choices_best_of(Planner *planner, Ways *ways, const Fusion *part, int keep);
/* The best kernel of each. False: one of them has none. */
bool choices_best_each(Planner *planner, Fusion *const *fusions, int count, Choice **best);
/* The launches of a choice, and one more. */
Choice choice_extend(Planner *planner, Choice choice, const Choice *last);
Choice choice_extend_by_all(Planner *planner, Choice choice, Choice *const *more, int count);
/* SMs without a block, for each block. */
int64_t choices_idle_sms(const Planner *planner, const PlannedLaunch *launch);
/* Fewer parts would leave most SMs idle still. */
static inline bool choices_employ(int64_t parts, int64_t idle)
{
    return parts <= 2 * idle && parts * 4 > idle;
}

// ---- choices_parts.c ----

/* Rows in chunks: statistics of each, the rows' own, the elements. */
void choices_add_phases(Planner *planner, ChoiceList *list, const Fusion *fusion);
/* A product's rows: results of tiles as wide as a thread's sums allow, then the rows' own. */
void choices_add_row_tiles(Planner *planner, ChoiceList *list, const Fusion *fusion);
/* A chain's columns in parts, where its rows leave SMs idle. */
void choices_add_stream_parts(Planner *planner, ChoiceList *list, const Fusion *fusion);
