// Placement of tensors with lifetimes. Two share bytes only if all users of the first have ended when the second is
// written: along the paths of the graph of launches, so that branches may run concurrently. If that takes more than
// 1.15 times the bytes that are alive at once in a stream, launches 16 apart in it are ordered, too; if that takes
// more than 1.5 times, all launches are ordered as in the stream.
#pragma once
#include "base/bit_rows.h"

typedef struct Life {
    int64_t bytes;    // a multiple of the alignment of places
    int writer;       // first launch that writes it; lives are sorted by it
    const int *others;   // other launches that write parts of it, in order
    int other_count;
    const int *readers;
    int reader_count;
    int64_t offset;   // set
} Life;

typedef struct LivesPlan {
    int64_t bytes;      // of all places
    int64_t alive;      // most bytes alive at once, launch by launch
    int window;         // a launch this far after the last reader is ordered, path or not: INT_MAX, 16 or 0
} LivesPlan;

/* Bit (a, b) of `later`: there is a path from launch a to launch b. The same lives give the same places. */
LivesPlan lives_place(Life *lives, int count, const BitRows *later);
