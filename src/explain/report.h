// A ranking as it was read: what an explanation needs of schema/ranking.schema.json, checked.
//
// This floor knows a ranking by its text alone, so that one from another machine, or of last year, is
// explained like a new one.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/source.h"

/* Terms of the time, each alone. The longest counts whole, and most of the others overlap with it. */
typedef enum Term {
    TERM_COMPUTE,
    TERM_SPECIAL,
    TERM_SHARED,
    TERM_L2,
    TERM_DRAM,
    TERM_START,
    TERM_COUNT
} Term;

/* The parts that add up to the expected time. */
typedef enum Part { PART_LONGEST, PART_UNHIDDEN, PART_TAIL, PART_WAIT, PART_LAUNCH, PART_COUNT } Part;

/* What limits the blocks of an SM. */
typedef enum Resource {
    RESOURCE_THREADS,
    RESOURCE_BLOCKS,
    RESOURCE_REGISTERS,
    RESOURCE_SHARED,
    RESOURCE_COUNT
} Resource;

extern const char *const term_name[TERM_COUNT], *const term_meaning[TERM_COUNT];
extern const char *const part_name[PART_COUNT], *const part_meaning[PART_COUNT];
extern const char *const resource_name[RESOURCE_COUNT];

typedef struct Costs {   // us
    double term[TERM_COUNT];
    double part[PART_COUNT];
    double time;
} Costs;

typedef enum TileLevel { TILE_PROBLEM, TILE_BLOCK, TILE_THREAD, TILE_LEVELS } TileLevel;

typedef struct TileAxis {
    const char *name;
    bool reduced;
    double size[TILE_LEVELS];
} TileAxis;

enum { MAX_TILE_AXES = 16 };   // as many as a kernel has

typedef struct ReportLaunch {
    const char *kernel, *family, *variant, *bound_by, *limiter, *unit;
    const char *makes;   // a tensor; NULL: the ranking does not say
    Costs costs;
    TileAxis axes[MAX_TILE_AXES];
    int axis_count;
    double blocks, threads, cluster;   // threads of a block, blocks of a cluster
    double stages, vectors;            // 0: it has none
    double tile_threads;               // that share the tile of TILE_THREAD
    double peak_gflop_s;               // of the unit
    double flops, dram_bytes, l2_bytes, shared_bytes;   // moved
    double block_shared_bytes;         // of shared memory
    double registers;                  // of a thread
    bool compiled;                     // then these are the compiler's, else an estimate
    bool spills;
    double waves, balance, blocks_per_sm;
    double supersteps;                 // 0: the device has none
    double room[RESOURCE_COUNT];       // blocks; negative: they use none of it
} ReportLaunch;

typedef struct ReportCandidate {
    const char *status, *reason;       // of what failed; else NULL
    double model_rank;
    Costs costs;                       // of all launches
    ReportLaunch *launches;
    int launch_count;
    double measured_us, measured_p95;  // 0: not measured
} ReportCandidate;

/* A kernel of a program of many, which was timed by itself. */
typedef struct ReportKernel {
    const char *makes;
    double times;                      // that the program has it
    ReportCandidate *candidates;       // best first
    int count;
} ReportKernel;

typedef struct ReportDevice {
    const char *name, *title;          // title NULL: it has none
    double sm_count, warp_size, max_threads, dram_gb_s, l2_gb_s;
} ReportDevice;

typedef struct Report {
    const char *name;                  // of the kernel
    const char *expr, *version, *source_sha256;   // of the text; NULL: there is none for the device
    const char *gpu;                   // that measured; NULL: none
    double flops, min_bytes, generated;
    ReportDevice device;
    ReportCandidate *candidates;       // best first
    int count;
    ReportKernel *kernels;             // that were timed by themselves
    int kernel_count;
    int emitted;                       // position of the one that is written
    bool verified, sampled;
    double verified_elements, verified_seconds;
} Report;

/* A text that is not a ranking of this schema ends with EXIT_INPUT. */
Report *report_read(Arena *arena, const Source *source);

/* The launch that takes most of a candidate's time. */
const ReportLaunch *longest_launch(const ReportCandidate *candidate);

/* Does it compute anything, and read or write memory? */
bool launch_has_roofline(const ReportLaunch *launch);

/* Blocks that share an SM: as many as fit, or as there are. */
double report_resident(const Report *report, const ReportLaunch *launch);
