// Memory with a lifetime instead of an owner: everything made during one compile lives until the arena goes.
//
// `arena` is one compile, `scratch` one step of it, such as one candidate. No stage ever frees a single
// object.
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct Arena Arena;

Arena *arena_new(void);
void arena_free(Arena *arena);

/* Everything made so far is gone, its memory is used again: for a scratch arena that many candidates pass
   through. */
void arena_reset(Arena *arena);

/* `size` zeroed bytes aligned to 16. Never returns NULL: without memory the program ends with
   EXIT_MACHINE. */
void *arena_alloc(Arena *arena, size_t size);

/* The same, not zeroed: for large values of which only a part is written and read. What is never
   touched costs nothing. */
void *arena_room(Arena *arena, size_t size);

/* A copy of these bytes. */
void *arena_copy(Arena *arena, const void *bytes, size_t size);

/* Makes memory of `size` bytes longer where it lies, not zeroed. False, and nothing has changed: it was not
   allocated last, or its chunk has no room. */
bool arena_grow(Arena *arena, const void *memory, size_t size, size_t grown);

/* Zeroed, for `count` objects of `size` bytes; the product is checked. */
void *arena_alloc_array(Arena *arena, size_t count, size_t size);

char *arena_strndup(Arena *arena, const char *text, size_t length);
char *arena_strdup(Arena *arena, const char *text);
char *arena_printf(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *arena, const char *format, va_list args);

#define NEW(arena, Type) ((Type *)arena_alloc((arena), sizeof(Type)))
#define NEW_ARRAY(arena, Type, count) ((Type *)arena_alloc_array((arena), (size_t)(count), sizeof(Type)))
