// What one block of a kernel does, in numbers: what the CPU interpreter counts, too.
#pragma once
#include "kernel/work.h"

/* A block of the launch that the tiles make. */
typedef struct CountedBlock {
    const RTile *shared, *inner;   // its tile, a thread's
    int threads;                   // as launched
    int turns;                     // shared tiles of a persistent block, if its kind leaves that open,
    int64_t grid, panel;           // where such a launch has so many blocks, and so many rows of tiles side by side
    bool last;                     // of the launch; else the first
    StatedWork *work;              // the family's, or NULL,
    const void *view;              // and what the fusion is to it
} CountedBlock;

typedef struct Counts {
    int64_t sectors[MAX_DATA_TILES];        // 32 bytes each, of the tile's tensor, each once
    int64_t shared_read, shared_written;    // bytes
    int64_t shuffles;                       // and ballots, of the first warp
    int64_t barriers[SCOPE_COUNT];          // of the block, the cluster
    int64_t waits, pending;                 // for asynchronous copies; groups under way after them, in sum
    int64_t additions, multiplications, comparisons, functions;   // of numbers that are no indices; a maximum is a comparison
    int64_t tensor_products;                // multiply-adds of tensor cores
    int64_t copying_warps, multiplying_warps;   // that ask for bulk copies, or tensor cores
} Counts;

Counts schedule_count(Arena *arena, const KernelKind *kind, const Fusion *fusion, const DeviceSpec *device,
                      const CountedBlock *block);

/* A line for each kind. */
void counts_print(StrBuf *out, const TileSpace *space, const Counts *counts);

// ---- count_region.c: the part of a tensor that belongs to a block ----

/* Of a tile's results a cluster's blocks have rows round-robin, in runs of so many; or the tile, row by row, one a thread. */
typedef struct Dealt {
    int axis;
    int64_t from, run;   // run 0: rows are not dealt
    int threads;         // of each block; 0: nor are single results
} Dealt;

typedef struct Region {
    Arena *arena;
    const KernelKind *kind;
    const CountedBlock *block;
    int64_t first[MAX_AXES], count[MAX_AXES];   // positions of the block along each axis
    Dealt dealt;
} Region;

/* A shared tile, by its number along each axis. */
typedef struct TilePlace {
    int64_t at[MAX_AXES];
} TilePlace;

/* The block's only tile, or the first ones of those of a persistent block whose number is known before. */
TilePlace region_place(const KernelKind *kind, const CountedBlock *block);

/* Of what it stores, or loads: other positions where tiles lie back. */
Region region_of(Arena *arena, const KernelKind *kind, const CountedBlock *block, const TilePlace *place,
                 bool loaded);

/* It takes no longer than a moment to go through the block's part of the tile. */
bool region_is_countable(const Region *region, const DataTile *tile);

/* Those that were not seen before; `seen` NULL: none was. */
int64_t region_sectors(const Region *region, const DataTile *tile, unsigned char **seen);

/* Elements, one for every position. */
int64_t region_elements(const Region *region, const DataTile *tile);

/* Bytes of aligned vectors of so many that hold each of its runs of memory. */
int64_t region_pieces(const Region *region, const DataTile *tile, int64_t piece_bytes);

/* The block's part of the tile is one run of memory. */
bool region_is_run(const Region *region, const DataTile *tile);

/* The block has that position along the axis: of a reduction that a cluster shares blocks have runs round-robin. */
bool region_is_own(const Region *region, int axis, int64_t position);

/* The result of that number in the block's tile is. */
bool region_is_own_number(const Region *region, int64_t number);

/* What is the same for several blocks is stored by the first of them; of a cluster that shares a reduction only that one
   makes results. */
bool region_is_stored_elsewhere(const Region *region, const DataTile *tile);

/* Positions of the block along an axis; of a reduction that a cluster shares its own. */
int64_t region_positions(const Region *region, int axis);

/* Elements of a row, and what lies beside it in its first and last vectors where rows begin within one; the block's own. */
int64_t region_vectors(const Region *region, int64_t row);
