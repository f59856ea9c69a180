// attention: a softmax between two products, in one pass over the columns of the scores, on mma.sync.
#include "codegen/family/attention/attention.h"

#include <string.h>

#include "codegen/family/attention/families.h"
#include "model/calibration.h"

enum {
    ATOM_ROWS = 16,   // of a tile that tensor cores multiply
    PAD = 8,          // elements between lines in shared memory: other banks
    MAX_ROWS = 256,
    MAX_THREADS = 256,
    KEPT_TILES = 8,   // of q, in registers
    SPLITS_VARIANT = 5,
    CLUSTER_VARIANT = 6,
    OTHER_REGISTERS = 40,
    MASK_REGISTERS = 16,   // positions of rows and columns that a condition compares
};

static const struct {
    int16_t rows, columns;   // of a warp in a step, at most
    int16_t stages, splits;
} tiles[] = {{16, 32, 2, 1}, {16, 64, 2, 1}, {16, 128, 2, 1}, {32, 32, 2, 1}, {32, 64, 2, 1}, {16, 32, 3, 4}, {16, 32, 3, 4}};

// ---- kinds ----

/* As Shared of the template: tiles with padding, in whose place warps that share columns leave their sums, and a block of a
   cluster its own. */
static void lay_out(SharedLayout *layout, const KernelKind *kind, const RTile *block, const RTile *inner,
                    const DeviceSpec *device)
{
    enum { ELEMENT = 2 };
    (void)inner, (void)device;
    const AttentionTile *tile = kind->choice.value;
    int64_t depth = attention_wide(tile->depth) + PAD, width = attention_wide(tile->width) + PAD, rows = block->size[ATTENTION_ROW];
    layout_add(layout, "EVERYTHING", (rows * depth + tile->stages * block->size[ATTENTION_COLUMN] * (depth + width)) * ELEMENT);
}

/* See HELD of the template. */
static int64_t kept_tiles(const AttentionTile *tile)
{
    return tile->rows / ATOM_ROWS * (attention_wide(tile->depth) / ATOM_ROWS);
}

static bool keeps_q(const AttentionTile *tile) { return kept_tiles(tile) <= KEPT_TILES; }

/* Each step waits for its tiles, then copies those of a later one. */
static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const Attention *attention,
                             const TileSpace *space, const AttentionTile *tile)
{
    bool is_split = tile->splits > 1, async = attention->piece > 1;   // else through registers
    Schedule schedule = {.computes = COMPUTES_OWN,
                         .stages = tile->stages,
                         .independent = is_split,
                         .cluster = tile->cluster,
                         .cluster_axis = ATTENTION_COLUMN};
    if (attention_is_longest_last(attention))
        schedule.order = ORDER_BACKWARDS;
    schedule_load(&schedule, (Move){.tiles = ATTENTION_Q, .to = PLACE_SHARED, .async = async});
    if (keeps_q(tile))   // loaded in the first step
        schedule_load(&schedule, (Move){.tiles = ATTENTION_Q, .from = PLACE_SHARED});
    if (is_split) {   // warps synchronise once, for q; k is a step ahead of v
        schedule_wait(&schedule, tile->stages - 1);
        schedule_barrier(&schedule, SCOPE_BLOCK);
    }
    schedule_loop(&schedule, (Loop){.axis = ATTENTION_COLUMN});
    schedule_load(&schedule, (Move){.tiles = ATTENTION_K | ATTENTION_V,
                                    .to = PLACE_SHARED,
                                    .async = async,
                                    .ahead = (uint8_t)(tile->stages - 1)});
    schedule_wait(&schedule, tile->stages - 2);
    if (!is_split)
        schedule_barrier(&schedule, SCOPE_BLOCK);
    attention_schedule_step(&schedule, fusion, attention, space, attention_made_rows(tile), keeps_q(tile));
    schedule_end(&schedule);
    schedule_wait(&schedule, 0);
    if (is_split) {   // before slabs replace tiles; before slabs are read
        schedule_barrier(&schedule, SCOPE_BLOCK);
        schedule_barrier(&schedule, SCOPE_BLOCK);
    }
    attention_schedule_store(&schedule, fusion, attention, space, attention_made_rows(tile),
                             tile->cluster > 1 ? SCOPE_CLUSTER : is_split ? SCOPE_BLOCK : SCOPE_WARP, is_split);
    return schedule_copy(arena, &schedule);
}

