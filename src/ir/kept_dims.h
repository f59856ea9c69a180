// Dimensions of one element that a reduction keeps so that its result broadcasts.
//
//   m[i, k:1] = sum[r](x[i, r])      d[i, j] = x[i, j] - m[i, 0]      ->  m[i], d[i, j] = x[i, j] - m[i]
//
// Exporters write statistics and gates so. Without these dimensions a row's values have the row's axes alone.
#pragma once
#include "ir/tensor_op.h"

/* By tensor id, the dimensions of definitions that are not needed: some reader names their only element, and
   all that make or read them at their own points can do without them, too. NULL: there are none. */
const uint32_t *kept_dims_find(Arena *arena, const Program *program);
