// What the terms of the model share: the counts of one kernel. Internal to the model.
#pragma once
#include "model/perf.h"

/* Latency of an integer instruction: micro-kernels of Volta and later GPUs. */
enum { DEPENDENT_CYCLES = 4 };

/* Different bytes of a data tile, and what a block moves for its own in whole transactions. */
typedef struct TileBytes {
    double thread, block;   // inside the register tile, the shared tile
    double moved;
    double asked;           // the same in whole requests to L2
    double lines;           // of what is staged the same in whole lines
    double scatter;         // bytes that a block reads from L2 for each one that it uses
    double elements;        // of a staged input inside the shared tile
} TileBytes;

/* What several terms need to know about the kernel. */
typedef struct KernelCounts {
    const KernelKind *kind;
    const KindCost *cost;
    const TileSpace *space;
    const DeviceSpec *device;
    const RTile *inner, *shared;   // register and shared tile
    const PerfProblem *problem;
    RTile padded;                  // the problem, rounded up to whole shared tiles
    RTile walk;                    // what a thread advances by at once along each axis
    double blocks;
    double block_tiles;            // shared tiles that they make, one after the other
    double cluster;                // blocks that share the steps along the reduction
    double steps;                  // shared steps of a block: what an SM's time goes by
    double visited;                // share of all steps that blocks make on average: what is moved and multiplied
    double border;                 // share of these whose points ask whether a band has them
    double inner_steps;            // register steps of a thread in each of them
    double register_tiles;         // of a block
    double warps;                  // of a block
    double resident;               // blocks that share an SM while there is work
    double l1_bytes;               // that their shared memory leaves an SM to cache in
    double panel;                  // rows of shared tiles that blocks make side by side; 0: along one row
    double turns;                  // tiles of a persistent block
    double rounds;                 // ceil(waves), times the turns of a block
    double sm_tiles;               // shared tiles of the busiest SM
    double balance;                // tail efficiency
    double stages;
    double ahead;                  // steps for which a load may be under way
    bool staged;                   // anything in shared memory
    double staged_bytes;           // of one step,
    double staged_vectors;         // and accesses that bring them,
    double staged_stores;          // and that store what passed through registers: element by element where tiles are turned
    double alone;                  // times as long as if all clusters ran at once, with a last round of few
    double staging_instructions;   // of one step, to find what is staged
    double chain_instructions;     // and of each thread, one after the other
    double copy_instructions;      // of one thread that copy the staged tiles, divided over the register steps that use them
    double step_instructions;      // its others in a register step
    double output_instructions;    // that items of the schedule state for its part of the outputs
    double end_us;                 // of a tile, when nothing is left to multiply
    double in_flight_bytes;        // of loads that are in flight, over the whole device
    double l2_in_flight_bytes;     // in whole transactions
    double hottest_us;             // of the slice of L2 from which most blocks copy, beside its share of all
    double busy_l2_bytes,          // of the outputs, each sector as often as L2 accesses it,
        busy_dram_bytes;           // or memory
    TileBytes bytes[MAX_DATA_TILES];
} KernelCounts;

/* Counts of a completed program, of which `blocks_per_sm` fit on one SM. */
void kernel_counts(KernelCounts *kernel, const KernelKind *kind, const PerfProblem *problem,
                   const RProgram *program, const DeviceSpec *device, int blocks_per_sm);

static inline const TileBytes *bytes_of(const KernelCounts *kernel, const DataTile *data)
{
    return &kernel->bytes[data - kernel->space->tiles];
}

/* Rounds of a loop that does nothing but load and reduce whose loads are in flight at once. */
double rounds_in_flight(const KernelCounts *kernel);

/* Bytes that one of its loads brings to a thread. */
static inline double load_bytes(const DataTile *data)
{
    return data->vector ? data->vector * data->element_bits / 8.0 : VECTOR_BYTES;
}

/* Its threads copy steps ahead, each vector from an address of its own, at least some of them directly. */
static inline bool copies_ahead(const KernelCounts *kernel)
{
    int held = kind_passes_registers(kernel->kind, kernel->device);   // one step ahead, and stored when it is used
    return kernel->staging_instructions > 0 && kernel->problem->schedule.rounds_ahead > held;
}

static inline double problem_bytes_of(const KernelCounts *kernel, const DataTile *data)
{
    return kernel->problem->bytes[data - kernel->space->tiles];
}

static inline double positions_bytes_of(const KernelCounts *kernel, const DataTile *data)
{
    return kernel->problem->positions[data - kernel->space->tiles];
}

/* Does the data tile change when the axis advances? */
static inline bool depends(const KernelCounts *kernel, const DataTile *data, int axis)
{
    return kernel->problem->axes[data - kernel->space->tiles] >> axis & 1;
}

/* Points of the tile along all axes. */
double all_points(const TileSpace *space, const RTile *tile);

/* Of units of so many bytes that so many adjacent points use parts of: their bytes over those of the points. */
double points_spread(const DataTile *data, double points, int unit_bytes);

/* Each element is loaded by one block only, so no cache holds it. */
bool is_read_once(const KernelCounts *kernel, const DataTile *data);

/* How often a block needs another part of the tile; of a cluster one block writes what does not move. */
double block_visits(const KernelCounts *kernel, const DataTile *data);

/* How often a thread reads the tile's part that belongs to its register tile. */
double thread_visits(const KernelCounts *kernel, const DataTile *data);

// ---- perf_traffic.c ----

/* Fills the bytes that the kernel moves on each level. */
void estimate_traffic(KernelCounts *kernel, PerfEstimate *perf);

// ---- perf_compute.c: each alone, for the whole kernel ----

/* Fills the instructions that the others ask for. */
void count_instructions(KernelCounts *kernel);
double compute_time_us(const KernelCounts *kernel);
double special_time_us(const KernelCounts *kernel);

/* What all warps of the busiest scheduler issue, one after the other: to start a step's copies; and before the first of
   them, beside what one warp does, which a launch has. */
double issuing_us(const KernelCounts *kernel);
double setup_us(const KernelCounts *kernel);

/* What one warp does alone, instruction after instruction: in all steps, in each of which it waits for loads; in one, whose
   loads it issues before it multiplies and stores behind that; before its first copy; and for its outputs. */
double own_steps_us(const KernelCounts *kernel);
double own_step_us(const KernelCounts *kernel, double load_us);
double own_setup_us(const KernelCounts *kernel);
double finishing_us(const KernelCounts *kernel);

static inline double at_most(double value, double limit)
{
    return value < limit ? value : limit;
}

static inline double at_least(double value, double limit)
{
    return value > limit ? value : limit;
}
