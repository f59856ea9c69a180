// A sum may be stored over its residual: which inputs of a launch its output may alias. The expression must read
// each element only where it is stored, and the family must do both in one thread (`Family.adds_in_place`).
#pragma once
#include "codegen/plan/plan.h"

/* Whether the launch's one output may alias its input i, which no later launch reads. */
bool in_place_may(const Program *program, const PlannedLaunch *launch, int i);
