// Convolutions whose channels are strided: images and filters are transposed (ir/fuse_turn.h), so that bulk copies
// load pixels with contiguous channels (im2col.h).
//
//     x[n, c, h, w]  ->  x.turned[n, h, w, c]          w[f, c, r, s]  ->  w.turned[f, r, s, c]
//
// Then pixels are columns of the product, whose rows are stored as planes; or they are its rows, and the result is
// transposed back.
//
//     y.turned[n, h, w, f]  ->  y[n, f, h, w]
#pragma once
#include "kernel/family.h"

/* Not offered if the fusion is not a convolution, needs no transposition, or the device has no kernel for the
   result. */
extern const Rewrite turn_planes;

/* The same of a filter's gradient, split into the parts of wider tiles. */
extern const Rewrite turn_planes_in_parts;

/* As turn_planes, with the result not transposed. Of 1x1 the filter may stay as it is. */
extern const Rewrite turn_planes_to_columns;

/* The same of a gradient by phase: columns of the product end with the last phase, which planes have side by side. */
extern const Rewrite turn_planes_to_phases;

/* The filter alone, whose rows threads copy in vectors to CUDA cores then. */
extern const Rewrite turn_filter_of_lanes;

/* The image of a filter of one tap, whose windows step over pixels: they are left out. */
extern const Rewrite take_pixels;

/* Its gradient: the pixels that were read are made, and zeros are added between them. */
extern const Rewrite make_first_pixels;

/* Sums over channels come first, those over taps are a launch of their own (ir/fuse_taps.h). */
extern const Rewrite sum_taps_behind;

/* Pads strided channels to contiguous ones with zeros, so that threads copy 16-byte vectors instead of elements.
   k ends with the channels, or in a filter's gradient with images; or the rows of both factors do. */
extern const Rewrite lengthen_channels, lengthen_channels_of_rows;
