// What the kernels of filter gradients of groups share.
#pragma once
#include "codegen/family/depthwise/filter_gradient.h"

/* The tiles of x and d, staged, and those of the epilogue. */
void filter_groups_add_tiles(TileSpace *space, const Fusion *fusion, const FilterGradient *gradient);
