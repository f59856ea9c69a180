#include "rprogram/rprogram.h"

#include <math.h>

#include "base/checked.h"
#include "model/superstep.h"

const char *const prune_reason_name[PRUNE_COUNT] = {
    [PRUNE_THREADS] = "threads",      [PRUNE_REGISTERS] = "registers",
    [PRUNE_SHARED] = "shared memory", [PRUNE_GRID] = "grid",
    [PRUNE_DUPLICATE] = "duplicate",  [PRUNE_SLOWER] = "slower",
};

static int neighbours_of(const TileRules *rules) { return rules->neighbours > 0 ? rules->neighbours : 1; }

/* Shared tiles of the problem, in whole clusters of neighbours. */
static int64_t tiles_of(const TileRules *rules, const RTile *shared)
{
    const TileSpace *space = rules->space;
    int64_t tiles = 1;
    for (int a = 0; a < space->axis_count; a++) {
        int64_t along = space->axes[a].reduction ? 1 : ceil_div(space->axes[a].extent, shared->size[a]);
        if (a == rules->neighbour_axis)
            along = round_up(along, neighbours_of(rules));
        tiles = size_product(tiles, along);
    }
    return tiles;
}

/* Blocks that make them; in how many turns is known before, or follows from the SMs that there are. */
static void fill_grid(const TileRules *rules, const DeviceSpec *device, RProgram *program)
{
    int reducers = rules->cluster_blocks > 0 ? rules->cluster_blocks : 1, neighbours = neighbours_of(rules);
    program->cluster = reducers * neighbours;
    int64_t tiles = tiles_of(rules, &program->tile[LEVEL_SHARED]);
    program->turns = rules->turns > 0 ? rules->turns : 1;
    bool persistent = schedule_is_persistent(rules->schedule);
    if (persistent) {
        int64_t clusters = device->sm_count >= neighbours ? device->sm_count / neighbours : 1;
        program->turns = (int)ceil_div(tiles, clusters * neighbours);
        program->grid = program->turns > 1 ? clusters * neighbours : tiles;
    } else {
        program->grid = size_product(ceil_div(tiles, program->turns), reducers);
    }
    program->dealt = persistent ? tiles : program->grid;
}

int64_t rprogram_threads(const TileRules *rules, const RTile *shared, const RTile *inner)
{
    int64_t threads = rules->tile_threads > 0 ? rules->tile_threads : 1;
    for (int a = 0; a < rules->space->axis_count && !rules->workers; a++)
        if (axis_shared_by_threads(rules, a))
            threads = size_product(threads, shared->size[a] / inner->size[a]);
    return rules->workers ? rules->workers : threads;
}

/* Threads that the largest block of these rules could put to work: a problem of 3 x 5 has no use
   for a whole warp. */
static double useful_threads(const TileRules *rules)
{
    double threads = rules->tile_threads > 0 ? rules->tile_threads : 1;
    for (int a = 0; a < rules->space->axis_count; a++) {
        int64_t extent = rules->space->axes[a].extent;
        int64_t limit = rules->rule[LEVEL_SHARED][a].limit;
        int64_t granule = rules->rule[LEVEL_REGISTER][a].granule;
        int64_t reach = limit < extent ? limit : extent;
        if (axis_shared_by_threads(rules, a) && reach > 1)
            threads *= (double)ceil_div(reach, granule > 1 ? granule : 1);
    }
    return threads;
}

/* Whole warps, if the kernel asks for them, or one partial warp when there is no work for a whole one. */
static bool threads_legal(const TileRules *rules, const DeviceSpec *device, int64_t threads)
{
    if (threads > device->max_threads_per_block || (rules->most_threads && threads > rules->most_threads) ||
        threads < rules->least_threads)
        return false;
    return threads % device->warp_size == 0 || rules->ragged_warps
        || (threads < device->warp_size && useful_threads(rules) < device->warp_size);
}

/* Do enough threads share the reduction? As many as have work will do. */
static bool sharers_legal(const TileRules *rules, const RTile *shared, const RTile *inner)
{
    int64_t sharers = 1, useful = 1;
    for (int a = 0; a < rules->space->axis_count; a++)
        if (rules->space->axes[a].reduction) {
            sharers = size_product(sharers, shared->size[a] / inner->size[a]);
            useful = size_product(useful, ceil_div(rules->space->axes[a].extent, inner->size[a]));
        }
    return sharers >= rules->least_sharers || sharers >= useful;
}

/* Vectors of lines that the threads neither take together nor make up whole have an address each; else those
   of a thread lie evenly apart (tuning-log 127). */
static int64_t address_registers(const TileRules *rules, const RProgram *program)
{
    int64_t registers = 0;
    for (int i = 0; i < rules->space->tile_count; i++) {
        const DataTile *data = &rules->space->tiles[i];
        if (!data->staged || data->output || !data->staged_vector)
            continue;
        const RTile *shared = &program->tile[LEVEL_SHARED];
        int axis_count = rules->space->axis_count;
        if (!data_tile_lines_even(data, shared, axis_count, program->threads))
            registers += 2 * ceil_div(data_tile_elements(data, shared, axis_count),
                                      (int64_t)program->threads * data->staged_vector);
    }
    return registers;
}

