// Phases: a convolution whose columns are filters of several positions, as the gradient of an image by a convolution of stride 2.
//
//     dx[n, h, a:2, v, b:2, c] = sum[t:2, u:2, f](pad(dy[n, h + t, v + u, f], 0) * pad(w[f, a - 2*t + 1, b - 2*u + 1, c], 0))
//
// Rows 2h + a of dx use other rows of the filter for a = 0 than for a = 1: of the four products of t and u phase
// (0, 0) has one, (1, 1) all four. Columns of the product are phases, and the channels c within them. Boxes of the
// filter lie within a phase and a tap, the hardware fills elements outside the filter with zeros, and taps that are
// zero in all columns of a tile are skipped.
#pragma once
#include "codegen/family/gemm/im2col.h"

typedef struct PhasedFilter {
    TapPhases phases;
    const Access *access;
    uint32_t columns;   // axes of the fusion for the columns of a phase, each all of a dimension of the tensor
    int64_t tile;   // columns of every tile, which divide a phase's, but are no whole boxes; 0: any whole boxes
    bool along_k;   // the summed channels are contiguous, not columns
} PhasedFilter;

/* Whether the second factor is such a filter, of which bulk copies can load boxes. `im2col`: the first one's
   pixels. */
bool phases_find(Arena *arena, const Fusion *fusion, const Product *product, const Im2col *im2col,
                 PhasedFilter *filter);

/* `fetch_filter`: copies a box; `has_tap`: whether a phase has a tap. */
void phases_emit(StrBuf *out, const Scope *scope, const Product *product, const PhasedFilter *filter);

/* `phase == 0 ? 0x1ull : …`: the taps of the phase, as bits. */
void phases_emit_taps(StrBuf *out, const TapPhases *phases);

/* The dimensions from the contiguous one outwards. */
TensorMap phases_map(const KernelPlan *plan, const Product *product, const PhasedFilter *filter);
