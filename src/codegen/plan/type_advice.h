// Advises to give a definition a 16-bit type if it multiplies 16-bit elements: in f32 the product runs on CUDA
// cores.
#pragma once
#include "codegen/plan/plan.h"

/* Warns of definitions without a type whose products would be faster with the type of the other factor: plans
   the program with them so, and compares the predicted times. `plans`: of the program as it is. */
void types_advise(Arena *arena, const Program *program, const Target *target, const PlanList *plans);
