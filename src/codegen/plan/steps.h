// A plan as steps: each is a fusion and the way in which it is computed.
#pragma once
#include "codegen/plan/plan.h"

/* Which of them are alive while it runs, in bytes of the workspace. */
int64_t step_bytes(const PlanStep *step);

/* All of its launches are NAME_prepare's. */
bool step_is_prepared(const PlanStep *step);

/* `room`: of the device's memory beside the program's tensors. */
Plan plan_of_steps(Arena *arena, const char *fusion_plan, const PlanStep *steps, int count, int64_t room);

/* At most `keep` steps for the step's fusion, as the planner chooses among them: in order of time, different ideas first. */
int step_ways(Arena *arena, const PlanStep *step, const Target *target, int keep, PlanStep *ways);
