#include "model/perf_counts.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

/* Warps that registers allow. Each scheduler has its own: with 200 a thread 65536 are enough for 10 warps, but each of
   their four parts for two. */
static int64_t register_warps(const DeviceSpec *device, int64_t thread_registers)
{
    int64_t part = device->registers_per_sm / device->schedulers_per_sm;
    return part / (thread_registers * device->warp_size) * device->schedulers_per_sm;
}

void perf_block_limits(const DeviceSpec *device, int threads, int registers, int64_t shared_bytes,
                       int64_t limits[LIMIT_GRID])
{
    int64_t lanes = round_up(threads, device->warp_size);
    int64_t thread_registers = round_up(registers > 0 ? registers : 1, device->register_granule);
    int64_t block_shared = shared_bytes + device->shared_reserved_per_block;
    limits[LIMIT_BLOCKS] = device->max_blocks_per_sm;
    limits[LIMIT_THREADS] = device->max_threads_per_sm / lanes;
    limits[LIMIT_REGISTERS] = register_warps(device, thread_registers) / (lanes / device->warp_size);
    limits[LIMIT_SHARED] = block_shared > 0 ? device->shared_per_sm / block_shared : INT64_MAX;
}

int perf_blocks_per_sm(const DeviceSpec *device, int threads, int registers, int64_t shared_bytes,
                       Limiter *limiter)
{
    static const Limiter order[] = {LIMIT_BLOCKS, LIMIT_THREADS, LIMIT_REGISTERS, LIMIT_SHARED};   // of equal ones the first
    int64_t limits[LIMIT_GRID];
    perf_block_limits(device, threads, registers, shared_bytes, limits);
    *limiter = order[0];
    for (int i = 1; i < LIMIT_GRID; i++)
        if (limits[order[i]] < limits[*limiter])
            *limiter = order[i];
    return (int)limits[*limiter];
}

const KindCost *perf_cost(const KernelKind *kind)
{
    static const KindCost usual = {.pace = PACE_FREE};
    return kind->cost ? kind->cost : &usual;
}

/* SMs that a launch's blocks can use. A large cluster lies in one part of the device, whose SMs are no multiple of its
   blocks. Row kernels (in turn, in step) were calibrated in their clusters, so this is not for them. */
static double usable_sms(const KernelKind *kind, int cluster, const DeviceSpec *device)
{
    Pace pace = perf_cost(kind)->pace;
    return device_sms_of_clusters(device, pace == PACE_FREE || pace == PACE_BY_STEPS ? cluster : 1);
}

/* Tiles of phases in order of launch: `run` of the same rows or columns, then those of the next; one after all others again. Phases
   that are rows come one after the other, or each with its neighbours (panel_rows()). */
typedef struct PhasedTiles {
    const TapPhases *phases;
    int64_t size, across, run;
    bool backwards;
} PhasedTiles;

static PhasedTiles phased_tiles(const KernelKind *kind, const RProgram *program)
{
    const TileSpace *space = kind->space;
    const int64_t *shared = program->tile[LEVEL_SHARED].size;
    int along = space->phases->columns_axis, columns = space_last_spatial(space, space->axis_count);
    int64_t others = 1;
    for (int a = 0; a < space->axis_count; a++)
        others *= a == along || space->axes[a].reduction ? 1 : ceil_div(space->axes[a].extent, shared[a]);
    return (PhasedTiles){.phases = space->phases,
                         .size = shared[along],
                         .across = ceil_div(space->axes[along].extent, shared[along]),
                         .run = along == columns ? smaller(program->panel, others) : program->panel == 1 ? others : 1,
                         .backwards = schedule_is_backwards(kind->schedule)};
}

/* The taps of a tile, and how many from that one on have the same: others across the phase, and next to it inside the phase. */
static int taps_of(const PhasedTiles *tiles, int64_t number, int64_t *alike)
{
    int64_t at = number / tiles->run % tiles->across;
    int64_t first = (tiles->backwards ? tiles->across - 1 - at : at) * tiles->size;
    int64_t before = first % tiles->phases->columns, behind = tiles->phases->columns - before - tiles->size;
    int64_t more = behind < 0 ? 0 : (tiles->backwards ? before : behind) / tiles->size;
    *alike = tiles->run * (1 + more) - number % tiles->run;
    return tap_count(phases_used(tiles->phases, first, tiles->size));
}

