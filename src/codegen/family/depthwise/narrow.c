// narrow: a convolution of few channels on tensor cores, whose channels are innermost in memory or planes. The image
// is copied once, and A's registers are read where windows begin.
#include "codegen/family/depthwise/narrow.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "codegen/cuda/reads.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum { INPUT = NARROW_INPUT, FILTER = NARROW_FILTER };
enum { OF_ROWS, OF_GROUPS, OF_PAIRS };   // variants; of two tiles of outputs that a warp multiplies together

enum {
    PIECE = 8,            // elements of 16 bytes
    ALONE = 8,            // of one group: products of more have whole lines
    WARP_EIGHTS = 4,      // of filters, and as many groups
    BLOCK_FILTERS = 128,   // of a group
    SIDE_BY_SIDE = 64,     // elements of a pixel that a block copies: 128 bytes
    MOST_WIDTH = 128,      // outputs of a line
    LEAST_PIXELS = 64,     // of a block
    IN_FLIGHT = 16,        // elements of a thread, where they are copied one by one
    MOST_WARPS = 8,
    HEIGHTS = 3,       // of blocks of one kind: with fewer lines more of the image is read twice
    LEAST_BLOCKS = 2   // shared memory has room for so many blocks of an SM, at least
};

// ---- which ones ----

/* Elements from one channel to the next; those of the next group follow. 0: they lie in another way. */
static int64_t channel_stride(const Fusion *fusion, const Depthwise *shape)
{
    const AxisGroup summed = depthwise_channels(fusion, shape), *groups = &shape->channel;
    int64_t stride = summed.count ? axis_group_stride(&summed, &shape->x_offset) : 1;
    bool even = (!summed.count || axis_group_has_stride(&summed, fusion, &shape->x_offset, stride)) &&
                (!groups->count || axis_group_has_stride(groups, fusion, &shape->x_offset,
                                                         fitting_mul(stride, summed.extent)));
    return even && stride > 0 ? stride : 0;
}

/* In one group a row of taps is one run of memory. */
static bool has_row_runs(const Depthwise *shape)
{
    const WindowAxis *along = slide_along(shape);
    return shape->channel.extent == 1 && shape->summed.extent < PIECE &&
           (along->taps == 1 || along->dilation == 1);
}

/* Positions along the axis are small numbers. */
static bool is_short(const WindowAxis *axis)
{
    return !axis->input_turned && axis->inputs < INT16_MAX && axis->outputs < INT16_MAX &&
           llabs(axis->pad) < INT16_MAX && axis->stride < INT16_MAX && window_reach(axis, 1) < INT16_MAX;
}

static bool takes(const DepthwiseView *view, const Fusion *fusion)
{
    const Depthwise *shape = view->flat;
    if (!shape || !view->atom || shape->multiplier.extent < 2)
        return false;
    DType type = factor_access(shape->x)->tensor->dtype;
    int64_t channels = depthwise_channels(fusion, shape).extent;
    if (shape->deep && channels % PIECE)
        return false;
    for (int i = 0; i < shape->image_count; i++)
        if (!is_short(&shape->image[i]))
            return false;
    return (type == DTYPE_F16 || type == DTYPE_BF16) && channel_stride(fusion, shape) > 0 &&
           (shape->channel.extent > 1 || channels <= ALONE || shape->deep) &&
           (has_row_runs(shape) || channels == 2 || channels == 4 || channels % PIECE == 0);
}

// ---- how an image lies in shared memory ----

/* Elements of the widest vector with which all lines begin and end, of at most a piece. */
static int line_vector(const Depthwise *shape, int64_t line)
{
    int64_t all = shape->x_origin | line | PIECE;
    for (int i = 0; i < shape->batch.count; i++)
        all |= shape->x_offset.coef[shape->batch.axes[i]];
    if (shape->image_count > 1)
        all |= shape->image[0].x_stride;
    return (int)(all & -all);
}

