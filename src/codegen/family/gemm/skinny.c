// skinny: a sum of products with few rows, as a matrix times a vector. The large factor is read once, at the bandwidth of
// memory; the small one hits the caches.

#include <math.h>

#include "base/checked.h"
#include "codegen/family/gemm/beside.h"
#include "codegen/family/gemm/families.h"
#include "codegen/family/gemm/product.h"
#include "kernel/layout.h"
#include "model/calibration.h"
#include "rprogram/rprogram.h"
#include "rtile/space.h"

enum {
    SMALL,               // factors of the product: few rows,
    LARGE,               // and as many columns as there are
    MAX_SUMS = 64,       // registers of a thread
    MAX_COLUMNS = 4,     // of a thread, unless an access has more
    MAX_INPUTS = 64,     // elements of a factor that a thread has in flight,
    INPUT_BYTES = 128,   // and of the large one
    ALONG_TOGETHER = 4,  // of the small one that it reads along k, where the large one lies along n
    ACROSS_THREADS = 64, // of a block, at least, where few of them share columns
    MAX_THREADS = 512,   // of a block
    RUN_BYTES = 128,     // contiguous bytes that lanes read along n, at least,
    LEAST_RUN_BYTES = 64 // and along k: see reduce.c
};

// ---- kinds ----

static int value_bits(const Fusion *fusion) { return dtype_info[fusion->ops[0].body->type].bits; }

static int64_t power_of_two_below(int64_t limit)
{
    int64_t power = 1;
    while (2 * power <= limit)
        power *= 2;
    return power;
}

/* Columns of a thread, at most: their sums stay in registers. */
static int64_t most_columns(const Fusion *fusion, const Product *product)
{
    int64_t words = ceil_div(value_bits(fusion), 32), columns = MAX_COLUMNS;
    int64_t sums = MAX_SUMS / words / product->group[GROUP_M].extent;
    if (!product_along_k(fusion, product, LARGE)) {
        int64_t access = product_vector(fusion, product, LARGE, VECTOR_BYTES / (2 * words));
        columns = access > columns ? access : columns;
    }
    return power_of_two_below(sums < columns ? sums : columns);
}

/* Lanes are along k, but the small factor is contiguous along its rows: each lane along k reads another line of it. */
static bool lies_across(const Fusion *fusion, const Product *product)
{
    return product_along_k(fusion, product, LARGE) && product->group[GROUP_M].extent > 1 &&
           !product_along_k(fusion, product, SMALL);
}

/* Threads that read the large factor contiguously along k, at least. */
static int least_reducers(const Fusion *fusion, const Product *product)
{
    int vector = product_vector(fusion, product, LARGE, VECTOR_BYTES);
    return 8 * LEAST_RUN_BYTES / (vector * product_element_bits(product->factor[LARGE]));
}

/* Elements of a factor that a thread loads at once, at most. Along k a thread has a vector of the large one at a time. */
static int most_together(const Fusion *fusion, const Product *product, int factor)
{
    bool along_k = product_along_k(fusion, product, LARGE);
    if (factor == LARGE)
        return product_vector(fusion, product, LARGE, along_k ? VECTOR_BYTES : most_columns(fusion, product));
    if (!product_along_k(fusion, product, SMALL))
        return product_vector(fusion, product, SMALL, product->group[GROUP_M].extent);
    return product_vector(fusion, product, SMALL, along_k ? most_together(fusion, product, LARGE) : VECTOR_BYTES);
}

/* Time of L1 for what a warp reads of the small factor, over that of its bytes: 16 bytes are read by eight lanes at a time, as many as
   share a line of them in a clock. The lanes along k are some of its rows apart, the others read the same: eight rows of f32 take 16
   clocks for four where these are 128 bytes apart, 8 where they are 32. */
