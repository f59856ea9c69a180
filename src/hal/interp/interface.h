// What rollerc and its machine, which runs programs, know of each other. C and C++ both read it.
//
// A generated .cu and the twin of CUDA are compiled into a shared object; a child of rollerc loads it and
// calls interp_run() with its launcher and this record.
#ifndef ROLLERC_INTERP_INTERFACE
#define ROLLERC_INTERP_INTERFACE

#include "hal/runtime.h"

enum {
    INTERP_MAX_LAUNCHES = 64,           // of which traffic is counted
    INTERP_CELL_BYTES = 44,             // of an InterpCell
    INTERP_PIECE_BYTES = 256,           // of memory that is made when it is first accessed
    INTERP_STRETCH_BYTES = 64 << 10,    // of a tensor that get their shadow at a time
    INTERP_COUNTED_BLOCKS = 2,          // of a launch, whose doings are counted: the first and the last
    INTERP_ARITHMETIC = 5,              // kinds of operations that are counted: Arithmetic in calls.h
    INTERP_OWN_SPANS = 3                // the program, what the thread sees (Here), the launcher's stack
};

// What all threads of one block did.
typedef struct InterpCounts {
    long long shared_read, shared_written;      // bytes, of its own shared memory and of others' in its cluster
    long long warp_meetings;                    // shuffles and ballots of its first warp
    long long block_barriers, cluster_barriers, grid_barriers;
    long long waits, pending;                   // of its first thread for asynchronous copies; groups in flight after them, in sum
    long long *read_sectors, *written_sectors;  // by region: each counted once
    long long arithmetic[INTERP_ARITHMETIC];    // operations on numbers that are no indices
    long long tensor_products;                  // multiply-adds of tensor cores
    unsigned copying_warps, multiplying_warps;  // bit i: warp i has asked for bulk copies, or tensor cores
} InterpCounts;

struct InterpCell;                      // what is known of a stretch of memory (shadow.cpp)

// What is known of a stretch of memory: a cell for every 4 bytes, and one for each byte, for where parts of
// the 4 were accessed separately.
typedef struct InterpShadow {
    struct InterpCell *words, *bytes;
} InterpShadow;

// A tensor in global memory, with a bit for every sector.
typedef struct InterpRegion {
    unsigned char *start;
    long long bytes;
    int written;                        // else only read, and initialised
    int sealed;                         // was written by NAME_prepare, and is only read from then on
    int costly;                         // a cell is filled when it is read; of a written one when it is accessed
    const unsigned char *opened;        // of chunks from `first_page` on: those that hold anything yet; null: all do
    unsigned char *first_page;
    InterpShadow *shadows;              // of a written or costly region: of each stretch; null: never accessed
    unsigned char *read_sectors, *written_sectors;
    unsigned char *read_by[INTERP_COUNTED_BLOCKS], *written_by[INTERP_COUNTED_BLOCKS];   // likewise; null: nobody counts
} InterpRegion;

typedef struct InterpSpan {
    unsigned char *start, *end;
} InterpSpan;

typedef struct InterpHost {
    const RuntimeSource *source;
    const RuntimeJob *job;
    unsigned char **buffers;            // what the launcher is given

    // For checked accesses; without regions nothing is checked.
    InterpRegion *regions;
    int region_count;
    InterpSpan own[INTERP_OWN_SPANS];   // constants, threadIdx, arguments: accesses there are nobody's business
    int own_count;
    unsigned char *code;                // program counters are kept relative to it
    RuntimeTraffic *traffic;            // of each launch
    InterpCounts *counts;               // of each counted block of the launch that runs alone; null: nobody counts

    // Services. fail() ends the process and never returns.
    void (*fail)(const char *format, ...) __attribute__((format(printf, 1, 2)));
    void *(*map_stack)(unsigned long bytes);                  // its upper end; a guard page below
    void (*map_shared)(long long bytes, int blocks);          // sets what follows
    void (*check_shared)(void);                               // nothing was written beside it
    void (*open)(void *address);                              // the chunk there, which is about to be accessed
    void (*fill)(int region, long long offset, int bytes);    // costly: what the program is about to read
    void (*cast_shadow)(InterpShadow *shadow);                // of a stretch that is about to be accessed
    void (*outside)(void *address, int write);                // fails: the address belongs to no tensor
    void (*seal)(void);                                       // NAME_prepare has ended
    void (*refill)(int before);                               // a call begins: the one before the last, or that

    // Dynamic shared memory of the team's blocks: guard pages on both sides of each.
    unsigned char *shared;              // of the first block
    long long shared_stride;            // bytes from one block's to the next one's
    InterpShadow shared_shadow;         // checked: of the first block
    long long shared_shadow_stride;     // words from one block's to the next one's

    // Where it is: for messages, and the result.
    int launch;                         // the one that runs; -1 before the first and after the last
    int launches;                       // so far
    int copies;                         // that NAME_prepare has made
    unsigned block[3];
    int thread;                         // within the block; -1 between blocks
    const char *file;                   // of the last barrier or shuffle, with its line
    int line;
    unsigned pc, other_pc;              // of the access that is wrong, and of the one it conflicts with; 0: none
    long long blocks_run, blocks_total; // of the launches that were run
} InterpHost;

typedef int InterpLauncher(void **args);   // call_launcher() of the program's object, or call_prepare()

#ifdef __cplusplus
extern "C" {
#endif

/* Calls NAME_prepare, if the program has it (call_prepare(); else null), and the program's launcher with `args`; the
   result. */
int interp_run(InterpHost *host, InterpLauncher *prepare, InterpLauncher *launcher, void **args);

/* The number of the thread that runs, within its block; -1: none does. */
int interp_thread(void);

/* Whether a byte of a written region was written. */
int interp_written(const InterpRegion *region, long long byte);

/* Of a region that was filled where it was read: what was not written holds the poison again. */
void interp_take_back(InterpRegion *region, int poison);

#ifdef __cplusplus
}
#endif

#endif
