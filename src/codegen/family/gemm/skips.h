// Skips: taps for which a factor is zero in all rows of a tile are skipped.
//
//     dx[n, c, h, a:2, v, b:2] = sum[t:2, u:2, f](pad(dy[n, f, h + t, v + u], 0) *
//                                                 pad(w[f, c, a - 2*t + 1, b - 2*u + 1], 0))
//
// Rows of the second factor are the filter's channels c in phases (a, b): of the four taps (t, u) phase (0, 0) has
// one, (1, 1) all four. Phases become the outermost axes of these rows, so that a tile has few of them, and a step
// is of one tap. phases.h finds the same for bulk copies of pixels.
#pragma once
#include "codegen/family/gemm/product.h"

enum { SKIPPED_STEP = 16, SKIPPED_PARTS = 2 };   // channels of one tap in a step: terms, instructions of tensor cores

typedef struct Skips {
    TapPhases phases;
    int rows;      // GROUP_M or GROUP_N, whose outermost axes the phases are
    int channel;   // axis of the fusion along which steps go
    bool by_stride;   // phases are positions within a stride of the taps, not pixels at borders
    bool whole;    // steps end with a tap's channels; else the last one of a tap may be shorter
} Skips;

/* Makes phases the outermost axes, unless that would make columns of C less contiguous. NULL: all taps are
   needed. */
const Skips *skips_find(Arena *arena, const Fusion *fusion, Product *product);

/* A step belongs to one tap that its tile has: `most` terms at most. Tiles lie within a phase, or hold several small ones. */
void skips_set_tiles(TileSpace *space, const Skips *skips, int64_t most);

/* Tiles with the most taps come first, so that short ones are last. NULL: there are no phases. */
BlockOrder phases_order(const TapPhases *phases);

/* `taps_of_tile`, SKIPS and BACKWARDS. */
void skips_emit(StrBuf *out, const Skips *skips);

/* The same, and `Walk`, which goes from step to step. */
void skips_emit_walk(StrBuf *out, const Skips *skips);
