// The kernel of a product's rows cut in two: results of tiles, and what rows have of these.
#include <string.h>

#include "base/checked.h"
#include "ir/fuse_axes.h"
#include "ir/row_tiles.h"

/* Kernels have the whole one's axes in other places. */
typedef struct TileCutter {
    Arena *arena;
    const Fusion *whole;
    RowSum *sums;       // by op of the whole
    Tensor **tensors;   // by op: the tiles' results; NULL: none
    int product_ops;
    int column;   // axis of the whole
    int64_t columns, tiles;
    Affine forms[MAX_AXES];   // the whole's axes by those of what is being built
    int *position;            // by op of the whole: where it stands there
    Fusion *fusion;           // that kernel; NULL: a definition
    RowTiles *result;
} TileCutter;

// ---- expressions ----

static Expr *value_of(const TileCutter *cutter, int position)
{
    return expr_value(cutter->arena, position, cutter->fusion->ops[position].out);
}

/* p[c, i…]: the same where rows stand behind a tile's axis or before it. */
static Access tile_access(const TileCutter *cutter, Tensor *tensor, int tile_axis, int first_row)
{
    Affine dims[MAX_AXES] = {affine_axis(tile_axis)};
    for (int a = 0; a < cutter->whole->spatial_count; a++)
        dims[a + 1] = affine_axis(first_row + a);
    return access_new(cutter->arena, tensor, dims);
}

static Expr *read_of(const TileCutter *cutter, Access access)
{
    return expr_access(cutter->arena, dtype_info[access.tensor->dtype].compute, access);
}

/* A tile of which all is -inf has no exp(-inf - -inf): the lowest number stands for its maximum. */
static Expr *above_lowest(const TileCutter *cutter, Expr *maximum)
{
    Expr *lowest = expr_constant(cutter->arena, DTYPE_F32, -0x1.fffffep127);
    return expr_apply(cutter->arena, OP_MAX, DTYPE_F32, maximum, lowest, NULL);
}

typedef struct TileRewriting {
    const TileCutter *cutter;
    RowWay way;
} TileRewriting;

/* The product's values, in a definition its tensors; of the extreme that of the tile. */
static void rewrite_visit(Expr *expr, void *context)
{
    const TileRewriting *rewriting = context;
    const TileCutter *cutter = rewriting->cutter;
    if (expr->kind != EXPR_VALUE)
        return;
    int op = expr->value;
    bool of_row = op >= cutter->product_ops;
    if (cutter->fusion) {
        *expr = *value_of(cutter, cutter->position[op]);
    } else if (of_row) {
        *expr = *read_of(cutter, tile_access(cutter, cutter->tensors[op], 0, 1));
    } else {
        Expr *read = read_of(cutter, cutter->whole->ops[op].store);
        *expr = *expr_substitute(cutter->arena, read, cutter->forms, cutter->whole->axis_count);
    }
}

static void finite_visit(Expr *expr, void *context)
{
    const TileRewriting *rewriting = context;
    if (rewriting->way == ROW_EXPONENT && expr->kind == EXPR_APPLY && expr->apply.op == OP_SUB) {
        Expr *maximum = expr->apply.operands[1];
        if (maximum->kind == EXPR_VALUE && maximum->value >= rewriting->cutter->product_ops)
            expr->apply.operands[1] = above_lowest(rewriting->cutter, maximum);
    }
}

static Expr *rewrite(const TileCutter *cutter, const Expr *expr, RowWay way)
{
    TileRewriting rewriting = {cutter, way};
    Expr *copy = expr_substitute(cutter->arena, expr, cutter->forms, cutter->whole->axis_count);
    expr_visit(copy, finite_visit, &rewriting);
    expr_visit(copy, rewrite_visit, &rewriting);
    return copy;
}

/* Outside the bound it is the identity. */
static Expr *guarded(const TileCutter *cutter, Affine index, int64_t size, Reduce reduce, Expr *body)
{
    Dim *bound = NEW(cutter->arena, Dim);
    *bound = (Dim){index, size};
    return expr_guard(cutter->arena, body, bound, 1, reduce_identity(cutter->arena, reduce, body->type));
}

// ---- kernels ----

static Fusion *begin_kernel(TileCutter *cutter)
{
    Fusion *fusion = NEW(cutter->arena, Fusion);
    fusion->ops = NEW_ARRAY(cutter->arena, FusedOp, cutter->whole->op_count);
    memset(cutter->forms, 0, sizeof cutter->forms);
    return cutter->fusion = fusion;
}

static void add_axis(Fusion *fusion, Axis axis, bool reduction)
{
    axis.reduction = reduction;
    fusion->axes[fusion->axis_count++] = axis;
    fusion->spatial_count += !reduction;
}

