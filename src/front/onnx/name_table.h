// Names to what they stand for.
#pragma once
#include <stdint.h>

#include "base/arena.h"

typedef struct NameTable {
    Arena *arena;
    struct NameEntry *entries;   // a power of two of them
    int capacity, count;
} NameTable;

NameTable name_table_new(Arena *arena);
/* NULL: the name is not there. */
void *name_table_find(const NameTable *table, const char *name);
/* What the name stands for from now on, which is not NULL. */
void name_table_set(NameTable *table, const char *name, void *value);
