// What tells one content from another: SHA-256, written as 64 hexadecimal digits.
#pragma once
#include <stddef.h>

#include "base/arena.h"

enum { HASH_DIGITS = 64 };

char *hash_of(Arena *arena, const char *bytes, size_t length);

/* Of a whole file of any length; NULL: it cannot be read, or is a pipe. */
char *hash_of_file(Arena *arena, const char *path);
