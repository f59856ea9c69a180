// Plans with kernels of families that the fastest plans lack: by the model a hundred tiles of one family may be
// faster.
#pragma once
#include "codegen/plan/choices.h"

/* The fastest choice of each family within reach of the best, for one fusion. They live as long as plans. */
const ChoiceList *ways_of_families(Planner *planner, const ChoiceList *choices);

/* Whether the plan computes the step's fusion by the same family. `at`: the step's place in its own plan, tried
   first. */
bool plan_has_family(const Plan *plan, const PlanStep *step, int at);

/* Adds at most `most` plans to plans in the order of PlanList: the first one with another choice of one step, of
   a family that none of them has there. Returns their new number. */
int add_other_families(Arena *arena, Plan *plans, int count, int most, int64_t room);