/* Channels are innermost; all lines begin at whole pieces, and end with them. */
static bool has_pieces(const NarrowWay *way, const Depthwise *shape, int64_t line)
{
    return way->channel == 1 && line_vector(shape, line) == PIECE;
}

/* Columns of a plane that are copied together, of eight channels each. */
static int plane_vector(const NarrowWay *way, const Depthwise *shape)
{
    const WindowAxis *along = slide_along(shape);
    int64_t channels = shape->summed.extent;
    if (way->channel == 1 || way->groups * channels % PIECE || shape->channel.extent * channels % PIECE)
        return 0;
    return along->x_stride == 1 ? line_vector(shape, along->inputs | way->channel) : 1;
}

/* Words are aligned: pixels are even, or windows move by two; else each has an element more. */
static void lay_out_rows(NarrowWay *way, const Depthwise *shape)
{
    const WindowAxis *along = slide_along(shape);
    int channels = (int)shape->summed.extent;
    way->pixel = channels + (int)(along->stride * channels % 2);
    way->pieces = way->pixel == channels && along->x_stride == channels &&
                  has_pieces(way, shape, along->inputs * channels);
    if (way->pieces)
        way->lead = (int)((-along->pad * channels % PIECE + PIECE) % PIECE);
    way->shift = way->lead % 2;
    way->run = (int)along->taps * way->pixel + way->shift;
    way->runs = way->together = way->phases = 1;
    int64_t first = way->lead - way->shift, last = (way->width - 1) * along->stride * way->pixel;
    int64_t line = first + last + round_up(way->run, NARROW_EIGHT);
    way->reach = (int)ceil_div(line, way->pixel);
    way->line = (int)(way->pieces ? round_up(line, PIECE) : round_up(way->reach * way->pixel, 2));   // words are aligned
    way->phase = way->reach;
}

/* Pixels that lanes read at once are in different banks: their distance is an odd multiple of 16 bytes, or of planes, whose
   pixels are stored one by one, that of those of a phase. */
static void lay_out_groups(NarrowWay *way, const Depthwise *shape)
{
    enum { BANKS = 2 * PIECE };
    const WindowAxis *along = slide_along(shape);
    int channels = (int)shape->summed.extent, side_by_side = way->groups * channels;
    bool folds = channels < NARROW_EIGHT;
    way->pixel = side_by_side + (PIECE - side_by_side % BANKS + BANKS) % BANKS;
    way->pieces = side_by_side % PIECE == 0 && has_pieces(way, shape, shape->channel.extent * channels) &&
                  along->x_stride % PIECE == 0;
    way->together = folds ? NARROW_EIGHT / channels : 1;
    way->run = folds ? (int)along->taps * channels : channels;
    way->runs = folds ? 1 : (int)along->taps;
    int64_t taps = folds ? round_up(along->taps, way->together) : along->taps;
    way->reach = (int)((way->width - 1) * along->stride + (taps - 1) * along->dilation + 1);
    way->vector = plane_vector(way, shape);
    way->phases = way->vector ? way->adjacent * (int)along->stride : 1;
    way->phase = (int)ceil_div(way->reach, way->phases);
    way->line = way->phases * way->phase * way->pixel;
}

// ---- tiles of blocks and warps ----

static bool stores_filters_side_by_side(const Fusion *fusion, int axis)
{
    bool beside = true;
    for (int i = 0; i < fusion->op_count; i++)
        beside &= !fusion->ops[i].stored || access_offset(&fusion->ops[i].store).coef[axis] == 1;
    return beside;
}

/* Eights of filters of a warp. Of an odd number of eights each lane would store two filters at a time: 24 are made as 32, of which
   a lane has eight side by side, and of more than a warp can hold it has an even number of eights. */
