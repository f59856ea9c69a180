// What one block of a kernel does, in time order. A family makes it once for all tile sizes; nothing else states
// it.
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
// It is not a language to write kernels in: the templates hold the loops, and a family states what they do. Shared
// memory, the questions below, the counts of a block and the dump follow from it.
//
// It knows no tiles: a kernel's kind (kernel/kind.h) holds both. What follows for tiles of a size is in
// kernel/layout.h and kernel/schedule/count.h.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "ir/fuse.h"

typedef enum Place {
    PLACE_USUAL,   // of a load from memory to registers, of a store the other way
    PLACE_MEMORY,
    PLACE_L2,        // memory that other blocks have just read: it hits the caches
    PLACE_SHARED,
    PLACE_REGISTERS
} Place;

/* Whose threads synchronise. */
typedef enum ThreadScope { SCOPE_WARP, SCOPE_BLOCK, SCOPE_CLUSTER, SCOPE_COUNT } ThreadScope;

/* How the results of threads are reduced. Shuffles reduce across a warp first. */
typedef enum Combine {
    COMBINE_NOTHING,      // nothing is exchanged: a barrier
    COMBINE_LANES,  // at most a warp takes part
    COMBINE_QUADS,  // the four lanes that share a row of a tensor core tile
    COMBINE_ALL,       // every warp writes its result, and all threads reduce those of all warps
    COMBINE_COLUMNS,   // every group of lanes writes a row of results; one thread of each column reduces it
    COMBINE_TREE,      // partial results in shared memory, half as many after each barrier
    COMBINE_HALVES,    // a lane keeps half its sums in each shuffle, the rest goes by way of shared memory;
                       // a cluster's blocks share the totals
    COMBINE_TURNS,     // after shuffles each part of the block's results is added to what is there, one after the other;
                       // warps leave marks of what is no number
    COMBINE_DIAGONALS, // warps add up the diagonals of their tiles by way of shared memory, then the parts of
                       // a result; marks, too
    COMBINE_ROWS,      // a warp's results lie in rows when they come back, those that exist: none is added,
                       // but blocks of a cluster add up those of all, some rows each
    COMBINE_BITS       // lanes pack their bits to words
} Combine;

typedef enum ItemKind {
    ITEM_LOOP, ITEM_END, ITEM_LOAD, ITEM_WAIT, ITEM_MAP, ITEM_REDUCE, ITEM_EXCHANGE, ITEM_PRODUCT, ITEM_STORE,
    ITEM_ROLE
} ItemKind;

/* Roles of warps (warp specialisation). */
typedef enum WarpRole { WARPS_COPY, WARPS_COMPUTE } WarpRole;

typedef struct Loop {
    int8_t axis;     // of the space
    bool by_thread;  // a round for each register tile along it; else for each shared tile, unless known
    bool tiles;      // along no axis: a round for each shared tile that the block makes; they go on by next_turn(), which
                     // may leave out some in a proof
    bool waits;      // not unrolled: in each round a thread waits for what it loads
    int16_t together;   // elements of each tensor that a thread loads in as many rounds at once; 0: compilers unroll it
    int16_t at_once;    // most rounds whose loads a thread waits for together; 0: any number
    int8_t skips;    // a warp leaves out a tap that lies inside an input for none of its lanes along this axis; 0: for whatever lanes
    int8_t dealt;    // of `times`, so many at a time to the blocks of a cluster in turn; 0: each has all
    int16_t instructions;   // of a thread in each round that stages tiles, besides those of its items
    int32_t times;   // number of rounds; 0: depends on the tiles, and for `tiles` on the number of SMs
} Loop;

