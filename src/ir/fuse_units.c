#include "ir/fuse_units.h"

#include <string.h>

#include "ir/fuse_axes.h"

static const DType units[] = {DTYPE_BITS128, DTYPE_I64, DTYPE_I32, DTYPE_U16};

/* Nothing is computed: elements move as they are. */
static bool only_moves(const Fusion *fusion)
{
    const FusedOp *op = &fusion->ops[0];
    return fusion->op_count == 1 && op->reduce == REDUCE_NONE && op->body->kind == EXPR_ACCESS &&
           op->body->access.tensor->dtype == op->out->dtype && op->out->dtype != DTYPE_B1;
}

/* Do groups of `count` neighbours along the axis lie together in the tensor? Then its last dimension consists
   of them. */
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

/* Inner dimensions that hold no whole groups alone are merged until they do: together they are the access's
   last one. */
static Tensor *view_in_units(Arena *arena, const Tensor *tensor, DType unit, int64_t count)
{
    Tensor *view = NEW(arena, Tensor);
    *view = *tensor;
    view->dtype = unit;
    for (; view->shape[view->rank - 1] % count; view->rank--)
        view->shape[view->rank - 2] *= view->shape[view->rank - 1];
    view->shape[view->rank - 1] /= count;
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
    fusion->inputs[0] = view_in_units(arena, fusion->inputs[0], unit, count);
    fusion->outputs[0] = op->out = view_in_units(arena, fusion->outputs[0], unit, count);
    divide_last(arena, &op->body->access, axis, count, fusion->inputs[0]);
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
            keeps_groups(&op->body->access, axis, count) && keeps_groups(&op->store, axis, count)) {
            move_in(arena, fusion, axis, units[i], count);
            fuse_axes(arena, fusion);
            return;
        }
    }
}