/* Tiles of the busiest SM, as multiples of the mean one. Those that start together are dealt in turn; of the others each goes
   to the SM that has the least. Persistent blocks go to and fro, which is nearly as even. */
static double unequal_tiles(const PhasedTiles *tiles, int64_t count, int64_t sms, int64_t blocks_per_sm)
{
    enum { MOST_TAPS = 512, MOST_SMS = 1024 };   // limit of the search: with more taps of an SM its order matters little
    double mean = (double)phases_extent(tiles->phases, 1, tiles->size) / (double)tiles->phases->step;
    double equal = (double)count / (double)sms;
    int64_t first = smaller(count, sms * blocks_per_sm), having[MOST_TAPS] = {0};   // SMs that have so many taps
    int64_t alike = 0, sum[MOST_SMS] = {0};
    if ((equal + (double)larger(blocks_per_sm, 1)) * tiles->phases->taps >= MOST_TAPS || sms > MOST_SMS)
        return equal;
    for (int64_t number = 0, sm = 0, taps = 0; number < first; number++, alike--) {
        taps = alike ? taps : taps_of(tiles, number, &alike);
        sum[sm] += taps;
        sm = sm + 1 == sms ? 0 : sm + 1;
    }
    for (int64_t sm = 0; sm < sms; sm++)
        having[sum[sm]]++;
    int least = 0, most = MOST_TAPS - 1;
    for (int64_t number = first, given; number < count; number += given) {
        while (!having[least])
            least++;
        int taps = taps_of(tiles, number, &alike);
        given = smaller(smaller(alike, count - number), having[least]);
        having[least] -= given;
        having[least + taps] += given;
    }
    while (most > 0 && !having[most])
        most--;
    return most / mean;
}

double all_points(const TileSpace *space, const RTile *tile)
{
    double points = 1;
    for (int a = 0; a < space->axis_count; a++)
        points *= (double)tile->size[a];
    return points;
}

static RTile padded_problem(const TileSpace *space, const RTile *shared)
{
    RTile padded = {0};
    for (int a = 0; a < space->axis_count; a++) {
        bool taps = space->phases && !space->phases->box && space->phases->k_axis == a;   // each has whole steps
        int64_t extent = taps ? phases_extent(space->phases, shared->size[a], shared->size[space->phases->columns_axis])
                              : space->axes[a].extent;
        padded.size[a] = round_up(extent, shared->size[a]);
    }
    return padded;
}

/* Of steps of several vectors the last one makes those that are left: five are a step of four and a quarter of one. */
static double made_share(const KernelCounts *kernel)
{
    int axis = -1;
    for (const Item *item = NULL; (item = schedule_next(kernel->kind->schedule, ITEM_LOOP, item));)
        axis = item->loop.at_once ? item->loop.axis : axis;
    return axis < 0 ? 1 : (double)kernel->space->axes[axis].extent / (double)kernel->padded.size[axis];
}

/* Share of the steps along a band's axis that tiles of so many positions make, which need what the first or the
   last one needs; the tile that makes most; the share that not all need. Of many tiles some stand for all. */
static double visited_share(const TileSpace *space, const RTile *shared, double *most, double *border)
{
    enum { MOST_TILES = 64 };   // limit of the search: of more the estimate is the same
    const Band *band = &space->band;
    *most = 1, *border = 0;
    if (!band->exists)
        return 1;
    double size = (double)shared->size[band->along], step = (double)shared->size[band->axis],
           last = (double)space->axes[band->along].extent - 1, columns = (double)space->axes[band->axis].extent;
    double tiles = ceil((last + 1) / size), stride = at_least(tiles / MOST_TILES, 1), made = 0, all = 0, longest = 0;
    for (double tile = 0; tile < tiles; tile += stride) {
        double row = floor(tile) * size, end_row = at_most(row + size - 1, last);
        double from = band->begin + band->begin_step * (band->begin_step < 0 ? end_row : row),
               end = band->end + band->end_step * (band->end_step > 0 ? end_row : row);
        double all_from = 2 * band->begin + band->begin_step * (row + end_row) - from,
               all_end = 2 * band->end + band->end_step * (row + end_row) - end;   // of what all need
        from = at_least(at_most(from, columns - 1), 0);
        double own = ceil(at_least(at_most(end, columns), from + 1) / step) - floor(from / step);
        double whole = floor(at_most(all_end, columns) / step) - ceil(at_least(all_from, 0) / step);
        *border += own - at_least(whole, 0);
        longest = at_least(longest, own);
        made += own;
        all += ceil(columns / step);
    }
    *most = longest / ceil(columns / step);
    *border /= made;
    return made / all;
}