static int warp_tiles_of(const Fusion *fusion, const Depthwise *shape, int steps, int eights, int words)
{
    int64_t all = ceil_div(shape->multiplier.extent, NARROW_EIGHT);
    int most = (int)larger(smaller(eights, words / steps), 1), tiles = (int)smaller(all, most);
    if (tiles == 1 || tiles % 2 == 0 || !stores_filters_side_by_side(fusion, axis_group_innermost(&shape->multiplier)) ||
        shape->multiplier.extent % 2)
        return tiles;
    return tiles == all && tiles < most ? tiles + 1 : tiles < all ? tiles - 1 : tiles;
}

/* Filters of a warp, in eights, and groups, that fit in its registers. False: there are too many. */
static bool set_warp(NarrowWay *way, const Fusion *fusion, const Depthwise *shape, int eights, int words)
{
    int64_t filters = shape->multiplier.extent, groups = 1;
    int tiles = warp_tiles_of(fusion, shape, way->steps, eights, words);
    way->folded = (filters == 2 || filters == 4) && way->groups >= NARROW_EIGHT / filters
                      ? NARROW_EIGHT / (int)filters
                      : 1;
    bool whole = tiles * NARROW_EIGHT >= filters;
    while (groups < way->folded || (whole && 2 * groups <= way->groups && 2 * groups * tiles <= eights &&
                                    2 * groups * tiles * way->steps <= words))
        groups *= 2;
    way->warp_tiles = tiles;
    way->warp_groups = (int)groups;
    way->filters = (int)smaller(round_up(filters, tiles * NARROW_EIGHT),
                                BLOCK_FILTERS / (tiles * NARROW_EIGHT) * (tiles * NARROW_EIGHT));
    return groups * tiles * way->steps <= words;
}

/* As many groups as 128 contiguous bytes hold: a power of two. */
static int groups_of(const Depthwise *shape)
{
    int groups = 1;
    while (2 * groups <= shape->channel.extent && 2 * groups * shape->summed.extent <= SIDE_BY_SIDE)
        groups *= 2;
    return groups;
}

static int shares_of(const NarrowWay *way)
{
    return way->groups / way->warp_groups * (way->filters / (way->warp_tiles * NARROW_EIGHT));
}

/* Parts of a line are whole pieces of the image. */
static int width_of(const Depthwise *shape)
{
    int64_t outputs = slide_along(shape)->outputs, parts = ceil_div(outputs, MOST_WIDTH);
    return (int)(parts == 1 ? outputs : round_up(ceil_div(outputs, parts), PIECE));
}

static void find_way(const Fusion *fusion, const Depthwise *shape, int row_tiles, NarrowWay *way)
{
    *way = (NarrowWay){.rows = has_row_runs(shape),
                       .channel = channel_stride(fusion, shape),
                       .groups = groups_of(shape),
                       .width = width_of(shape),
                       .row_tiles = row_tiles,
                       .adjacent = depthwise_stores_together(fusion, slide_along(shape)->output, 2 * row_tiles)};
    (way->rows ? lay_out_rows : lay_out_groups)(way, shape);
    way->steps = (int)(slide_down(shape)->taps * way->runs * ceil_div(way->run, NARROW_EIGHT));
}

/* Are the filters of a block contiguous, from an aligned vector on? All of the tensor is read, and a block has
   all of it, or contiguous parts: groups, of which it has all filters, or filters. */
static bool has_filter_run(const Fusion *fusion, const Depthwise *shape, int64_t run)
{
    int64_t filter = narrow_filter(shape), group = filter * shape->multiplier.extent,
            all = group * shape->channel.extent;
    const AxisGroup *outer = shape->channel.extent > 1 ? &shape->channel : &shape->multiplier;
    int64_t stride = shape->channel.extent > 1 ? group : filter;
    return shape->w->kind == EXPR_ACCESS && tensor_elements(factor_access(shape->w)->tensor) == all &&
           (run == all ||
            (run % PIECE == 0 && all % PIECE == 0 && axis_group_has_stride(outer, fusion, &shape->w_offset, stride)));
}

