// What one block of a kernel does, in time order: made by a family once for all tile sizes, and the only
// place that says so.
//
//     schedule = item…
//     item     = loop { item… }        rounds of the block, along an axis, so many, or one for each of its tiles
//              | load tiles a -> b     from memory, L2, scratch or shared memory to shared memory or registers
//              | wait n                until all but the last n groups of asynchronous copies have landed
//              | map ops               what is made of each element, or of a total
//              | reduce ops            into what a thread holds
//              | exchange scope ops    the threads' results become everybody's; without ops: a barrier
//              | product a b           register tiles of both multiplied, and added up
//              | store tiles a -> b
//              | role who              what follows is done by some of the warps, beside what others do
//
// It is no language to write kernels in: the templates hold the loops, and a family states what they do.
// Shared memory, the questions below, the counts of a block and the dump follow from it.
//
// It knows no tile: a kernel's kind (kernel/kind.h) holds both. What follows for tiles of a size is in kernel/layout.h and
// kernel/schedule/count.h.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "ir/fuse.h"

typedef enum Place {
    PLACE_USUAL,   // of a load from memory to registers, of a store the other way
    PLACE_MEMORY,
    PLACE_L2,        // memory that other blocks have just read: it stays in the caches
    PLACE_SHARED,
    PLACE_REGISTERS
} Place;

/* Whose threads synchronise. */
typedef enum ThreadScope { SCOPE_WARP, SCOPE_BLOCK, SCOPE_CLUSTER, SCOPE_COUNT } ThreadScope;

/* How the results of threads are combined. Shuffles combine those of a warp first. */
typedef enum Combine {
    COMBINE_NOTHING,      // nothing is passed on: a barrier
    COMBINE_LANES,  // no more than a warp takes part
    COMBINE_QUADS,  // the four lanes that have a row of a register tile, of which tensor cores leave each lane one in eight
    COMBINE_ALL,       // every warp leaves its result, and all threads go through those of all warps
    COMBINE_COLUMNS,   // every group of lanes leaves a row of results; of each column one thread makes the total
    COMBINE_TREE,      // partial results in shared memory, half as many after each barrier
    COMBINE_HALVES,    // a lane keeps half its sums in each shuffle, the rest goes by way of shared memory;
                       // a cluster's blocks share the totals
    COMBINE_SLOTS,     // one thread makes a block's total; each op has a slot for those of all blocks of the cluster
    COMBINE_TURNS,     // after shuffles each part of the block's results is added to what is there, one after the other;
                       // warps leave marks of what is no number
    COMBINE_DIAGONALS, // warps add up the diagonals of their tiles by way of shared memory, then the parts of
                       // a result; marks, too
    COMBINE_ROWS,      // none is combined: a warp's results lie in rows when they come back, those that exist
    COMBINE_SHARES,    // a cluster's blocks leave each other their shares of a tile's sums, rows round-robin; then
                       // COMBINE_ROWS
    COMBINE_BITS       // lanes pack their bits to words
} Combine;

typedef enum ItemKind {
    ITEM_LOOP, ITEM_END, ITEM_LOAD, ITEM_WAIT, ITEM_MAP, ITEM_REDUCE, ITEM_EXCHANGE, ITEM_PRODUCT, ITEM_STORE,
    ITEM_ROLE
} ItemKind;

/* Warps of a block that do not all do the same. */
typedef enum WarpRole { WARPS_COPY, WARPS_COMPUTE } WarpRole;

typedef struct Loop {
    int8_t axis;     // of the space
    bool by_thread;  // a round for each register tile along it; else for each shared tile, unless it is known
    bool tiles;      // along no axis: a round for each shared tile that the block makes; they go on by next_turn(), which
                     // may leave out some in a proof
    bool waits;      // compilers do not write its rounds out: in each one a thread waits for what it loads
    int8_t skips;    // a warp leaves out a tap that lies inside an input for none of its lanes along this axis; 0: for whatever lanes
    int32_t times;   // how many there are; 0: it depends on the tiles, and of `tiles` on the SMs that there are
} Loop;

