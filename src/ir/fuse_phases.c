// Cuts a kernel of rows in three, each spread over all SMs: statistics of chunks of the rows, the rows'
// own statistics, and the elements.
//
//   mean[c] = sum[r](x[r, c]) / n                       s[c, p] = sum[r in p](x[r, c])
//   var[c]  = sum[r](sq(x[r, c] - mean[c])) / n         q[c, p] = sum[r in p](sq(x[r, c] - s[c, p] / k))     k = points of p
//
//   sum[r](sq(x[r, c] - m)) = sum[p](q[c, p] + k * sq(s[c, p] / k - m))                                      for any m
//
// No term of the last line is negative, so nothing cancels: Chan, Golub and LeVeque, "Updating formulae and a
// pairwise algorithm for computing sample variances", 1979.
#include <string.h>

#include "ir/fuse_axes.h"
#include "ir/fuse_sums.h"

// ---- rewriting expressions ----

typedef Expr *ValueOf(Cutter *cutter, int op);

typedef struct Rewriting {
    Cutter *cutter;
    ValueOf *value_of;
} Rewriting;

static void rewrite_visit(Expr *expr, void *context)
{
    Rewriting *rewriting = context;
    if (expr->kind == EXPR_VALUE)
        *expr = *rewriting->value_of(rewriting->cutter, expr->value);
}

/* A copy over the axes of the kernel that is being built, whose values are replaced. */
static Expr *rewrite(Cutter *cutter, const Expr *expr, ValueOf *value_of)
{
    Rewriting rewriting = {cutter, value_of};
    Expr *copy = expr_substitute(cutter->arena, expr, cutter->forms, cutter->whole->axis_count);
    expr_visit(copy, rewrite_visit, &rewriting);
    return copy;
}

static Expr *value_expr(Cutter *cutter, int position)
{
    return expr_value(cutter->arena, position, cutter->fusion->ops[position].out);
}

static Expr *access_expr(Cutter *cutter, const Access *access)
{
    return expr_access(cutter->arena, dtype_info[access->tensor->dtype].compute, *access);
}

/* The op's value read from memory. */
static Expr *read_value(Cutter *cutter, int op)
{
    Expr *read = access_expr(cutter, &cutter->whole->ops[op].store);
    return expr_substitute(cutter->arena, read, cutter->forms, cutter->whole->axis_count);
}

/* s / k */
static Expr *chunk_mean(Cutter *cutter, Expr *sum)
{
    return expr_apply(cutter->arena, OP_DIV, sum->type, sum,
                      expr_constant(cutter->arena, sum->type, cutter->points), NULL);
}

/* sq(x - m) */
static Expr *squared_difference(Cutter *cutter, Expr *x, Expr *m)
{
    Expr *difference = expr_apply(cutter->arena, OP_SUB, x->type, x, m, NULL);
    return expr_apply(cutter->arena, OP_SQ, x->type, difference, NULL, NULL);
}

static int add_op(Cutter *cutter, FusedOp op)
{
    cutter->fusion->ops[cutter->fusion->op_count] = op;
    return cutter->fusion->op_count++;
}

static Fusion *new_fusion(Cutter *cutter)
{
    cutter->fusion = NEW(cutter->arena, Fusion);
    cutter->fusion->ops = NEW_ARRAY(cutter->arena, FusedOp, 4 * cutter->whole->op_count);
    for (int i = 0; i < cutter->whole->op_count; i++)
        cutter->position[i] = -1;
    return cutter->fusion;
}

// ---- the chunks' statistics ----

static void add_axis(Fusion *fusion, Axis axis, bool reduction)
{
    axis.reduction = reduction;
    fusion->axes[fusion->axis_count++] = axis;
    fusion->spatial_count += !reduction;
}

/* (rows, parts | points of a chunk) */
static void partial_axes(Cutter *cutter)
{
    const Fusion *whole = cutter->whole;
    Fusion *partial = cutter->fusion;
    for (int a = 0; a <= cutter->cut; a++) {
        cutter->forms[a] = affine_axis(a);
        add_axis(partial, whole->axes[a], false);
    }
    partial->axes[cutter->cut].extent /= cutter->chunk;
    for (int a = cutter->cut; a < whole->axis_count; a++) {
        cutter->forms[a] = affine_axis(a + 1);
        add_axis(partial, whole->axes[a], true);
    }
    partial->axes[cutter->cut + 1].extent = cutter->chunk;
    cutter->forms[cutter->cut].coef[cutter->cut] = cutter->chunk;
}

