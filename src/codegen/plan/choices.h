// One fusion: the choices of computing it, which plans combine.
#pragma once
#include "codegen/plan/plan.h"
#include "rprogram/memo.h"

/* One way of computing one fusion: one launch, or several where its reductions are split across blocks or it is
   rewritten. */
typedef struct Choice {
    const PlannedLaunch *launches;   // at most 6: see Rewritten
    int count;
    int copies;   // launches before the main one of a rewritten form; they are the first ones
    double time_us;
    const TensorOp *const *partial_ops;   // definitions of tensors between the launches
    int partial_count;
    bool spare;               // not among the kept ones
    struct Choice *retained;   // the copy that outlives it; NULL: there is none
} Choice;

typedef struct ChoiceList {
    Choice **choices;   // ascending in time; equal times keep the families' order
    int count, capacity;
} ChoiceList;

typedef struct Planner {
    Arena *arena;     // of what plans hold
    Arena *choices;   // of one fusion's choices: thousands, of which plans take a few
    Arena *passing;   // of those of a part of it, of which the best few are kept
    Arena *drafting;  // of one family's kinds
    Arena *scratch;   // of one construction
    bool alone;       // there is one fusion: its choices may stay
    const Target *target;
    const DeviceSpec *device;   // its own,
    const Family *const *families;   // and those that serve it
    uint64_t passed_over;  // families that do not serve parts of the form that is planned: bit f
    TileSeries *series;    // of kinds that differ in the number of a sum's parts; NULL: of others
    int64_t room;          // bytes of the device's memory left by the program's tensors; negative: they do not fit
    int keep;
    ConstructMemo *memo;   // 33 columns in 17 parts and in 18 are parts of two
    ConstructStats stats;
} Planner;

/* `alone`: for one fusion, whose choices then live as long as `arena`. */
Planner planner_new(Arena *arena, const Target *target, int keep, bool alone, int64_t room);
void planner_free(Planner *planner);

/* Ascending in time, different ideas before variations of one; none: the device can hold no program for the
   fusion. They live until the next call, or as long as plans if there is only one fusion. */
ChoiceList choices_of(Planner *planner, const Fusion *fusion);

/* All of its launches are NAME_prepare's. */
static inline bool choice_is_prepared(const Choice *choice)
{
    return fusion_is_prepared(choice->launches[choice->count - 1].fusion);
}

/* What it writes into the workspace. All of that counts as alive at once: launches are few. */
int64_t choice_bytes(const Choice *choice);

/* Copies a choice of the list to an arena that outlives them. */
Choice *choice_retain(Arena *arena, const ChoiceList *choices, Choice *choice);
