// filter_strip: gradients of depthwise convolutions for filters that fit into registers. A thread has the sums of all
// taps, and iterates down strips of images.

#include "base/checked.h"
#include "codegen/cuda/expr.h"
#include "codegen/family/depthwise/filter_gradient.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum {
    LEAST_THREADS = 128,     // of a block: of larger ones all warps are done at the same time
    MOST_THREADS = 256,
    MANY_WARPS = 12,         // of an SM: fewer do not hide latency
    INPUTS = 1               // registers of them that the model counts beside
};

/* The family's choice. */
typedef struct FilterStrip {
    int16_t width, height, lanes;             // of a thread: columns and rows of d, channels
    int16_t downs, alongs, shares, threads;   // of a block; those that have other images
    int16_t turns;                            // strips of a thread in each image, along its rows
    int16_t piece_x, piece_d;                 // columns that are one aligned access, at most
    bool channels_last;                       // adjacent threads have adjacent channels; otherwise columns
} FilterStrip;

// ---- structure ----

/* All places from which rows begin, but for steps of the axis along which a piece lies, as one number that
   has their common powers of two. */
static int64_t places(const FilterGradient *gradient, const Pictures *pictures, int inner)
{
    Affine form = pictures_form(pictures, &gradient->shape);
    return depthwise_alignment(&form, inner) | pictures->row_stride;
}

/* Columns that are one access at every multiple of so many. */
static int64_t piece_of(const FilterGradient *gradient, const Pictures *pictures, int64_t step)
{
    int64_t piece = 8 * VECTOR_BYTES / dtype_info[pictures->access->tensor->dtype].bits;
    int64_t all = places(gradient, pictures, -1) | pictures->columns | step;
    return piece < (all & -all) ? piece : all & -all;
}

static bool lies_along(const FilterGradient *gradient, const Pictures *pictures, bool channels_last)
{
    return channels_last ? axis_group_stride(&gradient->shape.channel, pictures->offset) == 1
                         : pictures->column_stride == 1;
}

static bool reads_along(const FilterGradient *gradient, bool channels_last)
{
    return lies_along(gradient, &gradient->x, channels_last) &&
           lies_along(gradient, &gradient->d, channels_last);
}

/* Are so many adjacent channels whole accesses? */
static bool has_lanes(const Fusion *fusion, const FilterGradient *gradient)
{
    int inner = axis_group_innermost(&gradient->shape.channel);
    int64_t all = places(gradient, &gradient->x, inner) | places(gradient, &gradient->d, inner) |
                  gradient->x.column_stride | gradient->d.column_stride | fusion->axes[inner].extent;
    return all % STRIP_LANES == 0;
}

// ---- a thread's strip ----

static int64_t reach_of(const FilterGradient *gradient, int64_t width)
{
    return window_reach(&gradient->along, width);
}

static int64_t steps_of(const FilterGradient *gradient, const FilterStrip *strip)
{
    return window_reach(&gradient->down, strip->height);
}

/* Registers of the rows of x and d in flight, as they are in memory. */
static int64_t coming_registers(const FilterGradient *gradient, const FilterStrip *strip)
{
    int64_t coming = reach_of(gradient, strip->width) + ceil_div(strip->width, gradient->down.stride);
    return STRIP_AHEAD *
           ceil_div(strip->lanes * coming * dtype_info[gradient->x.access->tensor->dtype].bits, 32);
}

/* Are elements converted before they are multiplied? */
static bool widens(const Fusion *fusion, const FilterGradient *gradient)
{
    return dtype_info[gradient->x.access->tensor->dtype].bits < dtype_info[fusion->ops[0].body->type].bits;
}

/* Sums, rows of d, one row of x, and the rows of both in flight. */
static int64_t registers_of(const Fusion *fusion, const FilterGradient *gradient, const FilterStrip *strip)
{
    int64_t values = gradient->down.taps * gradient->along.taps + window_open(&gradient->down) * strip->width +
                     reach_of(gradient, strip->width);
    return STRIP_COUNTERS + strip->lanes * values * dtype_info[fusion->ops[0].body->type].bits / 32 +
           coming_registers(gradient, strip);
}

/* Those that several blocks need room for. Columns that are loaded one by one, each behind a test of its own, and not
   widened are copied when their row comes next, so that compilers have what is in flight twice: in 128 registers for two
   blocks, 3 x 3 taps and eight columns (counted: 126) stored 68 words that they had just loaded, one after the other. */