static double across_lines(const Fusion *fusion, const Product *product, const DataTile *tile)
{
    int64_t row_bytes = product->group[GROUP_M].extent * tile->element_bits / 8,
            apart = row_bytes * product_vector(fusion, product, LARGE, VECTOR_BYTES),
            each = greatest_common_divisor(apart, LINE_BYTES),
            together = smaller(least_reducers(fusion, product), 8 * LINE_BYTES / (tile->vector * tile->element_bits));
    return fmax((double)(together * each) / LINE_BYTES, 1);
}

static DataTile operand_tile(const Fusion *fusion, const Product *product, int factor)
{
    DataTile tile = product_factor_tile(product, factor, product_along_k(fusion, product, factor));
    tile.elements = 0;   // it is read once, by its tiles
    tile.apart = product_lies_apart(fusion, product, factor);
    tile.vector = most_together(fusion, product, factor);
    /* A warp's load takes L1 the time of a line, however few bits a lane reads. */
    tile.lines = WORD_BITS / (double)smaller(tile.vector * tile.element_bits, WORD_BITS);
    if (factor == SMALL && lies_across(fusion, product))
        tile.lines = fmax(tile.lines, across_lines(fusion, product, &tile));
    tile.across = factor == LARGE && !product_along_k(fusion, product, LARGE);
    return tile;
}

static TileSpace *find_space(Arena *arena, const Fusion *fusion, const Product *product,
                             const DeviceSpec *device)
{
    TileSpace *space = product_space(arena, fusion, product);
    for (int factor = SMALL; factor <= LARGE; factor++)
        space->tiles[space->tile_count++] = operand_tile(fusion, product, factor);
    product_add_results(space, fusion, product, device);
    return space;
}

/* Columns of the narrowest blocks without loss: lanes read whole lines with each access, or a block has ACROSS_THREADS
   where few of them share a column (tuning-log 53). */
static int64_t narrow_columns(const Fusion *fusion, const Product *product)
{
    int64_t columns = most_columns(fusion, product);
    if (lies_across(fusion, product))
        return columns * ACROSS_THREADS / least_reducers(fusion, product);
    if (product_along_k(fusion, product, LARGE))
        return 1;
    int vector = most_together(fusion, product, LARGE);
    int lanes = 8 * RUN_BYTES / (vector * product_element_bits(product->factor[LARGE]));
    return columns * (lanes < LANES ? lanes : LANES);
}

/* As few threads as may share a column, each with as many terms as possible: the other lanes of a warp read the same
   elements of the small factor for other columns (tuning-log 39). */
static void set_tiles_across(KernelKind *kind, int64_t rows)
{
    AxisRule *each = &kind->space->rule[LEVEL_REGISTER][GROUP_K], *block = &kind->space->rule[LEVEL_SHARED][GROUP_K];
    while (each->limit > each->granule && each->limit * rows > MAX_INPUTS)   // of the small factor, too
        each->limit /= 2;
    each->granule = each->limit;
    int64_t most = kind->space->least_reducers * each->limit;
    block->limit = most < block->limit ? most : block->limit;
}

