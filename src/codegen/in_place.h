// A sum of a residual may take the residual's bytes: which inputs of a launch its output may lie on. The expression says that
// each element is read where it is stored and nowhere else, the family that a thread does both (`Family.adds_in_place`).
#pragma once
#include "codegen/plan/plan.h"

/* Whether the launch's one output may lie on its input i, which nobody reads later. */
bool in_place_may(const Program *program, const PlannedLaunch *launch, int i);
