// filter_gemm: the gradient of a depthwise convolution for its filters on tensor cores. Each row of taps is a
// product of two matrices, whose diagonals are the taps.

#include "base/checked.h"
#include "codegen/cuda/expr.h"
#include "codegen/family/depthwise/filter_gradient.h"
#include "codegen/family/depthwise/turn.h"
#include "hal/atoms.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum {
    ATOM_M = 16,
    ATOM_N = 8,
    PIECE = 16,          // bytes
    PAD = 8,             // elements between rows in shared memory, which are multiples of 16: other banks
    STEP_IMAGES = 4,     // of a step
    MOST_TAPS = 4,       // rows of taps of a warp: their sums have room in registers
    MOST_COLUMNS = 64,   // of d, likewise; where these are all, whatever lies outside is known beforehand
    MOST_SHARES = 2,     // warps that share taps: of a step's images
    MOST_THREADS = 512,
    ENOUGH_WARPS = 12,     // of an SM, if some tile allows them
    OTHER_REGISTERS = 8    // of a thread, beside sums and what is multiplied
};

static bool fits(const FilterGradient *gradient)
{
    const Atom *atom = gradient->atom;
    int bits = dtype_info[gradient->x.access->tensor->dtype].bits;
    return atom && atom->m == ATOM_M && atom->n == ATOM_N && 8 * 2 * PIECE / atom->k == bits;
}

// ---- how a block is laid out ----

/* The family chooses one of them. */
typedef struct GemmTile {
    int16_t block_taps;      // rows of taps,
    int16_t taps, columns;   // of a warp: of d
    int16_t shares, images;
} GemmTile;

/* What follows for the template, which says why. */
typedef struct GemmLayout {
    int64_t groups_column, groups_down, warps;
    int64_t wide_x, wide_d, zeros;   // columns of pictures in shared memory, and of a row that none has
    int64_t band, pairs;             // where x begins under a warp's columns; pairs of tiles from there on
    int64_t chain;                   // steps that are added up in one go
    bool chains;                     // more than one
    SharedLayout shared;
} GemmLayout;

static int64_t wide(int64_t columns) { return round_up(columns, ATOM_M); }

/* Rows of d that an instruction multiplies: two vectors; those of a picture, in whole instructions. */
static int64_t step_rows(const FilterGradient *gradient) { return 2 * PIECE / pictures_bytes(&gradient->d); }
static int64_t rows_of(const FilterGradient *gradient) { return round_up(gradient->d.rows, step_rows(gradient)); }

static GemmLayout layout_of(const FilterGradient *gradient, const GemmTile *tile)
{
    int64_t x_columns = wide(gradient->x.columns), d_columns = wide(gradient->d.columns);
    GemmLayout layout = {
        .groups_column = ceil_div(d_columns, tile->columns),
        .groups_down = tile->block_taps / tile->taps,
        .wide_x = x_columns,
        .wide_d = d_columns,
        .zeros = larger(x_columns, d_columns),
    };
    int64_t parts = layout.groups_column * tile->shares, left = -gradient->along.pad;
    layout.warps = layout.groups_down * parts;
    layout.band = left >= 0 ? left / ATOM_M * ATOM_M : -wide(-left);
    layout.pairs = (tile->columns - 1 + gradient->along.taps - 1 + left - layout.band) / ATOM_M + 1;
    layout.chain = larger(MAX_CHAIN / (tile->images * rows_of(gradient)), 1);
    layout.chains = ceil_div(gradient->shape.summed.extent, tile->images) > layout.chain;
    int64_t bytes = 2 * tile->images * pictures_bytes(&gradient->d);   // of a column of both steps' images
    SharedLayout *shared = &layout.shared;
    layout_add(shared, "PICTURES_X", bytes * gradient->x.rows * (x_columns + PAD));
    layout_add(shared, "PICTURES_D", bytes * gradient->d.rows * (d_columns + PAD));
    layout_add(shared, "ZERO_ROW", pictures_bytes(&gradient->d) * layout.zeros);
    layout_put(shared, "SLABS", layout.chains ? round_up(shared->bytes, PIECE) : 0,   // else over x and d
               layout.warps * ATOM_M * (layout.pairs * ATOM_M + 2) * 4);
    layout_put(shared, "SUMS", 0, parts * tile->block_taps * gradient->along.taps * 4);
    layout_put(shared, "MARKS", round_up(shared->bytes, PIECE), filter_gradient_mark_bytes(layout.warps));
    return layout;
}