/* Registers for scores, also those of the next step where warps split the columns, and for p, two in a register; for fragments
   of q that are held, maxima and sums of rows, addresses. */
static int register_overhead(const AttentionTile *tile, int warp, bool masks)
{
    const int scores = tile->rows * tile->columns / warp;
    return (int)(scores * (tile->splits > 1 ? 2 : 1) + scores / 2 + (masks ? MASK_REGISTERS : 0) +
                 4 * (keeps_q(tile) ? kept_tiles(tile) : tile->rows / ATOM_ROWS) +
                 8 * (tile->rows / ATOM_ROWS) + 4 * (tile->parts - 1) * (tile->rows / ATOM_ROWS) +
                 OTHER_REGISTERS);
}

/* Columns of a step: a warp with a pipeline of its own copies 8 KB of k and v a step, so that an SM has 64 KB in flight, and
   each warp has a step at least (tuning-log 162). */
static int16_t step_columns(const Attention *attention, int variant, int cluster)
{
    enum { STEP_ELEMENTS = 4096 };
    const AxisGroup *group = attention->group;
    int64_t of_column = attention_wide(group[ATTENTION_DEPTH].extent) + attention_wide(group[ATTENTION_WIDTH].extent);
    int64_t warps = tiles[variant].splits * cluster;
    int16_t columns = tiles[variant].columns;
    while (warps > 1 && columns > ATOM_ROWS &&
           (columns * of_column > STEP_ELEMENTS || columns * warps > group[ATTENTION_COLUMN].extent))
        columns /= 2;
    return columns;
}

static KernelKind tile_kind(Arena *arena, const TileSpace *space, const Fusion *fusion, const DeviceSpec *device,
                            const Attention *attention, int variant, int cluster)
{
    const AxisGroup *group = attention->group;
    AttentionTile tile = {
        .rows = tiles[variant].rows,
        .columns = step_columns(attention, variant, cluster),
        .depth = (int16_t)group[ATTENTION_DEPTH].extent,
        .width = (int16_t)group[ATTENTION_WIDTH].extent,
        .stages = tiles[variant].stages,
        .splits = tiles[variant].splits,
        .cluster = (int16_t)cluster,
        .kept_rows = (int16_t)smaller(group[ATTENTION_ROW].extent, tiles[variant].rows),
        .parts = (int16_t)attention->parts,
    };
    KernelKind kind = {
        .space = space_copy(arena, space),
        .name = attention_family.variants[variant],
        .threads.of_tile = device->warp_size,
        .threads.most = MAX_THREADS,
        .registers.accumulator_bits = 32,
        .registers.input_buffers = 1,
        .registers.most_inputs = 1,
        .registers.others = register_overhead(&tile, device->warp_size, attention->masks),
        .cost = &calibration.attention,
        .lay_out = lay_out,
        .shared.unstated = true,
    };
    kind_choose(arena, &kind, &tile, sizeof tile);
    attention_set_axes(&kind, &tile, tile.splits > 1 ? tile.rows : MAX_ROWS);
    kind.space->least_reducers = tile.splits > 1;
    kind.schedule = schedule_of(arena, fusion, attention, space, &tile);
    return kind;
}

/* One tile has all rows. Blocks of a cluster have a step for each of their warps and an SM each, which large clusters do not
   always find: two blocks on one SM end last (tuning-log 158). */