static RTile thread_walk(const KernelKind *kind, const RTile *shared, const RTile *inner)
{
    RTile walk = {0};
    for (int a = 0; a < kind->space->axis_count; a++)
        walk.size[a] = axis_shared_by_threads(kind->space, a) ? shared->size[a] : inner->size[a];
    return walk;
}

/* Windows share elements of the tile: they are in one line, or in L1. */
static bool is_of_windows(const PerfProblem *problem, const TileSpace *space, int index)
{
    const DataTile *data = &space->tiles[index];
    return data->staged && !data->output && (data->apart || problem->bytes[index] < problem->positions[index]);
}

/* L2 answers so many requests a second, whether they are for a sector or for a line: copies of matrices in pieces of 64
   bytes reach half its bandwidth (tuning-log 185), those of a convolution's factors more (tuning-log 186). */
static int requested_bytes(const KernelCounts *kernel, const DataTile *data)
{
    const DeviceSpec *device = kernel->device;
    bool of_matrices = data->staged && !data->output && kernel->cost->read_share <= 0 && !kernel->problem->windows;
    return of_matrices ? device->shared.transaction_bytes : device->dram.transaction_bytes;
}

/* Bulk copies bring rows, or the channels of a tap, in lines of 128 bytes, however short they are. What the
   last one has beyond the row is filled with zeros and takes its time, too; rows that begin within sectors
   take longer, most where such a line is cut. Times over that of an aligned line. */
static double row_line_time(bool odd, double elements, double line)
{
    static const double ODD = 1.2, CUT = 1.1, ODD_CUT = 1.8;   // micro-kernels: tuning-log 196, 275
    double lines = ceil(elements / line), whole = floor(elements / line);
    return (whole * (odd ? ODD : 1) + (lines - whole) * (odd ? ODD_CUT : CUT)) / lines;
}

/* `moved`: in transactions of memory. Short rows of whole sectors take what they have: filter gradients whose
   factor is a sector of each pixel take 0.97 to 0.98 of that, and 0.83 to 0.84 of whole lines. */
static double asked_bytes(const KernelCounts *kernel, const DataTile *data, double moved)
{
    int axis_count = kernel->space->axis_count;
    bool by_lines = data->staged && !data->output && kernel->cost->read_share > 0,
         of_taps = by_lines && data->taps.step && kernel->space->walk.count;
    double line = kernel->device->shared.transaction_bytes * 8.0 / data->element_bits,
           row = of_taps      ? (double)data->taps.channels
                 : data->rank ? (double)data->dims[data->rank - 1].size
                              : line;
    bool odd = (int64_t)row * data->element_bits % (8 * SECTOR_BYTES) != 0;
    if (of_taps || (by_lines && row < line && odd)) {
        DataTile filled = *data;
        filled.taps = (TapTile){0};
        double bytes = data_tile_bytes(&filled, kernel->shared, axis_count);
        return bytes * row_line_time(odd, row, line) * (of_taps ? 1 : line / row);
    }
    if (requested_bytes(kernel, data) == kernel->device->dram.transaction_bytes)
        return moved;
    return data_tile_traffic(data, kernel->shared, axis_count, requested_bytes(kernel, data));
}

/* What blocks of the shared tile hold, move and ask for, and of what is staged lines and elements: numbers
   of a TileMemo. */
typedef struct BlockBytes {
    double held, moved, asked, lines, elements;
} BlockBytes;

