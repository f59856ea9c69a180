// window: every output combines the elements under a window that slides over an input: pooling, depthwise
// filters.

#include "base/checked.h"
#include "codegen/family/window/window_parts.h"
#include "ir/fuse_forwards.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum {
    MAX_TAPS = 4096,            // points of a window; beyond, threads had better share them
    MAX_KEPT_ELEMENTS = 2048,   // that their windows cover: 3 taps of `h + 1000*r` cover 2001 for one output
    RUN = 32,   // outputs of a block along a longer line: neighbouring threads read neighbouring memory
    WHOLE_LINE = 256,  // outputs of a line that a block does not cut
    STAGED_THREADS = 256   // that stage together; with more a block waits longer while fewer others compute
};

static const void *view_of(Arena *arena, const Fusion *fusion, const Target *target)
{
    (void)target;
    if (!fusion_is_reduction(fusion) || window_is_share(fusion) || reduction_points(fusion) > MAX_TAPS ||
        count_bit_outputs(fusion))
        return NULL;
    for (int a = fusion->spatial_count; a < fusion->axis_count; a++)
        if (!window_has_tap(fusion, a))
            return NULL;
    WindowView *view = NEW(arena, WindowView);
    bool few = reduction_points(fusion) <= MAX_KEPT_TAPS;   // 23 x 23: 58 us for 33 (tuning-log 281)
    view->stencil = stencil_find(few ? fusion_with_taps_forwards(arena, fusion) : fusion);
    view->stage = window_stage(&view->stencil);
    return view;
}

static int64_t outer_points(const Stencil *stencil)
{
    return spatial_points(stencil->fusion) / stencil_extent(stencil, DIRECTION_DOWN) /
           stencil_extent(stencil, DIRECTION_ALONG);
}

static int64_t kept_taps(const Stencil *stencil)
{
    return stencil_taps(stencil, DIRECTION_DOWN) * stencil_taps(stencil, DIRECTION_ALONG);
}

/* Of one tensor, for a thread with the most outputs; compilers drop those, one by one, that no tap reads. */
static int64_t kept_elements(const Stencil *stencil)
{
    int64_t most = 0;
    for (int i = 0; i < stencil->count; i++) {
        int64_t elements =
            size_product(operand_extent(&stencil->operands[i], DIRECTION_DOWN, MAX_WINDOW_HEIGHT),
                         operand_extent(&stencil->operands[i], DIRECTION_ALONG, 1));
        most = elements > most ? elements : most;
    }
    return most;
}

// ---- kinds ----

/* Taps of other axes than those that slide are one axis of the space. What they reach together its last
   position reaches: the step may be too long for those between, never too short for what is staged. */
static Affine space_index(const Stencil *stencil, const Affine *index)
{
    const Fusion *fusion = stencil->fusion;
    Affine form = {.constant = 0};
    int64_t others = 1, reach = 0;
    for (int a = 0; a < fusion->axis_count; a++) {
        int64_t step = index->coef[a] < 0 ? -index->coef[a] : index->coef[a];
        if (a == stencil->axis[DIRECTION_DOWN])
            form.coef[DOWN] += step;
        else if (a == stencil->axis[DIRECTION_ALONG])
            form.coef[ALONG] += step;
        else if (a == stencil->tap[DIRECTION_DOWN])
            form.coef[DOWN_TAP] += step;
        else if (a == stencil->tap[DIRECTION_ALONG])
            form.coef[ALONG_TAP] += step;
        else if (a >= fusion->spatial_count) {
            others = size_product(others, fusion->axes[a].extent);
            reach += size_product(step, fusion->axes[a].extent - 1);
        }
    }
    if (reach)
        form.coef[OTHER] = ceil_div(reach, others - 1);
    form.constant = index->constant;
    return form;
}

/* A tap moves the dimension beside an outer position: neighbouring positions share what they read. */
static bool slides_outside(const Stencil *stencil, const Affine *index)
{
    int outer_end = stencil->fusion->spatial_count - DIRECTIONS;
    bool has_outer = false, has_tap = false;
    for (int a = 0; a < stencil->fusion->axis_count; a++)
        *(a < outer_end ? &has_outer : &has_tap) |=
            index->coef[a] && (a < outer_end || a >= stencil->fusion->spatial_count);
    return has_outer && has_tap && space_index(stencil, index).coef[OTHER];
}

/* Threads side by side may read elements that lie apart: of images whose channels are innermost. */
static void set_apart(DataTile *tile, const Access *access, const Stencil *stencil, const DeviceSpec *device)
{
    int along = stencil->axis[DIRECTION_ALONG];
    int64_t step = along < 0 ? 0 : access_offset(access).coef[along];
    if (!tile->rank || tile->dims[tile->rank - 1].index.coef[ALONG] == (step < 0 ? -step : step))
        return;
    tile->scatter = access_scatter(access, stencil->fusion, along, device);
}

