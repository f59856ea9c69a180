// What all terms of a sum are multiplied by, or divided by, can wait until they are added up.
//
//   sum[k](q[i, k] * w[j, k] * scale[j] / 8)   =   sum[k](q[i, k] * w[j, k]) * scale[j] / 8
//
// A factor is shared if no axis that is summed over stands in it. It is then used once an output, and what is
// left may be a product of two elements, for which there are faster kernels. Integers wrap, so that factors
// and signs of theirs may wait, too, but no divisor: quotients are cut off term by term.
#pragma once
#include "ir/tensor_op.h"

typedef struct CommonFactor {
    Op op;   // OP_MUL, OP_DIV: the sum is multiplied by it, or divided
    Expr *expr;
} CommonFactor;

typedef struct CommonFactors {
    Expr *term;              // what is left of the body
    bool negated;            // the sum's sign is turned
    CommonFactor *factors;   // in the order of the text
    int count;
} CommonFactors;

/* A sum must not leave the range of its type because a factor waits: 1e-40 * a * b may be a number where
   a * b is none. So far from 1 a number may be; elements are not known here. */
#define FARTHEST_FACTOR 0x1p64

typedef enum FactorKind {
    FACTOR_ANY,
    FACTOR_CONSTANT   // made of numbers alone
} FactorKind;

/* Of a sum of `body` over the `reduced` axes (a mask). False: its terms share nothing, or are all the
   same. */
bool common_factors_find(Arena *arena, Expr *body, uint32_t reduced, FactorKind kind, CommonFactors *found);

/* Those of the sum and, behind them, those of its term, whose term is left. */
void common_factors_join(Arena *arena, CommonFactors *common, const CommonFactors *of_term);

/* The sum of the body, made of the sum of what is left of it. */
Expr *common_factors_apply(Arena *arena, const CommonFactors *common, Expr *sum);