static BlockBytes block_bytes(const KernelCounts *kernel, const DataTile *data)
{
    const DeviceSpec *device = kernel->device;
    int axes = kernel->space->axis_count;
    BlockBytes bytes = {
        .held = data_tile_bytes(data, kernel->shared, axes),
        .moved = data_tile_traffic(data, kernel->shared, axes, device->dram.transaction_bytes),
    };
    bytes.asked = asked_bytes(kernel, data, bytes.moved);
    if (data->staged) {
        bytes.lines = data_tile_traffic(data, kernel->shared, axes, device->shared.transaction_bytes);
        bytes.elements = (double)data_tile_elements(data, kernel->shared, axes);
    }
    return bytes;
}

static void count_bytes(KernelCounts *kernel)
{
    const TileSpace *space = kernel->space;
    BlockBytes own[MAX_DATA_TILES], *block = own;
    bool is_new = true;
    if (kernel->problem->moves)
        block = tile_memo_find(kernel->problem->moves, kernel->shared, NULL, &is_new);
    for (int i = 0; i < space->tile_count; i++) {
        if (is_new)
            block[i] = block_bytes(kernel, &space->tiles[i]);
        kernel->bytes[i] = (TileBytes){
            .thread = data_tile_bytes(&space->tiles[i], kernel->inner, space->axis_count),
            .block = block[i].held,
            .moved = block[i].moved,
            .asked = block[i].asked,
            .lines = block[i].lines,
            .elements = block[i].elements,
        };
    }
}

/* What elements of a thread have in common is found once in a step. */
static bool finds_once(const KernelCounts *kernel, const DataTile *data)
{
    int64_t lanes = (int64_t)(kernel->register_tiles * kind_tile_threads(kernel->kind));
    bool once = data->copied_evenly || data_tile_lines_even(data, kernel->shared, kernel->space->axis_count, lanes);
    for (int a = 0; a < kernel->space->axis_count; a++)
        once &= !kernel->space->axes[a].reduction || data->even_terms % kernel->shared->size[a] == 0;
    return once;
}

static void count_staged(KernelCounts *kernel)
{
    for (int i = 0; i < kernel->space->tile_count; i++) {
        const DataTile *data = &kernel->space->tiles[i];
        if (!data->staged || data->output)
            continue;
        kernel->staged = true;
        double vector_bytes = load_bytes(data);
        kernel->staged_bytes += kernel->bytes[i].block;
        double vectors = kernel->bytes[i].block / vector_bytes;
        kernel->staged_vectors += vectors;
        bool whole = data->staged_inner == data->rank - 1 || !data->vector;
        kernel->staged_stores += whole ? vectors : vectors * data->vector;
        bool once = finds_once(kernel, data), by_line = once && data->line_instructions > 0;
        if (once)
            kernel->chain_instructions += data->step_instructions;
        kernel->staging_instructions +=
            (by_line ? data->line_instructions : data->instructions) * kernel->bytes[i].elements;
    }
}

/* Loads of a loop that nothing buffers are under way in the registers that the SM's threads leave each other, as far as an
   instruction can name them. */
static double unbuffered_rounds(const KernelCounts *kernel, const Loop *loop)
{
    /* Counted in SASS of `loopnest`: 4, 12 and 20 rounds of two loads with 32, 48 and 64 registers. */
    enum { OTHERS = 24 };
    double threads = kernel->resident * kernel->warps * kernel->device->warp_size, loads = 0;
    for (int i = 0; i < kernel->space->tile_count; i++)
        loads += depends(kernel, &kernel->space->tiles[i], loop->axis);
    double registers = at_most((double)kernel->device->registers_per_sm / threads, kernel->device->registers_per_thread);
    double rounds = (registers - OTHERS) / at_least(loads, 1),
           most = loop->at_once ? loop->at_once : (double)kernel->space->axes[loop->axis].extent;
    return at_least(at_most(rounds, most), 1);
}

