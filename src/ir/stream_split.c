// Split of a streamed kernel along its columns, over several blocks, where its rows are few.
//
//   m[c, i]    = max[j in c](t[i, j])                             of each part c of the columns
//   z[c, i]    = sum[j in c](exp(t[i, j] - m[c, i]))
//   y[c, i, n] = sum[j in c](exp(t[i, j] - m[c, i]) * v[j, n])
//
//   m[i] = max[c](m[c, i]),  w[c, i] = exp(m[c, i] - m[i])
//   z[i] = sum[c](z[c, i] * w[c, i]),  y[i, n] = p(sum[c](y[c, i, n] * w[c, i]), z[i])      p as the chain has it
//
// A part whose columns are all masked has m = -inf, and NaN for sums: where w is 0 they are left out.
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "ir/fuse_axes.h"
#include "ir/stream.h"

enum {
    CHUNK_COLUMNS = 64
};   // of which the columns of a part are whole ones, where parts are not of one size

/* Positions of the whole kernel's ops, as stream_build.c makes them. */
typedef struct Splitter {
    Arena *arena;
    const Fusion *whole;
    StreamParts *parts;
    int score, maximum, exponential, share, sum;   // z: whatever lies between e and p
    int column;                                    // axis
    int64_t count, chunk;                          // parts, columns of each
    Fusion *fusion;                                // that is built
    int *position;                                 // of the whole's ops in it; -1: it has none
    Affine forms[MAX_AXES];                        // of the whole's axes
    Tensor **stored;                               // of the whole's ops: what the parts have made of them
} Splitter;

// ---- ops ----

/* p * v, with results of their own. */
static bool is_sum_of_shares(const Fusion *whole, int op)
{
    const Expr *body = whole->ops[op].body;
    return body->kind == EXPR_APPLY && body->apply.op == OP_MUL &&
           body->apply.operands[0]->kind == EXPR_VALUE && body->apply.operands[0]->value == op - 1 &&
           whole->ops[op].spatial & ~whole->ops[op - 1].spatial;
}

/* False: it is another kernel that streams, or there is one column, and nothing is reduced. */
static bool find_ops(Splitter *splitter)
{
    const Fusion *whole = splitter->whole;
    splitter->maximum = splitter->sum = -1;
    for (int i = 0; i < whole->op_count; i++) {
        const FusedOp *op = &whole->ops[i];
        if (op->reduce == REDUCE_MAX && splitter->maximum < 0)
            splitter->maximum = i;
        else if (op->reduce == REDUCE_SUM && splitter->maximum >= 0 && is_sum_of_shares(whole, i))
            splitter->sum = i;
    }
    if (splitter->sum < 0 || whole->ops[splitter->maximum].body->kind != EXPR_VALUE)
        return false;
    splitter->score = whole->ops[splitter->maximum].body->value;
    splitter->exponential = splitter->maximum + 1;
    splitter->share = splitter->sum - 1;
    uint32_t reduced = whole->ops[splitter->maximum].reduced;
    for (splitter->column = 0; !(reduced >> splitter->column & 1); splitter->column++)
        ;
    return true;
}

static Expr *value_of(const Splitter *splitter, int position)
{
    return expr_value(splitter->arena, position, splitter->fusion->ops[position].out);
}

static void position_visit(Expr *expr, void *context)
{
    const Splitter *splitter = context;
    if (expr->kind == EXPR_VALUE)
        *expr = *value_of(splitter, splitter->position[expr->value]);
}

/* Over the axes of the kernel that is built, with its values. */
static Expr *rewrite(Splitter *splitter, const Expr *expr)
{
    Expr *copy = expr_substitute(splitter->arena, expr, splitter->forms, splitter->whole->axis_count);
    expr_visit(copy, position_visit, splitter);
    return copy;
}

static uint32_t mask_of(const Splitter *splitter, uint32_t axes)
{
    uint32_t mask = 0;
    for (int a = 0; a < splitter->whole->axis_count; a++)
        if (axes >> a & 1)
            mask |= affine_axes(&splitter->forms[a]);
    return mask;
}

/* A tensor that has those axes of the kernel as dimensions, and its element there. */
static Access own_access(const Splitter *splitter, Tensor *tensor, uint32_t axes)
{
    Affine dims[MAX_AXES];
    int count = 0;
    for (int a = 0; a < splitter->fusion->axis_count; a++)
        if (axes >> a & 1)
            dims[count++] = affine_axis(a);
    return access_new(splitter->arena, tensor, dims);
}

static Tensor *new_tensor(const Splitter *splitter, const char *name, DType type, uint32_t axes)
{
    Tensor *tensor = NEW(splitter->arena, Tensor);
    *tensor = (Tensor){.name = name, .id = -1, .dtype = type, .role = ROLE_TEMPORARY};
    for (int a = 0; a < splitter->fusion->axis_count; a++)
        if (axes >> a & 1)
            tensor->shape[tensor->rank++] = splitter->fusion->axes[a].extent;
    return tensor;
}

