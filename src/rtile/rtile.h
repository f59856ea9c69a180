// An rTile is one tile size along every axis, aligned with one memory level of one device.
//
// This floor knows axes, data tiles and devices; it never learns what a matmul is. A kernel family
// describes its kernel by a TileSpace: which axes are tiled and how, and what each tile must hold. What else a
// kernel is stands in kernel/kind.h.
#pragma once
#include <assert.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/strbuf.h"
#include "hal/device.h"
#include "hal/launch.h"
#include "ir/tensor_op.h"
#include "ir/window.h"

/* From a thread outwards. A register tile is what one thread computes, a shared tile what one
   block does (whether or not anything is staged in shared memory), the global tile is the
   problem. */
typedef enum Level { LEVEL_REGISTER, LEVEL_SHARED, LEVEL_GLOBAL, LEVEL_COUNT } Level;

enum {
    WORD_BITS = 32,             // of a register; one-bit elements are read and written in whole words
    VECTOR_BYTES = 16,          // of the widest access of a thread (PTX ISA, ld.v4)
    SECTOR_BYTES = 32,          // that memory moves at least
    LINE_BYTES = 128,           // of a cache
    LEAST_WARP = 32,            // threads; some devices have more
    MAX_DATA_TILES = 24,        // accesses of one fused kernel; fuse() stays below
    MAX_RUNS = 8,               // powers of two up to a line of single bytes
    MAX_REPEATED = 2            // dimensions whose positions may share elements: flat ones, of which a tile has two
};

/* 2^40: far beyond any shared memory, and sums of a few stay in 64 bits. */
#define TOO_MANY_BITS ((int64_t)1 << 40)

typedef struct RTile {
    int64_t size[MAX_AXES];     // 0 beyond the last axis
} RTile;

/* How positions along a dimension share elements: `run` adjacent ones have the same one, and after `cycle`
   different ones those come again, `again` times in all before there are others. Of rows (b,h,q) a scale[b]
   has runs of H*Q rows, a mask[q] cycles of Q that come B*H times, a bias[b,q] cycles of Q that come H
   times. */
typedef struct Repeats {
    int64_t run, cycle, again;  // run 0: every position has its own element
} Repeats;

/* Of a factor of a convolution, dimension `k` goes tap by tap, and of a part of a concatenation row by row:
   of each the channels, then positions up to `step` where there are none. */
typedef struct TapTile {
    int k;
    int64_t step, channels;     // step 0: the tile is none
    double pixels;              // an image: each row of outputs brings so many that no other one has; 0: a filter
} TapTile;

/* A tensor access as tiling sees it: its extent inside a tile follows from `affine_extent` of each dimension.
   That is its footprint, what a tile has room for where it keeps the elements of every position. What moves
   are the different ones among them: a scale that 4096 rows share stays in the caches. */
