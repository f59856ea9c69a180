// Im2col: the first factor of a convolution, whose rows are pixels under the taps of a filter, as bulk copies bring it in a
// mode of that name: a box is so many pixels, walked along the outputs from image to image, and of each 128 bytes of channels.
//
//     y[n, p, q, f] = sum[r, s, c](pad(x[n, 2*p + r - 1, 2*q + s - 1, c], 0) * w[f, r, s, c])
//
// Images lie with their channels innermost, and have one to three axes along which the filter slides.
#pragma once
#include "codegen/family/gemm/mma.h"

typedef struct Im2col {
    PixelWalk walk;
    int image;                         // axis of the fusion along which images follow; -1: there is one
    AxisGroup taps;                    // of k, all but the channels
    int channel;                       // of k
    int64_t images, channels, pixel;   // elements from one pixel to the next
    int64_t step;                      // of k for each tap: its channels in whole lines of 128 bytes
    int64_t lower[MAX_PIXEL_AXES],
        upper[MAX_PIXEL_AXES];   // corners of what the first tap sees, beside the image's
} Im2col;

/* False: the first factor is none, or the hardware has no such copies. */
bool im2col_find(const Fusion *fusion, const Product *product, Im2col *im2col);

/* `fetch_pixels`: a box of them on its way. */
void im2col_emit(StrBuf *out, const Scope *scope, const Product *product, const Im2col *im2col);
