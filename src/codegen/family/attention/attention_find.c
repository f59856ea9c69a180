#include <math.h>

#include "codegen/cuda/expr.h"
#include "codegen/family/attention/attention.h"
#include "ir/stream.h"

enum { MAX_LINE = 256 };   // elements of a row

// ---- ops ----

/* An element of k or v, of a column that is there. */
static const Expr *without_guard(const Expr *expr)
{
    return expr->kind == EXPR_GUARD ? expr->guard.body : expr;
}

static bool is_product(const Expr *expr)
{
    return expr_is(expr, OP_MUL) && without_guard(expr->apply.operands[1])->kind == EXPR_ACCESS;
}

/* Those that every chain has, in the order in which stream_build.c makes them. */
static bool find_ops(const Fusion *fusion, Attention *attention)
{
    attention->maximum = attention->exponential = attention->sum = -1;
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (op->reduce == REDUCE_MAX && attention->maximum < 0)
            attention->maximum = i;
        else if (attention->maximum >= 0 && attention->exponential < 0)
            attention->exponential = i;
        else if (op->reduce == REDUCE_SUM && attention->exponential >= 0 && attention->sum < 0 &&
                 is_product(op->body))
            attention->sum = i;
    }
    if (attention->sum < 0)
        return false;
    const FusedOp *first = &fusion->ops[0], *maximum = &fusion->ops[attention->maximum],
                  *sum = &fusion->ops[attention->sum];
    if (first->reduce != REDUCE_SUM || !is_product(first->body) || maximum->body->kind != EXPR_VALUE ||
        first->body->apply.operands[0]->kind != EXPR_ACCESS ||
        sum->body->apply.operands[0]->kind != EXPR_VALUE)
        return false;
    attention->score = maximum->body->value;
    attention->share = sum->body->apply.operands[0]->value;
    attention->q = &first->body->apply.operands[0]->access;
    attention->k = &without_guard(first->body->apply.operands[1])->access;
    attention->v = &without_guard(sum->body->apply.operands[1])->access;
    attention->rows = maximum->spatial;
    attention->scores = first->spatial;
    attention->results = sum->spatial;
    return true;
}

// ---- axes ----

/* Those along which k and v are the same. */
static uint32_t shared_axes(const Attention *attention)
{
    return attention->rows & ~(access_axes(attention->k) | access_axes(attention->v));
}

/* Rows of one q: the most of them lie along one axis. */
static int row_axis(const Fusion *fusion, const Attention *attention)
{
    uint32_t shared = shared_axes(attention);
    int longest = -1;
    for (int a = 0; a < fusion->spatial_count; a++)
        if (shared >> a & 1 && (longest < 0 || fusion->axes[a].extent > fusion->axes[longest].extent))
            longest = a;
    return longest;
}

/* Bytes of what is read along the columns and is the same along the axis. */
static double shared_bytes(const Fusion *fusion, uint32_t column, int axis)
{
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    double bytes = 0;
    for (int i = 0; i < count; i++) {
        uint32_t axes = access_axes(found[i].access);
        if (axes & column && !(axes >> axis & 1))
            bytes += (double)tensor_bytes(found[i].access->tensor);
    }
    return bytes;
}

/* What blocks side by side read of k, v and biases is the same, where it can be: those axes come last along which
   most of it is. */
static void order_batch(const Fusion *fusion, uint32_t column, AxisGroup *batch)
{
    for (int i = 1; i < batch->count; i++) {
        int axis = batch->axes[i], at = i;
        double bytes = shared_bytes(fusion, column, axis);
        for (; at > 0 && shared_bytes(fusion, column, batch->axes[at - 1]) > bytes; at--)
            batch->axes[at] = batch->axes[at - 1];
        batch->axes[at] = axis;
    }
}