double rounds_in_flight(const KernelCounts *kernel)
{
    /* Rounds, and elements of each tensor, up to which compilers unroll such loops: counted in SASS. Loops that state it have as
       many elements under way in any number of rounds; of vectors `reduce` states twice as many, which hide no more. */
    enum { MOST_ROUNDS = 4, MOST_ELEMENTS = 16 };
    const Loop *loop = kernel->problem->schedule.open_loop;
    if (!loop || loop->at_once == 1)
        return 1;
    if (!kernel->kind->registers.input_buffers)
        return unbuffered_rounds(kernel, loop);
    double points = all_points(kernel->space, kernel->inner),
           rounds = at_most(floor(MOST_ELEMENTS / points), loop->together ? MOST_ELEMENTS : MOST_ROUNDS);
    double whole = (double)(kernel->space->axes[loop->axis].extent / kernel->shared->size[loop->axis]);
    return at_least(at_most(rounds, whole), 1);
}

/* Bytes of the input that one block has in flight: all of a staged tile; otherwise what its threads load at once, at
   least one transaction and at most what the block's tile moves. */
static double block_bytes_in_flight(const KernelCounts *kernel, const DataTile *data)
{
    const TileBytes *bytes = bytes_of(kernel, data);
    if (data->staged)
        return bytes->moved * at_least(at_most(kernel->ahead, kernel->steps * kernel->turns), 1);
    double thread_bytes = kernel->kind->registers.input_buffers ? bytes->thread : data->element_bits / 8.0;
    double asked = at_least(kernel->register_tiles * thread_bytes, kernel->device->dram.transaction_bytes);
    return rounds_in_flight(kernel) * at_most(asked, bytes->moved);
}

/* Loads that pass registers on their way to shared memory, and asynchronous copies of single elements, occupy lines of L1
   while they are in flight, however little of a line they use. L1 is what the shared memory of all blocks
   that fit on an SM leaves, resident or not: 256 rows of 64 bytes in each of 4 blocks occupy 128 KB of lines,
   where 24 KB are left (tuning-log 163). The share of the loads that find lines. */
static double lines_share(const KernelCounts *kernel, double l1_bytes)
{
    const TileSpace *space = kernel->space;
    double lines_bytes = 0;
    if (!kernel->staged || !kernel->problem->schedule.multiplies)
        return 1;
    bool registers = kind_passes_registers(kernel->kind, kernel->device);
    for (int i = 0; i < space->tile_count; i++)
        if (space->tiles[i].staged && !space->tiles[i].output && (registers || space->tiles[i].vector == 1))
            lines_bytes += kernel->resident * kernel->bytes[i].lines;
    return at_most(l1_bytes / at_least(lines_bytes, 1), 1);
}

double points_spread(const DataTile *data, double points, int unit_bytes)
{
    double unit = unit_bytes * 8.0 / data->element_bits, least = unit;
    for (int r = 0; r < MAX_RUNS && data->run_points[r] > 0; r++) {
        double run = 1 << r, needed = data->run_points[r];
        if (run >= unit)
            return at_most(1 + needed / points, least);   // parts of units at both ends
        if (needed <= points)
            least = unit / run * (1 + (run - 1) / unit);   // a run may begin anywhere in a unit
    }
    return least;
}

/* What a warp's own loads use of a transaction is there; what others of the block use of it as far as L1 holds their lines. At both
   ends of a block's points there are parts of transactions. */
static double block_scatter(const KernelCounts *kernel, const DataTile *data)
{
    const DeviceSpec *device = kernel->device;
    double points = all_points(kernel->space, kernel->shared), scatter = at_least(data->scatter, 1),
           own = all_points(kernel->space, kernel->inner) * device->warp_size, element_bytes = data->element_bits / 8.0;
    if (data->staged || data->run_points[0] == 0)
        return data->staged ? 1 : scatter;
    double alone = at_most(points_spread(data, at_most(own, points), device->dram.transaction_bytes), scatter),
           together = at_most(points_spread(data, points, device->dram.transaction_bytes), alone),
           lines = points * points_spread(data, points, device->shared.transaction_bytes) * element_bytes,
           held = at_most(kernel->l1_bytes / (kernel->resident * lines), 1);
    return held * together + (1 - held) * alone;
}