static Access chunk_access(Cutter *cutter, const Tensor *tensor)
{
    Affine dims[MAX_AXES];
    for (int d = 0; d < tensor->rank; d++)
        dims[d] = affine_axis(d);
    return access_new(cutter->arena, (Tensor *)tensor, dims);
}

static Tensor *chunk_tensor(Cutter *cutter, const char *name, DType type)
{
    Tensor *tensor = NEW(cutter->arena, Tensor);
    *tensor = (Tensor){.name = name, .id = -1, .dtype = type, .role = ROLE_TEMPORARY};
    tensor->rank = cutter->cut + 1;
    for (int a = 0; a <= cutter->cut; a++)
        tensor->shape[a] = cutter->whole->axes[a].extent;
    tensor->shape[cutter->cut] /= cutter->chunk;
    return tensor;
}

/* The op in the chunk kernel, where it depends on no reduction. */
static Expr *partial_value(Cutter *cutter, int op)
{
    const FusedOp *whole = &cutter->whole->ops[op];
    Fusion *partial = cutter->fusion;
    if (cutter->position[op] < 0) {
        FusedOp own = *whole;
        own.body = rewrite(cutter, whole->body, partial_value);
        own.stored = false;
        own.spatial =
            fusion_is_of_elements(cutter->whole, whole) ? sums_all_mask(partial) : sums_spatial_mask(partial);
        own.store = read_value(cutter, op)->access;
        cutter->position[op] = add_op(cutter, own);
    }
    return value_expr(cutter, cutter->position[op]);
}

/* As a definition of its own, so that the reference evaluator knows it. */
static void add_definition(Cutter *cutter, Tensor *tensor, Reduce reduce, Expr *body)
{
    TensorOp *definition = NEW(cutter->arena, TensorOp);
    definition->out = tensor;
    definition->spatial_count = cutter->fusion->spatial_count;
    definition->axis_count = cutter->fusion->axis_count;
    memcpy(definition->axes, cutter->fusion->axes, sizeof definition->axes);
    definition->reduce = reduce;
    definition->body = body;
    cutter->phases->definitions[cutter->phases->definition_count++] = definition;
}

static void add_chunk_sum(Cutter *cutter, int index, Reduce reduce, Expr *body, Expr *definition)
{
    ChunkSum *sum = &cutter->sums[index];
    Fusion *partial = cutter->fusion;
    const char *name = arena_printf(cutter->arena, "chunks.%d", cutter->phases->definition_count);
    Tensor *tensor = chunk_tensor(cutter, name, body->type);
    sum->tensor = tensor;
    sum->in_partial = add_op(cutter, (FusedOp){
                                         .out = tensor,
                                         .stored = true,
                                         .spatial = sums_spatial_mask(partial),
                                         .reduced = sums_all_mask(partial) & ~sums_spatial_mask(partial),
                                         .reduce = reduce,
                                         .body = body,
                                         .store = chunk_access(cutter, tensor),
                                     });
    add_definition(cutter, tensor, reduce, definition);
}

static void add_plain_sum(Cutter *cutter, int index)
{
    const Expr *element = cutter->sums[index].element;
    add_chunk_sum(cutter, index, cutter->whole->ops[index].reduce, rewrite(cutter, element, partial_value),
                  rewrite(cutter, element, read_value));
}

/* The total comes before it. */
static void add_centred_sum(Cutter *cutter, int index)
{
    const ChunkSum *sum = &cutter->sums[index], *total = &cutter->sums[sum->total];
    Expr *mean = chunk_mean(cutter, value_expr(cutter, total->in_partial));
    Tensor *tensor = chunk_tensor(cutter, "chunk mean", mean->type);
    int position = add_op(cutter, (FusedOp){.out = tensor,
                                            .spatial = sums_spatial_mask(cutter->fusion),
                                            .body = mean,
                                            .store = chunk_access(cutter, tensor)});
    Access stored = chunk_access(cutter, total->tensor);
    add_chunk_sum(cutter, index, REDUCE_SUM,
                  squared_difference(cutter, rewrite(cutter, sum->element, partial_value),
                                     value_expr(cutter, position)),
                  squared_difference(cutter, rewrite(cutter, sum->element, read_value),
                                     chunk_mean(cutter, access_expr(cutter, &stored))));
}