/* `rows`: axes of rows; of these `outer` is the outermost, -1: it is the first of them. */
static void find_groups(const Fusion *fusion, Attention *attention, uint32_t rows, int outer)
{
    uint32_t column = fusion->ops[attention->maximum].reduced, depth = fusion->ops[0].reduced;
    for (int g = 0; g < ATTENTION_GROUPS; g++)
        attention->group[g] = (AxisGroup){.extent = 1};
    if (outer >= 0)
        axis_group_add(&attention->group[ATTENTION_ROW], fusion, outer);
    for (int a = 0; a < fusion->axis_count; a++) {
        int group = rows >> a & 1              ? ATTENTION_ROW
                    : attention->rows >> a & 1 ? ATTENTION_BATCH
                    : column >> a & 1          ? ATTENTION_COLUMN
                    : depth >> a & 1           ? ATTENTION_DEPTH
                                               : ATTENTION_WIDTH;
        if (a != outer)
            axis_group_add(&attention->group[group], fusion, a);
    }
    order_batch(fusion, column, &attention->group[ATTENTION_BATCH]);
}

/* All axes of rows together, heads of a group and their positions: k and v are then read once for all of them.
   The one that says where columns begin and end comes first, so that among neighbours these only grow or only
   fall; of two such axes rows stay those of the longest. */
static void pack_rows(const Fusion *fusion, Attention *attention)
{
    uint32_t shared = shared_axes(attention), limiting = 0;
    for (int i = 0; i < attention->first_count; i++)
        limiting |= affine_axes(&attention->first[i]) & shared;
    for (int i = 0; i < attention->end_count; i++)
        limiting |= affine_axes(&attention->end[i]) & shared;
    int outer = -1;
    for (int a = 0; a < fusion->spatial_count; a++)
        outer = limiting >> a & 1 ? a : outer;
    if ((limiting & (limiting - 1)) == 0)
        find_groups(fusion, attention, shared, outer);
}

/* Rows, which the group's axis is, are whole pieces of so many elements, or of half, …; 0: they are not
   contiguous. */
static int piece_of(const Fusion *fusion, const Access *access, const AxisGroup *group, int piece)
{
    Affine offset = access_offset(access);
    int axis = axis_group_innermost(group);
    if (!piece || group->count != 1 || group->extent > MAX_LINE || offset.coef[axis] != 1)
        return 0;
    int64_t multiples = group->extent | offset.constant;
    for (int a = 0; a < fusion->axis_count; a++)
        multiples |= a == axis ? 0 : offset.coef[a];
    while (multiples % piece)
        piece /= 2;
    return piece;
}

static uint32_t group_mask(const Attention *attention, int group)
{
    return axis_group_mask(&attention->group[group]);
}

static bool factors_fit(const Attention *attention)
{
    uint32_t batch = group_mask(attention, ATTENTION_BATCH), column = group_mask(attention, ATTENTION_COLUMN),
             depth = group_mask(attention, ATTENTION_DEPTH), width = group_mask(attention, ATTENTION_WIDTH);
    return attention->group[ATTENTION_COLUMN].count == 1 &&
           !(access_axes(attention->q) & ~(attention->rows | depth)) &&
           !(access_axes(attention->k) & ~(batch | column | depth)) &&
           !(access_axes(attention->v) & ~(batch | column | width)) && attention->piece;
}

/* What is stored belongs to rows, or to results. */
static bool outputs_fit(const Fusion *fusion, const Attention *attention)
{
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (op->stored && op->spatial != attention->rows && op->spatial != attention->results)
            return false;
        if (i > attention->sum && op->reduce != REDUCE_NONE)
            return false;
    }
    return count_bit_outputs(fusion) == 0;
}

// ---- which columns count ----

/* An integer made of positions alone. */
static bool affine_of(const Expr *expr, Affine *form)
{
    if (dtype_info[expr->type].is_real || expr->type == DTYPE_B1)
        return false;
    if (expr->kind == EXPR_INDEX || expr->kind == EXPR_CONST) {
        *form = expr->kind == EXPR_INDEX ? expr->index : affine_constant(expr->constant.integer);
        return true;
    }
    Affine other;
    bool adds = expr_is(expr, OP_ADD) || expr_is(expr, OP_SUB);
    if (!adds || !affine_of(expr->apply.operands[0], form) || !affine_of(expr->apply.operands[1], &other))
        return false;
    int64_t sign = expr->apply.op == OP_ADD ? 1 : -1;
    for (int a = 0; a < MAX_AXES; a++)
        form->coef[a] += sign * other.coef[a];
    form->constant += sign * other.constant;
    return true;
}