/* Lanes read eight filters two by two from four eights, or of a channel eight filters and of four pairs of channels. Where
   these would share banks, eight elements are left out between the eights, or the channels. */
static void set_skew(NarrowWay *way, const Fusion *fusion, const Depthwise *shape)
{
    enum { FEW_BANKS = 2 * PIECE };   // elements: multiples of their distance are few
    const AxisGroup *summed = &shape->summed;
    int64_t filter = narrow_filter(shape), term = filter / summed->extent * shape->multiplier.extent;
    way->by_terms = summed->count && axis_group_has_stride(summed, fusion, &shape->w_offset, term);
    const AxisGroup channels = depthwise_channels(fusion, shape);
    way->words = way->runs > 1 && channels.extent % PIECE == 0 && axis_group_has_stride(&channels, fusion, &shape->w_offset, 1);
    bool by_filters = axis_group_has_stride(&shape->multiplier, fusion, &shape->w_offset, filter);
    int64_t each = way->by_terms ? term : by_filters ? NARROW_EIGHT * filter : 0;
    way->skew = each % FEW_BANKS ? 0 : each;
    way->vectors = way->by_terms && term % PIECE == 0 && way->runs > 1 && summed->extent % PIECE == 0 &&
                   way->beside > 1 && shape->multiplier.extent % (way->warp_tiles * NARROW_EIGHT) == 0 &&
                   axis_group_has_stride(&shape->multiplier, fusion, &shape->w_offset, 1);
}

static void set_filter_run(NarrowWay *way, const Fusion *fusion, const Depthwise *shape)
{
    int64_t filters = smaller(way->filters, shape->multiplier.extent);
    int64_t run = size_product(size_product(smaller(way->groups, shape->channel.extent), filters),
                               narrow_filter(shape));
    bool whole = shape->channel.extent == 1 || filters == shape->multiplier.extent;
    way->filter_run = whole && has_filter_run(fusion, shape, run) ? run : 0;
    way->skew = way->by_terms = way->words = way->vectors = 0;
    if (way->filter_run)
        set_skew(way, fusion, shape);
}

/* Lines that a warp touches to store an element of each lane: of four filters and eight outputs, which are side by side
   in planes; else each output has its filters side by side, of which lanes have every eighth. */
static double lines_of_store(const NarrowWay *way, const Fusion *fusion, const Depthwise *shape)
{
    const double LINE = 64, OUTPUTS = NARROW_EIGHT, FILTERS = 4;   // LINE: 128 bytes of 16-bit outputs
    if (!stores_filters_side_by_side(fusion, axis_group_innermost(&shape->multiplier)))
        return FILTERS;
    double filters = (double)shape->multiplier.extent,
           padded = (double)round_up(shape->multiplier.extent, NARROW_EIGHT),
           apart = OUTPUTS * (1 + 2 * way->beside * (FILTERS - 1) / LINE),
           together = 1 + OUTPUTS * filters / LINE;
    return fmin(apart, together) * padded / filters;
}

/* Accesses of L2 to the sectors of a run of so many elements, which begins at a multiple of `aligned`: two, where it has a part
   of the sector. */
static double accesses_of_run(int64_t run, int64_t aligned)
{
    const double SECTOR = 2 * PIECE;
    double touched = fmax((double)(run - aligned), 0) / SECTOR + 1, whole = fmax((double)(run + aligned) - SECTOR, 0) / SECTOR;
    return 2 * (touched - whole) + whole;
}

/* Of a warp that stores a vector of each lane, eight outputs by four, accesses of L2 for each sector's worth. Of adjacent outputs the
   eight are one run in each of four planes; of filters the four are one run, or, if there are no more, all of them. */
