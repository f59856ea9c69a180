// filter_groups: the gradient of a convolution of groups for its filters on tensor cores, whose channels are innermost in memory
// or planes. Each element is copied once for all taps.

#include "base/checked.h"
#include "codegen/family/depthwise/filter_gradient.h"
#include "codegen/family/depthwise/turn.h"
#include "hal/atoms.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum {
    X_TILE, D_TILE,        // of the space
    EIGHT = 8,             // elements of 16 bytes
    PIXELS = 16,           // that an instruction sums over
    BANKS = 2 * EIGHT,     // adjacent pixels are in different banks: their distance is an odd multiple of 16 bytes
    MOST_SUMS = 96,        // registers of a thread: twice as many with chains, which 255 have room for; half leave
                           // room for twice the warps
    MOST_WARPS = 16,
    LEAST_WARPS = 8,
    LEAST_SIDE = 16, USUAL_SIDE = 32, MOST_SIDE = 64,   // elements of a pixel that a block copies: a sector to a line
    MOST_RESIDENT = 2      // of an SM, that shared memory has room for
};

/* The family's choice. */
typedef struct GroupsWay {
    int channels, filters;         // of a group
    int groups;                    // of a block
    int rows, images;              // of d in a strip; whole images of a step
    int tiles, shares, sets;       // of a warp: 16 rows of sums; warps that share the taps of a group, the pixels
    int vector_x, vector_d;        // columns of a plane that are copied together; 0: channels are innermost
    int64_t pixel_x, pixel_d;      // elements in shared memory
    int64_t stage_x, stage_d;      // of a step
    int64_t copied_x;              // pixels of it
} GroupsWay;

// ---- which ones ----

static bool lies_in_vectors(const FilterGradient *gradient, const Pictures *pictures, const AxisGroup *inner)
{
    Affine form = pictures_form(pictures, &gradient->shape);
    int64_t all = depthwise_alignment(&form, -1) | pictures->row_stride | pictures->column_stride | inner->extent;
    return all % EIGHT == 0 && inner->count == 1 && axis_group_stride(inner, pictures->offset) == 1;
}

/* Of planes the columns that are copied together, with those of seven other channels. 0: they are none. */
static int plane_vector(const FilterGradient *gradient, const Pictures *pictures, const AxisGroup *inner)
{
    Affine form = pictures_form(pictures, &gradient->shape);
    int64_t all = depthwise_alignment(&form, -1) | pictures->row_stride | pictures->columns | EIGHT;
    if (inner->count != 1 || inner->extent % EIGHT || axis_group_stride(inner, pictures->offset) <= 1)
        return 0;
    return pictures->column_stride == 1 ? (int)(all & -all) : 1;
}

static bool is_copied(const FilterGradient *gradient, const Pictures *pictures, const AxisGroup *inner)
{
    return lies_in_vectors(gradient, pictures, inner) || plane_vector(gradient, pictures, inner);
}

static bool takes(const FilterGradient *gradient)
{
    const Depthwise *shape = &gradient->shape;
    const Atom *atom = gradient->atom;
    bool halves = dtype_info[gradient->x.access->tensor->dtype].bits == 16;
    return atom && halves && atom->m == PIXELS && atom->n == EIGHT && atom->k == PIXELS &&
           is_copied(gradient, &gradient->x, &shape->batch) && is_copied(gradient, &gradient->d, &shape->multiplier);
}

// ---- tiles ----

/* Eights of channels under taps. */
static int64_t taps_of(const FilterGradient *gradient, const GroupsWay *way)
{
    return gradient->down.taps * gradient->along.taps * (way->channels / EIGHT);
}

static int64_t sums_of(const GroupsWay *way) { return (int64_t)way->tiles * (way->filters / EIGHT) * 4; }

static int64_t warps_of(const GroupsWay *way) { return (int64_t)way->groups * way->shares * way->sets; }

/* Of the warps of all sets but the first; or of one, which leaves none. */
static int64_t left_bytes(const GroupsWay *way)
{
    return larger(warps_of(way) - warps_of(way) / way->sets, 1) * sums_of(way) * 32 * 4;
}

