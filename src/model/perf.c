// One kernel = blocks; a block = steps along the reduction, each loading its staged tiles; a step
// = register steps of every warp. Each term below is the time the whole kernel would take if only
// that resource were limited:
//
//     compute = register steps * cycles of one, over the schedulers   / latency hiding / balance
//               + ends of a persistent block's tiles but the last, when no warp group computes
//     special = special-function results / their rate                 / balance
//     shared  = bytes through shared memory and L1 / bandwidth        / balance
//     l2      = sum over blocks of the traffic of their tiles         / bandwidth, and what loads wait
//     start   = blocks * cycles from one block's start to the next one's
//     dram    = every byte once + re-reads that miss L2               / bandwidth, and what loads wait
//
//     time    = largest + exposed share * (sum of the others) + tail + latency + launch
//
// Blocks whose threads load once, compute once and store once overlap with other blocks only:
//
//     turn    = waiting of a block + its bytes / what one unit can draw   * rounds
//     time    = the larger one, softly, of the largest term and compute + turn; + the shorter of loads and compute of the
//               first wave, whose blocks are in phase; + first load + launch
//
// Where they do so in each of many steps, what brings elements from memory overlaps with what computes on them:
//
//     time    = the larger one, softly, of (dram, l2, waiting between blocks) and (compute + special + what is read again
//               from L1), at least what one warp takes alone; + latency + launch
//
// Everything is a monotone function of the device's numbers: half the bandwidth, twice the term.
#include "model/perf.h"

#include <math.h>

#include "base/checked.h"
#include "kernel/layout.h"
#include "model/perf_counts.h"

const char *const limiter_name[] = {
    [LIMIT_THREADS] = "threads",      [LIMIT_BLOCKS] = "blocks", [LIMIT_REGISTERS] = "registers",
    [LIMIT_SHARED] = "shared memory", [LIMIT_GRID] = "grid",
};

const char *const bound_name[] = {
    [BOUND_COMPUTE] = "compute", [BOUND_SPECIAL] = "special", [BOUND_SHARED] = "shared",
    [BOUND_L2] = "l2",           [BOUND_DRAM] = "dram",       [BOUND_START] = "block start",
    [BOUND_LATENCY] = "latency", [BOUND_LAUNCH] = "launch",
};

// ---- memory time ----

/* Little's law with a soft knee (tuning-log 9). Loads are bound by the bytes in flight and the latency, and all bytes by the
   bandwidth. The first latency is that of the first load, with which every kernel begins (tuning-log 268). Stores expose none. */
static double memory_time_us(double moving_us, double load_bytes, double in_flight_bytes, double latency_ns)
{
    double latencies = in_flight_bytes > 0 ? at_least(load_bytes / in_flight_bytes - 1, 0) : 0;
    return hypot(moving_us, latencies * latency_ns / 1e3);
}

static double dram_time_us(const KernelCounts *kernel, double load_bytes, double store_bytes)
{
    double share = kernel->cost->by_pieces ? kernel->device->dram_pieces_share : 1;
    double moving_us = (load_bytes + store_bytes) / share / kernel->device->dram.bandwidth_gb_s / 1e3;
    return memory_time_us(moving_us, load_bytes, kernel->in_flight_bytes, kernel->device->dram_latency_ns);
}

static double l2_time_us(const KernelCounts *kernel, double load_bytes, double store_bytes)
{
    const DeviceSpec *device = kernel->device;
    double moving_us = (load_bytes + store_bytes) / device->l2.bandwidth_gb_s / 1e3 + kernel->hottest_us;
    /* Warps with pipelines of their own draw what a port carries: as much as bulk copies (tuning-log 270). */
    bool own = kernel->kind->schedule->independent;
    double share = own ? 1 / calibration.bulk.read_share : device->l2_port_share;
    double ports = at_most(share * kernel->blocks / device->sm_count, 1);
    double waiting_us = memory_time_us(moving_us, load_bytes, kernel->l2_in_flight_bytes, device->l2_latency_ns);
    return at_least(waiting_us, moving_us / ports);
}

// ---- the sum ----

/* Warps that synchronise with no others. */
static bool warps_drift(const KernelCounts *kernel)
{
    return kernel->cost->drifts || (!kernel->staged && kernel->cost->pace == PACE_FREE);
}

/* The share of the shorter terms that does not overlap with the longest. An SM has c buffers (staged) or warps (otherwise).
   With c = 1 loads and arithmetic alternate; with more they collide in one of c * c cases. Warps that drift have random
   phases: how many use one resource at a time varies by the root of their number (tuning-log 164). */
