// Definitions that are as cheap to compute as to look up stand where they are read.
//
// A page of the memo holds neighbours in a row; of a column each is on a page of its own, and a sum over 200,000 rows of
// `dy[n, c] * mask[n, c]` would make 200,000 pages.
#include "ir/eval_parts.h"

/* The access names the dimensions of `op` and not of a view of its tensor. */
static bool is_plain(const TensorOp *op, const Access *access)
{
    for (int d = 0; d < access->rank && access->rank == op->spatial_count; d++)
        if (access->dims[d].size != op->axes[d].extent)
            return false;
    return access->rank == op->spatial_count;
}

Expr *definition_at(Arena *arena, const TensorOp *op, const Access *access)
{
    if (!is_plain(op, access))
        return NULL;
    Affine forms[MAX_AXES] = {0};   // reduction axes, of one point, stay 0
    for (int d = 0; d < access->rank; d++)
        forms[d] = access->dims[d].index;
    return expr_cast(arena, op->out->dtype, expr_substitute(arena, op->body, forms, op->axis_count));
}

Expr *expr_inline(Arena *arena, Expr *expr, DefinitionOf *definition_of, void *context)
{
    Expr *copy = NEW(arena, Expr);
    *copy = *expr;
    switch (expr->kind) {
    case EXPR_ACCESS: {
        const TensorOp *op = definition_of(context, expr->access.tensor);
        Expr *definition = op ? definition_at(arena, op, &expr->access) : NULL;
        return definition ? definition : expr;
    }
    case EXPR_GUARD:
        copy->guard.body = expr_inline(arena, expr->guard.body, definition_of, context);
        return copy;
    case EXPR_APPLY:
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            copy->apply.operands[i] = expr_inline(arena, expr->apply.operands[i], definition_of, context);
        return copy;
    case EXPR_CAST:
        copy->cast.body = expr_inline(arena, expr->cast.body, definition_of, context);
        return copy;
    case EXPR_CONST:
    case EXPR_INDEX:
    case EXPR_VALUE: break;
    }
    return expr;
}