static int add_op(Splitter *splitter, const char *name, DType type, FusedOp op)
{
    if (!op.out) {
        op.out = new_tensor(splitter, name, type, op.spatial);
        op.store = own_access(splitter, op.out, op.spatial);
    }
    splitter->fusion->ops[splitter->fusion->op_count] = op;
    return splitter->fusion->op_count++;
}

static Fusion *new_fusion(Splitter *splitter)
{
    const Fusion *whole = splitter->whole;
    splitter->fusion = NEW(splitter->arena, Fusion);
    splitter->fusion->ops = NEW_ARRAY(splitter->arena, FusedOp, 2 * whole->op_count + 4);
    for (int i = 0; i < whole->op_count; i++)
        splitter->position[i] = -1;
    return splitter->fusion;
}

// ---- parts ----

/* (part, all others): the columns of a part are c * chunk + j. */
static void part_axes(Splitter *splitter)
{
    const Fusion *whole = splitter->whole;
    Fusion *partial = splitter->fusion;
    partial->streams = true;
    partial->spatial_count = whole->spatial_count + 1;
    partial->axis_count = whole->axis_count + 1;
    partial->axes[0] = (Axis){.name = "part", .extent = splitter->count};
    memcpy(partial->axes + 1, whole->axes, sizeof(Axis) * (size_t)whole->axis_count);
    partial->axes[splitter->column + 1].extent = splitter->chunk;
    for (int a = 0; a < whole->axis_count; a++)
        splitter->forms[a] = affine_axis(a + 1);
    splitter->forms[splitter->column].coef[0] = splitter->chunk;
}

/* The last part has fewer columns: what is read of others is not there. */
static Expr *inside(const Splitter *splitter, Expr *body, double otherwise)
{
    int64_t columns = splitter->whole->axes[splitter->column].extent;
    if (splitter->chunk * splitter->count == columns)
        return body;
    Dim *bound = NEW(splitter->arena, Dim);
    *bound = (Dim){splitter->forms[splitter->column], columns};
    return expr_guard(splitter->arena, body, bound, 1, expr_constant(splitter->arena, body->type, otherwise));
}

/* Scores of columns that are not there are -inf, with an op of their own where the product was all. */
static void add_scores(Splitter *splitter)
{
    const Fusion *whole = splitter->whole;
    for (int i = 0; i <= splitter->score; i++) {
        const FusedOp *op = &whole->ops[i];
        Expr *body = rewrite(splitter, op->body);
        if (i == 0)
            body->apply.operands[1] = inside(splitter, body->apply.operands[1], 0);
        else if (i == splitter->score)
            body = inside(splitter, body, -INFINITY);
        splitter->position[i] =
            add_op(splitter, arena_printf(splitter->arena, "%s.parts", op->out->name), op->out->dtype,
                   (FusedOp){.spatial = mask_of(splitter, op->spatial) | 1,
                             .reduced = op->reduced << 1,
                             .reduce = op->reduce,
                             .body = body});
    }
    bool ragged = splitter->chunk * splitter->count != whole->axes[splitter->column].extent;
    if (ragged && splitter->score == 0)
        splitter->position[0] = add_op(splitter, "score.parts", DTYPE_F32,
                                       (FusedOp){.spatial = mask_of(splitter, whole->ops[0].spatial) | 1,
                                                 .body = inside(splitter, value_of(splitter, 0), -INFINITY)});
}

/* m, e, the sums of e, p = e, and the sum of p * v. */
static void add_sums(Splitter *splitter)
{
    const Fusion *whole = splitter->whole;
    for (int i = splitter->maximum; i <= splitter->sum; i++) {
        const FusedOp *op = &whole->ops[i];
        Expr *body = i == splitter->share ? value_of(splitter, splitter->position[splitter->exponential])
                                          : rewrite(splitter, op->body);
        if (i == splitter->sum)
            body->apply.operands[1] = inside(splitter, body->apply.operands[1], 0);
        bool stored = op->reduce != REDUCE_NONE;
        splitter->position[i] = add_op(splitter, arena_printf(splitter->arena, "%s.parts", op->out->name),
                                       stored ? DTYPE_F32 : op->out->dtype,
                                       (FusedOp){.stored = stored,
                                                 .spatial = mask_of(splitter, op->spatial) | 1,
                                                 .reduced = op->reduced << 1,
                                                 .reduce = op->reduce,
                                                 .body = body});
        if (stored)
            splitter->stored[i] = splitter->fusion->ops[splitter->position[i]].out;
    }
}