/* The dimensions that only outer axes move become one, in which `per_line` lines go with each outer
   position. */
static DataTile window_tile(const TileSpace *space, const Stencil *stencil, const Access *access,
                            const DeviceSpec *device)
{
    const Fusion *fusion = stencil->fusion;
    DataTile tile = data_tile_of(access->tensor);
    Affine offset = access_offset(access), none = {.constant = 0};
    int64_t lines = 1;
    bool has_outer = false;
    for (int a = 0; a < fusion->spatial_count - DIRECTIONS; a++)
        has_outer |= offset.coef[a] != 0;
    for (int d = 0; d < access->rank; d++) {
        Affine form = space_index(stencil, &access->dims[d].index);
        bool is_inner = form.coef[DOWN] || form.coef[ALONG] || form.coef[DOWN_TAP] || form.coef[ALONG_TAP];
        lines *= is_inner ? 1 : access->dims[d].size;
        none.coef[OTHER] |= slides_outside(stencil, &access->dims[d].index);
    }
    if (has_outer) {
        int64_t per_line = lines / space->axes[OUTER].extent;
        none.coef[OUTER] = per_line > 1 ? per_line : 1;
        tile.dims[tile.rank++] = (Dim){none, lines};
        tile.apart = lines < space->axes[OUTER].extent;   // filters that come again for the next image
    }
    for (int d = 0; d < access->rank && tile.rank < MAX_RANK; d++) {
        Affine form = space_index(stencil, &access->dims[d].index);
        if (form.coef[DOWN] || form.coef[ALONG] || form.coef[DOWN_TAP] || form.coef[ALONG_TAP] ||
            (form.coef[OTHER] && !slides_outside(stencil, &access->dims[d].index)))
            tile.dims[tile.rank++] = (Dim){form, access->dims[d].size};
    }
    for (int d = 0; d < tile.rank; d++)
        tile.apart |= tile.dims[d].index.coef[OTHER] != 0;   // which of the taps is where, it does not say
    set_apart(&tile, access, stencil, device);
    return tile;
}

/* An access of a warp spans several lines of outputs where those are short. */
static void set_lines(DataTile *tile, const Access *access, const Stencil *stencil, const DeviceSpec *device)
{
    const double LOAD_CYCLES = 1.75;   // of a warp, however few bytes it brings: micro-kernels
    tile->lines_axis = DOWN;
    for (int r = 0; r < MAX_RUNS && !tile->staged; r++)
        tile->lines_apart[r] = access_cycles(access, stencil->fusion, stencil->axis[DIRECTION_DOWN], INT64_C(1) << r, LOAD_CYCLES, device);
}

static void add_tiles(TileSpace *space, const Stencil *stencil, const StagedInput *stage, const DeviceSpec *device)
{
    const Fusion *fusion = stencil->fusion;
    FusedAccess found[MAX_DATA_TILES];
    int count = fusion_accesses(fusion, found, MAX_DATA_TILES - fusion->output_count);
    for (int i = 0; i < count; i++) {
        DataTile *tile = &space->tiles[space->tile_count++];
        *tile = window_tile(space, stencil, found[i].access, device);
        tile->staged = found[i].access == stage->access;
        tile->plane = tile->staged ? stage->plane : 0;
        tile->staged_inner = tile->rank - 1;
        set_lines(tile, found[i].access, stencil, device);
    }
    for (int i = 0; i < fusion->op_count && space->tile_count < MAX_DATA_TILES; i++) {
        if (!fusion->ops[i].stored)
            continue;
        DataTile *tile = &space->tiles[space->tile_count++];
        *tile = window_tile(space, stencil, &fusion->ops[i].store, device);
        tile->output = true;
        tile->staged = stage->access && window_collected(fusion);
        tile->plane = tile->staged
                          ? stencil_extent(stencil, DIRECTION_DOWN) * stencil_extent(stencil, DIRECTION_ALONG)
                          : 0;
        tile->staged_inner = tile->rank - 1;
        set_lines(tile, &fusion->ops[i].store, stencil, device);
    }
}

/* Tiles of the filters whose taps are read first. add_tiles has the accesses in this order. */
static uint32_t filter_tiles(const Stencil *stencil, const StagedInput *stage)
{
    FusedAccess found[MAX_DATA_TILES];
    uint32_t tiles = 0;
    int count = fusion_accesses(stencil->fusion, found, MAX_DATA_TILES - stencil->fusion->output_count);
    for (int i = 0; i < count && window_reads_filters_first(stencil, stage); i++)
        for (int f = 0; f < stencil->filter_count; f++)
            tiles |= found[i].access == &stencil->filters[f].expr->access ? 1u << i : 0;
    return tiles;
}

