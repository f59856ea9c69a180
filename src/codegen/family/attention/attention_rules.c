// What the families of this room say alike of their tiles and steps.
#include "codegen/family/attention/attention.h"
#include "rtile/space.h"

enum { ROWS_OF_A_LANE = 8 };   // a lane has one of so many

/* The tensor's elements lie in memory as those groups do, outermost first. */
static bool is_picture(const Fusion *fusion, const Access *access, const int *groups, int count,
                       const Attention *attention)
{
    Affine offset = access_offset(access);
    int64_t stride = 1;
    for (int d = count - 1; d >= 0; d--) {
        const AxisGroup *group = &attention->group[groups[d]];
        for (int i = group->count - 1; i >= 0; i--) {
            if (offset.coef[group->axes[i]] != stride)
                return false;
            stride *= fusion->axes[group->axes[i]].extent;
        }
    }
    return offset.constant == 0;
}

static DataTile tile_of(const Fusion *fusion, const Access *access, const int *groups, int count,
                        const Attention *attention)
{
    DataTile tile = data_tile_of(access->tensor);
    tile.apart = !is_picture(fusion, access, groups, count, attention);
    for (int i = 0; i < count; i++)
        tile.dims[tile.rank++] = (Dim){affine_axis(groups[i]), attention->group[groups[i]].extent};
    return tile;
}

static void add_factor(TileSpace *space, const Fusion *fusion, const Attention *attention,
                       const Access *access, int line, int element)
{
    DataTile tile = tile_of(fusion, access, (int[]){ATTENTION_BATCH, line, element}, 3, attention);
    tile.staged = true;
    tile.staged_inner = 2;
    tile.vector = attention->piece;
    space->tiles[space->tile_count++] = tile;
}

/* Heads, or samples, that have the same bias. */
static void add_repeats(DataTile *tile, const Fusion *fusion, const Attention *attention, const Access *access,
                        const int *groups, int count)
{
    Affine offset = access_offset(access);
    for (int i = 0; i < count && i < MAX_REPEATED; i++) {
        const AxisGroup *group = &attention->group[groups[i]];
        Repeats repeats = axes_repeats(fusion, &offset, group->axes, group->count);
        if (repeats.run > 1 || repeats.again > 1)
            tile->repeats[i] = repeats;
    }
}

/* Cycles of L1 for the scores of a warp over those of their bytes (DataTile.lines): its lanes read every second column of
   eight rows, mostly from the same banks. Masks of bits are read as words. */
static double lane_lines(const Attention *attention, const Access *access)
{
    enum { ROWS = 8, COLUMNS = 4, APART = 2, LANES = ROWS * COLUMNS, BANKS = 32, WORD = 32 };
    Affine offset = access_offset(access);
    int64_t words[LANES], bits = dtype_info[access->tensor->dtype].bits,
            line = axis_group_stride(&attention->group[ATTENTION_ROW], &offset) * bits,
            column = axis_group_stride(&attention->group[ATTENTION_COLUMN], &offset) * bits * APART;
    int most = 1;
    for (int lane = 0; lane < LANES; lane++) {
        int same = 1;
        words[lane] = (lane / COLUMNS * line + lane % COLUMNS * column) / WORD;
        for (int other = 0; other < lane && same; other++)
            same = words[other] == words[lane] ? 0 : same + (words[other] % BANKS == words[lane] % BANKS);
        most = same > most ? same : most;
    }
    return (double)most * BANKS * WORD / (double)(LANES * bits);
}

/* Biases and masks, and what else is read beside the factors: each with the groups that move it. */
static void add_others(TileSpace *space, const Fusion *fusion, const Attention *attention)
{
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    for (int i = 0; i < count && space->tile_count < MAX_DATA_TILES / 2; i++) {
        const Access *access = found[i].access;
        int groups[ATTENTION_GROUPS], used = 0;
        if (access == attention->q || access == attention->k || access == attention->v)
            continue;
        for (int g = 0; g < ATTENTION_GROUPS; g++)
            if (access_axes(access) & axis_group_mask(&attention->group[g]))
                groups[used++] = g;
        DataTile *tile = &space->tiles[space->tile_count++];
        *tile = tile_of(fusion, access, groups, used, attention);
        add_repeats(tile, fusion, attention, access, groups, used);
        if (access_axes(access) & axis_group_mask(&attention->group[ATTENTION_COLUMN]))
            tile->lines = lane_lines(attention, access);
    }
}

