// A kernel that only moves elements moves as many at once as stay contiguous, up to 16 bytes: y[b, a, c] =
// x[a, b, c] with 24 halves along c moves 3 units of 8 halves, and one with 8 halves transposes a matrix of
// such units.
#pragma once
#include "ir/fuse.h"

/* In place: tensors become views of themselves in the wider units, whose last dimension is divided. */
void fuse_units(Arena *arena, Fusion *fusion);
