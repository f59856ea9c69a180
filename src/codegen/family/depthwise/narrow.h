// Convolutions of few channels on tensor cores: what the kinds and the emitter of templates/narrow.cu share.
#pragma once
#include "codegen/family/depthwise/direct.h"
#include "rtile/space.h"

/* The family's choice. */
typedef struct NarrowWay {
    bool rows;     // a row of taps is a run of K; else the channels under a tap, or those of `together` taps
    bool pieces;   // lines are copied by 16 bytes
    int64_t channel;   // elements from one channel to the next
    int run, runs;     // elements of a run; of each row of taps
    int shift;         // of these so many lie before the first tap
    int together;
    int steps;                     // eights of K
    int groups, filters;           // of a block, filters of each group,
    int warp_groups, warp_tiles;   // of a warp, in eights of filters
    int folded;                    // groups of 2 or 4 filters that an eight has room for
    int row_tiles;                 // tiles of outputs that it multiplies together
    int sets;                      // of outputs, that warps with the same filters share
    int height, width;             // outputs of a block
    int pixel, lead, reach;        // in shared memory: elements; before the first one; pixels,
    int line, lines;               // elements of a line, lines
    int vector;                    // columns of a plane that are copied together; 0: no planes, or element by element
    int phases, phase;             // every so many-th pixel of a line is contiguous; so many pixels
    int adjacent;                  // outputs of a line that a lane has
    int beside;                    // tiles of a warp whose filters are interleaved
    int stored;                    // filters, or such outputs, that are one aligned access
    double stored_lines, stored_accesses;   // Move.lines, Move.accesses
    int64_t filter_run;            // elements of a block's filters, one run of memory; 0: they are not
    int64_t skew;      // of which these many are together in shared memory: eight are left out behind them; 0: all
    bool by_terms;     // those of a summed channel, else of eight filters
    bool words;        // two channels of a filter are one aligned word
    bool vectors;      // filters of a lane and of its neighbour are one aligned vector
} NarrowWay;

enum { NARROW_EIGHT = 8, NARROW_TILE = 16 };   // of K and filters; outputs that an instruction makes

enum { NARROW_INPUT, NARROW_FILTER };   // tiles of the space

/* Bits of those that the epilogue loads. */
static inline uint32_t narrow_loads(const TileSpace *space)
{
    return space_inputs(space) & ~(1u << NARROW_INPUT | 1u << NARROW_FILTER);
}

/* Whether that differs from output to output, as a residual does. */
static inline bool narrow_loads_outputs(const TileSpace *space)
{
    for (int i = 0; i < space->tile_count; i++)
        if (narrow_loads(space) >> i & 1 && data_tile_depends(&space->tiles[i], DOWN))
            return true;
    return false;
}

/* Elements of a filter. */
static inline int64_t narrow_filter(const Depthwise *shape)
{
    return slide_down(shape)->taps * slide_along(shape)->taps * shape->summed.extent;
}

/* The parameter block. */
void narrow_emit(StrBuf *out, const KernelPlan *plan);
