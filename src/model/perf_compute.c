// Arithmetic of the warps: instructions of a register step, the cycles that they keep a scheduler busy, and how well
// other warps hide the latency of one.
#include <math.h>

#include "base/checked.h"
#include "model/perf_counts.h"

/* Instructions of one thread before its first copy and its first product: the position of its tile, addresses, zeroed
   accumulators. Counted in SASS of gemm kernels: 138 to 181. */
static const double SETUP_INSTRUCTIONS = 160;

/* Flop (or results) of one lane of one instruction: a fused multiply-add, or a lane's share of the
   smallest mma that feeds the unit: m16n8k16 is 4096 flop for 32 lanes. */
static const double flop_per_lane[UNIT_COUNT] = {
    [UNIT_FP32] = 2,          [UNIT_FP64] = 2,          [UNIT_INT32] = 2,
    [UNIT_SFU] = 1,           [UNIT_TENSOR_F16] = 128,  [UNIT_TENSOR_BF16] = 128,
    [UNIT_TENSOR_TF32] = 64,  [UNIT_TENSOR_F64] = 16,   [UNIT_TENSOR_I8] = 256,
    [UNIT_WGMMA_F16] = 4096,   // m64n256k16 by 128 lanes
    [UNIT_WGMMA_BF16] = 4096, [UNIT_WGMMA_TF32] = 2048, [UNIT_WGMMA_I8] = 8192,
};

double perf_unit_peak(const DeviceSpec *device, Unit unit)
{
    return device->peak[unit] > 0 ? device->peak[unit] : device->peak[UNIT_FP32];
}

/* Contiguous elements of a thread are read by accesses of a power of two that divides their number: five take five. */
static double group_loads(const KernelCounts *kernel, const DataTile *data)
{
    int64_t elements = data_tile_elements(data, kernel->inner, kernel->space->axis_count);
    int64_t group = (int64_t)VECTOR_BYTES * 8 / data->staged_bits;
    return (double)(elements / greatest_common_divisor(elements, group));
}

/* Loads of one register step; a tile that the reduction does not move is read in one of them. */
static double load_instructions(const KernelCounts *kernel)
{
    double loads = 0;
    for (int i = 0; i < kernel->space->tile_count; i++) {
        const DataTile *data = &kernel->space->tiles[i];
        double each_bytes = data->staged ? VECTOR_BYTES : load_bytes(data);
        if (!data->output)
            loads += (data->grouped ? group_loads(kernel, data) : ceil(kernel->bytes[i].thread / each_bytes)) *
                     thread_visits(kernel, data);
    }
    return loads / (kernel->steps * kernel->inner_steps);
}

/* Warps of the busiest scheduler, where so many blocks share an SM: of six warps on four schedulers, two. A warp stays
   with its scheduler. */
static double busiest_warps(const KernelCounts *kernel, double blocks)
{
    return ceil(blocks * kernel->warps / kernel->device->schedulers_per_sm);
}

static double staging_instructions(const KernelCounts *kernel)
{
    if (!kernel->staged)
        return 0;
    double threads = kernel->register_tiles * kind_tile_threads(kernel->kind);
    double copies = kernel->staged_vectors / threads;
    bool direct = !kind_passes_registers(kernel->kind, kernel->device) && kernel->stages > 1;
    double stores = direct ? 0 : kernel->staged_stores / threads;   // of what was loaded into registers
    double warps = busiest_warps(kernel, kernel->resident);   // few ones wait for their own instructions
    double finding = kernel->staging_instructions / threads * at_least(calibration.finding_cycles / warps, 1),
           chain = kernel->chain_instructions * at_least(DEPENDENT_CYCLES / warps, 1);
    return (copies + stores + finding + chain + kernel->problem->loop_instructions) / kernel->inner_steps;
}

double issuing_us(const KernelCounts *kernel)
{
    double step = kernel->copy_instructions * kernel->inner_steps;
    return step * busiest_warps(kernel, kernel->resident) / kernel->device->clock_mhz;
}

double own_setup_us(const KernelCounts *kernel)
{
    return SETUP_INSTRUCTIONS * DEPENDENT_CYCLES / kernel->device->clock_mhz;
}

double setup_us(const KernelCounts *kernel)
{
    return SETUP_INSTRUCTIONS * (busiest_warps(kernel, kernel->resident) - 1) / kernel->device->clock_mhz;
}

/* Instructions of one thread that the items of the schedule state for its part of the inputs, or of the outputs, which threads that
   share a reduction share, too. */
