// Plans of families that the fastest plans have no kernel of: a hundred tiles of one family may be faster, by the model.
#pragma once
#include "codegen/plan/choices.h"

/* Of one fusion the fastest way of each family that is within reach of the best. They last as long as plans do. */
const ChoiceList *ways_of_families(Planner *planner, const ChoiceList *choices);

/* It computes the step's fusion by the same family. `at`: the step's place in its own plan, where it is looked for first. */
bool plan_has_family(const Plan *plan, const PlanStep *step, int at);

/* Adds at most `most` plans to these, which ascend in time as in PlanList: the first one with another way of one step, of a family
   that none of them has there. Gives how many there are then. */
int add_other_families(Arena *arena, Plan *plans, int count, int most, int64_t room);
