#include "rprogram/rprogram.h"

#include <math.h>

#include "base/checked.h"
#include "model/superstep.h"
#include "rprogram/registers.h"

const char *const prune_reason_name[PRUNE_COUNT] = {
    [PRUNE_THREADS] = "threads",      [PRUNE_REGISTERS] = "registers",
    [PRUNE_SHARED] = "shared memory", [PRUNE_GRID] = "grid",
    [PRUNE_DUPLICATE] = "duplicate",  [PRUNE_SLOWER] = "slower",
};

/* Shared tiles of the problem, in whole multicast clusters. */
static int64_t tiles_of(const KernelKind *kind, const RTile *shared)
{
    const TileSpace *space = kind->space;
    int64_t tiles = 1;
    for (int a = 0; a < space->axis_count; a++) {
        int64_t along = space->axes[a].reduction ? 1 : ceil_div(space->axes[a].extent, shared->size[a]);
        if (a == kind->schedule->cluster_axis)
            along = round_up(along, kind_multicast(kind));
        tiles = size_product(tiles, along);
    }
    return tiles;
}

/* Blocks that make them; how many tiles a persistent one makes is known before, or follows from the SMs that there are. */
static void fill_grid(const KernelKind *kind, const DeviceSpec *device, RProgram *program)
{
    int splits = kind_splits(kind), multicast = kind_multicast(kind);
    program->cluster = splits * multicast;
    int64_t tiles = tiles_of(kind, &program->tile[LEVEL_SHARED]);
    program->turns = kind_turns(kind);
    bool persistent = schedule_is_persistent(kind->schedule);
    if (persistent) {
        int64_t clusters = device->sm_count >= multicast ? device->sm_count / multicast : 1;
        program->turns = (int)ceil_div(tiles, clusters * multicast);
        program->grid = program->turns > 1 ? clusters * multicast : tiles;
    } else {
        program->grid = size_product(ceil_div(tiles, program->turns), splits);
    }
    program->dealt = persistent ? tiles : program->grid;
}

double rprogram_spread_us(const RProgram *program, const DeviceSpec *device)
{
    return program->perf.time_us * fmin((double)program->dealt / device->sm_count, 1);
}

int64_t rprogram_threads(const KernelKind *kind, const DeviceSpec *device, const RTile *shared, const RTile *inner)
{
    int64_t threads = size_product(kind_tile_threads(kind), schedule_makers(kind->schedule));
    if (device_is_bulk_synchronous(device))
        return device->max_threads_per_sm;
    for (int a = 0; a < kind->space->axis_count; a++)
        if (axis_shared_by_threads(kind->space, a))
            threads = size_product(threads, shared->size[a] / inner->size[a]);
    return threads;
}

/* Threads that the largest block of this kind can use: a problem of 3 x 5 cannot use a whole warp. */
static double useful_threads(const KernelKind *kind)
{
    double threads = kind_tile_threads(kind);
    for (int a = 0; a < kind->space->axis_count; a++) {
        int64_t extent = kind->space->axes[a].extent;
        int64_t limit = kind->space->rule[LEVEL_SHARED][a].limit;
        int64_t granule = kind->space->rule[LEVEL_REGISTER][a].granule;
        int64_t reach = limit < extent ? limit : extent;
        if (axis_shared_by_threads(kind->space, a) && reach > 1)
            threads *= (double)ceil_div(reach, granule > 1 ? granule : 1);
    }
    return threads;
}

/* Whole warps, if the kind requires them, or one partial warp where the problem has no work for a whole one. */
static bool threads_legal(const KernelKind *kind, const DeviceSpec *device, int64_t threads)
{
    if (threads > device->max_threads_per_block || (kind->threads.most && threads > kind->threads.most) ||
        threads < kind->threads.least)
        return false;
    return threads % device->warp_size == 0 || kind->threads.ragged
        || (threads < device->warp_size && useful_threads(kind) < device->warp_size);
}

