// The range of an expression's values, whatever the inputs hold.
//
//   x[i, j]                        of f16: -65504 … 65504, and 0 or at least 2^-24 away from it
//   sigmoid(x[i, j]) * m[j]        m of b1: 0 … 1
//   exp(x[i, j] - m[i])            m[i] = max[j](x[i, j]): 0 … 1
//   sum[j](x[i, j] * x[i, j])      of 1024 elements of f16: 0 … 2^42
//
// Elements of f32, bf16 and f64 are bounded by their type alone. Only finite values count: an infinite
// element, a divisor of 0 or a result that its type cannot hold is the same in every order of evaluation. But
// 0 may come of it, as in 1 / inf and exp(-inf), and is in the range. Rounding by functions and single
// operations is not in it: comparisons with a limit leave a factor of 2.
#pragma once
#include "ir/fuse.h"

typedef struct Range {
    double low, high;
    double least;   // no value but 0 is nearer to 0 than that; infinite: there is no other value
} Range;

/* Of a program's tensors, by what defines them. */
typedef struct Ranges {
    Arena *arena;
    const TensorOp **definition;   // by tensor id; NULL: an input
    Range *of_tensor;              // by tensor id
} Ranges;

Ranges *ranges_new(Arena *arena, const Program *program);

/* Where an expression stands. */
typedef struct RangeScope {
    const Ranges *ranges;
    const Axis *axes;
    int axis_count;
    const Fusion *fusion;   // whose values and accesses it is made of; NULL: it stands in the program
} RangeScope;

/* Of the values that the expression has in its type. */
Range range_of(const RangeScope *scope, const Expr *expr);
/* Of an arithmetic operation's results before the type cuts them off: what lies beyond it may overflow. */
Range range_of_result(const RangeScope *scope, const Expr *apply);
/* Of sums of so many terms, in any order, before their type cuts them off. */
Range range_of_sum(DType type, Range term, double count);

double range_size(Range range);   // of its largest value

// What definitions tell of an expression in the program (range_total.c).

/* What an element was made of, as long as nothing was rounded on the way. */
Expr *range_see_through(const RangeScope *scope, Expr *expr);

/* Is `total` a reduction of elements among which `element` is: of a sum, over the axes of its own, each of
   them once? A maximum may be one of more than that. */
bool range_is_total(const RangeScope *scope, Expr *total, Reduce reduce, Expr *element);