typedef struct Move {
    uint32_t tiles;      // bit i: data tile i of the space
    uint8_t from, to;    // Places
    bool async;          // a group of copies that a WAIT waits for
    uint8_t ahead;       // rounds before the one that uses it; the first ones start before the loop
    bool again;          // the block has had it before: it comes from a cache
    bool collected;      // a store that goes by way of shared memory and a barrier, where a block's part is one run of memory
    uint8_t
        lanes;   // of a product's store: rows that fewer threads share go by way of shared memory, a row of each
                 // thread at a time
    int32_t bytes;       // of zeros that the block writes to shared memory
    double instructions; // of a thread for each of its elements of the tiles, beside accesses to whole vectors
} Move;

/* What is made of elements. */
typedef struct Arithmetic {
    uint64_t ops;          // bit i: op i of the fusion
    double instructions;   // of a thread in all rounds, beside arithmetic: counters, guards, shifts
} Arithmetic;

typedef struct Exchange {
    uint64_t ops;        // bit i: the result of op i of the fusion; 0: a barrier
    uint8_t scope;       // ThreadScope
    uint8_t combine;     // Combine
    uint8_t bytes;       // of one result's place in shared memory; of a sum that a block leaves for another
    uint8_t value_bytes; // of the result
    bool along;          // lanes lie along the reduction. Of a tree, shuffles combine them first, and no others
    bool cut;            // rows begin within the pieces that are read of them: by each row's place some are read twice
    uint8_t values;      // of a thread that shuffles combine; 0 = 1
    uint8_t times;       // rows of the block that do so, one after the other; 0 = 1
    int16_t parts;       // that meet in shared memory: warps of a row, groups of a column, threads of a block; bits of a word;
                         // rows of a share that lie side by side
    int16_t width;       // lanes that shuffles combine; results side by side; bits of a lane
} Exchange;

typedef struct Item {
    uint8_t kind;        // ItemKind
    union {
        Loop loop;
        Move move;           // LOAD, STORE
        uint8_t behind;      // WAIT: groups that may still be under way
        uint8_t role;        // ROLE: a WarpRole
        Arithmetic arithmetic;   // MAP, REDUCE, PRODUCT
        Exchange exchange;
    };
} Item;

/* In which order the blocks of a launch make their tiles. */
typedef enum BlockOrder {
    ORDER_FORWARDS,    // along the innermost axis first
    ORDER_BACKWARDS,   // the last one first
    ORDER_PANELS       // several rows of tiles side by side, then the next ones (RProgram.panel)
} BlockOrder;

/* How many points MAP, REDUCE and PRODUCT make, of those that the block's tile has. */
typedef enum Computes {
    COMPUTES_INSIDE,    // those inside the tensors; a product multiplies whole tiles
    COMPUTES_WINDOWS,   // those inside; the first term of a result begins it
    COMPUTES_VECTORS,   // of rows whole vectors
    COMPUTES_OWN        // of sums more or fewer, which only the template knows: it passes over rows beside the image,
                        // multiplies what lies between others, or adds up once what several outputs share
} Computes;

enum {
    MAX_ITEMS = 256   // a chain of 30 reductions over rows in shared memory, 8 a pass; of 60 in registers
};

typedef struct Schedule {
    uint8_t order;           // BlockOrder
    uint8_t computes;        // Computes
    int rows;                // staged tiles of every kind side by side, each with all tensors of a phase; 0 = 1
    int64_t kept;            // elements of a staged tile that is kept as one run; 0: its footprint, with bank padding
    int64_t points;          // of the reduction, where the space has it rounded up to whole tiles; 0: it has not
    int64_t run;             // of these that one block of a cluster has before the next block's follow; 0: a tile's
    uint32_t back;           // bit a: the last tile along axis a lies back so that it ends where the tensor does: whole tiles
                             // are loaded, but only what is new is stored
    uint32_t cut;            // bit a: of the only tile along axis a no more is loaded than there is, in eights
    uint32_t cleared;        // likewise, as many as there are; what lies behind is cleared once, in each stage
    int vector;              // of rows that begin anywhere: elements of the aligned vectors that hold them; 0: aligned
    int stages;              // buffers of every staged tile: 2 = the next is loaded meanwhile; 0 = 1, but of rows `vectors`
    bool apart;   // warps go from step to step by themselves: they meet before the first and behind the last
    int vectors;             // of a row that a thread takes; 0: no schedule of rows
    int makers;   // groups of threads that each make whole tiles, in turn: one stores while another multiplies; 0 = 1
    int cluster;             // blocks of a cluster; 0 = 1
    int cluster_axis;        // that it lies along: of a reduction each block has a share; else their tiles lie side by side,
                             // and they copy for each other what the axis does not change
    int count;
    bool overflows;          // there was no room for all items: it does not say what the kernel does
    Item items[MAX_ITEMS];   // anything behind the last
} Schedule;

