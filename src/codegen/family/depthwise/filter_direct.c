// filter_direct: the gradient of a depthwise convolution for its filters, each thread with the sums of a tile
// of taps.

#include "base/checked.h"
#include "codegen/cuda/expr.h"
#include "codegen/family/depthwise/filter_gradient.h"
#include "codegen/family/depthwise/turn.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum {
    VECTOR = 4,            // columns that a thread reads at once
    COLUMNS = 8,           // of d that it has, at least
    PITCH_GRANULE = 16,    // columns: whole pieces, whatever the type
    LEAST_TAPS = 3,        // rows of taps of a thread: each row of x is multiplied by as many rows of d,
    MOST_TAPS = 5,         // which have room in registers
    LEAST_THREADS = 192,   // of a block, if more of them can share taps
    MOST_THREADS = 512,
    OTHER_REGISTERS = 44,
    MOST_SHARES = 4,       // threads that share taps: of a step's images
    HALF_SHARED = 2   // blocks of an SM: one computes while the other waits
};

// ---- how a block is laid out ----

/* The family chooses one of them. */
typedef struct DirectTile {
    int16_t block_taps;              // rows of taps
    int16_t taps_down, taps_along;   // of a thread
    int16_t columns;                 // of d, of a thread
    int16_t shares, row_shares;      // threads that share taps
} DirectTile;

/* What follows for the template, which says why. */
typedef struct TapsLayout {
    int64_t groups_down, groups_along, groups_column;   // of threads
    int64_t skip, lead;                                 // before the first tap: taps, or columns of x
    int64_t window, margin;                             // columns that a thread has of x, of zeros before it
    int64_t pitch_x, pitch_d;                           // elements from row to row of a picture
    int64_t share_rows;                                 // of d
    int64_t threads;
    SharedLayout shared;
} TapsLayout;

static TapsLayout layout_of(const Fusion *fusion, const FilterGradient *gradient, const DirectTile *tile)
{
    int64_t before = (-gradient->along.pad % VECTOR + VECTOR) % VECTOR, first = -gradient->along.pad - before;
    int64_t stride = gradient->along.stride, dilation = gradient->along.dilation;
    int64_t skip = dilation == 1 ? before : 0, lead = before - skip;
    TapsLayout layout = {
        .skip = skip,
        .lead = lead,
        .window = round_up(lead + (tile->columns - 1) * stride + (tile->taps_along - 1) * dilation + 1, VECTOR),
        .margin = first < 0 ? round_up(-first, PITCH_GRANULE) : 0,
        .groups_down = tile->block_taps / tile->taps_down,
        .groups_along = ceil_div(gradient->along.taps + skip, tile->taps_along),
        .groups_column = ceil_div(gradient->d.columns, tile->columns),
        .share_rows = ceil_div(gradient->d.rows, tile->row_shares),
    };
    int64_t columns = layout.groups_column * tile->columns, taps = layout.groups_along * tile->taps_along;
    int64_t end = first + (columns - tile->columns) * stride + (taps - tile->taps_along) * dilation +
                  layout.window;   // of the last window
    layout.pitch_x =
        layout.margin + round_up(end > gradient->x.columns ? end : gradient->x.columns, PITCH_GRANULE);
    layout.pitch_d = round_up(columns, PITCH_GRANULE);
    int64_t value_bytes = dtype_info[fusion->ops[0].body->type].bits / 8, images = 2 * tile->shares;
    layout.threads =
        layout.groups_down * layout.groups_along * layout.groups_column * tile->shares * tile->row_shares;
    layout_add(&layout.shared, "PICTURES_X",
               images * gradient->x.rows * layout.pitch_x * pictures_bytes(&gradient->x));
    layout_add(&layout.shared, "PICTURES_D",
               images * gradient->d.rows * layout.pitch_d * pictures_bytes(&gradient->d));
    layout_put(&layout.shared, "SUMS", 0, tile->block_taps * taps * value_bytes);   // when x and d are done with
    layout_add(&layout.shared, "MARKS", filter_gradient_mark_bytes(ceil_div(layout.threads, LEAST_WARP)));
    return layout;
}