static void add_outputs(TileSpace *space, const Fusion *fusion, const Attention *attention)
{
    for (int i = 0; i < fusion->op_count && space->tile_count < MAX_DATA_TILES; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (!op->stored)
            continue;
        int count = op->spatial == attention->results ? 3 : 2;
        DataTile tile = tile_of(fusion, &op->store, (int[]){ATTENTION_BATCH, ATTENTION_ROW, ATTENTION_WIDTH},
                                count, attention);
        tile.output = true;
        space->tiles[space->tile_count++] = tile;
    }
}

/* A limit as a line over flat positions of rows; batches count as the one in the middle. */
static void add_line(const Fusion *fusion, const Attention *attention, const Affine *limit, double *at, double *step)
{
    const AxisGroup *rows = &attention->group[ATTENTION_ROW];
    *at = (double)limit->constant;
    *step = rows->count ? (double)limit->coef[rows->axes[0]] * (double)fusion->axes[rows->axes[0]].extent / (double)rows->extent : 0;
    for (int a = 0; a < fusion->axis_count; a++)
        if (!rows->count || a != rows->axes[0])
            *at += (double)limit->coef[a] * (double)(fusion->axes[a].extent - 1) / 2;
}

/* Which columns rows need. Of several limits that grow alike the tightest holds, of others the first one is taken. */
static Band band_of(const Fusion *fusion, const Attention *attention)
{
    Band band = {.exists = attention->masks, .axis = ATTENTION_COLUMN, .along = ATTENTION_ROW};
    double at, step;
    band.end = (double)attention->group[ATTENTION_COLUMN].extent;
    for (int i = 0; i < attention->first_count; i++) {
        add_line(fusion, attention, &attention->first[i], &at, &step);
        if (i == 0 || (step == band.begin_step && at > band.begin))
            band.begin = at, band.begin_step = step;
    }
    for (int i = 0; i < attention->end_count; i++) {
        add_line(fusion, attention, &attention->end[i], &at, &step);
        if (i == 0 || (step == band.end_step && at < band.end))
            band.end = at, band.end_step = step;
    }
    return band;
}

TileSpace *attention_space(Arena *arena, const Fusion *fusion, const Attention *attention, const Atom *atom)
{
    static const char *const names[ATTENTION_GROUPS] = {"batch", "row", "column", "depth", "width"};
    TileSpace *space = space_new(arena, fusion);
    for (int g = 0; g < ATTENTION_GROUPS; g++)
        space_add_axis(space, names[g], attention->group[g].extent,
                       g == ATTENTION_COLUMN || g == ATTENTION_DEPTH);
    int64_t depth = attention->group[ATTENTION_DEPTH].extent, width = attention->group[ATTENTION_WIDTH].extent,
            products = attention_wide(depth) + attention->parts * attention_wide(width);
    space->unit = atom->unit;
    space->band = band_of(fusion, attention);
    space->flops = 2 * (double)products / (double)(depth * width);
    space->special = 1 / (double)(depth * width);
    add_factor(space, fusion, attention, attention->q, ATTENTION_ROW, ATTENTION_DEPTH);
    add_factor(space, fusion, attention, attention->k, ATTENTION_COLUMN, ATTENTION_DEPTH);
    add_factor(space, fusion, attention, attention->v, ATTENTION_COLUMN, ATTENTION_WIDTH);
    add_others(space, fusion, attention);
    add_outputs(space, fusion, attention);
    return space;
}

