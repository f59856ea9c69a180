// A sum of products of an image under a window and a filter whose channels are also the image's:
//
//   y[n, c, m, i, j] = sum[k, l](x[n, c, i*step + k*dilation + offset, …] * w[c, m, k, l])   0 outside of x
//
// with axes in any order and any number of each kind, and one to three axes along which the window slides. A
// filter's gradient has this form, too: dw[c, k, l] = sum[n, i, j](x[n, c, i + k - 1, …] * dy[n, c, i, j]),
// where dy is the "filter", its taps are the pixels i, j, and n is summed over besides.
#pragma once
#include "ir/axis_group.h"
#include "ir/window.h"

enum {
    MAX_IMAGE_AXES = 3,
    STRIP_AHEAD = 3,          // rows of an image that are on their way while a thread multiplies another one, at least
    STRIP_LEAST_WIDTH = 4,    // adjacent columns of a thread
    STRIP_MOST_WIDTH = 8,
    STRIP_LANES = 2,          // channels of a thread
    STRIP_LEAST_HEIGHT = 14,  // rows of a thread: with fewer, too many rows of the input are read by two
    STRIP_REGISTERS = 168,    // of wide strips, so that an SM has room for 12 warps
    STRIP_WALK = 3000,        // multiply-adds until values are in the same registers again: 48 KB of code
    STRIP_COUNTERS = 28       // registers of a thread
};

typedef struct Depthwise {
    const Expr *x, *w;            // factors: each an access, or a guard over one that gives zeros outside
    DType type;                   // of products and sums
    Affine x_offset, w_offset;    // element of the factors' tensors, by the fusion's axes
    int64_t x_origin, w_origin;   // the one of input 0 or tap 0 along image axes, at 0 of all others
    /* As in the fusion: the last one is the innermost of y. Coordinates are turned so that stride and dilation
       are positive: in `x[i - k + 1]` the filter is turned, in `x[3 - i - k]` the input. Position k here is tap
       `taps - 1 - k` of the expression then, and strides in memory are negative. */
    WindowAxis image[MAX_IMAGE_AXES];
    int image_count;
    AxisGroup batch;        // of x and y
    AxisGroup channel;      // of x, w and y
    AxisGroup multiplier;   // of w and y; in w they may stand beside a tap: w[c, 2*k + m]
    AxisGroup summed;       // of x and w: reduced over beside the taps
    const Dim *deep;        // of x, which outputs of `batch` and taps of `summed` move; NULL: there is none
} Depthwise;

/* Is the fusion's first definition of this form? */
bool depthwise_find(const Fusion *fusion, Depthwise *shape);

/* The same of any of its reductions, be there others beside it. */
bool depthwise_find_sum(const Fusion *fusion, const FusedOp *op, Depthwise *shape);

/* The same along at most two axes: of three, outputs along the first one are images, and its taps come before the channels
   that are summed. False: they do not lie like that. */
bool depthwise_flatten(const Fusion *fusion, const Depthwise *shape, Depthwise *flat);

/* The summed channels of one tap along `deep`. */
AxisGroup depthwise_channels(const Fusion *fusion, const Depthwise *shape);

/* Its image is a plane or a line, along which positions are ints, and nothing is summed over but taps. */
bool depthwise_is_direct(const Depthwise *shape);

/* Where the axes of two groups lead from the element at 0 of all others. */
Affine depthwise_form(const Affine *offset, int64_t origin, const AxisGroup *one, const AxisGroup *other);

/* A number with the powers of two that divide all its coefficients, but for an axis (-1: none), and its constant. */
int64_t depthwise_alignment(const Affine *form, int except);

/* The element that an access reads, above which a guard may stand. */
const Access *factor_access(const Expr *factor);

/* A bit for each axis of the fusion that is an output or a tap of an image axis. */
uint32_t depthwise_image_axes(const Depthwise *shape);

/* Neighbours along an axis that are one aligned access at such an offset: a power of two, at most `most`; and in every output. */
int depthwise_are_together(const Fusion *fusion, const Affine *offset, int axis, int most);
int depthwise_stores_together(const Fusion *fusion, int axis, int most);

/* Accesses of a thread whose first column lies at `offset` to a row, of at most so many columns: beside 4
   outputs under 5 taps 2, 4 and 2. */
int64_t strip_accesses(int64_t offset, int64_t piece, int64_t reach);

/* copy_planes() of the prelude: instructions of a thread for each element of lines of so many columns, of which `pad` are before
   an aligned vector; elements of a thread that are in flight. */
double planes_instructions(int64_t vector, int64_t pad, int64_t columns);
int planes_in_flight(int64_t vector);