/* 16 x 8 tiles of a warp's product that some tap crosses, and that the image may have. */
static int64_t tiles_of(const FilterGradient *gradient, const GemmTile *tile, const GemmLayout *layout)
{
    int64_t tiles = 0;
    for (int64_t a = 0; a < tile->columns / ATOM_M; a++)
        for (int64_t b = 0; b < layout->pairs * 2; b++) {
            int64_t u = layout->band + b * ATOM_N, j = a * ATOM_M;
            bool meets = u + ATOM_N - 1 - j + gradient->along.pad >= 0 &&
                         u - (j + ATOM_M - 1) + gradient->along.pad <= gradient->along.taps - 1;
            bool inside = layout->groups_column > 1 || (u + ATOM_N > 0 && u < wide(gradient->x.columns));
            tiles += meets && inside;
        }
    return tiles;
}

// ---- kinds ----

/* Diagonals are added up by way of shared memory, then the parts of a tap. */
static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const FilterGradient *gradient,
                             const TileSpace *space, const GemmLayout *layout)
{
    Schedule schedule = {.computes = COMPUTES_OWN, .stages = 2};
    const SharedRegion *zeros = layout_region(&layout->shared, "ZERO_ROW");
    filter_gradient_walk(&schedule, fusion, gradient, space, zeros->at + zeros->bytes);
    schedule_wait(&schedule, 0);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_exchange(&schedule, (Exchange){
                                     .ops = schedule_ops(fusion, true),
                                     .scope = SCOPE_BLOCK,
                                     .combine = COMBINE_DIAGONALS,
                                     .value_bytes = 4,
                                 });
    schedule_map(&schedule, schedule_ops(fusion, false));
    schedule_store(&schedule, (Move){.tiles = space_outputs(space)});
    return schedule_copy(arena, &schedule);
}

/* Arithmetic for each tap and column that are wanted: whole tiles, of whole steps down the rows. */
static double tile_flops(const FilterGradient *gradient, const GemmTile *tile, int64_t tiles)
{
    double rows = (double)rows_of(gradient) / (double)gradient->d.rows;
    double wanted = (double)(gradient->along.taps * tile->columns);
    return 2.0 * (double)(tiles * ATOM_M * ATOM_N) / wanted * rows;
}

/* Of a thread: sums, a tile of d, those of x for one row of taps and the next. */
static int64_t registers_of(const FilterGradient *gradient, const GemmTile *tile, const GemmLayout *layout,
                            int64_t tiles)
{
    int64_t inside = wide(gradient->x.columns) / ATOM_M,
            pairs = layout->pairs < inside ? layout->pairs : inside;
    return tile->taps * tiles * 4 + tile->columns / 4 + (tile->taps > 1 ? 2 : 1) * pairs * 4 +
           OTHER_REGISTERS;
}

static int64_t warps_of(const DeviceSpec *device, const FilterGradient *gradient, const GemmTile *tile)
{
    GemmLayout layout = layout_of(gradient, tile);
    int64_t registers = registers_of(gradient, tile, &layout, tiles_of(gradient, tile, &layout));
    return filter_gradient_warps(device, layout.warps * device->warp_size, registers, layout.shared.bytes);
}

