// Who leaves a definition in f32 that multiplies elements of 16 bits gets a product on CUDA cores: it is said, with the mend.
#pragma once
#include "codegen/plan/plan.h"

/* Warns of the definitions without a type whose products would be faster if they had the other factor's: plans the program
   with them so, and compares the predicted times. `plans`: of the program as it is. */
void types_advise(Arena *arena, const Program *program, const Target *target, const PlanList *plans);
