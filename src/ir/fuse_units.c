#include "ir/fuse_units.h"

#include <string.h>

#include "ir/fuse_axes.h"

static const DType units[] = {DTYPE_BITS128, DTYPE_I64, DTYPE_I32, DTYPE_U16};

/* Nothing is computed: elements move as they are. */
static bool only_moves(const Fusion *fusion)
{
    const FusedOp *op = &fusion->ops[0];
    const Tensor *tensor = expr_tensor(op->body);
    return fusion->op_count == 1 && op->reduce == REDUCE_NONE && tensor && tensor->dtype == op->out->dtype &&
           op->out->dtype != DTYPE_B1;
}

static void reads_visit(Expr *expr, void *context)
{
    const Tensor **tensor = context;
    if (expr_tensor(expr) == *tensor)
        *tensor = NULL;
}

/* Places are the same for a group, step by whole groups, and are made of other tensors. */
static bool places_keep_groups(const Expr *body, int axis, int64_t count)
{
    for (int i = 0; body->kind == EXPR_FETCH && i < body->fetch.count; i++) {
        const FetchPlace *place = &body->fetch.places[i];
        const Tensor *tensor = body->fetch.access.tensor;
        expr_visit(place->value, reads_visit, &tensor);
        if (!tensor || place->stride % count || expr_axes(place->value) >> axis & 1)
            return false;
    }
    return true;
}

static Access *access_of(Expr *body)
{
    return body->kind == EXPR_FETCH ? &body->fetch.access : &body->access;
}

/* Are groups of `count` adjacent elements along the axis contiguous in the tensor? Then its last dimension
   consists of them. */
static bool keeps_groups(const Access *access, int axis, int64_t count)
{
    if (access->rank == 0)
        return false;
    const Dim *last = &access->dims[access->rank - 1];
    for (int d = 0; d + 1 < access->rank; d++)
        if (access->dims[d].index.coef[axis])
            return false;
    for (int a = 0; a < MAX_AXES; a++)
        if (a != axis && last->index.coef[a] % count)
            return false;
    return last->index.coef[axis] == 1 && last->index.constant % count == 0 && last->size % count == 0;
}

/* Inner dimensions that hold no whole groups alone are merged until they do, and become the access's last
   one. */
static void shape_in_units(int64_t *shape, int *rank, int64_t count)
{
    for (; shape[*rank - 1] % count; --*rank)
        shape[*rank - 2] *= shape[*rank - 1];
    shape[*rank - 1] /= count;
}

static Tensor *view_in_units(Arena *arena, const Tensor *tensor, DType unit, int64_t count)
{
    Tensor *view = NEW(arena, Tensor);
    *view = *tensor;
    view->dtype = unit;
    view->views = NULL;
    view->part_stride = tensor->part_stride % count ? 0 : tensor->part_stride / count;
    view->part_first = tensor->part_first / count;
    view->part_end = tensor->part_end / count;
    shape_in_units(view->shape, &view->rank, count);
    for (const TensorView *seen = tensor->views; seen; seen = seen->next) {
        TensorView *in_units = NEW(arena, TensorView);
        *in_units = *seen;
        shape_in_units(in_units->shape, &in_units->rank, count);
        in_units->next = view->views;
        view->views = in_units;
    }
    return view;
}

static void divide_last(Arena *arena, Access *access, int axis, int64_t count, Tensor *view)
{
    Dim *dims = NEW_ARRAY(arena, Dim, access->rank), *last = &dims[access->rank - 1];
    memcpy(dims, access->dims, sizeof(Dim) * (size_t)access->rank);
    for (int a = 0; a < MAX_AXES; a++)
        if (a != axis)
            last->index.coef[a] /= count;
    last->index.constant /= count;
    last->size /= count;
    *access = (Access){view, access->rank, dims};
}

static void move_in(Arena *arena, Fusion *fusion, int axis, DType unit, int64_t count)
{
    FusedOp *op = &fusion->ops[0];
    int input = 0;
    while (fusion->inputs[input] != expr_tensor(op->body))
        input++;
    fusion->inputs[input] = view_in_units(arena, fusion->inputs[input], unit, count);
    fusion->outputs[0] = op->out = view_in_units(arena, fusion->outputs[0], unit, count);
    divide_last(arena, access_of(op->body), axis, count, fusion->inputs[input]);
    for (int i = 0; op->body->kind == EXPR_FETCH && i < op->body->fetch.count; i++)
        op->body->fetch.places[i].stride /= count;
    divide_last(arena, &op->store, axis, count, fusion->outputs[0]);
    op->body->type = dtype_info[unit].compute;
    fusion->axes[axis].extent /= count;
}

void fuse_units(Arena *arena, Fusion *fusion)
{
    if (!fusion->axis_count || !only_moves(fusion))
        return;
    FusedOp *op = &fusion->ops[0];
    int axis = fusion->axis_count - 1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        int64_t count = dtype_info[units[i]].bits / dtype_info[op->out->dtype].bits;
        if (count > 1 && fusion->axes[axis].extent % count == 0 &&
            keeps_groups(access_of(op->body), axis, count) && places_keep_groups(op->body, axis, count) &&
            keeps_groups(&op->store, axis, count)) {
            move_in(arena, fusion, axis, units[i], count);
            fuse_axes(arena, fusion);
            return;
        }
    }
}