static int side_of(const GroupsWay *way) { return (int)larger(way->channels, way->filters); }

/* Groups that lie side by side, at most: a power of two of which there are whole ones. Of planes of groups there is one. */
static int groups_of(const Fusion *fusion, const FilterGradient *gradient, const GroupsWay *way)
{
    const Depthwise *shape = &gradient->shape;
    const AxisGroup *channel = &shape->channel;
    const Affine *x = gradient->x.offset, *d = gradient->d.offset;
    bool beside = axis_group_stride(channel, x) == way->channels * axis_group_stride(&shape->batch, x) &&
                  axis_group_stride(channel, d) == way->filters * axis_group_stride(&shape->multiplier, d);
    int64_t all = beside ? fusion->axes[axis_group_innermost(channel)].extent : 1;
    int groups = 1;
    while (all % (2 * groups) == 0 && 2 * groups * side_of(way) <= MOST_SIDE)
        groups *= 2;
    return groups;
}

static int64_t pixel_of(int64_t elements) { return elements + (EIGHT - elements % BANKS + BANKS) % BANKS; }

static void set_stages(const FilterGradient *gradient, GroupsWay *way, int64_t images, int64_t rows)
{
    way->images = (int)images, way->rows = (int)rows;
    int64_t reach = window_reach(&gradient->along, gradient->d.columns);
    int64_t lines = images * window_reach(&gradient->down, rows);
    way->copied_x = lines * reach;
    way->stage_x = lines * round_up(reach, gradient->along.stride) * way->pixel_x;
    way->stage_d = images * rows * gradient->d.columns * way->pixel_d;
}

static int64_t staged_bytes(const GroupsWay *way) { return 2 * 2 * (way->stage_x + way->stage_d); }

/* As many images as so many bytes hold; or else strips, each as high as the others. False: no row fits. */
static bool set_step(const FilterGradient *gradient, GroupsWay *way, int64_t room)
{
    int64_t rows = gradient->d.rows, images = gradient->shape.summed.extent, strips = 1;
    set_stages(gradient, way, 1, rows);
    int64_t fit = smaller(room / staged_bytes(way), images);
    if (fit > 1)
        set_stages(gradient, way, ceil_div(images, ceil_div(images, fit)), rows);
    while (staged_bytes(way) > room && way->rows > 1)
        set_stages(gradient, way, 1, ceil_div(rows, ++strips));
    return staged_bytes(way) <= room && left_bytes(way) <= room;
}

/* Warps that share the taps, as few as have so many registers for the sums. */
static bool set_warps(const FilterGradient *gradient, GroupsWay *way, int most, int sums)
{
    int64_t tiles = ceil_div(taps_of(gradient, way), 2), each = sums / (way->filters / EIGHT * 4);
    if (!each)
        return false;
    way->shares = (int)ceil_div(tiles, each);
    way->tiles = (int)ceil_div(tiles, way->shares);
    way->shares = (int)ceil_div(tiles, way->tiles);
    way->sets = (int)larger(1, most / ((int64_t)way->groups * way->shares));
    return warps_of(way) <= MOST_WARPS;
}

static int64_t steps_of(const FilterGradient *gradient, const GroupsWay *way)
{
    return ceil_div(gradient->shape.summed.extent, way->images) * ceil_div(gradient->d.rows, way->rows);
}

/* Steps that are added up in one go. */
static int64_t chain_of(const FilterGradient *gradient, const GroupsWay *way)
{
    int64_t tiles = ceil_div(way->images * way->rows * gradient->d.columns, PIXELS);
    return larger(1, MAX_CHAIN / (ceil_div(tiles, way->sets) * PIXELS));
}

static bool has_chains(const FilterGradient *gradient, const GroupsWay *way)
{
    return steps_of(gradient, way) > chain_of(gradient, way);
}

// ---- the schedule ----

