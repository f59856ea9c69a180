#include "ir/tensor_op.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"

const DTypeInfo dtype_info[DTYPE_COUNT] = {
#define DTYPE(id, spelling, bits, cuda, compute, is_real, in_language) \
    [DTYPE_##id] = {spelling, bits, cuda, DTYPE_##compute, is_real, in_language},
#include "ir/dtypes.def"
#undef DTYPE
};

const OpInfo op_info[OP_COUNT] = {
#define OP(id, spelling, operands, class, real, cuda) [OP_##id] = {#id, spelling, operands, OP_CLASS_##class, cuda},
#include "ir/ops.def"
#undef OP
};

const char *const reduce_name[] = {"none", "sum", "max", "min", "prod"};

int64_t dtype_bytes(DType type, int64_t count)
{
    int bits = dtype_info[type].bits;
    return bits == 1 ? ceil_div(count, 32) * 4 : count * (bits / 8);
}

void tensor_add_view(Arena *arena, Tensor *tensor, const Tensor *seen)
{
    TensorView *view = NEW(arena, TensorView);
    view->rank = seen->rank;
    memcpy(view->shape, seen->shape, sizeof view->shape);
    view->next = tensor->views;
    tensor->views = view;
}

int64_t tensor_elements(const Tensor *tensor)
{
    int64_t count = 1;
    for (int d = 0; d < tensor->rank; d++)
        count = fitting_mul(count, tensor->shape[d]);
    return count;
}

int64_t tensor_bytes(const Tensor *tensor)
{
    return dtype_bytes(tensor->dtype, tensor_elements(tensor));
}

int64_t tensors_bytes(Tensor *const *tensors, int count)
{
    int64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += tensor_bytes(tensors[i]);
    return bytes;
}

int64_t program_bytes(const Program *program)
{
    return tensors_bytes(program->inputs, program->input_count) +
           tensors_bytes(program->outputs, program->output_count);
}

Affine affine_constant(int64_t value)
{
    return (Affine){.constant = value};
}

Affine affine_axis(int axis)
{
    Affine form = {.constant = 0};
    form.coef[axis] = 1;
    return form;
}

bool affine_is_constant(const Affine *form)
{
    for (int a = 0; a < MAX_AXES; a++)
        if (form->coef[a])
            return false;
    return true;
}

bool affine_equal(const Affine *left, const Affine *right) { return memcmp(left, right, sizeof *left) == 0; }

bool affine_allows_vector(const Affine *form, int axis, int64_t vector)
{
    if (form->coef[axis] != 1 || form->constant % vector)
        return false;
    for (int a = 0; a < MAX_AXES; a++)
        if (a != axis && form->coef[a] % vector)
            return false;
    return true;
}

int affine_single_axis(const Affine *form)
{
    int found = -1;
    for (int a = 0; a < MAX_AXES; a++)
        if (form->coef[a]) {
            if (form->coef[a] != 1 || found >= 0)
                return -1;
            found = a;
        }
    return form->constant == 0 ? found : -1;
}

bool affine_range(const Affine *form, const int64_t *extents, int axis_count, int64_t *low, int64_t *high)
{
    *low = *high = form->constant;
    for (int a = 0; a < axis_count; a++) {
        int64_t reach;
        if (!checked_mul(form->coef[a], extents[a] - 1, &reach))
            return false;
        int64_t *end = reach < 0 ? low : high;
        if (!checked_add(*end, reach, end))
            return false;
    }
    return true;
}

bool affine_divide(const Affine *form, int64_t by, const int64_t *extents, int axis_count, Affine *quotient,
                   Affine *rest)
{
    int64_t low, high;
    *quotient = affine_constant(floor_div(form->constant, by));
    *rest = affine_constant(form->constant - by * quotient->constant);
    for (int a = 0; a < axis_count; a++) {
        quotient->coef[a] = form->coef[a] / by;
        rest->coef[a] = form->coef[a] % by;
    }
    return affine_range(rest, extents, axis_count, &low, &high) && low >= 0 && high < by;
}

Affine affine_substitute(const Affine *form, const Affine *forms, int axis_count)
{
    Affine result = affine_constant(form->constant);
    for (int a = 0; a < axis_count; a++) {
        if (!form->coef[a])
            continue;
        result.constant = fitting_add(result.constant, fitting_mul(form->coef[a], forms[a].constant));
        for (int b = 0; b < MAX_AXES; b++)
            result.coef[b] = fitting_add(result.coef[b], fitting_mul(form->coef[a], forms[a].coef[b]));
    }
    return result;
}

Affine access_offset(const Access *access)
{
    Affine offset = affine_constant(0);
    int64_t stride = 1;
    for (int d = access->rank - 1; d >= 0; d--) {
        const Dim *dim = &access->dims[d];
        offset.constant = fitting_add(offset.constant, fitting_mul(stride, dim->index.constant));
        for (int a = 0; a < MAX_AXES; a++)
            if (dim->index.coef[a])
                offset.coef[a] = fitting_add(offset.coef[a], fitting_mul(stride, dim->index.coef[a]));
        stride = fitting_mul(stride, dim->size);
    }
    return offset;
}

Access access_new(Arena *arena, Tensor *tensor, const Affine *indices)
{
    Dim *dims = NEW_ARRAY(arena, Dim, tensor->rank);
    for (int d = 0; d < tensor->rank; d++)
        dims[d] = (Dim){indices[d], tensor->shape[d]};
    return (Access){tensor, tensor->rank, dims};
}

bool access_is_own(const Access *access)
{
    if (access->rank != access->tensor->rank)
        return false;
    for (int d = 0; d < access->rank; d++)
        if (access->dims[d].size != access->tensor->shape[d])
            return false;
    return true;
}

Expr *expr_value(Arena *arena, int op, const Tensor *out)
{
    Expr *value = NEW(arena, Expr);
    *value = (Expr){.kind = EXPR_VALUE, .type = dtype_info[out->dtype].compute, .value = op};
    return value;
}

bool expr_is_zero(const Expr *expr)
{
    return expr->kind == EXPR_CONST &&
           (dtype_info[expr->type].is_real ? expr->constant.real == 0 : expr->constant.integer == 0);
}

Expr *expr_constant(Arena *arena, DType type, double value)
{
    Expr *expr = NEW(arena, Expr);
    expr->kind = EXPR_CONST;
    expr->type = type;
    if (dtype_info[type].is_real)
        expr->constant.real = value;
    else
        expr->constant.integer = (int64_t)value;
    return expr;
}

Expr *expr_access(Arena *arena, DType compute_type, Access access)
{
    Expr *expr = NEW(arena, Expr);
    *expr = (Expr){.kind = EXPR_ACCESS, .type = compute_type, .access = access};
    return expr;
}

Expr *expr_guard(Arena *arena, Expr *body, const Dim *bounds, int count, Expr *otherwise)
{
    if (!count)
        return body;
    Expr *expr = NEW(arena, Expr);
    *expr = (Expr){.kind = EXPR_GUARD, .type = body->type, .loc = body->loc};
    expr->guard = (Guard){count, bounds, body, otherwise ? otherwise : expr_constant(arena, body->type, 0)};
    return expr;
}

Expr *expr_apply(Arena *arena, Op op, DType type, Expr *a, Expr *b, Expr *c)
{
    Expr *expr = NEW(arena, Expr);
    expr->kind = EXPR_APPLY;
    expr->type = type;
    expr->loc = a->loc;
    expr->apply.op = op;
    expr->apply.operands[0] = a;
    expr->apply.operands[1] = b;
    expr->apply.operands[2] = c;
    return expr;
}

Expr *expr_cast(Arena *arena, DType to, Expr *body)
{
    if (body->type == to)   // compute types round nothing
        return body;
    Expr *expr = NEW(arena, Expr);
    expr->kind = EXPR_CAST;
    expr->type = dtype_info[to].compute;
    expr->loc = body->loc;
    expr->cast.to = to;
    expr->cast.body = body;
    return expr;
}

Expr *expr_remake(Arena *arena, const Expr *expr, ExprMake *make, void *context)
{
    Expr *copy = NEW(arena, Expr);
    *copy = *expr;
    if (expr->kind == EXPR_GUARD)
        copy->guard.body = make(expr->guard.body, context);
    if (expr->kind == EXPR_CAST)
        copy->cast.body = make(expr->cast.body, context);
    for (int i = 0; expr->kind == EXPR_APPLY && i < op_info[expr->apply.op].operands; i++)
        copy->apply.operands[i] = make(expr->apply.operands[i], context);
    if (expr->kind == EXPR_FETCH)
        copy->fetch.places = NEW_ARRAY(arena, FetchPlace, expr->fetch.count);
    for (int i = 0; expr->kind == EXPR_FETCH && i < expr->fetch.count; i++)
        copy->fetch.places[i] =
            (FetchPlace){make(expr->fetch.places[i].value, context), expr->fetch.places[i].stride};
    return copy;
}

static Expr *copy_of(const Expr *expr, void *arena) { return expr_copy(arena, expr); }

Expr *expr_copy(Arena *arena, const Expr *expr) { return expr_remake(arena, expr, copy_of, arena); }

typedef struct Substitution {
    Arena *arena;
    const Affine *forms;
    int axis_count;
} Substitution;

static const Dim *dims_substitute(const Substitution *by, const Dim *dims, int count)
{
    Dim *result = NEW_ARRAY(by->arena, Dim, count);
    for (int d = 0; d < count; d++)
        result[d] = (Dim){affine_substitute(&dims[d].index, by->forms, by->axis_count), dims[d].size};
    return result;
}

static void substitute_visit(Expr *expr, void *context)
{
    const Substitution *by = context;
    if (expr->kind == EXPR_INDEX)
        expr->index = affine_substitute(&expr->index, by->forms, by->axis_count);
    else if (expr->kind == EXPR_ACCESS)
        expr->access.dims = dims_substitute(by, expr->access.dims, expr->access.rank);
    else if (expr->kind == EXPR_FETCH)
        expr->fetch.access.dims = dims_substitute(by, expr->fetch.access.dims, expr->fetch.access.rank);
    else if (expr->kind == EXPR_GUARD)
        expr->guard.bounds = dims_substitute(by, expr->guard.bounds, expr->guard.count);
}

Expr *expr_substitute(Arena *arena, const Expr *expr, const Affine *forms, int axis_count)
{
    Substitution by = {arena, forms, axis_count};
    Expr *copy = expr_copy(arena, expr);
    expr_visit(copy, substitute_visit, &by);
    return copy;
}

Expr *expr_child(const Expr *expr, int i)
{
    switch (expr->kind) {
    case EXPR_CONST:
    case EXPR_VALUE:
    case EXPR_INDEX:
    case EXPR_ACCESS: return NULL;
    case EXPR_FETCH: return i < expr->fetch.count ? expr->fetch.places[i].value : NULL;
    case EXPR_GUARD: return i ? NULL : expr->guard.body;
    case EXPR_APPLY: return i < op_info[expr->apply.op].operands ? expr->apply.operands[i] : NULL;
    case EXPR_CAST: return i ? NULL : expr->cast.body;
    }
    return NULL;
}

void expr_visit(Expr *expr, void (*visit)(Expr *, void *), void *context)
{
    visit(expr, context);
    Expr *child;
    for (int i = 0; (child = expr_child(expr, i)); i++)
        expr_visit(child, visit, context);
}

const Expr *expr_find(const Expr *expr, ExprTest *test, const void *context)
{
    const Expr *child, *found = test(expr, context) ? expr : NULL;
    for (int i = 0; !found && (child = expr_child(expr, i)); i++)
        found = expr_find(child, test, context);
    return found;
}

static bool is_value(const Expr *expr, const void *op) { return expr->kind == EXPR_VALUE && expr->value == *(const int *)op; }

bool expr_reads_value(const Expr *expr, int op) { return expr_find(expr, is_value, &op); }

static void add_bounds(Expr *expr, void *bounds) { *(int *)bounds += expr->kind == EXPR_GUARD ? expr->guard.count : 0; }

int expr_bounds(const Expr *expr)
{
    int bounds = 0;
    expr_visit((Expr *)expr, add_bounds, &bounds);
    return bounds;
}

static void count_node(Expr *expr, void *context)
{
    (void)expr;
    ++*(int *)context;
}

int expr_size(const Expr *expr)
{
    int size = 0;
    expr_visit((Expr *)expr, count_node, &size);
    return size;
}

static bool dims_equal(const Dim *left, const Dim *right, int count)
{
    for (int d = 0; d < count; d++)
        if (left[d].size != right[d].size || memcmp(&left[d].index, &right[d].index, sizeof(Affine)) != 0)
            return false;
    return true;
}

static bool access_equal(const Access *left, const Access *right)
{
    return left->tensor == right->tensor && left->rank == right->rank &&
           dims_equal(left->dims, right->dims, left->rank);
}

bool fetch_places_equal(const Fetch *left, const Fetch *right)
{
    if (!left || !right || left->count != right->count)
        return left == right;
    for (int i = 0; i < left->count; i++)
        if (left->places[i].stride != right->places[i].stride ||
            !expr_equal(left->places[i].value, right->places[i].value))
            return false;
    return true;
}

bool expr_equal(const Expr *left, const Expr *right)
{
    if (left->kind != right->kind || left->type != right->type)
        return false;
    switch (left->kind) {
    case EXPR_CONST:
        return dtype_info[left->type].is_real   // 0 is not -0
                   ? memcmp(&left->constant.real, &right->constant.real, sizeof(double)) == 0
                   : left->constant.integer == right->constant.integer;
    case EXPR_VALUE: return left->value == right->value;
    case EXPR_INDEX: return affine_equal(&left->index, &right->index);
    case EXPR_ACCESS: return access_equal(&left->access, &right->access);
    case EXPR_FETCH:
        return access_equal(&left->fetch.access, &right->fetch.access) &&
               fetch_places_equal(&left->fetch, &right->fetch);
    case EXPR_GUARD:
        return left->guard.count == right->guard.count &&
               dims_equal(left->guard.bounds, right->guard.bounds, left->guard.count) &&
               expr_equal(left->guard.body, right->guard.body) &&
               expr_equal(left->guard.otherwise, right->guard.otherwise);
    case EXPR_CAST: return left->cast.to == right->cast.to && expr_equal(left->cast.body, right->cast.body);
    case EXPR_APPLY:
        if (left->apply.op != right->apply.op)
            return false;
        for (int i = 0; i < op_info[left->apply.op].operands; i++)
            if (!expr_equal(left->apply.operands[i], right->apply.operands[i]))
                return false;
        return true;
    }
    return false;
}

uint32_t affine_axes(const Affine *form)
{
    uint32_t axes = 0;
    for (int a = 0; a < MAX_AXES; a++)
        if (form->coef[a])
            axes |= 1u << a;
    return axes;
}

static uint32_t dims_axes(const Dim *dims, int count)
{
    uint32_t axes = 0;
    for (int d = 0; d < count; d++)
        axes |= affine_axes(&dims[d].index);
    return axes;
}

uint32_t access_axes(const Access *access)
{
    return dims_axes(access->dims, access->rank);
}

static void axes_visit(Expr *expr, void *context)
{
    uint32_t *axes = context;
    if (expr->kind == EXPR_INDEX)
        *axes |= affine_axes(&expr->index);
    else if (expr->kind == EXPR_ACCESS)
        *axes |= access_axes(&expr->access);
    else if (expr->kind == EXPR_FETCH)
        *axes |= access_axes(&expr->fetch.access);
    else if (expr->kind == EXPR_GUARD)
        *axes |= dims_axes(expr->guard.bounds, expr->guard.count);
}

uint32_t expr_axes(const Expr *expr)
{
    uint32_t axes = 0;
    expr_visit((Expr *)expr, axes_visit, &axes);
    return axes;
}

Expr *reduce_identity(Arena *arena, Reduce reduce, DType type)
{
    Expr *identity = expr_constant(arena, type, reduce == REDUCE_PROD ? 1 : 0);
    if (reduce != REDUCE_MAX && reduce != REDUCE_MIN)
        return identity;
    bool max = reduce == REDUCE_MAX;
    if (dtype_info[type].is_real)
        identity->constant.real = max ? -INFINITY : INFINITY;
    else if (type == DTYPE_I64)
        identity->constant.integer = max ? INT64_MIN : INT64_MAX;
    else
        identity->constant.integer = max ? INT32_MIN : INT32_MAX;
    return identity;
}

uint32_t expr_axes_left(const Expr *expr, bool (*is_there)(const void *context, const Expr *read),
                        const void *context)
{
    uint32_t axes = 0;
    switch (expr->kind) {
    case EXPR_ACCESS: return is_there(context, expr) ? 0 : access_axes(&expr->access);
    case EXPR_FETCH:
        if (is_there(context, expr))
            return 0;
        for (int i = 0; i < expr->fetch.count; i++)
            axes |= expr_axes_left(expr->fetch.places[i].value, is_there, context);
        return axes | access_axes(&expr->fetch.access);
    case EXPR_GUARD:
        return dims_axes(expr->guard.bounds, expr->guard.count) |
               expr_axes_left(expr->guard.body, is_there, context);
    case EXPR_CAST: return expr_axes_left(expr->cast.body, is_there, context);
    case EXPR_APPLY:
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            axes |= expr_axes_left(expr->apply.operands[i], is_there, context);
        return axes;
    case EXPR_INDEX: return affine_axes(&expr->index);
    case EXPR_CONST:
    case EXPR_VALUE: break;
    }
    return axes;
}
