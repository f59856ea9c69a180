// A piece of memory, most often of text, that lies elsewhere.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct Slice {
    const char *start, *end;
} Slice;

static inline size_t slice_length(Slice slice) { return (size_t)(slice.end - slice.start); }

static inline bool slice_same(Slice a, Slice b)
{
    return slice_length(a) == slice_length(b) && memcmp(a.start, b.start, slice_length(a)) == 0;
}
