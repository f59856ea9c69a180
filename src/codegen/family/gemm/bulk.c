// bulk: a sum of products of two elements of one type on tensor cores that read shared memory. One thread copies boxes of
// both factors there (TMA) while warp groups multiply.

#include "codegen/family/gemm/beside.h"
#include "codegen/family/gemm/convolution_turn.h"
#include "codegen/family/gemm/families.h"
#include "codegen/family/gemm/im2col.h"
#include "codegen/family/gemm/mma.h"
#include "codegen/family/gemm/pack.h"
#include "codegen/family/gemm/parts.h"
#include "codegen/family/gemm/phases.h"
#include "codegen/family/gemm/skips.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum { SLAB_COLUMNS = 64, SLAB_COLUMN_BYTES = 32, SUM_BYTES = 4, BARRIER_BYTES = 8 };

/* Kinds of kernels: blocks without clusters, by their stages; multicast: two blocks with adjacent tiles, each of which
   copies half of b to both; cluster split-K of one tile; ping-pong, with multicast. */
static const int STAGES[] = {4, 6, 8};
enum {
    MULTICAST = 2,
    ALONE_KINDS = 3,
    MULTICAST_KIND = ALONE_KINDS,
    CLUSTER_KIND,
    PING_PONG_KIND
};
enum { MAKERS = 2, PING_PONG_STAGES = 5 };
enum { SPLITS = 2, SPLIT_TILE = 64, SUMS_PADDING = 8, FEW_TILES_STAGES = 8 };   // padding: columns

// ---- kinds ----

/* Axes whose last tile is shifted back. Copies of boxes that cross the end of a tensor are slow, which matters where every
   SM has a tile or two and waits for copies; so are those that begin within a line where others do not (tuning-log 93). */
static uint32_t axes_back(const Fusion *fusion, const Product *product)
{
    uint32_t axes = 0;
    for (int factor = 0; factor < 2 && !mma_is_shifted(fusion, product); factor++) {
        int group = factor ? GROUP_N : GROUP_M;
        int64_t piece = mma_piece(product);
        bool askew = (product->lines[factor].start | product->lines[factor].line) % (LINE_PIECES * piece) != 0;
        if (product->lines[factor].along_k || (askew && product->group[group].extent % piece == 0))
            axes |= 1u << group;
    }
    return axes;
}

static bool has_multicast(int variant) { return variant == MULTICAST_KIND || variant == PING_PONG_KIND; }