// ---- making one ----

void schedule_loop(Schedule *schedule, Loop loop);
void schedule_end(Schedule *schedule);
void schedule_load(Schedule *schedule, Move move);     // nothing, if it moves nothing
void schedule_store(Schedule *schedule, Move move);    // likewise
void schedule_wait(Schedule *schedule, int behind);
void schedule_map(Schedule *schedule, uint64_t ops);   // nothing, if there are none
void schedule_reduce(Schedule *schedule, uint64_t ops);
void schedule_exchange(Schedule *schedule, Exchange exchange);
void schedule_barrier(Schedule *schedule, ThreadScope scope);
void schedule_pack(Schedule *schedule, uint64_t ops, int vector, int word);   // bits, so many of a lane; nothing without ops
void schedule_product(Schedule *schedule, uint64_t ops);
void schedule_takes(Schedule *schedule,
                    double instructions);   // the last item, which is a MAP, REDUCE or PRODUCT
void schedule_role(Schedule *schedule, WarpRole role);

/* The fusion's reductions, or its other ops, as bits. Bit 63 stands for all from op 63 on. */
uint64_t schedule_ops(const Fusion *fusion, bool reductions);

/* Those that are stored one bit an element. */
uint64_t schedule_bit_ops(const Fusion *fusion);

/* Most of a schedule is room for items that few kernels have. Bytes of what it holds; a copy, with no more room than
   that: nothing is added to it. */
size_t schedule_bytes(const Schedule *schedule);
Schedule *schedule_copy(Arena *arena, const Schedule *schedule);

// ---- questions ----

/* Groups of threads that each make whole tiles. */
int schedule_makers(const Schedule *schedule);

/* A product is one of its items. */
bool schedule_multiplies(const Schedule *schedule);

/* Rows of an output that fewer threads share go by way of shared memory; 0: none do. */
int schedule_collecting_lanes(const Schedule *schedule);

/* How many copies of a staged tile shared memory holds. */
int schedule_buffers(const Schedule *schedule);

/* Is the first of both items a loop, and the other one, behind it, inside? */
bool schedule_is_around(const Schedule *schedule, int loop, int item);

/* How often the block comes by the item: product of the rounds of its loops, where they do not depend on the
   tiles. */
int64_t schedule_rounds(const Schedule *schedule, int item);

/* What a block loads in its next round is on its way meanwhile. */
bool schedule_loads_ahead(const Schedule *schedule);

/* How many rounds before its use the block asks for what it copies, at most. */
int schedule_rounds_ahead(const Schedule *schedule);

/* Some of it is read in a pass, when all else is there, from L2. */
bool schedule_reads_late(const Schedule *schedule);

/* Its loop in whose rounds threads wait, or NULL. */
const Loop *schedule_waiting_loop(const Schedule *schedule);

/* No more blocks than SMs make all shared tiles, each several one after the other. */
bool schedule_is_persistent(const Schedule *schedule);

/* A block goes through its shared tiles by next_turn(). */
bool schedule_counts_turns(const Schedule *schedule);

/* The warps of a block leave sums of the same rows for each other. */
bool schedule_combines_rows(const Schedule *schedule);

/* The blocks of a cluster leave all sums of their tiles for each other. */
bool schedule_passes_rows(const Schedule *schedule);