/* `l1_bytes`: that L1 has for lines of loads. */
static void count_in_flight(KernelCounts *kernel, double l1_bytes)
{
    double blocks = at_most(kernel->blocks, kernel->resident * kernel->device->sm_count);
    for (int i = 0; i < kernel->space->tile_count; i++) {
        const DataTile *data = &kernel->space->tiles[i];
        double bytes = data->output || data->again ? 0 : blocks * block_bytes_in_flight(kernel, data);
        kernel->bytes[i].scatter = block_scatter(kernel, data);
        kernel->in_flight_bytes += bytes;
        kernel->l2_in_flight_bytes += bytes * kernel->bytes[i].scatter;
    }
    double lines = lines_share(kernel, l1_bytes);
    kernel->in_flight_bytes *= lines;
    kernel->l2_in_flight_bytes *= lines;
}

/* The window of the first data tile that moves along the axis. */
static WindowAxis window_along(const TileSpace *space, int output, int tap)
{
    for (int i = 0; i < space->tile_count; i++)
        for (int d = 0; d < space->tiles[i].rank; d++) {
            const Dim *dim = &space->tiles[i].dims[d];
            if (dim->index.coef[output])
                return (WindowAxis){
                    .outputs = space->axes[output].extent,
                    .taps = space->axes[tap].extent,
                    .inputs = dim->size,
                    .stride = dim->index.coef[output],
                    .dilation = dim->index.coef[tap],
                    .pad = -dim->index.constant,
                };
        }
    return window_point;
}

static void add_item(PerfProblem *problem, const TileSpace *space, const Item *item)
{
    problem->loop_instructions += item->kind == ITEM_LOOP ? item->loop.instructions : 0;
    if (item->kind == ITEM_LOOP && item->loop.skips && !problem->skips) {
        problem->skips = item->loop.skips;
        problem->skipped = window_along(space, item->loop.skips, item->loop.axis);
    }
    bool moves = item->kind == ITEM_LOAD || item->kind == ITEM_STORE;
    if (item->kind == ITEM_MAP || item->kind == ITEM_REDUCE || item->kind == ITEM_PRODUCT) {
        problem->thread_instructions += item->arithmetic.instructions;
        problem->thread_waits += item->arithmetic.waits;
    }
    for (int i = 0; moves && item->move.instructions > 0 && i < MAX_DATA_TILES; i++)
        if (item->move.tiles >> i & 1)
            problem->instructions[i] += item->move.instructions;
}

TileMemo *perf_moves_new(Arena *arena, const KernelKind *kind)
{
    return tile_memo_new(arena, kind->space->axis_count, (size_t)kind->space->tile_count * sizeof(BlockBytes));
}

PerfProblem perf_problem(const KernelKind *kind)
{
    const TileSpace *space = kind->space;
    PerfProblem problem = {.whole = rtile_problem(space), .schedule = schedule_facts(kind->schedule)};
    for (int i = 0; i < kind->schedule->count; i++)
        add_item(&problem, space, &kind->schedule->items[i]);
    for (int i = 0; i < space->tile_count; i++) {
        const DataTile *data = &space->tiles[i];
        problem.bytes[i] = problem.positions[i] = data_tile_bytes(data, &problem.whole, space->axis_count);
        if (data->elements)
            problem.bytes[i] = at_most((double)data->elements * data->element_bits / 8, problem.bytes[i]);
        problem.axes[i] = data_tile_axes(&space->tiles[i], space->axis_count);
        problem.windows |= is_of_windows(&problem, space, i);
    }
    return problem;
}

/* Steps for which a load may be in flight. What passes registers is stored before the last register step of the step that
   loads it, whichever step it is for. */
static double steps_ahead(const KernelCounts *kernel)
{
    int ahead = kernel->problem->schedule.rounds_ahead;
    if (!ahead)
        return kernel->stages - 1;
    return kind_passes_registers(kernel->kind, kernel->device) ? 1 - 1 / kernel->inner_steps : ahead;
}