/* As few rows of taps to a block as its threads have to be, and then as many columns to a thread; as many threads to
   share a picture's rows. */
static bool fill_tile(const Fusion *fusion, const FilterGradient *gradient, DirectTile *tile)
{
    tile->row_shares = 1;
    tile->columns = COLUMNS;
    tile->block_taps = (int16_t)round_up(gradient->down.taps, tile->taps_down);
    while (layout_of(fusion, gradient, tile).threads > MOST_THREADS && tile->block_taps > tile->taps_down)
        tile->block_taps = (int16_t)round_up(ceil_div(tile->block_taps, 2), tile->taps_down);
    while (layout_of(fusion, gradient, tile).threads > MOST_THREADS && tile->columns < gradient->d.columns)
        tile->columns = (int16_t)(2 * tile->columns);
    while (layout_of(fusion, gradient, tile).threads < LEAST_THREADS &&
           ceil_div(gradient->d.rows, 2 * tile->row_shares) > tile->taps_down)
        tile->row_shares *= 2;
    return layout_of(fusion, gradient, tile).threads <= MOST_THREADS;
}

/* Threads that share a step's images: as many as leave room for a second block of the SM, or one. */
static int shares_of(const Fusion *fusion, const FilterGradient *gradient, const DeviceSpec *device,
                     DirectTile tile)
{
    int64_t room = device->shared_per_sm / HALF_SHARED - device->shared_reserved_per_block;
    for (tile.shares = MOST_SHARES; tile.shares > 1; tile.shares /= 2) {
        if (tile.shares <= gradient->shape.summed.extent && layout_of(fusion, gradient, &tile).shared.bytes <= room)
            break;
    }
    return tile.shares;
}

/* Elements that a thread holds beside its sums: rows of d, and the part of a row of x that they are multiplied by. */
static int inputs_of(const DirectTile *tile, const TapsLayout *layout)
{
    return tile->taps_down * tile->columns + (int)layout->window;
}

static int64_t warps_of(const Fusion *fusion, const DeviceSpec *device, const FilterGradient *gradient,
                        const DirectTile *tile)
{
    TapsLayout layout = layout_of(fusion, gradient, tile);
    int64_t words = dtype_info[fusion->ops[0].body->type].bits / 32;
    int64_t registers =
        words * (tile->taps_down * tile->taps_along + inputs_of(tile, &layout)) + OTHER_REGISTERS;
    return filter_gradient_warps(device, layout.threads, registers, layout.shared.bytes);
}

// ---- kinds ----

static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const FilterGradient *gradient,
                             const TileSpace *space, const TapsLayout *layout)
{
    Schedule schedule = {.computes = COMPUTES_OWN, .stages = 2};
    int bits = dtype_info[fusion->ops[0].body->type].bits;
    const SharedRegion *d = layout_region(&layout->shared, "PICTURES_D");
    filter_gradient_walk(&schedule, fusion, gradient, space, d->at + d->bytes);
    schedule_exchange(&schedule, (Exchange){
                                     .ops = schedule_ops(fusion, true),
                                     .scope = SCOPE_BLOCK,
                                     .combine = COMBINE_TURNS,
                                     .value_bytes = (uint8_t)(bits / 8),
                                 });
    schedule_map(&schedule, schedule_ops(fusion, false));
    schedule_store(&schedule, (Move){.tiles = space_outputs(space)});
    return schedule_copy(arena, &schedule);
}

