// gemm: a sum of products of two elements of one type on tensor cores (mma.sync).
#include <math.h>

#include "base/checked.h"
#include "codegen/family/gemm/convolution_turn.h"
#include "codegen/family/gemm/families.h"
#include "codegen/family/gemm/mma.h"
#include "codegen/family/gemm/pack.h"
#include "codegen/family/gemm/skips.h"
#include "model/calibration.h"

enum {
    LOADED = 16,        // rows of a register tile
    MIN_K_PARTS = 2,    // instructions along k in a step
    MAX_K_PARTS = 8
};
/* As many threads as 8 rows of each warp's tile, which are staged in shared memory, nearly fit in the stages. */
enum { MAX_WARP_TILE = 128, MAX_TILE = 256, MAX_THREADS = 256 };
enum { SLAB_PADDING = 8 };
enum { LARGE_TILE = 128, CLUSTER_VARIANT = 3, SEVERAL_VARIANT = 4 };
enum { OTHERS = 26, OTHERS_ONCE = 24, OF_RESIDUAL = 16 };   // registers: counted in what ptxas takes of 500 kernels (tuning-log 242)
enum { MAX_PRODUCTS = 4 };   // of a block, which waits for all of them

// ---- kinds ----

/* Factors that pass registers on their way to shared memory, one step ahead. */
static int held_factors(const Product *product)
{
    int held = 0;
    for (int factor = 0; factor < 2; factor++)
        held += product->reading[factor].way != BY_PIECES;
    return held;
}

/* Tiles of A and B (bits 0 and 1) that are copied asynchronously, or that pass registers. */
static uint32_t tiles_read(const Product *product, bool by_pieces)
{
    uint32_t tiles = 0;
    for (int factor = 0; factor < 2; factor++)
        if ((product->reading[factor].way == BY_PIECES) == by_pieces)
            tiles |= 1u << factor;
    return tiles;
}

/* While fragments of one part of a step are multiplied, those of the next part are loaded, once more after the last step. */
static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const Products *products,
                             const TileSpace *space, int stages, int cluster)
{
    const Product *product = products->tiled;
    Schedule schedule = {.stages = stages, .cluster = cluster, .cluster_axis = GROUP_K};
    schedule.order = phases_order(product->skips ? &product->skips->phases : NULL);
    uint32_t copied = tiles_read(product, true), held = tiles_read(product, false);
    uint8_t ahead = (uint8_t)(stages - 1);
    schedule_wait(&schedule, stages - 2);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_loop(&schedule, (Loop){.axis = GROUP_K});
    schedule_load(&schedule, (Move){.tiles = copied | held, .from = PLACE_SHARED, .ahead = 1});
    schedule_load(&schedule, (Move){.tiles = copied, .to = PLACE_SHARED, .async = true, .ahead = ahead});
    schedule_load(&schedule, (Move){.tiles = held, .ahead = ahead});
    schedule_product(&schedule, schedule_ops(fusion, true));
    schedule_store(&schedule, (Move){.tiles = held, .to = PLACE_SHARED, .ahead = ahead});
    schedule_wait(&schedule, stages - 2);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_end(&schedule);
    if (products->rows) {
        product_rows_schedule(&schedule, products->rows, space);
        return schedule_copy(arena, &schedule);
    }
    if (cluster == 1)
        schedule_barrier(&schedule, SCOPE_BLOCK);
    Exchange exchange = {.scope = cluster > 1 ? SCOPE_CLUSTER : SCOPE_WARP, .combine = COMBINE_ROWS};
    mma_schedule_store(&schedule, fusion, product, space, exchange, mma_sum_type(product),
                       0);   // ahead where registers are
    return schedule_copy(arena, &schedule);
}

/* Registers for each word of both factors' tiles, which are about as large: those of PieceAnywhere are nine
   for four, and elements that are loaded alone have one each until all are there. */
static double held_words(const Product *product)
{
    double elements = 32.0 / product_element_bits(product->factor[0]);
    const double words[] = {[BY_PIECES] = 0, [FROM_ANYWHERE] = 9.0 / 4, [BY_ELEMENTS] = elements};
    return (words[product->reading[0].way] + words[product->reading[1].way]) / 2;
}

/* Blocks of cluster split-K for large tiles, at most as many as find an SM at once, or nearly. */
static int largest_cluster(const DeviceSpec *device, const Product *product)
{
    int64_t tiles = fitting_mul(ceil_div(product->group[GROUP_M].extent, LARGE_TILE),
                                ceil_div(product->group[GROUP_N].extent, LARGE_TILE));
    tiles = fitting_mul(tiles, product->group[GROUP_BATCH].extent);
    int cluster = 1, most = device_portable_cluster_blocks(device);
    while (2 * cluster <= most && cluster * tiles <= device->sm_count)
        cluster *= 2;
    return cluster;
}