static double accesses_of_store(const NarrowWay *way, const Fusion *fusion, const Depthwise *shape)
{
    enum { SECTOR = 2 * PIECE, OUTPUTS = NARROW_EIGHT, FILTERS = 4 };
    int64_t filters = smaller(way->folded * shape->multiplier.extent, FILTERS * way->stored);
    bool planes = way->adjacent > 1, all = filters == shape->multiplier.extent && shape->channel.extent == 1;
    int axis = planes ? slide_along(shape)->output : axis_group_innermost(&shape->multiplier);
    int64_t run = planes ? OUTPUTS * way->stored : all ? OUTPUTS * filters : filters;
    return accesses_of_run(run, depthwise_stores_together(fusion, axis, SECTOR)) * SECTOR / (double)run;
}

/* Adjacent sums of a lane that are stored by one access, and tiles of a warp whose filters are interleaved for that. */
static void set_stored(NarrowWay *way, const Fusion *fusion, const Depthwise *shape)
{
    way->beside = way->warp_tiles % 4 == 0 ? 4 : way->warp_tiles % 2 == 0 ? 2 : 1;
    way->stored = way->adjacent > 1 ? way->adjacent
                                    : depthwise_stores_together(fusion, axis_group_innermost(&shape->multiplier), 2 * way->beside);
    if (way->adjacent == 1)
        way->beside = (int)larger(way->stored / 2, 1);
    way->stored_lines = way->stored > 1 ? 0 : lines_of_store(way, fusion, shape);
    way->stored_accesses = way->stored > 1 ? accesses_of_store(way, fusion, shape) : 0;
}

static int64_t staged_bytes(const NarrowWay *way) { return 2 * (int64_t)way->line * way->lines; }

/* Bytes of filters that a block copies; 0: warps read them from global memory. */
static int64_t filter_bytes(const NarrowWay *way) { return 2 * way->filter_run; }

static int64_t filter_room(const NarrowWay *way)
{
    return filter_bytes(way) + (way->skew ? way->filter_run / way->skew * 2 * PIECE : 0);
}

static void lay_out(SharedLayout *layout, const KernelKind *kind, const RTile *block, const RTile *warp,
                    const DeviceSpec *device)
{
    const NarrowWay *way = kind->choice.value;
    (void)block, (void)warp, (void)device;
    layout_add(layout, "INPUTS", round_up(staged_bytes(way), 16));
    layout_add(layout, "FILTERS", larger(round_up(filter_room(way), 2 * PIECE), 2 * PIECE));
}

// ---- what a block does ----

/* A lane's instructions for an element that is copied alone, counted in SASS: of columns that are side by side, or of pixels;
   more where a line has several parts, of which the last is shorter; and for the part, whose lanes have up to IN_FLIGHT
   elements each. */
static double copy_alone_instructions(const NarrowWay *way, const Depthwise *shape)
{
    enum { OF_COLUMN = 6, OF_PIXEL = 13, OF_PARTS = 5, OF_PART = 27, PART_LANES = 32 };
    int64_t channels = way->rows ? way->pixel : way->groups * shape->summed.extent;
    bool planes = way->channel > 1,
         flat = way->rows && channels == shape->summed.extent && slide_along(shape)->x_stride == channels;
    int64_t length = way->reach * (planes ? 1 : channels), all = ceil_div(length, PART_LANES), parts = ceil_div(all, IN_FLIGHT),
            each = ceil_div(all, parts);
    double own = (planes || flat ? OF_COLUMN : OF_PIXEL) + (parts > 1 ? OF_PARTS : 0);
    return ((double)each * own + OF_PART) * (double)(parts * PART_LANES) / (double)length;
}

static void add_tiles(TileSpace *space, const Fusion *fusion, const Depthwise *shape, const NarrowWay *way)
{
    enum { FIND = 24 };   // instructions of a copy: where it comes from, where it goes
    direct_add_factor_tiles(space, fusion, shape);
    for (int i = INPUT; i <= FILTER; i++) {
        DataTile *tile = &space->tiles[i];
        tile->staged = i == INPUT || way->filter_run > 0;
        bool pieces = i == FILTER || way->pieces;
        tile->instructions = pieces        ? (double)FIND / PIECE
                             : way->vector ? planes_instructions(way->vector, slide_along(shape)->pad, way->reach)
                                           : copy_alone_instructions(way, shape);
        tile->staged_inner = tile->rank - 1;
    }
    direct_add_outer_tiles(space, fusion, shape);
}

