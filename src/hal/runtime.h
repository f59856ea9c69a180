// A runtime executes an emitted program: it takes text, buffers and limits, and knows nothing of tiles.
//
// What a program does wrong (it crashes, hangs, leaves its buffers) is a result with a reason,
// never the end of rollerc.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "hal/device.h"
#include "hal/launch.h"

typedef enum RuntimeStatus {
    RUNTIME_DONE,
    RUNTIME_WRONG,      // the program is: `reason` says what it did
    RUNTIME_TIMEOUT,    // it hangs, or is more than can be run: nobody can tell
    RUNTIME_MACHINE     // the machine lacks something: a compiler, memory
} RuntimeStatus;

typedef struct RuntimeLimits {
    int warp_size;
    int max_threads_per_block;
    int64_t static_shared_bytes;    // dynamic shared memory of a block without opting in
    int64_t shared_bytes;           // and with it
    int64_t max_blocks_per_launch;
    int64_t max_threads_per_launch; // 0: as many as its blocks have
    int max_cluster_blocks;         // 0: the device has no clusters
    bool cooperative;               // it has cooperative launches; their blocks must all be resident:
    int sm_count, max_threads_per_sm, max_blocks_per_sm;
    int64_t shared_per_sm, shared_reserved_per_block;
} RuntimeLimits;

RuntimeLimits runtime_limits(const DeviceSpec *device);

/* What a program is compiled for, most of the time that a small one takes. One build serves all jobs that it
   can. */
typedef enum RuntimeBuild {
    RUNTIME_PLAIN = 1,              // to be fast
    RUNTIME_CHECKED = 2,            // to be checked; jobs that are not take about twice as long with it
    RUNTIME_COUNTED = 4,            // in its place: the same, and it counts its arithmetic
    RUNTIME_SYNTAX = 8              // never to be run: a tenth of the time says whether it compiles
} RuntimeBuild;

/* Around the parts of an emitted file that the interpreter replaces, lines of their own; all else is compiled
   as it stands, in the same lines. */
#define INTRINSICS_BEGIN "// <rollerc: intrinsics>\n"
#define INTRINSICS_END "// </rollerc>\n"

/* NAME's: the namespace of an emitted file that holds what it has of the prelude. */
#define PRELUDE_SUFFIX "_prelude"

typedef struct RuntimeSource {
    const char *name;               // of the launcher: NAME_launch
    const char *text;
    size_t length;
    int arg_count;                  // pointers to inputs, weights and outputs
    int weight_first,
        weight_count;   // of them: weights, which lie in a file of their own; 0: there is no NAME_prepare
    bool graph;                     // the text has NAME_graph, too
    const Launch *launches;         // that NAME_prepare makes, and then the launcher; NULL: nobody said
    int launch_count, prepare_count;
    const LaunchCopy *copies;       // that NAME_prepare makes
    int copy_count;
    RuntimeLimits limits;
    unsigned builds;                // RuntimeBuilds
    bool runs_long;                 // longer than it is compiled: it is to be fast
} RuntimeSource;

/* Arguments, then those beside them (hal/launch.h). */
static inline int runtime_buffer_count(const RuntimeSource *source)
{
    return source->arg_count + (source->weight_count ? BUFFERS_BESIDE : 1);
}

/* A tensor that lies in a buffer during a run. */
typedef struct RuntimeTensor {
    const char *name;
    int buffer;
    int64_t offset, bytes;          // within the buffer
    bool written;                   // poisoned before the run; else filled, and may not be written to
    int64_t first, end;             // bytes from the first that is written to the last; end 0: all
    bool
        costly;   // in lazy jobs: filled where it is read and no further; of a written one where it is accessed, and
                  // what is not written holds the poison again
} RuntimeTensor;

/* Puts bytes [offset, offset + count) of tensors[tensor] into `bytes`; it may be called while the program
   runs. */
typedef void RuntimeFill(void *context, int tensor, int64_t offset, int64_t count, void *bytes);

