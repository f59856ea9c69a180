// Dimensions of one element that a reduction keeps so that its result broadcasts.
//
//   m[i, k:1] = sum[r](x[i, r])      d[i, j] = x[i, j] - m[i, 0]      ->  m[i], d[i, j] = x[i, j] - m[i]
//
// Exporters write statistics and gates so. Without them what is made of a row has the row's axes, whoever wrote it.
#pragma once
#include "ir/tensor_op.h"

/* By tensor id, the dimensions of definitions that nobody needs: some reader names their only element, and whoever makes or
   reads them at its own points does without them, too. NULL: there are none. */
const uint32_t *kept_dims_find(Arena *arena, const Program *program);