static KernelKind tile_kind(Arena *arena, const Fusion *fusion, const FilterGradient *gradient,
                            const DirectTile *tile)
{
    TapsLayout layout = layout_of(fusion, gradient, tile);
    KernelKind kind = {
        .space = filter_gradient_space(arena, fusion, gradient, tile->block_taps),
        .name = filter_direct_family.variants[0],
        .threads.ragged = true,
        .threads.most = MOST_THREADS,
        .registers.accumulator_bits = dtype_info[fusion->ops[0].body->type].bits,
        .cost = &calibration.by_steps,
        .registers.input_buffers = 1,
        .registers.others = OTHER_REGISTERS,
        .shared = layout.shared,
    };
    kind_choose(arena, &kind, tile, sizeof *tile);
    filter_gradient_copies(kind.space, gradient);
    kind.space->flops *= filter_gradient_rows_inside(gradient);
    space_fix_axis(kind.space, CHANNEL, 1, 1);
    space_fix_axis(kind.space, TAP_DOWN, tile->taps_down, tile->block_taps);
    space_fix_axis(kind.space, TAP_ALONG, tile->taps_along, layout.groups_along * tile->taps_along);
    space_fix_axis(kind.space, IMAGE, 1, tile->shares);
    space_fix_axis(kind.space, ROW, layout.share_rows, layout.share_rows * tile->row_shares);
    space_fix_axis(kind.space, COLUMN, tile->columns, layout.groups_column * tile->columns);
    kind.registers.most_inputs = kind.registers.accumulator_bits / 32 * inputs_of(tile, &layout);
    kind.schedule = schedule_of(arena, fusion, gradient, kind.space, &layout);
    return kind;
}

/* Tiles of which an SM has room for so many warps, hardly wider than the filter. */
static int tiles_with_warps(Arena *arena, const Fusion *fusion, const DeviceSpec *device,
                            const FilterGradient *gradient, int warps, KernelKind *variants)
{
    int count = 0;
    bool few = gradient->down.taps < LEAST_TAPS;
    int least = few ? (int)gradient->down.taps : LEAST_TAPS, most = few ? least : MOST_TAPS;
    int widest = gradient->along.taps > VECTOR ? 2 * VECTOR : VECTOR;
    for (int along = VECTOR; along <= widest; along += VECTOR)
        for (int down = least; down <= most; down++) {
            DirectTile tile = {
                .taps_down = (int16_t)down, .taps_along = (int16_t)along, .columns = COLUMNS, .row_shares = 1};
            tile.block_taps = (int16_t)round_up(gradient->down.taps, down);
            tile.shares = (int16_t)shares_of(fusion, gradient, device, tile);
            for (int fewer = 0; fewer < 2 && tile.shares; fewer++, tile.shares /= 2)
                if (fill_tile(fusion, gradient, &tile) && warps_of(fusion, device, gradient, &tile) >= warps)
                    variants[count++] = tile_kind(arena, fusion, gradient, &tile);
        }
    return count;
}

/* The largest number of warps that some tile allows. */
static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    static const int warps[] = {16, 12, 0};
    const FilterGradient *gradient = ((const DepthwiseView *)view)->gradient;
    if (!gradient)
        return 0;
    int count = 0;
    for (int i = 0; i < 3 && !count; i++)
        count = tiles_with_warps(arena, fusion, device, gradient, warps[i], variants);
    return count;
}

// ---- what a block computes ----

/* Rows of d that are multiplied by rows of x, for each of the threads' rows of taps. */
static int64_t rows_inside(const FilterGradient *gradient, const CountedItem *at)
{
    const WindowAxis *down = &gradient->down;
    int64_t inside = 0;
    for (int64_t k = 0; k < at->shared->size[TAP_DOWN]; k++)
        for (int64_t i = 0; i < gradient->d.rows; i++) {
            int64_t row = i * down->stride - down->pad + (at->first[TAP_DOWN] + k) * down->dilation;
            inside += row >= 0 && row < gradient->x.rows;
        }
    return inside;
}

