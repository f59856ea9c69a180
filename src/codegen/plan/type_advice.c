#include "codegen/plan/type_advice.h"

#include <math.h>

#include "base/diag.h"
#include "ir/compose.h"
#include "ir/exact_type.h"

/* A definition that the user left in f32, and which only readers see. */
static Tensor *untyped(const Program *program, const Expr *factor)
{
    Tensor *tensor = factor->kind == EXPR_ACCESS ? factor->access.tensor : NULL;
    if (!tensor || tensor->role != ROLE_TEMPORARY || tensor->dtype != DTYPE_F32)
        return NULL;
    for (int i = 0; i < program->op_count; i++)
        if (program->ops[i]->out == tensor)
            return tensor;
    return NULL;
}

static DType half_of(const Expr *factor)
{
    return expr_is_exact(factor, DTYPE_F16)    ? DTYPE_F16
           : expr_is_exact(factor, DTYPE_BF16) ? DTYPE_BF16
                                               : DTYPE_F32;
}

/* Gives the definition that one factor of a product reads the type of the other. */
static Tensor *give_type(const Program *program, const TensorOp *op)
{
    const Expr *body = op->body;
    if (op->reduce != REDUCE_SUM || body->kind != EXPR_APPLY || body->apply.op != OP_MUL)
        return NULL;
    for (int side = 0; side < 2; side++) {
        Tensor *tensor = untyped(program, body->apply.operands[side]);
        DType half = half_of(body->apply.operands[1 - side]);
        if (!tensor || half == DTYPE_F32 || expr_tensor(body->apply.operands[1 - side]) == tensor)
            continue;
        tensor->dtype = half;
        return tensor;
    }
    return NULL;
}

static double planned(const Program *program, const Target *target)
{
    Arena *arena = arena_new();
    FusionPlans fusions = fuse(arena, compose(arena, program));
    PlanList list = plan_program(arena, &fusions, target, 1);
    double time_us = list.count ? list.plans[0].time_us : 0;
    arena_free(arena);
    return time_us;
}

static void tell(const Tensor *first, int others, double before_us, double after_us)
{
    const char *type = dtype_info[first->dtype].name;
    if (others)
        diag_warning(first->loc,
                     "a product takes longer for want of a type: write %s[...] : %s, and so for %d more "
                     "factors of products (%.0f us -> %.0f us, predicted)",
                     first->name, type, others, before_us, after_us);
    else
        diag_warning(first->loc,
                     "a product takes longer for want of a type: write %s[...] : %s (%.0f us -> %.0f us, "
                     "predicted)",
                     first->name, type, before_us, after_us);
}

void types_advise(Arena *arena, const Program *program, const Target *target, const PlanList *plans)
{
    Tensor **typed = NEW_ARRAY(arena, Tensor *, program->op_count);
    int count = 0;
    for (int i = 0; i < program->op_count && plans->count && !diag_is_quiet(); i++) {
        Tensor *tensor = give_type(program, program->ops[i]);
        if (tensor)
            typed[count++] = tensor;
    }
    if (!count)
        return;
    double before_us = plans->plans[0].time_us, after_us = planned(program, target);
    if (after_us > 0 && llround(after_us) < llround(before_us))
        tell(typed[0], count - 1, before_us, after_us);
    for (int i = 0; i < count; i++)
        typed[i]->dtype = DTYPE_F32;
}
