// Axes of a fusion that a kernel walks as one flat axis, the last one the innermost.
//
// A kernel's loops run over few axes, however many an expression has: of C[b, h, m, n] = sum[k](…) b and h
// are one batch.
#pragma once
#include "ir/fuse.h"

typedef struct AxisGroup {
    int axes[MAX_AXES];   // outermost first: in the fusion's order, unless whoever adds them has another
    int count;
    int64_t extent;   // product of all extents; 1: there are none
} AxisGroup;

void axis_group_add(AxisGroup *group, const Fusion *fusion, int axis);

/* The innermost axis; there must be one. */
int axis_group_innermost(const AxisGroup *group);

/* A bit for each axis. */
uint32_t axis_group_mask(const AxisGroup *group);

/* Elements from one point to the next along the innermost axis; 0: it does not move, or there is none. */
int64_t axis_group_stride(const AxisGroup *group, const Affine *offset);

/* Are adjacent flat positions all `stride` elements apart? Of x[a:2, b:3, c:4] those of a and b are, at
   stride 4; those of a and c have no one stride. */
bool axis_group_has_stride(const AxisGroup *group, const Fusion *fusion, const Affine *offset,
                           int64_t stride);

/* Positions along its axes (at[axis]) at a flat one. */
void axis_group_place(const AxisGroup *group, const Fusion *fusion, int64_t flat, int64_t *at);