static double exposed_share(const KernelCounts *kernel)
{
    double concurrent = kernel->resident * (kernel->staged ? kernel->stages : kernel->warps);
    if (warps_drift(kernel))
        return 1 / sqrt(concurrent);
    if (kernel->staged && kernel->stages == 1 && kind_passes_registers(kernel->kind, kernel->device))
        return 1 / concurrent;
    return at_least(1 / (concurrent * concurrent), calibration.least_exposed);
}

/* Threads that combine their partial results. 1: there are none, or `sum_cycles` has what combining costs. */
static double threads_along_reduction(const KernelCounts *kernel)
{
    if (!kernel->space->least_reducers || kernel->cost->sum_cycles > 0)
        return 1;
    return rtile_tiles(kernel->space, kernel->shared, kernel->inner, true);
}

/* Warp groups that split a reduction: each writes the sums of the whole tile to shared memory, from where they are read.
   Single warps have too few rows for that to matter. */
static double combining_us(const KernelCounts *kernel)
{
    const double SUM_BYTES = 4;
    bool groups = kind_tile_threads(kernel->kind) > kernel->device->warp_size;
    if (!groups || !kernel->problem->schedule.combines_rows)
        return 0;
    double splits = rtile_tiles(kernel->space, kernel->shared, kernel->inner, true),
           sums = splits * rtile_points(kernel->space, kernel->shared, false);
    return 2 * sums * SUM_BYTES * kernel->device->sm_count / kernel->device->shared.bandwidth_gb_s / 1e3;
}

/* Latency of the load of a step. Asynchronous copies also wait for each other. Groups that split columns wait for the
   tile of one product, while the other one's comes (tuning-log 280). */
static double step_load_us(const KernelCounts *kernel)
{
    const DeviceSpec *device = kernel->device;
    double port_gb_s = device->l2_port_share * device->l2.bandwidth_gb_s / device->sm_count;
    if (kernel->problem->schedule.rounds_ahead == 0)
        return device->dram_latency_ns / 1e3;
    return device->dram_latency_ns / 1e3 + device->timing.copy_wait_us +
           kernel->staged_bytes / (combining_us(kernel) > 0 ? 2 : 1) / port_gb_s / 1e3;
}

/* Each thread loads the next step, multiplies this one, and stores what has arrived: no step is shorter than that, however
   few of an SM's blocks there are to share it (tuning-log 201 and 217). */
static bool loads_next_step(const KernelCounts *kernel)
{
    return kernel->kind->registers.held_words > 0 && !copies_ahead(kernel);
}

/* The part of each step's load latency that neither the other stages nor the other blocks hide. Loads of several steps in
   flight are waited for one after the other. A warp with a pipeline of its own issues the copies of a later step when those
   of this step have arrived: half a step less is in flight; of clusters, which few rows have, none of that shows (tuning-log 270). */
static double uncovered_time_us(const KernelCounts *kernel, double step_us)
{
    if (loads_next_step(kernel))
        return at_least(own_step_us(kernel, step_load_us(kernel)) - step_us, 0);
    double covering = kernel->ahead + (kernel->resident - 1) / kernel->resident;
    covering -= kernel->kind->schedule->independent && kernel->cluster == 1 ? 0.5 : 0;
    double load_us = step_load_us(kernel);
    return at_least(covering > 1 ? load_us / covering - step_us : load_us - step_us * covering, 0);
}

/* Of the block's tile, as far as rows exist. */
static double existing_points(const KernelCounts *kernel)
{
    RTile tile = *kernel->shared;
    for (int a = 0; a < kernel->space->axis_count; a++)
        tile.size[a] = smaller(tile.size[a], kernel->space->axes[a].extent);
    return rtile_points(kernel->space, &tile, false);
}

/* Cycles of a tile's end for each sum of a thread. What cuts rows waits after every few instructions: of tiles
   of one step a sum took 81 with three warps a scheduler, 55 with two. */
static double sum_cycles(const KernelCounts *kernel)
{
    const double CUT = 12.2;   // counted in SASS of bulk: 390 for 32 sums
    if (kernel->cost->sum_cycles <= 0 || !kernel->problem->schedule.cuts_rows)
        return kernel->cost->sum_cycles;
    double warps = at_least(ceil(kernel->warps / kernel->device->schedulers_per_sm), 2);   // of one nothing was timed alone
    return CUT * calibration.finding_cycles * warps;
}

/* Of a value that others left in shared memory a load, an addition, a store: counted in SASS of filter_strip,
   45 for 9 taps, 333 for 81. */
static double value_cycles(void) { return 4.1 * calibration.finding_cycles; }

/* The end of a tile, where the warps of a block reduce and store their sums, in a cluster those of their rows: code
   that runs once. Warps that split the columns leave all; all threads make those of rows that exist (tuning-log 270). */