static Fusion *partial_fusion(Cutter *cutter)
{
    Fusion *partial = new_fusion(cutter);
    partial_axes(cutter);
    cutter->phases->definitions = NEW_ARRAY(cutter->arena, const TensorOp *, cutter->whole->op_count);
    for (int i = 0; i < cutter->whole->op_count; i++)
        if (cutter->sums[i].centre >= 0)
            add_centred_sum(cutter, i);
        else if (cutter->sums[i].element)
            add_plain_sum(cutter, i);
    return partial;
}

// ---- the rows' statistics ----

static Expr *combined_value(Cutter *cutter, int op) { return value_expr(cutter, cutter->position[op]); }

static Expr *combined_body(Cutter *cutter, int index)
{
    const ChunkSum *sum = &cutter->sums[index];
    Access access = chunk_access(cutter, sum->tensor);
    Expr *read = access_expr(cutter, &access);
    if (sum->centre < 0)
        return read;
    Access total = chunk_access(cutter, cutter->sums[sum->total].tensor);
    Expr *distance = squared_difference(cutter, chunk_mean(cutter, access_expr(cutter, &total)),
                                        combined_value(cutter, sum->centre));
    Expr *count = expr_constant(cutter->arena, read->type, cutter->points);
    return expr_apply(cutter->arena, OP_ADD, read->type, read,
                      expr_apply(cutter->arena, OP_MUL, read->type, count, distance, NULL), NULL);
}

/* (rows | parts); the chunks' results have just these dimensions. */
static Fusion *combine_fusion(Cutter *cutter)
{
    const Fusion *whole = cutter->whole;
    Fusion *combine = new_fusion(cutter);
    for (int a = 0; a <= cutter->cut; a++)
        add_axis(combine, whole->axes[a], a >= whole->spatial_count);
    combine->axes[cutter->cut].extent /= cutter->chunk;
    for (int i = 0; i < whole->op_count; i++) {
        FusedOp op = whole->ops[i];
        if (fusion_is_of_elements(whole, &op))
            continue;
        bool reduces = op.reduce != REDUCE_NONE;
        op.body = reduces ? combined_body(cutter, i) : rewrite(cutter, op.body, combined_value);
        op.reduced = reduces ? sums_all_mask(combine) & ~sums_spatial_mask(combine) : 0;
        cutter->position[i] = add_op(cutter, op);
    }
    return combine;
}

// ---- the elements ----

/* Statistics come from memory; other elements are made once more. */
static Expr *element_value(Cutter *cutter, int op)
{
    const FusedOp *whole = &cutter->whole->ops[op];
    if (!fusion_is_of_elements(cutter->whole, whole)) {
        for (int i = 0; i < cutter->phases->combine->op_count; i++)
            cutter->phases->combine->ops[i].stored |= cutter->phases->combine->ops[i].out == whole->out;
        return read_value(cutter, op);
    }
    if (cutter->position[op] < 0) {
        FusedOp own = *whole;
        own.body = rewrite(cutter, whole->body, element_value);
        own.spatial = sums_all_mask(cutter->fusion);
        own.store = read_value(cutter, op)->access;
        cutter->position[op] = add_op(cutter, own);
    }
    return value_expr(cutter, cutter->position[op]);
}

/* Points in the order in which the first of the results lies in memory. */
static bool element_axes(Cutter *cutter, const Access *store)
{
    const Fusion *whole = cutter->whole;
    for (int d = 0; d < store->rank; d++) {
        int axis = affine_single_axis(&store->dims[d].index);
        if (axis < 0)
            return false;
        cutter->forms[axis] = affine_axis(d);
        add_axis(cutter->fusion, whole->axes[axis], false);
    }
    return store->rank == whole->axis_count;
}

static bool is_stored_element(const Fusion *whole, int op)
{
    return whole->ops[op].stored && fusion_is_of_elements(whole, &whole->ops[op]);
}