static KernelKind tile_kind(Arena *arena, const Fusion *fusion, const DeviceSpec *device,
                            const FilterGradient *gradient, const GemmTile *tile)
{
    GemmLayout layout = layout_of(gradient, tile);
    int64_t tiles = tiles_of(gradient, tile, &layout);
    KernelKind kind = {
        .space = filter_gradient_space(arena, fusion, gradient, tile->block_taps),
        .name = filter_gemm_family.variants[0],
        .threads.of_tile = device->warp_size,
        .cost = &calibration.by_steps,
        .registers.input_buffers = 1,
        .registers.most_inputs = 1,
        .threads.most = MOST_THREADS,
        .registers.others = (int)registers_of(gradient, tile, &layout, tiles),
        .shared = layout.shared,
    };
    kind_choose(arena, &kind, tile, sizeof *tile);
    filter_gradient_copies(kind.space, gradient);
    kind.space->unit = gradient->atom->unit;
    kind.space->flops = tile_flops(gradient, tile, tiles);
    space_fix_axis(kind.space, CHANNEL, 1, 1);
    space_fix_axis(kind.space, TAP_DOWN, tile->taps, tile->block_taps);
    space_fix_axis(kind.space, TAP_ALONG, gradient->along.taps, gradient->along.taps);
    space_fix_axis(kind.space, IMAGE, tile->images / tile->shares, tile->images);
    space_fix_axis(kind.space, ROW, gradient->d.rows, gradient->d.rows);
    space_fix_axis(kind.space, COLUMN, tile->columns, layout.groups_column * tile->columns);
    kind.schedule = schedule_of(arena, fusion, gradient, kind.space, &layout);
    return kind;
}

/* As few rows of taps to a block as its threads have to be, and as few images to a step as have room. */
static bool fill_tile(const FilterGradient *gradient, const DeviceSpec *device, GemmTile *tile)
{
    tile->images = STEP_IMAGES;
    tile->block_taps = (int16_t)round_up(gradient->down.taps, tile->taps);
    int64_t warps = MOST_THREADS / device->warp_size;
    while (layout_of(gradient, tile).warps > warps && tile->block_taps > tile->taps)
        tile->block_taps = (int16_t)round_up(ceil_div(tile->block_taps, 2), tile->taps);
    while (tile->images > tile->shares && layout_of(gradient, tile).shared.bytes > device->shared_per_sm / 2)
        tile->images /= 2;
    return layout_of(gradient, tile).warps <= warps && tile->images <= gradient->shape.summed.extent;
}

/* Tiles of which an SM has room for so many warps. */
static int tiles_with_warps(Arena *arena, const Fusion *fusion, const DeviceSpec *device,
                            const FilterGradient *gradient, int warps, KernelKind *variants)
{
    int count = 0;
    int64_t columns = wide(gradient->d.columns);
    for (int shares = 1; shares <= MOST_SHARES; shares++)
        for (int taps = 1; taps <= MOST_TAPS; taps++) {
            GemmTile tile = {.taps = (int16_t)taps, .shares = (int16_t)shares};
            tile.columns = (int16_t)(columns < MOST_COLUMNS ? columns : MOST_COLUMNS);
            if (fill_tile(gradient, device, &tile) && warps_of(device, gradient, &tile) >= warps)
                variants[count++] = tile_kind(arena, fusion, device, gradient, &tile);
        }
    return count;
}

static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    const FilterGradient *gradient = ((const DepthwiseView *)view)->gradient;
    if (!gradient || !filter_gradient_is_dense(gradient) || !fits(gradient))
        return 0;
    int count = tiles_with_warps(arena, fusion, device, gradient, ENOUGH_WARPS, variants);
    return count ? count : tiles_with_warps(arena, fusion, device, gradient, 0, variants);
}

// ---- what a block computes ----

typedef struct GemmWork {
    const FilterGradient *gradient;
    const CountedItem *at;
    GemmTile tile;
    GemmLayout layout;
    int64_t images, steps;
} GemmWork;

static bool is_inside(const GemmWork *work, int64_t column)
{
    return column >= 0 && column < work->gradient->x.columns;
}

