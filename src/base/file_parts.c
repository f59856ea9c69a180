#include "base/file_parts.h"

#include <string.h>

size_t file_parts_length(FileParts parts)
{
    size_t length = 0;
    for (int i = 0; i < parts.count; i++)
        length += parts.items[i].length;
    return length;
}

const char *file_parts_join(Arena *arena, FileParts parts)
{
    char *bytes = arena_room(arena, file_parts_length(parts)), *at = bytes;
    for (int i = 0; i < parts.count; i++) {
        memcpy(at, parts.items[i].bytes, parts.items[i].length);
        at += parts.items[i].length;
    }
    return bytes;
}
