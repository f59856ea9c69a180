// Sums whose terms share factors: a kernel may use those once, behind the sum (common_factors.h).
//
// Ordinary numbers err no more by that: a factor rounds the sum once in place of each of its terms.
#include <math.h>

#include "ir/eval_parts.h"

bool op_common_factors(Arena *arena, const TensorOp *op, CommonFactors *common)
{
    uint32_t reduced = ((1u << op->axis_count) - 1) & ~((1u << op->spatial_count) - 1);
    *common = (CommonFactors){.term = op->body};
    return op->reduce == REDUCE_SUM && dtype_info[op->body->type].is_real &&
           common_factors_find(arena, op->body, reduced, FACTOR_ANY, common);
}

Common common_none(void) { return (Common){.most = 1}; }

Common common_with(Common common, Op op, Real factor)
{
    double size = fabs(factor.value);
    bool zero = size == 0 && op == OP_MUL;
    common.unknown |= size > FARTHEST_FACTOR || (size < 1 / FARTHEST_FACTOR && !zero);
    double by = op == OP_DIV ? 1 / size : size;
    common.most *= by > 1 ? by : 1;
    return common;
}

/* With s = inf, or divided by 0, the terms 1 * s and -1 * s are no number together, while (1 - 1 + 2) * s is
   infinite. Products of denormal numbers are lost in part, of which 1000 * x * y in that order may be none. */
Real common_allow(DType type, Common common, Real term)
{
    const Precision *precision = precision_of(type);
    double least = 4 * precision->tiny / precision->unit;   // 2^-123 in f32
    if (common.unknown)
        term.bound = INFINITY;
    else if (term.value != 0 && fabs(term.value) < least * common.most)
        term.bound += precision->tiny * common.most;
    return term;
}
