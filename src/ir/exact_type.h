// Whether all values of an expression are elements of a type, unrounded. Then they can be stored in that type
// without loss, and tensor cores can multiply them.
//
//   select(mask[i, k], x[i, k], 0)   x, or 0, of f16: f16          cast(q[j, k], f32)   of i8: f16, bf16, f32
//   max(x[i, k], 0) * m[k]           m of b1: 0 or x               x[i, k] * 0.1        a product: f32 alone
#pragma once
#include "ir/tensor_op.h"

bool expr_is_exact(const Expr *expr, DType type);

/* Temporaries without a type whose values are exactly those of a narrower one, `cast(x, f16)` or the larger
   of two such elements, are stored in that type: half the bytes, and tensor cores may multiply them. They are
   marked, since nothing is rounded for it. */
void keep_exact_types(Program *program);

/* `a / b` of a constant b may be made of the reciprocal r, rounded to float, and be exact: with e = a - b * q
   of q = a * r, the sum q + e * r is a / b correctly rounded where q lies within a unit in the last place of
   it (Markstein, "IA-64 and elementary functions", theorem 8.5). It does if r is off by at most 2^-25; else
   it may lie two away, and is corrected twice. Divisors from 1 to 2^60 keep clear of overflow; quotients
   below 2^-100 may be off by their last place. Powers of two need none of this. So many corrections; 0: it is
   divided. */
int expr_corrections(const Expr *expr);