void attention_set_axes(KernelKind *kind, const AttentionTile *tile, int64_t block_rows)
{
    const int64_t fixed[ATTENTION_GROUPS] = {1, tile->rows, tile->columns, tile->depth, tile->width};
    const int64_t columns = (int64_t)tile->columns * tile->splits;
    for (int g = 0; g < ATTENTION_GROUPS; g++)
        space_fix_axis(kind->space, g, fixed[g], fixed[g]);
    kind->space->rule[LEVEL_SHARED][ATTENTION_COLUMN] = axis_fixed(columns);
    kind->space->rule[LEVEL_SHARED][ATTENTION_ROW] = (AxisRule){tile->groups ? block_rows : tile->rows, block_rows};
}

/* Ops of scores and their columns, reductions or not. */
static uint64_t ops_of(const Fusion *fusion, uint32_t axes, bool reductions)
{
    uint64_t ops = 0;
    for (int i = 0; i < fusion->op_count; i++)
        if ((fusion->ops[i].reduce != REDUCE_NONE) == reductions && fusion->ops[i].spatial == axes)
            ops |= UINT64_C(1) << (i < 63 ? i : 63);
    return ops;
}

/* The four lanes that have parts of a row find its largest score, or its sum. */
static void schedule_lanes(Schedule *schedule, uint64_t ops, int rows)
{
    enum { LANES = 4 };
    schedule_exchange(schedule, (Exchange){.ops = ops,
                                           .scope = SCOPE_WARP,
                                           .combine = COMBINE_LANES,
                                           .values = (uint8_t)(rows / ROWS_OF_A_LANE),
                                           .width = LANES});
}

void attention_schedule_step(Schedule *schedule, const Fusion *fusion, const Attention *attention,
                             const TileSpace *space, int warp_rows, bool keeps_q)
{
    uint32_t others = space_inputs(space) & ~(uint32_t)ATTENTION_FACTORS, staged = others & space_staged(space);
    schedule_load(schedule, (Move){.tiles = ATTENTION_K | (keeps_q ? 0 : ATTENTION_Q), .from = PLACE_SHARED});
    schedule_product(schedule, 1);
    schedule_load(schedule, (Move){.tiles = staged, .from = PLACE_SHARED});
    schedule_load(schedule, (Move){.tiles = others & ~staged});
    schedule_map(schedule, ops_of(fusion, attention->scores, false));
    schedule_reduce(schedule, ops_of(fusion, attention->rows, true));
    schedule_lanes(schedule, UINT64_C(1) << attention->maximum, warp_rows);
    schedule_load(schedule, (Move){.tiles = ATTENTION_V, .from = PLACE_SHARED});
    schedule_product(schedule, UINT64_C(1) << attention->sum);
}

int attention_made_rows(const AttentionTile *tile)
{
    enum { HALF = 8 };   // rows of a tile of 16
    return tile->kept_rows <= HALF ? tile->rows / 2 : tile->rows;
}

void attention_schedule_store(Schedule *schedule, const Fusion *fusion, const Attention *attention,
                              const TileSpace *space, int warp_rows, ThreadScope scope, bool staged)
{
    enum { COLUMNS_OF_TWO = 8 };
    int64_t columns = attention_wide(attention->group[ATTENTION_WIDTH].extent);
    schedule_lanes(schedule, ops_of(fusion, attention->rows, true) & ~(UINT64_C(1) << attention->maximum),
                   warp_rows);
    schedule_exchange(schedule, (Exchange){.ops = UINT64_C(1) << attention->sum,
                                           .scope = (uint8_t)scope,
                                           .combine = staged ? COMBINE_ROWS : COMBINE_LANES,
                                           .values = (uint8_t)(staged ? 0 : columns / COLUMNS_OF_TWO * warp_rows / ROWS_OF_A_LANE),
                                           .value_bytes = 4,
                                           .width = 2});
    schedule_map(schedule,
                 ops_of(fusion, attention->rows, false) | ops_of(fusion, attention->results, false));
    schedule_store(schedule, (Move){.tiles = space_outputs(space)});
}
