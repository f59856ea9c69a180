#include "ir/read_shape.h"

#include <string.h>

#include "ir/fuse_inline.h"

typedef struct ReadShape {
    int rank;   // 0: nobody reads it so far
    int64_t size[MAX_AXES];
    bool settled;   // it is read in several shapes, or at computed places
} ReadShape;

typedef struct ShapeSearch {
    const Tensor *tensor;
    ReadShape shape;
} ShapeSearch;

static void shape_visit(Expr *expr, void *context)
{
    ShapeSearch *search = context;
    ReadShape *shape = &search->shape;
    if (expr_tensor(expr) != search->tensor)
        return;
    const Access *access = &expr->access;
    if (expr->kind == EXPR_FETCH || (shape->rank && shape->rank != access->rank)) {
        shape->settled = true;
        return;
    }
    for (int d = 0; d < access->rank; d++) {
        shape->settled |= shape->rank && shape->size[d] != access->dims[d].size;
        shape->size[d] = access->dims[d].size;
    }
    shape->rank = access->rank;
}

static ReadShape shape_of_reads(const Program *program, int op)
{
    ShapeSearch search = {.tensor = program->ops[op]->out};
    for (int i = op + 1; i < program->op_count; i++)
        expr_visit(program->ops[i]->body, shape_visit, &search);
    return search.shape;
}

/* Which of the op's dimensions each of the shape's is a part of. False: some of those is part of several, or
   the lines that a kernel stores, along the last one, would be cut. */
static bool parts_of(const TensorOp *op, const ReadShape *shape, int *part)
{
    int d = 0;
    if (shape->size[shape->rank - 1] != op->axes[op->spatial_count - 1].extent)
        return false;
    int64_t left = op->axes[0].extent;
    for (int v = 0; v < shape->rank; v++) {
        while (left == 1 && shape->size[v] > 1 && d + 1 < op->spatial_count)
            left = op->axes[++d].extent;
        if (left % shape->size[v])
            return false;
        left /= shape->size[v];
        part[v] = d;
    }
    while (left == 1 && d + 1 < op->spatial_count)
        left = op->axes[++d].extent;
    return left == 1;
}

// ---- the definition in another shape ----

typedef struct Reshaping {
    Arena *arena;
    const TensorOp *op;
    const ReadShape *shape;
    Affine forms[MAX_AXES];   // of the op's axes, over the new ones
} Reshaping;

/* Reads the same element, the tensor seen in the new shape. */
static Access seen_in_shape(const Reshaping *reshaping, Tensor *tensor)
{
    const ReadShape *shape = reshaping->shape;
    Dim *dims = NEW_ARRAY(reshaping->arena, Dim, shape->rank);
    Tensor seen = {.rank = shape->rank};
    for (int d = 0; d < shape->rank; d++) {
        seen.shape[d] = shape->size[d];
        dims[d] = (Dim){affine_axis(d), shape->size[d]};
    }
    tensor_add_view(reshaping->arena, tensor, &seen);
    return (Access){tensor, shape->rank, dims};
}

/* What is made elsewhere and read at the op's own points has the new shape, too. */
static Expr *reshaped(const Reshaping *reshaping, const Expr *expr)
{
    const TensorOp *op = reshaping->op;
    bool own = expr->kind == EXPR_ACCESS && expr->access.tensor->role != ROLE_INPUT &&
               reads_own_point(&expr->access, op->axes, op->spatial_count);
    if (!own && expr->kind != EXPR_APPLY && expr->kind != EXPR_CAST)
        return expr_substitute(reshaping->arena, expr, reshaping->forms, op->axis_count);
    Expr *copy = NEW(reshaping->arena, Expr);
    *copy = *expr;
    if (own)
        copy->access = seen_in_shape(reshaping, expr->access.tensor);
    if (expr->kind == EXPR_CAST)
        copy->cast.body = reshaped(reshaping, expr->cast.body);
    for (int i = 0; expr->kind == EXPR_APPLY && i < op_info[expr->apply.op].operands; i++)
        copy->apply.operands[i] = reshaped(reshaping, expr->apply.operands[i]);
    return copy;
}

