// Places for tensors that live for a while: two share bytes only where whatever reads or writes the first has ended when the
// second is written. That is so along the paths of the graph of launches, and branches may run side by side. Where that takes more
// than 1.15 times the bytes that are alive at once in a stream, it is made so of launches that lie 16 apart in it; where that
// takes more than 1.5 times of them, of all that follow each other there.
#pragma once
#include "base/bit_rows.h"

typedef struct Life {
    int64_t bytes;    // a multiple of the alignment of places
    int writer;       // launch, the first of them; lives come in their order
    const int *others;   // that write parts of it, in order
    int other_count;
    const int *readers;
    int reader_count;
    int64_t offset;   // set
} Life;

typedef struct LivesPlan {
    int64_t bytes;      // of all places
    int64_t alive;      // the most that is alive at once, launch by launch
    int window;         // who lies further behind the last reader comes after it, path or not: INT_MAX, 16 or 0
} LivesPlan;

/* Bit (a, b) of `later`: a path leads from launch a to launch b. The same lives give the same places. */
LivesPlan lives_place(Life *lives, int count, const BitRows *later);