static int64_t registers_taken(const Fusion *fusion, const FilterGradient *gradient, const DeviceSpec *device,
                               const FilterStrip *strip)
{
    int64_t least = registers_of(fusion, gradient, strip) + INPUTS;
    if (!strip->channels_last || widens(fusion, gradient))
        return least;
    int64_t block = round_up(strip->threads, (int64_t)device->schedulers_per_sm * device->warp_size);
    int64_t room = smaller(device->registers_per_sm / block, device->registers_per_thread);
    int64_t whole = room / device->register_granule * device->register_granule;
    return larger(smaller(least + coming_registers(gradient, strip), whole), least);
}

/* Is its code short enough, and do registers leave enough warps to hide latency? */
static bool fits(const Fusion *fusion, const FilterGradient *gradient, const DeviceSpec *device,
                 const FilterStrip *strip)
{
    int64_t taps = gradient->down.taps * gradient->along.taps, registers = registers_of(fusion, gradient, strip);
    return size_product(taps, strip->lanes * strip->width * window_open(&gradient->down)) <= STRIP_WALK &&
           registers + INPUTS <= device->registers_per_thread &&
           (strip->width == STRIP_LEAST_WIDTH || registers <= STRIP_REGISTERS);
}

/* Threads of the largest block, whose registers an SM has. */
static int64_t largest_block(const Fusion *fusion, const FilterGradient *gradient, const DeviceSpec *device,
                             const FilterStrip *strip)
{
    int64_t threads = device->registers_per_sm / (registers_of(fusion, gradient, strip) + INPUTS);
    return smaller(threads, device->max_threads_per_block);
}

/* The block of about so many threads: first along a row, of which each has several strips where they would be too many,
   then in other images, then down. */
static void fill_block(const FilterGradient *gradient, const DeviceSpec *device, int64_t threads, int64_t most,
                       FilterStrip *strip)
{
    int64_t inner = strip->channels_last ? device->warp_size : 1;
    int64_t strips = ceil_div(gradient->d.columns, strip->width);
    strip->turns = (int16_t)ceil_div(strips * inner, most / inner * inner);
    strip->alongs = (int16_t)ceil_div(strips, strip->turns);
    strip->downs = strip->shares = 1;
    while (inner * strip->alongs * strip->shares < threads && strip->shares < gradient->shape.summed.extent)
        strip->shares *= 2;
    while (inner * strip->alongs * strip->shares * strip->downs < threads &&
           ceil_div(gradient->d.rows, 2 * strip->downs) >= STRIP_LEAST_HEIGHT)
        strip->downs *= 2;
    while (inner * strip->alongs * strip->shares * strip->downs % device->warp_size)   // a warp is of one channel
        if (2 * inner * strip->alongs * strip->shares * strip->downs <= most)
            strip->shares *= 2;
        else
            strip->alongs++;   // threads that have no columns
    strip->height = (int16_t)ceil_div(gradient->d.rows, strip->downs);
    strip->threads = (int16_t)(inner * strip->alongs * strip->shares * strip->downs);
}

static int64_t channels_of(const FilterStrip *strip)
{
    return strip->threads / (strip->downs * strip->alongs * strip->shares) * strip->lanes;
}

// ---- kinds ----

static SharedLayout layout_of(const Fusion *fusion, const FilterGradient *gradient, const FilterStrip *strip)
{
    SharedLayout layout = {0};
    int64_t sums = gradient->down.taps * gradient->along.taps * channels_of(strip);
    layout_add(&layout, "SUMS", round_up(sums * dtype_info[fusion->ops[0].body->type].bits / 8, VECTOR_BYTES));
    layout_add(&layout, "MARKS", filter_gradient_mark_bytes(strip->threads / LEAST_WARP));
    return layout;
}

static int64_t warps_of(const Fusion *fusion, const DeviceSpec *device, const FilterGradient *gradient,
                        const FilterStrip *strip)
{
    return filter_gradient_warps(device, strip->threads, registers_taken(fusion, gradient, device, strip),
                                 layout_of(fusion, gradient, strip).bytes);
}

/* Of a thread for a row, whose columns are loaded one by one: a test, a zero, a load, and what widens it. Counted in
   machine code: 59 beside the products of 7 x 7 taps, of 14 columns. */
static double loading_instructions(const Fusion *fusion, const FilterGradient *gradient, const FilterStrip *strip)
{
    enum { EACH = 3 };
    int64_t columns = reach_of(gradient, strip->width) + ceil_div(strip->width, gradient->down.stride);
    return strip->channels_last ? (double)(columns * (EACH + (widens(fusion, gradient) ? strip->lanes : 0))) : 0;
}

