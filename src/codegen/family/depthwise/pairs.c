// pairs: a depthwise convolution on tensor cores where channels are contiguous (NHWC). A warp iterates down the image.
#include "codegen/family/depthwise/pairs.h"

#include "base/checked.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum { INPUT, FILTER };   // tiles of the space

enum {
    PIECE = 8,              // channels of 16 bytes
    MOST_REGISTERS = 200,
    LEAST_BLOCKS = 2,       // of an SM: one waits for copies while another one multiplies
    MOST_HEIGHT = 64,       // rows of outputs of a block
    LEAST_HEIGHT = 12,      // with fewer, too many rows are read by two blocks
    MOST_PARTS = 3,         // heights
    MARK_BYTES = 4
};

/* Channels of a block, and pairs of channels of a warp. A warp of one pair reads 4 of 16 contiguous bytes: for filters that
   leave no registers for two. */
static const struct {
    int channels, pairs;
} forms[] = {{32, 2}, {16, 2}, {16, 1}};   // in the order of the family's names

/* Fours of columns of inputs that a group of outputs needs: 2 under 5 taps. */
static int64_t quads_under(int64_t taps) { return ceil_div(PAIRS_GROUP + taps - 1, 4); }

static int64_t quads_of(const Depthwise *shape) { return quads_under(slide_along(shape)->taps); }

/* Rows of the input that a block reads. */
static int64_t steps_of(const Depthwise *shape, const PairsWay *way)
{
    return way->height + slide_down(shape)->taps - 1;
}

static bool reads_pieces(const Fusion *fusion, const Depthwise *shape)
{
    const AxisGroup *channel = &shape->channel;
    return axis_group_stride(channel, &shape->x_offset) == 1 &&
           direct_reads_pieces(fusion, shape, axis_group_innermost(channel), PIECE);
}

static bool takes(const DepthwiseView *view, const Fusion *fusion)
{
    const Depthwise *shape = view->sum;
    if (!view->direct || !view->atom || shape->multiplier.extent > 1 || !shape->channel.count)
        return false;
    const WindowAxis *down = slide_down(shape), *along = slide_along(shape);
    DType type = factor_access(shape->x)->tensor->dtype;
    return window_is_dense(down) && window_is_dense(along) && (type == DTYPE_F16 || type == DTYPE_BF16) &&
           reads_pieces(fusion, shape);
}

// ---- tiles ----

static int first_output(const TileSpace *space)
{
    int tile = 0;
    while (!space->tiles[tile].output)
        tile++;
    return tile;
}

/* Sums are staged in the outputs' type where nothing follows them. */
static int staged_bits_of(const Fusion *fusion)
{
    int bits = dtype_info[fusion->ops[0].out->dtype].bits;
    return fusion->op_count == 1 && dtype_info[fusion->ops[0].out->dtype].is_real && bits == 16 ? bits : 32;
}

static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const Depthwise *shape,
                             const TileSpace *space, const PairsWay *way)
{
    Schedule schedule = {.computes = COMPUTES_OWN};
    uint64_t sums = schedule_ops(fusion, true);
    schedule_load(&schedule, (Move){.tiles = 1u << FILTER});
    schedule_loop(&schedule, (Loop){.axis = DOWN_TAP, .times = (int32_t)steps_of(shape, way)});
    schedule_load(&schedule,
                  (Move){.tiles = 1u << INPUT, .to = PLACE_SHARED, .async = true, .ahead = PAIRS_RING - 1});
    schedule_wait(&schedule, PAIRS_RING - 2);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_load(&schedule, (Move){.tiles = 1u << INPUT, .from = PLACE_SHARED});
    schedule_product(&schedule, sums);
    schedule_takes(&schedule, calibration.pairs_step_instructions * (double)steps_of(shape, way), 0);
    schedule_end(&schedule);
    schedule_store(&schedule, (Move){.tiles = 1u << first_output(space), .to = PLACE_SHARED});
    enum { BALLOT = 2 };   // one step across the lanes: has any an infinity or a NaN?
    schedule_exchange(
        &schedule,
        (Exchange){.ops = sums, .scope = SCOPE_WARP, .combine = COMBINE_LANES, .width = BALLOT});
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_map(&schedule, schedule_ops(fusion, false));
    schedule_store(&schedule, (Move){.tiles = space_outputs(space), .from = PLACE_SHARED});
    return schedule_copy(arena, &schedule);
}

// ---- shared memory ----

static int64_t row_bytes(const PairsWay *way, const RTile *block)
{
    return way->images * way->reach * block->size[CHANNEL] * 2;
}

static int64_t warps_of(const RTile *block, const RTile *warp)
{
    return block->size[CHANNEL] / warp->size[CHANNEL];
}

/* The ring, two rows of sums, a mark of each warp. */
static void lay_out(SharedLayout *layout, const KernelKind *kind, const RTile *block, const RTile *warp,
                    const DeviceSpec *device)
{
    (void)device;
    const PairsWay *way = kind->choice.value;
    layout_add(layout, "INPUTS", PAIRS_RING * row_bytes(way, block));
    layout_add(layout, "OUTPUTS", 2 * (PAIRS_PIXELS * block->size[CHANNEL] * way->staged_bits / 8));
    layout_add(layout, "MARKS", warps_of(block, warp) * MARK_BYTES);
}