static double end_time_us(const KernelCounts *kernel)
{
    double cycles = 0, sums = rtile_points(kernel->space, kernel->inner, false) / kind_tile_threads(kernel->kind);
    if (kernel->kind->schedule->independent) {
        sums /= kernel->warps;
        cycles = existing_points(kernel) / kernel->device->warp_size * value_cycles();
    } else if (kernel->problem->schedule.passes_rows)
        sums /= kernel->cluster;
    cycles += sums * sum_cycles(kernel);
    return cycles / kernel->device->clock_mhz + finishing_us(kernel) + combining_us(kernel);
}

/* Warps add their sums to those in shared memory one after the other. */
static double turns_us(const KernelCounts *kernel)
{
    const Schedule *schedule = kernel->kind->schedule;
    double wait_cycles = kernel->device->timing.barrier_cycles + kernel->device->timing.operand_cycles, cycles = 0;
    for (const Item *item = NULL; (item = schedule_next(schedule, ITEM_EXCHANGE, item));)
        if (item->exchange.combine == COMBINE_TURNS)
            cycles += kernel->warps * (item->exchange.values * value_cycles() + wait_cycles);
    return cycles / kernel->device->clock_mhz * (1 + (kernel->rounds - 1) / kernel->resident);
}

/* Staged products whose blocks compute one tile: no warp of a block multiplies while others store. */
static bool stores_behind_products(const KernelCounts *kernel)
{
    const ScheduleFacts *schedule = &kernel->problem->schedule;
    return kernel->staged && !schedule->is_persistent && schedule->multiplies;
}

/* Ends of all tiles of a persistent block but the last. Where other warp groups multiply in that time, only what takes
   longer is exposed. */
static double ends_time_us(const KernelCounts *kernel, double multiplying_us)
{
    if (stores_behind_products(kernel))
        return 0;
    int others = schedule_makers(kernel->kind->schedule) - 1;
    double hidden_us = others * multiplying_us / kernel->rounds;
    return (kernel->rounds - 1) * at_least(kernel->end_us - hidden_us, 0);
}

/* Exposed latencies of a tile that the epilogue loads: one for each part that registers hold; or, where such a part was loaded
   before the products, one for each slab of the rest (tuning-log 166 and 196). */
static double waits_for(const KernelCounts *kernel, const DataTile *data, const Move *move)
{
    double elements = rtile_points(kernel->space, kernel->inner, false) / kind_tile_threads(kernel->kind),
           held = move->held * 8.0 / data->element_bits;
    if (move->ahead)
        return at_least(ceil((elements - held) / move->each), 0);
    return held > 0 ? ceil(elements / held) : 1;
}

/* Exposed latencies of the epilogue's loads that only one block reads. */
static double waits_beside(const KernelCounts *kernel)
{
    double waits = 0;
    for (const Item *load = NULL; (load = schedule_next(kernel->kind->schedule, ITEM_LOAD, load));)
        for (int t = 0; t < kernel->space->tile_count; t++)
            if (load->move.tiles >> t & 1 && kernel->space->tiles[t].beside && is_read_once(kernel, &kernel->space->tiles[t]))
                waits = at_least(waits_for(kernel, &kernel->space->tiles[t], &load->move), waits);
    return waits;
}

/* Iterations in each of which a thread waits for its loads: their latencies, as far as they exceed the time
   by bandwidth (tuning-log 149). Of 112 loads of a loop of windows 4 to 9 are in flight (SASS). Warps that share
   lines are abreast and wait for the same, so L1 hides nothing. A wait is as long as the slowest load: where
   memory answers one in ten, half of the waits are for it. */
static double waiting_rounds_us(const KernelCounts *kernel, const PerfEstimate *perf, double throughput_us)
{
    enum { IN_FLIGHT = 6 };
    const Loop *loop = kernel->problem->schedule.waiting_loop;
    if (!loop)
        return 0;
    double loads = 0, from_l2 = 1 - at_most(perf->dram_load_bytes / at_least(perf->l2_load_bytes, 1), 1),
           rounds = (double)ceil_div(kernel->shared->size[loop->axis], kernel->inner->size[loop->axis]);
    const TileSpace *space = kernel->space;
    for (int i = 0; i < space->tile_count; i++)
        if (!space->tiles[i].output)
            loads += (double)data_tile_distinct(&space->tiles[i], kernel->inner, space->axis_count);
    double fast = pow(from_l2, at_most(loads, IN_FLIGHT)), waits = rounds * at_least(loads / IN_FLIGHT, 1),
           each_ns = fast * kernel->device->l2_latency_ns + (1 - fast) * kernel->device->dram_latency_ns;
    return at_least(kernel->rounds * kernel->steps * waits * each_ns / 1e3 - throughput_us, 0);
}

/* Until the first stage has arrived. Threads that copy several steps ahead issue all copies before the loop one after the
   other; the first may arrive before the last is issued. */
