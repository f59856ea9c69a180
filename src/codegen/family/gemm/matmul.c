// matmul: a sum of products on CUDA cores.

#include "base/checked.h"
#include "codegen/family/gemm/beside.h"
#include "codegen/family/gemm/convolution_turn.h"
#include "codegen/family/gemm/families.h"
#include "codegen/family/gemm/mma.h"
#include "codegen/family/gemm/product.h"
#include "codegen/family/gemm/skips.h"
#include "model/calibration.h"
#include "rprogram/rprogram.h"
#include "rtile/space.h"

enum { MAX_TILE = 256, MAX_REGISTER_TILE = 16, MAX_PRODUCTS = 64 };
enum { MIN_K_STEP = 8, MAX_K_STEP = SKIPPED_STEP };   // short ones leave shared memory for more tiles at once
/* Tiles whose steps are copied ahead (tuning-log 54): threads; sizes along the rows of the copied factor (WIDE) and of the
   other one (NARROW), and along k, which is unrolled; a thread's rows and columns, of which more take more registers than
   leave room for other blocks (tuning-log 204). */
enum {
    AHEAD_LEAST_THREADS = 64,
    AHEAD_THREADS = 256,
    AHEAD_MOST_THREADS = 288,
    AHEAD_WIDE = 256,
    AHEAD_NARROW = 128,
    AHEAD_MOST_NARROW = 144,
    AHEAD_REGISTERS = 8,
    WINDOW_REGISTERS = 48,
    GUARD_REGISTERS = 8
};

/* Elements of one access of shared memory. */
static int64_t shared_vector(const Fusion *fusion)
{
    return VECTOR_BYTES * 8 / dtype_info[fusion->ops[0].body->type].bits;
}

/* Small products of a batch, each of less than a warp or an instruction of tensor cores, whose rows are whole vectors. */
static bool makes_several(const Fusion *fusion, const Product *product, const DeviceSpec *device)
{
    int64_t points = fitting_mul(product->group[GROUP_M].extent, product->group[GROUP_N].extent);
    return product_is_small(fusion, product, device) && points <= 2 * device->warp_size &&
           product_stores_vectors(fusion, &product->group[GROUP_N], shared_vector(fusion));
}

// ---- how factors are copied to shared memory, and results stored ----

/* How a factor is copied to shared memory: through registers, or asynchronously. */
typedef enum Coming { COMES_HELD, COMES_IN_VECTORS, COMES_BY_ELEMENTS } Coming;

/* Its elements are multiplied as they are in memory, with zeros outside. */
static bool is_of_values(const Fusion *fusion, const Expr *factor)
{
    DType type = fusion->ops[0].body->type;
    const Access *access = mma_access(factor);
    return access && access->tensor->dtype == type && dtype_info[type].compute == type &&
           dtype_info[type].bits >= 32;
}

/* In vectors where 16 bytes are contiguous along its rows. */
static Coming coming_of(const Fusion *fusion, const Product *product, int factor)
{
    int vector = product_vector(fusion, product, factor, MAX_TILE);
    if (!is_of_values(fusion, product->factor[factor]))
        return COMES_HELD;
    if (vector == 1)
        return COMES_BY_ELEMENTS;
    bool whole = vector * dtype_info[fusion->ops[0].body->type].bits == 8 * VECTOR_BYTES;
    return whole && !product_along_k(fusion, product, factor) ? COMES_IN_VECTORS : COMES_HELD;
}

/* Columns of C that are not stored in vectors are dealt to adjacent threads: each element of B is copied to a
   place of its own. Vectors along k pass through registers, which is faster than copies of their elements
   (tuning-log 54), but not those of both factors. */
static Coming coming_ahead(const Fusion *fusion, const Product *product, int factor)
{
    Coming own = coming_of(fusion, product, factor);
    bool both_held = own == COMES_HELD && coming_of(fusion, product, 1 - factor) == COMES_HELD;
    bool dealt =
        own == COMES_IN_VECTORS && !product_stores_vectors(fusion, &product->group[GROUP_N], shared_vector(fusion));
    bool by_elements = factor == 1 && (both_held || dealt) && is_of_values(fusion, product->factor[1]);
    return by_elements ? COMES_BY_ELEMENTS : own;
}