/* Tiles of outputs that a block multiplies whole: of rows that exist. */
static int64_t tiles_of(const NarrowWay *way, int64_t rows)
{
    return ceil_div(rows * way->width, NARROW_TILE * way->row_tiles) * way->row_tiles;
}

/* Of a warp, each of which waits for what the epilogue loads of its own outputs. */
static double turns_of(const NarrowWay *way)
{
    return (double)ceil_div(tiles_of(way, way->height) / way->row_tiles, way->sets);
}

static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const TileSpace *space, const NarrowWay *way)
{
    Schedule schedule = {.computes = COMPUTES_OWN};
    const double alone = 10.0 / 32;   // of a lane for an element that is stored alone: counted in SASS
    uint32_t input = 1u << INPUT, filter = 1u << FILTER;
    bool staged = way->filter_run > 0;
    const double fetch = (staged ? 2.5 : 7.5) / 32;   // of a lane for each element of a warp's filters: half a pair; counted in SASS
    int each = way->vector ? planes_in_flight(way->vector) : IN_FLIGHT;
    schedule_load(&schedule, (Move){.tiles = input, .to = PLACE_SHARED, .async = way->pieces, .each = way->pieces ? 0 : (uint8_t)each});
    schedule_load(&schedule, (Move){.tiles = filter,
                                    .to = staged ? PLACE_SHARED : PLACE_USUAL,
                                    .async = staged,
                                    .instructions = staged ? 0 : fetch});
    schedule_wait(&schedule, 0);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    if (staged)
        schedule_load(&schedule, (Move){.tiles = filter, .from = PLACE_SHARED, .instructions = fetch});
    schedule_load(&schedule, (Move){.tiles = input, .from = PLACE_SHARED});
    schedule_product(&schedule, schedule_ops(fusion, true));
    schedule_load(&schedule, (Move){.tiles = narrow_loads(space)});
    schedule_map(&schedule, schedule_ops(fusion, false));
    double turn = way->row_tiles * NARROW_TILE * NARROW_EIGHT / (double)LEAST_WARP;   // outputs of a lane
    if (schedule_ops(fusion, false))
        schedule_takes(&schedule,
                       turns_of(way) * turn * way->warp_tiles * way->warp_groups * epilogue_instructions(fusion),
                       narrow_loads_outputs(space) ? turns_of(way) : 0);
    schedule_store(&schedule,
                   (Move){.tiles = space_outputs(space),
                          .lines = (float)way->stored_lines,
                          .accesses = (float)way->stored_accesses,
                          .completed = way->adjacent == 1,
                          .instructions = way->stored > 1 ? 0 : alone});
    return schedule_copy(arena, &schedule);
}

/* All that is copied, zeros beside the image, too; each warp reads two words of a lane in each step of a tile. */
static int64_t shared_moved(const KernelKind *kind, int tile, bool written, const RTile *block,
                            const RTile *warp, const int64_t *first)
{
    enum { WORDS = 32 * 4 };   // bytes that a warp reads at once
    const NarrowWay *way = kind->choice.value;
    (void)warp;
    int64_t rows = smaller(block->size[DOWN], kind->space->axes[DOWN].extent - first[DOWN]);
    int64_t each = way->warp_groups * way->steps, shares = shares_of(way);
    int64_t span = way->rows ? way->line : way->reach * way->groups * kind->space->axes[SUMMED].extent;
    if (tile == INPUT)
        return written ? 2 * span * way->lines : 2 * WORDS * tiles_of(way, rows) * shares * each;
    if (tile != FILTER || !way->filter_run)
        return 0;
    int lines = way->vectors ? 2 : 1;   // of a pair of channels, both with the filters of neighbours
    return written ? filter_bytes(way) : lines * WORDS * shares * way->sets * each * way->warp_tiles;
}