/* Every block has a step. */
static KernelKind in_cluster(Arena *arena, const KernelKind *alone, const Fusion *fusion,
                            const Products *products, int cluster)
{
    const Product *product = products->tiled;
    KernelKind kind = *alone;
    kind.space = space_copy(arena, alone->space);
    AxisRule *k = &kind.space->rule[LEVEL_SHARED][GROUP_K];
    kind.name = gemm_family.variants[CLUSTER_VARIANT];
    kind.schedule = schedule_of(arena, fusion, products, kind.space, alone->schedule->stages, cluster);
    while (k->limit > k->granule && k->limit > product->group[GROUP_K].extent / cluster)
        k->limit /= 2;
    return kind;
}

/* Where rows are contiguous in memory, and there are many, tiles have whole lines of them. */
static int64_t least_rows(const Product *product, int group)
{
    bool in_lines = !product->reading[group == GROUP_N].along_k;
    return in_lines && product->group[group].extent >= 2 * MAX_TILE
             ? 8 * LINE_BYTES / product_element_bits(product->factor[group == GROUP_N])
             : LOADED;
}

/* Slabs of eight warps with tiles of 16 x 128 take 34 KB, two short steps of 128 x 128 have 32. */
static int64_t slabs_beyond(const DeviceSpec *device, const Product *product, const Atom *atom, int stages)
{
    int64_t element = VECTOR_BYTES / mma_piece(product), warps = MAX_THREADS / device->warp_size;
    int64_t least = stages * 2 * MAX_WARP_TILE * (int64_t)MIN_K_PARTS * atom->k * element;
    int64_t slabs = warps * SLAB_ROWS * (MAX_WARP_TILE + SLAB_PADDING) * mma_value_bytes(product);
    return slabs > least ? slabs - least : 0;
}

/* The stages of both operands; later, in the same place, a slab of each warp. In clusters sums are exchanged after the
   stages, which other blocks may still read, with padding. */
static void lay_out(SharedLayout *layout, const KernelKind *kind, const RTile *block, const RTile *inner,
                    const DeviceSpec *device)
{
    int value_bytes = *(const int *)kind->choice.value;   // the family's choice
    int64_t staged = kind_staged_bytes(kind, block, inner, device), beyond = kind->shared.beside;
    int64_t sums = (int64_t)rtile_points(kind->space, block, false) * (value_bytes * 3 / 2);
    bool is_split = kind_splits(kind) > 1;
    layout_add(layout, "OPERANDS", staged);
    layout_put(layout, "SLABS", is_split ? staged : 0, beyond + (is_split ? sums : staged));
}

/* A block computes several products of a batch. A single step has no later one to copy ahead. */
static KernelKind of_several_products(Arena *arena, const KernelKind *alone, const Fusion *fusion,
                                     const DeviceSpec *device, const Products *products, const Atom *atom)
{
    const Product *product = products->tiled;
    KernelKind kind = *alone;
    int stages = product->group[GROUP_K].extent <= MIN_K_PARTS * atom->k ? 2 : alone->schedule->stages;
    kind.name = gemm_family.variants[SEVERAL_VARIANT];
    kind.space = space_copy(arena, alone->space);
    kind.space->rule[LEVEL_SHARED][GROUP_BATCH] = (AxisRule){2, MAX_PRODUCTS};
    kind.shared.beside = slabs_beyond(device, product, atom, stages);
    kind.schedule = schedule_of(arena, fusion, products, kind.space, stages, 1);
    return kind;
}

/* Bounds of a factor, shifts of its vectors, and addresses of 4-byte words that are transposed one by one: without these,
   64 x 64 a warp spilled 52 bytes (tuning-log 82). */
static int register_overhead(const Product *product)
{
    int registers = 48 + 16 * held_factors(product);
    for (int factor = 0; factor < 2; factor++)
        if (product_element_bits(product->factor[factor]) == 32 &&
            !product->reading[factor].along_k)
            registers += 16;
    return registers;
}

/* Of the vectors of a factor that a thread copies in a step: an address and half a bound, and what passes registers. */
static double registers_of_vectors(const KernelKind *kind, const DataTile *factor, const RTile *block, double threads)
{
    const double BY_PIECE = 2.5, BY_SHIFT = 12, BY_ELEMENT = 13;
    double elements = (double)data_tile_elements(factor, block, kind->space->axis_count);
    double each = factor->vector > 1 ? BY_PIECE : factor->vector == 1 ? BY_ELEMENT : BY_SHIFT;
    return each * ceil(elements * factor->element_bits / (8 * VECTOR_BYTES * threads));
}

/* As they are read in a loop, fragments of three parts of a step are alive. A single step has no addresses of a later one, and
   compilers multiply a part of the tile when they store it: 16 x 64, 32 x 32 and 64 x 16 take 56, 16 x 128 and 32 x 64 86. */