/* Threads that share a row of C; fewer store less than a sector at once. */
static int sector_lanes(const DeviceSpec *device, int value_bits)
{
    return device->dram.transaction_bytes * 8 / value_bits;
}

/* Rows of C that are not whole vectors are staged in shared memory where few threads share them: a partial sector costs
   more than a whole one (tuning-log 137). */
static bool has_few_lanes(const RTile *block, const RTile *inner, const DeviceSpec *device, int value_bits)
{
    return block->size[GROUP_N] / inner->size[GROUP_N] < sector_lanes(device, value_bits);
}

/* The stages of both operands; later, in the same place, a row of each thread, where rows are staged. */
static void lay_out_rows(SharedLayout *layout, const KernelKind *kind, const RTile *block, const RTile *inner,
                         const DeviceSpec *device)
{
    int bits = kind->registers.accumulator_bits;
    int64_t staged = kind_staged_bytes(kind, block, inner, device),
            rows = block->size[GROUP_M] / inner->size[GROUP_M];
    int64_t bytes = has_few_lanes(block, inner, device, bits) ? rows * block->size[GROUP_N] * bits / 8 : 0;
    layout_add(layout, "STAGED", bytes > staged ? bytes : staged);
}

// ---- kinds ----

static DataTile operand_tile(const Fusion *fusion, const Product *product, int factor, int value_bits)
{
    bool along_k = product_along_k(fusion, product, factor);
    DataTile tile = product_factor_tile(product, factor, along_k);
    tile.staged = true;
    tile.staged_inner = along_k ? 1 : 2;
    tile.staged_granule = 128 / value_bits;
    tile.staged_bits = value_bits;
    tile.apart = product_lies_apart(fusion, product, factor);
    tile.vector = product_vector(fusion, product, factor, MAX_TILE);
    tile.line_places = product_has_line_places(fusion, product, factor);
    tile.grouped = true;
    /* Neither rows nor channels of one tap are contiguous, as of a filter of planes: each element is in
       a sector of its own. */
    const Access *access = product->skips ? mma_access(product->factor[factor]) : NULL;
    Affine offset = access ? access_offset(access) : affine_constant(0);
    int row = axis_group_innermost(&product->group[factor ? GROUP_N : GROUP_M]);
    tile.run = access && row >= 0 && offset.coef[row] > 1 && offset.coef[product->skips->channel] > 1;
    product_count_search(&tile, fusion, product, factor, true);
    tile.even_terms = along_k ? 0 : product_even_terms(fusion, product, factor);
    return tile;
}

/* Tiles of A and B (bits 0 and 1) that are copied asynchronously, with more than two stages. */
static uint32_t tiles_copied(const Fusion *fusion, const Product *product, int stages)
{
    uint32_t tiles = 0;
    for (int factor = 0; factor < 2 && stages > 2; factor++)
        tiles |= (uint32_t)(coming_ahead(fusion, product, factor) != COMES_HELD) << factor;
    return tiles;
}

/* The next tiles of both operands are loaded into registers while the block multiplies those in shared memory. */
static void schedule_steps(Schedule *schedule, const Fusion *fusion, Loop steps, uint32_t operands)
{
    schedule_loop(schedule, steps);
    schedule_load(schedule, (Move){.tiles = operands, .ahead = 1});
    schedule_store(schedule, (Move){.tiles = operands, .to = PLACE_SHARED});
    schedule_barrier(schedule, SCOPE_BLOCK);
    schedule_load(schedule, (Move){.tiles = operands, .from = PLACE_SHARED});
    schedule_product(schedule, schedule_ops(fusion, true));
    schedule_end(schedule);
}

/* Later steps are copied asynchronously; fragments are loaded one ahead, once more after the last step. */
static void schedule_steps_ahead(Schedule *schedule, const Fusion *fusion, Loop steps, uint32_t operands,
                                 uint32_t copied, int stages)
{
    uint8_t ahead = (uint8_t)(stages - 1);
    schedule_wait(schedule, stages - 2);
    schedule_barrier(schedule, SCOPE_BLOCK);
    schedule_loop(schedule, steps);
    schedule_load(schedule, (Move){.tiles = copied, .to = PLACE_SHARED, .async = true, .ahead = ahead});
    schedule_load(schedule, (Move){.tiles = operands & ~copied, .ahead = ahead});
    schedule_load(schedule, (Move){.tiles = operands, .from = PLACE_SHARED, .ahead = 1});
    schedule_product(schedule, schedule_ops(fusion, true));
    schedule_store(schedule, (Move){.tiles = operands & ~copied, .to = PLACE_SHARED, .ahead = ahead});
    schedule_wait(schedule, stages - 2);
    schedule_barrier(schedule, SCOPE_BLOCK);
    schedule_end(schedule);
}