static double first_load_us(const KernelCounts *kernel)
{
    double latency_us = kernel->device->dram_latency_ns / 1e3;
    if (!copies_ahead(kernel))
        return latency_us;
    double each_us = issuing_us(kernel);
    return setup_us(kernel) + at_least(each_us + latency_us, each_us * kernel->ahead);
}

/* Blocks of a cluster whose warp groups leave sums in place of tiles: others read them there. */
static bool reads_slabs(const KernelCounts *kernel)
{
    return kernel->cluster > 1 && kind_tile_threads(kernel->kind) > kernel->device->warp_size;
}

/* Sums that a block sends to others of its cluster, or reads; where warps have pipelines of their own, of existing rows. */
static double sums_passed(const KernelCounts *kernel)
{
    double groups = rtile_tiles(kernel->space, kernel->shared, kernel->inner, true);
    if (kernel->kind->schedule->independent)
        return existing_points(kernel);
    double share = reads_slabs(kernel) ? groups * (kernel->cluster - 1) / kernel->cluster : 1;
    return rtile_points(kernel->space, kernel->shared, false) * share;
}

/* What passes registers to shared memory some elements at a time: a thread waits for each of these groups before it
   multiplies. Other blocks multiply meanwhile. */
static double passing_us(const KernelCounts *kernel, double step_us)
{
    const TileSpace *space = kernel->space;
    double threads = kernel->register_tiles * kind_tile_threads(kernel->kind), groups = 0;
    for (const Item *load = NULL; (load = schedule_next(kernel->kind->schedule, ITEM_LOAD, load));) {
        const Move *move = &load->move;
        bool passes = move->to == PLACE_SHARED && move->each;
        for (int t = 0; passes && t < space->tile_count; t++)
            if (move->tiles >> t & 1)
                groups += ceil(kernel->bytes[t].elements / (threads * move->each));
    }
    return at_least(groups * kernel->device->dram_latency_ns / 1e3 - step_us * (1 - 1 / kernel->resident), 0);
}

/* Groups of threads that have parts of a column: shuffles across those of a warp; then, between two barriers, some
   threads read the warps' results one after the other, and all read what comes of them (tuning-log 270). */
static double columns_us(const KernelCounts *kernel)
{
    const Timing *timing = &kernel->device->timing;
    double cycles = 0;
    for (const Item *item = NULL; (item = schedule_next(kernel->kind->schedule, ITEM_EXCHANGE, item));) {
        const Exchange *exchange = &item->exchange;
        if (exchange->combine != COMBINE_COLUMNS)
            continue;
        double of_warp = at_most(exchange->parts, (double)kernel->device->warp_size / exchange->width);
        cycles += log2(at_least(of_warp, 1)) * (timing->operand_cycles + DEPENDENT_CYCLES);
        if (exchange->scope == SCOPE_BLOCK)
            cycles += 2 * (timing->barrier_cycles + timing->operand_cycles + kernel->warps * DEPENDENT_CYCLES) +
                      kernel->warps * value_cycles();
    }
    return cycles / kernel->device->clock_mhz;
}

/* Latency that no bandwidth explains: the first load; in each step the barriers, and the part of a load's latency that is
   not hidden; at the end the pairwise reduction of the threads' partial results, and the epilogue. */
static double latency_time_us(const KernelCounts *kernel, const PerfEstimate *perf, double throughput_us)
{
    const Timing *timing = &kernel->device->timing;
    double load_us = kernel->device->dram_latency_ns / 1e3;
    double barrier_us = timing->barrier_cycles / kernel->device->clock_mhz / kernel->resident;
    double combine_us = columns_us(kernel);
    if (combine_us == 0)
        combine_us = ceil(log2(threads_along_reduction(kernel))) * barrier_us;
    bool passes = kernel->problem->schedule.passes_rows;
    bool slabs = reads_slabs(kernel);
    bool aside = passes && kind_tile_threads(kernel->kind) > 1 && !slabs;   // single threads leave sums there, too
    /* Before sums are read; before that or after it, too, where others use the same memory. Clusters of more blocks
       than are portable take as much more (tuning-log 270). */
    bool large = kernel->cluster > device_portable_cluster_blocks(kernel->device);
    if (kernel->cluster > 1)
        combine_us += ((aside ? 1 : 2) + large) * timing->cluster_barrier_us;
    if (slabs && kernel->kind->schedule->computes == COMPUTES_OWN)   // rows of others, then sums
        combine_us += 2 * kernel->device->l2_latency_ns / 1e3;
    if (kernel->cluster > 1 && passes)
        combine_us += kernel->resident * sums_passed(kernel) * 4 / kernel->device->exchange_gb_s / 1e3;
    if (kernel->cost->pace == PACE_IN_STEP)
        combine_us += timing->block_wait_us + load_us;
    combine_us += waits_beside(kernel) * kernel->device->dram_latency_ns / 1e3;
    load_us = first_load_us(kernel) + kernel->end_us + turns_us(kernel);
    if (kernel->steps == 1 && !kernel->problem->schedule.multiplies)   // that copies once: all groups but the first
        load_us += kernel->rounds * at_least(passing_us(kernel, 0) - kernel->device->dram_latency_ns / 1e3, 0);
    if (!kernel->staged)
        return load_us + kernel->rounds * combine_us + waiting_rounds_us(kernel, perf, throughput_us);

    double step_us = throughput_us / (kernel->rounds * kernel->steps);
    double uncovered_us = uncovered_time_us(kernel, step_us) + passing_us(kernel, step_us);
    double barriers_us = kernel->kind->schedule->independent ? 0 : barrier_us * (kernel->stages > 1 ? 1 : 2);
    double steps = kernel->rounds * kernel->steps;
    return load_us + steps * barriers_us + (steps - 1) * uncovered_us + kernel->rounds * combine_us;
}