typedef struct DataTile {
    const char *name;           // of the tensor
    int rank;                   // 0: a scalar
    Dim dims[MAX_RANK];         // over the axes of the TileSpace; the last is contiguous in memory
    Repeats repeats[MAX_REPEATED];   // which positions along the first ones have the same element
    int element_bits;
    int register_bits;          // of an input's element in registers; 0: element_bits
    bool output;
    bool apart;                 // the tile is no picture of memory: its elements lie elsewhere than side by side
    bool again;                 // a block reads these elements for another time, a pass later
    bool beside;                // read vector by vector when sums are complete: no thread holds its part of the tile
    bool staged;                // kept in shared memory while a block uses it
    int staged_bits;            // of an element there (f16 may be kept widened); 0: element_bits
    int staged_inner;           // the dimension that is contiguous there
    int staged_granule;         // bank padding is a multiple of this: vector accesses stay aligned
    bool swizzled;              // staged lines of whole 16-byte vectors, swizzled in place of bank padding
    int64_t plane;              // staged from its first element to its last, with all that lies between and no bank padding,
                                // out of planes of so many elements; 0: staged line by line
    int64_t elements;           // of the tensor, which overlapping windows share; 0: one for each position
    int64_t run;                // of the last dimension, elements that are contiguous; 0: all are
    TapTile taps;
    bool windows;               // staged, and read from there once for each window that holds it
    int vector;                 // elements that a thread loads at once, into registers or to shared memory; 0: 16 bytes
    double instructions;        // of a thread to find one element that is staged; 0: whole vectors are contiguous
    double line_instructions;   // the same where threads share lines evenly, so that what a thread's elements have
                                // in common is found once; 0: no difference
    double step_instructions;   // and that, in each step, one after the other
    int64_t even_terms;         // of the reduction in a step, or a divisor: in others nothing is found once; 0: any
    bool grouped;               // threads read groups of neighbours from shared memory that divide their own
    bool line_places;           // each line that a thread brings elements of has a place in registers
    bool copied_evenly;         // only as many threads copy as share its lines evenly
    double scatter;             // bytes moved per byte a warp uses in thread order; 1: coalesced
    double run_points[MAX_RUNS];   // adjacent points that hold 2^r contiguous elements; 0: no number of them does
    double lines;               // L1 lines that a warp's access touches per line's worth of bytes, or cycles; 0: 1
    bool across;                // lanes lie along a block's last spatial axis first
    double parts;               // of an output of which threads store runs that begin or end within sectors: accesses of L2 for
                                // each of its sectors; 0: nobody counted
    int lines_axis;             // where threads take several positions of this axis each, 2^r, the same lies apart:
    double lines_apart[MAX_RUNS];   // 0: as `lines`
    double loop_bytes[MAX_RUNS];   // that a block of 2^r warps reads from L2 in its loops: L1 keeps what it has room for;
                                   // 0: nobody counted
    uint32_t kept;              // bit r: L1 keeps all of the tensor, which such blocks of an SM read from L2 once, together
} DataTile;

/* Pixels under the taps of a filter: output (n, p, q), the last one innermost, sees under tap (r, s) the pixel
   (n, p*stride + r*dilation - pad, …) of the input, if there is one. */
typedef struct PixelWalk {
    int count;                          // of axes; 0: there is no image
    WindowAxis axis[MAX_PIXEL_AXES];    // outermost first; dilations may be negative
    int64_t tap_step[MAX_PIXEL_AXES];   // stride of the axis's taps among all taps
} PixelWalk;

/* Columns of a product that are several phases, each of which has some of the taps: those that none of a tile's columns
   has are left out. */
enum { MAX_PHASES = 64 };
typedef struct TapPhases {
    int columns_axis, k_axis;     // of the space
    int count;                    // of phases; 0: there are none
    int64_t columns, step;        // positions of a phase, and of k for each tap
    int64_t box, atom;            // a tile's columns are copied and multiplied in multiples of these; 0: as they are
    uint64_t used[MAX_PHASES];    // bit t: tap t
    /* Where the filter's elements lie: those of a phase and a tap from there on, of a phase's taps in turn. */
    int taps;
    const int64_t *offsets;
    int64_t channels, column_stride, channel_stride;
} TapPhases;

/* What may vary along one axis at one level. */
typedef struct AxisRule {
    int64_t granule;            // sizes are multiples of this (1: any)
    int64_t limit;              // largest size; 1: this level does not tile the axis
} AxisRule;

/* Of a reduction axis a position of another axis needs a part alone, as rows need the columns up to the diagonal: those from
   begin + begin_step * position on and before end + end_step * position. Steps outside are passed over. */
typedef struct Band {
    bool exists;
    int axis, along;
    double begin, begin_step, end, end_step;
} Band;

typedef struct TileSpace {
    int axis_count;
    Axis axes[MAX_AXES];        // any order; `reduction` says which are summed over
    uint32_t fused[MAX_AXES];   // of the fusion's axes those that each of these goes along, as one flat axis; 0: it is not said
    AxisRule rule[LEVEL_GLOBAL][MAX_AXES];   // [LEVEL_REGISTER], [LEVEL_SHARED]
    uint32_t any;               // bit a: tiles of the axis may be any multiple of its granule
    uint32_t even;              // bit a: block tiles of the axis may be as few as of a power of two and reach less past its end
    int least_reducers;         // threads that share a reduction, at least, if it is long enough: adjacent ones read
                                // runs of memory; 0: each goes through it alone
    bool unpadded;              // lines are contiguous whatever banks they share, to see what padding buys
    double flops;               // of one point of the space
    double special;             // special-function results of one point
    double instructions;        // of one point, where a family counts them itself; 0: the flops tell
    Unit unit;                  // what does the flops
    PixelWalk walk;             // of the factor of a product whose rows are pixels
    Band band;                  // of the reduction that it needs
    const TapPhases *phases;    // of a product's columns; NULL: there are none. k is as long as it is on average
    int tile_count;
    DataTile tiles[MAX_DATA_TILES];
} TileSpace;

