// What the kernels of filter gradients of groups share.
#pragma once
#include "codegen/family/depthwise/filter_gradient.h"

/* Axes; tiles of x and d, staged, and those of the epilogue. `block`: a block's extents, but for taps and columns. */
void filter_groups_set_space(TileSpace *space, const Fusion *fusion, const FilterGradient *gradient,
                             const int64_t *block);
