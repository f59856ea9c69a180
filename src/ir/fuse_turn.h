// Turn: where a kernel wants its tensors' dimensions in another order, copies transpose its inputs before it,
// and its results back behind it. On that way they may be lengthened, so that rows begin at whole vectors.
//
//     x[n, h, w, c]         ->  x.turned[n, c, h, w]     one launch each, at a copy's speed
//     y.turned[n, c, h, w]  ->  y[n, h, w, c]
//
// If the epilogue reads an element for each output, as of a residual, the kernel stores only its sums in the
// other order, and the kernel that transposes them back makes the epilogue.
//
// A copy may also leave out what no window reads, as of a convolution of 1x1 by 2:
//
//     x[n, c, 2*h, 2*v]     ->  x.turned[n, c, h, v]
#pragma once
#include "ir/fuse.h"

/* Of a kernel with one reduction: what it reads, and which dimensions come last then, by the axes that they
   go along. */
typedef struct TurnWish {
    const Access *images[MAX_BEFORE];   // of the sum's factors
    uint32_t last[MAX_BEFORE];
    int image_count;
    uint32_t results;   // the same of all that it stores; 0: that stays as it is
    uint32_t apart;     // an epilogue that reads along these would read at a large stride
    /* Along these, which the images go alone, all is as long as a multiple of `piece`: by zeros in the
       images, and what comes of them in results. */
    uint32_t longer;
    int64_t piece;
    bool steps;   // of images, what is stepped over along a dimension is left out
    uint32_t first;   // all results are zeros beyond the first position along these, and the kernel makes them there alone
} TurnWish;

/* NULL: everything has that order and those lengths already, or cannot have them. */
Rewritten *fusion_turn(Arena *arena, const Fusion *fusion, const TurnWish *wish);
