// Expressions, reductions and definitions.
#include "base/checked.h"
#include "front/lower_parts.h"

static AffineTerm lower_expr(Lower *lower, const AstExpr *expr);

// ---- tensors and ops ----

Tensor *tensor_new(Lower *lower, const char *name, DType dtype, Loc loc)
{
    Tensor *tensor = NEW(lower->arena, Tensor);
    *tensor = (Tensor){.name = name, .dtype = dtype, .role = ROLE_TEMPORARY, .loc = loc};
    lower->program->tensors[lower->program->tensor_count++] = tensor;
    return tensor;
}

void tensor_add_dimension(Tensor *tensor, int64_t size, Loc loc)
{
    int64_t elements;
    if (!checked_mul(tensor_elements(tensor), size, &elements) || elements > MAX_ELEMENTS)
        reject(loc, "'%s' has more than 2^40 elements", tensor->name);
    tensor->shape[tensor->rank++] = size;
}

/* The program's numbers of this type, as a kernel holds them. */
static void round_constant(Expr *expr, void *context)
{
    Number number = {.is_real = true, .real = expr->constant.real};
    Lower *lower = context;
    if (expr->kind != EXPR_CONST || expr->type != DTYPE_F32)
        return;
    if (!number_fits(number, DTYPE_F32))
        reject(expr->loc, "the constant %s is no value of f32: %s", number_text(lower->arena, number),
               values_text(lower->arena, DTYPE_F32));
    expr->constant.real = (float)expr->constant.real;
}

static void op_add(Lower *lower, TensorOp *op)
{
    int64_t points = 1;
    for (int a = 0; a < op->axis_count; a++)
        if (!checked_mul(points, op->axes[a].extent, &points) || points > MAX_POINTS)
            reject(op->loc, "the index variables run over more than 2^62 points");
    expr_visit(op->body, round_constant, lower);
    lower->program->ops[lower->program->op_count++] = op;
}

static void op_add_axis(const Lower *lower, TensorOp *op, int variable, bool reduction)
{
    const IndexScope *scope = &lower->scope;
    Axis axis = {scope->names[variable], scope->extents[variable], reduction};
    op->axes[op->axis_count++] = axis;
    op->spatial_count += !reduction;
}

// ---- nested reductions ----

static void mark(bool *used, const Affine *form)
{
    for (int a = 0; a < MAX_AXES; a++)
        used[a] |= form->coef[a] != 0;
}

/* Which index variables an expression's value depends on. */
static void mark_used(Expr *expr, void *context)
{
    bool *used = context;
    if (expr->kind == EXPR_INDEX)
        mark(used, &expr->index);
    for (int d = 0; expr->kind == EXPR_ACCESS && d < expr->access.rank; d++)
        mark(used, &expr->access.dims[d].index);
    for (int d = 0; expr->kind == EXPR_FETCH && d < expr->fetch.access.rank; d++)
        mark(used, &expr->fetch.access.dims[d].index);
    for (int d = 0; expr->kind == EXPR_GUARD && d < expr->guard.count; d++)
        mark(used, &expr->guard.bounds[d].index);
}

static Expr *read_tensor(Lower *lower, Tensor *tensor, const Affine *indices, Loc loc)
{
    Expr *expr = NEW(lower->arena, Expr);
    expr->kind = EXPR_ACCESS;
    expr->type = dtype_info[tensor->dtype].compute;
    expr->loc = loc;
    expr->access = access_new(lower->arena, tensor, indices);
    return expr;
}

static bool is_same_reduction(const TensorOp *left, const TensorOp *right)
{
    if (left->reduce != right->reduce || left->axis_count != right->axis_count ||
        left->spatial_count != right->spatial_count)
        return false;
    for (int a = 0; a < left->axis_count; a++)
        if (left->axes[a].extent != right->axes[a].extent)
            return false;
    return expr_equal(left->body, right->body);
}

