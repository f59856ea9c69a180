// Which definitions become part of those that read them: pointwise ones, while expressions stay small.
#pragma once
#include "ir/tensor_op.h"

static inline bool op_is_pointwise(const TensorOp *op) { return op->reduce == REDUCE_NONE; }

/* The access reads the element of the point itself: x[i, j] at (i, j), the whole of x being visited. */
bool reads_own_point(const Access *access, const Axis *axes, int spatial_count);

/* Which values that a reduction would compute again and again stay in memory, besides those that are only
   rounded to 16 bits. KEEP_ROWS: elements that are made of a row's results, as a norm's are, since a kernel
   walks the row anyway. */
typedef enum KeepReused { KEEP_NONE, KEEP_ROWS, KEEP_ALL } KeepReused;

/* Fills `inlined`, by tensor id as `definition` is, and `fetches`: what reads elements at computed places,
   itself or by what is folded into it. Returns whether more is kept than KEEP_NONE would. What is made of
   weights alone stays in memory for calls, always (prepared.h). */
bool fuse_inline(Arena *arena, const Program *program, const TensorOp *const *definition, KeepReused keep,
                 bool *inlined, bool *fetches);
