// Interfaces between the parts of the planner of one fusion: choices.c calls choices_parts.c, and both call
// choices_ways.c.
#pragma once
#include "codegen/plan/choices.h"

enum {
    MAX_PARTS = 256,   // of a split reduction
    PARTIAL_KEPT = 3   // limit of the search: kernels considered for the first half of each split
};

static const double PAST_THE_BEST = 1.25;   // limit of the search: times the least time so far, more parts only take longer

typedef ChoiceList Ways(Planner *, const Fusion *);

// ---- choices_ways.c ----

void choices_add(Planner *planner, ChoiceList *list, Choice choice);
/* The choices of all families except some (bit f). */
void choices_add_families(Planner *planner, ChoiceList *list, Viewed *viewed, uint64_t others);
void choices_add_launches(Planner *planner, ChoiceList *list, const Fusion *fusion, uint64_t others);
/* Choices of one launch. */
Ways choices_single;
/* The best few choices of a part of the fusion. The next part reuses the memory of the others. */
ChoiceList choices_best_of(Planner *planner, Ways *ways, const Fusion *part, int keep);
/* The best kernel of each fusion. False: one of them has none. */
bool choices_best_each(Planner *planner, Fusion *const *fusions, int count, Choice **best);
/* A choice with one more launch. */
Choice choice_extend(Planner *planner, Choice choice, const Choice *last);
Choice choice_extend_by_all(Planner *planner, Choice choice, Choice *const *more, int count);
/* SMs without a block, per block. */
int64_t choices_idle_sms(const Planner *planner, const PlannedLaunch *launch);
/* Whether fewer parts would still leave most SMs idle. */
static inline bool choices_employ(int64_t parts, int64_t idle)
{
    return parts <= 2 * idle && parts * 4 > idle;
}

// ---- choices_parts.c ----

/* Adds the split of rows into chunks: statistics of each chunk, the rows' own values, the elements. */
void choices_add_phases(Planner *planner, ChoiceList *list, const Fusion *fusion);
/* Adds the tiled reduction of a product's rows: results of tiles as wide as a thread's accumulators, then of the
   rows. */
void choices_add_row_tiles(Planner *planner, ChoiceList *list, const Fusion *fusion);
/* Adds the split of an attention's columns, where its rows leave SMs idle. */
void choices_add_stream_parts(Planner *planner, ChoiceList *list, const Fusion *fusion);