/* One thread copies boxes as far ahead as there are stages; the products of a step begin when its boxes have arrived. */
static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const Products *products,
                             const TileSpace *space, int stages, int variant)
{
    const Product *product = products->boxed;
    bool loops = variant != CLUSTER_KIND;   // blocks of cluster split-K compute one tile each
    const TapPhases *phases = product->phased ? &product->phased->phases : NULL;
    Schedule schedule = {.order = phases_order(phases), .stages = stages};
    if (has_multicast(variant))
        schedule.cluster = MULTICAST, schedule.cluster_axis = GROUP_M;
    if (variant == PING_PONG_KIND)
        schedule.makers = MAKERS;
    if (!loops)
        schedule.cluster = SPLITS, schedule.cluster_axis = GROUP_K;
    if (stages == FEW_TILES_STAGES && variant >= ALONE_KINDS && !products->rows)
        schedule.back = axes_back(fusion, product);
    schedule.cut = product->lines[0].along_k ? 1u << GROUP_M : 0;
    if (product->lines[1].along_k && product->sums == 1 && !has_multicast(variant))   // one copy has all of b
        schedule.cleared = 1u << GROUP_N;
    uint32_t operands = product_factor_tiles(product);
    schedule_barrier(&schedule, has_multicast(variant) ? SCOPE_CLUSTER : SCOPE_BLOCK);
    schedule_role(&schedule, WARPS_COPY);
    if (loops)
        schedule_loop(&schedule, (Loop){.tiles = true});
    schedule_loop(&schedule, (Loop){.axis = GROUP_K});
    schedule_wait(&schedule, 0);
    schedule_load(
        &schedule,
        (Move){.tiles = operands, .to = PLACE_SHARED, .async = true, .ahead = (uint8_t)(stages - 1)});
    schedule_end(&schedule);
    if (loops)
        schedule_end(&schedule);
    schedule_role(&schedule, WARPS_COMPUTE);
    if (loops)
        schedule_loop(&schedule, (Loop){.tiles = true});
    if (variant == PING_PONG_KIND)   // until the other group waits for no more boxes
        schedule_wait(&schedule, 0);
    schedule_loop(&schedule, (Loop){.axis = GROUP_K});
    schedule_wait(&schedule, 0);
    schedule_load(&schedule, (Move){.tiles = operands, .from = PLACE_SHARED});
    for (int s = 0; s < product->sums; s++)
        schedule_product(&schedule, UINT64_C(1) << s);
    schedule_end(&schedule);
    if (!loops)   // sums lie in place of the stages
        schedule_barrier(&schedule, SCOPE_BLOCK);
    Exchange exchange = {.scope = loops ? SCOPE_WARP : SCOPE_CLUSTER, .combine = COMBINE_ROWS};
    bool shifted = mma_is_shifted(fusion, product);
    exchange.slab = shifted && loops ? SLAB_COLUMNS : 0;
    if (products->rows)
        product_rows_schedule(&schedule, products->rows, space);
    else
        mma_schedule_store(&schedule, fusion, product, space, exchange,
                           loops ? mma_kept_type(fusion, product) : mma_sum_type(product),
                           beside_has_vectors(product->beside) && !shifted ? 1 : 0);
    if (loops)
        schedule_end(&schedule);
    if (has_multicast(variant))
        schedule_barrier(&schedule, SCOPE_CLUSTER);
    return schedule_copy(arena, &schedule);
}

/* Is there a tile of 128 x 256 for every SM? */
static bool fills_device(const Product *product, const DeviceSpec *device)
{
    double rows = (double)product->group[GROUP_M].extent / (MAX_GROUP_TILE / 2);
    double columns = (double)product->group[GROUP_N].extent * product->sums / MAX_GROUP_TILE;
    return rows * columns * (double)product->group[GROUP_BATCH].extent >= device->sm_count;
}

/* Stages with multicast; 0: it is not offered. Its blocks wait for each other: where tiles of 128 x 256 do not fill the
   device it gains only if copies of b are slow (tuning-log 63), and for pixels nowhere (tuning-log 117). */
static int stages_of_multicast(const Product *product, const DeviceSpec *device)
{
    if (product->pixels || product->sums == MAX_JOINED)   // whose tiles are not two boxes
        return 0;
    int64_t cache_line = LINE_PIECES * mma_piece(product);   // of b some begin within: each is read as two
    bool askew = (product->lines[1].start | product->lines[1].line) % cache_line != 0;
    return fills_device(product, device) ? 4 : askew ? FEW_TILES_STAGES : 0;
}

/* Cluster split-K, where all blocks find an SM at once. Larger tiles and more blocks lose (tuning-log 274). Boxes that cross the end
   of a are slow, except along k, where they are cut; few rows of tf32 lose (tuning-log 91, 93). */
static bool fits_splits(const Product *product, const DeviceSpec *device)
{
    double rows = (double)ceil_div(product->group[GROUP_M].extent, SPLIT_TILE);
    double columns = (double)ceil_div(product->group[GROUP_N].extent, SPLIT_TILE);
    double blocks = SPLITS * rows * columns * (double)product->group[GROUP_BATCH].extent;
    return device_most_cluster_blocks(device) >= SPLITS && blocks <= device->sm_count &&
           ceil_div(product->group[GROUP_K].extent, LINE_PIECES * mma_piece(product)) >= SPLITS &&
           !product->share.chunk && !product->phased &&
           (product->group[GROUP_M].extent >= SPLIT_TILE ||
            (product->lines[0].along_k && mma_element_type(product) != DTYPE_F32));
}