void filter_groups_set_space(TileSpace *space, const Fusion *fusion, const FilterGradient *gradient,
                             const int64_t *block)
{
    const Depthwise *shape = &gradient->shape;
    const Pictures *pictures[] = {&gradient->x, &gradient->d};
    direct_add_axes(space, shape);
    space_add_axis(space, "summed", shape->summed.extent, true);
    for (int i = 0; i < 2; i++) {
        DataTile *tile = &space->tiles[space->tile_count++];
        *tile = direct_tile(fusion, shape, pictures[i]->access, i == X_TILE ? OF_INPUTS : OF_TAPS);
        tile->apart |= i == X_TILE && !direct_reads_all(shape);
        tile->staged = true;
        tile->staged_inner = tile->rank - 1;
    }
    direct_add_outer_tiles(space, fusion, shape);
    int64_t all[SUMMED + 1] = {[DOWN] = gradient->down.taps, [ALONG] = gradient->along.taps};
    all[ALONG_TAP] = gradient->d.columns;
    for (int a = 0; a < space->axis_count; a++)
        space_fix_axis(space, a, all[a] ? all[a] : block[a], all[a] ? all[a] : block[a]);
}

/* Accesses of L2 for each sector's worth, where channels' sums lie sectors apart, as in dw[f, c, r, s]: two
   for each element, since a sector of which a part is stored takes two. 0: as rows have it. */
static double accesses_of_store(const FilterGradient *gradient, const Access *store)
{
    const double SECTOR_BITS = 8 * SECTOR_BYTES;
    Affine offset = access_offset(store);
    int bits = dtype_info[store->tensor->dtype].bits;
    bool apart = (double)(axis_group_stride(&gradient->shape.batch, &offset) * bits) >= SECTOR_BITS;
    return apart ? 2 * SECTOR_BITS / bits : 0;
}

static Schedule *schedule_of(Arena *arena, const FilterGradient *gradient, const Fusion *fusion, const TileSpace *space,
                             const GroupsWay *way)
{
    enum { FIND = 24 };   // instructions for the addresses of 16 pixels
    Schedule schedule = {.computes = COMPUTES_OWN, .stages = 2};
    int64_t pixels = size_product(gradient->d.rows * gradient->d.columns, gradient->shape.summed.extent);
    uint32_t inputs = 1u << X_TILE | 1u << D_TILE;
    schedule_loop(&schedule, (Loop){.axis = SUMMED});
    schedule_loop(&schedule, (Loop){.axis = DOWN_TAP});
    schedule_wait(&schedule, 0);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    uint32_t planes = (way->vector_x ? 1u << X_TILE : 0) | (way->vector_d ? 1u << D_TILE : 0);
    int each = planes_in_flight(larger(way->vector_x, way->vector_d));
    schedule_load(&schedule, (Move){.tiles = inputs & ~planes, .to = PLACE_SHARED, .async = true, .ahead = 1});
    schedule_load(&schedule, (Move){.tiles = planes, .to = PLACE_SHARED, .each = (uint8_t)each});
    schedule_load(&schedule, (Move){.tiles = inputs, .from = PLACE_SHARED});
    schedule_reduce(&schedule, schedule_ops(fusion, true));
    schedule_takes(&schedule,
                   (double)(ceil_div(pixels, PIXELS * way->sets) * (FIND + way->tiles) + 2 * (way->sets - 1) * sums_of(way)),
                   0);
    schedule_end(&schedule);
    schedule_end(&schedule);
    if (way->sets > 1) {
        schedule_wait(&schedule, 0);
        schedule_barrier(&schedule, SCOPE_BLOCK);
        schedule_exchange(&schedule, (Exchange){.ops = schedule_ops(fusion, true),
                                                .scope = SCOPE_BLOCK,
                                                .combine = COMBINE_NOTHING,
                                                .value_bytes = 4});
    }
    schedule_load(&schedule, (Move){.tiles = space_inputs(space) & ~inputs});
    schedule_map(&schedule, schedule_ops(fusion, false));
    const Access *store = &fusion->ops[fusion->op_count - 1].store;
    schedule_store(&schedule, (Move){.tiles = space_outputs(space),
                                     .accesses = (float)accesses_of_store(gradient, store),
                                     .completed = true});
    return schedule_copy(arena, &schedule);
}

