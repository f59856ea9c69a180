// Depthwise convolutions on tensor cores: what the kernel of templates/toeplitz.cu makes of one, and where
// its block keeps what.
#pragma once
#include "codegen/family/depthwise/families.h"
#include "codegen/family/depthwise/view.h"
#include "rprogram/rprogram.h"

/* Axes of the tile space. */
enum {
    TOEPLITZ_CHANNEL,
    TOEPLITZ_IMAGE,
    TOEPLITZ_ROW,
    TOEPLITZ_COLUMN,
    TOEPLITZ_TAP_ROW,
    TOEPLITZ_TAP_COLUMN
};

enum {
    TOEPLITZ_BLOCK = 8,   // outputs side by side that an instruction makes
    TOEPLITZ_TURNS = 2    // tiles of a warp, one after the other: the filter serves them all
};

/* One of each channel, and of each of its multipliers, for every image. */
typedef struct Toeplitz {
    Depthwise shape;
    WindowAxis row, column;   // row: of one position if images are lines
    int64_t channels, images;
    const Atom *atom;
    int64_t piece;   // inputs of 16 bytes
} Toeplitz;

/* `atom`: of both factors' type. */
bool toeplitz_find(const Depthwise *shape, const Atom *atom, Toeplitz *toeplitz);

/* The inputs of a piece are one aligned access. */
bool toeplitz_reads_pieces(const Toeplitz *toeplitz);

/* What the layout of a block depends on beside its tiles: the choice of each kind of kernel. */
typedef struct ToeplitzWindow {
    int32_t inputs[2];            // rows, columns
    int16_t taps[2], before[2];   // taps of the first output that lie outside the image
    int16_t width, left;   // columns of a tile; of the inputs in shared memory, before those of its outputs
    int16_t piece;         // inputs of 16 bytes
    bool whole_rows;       // one tile has all columns
} ToeplitzWindow;

/* In pieces, where nothing else is said. */
typedef struct ToeplitzLayout {
    int64_t groups, each;   // groups of rows of outputs in a warp's tile; rows of each
    int64_t row, rows;      // of an image: a row, how many there are
    int64_t group_pitch, image_pitch;
    int64_t nearest, distances;   // of pieces of inputs from blocks of outputs that have taps in common
    bool halved;                  // fragments of inputs begin in the middle of pieces
    int64_t tap_copies;           // of a filter's row, each of them shifted by a tap
    int64_t tap_words;            // of one of them
    int64_t warps;
    int64_t input_bytes, slab_bytes;
} ToeplitzLayout;

ToeplitzLayout toeplitz_layout(const ToeplitzWindow *window, const RTile *block, const RTile *warp);

/* Each step down the input has its own code, which leaves out rows beside the filter. */
bool toeplitz_is_short(const ToeplitzWindow *window, const ToeplitzLayout *layout);

/* For the kinds. */
LayOut toeplitz_lay_out;
int64_t toeplitz_shared_moved(const KernelKind *kind, int tile, bool written, const RTile *block,
                              const RTile *warp, const int64_t *first);

/* Operations for each tap of an output: what the instructions multiply, and of all rows of the filter those
   that meet the image. */
double toeplitz_flops(const ToeplitzWindow *window, const RTile *block, const RTile *warp);

/* Columns of outputs that are one aligned access. */
int toeplitz_vector(const Toeplitz *toeplitz, const Fusion *fusion);

/* Family.work */
StatedWork toeplitz_work;

/* The parameter block. */
void toeplitz_emit(StrBuf *out, const KernelPlan *plan);