/* Blocks of a cluster find places that become free at independent times. The mean time until the last of them is free, as a
   multiple of that of one. */
static double last_of(double places)
{
    double times = 0;
    for (int i = 1; i <= places; i++)
        times += 1.0 / i;
    return times;
}

/* Of a block that loads in rounds: until all of its loads have arrived, but for the first. */
static double rounds_wait_us(const KernelCounts *kernel)
{
    const Schedule *schedule = kernel->kind->schedule;
    const Loop *loop = NULL;
    double wait_us = 0;
    for (int i = 0; i < schedule->count; i++) {
        const Item *item = &schedule->items[i];
        if (item->kind == ITEM_LOOP || item->kind == ITEM_END)
            loop = item->kind == ITEM_LOOP && item->loop.at_once ? &item->loop : NULL;
        if (item->kind == ITEM_LOAD && loop && item->move.from == PLACE_MEMORY)
            wait_us += (double)ceil_div(loop->times, loop->at_once) *
                       (item->move.again ? kernel->device->l2_latency_ns : kernel->device->dram_latency_ns) / 1e3;
    }
    return at_least(wait_us - kernel->device->dram_latency_ns / 1e3, 0);
}

/* Until threads of the first wave have each other's results; later ones wait beside others. Shuffles across a warp;
   where several warps have a row a barrier, and the results of all, of more than eight by shuffles again
   (tuning-log 268). Clusters meet in each wave. */
static double exchanges_us(const KernelCounts *kernel)
{
    const Timing *timing = &kernel->device->timing;
    double cycles = 0, meeting_us = 0;
    for (const Item *item = NULL; (item = schedule_next(kernel->kind->schedule, ITEM_EXCHANGE, item));) {
        const Exchange *exchange = &item->exchange;
        double shuffles = log2(at_least(exchange->width, 1)) * (timing->operand_cycles + DEPENDENT_CYCLES);
        double others = exchange->parts > FEW_WARPS ? shuffles : exchange->parts * DEPENDENT_CYCLES;
        cycles += shuffles;
        if (exchange->scope == SCOPE_BLOCK)
            cycles += timing->barrier_cycles + timing->operand_cycles + others;
        meeting_us += exchange->scope == SCOPE_CLUSTER ? timing->cluster_barrier_us : 0;
    }
    return cycles / kernel->device->clock_mhz + kernel->rounds * meeting_us;
}

/* Latency of blocks that load, compute and store once. Copies that are waited for in between take longer, and all blocks of
   a cluster wait for them; copies that are prefetched a tile ahead take nothing. The launch has the start of the first
   blocks and the end of the last (tuning-log 132). */
static double turn_time_us(const KernelCounts *kernel, double l2_us)
{
    const DeviceSpec *device = kernel->device;
    double wait_us = device->dram_latency_ns / 1e3 + rounds_wait_us(kernel);
    double others_us = exchanges_us(kernel) + (kernel->rounds - 1) * device->timing.block_wait_us * last_of(kernel->cluster);
    if (schedule_reads_late(kernel->kind->schedule)) {   // blocks behind the first ones find most of it in L1
        wait_us += device->l2_latency_ns / 1e3;
        double waits = ceil(kernel->kind->schedule->vectors / 2.0);   // those of two vectors come before a store
        others_us += (waits - 1) * device->dram_latency_ns / 1e3;
    }
    if (schedule_loads_ahead(kernel->kind->schedule))
        return kernel->rounds * wait_us + others_us;
    if (kernel->staged)
        wait_us += device->timing.copy_wait_us;
    return kernel->rounds * wait_us + others_us + l2_us / device->l2_port_share / kernel->resident;
}

