#include "codegen/family/gemm/product_rows.h"

#include <string.h>

#include "base/checked.h"
#include "rtile/space.h"

enum { LANES_OF_A_ROW = 4, MAX_REDUCTIONS = 32 };

// ---- structure ----

static int only_axis(uint32_t axes) { return axes && !(axes & (axes - 1)) ? __builtin_ctz(axes) : -1; }

/* 0 <= column - columns * tile < columns */
static bool is_tile_bound(const Guard *guard, int tile, int column)
{
    const Dim *bound = guard->bounds;
    Affine wanted = affine_axis(column);
    wanted.coef[tile] = -bound->size;
    return guard->count == 1 && affine_equal(&bound->index, &wanted);
}

/* The product's axes as they were, without the tile's; the column behind the rows. */
static void place_axes(const Fusion *fusion, ProductRows *rows, int tile, int column, Affine *forms)
{
    Fusion *product = &rows->product;
    for (int pass = 0; pass < 3; pass++)   // rows, the column, terms
        for (int a = 0; a < fusion->axis_count; a++) {
            int own = a == column ? 1 : a < fusion->spatial_count ? 0 : 2;
            if (own != pass || a == tile)
                continue;
            forms[a] = affine_axis(product->axis_count);
            product->axes[product->axis_count] = fusion->axes[a];
            product->axes[product->axis_count++].reduction = pass == 2;
            product->spatial_count += pass < 2;
        }
    rows->tile = product->axis_count;
    rows->column = product->spatial_count - 1;
    forms[tile] = affine_axis(rows->tile);
}

static uint32_t place_mask(uint32_t mask, const Affine *forms, int axis_count)
{
    uint32_t placed = 0;
    for (int a = 0; a < axis_count; a++)
        if (mask >> a & 1)
            placed |= 1u << affine_single_axis(&forms[a]);
    return placed;
}

static FusedOp placed_op(Arena *arena, const Fusion *fusion, const FusedOp *op, const Affine *forms)
{
    FusedOp placed = *op;
    const Expr *store = expr_access(arena, op->body->type, op->store);
    const Expr *body = op->reduced && op->body->kind == EXPR_GUARD ? op->body->guard.body : op->body;
    placed.body = expr_substitute(arena, body, forms, fusion->axis_count);
    placed.store = expr_substitute(arena, store, forms, fusion->axis_count)->access;
    placed.spatial = place_mask(op->spatial, forms, fusion->axis_count);
    placed.reduced = place_mask(op->reduced, forms, fusion->axis_count);
    return placed;
}

typedef struct RowValues {
    int first;      // op that is a reduction of rows
    int element;    // the op of elements that is read; -1: none so far
    bool several;   // of these
    bool of_row;    // a row's result is
} RowValues;

static void value_visit(Expr *expr, void *context)
{
    RowValues *search = context;
    if (expr->kind != EXPR_VALUE)
        return;
    if (expr->value >= search->first) {
        search->of_row = true;
        return;
    }
    search->several |= search->element >= 0 && search->element != expr->value;
    search->element = expr->value;
}

/* One value of each element is what all reductions are made of. */
static bool find_values(ProductRows *rows)
{
    RowValues search = {.first = rows->product.op_count, .element = -1};
    for (int i = search.first; i < rows->all.op_count; i++) {
        search.of_row = false;
        expr_visit(rows->all.ops[i].body, value_visit, &search);
        *(search.of_row ? &rows->others : &rows->extremes) |= UINT64_C(1) << i;
    }
    rows->value = search.element;
    return search.element >= 0 && !search.several;
}

static int elements_of(const Fusion *fusion)
{
    int count = 0;
    while (count < fusion->op_count && fusion->ops[count].spatial == fusion->ops[0].spatial)
        count++;
    return count;
}

/* All ops behind the elements reduce the columns of a tile. */
static bool reduces_tiles(const Fusion *fusion, int elements, int tile, int column)
{
    for (int i = elements; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (op->reduce == REDUCE_NONE || only_axis(op->reduced) != column || op->body->kind != EXPR_GUARD ||
            !is_tile_bound(&op->body->guard, tile, column))
            return false;
    }
    return elements < fusion->op_count && fusion->op_count <= MAX_REDUCTIONS;
}

const ProductRows *product_rows_find(Arena *arena, const Fusion *fusion)
{
    int elements = elements_of(fusion);
    uint32_t spatial = (1u << fusion->spatial_count) - 1, own = fusion->ops[0].spatial;
    int tile = only_axis(spatial & ~own), column = only_axis(own & ~spatial);
    if (tile < 0 || column < 0 || !reduces_tiles(fusion, elements, tile, column))
        return NULL;
    ProductRows *rows = NEW(arena, ProductRows);
    Affine forms[MAX_AXES] = {0};
    rows->product = *fusion;
    rows->product.streams = false;
    rows->product.axis_count = rows->product.spatial_count = 0;
    place_axes(fusion, rows, tile, column, forms);
    rows->product.ops = NEW_ARRAY(arena, FusedOp, fusion->op_count);
    for (int i = 0; i < fusion->op_count; i++)
        rows->product.ops[i] = placed_op(arena, fusion, &fusion->ops[i], forms);
    rows->columns = fusion->ops[elements].body->guard.bounds[0].size;
    rows->all = rows->product;
    rows->product.op_count = elements;
    return find_values(rows) ? rows : NULL;
}

