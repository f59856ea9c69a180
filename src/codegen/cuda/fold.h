// Branches by constants: templates contain `if (CLUSTER > 1) cluster_sync();`. In an emitted file such an `if` is
// resolved:
//
//   if (WARPS_OF_GROUP == 1)          WARPS_OF_GROUP = 1:     return value;
//       return value;
//   const T *results = share_result(value, turn);
//   …
//
// Only what the compiler would remove, too, is left out; a condition that is not arithmetic of constants stays.
// Calls of functions that do nothing are removed, with an `if` for such a call alone.
#pragma once
#include "codegen/cuda/constant.h"

/* A function's definition with resolved `if`s and without calls of `idle` functions, which end with an empty
   slice; other text unchanged. `keeps_lines`: removed lines stay, blank. Resets `scratch`. */
const char *fold_branches(Arena *arena, Arena *scratch, const Constants *constants, const Slice *idle,
                          const char *text, bool keeps_lines);

/* A definition without the sides of choices that constants decide: `A > 1 ? x : y`, `A > 1 && x`. */
const char *fold_expressions(Arena *arena, Arena *scratch, const Constants *constants, const char *text,
                             bool keeps_lines);

/* Whether the text defines a function that does nothing, for any arguments. */
bool fold_is_idle(const char *text);