// ---- data_tile.c: what a data tile holds and moves ----

/* a * b, or INT64_MAX: sizes this large are refused by every limit. Both are at least 0. */
static inline int64_t size_product(int64_t a, int64_t b)
{
    int64_t product;
    return checked_mul(a, b, &product) ? product : INT64_MAX;
}

/* Does the data tile change when the axis advances? */
static inline bool data_tile_depends(const DataTile *tile, int axis)
{
    for (int d = 0; d < tile->rank; d++)
        if (tile->dims[d].index.coef[axis])
            return true;
    return false;
}

/* All axes along which it does, as bits. */
uint32_t data_tile_axes(const DataTile *tile, int axis_count);

/* The threads take whole lines of the tile at a time, or several times as many threads share one: the stride from
   one element of a thread to its next is constant. */
bool data_tile_lines_even(const DataTile *tile, const RTile *of, int axis_count, int64_t threads);

/* Elements of a data tile inside a tile of the axes, one for every position; INT64_MAX if there are more. */
int64_t data_tile_elements(const DataTile *tile, const RTile *of, int axis_count);

/* Those of them that differ. */
int64_t data_tile_distinct(const DataTile *tile, const RTile *of, int axis_count);

/* Distinct bytes of the data tile, clipped to the tensor. */
double data_tile_bytes(const DataTile *tile, const RTile *of, int axis_count);

/* Bytes that loading or storing the data tile moves: contiguous runs in whole transactions,
   clipped to the tensor. Roller 3.1 (2), "memory transaction". A run starts on a transaction
   boundary when both the tensor's rows and the run fit the transactions; otherwise its start is
   anywhere, and it moves run + transaction - element bytes on average: with 32-byte transactions 5
   floats of a long row move 32 or 64 bytes, 48 on average. */
double data_tile_traffic(const DataTile *tile, const RTile *of, int axis_count, int transaction_bytes);

/* Bytes of the 16-byte vectors that hold everything between the tile's first element and its last: up to one more
   at each end. INT64_MAX if there are too many. */
int64_t data_tile_span_bytes(const DataTile *tile, const RTile *of, int axis_count);

/* How often the tile is walked through while a block runs over the reduction axes it depends
   on. */
double data_tile_visits(const TileSpace *space, const DataTile *tile, const RTile *of);

/* Bits of an element of a staged tile in shared memory. */
int staged_bits(const DataTile *tile);

// ---- pixel_walk.c ----

/* Pixels of so many images as those outputs have. */
int64_t pixels_of(const PixelWalk *walk, int64_t outputs);

/* Position of the pixel among those of all images; -1: there is none. */
int64_t pixel_at(const PixelWalk *walk, int64_t output, int64_t tap);

/* Taps of so many columns from that one on, as bits. */
uint64_t phases_used(const TapPhases *phases, int64_t first, int64_t columns);

int tap_count(uint64_t taps);

/* Positions along k of a tile of so many columns, on average, where each tap has a multiple of `granule`. */
int64_t phases_extent(const TapPhases *phases, int64_t granule, int64_t columns);

/* How many pixels are seen for each output, on average. */
double pixels_per_output(const PixelWalk *walk);

// ---- rtile.c: what a kernel's tiles hold and move ----

/* The problem itself, as a tile. */
RTile rtile_problem(const TileSpace *space);

/* The last spatial axis before `end`: the contiguous one of most outputs. -1: there is none. */
int space_last_spatial(const TileSpace *space, int end);

/* 32-bit registers for elements of so many bits, of which a vector is read at once: 16 bits alone take one. */
static inline int64_t vector_registers(int64_t elements, int64_t vector, int bits)
{
    int64_t each = elements < vector ? elements : vector;
    return each > 0 ? ceil_div(elements, each) * ceil_div(each * bits, 32) : 0;
}

/* Points of the tile along the axes of one kind. */
double rtile_points(const TileSpace *space, const RTile *tile, bool reduction);

