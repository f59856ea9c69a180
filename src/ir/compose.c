#include "ir/compose.h"

#include <string.h>

#include "base/checked.h"
#include "ir/kept_dims.h"
#include "ir/read_shape.h"
#include "ir/reduction_order.h"
#include "ir/result_order.h"

typedef struct Composer {
    Arena *arena;
    Program *program;
    const uint32_t *kept;   // by tensor id: dimensions that nobody needs; NULL: there are none
} Composer;

// ---- indices ----

static void extents_of(const TensorOp *op, int64_t *extents)
{
    for (int a = 0; a < op->axis_count; a++)
        extents[a] = op->axes[a].extent;
}

/* The integer as an affine form over the op's axes; false: it is none. */
static bool affine_of(const TensorOp *op, const Expr *expr, Affine *form);

static bool divided(const TensorOp *op, const Expr *expr, Affine *form)
{
    int64_t extents[MAX_AXES];
    Affine dividend, quotient, rest;
    const Expr *by = expr->apply.operands[1];
    extents_of(op, extents);
    if (by->kind != EXPR_CONST || !affine_of(op, expr->apply.operands[0], &dividend) ||
        !affine_divide(&dividend, by->constant.integer, extents, op->axis_count, &quotient, &rest))
        return false;
    *form = expr->apply.op == OP_DIV ? quotient : rest;
    return true;
}

/* scale * left + right; false: past 64 bits. */
static bool scaled_sum(const Affine *left, int64_t scale, const Affine *right, Affine *sum)
{
    int64_t part;
    bool fits =
        checked_mul(left->constant, scale, &part) && checked_add(part, right->constant, &sum->constant);
    for (int a = 0; a < MAX_AXES && fits; a++)
        fits = checked_mul(left->coef[a], scale, &part) && checked_add(part, right->coef[a], &sum->coef[a]);
    return fits;
}

static bool combined(const TensorOp *op, const Expr *expr, Affine *form)
{
    Affine left, right, none = affine_constant(0);
    if (!affine_of(op, expr->apply.operands[0], &left) || !affine_of(op, expr->apply.operands[1], &right))
        return false;
    if (expr->apply.op == OP_ADD)
        return scaled_sum(&left, 1, &right, form);
    return affine_is_constant(&right) && scaled_sum(&left, right.constant, &none, form);
}

/* An axis of one point adds nothing, whatever its factor, which no range has checked. */
static Affine without_unit_axes(const TensorOp *op, const Affine *index)
{
    Affine form = *index;
    for (int a = 0; a < op->axis_count; a++)
        if (op->axes[a].extent == 1)
            form.coef[a] = 0;
    return form;
}

static bool affine_of(const TensorOp *op, const Expr *expr, Affine *form)
{
    *form = affine_constant(0);
    switch (expr->kind) {
    case EXPR_CONST: form->constant = expr->constant.integer; return true;
    case EXPR_INDEX: *form = without_unit_axes(op, &expr->index); return true;
    case EXPR_CAST:
        return (expr->type == DTYPE_I32 || expr->type == DTYPE_I64) && affine_of(op, expr->cast.body, form);
    case EXPR_APPLY:
        if (expr->apply.op == OP_DIV || expr->apply.op == OP_MOD)
            return divided(op, expr, form);
        return (expr->apply.op == OP_ADD || expr->apply.op == OP_MUL) && combined(op, expr, form);
    default: return false;
    }
}

/* The flat offset as indices of the tensor's own dimensions; false: it is none of them alone. 12*i + j, j
   below 12, of [5, 12] is [i, j]. */
static bool split_offset(const TensorOp *op, const Affine *offset, const Tensor *tensor, Dim *dims)
{
    int64_t extents[MAX_AXES], stride = tensor_elements(tensor);
    Affine rest = *offset;
    extents_of(op, extents);
    for (int d = 0; d < tensor->rank; d++) {
        Affine quotient, left;
        stride /= tensor->shape[d];
        if (!affine_divide(&rest, stride, extents, op->axis_count, &quotient, &left))
            return false;
        dims[d] = (Dim){quotient, tensor->shape[d]};
        rest = left;
    }
    return true;
}

// ---- reads ----

typedef struct ComposedReads {
    Composer *composer;
    const TensorOp *op;
} ComposedReads;

