// The order in which a reduction walks its axes: as what it reads lies in memory.
//
// `sum[k, r, s](x[n, h + r, w + s, k] * f[c, k, r, s])` walks the contiguous channels outermost. A product
// whose inner axis is k reads x in vectors; one whose inner axis is s reads single elements (tuning-log
// 145). The order is free (doc/language.md), so that it is the compiler's to choose.
#pragma once
#include "ir/tensor_op.h"

/* The program with the axes of its reductions in that order; itself, if they all are. */
const Program *reductions_in_memory_order(Arena *arena, const Program *program);
