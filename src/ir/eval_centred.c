// Centred sums: sum[r](sq(x[r] - m)) with m a share of sum[r](x[r]), like a mean. A legal kernel makes them
// of chunks (fusion_centred_sum(); fuse_phases.c), so that even whole numbers are rounded: of 1, 2 and 1 the
// mean is 4/3.
#include <float.h>
#include <math.h>

#include "ir/eval_parts.h"

/* What an element was made of, unless it was rounded. */
static Expr *see_through(Arena *arena, Expr *expr, DefinitionOf *definition_of, void *context)
{
    while (expr->kind == EXPR_ACCESS) {
        const TensorOp *op = definition_of(context, expr->access.tensor);
        bool is_kept = op && op->reduce == REDUCE_NONE && op->body->type == op->out->dtype;
        Expr *definition = is_kept ? definition_at(arena, op, &expr->access) : NULL;
        if (!definition)
            break;
        expr = definition;
    }
    return expr;
}

/* The difference whose square the term is. */
static Expr *squared(Arena *arena, Expr *term, DefinitionOf *definition_of, void *context)
{
    Expr *square = see_through(arena, term, definition_of, context);
    if (square->kind != EXPR_APPLY || (square->apply.op != OP_SQ && square->apply.op != OP_MUL))
        return NULL;
    Expr *factor = see_through(arena, square->apply.operands[0], definition_of, context);
    if (factor->kind != EXPR_APPLY || factor->apply.op != OP_SUB)
        return NULL;
    bool same = square->apply.op == OP_SQ ||
                expr_equal(factor, see_through(arena, square->apply.operands[1], definition_of, context));
    return same ? factor : NULL;
}

/* What a constant multiplies or divides. */
static const Expr *shared(const Expr *expr)
{
    Expr *const *operands = expr->apply.operands;
    if (expr->apply.op != OP_MUL && expr->apply.op != OP_DIV)
        return NULL;
    if (operands[1]->kind == EXPR_CONST)
        return operands[0];
    return expr->apply.op == OP_MUL && operands[0]->kind == EXPR_CONST ? operands[1] : NULL;
}

static int64_t points_of(const TensorOp *op)
{
    int64_t points = 1;
    for (int a = op->spatial_count; a < op->axis_count; a++)
        points *= op->axes[a].extent;
    return points;
}

static bool is_share_of_sum(const Expr *expr, int64_t points, DefinitionOf *definition_of, void *context)
{
    while (expr) {
        if (expr->kind == EXPR_CAST) {
            expr = dtype_info[expr->cast.to].is_real ? expr->cast.body : NULL;
        } else if (expr->kind == EXPR_APPLY) {
            expr = shared(expr);
        } else {
            const TensorOp *op =
                expr->kind == EXPR_ACCESS ? definition_of(context, expr->access.tensor) : NULL;
            if (!op || op->reduce != REDUCE_NONE)
                return op && op->reduce == REDUCE_SUM && dtype_info[op->body->type].is_real &&
                       points_of(op) == points;
            expr = op->body;
        }
    }
    return false;
}

Expr *centred_difference(Arena *arena, const TensorOp *op, Expr *term, DefinitionOf *definition_of,
                         void *context)
{
    if (op->reduce != REDUCE_SUM || !dtype_info[op->body->type].is_real)
        return NULL;
    Expr *difference = squared(arena, term, definition_of, context);
    if (!difference)
        return NULL;
    const Expr *centre = difference->apply.operands[1];
    bool varies = expr_axes(centre) >> op->spatial_count != 0;
    return !varies && is_share_of_sum(centre, points_of(op), definition_of, context) ? difference : NULL;
}

/* A chunk of k points has the mean c = s / k + d. As sum(x - c) is -k * d, its squares around m are

     sum(sq(x - m)) = sum(sq(x - c)) + k * sq(c - m) - 2 * k * d * (c - m)

   and the kernel leaves out the last term. k * |c - m| is at most sum |x - m|, and d some units u of c, which
   is no larger than |m| + |c - m|: all chunks are off by 2 * units * u * sum(|x - m| * (|m| + |x - m|)), as
   if each difference were by units * u * (|m| + |x - m|). Two units a mean, for the division and for a
   product where chunks join, and chunks of chunks four deep: of a thread, a warp, a block and a kernel. What
   the squares and their factors k round is less than the share of |x - m| in it. s errs like the total, which
   m's bound holds, and not at all where m has none. Of elements that are all m the mean is m. */
Real centred_allow(DType type, Real centre, Real difference)
{
    enum { UNITS = 2 * 4 };
    double reach = fabs(centre.value) + fabs(difference.value);
    bool exact = difference.value == 0 && difference.bound == 0;
    if (!exact && reach <= DBL_MAX)
        difference.bound += UNITS * precision_of(type)->unit * reach;
    return difference;
}
