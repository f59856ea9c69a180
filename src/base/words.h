// Names, or other bytes, and what stands for them: a hash table that only grows.
#pragma once
#include "base/arena.h"
#include "base/slice.h"

typedef struct Word {
    Slice name;    // empty: the place is free
    void *value;   // NULL: the name is not known
} Word;

typedef struct WordTable {
    Arena *arena;
    Word *words;
    size_t count, capacity;   // a power of two, or 0
} WordTable;

WordTable word_table_new(Arena *arena, size_t capacity);

/* NULL if it is not known. */
void *word_find(const WordTable *table, Slice name);

/* Where what stands for the name is to be put; up to the next call. */
void **word_place(WordTable *table, Slice name);
