// The bytes of a file in several places of memory: what lies somewhere already is written from there.
#pragma once
#include "base/arena.h"

typedef struct FilePart {
    const char *bytes;
    size_t length;
} FilePart;

typedef struct FileParts {
    const FilePart *items;
    int count;
} FileParts;

size_t file_parts_length(FileParts parts);

/* A copy of all of them, one behind the other. */
const char *file_parts_join(Arena *arena, FileParts parts);