/* 16 pixels each, of all steps, of which each ends with a tile of its own. */
static int64_t pixel_tiles(int64_t images, int64_t rows, int64_t columns, const GroupsWay *way)
{
    int64_t last_images = images % way->images, last_rows = rows % way->rows;
    return (images / way->images) * (rows / way->rows) * ceil_div(way->images * way->rows * columns, PIXELS) +
           (last_images ? ceil_div(last_images * rows * columns, PIXELS) : 0) +
           (last_rows ? images * ceil_div(last_rows * columns, PIXELS) : 0);
}

static int64_t tiles_of(const KernelKind *kind)
{
    const TileSpace *space = kind->space;
    return pixel_tiles(space->axes[SUMMED].extent, space->axes[DOWN_TAP].extent, space->axes[ALONG_TAP].extent,
                       kind->choice.value);
}

/* Of d all warps that share taps read the same; vectors of x are read for each eight of channels under each tap. */
static int64_t shared_moved(const KernelKind *kind, int tile, bool written, const RTile *block, const RTile *warp,
                            const int64_t *first)
{
    enum { MATRICES = 4 * 128 };   // bytes that a warp reads at once
    const GroupsWay *way = kind->choice.value;
    const TileSpace *space = kind->space;
    (void)block, (void)warp, (void)first;
    int64_t images = space->axes[SUMMED].extent;
    int64_t rows = space->axes[DOWN_TAP].extent, columns = space->axes[ALONG_TAP].extent;
    if (written && tile == D_TILE)
        return images * rows * columns * way->groups * way->filters * 2;
    if (written)
        return images * ceil_div(rows, way->rows) * (way->copied_x / way->images) * way->groups * way->channels * 2;
    int64_t loads = tile == X_TILE ? way->tiles : ceil_div(way->filters, 2 * EIGHT);
    return tile <= D_TILE ? tiles_of(kind) * way->groups * way->shares * loads * MATRICES : 0;
}

/* Sets but the first leave their sums, which that one adds to its own where they exist. */
static bool work_of(const void *view, const CountedItem *at, ItemWork *work)
{
    enum { PRODUCTS = PIXELS * PIXELS * EIGHT, LANES = 32 };
    const FilterGradient *gradient = ((const DepthwiseView *)view)->grouped;
    const GroupsWay *way = at->kind->choice.value;
    if (at->item->kind == ITEM_EXCHANGE && at->item->exchange.ops) {
        work->shared_written = left_bytes(way);
        work->shared_read = left_bytes(way);
        work->additions = left_bytes(way) / 4;
        return true;
    }
    if (at->item->kind != ITEM_REDUCE)
        return false;
    int64_t images = gradient->shape.summed.extent,
            tiles = pixel_tiles(images, gradient->d.rows, gradient->d.columns, way);
    int64_t steps = steps_of(gradient, way), sums = warps_of(way) * sums_of(way) * LANES;
    int64_t busy = ceil_div(way->images * way->rows * gradient->d.columns, PIXELS);   // sets
    work->tensor_products =
        tiles * way->groups * way->shares * way->tiles * (way->filters / EIGHT) * PRODUCTS * at->times / steps;
    if (has_chains(gradient, way))
        work->additions = ceil_div(steps, chain_of(gradient, way)) * sums;
    work->multiplying_warps = smaller(way->sets, busy) * way->groups * way->shares;
    return true;
}

// ---- kinds ----

/* Rows of a step whose pixels the warps multiply at about the same time: as many as divide it. */
static int64_t rows_together(const FilterGradient *gradient, const GroupsWay *way)
{
    int64_t wanted = smaller(way->rows, PIXELS * way->sets / gradient->d.columns), rows = larger(wanted, 1);
    while (way->rows % rows)
        rows--;
    return rows;
}

