// Who multiplies the terms of a product by what they share gets a slow kernel, where the factor must stay
// with them: it is said, with the mend.
#include "base/diag.h"
#include "ir/common_factors.h"
#include "ir/exact_type.h"

/* A product of two, each with axes of its own, is what fast kernels are made for. */
static bool has_two_sides(const Expr *term, uint32_t reduced)
{
    if (term->kind != EXPR_APPLY || term->apply.op != OP_MUL)
        return false;
    uint32_t left = expr_axes(term->apply.operands[0]), right = expr_axes(term->apply.operands[1]);
    return (left & right & reduced) == reduced && (left & ~right) && (right & ~left);
}

/* Tensor cores take elements alone. */
static bool is_of_halves(const Expr *term)
{
    Expr *const *sides = term->apply.operands;
    return (expr_is_exact(sides[0], DTYPE_F16) && expr_is_exact(sides[1], DTYPE_F16)) ||
           (expr_is_exact(sides[0], DTYPE_BF16) && expr_is_exact(sides[1], DTYPE_BF16));
}

static bool is_faster(const Expr *term, const Expr *other, uint32_t reduced)
{
    return has_two_sides(term, reduced) &&
           (!has_two_sides(other, reduced) || (is_of_halves(term) && !is_of_halves(other)));
}

static bool is_among(const CommonFactors *common, const Expr *factor)
{
    for (int i = 0; i < common->count; i++)
        if (common->factors[i].expr == factor)
            return true;
    return false;
}

static void advise(Arena *arena, const Ranges *ranges, const TensorOp *op)
{
    uint32_t reduced = ((1u << op->axis_count) - 1) & ~((1u << op->spatial_count) - 1);
    SumScope sum = {arena, {ranges, op->axes, op->axis_count, NULL}, reduced, false};
    CommonFactors waiting, all;
    common_factors_find(&sum, op->body, FACTOR_ANY, &waiting);
    sum.any_range = true;
    common_factors_find(&sum, op->body, FACTOR_ANY, &all);
    if (!is_faster(all.term, waiting.term, reduced))
        return;
    for (int i = 0; i < all.count; i++)
        if (!is_among(&waiting, all.factors[i].expr)) {
            diag_warning(
                all.factors[i].expr->loc,
                "this factor stays in the sum, which may leave the range of %s without it; the kernel "
                "is much faster if it stands behind the sum",
                dtype_info[op->body->type].name);
            return;
        }
}

void common_factors_advise(Arena *arena, const Program *program)
{
    const Ranges *ranges = ranges_new(arena, program);
    for (int i = 0; i < program->op_count && !program->fast_math; i++)
        if (program->ops[i]->reduce == REDUCE_SUM)
            advise(arena, ranges, program->ops[i]);
}