static Fusion *partial_fusion(Splitter *splitter)
{
    Fusion *partial = new_fusion(splitter);
    part_axes(splitter);
    add_scores(splitter);
    add_sums(splitter);
    const TensorOp **definitions = NEW_ARRAY(splitter->arena, const TensorOp *, partial->op_count);
    for (int i = 0; i < partial->op_count; i++)
        definitions[i] = fused_op_define(splitter->arena, partial, &partial->ops[i]);
    splitter->parts->definitions = definitions;
    splitter->parts->definition_count = partial->op_count;
    return partial;
}

// ---- what is made of them ----

/* (those axes | parts) */
static void whole_axes(Splitter *splitter, uint32_t axes)
{
    const Fusion *whole = splitter->whole;
    Fusion *fusion = splitter->fusion;
    for (int a = 0; a < whole->axis_count; a++) {
        splitter->forms[a] = (Affine){0};
        if (axes >> a & 1) {
            splitter->forms[a] = affine_axis(fusion->axis_count);
            fusion->axes[fusion->axis_count++] = whole->axes[a];
        }
    }
    fusion->spatial_count = fusion->axis_count;
    fusion->axes[fusion->axis_count++] = (Axis){.name = "part", .extent = splitter->count, .reduction = true};
}

/* What the parts have stored of the op. */
static Expr *read_part(const Splitter *splitter, int op)
{
    const Fusion *whole = splitter->whole;
    Affine dims[MAX_AXES] = {affine_axis(splitter->fusion->spatial_count)};
    int count = 1;
    for (int a = 0; a < whole->axis_count; a++)
        if (whole->ops[op].spatial >> a & 1)
            dims[count++] = splitter->forms[a];
    return expr_access(splitter->arena, DTYPE_F32, access_new(splitter->arena, splitter->stored[op], dims));
}

/* sum[c](select(w == 0, 0, x[c] * w)) */
static int add_weighted(Splitter *splitter, int op, int weight, DType type)
{
    Arena *arena = splitter->arena;
    Expr *zero = expr_constant(arena, DTYPE_F32, 0);
    Expr *none = expr_apply(arena, OP_EQ, DTYPE_B1, value_of(splitter, weight), zero, NULL);
    Expr *term =
        expr_apply(arena, OP_MUL, DTYPE_F32, read_part(splitter, op), value_of(splitter, weight), NULL);
    uint32_t points = (1u << splitter->fusion->spatial_count) - 1;
    return add_op(splitter, splitter->whole->ops[op].out->name, type,
                  (FusedOp){.spatial = points,
                            .reduced = points + 1,
                            .reduce = REDUCE_SUM,
                            .body = expr_apply(arena, OP_SELECT, DTYPE_F32, none, zero, term)});
}

/* m, w and z at the points of the kernel. Returns where w is. */
static int add_rows(Splitter *splitter)
{
    Arena *arena = splitter->arena;
    uint32_t points = (1u << splitter->fusion->spatial_count) - 1;
    int maximum = add_op(splitter, splitter->whole->ops[splitter->maximum].out->name, DTYPE_F32,
                         (FusedOp){.spatial = points,
                                   .reduced = points + 1,
                                   .reduce = REDUCE_MAX,
                                   .body = read_part(splitter, splitter->maximum)});
    Expr *grown = expr_apply(arena, OP_SUB, DTYPE_F32, read_part(splitter, splitter->maximum),
                             value_of(splitter, maximum), NULL);
    int weight = add_op(splitter, "weight", DTYPE_F32,
                        (FusedOp){.spatial = 2 * points + 1,
                                  .body = expr_apply(arena, OP_EXP, DTYPE_F32, grown, NULL, NULL)});
    const FusedOp *ops = splitter->whole->ops;
    splitter->position[splitter->maximum] = maximum;
    if (ops[splitter->maximum].out->dtype != DTYPE_F32)
        splitter->position[splitter->maximum] =
            add_op(splitter, ops[splitter->maximum].out->name, ops[splitter->maximum].out->dtype,
                   (FusedOp){.spatial = points, .body = value_of(splitter, maximum)});
    for (int i = splitter->exponential + 1; i < splitter->share; i++)
        splitter->position[i] = add_weighted(splitter, i, weight, ops[i].out->dtype);
    return weight;
}

static void need_visit(Expr *expr, void *context)
{
    if (expr->kind == EXPR_VALUE)
        *(uint64_t *)context |= UINT64_C(1) << expr->value;
}

/* Ops that are stored at those points, and what these are made of. */
static uint64_t needed_ops(const Splitter *splitter, uint32_t points)
{
    const Fusion *whole = splitter->whole;
    uint64_t needed = 0;
    for (int i = whole->op_count - 1; i >= 0; i--) {
        needed |= (uint64_t)(whole->ops[i].stored && whole->ops[i].spatial == points) << i;
        if (needed >> i & 1)
            expr_visit(whole->ops[i].body, need_visit, &needed);
    }
    return needed;
}