/* Where tiles pass through registers, compilers keep addresses in what is left; with less they spill
   (tuning-log 127). */
enum { SPARE_REGISTERS = 16 };

/* Unless they are copied directly, the next tiles pass through registers on their way into the other
   buffer. */
static int64_t prefetch_registers(const TileRules *rules, const DeviceSpec *device,
                                  const RProgram *program)
{
    if (tile_buffers(rules) < 2 || !goes_through_registers(rules, device))
        return 0;
    int64_t buffer_bytes = (program->shared_bytes - rules->shared.beside) / tile_buffers(rules);
    double words = (double)ceil_div(buffer_bytes, 4 * (int64_t)program->threads);
    return (int64_t)ceil(words * (rules->held_words > 0 ? rules->held_words : 1)) + address_registers(rules, program);
}

/* As many blocks as a launch may have; and kernels whose blocks make tiles in turns count these in 32 bits. */
static bool grid_legal(const DeviceSpec *device, const RProgram *program)
{
    return program->grid <= device_most_blocks(device, program->threads) && program->dealt <= MOST_BLOCKS;
}

/* Fills all but `perf`; false with the reason if a limit is broken. Cheap checks come first. */
static bool fill_shape(const TileRules *rules, const DeviceSpec *device, const int64_t footprint[LEVEL_GLOBAL],
                       RProgram *program, PruneReason *reason)
{
    const RTile *shared = &program->tile[LEVEL_SHARED], *inner = &program->tile[LEVEL_REGISTER];
    int64_t threads = rprogram_threads(rules, shared, inner);
    *reason = PRUNE_THREADS;
    if (!threads_legal(rules, device, threads) || !sharers_legal(rules, shared, inner))
        return false;
    program->threads = (int)threads;

    program->cooperative = schedule_grid_barriers(rules->schedule) > 0;
    fill_grid(rules, device, program);
    *reason = PRUNE_GRID;
    if (!grid_legal(device, program))
        return false;

    program->shared_bytes = footprint[LEVEL_SHARED];
    *reason = PRUNE_SHARED;
    if (program->shared_bytes > device->shared_per_block_optin)
        return false;

    int64_t passing = prefetch_registers(rules, device, program);
    int64_t registers = footprint[LEVEL_REGISTER] / 4 + passing;
    *reason = PRUNE_REGISTERS;
    if (registers > device->registers_per_thread - (passing ? SPARE_REGISTERS : 0))
        return false;
    program->registers = (int)registers;
    return true;
}

/* Blocks that run together cover a square, nearly (tuning-log 40): 132 of 128 x 256 are 16 rows of 8.25,
   which read 2048 rows of one factor and 2112 columns of the other. */
static int64_t panel_rows(const TileRules *rules, const RTile *shared, double blocks)
{
    int columns = space_last_spatial(rules->space, rules->space->axis_count);
    int rows = space_last_spatial(rules->space, columns);
    if (rules->schedule->order != ORDER_PANELS || rows < 0)
        return 0;
    int64_t panel = llround(sqrt(blocks * (double)shared->size[columns] / (double)shared->size[rows]));
    return panel > 1 ? panel : 1;
}

bool rprogram_complete(const TileRules *rules, const PerfProblem *problem, const DeviceSpec *device,
                       const int64_t footprint[LEVEL_GLOBAL], RProgram *program, PruneReason *reason)
{
    if (!fill_shape(rules, device, footprint, program, reason))
        return false;

    Limiter limiter;
    int blocks = perf_blocks_per_sm(device, program->threads, program->registers,
                                    program->shared_bytes, &limiter);
    if (blocks == 0) {
        *reason = limiter == LIMIT_SHARED      ? PRUNE_SHARED
                : limiter == LIMIT_REGISTERS ? PRUNE_REGISTERS
                                             : PRUNE_THREADS;
        return false;
    }
    *reason = PRUNE_GRID;
    if (program->cooperative && program->grid > (int64_t)blocks * device->sm_count)
        return false;
    program->tile[LEVEL_GLOBAL] = problem->whole;
    program->panel = panel_rows(rules, &program->tile[LEVEL_SHARED], (double)blocks * device->sm_count);
    program->perf = device_is_bulk_synchronous(device) ? superstep_estimate(rules, program, device)
                                                       : perf_estimate(rules, problem, program, device);
    return true;
}

void rprogram_pad(const TileRules *rules, const DeviceSpec *device, RProgram *program)
{
    const RTile *shared = &program->tile[LEVEL_SHARED], *inner = &program->tile[LEVEL_REGISTER];
    for (int i = 0; i < rules->space->tile_count; i++)
        if (rules->space->tiles[i].staged)
            program->padding[i] = staged_lines(rules, &rules->space->tiles[i], shared, inner, device).padding;
}

int rprogram_least_blocks(const RProgram *program, int threads)
{
    enum { FOUR_WARPS = 128 };
    return program->perf.blocks_per_sm * threads / FOUR_WARPS * FOUR_WARPS / threads;
}