/* The dimension of the access that steps by so many elements and is more than one long. */
static int dimension_of(const Access *access, int64_t stride)
{
    int64_t step = 1;
    for (int d = access->rank - 1; d >= 0; d--) {
        if (step == stride && access->dims[d].size > 1)
            return d;
        step *= access->dims[d].size;
    }
    return -1;
}

/* Places that are affine join the indices; of a fetch that has no other an access is left. */
static void settle_fetch(const ComposedReads *reading, Expr *expr)
{
    Fetch *fetch = &expr->fetch;
    Dim *dims = NEW_ARRAY(reading->composer->arena, Dim, fetch->access.rank);
    int left = 0;
    for (int d = 0; d < fetch->access.rank; d++)
        dims[d] = fetch->access.dims[d];
    for (int i = 0; i < fetch->count; i++) {
        Affine form, sum;
        int d = dimension_of(&fetch->access, fetch->places[i].stride);
        if (d < 0 || !affine_of(reading->op, fetch->places[i].value, &form) ||
            !scaled_sum(&form, 1, &dims[d].index, &sum)) {
            fetch->places[left++] = fetch->places[i];
            continue;
        }
        dims[d].index = sum;
    }
    fetch->access.dims = dims;
    fetch->count = left;
    if (left)
        return;
    Access access = fetch->access;
    expr->kind = EXPR_ACCESS;
    expr->access = access;
}

static void settle(const ComposedReads *reading, Expr *expr, bool guarded);

static void settle_read(const ComposedReads *reading, Expr *expr, bool guarded)
{
    const TensorOp *op = reading->op;
    Dim dims[MAX_AXES];
    Affine offset;
    if (expr->kind == EXPR_FETCH) {
        for (int i = 0; i < expr->fetch.count; i++)
            settle(reading, expr->fetch.places[i].value, guarded);
        settle_fetch(reading, expr);
    }
    if (expr->kind != EXPR_ACCESS || guarded || access_is_own(&expr->access))
        return;
    Tensor *tensor = expr->access.tensor;
    offset = access_offset(&expr->access);
    if (!split_offset(op, &offset, tensor, dims))
        return;
    Dim *own = NEW_ARRAY(reading->composer->arena, Dim, tensor->rank);
    for (int d = 0; d < tensor->rank; d++)
        own[d] = dims[d];
    expr->access.rank = tensor->rank;
    expr->access.dims = own;
}

/* Below a guard an index may be anything: the box of its axes does not bound it. */
static void settle(const ComposedReads *reading, Expr *expr, bool guarded)
{
    switch (expr->kind) {
    case EXPR_ACCESS:
    case EXPR_FETCH: settle_read(reading, expr, guarded); break;
    case EXPR_GUARD: settle(reading, expr->guard.body, true); break;
    case EXPR_CAST: settle(reading, expr->cast.body, guarded); break;
    case EXPR_APPLY:
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            settle(reading, expr->apply.operands[i], guarded);
        break;
    case EXPR_CONST:
    case EXPR_INDEX:
    case EXPR_VALUE: break;
    }
}

// ---- where axes are cut ----

/* The inner extent at which each axis is split; 0: it is not. */
typedef struct Cuts {
    const TensorOp *op;
    int64_t inner[MAX_AXES];
} Cuts;

/* `form` is divided by `by`, along one of the first axes: of 2*i and 8 four i's lie in one quotient. */
static void cut_at(Cuts *cuts, const Affine *form, int64_t by, int axes)
{
    for (int a = 0; a < axes; a++) {
        int64_t coef = form->coef[a], extent = cuts->op->axes[a].extent;
        if (coef <= 0 || by % coef)
            continue;
        int64_t inner = by / coef;
        if (inner > 1 && inner < extent && extent % inner == 0 && inner > cuts->inner[a])
            cuts->inner[a] = inner;
    }
}

static void cut_visit(Expr *expr, void *context)
{
    Cuts *cuts = context;
    bool divides = expr->kind == EXPR_APPLY && (expr->apply.op == OP_DIV || expr->apply.op == OP_MOD);
    Affine form;
    if (divides && expr->apply.operands[1]->kind == EXPR_CONST &&
        affine_of(cuts->op, expr->apply.operands[0], &form))
        cut_at(cuts, &form, expr->apply.operands[1]->constant.integer, cuts->op->axis_count);
}