/* The whole's op from what was made before; it is stored if these are its points. */
static void add_own(Splitter *splitter, int op, uint32_t points, Expr *body)
{
    const FusedOp *own = &splitter->whole->ops[op];
    uint32_t mask = (1u << splitter->fusion->spatial_count) - 1;
    FusedOp made = {.spatial = mask, .body = body};
    if (own->stored && own->spatial == points) {
        Expr store = {.kind = EXPR_ACCESS, .access = own->store};
        made.stored = true;
        made.out = own->out;
        made.store =
            expr_substitute(splitter->arena, &store, splitter->forms, splitter->whole->axis_count)->access;
    }
    splitter->position[op] = add_op(splitter, own->out->name, own->out->dtype, made);
}

/* Rows' own values that are stored, and what is made of them. */
static void add_readers(Splitter *splitter, uint32_t points, uint64_t needed)
{
    const Fusion *whole = splitter->whole;
    for (int i = splitter->maximum; i < splitter->share; i++)
        if (whole->ops[i].reduce != REDUCE_NONE && whole->ops[i].stored && whole->ops[i].spatial == points)
            add_own(splitter, i, points, value_of(splitter, splitter->position[i]));
    for (int i = splitter->sum + 1; i < whole->op_count; i++)
        if (needed >> i & 1)
            add_own(splitter, i, points, rewrite(splitter, whole->ops[i].body));
}

/* y = p of the sum of e * v, in which p is linear. */
static Fusion *results_fusion(Splitter *splitter)
{
    const Fusion *whole = splitter->whole;
    uint32_t points = whole->ops[splitter->sum].spatial;
    uint64_t needed = needed_ops(splitter, points);
    Fusion *results = new_fusion(splitter);
    whole_axes(splitter, points);
    int weight = add_rows(splitter);
    splitter->position[splitter->exponential] = add_weighted(splitter, splitter->sum, weight, DTYPE_F32);
    add_own(splitter, splitter->sum, points, rewrite(splitter, whole->ops[splitter->share].body));
    add_readers(splitter, points, needed);
    return results;
}

static Fusion *rows_fusion(Splitter *splitter)
{
    uint32_t points = splitter->whole->ops[splitter->maximum].spatial;
    uint64_t needed = needed_ops(splitter, points);
    if (!needed)
        return NULL;
    Fusion *rows = new_fusion(splitter);
    whole_axes(splitter, points);
    add_rows(splitter);
    add_readers(splitter, points, needed);
    return rows;
}

// ---- all ----

static void list_tensors(const Splitter *splitter, Fusion *fusion)
{
    Tensor **made = NEW_ARRAY(splitter->arena, Tensor *, splitter->whole->op_count);
    int count = 0;
    for (int i = 0; i < splitter->whole->op_count; i++)
        if (splitter->stored[i])
            made[count++] = splitter->stored[i];
    fusion_choose_tensors_beside(splitter->arena, fusion, splitter->whole, made, count);
}

static bool has_room(const Fusion *whole)
{
    for (int i = 0; i < whole->op_count; i++) {
        int rank = 1;
        for (int a = 0; a < whole->axis_count; a++)
            rank += (whole->ops[i].spatial >> a & 1) != 0;
        if (rank > MAX_RANK)
            return false;
    }
    return whole->axis_count < MAX_AXES && whole->op_count < 64;
}

StreamParts *stream_split(Arena *arena, const Fusion *fusion, int64_t parts)
{
    Splitter splitter = {.arena = arena, .whole = fusion, .parts = NEW(arena, StreamParts)};
    splitter.position = NEW_ARRAY(arena, int, fusion->op_count);
    splitter.stored = NEW_ARRAY(arena, Tensor *, fusion->op_count);
    if (!has_room(fusion) || !find_ops(&splitter))
        return NULL;
    int64_t columns = fusion->axes[splitter.column].extent;
    splitter.chunk = ceil_div(columns, parts);
    if (splitter.chunk * parts != columns)
        splitter.chunk = round_up(splitter.chunk, CHUNK_COLUMNS);
    splitter.count = ceil_div(columns, splitter.chunk);
    if (splitter.count < 2 || splitter.chunk < CHUNK_COLUMNS)
        return NULL;
    StreamParts *made = splitter.parts;
    made->partial = partial_fusion(&splitter);
    made->results = results_fusion(&splitter);
    made->rows = rows_fusion(&splitter);
    list_tensors(&splitter, made->partial);
    fusion_verify(made->partial, "stream_split (partial)");
    Fusion *behind[] = {made->results, made->rows};
    for (int i = 0; i < 2 && behind[i]; i++) {
        list_tensors(&splitter, behind[i]);
        fuse_axes(arena, behind[i]);
        fusion_verify(behind[i], "stream_split");
    }
    return made;
}
