// The construction of rPrograms (model/perf.h says what one is).
#pragma once
#include "kernel/target.h"
#include "model/perf.h"

typedef enum PruneReason {
    PRUNE_THREADS,      // more threads than a block may have, or not whole warps
    PRUNE_REGISTERS,    // of a thread or of the block
    PRUNE_SHARED,       // shared memory of a block
    PRUNE_GRID,         // more blocks, or threads of them all, than a launch may have
    PRUNE_DUPLICATE,
    PRUNE_SLOWER,       // legal, but not among the kept ones
    PRUNE_COUNT
} PruneReason;

extern const char *const prune_reason_name[PRUNE_COUNT];

typedef struct ConstructStats {
    int64_t generated, feasible;
    int64_t pruned[PRUNE_COUNT];
    bool stopped;   // the last construction was, since other kinds are much faster
} ConstructStats;

/* The paper's construction (OSDI'22, 3.2): scale-up from the smallest rTile at the register level
   along the axis with the best reuse score until the level is full or saturated, then the shared
   level, with the padding tolerance raised in steps; scale-out over the SMs (the paper: execution
   units); shrink along the axis with the least reuse when SMs would idle. Writes at most `keep` diverse
   programs in ascending order of estimated time (ties: fewer blocks, then smaller tiles, axis by
   axis) and returns their number. 0: the device can hold none. `stats` is added to. Not all are constructed
   where the first ones take much longer than `known_us`, which other kinds take; 0: there are none. */
int rprogram_construct(Arena *arena, const KernelKind *kind, const Target *target, double known_us, int keep,
                       RProgram *kept, ConstructStats *stats);

/* The same with the tiles of programs of a kind that differs in extents alone, as far as they are legal here. Steps are as
   long as they were, and in proportion to the reduction. Writes at most as many. */
int rprogram_construct_like(Arena *arena, const KernelKind *kind, const Target *target, const RProgram *like, int count,
                            RProgram *kept, ConstructStats *stats);

/* Fills grid, threads, shared_bytes, registers, panel and perf from the tiles, whose footprints
   (kind_footprint) are known from their growing. False, with the reason, if a limit of the device is
   broken. */
bool rprogram_complete(const KernelKind *kind, const PerfProblem *problem, const DeviceSpec *device,
                       const int64_t footprint[LEVEL_GLOBAL], RProgram *program, PruneReason *reason);

/* The padding, which only programs that are kept need. */
void rprogram_pad(const KernelKind *kind, const DeviceSpec *device, RProgram *program);

/* The time of the program if other blocks filled the remaining SMs, as with split-K. */
double rprogram_spread_us(const RProgram *program, const DeviceSpec *device);

/* Of `count` programs in ascending order, picks `keep` that differ and keeps their order: no
   register tile and no block tile (the spatial part of the shared tile) more than ceil(keep/4)
   times while others can fill the places. The first is always among them, and the second of those that are taken is the
   one that takes least where its blocks are as many as one likes, as of a sum in parts. Returns how many. */
int rprogram_diverse(Arena *arena, const KernelKind *kind, const DeviceSpec *device, RProgram *const *sorted,
                     int count, int keep, RProgram *kept);

/* Threads of a block: its register tiles, times the threads that hold one, times the groups that make tiles in
   turn; where units work in supersteps, the workers of one, which go through its register tiles one after the other. */
int64_t rprogram_threads(const KernelKind *kind, const DeviceSpec *device, const RTile *shared,
                         const RTile *inner);

/* `-d rprogram` */
void rprogram_print(StrBuf *out, const KernelKind *kind, const RProgram *program);

/* Blocks of so many threads on an SM that registers must suffice for: as many as the model counts on, but of
   whole fours of warps, since each of its four schedulers has its own registers. Of 14 warps one would have
   four: they get what 12 can have, 168 and not 128. */
int rprogram_least_blocks(const RProgram *program, int threads);

/* Blocks of an SM that compilers are told, since they give threads more registers than are needed, or load one element
   after the other to save some: those of the grid where more find room; else the resident ones where threads read ahead,
   hold the next step's tiles, or load in a loop without buffers. Where more than one fits with registers that never spill,
   threads that read ahead have those. 0: compilers are told nothing. */
int rprogram_grid_blocks(const KernelKind *kind, const RProgram *program, const DeviceSpec *device);