/* How often the warps with the g-th rows of taps multiply rows of d, those of x being there. */
static int64_t walks_of(const GemmWork *work, int64_t group)
{
    int64_t each = step_rows(work->gradient), walks = 0;
    int64_t taps = work->at->first[TAP_DOWN] + group * work->tile.taps - work->gradient->down.pad;
    for (int64_t i = 0; i < rows_of(work->gradient); i += each) {
        int64_t first = i + taps;
        walks += first + each + work->tile.taps - 1 > 0 && first < work->gradient->x.rows;
    }
    return walks;
}

/* 16 x 8 tiles that the warps with the g-th columns multiply for a row of taps; and pairs of them that they
   load. */
static int64_t tiles_inside(const GemmWork *work, int64_t group, int64_t *pairs)
{
    const GemmLayout *layout = &work->layout;
    int64_t j0 = group * work->tile.columns, left = -work->gradient->along.pad, tiles = 0;
    *pairs = 0;
    for (int64_t b = 0; b < layout->pairs * 2; b++) {
        if (!is_inside(work, j0 + layout->band + b / 2 * ATOM_M))
            continue;
        *pairs += b % 2;
        for (int64_t a = 0; a < work->tile.columns / ATOM_M; a++) {
            int64_t tap = layout->band + b * ATOM_N - a * ATOM_M - left;
            tiles += tap > -ATOM_N && tap < work->gradient->along.taps + ATOM_M - 1;
        }
    }
    return tiles;
}

/* Of all warps: products of whole tiles, and bytes of fragments of d and x. */
static void multiply(const GemmWork *work, int64_t *products, int64_t *bytes, int64_t *warps)
{
    enum { FRAGMENT_BYTES = 512 };
    int64_t each = step_rows(work->gradient);
    *products = *bytes = *warps = 0;
    for (int64_t down = 0; down < work->layout.groups_down; down++)
        for (int64_t column = 0; column < work->layout.groups_column; column++) {
            int64_t pairs, tiles = tiles_inside(work, column, &pairs),
                           walks = work->images * walks_of(work, down);
            *products += walks * work->tile.taps * tiles * ATOM_M * ATOM_N * each;
            *bytes += walks * (work->tile.columns / ATOM_M + work->tile.taps * pairs) * FRAGMENT_BYTES;
            *warps += walks && tiles ? work->tile.shares : 0;
        }
}

/* Terms of the taps that lie on diagonals of a row of d under its taps, of all warps with other columns. */
static int64_t diagonal_terms(const GemmWork *work)
{
    int64_t left = -work->gradient->along.pad, terms = 0;
    for (int64_t v = 0; v < work->layout.groups_column * work->tile.columns; v++)
        for (int64_t l = 0; l < work->gradient->along.taps; l++)
            terms += v < work->gradient->d.columns && is_inside(work, v + l + left);
    return terms;
}

/* Products go by way of shared memory, each time that a chain ends; then a warp's sums, of which all parts are
   added. */
static void fold(const GemmWork *work, ItemWork *item)
{
    enum { LANES = 32, WORD = 4 };
    const GemmLayout *layout = &work->layout;
    int64_t folds = (layout->chains ? work->steps / layout->chain : 0) + 1;
    int64_t parts = layout->groups_column * work->tile.shares,
            taps = work->tile.block_taps * work->gradient->along.taps;
    int64_t terms = folds * diagonal_terms(work) * work->tile.shares * work->tile.block_taps;
    int64_t slabs = folds * layout->warps * work->tile.taps * work->tile.columns * layout->pairs * 2 * ATOM_N;
    item->additions = terms + (parts - 1) * taps;
    item->shared_written = (slabs + parts * taps + layout->warps) * WORD;
    item->shared_read = (terms + parts * taps + layout->warps * LANES * layout->warps) * WORD;
}

