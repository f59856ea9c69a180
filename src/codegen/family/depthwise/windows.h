// Filters whose windows slide side by side over the same image, and whose sums stay apart until all are
// complete: one of 31 x 31 and one of 5 x 5 beside it, each with its scale.
#pragma once
#include "codegen/family/depthwise/shape.h"

enum { MAX_WINDOWS = 4 };

typedef struct Windows {
    int count;                      // 1: an ordinary depthwise convolution
    int op[MAX_WINDOWS];            // of the fusion, that makes the window's sums
    Depthwise shape[MAX_WINDOWS];   // which differ in filters, taps, dilation and offset
    Depthwise all;                  // as one window under which all of theirs lie
} Windows;

/* Is every reduction of the fusion of this form, over the same image? */
bool windows_find(const Fusion *fusion, Windows *windows);

/* The number of the window whose sums the op makes; -1: it makes none. */
int windows_number(const Windows *windows, int op);