/* Lanes are along the direction in which the large factor is contiguous. */
static void set_tiles(KernelKind *kind, const Fusion *fusion, const Product *product)
{
    bool along_k = product_along_k(fusion, product, LARGE);
    int64_t rows = product->group[GROUP_M].extent, columns = most_columns(fusion, product);
    int64_t narrow = narrow_columns(fusion, product);
    int vector = most_together(fusion, product, LARGE);
    bool small_along_k = product_along_k(fusion, product, SMALL);
    int together = small_along_k ? product_vector(fusion, product, SMALL, ALONG_TOGETHER) : 1;
    int64_t least_n = along_k ? 1 : vector, least_k = along_k ? vector : together;
    int64_t inputs = 8 * INPUT_BYTES / product_element_bits(product->factor[LARGE]);
    int64_t most_k = (inputs < MAX_INPUTS ? inputs : MAX_INPUTS) / columns;
    most_k = most_k > least_k ? most_k : least_k;
    int64_t share = product->group[GROUP_K].extent / kind->schedule->cluster;
    kind->space->rule[LEVEL_REGISTER][GROUP_BATCH] = kind->space->rule[LEVEL_SHARED][GROUP_BATCH] = (AxisRule){1, 1};
    kind->space->rule[LEVEL_REGISTER][GROUP_M] = kind->space->rule[LEVEL_SHARED][GROUP_M] = (AxisRule){rows, rows};
    kind->space->rule[LEVEL_REGISTER][GROUP_N] = (AxisRule){least_n, columns};
    kind->space->rule[LEVEL_REGISTER][GROUP_K] = (AxisRule){least_k, most_k};
    kind->space->rule[LEVEL_SHARED][GROUP_N] =
        (AxisRule){product->group[GROUP_N].extent >= narrow ? narrow : 1, columns * MAX_THREADS};
    kind->space->rule[LEVEL_SHARED][GROUP_K] = (AxisRule){
        1, kind->schedule->cluster > 1 && share < most_k * MAX_THREADS ? share : most_k * MAX_THREADS};
    kind->space->least_reducers = along_k ? least_reducers(fusion, product) : 1;
    if (lies_across(fusion, product))
        set_tiles_across(kind, rows);
}

/* At the end the threads that share a column reduce its sums, in a cluster across its blocks. */
static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const TileSpace *space,
                             const Product *product, int cluster)
{
    Schedule schedule = {.cluster = cluster, .cluster_axis = GROUP_K};
    uint8_t bytes = (uint8_t)(value_bits(fusion) / 8);
    schedule_loop(&schedule, (Loop){.axis = GROUP_K});
    schedule_load(&schedule,
                  (Move){.tiles = FACTOR_TILES,
                         .instructions = product_element_bits(product->factor[LARGE]) < value_bits(fusion)});
    schedule_product(&schedule, schedule_ops(fusion, true));
    schedule_end(&schedule);
    schedule_exchange(&schedule, (Exchange){
                                     .ops = schedule_ops(fusion, true),
                                     .scope = cluster > 1 ? SCOPE_CLUSTER : SCOPE_BLOCK,
                                     .combine = COMBINE_HALVES,
                                     .along = product_along_k(fusion, product, LARGE),
                                     .bytes = bytes,
                                     .value_bytes = bytes,
                                 });
    schedule_load(&schedule, (Move){.tiles = product_read_beside(space)});
    schedule_map(&schedule, schedule_ops(fusion, false));
    double each = product_end_instructions(fusion, product, 1);
    schedule_store(&schedule, (Move){.tiles = space_outputs(space), .instructions = each});
    return schedule_copy(arena, &schedule);
}

/* Elements that are read one by one take a register each, however short they are. */
static int64_t registers_taken_by_factors(const KernelKind *kind, const RTile *block, const RTile *inner,
                                          RegisterBudget budget)
{
    (void)block, (void)budget;
    const TileSpace *space = kind->space;
    int64_t sums = inner->size[GROUP_M] * inner->size[GROUP_N] * ceil_div(kind->registers.accumulator_bits, 32),
            registers = kind->registers.others + sums;
    for (int factor = SMALL; factor <= LARGE; factor++)
        registers += vector_registers(data_tile_elements(&space->tiles[factor], inner, space->axis_count),
                                      space->tiles[factor].vector, space->tiles[factor].element_bits);
    return registers;
}

static KernelKind kind_of(Arena *arena, const Fusion *fusion, const Product *product,
                          const DeviceSpec *device, int cluster)
{
    bool along_k = product_along_k(fusion, product, LARGE);
    KernelKind kind = {
        .space = find_space(arena, fusion, product, device),
        .name = cluster > 1 ? along_k ? "row-cluster" : "column-cluster"
                        : along_k   ? "row"
                                    : "column",
        .threads.most = MAX_THREADS,
        .registers.accumulator_bits = value_bits(fusion),
        .registers.others = 32,
        .registers.input_buffers = 1,
        .registers.taken = registers_taken_by_factors,
        .lay_out = lay_out_sums,
        .cost = &calibration.skinny,
    };
    kind.schedule = schedule_of(arena, fusion, kind.space, product, cluster);
    set_tiles(&kind, fusion, product);
    return kind;
}

