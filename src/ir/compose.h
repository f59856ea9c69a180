// Views, quotients and remainders become axes, where they divide.
//
//   view v[2, 3, 4] = x           y[i:24] = x[i/4*4 + …]
//   z[c:6, d:4] = v[c/3, c%3, d]  ->  z over (c0:2, c1:3, d:4) = x[12*c0 + 4*c1 + d]
//
// A definition's axes run over the elements of its tensor in row-major order: one axis may be cut into
// several whose extents multiply to its own. What then is an affine index is one for fusion and for all
// families: a reshape, a transposition and a reshape are one permutation. What does not divide stays a fetch.
// Readers of a tensor that was cut are cut as it was, a reduction where its results lie: of q[h, d] and
// k[h/4, j, d] scores, maxima, shares and sums have an axis for the groups, as if they had been written so.
//
// In a sum that would fetch an element again and again (x[idx[t], k] * w[k, n]: once for each n) it is
// fetched once, into a tensor of its own.
#pragma once
#include "ir/tensor_op.h"

/* The same values in the same order of memory, element by element. Tensors keep their ids; new ones
   follow. */
Program *compose(Arena *arena, const Program *program);
