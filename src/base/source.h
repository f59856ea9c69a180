// Text that came from a user, and places in it.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct Source {
    const char *name;   // as the user wrote it; "<stdin>" for "-"
    const char *text;   // ends in '\0' after `length` bytes
    size_t length;
} Source;

/* A stretch of a source. `source` NULL: no place. */
typedef struct Loc {
    const Source *source;
    uint32_t offset, length;
} Loc;

typedef struct LineColumn {
    int line, column;   // both from 1; a column is a byte
    const char *start;  // of the line
    int length;         // of the line, without its end
} LineColumn;

enum {
    SOURCE_MAX_BYTES = 4 << 20
};   // a program of 16,384 statements with 256 bytes each; other files have their own limits

/* The whole file, without a byte-order mark; "-" is stdin. Unreadable, too long, or not text: an error with
   EXIT_INPUT. */
Source *source_read(Arena *arena, const char *path);

/* The same of what is no program and may be longer. */
Source *source_read_long(Arena *arena, const char *path, size_t max_bytes);

Source *source_from_text(Arena *arena, const char *name, const char *text, size_t length);

LineColumn source_line_column(Loc loc);