/* Would there be fewer than two blocks for each SM? */
static bool leaves_sms_idle(const Fusion *fusion, const DeviceSpec *device, const Product *product)
{
    int64_t columns = narrow_columns(fusion, product);
    int64_t blocks = ceil_div(product->group[GROUP_N].extent, columns);
    return fitting_mul(product->group[GROUP_BATCH].extent, blocks) < 2 * (int64_t)device->sm_count;
}

/* One block iterates over k, or a cluster whose blocks have a step each at least. */
static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    const Product *product = ((const Products *)view)->skinny;
    if (!product)
        return 0;
    int count = 0;
    int64_t most = leaves_sms_idle(fusion, device, product) ? device_portable_cluster_blocks(device) : 1;
    for (int cluster = 1; cluster <= smaller(most, product->group[GROUP_K].extent); cluster *= 2)
        variants[count++] = kind_of(arena, fusion, product, device, cluster);
    return count;
}

/* Contiguous terms of a thread: a vector of the large factor, or all that it has in flight. */
static int64_t run_of(const Fusion *fusion, const Product *product, const RTile *each)
{
    int64_t together = each->size[GROUP_K];
    return product_along_k(fusion, product, LARGE) ? product_vector(fusion, product, LARGE, (int)together)
                                                   : together;
}

// ---- the parameter block ----

/* Adjacent elements of C are those of its few rows, so adjacent threads store these. */
static bool stores_along_m(const Fusion *fusion, const Product *product)
{
    const AxisGroup *rows = &product->group[GROUP_M];
    return rows->extent > 1 && product_stores_vectors(fusion, rows, rows->extent);
}

/* Columns of C that a thread stores in one access: as many as leave each thread one. */
static int columns_stored(const KernelPlan *plan, const Product *product)
{
    const RProgram *program = plan->program;
    int64_t columns = program->tile[LEVEL_SHARED].size[GROUP_N], most = VECTOR_BYTES,
            outputs = product->group[GROUP_M].extent * columns;
    for (int i = 0; i < plan->fusion->op_count; i++)
        if (plan->fusion->ops[i].stored)
            most = smaller(most, 8 * VECTOR_BYTES / dtype_info[plan->fusion->ops[i].out->dtype].bits);
    while (most > 1 && (columns % most || outputs / most < program->cluster * (int64_t)program->threads ||
                        !product_stores_vectors(plan->fusion, &product->group[GROUP_N], most)))
        most /= 2;
    return stores_along_m(plan->fusion, product) ? 1 : (int)most;
}

/* Blocks of an SM that registers must leave room for: all that are expected. Compilers issue loads of several
   steps in what they are not refused: 158 registers for 128 left three blocks of four, 0.70 of the time with four
   (tuning-log 253). Those of a cluster begin together: room for the grid's alone took 1.4 (tuning-log 267). */
static int64_t promised_blocks(const KernelPlan *plan)
{
    int64_t blocks = plan->program->sure_blocks;
    if (plan->program->cluster == 1)
        blocks = smaller(ceil_div(plan->program->grid, plan->device->sm_count), blocks);
    return plan->device->dialect == DIALECT_HIP ? 1 : larger(blocks, 1);
}

