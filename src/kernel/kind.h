// A kind of kernel: a family's choice of how to compute a fusion, before tiles have sizes.
//
// The space says which axes are tiled and what each tile holds, the schedule what a block does in time order, the
// layout how its shared memory is used. What follows from these is computed here and stored nowhere.
#pragma once
#include "kernel/layout.h"
#include "schedule/schedule.h"

/* A family's own choices, beyond the common ones: a value of a type that only it knows. */
typedef struct FamilyChoice {
    const void *value;
    size_t bytes;
} FamilyChoice;

/* Threads of a block. */
typedef struct ThreadLimits {
    int least, most;      // most 0: as many as the device allows
    bool ragged;          // the last warp may lack threads
    int of_tile;          // that hold one register tile: a warp's 32; 0 = 1
} ThreadLimits;

/* Registers of a thread with which no kernel of a kind spills. */
typedef struct RegisterBudget {
    int64_t enough;
    int64_t passing;         // of these, the next tiles in flight to shared memory with their addresses,
    int64_t words;           // the tiles alone,
    int64_t places;          // and the addresses of vectors that are copied directly out of windows
} RegisterBudget;

/* The registers that compilers are expected to need for a block of these tiles. */
typedef int64_t RegistersTaken(const KernelKind *kind, const RTile *block, const RTile *inner, RegisterBudget budget);

/* Registers of a thread. */
typedef struct RegisterLimits {
    int accumulator_bits;    // of one output element
    int input_buffers;       // copies of its inputs' data tiles that it holds while it computes: 0 none, 2: the next
                             // register step's are read while this one's are used
    int most_inputs;         // that hold inputs at the same time; 0: all of them
    double held_words;       // for each word of staged tiles that it loads and then stores there; 0: they are copied directly
    int others;              // addresses, loop counters, …
    RegistersTaken *taken;   // NULL: all of the budget
} RegisterLimits;

struct KernelKind {
    const char *name;        // for dumps and the ranking: "row", "column"
    FamilyChoice choice;
    TileSpace *space;        // kinds may share it,
    Schedule *schedule;      // and the schedule: copy before a change
    const struct KindCost *cost;   // the model's row of this kind (model/calibration.h); NULL: nothing was fitted
    ThreadLimits threads;
    RegisterLimits registers;
    SharedLayout shared;     // regions that are the same for all tiles, and
    LayOut *lay_out;         // adds the others; NULL: there are none
    /* Bytes of a staged tile that the threads of the block at these positions write to shared memory, or read,
       where the family lays it out; or NULL. */
    int64_t (*shared_moved)(const KernelKind *kind, int tile, bool written, const RTile *block, const RTile *inner,
                            const int64_t *first);
};
static_assert(sizeof(KernelKind) <= 4096, "it is copied for every variant");

/* Starts a kind: a space without tiles and an empty schedule. Unused items are not initialised. */
void kind_begin(Arena *arena, KernelKind *kind, const Fusion *fusion);

/* With copies of its space, its schedule and its choice. */
KernelKind *kind_copy(Arena *arena, const KernelKind *kind);

/* A copy of the family's choice. */
void kind_choose(Arena *arena, KernelKind *kind, const void *choice, size_t size);

/* Whether staged tiles pass through registers: the kernel has it so, or the device has no asynchronous copies. */
bool kind_passes_registers(const KernelKind *kind, const DeviceSpec *device);

/* Shared tiles of a persistent block, where the number is known before: along an axis, or by next_turn(). */
int kind_turns(const KernelKind *kind);

/* Blocks of a cluster that split a reduction (split-K); and those with adjacent tiles, which share copies (multicast).
   1: there are none. */
int kind_splits(const KernelKind *kind);
int kind_multicast(const KernelKind *kind);

/* A thread has a register tile of its own, and reads the next register step's operands while it uses this one's. */
bool kind_reads_ahead(const KernelKind *kind);

/* The open loop (schedule_open_loop()) whose loads compilers issue in whatever registers are left, or NULL. */
const Loop *kind_unbuffered_loop(const KernelKind *kind);

/* Threads that hold one register tile. */
static inline int kind_tile_threads(const KernelKind *kind)
{
    return kind->threads.of_tile > 0 ? kind->threads.of_tile : 1;
}

/* 32-bit registers of a thread: accumulators, so many copies of the inputs of one step, and the others. */
int64_t kind_registers(const KernelKind *kind, const RTile *tile, int input_buffers);

/* Whether a block with such a tile, or its cluster, has all of the reduction in one step. */
bool kind_is_one_step(const KernelKind *kind, const RTile *block);

/* Bytes the tile occupies on its level: F(T) of the paper (shared memory, or registers * 4). `inner` is the register
   tile inside a shared one; a register tile has none. */
int64_t kind_footprint(const KernelKind *kind, const RTile *tile, const RTile *inner, const DeviceSpec *device,
                       Level level);

void kind_print(StrBuf *out, const KernelKind *kind);   // `-d rtile`