static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const Product *product,
                             const TileSpace *space, const DeviceSpec *device, int stages)
{
    const TapPhases *phases = product->skips ? &product->skips->phases : NULL;
    Schedule schedule = {.order = phases_order(phases), .stages = stages};
    int bits = dtype_info[fusion->ops[0].body->type].bits;
    uint32_t operands = FACTOR_TILES, copied = tiles_copied(fusion, product, stages);
    enum { STEP = 45, WALK = 105 };   // counted in SASS: a loop of two stages, one that walks over the taps of phases
    Loop steps = {.axis = GROUP_K, .instructions = product->skips ? WALK : copied ? 0 : STEP};   // copies hide them
    if (copied)
        schedule_steps_ahead(&schedule, fusion, steps, operands, copied, stages);
    else
        schedule_steps(&schedule, fusion, steps, operands);
    int columns = (int)shared_vector(fusion);
    bool vectors = product_stores_vectors(fusion, &product->group[GROUP_N], columns);
    schedule_load(&schedule, (Move){.tiles = product_read_beside(space)});
    schedule_map(&schedule, schedule_ops(fusion, false));
    double each = product_end_instructions(fusion, product, vectors ? columns : 1);
    int lanes = vectors || stages > 2 ? 0 : sector_lanes(device, bits);
    schedule_store(&schedule,
                   (Move){.tiles = space_outputs(space), .lanes = (uint8_t)lanes, .instructions = each});
    return schedule_copy(arena, &schedule);
}

/* Threads of so many sums each would be two warps for each SM. */
static bool fills_sms(const Product *product, const DeviceSpec *device, int64_t sums)
{
    int64_t points = fitting_mul(product->group[GROUP_M].extent, product->group[GROUP_N].extent);
    return fitting_mul(points, product->group[GROUP_BATCH].extent) >=
           sums * 2 * device->warp_size * device->sm_count;
}

/* A block computes several products of a batch. Adjacent lanes have adjacent vectors: lanes of 8 columns each would store
   half sectors (tuning-log 80). */
static KernelKind of_several_products(const KernelKind *tiled, const Product *product, int64_t vector)
{
    KernelKind kind = *tiled;
    kind.name = matmul_family.variants[2];
    kind.space->rule[LEVEL_SHARED][GROUP_BATCH] = (AxisRule){2, MAX_PRODUCTS};
    for (int g = GROUP_M; g <= GROUP_N; g++)
        kind.space->rule[LEVEL_SHARED][g].granule = product->group[g].extent;
    kind.space->rule[LEVEL_REGISTER][GROUP_M] = (AxisRule){1, vector};
    kind.space->rule[LEVEL_REGISTER][GROUP_N] = (AxisRule){vector, vector};
    return kind;
}

/* Addresses and tests of elements that may lie outside. Ahead, those of a thread along k belong to as many rows,
   and each row's window has a position that is held: 255 registers were taken, and 16 bytes spilled, where 208
   were expected; elements of a filter by phases belong to half as many (92 to 124 for 64 expected ones). In two
   stages, of 80 registers for 75, 2 x 4 sums under nine taps spilled 32 bytes (tuning-log 257). */
static int guard_registers(const Fusion *fusion, const Product *product, bool ahead)
{
    int registers = 0;
    for (int factor = 0; factor < 2; factor++) {
        bool held = ahead && coming_ahead(fusion, product, factor) != COMES_BY_ELEMENTS;
        bool by_phases = product->skips && product->skips->rows == (factor ? GROUP_N : GROUP_M);
        int most = product_along_k(fusion, product, factor) ? WINDOW_REGISTERS : WINDOW_REGISTERS / 2 * by_phases;
        if (mma_guard(product, factor) && !held)
            registers += ahead ? most : GUARD_REGISTERS;
    }
    return registers;
}

