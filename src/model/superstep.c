// One kernel = rounds of blocks, one block a unit; a block = supersteps along the reduction:
//
//     exchange   what the block needs next comes from the memories of all units, as fast as its port takes it
//     barrier    no unit computes before all have what they need
//     compute    the workers of the unit share the register tiles, and all of it lies in the unit's own memory
//
//     exchange = rounds * bytes into one block / (bandwidth / units)
//     compute  = rounds * (work of one block / (peak / units) + special functions) / share of the workers that are busy
//     local    = rounds * bytes between a unit's memory and its workers / (bandwidth / units)
//     time     = exchange + larger of (compute, local) + supersteps * (barrier + latency) + launch
//
// Phases do not overlap, so nothing hides: a tile that is large enough saves exchanges and barriers.
#include "model/superstep.h"

#include <math.h>

#include "base/checked.h"

typedef struct BlockWork {
    double points;            // of the block over the whole reduction, padding included
    double exchanged_bytes;   // that come into it
    double local_bytes;       // that its workers read and write
    double register_tiles;    // of one superstep along spatial axes: what workers share
    double steps;             // supersteps
} BlockWork;

static BlockWork block_work(const TileSpace *space, const RProgram *program, const DeviceSpec *device)
{
    const RTile *shared = &program->tile[LEVEL_SHARED], *inner = &program->tile[LEVEL_REGISTER];
    BlockWork work = {.register_tiles = rtile_tiles(space, shared, inner, false),
                      .steps = rtile_tiles(space, &program->tile[LEVEL_GLOBAL], shared, true)};
    double walks = work.register_tiles * work.steps * rtile_tiles(space, shared, inner, true);
    work.points = rtile_points(space, shared, false) * rtile_points(space, shared, true) * work.steps;
    for (int i = 0; i < space->tile_count; i++) {
        const DataTile *data = &space->tiles[i];
        double register_bytes = data_tile_bytes(data, inner, space->axis_count);
        work.local_bytes += (data->output ? work.register_tiles : walks) * register_bytes;
        if (!data->output)
            work.exchanged_bytes +=
                data_tile_visits(space, data, shared) *
                data_tile_traffic(data, shared, space->axis_count, device->dram.transaction_bytes);
    }
    return work;
}

static BoundBy longest_phase(const PerfEstimate *perf)
{
    const struct {
        BoundBy bound;
        double us;
    } phases[] = {{BOUND_COMPUTE, perf->compute_us}, {BOUND_SPECIAL, perf->special_us},
                  {BOUND_SHARED, perf->shared_us},   {BOUND_DRAM, perf->dram_us},
                  {BOUND_LATENCY, perf->latency_us}, {BOUND_LAUNCH, perf->launch_us}};
    size_t longest = 0;
    for (size_t i = 1; i < sizeof phases / sizeof *phases; i++)
        if (phases[i].us > phases[longest].us)
            longest = i;
    return phases[longest].bound;
}

/* The terms as other devices' models fill them in, so that a ranking reads alike. */
static void add_up(PerfEstimate *perf)
{
    double computing_us = fmax(perf->compute_us + perf->special_us, perf->shared_us);
    double both_us = perf->dram_us + computing_us;
    double longest_us = fmax(fmax(perf->compute_us, perf->special_us), fmax(perf->shared_us, perf->dram_us));
    perf->unhidden_us = both_us - longest_us;
    perf->wait_us = perf->latency_us;
    perf->time_us = both_us + perf->wait_us + perf->launch_us;
    perf->bound_by = longest_phase(perf);
}

PerfEstimate superstep_estimate(const KernelKind *kind, const RProgram *program, const DeviceSpec *device)
{
    const TileSpace *space = kind->space;
    BlockWork work = block_work(space, program, device);
    double units = device->sm_count, blocks = (double)program->grid, rounds = ceil(blocks / units);
    /* Seven tiles for six workers take as long as twelve. */
    double turns = rounds / work.register_tiles;
    turns *= ceil(work.register_tiles / program->threads) * program->threads;
    double wanted = rtile_points(space, &program->tile[LEVEL_GLOBAL], false) *
                    rtile_points(space, &program->tile[LEVEL_GLOBAL], true);
    PerfEstimate perf = {
        .compute_us =
            turns * work.points * point_flops(space) / (perf_unit_peak(device, space->unit) / units) / 1e3,
        .special_us = turns * work.points * space->special / (device->peak[UNIT_SFU] / units) / 1e3,
        .shared_us = rounds * work.local_bytes / (device->shared.bandwidth_gb_s / units) / 1e3,
        .dram_us = rounds * work.exchanged_bytes / (device->dram.bandwidth_gb_s / units) / 1e3,
        .supersteps = rounds * work.steps,
        .launch_us = device->launch_us,
        .dram_load_bytes = blocks * work.exchanged_bytes,
        .shared_load_bytes = blocks * work.local_bytes,
        .flops = blocks * work.points * space->flops,
        .padding_waste = 1 - wanted / (blocks * work.points),
        .waves = blocks / units,
        .tail_efficiency = blocks / (rounds * units),
        .blocks_per_sm = 1,
        .limiter = LIMIT_GRID,
    };
    perf.latency_us = perf.supersteps * (device->superstep_us + device->dram_latency_ns / 1e3);
    if (rounds > 1)
        perf_blocks_per_sm(device, program->threads, program->registers, program->shared_bytes,
                           &perf.limiter);
    add_up(&perf);
    return perf;
}