/* The tensor that the reduction makes: of those that the definition has, or a new one. */
static Tensor *reduction_result(Lower *lower, TensorOp *op)
{
    const Program *program = lower->program;
    expr_visit(op->body, round_constant, lower);   // as theirs are
    for (int i = program->op_count - lower->temporaries; i < program->op_count; i++)
        if (is_same_reduction(program->ops[i], op))
            return program->ops[i]->out;
    const char *name = arena_printf(lower->arena, "%s.%d", lower->defining, ++lower->temporaries);
    op->out = tensor_new(lower, name, op->body->type, op->loc);
    for (int a = 0; a < op->spatial_count; a++)
        tensor_add_dimension(op->out, op->axes[a].extent, op->loc);
    op_add(lower, op);
    return op->out;
}

/* The reduction becomes an op of its own, over the outer variables that it uses; a definition's equal ones
   are one. In the scope (i, j | k) the body A[j, k] gives `y.1[j] = sum[k] A[j, k]`, read as y.1[j]. */
static Expr *hoist(Lower *lower, const AstExpr *reduction, Expr *body, int outer)
{
    bool used[MAX_AXES] = {false};
    Affine renumbered[MAX_AXES], indices[MAX_AXES];
    TensorOp *op = NEW(lower->arena, TensorOp);
    expr_visit(body, mark_used, used);
    for (int a = 0; a < lower->scope.count; a++) {
        bool is_axis = a >= outer || used[a];
        renumbered[a] = is_axis ? affine_axis(op->axis_count) : affine_constant(0);
        if (is_axis && a < outer)
            indices[op->axis_count] = affine_axis(a);
        if (is_axis)
            op_add_axis(lower, op, a, a >= outer);
    }
    op->reduce = reduction->reduction.reduce;
    op->body = expr_substitute(lower->arena, body, renumbered, lower->scope.count);
    op->loc = reduction->loc;
    return read_tensor(lower, reduction_result(lower, op), indices, reduction->loc);
}

/* What is reduced, with the reduction's variables in scope; b1 is counted as i32. */
static AffineTerm reduced(Lower *lower, const AstExpr *reduction)
{
    const AstExpr *inner = reduction->reduction.body;
    scope_open(lower, reduction->reduction.axes, reduction->reduction.count, inner);
    AffineTerm body = lower_expr(lower, inner);
    AffineTerm term = term_of(term_convert(lower, body, arithmetic_type(body.expr->type)));
    term.is_long = body.is_long;
    return term;
}

static AffineTerm lower_reduction(Lower *lower, const AstExpr *reduction)
{
    int outer = lower->scope.count;
    AffineTerm body = reduced(lower, reduction);
    Expr *value = hoist(lower, reduction, body.expr, outer);
    scope_close(lower, reduction->reduction.count);
    AffineTerm term = term_of(value);
    term.is_long = body.is_long;
    return term;
}

// ---- expressions ----

/* An index variable as a value: an integer wide enough for its extent. */
static AffineTerm index_value(Lower *lower, int axis, Loc loc)
{
    Expr *expr = NEW(lower->arena, Expr);
    expr->kind = EXPR_INDEX;
    expr->type = lower->scope.extents[axis] - 1 <= INT32_MAX ? DTYPE_I32 : DTYPE_I64;
    expr->loc = loc;
    expr->index = affine_axis(axis);
    return term_of(expr);
}

/* A param, or an index variable as a value. */
static AffineTerm lower_name(Lower *lower, const AstExpr *expr)
{
    int axis = scope_find(&lower->scope, expr->name);
    if (axis >= 0)
        return index_value(lower, axis, expr->loc);
    return term_number(lower, param_find(lower, expr->name, expr->loc), expr->loc);
}

static AffineTerm lower_apply(Lower *lower, const AstExpr *expr)
{
    AffineTerm operands[MAX_OPERANDS] = {0};
    for (int i = 0; i < op_info[expr->apply.op].operands; i++)
        operands[i] = lower_expr(lower, expr->apply.operands[i]);
    return term_apply(lower, expr->apply.op, operands, expr->loc);
}