static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const FilterGradient *gradient,
                             const DeviceSpec *device, const TileSpace *space, const FilterStrip *strip)
{
    int64_t images = ceil_div(gradient->shape.summed.extent, strip->shares);
    Schedule schedule = {.computes = COMPUTES_OWN};
    schedule_loop(&schedule, (Loop){.axis = IMAGE});
    if (strip->turns > 1)
        schedule_loop(&schedule, (Loop){.axis = COLUMN});
    schedule_load(&schedule, (Move){.tiles = space_inputs(space)});
    schedule_reduce(&schedule, schedule_ops(fusion, true));
    double steps = (double)(images * strip->turns * steps_of(gradient, strip));
    double each = calibration.strip_step_instructions + loading_instructions(fusion, gradient, strip);
    schedule_takes(&schedule, each * steps, steps / STRIP_AHEAD);
    if (strip->turns > 1)
        schedule_end(&schedule);
    schedule_end(&schedule);
    schedule_exchange(&schedule, (Exchange){
                                     .ops = schedule_ops(fusion, true),
                                     .scope = SCOPE_BLOCK,
                                     .combine = COMBINE_TURNS,
                                     .value_bytes = (uint8_t)(dtype_info[fusion->ops[0].body->type].bits / 8),
                                     .values = (uint8_t)(gradient->down.taps * gradient->along.taps),
                                     .width = (int16_t)(strip->channels_last ? 1 : device->warp_size),
                                 });
    schedule_map(&schedule, schedule_ops(fusion, false));
    schedule_store(&schedule, (Move){.tiles = space_outputs(space)});
    return schedule_copy(arena, &schedule);
}

/* Each access of a warp reads all cache lines under the columns of its threads. */
static double lines_of(const FilterGradient *gradient, const FilterStrip *strip)
{
    int64_t reach = reach_of(gradient, strip->width);
    int64_t accesses = strip_accesses(-gradient->along.pad, strip->piece_x, reach);
    return strip->channels_last
               ? 0
               : (double)(accesses * strip->width * gradient->along.stride) / (double)reach;
}

/* Tiles are in registers; rows of x that only some of the taps use are multiplied by all. */
static void set_tiles(KernelKind *kind, const FilterGradient *gradient, const FilterStrip *strip)
{
    space_fix_axis(kind->space, CHANNEL, strip->lanes, channels_of(strip));
    space_fix_axis(kind->space, TAP_DOWN, gradient->down.taps, gradient->down.taps);
    space_fix_axis(kind->space, TAP_ALONG, gradient->along.taps, gradient->along.taps);
    space_fix_axis(kind->space, IMAGE, 1, strip->shares);
    space_fix_axis(kind->space, ROW, strip->height, strip->height * strip->downs);
    space_fix_axis(kind->space, COLUMN, strip->width, strip->width * strip->alongs);
    for (int i = 0; i < 2; i++)
        kind->space->tiles[i].staged = kind->space->tiles[i].windows = false;
    kind->space->tiles[0].lines = lines_of(gradient, strip);
    kind->space->flops *=
        (double)steps_of(gradient, strip) / (double)(strip->height * gradient->down.stride);
}

static KernelKind tile_kind(Arena *arena, const Fusion *fusion, const DeviceSpec *device,
                            const FilterGradient *gradient, const FilterStrip *strip)
{
    KernelKind kind = {
        .space = filter_gradient_space(arena, fusion, gradient, gradient->down.taps),
        .name = filter_strip_family.variants[strip->channels_last],
        .threads.most = device->max_threads_per_block,
        .registers.input_buffers = 1,
        .registers.most_inputs = INPUTS,   // those of a row are counted beside, as sums are
        .registers.others = (int)registers_taken(fusion, gradient, device, strip) - INPUTS,
        .shared = layout_of(fusion, gradient, strip),
        .cost = &calibration.down,
    };
    kind_choose(arena, &kind, strip, sizeof *strip);
    set_tiles(&kind, gradient, strip);
    kind.schedule = schedule_of(arena, fusion, gradient, device, kind.space, strip);
    return kind;
}

/* Strips of two widths, in blocks of two sizes of which an SM has so many warps. */
static int kind_of(Arena *arena, const Fusion *fusion, const DeviceSpec *device,
                    const FilterGradient *gradient, int lanes, bool channels_last, int warps,
                    KernelKind *variants)
{
    int count = 0;
    for (int width = STRIP_LEAST_WIDTH; width <= STRIP_MOST_WIDTH; width *= 2)
        for (int threads = LEAST_THREADS; threads <= MOST_THREADS; threads *= 2) {
            FilterStrip strip = {
                .width = (int16_t)width, .lanes = (int16_t)lanes, .piece_x = 1, .piece_d = 1};
            strip.channels_last = channels_last;
            if (!channels_last) {
                strip.piece_x = (int16_t)piece_of(gradient, &gradient->x, width * gradient->along.stride);
                strip.piece_d = (int16_t)piece_of(gradient, &gradient->d, width);
            }
            if (!fits(fusion, gradient, device, &strip))
                continue;
            fill_block(gradient, device, threads, largest_block(fusion, gradient, device, &strip), &strip);
            if (strip.threads <= device->max_threads_per_block && warps_of(fusion, device, gradient, &strip) >= warps)
                variants[count++] = tile_kind(arena, fusion, device, gradient, &strip);
        }
    return count;
}