typedef struct Move {
    uint32_t tiles;      // bit i: data tile i of the space
    uint8_t from, to;    // Places
    bool async;          // a group of asynchronous copies that a WAIT waits for
    uint8_t ahead;       // rounds before its use; the first ones start before the loop
    uint8_t held, each;  // of an epilogue's load: bytes that a thread loads together, or with `ahead` prefetches; then the rest stalls
                         // every so many elements, as does a load that passes registers to shared memory
    bool again;          // the block has loaded it before: it hits a cache
    bool collected;      // a store that goes by way of shared memory and a barrier, where a block's part is one run of memory
    uint8_t
        lanes;   // of a product's store: rows that fewer threads share go by way of shared memory, a row of each
                 // thread at a time
    float lines;         // that a warp touches to store one element of each lane, between those of other lines; 0: it has no such
                         // accesses
    float accesses;      // of L2 for each sector's worth that is stored, of which those of parts of a sector count twice; 0: as
                         // rows of tiles have it
    bool completed;      // the other parts of these sectors are stored by the same warp right after: memory has whole ones
    int32_t bytes;       // of zeros that the block writes to shared memory
    double instructions; // of a thread for each of its elements of the tiles, besides accesses to whole vectors
} Move;

/* What is computed of elements. */
typedef struct Arithmetic {
    uint64_t ops;          // bit i: op i of the fusion
    double instructions;   // of a thread in all rounds, besides arithmetic: counters, guards, shifts
    double waits;          // in sequence, for rows that it loads ahead
} Arithmetic;

enum { FEW_WARPS = 8 };   // of a row, whose results every thread goes through; of more, lanes share them

typedef struct Exchange {
    uint64_t ops;        // bit i: the result of op i of the fusion; 0: a barrier
    uint8_t scope;       // ThreadScope
    uint8_t combine;     // Combine
    uint8_t bytes;       // of one result in shared memory
    uint8_t value_bytes; // of the result
    bool along;          // lanes lie along the reduction. Of a tree, shuffles reduce across them first, and no others
    uint8_t slab;        // columns in shared memory at once, where rows are not aligned to the vectors that are read: some are
                         // read twice; 0: rows are aligned
    uint8_t values;      // of a thread that shuffles reduce; 0 = 1
    uint8_t times;       // rows of the block that do so in sequence; 0 = 1
    int16_t parts;       // that are reduced in shared memory: warps of a row, of 32 threads each; groups of a column,
                         // threads of a block; bits of a word
    int16_t width;       // lanes that shuffles combine; results side by side; bits of a lane
} Exchange;

typedef struct Item {
    uint8_t kind;        // ItemKind
    union {
        Loop loop;
        Move move;           // LOAD, STORE
        uint8_t behind;      // WAIT: groups that may still be in flight
        uint8_t role;        // ROLE: a WarpRole
        Arithmetic arithmetic;   // MAP, REDUCE, PRODUCT
        Exchange exchange;
    };
} Item;

/* The rasterisation order: in which order the blocks of a launch compute their tiles. */
typedef enum BlockOrder {
    ORDER_FORWARDS,    // along the innermost axis first
    ORDER_BACKWARDS,   // the last one first
    ORDER_PANELS,            // panels of several rows of tiles (RProgram.panel)
    ORDER_PANELS_BACKWARDS   // the last one first
} BlockOrder;

/* Which points of the block's tile MAP, REDUCE and PRODUCT compute. */
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
    int rows;                // staged tiles of every kind, each with all tensors of a phase; 0 = 1
    int64_t kept;            // elements of a staged tile that is kept as one run; 0: its footprint, with bank padding
    int64_t points;          // of the reduction, where the space has it rounded up to whole tiles; 0: it has not
    int64_t run;             // of these that one block of a cluster has before the next block's follow; 0: a tile's
    uint32_t back;           // bit a: the last tile along axis a lies back so that it ends where the tensor does: whole tiles
                             // are loaded, but only what is new is stored
    uint32_t cut;            // bit a: of the only tile along axis a no more is loaded than there is, in eights
    uint32_t cleared;        // likewise, as many as there are; what lies behind is cleared once, in each stage
    uint32_t whole;          // bit a: a thread whose part along axis a begins inside reduces all of that part
    int terms;               // of a vector, where threads share the terms of an output: those that lack one make the last one
                             // again; 0: each makes what there is
    int64_t lacking, lacked;   // so many outputs at the end lack so many terms each
    int vector;              // of unaligned rows: elements of the aligned vectors that hold them; 0: aligned
    int stages;              // of every staged tile: 2 = the next is loaded during a step; 0 = 1, but of rows `vectors`
    bool independent;   // warps iterate independently: they synchronise before the first step and after the last
    int vectors;             // of a row that a thread takes; 0: no schedule of rows
    int makers;   // groups of threads that compute whole tiles alternately (ping-pong); 0 = 1
    int cluster;             // blocks of a cluster; 0 = 1
    int cluster_axis;        // that it lies along: of a reduction each block has a share; else their tiles lie side by side,
                             // and they copy for each other what the axis does not change
    int count;
    bool overflows;          // there was no room for all items: it does not describe the kernel
    Item items[MAX_ITEMS];   // not initialised after the last one
} Schedule;