static bool work_of(const void *view, const CountedItem *at, ItemWork *work)
{
    enum { PRODUCTS = NARROW_TILE * NARROW_EIGHT * NARROW_EIGHT };
    (void)view;
    const NarrowWay *way = at->kind->choice.value;
    if (at->item->kind != ITEM_PRODUCT)
        return false;
    int64_t tiles = tiles_of(way, at->count[DOWN]),
            warps = smaller(way->sets, tiles / way->row_tiles) * shares_of(way);
    work->multiplying_warps = warps;
    work->tensor_products =
        at->times * tiles * shares_of(way) * way->warp_groups * way->warp_tiles * way->steps * PRODUCTS;
    return true;
}

// ---- kinds ----

/* Warps with the same filters share lines, or of one line its outputs. */
static void set_tiles(KernelKind *kind, const Depthwise *shape, const NarrowWay *way)
{
    int64_t block[] = {[CHANNEL] = way->groups,
                       [MULTIPLIER] = way->filters,
                       [BATCH] = 1,
                       [DOWN] = way->height,
                       [ALONG] = way->width,
                       [DOWN_TAP] = slide_down(shape)->taps,
                       [ALONG_TAP] = slide_along(shape)->taps,
                       [SUMMED] = shape->summed.extent};
    for (int a = 0; a < kind->space->axis_count; a++)
        kind->space->rule[LEVEL_SHARED][a] = kind->space->rule[LEVEL_REGISTER][a] = axis_fixed(block[a]);
    kind->space->rule[LEVEL_REGISTER][CHANNEL] = axis_fixed(way->warp_groups);
    kind->space->rule[LEVEL_REGISTER][MULTIPLIER] = axis_fixed(way->warp_tiles * NARROW_EIGHT);
    kind->space->rule[LEVEL_REGISTER][DOWN] = axis_fixed(way->height / way->sets);
}

/* Zeros of runs, of eights of filters and of tiles of outputs are multiplied, too. */
static void set_work(TileSpace *space, const Depthwise *shape, const NarrowWay *way)
{
    double taps = (double)(slide_down(shape)->taps * slide_along(shape)->taps * shape->summed.extent);
    double filters = (double)(ceil_div(shape->multiplier.extent, way->filters) * way->filters);
    double outputs = (double)(tiles_of(way, way->height) * NARROW_TILE) / (double)(way->height * way->width);
    space->flops =
        2 * way->steps * NARROW_EIGHT / taps * (filters / (double)shape->multiplier.extent) * outputs;
}

static int registers_of(const NarrowWay *way)
{
    enum { OTHERS = 44, SUMS = 4 };
    return OTHERS + way->warp_groups * way->warp_tiles * (way->steps + SUMS * way->row_tiles);
}

/* Lines of a block, a multiple of those that warps with the same filters make. False: they do not fit. */
static bool set_height(NarrowWay *way, const Depthwise *shape, const DeviceSpec *device, int64_t lines)
{
    const WindowAxis *down = slide_down(shape);
    way->height = (int)round_up(lines, way->sets);
    way->lines = (int)window_reach(down, smaller(way->height, down->outputs));
    return way->height * way->width >= smaller(LEAST_PIXELS, down->outputs * way->width) &&
           LEAST_BLOCKS * (staged_bytes(way) + filter_room(way)) <= device->shared_per_sm;
}

static int64_t blocks_of(const Depthwise *shape, const NarrowWay *way)
{
    int64_t tiles = size_product(ceil_div(shape->channel.extent, way->groups),
                                 ceil_div(shape->multiplier.extent, way->filters));
    int64_t parts =
        ceil_div(slide_down(shape)->outputs, way->height) * ceil_div(slide_along(shape)->outputs, way->width);
    return size_product(size_product(tiles, parts), shape->batch.extent);
}

