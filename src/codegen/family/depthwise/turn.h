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

/* Nothing is gained, too, where all columns lie side by side. */
extern const Rewrite turn_images;