static AffineTerm lower_cast(Lower *lower, const AstExpr *expr)
{
    return term_cast(lower, lower_expr(lower, expr->cast.body), expr->cast.to, expr->loc);
}

static AffineTerm lower_expr(Lower *lower, const AstExpr *expr)
{
    switch (expr->kind) {
    case AST_NUMBER: return term_number(lower, expr->number, expr->loc);
    case AST_NAME: return lower_name(lower, expr);
    case AST_ACCESS: return lower_access(lower, expr);
    case AST_REDUCTION: return lower_reduction(lower, expr);
    case AST_PAD: return lower_pad(lower, expr);
    case AST_CAST: return lower_cast(lower, expr);
    case AST_APPLY: return lower_apply(lower, expr);
    }
    __builtin_unreachable();
}

// ---- definitions ----

/* What the definition says, or its output, or what follows from the body. */
static DType stated_type(const Symbol *symbol, DType inferred)
{
    const AstStatement *statement = symbol->statement, *output = symbol->output;
    bool output_says = output && output->has_type;
    if (statement->has_type && output_says && statement->type != output->type)
        reject(output->type_loc, "'%s' is defined as %s; its output says %s", statement->name,
               dtype_info[statement->type].name, dtype_info[output->type].name);
    return statement->has_type ? statement->type : output_says ? output->type : inferred;
}

/* The left side's variables, then those of a reduction that is the whole right side. */
static void add_axes(const Lower *lower, TensorOp *op, int spatial)
{
    for (int a = 0; a < lower->scope.count; a++)
        op_add_axis(lower, op, a, a >= spatial);
}

/* NAME "[" [ index { "," index } ] "]" [ ":" DTYPE ] "=" expr */
void lower_definition(Lower *lower, Symbol *symbol)
{
    const AstStatement *statement = symbol->statement;
    const AstExpr *value = statement->value;
    TensorOp *op = NEW(lower->arena, TensorOp);
    lower->defining = statement->name;
    lower->temporaries = 0;
    scope_open(lower, statement->indices, statement->count, value);
    AffineTerm body;
    if (value->kind == AST_REDUCTION) {
        op->reduce = value->reduction.reduce;
        body = reduced(lower, value);
    } else {
        body = lower_expr(lower, value);
    }
    DType dtype = stated_type(symbol, definition_type(body, op->reduce));
    op->body = term_store(lower, body, op->reduce, dtype);
    if (body.is_number && !number_fits(body.number, dtype))
        reject(body.expr->loc, "%s is no value of %s: %s", number_text(lower->arena, body.number),
               dtype_info[dtype].name, values_text(lower->arena, dtype));
    op->out = tensor_new(lower, statement->name, dtype, statement->name_loc);
    for (int i = 0; i < statement->count; i++)
        tensor_add_dimension(op->out, lower->scope.extents[i], statement->indices[i].loc);
    op->loc = statement->name_loc;
    add_axes(lower, op, statement->count);
    op_add(lower, op);
    scope_close(lower, lower->scope.count);
    symbol->tensor = op->out;
}

Tensor *lower_view_copy(Lower *lower, const Symbol *symbol)
{
    const Tensor *seen = symbol->tensor;
    TensorOp *op = NEW(lower->arena, TensorOp);
    op->out = tensor_new(lower, seen->name, seen->dtype, seen->loc);
    op->out->role = ROLE_OUTPUT;
    op->loc = seen->loc;
    op->spatial_count = op->axis_count = seen->rank;
    Affine indices[MAX_AXES];
    for (int d = 0; d < seen->rank; d++) {
        op->axes[d] = (Axis){.name = arena_printf(lower->arena, "i%d", d), .extent = seen->shape[d]};
        op->out->shape[op->out->rank++] = seen->shape[d];
        indices[d] = affine_axis(d);
    }
    op->body = read_tensor(lower, symbol->tensor, indices, seen->loc);
    op->body->access.tensor = symbol->viewed;
    op_add(lower, op);
    return op->out;
}
