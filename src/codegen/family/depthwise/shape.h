// A sum of products of an image under a window and a filter whose channels are also the image's:
//
//   y[n, c, m, i, j] = sum[k, l](x[n, c, i*step + k*dilation + offset, …] * w[c, m, k, l])   0 outside of x
//
// with axes in any order and any number of each kind, and one to three axes along which the window slides. A
// filter's gradient has this form, too: dw[c, k, l] = sum[n, i, j](x[n, c, i + k - 1, …] * dy[n, c, i, j]),
// where dy is the "filter", its taps are the pixels i, j, and n is summed over besides.
#pragma once
#include "ir/axis_group.h"

enum {
    MAX_IMAGE_AXES = 3,
    STRIP_AHEAD = 3   // rows of an image that are on their way while a thread multiplies another one, at least
};

/* Output i meets with tap k the input i * step + k * dilation + offset, or nothing if that is not in [0,
   inputs).

   Coordinates are turned so that step and dilation are positive: in `x[i - k + 1]` the filter is turned, in
   `x[3 - i - k]` the input. Position k here is tap `taps - 1 - k` of the expression then, and strides in
   memory are negative. */
typedef struct ImageAxis {
    int output, tap;   // of the fusion; tap -1: one tap
    int64_t outputs, taps, inputs;
    int64_t step, dilation, offset;
    bool taps_turned, input_turned;
    int64_t x_stride, w_stride;   // elements from one input, one tap to the next
} ImageAxis;

typedef struct Depthwise {
    const Expr *x, *w;            // factors: each an access, or a guard over one that gives zeros outside
    DType type;                   // of products and sums
    Affine x_offset, w_offset;    // element of the factors' tensors, by the fusion's axes
    int64_t x_origin, w_origin;   // the one of input 0 or tap 0 along image axes, at 0 of all others
    ImageAxis image[MAX_IMAGE_AXES];   // as in the fusion: the last one is the innermost of y
    int image_count;
    AxisGroup batch;        // of x and y
    AxisGroup channel;      // of x, w and y
    AxisGroup multiplier;   // of w and y; in w they may stand beside a tap: w[c, 2*k + m]
    AxisGroup summed;       // of x and w: reduced over beside the taps
} Depthwise;

/* Is the fusion's first definition of this form? */
bool depthwise_find(const Fusion *fusion, Depthwise *shape);

/* The same of any of its reductions, be there others beside it. */
bool depthwise_find_sum(const Fusion *fusion, const FusedOp *op, Depthwise *shape);

/* Its image is a plane or a line, along which positions are ints, and nothing is summed over but taps. */
bool depthwise_is_direct(const Depthwise *shape);

/* The element that an access reads, above which a guard may stand. */
const Access *factor_access(const Expr *factor);

/* A bit for each axis of the fusion that is an output or a tap of an image axis. */
uint32_t depthwise_image_axes(const Depthwise *shape);

/* Inputs under the windows of so many neighbouring outputs: 7 taps of 4 outputs cover 10. */
int64_t image_reach(const ImageAxis *axis, int64_t outputs);

/* Of all pairs of an output and a tap those that meet an input: of 32 outputs, 31 taps and 32 inputs, padded
   by 15 each, 752 of 992. */
int64_t image_pairs_inside(const ImageAxis *axis);

/* The same where so many neighbouring outputs go on together, with every tap that one of them needs: of eight
   together 864 of 992. */
int64_t image_pairs_together(const ImageAxis *axis, int64_t lines);

/* Neighbours along an axis that are one aligned access in every output: a power of two, at most `most`. */
int depthwise_stores_together(const Fusion *fusion, int axis, int most);

/* Accesses of a thread whose first column lies at `offset` to a row, of at most so many columns: beside 4
   outputs under 5 taps 2, 4 and 2. */
int64_t strip_accesses(int64_t offset, int64_t piece, int64_t reach);