/* Inner tiles of an outer one along these axes. */
double rtile_tiles(const TileSpace *space, const RTile *outer, const RTile *inner, bool reduction);

/* Traffic into the tile per point of work it does: Q(T) of the paper, bytes. Outputs move once per
   whole reduction. */
double rtile_traffic(const TileSpace *space, const RTile *tile, const DeviceSpec *device, Level level);

/* Arithmetic of one point as the model takes it: an instruction is worth a multiply-add. */
double point_flops(const TileSpace *space);

/* Both of a tile, computed once however often it is compared. */
typedef struct TileCost {
    double traffic;      // Q(T)
    int64_t footprint;   // F(T)
} TileCost;
/* S_i = (Q(T) - Q(T'_i)) / (F(T'_i) - F(T)): traffic saved per byte of extra footprint when axis i
   grows to its next aligned size. Growth that costs no byte counts as one byte. */
double rtile_reuse_score(const TileCost *tile, const TileCost *grown);

/* Most of a space is room for tiles that few kernels have. Bytes of what it holds; a copy, with no more room than
   that: nothing is added to it. */
size_t space_bytes(const TileSpace *space);
TileSpace *space_copy(Arena *arena, const TileSpace *space);

/* Are the register tiles of a block laid side by side along the axis? If not, each thread walks it
   step by step. */
static inline bool axis_shared_by_threads(const TileSpace *space, int axis)
{
    return !space->axes[axis].reduction || space->least_reducers;
}

// ---- align.c: which sizes are legal ----

/* A size along an axis of a level, in a block's tile around a register tile, and the next one. */
typedef struct NextSize {
    int64_t place, size, next;   // place 0: none
} NextSize;

/* The share of an axis of one space that tiles may waste. */
enum { KNOWN_BITS = 6 };
typedef struct Tolerance {
    double allowed;
    double refused;   // the least share that a size was refused for; below it there is no other size
    NextSize known[1 << KNOWN_BITS];   // by hash: tiles grow through the same sizes again and again
} Tolerance;

/* Next size of `axis` above `size` that is legal on the level: a multiple of the granule (and, for
   the shared level, of the register tile), at most the limit, wasting at most `tolerance` of the
   axis: ceil(extent/s)*s <= extent*(1+tolerance), except that a size that covers the whole axis is
   always legal. 0 if there is none. GetNextAlignedAxisSize of the paper. Of the multiples only
   those that hardware likes are visited: 2^j granules, the multiples by a small odd number that
   divide the axis (96 of 4096*3), and the whole axis. For an extent of 7: 1, 2, 4 (tolerance
   allowing), 7, 8. */
int64_t rtile_next_size(const TileSpace *space, Level level, const RTile *inner, int axis,
                        int64_t size, Tolerance *tolerance);

/* The legal size of a block's tile just below `size`; 0 if there is none. */
int64_t rtile_previous_size(const TileSpace *space, const RTile *inner, int axis, int64_t size, Tolerance *tolerance);

/* The smallest legal size along every axis. False if an axis has none at this tolerance. */
bool rtile_smallest(const TileSpace *space, Level level, const RTile *inner, Tolerance *tolerance,
                    RTile *tile);

/* Elements of padding on the contiguous extent of a shared data tile, so that reading vectors of
   `read_extent` elements from row after row has no bank conflict: with 4 banks of one element, a
   [3,4] tile read by columns needs 1 ([3,5]). */
int64_t bank_padding(int64_t inner_extent, int64_t read_extent, int element_bytes, int granule,
                     int banks, int bank_bytes);

/* A staged data tile of this kernel, line by line. */
typedef struct StagedLines {
    int64_t count, width;   // elements of one along its contiguous dimension there,
    int64_t padding;        // and those behind them for the banks: none when no warp walks across lines
} StagedLines;
StagedLines staged_lines(const TileSpace *space, const DataTile *tile, const RTile *shared,
                         const RTile *inner, const DeviceSpec *device);

// ---- print.c ----

/* A table: the names of the axes, then a row for each tile. */
void rtile_print_axes(StrBuf *out, const TileSpace *space);
void rtile_print(StrBuf *out, const TileSpace *space, Level level, const RTile *tile);
void space_print(StrBuf *out, const TileSpace *space);   // with what may vary
