// Taps behind products: where few channels are made of many, each element of the image is multiplied once, by
// all taps of the filter, and what belongs to one output is added behind that.
//
//     y[n, c, h, v]         =  sum[r, s, f](pad(x[n, f, h + r - 1, v + s - 1]) * w[f, c, r, s])
//
//     y.taps[n, c, r, s, i, j]  =  sum[f](x[n, f, i, j] * w[f, c, r, s])
//     y[n, c, h, v]             =  sum[r, s](pad(y.taps[n, c, r, s, h + r - 1, v + s - 1]))
//
// The first is a product without windows, whose rows are the taps of all channels: 3 channels of 7x7 are 147
// rows. It has no stride, either: of a gradient by 2, only its sum has phases.
#pragma once
#include "ir/fuse.h"

/* NULL: the kernel sums no products of an image under taps and their filter, or does so over taps alone. */
Rewritten *fusion_sum_taps_behind(Arena *arena, const Fusion *fusion);
