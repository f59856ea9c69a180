#include "ir/fuse_beside.h"

typedef struct BesideSearch {
    const Access *access;   // of the definition; NULL: it is being walked
    const Fusion *fusion;
    int op;   // of the fusion, that is being walked
    bool found;
} BesideSearch;

/* The index is moved by an output's position and, if there are any, by taps. */
static bool is_window(const Dim *dim, int spatial_count)
{
    bool outputs = false, taps = false;
    for (int a = 0; a < MAX_AXES; a++)
        *(a < spatial_count ? &outputs : &taps) |= dim->index.coef[a] != 0;
    return outputs && taps;
}

static bool has_window(const Access *access, int spatial_count)
{
    bool found = false;
    for (int d = 0; d < access->rank; d++)
        found |= is_window(&access->dims[d], spatial_count);
    return found;
}

/* Outputs move both alike, and in some dimension taps are added to them. */
static bool slide_alike(const Access *one, const Access *other, int spatial_count)
{
    bool windows = false;
    if (one->tensor != other->tensor || one->rank != other->rank)
        return false;
    for (int d = 0; d < one->rank; d++) {
        for (int a = 0; a < spatial_count; a++)
            if (one->dims[d].index.coef[a] != other->dims[d].index.coef[a])
                return false;
        windows |= is_window(&one->dims[d], spatial_count) && is_window(&other->dims[d], spatial_count);
    }
    return windows;
}

static void compare_visit(Expr *expr, void *context)
{
    BesideSearch *search = context;
    if (expr->kind == EXPR_ACCESS)
        search->found |= slide_alike(search->access, &expr->access, search->fusion->spatial_count);
}

static void beside_visit(Expr *expr, void *context)
{
    BesideSearch *search = context;
    if (expr->kind != EXPR_ACCESS || !has_window(&expr->access, search->fusion->spatial_count))
        return;
    search->access = &expr->access;
    for (int i = 0; i < search->fusion->op_count; i++)
        if (search->fusion->ops[i].reduce != REDUCE_NONE)
            expr_visit(search->fusion->ops[i].body, compare_visit, search);
}

static bool same_points(const Fusion *fusion, const TensorOp *op)
{
    if (op->spatial_count != fusion->spatial_count)
        return false;
    for (int a = 0; a < op->spatial_count; a++)
        if (fusion->axes[a].extent != op->axes[a].extent)
            return false;
    return fusion->axis_count + op->axis_count - op->spatial_count <= MAX_AXES;
}

bool fusion_slides_beside(const Fusion *fusion, const TensorOp *op)
{
    BesideSearch search = {.fusion = fusion};
    if (op->reduce != REDUCE_NONE && same_points(fusion, op))
        expr_visit(op->body, beside_visit, &search);
    return search.found;
}

void fusion_add_reduced_axes(Fusion *fusion, const TensorOp *op, Affine *forms)
{
    for (int a = 0; a < op->spatial_count; a++)
        forms[a] = affine_axis(a);
    for (int a = op->spatial_count; a < op->axis_count; a++) {
        forms[a] = affine_axis(fusion->axis_count);
        fusion->axes[fusion->axis_count] = op->axes[a];
        fusion->axes[fusion->axis_count++].reduction = true;
    }
}
