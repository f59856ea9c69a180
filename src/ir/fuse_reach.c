#include "ir/fuse_reach.h"

#include <math.h>

typedef struct TensorReach {
    const TensorOp *const *definition;
    const bool *inlined;
    double axes[MAX_AXES];   // how far each axis of the expression that is walked gets from 0
    bool fits;               // so far
} TensorReach;

static double form_reach(const Affine *form, const double *axes)
{
    double reach = fabs((double)form->constant);
    for (int a = 0; a < MAX_AXES; a++)
        if (form->coef[a])
            reach += fabs((double)form->coef[a]) * axes[a];
    return reach;
}

static void reach_visit(Expr *expr, void *context);

/* Places stay inside their tensor. */
static void follow(TensorReach *reach, const Access *access, bool fetched)
{
    TensorReach inner = {reach->definition, reach->inlined, .fits = true};
    double offset = fetched ? (double)tensor_elements(access->tensor) : 0, stride = 1;
    for (int d = access->rank - 1; d >= 0; d--) {
        inner.axes[d] = form_reach(&access->dims[d].index, reach->axes);
        offset += inner.axes[d] * stride;
        stride *= (double)access->dims[d].size;
    }
    if (reach->inlined[access->tensor->id])
        expr_visit(reach->definition[access->tensor->id]->body, reach_visit, &inner);
    reach->fits &= inner.fits && offset < 0x1p62;
}

/* A guard's indices are those of the accesses below it. */
static void reach_visit(Expr *expr, void *context)
{
    if (expr->kind == EXPR_ACCESS || expr->kind == EXPR_FETCH)
        follow(context, expr->kind == EXPR_ACCESS ? &expr->access : &expr->fetch.access,
               expr->kind == EXPR_FETCH);
}

bool reach_fits(const TensorOp *reader, const Access *access, const TensorOp *const *definition,
                const bool *inlined)
{
    TensorReach reach = {definition, inlined, .fits = true};
    for (int a = 0; a < reader->axis_count; a++)
        reach.axes[a] = (double)reader->axes[a].extent;
    follow(&reach, access, false);
    return reach.fits;
}
