// strip: depthwise filters that fit into registers. A thread iterates down a strip of an image.
#include "codegen/family/depthwise/strip.h"

#include "base/checked.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum {
    MOST_PARTS = 4,       // of a column of outputs
    MAX_TAPS = 49,        // in registers: 7 x 7
    WHOLE_LINE = 256,     // outputs of a line that a block does not cut
    MANY_TAPS = 25,       // for which rows in small accesses pay
};

static int64_t all_taps(const Depthwise *shape) { return slide_down(shape)->taps * slide_along(shape)->taps; }

// ---- what it reads and writes ----

static bool reads_pieces(const Fusion *fusion, const Depthwise *shape, bool channels_last, int64_t piece)
{
    const WindowAxis *along = &shape->image[shape->image_count - 1];
    return channels_last ? direct_reads_pieces(fusion, shape, axis_group_innermost(&shape->channel), piece)
                         : along->x_stride == 1 && direct_reads_pieces(fusion, shape, along->output, piece);
}

static StripWay find_way(const Fusion *fusion, const Depthwise *shape)
{
    const AxisGroup *channel = &shape->channel;
    const Access *x = factor_access(shape->x);
    bool last = axis_group_stride(channel, &shape->x_offset) == 1;
    int inner = last ? axis_group_innermost(channel) : shape->image[shape->image_count - 1].output;
    StripWay way = {.channels_last = last, .piece = 8 * VECTOR_BYTES / dtype_info[x->tensor->dtype].bits};
    while (way.piece > 1 && !reads_pieces(fusion, shape, last, way.piece))
        way.piece /= 2;
    way.stored = depthwise_stores_together(fusion, inner, STRIP_MOST_WIDTH);
    return way;
}

/* Rows of the input that a strip reads. */
static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const TileSpace *space, int64_t rows, int ahead)
{
    Schedule schedule = {.computes = COMPUTES_OWN};
    schedule_load(&schedule, (Move){.tiles = space_inputs(space)});
    schedule_reduce(&schedule, schedule_ops(fusion, true));
    schedule_takes(&schedule, calibration.strip_step_instructions * (double)rows, (double)rows / ahead);
    schedule_map(&schedule, schedule_ops(fusion, false));
    schedule_store(&schedule, (Move){.tiles = space_outputs(space)});
    return schedule_copy(arena, &schedule);
}

// ---- kinds ----

/* The tile of a thread. */
typedef struct StripTile {
    int64_t lanes, width, height;
} StripTile;

/* Registers of a row in flight: elements that are loaded alone have one each. */
static int64_t row_registers(const Depthwise *shape, const StripWay *way, const StripTile *tile)
{
    int64_t words = strip_row_words(shape, tile->lanes, tile->width),
            bits = dtype_info[factor_access(shape->x)->tensor->dtype].bits;
    int64_t together =
        way->channels_last ? tile->lanes : strip_piece(way, tile->width, slide_along(shape)->stride);
    return together * bits < 32 ? words * 32 / (together * bits) : words;
}

/* The filter, partial sums, one row of the input widened, and rows in flight as they are in memory. Where registers are
   short, the compiler loads half of those beyond STRIP_AHEAD later. */
static int64_t registers_of(const Fusion *fusion, const Depthwise *shape, const StripWay *way,
                            const StripTile *tile)
{
    const WindowAxis *down = slide_down(shape);
    int64_t reach = tile->lanes * window_reach(&shape->image[shape->image_count - 1], tile->width);
    int64_t values = tile->lanes * (all_taps(shape) + window_open(down) * tile->width) + reach;
    int64_t ahead = strip_ahead(shape, tile->lanes, tile->width), words = row_registers(shape, way, tile);
    return STRIP_COUNTERS + values * dtype_info[fusion->ops[0].body->type].bits / 32 +
           (ahead + STRIP_AHEAD) * words / 2;
}

