// Several reductions whose windows slide over one tensor, in one kernel: one of 31 x 31 taps and one of 5 x
// 5.
#pragma once
#include "ir/fuse.h"

/* Is the reduction made at the kernel's points, and does its window move as one of the kernel's does, over a
   tensor that both read, as x[n, c, h + r - 15] and x[n, c, h + k - 2]? The kernel has room for its axes. */
bool fusion_slides_beside(const Fusion *fusion, const TensorOp *op);

/* Gives the kernel the axes that the reduction runs along, behind its own; forms[a] is what axis a of the
   definition is there. */
void fusion_add_reduced_axes(Fusion *fusion, const TensorOp *op, Affine *forms);
