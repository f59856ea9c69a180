// Im2col: the factor of a convolution whose rows are pixels shifted by the taps of a filter, loaded by bulk copies
// in im2col mode: a box is a run of pixels in the order of the outputs, across images, with 128 bytes of channels
// each.
//
//     y[n, p, q, f] = sum[r, s, c](pad(x[n, 2*p + r - 1, 2*q + s - 1, c], 0) * w[f, r, s, c])
//
// Where the result is planes, y[n, f, p, q], pixels are columns of the product: rows of its second factor. The
// filter's gradient reads the same boxes; there k is pixels, and rows of a factor are taps and channels:
//
//     dw[f, r, s, c] = sum[n, p, q](dy[n, p, q, f] * pad(x[n, 2*p + r - 1, 2*q + s - 1, c], 0))
//
// Images have their channels innermost, and one to three axes along which the filter slides.
#pragma once
#include "codegen/family/gemm/mma.h"

typedef struct Im2col {
    int factor;            // whose rows, or whose k, are pixels
    int pixels, seen;      // groups of the product: where outputs are, and where taps and channels
    PixelWalk walk;
    int image;                         // axis of the fusion along which images follow; -1: there is one
    AxisGroup outputs;                 // images, and outputs within each, in the order of a box
    AxisGroup taps;                    // of a row's window, all axes but the channels
    int channel;
    int64_t images, first, channels, pixel;   // the first channel of a pixel, elements from one pixel to the next
    int64_t groups;                    // batches of the product, whose channels lie side by side in a pixel
    int64_t step;                      // channels of each tap in whole lines of 128 bytes
    int64_t lower[MAX_PIXEL_AXES],
        upper[MAX_PIXEL_AXES];   // corners of the first tap's positions, relative to the image's
} Im2col;

/* False: the factor is not such, or the hardware has no such copies. */
bool im2col_find(const Fusion *fusion, const Product *product, int factor, Im2col *im2col);

/* The same where k is pixels. */
bool im2col_find_along_k(const Fusion *fusion, const Product *product, int factor, Im2col *im2col);

/* Pixels are rows of the factor; else k is. */
static inline bool im2col_has_rows(const Im2col *im2col) { return im2col->pixels != GROUP_K; }

/* `IM2COL_A` and `TAPS_A`, or of B. `im2col` NULL: neither factor has pixels. */
void im2col_emit_flags(StrBuf *out, const Im2col *im2col, int factor);

/* `fetch_pixels`: copies a box of them. */
void im2col_emit(StrBuf *out, const Scope *scope, const Product *product, const Im2col *im2col);