/* Which thread goes on when several can. */
typedef enum RuntimeSchedule {
    RUNTIME_LOWEST_FIRST,
    RUNTIME_HIGHEST_FIRST,   // blocks too are run in descending order
    RUNTIME_PRIORITY   // by priorities of blocks and warps, drawn from the seed, at every synchronisation
} RuntimeSchedule;

typedef struct RuntimeJob {
    const int64_t *buffer_bytes;    // of each
    const RuntimeTensor *tensors;   // a buffer without any may not be touched
    int tensor_count;
    RuntimeFill *fill;
    RuntimeFill
        *fill_before;   // what inputs hold in a call before the one that is looked at, of a program that was
                        // prepared once for both; NULL: there is none
    void *context;
    int poison;                     // byte that written tensors hold before
    int only_launch;                // -1: all of them
    bool graph;   // runs NAME_graph's launches in another order than the stream's, if the text has it
    int64_t max_blocks;             // of a launch; of a larger one some blocks are run. INT64_MAX: all
    uint64_t seed;                  // of that choice
    bool lazy;   // fill and poison what is touched, when it is: for huge buffers; needs `checked`
    RuntimeSchedule schedule;
    bool checked;   // looks for races, uninitialised memory, bounds, overflows; counts traffic; needs
                    // RUNTIME_CHECKED
    bool
        counts;   // checked, of one launch: what its first and its last block do, which are run and no others
                  // but those of their clusters; needs RUNTIME_COUNTED
    bool ends_written;   // checked: the first and the last element of each written tensor must be written
    int seconds;                    // of processor time that the program alone may take, `fill` not counted
} RuntimeJob;

/* A stretch of a buffer that the program may have touched. Only of lazy jobs. */
typedef struct RuntimePage {
    int buffer;
    int64_t offset, bytes;
} RuntimePage;

/* What a launch moved to and from its tensors. A sector has 32 bytes and is counted once, however often it is
   touched. */
typedef struct RuntimeTraffic {
    int64_t read_bytes, written_bytes, read_sectors, written_sectors;
} RuntimeTraffic;

/* What all threads of one block did. */
typedef struct RuntimeCounts {
    int64_t additions, multiplications, divisions, comparisons, functions;   // of numbers that are no indices
    int64_t tensor_products;                // multiply-adds of tensor cores
    int copying_warps, multiplying_warps;   // that have issued bulk copies, or products of tensor cores
    int64_t shared_read, shared_written;    // bytes
    int64_t warp_meetings;                  // shuffles and ballots of its first warp
    int64_t block_barriers, cluster_barriers, grid_barriers;
    int64_t waits,
        pending;   // of its first thread for asynchronous copies; groups in flight after them, in sum
    int64_t *read_sectors, *written_sectors;   // by RuntimeJob.tensors: each counted once
} RuntimeCounts;

typedef struct RuntimeResult {
    RuntimeStatus status;
    const char *reason;
    int buffer_count;
    void **buffers;                 // to be read until release(); of a lazy job only the pages below
    const RuntimePage *pages;
    int64_t page_count;
    int64_t blocks_run, blocks_total;
    const RuntimeTraffic *traffic;  // of each launch, in order; only of checked jobs
    int launch_count;
    RuntimeCounts
        *counts;   // of the first and the last block, if they were wanted; of a single block only the first
    void *mappings;                 // the runtime's own
} RuntimeResult;

typedef struct RuntimeModule RuntimeModule;

typedef struct Runtime {
    const char *name;
    bool checks;   // accesses, and runs parts of a program: else jobs are neither checked nor lazy
    RuntimeStatus (*load)(Arena *arena, const RuntimeSource *source, RuntimeModule **module,
                          const char **reason);
    RuntimeResult (*run)(Arena *arena, const RuntimeModule *module, const RuntimeJob *job);
    void (*release)(RuntimeResult *result);
} Runtime;

extern const Runtime runtime_interp;   // on the CPU: no GPU, no CUDA toolkit; calls the launcher
