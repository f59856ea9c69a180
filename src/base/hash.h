// Hashes that name content: of texts, device files, templates, machine code.
#pragma once
#include "base/arena.h"

/* SHA-256 as 64 hexadecimal digits. */
char *sha256_hex(Arena *arena, const void *bytes, size_t length);
