// rowwise: reductions along the inner axes, and pointwise steps before, between and after them, in one
// kernel: softmax, normalisations, their gradients. A group of threads holds a row in registers, so memory is read once;
// a row that is too long for that is held in shared memory, or read again by every pass.
#include "base/checked.h"
#include "codegen/family/rows/rowwise_parts.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum {
    LEAST_GROUP = 4,    // threads: 64 bytes; shorter parts of many rows are slow to read
    REGISTER_VARIANTS = 4,
    CLUSTER_VARIANTS = 2,
    AHEAD_TURNS = 8,             // rows of a block: only the first one is waited for
    LEAST_WALKING_GROUP = 256,   // threads of a block that iterates over a row which it cannot hold
    LEAST_WALK = 6,   // vectors of a thread, where a cluster has a row: fewer are not worth its barriers
    MOST_WALK = 16,   // with more vectors, more threads are faster
    SPREAD_VARIANTS = 4,
    LEAST_HALVES = 64,    // elements that a group reads at once
    MOST_HALVES = 1024,   // elements of a short row
    TOGETHER = 2          // rows that use the weights together
};

/* Space axes. */
enum { ROW, COLUMN };

// ---- kinds ----

/* Instructions of one thread for an operation on one element; the others take one. */
enum {
    FUNCTION_INSTRUCTIONS = 8,   // exp; others are not cheaper
    DIVISION_INSTRUCTIONS = 9,
    ROW_DIVISION_INSTRUCTIONS = 4,   // all elements of a row by one value
    SOFTMAX_INSTRUCTIONS = 2,        // softmax_exp_f16
    SOFTMAX_DIVISION_INSTRUCTIONS = 1,
    GATHER_INSTRUCTIONS = 3   // a position, clamped to the row, and the conversion
};

typedef struct WorkSearch {
    const Fusion *fusion;
    const Reads *reads;
    FusionWork work;
    bool softmax;   // see rowwise_softmax_type
} WorkSearch;

/* What is the same for all columns is not counted: compilers compute it once. */
static bool is_of_row(const Fusion *fusion, const Expr *expr)
{
    bool found = expr->kind == EXPR_APPLY;
    for (int i = 0; found && i < op_info[expr->apply.op].operands; i++) {
        const Expr *operand = expr->apply.operands[i];
        found = operand->kind == EXPR_CONST || is_of_row(fusion, operand) ||
                (operand->kind == EXPR_VALUE && !fusion_is_of_elements(fusion, &fusion->ops[operand->value]));
    }
    return found;
}

static void work_visit(Expr *expr, void *context)
{
    WorkSearch *search = context;
    FusionWork *work = &search->work;
    if (is_of_row(search->fusion, expr))
        return;
    int function = search->softmax ? SOFTMAX_INSTRUCTIONS : FUNCTION_INSTRUCTIONS;
    bool is_function = expr->kind == EXPR_APPLY && op_info[expr->apply.op].class == OP_CLASS_REAL;
    bool divides = expr->kind == EXPR_APPLY && expr->apply.op == OP_DIV;
    work->special += is_function || divides;
    if (expr->kind == EXPR_APPLY || expr->kind == EXPR_ACCESS)
        work->flops += is_function ? function : divides ? DIVISION_INSTRUCTIONS : 1;
    int index = expr->kind == EXPR_ACCESS && search->reads->walk.unaligned ? reads_index(search->reads, &expr->access) : -1;
    if (index >= 0 && search->reads->reads[index].pattern == PATTERN_GATHER)
        work->flops += GATHER_INSTRUCTIONS;
}