static bool load(const GemmWork *work, ItemWork *item)
{
    const Pictures *pictures[] = {&work->gradient->x, &work->gradient->d};
    const Move *move = &work->at->item->move;
    int64_t products, warps, bytes = pictures_bytes(&work->gradient->d);
    for (int i = 0; i < 2 && move->to == PLACE_SHARED; i++)
        if (move->tiles >> i & 1)
            item->shared_written += work->images * pictures[i]->rows * pictures[i]->columns * bytes;
    if (move->to == PLACE_SHARED || move->from != PLACE_SHARED)
        return move->to == PLACE_SHARED;
    multiply(work, &products, &item->shared_read, &warps);
    item->shared_read += work->images * pictures[1]->rows * (work->layout.wide_d + PAD) * bytes;
    item->shared_read = item->shared_read * work->at->times / work->steps;
    return true;
}

static bool work_of(const void *view, const CountedItem *at, ItemWork *item)
{
    const FilterGradient *gradient = ((const DepthwiseView *)view)->gradient;
    GemmWork work = {.gradient = gradient, .at = at, .images = gradient->shape.summed.extent};
    int64_t bytes;
    work.tile = *(const GemmTile *)at->kind->choice.value;
    work.layout = layout_of(gradient, &work.tile);
    work.steps = ceil_div(work.images, work.tile.images);
    switch ((ItemKind)at->item->kind) {
    case ITEM_LOAD: return load(&work, item);
    case ITEM_REDUCE:
        multiply(&work, &item->tensor_products, &bytes, &item->multiplying_warps);
        item->tensor_products = item->tensor_products * at->times / work.steps;
        return true;
    case ITEM_EXCHANGE:
        if (at->item->exchange.combine == COMBINE_DIAGONALS)
            fold(&work, item);
        return at->item->exchange.combine == COMBINE_DIAGONALS;
    default: return false;
    }
}

// ---- the parameter block ----

static void emit_layout(StrBuf *out, const GemmLayout *layout)
{
    CONSTEXPR(out, "int GROUPS_K, GROUPS_J", "of warps", layout->groups_down, layout->groups_column);
    CONSTEXPR(out, "int WIDE_D, PITCH_X, PITCH_D", "rows in shared memory", layout->wide_d, layout->wide_x + PAD,
              layout->wide_d + PAD);
    CONSTEXPR(out, "int ZEROS", "a row of zeros, for rows out of bounds", layout->zeros);
    CONSTEXPR(out, "int BAND, PAIRS", "first column of x for a warp's columns of d; pairs of tiles from there",
              layout->band, layout->pairs);
    CONSTEXPR(out, "Index CHAIN", "promotion interval of the accumulators, in steps", layout->chain);
    CONSTEXPR(out, "bool CHAINS", "longer than one promotion interval", layout->chains);
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    const FilterGradient *gradient = ((const DepthwiseView *)plan->view)->gradient;
    const GemmTile *tile = plan->kind->choice.value;
    strbuf_printf(
        out, "using Element = %s;   // of x and d\nusing Value = float;   // of products and sums\n",
        gradient->atom->element);
    filter_gradient_emit_sizes(out, gradient);
    CONSTEXPR(out, "int BK", "rows of taps of a block", tile->block_taps);
    CONSTEXPR(out, "int TK, TJ", "of a warp: rows of taps, columns of d", tile->taps, tile->columns);
    CONSTEXPR(out, "int SHARES", "warps that split the images", tile->shares);
    CONSTEXPR(out, "int BATCH", "images of a step", tile->images);
    GemmLayout layout = layout_of(gradient, tile);
    filter_gradient_emit_blocks(out, gradient, tile->block_taps, tile->images);
    emit_layout(out, &layout);
    CONSTEXPR(out, "int LANE_TAPS", "of a row of taps", ceil_div(gradient->along.taps, plan->device->warp_size));
    filter_gradient_emit_functions(out, plan, gradient);
}

const Family filter_gemm_family = {
    .name = "filter_gemm",
    .template_path = "templates/filter_gemm.cu",
    .variants = (const char *const[]){"diagonals", NULL},
    .view = depthwise_view,
    .rewrites = (const Rewrite *const[]){&turn_images, NULL},
    .kinds = kinds,
    .emit = emit,
    .work = work_of,
};
