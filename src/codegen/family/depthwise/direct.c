// depthwise: images of a channel under that channel's filter, tap by tap on CUDA cores.
#include "codegen/family/depthwise/direct.h"

#include "base/checked.h"
#include "codegen/family/depthwise/turn.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum {
    MAX_LINE = 64,         // outputs of a thread, of one line
    MAX_ALONG_TAPS = 64,   // that a thread holds
    WHOLE_LINE = 256,      // outputs of a line that a block does not cut
    LEAST_IMAGES = 4,      // of a block, if there are so many: a warp has fewer lines, which diverge at the border
    LEAST_LINES = 32,      // of each image
    BLOCKS = 3,            // of an SM, if shared memory has room for so many
    RUN_BYTES = 32,        // contiguous bytes that are copied of channels
};

/* The longest row of taps of a window. */
static int64_t most_taps(const Windows *windows)
{
    int64_t most = 0;
    for (int w = 0; w < windows->count; w++)
        most = larger(most, slide_along(&windows->shape[w])->taps);
    return most;
}

// ---- data tiles ----

static double product_of_taps(const Depthwise *shape)
{
    return (double)slide_down(shape)->taps * (double)slide_along(shape)->taps;
}

/* Filters are widened on their way. The space has as many taps as all windows cover: a small filter has
   fewer. */
static void add_filter(TileSpace *space, const Fusion *fusion, const Windows *windows, int w,
                       double instructions)
{
    const Depthwise *shape = &windows->shape[w];
    DataTile *tile = &space->tiles[space->tile_count++];
    *tile = direct_tile(fusion, shape, factor_access(shape->w), OF_TAPS);
    tile->staged = tile->windows = true;
    tile->instructions = instructions * (product_of_taps(shape) / product_of_taps(&windows->all));
    tile->staged_inner = tile->rank - 1;
}

/* Lines are copied whole, in pieces of 16 bytes: what is counted is what is copied then. */
static void add_staged(TileSpace *space, const Fusion *fusion, const Windows *windows, const DirectWay *way)
{
    const Depthwise *all = &windows->all;
    DataTile *x = &space->tiles[space->tile_count++];
    *x = direct_tile(fusion, all, factor_access(all->x), OF_INPUTS);
    x->apart |= !direct_reads_all(all) || slide_along(all)->outputs > WHOLE_LINE;
    x->staged = x->windows = true;
    x->instructions = calibration.depthwise_copy_instructions / (double)way->piece;
    x->staged_inner = x->rank - 1;
    for (int w = 0; w < windows->count; w++)
        add_filter(space, fusion, windows, w, x->instructions);
}

// ---- how images are copied ----

static bool is_padded(const Depthwise *shape)
{
    for (int i = 0; i < shape->image_count; i++) {
        const WindowAxis *axis = &shape->image[i];
        if (axis->pad > 0 || window_reach(axis, axis->outputs) - axis->pad > axis->inputs)
            return true;
    }
    return false;
}

static DirectWay find_way(const Fusion *fusion, const Windows *windows)
{
    const Depthwise *shape = &windows->all;
    const AxisGroup *channel = &shape->channel;
    const WindowAxis *along = &shape->image[shape->image_count - 1];
    int piece = 8 * VECTOR_BYTES / dtype_info[factor_access(shape->x)->tensor->dtype].bits;
    DirectWay way = {
        .channels_last = axis_group_stride(channel, &shape->x_offset) == 1,
        .piece = 1,
        .padded = is_padded(shape),
        .windows = windows->count,
    };
    for (int w = 0; w < windows->count; w++)
        way.filter += direct_filter(&windows->shape[w]);
    int inner = way.channels_last ? axis_group_innermost(channel) : along->output;
    bool contiguous = way.channels_last || along->x_stride == 1;
    bool cut =
        !way.channels_last && piece > CHUNK && along->outputs > WHOLE_LINE;   // in chunks, not in 16-byte vectors
    if (contiguous && !cut && direct_reads_pieces(fusion, shape, inner, piece))
        way.piece = piece;
    return way;
}

