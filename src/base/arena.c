#include "base/arena.h"

#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

enum { CHUNK_BYTES = 64 * 1024 };   // a small compile fits into a handful

/* Under the address sanitizer, what is not in an object may not be touched: the gap between two, and all
   after a reset. */
#ifdef __SANITIZE_ADDRESS__
enum { GAP_BYTES = 128 };   // an off-by-one reaches as far as its element is large
#else
enum { GAP_BYTES = 0 };
#endif

typedef struct Chunk {
    struct Chunk *next;
    size_t used, size;
    _Alignas(16) char bytes[];
} Chunk;

struct Arena {
    Chunk *chunks;   // newest first; only the newest is filled
    Chunk *spare;    // left by a reset
};

Arena *arena_new(void)
{
    Arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        fatal(EXIT_MACHINE, "out of memory");
    return arena;
}

static void free_chunks(Chunk *chunk)
{
    for (Chunk *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
}

void arena_free(Arena *arena)
{
    if (!arena)
        return;
    free_chunks(arena->chunks);
    free_chunks(arena->spare);
    free(arena);
}

void arena_reset(Arena *arena)
{
    for (Chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        chunk->used = 0;
        ASAN_POISON_MEMORY_REGION(chunk->bytes, chunk->size);
        chunk->next = arena->spare;
        arena->spare = chunk;
    }
    arena->chunks = NULL;
}

static Chunk *chunk_new(Arena *arena, size_t size)
{
    Chunk *spare = arena->spare;
    if (spare && spare->size >= size) {
        arena->spare = spare->next;
        return spare;
    }
    Chunk *chunk = malloc(sizeof *chunk + size);
    if (!chunk)
        fatal(EXIT_MACHINE, "out of memory");
    *chunk = (Chunk){.size = size};
    ASAN_POISON_MEMORY_REGION(chunk->bytes, size);
    return chunk;
}

void *arena_room(Arena *arena, size_t size)
{
    if (size > SIZE_MAX / 4)
        fatal(EXIT_MACHINE, "out of memory");
    size_t room = ((size + 15) & ~(size_t)15) + GAP_BYTES;
    Chunk *chunk = arena->chunks;
    if (!chunk || chunk->size - chunk->used < room) {
        Chunk *fresh = chunk_new(arena, room > CHUNK_BYTES ? room : CHUNK_BYTES);
        if (chunk && room > CHUNK_BYTES) {   // a large object gets its own chunk, behind the one being filled
            fresh->next = chunk->next;
            chunk->next = fresh;
        } else {
            fresh->next = chunk;
            arena->chunks = fresh;
        }
        chunk = fresh;
    }
    void *memory = chunk->bytes + chunk->used;
    chunk->used += room;
    ASAN_UNPOISON_MEMORY_REGION(memory, size);
    return memory;
}

bool arena_grow(Arena *arena, const void *memory, size_t size, size_t grown)
{
    Chunk *chunk = arena->chunks;
    size_t before = (size + 15) & ~(size_t)15, after = (grown + 15) & ~(size_t)15;
    if (GAP_BYTES || !chunk || (const char *)memory + before != chunk->bytes + chunk->used ||
        after - before > chunk->size - chunk->used)
        return false;
    chunk->used += after - before;
    ASAN_UNPOISON_MEMORY_REGION(memory, grown);
    return true;
}

void *arena_alloc(Arena *arena, size_t size)
{
    return memset(arena_room(arena, size), 0, size);
}

void *arena_copy(Arena *arena, const void *bytes, size_t size)
{
    return memcpy(arena_room(arena, size), bytes, size);
}

void *arena_alloc_array(Arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        fatal(EXIT_MACHINE, "out of memory");
    return arena_alloc(arena, bytes);
}

char *arena_strndup(Arena *arena, const char *text, size_t length)
{
    char *copy = arena_room(arena, length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *arena_strdup(Arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}

char *arena_vprintf(Arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    char small[256];   // holds most of what is made
    size_t length = (size_t)vsnprintf(small, sizeof small, format, args);
    char *text = arena_room(arena, length + 1);
    if (length < sizeof small)
        memcpy(text, small, length + 1);
    else
        vsnprintf(text, length + 1, format, again);
    va_end(again);
    return text;
}

char *arena_printf(Arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}