/* Whole rows are copied, with zeros outside the image; each warp reads all columns of its channels. Whole rows of sums are
   written, and existing ones are read; every thread reads the marks of all warps. */
static int64_t shared_moved(const KernelKind *kind, int tile, bool written, const RTile *block,
                            const RTile *warp, const int64_t *first)
{
    const PairsWay *way = kind->choice.value;
    int64_t taps = kind->space->axes[DOWN_TAP].extent, steps = way->height + taps - 1;
    int64_t quads = quads_under(kind->space->axes[ALONG_TAP].extent);
    int64_t channels = block->size[CHANNEL], marks = warps_of(block, warp) * MARK_BYTES;
    if (tile == INPUT)
        return steps * (written ? row_bytes(way, block) : PAIRS_PIXELS * quads * channels * 2);
    if (tile != first_output(kind->space))
        return 0;
    if (written)
        return PAIRS_PIXELS * channels * way->height * way->staged_bits / 8 + marks;
    int64_t sums = 1;
    for (int a = CHANNEL; a <= ALONG; a++)
        sums *= smaller(block->size[a], kind->space->axes[a].extent - first[a]);
    return sums * way->staged_bits / 8 + marks * warps_of(block, warp) * kind->threads.of_tile;
}

// ---- what a block computes ----

/* A step multiplies each quad of columns of an input row by all rows of the filter, for each pair of channels. For a complete
   row every lane adds sums times 0, which is NaN if one is infinite or NaN. */
static bool work_of(const void *view, const CountedItem *at, ItemWork *work)
{
    enum { QUAD_PRODUCTS = 16 * 8 * 8, LANES = 32 };
    (void)view;
    const PairsWay *way = at->kind->choice.value;
    const Axis *axes = at->kind->space->axes;
    int64_t warps = warps_of(at->shared, at->inner), channels = at->shared->size[CHANNEL];
    if (at->item->kind == ITEM_PRODUCT)
        work->tensor_products = at->times * warps * way->pairs * axes[DOWN_TAP].extent *
                                quads_under(axes[ALONG_TAP].extent) * QUAD_PRODUCTS;
    else if (at->item->kind == ITEM_EXCHANGE && at->item->exchange.combine == COMBINE_LANES)
        work->additions = work->multiplications = at->times * way->height * channels * LANES;
    else
        return false;
    return true;
}

// ---- kinds ----

/* Registers of the filter, partial sums, and a row of the input, as it is loaded and as instructions take it. */
static int registers_of(const Depthwise *shape, const PairsWay *way)
{
    enum { ADDRESSES = 24 };
    int64_t quads = quads_of(shape), taps = slide_down(shape)->taps;
    int64_t rows = way->pairs > 1 ? way->pairs + 1 : 1;   // of one pair it is loaded as instructions take it
    return (int)(ADDRESSES + way->pairs * taps * (4 + quads) + rows * 2 * quads);
}

static bool has_registers(const DeviceSpec *device, int form, int registers)
{
    int threads = forms[form].channels / (2 * forms[form].pairs) * device->warp_size;
    return registers <= MOST_REGISTERS && LEAST_BLOCKS * threads * registers <= device->registers_per_sm;
}

/* The width of rows with which blocks read least, padding included. */
static void set_width(PairsWay *way, const Depthwise *shape)
{
    int64_t outputs = slide_along(shape)->outputs, beside = 4 * (quads_of(shape) - 1), least = INT64_MAX;
    for (int columns = PAIRS_PIXELS; columns >= PAIRS_GROUP; columns /= 2) {
        int images = PAIRS_PIXELS / columns;
        int64_t read = size_product(ceil_div(outputs, columns) * (columns + beside),
                                    round_up(shape->batch.extent, images));
        if (read < least) {
            least = read;
            way->columns = columns;
            way->images = images;
            way->reach = (int)(columns + beside);
        }
    }
}

static void set_tiles(KernelKind *kind, const PairsWay *way, int channels)
{
    const Axis *axes = kind->space->axes;
    for (Level level = LEVEL_REGISTER; level <= LEVEL_SHARED; level++) {
        AxisRule *rule = kind->space->rule[level];
        rule[MULTIPLIER] = axis_fixed(1);
        rule[BATCH] = axis_fixed(way->images);
        rule[DOWN] = axis_fixed(way->height);
        rule[ALONG] = axis_fixed(way->columns);
        for (int a = DOWN_TAP; a <= ALONG_TAP; a++)
            rule[a] = axis_fixed(axes[a].extent);
    }
    int64_t block = smaller(channels, axes[CHANNEL].extent);   // whole pieces, both
    space_fix_axis(kind->space, CHANNEL, 2 * way->pairs, block);
    kind->cost = &calibration.down;
}