static void add_op(TileCutter *cutter, int of, FusedOp op)
{
    cutter->position[of] = cutter->fusion->op_count;
    cutter->fusion->ops[cutter->fusion->op_count++] = op;
}

static Tensor *tile_tensor(const TileCutter *cutter, int op)
{
    const Fusion *whole = cutter->whole;
    Tensor *tensor = NEW(cutter->arena, Tensor);
    *tensor = (Tensor){.name = arena_printf(cutter->arena, "%s.tiles", whole->ops[op].out->name),
                       .id = -1,   // the plan that takes the pair numbers it
                       .dtype = cutter->sums[op].body->type,
                       .role = ROLE_TEMPORARY,
                       .rank = whole->spatial_count + 1};
    tensor->shape[0] = cutter->tiles;
    for (int a = 0; a < whole->spatial_count; a++)
        tensor->shape[a + 1] = whole->axes[a].extent;
    return tensor;
}

/* Behind the tile's axis all others stand as they did. */
static FusedOp moved_op(const TileCutter *cutter, int op)
{
    FusedOp moved = cutter->whole->ops[op];
    Expr *store = read_of(cutter, moved.store);
    moved.body = rewrite(cutter, moved.body, ROW_NONE);
    moved.store = expr_substitute(cutter->arena, store, cutter->forms, cutter->whole->axis_count)->access;
    moved.spatial <<= 1;
    moved.reduced <<= 1;
    moved.stored = false;
    return moved;
}

static void add_tile_result(TileCutter *cutter, int op)
{
    const RowSum *sum = &cutter->sums[op];
    Reduce reduce = cutter->whole->ops[op].reduce;
    Affine inside = affine_axis(cutter->column + 1);
    inside.coef[0] = -cutter->columns;
    cutter->tensors[op] = tile_tensor(cutter, op);
    add_op(cutter, op,
           (FusedOp){
               .out = cutter->tensors[op],
               .stored = true,
               .spatial = (1u << cutter->fusion->spatial_count) - 1,
               .reduced = 1u << (cutter->column + 1),
               .reduce = reduce,
               .body = guarded(cutter, inside, cutter->columns, reduce, rewrite(cutter, sum->body, sum->way)),
               .store = tile_access(cutter, cutter->tensors[op], 0, 1),
           });
}

static Fusion *partial_fusion(TileCutter *cutter)
{
    const Fusion *whole = cutter->whole;
    Fusion *partial = begin_kernel(cutter);
    partial->streams = true;
    add_axis(partial, (Axis){.name = "tile", .extent = cutter->tiles}, false);
    for (int a = 0; a < whole->axis_count; a++) {
        add_axis(partial, whole->axes[a], a >= whole->spatial_count);
        cutter->forms[a] = affine_axis(a + 1);
    }
    for (int i = 0; i < whole->op_count; i++)
        if (i < cutter->product_ops)
            add_op(cutter, i, moved_op(cutter, i));
        else if (cutter->sums[i].way != ROW_NONE)
            add_tile_result(cutter, i);
    return partial;
}

/* exp(p - m) times the tile's sum; what lies at m, of a tile that has it. */
static Expr *combined(TileCutter *cutter, int op)
{
    const RowSum *sum = &cutter->sums[op];
    int tile = cutter->whole->spatial_count;
    Expr *read = read_of(cutter, tile_access(cutter, cutter->tensors[op], tile, 0));
    if (sum->way == ROW_ALONE)
        return read;
    Expr *own = read_of(cutter, tile_access(cutter, cutter->tensors[sum->extreme], tile, 0));
    Expr *all = value_of(cutter, cutter->position[sum->extreme]);
    if (sum->way == ROW_PLACE)
        return expr_apply(cutter->arena, OP_SELECT, read->type,
                          expr_apply(cutter->arena, OP_EQ, DTYPE_B1, own, all, NULL), read,
                          rewrite(cutter, sum->missing, ROW_NONE));
    Expr *grown = expr_apply(cutter->arena, OP_SUB, DTYPE_F32, own, all, NULL);
    return expr_apply(cutter->arena, OP_MUL, DTYPE_F32, read,
                      expr_apply(cutter->arena, OP_EXP, DTYPE_F32, grown, NULL, NULL), NULL);
}

static Fusion *combine_fusion(TileCutter *cutter)
{
    const Fusion *whole = cutter->whole;
    Fusion *combine = begin_kernel(cutter);
    for (int a = 0; a < whole->spatial_count; a++) {
        add_axis(combine, whole->axes[a], false);
        cutter->forms[a] = affine_axis(a);
    }
    add_axis(combine, (Axis){.name = "tile", .extent = cutter->tiles}, true);
    for (int i = cutter->product_ops; i < whole->op_count; i++) {
        FusedOp op = whole->ops[i];
        if (op.spatial >> cutter->column & 1)   // elements are made where they are reduced
            continue;
        bool reduces = op.reduce != REDUCE_NONE;
        op.body = reduces ? combined(cutter, i) : rewrite(cutter, op.body, ROW_NONE);
        op.reduced = reduces ? 1u << whole->spatial_count : 0;
        add_op(cutter, i, op);
    }
    return combine;
}

