// Templates decide by constants: `if (CLUSTER > 1) cluster_sync();`. In a kernel's file such an `if` is
// settled, and what it leaves out is not there to be read:
//
//   if (WARPS_OF_GROUP == 1)          WARPS_OF_GROUP = 1:     return value;
//       return value;
//   const T *results = share_result(value, turn);
//   …
//
// Only what the compiler would leave out as well goes; a condition that is not plain arithmetic of constants
// stays. Calls of functions that do nothing go, with an `if` that is there for such a call alone, and `(void)x` of
// what is used.
#pragma once
#include "codegen/cuda/constant.h"

/* A function's definition with its `if`s settled and without calls of `idle` functions, which end with an
   empty slice; any other text as it is. `keeps_lines`: what goes leaves its lines, blank. */
const char *fold_branches(Arena *arena, const Constants *constants, const Slice *idle, const char *text, bool keeps_lines);

/* Whether the text defines a function that does nothing, for any arguments. */
bool fold_is_idle(const char *text);