/* Warps with the same filters share taps, and the pixels of a strip. */
static void set_tiles(TileSpace *space, const Fusion *fusion, const FilterGradient *gradient,
                      const GroupsWay *way)
{
    const int64_t block[] = {[CHANNEL] = way->groups, [MULTIPLIER] = way->filters, [BATCH] = way->channels,
                             [DOWN_TAP] = way->rows,  [SUMMED] = way->images};
    int64_t columns = smaller(PIXELS * way->sets, gradient->d.columns);
    filter_groups_set_space(space, fusion, gradient, block);
    space_fix_axis(space, CHANNEL, 1, way->groups);
    space_fix_axis(space, DOWN_TAP, rows_together(gradient, way), way->rows);
    space_fix_axis(space, ALONG_TAP, columns, round_up(gradient->d.columns, columns));
    space_fix_axis(space, SUMMED, 1, way->images);
    int64_t reach = window_reach(&gradient->along, gradient->d.columns);
    if (way->vector_x)
        space->tiles[X_TILE].instructions = planes_instructions(way->vector_x, gradient->along.pad, reach);
    if (way->vector_d)
        space->tiles[D_TILE].instructions = planes_instructions(way->vector_d, 0, gradient->d.columns);
}

/* Of taps and pixels whole tiles are multiplied. */
static double flops_of(const FilterGradient *gradient, const GroupsWay *way)
{
    double taps = (double)(2 * way->tiles * way->shares) / (double)taps_of(gradient, way);
    int64_t images = gradient->shape.summed.extent, rows = gradient->d.rows, columns = gradient->d.columns;
    double pixels = (double)(pixel_tiles(images, rows, columns, way) * PIXELS) / (double)(images * rows * columns);
    return 2 * taps * pixels;
}

static int registers_of(const FilterGradient *gradient, const GroupsWay *way)
{
    enum { OTHERS = 40 };
    int64_t sums = sums_of(way) * (has_chains(gradient, way) ? 2 : 1);
    return (int)(OTHERS + sums + way->tiles + 2 * round_up(way->filters, 2 * EIGHT) / EIGHT);
}

static KernelKind kind_of(Arena *arena, const FilterGradient *gradient, const Fusion *fusion, const DeviceSpec *device,
                          const GroupsWay *way)
{
    KernelKind kind = {.name = filter_groups_family.variants[0],
                       .cost = &calibration.by_steps,
                       .space = space_new(arena, fusion),
                       .threads.of_tile = device->warp_size * way->shares * way->sets,
                       .shared_moved = shared_moved,
                       .registers = {.input_buffers = 1, .most_inputs = 1, .others = registers_of(gradient, way)}};
    kind_choose(arena, &kind, way, sizeof *way);
    layout_add(&kind.shared, "STAGED_X", 2 * 2 * way->stage_x);
    layout_add(&kind.shared, "STAGED_D", 2 * 2 * way->stage_d);
    layout_put(&kind.shared, "SUMS", 0, left_bytes(way));
    kind.space->unit = gradient->atom->unit;
    kind.space->flops = flops_of(gradient, way);
    set_tiles(kind.space, fusion, gradient, way);
    kind.schedule = schedule_of(arena, gradient, fusion, kind.space, way);
    return kind;
}

/* Single sectors take 1.2 to 1.4 times as long as two (tuning-log 183), but half as long as half of the SMs. */
static bool is_wide_enough(const FilterGradient *gradient, const DeviceSpec *device, const GroupsWay *way, int most)
{
    int64_t wider = gradient->shape.channel.extent / (2 * way->groups) * gradient->shape.summed.extent;   // blocks
    int side = way->groups * side_of(way);
    return way->groups == most || side >= USUAL_SIDE || (side >= LEAST_SIDE && 2 * wider <= device->sm_count);
}