/* What passes through registers shares those of the next k, but for its addresses. */
static int64_t registers_taken_ahead(const KernelKind *kind, const RTile *block, const RTile *inner,
                                     RegisterBudget budget)
{
    int64_t next = kind_registers(kind, inner, 2) - kind_registers(kind, inner, 1);
    budget.enough -= smaller(next, budget.words);
    return product_registers_taken(kind, block, inner, budget);
}

static KernelKind in_three_stages(Arena *arena, const KernelKind *tiled, const Fusion *fusion,
                                  const Product *product, const DeviceSpec *device)
{
    KernelKind kind = *tiled;
    uint32_t copied = tiles_copied(fusion, product, 3);
    int wide = copied & 2 ? GROUP_N : GROUP_M, narrow = copied & 2 ? GROUP_M : GROUP_N;
    int64_t vector = shared_vector(fusion);
    kind.name = matmul_family.variants[1];
    kind.space = space_copy(arena, tiled->space);
    for (int factor = 0; factor < 2; factor++)
        if (coming_ahead(fusion, product, factor) == COMES_BY_ELEMENTS) {
            DataTile *tile = &kind.space->tiles[factor];
            tile->vector = 1;
            product_count_search(tile, fusion, product, factor, false);
            tile->copied_evenly = !product_along_k(fusion, product, factor);
        }
    kind.schedule = schedule_of(arena, fusion, product, kind.space, device, 3);
    kind.lay_out = lay_out_staged;
    /* There are tiles of all sizes only where addresses are of single axes (tuning-log 155, 264). */
    bool single = product->group[GROUP_M].count * product->group[GROUP_N].count * product->group[GROUP_K].count == 1;
    int64_t least = AHEAD_NARROW / (product->group[narrow].extent <= AHEAD_NARROW / 4 ? 4 : 2), most = AHEAD_NARROW;
    int64_t half = AHEAD_NARROW / (product->group[wide].extent <= AHEAD_NARROW / 2 ? 2 : 1);
    if (single) {
        least = half = AHEAD_REGISTERS, most = copied == 3 ? AHEAD_WIDE : AHEAD_MOST_NARROW;
        kind.space->even = 1u << GROUP_M | 1u << GROUP_N;   // 136 rows are three tiles of 48, not of 64
    }
    kind.space->rule[LEVEL_SHARED][wide] = (AxisRule){half, AHEAD_WIDE};
    kind.space->rule[LEVEL_SHARED][narrow] = (AxisRule){least, most};
    kind.space->rule[LEVEL_REGISTER][wide] = (AxisRule){vector, AHEAD_REGISTERS};
    kind.space->rule[LEVEL_REGISTER][narrow] = (AxisRule){vector, AHEAD_REGISTERS};
    kind.threads.least = AHEAD_LEAST_THREADS;
    kind.threads.most = single ? AHEAD_MOST_THREADS : AHEAD_THREADS;
    kind.registers.others = 32 + guard_registers(fusion, product, true);
    kind.registers.input_buffers = 2;
    kind.registers.taken = registers_taken_ahead;
    kind.registers.held_words = copied == 3 ? 0 : 1.0 / 3;   // of a narrow tile
    return kind;
}

