// Files that are read in place.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct Mapped {
    const void *bytes;
    size_t length;
} Mapped;

/* The whole of a regular file; unreadable: an error with EXIT_INPUT. */
Mapped mapped_open(const char *path);
void mapped_close(Mapped file);

/* `length` bytes from `offset` of the file `location`, a path below the folder of `model` that leads nowhere
   else; they stay until the process ends. `length` < 0: up to the file's end. `tensor` is for messages. */
Mapped mapped_external(Arena *arena, const char *model, const char *tensor, const char *location,
                       int64_t offset, int64_t length);