/* Two times that overlap in part: the larger for a large knee, their sum for 1. */
static double soft_max(double a_us, double b_us, double knee)
{
    return pow(pow(a_us, knee) + pow(b_us, knee), 1 / knee);
}

/* Blocks that multiply what they staged once. Those of the first wave load together, then multiply together; of later waves R blocks
   of an SM hide all but an R-th of the shorter time: of five waves of four blocks 4/5 * 3/4 of it (tuning-log 254). */
static bool stages_once(const KernelCounts *kernel)
{
    const KindCost *cost = kernel->cost;
    return cost->pace == PACE_BY_STEPS && !cost->drifts && !cost->from_shared && kernel->staged && kernel->steps <= 1 &&
           kernel->problem->schedule.multiplies;
}

/* Of a block that loads, multiplies and stores once, as every kernel does that does so: until it has begun, synchronised and ended. */
static double once_us(const KernelCounts *kernel)
{
    return kernel->device->timing.block_wait_us + kernel->device->timing.copy_wait_us;
}

/* What warps make of sums, as far as it shows beside products: it overlaps the stores of earlier ones. */
static double ends_made_us(const KernelCounts *kernel, const PerfEstimate *perf)
{
    KernelCounts products = *kernel;
    double steps = kernel->steps * kernel->inner_steps;
    products.step_instructions -= kernel->problem->thread_instructions / steps;
    return perf->compute_us - compute_time_us(&products);
}

/* Reads from memory pass L1 while the warps wait for them; repeated reads from L1 belong to the arithmetic, beside which those of
   warps that drift overlap (tuning-log 195). From a block's last load to the first one of the block that takes its place, fewer
   loads are in flight. Warps that multiply what they load meet no others before the end: what their loads, their products, L1 and
   each of them alone take overlaps as what is in flight does with the bandwidth (tuning-log 253). */
static double steps_time_us(const KernelCounts *kernel, const PerfEstimate *perf)
{
    double again = 1 - at_most(perf->line_load_bytes / at_least(perf->shared_load_bytes, 1), 1);
    double own_us = perf->compute_us + perf->special_us, again_us = again * perf->shared_us;
    double exposed = kernel->cost->drifts ? exposed_share(kernel) : 1;
    double computing_us = at_least(own_us, again_us) + exposed * at_most(own_us, again_us);
    double knee = kernel->cost->drifts ? calibration.knee : 1;
    double between_us = at_least(perf->waves - 1, 0) * kernel->device->timing.block_wait_us,
           loading_us = at_least(perf->dram_us, perf->l2_us) * kernel->alone;
    if (kernel->problem->schedule.multiplies && !kernel->staged)
        return hypot(hypot(loading_us, own_us), hypot(again_us, own_steps_us(kernel))) + between_us;
    loading_us = hypot(loading_us, between_us);
    if (!stages_once(kernel))
        return soft_max(soft_max(loading_us, computing_us, knee), own_steps_us(kernel), calibration.knee);
    double hidden = (1 - 1 / kernel->resident) * (1 - 1 / at_least(perf->waves, 1)),
           made_us = ends_made_us(kernel, perf),
           storing_us = loading_us * perf->l2_store_bytes / (perf->l2_store_bytes + perf->l2_load_bytes),
           beside_us = made_us + storing_us - hypot(made_us, storing_us),
           shorter_us = at_most(loading_us, computing_us),
           both_us = loading_us + computing_us - at_least(hidden * shorter_us, beside_us);
    return soft_max(both_us, own_steps_us(kernel), calibration.knee);
}

/* Of what a block does while it multiplies nothing, what shows beside the products: phases are random, and R blocks of an SM hide
   all but an R-th of the shorter time (tuning-log 163). */
static double shown_us(const KernelCounts *kernel, double alone_us, double products_us)
{
    return alone_us - (1 - 1 / kernel->resident) * at_most(alone_us, products_us);
}

/* Stores of sums, as far as they take longer than their instructions. */
static double stores_us(const KernelCounts *kernel)
{
    double moving_us = kernel->busy_dram_bytes / kernel->device->dram.bandwidth_gb_s / 1e3;
    return at_least(moving_us - kernel->rounds * kernel->end_us, 0);
}

/* From a block's start to its first product, and from its last product to its end. The launch has it once. Blocks of one step
   wait as all do that load, compute and store once. */
static double between_us(const KernelCounts *kernel)
{
    double waves = kernel->blocks / (kernel->resident * kernel->device->sm_count);
    bool slabs = reads_slabs(kernel);   // of a cluster that waits until all of its places are free
    double once = slabs || kernel->steps <= 1 ? once_us(kernel) : 0;
    return at_least((slabs ? kernel->rounds : waves) - 1, 0) *
           (own_setup_us(kernel) + first_load_us(kernel) + kernel->end_us + once);
}