/* A block's images are contiguous in memory: of one batch position, unless that has too few. */
static void set_threads(KernelKind *kind, const StripWay *way, const StripTile *tile)
{
    AxisRule *each = kind->space->rule[LEVEL_REGISTER], *block = kind->space->rule[LEVEL_SHARED];
    const Axis *axes = kind->space->axes;
    int64_t channels = way->channels_last ? tile->lanes * LEAST_WARP : 1;
    int64_t line = round_up(axes[ALONG].extent, tile->width);
    int64_t strips =
        axes[CHANNEL].extent / tile->lanes * (line / tile->width) * ceil_div(axes[DOWN].extent, tile->height);
    each[CHANNEL] = axis_fixed(tile->lanes);
    each[MULTIPLIER] = each[BATCH] = block[MULTIPLIER] = axis_fixed(1);
    each[DOWN] = axis_fixed(tile->height);
    each[ALONG] = axis_fixed(tile->width);
    block[CHANNEL] =
        (AxisRule){smaller(channels, round_up(axes[CHANNEL].extent, tile->lanes)), kind->threads.most};
    block[BATCH] = (AxisRule){1, strips < kind->threads.most ? kind->threads.most : 1};
    block[DOWN] = (AxisRule){tile->height, round_up(axes[DOWN].extent, tile->height)};
    block[ALONG] =
        (AxisRule){way->channels_last || line > WHOLE_LINE ? tile->width : line, smaller(line, WHOLE_LINE)};
    for (int a = DOWN_TAP; a <= ALONG_TAP; a++)
        each[a] = block[a] = axis_fixed(axes[a].extent);
}

/* Each access of a warp reads all cache lines under its outputs. */
static double lines_of(const Depthwise *shape, const StripWay *way, const StripTile *tile)
{
    const WindowAxis *along = slide_along(shape);
    int64_t reach = window_reach(&shape->image[shape->image_count - 1], tile->width);
    if (way->channels_last)
        return 0;
    int64_t piece = strip_piece(way, tile->width, along->stride);
    return (double)(strip_accesses(-along->pad, piece, reach) * tile->width * along->stride) / (double)reach;
}

/* Is its code short enough, and do registers leave enough warps to hide latency? Rows that only part of the filter uses
   are multiplied by all of it. */
static bool set_tile(Arena *arena, KernelKind *kind, const Fusion *fusion, const DeviceSpec *device,
                     const Depthwise *shape, const StripWay *way, const StripTile *tile)
{
    const WindowAxis *down = slide_down(shape);
    int64_t rows = (tile->height - 1) * down->stride + (down->taps - 1) * down->dilation + 1;
    int64_t registers = registers_of(fusion, shape, way, tile);
    if (registers > (tile->width == STRIP_LEAST_WIDTH ? device->registers_per_thread : STRIP_REGISTERS))
        return false;
    set_threads(kind, way, tile);
    kind->registers.others = (int)registers;
    kind->space->tiles[0].lines = lines_of(shape, way, tile);
    kind->schedule = schedule_of(arena, fusion, kind->space, rows, strip_ahead(shape, tile->lanes, tile->width));
    kind->space->flops *= (double)rows / (double)(tile->height * down->stride);
    return tile->lanes * tile->width * window_open(down) * all_taps(shape) <= STRIP_WALK;
}

/* Rows of the input that are shorter than a cache line are read in parts of lines; unaligned rows are read in smaller
   accesses, which pay for many taps only. */
static bool reads_in_parts(const Depthwise *shape, const StripWay *way)
{
    int bits = dtype_info[factor_access(shape->x)->tensor->dtype].bits;
    bool whole = way->piece * bits == 8 * VECTOR_BYTES || all_taps(shape) >= MANY_TAPS;
    return !way->channels_last && (slide_along(shape)->inputs * bits < 8 * LINE_BYTES || !whole);
}

/* Where strips of the least width prefetch far ahead, wider ones that do not are slower, and so are tall ones: 106 us, 113,
   and 115 with twice as many rows (tuning-log 71). */
static bool waits_least(const Depthwise *shape, const StripTile *tile, bool shortest)
{
    int most = strip_ahead(shape, tile->lanes, STRIP_LEAST_WIDTH);
    return most == STRIP_AHEAD || (shortest && strip_ahead(shape, tile->lanes, tile->width) == most);
}

