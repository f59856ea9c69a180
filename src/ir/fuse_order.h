// The order in which a kernel of rows has the dimensions of pointwise definitions.
//
// `mean[c] = sum[n, h](x[n, c, h])` makes rows of (c | n, h). `y[n, c, h] = x[n, c, h] - mean[c]` belongs to
// them, though its dimensions are in another order. Its axes, and the dimensions of y wherever it is
// read, are permuted to the rows' order.
#pragma once
#include "ir/fuse.h"

/* Dimension d of the tensor is axis[d] of the rows. */
typedef struct DimOrder {
    bool known;         // it is made element by element, and belongs to rows
    int spatial_count;  // axes of the rows; the others are reduced over
    int axis[MAX_AXES];
} DimOrder;

/* The program with its pointwise definitions in the order of the first reduction that reads what they read.
   Fills `orders`, one for each tensor. */
const Program *fuse_order(Arena *arena, const Program *program, DimOrder *orders);

/* The dimensions of an access as they stand in memory again. */
Access access_in_memory_order(Arena *arena, const Access *access, const DimOrder *order);

/* Orders the axes of a kernel of points as its first output lies in memory, so that vectors can be stored.
   False: another output has another order. */
bool fuse_in_memory_order(Arena *arena, Fusion *fusion);
