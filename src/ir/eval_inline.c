// Definitions that are as cheap to compute as to look up are inlined where they are read.
//
// A page of the memo holds adjacent elements of a row. Each element of a column is on a page of its own, and
// a sum over 200,000 rows of `dy[n, c] * mask[n, c]` would make 200,000 pages.
#include "base/checked.h"
#include "ir/eval_parts.h"

typedef struct Folding {
    const Affine *forms;
    bool fits;
} Folding;

static void fold_index(Folding *folding, const Affine *index)
{
    const int64_t most =
        (int64_t)1 << 20;   // of a coefficient: times extents, whose product is 2^62 at most, in 64 bits
    int64_t product;
    for (int a = 0; a < MAX_AXES; a++)
        for (int b = 0; b <= MAX_AXES && index->coef[a]; b++) {
            bool constant = b == MAX_AXES;
            const int64_t inner = constant ? folding->forms[a].constant : folding->forms[a].coef[b];
            const int64_t limit = constant ? most << 40 : most;
            folding->fits &=
                checked_mul(index->coef[a], inner, &product) && product <= limit && product >= -limit;
        }
}

static void fold_visit(Expr *expr, void *context)
{
    if (expr->kind == EXPR_INDEX)
        fold_index(context, &expr->index);
    for (int d = 0; expr->kind == EXPR_ACCESS && d < expr->access.rank; d++)
        fold_index(context, &expr->access.dims[d].index);
    for (int d = 0; expr->kind == EXPR_FETCH && d < expr->fetch.access.rank; d++)
        fold_index(context, &expr->fetch.access.dims[d].index);
    for (int d = 0; expr->kind == EXPR_GUARD && d < expr->guard.count; d++)
        fold_index(context, &expr->guard.bounds[d].index);
}

/* Indices that padding keeps inside may lead far: 10^8 * i read at 10^8 * j is 10^16 * j, and so on. */
static bool folds(const TensorOp *op, const Affine *forms)
{
    Folding folding = {forms, true};
    expr_visit(op->body, fold_visit, &folding);
    return folding.fits;
}

Expr *definition_at(Arena *arena, const TensorOp *op, const Access *access)
{
    if (!access_is_own(access))
        return NULL;
    Affine forms[MAX_AXES] = {0};   // reduction axes, of one point, stay 0
    for (int d = 0; d < access->rank; d++)
        forms[d] = access->dims[d].index;
    if (!folds(op, forms))
        return NULL;
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
    case EXPR_FETCH:
        copy->fetch.places = NEW_ARRAY(arena, FetchPlace, expr->fetch.count);
        for (int i = 0; i < expr->fetch.count; i++)
            copy->fetch.places[i] =
                (FetchPlace){expr_inline(arena, expr->fetch.places[i].value, definition_of, context),
                        expr->fetch.places[i].stride};
        return copy;
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
