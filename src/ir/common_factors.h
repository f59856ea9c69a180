// A factor or divisor of all terms of a sum can be applied once, behind the sum.
//
//   sum[k](q[i, k] * w[j, k] * scale[j] / 8)   =   sum[k](q[i, k] * w[j, k]) * scale[j] / 8
//
// A factor is shared if it depends on no axis that is summed over. It is then applied once an output, and
// what is left may be a product of two elements, for which there are faster kernels. Integers wrap, so that
// their factors and signs may follow the sum, too, but no divisor: quotients are truncated term by term.
//
// Of reals a factor follows the sum only where nothing can leave the range of its type without it: x / 1000
// of f32 may be there to keep the sum finite.
#pragma once
#include "ir/range.h"

typedef struct CommonFactor {
    Op op;   // OP_MUL, OP_DIV: the sum is multiplied by it, or divided
    Expr *expr;
} CommonFactor;

typedef struct CommonFactors {
    Expr *term;              // what is left of the body
    bool negated;            // the sum changes its sign
    CommonFactor *factors;   // as they are used: in the order of the text, or numbers first if they must be
    int count;
} CommonFactors;

/* How far from 1 a number may be, even where ranges don't count: one farther away is there to scale the
   terms. */
#define FARTHEST_FACTOR 0x1p64

typedef enum FactorKind {
    FACTOR_ANY,
    FACTOR_CONSTANT,   // made of numbers alone
    FACTOR_DEEP        // a number, also below definitions of which the terms are made
} FactorKind;

/* A sum. */
typedef struct SumScope {
    Arena *arena;
    RangeScope at;      // where its body stands
    uint32_t reduced;   // axes that are summed over, a mask
    bool any_range;     // --math=fast: whatever leaves the range of its type
} SumScope;

/* Of a sum of `body`. False: its terms share nothing, or are all the same. */
bool common_factors_find(const SumScope *sum, Expr *body, FactorKind kind, CommonFactors *found);

/* More of them in what is left: behind those that were found. */
bool common_factors_find_more(const SumScope *sum, FactorKind kind, CommonFactors *found);

/* The sum of the body, made of the sum of what is left of it. */
Expr *common_factors_apply(Arena *arena, const CommonFactors *common, Expr *sum);

/* Warns of factors that must stay in a sum of products (common_advice.c). */
void common_factors_advise(Arena *arena, const Program *program);

/* Neither the sum of what is left of `body` nor what the factors make of it on the way leaves the range of
   its type, or the language allows it (common_range.c). */
bool common_factors_may_wait(const SumScope *sum, const Expr *body, const CommonFactors *common);