/* Do enough threads share the reduction? As many as have work are enough. */
static bool reducers_legal(const KernelKind *kind, const RTile *shared, const RTile *inner)
{
    int64_t reducers = 1, useful = 1;
    for (int a = 0; a < kind->space->axis_count; a++)
        if (kind->space->axes[a].reduction) {
            reducers = size_product(reducers, shared->size[a] / inner->size[a]);
            useful = size_product(useful, ceil_div(kind->space->axes[a].extent, inner->size[a]));
        }
    return reducers >= kind->space->least_reducers || reducers >= useful;
}

/* Where tiles pass through registers, compilers keep addresses in what is left; with less they spill
   (tuning-log 127). */
enum { SPARE_REGISTERS = 16 };

/* As many blocks as a launch may have; and persistent kernels count tiles in 32 bits. */
static bool grid_legal(const DeviceSpec *device, const RProgram *program)
{
    return program->grid <= device_most_blocks(device, program->threads) && program->dealt <= MOST_BLOCKS;
}

/* Fills all but `perf`; false with the reason if a limit is broken. Cheap checks come first. */
static bool fill_shape(const KernelKind *kind, const DeviceSpec *device, const int64_t footprint[LEVEL_GLOBAL],
                       RProgram *program, PruneReason *reason)
{
    const RTile *shared = &program->tile[LEVEL_SHARED], *inner = &program->tile[LEVEL_REGISTER];
    int64_t threads = rprogram_threads(kind, device, shared, inner);
    *reason = PRUNE_THREADS;
    if (!threads_legal(kind, device, threads) || !reducers_legal(kind, shared, inner))
        return false;
    program->threads = (int)threads;

    fill_grid(kind, device, program);
    *reason = PRUNE_GRID;
    if (!grid_legal(device, program))
        return false;

    program->shared_bytes = footprint[LEVEL_SHARED];
    *reason = PRUNE_SHARED;
    if (program->shared_bytes > device->shared_per_block_optin)
        return false;

    RegisterBudget budget = register_budget(kind, device, program, footprint[LEVEL_REGISTER]);
    *reason = PRUNE_REGISTERS;
    if (budget.enough > device->registers_per_thread - (budget.passing ? SPARE_REGISTERS : 0))
        return false;
    program->enough_registers = (int)budget.enough;
    program->registers = (int)registers_taken(kind, device, program, budget);
    return true;
}

/* The units take no longer for the terms of a result than memory for its sector: with 67 Tflop/s beside 32 bytes at
   4.5 TB/s, those of up to 237 multiply-adds. */
static bool is_brief(const TapPhases *phases, const DeviceSpec *device)
{
    double flop = 2.0 * (double)phases_extent(phases, 1, phases->columns), sector = device->dram.transaction_bytes;
    return flop / perf_unit_peak(device, UNIT_FP32) < sector / device->dram.bandwidth_gb_s;
}

/* A wave of blocks covers nearly a square (tuning-log 40): 132 blocks of 128 x 256 are 16 rows of 8.25, which read 2048
   rows of one factor and 2112 columns of the other. Phases have sums of unequal length: blocks advance along them
   together, so that each gets tiles of every phase (tuning-log 166). Results of rows that are phases lie between each
   other, and sectors that are stored in parts at different times are read and written again: where sums are brief that
   takes longer than they do, and blocks of all phases follow each other (tuning-log 257). */
static int64_t panel_rows(const KernelKind *kind, const RTile *shared, double blocks, const DeviceSpec *device)
{
    int columns = space_last_spatial(kind->space, kind->space->axis_count);
    int rows = space_last_spatial(kind->space, columns);
    if (!schedule_in_panels(kind->schedule) || rows < 0)
        return 0;
    const TapPhases *phases = kind->space->phases;
    if (phases && phases->columns_axis == columns)
        return (int64_t)blocks;
    if (phases) {
        bool brief = kind_tile_threads(kind) == 1 && is_brief(phases, device);
        return brief ? ceil_div(kind->space->axes[rows].extent, shared->size[rows]) : 1;
    }
    int64_t panel = llround(sqrt(blocks * (double)shared->size[columns] / (double)shared->size[rows]));
    return panel > 1 ? panel : 1;
}

