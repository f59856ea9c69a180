// Axis fusion (Roller, OSDI'22, 3.4): [17, 11, 3] elements that are contiguous in every tensor are one axis
// of 561.
#pragma once
#include "ir/fuse.h"

/* Drops axes of one point and merges axes that are adjacent in every tensor that has them, in place. */
void fuse_axes(Arena *arena, Fusion *fusion);

/* The first half of it. */
void fuse_drop_unit_axes(Arena *arena, Fusion *fusion);
