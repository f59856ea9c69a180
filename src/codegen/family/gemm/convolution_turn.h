// Convolutions whose channels do not lie side by side: images and filters are turned (ir/fuse_turn.h) to where they do, so that bulk
// copies bring pixels with their channels (im2col.h).
//
//     x[n, c, h, w]  ->  x.turned[n, h, w, c]          w[f, c, r, s]  ->  w.turned[f, r, s, c]
//
// Pixels are columns of the product then, whose rows are stored as planes; or they are its rows, and what is made is turned back.
//
//     y.turned[n, h, w, f]  ->  y[n, f, h, w]
#pragma once
#include "kernel/family.h"

/* Nothing is gained where it is no convolution, is one that needs not be turned, or the device has no kernel for what
   it would be. */
extern const Rewrite turn_planes;

/* The same but for what is made. Of 1x1 the filter may stay as it is. */
extern const Rewrite turn_planes_to_columns;

/* Threads copy pieces of 16 bytes where they would read elements: channels lie side by side, with zeros behind the last
   ones. k ends with them, or of a filter's gradient with images; or rows of both factors do. */
extern const Rewrite lengthen_channels, lengthen_channels_of_rows;
