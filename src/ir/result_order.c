#include "ir/result_order.h"

#include <string.h>

#include "ir/fuse_inline.h"

/* How the readers of a definition's result order its dimensions: dimension d is their axis[d]. */
typedef struct ReadOrder {
    int axis[MAX_AXES];
    bool read, settled;   // by somebody; in its own order, since not all agree on another
} ReadOrder;

typedef struct MovedReads {
    const TensorOp *reader;
    ReadOrder *orders;   // by tensor id
} MovedReads;

/* All dimensions, each along another of the reader's axes, from end to end. */
static bool order_of(const Access *access, const TensorOp *reader, int *axis)
{
    uint32_t seen = 0;
    bool whole =
        reader->reduce == REDUCE_NONE && access_is_own(access) && access->rank == reader->spatial_count;
    for (int d = 0; whole && d < access->rank; d++) {
        axis[d] = affine_single_axis(&access->dims[d].index);
        whole =
            axis[d] >= 0 && access->dims[d].size == reader->axes[axis[d]].extent && !(seen >> axis[d] & 1);
        seen |= whole ? 1u << axis[d] : 0;
    }
    return whole;
}

static void order_visit(Expr *expr, void *context)
{
    MovedReads *search = context;
    const Tensor *tensor = expr_tensor(expr);
    if (!tensor)
        return;
    ReadOrder *order = &search->orders[tensor->id], found = {.read = true};
    bool whole = expr->kind == EXPR_ACCESS && order_of(&expr->access, search->reader, found.axis);
    bool alike = !order->read || memcmp(order->axis, found.axis, sizeof found.axis) == 0;
    order->settled |= !whole || !alike;
    if (!order->read)
        memcpy(order->axis, found.axis, sizeof found.axis);
    order->read = true;
}

static ReadOrder *find_orders(Arena *arena, const Program *program)
{
    MovedReads search = {.orders = NEW_ARRAY(arena, ReadOrder, program->tensor_count)};
    for (int i = 0; i < program->op_count; i++) {
        search.reader = program->ops[i];
        expr_visit(program->ops[i]->body, order_visit, &search);
    }
    return search.orders;
}

/* A sum of products that is read in another order than it has, its lines at a stride. */
static bool is_moved(const TensorOp *op, const ReadOrder *order)
{
    bool products = op->spatial_count > 0 && op->reduce == REDUCE_SUM && op->body->kind == EXPR_APPLY &&
                    op->body->apply.op == OP_MUL;
    int last = op->spatial_count - 1;
    if (!products || op->out->role != ROLE_TEMPORARY || !order->read || order->settled ||
        order->axis[last] != last)
        return false;
    bool moved = false;
    for (int d = 0; d < last; d++)
        moved |= order->axis[d] != d;
    return moved;
}

static void move_definition(Arena *arena, TensorOp *op, const int *place)
{
    const TensorOp own = *op;
    Affine forms[MAX_AXES];
    for (int a = 0; a < op->axis_count; a++) {
        int moved = a < op->spatial_count ? place[a] : a;
        forms[a] = affine_axis(moved);
        op->axes[moved] = own.axes[a];
    }
    op->body = expr_substitute(arena, op->body, forms, op->axis_count);
    for (int d = 0; d < op->spatial_count; d++)
        op->out->shape[d] = op->axes[d].extent;
}

typedef struct Moving {
    Arena *arena;
    const Tensor *tensor;
    const int *place;   // of each of its dimensions
} Moving;

static void move_visit(Expr *expr, void *context)
{
    const Moving *moving = context;
    if (expr->kind != EXPR_ACCESS || expr->access.tensor != moving->tensor)
        return;
    Dim *dims = NEW_ARRAY(moving->arena, Dim, expr->access.rank);
    for (int d = 0; d < expr->access.rank; d++)
        dims[moving->place[d]] = expr->access.dims[d];
    expr->access.dims = dims;
}

void results_in_read_order(Arena *arena, Program *program)
{
    const ReadOrder *orders = find_orders(arena, program);
    for (int i = 0; i < program->op_count; i++) {
        TensorOp *op = program->ops[i];
        const ReadOrder *order = &orders[op->out->id];
        if (!is_moved(op, order))
            continue;
        Moving moving = {arena, op->out, order->axis};
        move_definition(arena, op, order->axis);
        for (int k = i + 1; k < program->op_count; k++)
            expr_visit(program->ops[k]->body, move_visit, &moving);
    }
}

bool results_read_otherwise(Arena *arena, const Program *program)
{
    const ReadOrder *orders = find_orders(arena, program);
    for (int i = 0; i < program->op_count; i++)
        if (is_moved(program->ops[i], &orders[program->ops[i]->out->id]))
            return true;
    return false;
}
