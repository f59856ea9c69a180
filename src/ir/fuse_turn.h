// Turn: tensors whose elements lie in another order than a kernel wants them are copied to where they do, and what is made of
// them back.
//
//     x[n, h, w, c]         ->  x.turned[n, c, h, w]     one launch each, at a copy's speed
//     y.turned[n, c, h, w]  ->  y[n, h, w, c]
//
// Where the epilogue reads an element for each output, as of a residual, the sums alone are turned, and the kernel that turns
// them back goes on with it.
#pragma once
#include "ir/fuse.h"

/* Of a kernel with one reduction: what it reads, and which dimensions come last then, by the axes that they go along. */
typedef struct TurnWish {
    const Access *images[MAX_BEFORE];   // of the sum's factors
    uint32_t last[MAX_BEFORE];
    int image_count;
    uint32_t results;   // the same of all that it stores; 0: that stays as it is
    uint32_t apart;     // an epilogue that reads along these would read far apart
} TurnWish;

/* NULL: all lies so, or it cannot be. */
Rewritten *fusion_turn(Arena *arena, const Fusion *fusion, const TurnWish *wish);
