// What the counts of moves and of exchanges share: the walk through a schedule.
#pragma once
#include "schedule/count.h"

typedef struct CountWalk {
    const TileRules *rules;
    const DeviceSpec *device;
    const CountedBlock *block;
    Region region, loaded;   // of what is stored, of the tiles of inputs
    Counts *counts;
    bool multiplies;     // register tiles share what they read: a product
    int64_t under_way;   // groups of copies
    bool dealt;          // totals of a tile are made by several blocks
} CountWalk;

static inline int at_least_1(int times) { return times > 0 ? times : 1; }

/* Register tiles in the block's tile, along the axes of the reduction or the others. */
int64_t count_tiles(const CountWalk *walk, bool reduction);

/* More bytes of shared memory that are read and written; COUNT_UNKNOWN for good. */
void count_shared(CountWalk *walk, int64_t read, int64_t written);

// ---- count_exchange.c ----

/* `times`: how often the block comes by. */
void count_exchange(CountWalk *walk, const Exchange *exchange, int64_t times);
