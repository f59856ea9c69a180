// The micro-performance model: how long one rProgram takes on one device, term by term (Roller,
// OSDI'22, 3.3).
//
// Every term stays in the estimate, so that a ranking can be explained.
#pragma once
#include "model/calibration.h"
#include "kernel/kind.h"
#include "rtile/tile_memo.h"

/* What limits the number of resident blocks, or the kernel as a whole. */
typedef enum Limiter {
    LIMIT_THREADS, LIMIT_BLOCKS, LIMIT_REGISTERS, LIMIT_SHARED, LIMIT_GRID
} Limiter;
typedef enum BoundBy {
    BOUND_COMPUTE, BOUND_SPECIAL, BOUND_SHARED, BOUND_L2, BOUND_DRAM, BOUND_START, BOUND_LATENCY,
    BOUND_LAUNCH
} BoundBy;

extern const char *const limiter_name[];
extern const char *const bound_name[];

typedef struct PerfEstimate {
    double time_us;            // what ranks: the largest term, what shows of the others, waiting
    double compute_us, special_us, shared_us, l2_us, dram_us;   // each alone, for the whole kernel
    double start_us;           // blocks start one after the other
    double latency_us, launch_us;
    double unhidden_us;        // of the terms shorter than the largest throughput term, what shows beside it,
    double tail_us, wait_us;   // … while the last blocks end alone, and of latency: these, that term and launch_us are time_us
    double dram_load_bytes, dram_store_bytes, l2_load_bytes, l2_store_bytes;
    double line_load_bytes;    // of memory, and what requests for parts of lines cost beside
    double shared_load_bytes, shared_store_bytes;   // loads include those past it, through L1
    double flops;              // done, padding included
    double instructions;       // the same where a family counts them, else 0
    double padding_waste;      // share of the work that falls outside the tensors
    double waves;              // grid / resident blocks
    double overlap_us;         // of the next call's start with a call of this launch alone, if that is so brief that blocks
                               // which come early cost less than a launch; else 0
    double supersteps;         // of a bulk-synchronous device: dram_us is its exchange, latency_us its barriers; else 0
    double tail_efficiency;    // mean blocks of an SM / blocks of the busiest; 1: none idles
    int blocks_per_sm;         // that fit on one SM at the same time
    Limiter limiter;
    BoundBy bound_by;
} PerfEstimate;

/* What all programs of a kernel share. */
typedef struct PerfProblem {
    RTile whole;                      // the problem as a tile
    double bytes[MAX_DATA_TILES];     // different ones of each data tile inside it
    double positions[MAX_DATA_TILES]; // the same with those that overlapping windows share, once for each of them
    bool windows;                     // some staged tile has such
    ScheduleFacts schedule;
    TileMemo *moves;                  // what blocks of each shared tile move; NULL: it is computed for each program
    uint32_t axes[MAX_DATA_TILES];    // along which a data tile changes, as bits
    double instructions[MAX_DATA_TILES];   // of a thread for each of its elements, by the schedule's items,
    double thread_instructions;            // and in its whole life
    double thread_waits;                   // Arithmetic.waits
    double loop_instructions;              // Loop.instructions
    int skips;                             // Loop.skips of one of its loops, or 0,
    WindowAxis skipped;                    // and the window that goes along there
} PerfProblem;

PerfProblem perf_problem(const KernelKind *kind);

/* For `moves`: worth its room where many programs of the kind are estimated. */
TileMemo *perf_moves_new(Arena *arena, const KernelKind *kind);

/* An rProgram is a constructed kernel shape: one rTile per memory level and what follows from them. A value: copied
   with =, no pointers inside. */
typedef struct RProgram {
    RTile tile[LEVEL_COUNT];         // [LEVEL_GLOBAL] is the problem
    int64_t grid;                    // blocks: product of ceil(extent / shared tile) of spatial axes, by
                                     // `turns`, times those of a cluster that share a reduction
    int64_t dealt;                   // what SMs get one by one: blocks, or shared tiles of persistent ones
    int turns;                       // shared tiles of a persistent block
    int cluster;                     // blocks of a cluster: of split-K, or of multicast
    int64_t panel;                   // rows of shared tiles that blocks make side by side; 0: along one row
    int threads;                     // of a block: register tiles in it, times threads a tile
    int64_t shared_bytes;            // dynamic shared memory of a block
    int registers;                   // of a thread, as many as the compiler is expected to take
    int enough_registers;            // with which it spills none
    int sure_blocks;                 // of an SM, whose threads all have that many
    int32_t padding[MAX_DATA_TILES]; // bank padding of each staged data tile, elements
    double tolerance;                // the padding tolerance at which it was found
    PerfEstimate perf;
} RProgram;

/* Gflop/s of the unit; a device without it falls back to its fp32 lanes. */
double perf_unit_peak(const DeviceSpec *device, Unit unit);

/* Blocks of this size that each resource of one SM has room for; INT64_MAX: they need none of it. The
   grid is none. */
void perf_block_limits(const DeviceSpec *device, int threads, int registers, int64_t shared_bytes,
                       int64_t limits[LIMIT_GRID]);

/* Blocks of this size that fit on one execution unit, and what stops the next one. 0: not even
   one. */
int perf_blocks_per_sm(const DeviceSpec *device, int threads, int registers, int64_t shared_bytes,
                       Limiter *limiter);

/* The row of this kind, or that of kinds to which nothing was fitted. */
const KindCost *perf_cost(const KernelKind *kind);

/* Needs a completed program: all but `perf` filled in. */
PerfEstimate perf_estimate(const KernelKind *kind, const PerfProblem *problem, const RProgram *program,
                           const DeviceSpec *device);