static int64_t registers_taken_by_warps(const KernelKind *kind, const RTile *block, const RTile *inner,
                                        RegisterBudget budget)
{
    bool once = kind_is_one_step(kind, block);
    double threads = kind_tile_threads(kind) * rtile_tiles(kind->space, block, inner, false);
    int64_t values = kind_registers(kind, inner, once ? 0 : 3) - kind->registers.others;
    double registers = once ? (double)larger(values, budget.passing) : (double)values + (double)budget.places / 2;
    for (int i = 0; i < kind->space->tile_count; i++) {
        const DataTile *data = &kind->space->tiles[i];
        bool residual = data->beside && data_tile_depends(data, GROUP_M) && data_tile_depends(data, GROUP_N);
        if (residual)
            registers += OF_RESIDUAL;
        if (data->staged && !data->output && !once)
            registers += registers_of_vectors(kind, data, block, threads);
    }
    return (int64_t)registers + (once ? OTHERS_ONCE : OTHERS);
}

static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    const Products *products = view;
    const Product *product = products->tiled;
    if (!product || !product->atom)
        return 0;
    fusion = products->rows ? &products->rows->product : fusion;
    const Atom *atom = product->atom;
    KernelKind kind = {.space = mma_space(arena, fusion, product, atom, device), .lay_out = lay_out};
    mma_count_copies(kind.space, fusion, product);
    int value_bytes = mma_value_bytes(product);
    kind_choose(arena, &kind, &value_bytes, sizeof value_bytes);
    kind.space->rule[LEVEL_REGISTER][GROUP_BATCH] = kind.space->rule[LEVEL_SHARED][GROUP_BATCH] = (AxisRule){1, 1};
    kind.space->rule[LEVEL_REGISTER][GROUP_K] = (AxisRule){atom->k, atom->k};
    kind.space->rule[LEVEL_SHARED][GROUP_K] = (AxisRule){MIN_K_PARTS * atom->k, MAX_K_PARTS * atom->k};
    for (int g = GROUP_M; g <= GROUP_N; g++) {
        kind.space->rule[LEVEL_REGISTER][g] = (AxisRule){LOADED, MAX_WARP_TILE};
        kind.space->rule[LEVEL_SHARED][g] = (AxisRule){least_rows(product, g), MAX_TILE};
    }
    if (products->rows)
        product_rows_add(&kind, products->rows, product);
    if (product->skips)
        skips_set_tiles(kind.space, product->skips, MAX_K_PARTS * atom->k);
    kind.threads.of_tile = device->warp_size;
    kind.cost = &calibration.gemm.cost;
    kind.threads.most = MAX_THREADS;
    kind.registers.accumulator_bits = mma_sum_bits(product);
    kind.registers.input_buffers = 2;
    int held = held_factors(product), count = 0;
    bool copied = device->has.async_copy && held < 2;   // several steps ahead
    kind.registers.held_words = held_words(product);
    kind.registers.others = register_overhead(product);
    kind.registers.taken = registers_taken_by_warps;
    for (int stages = copied ? 3 : 2; stages <= (copied ? 4 : 2); stages++) {
        kind.name = gemm_family.variants[stages - 2];
        kind.shared.beside = slabs_beyond(device, product, atom, stages);
        kind.schedule = schedule_of(arena, fusion, products, kind.space, stages, 1);
        variants[count++] = kind;
    }
    if (products->rows || product->skips)   // reduced by warps that have whole sums; tiles have different steps
        return count;
    if (product_is_small(fusion, product, device))
        variants[count++] = of_several_products(arena, &variants[0], fusion, device, products, atom);
    for (int cluster = 2; cluster <= largest_cluster(device, product); cluster *= 2)
        if (product->group[GROUP_K].extent > cluster * MIN_K_PARTS * atom->k)
            variants[count++] = in_cluster(arena, &variants[copied], fusion, products, cluster);
    return count;
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    const Products *products = plan->view;
    mma_emit(out, plan, products->tiled, products->rows, false);
    mma_emit_early(out, plan, products->tiled, tiles_read(products->tiled, true));
    skips_emit(out, products->tiled->skips);
}

const Family gemm_family = {
    .name = "gemm",
    .template_path = "templates/gemm.cu",
    .shares_body = true,
    .variants = (const char *const[]){"two stages", "three stages", "four stages", "cluster",
                                      "several products", NULL},
    .adds_in_place = true,
    .tiles_both = true,
    .view = product_view,
    .streams = true,
    .rewrites = (const Rewrite *const[]){&pack_for_tensor_cores, &sum_taps_behind, &lengthen_channels,
                                         &lengthen_channels_of_rows, &take_pixels, NULL},
    .kinds = kinds,
    .emit = emit,
    .work = product_rows_work,
};
