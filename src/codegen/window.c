// window: every output combines the elements under a window that slides over an input: pooling, depthwise filters.
#include <inttypes.h>

#include "codegen/emit.h"
#include "codegen/space.h"

enum {
    MAX_TAPS = 4096,   // points of a window; beyond, threads had better share them
    MAX_TILE = 4,      // outputs of a thread
    RUN = 32,   // outputs of a block along a line, at least: neighbouring threads read neighbouring memory
    MAX_THREADS = 1024,
    MANY_LINES = 4096,   // more lines than any device has places for; then
    LINES_OF_BLOCK = 4   // a block takes several: an H200 starts about one block a clock
};

/* Space axes. */
enum { OUTER, INNER, TAP };

static bool matches(const Fusion *fusion, const DeviceSpec *device)
{
    (void)device;
    if (!fusion_is_reduction(fusion))
        return false;
    for (int a = fusion->spatial_count; a < fusion->axis_count; a++)
        if (!fusion_axis_is_tap(fusion, a))
            return false;
    return reduction_points(fusion) <= MAX_TAPS && count_bit_outputs(fusion) == 0;
}

// ---- rules ----

/* What a block reads of a tensor, as lines of its innermost dimension: `per_line` of them go with each line of outputs, and
   along a line lie stride * (outputs - 1) + taps elements. All taps widen the line, although those of other dimensions ask
   for more lines: 3 x 3 taps make 9, not 3. Neighbouring blocks have those lines in L2. */
static DataTile window_tile(const TileSpace *space, const Access *access, const Fusion *fusion,
                            const DeviceSpec *device)
{
    DataTile tile = {.element_bits = dtype_info[access->tensor->dtype].bits, .scatter = 1};
    if (access->rank == 0)
        return tile;
    int inner = fusion->spatial_count - 1;
    const Dim *last = &access->dims[access->rank - 1];
    int64_t lines = 1;
    bool has_outer = false, taps_along = false;
    for (int d = 0; d < access->rank - 1; d++)
        lines *= access->dims[d].size;
    for (int a = 0; a < inner; a++)
        has_outer |= access_offset(access).coef[a] != 0;
    for (int a = fusion->spatial_count; a < fusion->axis_count; a++)
        taps_along |= last->index.coef[a] != 0;

    int64_t per_line = lines / space->axes[OUTER].extent;
    Affine along = {.constant = 0};
    along.coef[INNER] = last->index.coef[inner] < 0 ? -last->index.coef[inner] : last->index.coef[inner];
    along.coef[TAP] = taps_along;
    if (has_outer) {
        Affine across = {.constant = 0};
        across.coef[OUTER] = per_line > 1 ? per_line : 1;
        tile.dims[tile.rank++] = (Dim){across, lines};
    }
    tile.dims[tile.rank++] = (Dim){along, last->size};
    if (!along.coef[INNER])
        tile.scatter = access_scatter(access, fusion, inner, device);
    return tile;
}

static void add_tiles(TileSpace *space, const Fusion *fusion, const DeviceSpec *device)
{
    FusedAccess found[MAX_DATA_TILES];
    int count = fusion_accesses(fusion, found, MAX_DATA_TILES - fusion->output_count);
    for (int i = 0; i < count; i++)
        space->tiles[space->tile_count++] = window_tile(space, found[i].access, fusion, device);
    for (int i = 0; i < fusion->op_count && space->tile_count < MAX_DATA_TILES; i++) {
        if (!fusion->ops[i].stored)
            continue;
        DataTile tile = window_tile(space, &fusion->ops[i].store, fusion, device);
        tile.output = true;
        space->tiles[space->tile_count++] = tile;
    }
}

