#include "ir/fuse_join.h"

#include <string.h>

#include "ir/prepared.h"

// ---- which can be joined ----

static const Expr *factor_of(const Fusion *fusion, int factor)
{
    const Expr *body = fusion->ops[0].body;
    bool product = body->kind == EXPR_APPLY && body->apply.op == OP_MUL;
    const Expr *expr = product ? body->apply.operands[factor] : body;
    return product && expr->kind == EXPR_ACCESS ? expr : NULL;
}

static bool share_factor(const Fusion *one, const Fusion *other)
{
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            if (expr_equal(factor_of(one, i), factor_of(other, j)))
                return true;
    return false;
}

static bool is_sum(const Fusion *fusion)
{
    return !fusion->streams && fusion_is_reduction(fusion) && fusion->ops[0].reduce == REDUCE_SUM &&
           factor_of(fusion, 0) && factor_of(fusion, 1);
}

/* The sum is of what the other kernel makes. */
static bool waits_for(const Fusion *fusion, const Fusion *other)
{
    for (int i = 0; i < other->output_count; i++)
        for (int factor = 0; factor < 2; factor++)
            if (factor_of(fusion, factor)->access.tensor->id == other->outputs[i]->id)
                return true;
    return false;
}

bool fusions_may_join(const Fusion *one, const Fusion *other)
{
    if (!is_sum(one) || !is_sum(other) || one->spatial_count != other->spatial_count ||
        one->axis_count != other->axis_count || fusion_is_prepared(one) != fusion_is_prepared(other))
        return false;
    for (int a = 0; a < one->axis_count; a++)
        if (one->axes[a].extent != other->axes[a].extent)
            return false;
    return share_factor(one, other);
}

// ---- one of several ----

typedef struct Joining {
    Arena *arena;
    Fusion *fusion;
    const int *place;   // of the part's ops among all
    bool legal;
} Joining;

static Expr *value_of(Joining *joining, int index)
{
    return expr_value(joining->arena, index, joining->fusion->ops[index].out);
}

/* What an earlier part makes is its value at the point, or else not there yet. */
static Expr *join_access(Joining *joining, Expr *expr)
{
    const Fusion *fusion = joining->fusion;
    for (int i = 0; i < fusion->op_count; i++) {
        if (fusion->ops[i].out->id != expr->access.tensor->id)
            continue;
        joining->legal &= fusion->ops[i].out == expr->access.tensor;
        Affine made = access_offset(&fusion->ops[i].store), read = access_offset(&expr->access);
        joining->legal &= memcmp(&made, &read, sizeof made) == 0;
        return value_of(joining, i);
    }
    return expr;
}

static Expr *join_expr(Joining *joining, Expr *expr)
{
    if (expr->kind == EXPR_VALUE)
        return value_of(joining, joining->place[expr->value]);
    if (expr->kind == EXPR_ACCESS)
        return join_access(joining, expr);
    Expr *copy = arena_copy(joining->arena, expr, sizeof *expr);
    if (expr->kind == EXPR_GUARD)
        copy->guard.body = join_expr(joining, expr->guard.body);
    else if (expr->kind == EXPR_CAST)
        copy->cast.body = join_expr(joining, expr->cast.body);
    else if (expr->kind == EXPR_APPLY)
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            copy->apply.operands[i] = join_expr(joining, expr->apply.operands[i]);
    else
        joining->legal &= expr->kind == EXPR_CONST;
    return copy;
}

static void join_epilogue(Joining *joining, const Fusion *part, int sum)
{
    int *place = NEW_ARRAY(joining->arena, int, part->op_count);
    joining->place = place;
    place[0] = sum;
    for (int i = 1; i < part->op_count; i++) {
        FusedOp op = part->ops[i];
        op.body = join_expr(joining, op.body);
        place[i] = joining->fusion->op_count;
        joining->fusion->ops[joining->fusion->op_count++] = op;
    }
}

/* Each once, in order of their ids. */
static int add_tensor(Tensor **list, int count, Tensor *tensor)
{
    int at = count;
    while (at > 0 && list[at - 1]->id > tensor->id)
        at--;
    if (at > 0 && list[at - 1] == tensor)
        return count;
    memmove(list + at + 1, list + at, sizeof *list * (size_t)(count - at));
    list[at] = tensor;
    return count + 1;
}

static void list_tensors(Arena *arena, Fusion *fusion, Fusion *const *parts, int count, const bool *needed)
{
    int most = 0, found = 0;
    for (int p = 0; p < count; p++)
        most += parts[p]->input_count;
    Tensor **candidates = NEW_ARRAY(arena, Tensor *, most + 1);
    for (int p = 0; p < count; p++)
        for (int i = 0; i < parts[p]->input_count; i++)
            found = add_tensor(candidates, found, parts[p]->inputs[i]);
    fusion_choose_inputs(arena, fusion, candidates, found);
    fusion->outputs = NEW_ARRAY(arena, Tensor *, fusion->op_count);
    fusion->output_count = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        FusedOp *op = &fusion->ops[i];
        op->stored = op->stored && needed[op->out->id];
        if (op->stored)
            fusion->output_count = add_tensor(fusion->outputs, fusion->output_count, op->out);
    }
}

/* Two parts of a concatenation are one tensor, which a launch writes once. */
static bool writes_twice(const Fusion *fusion)
{
    for (int i = 1; i < fusion->output_count; i++)
        if (fusion->outputs[i]->id == fusion->outputs[i - 1]->id)
            return true;
    return false;
}

Fusion *fusion_join(Arena *arena, Fusion *const *parts, int count, const bool *needed)
{
    int ops = 0;
    for (int p = 0; p < count; p++) {
        if (!fusions_may_join(parts[0], parts[p]))
            return NULL;
        for (int before = 0; before < p; before++)
            if (waits_for(parts[p], parts[before]))
                return NULL;
        ops += parts[p]->op_count;
    }
    Fusion *fusion = arena_copy(arena, parts[0], sizeof *fusion);
    fusion->ops = NEW_ARRAY(arena, FusedOp, ops);
    fusion->op_count = 0;
    fusion->joined = count;
    Joining joining = {.arena = arena, .fusion = fusion, .legal = true};
    for (int p = 0; p < count; p++)
        fusion->ops[fusion->op_count++] = parts[p]->ops[0];
    for (int p = 0; p < count; p++)
        join_epilogue(&joining, parts[p], p);
    if (!joining.legal)
        return NULL;
    list_tensors(arena, fusion, parts, count, needed);
    if (writes_twice(fusion))
        return NULL;
    fusion_verify(fusion, "fusion_join");
    return fusion;
}