static int kinds_of(Arena *arena, const FilterGradient *gradient, const Fusion *fusion, const DeviceSpec *device,
                    GroupsWay way, KernelKind *variants)
{
    int count = 0;
    way.pixel_x = pixel_of((int64_t)way.groups * way.channels);
    way.pixel_d = pixel_of((int64_t)way.groups * way.filters);
    for (int warps = LEAST_WARPS; warps <= MOST_WARPS; warps *= 2)
        for (int blocks = 1; blocks <= MOST_RESIDENT; blocks++)
            for (int sums = MOST_SUMS, last = 0; sums >= MOST_SUMS / 2; sums /= 2, last = way.shares)
                if (set_warps(gradient, &way, warps, sums) && way.shares != last &&
                    set_step(gradient, &way, device->shared_per_sm / blocks - device->shared_reserved_per_block))
                    variants[count++] = kind_of(arena, gradient, fusion, device, &way);
    return count;
}

static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device, KernelKind *variants)
{
    const FilterGradient *gradient = ((const DepthwiseView *)view)->grouped;
    int count = 0;
    if (!gradient || !takes(gradient))
        return 0;
    int filters = (int)gradient->shape.multiplier.extent;
    GroupsWay way = {.channels = (int)gradient->shape.batch.extent,
                     .filters = filters,
                     .vector_x = plane_vector(gradient, &gradient->x, &gradient->shape.batch),
                     .vector_d = plane_vector(gradient, &gradient->d, &gradient->shape.multiplier)};
    /* A block waits for planes; where it has few warps, `filter_wide` is faster behind a launch that turns them: of 48 channels
       29 us for 49 (tuning-log 233). */
    if ((way.vector_x || way.vector_d) && side_of(&way) > USUAL_SIDE)
        return 0;
    int most = groups_of(fusion, gradient, &way);
    for (way.groups = most; way.groups > 0 && is_wide_enough(gradient, device, &way, most); way.groups /= 2)
        count += kinds_of(arena, gradient, fusion, device, way, variants + count);
    return count;
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    const FilterGradient *gradient = ((const DepthwiseView *)plan->view)->grouped;
    const GroupsWay *way = plan->kind->choice.value;
    strbuf_printf(out, "using Element = %s;   // of x and d\nusing Value = float;   // of products and sums\n",
                  gradient->atom->element);
    filter_gradient_emit_sizes(out, gradient);
    filter_gradient_emit_steps(out, gradient);
    CONSTEXPR(out, "int CHANNELS, FILTERS", "of a group", way->channels, way->filters);
    CONSTEXPR(out, "int TC, BD, BATCH", "rTile, block: groups; rows of d and images in a step", way->groups, way->rows,
              way->images);
    CONSTEXPR(out, "int TILES", "of a warp: two eights of channels under taps", way->tiles);
    CONSTEXPR(out, "int SETS", "warps with the same taps, which share pixels", way->sets);
    CONSTEXPR(out, "int PIXEL_X, PIXEL_D", "elements in shared memory", way->pixel_x, way->pixel_d);
    CONSTEXPR(out, "Index PLANE_X, PLANE_D", "elements from one channel to the next",
              axis_group_stride(&gradient->shape.batch, gradient->x.offset),
              axis_group_stride(&gradient->shape.multiplier, gradient->d.offset));
    CONSTEXPR(out, "int VECTOR_X, VECTOR_D", "columns of a plane in an aligned vector; 0: channels are innermost", way->vector_x,
              way->vector_d);
    CONSTEXPR(out, "Index CHAIN", "promotion interval of the accumulators, in steps", chain_of(gradient, way));
    CONSTEXPR(out, "bool CHAINS", "longer than one promotion interval", has_chains(gradient, way));
    filter_gradient_emit_functions(out, plan, gradient);
}

const Family filter_groups_family = {
    .name = "filter_groups",
    .template_path = "templates/filter_groups.cu",
    .variants = (const char *const[]){"taps", NULL},
    .view = depthwise_view,
    .rewrites = (const Rewrite *const[]){&turn_planes_of_groups, NULL},
    .kinds = kinds,
    .emit = emit,
    .work = work_of,
};
