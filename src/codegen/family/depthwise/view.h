// What a fusion is to the families of depthwise convolutions, and of the gradients of their filters.
#pragma once
#include "codegen/family/depthwise/windows.h"
#include "kernel/family.h"

/* NULL: it is none. */
typedef struct DepthwiseView {
    const Depthwise *sum;   // its only reduction
    const Atom *atom;       // of both factors' type
    const Depthwise *flat;  // the sum, of three image axes along the last two
    bool direct;            // the sum's image is a plane or a line
    const Windows *windows; // that slide over planes or lines, one or several
    const struct FilterGradient *gradient, *grouped;   // of one channel, of groups of several
    const struct Toeplitz *toeplitz;
} DepthwiseView;
View depthwise_view;
