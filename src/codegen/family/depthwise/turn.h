// Turn: images whose columns do not lie side by side, since their channels do, are copied to where they do, and
// what is made of them back. Between them are kernels of planes, which multiply on tensor cores whatever the
// filter's size.
//
//     x[n, h, w, c]         ->  x.turned[n, c, h, w]     one launch each, at a copy's speed
//     y.turned[n, c, h, w]  ->  y[n, h, w, c]
//
// So are both factors of a filter's gradient. Where the epilogue reads an element for each output, as of a residual,
// the sums alone are turned, and the kernel that turns them back goes on with it.
#pragma once
#include "kernel/family.h"

enum { MAX_TURNED = 3 };   // results of one convolution that are turned back

typedef struct Turned {
    Fusion *images[2];   // copy them
    int image_count;
    Fusion *sums;   // the convolution and its epilogue
    Fusion *results[MAX_TURNED];   // copy them back,
    int result_count;           // or one that makes them all of the sums
    const TensorOp *definitions[2 + MAX_TURNED];   // of what is turned, for the reference evaluator
    int definition_count;
} Turned;

/* NULL: all columns lie side by side. */
Turned *depthwise_turn(Arena *arena, const void *view, const Fusion *fusion, const Target *target);