/* Taps and terms that compilers write out at most, in templates/window.cu; 14 x 56 terms are a loop of 14. */
enum { TAPS_WRITTEN_OUT = 64, TERMS_WRITTEN_OUT = 256 };

/* Of inputs that the windows share, a block may stage one; and where it does, collect its outputs. */
static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const TileSpace *space, uint32_t filters, const WindowFit *fit,
                             double conversion)
{
    const double tap = 0.75 + conversion, element = fit->element_instructions + conversion;   // tap: a load of 4 bytes, counted as 16
    int64_t taps = space->axes[OTHER].extent, terms = taps == 1 ? 0 : reduction_points(fusion);
    bool loops = taps > TAPS_WRITTEN_OUT || terms > TERMS_WRITTEN_OUT;
    Schedule schedule = {0};
    uint32_t staged = space_inputs(space) & space_staged(space),
             others = space_inputs(space) & ~staged & ~filters;
    uint32_t collected = space_outputs(space) & space_staged(space);
    if (staged) {
        schedule_load(&schedule, (Move){.tiles = filters, .instructions = tap});
        schedule_load(&schedule, (Move){.tiles = staged, .to = PLACE_SHARED, .async = true});
        schedule_wait(&schedule, 0);
        schedule_barrier(&schedule, SCOPE_BLOCK);
    }
    schedule_loop(&schedule, (Loop){.axis = OTHER, .by_thread = true, .waits = !staged && loops});
    schedule_load(&schedule, (Move){.tiles = staged, .from = PLACE_SHARED, .instructions = element});
    schedule_load(&schedule, (Move){.tiles = others, .instructions = element});
    schedule_reduce(&schedule, schedule_ops(fusion, true));
    schedule_takes(&schedule, fit->setup_instructions, 0);
    schedule_end(&schedule);
    schedule_map(&schedule, schedule_ops(fusion, false));
    schedule_store(&schedule, (Move){
                                  .tiles = space_outputs(space),
                                  .collected = collected != 0,
                                  .instructions = fit->output_instructions,
                              });
    return schedule_copy(arena, &schedule);
}

/* What is staged; what is collected stands behind it. */
static void lay_out(SharedLayout *layout, const KernelKind *kind, const RTile *block, const RTile *inner,
                    const DeviceSpec *device)
{
    const TileSpace *space = kind->space;
    int64_t bytes[2] = {0};   // staged, collected
    (void)inner, (void)device;
    for (int i = 0; i < space->tile_count; i++)
        if (space->tiles[i].staged)
            bytes[space->tiles[i].output] += data_tile_span_bytes(&space->tiles[i], block, space->axis_count);
    layout_add(layout, "STAGED", bytes[0]);
    layout_add(layout, "COLLECTED", bytes[1]);
}

/* Of windows that lie apart a thread has one element in a row, and all rows under its outputs are in flight
   at once. An element of 16 bits takes a register of its own. Counted in machine code of 173 such kernels: 12
   others. So do those of a filter that are converted: 22 outputs of 7 x 7 take 71 registers, 11 of 3 x 3 47;
   32 bits come when they are multiplied. In loops few are in flight: 13 outputs of 56 taps take 48. */
static int64_t registers_taken_by_windows(const KernelKind *kind, const RTile *block, const RTile *inner,
                                          RegisterBudget budget)
{
    enum { OTHERS = 12, WORD = 32, IN_FLIGHT = 20 };
    const TileSpace *space = kind->space;
    int64_t registers = OTHERS, inputs = 0;
    (void)block, (void)budget;
    for (int i = 0; i < space->tile_count; i++) {
        const DataTile *data = &space->tiles[i];
        int bits = data->output ? kind->registers.accumulator_bits : data->element_bits;
        *(data->output ? &registers : &inputs) +=
            data_tile_distinct(data, inner, space->axis_count) * ceil_div(bits, WORD);
    }
    return registers + (kind->schedule->items[0].loop.waits ? smaller(inputs, IN_FLIGHT) : inputs);
}