bool product_rows_fit(const ProductRows *rows, const Product *product)
{
    const AxisGroup *columns = &product->group[GROUP_N];
    const FusedOp *value = &rows->all.ops[rows->value], *sum = &rows->all.ops[0];
    return columns->count == 1 && columns->axes[0] == rows->column && !product->pixels && !product->guard &&
           sum->body->type == DTYPE_F32 && dtype_info[value->out->dtype].compute == DTYPE_F32;
}

// ---- tiles and items ----

/* Positions of a tile's columns share an element. */
static DataTile tile_of(const ProductRows *rows, const Product *product, int op)
{
    static const int groups[] = {GROUP_N, GROUP_BATCH, GROUP_M};
    DataTile tile = data_tile_of(rows->all.ops[op].out);
    tile.output = true;
    for (int d = 0; d < 3; d++)
        tile.dims[tile.rank++] = (Dim){affine_axis(groups[d]), product->group[groups[d]].extent};
    tile.repeats[0] = (Repeats){
        .run = rows->columns, .cycle = ceil_div(product->group[GROUP_N].extent, rows->columns), .again = 1};
    const AxisGroup *batch = &product->group[GROUP_BATCH], *m = &product->group[GROUP_M];
    tile.apart = batch->count && axis_group_innermost(batch) > m->axes[0];
    return tile;
}

void product_rows_add(KernelKind *kind, const ProductRows *reduced, const Product *product)
{
    TileSpace *space = kind->space;
    FusionWork work = fusion_work(&reduced->all);
    space->flops = work.flops;
    space->special = work.special;
    memset(space->fused, 0, sizeof space->fused);   // outputs have no columns
    for (int i = reduced->product.op_count; i < reduced->all.op_count && space->tile_count < MAX_DATA_TILES;
         i++)
        space->tiles[space->tile_count++] = tile_of(reduced, product, i);
    kind->space->rule[LEVEL_REGISTER][GROUP_N] = (AxisRule){reduced->columns, reduced->columns};
}

/* What lanes have of their columns, then together. */
static void schedule_pass(Schedule *schedule, uint64_t ops)
{
    if (!ops)
        return;
    schedule_reduce(schedule, ops);
    schedule_exchange(
        schedule,
        (Exchange){.ops = ops, .scope = SCOPE_WARP, .combine = COMBINE_QUADS, .width = LANES_OF_A_ROW});
}

void product_rows_schedule(Schedule *schedule, const ProductRows *rows, const TileSpace *space)
{
    schedule_load(schedule, (Move){.tiles = product_read_beside(space)});
    schedule_map(schedule, schedule_ops(&rows->product, false));
    schedule_pass(schedule, rows->extremes);
    schedule_pass(schedule, rows->others);
    schedule_store(schedule, (Move){.tiles = space_outputs(space)});
}

static void add_combining(ItemWork *work, Reduce reduce, int64_t times)
{
    count_add(reduce == REDUCE_SUM    ? &work->additions
              : reduce == REDUCE_PROD ? &work->multiplications
                                      : &work->comparisons,
              times);
}

bool product_rows_work(const void *view, const CountedItem *at, ItemWork *work)
{
    const ProductRows *rows = ((const Products *)view)->rows;
    const Item *item = at->item;
    if (!rows)
        return false;
    bool meets = item->kind == ITEM_EXCHANGE && item->exchange.combine == COMBINE_QUADS;
    if (item->kind != ITEM_MAP && item->kind != ITEM_REDUCE && !meets)
        return false;
    uint64_t ops = meets ? item->exchange.ops : item->arithmetic.ops;
    int64_t inside = at->times * at->count[GROUP_BATCH] * at->count[GROUP_M] * at->count[GROUP_N];
    int64_t lanes = at->times * at->shared->size[GROUP_M] * LANES_OF_A_ROW *
                    ceil_div(at->count[GROUP_N], at->inner->size[GROUP_N]);
    for (int i = 0; i < rows->all.op_count; i++) {
        const FusedOp *op = &rows->all.ops[i];
        ExprWork of = expr_work(op->body);
        if (!(ops >> i & 1))
            continue;
        if (!meets)
            work_add_values(work, &of, inside);
        if (op->reduce != REDUCE_NONE)
            add_combining(work, op->reduce, meets ? 2 * lanes : inside);
    }
    return true;
}

// ---- text ----