/* Work of one point of the space, in instructions. Later passes recompute elements that are not held in registers. */
static FusionWork work_of(const PassPlan *plan, RowHome home, const Reads *reads)
{
    const Fusion *fusion = plan->fusion;
    FusionWork total = {0};
    bool softmax = rowwise_softmax_type(fusion) != DTYPE_F32;
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        WorkSearch search = {.fusion = fusion,
                             .reads = reads,
                             .work = {.flops = 1},   // the reduction, or storing
                             .softmax = softmax};
        if (op->reduce == REDUCE_NONE && !fusion_is_of_elements(fusion, &fusion->ops[i]))
            continue;
        expr_visit(op->body, work_visit, &search);
        FusionWork work = search.work;
        if (rowwise_divides(fusion, i)) {
            bool is_weight = softmax && rowwise_is_softmax(fusion, i);
            work.flops += is_weight ? SOFTMAX_DIVISION_INSTRUCTIONS : ROW_DIVISION_INSTRUCTIONS;
            work.flops -= DIVISION_INSTRUCTIONS;
            work.special -= 1;
        }
        bool again = !rowwise_keeps(home) && op->reduce == REDUCE_NONE && !op->stored;
        double times = again ? plan->count - plan->of[i] : 1;
        total.flops += work.flops * times;
        total.special += work.special * times;
    }
    return total;
}

/* Threads beyond the end of a row have nothing to load. */
static void clip_columns(TileSpace *space, int64_t columns)
{
    for (int i = 0; i < space->tile_count; i++)
        for (int d = 0; d < space->tiles[i].rank; d++)
            if (space->tiles[i].dims[d].index.coef[COLUMN])
                space->tiles[i].dims[d].size = columns;
}

/* The tiles of rows, first one for each read, unless there are too many reads. */
static uint32_t row_tiles(const TileSpace *space)
{
    return space_inputs(space) & space_along(space, COLUMN) & space_along(space, ROW);
}

static void begin(Arena *arena, KernelKind *kind, const RowView *view, const Fusion *fusion,
                  const DeviceSpec *device, RowVariant variant, int64_t columns)
{
    kind_begin(arena, kind, fusion);
    kind_choose(arena, kind, &variant, sizeof variant);
    space_add_axis(kind->space, "row", spatial_points(fusion), false);
    space_add_axis(kind->space, "column", columns, true);
    space_add_flat_tiles(kind->space, fusion, fusion->axis_count - 1, device);
    clip_columns(kind->space, reduction_points(fusion));
    space_fix_axis(kind->space, ROW, 1, 1);
    RowShape shape = rowwise_shape_of(view, variant);
    const Reads *reads = rowwise_reads_of(view, shape);
    FusionWork work = work_of(view->passes[variant.home], variant.home, reads);
    int runs = fusion->axis_count - fusion->spatial_count - 1;   // divisions for a load and a store
    kind->space->instructions = work.flops + 2.0 * POSITION_INSTRUCTIONS * runs / shape.vector;
    kind->space->special = work.special;
    kind->cost = &calibration.in_turn;
    kind->space->least_reducers = 1;
    kind->registers.accumulator_bits = 32;
    kind->registers.others = 16;
    kind->registers.input_buffers = 1;
    rowwise_state(kind->schedule, &(RowKernel){
                                       .fusion = fusion,
                                       .space = kind->space,
                                       .reads = reads,
                                       .passes = view->passes[variant.home],
                                       .variant = &variant,
                                       .shape = shape,
                                       .vectors = rowwise_vectors(fusion, shape, variant.group),
                                       .copied = row_tiles(kind->space) &
                                                 rowwise_copied(reads, view->passes[variant.home], variant.home),
                                       .warp = device->warp_size,
                                   });
    schedule_set_shared(kind);
}

/* Reads whose elements each thread holds, widened, until the results are computed. */
static int count_kept(const Reads *reads)
{
    int count = 0;
    for (int i = 0; i < reads->count; i++)
        count += (access_axes(reads->reads[i].access) & fusion_columns(reads->walk.fusion)) != 0 &&
                 !rowwise_is_weight(reads, i);
    return count;
}

/* Whether threads read vectors of half the width, which lie beside each other in weights of twice the width:
   where these are most of what a row reads, and it is short, or so long that they find little room in L1
   (tuning-log 22). */