/* Of `at least 0`: 0 <= rest - column ends before rest + 1, 0 <= column + rest begins at -rest. */
static bool add_limit(const Fusion *fusion, Attention *attention, Affine form)
{
    int column = axis_group_innermost(&attention->group[ATTENTION_COLUMN]);
    int64_t step = form.coef[column];
    int *count = step < 0 ? &attention->end_count : &attention->first_count;
    if ((step != 1 && step != -1) || *count == MAX_LIMITS)
        return false;
    form.coef[column] = 0;
    for (int a = 0; a < fusion->axis_count && step > 0; a++)
        form.coef[a] = -form.coef[a];
    form.constant = step > 0 ? -form.constant : form.constant + 1;
    (step < 0 ? attention->end : attention->first)[(*count)++] = form;
    return true;
}

/* left - right - less, as far as both are positions. */
static bool add_difference(const Fusion *fusion, Attention *attention, const Expr *left, const Expr *right,
                           int less)
{
    Affine form, other;
    if (!affine_of(left, &form) || !affine_of(right, &other))
        return false;
    for (int a = 0; a < MAX_AXES; a++)
        form.coef[a] -= other.coef[a];
    form.constant -= other.constant + less;
    return add_limit(fusion, attention, form);
}

/* What the condition says of columns; false: it says more than that. */
static bool add_limits(const Fusion *fusion, Attention *attention, const Expr *condition)
{
    if (condition->kind != EXPR_APPLY)
        return false;
    const Expr *a = condition->apply.operands[0], *b = condition->apply.operands[1];
    bool first;
    switch (condition->apply.op) {
    case OP_AND: first = add_limits(fusion, attention, a); return add_limits(fusion, attention, b) && first;
    case OP_LE: return add_difference(fusion, attention, b, a, 0);
    case OP_LT: return add_difference(fusion, attention, b, a, 1);
    case OP_GE: return add_difference(fusion, attention, a, b, 0);
    case OP_GT: return add_difference(fusion, attention, a, b, 1);
    default: return false;
    }
}

static bool is_minus_infinity(const Expr *expr)
{
    return expr->kind == EXPR_CONST && isinf(expr->constant.real) && expr->constant.real < 0;
}

/* select(condition, x, -inf), whatever x is. Of x + select(condition, 0, -inf) a NaN in x is one in the row. */
static const Expr *masking_select(const Expr *expr)
{
    return expr_is(expr, OP_SELECT) && is_minus_infinity(expr->apply.operands[2]) ? expr : NULL;
}

/* Rows lie along one axis: the first column of several, and the last one, are those of the first row or the
   last one. */
static void find_limits(const Fusion *fusion, Attention *attention, const Expr *score)
{
    const Expr *select = masking_select(score->kind == EXPR_CAST ? score->cast.body : score);   // rounded, too
    bool all = select && add_limits(fusion, attention, select->apply.operands[0]);
    attention->masks = attention->first_count + attention->end_count > 0;
    attention->condition = all && attention->masks ? select->apply.operands[0] : NULL;
}

/* The guard ends the columns of a part: 0 <= index, which always holds, and index < size. */
static bool is_column_bound(const Fusion *fusion, Attention *attention, const Expr *expr)
{
    if (expr->kind != EXPR_GUARD || expr->guard.count != 1 || !is_minus_infinity(expr->guard.otherwise))
        return false;
    const Dim *bound = &expr->guard.bounds[0];
    Affine left = affine_constant(bound->size - 1);
    int64_t extents[MAX_AXES], low, high;
    for (int a = 0; a < fusion->axis_count; a++) {
        extents[a] = fusion->axes[a].extent;
        left.coef[a] -= bound->index.coef[a];
    }
    left.constant -= bound->index.constant;
    return affine_range(&bound->index, extents, fusion->axis_count, &low, &high) && low >= 0 &&
           add_limit(fusion, attention, left);
}