/* What a step copies of an image or a filter. */
static void set_taps(const Product *product, TileSpace *space)
{
    const Im2col *im2col = product->pixels;
    space->walk = im2col->walk;
    for (int factor = 0; factor < 2; factor++) {
        bool along_k = product->lines[factor].along_k;
        int rows = factor ? GROUP_N : GROUP_M, row_dim = along_k ? 1 : 2, k_dim = along_k ? 2 : 1;
        DataTile *tile = &space->tiles[factor];
        tile->scatter = 1;
        tile->instructions = 0;
        tile->dims[row_dim] = (Dim){affine_axis(rows), product->group[rows].extent};
        tile->dims[k_dim] = (Dim){affine_axis(GROUP_K), product->group[GROUP_K].extent};
        tile->taps = (TapTile){.k = k_dim, .step = im2col->step, .channels = im2col->channels};
        if (factor == im2col->factor)
            tile->taps.pixels = pixels_per_output(&im2col->walk);
    }
    if (product->phased) {
        space->phases = &product->phased->phases;
        space->axes[GROUP_K].extent = phases_extent(space->phases, 1, space->phases->columns);
    }
}

/* What a step copies of lines: whole boxes, however threads would read them. All batches may share a factor. */
static void set_lines(const Product *product, TileSpace *space)
{
    for (int factor = 0; factor < 2; factor++) {
        space->tiles[factor].scatter = 1;
        space->tiles[factor].instructions = 0;
        if (!product->lines[factor].batch)
            space->tiles[factor].dims[0] = (Dim){affine_constant(0), 1};
    }
}

/* The same where k is pixels, a part of them with split-K: rows are taps and channels. */
static void set_taps_along_k(const Product *product, TileSpace *space)
{
    const Im2col *im2col = product->pixels;
    Affine pixel = affine_axis(GROUP_K);
    pixel.coef[GROUP_BATCH] = product->share.chunk;
    space->walk = im2col->walk;
    for (int factor = 0; factor < 2; factor++) {
        int rows = factor ? GROUP_N : GROUP_M;
        DataTile *tile = &space->tiles[factor];
        tile->scatter = 1;
        tile->instructions = 0;
        if (im2col->groups == 1)
            tile->dims[0] = (Dim){affine_constant(0), 1};
        tile->dims[1] = (Dim){pixel, im2col->outputs.extent};
        tile->dims[2] = (Dim){affine_axis(rows), product->group[rows].extent};
        if (factor == im2col->factor)
            tile->taps = (TapTile){.k = 2,
                                   .step = im2col->step,
                                   .channels = im2col->channels,
                                   .pixels = pixels_per_output(&im2col->walk)};
    }
}

/* The stages of both operands, a slab of each warp, or sums of cluster split-K in their place, two barriers for each stage,
   and padding up to the alignment of the first tile. */
static void lay_out(SharedLayout *layout, const KernelKind *kind, const RTile *block, const RTile *inner,
                    const DeviceSpec *device)
{
    (void)device;
    int sums_each = *(const int *)kind->choice.value;   // the family's choice
    int64_t rows = block->size[GROUP_M], columns = block->size[GROUP_N] * sums_each;
    int64_t groups =
        block->size[GROUP_M] / inner->size[GROUP_M] * (block->size[GROUP_N] / inner->size[GROUP_N]);
    int64_t slabs =
        groups * schedule_makers(kind->schedule) * GROUP_WARPS * (SLAB_COLUMNS + 8) * SLAB_COLUMN_BYTES;
    int64_t stages = kind->schedule->stages * (rows + round_up(columns, SLAB_COLUMNS)) * MAP_LINE_BYTES;
    int64_t sums = rows * (columns + SUMS_PADDING) * SUM_BYTES;
    int64_t barriers = (2 * kind->schedule->stages + schedule_makers(kind->schedule)) * BARRIER_BYTES;
    layout_add(layout, "EVERYTHING",
               (kind_splits(kind) > 1 ? larger(stages, sums) : stages + slabs) + barriers + SHARED_ALIGNMENT);
}