// ---- kinds ----

/* A block that exceeds its budget of shared memory is refused. */
static void lay_out(SharedLayout *layout, const KernelKind *kind, const RTile *block, const RTile *inner,
                    const DeviceSpec *device)
{
    DirectLayout places = direct_layout(kind, block);
    (void)inner, (void)device;
    layout_add(layout, "PICTURES", places.filters_at);
    layout_add(layout, "FILTERS", places.sums_at - places.filters_at);
    layout_add(layout, "SUMS", places.spoilt_at - places.sums_at);
    layout_add(layout, "SPOILT", places.bytes - places.spoilt_at);
    if (places.bytes > direct_way(kind).room)
        layout->bytes = TOO_MANY_BITS;
}

/* Elements that a thread reads for all windows (rows of taps, and the inputs of a line under them), as a share of those that
   the space counts. */
static double elements_share(const Windows *windows)
{
    const WindowAxis *along = &windows->all.image[windows->all.image_count - 1];
    double rows = (double)slide_down(&windows->all)->taps, walked = 0;
    double counted = (double)window_reach(along, along->outputs) + windows->count * (double)along->taps;
    for (int w = 0; w < windows->count; w++) {
        const WindowAxis *own = &windows->shape[w].image[windows->all.image_count - 1];
        walked += (double)slide_down(&windows->shape[w])->taps / rows *
                  (double)(window_reach(own, own->outputs) + own->taps);
    }
    return walked / counted;
}

/* One window: the loop over its taps, then its sums are staged. Those of the last window replace the images, after all
   threads have read them. */
static void add_window(Schedule *schedule, const Windows *windows, int w)
{
    uint32_t x = 1, filter = 2u << w;
    uint64_t sums = UINT64_C(1) << windows->op[w];
    Loop rows = {.axis = DOWN_TAP, .by_thread = true, .skips = DOWN};
    if (windows->count > 1)
        rows.times = (int32_t)slide_down(&windows->shape[w])->taps;
    schedule_loop(schedule, rows);
    schedule_load(schedule, (Move){.tiles = x | filter, .from = PLACE_SHARED});
    schedule_reduce(schedule, sums);
    schedule_end(schedule);
    if (w == windows->count - 1)
        schedule_barrier(schedule, SCOPE_BLOCK);
    schedule_exchange(schedule, (Exchange){
                                    .ops = sums,
                                    .scope = SCOPE_BLOCK,
                                    .combine = COMBINE_ROWS,
                                    .value_bytes = (uint8_t)(dtype_info[windows->all.type].bits / 8),
                                    .width = 2,
                                });
}

/* Lanes test whether a tap is infinite or NaN, if zeros outside the image may be multiplied by it. */
static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const TileSpace *space,
                             const Windows *windows, const DirectWay *way)
{
    Schedule schedule = {.computes = COMPUTES_OWN};
    uint32_t x = 1, filters = ((2u << windows->count) - 1) & ~x;
    double element = calibration.depthwise.element_instructions * elements_share(windows) *
                     (way->channels_last ? 4 : 1),
           output = calibration.depthwise.output_instructions * (way->channels_last ? 1.2 : 1);
    uint64_t sums = schedule_ops(fusion, true);
    schedule_load(&schedule,
                  (Move){.tiles = x, .to = PLACE_SHARED, .async = way->piece > 1, .instructions = element});
    schedule_load(&schedule, (Move){.tiles = filters, .to = PLACE_SHARED, .instructions = element});
    if (way->padded)
        schedule_exchange(&schedule,
                          (Exchange){.ops = sums, .scope = SCOPE_WARP, .combine = COMBINE_LANES, .width = 2});
    schedule_wait(&schedule, 0);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    for (int w = 0; w < windows->count; w++)
        add_window(&schedule, windows, w);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_load(&schedule, (Move){.tiles = space_inputs(space) & ~(x | filters), .instructions = element});
    schedule_map(&schedule, schedule_ops(fusion, false));
    schedule_store(&schedule, (Move){.tiles = space_outputs(space), .instructions = output});
    return schedule_copy(arena, &schedule);
}