static double largest_us(const double *terms_us, int count, double *sum_us)
{
    double largest_us = 0;
    *sum_us = 0;
    for (int i = 0; i < count; i++) {
        *sum_us += terms_us[i];
        largest_us = at_least(largest_us, terms_us[i]);
    }
    return largest_us;
}

/* The products with their loads, then the stores. Where products wait for operands from shared memory, its bandwidth
   costs nothing beside them but a bound (tuning-log 195 and 266). */
static double products_time_us(const KernelCounts *kernel, const PerfEstimate *perf)
{
    bool waits = kernel->cost->from_shared;
    const double terms_us[] = {
        waits ? at_least(perf->compute_us, perf->shared_us) : perf->compute_us,
        waits ? 0 : perf->shared_us,
        perf->special_us,
        l2_time_us(kernel, perf->l2_load_bytes, 0),
        dram_time_us(kernel, perf->dram_load_bytes, 0),
        perf->start_us,
    };
    double sum_us, most_us = largest_us(terms_us, sizeof terms_us / sizeof *terms_us, &sum_us);
    double products_us = most_us + exposed_share(kernel) * (sum_us - most_us);
    return products_us + shown_us(kernel, between_us(kernel), products_us) + shown_us(kernel, stores_us(kernel), products_us);
}

/* What of an SM loads, waits and computes independently: warps that exchange nothing with others, blocks, or clusters. */
static double independent_parts(const KernelCounts *kernel)
{
    bool of_warps = !kernel->staged;
    for (const Item *item = NULL; (item = schedule_next(kernel->kind->schedule, ITEM_EXCHANGE, item));)
        of_warps &= item->exchange.scope == SCOPE_WARP;
    return of_warps ? kernel->resident * kernel->warps : at_least(kernel->resident / kernel->cluster, 1);
}

/* Blocks that start together load together, then compute together: of the first wave the shorter of both shows, but for what
   independent parts of an SM hide of each other. */
static double first_wave_us(const KernelCounts *kernel, const PerfEstimate *perf)
{
    double shorter_us = at_most(at_least(perf->dram_us, perf->l2_us), perf->compute_us);
    return shorter_us / at_least(perf->waves, 1) / sqrt(independent_parts(kernel));
}

/* Blocks whose threads load once, then compute their own outputs. Of R blocks of an SM in random phases, the share that does the same
   varies by the root of R: so much more of the shorter of both shows (tuning-log 236). Warps of a block load together (268). */
static double once_shown_us(const KernelCounts *kernel, const PerfEstimate *perf)
{
    const Schedule *schedule = kernel->kind->schedule;
    bool multiplies = kernel->problem->schedule.multiplies;
    bool once = kernel->staged ? kernel->stages == 1 && kernel->steps == 1 && !multiplies
                               : warps_drift(kernel) && !schedule_next(schedule, ITEM_LOOP, NULL);
    for (const Item *item = NULL; (item = schedule_next(schedule, ITEM_EXCHANGE, item));)
        once &= item->exchange.combine == COMBINE_NOTHING;
    if (!once)
        return 0;
    double own_us = kernel->staged ? at_least(perf->compute_us, perf->shared_us) : perf->compute_us,
           share = 1 / sqrt(kernel->resident);
    share = kernel->staged ? calibration.once_exposed * share : share - exposed_share(kernel);
    return share * at_most(at_least(perf->dram_us, perf->l2_us), own_us);
}

/* All terms, by how loads and arithmetic of the kernel's warps overlap. At least the largest. */
static double both_time_us(const KernelCounts *kernel, const PerfEstimate *perf, double largest_us, double sum_us)
{
    if (kernel->cost->pace == PACE_IN_TURN) {   // both begin with the first load, which is counted apart
        double load_us = kernel->device->dram_latency_ns / 1e3;
        return soft_max(largest_us + load_us, perf->compute_us + perf->latency_us, calibration.knee) - load_us +
               first_wave_us(kernel, perf);
    }
    if (kernel->cost->pace == PACE_BY_STEPS)
        return at_least(steps_time_us(kernel, perf), largest_us);
    if (stores_behind_products(kernel))
        return at_least(products_time_us(kernel, perf), largest_us);
    double first_us = kernel->cost->pace == PACE_IN_STEP ? first_wave_us(kernel, perf) : 0;
    return largest_us + at_least(exposed_share(kernel) * (sum_us - largest_us), first_us) + once_shown_us(kernel, perf);
}

/* The largest term, and the exposed part of the others. */
static double throughput_time_us(const KernelCounts *kernel, PerfEstimate *perf)
{
    const double terms_us[] = {
        perf->compute_us, perf->special_us, perf->shared_us, perf->l2_us, perf->dram_us, perf->start_us,
    };
    double sum_us, most_us = largest_us(terms_us, sizeof terms_us / sizeof *terms_us, &sum_us);
    double both_us = both_time_us(kernel, perf, most_us, sum_us);
    perf->unhidden_us = both_us - most_us;
    return both_us;
}

