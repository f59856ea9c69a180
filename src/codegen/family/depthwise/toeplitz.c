// toeplitz: a depthwise convolution on tensor cores, each row of the filter a matrix of its own.
#include "codegen/family/depthwise/toeplitz.h"

#include "base/checked.h"
#include "codegen/cuda/reads.h"
#include "codegen/family/depthwise/turn.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum { INPUT, FILTER };   // tiles of the space

enum {
    A_ROWS = 16,
    MAX_WIDTH = 64,   // columns of a tile: fragments of the input and sums of a row fit in registers
    MAX_SUMS = 16,    // fragments of outputs that a warp holds
    MAX_EACH = 4,     // rows of outputs that share a row of the input
    MAX_TAPS = 64,    // fragments of rows of the filter that it holds
    MAX_IMAGES = 64,
    MANY_GROUPS = 4,     // of rows of a warp's tile
    MAX_ROWS = 1 << 14   // of a block
};

// ---- kinds ----

static Dim dim_of(Affine index, int64_t size) { return (Dim){index, size}; }

static bool is_picture(const Toeplitz *toeplitz)
{
    const Depthwise *shape = &toeplitz->shape;
    return shape->multiplier.extent == 1 && shape->batch.count <= 1 && shape->channel.count <= 1;
}

/* Of images: input or output. */
static DataTile image_tile(const Toeplitz *toeplitz, const Tensor *tensor, Dim row, Dim column)
{
    DataTile tile = data_tile_of(tensor);
    tile.dims[tile.rank++] = dim_of(affine_axis(TOEPLITZ_IMAGE), toeplitz->images);
    tile.dims[tile.rank++] = dim_of(affine_axis(TOEPLITZ_CHANNEL), toeplitz->channels);
    tile.dims[tile.rank++] = row;
    tile.dims[tile.rank++] = column;
    tile.apart = !is_picture(toeplitz);
    return tile;
}

static DataTile input_tile(const Toeplitz *toeplitz)
{
    const WindowAxis *row = &toeplitz->row, *column = &toeplitz->column;
    DataTile tile = image_tile(toeplitz, factor_access(toeplitz->shape.x)->tensor,
                               dim_of(window_index(row, TOEPLITZ_ROW, TOEPLITZ_TAP_ROW), row->inputs),
                               dim_of(window_index(column, TOEPLITZ_COLUMN, TOEPLITZ_TAP_COLUMN), column->inputs));
    tile.staged = true;
    tile.staged_inner = 3;
    if (!toeplitz_reads_pieces(toeplitz)) {
        tile.scatter = 2;        // two vectors are read for one
        tile.instructions = 4;   // to shift one element into its place; see PieceAnywhere
    }
    return tile;
}

static DataTile filter_tile(const Toeplitz *toeplitz)
{
    const Access *access = factor_access(toeplitz->shape.w);
    return (DataTile){
        .name = access->tensor->name,
        .rank = 3,
        .dims = {dim_of(affine_axis(TOEPLITZ_CHANNEL), toeplitz->channels),
                 dim_of(affine_axis(TOEPLITZ_TAP_ROW), toeplitz->row.taps),
                 dim_of(affine_axis(TOEPLITZ_TAP_COLUMN), toeplitz->column.taps)},
        .element_bits = dtype_info[access->tensor->dtype].bits,
        .apart = !is_picture(toeplitz),
        .scatter = 1,
        .staged = true,
        .staged_inner = 2,
    };
}

static DataTile output_tile(const Toeplitz *toeplitz, const FusedOp *op)
{
    DataTile tile = image_tile(toeplitz, op->out, dim_of(affine_axis(TOEPLITZ_ROW), toeplitz->row.outputs),
                               dim_of(affine_axis(TOEPLITZ_COLUMN), toeplitz->column.outputs));
    tile.output = true;
    return tile;
}

/* What the epilogue loads for each output, beside what images share. */
static void add_beside(TileSpace *space, const Fusion *fusion, const Toeplitz *toeplitz)
{
    FusedAccess found[MAX_DATA_TILES];
    int count = fusion_accesses(fusion, found, MAX_DATA_TILES - 2 - fusion->output_count);
    for (int i = 0; i < count; i++) {
        if (fusion->ops[found[i].op].reduce != REDUCE_NONE || !access_offset(found[i].access).coef[toeplitz->column.output])
            continue;
        space->tiles[space->tile_count++] =
            image_tile(toeplitz, found[i].access->tensor, dim_of(affine_axis(TOEPLITZ_ROW), toeplitz->row.outputs),
                       dim_of(affine_axis(TOEPLITZ_COLUMN), toeplitz->column.outputs));
    }
}

