#include "ir/fuse_order.h"

#include <assert.h>
#include <string.h>

/* Whether every dimension is another one of the axes, and all are there: the axis of each goes to `axis`. */
static bool is_whole_visit(const Access *access, const TensorOp *op, int *axis)
{
    uint32_t seen = 0;
    if (access->rank != op->axis_count)
        return false;
    for (int d = 0; d < access->rank; d++) {
        axis[d] = affine_single_axis(&access->dims[d].index);
        if (axis[d] < 0 || access->dims[d].size != op->axes[axis[d]].extent)
            return false;
        seen |= 1u << axis[d];
    }
    return seen == (1u << op->axis_count) - 1;
}

typedef struct OrderSearch {
    const TensorOp *op;
    const bool *
        viewed;   // by tensor id: the dimensions that some access names are not its own, or the place is computed
    DimOrder *orders;   // by tensor id
    DimOrder found;     // of the op's own dimensions
} OrderSearch;

/* A reduction's axes are the rows' axes, and order what it reads. */
static void rows_visit(Expr *expr, void *context)
{
    OrderSearch *search = context;
    if (expr->kind != EXPR_ACCESS || search->viewed[expr->access.tensor->id] ||
        search->orders[expr->access.tensor->id].known)
        return;
    DimOrder order = {.known = true, .spatial_count = search->op->spatial_count};
    if (is_whole_visit(&expr->access, search->op, order.axis))
        search->orders[expr->access.tensor->id] = order;
}

/* A pointwise definition follows the first tensor that has an order. */
static void elements_visit(Expr *expr, void *context)
{
    OrderSearch *search = context;
    int axis[MAX_AXES];
    if (expr->kind != EXPR_ACCESS || search->found.known)
        return;
    const DimOrder *order = &search->orders[expr->access.tensor->id];
    if (!order->known || !is_whole_visit(&expr->access, search->op, axis))
        return;
    search->found = (DimOrder){.known = true, .spatial_count = order->spatial_count};
    for (int d = 0; d < expr->access.rank; d++)
        search->found.axis[axis[d]] = order->axis[d];
}

static void viewed_visit(Expr *expr, void *context)
{
    const Tensor *tensor = expr_tensor(expr);
    if (tensor)
        ((bool *)context)[tensor->id] |= expr->kind == EXPR_FETCH || !access_is_own(&expr->access);
}

/* In the end only pointwise definitions have an order. */
static void find_orders(Arena *arena, const Program *program, DimOrder *orders)
{
    DimOrder *seen = NEW_ARRAY(arena, DimOrder, program->tensor_count);
    bool *viewed = NEW_ARRAY(arena, bool, program->tensor_count);
    for (int i = 0; i < program->op_count; i++)
        expr_visit(program->ops[i]->body, viewed_visit, viewed);
    for (int i = 0; i < program->op_count; i++) {
        OrderSearch search = {.op = program->ops[i], .viewed = viewed, .orders = seen};
        if (search.op->reduce != REDUCE_NONE)
            expr_visit(search.op->body, rows_visit, &search);
    }
    for (int i = 0; i < program->op_count; i++) {
        const TensorOp *op = program->ops[i];
        OrderSearch search = {.op = op, .orders = seen, .found = seen[op->out->id]};
        if (op->reduce != REDUCE_NONE || viewed[op->out->id])
            continue;
        expr_visit(op->body, elements_visit, &search);
        seen[op->out->id] = orders[op->out->id] = search.found;
    }
}

typedef struct Reordering {
    Arena *arena;
    const DimOrder *orders;   // by tensor id
} Reordering;

static void reorder_visit(Expr *expr, void *context)
{
    const Reordering *reordering = context;
    if (expr->kind != EXPR_ACCESS || !reordering->orders[expr->access.tensor->id].known)
        return;
    Dim *moved = NEW_ARRAY(reordering->arena, Dim, expr->access.rank);
    for (int d = 0; d < expr->access.rank; d++)
        moved[reordering->orders[expr->access.tensor->id].axis[d]] = expr->access.dims[d];
    expr->access.dims = moved;
}

static TensorOp *reorder(Arena *arena, const TensorOp *op, const DimOrder *orders)
{
    Reordering reordering = {arena, orders};
    TensorOp *copy = NEW(arena, TensorOp);
    *copy = *op;
    const DimOrder *order = &orders[op->out->id];
    Affine forms[MAX_AXES];
    for (int a = 0; a < op->axis_count; a++) {
        int moved = order->known ? order->axis[a] : a;
        forms[a] = affine_axis(moved);
        copy->axes[moved] = op->axes[a];
    }
    copy->body = expr_substitute(arena, op->body, forms, op->axis_count);
    expr_visit(copy->body, reorder_visit, &reordering);
    return copy;
}

const Program *fuse_order(Arena *arena, const Program *program, DimOrder *orders)
{
    find_orders(arena, program, orders);
    Program *copy = NEW(arena, Program);
    *copy = *program;
    copy->ops = NEW_ARRAY(arena, TensorOp *, program->op_count);
    for (int i = 0; i < program->op_count; i++)
        copy->ops[i] = reorder(arena, program->ops[i], orders);
    return copy;
}

Access access_in_memory_order(Arena *arena, const Access *access, const DimOrder *order)
{
    Dim *moved = NEW_ARRAY(arena, Dim, access->rank);
    for (int d = 0; d < access->rank; d++)
        moved[d] = access->dims[order->known ? order->axis[d] : d];
    return (Access){access->tensor, access->rank, moved};
}

static bool is_in_order(const Access *store)
{
    for (int d = 0; d < store->rank; d++)
        if (affine_single_axis(&store->dims[d].index) != d)
            return false;
    return true;
}

static const FusedOp *first_stored(const Fusion *fusion)
{
    const FusedOp *op = fusion->ops;
    while (!op->stored)
        op++;
    return op;
}

bool fuse_in_memory_order(Arena *arena, Fusion *fusion)
{
    const Access first = first_stored(fusion)->store;
    Axis axes[MAX_AXES];
    Affine forms[MAX_AXES] = {0};
    for (int d = 0; d < first.rank; d++) {
        int axis = affine_single_axis(&first.dims[d].index);
        assert(axis >= 0);
        axes[d] = fusion->axes[axis];
        forms[axis] = affine_axis(d);
    }
    memcpy(fusion->axes, axes, sizeof(Axis) * (size_t)first.rank);
    bool in_order = true;
    for (int i = 0; i < fusion->op_count; i++) {
        FusedOp *op = &fusion->ops[i];
        op->body = expr_substitute(arena, op->body, forms, fusion->axis_count);
        Dim *moved = NEW_ARRAY(arena, Dim, op->store.rank);
        for (int d = 0; d < op->store.rank; d++)
            moved[d] = (Dim){affine_substitute(&op->store.dims[d].index, forms, fusion->axis_count),
                             op->store.dims[d].size};
        op->store.dims = moved;
        in_order &= !op->stored || is_in_order(&op->store);
    }
    return in_order;
}