static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    const Product *product = ((const Products *)view)->tiled;
    if (!product)
        return 0;
    bool several = makes_several(fusion, product, device);   // one alone has less than a warp
    if (product->atom && product_element_bits(product->factor[0]) == 16 && !several)
        return 0;   // tensor cores are always faster then (tuning-log 44)
    KernelKind *kind = &variants[0];
    *kind = (KernelKind){.space = product_space(arena, fusion, product), .name = "tiled", .lay_out = lay_out_staged};
    int bits = dtype_info[fusion->ops[0].body->type].bits;
    for (int factor = 0; factor < 2; factor++)
        kind->space->tiles[kind->space->tile_count++] = operand_tile(fusion, product, factor, bits);
    product_add_results(kind->space, fusion, product, device);
    kind->schedule = schedule_of(arena, fusion, product, kind->space, device, 2);

    AxisRule none = {1, 1};
    kind->space->rule[LEVEL_REGISTER][GROUP_BATCH] = kind->space->rule[LEVEL_SHARED][GROUP_BATCH] = none;
    kind->space->rule[LEVEL_REGISTER][GROUP_K] = none;
    kind->space->rule[LEVEL_SHARED][GROUP_K] = (AxisRule){MIN_K_STEP, MAX_K_STEP};
    int64_t vector = shared_vector(fusion);
    bool fills = fills_sms(product, device, vector * vector);
    for (int g = GROUP_M; g <= GROUP_N; g++) {
        bool whole = fills && product->group[g].extent >= MAX_REGISTER_TILE * vector;   // little padding
        kind->space->rule[LEVEL_REGISTER][g] = (AxisRule){whole ? vector : 1, MAX_REGISTER_TILE};
        kind->space->rule[LEVEL_SHARED][g] = (AxisRule){1, MAX_TILE};
    }
    kind->registers.accumulator_bits = bits;
    kind->registers.others = 28 + guard_registers(fusion, product, false);   // tuning-log 127
    kind->registers.taken = product_registers_taken;
    kind->registers.input_buffers = 1;
    kind->registers.held_words = 1;
    kind->cost = &calibration.matmul;
    if (!product_stores_vectors(fusion, &product->group[GROUP_N], vector))
        kind->lay_out = lay_out_rows;
    if (product->skips)
        skips_set_tiles(kind->space, product->skips, SKIPPED_STEP);
    if (several) {
        *kind = of_several_products(kind, product, vector);
        return 1;
    }
    if (!device->has.async_copy || !tiles_copied(fusion, product, 3))
        return 1;
    variants[1] = in_three_stages(arena, kind, fusion, product, device);
    if (product->skips)
        skips_set_tiles(variants[1].space, product->skips, SKIPPED_STEP);
    return 2;
}

// ---- the parameter block ----

/* Elements of the factor that one thread copies at once. */
static int operand_vector(const KernelPlan *plan, const Product *product, int factor)
{
    bool along_k = product_along_k(plan->fusion, product, factor);
    int fast = along_k ? GROUP_K : factor ? GROUP_N : GROUP_M;
    bool copied = tiles_copied(plan->fusion, product, plan->kind->schedule->stages) >> factor & 1;
    if (copied && coming_ahead(plan->fusion, product, factor) == COMES_BY_ELEMENTS)
        return 1;
    return product_vector(plan->fusion, product, factor, plan->program->tile[LEVEL_SHARED].size[fast]);
}

static void emit_operand(StrBuf *out, const KernelPlan *plan, const Scope *scope, const Product *product,
                         int factor)
{
    bool copied = tiles_copied(plan->fusion, product, plan->kind->schedule->stages) >> factor & 1;
    int vector = operand_vector(plan, product, factor);
    ProductSteps steps =
        product_steps(plan->fusion, product, plan->program->tile[LEVEL_SHARED].size[GROUP_K]);
    product_emit_operand(out, scope, product, factor, vector, copied ? OPERAND_COPIED
                         : is_of_values(plan->fusion, product->factor[factor]) ? OPERAND_HELD : OPERAND_LOADED, &steps);
}

static bool collects_rows(const KernelPlan *plan)
{
    const RTile *tile = plan->program->tile;
    return plan->kind->lay_out == lay_out_rows &&
           has_few_lanes(&tile[LEVEL_SHARED], &tile[LEVEL_REGISTER], plan->device,
                         plan->kind->registers.accumulator_bits);
}

/* Columns that are not stored in vectors. Columns that a thread copies along k have a stride, and so have their places in
   shared memory if it is a multiple of the threads of a row; otherwise each has an address of its own (tuning-log 137), which
   takes registers of a loop, but not of a single step: 3808 x 7253 x 7 took 119 us for 56 (tuning-log 253). */
static bool deals_columns(const KernelPlan *plan, const Product *product, int gn, int qn)
{
    if (gn == qn || collects_rows(plan))
        return false;
    if (!product_along_k(plan->fusion, product, 1))
        return true;
    const int64_t *shared = plan->program->tile[LEVEL_SHARED].size;
    if (product->group[GROUP_K].extent <= shared[GROUP_K])
        return true;
    int64_t across = shared[GROUP_N] / plan->program->tile[LEVEL_REGISTER].size[GROUP_N];
    int64_t line = shared[GROUP_K] / operand_vector(plan, product, 1);
    return plan->program->threads % line == 0 && plan->program->threads / line % across == 0;
}

/* Terms of a step that are written out, in two stages. Compilers read operands of later ones ahead, and where these do
   not fit beside many sums and the blocks of the launch bounds, spill the next step's tiles, which waits for their loads. Two
   terms of so many sums are a long loop all the same (tuning-log 236). */