// ---- definitions, for the reference evaluator ----

/* A tile's columns are an axis of their own: p[c, i] = max[k](l[i, c * 128 + k]). */
static void define(TileCutter *cutter, int op)
{
    const Fusion *whole = cutter->whole;
    const RowSum *sum = &cutter->sums[op];
    TensorOp *definition = NEW(cutter->arena, TensorOp);
    int rows = whole->spatial_count, own = rows + 1;
    *definition = (TensorOp){.out = cutter->tensors[op],
                             .spatial_count = own,
                             .axis_count = own + 1,
                             .reduce = whole->ops[op].reduce};
    definition->axes[0] = (Axis){.name = "tile", .extent = cutter->tiles};
    for (int a = 0; a < rows; a++)
        definition->axes[a + 1] = whole->axes[a];
    definition->axes[own] = (Axis){.name = "column", .extent = cutter->columns, .reduction = true};
    memset(cutter->forms, 0, sizeof cutter->forms);
    for (int a = 0; a < rows; a++)
        cutter->forms[a] = affine_axis(a + 1);
    cutter->forms[cutter->column] = affine_axis(own);
    cutter->forms[cutter->column].coef[0] = cutter->columns;
    cutter->fusion = NULL;
    definition->body = guarded(cutter, cutter->forms[cutter->column], whole->axes[cutter->column].extent,
                               definition->reduce, rewrite(cutter, sum->body, sum->way));
    cutter->result->definitions[cutter->result->definition_count++] = definition;
}

// ---- both ----

static void list_tensors(const TileCutter *cutter, Fusion *fusion)
{
    Tensor **made = NEW_ARRAY(cutter->arena, Tensor *, cutter->whole->op_count);
    int count = 0;
    for (int i = 0; i < cutter->whole->op_count; i++)
        if (cutter->tensors[i])
            made[count++] = cutter->tensors[i];
    fusion_choose_tensors_beside(cutter->arena, fusion, cutter->whole, made, count);
    fuse_axes(cutter->arena, fusion);
}

/* Elements have all rows and the column as axes, reductions all rows. Attention's kernels are none: their
   second product has an axis that its rows' maxima and sums lack. */
static bool is_of_rows(const Fusion *whole, int product_ops)
{
    uint32_t points = (1u << whole->spatial_count) - 1, column = points + 1;
    bool rows = whole->streams && product_ops > 0 && product_ops < whole->op_count;
    for (int i = 0; i < whole->op_count && rows; i++) {
        const FusedOp *op = &whole->ops[i];
        bool reduces = i >= product_ops && op->reduce != REDUCE_NONE;
        rows = reduces ? op->reduced == column && op->spatial == points
                       : !(op->spatial >> (whole->spatial_count + 1));
    }
    return rows && whole->ops[0].reduce == REDUCE_SUM && whole->axis_count < MAX_AXES;
}

RowTiles *row_tiles_cut(Arena *arena, const Fusion *whole, int64_t columns)
{
    TileCutter cutter = {.arena = arena, .whole = whole, .column = whole->spatial_count, .columns = columns};
    cutter.product_ops = row_tiles_product_ops(whole);
    if (!is_of_rows(whole, cutter.product_ops))
        return NULL;
    cutter.tiles = ceil_div(whole->axes[cutter.column].extent, columns);
    cutter.sums = row_sums_find(arena, whole, cutter.product_ops);
    if (!cutter.sums || cutter.tiles < 2)
        return NULL;
    cutter.tensors = NEW_ARRAY(arena, Tensor *, whole->op_count);
    cutter.position = NEW_ARRAY(arena, int, whole->op_count);
    RowTiles *result = cutter.result = NEW(arena, RowTiles);
    result->definitions = NEW_ARRAY(arena, const TensorOp *, whole->op_count);
    result->partial = partial_fusion(&cutter);
    result->combine = combine_fusion(&cutter);
    list_tensors(&cutter, result->partial);
    list_tensors(&cutter, result->combine);
    for (int i = 0; i < whole->op_count; i++)
        if (cutter.tensors[i])
            define(&cutter, i);
    fusion_verify(whole, "row_tiles_cut");
    fusion_verify(result->partial, "row_tiles_cut (partial)");
    fusion_verify(result->combine, "row_tiles_cut (combine)");
    return result;
}