/* Reads a definition in other dimensions than it is made in. */
static bool is_view_of_made(const Expr *expr)
{
    return expr->kind == EXPR_ACCESS && expr->access.tensor->role != ROLE_INPUT &&
           !access_is_own(&expr->access);
}

static void find_cuts(Cuts *cuts, Expr *expr, bool guarded)
{
    switch (expr->kind) {
    case EXPR_ACCESS:
        if (!guarded && is_view_of_made(expr)) {
            const Tensor *tensor = expr->access.tensor;
            Affine offset = access_offset(&expr->access);
            int64_t stride = tensor_elements(tensor);
            for (int d = 0; d < tensor->rank; d++)
                cut_at(cuts, &offset, stride /= tensor->shape[d], cuts->op->spatial_count);
        }
        break;
    case EXPR_FETCH:
        for (int i = 0; i < expr->fetch.count; i++)
            expr_visit(expr->fetch.places[i].value, cut_visit, cuts);
        break;
    case EXPR_GUARD: find_cuts(cuts, expr->guard.body, true); break;
    case EXPR_CAST: find_cuts(cuts, expr->cast.body, guarded); break;
    case EXPR_APPLY:
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            find_cuts(cuts, expr->apply.operands[i], guarded);
        break;
    case EXPR_CONST:
    case EXPR_INDEX:
    case EXPR_VALUE: break;
    }
}

/* The definition with the axis as two: a = inner * a0 + a1. */
static void cut_axis(Composer *composer, TensorOp *op, int axis, int64_t inner)
{
    Affine forms[MAX_AXES];
    const Axis whole = op->axes[axis];
    for (int a = 0; a < op->axis_count; a++)
        forms[a] = affine_axis(a > axis ? a + 1 : a);
    forms[axis].coef[axis] = inner;
    forms[axis].coef[axis + 1] = 1;
    op->body = expr_substitute(composer->arena, op->body, forms, op->axis_count);
    memmove(&op->axes[axis + 1], &op->axes[axis], sizeof(Axis) * (size_t)(op->axis_count - axis));
    op->axes[axis] =
        (Axis){arena_printf(composer->arena, "%s.0", whole.name), whole.extent / inner, whole.reduction};
    op->axes[axis + 1] = (Axis){arena_printf(composer->arena, "%s.1", whole.name), inner, whole.reduction};
    op->axis_count++;
    op->spatial_count += axis < op->spatial_count;
}

/* What a family cannot take as accesses: fetches' places, views of definitions. */
typedef struct Left {
    int fetches, views;
} Left;

static void left_visit(Expr *expr, void *context)
{
    Left *left = context;
    left->fetches += expr->kind == EXPR_FETCH ? expr->fetch.count : 0;
    left->views += is_view_of_made(expr);
}

static Left left_of(const TensorOp *op)
{
    Left left = {0};
    expr_visit(op->body, left_visit, &left);
    return left;
}

/* Fewer fetches first: a product takes a view whose elements are contiguous (d of k[h, 32*d.0 + d.1]), and no
   fetch. */
static bool is_less(Left a, Left b)
{
    return a.fetches != b.fetches ? a.fetches < b.fetches : a.views < b.views;
}

static void settle_op(Composer *composer, TensorOp *op)
{
    settle(&(ComposedReads){composer, op}, op->body, false);
}

/* Each axis that something is divided along, once; false: there is none. */
static bool cut_all(Composer *composer, TensorOp *op)
{
    Cuts cuts = {.op = op};
    find_cuts(&cuts, op->body, false);
    bool any = false;
    for (int a = op->axis_count - 1; a >= 0; a--)
        if (cuts.inner[a] && op->axis_count < MAX_AXES) {
            cut_axis(composer, op, a, cuts.inner[a]);
            any = true;
        }
    return any;
}

/* The definition without the axes of one point that its result has dimensions for. */
static void drop_axes(Composer *composer, TensorOp *op, uint32_t dims)
{
    Affine forms[MAX_AXES];
    int count = 0, spatial_count = op->spatial_count;
    for (int a = 0; a < op->axis_count; a++) {
        bool dropped = a < spatial_count && dims >> a & 1;
        forms[a] = dropped ? affine_constant(0) : affine_axis(count);
        op->axes[count] = op->axes[a];
        count += !dropped;
        op->spatial_count -= dropped;
    }
    op->body = expr_substitute(composer->arena, op->body, forms, op->axis_count);
    op->axis_count = count;
}