static Scope scope_of_rows(const KernelPlan *plan, const ProductRows *rows)
{
    Scope scope = scope_of(plan);
    scope.fusion = &rows->all;
    scope.axis[rows->tile] = "tile";
    return scope;
}

static void emit_positions_of(StrBuf *out, const Scope *scope, const Product *product, uint32_t used)
{
    for (int g = GROUP_BATCH; g <= GROUP_N; g++)
        emit_group_positions(out, "        ", group_variable(g), scope, &product->group[g], used);
}

static void emit_point(StrBuf *out, const Scope *scope, const ProductRows *rows, const Product *product)
{
    strbuf_puts(out, "\n    static __device__ __forceinline__ Value point(const Tensors &t, Index batch, "
                     "Index m, Index n, "
                     "Value total)\n    {\n");
    emit_positions_of(out, scope, product, epilogue_axes(&rows->product));
    emit_reduced_op(out, "        ", scope, 0, "total");
    for (int i = 1; i <= rows->value; i++)
        emit_pointwise_op(out, "        ", scope, i);
    strbuf_printf(out, "        return v%d;\n    }\n", rows->value);
}

static uint32_t axes_of(const ProductRows *rows, uint64_t ops)
{
    uint32_t axes = 0;
    for (int i = rows->product.op_count; i < rows->all.op_count; i++)
        axes |= ops >> i & 1 ? expr_axes(rows->all.ops[i].body) : 0;
    return axes;
}

static void emit_add(StrBuf *out, const Scope *scope, const ProductRows *rows, const Product *product,
                     int pass, uint64_t ops)
{
    strbuf_printf(
        out,
        "    __device__ __forceinline__ void add(Pass<%d>, const Tensors &t, Index batch, Index m, Index n, "
        "Value v%d)\n    {\n",
        pass, rows->value);
    emit_positions_of(out, scope, product, axes_of(rows, ops));
    for (int i = rows->product.op_count; i < rows->all.op_count; i++)
        if (ops >> i & 1) {
            const FusedOp *op = &rows->all.ops[i];
            strbuf_printf(out, "        v%d = %s::combine(v%d, %s);\n", i, combiner(op->reduce), i,
                          expr_text(out->arena, scope, op->body));
        }
    strbuf_puts(out, "    }\n");
}

static void emit_meet(StrBuf *out, const ProductRows *rows, int pass, uint64_t ops)
{
    strbuf_printf(out, "    __device__ __forceinline__ void meet(Pass<%d>)\n    {\n", pass);
    for (int i = rows->product.op_count; i < rows->all.op_count; i++)
        if (ops >> i & 1)
            strbuf_printf(out, "        v%d = warp_reduce<%s>(v%d, %d);\n", i,
                          combiner(rows->all.ops[i].reduce), i, LANES_OF_A_ROW);
    strbuf_puts(out, "    }\n");
}

static void emit_leave(StrBuf *out, const Scope *scope, const ProductRows *rows, const Product *product)
{
    uint32_t axes = 0;
    for (int i = rows->product.op_count; i < rows->all.op_count; i++)
        axes |= access_axes(&rows->all.ops[i].store);
    strbuf_puts(out, "    __device__ __forceinline__ void leave(const Tensors &t, Index batch, Index m, "
                     "Index tile) const\n    {\n");
    emit_positions_of(out, scope, product, axes & ~(1u << rows->tile));
    for (int i = rows->product.op_count; i < rows->all.op_count; i++) {
        strbuf_printf(out, "        store(t.out%d, %s, v%d);\n", output_position(&rows->all, rows->all.ops[i].out),
                      offset_text(out->arena, &rows->all.ops[i].store, scope->axis), i);
    }
    strbuf_puts(out, "    }\n");
}

static void emit_members(StrBuf *out, const ProductRows *rows)
{
    for (int i = rows->product.op_count; i < rows->all.op_count; i++) {
        const FusedOp *op = &rows->all.ops[i];
        const char *type = value_type(op->body->type);
        strbuf_printf(out, "    %s v%d = %s::identity<%s>();\n", type, i, combiner(op->reduce), type);
    }
    STATIC_CONSTEXPR(out, "int PASSES", "the second pass reduces functions of the first results", rows->others ? 2 : 1);
}

void product_rows_emit(StrBuf *out, const KernelPlan *plan, const ProductRows *rows, const Product *product)
{
    Scope scope = scope_of_rows(plan, rows);
    strbuf_puts(
        out, "\n// A row's results over the columns of a tile, and how they are reduced.\nstruct Row {\n");
    emit_members(out, rows);
    emit_point(out, &scope, rows, product);
    for (int pass = 0; pass < (rows->others ? 2 : 1); pass++) {
        uint64_t ops = pass ? rows->others : rows->extremes;
        emit_add(out, &scope, rows, product, pass, ops);
        emit_meet(out, rows, pass, ops);
    }
    emit_leave(out, &scope, rows, product);
    strbuf_puts(out, "};\n");
}