void kernel_counts(KernelCounts *kernel, const KernelKind *kind, const PerfProblem *problem,
                   const RProgram *program, const DeviceSpec *device, int blocks_per_sm)
{
    const TileSpace *space = kind->space;
    memset(kernel, 0, offsetof(KernelCounts, bytes));
    kernel->kind = kind, kernel->space = space, kernel->device = device;
    kernel->cost = perf_cost(kind);
    kernel->blocks = (double)program->grid;
    kernel->block_tiles =
        problem->schedule.is_persistent ? (double)program->dealt : kernel->blocks * program->turns;
    kernel->inner = &program->tile[LEVEL_REGISTER];
    kernel->shared = &program->tile[LEVEL_SHARED];
    kernel->problem = problem;
    kernel->padded = padded_problem(space, kernel->shared);
    kernel->walk = thread_walk(kind, kernel->shared, kernel->inner);
    kernel->cluster = kind_splits(kind);
    double most;
    kernel->visited = visited_share(space, kernel->shared, &most, &kernel->border);
    kernel->inner_steps = rtile_tiles(space, kernel->shared, &kernel->walk, true);
    int makers = schedule_makers(kind->schedule);   // of which one multiplies at a time
    kernel->register_tiles = (double)program->threads / kind_tile_threads(kind) / makers;
    kernel->warps = (double)ceil_div(program->threads / makers, device->warp_size);
    double sms = usable_sms(kind, program->cluster, device);
    kernel->resident = at_most(blocks_per_sm, ceil(kernel->blocks / sms));
    double shared_bytes = (double)(program->shared_bytes + device->shared_reserved_per_block);
    kernel->l1_bytes = at_least((double)device->shared_per_sm - kernel->resident * shared_bytes, 0);
    kernel->panel = (double)program->panel;
    kernel->turns = (double)program->turns;
    double waves = kernel->blocks / (blocks_per_sm * sms);
    kernel->rounds = ceil(waves) * program->turns;
    kernel->alone = kernel->cluster > 1 && waves > 1 ? ceil(waves) / waves : 1;
    // Tiles that all run at once end with the one of most steps.
    kernel->steps = ceil(rtile_tiles(space, &kernel->padded, kernel->shared, true) / kernel->cluster) *
                   at_least(kernel->visited, most / kernel->rounds) * made_share(kernel);
    double dealt = (double)program->dealt;
    kernel->sm_tiles = kernel->block_tiles / dealt * ceil(dealt / sms);
    /* How full the last wave is: of 1024 blocks on 108 SMs each has 9.48 on average, the busiest 10. */
    kernel->balance = dealt / device->sm_count / ceil(dealt / sms);
    if (space->phases) {
        PhasedTiles tiles = phased_tiles(kind, program);
        kernel->sm_tiles = problem->schedule.is_persistent
                            ? unequal_tiles(&tiles, program->dealt, program->grid, 0)
                            : unequal_tiles(&tiles, program->dealt, device->sm_count, blocks_per_sm);
        kernel->balance = dealt / device->sm_count / kernel->sm_tiles;
    }
    kernel->stages = at_least(schedule_buffers(kind->schedule), 1);
    kernel->ahead = steps_ahead(kernel);
    count_bytes(kernel);
    count_staged(kernel);
    count_in_flight(kernel, at_least((double)device->shared_per_sm - blocks_per_sm * shared_bytes, 1));
}

/* Tiles of it along the reduction. */
static double visits_of(const KernelCounts *kernel, const DataTile *data, const RTile *whole, const RTile *part)
{
    double visits = 1;
    for (int a = 0; a < kernel->space->axis_count; a++)
        if (kernel->space->axes[a].reduction && depends(kernel, data, a))
            visits *= (double)ceil_div(whole->size[a], part->size[a]);
    return data_tile_depends(data, kernel->space->band.axis) ? visits * kernel->visited : visits;
}

double block_visits(const KernelCounts *kernel, const DataTile *data)
{
    double visits = visits_of(kernel, data, &kernel->problem->whole, kernel->shared);
    return visits > 1 || data->output ? visits / kernel->cluster : visits;
}

double thread_visits(const KernelCounts *kernel, const DataTile *data)
{
    double visits = visits_of(kernel, data, &kernel->padded, &kernel->walk);
    return visits > 1 ? at_least(visits / kernel->cluster, 1) : visits;
}
