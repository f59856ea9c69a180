// Reductions whose windows slide over one tensor side by side: one of 31 x 31 and one of 5 x 5 beside it.
#pragma once
#include "ir/fuse.h"

/* Has the reduction the kernel's points, and do windows of it and of one of the kernel's move alike over a
   tensor that both read, as x[n, c, h + r - 15] and x[n, c, h + k - 2]? The kernel has room for its axes. */
bool fusion_slides_beside(const Fusion *fusion, const TensorOp *op);

/* Gives the kernel the axes that the reduction runs along, behind its own; forms[a] is what axis a of the
   definition is there. */
void fusion_add_reduced_axes(Fusion *fusion, const TensorOp *op, Affine *forms);