static bool cluster_fits(const DeviceSpec *device, const Attention *attention, int cluster)
{
    const AxisGroup *group = attention->group;
    int64_t columns = (int64_t)step_columns(attention, CLUSTER_VARIANT, cluster) * tiles[CLUSTER_VARIANT].splits;
    return group[ATTENTION_ROW].extent <= tiles[CLUSTER_VARIANT].rows && cluster <= device_most_cluster_blocks(device) &&
           cluster * columns <= group[ATTENTION_COLUMN].extent &&
           cluster * group[ATTENTION_BATCH].extent <= device_sms_of_clusters(device, cluster);
}

static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    const Attention *attention = view;
    if (!attention->registers || !device->has.async_copy)
        return 0;
    TileSpace *space = attention_space(arena, fusion, attention, attention->registers);
    int count = 0;
    for (int variant = 0; variant < SPLITS_VARIANT; variant++)
        variants[count++] = tile_kind(arena, space, fusion, device, attention, variant, 1);
    int64_t tiles_of_rows = ceil_div(attention->group[ATTENTION_ROW].extent, tiles[SPLITS_VARIANT].rows);
    /* An SM has one block at most: the more of its warps load columns the better (tuning-log 150). */
    if (tiles_of_rows * attention->group[ATTENTION_BATCH].extent <= device->sm_count)
        variants[count++] = tile_kind(arena, space, fusion, device, attention, SPLITS_VARIANT, 1);
    for (int cluster = 2; cluster_fits(device, attention, cluster); cluster *= 2)
        variants[count++] = tile_kind(arena, space, fusion, device, attention, CLUSTER_VARIANT, cluster);
    return count;
}

// ---- the parameter block ----

static void emit_factor(StrBuf *out, const Scope *known, const Attention *attention, const char *name,
                        const Access *access, int line, int element)
{
    Scope scope = *known;
    StrBuf body = strbuf_new(out->arena);
    scope.axis[axis_group_innermost(&attention->group[element])] = attention_flat[element];
    attention_emit_positions(&body, "    ", &scope, attention, 1u << ATTENTION_BATCH | 1u << line, access_axes(access));
    strbuf_printf(&body, "    return t.in%d + (%s);\n", input_position(scope.fusion, access->tensor),
                  offset_text(out->arena, access, scope.axis));
    const char *form = "DEVICE const Element *%s_at(const Tensors &t, Index batch, Index %s, Index %s)";
    attention_emit_function(out, arena_printf(out->arena, form, name, attention_flat[line], attention_flat[element]), &body);
}

static void emit_columns(StrBuf *out, const Scope *scope, const Attention *attention)
{
    StrBuf body = strbuf_new(out->arena);
    strbuf_printf(&body, "    return {%s};\n", attention_emit_columns(&body, scope, attention, 0));
    strbuf_puts(out, "\n// The columns that any row of a tile of Y needs, and that all need.\n"
                     "struct Columns { Index begin, end, clear_begin, clear_end; };\n");
    attention_emit_function(out, "DEVICE Columns columns_of(Index batch, Index row0)", &body);
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    const Attention *attention = plan->view;
    Scope scope = attention_scope(plan);
    attention_emit_sizes(out, plan, &scope);
    emit_factor(out, &scope, attention, "q", attention->q, ATTENTION_ROW, ATTENTION_DEPTH);
    emit_factor(out, &scope, attention, "k", attention->k, ATTENTION_COLUMN, ATTENTION_DEPTH);
    emit_factor(out, &scope, attention, "v", attention->v, ATTENTION_COLUMN, ATTENTION_WIDTH);
    emit_columns(out, &scope, attention);
    attention_emit_functions(out, &scope, attention);
}

const Family attention_family = {
    .name = "attention",
    .template_path = "templates/attention.cu",
    .variants =
        (const char *const[]){"16 rows, 32 columns", "16 rows, 64 columns", "16 rows, 128 columns",
                              "32 rows, 32 columns", "32 rows, 64 columns", "4 warps",
                              "clusters of 4 warps", NULL},
    .streams = true,
    .fetches = true,
    .view = attention_packed_view,
    .kinds = kinds,
    .emit = emit,
    .work = attention_work,
};
