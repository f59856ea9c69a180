// Products of more than two factors, multiplied side by side first, so that two factors are left.
//
//   q[i, k] * w[j, k] * mask[i, k] * g[k]   =   (q[i, k] * mask[i, k] * g[k]) * w[j, k]
//
// A sum of such is a matrix product, where each side has an axis of the result that the other has not, and
// both have all axes that are summed over. Of all ways to part the factors the one is taken whose sides have
// the fewest points in common, and then the one where what is made of several factors is smallest. Factors
// are multiplied first only where their types say that no product of them leaves the range of its own.
#pragma once
#include "ir/tensor_op.h"

/* `term` of a sum over the axes in `reduced`; itself, if it is of two sides already or no way leads there. */
Expr *product_of_sides(Arena *arena, Expr *term, const Axis *axes, uint32_t reduced);