static bool reads_halves(const RowView *view, const Fusion *fusion, const DeviceSpec *device, int64_t group)
{
    int64_t columns = reduction_points(fusion), bytes = 0;
    bool is_wide = false;
    RowShape shape = view->shape;
    const Reads *reads = rowwise_reads_of(view, shape);
    for (int i = 0; i < reads->count; i++) {
        int bits = dtype_info[reads->reads[i].access->tensor->dtype].bits;
        is_wide |= rowwise_is_weight(reads, i) && bits * shape.vector > 8 * VECTOR_BYTES;
        bytes += rowwise_is_weight(reads, i) ? columns * bits / 8 : 0;
    }
    bool is_long = 2 * bytes > device->shared_per_sm;
    return is_wide && !shape.unaligned && view->weights_most &&
           group * shape.vector >= 2 * LEAST_HALVES && (columns <= MOST_HALVES || is_long);
}

/* Rows of a block, at most: one, of a group of several warps. A warp that reads its weights late has a block of its own.
   Others have the smallest blocks that fill an SM; for the shortest rows, which are many, blocks have a warp for each
   scheduler (tuning-log 23). */
static int64_t most_rows(const DeviceSpec *device, int group, bool reads_late)
{
    int most_threads = reads_late             ? device->warp_size
                       : group <= LEAST_GROUP ? device->schedulers_per_sm * device->warp_size
                                              : device->max_threads_per_sm / device->max_blocks_per_sm;
    return group <= device->warp_size && group < most_threads ? most_threads / group : 1;
}

/* Fewer than the budget, except for kernels whose threads hold most (tuning-log 133). */
static int64_t registers_taken_by_rows(const KernelKind *kind, const RTile *block, const RTile *inner,
                                       RegisterBudget budget)
{
    (void)kind, (void)block, (void)inner;
    return budget.enough - 8;
}

/* A group stores its vectors side by side, in a run that begins at a vector of the row. Of the sectors at both ends another of the
   group's stores has the rest: each takes two accesses (tuning-log 176). Four vectors of 16 bytes that begin anywhere are
   (2 * 1 + 1.5) / 2 = 1.75. */
static double stored_parts(const RowShape *shape, int group, int bits, int64_t columns, const DeviceSpec *device)
{
    int64_t begins = (shape->unaligned ? shape->vector : columns) * bits / 8, transaction = device->dram.transaction_bytes;
    double sector = (double)transaction, run = (double)group * shape->vector * bits / 8,
           granule = (double)greatest_common_divisor(begins, transaction);
    double touched = run > granule ? (run - granule) / sector + 1 : 1,
           whole = run + granule > sector ? (run + granule - sector) / sector : 0;
    return (2 * (touched - whole) + whole) * sector / run;
}

/* Otherwise a thread's vectors lie at no single stride: each keeps its offset until it is stored. */
static bool is_one_run(const Fusion *fusion) { return fusion->axis_count - fusion->spatial_count == 1; }

static void register_kind(Arena *arena, KernelKind *kind, const RowView *view, const Fusion *fusion,
                           const DeviceSpec *device, RowVariant variant)
{
    RowShape shape = view->shape;
    variant.half = variant.home == ROW_IN_REGISTERS && variant.cluster == 1 &&
                   reads_halves(view, fusion, device, variant.group);
    shape.vector = variant.half ? shape.vector / 2 : shape.vector;
    int group = variant.group, cluster = variant.cluster;
    int64_t vectors = rowwise_vectors(fusion, shape, group), each = shape.vector * vectors;
    begin(arena, kind, view, fusion, device, variant, each * group);
    kind->name = cluster > 1 ? "cluster" : group <= device->warp_size ? "warp" : "block";
    const Reads *reads = rowwise_reads_of(view, shape);
    bool first = rowwise_reads_weights_first(reads, variant, each / shape.vector);
    int64_t kept = each * (count_kept(reads) + (first ? __builtin_popcount(rowwise_weights(reads)) : 0));
    kind->space->rule[LEVEL_SHARED][ROW].limit = most_rows(device, group, schedule_reads_late(kind->schedule));
    kind->registers.accumulator_bits = 0;   // results replace what they are computed from
    FOR_BITS (i, space_inputs(kind->space))
        kind->space->tiles[i].register_bits = 32;
    kind->registers.most_inputs = (int)(kept ? kept : 1);
    kind->registers.others = 22 + (is_one_run(fusion) ? 0 : (int)vectors);   // where each is stored
    kind->registers.taken = registers_taken_by_rows;
    kind->cost = &calibration.in_turn;
    for (int i = 0; i < kind->space->tile_count && group < device->warp_size; i++) {
        DataTile *tile = &kind->space->tiles[i];
        if (tile->output && space_along(kind->space, COLUMN) >> i & 1)
            tile->parts = stored_parts(&shape, group, tile->element_bits, reduction_points(fusion), device);
    }
    space_fix_axis(kind->space, COLUMN, each, each * group / cluster);
}

