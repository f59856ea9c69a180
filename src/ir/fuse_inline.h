// Which definitions become part of those that read them: pointwise ones, while expressions stay small.
#pragma once
#include "ir/tensor_op.h"

static inline bool op_is_pointwise(const TensorOp *op) { return op->reduce == REDUCE_NONE; }

/* The access reads the element of the point itself: x[i, j] at (i, j), the whole of x being visited. */
bool reads_own_point(const Access *access, const Axis *axes, int spatial_count);

/* Fills `inlined`, by tensor id as `definition` is. With `keep_reused`, what a reduction would compute again
   and again stays in memory; returns whether that made a difference. */
bool fuse_inline(Arena *arena, const Program *program, const TensorOp *const *definition, bool keep_reused,
                 bool *inlined);