/* Two 16-bit channels to a thread: a lane loads words of 32 bits. */
static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    static const int warps[] = {MANY_WARPS, 0};
    const FilterGradient *gradient = ((const DepthwiseView *)view)->gradient;
    if (!gradient || gradient->d.columns < STRIP_LEAST_WIDTH ||
        !(reads_along(gradient, true) || reads_along(gradient, false)))
        return 0;
    bool last = reads_along(gradient, true), pairs = last && has_lanes(fusion, gradient);
    bool narrow = dtype_info[gradient->x.access->tensor->dtype].bits <= 16;
    int count = 0;
    for (int i = 0; i < 2 && !count; i++) {
        if (!(pairs && narrow))
            count = kind_of(arena, fusion, device, gradient, 1, last, warps[i], variants);
        if (pairs)
            count += kind_of(arena, fusion, device, gradient, STRIP_LANES, true, warps[i], variants + count);
    }
    return count;
}

// ---- what a block computes ----

/* Each thread goes down its strip of every image of its share: a row of x is multiplied by a row of d for each
   row of taps, those of zeros, too. */
static bool work_of(const void *view, const CountedItem *at, ItemWork *work)
{
    const FilterGradient *gradient = ((const DepthwiseView *)view)->gradient;
    const WindowAxis *down = &gradient->down;
    const FilterStrip *strip = at->kind->choice.value;
    if (at->item->kind != ITEM_REDUCE)
        return false;
    int64_t images = gradient->shape.summed.extent, rounds = ceil_div(images, strip->shares) * strip->turns, rows = 0;
    for (int64_t step = 0; step < steps_of(gradient, strip); step++)
        for (int64_t k = 0; k < down->taps; k++)
            rows += (step - k * down->dilation) % down->stride == 0;
    int64_t strips = at->count[CHANNEL] * strip->downs * strip->alongs * strip->turns;   // each lane's
    work->additions = work->multiplications =
        images * strips * rows * gradient->along.taps * strip->width * at->times / rounds;
    return true;
}

// ---- the parameter block ----

static void emit_strip(StrBuf *out, const KernelPlan *plan, const FilterGradient *gradient,
                       const FilterStrip *strip)
{
    CONSTEXPR(out, "Index CHANNELS", NULL, gradient->shape.channel.extent);
    CONSTEXPR(out, "int TC, LANES", "channels of a block, of a thread", channels_of(strip), strip->lanes);
    CONSTEXPR(out, "int HEIGHT, WIDTH", "rows and columns of d, of a thread", strip->height, strip->width);
    CONSTEXPR(out, "int DOWNS, ALONGS, SHARES", "threads: down, along images, of other images", strip->downs,
              strip->alongs, strip->shares);
    CONSTEXPR(out, "int TURNS", "strips of a thread in each image", strip->turns);
    CONSTEXPR(out, "int THREADS, MIN_BLOCKS_PER_SM", "of the launch bounds", plan->threads,
              plan->program->perf.blocks_per_sm);
    CONSTEXPR(out, "int AHEAD", "rows in flight", STRIP_AHEAD);
    CONSTEXPR(out, "bool CHANNELS_LAST", "adjacent threads have adjacent channels; else columns",
              strip->channels_last);
    CONSTEXPR(out, "int PIECE_X, PIECE_D", "columns in one aligned access, at most", strip->piece_x,
              strip->piece_d);
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    const FilterGradient *gradient = ((const DepthwiseView *)plan->view)->gradient;
    const FilterStrip *strip = plan->kind->choice.value;
    strbuf_printf(out, "using Value = %s;   // of products and sums\n",
                  value_type(plan->fusion->ops[0].body->type));
    filter_gradient_emit_sizes(out, gradient);
    filter_gradient_emit_steps(out, gradient);
    emit_strip(out, plan, gradient, strip);
    filter_gradient_emit_functions(out, plan, gradient);
}

const Family filter_strip_family = {
    .name = "filter_strip",
    .template_path = "templates/filter_strip.cu",
    .variants = (const char *const[]){"lines", "channels", NULL},
    .view = depthwise_view,
    .kinds = kinds,
    .emit = emit,
    .work = work_of,
};