/* Strips of two widths and three heights. */
static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    const Depthwise *shape = ((const DepthwiseView *)view)->sum;
    if (!((const DepthwiseView *)view)->direct || all_taps(shape) > MAX_TAPS ||
        slide_along(shape)->outputs < STRIP_LEAST_WIDTH)
        return 0;
    StripWay way = find_way(fusion, shape);
    if (reads_in_parts(shape, &way))
        return 0;
    KernelKind kind = {
        .space = space_new(arena, fusion),
        .name = strip_family.variants[way.channels_last],
        .threads.most = device->schedulers_per_sm * device->warp_size,   // a warp of each
        .threads.ragged = true,
        .cost = &calibration.down,
        .registers.input_buffers = 1,
        .registers.most_inputs = 1,   // those of a row are counted beside, as sums are
    };
    direct_add_axes(kind.space, shape);
    direct_add_factor_tiles(kind.space, fusion, shape);
    direct_add_outer_tiles(kind.space, fusion, shape);
    kind_choose(arena, &kind, &way, sizeof way);
    int count = 0;
    int64_t lanes = way.channels_last ? smaller(way.piece, STRIP_LANES) : 1;
    for (int64_t width = STRIP_LEAST_WIDTH; width <= STRIP_MOST_WIDTH; width *= 2)
        for (int64_t parts = 1; parts <= MOST_PARTS; parts *= 2) {
            int64_t rows = kind.space->axes[DOWN].extent;
            bool shortest = parts == MOST_PARTS || ceil_div(rows, 2 * parts) < STRIP_LEAST_HEIGHT;
            StripTile tile = {lanes, width, ceil_div(rows, parts)};
            variants[count] = kind;
            variants[count].space = space_copy(arena, kind.space);
            if ((parts == 1 || tile.height >= STRIP_LEAST_HEIGHT) && waits_least(shape, &tile, shortest) &&
                set_tile(arena, &variants[count], fusion, device, shape, &way, &tile))
                count++;
        }
    return count;
}

// ---- the parameter block ----

/* The axis along which outputs are contiguous. */
static int inner_axis(const Depthwise *shape, const StripWay *way)
{
    return way->channels_last ? axis_group_innermost(&shape->channel)
                              : shape->image[shape->image_count - 1].output;
}

/* The largest power of two that divides both. */
static int64_t common_power(int64_t a, int64_t b) { return (a | b) & -(a | b); }

static void emit_tiles(StrBuf *out, const KernelPlan *plan, const Depthwise *shape, const StripWay *way)
{
    const int64_t *block = plan->program->tile[LEVEL_SHARED].size,
                  *each = plan->program->tile[LEVEL_REGISTER].size;
    int64_t columns = strip_piece(way, each[ALONG], slide_along(shape)->stride);
    CONSTEXPR(out, "int TB, TC, BD, BA", "rTile, block", block[BATCH], block[CHANNEL], block[DOWN], block[ALONG]);
    CONSTEXPR(out, "int HEIGHT, WIDTH, LANES", "rTile, registers of a thread: down, along, channels", each[DOWN],
              each[ALONG], each[CHANNEL]);
    CONSTEXPR(out, "int THREADS, MIN_BLOCKS_PER_SM", "of the launch bounds", plan->threads,
              rprogram_least_blocks(plan->program, plan->threads));
    CONSTEXPR(out, "int AHEAD", "rows of the input in flight",
              strip_ahead(shape, each[CHANNEL], each[ALONG]));
    CONSTEXPR(out, "bool CHANNELS_LAST", "adjacent threads have adjacent channels; else columns",
              way->channels_last);
    CONSTEXPR(out, "int PIECE", "columns of x in one aligned access, at most", columns);
    CONSTEXPR(out, "int QN", "outputs in one: adjacent columns, or channels",
              common_power(each[way->channels_last ? CHANNEL : ALONG], way->stored));
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    const Depthwise *shape = ((const DepthwiseView *)plan->view)->sum;
    const StripWay *way = plan->kind->choice.value;
    Scope scope = direct_emit_problem(out, plan, shape);
    direct_emit_window(out, "constexpr ", shape);
    emit_tiles(out, plan, shape, way);
    direct_emit_image(out, &scope, shape);
    direct_emit_tap(out, "", &scope, shape);
    direct_emit_finish(out, &scope, shape, inner_axis(shape, way), 0);
}

const Family strip_family = {
    .name = "strip",
    .template_path = "templates/strip.cu",
    .variants = (const char *const[]){"lines", "channels", NULL},
    .whole_warps = true,
    .view = depthwise_view,
    .kinds = kinds,
    .emit = emit,
    .work = strip_work,
};