static KernelKind kind_of(Arena *arena, const DepthwiseView *view, const Fusion *fusion,
                          const DeviceSpec *device, const NarrowWay *way)
{
    KernelKind kind = {.name = narrow_family.variants[(way->rows ? OF_ROWS : OF_GROUPS) + (way->row_tiles > 1 ? OF_PAIRS : 0)],
                       .cost = &calibration.by_steps,
                       .space = space_new(arena, fusion),
                       .threads.of_tile = device->warp_size,
                       .lay_out = lay_out,
                       .shared_moved = shared_moved,
                       .registers = {.input_buffers = 1, .most_inputs = 1, .others = registers_of(way)}};
    kind.space->unit = view->atom->unit;
    direct_add_axes(kind.space, view->flat);
    space_add_axis(kind.space, "summed", view->flat->summed.extent, true);
    add_tiles(kind.space, fusion, view->flat, way);
    kind.schedule = schedule_of(arena, fusion, kind.space, way);
    kind_choose(arena, &kind, way, sizeof *way);
    set_tiles(&kind, view->flat, way);
    set_work(kind.space, view->flat, way);
    return kind;
}

/* Filters and outputs that a warp computes at a time. */
static const struct {
    int eights, words, row_tiles;
} forms[] = {{4, 96, 1}, {4, 96, 2}, {8, 176, 1}, {8, 176, 2}};

/* Blocks that leave SMs idle are too high, if they can be lower. */
static int add_heights(Arena *arena, const DepthwiseView *view, const Fusion *fusion,
                       const DeviceSpec *device, NarrowWay way, KernelKind *variants)
{
    int64_t rows = slide_down(view->flat)->outputs, last = 0;
    int count = 0;
    for (int64_t parts = 1; parts < 2 * rows && count < HEIGHTS; parts *= 2) {
        int64_t lines = ceil_div(rows, parts);
        bool fits = lines != last && set_height(&way, view->flat, device, lines);
        last = lines;
        if (fits && (2 * blocks_of(view->flat, &way) >= device->sm_count || lines == 1))
            variants[count++] = kind_of(arena, view, fusion, device, &way);
    }
    return count;
}

static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    const DepthwiseView *found = view;
    NarrowWay way;
    int count = 0, few = 0;   // tiles of a warp, of the first forms
    if (!takes(found, fusion))
        return 0;
    for (int f = 0; f < (int)(sizeof forms / sizeof *forms); f++) {
        find_way(fusion, found->flat, forms[f].row_tiles, &way);
        bool fits = (!found->flat->deep || way.pieces) && set_warp(&way, fusion, found->flat, forms[f].eights, forms[f].words) &&
                    registers_of(&way) <= device->registers_per_thread;
        if (forms[f].eights <= WARP_EIGHTS)
            few = way.warp_tiles * way.warp_groups;
        if (!fits || (forms[f].eights > WARP_EIGHTS && few == way.warp_tiles * way.warp_groups))
            continue;
        set_stored(&way, fusion, found->flat);
        set_filter_run(&way, fusion, found->flat);
        for (int warps = MOST_WARPS / 2; warps <= MOST_WARPS && shares_of(&way) <= MOST_WARPS; warps *= 2) {
            way.sets = (int)larger(1, warps / shares_of(&way));
            count += add_heights(arena, found, fusion, device, way, variants + count);
        }
    }
    return count;
}

const Family narrow_family = {
    .name = "narrow",
    .template_path = "templates/narrow.cu",
    .variants = (const char *const[]){"rows", "groups", "rows x2", "groups x2", NULL},
    .whole_warps = true,
    .view = depthwise_view,
    .kinds = kinds,
    .emit = narrow_emit,
    .work = work_of,
};
