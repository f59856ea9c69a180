// Definitions that are one function together.
//
//   t[i] = tanh(x[i])
//   s[i] = t[i] + 1              y[i] : f16 = h[i] * (tanh(x[i]) + 1)
//   y[i] : f16 = h[i] * s[i]
//
// A product with 1 + tanh(x), of which all results are rounded to 16 bits, needs no tanh: 1 + tanh(x) is 2 /
// (1 + exp(-2x)).
#pragma once
#include "ir/fuse.h"

/* Writes such sums where they are factors, and drops the definitions that nobody reads any more. */
void fuse_functions(Arena *arena, Fusion *fusion);

/* 1 + tanh(x) or tanh(x) + 1 in f32, where it is a factor of what is rounded to 16 bits: x. NULL: it is
   neither. */
const Expr *fused_tanh(const Fusion *fusion, const Expr *expr);
