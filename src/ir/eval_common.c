// Sums whose terms share factors: a kernel may use those once, behind the sum (common_factors.h).
//
// x / m is 1 of rows that are constant, and a sum of seven is 7; (x + … + x) / m need not be. Both are
// evaluated, and both are legal. Where one of them overflows, or an infinite factor makes NaN of one and
// infinity of the other, nothing is known.
#include "ir/eval_parts.h"

void sum_forms(Arena *arena, const Ranges *ranges, const TensorOp *op, EvalMath math, SumForms *forms)
{
    SumScope sum = {
        .arena = arena,
        .at = {ranges, op->axes, op->axis_count, NULL},
        .reduced = ((1u << op->axis_count) - 1) & ~((1u << op->spatial_count) - 1),
        .any_range = math == EVAL_FAST,
    };
    *forms = (SumForms){.form = {{.term = op->body}}, .count = 1};
    if (op->reduce != REDUCE_SUM || !dtype_info[op->body->type].is_real)
        return;
    CommonFactors common;
    if (common_factors_find(&sum, op->body, FACTOR_ANY, &common))
        forms->form[forms->count++] = common;
    if (common_factors_find_more(&sum, FACTOR_DEEP, &common))
        forms->form[forms->count++] = common;
}