/* Whole pictures, of every image. */
static bool copy(const FilterGradient *gradient, const CountedItem *at, ItemWork *work)
{
    const Pictures *pictures[] = {&gradient->x, &gradient->d};
    const Move *move = &at->item->move;
    for (int i = 0; i < 2; i++)
        if (move->tiles >> i & 1)
            work->shared_written += gradient->shape.summed.extent * pictures[i]->rows * pictures[i]->columns *
                                    pictures_bytes(pictures[i]);
    return move->to == PLACE_SHARED;
}

/* All columns of a tile are multiplied; and each element of d in shared memory by 0: is it a number? */
static bool work_of(const void *view, const CountedItem *at, ItemWork *work)
{
    const FilterGradient *gradient = ((const DepthwiseView *)view)->gradient;
    const DirectTile *tile = at->kind->choice.value;
    if (at->item->kind == ITEM_LOAD)
        return copy(gradient, at, work);
    if (at->item->kind != ITEM_REDUCE)
        return false;
    TapsLayout layout = layout_of(at->fusion, gradient, tile);
    int64_t images = gradient->shape.summed.extent, rounds = ceil_div(images, tile->shares);
    int64_t columns = at->shared->size[TAP_ALONG] * at->shared->size[COLUMN];
    int64_t products = rows_inside(gradient, at) * columns + gradient->d.rows * layout.pitch_d;
    work->additions = work->multiplications = images * products * at->times / rounds;
    return true;
}

// ---- the parameter block ----

static void emit_layout(StrBuf *out, const Fusion *fusion, const FilterGradient *gradient,
                        const DirectTile *tile)
{
    TapsLayout layout = layout_of(fusion, gradient, tile);
    CONSTEXPR(out, "int GROUPS_K, GROUPS_L, GROUPS_C", "threads down and along taps, along d", layout.groups_down,
              layout.groups_along, layout.groups_column);
    CONSTEXPR(out, "int SKIP, LEAD", "taps too many, or columns, before the first", layout.skip, layout.lead);
    CONSTEXPR(out, "int WINDOW, MARGIN", "columns of x of a thread; zeros before it", layout.window,
              layout.margin);
    CONSTEXPR(out, "int PITCH_X, PITCH_D", "elements from row to row", layout.pitch_x, layout.pitch_d);
    CONSTEXPR(out, "int SHARE_ROWS", "of d", layout.share_rows);
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    const FilterGradient *gradient = ((const DepthwiseView *)plan->view)->gradient;
    const DirectTile *tile = plan->kind->choice.value;
    strbuf_printf(out, "using Value = %s;   // of products and sums\n",
                  value_type(plan->fusion->ops[0].body->type));
    filter_gradient_emit_sizes(out, gradient);
    filter_gradient_emit_steps(out, gradient);
    CONSTEXPR(out, "int BK", "rows of taps of a block", tile->block_taps);
    CONSTEXPR(out, "int TK, TL", "taps of a thread", tile->taps_down, tile->taps_along);
    CONSTEXPR(out, "int TC", "columns of d at a time", tile->columns);
    CONSTEXPR(out, "int SHARES, ROW_SHARES", "threads that share taps: split over images, rows", tile->shares,
              tile->row_shares);
    CONSTEXPR(out, "int BATCH", "images of a step", tile->shares);
    CONSTEXPR(out, "int THREADS", NULL, plan->threads);
    filter_gradient_emit_blocks(out, gradient, tile->block_taps, tile->shares);
    emit_layout(out, plan->fusion, gradient, tile);
    filter_gradient_emit_functions(out, plan, gradient);
}

const Family filter_direct_family = {
    .name = "filter_direct",
    .template_path = "templates/filter_direct.cu",
    .variants = (const char *const[]){"taps", NULL},
    .whole_warps = true,
    .view = depthwise_view,
    .rewrites = (const Rewrite *const[]){&turn_images, NULL},
    .kinds = kinds,
    .emit = emit,
    .work = work_of,
};