static uint32_t unit_axes(const TensorOp *op)
{
    uint32_t axes = 0;
    for (int a = 0; a < op->spatial_count; a++)
        axes |= (uint32_t)(op->axes[a].extent == 1) << a;
    return axes;
}

/* Of i/4 % 3 the axis is cut at 4, what is left of it at 3. Cuts that gain nothing are undone. Of one point
   in [b, h, 1, j] readers that are cut alike would not know whose dimension it is. */
static void cut(Composer *composer, TensorOp *op)
{
    TensorOp attempt = *op;
    attempt.body = expr_copy(composer->arena, op->body);
    while (cut_all(composer, &attempt))
        settle_op(composer, &attempt);
    if (!is_less(left_of(&attempt), left_of(op)))
        return;
    *op = attempt;
    drop_axes(composer, op, unit_axes(op));
}

// ---- tensors in the shape of their axes ----

/* The user still sees the tensor in the shape that the program has. */
static void reshape(Composer *composer, const TensorOp *op)
{
    Tensor *tensor = op->out, *seen;
    bool own = op->spatial_count == tensor->rank;   // where one is dropped and one is cut, there are as many
    for (int d = 0; d < tensor->rank && own; d++)
        own = tensor->shape[d] == op->axes[d].extent;
    if (own)
        return;
    seen = NEW(composer->arena, Tensor);
    *seen = *tensor;
    if (tensor->rank <= MAX_RANK)
        tensor_add_view(composer->arena, tensor, seen);
    if (!tensor->shown)
        tensor->shown = seen;
    tensor->rank = op->spatial_count;
    for (int d = 0; d < tensor->rank; d++)
        tensor->shape[d] = op->axes[d].extent;
}

// ---- what a sum fetches again and again ----

/* Of a program that is composed: tensors by id. */
static void rebind_visit(Expr *expr, void *context)
{
    Program *program = context;
    if (expr->kind == EXPR_ACCESS)
        expr->access.tensor = program->tensors[expr->access.tensor->id];
    if (expr->kind == EXPR_FETCH)
        expr->fetch.access.tensor = program->tensors[expr->fetch.access.tensor->id];
}

/* A fetch, or one inside `pad`: the value of an element, or a constant. */
static const Tensor *fetched(const Expr *expr)
{
    switch (expr->kind) {
    case EXPR_FETCH: return expr->fetch.access.tensor;
    case EXPR_GUARD: return fetched(expr->guard.body);
    case EXPR_APPLY:
        return expr->apply.op == OP_SELECT && expr->apply.operands[2]->kind == EXPR_CONST
                   ? fetched(expr->apply.operands[1])
                   : NULL;
    default: return NULL;
    }
}

static bool is_repeated(const TensorOp *op, uint32_t axes)
{
    for (int a = 0; a < op->axis_count; a++)
        if (!(axes >> a & 1) && op->axes[a].extent > 1)
            return true;
    return false;
}

static TensorOp *definition_of(Composer *composer, const TensorOp *op, Expr *value, const Tensor *source)
{
    Program *program = composer->program;
    uint32_t axes = expr_axes(value);
    TensorOp *made = NEW(composer->arena, TensorOp);
    Tensor *out = NEW(composer->arena, Tensor);
    *out = (Tensor){.name = arena_printf(composer->arena, "%s.%s", op->out->name, source->name),
                    .id = program->tensor_count,
                    .dtype = source->dtype,
                    .role = ROLE_TEMPORARY,
                    .loc = op->loc};
    Affine forms[MAX_AXES];
    for (int a = 0; a < op->axis_count; a++) {
        forms[a] = affine_constant(0);
        if (!(axes >> a & 1))
            continue;
        forms[a] = affine_axis(made->axis_count);
        made->axes[made->axis_count] = op->axes[a];
        made->axes[made->axis_count++].reduction = false;
        out->shape[out->rank++] = op->axes[a].extent;
    }
    made->out = out;
    made->spatial_count = made->axis_count;
    made->body = expr_substitute(composer->arena, value, forms, op->axis_count);
    made->loc = op->loc;
    program->tensors[program->tensor_count++] = out;
    program->ops[program->op_count++] = made;
    return made;
}