/* A thread computes a whole line or an equal part of it. Lines are cut between chunks. */
static void set_lines(KernelKind *kind, const WindowAxis *along)
{
    AxisRule *each = &kind->space->rule[LEVEL_REGISTER][ALONG], *block = &kind->space->rule[LEVEL_SHARED][ALONG];
    int64_t most = MAX_LINE * 32 / kind->registers.accumulator_bits, parts = ceil_div(along->outputs, most);
    int64_t width = parts == 1 ? along->outputs : round_up(ceil_div(along->outputs, parts), CHUNK);
    *each = (AxisRule){width % CHUNK ? width : CHUNK, width};
    *block = axis_fixed(parts * width);
    if (along->outputs > WHOLE_LINE) {
        *each = (AxisRule){CHUNK, most};
        *block = (AxisRule){MAX_LINE, WHOLE_LINE};
    }
}

/* A block of so many images and lines. Lines are cut in equal parts: 40 are twice 20. */
static RTile block_of(const KernelKind *kind, const DirectWay *way, int64_t images, int64_t lines)
{
    const Axis *axes = kind->space->axes;
    RTile tile = rtile_problem(kind->space);
    bool of_batch = !way->channels_last && axes[BATCH].extent >= images;
    int64_t side_by_side = RUN_BYTES * 8 / kind->space->tiles[0].element_bits;
    int64_t channels = !way->channels_last ? of_batch ? 1 : images : images > 1 ? side_by_side : way->piece;
    tile.size[MULTIPLIER] = 1;
    tile.size[BATCH] = of_batch ? images : 1;
    tile.size[CHANNEL] =
        smaller(channels, round_up(axes[CHANNEL].extent, way->channels_last ? way->piece : 1));
    tile.size[DOWN] = ceil_div(axes[DOWN].extent, ceil_div(axes[DOWN].extent, lines));
    tile.size[ALONG] = kind->space->rule[LEVEL_SHARED][ALONG].granule;
    return tile;
}

static bool is_enough(const KernelKind *kind, const DeviceSpec *device, const RTile *block)
{
    int64_t blocks = 1;
    for (int a = CHANNEL; a <= ALONG; a++)
        blocks = size_product(blocks, ceil_div(kind->space->axes[a].extent, block->size[a]));
    return blocks >= 2 * (int64_t)device->sm_count &&
           BLOCKS * direct_layout(kind, block).bytes <= device->shared_per_sm;
}

/* The block with the most images, for the least divergence, of which shared memory holds three and each SM gets two, so
   that warps hide each other's latency. */
static RTile least_block(const KernelKind *kind, const DeviceSpec *device, const DirectWay *way)
{
    for (int64_t images = LEAST_IMAGES; images >= 1; images /= LEAST_IMAGES)
        for (int64_t lines = LEAST_LINES; images * lines >= LEAST_LINES; lines /= 2) {
            RTile block = block_of(kind, way, images, lines);
            if (is_enough(kind, device, &block))
                return block;
        }
    return block_of(kind, way, 1, 1);
}

/* Larger blocks may use as much shared memory as lets an SM hold three, or as the least block. With 64 x 64 pixels, 8 images
   a block took 5 to 28 % longer than 4 (tuning-log 51). */
static void set_room(Arena *arena, KernelKind *kind, const DeviceSpec *device, const RTile *least)
{
    DirectWay way = direct_way(kind);
    way.room = larger(device->shared_per_sm / BLOCKS, direct_layout(kind, least).bytes);
    kind_choose(arena, kind, &way, sizeof way);
}

