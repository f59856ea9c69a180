#include "base/hash.h"

#include <sha256.h>

char *sha256_hex(Arena *arena, const void *bytes, size_t length)
{
    char *hex = arena_alloc(arena, SHA256_DIGEST_STRING_LENGTH);
    return SHA256Data(bytes, length, hex);
}
