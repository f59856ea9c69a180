// channelwise: reductions over outer axes at every position of an inner one, and pointwise steps before,
// between and after them, in one kernel: batch norm of channels that are stored innermost (NHWC), softmax down the columns;
// or, step by step, only statistics, or only elements from given statistics. A thread owns adjacent channels. The threads
// of a block hold all their positions in registers, so memory is read once.
#include "base/checked.h"
#include "codegen/family/rows/channelwise_parts.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum {
    MAX_LANES = 32,     // adjacent threads along channels: past 512 bytes an access gains nothing
    LINE_LANES = 8,     // that read 128 bytes, a cache line; fewer read parts of lines
    WARP_BLOCKS = 2,    // of one warp, of an SM: of the next call as many find room beside them
    MAX_THREADS = 512,
    MAX_HELD_BYTES = 144,     // of what a thread reads in one step: 128 of numbers, and their masks
    STEP_THREADS = 256        // of a block that iterates in steps
};

static Walk walk_of(const Fusion *fusion, int vector)
{
    return (Walk){
        .fusion = fusion,
        .ops = fusion->op_count,
        .axis = channelwise_axis(fusion),
        .vector = vector,
        .along = fusion_columns(fusion),
        .held = true,
    };
}

/* Neighbours along an axis of `extent` that are one access: 16 bytes of the narrowest tensor, bits aside. */
static int widest_vector(const Reads *reads, int64_t extent)
{
    int narrowest = 64;
    for (int i = 0; i < reads->count; i++) {
        int bits = dtype_info[reads->reads[i].access->tensor->dtype].bits;
        if (bits > 1 && bits < narrowest)
            narrowest = bits;
    }
    int vector = VECTOR_BYTES * 8 / narrowest;
    while (vector > 1 && extent % vector)
        vector /= 2;
    return vector;
}

static const void *view_of(Arena *arena, const Fusion *fusion, const Target *target)
{
    int reductions, of_elements;
    (void)target;
    if (!fusion_counts(fusion, &reductions, &of_elements) || !fusion_columns(fusion) ||
        (reductions < 2 && !of_elements) || !passes_hold(fusion) || channelwise_axis(fusion) < 0 ||
        !channelwise_packs_bits(fusion))
        return NULL;
    ChannelView *view = NEW(arena, ChannelView);
    Reads each = reads_find(walk_of(fusion, 1));
    int vector = widest_vector(&each, fusion->axes[channelwise_axis(fusion)].extent);
    view->reads = reads_find(walk_of(fusion, vector));
    view->passes = passes_find(arena, &view->reads, (PassKind){0});
    return view;
}

// ---- kinds ----

static void add_tile(TileSpace *space, const Fusion *fusion, const Access *access, bool output)
{
    if (space->tile_count == MAX_DATA_TILES)
        return;
    int channel = channelwise_axis(fusion);
    uint32_t axes = access_axes(access), slabs = ~fusion_columns(fusion) & ~(1u << channel);
    DataTile tile = data_tile_of(access->tensor);
    tile.output = output;
    if (axes & fusion_columns(fusion))
        tile.dims[tile.rank++] = (Dim){affine_axis(POSITION), space->axes[POSITION].extent};
    if (axes & slabs)
        tile.dims[tile.rank++] = (Dim){affine_axis(SLAB), space->axes[SLAB].extent};
    tile.apart = axes >> channel & 1 && access_offset(access).coef[channel] != 1;
    if (axes >> channel & 1)
        tile.dims[tile.rank++] = (Dim){affine_axis(CHANNEL), space->axes[CHANNEL].extent};
    space->tiles[space->tile_count++] = tile;
}

static void add_tiles(TileSpace *space, const Fusion *fusion)
{
    Walk walk = walk_of(fusion, 1);
    walk.along = 0;
    Reads reads = reads_find(walk);
    for (int i = 0; i < reads.count; i++)
        add_tile(space, fusion, reads.reads[i].access, false);
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored)
            add_tile(space, fusion, &fusion->ops[i].store, true);
}

static const char *const variant_names[] = {
    [COLUMN] = "column", [ELEMENTS] = "elements", [TOTALS] = "totals"};

/* `each` positions of a thread at a time. */
static void group_kind(Arena *arena, KernelKind *kind, const ChannelView *view, const Fusion *fusion,
                        const DeviceSpec *device, ChannelWalk walk, int lanes, int groups, int64_t each)
{
    int64_t channels = fusion->axes[channelwise_axis(fusion)].extent, vector = view->reads.walk.vector;
    int64_t step = each * groups;
    kind_begin(arena, kind, fusion);
    kind_choose(arena, kind, &walk, sizeof walk);
    kind->name = variant_names[walk];
    space_add_axis(kind->space, "channel", channels, false);
    space_add_axis(kind->space, "slab", spatial_points(fusion) / channels, false);
    space_add_axis(kind->space, "position", round_up(reduction_points(fusion), step), true);
    add_tiles(kind->space, fusion);
    channelwise_state(kind->schedule, &(ChannelKernel){
                                            .fusion = fusion,
                                            .space = kind->space,
                                            .reads = &view->reads,
                                            .passes = view->passes,
                                            .walk = walk,
                                            .lanes = lanes,
                                            .warp = device->warp_size,
                                            .groups = groups,
                                        });
    space_fix_axis(kind->space, CHANNEL, vector, vector * lanes);
    space_fix_axis(kind->space, SLAB, 1, 1);
    space_fix_axis(kind->space, POSITION, each, step);
    kind->space->least_reducers = 1;
    kind->registers.accumulator_bits = walk == ELEMENTS                                    ? (int)ceil_div(32, each)
                              : walk == TOTALS && channelwise_centres(fusion) ? 64   // and of a step
                                                                              : 32;
    kind->registers.others = walk == COLUMN ? 24 : 8;
    kind->registers.input_buffers = 1;
    kind->cost = walk == TOTALS ? &calibration.in_step : &calibration.channelwise;
    schedule_set_shared(kind);
}