static KernelKind kind_of_variant(Arena *arena, const KernelKind *common, const Fusion *fusion,
                               const Products *products, int variant, int stages)
{
    const Product *product = products->boxed;
    KernelKind kind = *common;
    kind.name = bulk_family.variants[variant];
    kind.space = space_copy(arena, common->space);
    kind.schedule = schedule_of(arena, fusion, products, kind.space, stages, variant);
    kind.space->any = 1u << GROUP_M | 1u << GROUP_N;   // 25088 rows are a tile of 192 for each SM, or two of 128
    int64_t columns = SLAB_COLUMNS * kind_multicast(&kind);   // whole boxes each
    if (!product->phased || !product->phased->tile)
        kind.space->rule[LEVEL_SHARED][GROUP_N].granule = columns;
    /* One group of 64 x 128 is as fast as two of 64 x 64, both of which read a and have half of the sums, but stores rows
       that are shifted more slowly (tuning-log 93). */
    if (has_multicast(variant) && !mma_is_shifted(fusion, product) && !products->rows)
        kind.space->rule[LEVEL_REGISTER][GROUP_N].granule = columns;
    for (int g = GROUP_M; variant == CLUSTER_KIND && g <= GROUP_N; g++)
        kind.space->rule[LEVEL_SHARED][g].limit = SPLIT_TILE;
    if (variant == PING_PONG_KIND) {
        kind.space->rule[LEVEL_SHARED][GROUP_M].limit = kind.space->rule[LEVEL_REGISTER][GROUP_M].limit;
        kind.threads.least = kind.threads.most = MAKERS * kind.threads.of_tile;
    }
    return kind;
}

/* Ping-pong, where there are more of a group's largest tiles than SMs: one is stored while another is multiplied. */
static bool fits_ping_pong(const Product *product, const DeviceSpec *device)
{
    double rows = (double)ceil_div(product->group[GROUP_M].extent, product->shared_atom->m);
    double columns = (double)ceil_div(product->group[GROUP_N].extent * product->sums, MAX_GROUP_TILE);
    return rows * columns * (double)product->group[GROUP_BATCH].extent > device->sm_count && !product->phased;
}

static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    const Products *products = view;
    const Product *product = products->boxed;
    if (!product)
        return 0;
    fusion = products->rows ? &products->rows->product : fusion;
    KernelKind common;
    mma_group_kind(arena, &common, fusion, device, product, product->shared_atom);
    if (product->pixels)
        (im2col_has_rows(product->pixels) ? set_taps : set_taps_along_k)(product, common.space);
    else
        set_lines(product, common.space);
    if (product->phased && product->phased->phases.columns < MAX_GROUP_TILE)   // a tile of two phases has the taps of both
        common.space->rule[LEVEL_SHARED][GROUP_N].limit = product->phased->phases.columns;
    int64_t tile = product->phased ? product->phased->tile : 0;   // ends within a box
    if (tile) {
        space_fix_axis(common.space, GROUP_N, tile, tile);
        common.space->flops *= (double)round_up(tile, product->phased->phases.atom) / (double)tile;
    }
    kind_choose(arena, &common, &product->sums, sizeof product->sums);
    common.cost = &calibration.bulk;
    common.lay_out = lay_out;
    if (products->rows)
        product_rows_add(&common, products->rows, product);
    int count = 0, multicast_stages = stages_of_multicast(product, device);
    for (; count < ALONE_KINDS; count++)
        variants[count] = kind_of_variant(arena, &common, fusion, products, count, STAGES[count]);
    if (multicast_stages)
        variants[count++] = kind_of_variant(arena, &common, fusion, products, MULTICAST_KIND, multicast_stages);
    if (fits_splits(product, device) && !products->rows)
        variants[count++] = kind_of_variant(arena, &common, fusion, products, CLUSTER_KIND, FEW_TILES_STAGES);
    if (fits_ping_pong(product, device) && !products->rows && multicast_stages)
        variants[count++] = kind_of_variant(arena, &common, fusion, products, PING_PONG_KIND, PING_PONG_STAGES);
    return count;
}

// ---- the kernel ----

/* Of a single tile only the rows that exist: of a in multiples of eight, since b begins after them, and of b where one copy
   has all of it. */