static TileSpace *find_space(Arena *arena, const Fusion *fusion, const Toeplitz *toeplitz)
{
    TileSpace *space = space_new(arena, fusion);
    space->unit = toeplitz->atom->unit;
    space_add_axis(space, "channel", toeplitz->channels, false);
    space_add_axis(space, "image", toeplitz->images, false);
    space_add_axis(space, "row", toeplitz->row.outputs, false);
    space_add_axis(space, "column", toeplitz->column.outputs, false);
    space_add_axis(space, "tap row", toeplitz->row.taps, true);
    space_add_axis(space, "tap column", toeplitz->column.taps, true);
    space->tiles[space->tile_count++] = input_tile(toeplitz);
    space->tiles[space->tile_count++] = filter_tile(toeplitz);
    add_beside(space, fusion, toeplitz);
    for (int i = 0; i < fusion->op_count && space->tile_count < MAX_DATA_TILES; i++)
        if (fusion->ops[i].stored)
            space->tiles[space->tile_count++] = output_tile(toeplitz, &fusion->ops[i]);
    return space;
}

static ToeplitzWindow window_of(const Toeplitz *toeplitz)
{
    const WindowAxis *row = &toeplitz->row, *column = &toeplitz->column;
    int64_t width = smaller(round_up(column->outputs, TOEPLITZ_BLOCK), MAX_WIDTH),
            before = larger(column->pad, 0);
    bool whole = width >= column->outputs;
    return (ToeplitzWindow){
        .inputs = {(int32_t)row->inputs, (int32_t)column->inputs},
        .taps = {(int16_t)row->taps, (int16_t)column->taps},
        .before = {(int16_t)row->pad, (int16_t)column->pad},
        .width = (int16_t)width,
        .left = (int16_t)(whole ? 0 : round_up(before, toeplitz->piece)),
        .piece = (int16_t)toeplitz->piece,
        .whole_rows = whole,
    };
}

/* Rows of outputs that share a row of the input: sums, and taps of as many rows of the filter, have
   registers. None if not even one row of it has. */
static int64_t most_each(const ToeplitzWindow *window)
{
    RTile line = {0};
    line.size[TOEPLITZ_IMAGE] = A_ROWS;
    line.size[TOEPLITZ_ROW] = 1;
    int64_t distances = larger(toeplitz_layout(window, &line, &line).distances, 0);
    int64_t each = smaller(MAX_SUMS * TOEPLITZ_BLOCK / window->width, MAX_EACH);
    return distances ? smaller(each, MAX_TAPS / distances) : 0;
}

/* `each`: rows of outputs that a lane stores one after the other. */
static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const Toeplitz *toeplitz, const TileSpace *space,
                             const ToeplitzWindow *window, int64_t each)
{
    const double STORE = 40.0 / A_ROWS;   // of the lanes of a tile, for an access: where it goes, whether it exists; counted in SASS
    Schedule schedule = {.computes = COMPUTES_OWN};
    uint32_t beside = space_inputs(space) & ~3u;
    int vector = toeplitz_vector(toeplitz, fusion);
    uint64_t sums = schedule_ops(fusion, true);
    schedule_load(&schedule,
                  (Move){.tiles = 1, .to = PLACE_SHARED, .async = toeplitz_reads_pieces(toeplitz)});
    schedule_load(&schedule, (Move){.tiles = 2, .to = PLACE_SHARED});
    schedule_wait(&schedule, 0);
    enum { BALLOT = 2 };   // one step among the lanes
    schedule_exchange(
        &schedule,
        (Exchange){.ops = sums, .scope = SCOPE_WARP, .combine = COMBINE_LANES, .width = BALLOT});
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_load(&schedule, (Move){.tiles = 3, .from = PLACE_SHARED});
    schedule_product(&schedule, sums);
    schedule_exchange(
        &schedule,
        (Exchange){.ops = sums, .scope = SCOPE_WARP, .combine = COMBINE_ROWS, .value_bytes = 4, .width = 2});
    schedule_load(&schedule, (Move){.tiles = beside});
    schedule_map(&schedule, schedule_ops(fusion, false));
    if (beside)
        schedule_takes(&schedule, 0, (double)(each * window->width / vector));   // each access waits for what it loads
    schedule_store(&schedule,
                   (Move){.tiles = space_outputs(space),
                          .instructions = STORE / vector + epilogue_instructions(fusion) / A_ROWS});
    return schedule_copy(arena, &schedule);
}

