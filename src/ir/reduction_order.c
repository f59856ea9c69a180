#include "ir/reduction_order.h"

#include <stdlib.h>

typedef struct Leader {
    const TensorOp *op;
    const Access *access;   // whose order counts: one with a window, else the largest tensor's
    bool windowed;
} Leader;

/* Some dimension's index has an axis of the result and one that is reduced: h + r. */
static bool has_window(const TensorOp *op, const Access *access)
{
    for (int d = 0; d < access->rank; d++) {
        bool spatial = false, reduced = false;
        for (int a = 0; a < op->axis_count; a++)
            *(a < op->spatial_count ? &spatial : &reduced) |= access->dims[d].index.coef[a] != 0;
        if (spatial && reduced)
            return true;
    }
    return false;
}

static void lead_visit(Expr *expr, void *context)
{
    Leader *search = context;
    if (expr->kind != EXPR_ACCESS)
        return;
    const bool windowed = has_window(search->op, &expr->access);
    const bool larger = !search->access ||
                        tensor_elements(expr->access.tensor) > tensor_elements(search->access->tensor);
    if (windowed == search->windowed ? larger : windowed) {
        search->access = &expr->access;
        search->windowed = windowed;
    }
}

/* Fills `order`: axes of the result as they are, then the reduced ones by falling strides of the leader.
   False: they stand so, or the leader lacks one of them, which then has no stride to be ordered by. */
static bool find_order(const TensorOp *op, int *order)
{
    Leader leader = {.op = op};
    expr_visit(op->body, lead_visit, &leader);
    if (!leader.access)
        return false;
    const Affine place = access_offset(leader.access);
    bool moved = false;
    for (int a = 0; a < op->axis_count; a++) {
        const int64_t step = llabs(place.coef[a]);
        int at = a;
        if (a >= op->spatial_count && !step)
            return false;
        for (; at > op->spatial_count && llabs(place.coef[order[at - 1]]) < step; at--)
            order[at] = order[at - 1];
        order[at] = a;
        moved |= at != a;
    }
    return moved;
}

static TensorOp *ordered(Arena *arena, const TensorOp *op, const int *order)
{
    TensorOp *copy = NEW(arena, TensorOp);
    Affine forms[MAX_AXES];
    *copy = *op;
    for (int at = 0; at < op->axis_count; at++) {
        copy->axes[at] = op->axes[order[at]];
        forms[order[at]] = affine_axis(at);
    }
    copy->body = expr_substitute(arena, op->body, forms, op->axis_count);
    return copy;
}

const Program *reductions_in_memory_order(Arena *arena, const Program *program)
{
    Program *copy = NULL;
    for (int i = 0; i < program->op_count; i++) {
        const TensorOp *op = program->ops[i];
        int order[MAX_AXES];
        if (op->axis_count - op->spatial_count < 2 || !find_order(op, order))
            continue;
        if (!copy) {
            copy = NEW(arena, Program);
            *copy = *program;
            copy->ops = NEW_ARRAY(arena, TensorOp *, program->op_count);
            for (int j = 0; j < program->op_count; j++)
                copy->ops[j] = program->ops[j];
        }
        copy->ops[i] = ordered(arena, op, order);
    }
    return copy ? copy : program;
}
