// A plan as steps: each is a fusion and its choice.
#pragma once
#include "codegen/plan/plan.h"

/* Bytes of the workspace that are alive while the step runs. */
int64_t step_bytes(const PlanStep *step);

/* What a call saves whose only launch is brief, beside NAME_prepare's: it begins while the one before it ends. */
double launches_overlap_us(const PlannedLaunch *launches, int count);

/* All of its launches are NAME_prepare's. */
bool step_is_prepared(const PlanStep *step);

/* `room`: of the device's memory, left by the program's tensors. */
Plan plan_of_steps(Arena *arena, const char *fusion_plan, const PlanStep *steps, int count, int64_t room);

/* At most `keep` choices of the step's fusion, as the planner selects them: in order of time, different ideas
   first. */
int step_ways(Arena *arena, const PlanStep *step, const Target *target, int keep, PlanStep *ways);