bool attention_reads_beside(const Fusion *fusion, const Attention *attention, const Access *besides)
{
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    for (int i = 0; i < count; i++) {
        uint32_t axes = access_axes(found[i].access);
        bool is_that = besides && found[i].access->tensor == besides->tensor && found[i].access->dims == besides->dims;
        if (!is_that && axes & group_mask(attention, ATTENTION_ROW) && axes & group_mask(attention, ATTENTION_COLUMN))
            return true;
    }
    return false;
}

/* Bits of columns that begin in one place of words. */
static bool are_words(const Attention *attention, const Affine *offset)
{
    enum { WORD = 32 };
    bool whole = offset->constant % WORD == 0 && attention->group[ATTENTION_COLUMN].extent % WORD == 0;
    for (int a = 0; a < MAX_AXES; a++)
        whole &= a == axis_group_innermost(&attention->group[ATTENTION_COLUMN]) || offset->coef[a] % WORD == 0;
    return whole;
}

/* The first such access, which is contiguous along the columns, and along those axes not the same. Under a guard it may lie
   beside its tensor. */
static const Access *find_beside(const Attention *attention, const Expr *expr, uint32_t along)
{
    const Access *found = NULL;
    if (expr->kind == EXPR_APPLY)
        for (int i = 0; i < op_info[expr->apply.op].operands && !found; i++)
            found = find_beside(attention, expr->apply.operands[i], along);
    else if (expr->kind == EXPR_CAST)
        found = find_beside(attention, expr->cast.body, along);
    else if (expr->kind == EXPR_ACCESS) {
        Affine offset = access_offset(&expr->access);
        DType type = expr->access.tensor->dtype;
        bool fits = (type == DTYPE_B1 ? are_words(attention, &offset) : dtype_info[type].compute == DTYPE_F32) &&
                    (affine_axes(&offset) & along) == along &&
                    axis_group_stride(&attention->group[ATTENTION_COLUMN], &offset) == 1;
        found = fits ? &expr->access : NULL;
    }
    return found;
}

const Expr *attention_quotient(const Fusion *fusion, const Attention *attention)
{
    const Expr *share = fusion->ops[attention->share].body;
    if (expr_is(share, OP_SELECT))
        share = share->apply.operands[expr_is_zero(share->apply.operands[1]) ? 2 : 1];
    if (!expr_is(share, OP_DIV))
        return NULL;
    const Expr *e = share->apply.operands[0], *z = share->apply.operands[1];
    bool found = e->kind == EXPR_VALUE && e->value == attention->exponential && z->kind == EXPR_VALUE &&
                 fusion->ops[z->value].reduce == REDUCE_SUM && fusion->ops[z->value].out->dtype == DTYPE_F32;
    return found ? share : NULL;
}

Expr *attention_share_beside(const Fusion *fusion, const Attention *attention)
{
    Expr *share = fusion->ops[attention->share].body;
    const Expr *quotient = attention_quotient(fusion, attention);
    return !quotient ? share : quotient == share ? NULL : share->apply.operands[0];
}

bool attention_is_longest_last(const Attention *attention)
{
    const AxisGroup *rows = &attention->group[ATTENTION_ROW];
    bool grows = rows->count && attention->end_count && !attention->first_count;
    for (int i = 0; i < attention->end_count && grows; i++)
        grows = attention->end[i].coef[rows->axes[0]] > 0;
    return grows;
}

// ---- what all scores are multiplied by ----

static bool is_positive(const Expr *expr, double *value)
{
    return stream_number(expr, value) && *value > 0x1p-60 && *value < 0x1p60;
}