static BoundBy largest_term(const PerfEstimate *perf)
{
    const double terms_us[] = {
        [BOUND_COMPUTE] = perf->compute_us, [BOUND_SPECIAL] = perf->special_us,
        [BOUND_SHARED] = perf->shared_us,   [BOUND_L2] = perf->l2_us,
        [BOUND_DRAM] = perf->dram_us,       [BOUND_START] = perf->start_us,
        [BOUND_LATENCY] = perf->latency_us, [BOUND_LAUNCH] = perf->launch_us,
    };
    BoundBy bound = BOUND_COMPUTE;
    for (BoundBy i = BOUND_COMPUTE; i <= BOUND_LAUNCH; i++)
        if (terms_us[i] > terms_us[bound])
            bound = i;
    return bound;
}

static void estimate_work(const KernelCounts *kernel, PerfEstimate *perf)
{
    double wanted = all_points(kernel->space, &kernel->problem->whole);
    double done = all_points(kernel->space, &kernel->padded) * kernel->visited;
    perf->flops = done * kernel->space->flops;
    perf->instructions = done * kernel->space->instructions;
    perf->padding_waste = 1 - wanted * kernel->visited / done;
}

PerfEstimate perf_estimate(const KernelKind *kind, const PerfProblem *problem, const RProgram *program,
                           const DeviceSpec *device)
{
    PerfEstimate perf = {0};
    bool in_turn = perf_cost(kind)->pace == PACE_IN_TURN;
    perf.blocks_per_sm = perf_blocks_per_sm(device, program->threads, program->registers,
                                            program->shared_bytes, &perf.limiter);
    KernelCounts kernel;
    kernel_counts(&kernel, kind, problem, program, device, perf.blocks_per_sm);
    count_instructions(&kernel);
    if (kernel.resident < perf.blocks_per_sm)
        perf.limiter = LIMIT_GRID;
    perf.waves = (double)program->dealt / (perf.blocks_per_sm * (double)device->sm_count);
    perf.tail_efficiency = kernel.balance;

    kernel.end_us = end_time_us(&kernel);
    estimate_work(&kernel, &perf);
    estimate_traffic(&kernel, &perf);
    perf.compute_us = compute_time_us(&kernel);
    perf.compute_us += ends_time_us(&kernel, perf.compute_us);
    perf.special_us = special_time_us(&kernel);
    perf.shared_us = (perf.shared_load_bytes + perf.shared_store_bytes) / device->shared.bandwidth_gb_s / 1e3 / kernel.balance;
    /* Threads that iterate down an image store their channels each; warps collect those of their block. */
    const Move *store = problem->schedule.last_store;
    bool counted = store && store->accesses > 0;
    for (int i = 0; i < kernel.space->tile_count; i++)
        counted |= kernel.space->tiles[i].parts > 0;
    bool in_parts = counted             ? true
                    : kernel.cost->drifts ? kind_tile_threads(kind) == 1
                    : kernel.staged     ? problem->schedule.multiplies
                                        : kernel.cost->parts_of_rows;
    double stored_bytes = in_parts ? kernel.busy_l2_bytes : 0;
    perf.l2_us = l2_time_us(&kernel, perf.l2_load_bytes, at_least(stored_bytes, perf.l2_store_bytes));
    bool parts_reach_dram = in_parts && !(store && store->completed);
    perf.dram_us = dram_time_us(&kernel, perf.dram_load_bytes,
                                parts_reach_dram ? kernel.busy_dram_bytes : perf.dram_store_bytes);

    perf.start_us = kernel.blocks * device->timing.block_start_cycles / device->clock_mhz;
    if (in_turn)
        perf.latency_us = turn_time_us(&kernel, perf.l2_us);
    double throughput_us = throughput_time_us(&kernel, &perf);
    if (kernel.cost->drifts)   // blocks that start together end at any time within that of one: SMs idle for half of it
        perf.tail_us = throughput_us / at_least(perf.waves, 1) / 2;
    throughput_us += perf.tail_us;
    if (!in_turn)
        perf.latency_us = latency_time_us(&kernel, &perf, throughput_us);
    if (stages_once(&kernel))
        perf.latency_us += once_us(&kernel);
    perf.launch_us = device->launch_us;
    perf.wait_us = in_turn ? device->dram_latency_ns / 1e3 : perf.latency_us;
    perf.time_us = throughput_us + perf.wait_us + perf.launch_us;
    perf.overlap_us = device->has.early_launches && throughput_us < device->launch_us ? device->early_launch_us : 0;
    perf.bound_by = largest_term(&perf);
    return perf;
}