/* A block iterates over its row once a pass, one vector of each thread at a time. */
static void walking_kind(Arena *arena, KernelKind *kind, const RowView *view, const Fusion *fusion,
                          const DeviceSpec *device, RowVariant variant)
{
    RowShape shape = view->shape;
    int64_t vectors = rowwise_vectors(fusion, shape, variant.group), at_once = variant.at_once ? variant.at_once : 1;
    int64_t each = shape.vector * at_once, width = each * variant.group / variant.cluster;
    int passes = view->passes[variant.home]->count;
    begin(arena, kind, view, fusion, device, variant, shape.vector * variant.group * vectors);
    int together = variant.together > 1 ? variant.together : 1;
    kind->name = variant.home == ROW_IN_MEMORY ? "memory"
                          : together > 1                ? "pairs-cluster"
                          : variant.cluster > 1         ? "shared-cluster"
                                                        : "shared";
    space_fix_axis(kind->space, ROW, together, together);
    space_fix_axis(kind->space, COLUMN, each, width);
    kind->registers.accumulator_bits = 32 / (int)at_once / together;   // one vector's at a time
    const Reads *reads = rowwise_reads_of(view, shape);
    FOR_BITS (i, row_tiles(kind->space)) {
        DataTile *tile = &kind->space->tiles[i];
        if (variant.home == ROW_IN_MEMORY) {
            tile->register_bits = 32;
            kind->registers.others = 22;
        }
        if (variant.home == ROW_IN_SHARED)
            tile->staged = rowwise_copied(reads, view->passes[variant.home], variant.home) >> i & 1;
        for (int pass = 1; pass < passes && !tile->staged && kind->space->tile_count < MAX_DATA_TILES; pass++) {
            DataTile *more = &kind->space->tiles[kind->space->tile_count++];
            *more = *tile;
            more->again = true;
        }
    }
}

/* Threads for `total` vectors, `each` a thread: a power of two within a warp, otherwise whole warps. */
static int64_t group_of(int64_t total, int64_t each, const DeviceSpec *device)
{
    int64_t needed = ceil_div(total, each), group = 1;
    while (group < needed && group < device->warp_size)
        group *= 2;
    return needed > group ? round_up(needed, device->warp_size) : group;
}

/* All elements along the rows are of 32 bits or more. */
static bool reads_words(const Reads *reads)
{
    bool narrow = false;
    for (int i = 0; i < reads->count; i++)
        narrow |= !rowwise_is_weight(reads, i) && dtype_info[reads->reads[i].access->tensor->dtype].bits < 32;
    return !narrow;
}

/* Vectors of a thread, at most: as few as let it read its weights first, where a warp still holds a row then.
   Threads with fewer are faster, too, where weights of rows that begin anywhere are assembled from two
   aligned vectors (tuning-log 24). */