/* x of x * 0.125, of x / sqrt(64), and so on. */
static const Expr *without_scale(const Expr *expr, double *scale)
{
    for (;;) {
        bool times = expr_is(expr, OP_MUL);
        double by;
        if ((times || expr_is(expr, OP_DIV)) && is_positive(expr->apply.operands[1], &by)) {
            *scale = times ? *scale * (float)by : *scale / (float)by;
            expr = expr->apply.operands[0];
        } else if (times && is_positive(expr->apply.operands[0], &by)) {
            *scale *= (float)by;
            expr = expr->apply.operands[1];
        } else {
            return expr;
        }
    }
}

static void find_scale(const Fusion *fusion, Attention *attention)
{
    const FusedOp *op = &fusion->ops[attention->score];
    attention->scale = 1;
    attention->shown = NULL;
    if (op->reduce != REDUCE_NONE)
        return;
    attention->bound = is_column_bound(fusion, attention, op->body) ? op->body : NULL;
    const Expr *score = attention_score(fusion, attention);
    attention->shown = score;
    if (op->out->dtype == DTYPE_F32 && score->type == DTYPE_F32)
        attention->shown = masking_select(score) ? without_scale(score->apply.operands[1], &attention->scale)
                                                 : without_scale(score, &attention->scale);
    find_limits(fusion, attention, score);
}

const Expr *attention_score(const Fusion *fusion, const Attention *attention)
{
    return attention->bound ? attention->bound->guard.body : fusion->ops[attention->score].body;
}

/* What is read of k and v ends where the scores do. */
static bool guards_fit(const Fusion *fusion, const Attention *attention)
{
    const Expr *factors[] = {fusion->ops[0].body->apply.operands[1],
                             fusion->ops[attention->sum].body->apply.operands[1]};
    for (int i = 0; i < 2; i++) {
        const Guard *guard = &factors[i]->guard;
        if (factors[i]->kind == EXPR_GUARD &&
            (!attention->bound || guard->count != 1 ||
             guard->bounds[0].size != attention->bound->guard.bounds[0].size ||
             !affine_equal(&guard->bounds[0].index, &attention->bound->guard.bounds[0].index)))
            return false;
    }
    return true;
}

static const Attention *view_of(Arena *arena, const Fusion *fusion, const Target *target, bool packs)
{
    Attention *attention = NEW(arena, Attention);
    attention->scale = 1;
    if (!fusion->streams || !find_ops(fusion, attention))
        return NULL;
    int row = row_axis(fusion, attention);
    find_groups(fusion, attention, row < 0 ? 0 : 1u << row, -1);
    find_scale(fusion, attention);
    if (packs)
        pack_rows(fusion, attention);
    DType element = attention->q->tensor->dtype;
    attention->parts = fusion->ops[attention->share].out->dtype == element ? 1 : element == DTYPE_F16 ? 2 : 3;
    attention->piece = piece_of(fusion, attention->q, &attention->group[ATTENTION_DEPTH], ATTENTION_PIECE);
    attention->piece = piece_of(fusion, attention->k, &attention->group[ATTENTION_DEPTH], attention->piece);
    attention->piece = piece_of(fusion, attention->v, &attention->group[ATTENTION_WIDTH], attention->piece);
    attention->registers = target_atom(target, element, IN_REGISTERS);
    attention->shared = target_atom(target, element, IN_SHARED);
    for (int i = 1; i <= attention->score && !attention->beside; i++)
        attention->beside = find_beside(attention, fusion->ops[i].body, group_mask(attention, ATTENTION_ROW));
    for (int i = 1; i <= attention->score && !attention->beside; i++)
        attention->beside = find_beside(attention, fusion->ops[i].body, 0);
    bool fits = guards_fit(fusion, attention) && factors_fit(attention) && outputs_fit(fusion, attention);
    return fits ? attention : NULL;
}

const void *attention_view(Arena *arena, const Fusion *fusion, const Target *target)
{
    return view_of(arena, fusion, target, false);
}

const void *attention_packed_view(Arena *arena, const Fusion *fusion, const Target *target)
{
    return view_of(arena, fusion, target, true);
}