static int64_t terms_written_out(const KernelPlan *plan)
{
    enum { MANY_SUMS = 64, USUAL_TERMS = 8, FEW_TERMS = 2 };
    const RProgram *program = plan->program;
    const int64_t *each = program->tile[LEVEL_REGISTER].size, terms = program->tile[LEVEL_SHARED].size[GROUP_K];
    Limiter limiter;
    int ahead = (int)(each[GROUP_M] + each[GROUP_N]),
        blocks = perf_blocks_per_sm(plan->device, program->threads, program->registers + ahead, program->shared_bytes, &limiter);
    if (each[GROUP_M] * each[GROUP_N] >= MANY_SUMS && blocks < rprogram_grid_blocks(plan->kind, program, plan->device))
        return FEW_TERMS;
    return terms > USUAL_TERMS ? USUAL_TERMS : ceil_div(terms, 2);   // not the whole step: slower to compile and to run
}

static void emit_constants(StrBuf *out, const KernelPlan *plan, const Product *product, int gm, int gn, int qn)
{
    const RProgram *program = plan->program;
    const RTile *registers = &program->tile[LEVEL_REGISTER];
    strbuf_printf(out, "using Value = %s;\n", value_type(plan->fusion->ops[0].body->type));
    product_emit_sizes(out, product, program->tile[LEVEL_SHARED].size);
    CONSTEXPR(out, "int TM, TN", "rTile, registers", registers->size[GROUP_M], registers->size[GROUP_N]);
    product_emit_batch(out, product, program->tile[LEVEL_SHARED].size);
    CONSTEXPR(out, "int PAD_A, PAD_B", "bank padding, elements", program->padding[0], program->padding[1]);
    CONSTEXPR(out, "int GM, GN", "contiguous rows, columns of a thread", gm, gn);
    CONSTEXPR(out, "int QN", "columns of C in one aligned access", qn);
    CONSTEXPR(out, "Index PANEL", "rasterisation: tiles along m in a panel", program->panel);
    CONSTEXPR(out, "bool DEALT", "adjacent threads have adjacent columns",
              deals_columns(plan, product, gn, qn));
    CONSTEXPR(out, "bool COLLECTED", "the epilogue stages rows in shared memory", collects_rows(plan));
    uint32_t copied = tiles_copied(plan->fusion, product, plan->kind->schedule->stages);
    CONSTEXPR(out, "int STAGES", "of the pipeline", plan->kind->schedule->stages);
    CONSTEXPR(out, "int WRITTEN_OUT", "terms of a step", copied ? program->tile[LEVEL_SHARED].size[GROUP_K] : terms_written_out(plan));
    CONSTEXPR(out, "bool COPIED_A, COPIED_B", "copied asynchronously", copied & 1, copied & 2);
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    const Product *product = ((const Products *)plan->view)->tiled;
    Scope scope = scope_of(plan);
    const RTile *inner = &plan->program->tile[LEVEL_REGISTER];
    int64_t vector = shared_vector(plan->fusion);   // adjacent rows or columns of a thread are read as one
    int gm = (int)greatest_common_divisor(vector, inner->size[GROUP_M]);
    int gn = (int)greatest_common_divisor(vector, inner->size[GROUP_N]);
    bool vectors = !collects_rows(plan) && product_stores_vectors(plan->fusion, &product->group[GROUP_N], gn);
    int qn = vectors ? gn : 1;
    emit_constants(out, plan, product, gm, gn, qn);
    skips_emit_walk(out, product->skips);
    for (int factor = 0; factor < 2; factor++)
        emit_operand(out, plan, &scope, product, factor);
    Beside beside = beside_in_vectors(plan->fusion, product, qn);
    beside.ordered = true;
    beside_emit(out, &scope, product, &beside, qn, false);
}

const Family matmul_family = {
    .name = "matmul",
    .template_path = "templates/matmul.cu",
    .shares_body = true,
    .variants = (const char *const[]){"tiled", "three stages", "several products", NULL},
    .tiles_both = true,
    .adds_in_place = true,
    .view = product_view,
    .rewrites = (const Rewrite *const[]){&turn_filter_of_lanes, &sum_taps_behind, NULL},
    .kinds = kinds,
    .emit = emit,
};