static int64_t most_vectors(const RowView *view, const Fusion *fusion, const DeviceSpec *device)
{
    RowShape shape = view->shape;
    const Reads *reads = rowwise_reads_of(view, shape);
    int weights = __builtin_popcount(rowwise_weights(reads));
    int64_t first = weights ? calibration.weights_first_elements / (shape.vector * (1 + weights)) : 0;
    bool fits = first > 0 && group_of(rowwise_vectors(fusion, shape, 1), first, device) <= device->warp_size;
    int64_t most = calibration.thread_elements / shape.vector + shape.unaligned;
    bool is_long = group_of(rowwise_vectors(fusion, shape, 1), most, device) >= device->warp_size;
    bool gathers = shape.unaligned && weights > 0 && is_long && reads_words(reads);
    return fits ? first : gathers ? most * 3 / 4 : most;
}

/* Threads that hold the most vectors, three quarters of them, a half, … */
static int add_register_kinds(Arena *arena, const RowView *view, const Fusion *fusion,
                     const DeviceSpec *device, KernelKind *variants)
{
    int64_t total = rowwise_vectors(fusion, view->shape, 1), most = most_vectors(view, fusion, device);
    const int64_t each[] = {most, most * 3 / 4, most / 2, most / 4, most / 8};
    int64_t last = 0;
    int count = 0;
    for (size_t i = 0; i < sizeof each / sizeof *each && count < REGISTER_VARIANTS; i++) {
        if (each[i] == 0)
            continue;
        int64_t group = group_of(total, each[i], device);
        bool is_short = group < total && group < LEAST_GROUP;
        if (group == last || is_short || group > device->max_threads_per_block)
            continue;
        last = group;
        register_kind(arena, &variants[count++], view, fusion, device,
                       (RowVariant){.home = ROW_IN_REGISTERS, .group = (int)group, .cluster = 1});
    }
    return count;
}

/* A row in the registers of several blocks, small enough that an SM has more than one. */
static int add_cluster_kinds(Arena *arena, const RowView *view, const Fusion *fusion,
                     const DeviceSpec *device, KernelKind *variants)
{
    int64_t needed =
        ceil_div(rowwise_vectors(fusion, view->shape, 1), calibration.thread_elements / view->shape.vector);
    int count = 0;
    for (int cluster = 2; cluster <= device_most_cluster_blocks(device) && count < CLUSTER_VARIANTS; cluster *= 2) {
        int64_t threads = round_up(ceil_div(needed, cluster), device->warp_size);
        if (threads >= LEAST_WALKING_GROUP / 2 && threads <= device->max_threads_per_block / 2)
            register_kind(
                arena, &variants[count++], view, fusion, device,
                (RowVariant){.home = ROW_IN_REGISTERS, .group = (int)threads * cluster, .cluster = cluster});
    }
    return count;
}

/* Sets the share of a row that a block holds in shared memory, and which inputs are copied. */
static void stage_copies(const RowView *view, KernelKind *kind)
{
    const Reads *reads = rowwise_reads_of(view, view->shape);
    uint32_t staged = row_tiles(kind->space) & rowwise_copied(reads, view->passes[ROW_AHEAD], ROW_AHEAD);
    for (int i = 0; i < kind->space->tile_count && i < reads->count; i++)
        kind->space->tiles[i].staged = staged >> i & 1;
}

/* Guarded reads are not made vector by vector, so that the tiles would not be those of the reads. */
static bool has_copies(const RowView *view, const Fusion *fusion, RowHome home)
{
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    for (int i = 0; i < count; i++)
        if (found[i].guarded || !tiles_hold(fusion, count))
            return false;
    return rowwise_copied(rowwise_reads_of(view, view->shape), view->passes[home], home) != 0;
}

/* Registers hold elements of 16 bits widened, and so too few bytes of rows that leave room for one or two
   blocks: the next row comes meanwhile. Rows of 32-bit elements gain nothing, nor do clusters (tuning-log
   25). */