static void replace(Composer *composer, const TensorOp *op, Expr *expr, const Tensor *source)
{
    uint32_t axes = expr_axes(expr);
    TensorOp *made = definition_of(composer, op, expr, source);
    Affine indices[MAX_AXES];
    for (int a = 0, d = 0; a < op->axis_count; a++)
        if (axes >> a & 1)
            indices[d++] = affine_axis(a);
    DType type = expr->type;
    Loc loc = expr->loc;
    *expr = (Expr){.kind = EXPR_ACCESS, .type = type, .loc = loc};
    expr->access = access_new(composer->arena, made->out, indices);
}

static void fetch_once(Composer *composer, const TensorOp *op, Expr *expr)
{
    const Tensor *source = fetched(expr);
    if (source) {
        if (is_repeated(op, expr_axes(expr)) && expr->type == dtype_info[source->dtype].compute)
            replace(composer, op, expr, source);
        return;
    }
    if (expr->kind == EXPR_CAST)
        fetch_once(composer, op, expr->cast.body);
    if (expr->kind == EXPR_GUARD)
        fetch_once(composer, op, expr->guard.body);
    for (int i = 0; expr->kind == EXPR_APPLY && i < op_info[expr->apply.op].operands; i++)
        fetch_once(composer, op, expr->apply.operands[i]);
}

// ---- the program ----

static void count_fetch(Expr *expr, void *context) { *(int *)context += expr->kind == EXPR_FETCH; }

static bool is_plain(const Program *program)
{
    int fetches = 0;
    for (int i = 0; i < program->op_count; i++)
        expr_visit(program->ops[i]->body, count_fetch, &fetches);
    for (int i = 0; i < program->tensor_count; i++)
        fetches += program->tensors[i]->views != NULL;
    return fetches == 0;
}

static Program *program_copy(Arena *arena, const Program *program, int more)
{
    Program *copy = NEW(arena, Program);
    *copy = *program;
    copy->tensors = NEW_ARRAY(arena, Tensor *, program->tensor_count + more);
    copy->ops = NEW_ARRAY(arena, TensorOp *, program->op_count + more);
    copy->inputs = NEW_ARRAY(arena, Tensor *, program->input_count);
    copy->outputs = NEW_ARRAY(arena, Tensor *, program->output_count);
    copy->op_count = 0;
    for (int i = 0; i < program->tensor_count; i++) {
        copy->tensors[i] = NEW(arena, Tensor);
        *copy->tensors[i] = *program->tensors[i];
    }
    for (int i = 0; i < program->input_count; i++)
        copy->inputs[i] = copy->tensors[program->inputs[i]->id];
    for (int i = 0; i < program->output_count; i++)
        copy->outputs[i] = copy->tensors[program->outputs[i]->id];
    return copy;
}

static TensorOp *copy_op(Arena *arena, Program *copy, const TensorOp *op)
{
    TensorOp *copied = NEW(arena, TensorOp);
    *copied = *op;
    copied->out = copy->tensors[op->out->id];
    copied->body = expr_copy(arena, op->body);
    expr_visit(copied->body, rebind_visit, copy);
    return copied;
}

static void compose_op(Composer *composer, TensorOp *op)
{
    if (composer->kept && composer->kept[op->out->id])
        drop_axes(composer, op, composer->kept[op->out->id]);
    settle_op(composer, op);
    cut(composer, op);
    reshape(composer, op);
    if (op->reduce != REDUCE_NONE)
        fetch_once(composer, op, op->body);
    composer->program->ops[composer->program->op_count++] = op;
}

Program *compose(Arena *arena, const Program *program)
{
    int fetches = 0;
    if (is_plain(program) && !kept_dims_find(arena, program) && !results_read_otherwise(arena, program))
        return (Program *)reductions_in_memory_order(arena, program);
    for (int i = 0; i < program->op_count; i++)
        expr_visit(program->ops[i]->body, count_fetch, &fetches);
    Composer composer = {.arena = arena, .program = program_copy(arena, program, fetches)};
    Program *copy = composer.program, own = *copy;
    own.ops = NEW_ARRAY(arena, TensorOp *, program->op_count);
    for (own.op_count = 0; own.op_count < program->op_count; own.op_count++)
        own.ops[own.op_count] = copy_op(arena, copy, program->ops[own.op_count]);
    products_in_read_shape(arena, &own);
    composer.kept = kept_dims_find(arena, &own);
    for (int i = 0; i < own.op_count; i++)
        compose_op(&composer, own.ops[i]);
    results_in_read_order(arena, copy);
    return (Program *)reductions_in_memory_order(arena, copy);
}