static KernelKind variant_kind(Arena *arena, const WindowView *view, const Fusion *fusion,
                               const DeviceSpec *device, bool staged)
{
    const Stencil *stencil = &view->stencil;
    StagedInput none = {0};
    const StagedInput *stage = staged ? &view->stage : &none;
    KernelKind kind = {
        .space = space_new(arena, fusion), .name = window_family.variants[staged], .lay_out = lay_out};
    kind_choose(arena, &kind, &staged, sizeof staged);
    int64_t along = stencil_extent(stencil, DIRECTION_ALONG),
            other = reduction_points(fusion) / kept_taps(stencil);
    space_add_axis(kind.space, "outer", outer_points(stencil), false);
    space_add_axis(kind.space, "down", stencil_extent(stencil, DIRECTION_DOWN), false);
    space_add_axis(kind.space, "along", along, false);
    space_add_axis(kind.space, "tap", other, true);
    space_add_axis(kind.space, "tap down", stencil_taps(stencil, DIRECTION_DOWN), true);
    space_add_axis(kind.space, "tap along", stencil_taps(stencil, DIRECTION_ALONG), true);
    add_tiles(kind.space, stencil, stage, device);
    const WindowFit *fit = stencil->filter_count ? &calibration.filters : &calibration.window;
    double conversion = 0;
    for (int i = 0; i < kind.space->tile_count; i++)
        conversion = !kind.space->tiles[i].output && kind.space->tiles[i].element_bits < 32 ? 1 : conversion;
    kind.schedule = schedule_of(arena, fusion, kind.space, filter_tiles(stencil, stage), fit, conversion);
    kind.schedule->computes = !staged && stencil_same_terms(stencil) ? COMPUTES_OWN
                              : kind.space->axes[OTHER].extent > 1   ? COMPUTES_INSIDE
                                                                     : COMPUTES_WINDOWS;
    kind.schedule->whole = stencil_is_safe(stencil) ? 1u << DOWN : 0;

    AxisRule *each = kind.space->rule[LEVEL_REGISTER], *block = kind.space->rule[LEVEL_SHARED];
    each[OUTER] = each[ALONG] = each[OTHER] = axis_fixed(1);
    int64_t down = stencil_extent(stencil, DIRECTION_DOWN);
    each[DOWN] = (AxisRule){1, smaller(down, MAX_WINDOW_HEIGHT)};
    int64_t threads = device->max_threads_per_block;
    block[OUTER] = (AxisRule){1, threads};
    block[DOWN] = (AxisRule){1, MAX_WINDOW_HEIGHT * threads};
    block[ALONG] = stage->access || along <= WHOLE_LINE ? axis_fixed(along) : (AxisRule){RUN, threads};
    block[OTHER] = axis_fixed(other);
    each[DOWN_TAP] = block[DOWN_TAP] = axis_fixed(stencil_taps(stencil, DIRECTION_DOWN));
    each[ALONG_TAP] = block[ALONG_TAP] = axis_fixed(stencil_taps(stencil, DIRECTION_ALONG));
    kind.threads.ragged = true;
    if (stage->access)
        kind.threads.most = (int)(along > STAGED_THREADS ? along : STAGED_THREADS);
    kind.registers.accumulator_bits = dtype_info[fusion->ops[0].body->type].bits;
    kind.registers.others = 16;
    kind.registers.input_buffers = 1;
    if (!staged && stencil_taps(stencil, DIRECTION_ALONG) == 1 &&
        (stencil_same_terms(stencil) || conversion > 0 || kind.schedule->items[0].loop.waits))
        kind.registers.taken = registers_taken_by_windows;
    /* The lines of one output's windows, and the next one; of filters all taps, and a line of windows. */
    kind.registers.most_inputs =
        (int)(stencil_taps(stencil, DIRECTION_ALONG) * (stencil_taps(stencil, DIRECTION_DOWN) + 1));
    return kind;
}

/* Windows that fit registers are kept there; their tensor may pass through shared memory. */
static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    const Stencil *stencil = &((const WindowView *)view)->stencil;
    const StagedInput *stage = &((const WindowView *)view)->stage;
    fusion = stencil->fusion;
    if (!stencil->count || kept_taps(stencil) > MAX_KEPT_TAPS ||
        kept_elements(stencil) > MAX_KEPT_ELEMENTS)
        return 0;
    int count = 0;
    variants[count++] = variant_kind(arena, view, fusion, device, false);
    FusedAccess found[MAX_ACCESSES];
    bool counted = tiles_hold(fusion, fusion_accesses(fusion, found, MAX_ACCESSES));
    if (!stage->access || !counted ||
        stencil_extent(stencil, DIRECTION_ALONG) > device->max_threads_per_block)
        return count;
    variants[count++] = variant_kind(arena, view, fusion, device, true);
    return count;
}

const Family window_family = {
    .name = "window",
    .template_path = "templates/window.cu",
    .shares_body = true,
    .variants = (const char *const[]){"windows", "staged", NULL},
    .view = view_of,
    .kinds = kinds,
    .emit = window_emit,
};