/* Dimensions of the shape are the axes, each a part of one that there was. */
static void set_axes(Reshaping *reshaping, TensorOp *op, const int *part)
{
    const TensorOp old = *op;
    const ReadShape *shape = reshaping->shape;
    int64_t stride = 1;
    for (int v = shape->rank - 1; v >= 0; v--) {
        bool whole = shape->size[v] == old.axes[part[v]].extent;
        if (v + 1 < shape->rank && part[v] != part[v + 1])
            stride = 1;
        const char *name = old.axes[part[v]].name;
        op->axes[v] =
            (Axis){whole ? name : arena_printf(reshaping->arena, "%s.%d", name, v), shape->size[v], false};
        reshaping->forms[part[v]].coef[v] = stride;
        stride *= shape->size[v];
    }
    for (int a = old.spatial_count; a < old.axis_count; a++) {
        op->axes[shape->rank + a - old.spatial_count] = old.axes[a];
        reshaping->forms[a] = affine_axis(shape->rank + a - old.spatial_count);
    }
    op->spatial_count = shape->rank;
    op->axis_count = shape->rank + old.axis_count - old.spatial_count;
}

static void reshape(Arena *arena, TensorOp *op, const ReadShape *shape, const int *part)
{
    TensorOp old = *op;
    Reshaping reshaping = {.arena = arena, .op = &old, .shape = shape};
    set_axes(&reshaping, op, part);
    op->body = reshaped(&reshaping, old.body);
    Tensor seen = *op->out;
    tensor_add_view(arena, op->out, &seen);
    op->out->rank = shape->rank;
    for (int d = 0; d < shape->rank; d++)
        op->out->shape[d] = shape->size[d];
}

// ---- the program ----

typedef struct EpilogueReads {
    const TensorOp *op;
    const bool *products;   // by tensor id
    bool found,
        elsewhere;   // reads one at its own points; reads what is made here elsewhere, as a row's mean
} EpilogueReads;

static void product_visit(Expr *expr, void *context)
{
    EpilogueReads *search = context;
    const Tensor *tensor = expr_tensor(expr);
    if (!tensor || tensor->role == ROLE_INPUT)
        return;
    bool own = expr->kind == EXPR_ACCESS &&
               reads_own_point(&expr->access, search->op->axes, search->op->spatial_count);
    search->found |= own && search->products[tensor->id];
    search->elsewhere |= !own;
}

/* By tensor id: sums of products, and what is made of them at their own points. */
static bool *find_products(Arena *arena, const Program *program)
{
    bool *products = NEW_ARRAY(arena, bool, program->tensor_count);
    for (int i = 0; i < program->op_count; i++) {
        const TensorOp *op = program->ops[i];
        EpilogueReads search = {op, products, false, false};
        if (op->reduce == REDUCE_NONE)
            expr_visit(op->body, product_visit, &search);
        products[op->out->id] =
            (search.found && !search.elsewhere) ||
            (op->reduce == REDUCE_SUM && op->body->kind == EXPR_APPLY && op->body->apply.op == OP_MUL);
    }
    return products;
}

static bool is_own_shape(const Tensor *tensor, const ReadShape *shape)
{
    return tensor->rank == shape->rank &&
           memcmp(tensor->shape, shape->size, sizeof(int64_t) * (size_t)shape->rank) == 0;
}

void products_in_read_shape(Arena *arena, Program *program)
{
    const bool *products = find_products(arena, program);
    for (int i = program->op_count - 1; i >= 0; i--) {   // readers first: what they read follows them
        TensorOp *op = program->ops[i];
        int part[MAX_AXES];
        if (!products[op->out->id] || op->out->role != ROLE_TEMPORARY || !op->spatial_count)
            continue;
        ReadShape shape = shape_of_reads(program, i);
        int reduced = op->axis_count - op->spatial_count;
        if (shape.rank && !shape.settled && !is_own_shape(op->out, &shape) &&
            shape.rank + reduced <= MAX_AXES && parts_of(op, &shape, part))
            reshape(arena, op, &shape, part);
    }
}