static double stated_instructions(const KernelCounts *kernel, bool of_outputs)
{
    const TileSpace *space = kernel->space;
    bool shared = of_outputs && space->least_reducers;
    double instructions = 0, sharing = shared ? rtile_tiles(space, kernel->shared, kernel->inner, true) : 1;
    for (int i = 0; i < space->tile_count; i++)
        if (space->tiles[i].output == of_outputs && kernel->problem->instructions[i] > 0)
            instructions += kernel->problem->instructions[i] *
                            (double)data_tile_elements(&space->tiles[i], kernel->inner, space->axis_count);
    return instructions / sharing;
}

/* What items state for one thread in each register step. */
static double own_instructions(const KernelCounts *kernel)
{
    double once = kernel->problem->thread_instructions + kernel->output_instructions;
    return once / (kernel->steps * kernel->inner_steps) + stated_instructions(kernel, false);
}

/* Of one thread for its outputs, one after the other: each waits for the one before, or for the block's other warps. */
double finishing_us(const KernelCounts *kernel)
{
    return kernel->output_instructions * at_least(DEPENDENT_CYCLES, busiest_warps(kernel, 1)) / kernel->device->clock_mhz;
}

/* Multiply-adds of a warp over those that its lanes need: if a tap lies inside the image for one line of the warp, no
   lane skips it. */
static double warp_share(const KernelCounts *kernel)
{
    const WindowAxis *window = &kernel->problem->skipped;
    int64_t across = 1;
    for (int a = 0; a < kernel->problem->skips; a++)
        across *= ceil_div(kernel->shared->size[a], kernel->inner->size[a]);
    int64_t lines = kernel->device->warp_size / across;
    if (!kernel->problem->skips || lines <= 1 || window->outputs == 1)
        return 1;
    int64_t pairs = window_pairs_inside(window);
    return pairs ? (double)window_pairs_together(window, lines) / (double)pairs : 1;
}

/* Share of its unit's peak that the kernel reaches. Where threads compute special functions between their products, only
   products of the scheduler's other warps fill that time. At the border of a mask each score is tested, by four
   instructions (counted); its exponential takes eight cycles. */
static double peak_share(const KernelCounts *kernel)
{
    const KindCost *cost = kernel->cost;
    const TileSpace *space = kernel->space;
    double share = cost->peak_share > 0 ? cost->peak_share : 1;
    if (cost->special_share <= 0)
        return share;
    double products = space->flops / perf_unit_peak(kernel->device, space->unit) / share,
           functions = space->special / perf_unit_peak(kernel->device, UNIT_SFU) / cost->special_share,
           masked = 1 + 4.0 / 8 * kernel->border,
           own = (products + functions * masked) / busiest_warps(kernel, kernel->resident);
    return own > products ? share * products / own : share;
}

/* Flop of a thread in a register step. */
static double step_flops(const KernelCounts *kernel)
{
    double points = all_points(kernel->space, kernel->inner);
    double flops = points * point_flops(kernel->space) / kind_tile_threads(kernel->kind);
    return flops * warp_share(kernel);
}

static double step_instructions(const KernelCounts *kernel)
{
    return step_flops(kernel) / flop_per_lane[kernel->space->unit] +
           load_instructions(kernel) / kind_tile_threads(kernel->kind) + own_instructions(kernel);
}

void count_instructions(KernelCounts *kernel)
{
    kernel->output_instructions = stated_instructions(kernel, true);
    kernel->copy_instructions = staging_instructions(kernel);
    kernel->step_instructions = step_instructions(kernel);
}

double own_steps_us(const KernelCounts *kernel)
{
    double cycles = kernel->step_instructions * kernel->inner_steps * calibration.finding_cycles,
           wait_us = kernel->device->dram_latency_ns / 1e3 / rounds_in_flight(kernel);
    double own_us = kernel->rounds * kernel->steps * (cycles / kernel->device->clock_mhz + wait_us),
           rows_us = kernel->rounds * kernel->problem->thread_waits * kernel->device->dram_latency_ns / 1e3;
    return at_least(own_us, rows_us);
}

double own_step_us(const KernelCounts *kernel, double load_us)
{
    double each_us = calibration.finding_cycles * kernel->inner_steps / kernel->device->clock_mhz;
    return kernel->copy_instructions * each_us + at_least(load_us, kernel->step_instructions * each_us);
}

/* Cycles for which one warp's register step keeps its scheduler busy: the arithmetic pipe or the
   issue slots. */