static int rules(const Fusion *fusion, const DeviceSpec *device, TileRules *variants)
{
    TileRules *rules = &variants[0];
    *rules = (TileRules){.space = space_new(fusion, device), .variant_name = "window", .stages = 1};
    int64_t inner = fusion->axes[fusion->spatial_count - 1].extent, taps = reduction_points(fusion);
    space_add_axis(&rules->space, "outer", spatial_points(fusion) / inner, false);
    space_add_axis(&rules->space, "inner", inner, false);
    space_add_axis(&rules->space, "tap", taps, true);
    add_tiles(&rules->space, fusion, device);

    rules->rule[LEVEL_REGISTER][OUTER] = (AxisRule){1, 1};
    rules->rule[LEVEL_REGISTER][INNER] = (AxisRule){1, MAX_TILE};
    rules->rule[LEVEL_REGISTER][TAP] = (AxisRule){1, 1};
    int64_t lines = rules->space.axes[OUTER].extent >= MANY_LINES ? LINES_OF_BLOCK : 1;
    rules->rule[LEVEL_SHARED][OUTER] = (AxisRule){lines, MAX_THREADS};
    rules->rule[LEVEL_SHARED][INNER] = (AxisRule){inner >= RUN ? RUN : 1, MAX_TILE * MAX_THREADS};
    rules->rule[LEVEL_SHARED][TAP] = (AxisRule){taps, taps};
    rules->accumulator_bits = dtype_info[fusion->ops[0].body->type].bits;
    rules->register_overhead = 32;
    rules->input_buffers = 1;
    return 1;
}

// ---- the parameter block ----

static void emit_constants(StrBuf *out, const KernelPlan *plan)
{
    const FusedOp *op = &plan->fusion->ops[0];
    const RTile *problem = &plan->program->tile[LEVEL_GLOBAL], *block = &plan->program->tile[LEVEL_SHARED];
    int64_t each = plan->program->tile[LEVEL_REGISTER].size[INNER];
    strbuf_printf(out, "using Reduction = %s;\n", combiner(op->reduce));
    strbuf_printf(out, "using A = %s;   // what totals are accumulated in\n", value_type(op->body->type));
    strbuf_printf(out,
                  "constexpr Index OUTER = %" PRId64 ", INNER = %" PRId64
                  ";   // lines of outputs, outputs of a line\n",
                  problem->size[OUTER], problem->size[INNER]);
    strbuf_printf(out, "constexpr int TAPS = %" PRId64 ";   // points of a window\n", problem->size[TAP]);
    strbuf_printf(out, "constexpr int THREADS = %d;\n", plan->threads);
    strbuf_printf(out,
                  "constexpr int TO = %" PRId64 ", TI = %" PRId64
                  ";   // threads of a block: lines, along a line\n",
                  block->size[OUTER], block->size[INNER] / each);
    strbuf_printf(out, "constexpr int TILE = %" PRId64 ";   // outputs of a thread, TI apart\n", each);
}

static void emit_term(StrBuf *out, const Scope *scope)
{
    const Fusion *fusion = scope->fusion;
    strbuf_puts(
        out, "\n__device__ __forceinline__ A term(const Tensors &t, Index outer, Index inner, Index tap)\n{\n"
             "    (void)t, (void)outer, (void)inner, (void)tap;\n");
    emit_positions(out, "    ", "outer", scope, 0, fusion->spatial_count - 1);
    emit_positions(out, "    ", "tap", scope, fusion->spatial_count, fusion->axis_count);
    strbuf_puts(out, "    return ");
    emit_expr(out, scope, fusion->ops[0].body);
    strbuf_puts(out, ";\n}\n");
}

static void emit_finish(StrBuf *out, const Scope *scope)
{
    strbuf_puts(
        out,
        "\n__device__ __forceinline__ void finish(const Tensors &t, Index outer, Index inner, A total)\n{\n"
        "    (void)outer, (void)inner;\n");
    emit_positions(out, "    ", "outer", scope, 0, scope->fusion->spatial_count - 1);
    emit_epilogue(out, "    ", scope, "total");
    emit_stores(out, "    ", scope);
    strbuf_puts(out, "}\n");
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    Scope scope = {.fusion = plan->fusion, .wide = plan->wide};
    for (int a = 0; a < plan->fusion->axis_count; a++)
        scope.axis[a] = axis_names[a];
    scope.axis[plan->fusion->spatial_count - 1] = "inner";
    emit_constants(out, plan);
    emit_term(out, &scope);
    emit_finish(out, &scope);
}

const Family window_family = {
    .name = "window",
    .template_path = "templates/window.cu",
    .matches = matches,
    .rules = rules,
    .emit = emit,
};