static Fusion *element_fusion(Cutter *cutter)
{
    const Fusion *whole = cutter->whole;
    Fusion *elements = new_fusion(cutter);
    for (int i = 0; i < whole->op_count; i++) {
        if (!is_stored_element(whole, i))
            continue;
        if (!elements->axis_count && !element_axes(cutter, &whole->ops[i].store))
            return NULL;
        element_value(cutter, i);
    }
    return elements;
}

/* The same in chunks of rows. */
static Fusion *chunk_fusion(Cutter *cutter)
{
    Fusion *chunks = new_fusion(cutter);
    partial_axes(cutter);
    for (int i = 0; i < cutter->whole->op_count; i++)
        if (is_stored_element(cutter->whole, i))
            element_value(cutter, i);
    return chunks;
}

/* The same where rows lie side by side in memory along one of the reduced axes: that one is a dimension of
   the points, and a block goes through the others. */
static Fusion *column_fusion(Cutter *cutter)
{
    const Fusion *whole = cutter->whole;
    Fusion *columns = new_fusion(cutter);
    int inner = -1;
    for (int i = whole->op_count - 1; i >= 0; i--)
        if (is_stored_element(whole, i))
            inner = affine_single_axis(&whole->ops[i].store.dims[whole->ops[i].store.rank - 1].index);
    if (inner < whole->spatial_count || whole->axis_count - whole->spatial_count < 2)
        return NULL;
    for (int pass = 0; pass < 2; pass++)
        for (int a = 0; a < whole->axis_count; a++)
            if ((a < whole->spatial_count || a == inner) == (pass == 0)) {
                cutter->forms[a] = affine_axis(columns->axis_count);
                add_axis(columns, whole->axes[a], pass == 1);
            }
    for (int i = 0; i < whole->op_count; i++)
        if (is_stored_element(whole, i))
            element_value(cutter, i);
    return columns;
}

// ---- all three ----

static void list_tensors(Cutter *cutter, Fusion *fusion)
{
    const Fusion *whole = cutter->whole;
    int sums = cutter->phases->definition_count, count = 0;
    Tensor **made = NEW_ARRAY(cutter->arena, Tensor *, whole->op_count + sums);
    for (int i = 0; i < whole->op_count; i++)
        made[count++] = whole->ops[i].out;
    for (int i = 0; i < sums; i++)
        made[count++] = cutter->phases->definitions[i]->out;
    fusion_choose_tensors_beside(cutter->arena, fusion, whole, made, count);
    fuse_axes(cutter->arena, fusion);
}

/* The kernel that was cut is still what it was. */
static void verify_all(const Fusion *whole, const FusionPhases *phases)
{
    fusion_verify(whole, "fusion_cut");
    fusion_verify(phases->partial, "fusion_cut (partial)");
    fusion_verify(phases->combine, "fusion_cut (combine)");
    fusion_verify(phases->chunks, "fusion_cut (chunks)");
    fusion_verify(phases->elements, "fusion_cut (elements)");
    if (phases->columns)
        fusion_verify(phases->columns, "fusion_cut (columns)");
}

FusionPhases *fusion_cut(Arena *arena, const Fusion *fusion, int64_t most)
{
    Cutter cutter = {.arena = arena, .whole = fusion, .phases = NEW(arena, FusionPhases)};
    cutter.position = NEW_ARRAY(arena, int, fusion->op_count);
    if (fusion->streams || fusion->axis_count == MAX_AXES || !sums_find(&cutter) ||
        !sums_find_cut(&cutter, most))
        return NULL;
    FusionPhases *phases = cutter.phases;
    phases->partial = partial_fusion(&cutter);
    phases->combine = combine_fusion(&cutter);
    phases->chunks = chunk_fusion(&cutter);
    phases->columns = column_fusion(&cutter);
    phases->elements = element_fusion(&cutter);
    if (!phases->elements)
        return NULL;
    list_tensors(&cutter, phases->partial);
    list_tensors(&cutter, phases->combine);
    list_tensors(&cutter, phases->chunks);
    if (phases->columns)
        list_tensors(&cutter, phases->columns);
    list_tensors(&cutter, phases->elements);
    verify_all(fusion, phases);
    return phases;
}