static int box_rows(const KernelPlan *plan, const Product *product, int factor, int64_t rows)
{
    int64_t tile = plan->program->tile[LEVEL_SHARED].size[factor ? GROUP_N : GROUP_M];
    bool whole = factor && (kind_multicast(plan->kind) > 1 || product->sums > 1);
    return (int)(whole || rows >= tile ? tile : factor ? rows : round_up(rows, SLAB_ROWS));
}

/* Contiguous elements along k: of a filter those of a tap, of a filter gradient those of all parts. */
static int64_t line_elements_along_k(const Product *product)
{
    const Im2col *im2col = product->pixels;
    if (!im2col)
        return product->group[GROUP_K].extent;
    return im2col_has_rows(im2col) ? im2col->channels : im2col->outputs.extent;
}

/* The map of the factor, or of another sum's in its place. */
static TensorMap map_of_other(const KernelPlan *plan, const Product *product, int factor, const Expr *expr,
                              Lines lines)
{
    const RTile *block = &plan->program->tile[LEVEL_SHARED];
    int line_elements = (int)block->size[GROUP_K], element_bytes = MAP_LINE_BYTES / line_elements;
    const Im2col *im2col = product->pixels;
    int64_t rows = product->group[factor ? GROUP_N : GROUP_M].extent, k = line_elements_along_k(product);
    bool filter = im2col && im2col_has_rows(im2col);
    int64_t batches = filter ? im2col->taps.extent : product->group[GROUP_BATCH].extent;
    int64_t count = lines.along_k ? rows : k, batch = lines.batch ? lines.batch : lines.line * count;
    int boxes = factor ? kind_multicast(plan->kind) : 1;   // of a tile
    int of_tile = factor && product->sums > 1 ? (int)plan->program->tile[LEVEL_REGISTER].size[GROUP_N]
                                              : box_rows(plan, product, factor, rows) / boxes;
    return (TensorMap){
        .arg = input_position(plan->fusion, expr->access.tensor),
        .start = lines.start * element_bytes,
        .rank = 3,
        .element_bytes = element_bytes,
        .tf32 = mma_element_type(product) == DTYPE_F32,
        .sizes = {lines.along_k ? k : rows, filter ? count * im2col->groups : count, lines.batch ? batches : 1},
        .strides = {lines.line * element_bytes, batch * element_bytes},
        .box = {line_elements, lines.along_k ? of_tile : line_elements, 1},
    };
}

/* From the channels outwards to the images. */
static TensorMap map_of_pixels(const KernelPlan *plan, const Product *product)
{
    const RTile *block = &plan->program->tile[LEVEL_SHARED];
    const Im2col *im2col = product->pixels;
    int count = im2col->walk.count;
    int64_t stride = im2col->pixel * MAP_LINE_BYTES / block->size[GROUP_K];
    TensorMap map = {
        .arg = input_position(plan->fusion, mma_access(product->factor[im2col->factor])->tensor),
        .start = im2col->first * MAP_LINE_BYTES / block->size[GROUP_K],
        .rank = count + 2,
        .element_bytes = MAP_LINE_BYTES / (int)block->size[GROUP_K],
        .pixel_axes = count,
        .tf32 = mma_element_type(product) == DTYPE_F32,
        .sizes = {im2col->groups > 1 ? im2col->pixel : im2col->channels},
        .box = {(int)block->size[GROUP_K], (int)block->size[GROUP_K]},   // along k so many pixels, too
    };
    if (im2col_has_rows(im2col))
        map.box[1] = box_rows(plan, product, im2col->factor, product->group[im2col->pixels].extent);
    for (int i = 0; i < count; i++) {
        const WindowAxis *axis = &im2col->walk.axis[count - 1 - i];
        map.sizes[i + 1] = axis->inputs;
        map.strides[i] = stride;
        map.lower[i] = (int)im2col->lower[count - 1 - i];
        map.upper[i] = (int)im2col->upper[count - 1 - i];
        map.steps[i] = (int)axis->stride;
        stride *= axis->inputs;
    }
    map.sizes[count + 1] = im2col->images;
    map.strides[count] = stride;
    return map;
}