static void emit_constants(StrBuf *out, const KernelPlan *plan, const Product *product, int stored)
{
    const RTile *block = &plan->program->tile[LEVEL_SHARED], *each = &plan->program->tile[LEVEL_REGISTER];
    strbuf_printf(out, "using Value = %s;   // of products and sums\n",
                  value_type(plan->fusion->ops[0].body->type));
    CONSTEXPR(out, "Index N, K", NULL, product->group[GROUP_N].extent, product->group[GROUP_K].extent);
    CONSTEXPR(out, "int M", "rows", product->group[GROUP_M].extent);
    CONSTEXPR(out, "int BN, BK", "rTile, block", block->size[GROUP_N], block->size[GROUP_K]);
    CONSTEXPR(out, "int TN, TK", "rTile, registers", each->size[GROUP_N], each->size[GROUP_K]);
    CONSTEXPR(out, "int THREADS, MIN_BLOCKS_PER_SM", "of the launch bounds", plan->threads, promised_blocks(plan));
    CONSTEXPR(out, "int CLUSTER", "blocks of a cluster that split k", plan->program->cluster);
    CONSTEXPR(out, "bool STORES_ALONG_M", "C is contiguous along m", stores_along_m(plan->fusion, product));
    CONSTEXPR(out, "int QN", "columns of C in one aligned access", stored);
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    const Product *product = ((const Products *)plan->view)->skinny;
    Scope scope = scope_of(plan);
    const int64_t *each = plan->program->tile[LEVEL_REGISTER].size;
    bool along_k = product_along_k(plan->fusion, product, LARGE);
    int large = product_vector(plan->fusion, product, LARGE, along_k ? each[GROUP_K] : each[GROUP_N]);
    int64_t run = run_of(plan->fusion, product, &plan->program->tile[LEVEL_REGISTER]);
    bool small_along_k = product_along_k(plan->fusion, product, SMALL);
    int small = product_vector(plan->fusion, product, SMALL, small_along_k ? run : each[GROUP_M]);
    int stored = columns_stored(plan, product);
    emit_constants(out, plan, product, stored);
    product_emit_operand(out, &scope, product, SMALL, small, OPERAND_LOADED, NULL);
    product_emit_operand(out, &scope, product, LARGE, large, OPERAND_STREAMED, NULL);
    Beside beside = beside_in_vectors(plan->fusion, product, stored);
    beside_emit(out, &scope, product, &beside, stored, false);
}

/* Terms of all threads that share a column: of whole steps, and of the last one's runs for threads whose first
   run begins before the end, with zeros behind it. */
static int64_t terms_of(const CountedItem *at, const Product *product)
{
    int64_t extent = product->group[GROUP_K].extent, block = at->shared->size[GROUP_K],
            threads = block / at->inner->size[GROUP_K], run = run_of(at->fusion, product, at->inner);
    int64_t cluster = larger(at->kind->schedule->cluster, 1), rank = at->last ? cluster - 1 : 0;
    int64_t whole = extent / block, last = extent % block;   // of all blocks of the cluster
    int64_t terms = ceil_div(larger(whole - rank, 0), cluster) * block;
    if (whole % cluster == rank)
        terms += smaller(ceil_div(last, run), threads) * ceil_div(last, threads * run) * run;
    return terms;
}

/* A step multiplies the thread's part of all rows and columns. */
static bool work_of(const void *view, const CountedItem *at, ItemWork *work)
{
    const Product *product = ((const Products *)view)->skinny;
    if (at->item->kind != ITEM_PRODUCT)
        return false;
    int64_t cluster = larger(at->kind->schedule->cluster, 1), rank = at->last ? cluster - 1 : 0;
    int64_t rounds =
        ceil_div(ceil_div(product->group[GROUP_K].extent, at->shared->size[GROUP_K]) - rank, cluster);
    int64_t products = terms_of(at, product) * at->shared->size[GROUP_N] * at->shared->size[GROUP_M];
    work->additions = work->multiplications = rounds ? products * at->times / rounds : 0;
    return true;
}

const Family skinny_family = {
    .name = "skinny",
    .template_path = "templates/skinny.cu",
    .variants = (const char *const[]){"row", "row-cluster", "column", "column-cluster", NULL},
    .whole_warps = true,
    .view = product_view,
    .kinds = kinds,
    .emit = emit,
    .work = work_of,
};