static void set_tiles(Arena *arena, KernelKind *kind, const DeviceSpec *device, const Windows *windows,
                      const DirectWay *way)
{
    const WindowAxis *along = slide_along(&windows->all), *down = slide_down(&windows->all);
    AxisRule *each = kind->space->rule[LEVEL_REGISTER], *block = kind->space->rule[LEVEL_SHARED];
    each[CHANNEL] = each[MULTIPLIER] = each[BATCH] = each[DOWN] = each[DOWN_TAP] = axis_fixed(1);
    block[MULTIPLIER] = axis_fixed(1);
    block[DOWN_TAP] = axis_fixed(down->taps);
    each[ALONG_TAP] = block[ALONG_TAP] = axis_fixed(along->taps);
    set_lines(kind, along);
    RTile least = least_block(kind, device, way);
    set_room(arena, kind, device, &least);
    /* Lanes along a batch read the same taps: images of several channels took 2 to 10 % longer (tuning-log
       51). */
    int64_t most = device->max_threads_per_block;
    block[CHANNEL] = (AxisRule){least.size[CHANNEL], way->channels_last || least.size[BATCH] == 1 ? most : 1};
    block[BATCH] = (AxisRule){least.size[BATCH], most};
    block[DOWN] = (AxisRule){least.size[DOWN], most};
}

/* Share of the pairs of an output and a tap that read an input inside the image; others are skipped. */
static double share_inside(const Depthwise *shape)
{
    double share = 1;
    for (int i = 0; i < shape->image_count; i++) {
        const WindowAxis *axis = &shape->image[i];
        share *= (double)window_pairs_inside(axis) / ((double)axis->outputs * (double)axis->taps);
    }
    return share;
}

/* Multiply-adds of all windows for each point of the space: 5 x 5 taps beside 31 x 31 add a 40th to those of 31 x 31. */
static double windows_share(const Fusion *fusion, const Windows *windows)
{
    double all = 0, inside = 0;
    for (int w = 0; w < windows->count; w++)
        all += product_of_taps(&windows->shape[w]);
    for (int w = 0; w < windows->count; w++)
        inside += product_of_taps(&windows->shape[w]) / all * share_inside(&windows->shape[w]);
    return inside * ((double)reduction_points(fusion) / product_of_taps(&windows->all));
}

static const char *variant_name(const DirectWay *way)
{
    if (way->windows > 1)
        return way->channels_last ? "channels beside" : "lines beside";
    return way->channels_last ? "channels" : "lines";
}

static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    const Windows *windows = ((const DepthwiseView *)view)->windows;
    if (!windows || most_taps(windows) > MAX_ALONG_TAPS)
        return 0;
    DirectWay way = find_way(fusion, windows);
    int value_bits = dtype_info[windows->all.type].bits;
    KernelKind *kind = &variants[0];
    *kind = (KernelKind){
        .space = space_new(arena, fusion),
        .name = variant_name(&way),
        .threads.ragged = true,
        .registers.accumulator_bits = value_bits,
        .registers.others = 8,   // tuning-log 133
        .cost = &calibration.in_turn,
        .registers.input_buffers = 1,
        .registers.most_inputs = (int)(round_up(most_taps(windows), CHUNK) + CHUNK) * value_bits / 32,
        .lay_out = lay_out,
    };
    kind_choose(arena, kind, &way, sizeof way);
    direct_add_axes(kind->space, &windows->all);
    kind->space->flops *= windows_share(fusion, windows);
    add_staged(kind->space, fusion, windows, &way);
    direct_add_outer_tiles(kind->space, fusion, &windows->all);
    kind->schedule = schedule_of(arena, fusion, kind->space, windows, &way);
    set_tiles(arena, kind, device, windows, &way);
    return 1;
}

const Family depthwise_family = {
    .name = "depthwise",
    .template_path = "templates/depthwise.cu",
    .variants = (const char *const[]){"lines", "channels", "lines beside", "channels beside", NULL},
    .whole_warps = true,
    .view = depthwise_view,
    .rewrites = (const Rewrite *const[]){&turn_images, NULL},
    .kinds = kinds,
    .emit = direct_emit,
    .work = direct_work,
};