/* Of a thread for each tap: a block makes words, of two taps in two copies or of one. To find where a word
   lies, ask for its three taps or one, see whether they are numbers and store it takes 36 or 14. */
static double filter_instructions(const ToeplitzWindow *window, const ToeplitzLayout *layout)
{
    double words = (double)((window->taps[0] + 1) * layout->tap_words);
    return (layout->tap_copies > 1 ? 36 : 14) * words / (window->taps[0] * window->taps[1]);
}

/* A warp's 16 rows of A are of so many images. */
static void set_images(Arena *arena, KernelKind *kind, const Fusion *fusion, const Toeplitz *toeplitz,
                       const ToeplitzWindow *window, int64_t images, int64_t each)
{
    RTile block = {0}, warp = {0};
    int64_t groups = A_ROWS / images, rows = groups * each;
    for (int a = 0; a < kind->space->axis_count; a++) {
        int64_t extent = kind->space->axes[a].extent;
        space_fix_axis(kind->space, a, extent, extent);
    }
    for (Level level = LEVEL_REGISTER; level <= LEVEL_SHARED; level++) {
        bool outer = level == LEVEL_SHARED;
        kind->space->rule[level][TOEPLITZ_CHANNEL] = axis_fixed(1);
        kind->space->rule[level][TOEPLITZ_COLUMN] = axis_fixed(window->width);
        kind->space->rule[level][TOEPLITZ_IMAGE] = (AxisRule){images, outer ? MAX_IMAGES : images};
        kind->space->rule[level][TOEPLITZ_ROW] = (AxisRule){groups, outer ? MAX_ROWS : rows};
    }
    warp.size[TOEPLITZ_IMAGE] = block.size[TOEPLITZ_IMAGE] = images;
    warp.size[TOEPLITZ_ROW] = rows;
    block.size[TOEPLITZ_ROW] = round_up(kind->space->axes[TOEPLITZ_ROW].extent, rows);
    ToeplitzLayout layout = toeplitz_layout(window, &block, &warp);
    kind->space->flops = toeplitz_flops(window, &block, &warp);
    kind->schedule = schedule_of(arena, fusion, toeplitz, kind->space, window, each);
    kind->space->tiles[FILTER].instructions = filter_instructions(window, &layout);
    /* Of many groups nearly all meet the image in each step: what does is known, and need not be counted. But
       halved fragments of more than that take registers beside the pieces'. */
    bool known = toeplitz_is_short(window, &layout) && groups >= MANY_GROUPS;
    int64_t addresses = !known ? 48 : layout.halved && groups > MANY_GROUPS ? 48 + 6 * layout.each : 32;
    kind->registers.others =
        (int)(addresses + 4 * round_up(layout.row, 2) + layout.distances * layout.each);
}

/* Kinds by images of a warp: fewer where there are no more. */
static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    const Toeplitz *toeplitz = ((const DepthwiseView *)view)->toeplitz;
    if (!toeplitz)
        return 0;
    ToeplitzWindow window = window_of(toeplitz);
    KernelKind kind = {
        .space = find_space(arena, fusion, toeplitz),
        .threads.of_tile = device->warp_size / TOEPLITZ_TURNS,
        .registers.accumulator_bits = 32 / TOEPLITZ_TURNS,   // those of the other tile take the same registers
        .registers.input_buffers = 1,
        .registers.most_inputs = 1,   // those of a step are counted beside
        .cost = &calibration.toeplitz,
        .lay_out = toeplitz_lay_out,
        .shared_moved = toeplitz_shared_moved,
        .registers.held_words = !toeplitz_reads_pieces(toeplitz),
    };
    kind_choose(arena, &kind, &window, sizeof window);
    int64_t each = most_each(&window);
    int count = 0;
    for (int v = 0; each && toeplitz_family.variants[v]; v++) {
        int64_t images = A_ROWS >> v;
        if (images > 1 && images >= 2 * toeplitz->images)
            continue;
        kind.name = toeplitz_family.variants[v];
        kind.space = space_copy(arena, kind.space);
        set_images(arena, &kind, fusion, toeplitz, &window, images, each);
        variants[count++] = kind;
    }
    return count;
}

const Family toeplitz_family = {
    .name = "toeplitz",
    .template_path = "templates/toeplitz.cu",
    .variants = (const char *const[]){"16 images", "8 images", "4 images", "2 images", "1 image", NULL},
    .whole_warps = true,
    .view = depthwise_view,
    .rewrites = (const Rewrite *const[]){&turn_images, NULL},
    .kinds = kinds,
    .emit = toeplitz_emit,
    .work = toeplitz_work,
};