bool rprogram_complete(const KernelKind *kind, const PerfProblem *problem, const DeviceSpec *device,
                       const int64_t footprint[LEVEL_GLOBAL], RProgram *program, PruneReason *reason)
{
    if (!fill_shape(kind, device, footprint, program, reason))
        return false;

    Limiter limiter;
    int blocks = program->sure_blocks = perf_blocks_per_sm(device, program->threads, program->enough_registers,
                                                           program->shared_bytes, &limiter);
    if (blocks == 0) {
        *reason = limiter == LIMIT_SHARED      ? PRUNE_SHARED
                : limiter == LIMIT_REGISTERS ? PRUNE_REGISTERS
                                             : PRUNE_THREADS;
        return false;
    }
    program->tile[LEVEL_GLOBAL] = problem->whole;
    program->panel = panel_rows(kind, &program->tile[LEVEL_SHARED], (double)blocks * device->sm_count, device);
    program->perf = device_is_bulk_synchronous(device) ? superstep_estimate(kind, program, device)
                                                       : perf_estimate(kind, problem, program, device);
    return true;
}

void rprogram_pad(const KernelKind *kind, const DeviceSpec *device, RProgram *program)
{
    const RTile *shared = &program->tile[LEVEL_SHARED], *inner = &program->tile[LEVEL_REGISTER];
    const TileSpace *space = kind->space;
    for (int i = 0; i < space->tile_count; i++)
        if (space->tiles[i].staged)
            program->padding[i] =
                (int32_t)staged_lines(space, &space->tiles[i], shared, inner, device).padding;
}

static int blocks_in_fours(int64_t blocks, int threads)
{
    enum { FOUR_WARPS = 128 };   // one on each scheduler of an SM: CUDA programming guide, hardware multithreading
    int64_t whole = blocks * threads / FOUR_WARPS * FOUR_WARPS / threads;
    return whole > 1 ? (int)whole : 1;
}

int rprogram_least_blocks(const RProgram *program, int threads)
{
    return blocks_in_fours(program->sure_blocks, threads);
}

/* The next step's tiles pass through registers while the block multiplies, and no tensor core does. Compilers take more registers
   than leave room for the blocks; or fewer, and load one element after the other. */
static bool holds_next_step(const KernelKind *kind, const RProgram *program)
{
    return kind->registers.held_words > 0 && kind_tile_threads(kind) == 1 &&
           !kind_is_one_step(kind, &program->tile[LEVEL_SHARED]);
}

/* Warps read fragments ahead in a loop. Compilers take a few registers more than leave room for the expected blocks: with 133 for 128
   an SM had one block of eight warps for two, and a kernel took 1.5 times as long. */
static bool reads_fragments_ahead(const KernelKind *kind, const RProgram *program)
{
    return kind->registers.input_buffers > 1 && kind_tile_threads(kind) > 1 &&
           !kind_is_one_step(kind, &program->tile[LEVEL_SHARED]);
}

int rprogram_grid_blocks(const KernelKind *kind, const RProgram *program, const DeviceSpec *device)
{
    int64_t blocks = ceil_div(program->grid, device->sm_count);
    int resident = program->perf.blocks_per_sm;
    if (blocks >= resident && kind->schedule->terms)
        return program->sure_blocks;
    if (blocks >= resident && kind_reads_ahead(kind))
        return program->sure_blocks > 1 ? program->sure_blocks : resident;
    if (blocks >= resident)
        return holds_next_step(kind, program) || kind_unbuffered_loop(kind) || reads_fragments_ahead(kind, program) ? resident : 0;
    if (blocks > program->sure_blocks)
        return 0;
    return blocks_in_fours(blocks, program->threads);
}
