// What the counts of moves and of exchanges share: the walk through a schedule.
#pragma once
#include "kernel/schedule/count.h"

/* Sectors that were met, by hash: as many as there are points, wherever in memory they lie. A tensor of 32 GB
   has 2^30 of them. */
typedef struct SectorSet {
    int64_t *places;   // a sector and 1; 0: free; NULL: none was met
    int bits;          // of a position; at least half are free
} SectorSet;

typedef struct CountWalk {
    const KernelKind *kind;
    const Fusion *fusion;
    const DeviceSpec *device;
    const CountedBlock *block;
    Region region, loaded;   // of what is stored, of the tiles of inputs
    int64_t tiles, tile;     // of the block, where it is persistent; that is gone through
    bool in_turn;            // they are made one by one,
    unsigned char *seen[MAX_DATA_TILES];   // for which an item may move the same sectors several times
    SectorSet scattered[MAX_DATA_TILES];   // the same, of tiles whose elements lie apart
    Counts *counts;
    bool multiplies;     // register tiles share what they read: a product
    int64_t under_way;   // groups of copies
    int roles;           // of warps, so far
    Dealt order;         // in which they are dealt
    bool dealt;          // totals of a tile are made by several blocks
    bool shares;         // a cluster's blocks share the tile's totals
    int64_t own;         // of these the block's
} CountWalk;

static inline int at_least_1(int times) { return times > 0 ? times : 1; }

/* Register tiles in the block's tile, along the axes of the reduction or the others. */
static inline int64_t count_tiles(const CountWalk *walk, bool reduction)
{
    return (int64_t)rtile_tiles(walk->kind->space, walk->block->shared, walk->block->inner, reduction);
}

/* Outputs of the block's tile that exist. */
static inline int64_t count_inside(const CountWalk *walk)
{
    int64_t inside = 1;
    for (int a = 0; a < walk->kind->space->axis_count; a++)
        inside *= walk->kind->space->axes[a].reduction ? 1 : walk->region.count[a];
    return inside;
}

/* Bytes of shared memory. */
static inline void count_shared(CountWalk *walk, int64_t read, int64_t written)
{
    count_add(&walk->counts->shared_read, read);
    count_add(&walk->counts->shared_written, written);
}

// ---- count_turns.c ----

/* The tiles that a persistent block makes; their number. */
int64_t count_places(const CountWalk *walk, TilePlace *places);

// ---- count_scattered.c ----

/* Sectors of a tile whose dimensions do not say where its elements are; COUNT_UNKNOWN: the fusion says it no better. */
int64_t count_scattered(CountWalk *walk, const Region *region, int index);

// ---- count_rounds.c ----

/* Of the loop. */
int64_t count_rounds(const CountWalk *walk, const Loop *loop);

/* How often the block comes by the item for a tile. */
int64_t count_times(const CountWalk *walk, int item);

// ---- count_arithmetic.c ----

/* The tile with the columns behind it that its boxes have, too, or its products. */
RTile count_wide_tile(const CountWalk *walk, const RTile *tile, bool copied);

void count_work(Counts *counts, const ItemWork *work);
void count_ops(CountWalk *walk, int index);            // of a MAP or a REDUCE
/* `times`: how often the block comes by. `own`: what the family states of it, or NULL. */
void count_product(CountWalk *walk, int64_t times, const ItemWork *own);
void count_combined(CountWalk *walk, const Exchange *exchange, int64_t times);
void count_role(CountWalk *walk, WarpRole role);

// ---- count_exchange.c ----

/* `times`: how often the block comes by. */
void count_exchange(CountWalk *walk, const Exchange *exchange, int64_t times);

/* How many results of an op such an exchange combines. */
int64_t count_all_combinations(CountWalk *walk, const Exchange *exchange);
int64_t count_tree_combinations(const CountWalk *walk, const Exchange *exchange);
int64_t count_halves_combinations(const CountWalk *walk, const Exchange *exchange);
int64_t count_turns_combinations(const CountWalk *walk, const Exchange *exchange);