static int maps(const KernelPlan *plan, TensorMap *maps)
{
    const Product *product = ((const Products *)plan->view)->boxed;
    for (int factor = 0; factor < 2; factor++)
        maps[factor] =
            product->pixels && product->pixels->factor == factor ? map_of_pixels(plan, product)
            : product->phased
                ? phases_map(plan, product, product->phased)
                : map_of_other(plan, product, factor, product->factor[factor], product->lines[factor]);
    for (int s = 1; s < product->sums; s++)
        maps[1 + s] = map_of_other(plan, product, 1, product->more[s - 1], product->more_lines[s - 1]);
    return 1 + product->sums;
}

static bool lies_back(const KernelPlan *plan, const Product *product, int group)
{
    int64_t extent = product->group[group].extent, tile = plan->program->tile[LEVEL_SHARED].size[group];
    return plan->kind->schedule->back >> group & 1 && extent > tile && extent % tile != 0;
}

static void emit_taps(StrBuf *out, const KernelPlan *plan, const Product *product)
{
    Scope scope = scope_of(plan);
    CONSTEXPR(out, "Index TAP", "a tap's channels, in whole lines", product->pixels->step);
    im2col_emit(out, &scope, product, product->pixels);
    if (product->phased)
        phases_emit(out, &scope, product, product->phased);
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    const Products *products = plan->view;
    const Product *product = products->boxed;
    mma_emit(out, plan, product, products->rows, true);
    int multicast = kind_multicast(plan->kind), cluster = plan->program->cluster;
    strbuf_putc(out, '\n');
    CONSTEXPR(out, "int JOINED", "sums that are computed together", product->sums);
    CONSTEXPR(out, "Index BATCHES", NULL, product->group[GROUP_BATCH].extent);
    CONSTEXPR(out, "int MULTICAST, SPLITS", "blocks of a cluster: multicast, split-K", multicast,
              cluster / multicast);
    CONSTEXPR(out, "int TURNS", "tiles of a persistent block", plan->program->turns);
    CONSTEXPR(out, "int MAKERS", "warp groups that compute tiles alternately", schedule_makers(plan->kind->schedule));
    CONSTEXPR(out, "Index CLUSTERS", NULL, plan->program->grid / cluster);
    CONSTEXPR(out, "bool BACK_M, BACK_N", "the last tile is shifted back to end where C does",
              lies_back(plan, product, GROUP_M), lies_back(plan, product, GROUP_N));
    for (int factor = 0; factor < 2; factor++)
        im2col_emit_flags(out, product->pixels, factor);
    CONSTEXPR(out, "Index PART", "of k in each batch, if it is split", product->share.chunk);
    CONSTEXPR(out, "bool PHASES", "columns of C are phases with different taps", product->phased != NULL);
    CONSTEXPR(out, "bool BACKWARDS", "the last tiles first", schedule_is_backwards(plan->kind->schedule));
    /* The producer thread of a block that begins late copies everything that may come early before the first box of the
       other factor: after 128 blocks on 132 SMs, 96 took 11.9 us, and 9.6 with nothing early (tuning-log 148). */
    mma_emit_early(out, plan, product, plan->finds_room && !product->phased ? 3 : 0);
    if (product->pixels)
        emit_taps(out, plan, product);
}

const Family bulk_family = {
    .name = "bulk",
    .template_path = "templates/bulk.cu",
    .shares_body = true,
    .variants = (const char *const[]){"four stages", "six stages", "eight stages", "multicast", "cluster",
                                      "multicast, ping-pong", NULL},
    .copying_warps = GROUP_WARPS,
    .streams = true,
    .joins = true,
    .adds_in_place = true,
    .tiles_both = true,
    .view = product_view,
    .rewrites =
        (const Rewrite *const[]){&pack_for_tensor_cores, &sum_taps_behind, &lengthen_channels, &turn_planes,
                                 &turn_planes_in_parts, &turn_planes_to_columns, &turn_planes_to_phases,
                                 &take_pixels, &make_first_pixels, &parts_of_wide_tiles, &parts_of_medium_tiles,
                                 &parts_of_square_tiles, NULL},
    .kinds = kinds,
    .emit = emit,
    .maps = maps,
    .work = product_rows_work,
};