static int add_ahead_kind(Arena *arena, const RowView *view, const Fusion *fusion,
                     const DeviceSpec *device, KernelKind *variants)
{
    int64_t each = calibration.thread_elements / view->shape.vector;
    int64_t threads = round_up(ceil_div(rowwise_vectors(fusion, view->shape, 1), each), device->warp_size);
    if (threads < LEAST_WALKING_GROUP || threads > device->max_threads_per_block || !device->has.async_copy ||
        !has_copies(view, fusion, ROW_AHEAD) || view->shape.vector * 16 < 8 * VECTOR_BYTES)
        return 0;
    register_kind(
        arena, &variants[0], view, fusion, device,
        (RowVariant){.home = ROW_AHEAD, .group = (int)threads, .cluster = 1, .turns = AHEAD_TURNS});
    variants[0].name = "ahead";
    stage_copies(view, &variants[0]);
    return 1;
}

/* Vectors of a thread that keep as many bytes under way as memory brings an SM in a latency: 34 bytes a ns and 400 ns are 13.7 KB,
   four vectors of 256 threads. A block has them by itself: more registers would cost large blocks their second one. */
static int64_t vectors_under_way(const DeviceSpec *device, int group)
{
    double bytes = device->dram.bandwidth_gb_s / device->sm_count * device->dram_latency_ns;
    return ceil_div((int64_t)bytes, (int64_t)group * VECTOR_BYTES);
}

/* A row that no registers hold: in shared memory, spread over few blocks or many small ones, or read
   again. */
static int add_walking_kinds(Arena *arena, const RowView *view, const Fusion *fusion,
                     const DeviceSpec *device, KernelKind *variants)
{
    int count = 0, largest = device_most_cluster_blocks(device), most = device->max_threads_per_block;
    bool copies = has_copies(view, fusion, ROW_IN_SHARED);
    bool pairs = view->weights_most &&
                 spatial_points(fusion) % (TOGETHER * rowwise_rows_apart(fusion, view->shape)) == 0;
    for (int cluster = 1, spread = 0; copies && cluster <= largest; cluster *= 2)
        for (int threads = LEAST_WALKING_GROUP; threads <= most; threads *= 2) {
            int64_t vectors = rowwise_vectors(fusion, view->shape, threads * cluster);
            bool is_last = 2 * threads > most && cluster == 1;
            bool is_good = vectors >= (cluster == 1 ? 2 : LEAST_WALK) && (vectors <= MOST_WALK || is_last);
            RowVariant variant = {.home = ROW_IN_SHARED, .group = threads * cluster, .cluster = cluster};
            if (is_good && spread < SPREAD_VARIANTS) {
                walking_kind(arena, &variants[count++], view, fusion, device, variant);
                spread += cluster > 1;
            }
            variant.together = TOGETHER;
            bool is_pair = pairs && cluster > 1 && vectors >= LEAST_WALK && vectors <= MOST_WALK / TOGETHER;
            if (is_pair)
                walking_kind(arena, &variants[count++], view, fusion, device, variant);
        }
    for (int group = LEAST_WALKING_GROUP; group <= most; group *= 4) {
        int64_t vectors = rowwise_vectors(fusion, view->shape, group);
        if (vectors > 1)
            walking_kind(arena, &variants[count++], view, fusion, device,
                          (RowVariant){.home = ROW_IN_MEMORY, .group = group, .cluster = 1,
                                       .at_once = (int)smaller(vectors, vectors_under_way(device, group))});
    }
    return count;
}

static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    int count = add_register_kinds(arena, view, fusion, device, variants);
    count += add_cluster_kinds(arena, view, fusion, device, variants + count);
    count += add_ahead_kind(arena, view, fusion, device, variants + count);
    return count + add_walking_kinds(arena, view, fusion, device, variants + count);
}

const Family rowwise_family = {
    .name = "rowwise",
    .template_path = "templates/rowwise.cu",
    .variants = (const char *const[]){"warp", "block", "cluster", "memory", "shared", "shared-cluster",
                                      "pairs-cluster", "ahead", NULL},
    .whole_warps = true,
    .view = rowwise_view,
    .kinds = kinds,
    .emit = rowwise_emit,
};