static double busy_cycles(const KernelCounts *kernel)
{
    const DeviceSpec *device = kernel->device;
    double lane_flop = step_flops(kernel);

    double schedulers = (double)device->sm_count * device->schedulers_per_sm;
    double scheduler_gflop_s = perf_unit_peak(device, kernel->space->unit) / schedulers;
    double flop_per_cycle = scheduler_gflop_s * 1e3 / device->clock_mhz;
    double math_cycles = lane_flop * device->warp_size / flop_per_cycle / peak_share(kernel);

    double instructions = kernel->step_instructions;
    /* All warps store between the same barriers what they loaded into registers. */
    bool in_turn = kernel->kind->registers.held_words > 0;
    double staging = kernel->copy_instructions;
    double scheduler_lanes = (double)device->lanes_per_sm / device->schedulers_per_sm;
    double issue_lanes = at_least(scheduler_lanes, device->warp_size);   // more: dual issue
    double issue_cycles = device->warp_size / issue_lanes;
    if (in_turn)
        return at_least(math_cycles, instructions * issue_cycles) + staging * issue_cycles;
    /* All warps of a block issue their copies after the same barrier; only those of other blocks multiply meanwhile. */
    double alone = copies_ahead(kernel) ? staging / kernel->resident : 0;
    return at_least(math_cycles, (instructions + staging - alone) * issue_cycles) + alone * issue_cycles;
}

/* Share of the time in which a warp that reads operands from shared memory has them, where a step keeps its scheduler busy
   for so many cycles: 64 of 64 + 75 for 8 x 8 sums, 128 of 128 + 75 for 8 x 16. Operands that are read one step ahead
   come during its products: 64 of 64 + 75 - 64. A step of mma instructions waits for the fragments of each. */
static double ready_share(const KernelCounts *kernel, double cycles)
{
    bool lanes = kernel->space->unit == UNIT_FP32 || kernel->space->unit == UNIT_FP64;   // not tensor cores
    double wait = calibration.operand_wait_cycles, together = calibration.together_cycles;
    if (lanes)
        together = at_least(cycles, together);
    if (kind_reads_ahead(kernel->kind))
        wait = at_least(wait - cycles, 0);
    return together / (together + wait);
}

/* Steps of single elements in a loop that states how many it loads together are written out: operands of one come while others
   compute, so that 16 steps hide as one of 16 elements does. Vectors are unpacked and added one after the other. */
static double steps_together(const KernelCounts *kernel)
{
    const Loop *loop = kernel->problem->schedule.open_loop;
    bool vectors = false;
    for (int i = 0; i < kernel->space->tile_count; i++)
        vectors |= kernel->space->tiles[i].vector > 1;
    return loop && loop->together && !vectors ? rounds_in_flight(kernel) : 1;
}

/* Share of the time in which a scheduler of so many warps has a ready one: u / (1 + u), where u is their busy cycles over
   those that a warp waits for its operands. */
static double latency_hiding(const KernelCounts *kernel, double warps, double cycles)
{
    double u = warps * cycles * steps_together(kernel) / kernel->device->timing.operand_cycles;
    double ready = kernel->cost->from_shared ? 1 - pow(1 - ready_share(kernel, cycles), warps) : 1;
    return u / (1 + u) * ready;
}

/* Cycles of a register step of all warps, where so many blocks share an SM. */
static double shared_cycles(const KernelCounts *kernel, double blocks, double cycles)
{
    double warps = busiest_warps(kernel, blocks);
    return warps * cycles / latency_hiding(kernel, warps, cycles);
}

/* The same for all blocks of the busiest SM: full waves of resident blocks, then a partial one. */
static double sm_cycles(const KernelCounts *kernel, double cycles)
{
    double blocks = kernel->sm_tiles, left = fmod(blocks, kernel->resident);
    double full = (blocks - left) / kernel->resident * shared_cycles(kernel, kernel->resident, cycles);
    return left > 0 ? full + shared_cycles(kernel, left, cycles) : full;
}

double compute_time_us(const KernelCounts *kernel)
{
    double cycles = busy_cycles(kernel);
    if (cycles <= 0)
        return 0;
    double busy = kernel->steps * kernel->inner_steps * sm_cycles(kernel, cycles);
    return busy / kernel->device->clock_mhz;
}

/* Results along the reduction are as many as there are: zeros behind its end have none. */
double special_time_us(const KernelCounts *kernel)
{
    double results = kernel->space->special * kernel->visited;
    for (int a = 0; a < kernel->space->axis_count; a++)
        results *= (double)(kernel->space->axes[a].reduction ? kernel->space->axes[a].extent : kernel->padded.size[a]);
    return results / perf_unit_peak(kernel->device, UNIT_SFU) / 1e3 / kernel->balance;
}