/* Threads along channels: a power of two, as many as the channels have vectors. */
static int widest_row(const Fusion *fusion, int vector)
{
    int64_t vectors = fusion->axes[channelwise_axis(fusion)].extent / vector;
    int lanes = 1;
    while (lanes < vectors && lanes < MAX_LANES)
        lanes *= 2;
    return lanes;
}

/* Lanes along channels of blocks of one warp, which holds all positions of its channels: larger blocks synchronise at every
   reduction, and gain nothing. The narrowest, down to a quarter of the widest, of which an SM has at
   most two (tuning-log 162). If none of these holds all positions, the widest of narrower ones of which it has
   at most one, but no single lanes, since these read parts of sectors (tuning-log 280). 0: none. */
static int warp_lanes(const ChannelView *view, const Fusion *fusion, const DeviceSpec *device, int widest, int narrowest)
{
    int64_t channels = fusion->axes[channelwise_axis(fusion)].extent, vector = view->reads.walk.vector;
    int found = 0;
    for (int lanes = widest; lanes >= narrowest; lanes /= 2) {
        bool wide = lanes * 4 >= widest;
        if (lanes > device->warp_size || (!wide && (found || lanes == 1)))
            continue;
        int64_t most = (wide ? WARP_BLOCKS : 1) * device->sm_count;
        int64_t blocks = ceil_div(channels, lanes * vector) * (spatial_points(fusion) / channels);
        int64_t each = ceil_div(reduction_points(fusion), device->warp_size / lanes);
        if (each * vector <= calibration.thread_elements && blocks <= most)
            found = lanes;
    }
    return found;
}

/* Every number of groups that leaves a thread no more than it can hold of all positions; `warp`: those of one. */
static int reduction_kinds(Arena *arena, const ChannelView *view, const Fusion *fusion,
                           const DeviceSpec *device, int lanes, bool warp, KernelKind *variants, int most)
{
    int count = 0, vector = view->reads.walk.vector;
    int64_t positions = reduction_points(fusion);
    int largest = warp ? device->warp_size : MAX_THREADS;
    for (int groups = 1; lanes * groups <= largest && count < most; groups *= 2) {
        bool idle = groups > 1 && groups / 2 >= positions;   // half of the threads are enough
        bool few = warp && lanes * groups < device->warp_size && groups < positions;
        if (ceil_div(positions, groups) * vector <= calibration.thread_elements && !idle && !few &&
            lanes * groups <= device->max_threads_per_block)
            group_kind(arena, &variants[count++], view, fusion, device, COLUMN, lanes, groups,
                        ceil_div(positions, groups));
    }
    return count;
}

/* Bits that a thread holds of an element: all that it reads. Guarded reads are not read ahead; then it holds results. */
static int held_bits(const Reads *reads)
{
    int bits = 0;
    for (int i = 0; i < reads->count; i++)
        bits += dtype_info[reads->reads[i].access->tensor->dtype].bits;
    return bits ? bits : WORD_BITS;
}

/* Steps of one or several positions. */
static int step_kinds(Arena *arena, const ChannelView *view, const Fusion *fusion, const DeviceSpec *device,
                      int lanes, KernelKind *variants, int most)
{
    int count = 0, vector = view->reads.walk.vector, groups = 1;
    while (lanes * groups < STEP_THREADS && groups < reduction_points(fusion))
        groups *= 2;
    int bits = held_bits(&view->reads);
    for (int each = 1; each * vector * bits / 8 <= MAX_HELD_BYTES && count < most; each *= 2)
        if (each == 1 || each * groups <= reduction_points(fusion))
            group_kind(arena, &variants[count++], view, fusion, device,
                        fusion_reduces(fusion) ? TOTALS : ELEMENTS, lanes, groups, each);
    return count;
}

/* Two numbers of lanes. Blocks of fewer hold more positions, which those that iterate in steps do not need. */
static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    int count = 0, vector = ((const ChannelView *)view)->reads.walk.vector,
        widest = widest_row(fusion, vector);
    int narrowest = count_bit_outputs(fusion) ? (int)ceil_div(WORD_BITS, vector) : 1;
    bool steps = !fusion_reduces(fusion) || channelwise_adds_up(fusion);
    int of_warp = steps ? 0 : warp_lanes(view, fusion, device, widest, narrowest);
    if (of_warp)
        count += reduction_kinds(arena, view, fusion, device, of_warp, true, variants, MAX_VARIANTS);
    for (int lanes = widest; lanes >= narrowest && lanes * 4 >= widest; lanes /= 4) {
        bool fills_lines = lanes == widest || lanes >= LINE_LANES;
        int most = MAX_VARIANTS - count;
        if (steps && fills_lines)
            count += step_kinds(arena, view, fusion, device, lanes, variants + count, most);
        if (!steps && !of_warp)
            count += reduction_kinds(arena, view, fusion, device, lanes, false, variants + count, most);
    }
    return count;
}

const Family channelwise_family = {
    .name = "channelwise",
    .template_path = "templates/channelwise.cu",
    .variants = (const char *const[]){"column", "elements", "totals", NULL},
    .whole_warps = true,
    .view = view_of,
    .kinds = kinds,
    .emit = channelwise_emit,
};