// ---- making one ----

void schedule_loop(Schedule *schedule, Loop loop);
int64_t loop_rounds_together(const Loop *loop, int64_t elements);   // of a round: rounds whose loads are in flight at once. NULL: 1
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
void schedule_takes(Schedule *schedule, double instructions,
                    double waits);   // the last item, which is a MAP, REDUCE or PRODUCT
void schedule_role(Schedule *schedule, WarpRole role);

/* The fusion's reductions, or its other ops, as bits. Bit 63 stands for all from op 63 on. */
uint64_t schedule_ops(const Fusion *fusion, bool reductions);

/* Those that are stored one bit an element. */
uint64_t schedule_bit_ops(const Fusion *fusion);

/* Most of a schedule is unused room for items. The bytes in use; and a copy of these, to which nothing is added. */
size_t schedule_bytes(const Schedule *schedule);
Schedule *schedule_copy(Arena *arena, const Schedule *schedule);

// ---- questions ----

/* The next item of a kind behind `item`, of all items if that is NULL; NULL: there is none. */
static inline const Item *schedule_next(const Schedule *schedule, ItemKind kind, const Item *item)
{
    const Item *end = schedule->items + schedule->count;
    item = item ? item + 1 : schedule->items;
    while (item < end && item->kind != kind)
        item++;
    return item < end ? item : NULL;
}

/* Groups of threads that compute whole tiles alternately. */
int schedule_makers(const Schedule *schedule);

/* Copies of a staged tile in shared memory (stages). */
int schedule_buffers(const Schedule *schedule);

/* Whether the first item is a loop that contains the second, later one. */
bool schedule_is_around(const Schedule *schedule, int loop, int item);

/* How often the block executes the item: the product of the rounds of its loops, where they do not depend on the
   tiles. */
int64_t schedule_rounds(const Schedule *schedule, int item);

/* Whether a block loads the next round's tiles during a round (pipelining). */
bool schedule_loads_ahead(const Schedule *schedule);

/* The most rounds before its use that the block starts a copy. */
int schedule_rounds_ahead(const Schedule *schedule);

/* The first item, if it is a loop in whose rounds a thread loads and reduces only, or NULL. */
const Loop *schedule_open_loop(const Schedule *schedule);

/* Whether some of it is loaded in a pass, from L2, after the other loads have completed. */
bool schedule_reads_late(const Schedule *schedule);

static inline bool schedule_in_panels(const Schedule *schedule)
{
    return schedule->order == ORDER_PANELS || schedule->order == ORDER_PANELS_BACKWARDS;
}

static inline bool schedule_is_backwards(const Schedule *schedule)
{
    return schedule->order == ORDER_BACKWARDS || schedule->order == ORDER_PANELS_BACKWARDS;
}

/* Whether blocks are persistent: at most as many as SMs compute all shared tiles, each several in sequence. */
bool schedule_is_persistent(const Schedule *schedule);

/* Whether a block iterates over its shared tiles by next_turn(). */
bool schedule_counts_turns(const Schedule *schedule);

/* What the model asks for each program of a kind: found once, for the kind. */
typedef struct ScheduleFacts {
    bool multiplies;           // a product is one of its items
    bool is_persistent;
    bool cuts_rows;            // rows of sums are cut where aligned accesses to the output begin
    bool combines_rows;        // the warps of a block reduce sums of the same rows
    bool passes_rows;          // the blocks of a cluster exchange all sums of their tiles
    int rounds_ahead;
    int collecting_lanes;      // the most Move.lanes of its stores; 0: no row is collected in shared memory
    const Move *last_store;    // or NULL
    const Loop *open_loop;
    const Loop *waiting_loop;  // the first with Loop.waits, or NULL
} ScheduleFacts;

ScheduleFacts schedule_facts(const Schedule *schedule);