/* Each row of the input is multiplied by all rows of the filter, zeros of its matrices included. */
static void set_work(KernelKind *kind, const Depthwise *shape, const PairsWay *way)
{
    double steps = (double)steps_of(shape, way), quads = (double)quads_of(shape);
    double multiplied = 2 * 4 * quads / (double)slide_along(shape)->taps;   // two channels, of which one counts
    kind->space->flops = 2 * multiplied * steps / way->height;
}

/* Blocks of each kind and of some heights. */
static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    const Atom *atom = ((const DepthwiseView *)view)->atom;
    const Depthwise *shape = ((const DepthwiseView *)view)->sum;
    if (!takes(view, fusion))
        return 0;
    PairsWay way = {.staged_bits = staged_bits_of(fusion),
                    .stored = depthwise_stores_together(fusion, axis_group_innermost(&shape->channel), PIECE)};
    set_width(&way, shape);
    KernelKind kind = {
        .space = space_new(arena, fusion),
        .threads.of_tile = device->warp_size,
        .registers.input_buffers = 1,
        .registers.most_inputs = 1,   // those of a row are counted beside, as sums are
        .lay_out = lay_out,
        .shared_moved = shared_moved,
    };
    kind.space->unit = atom->unit;
    direct_add_axes(kind.space, shape);
    direct_add_factor_tiles(kind.space, fusion, shape);
    kind.space->tiles[INPUT].staged = true;
    direct_add_outer_tiles(kind.space, fusion, shape);
    int64_t rows = kind.space->axes[DOWN].extent, parts = ceil_div(rows, MOST_HEIGHT);
    int count = 0;
    for (int form = 0; pairs_family.variants[form]; form++)
        for (int i = 0; i < MOST_PARTS && (!i || ceil_div(rows, parts << i) >= LEAST_HEIGHT); i++) {
            way.pairs = forms[form].pairs;
            way.height = (int)ceil_div(rows, parts << i);
            kind.registers.others = registers_of(shape, &way);
            if (!has_registers(device, form, kind.registers.others))
                continue;
            kind.name = pairs_family.variants[form];
            kind.schedule = schedule_of(arena, fusion, shape, kind.space, &way);
            kind_choose(arena, &kind, &way, sizeof way);
            kind.space = space_copy(arena, kind.space);
            set_tiles(&kind, &way, forms[form].channels);
            set_work(&kind, shape, &way);
            variants[count++] = kind;
        }
    return count;
}

// ---- the parameter block ----

static void emit_tiles(StrBuf *out, const KernelPlan *plan, const PairsWay *way)
{
    const int64_t *block = plan->program->tile[LEVEL_SHARED].size;
    const FusedOp *op = &plan->fusion->ops[0];
    CONSTEXPR(out, "int TB, TC, BD, BA", "rTile, block", block[BATCH], block[CHANNEL], block[DOWN], block[ALONG]);
    CONSTEXPR(out, "int PAIRS", "rTile, registers: of channels, of a warp", way->pairs);
    CONSTEXPR(out, "int THREADS, MIN_BLOCKS_PER_SM", "of the launch bounds", plan->threads,
              rprogram_least_blocks(plan->program, plan->threads));
    CONSTEXPR(out, "int RING", "rows of the input in shared memory", PAIRS_RING);
    strbuf_printf(out, "using Staged = %s;   // the type of staged sums\n",
                  way->staged_bits == 16 ? memory_type(op->out->dtype) : "float");
    CONSTEXPR(out, "int QN", "channels in one aligned access of outputs", way->stored);
}

/* Sums that are outputs already. */
static void emit_plain_finish(StrBuf *out, Scope *scope, const Depthwise *shape)
{
    const FusedOp *op = &scope->fusion->ops[0];
    scope->axis[shape->image[0].output] = "down";
    scope->axis[shape->image[shape->image_count - 1].output] = "along";
    direct_emit_finish_opening(out, NULL, "const Staged (&sums)[QN]");
    direct_emit_groups(out, scope, shape, store_axes(scope->fusion));
    strbuf_printf(out, "    move_vector<QN>(t.out%d + (%s), sums);\n}\n", output_position(scope->fusion, op->out),
                  offset_text(out->arena, &op->store, scope->axis));
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    const Depthwise *shape = ((const DepthwiseView *)plan->view)->sum;
    const PairsWay *way = plan->kind->choice.value;
    Scope scope = direct_emit_problem(out, plan, shape);
    direct_emit_window(out, "constexpr ", shape);
    emit_tiles(out, plan, way);
    direct_emit_image(out, &scope, shape);
    direct_emit_tap(out, "", &scope, shape);
    if (way->staged_bits == 16)
        emit_plain_finish(out, &scope, shape);
    else
        direct_emit_finish(out, &scope, shape, axis_group_innermost(&shape->channel), 0);
}

const Family pairs_family = {
    .name = "pairs",
    .template_path = "templates/pairs.cu",
    .variants = (const char *const[]){"32 by 4", "16 by 4", "16 by 2", NULL},
    .whole_warps = true,
    .view = depthwise_view,
    .kinds = kinds,
    .emit = emit,
    .work = work_of,
};
