#include "front/onnx/name_table.h"

#include <string.h>

typedef struct NameEntry {
    const char *name;
    void *value;
} NameEntry;

enum { FIRST_CAPACITY = 64 };

NameTable name_table_new(Arena *arena)
{
    return (NameTable){arena, NEW_ARRAY(arena, NameEntry, FIRST_CAPACITY), FIRST_CAPACITY, 0};
}

/* FNV-1a */
static uint64_t hash(const char *name)
{
    uint64_t value = 14695981039346656037u;
    for (; *name; name++)
        value = (value ^ (unsigned char)*name) * 1099511628211u;
    return value;
}

static NameEntry *entry_of(const NameTable *table, const char *name)
{
    uint64_t mask = (uint64_t)table->capacity - 1, at = hash(name) & mask;
    while (table->entries[at].name && strcmp(table->entries[at].name, name) != 0)
        at = (at + 1) & mask;
    return &table->entries[at];
}

void *name_table_find(const NameTable *table, const char *name) { return entry_of(table, name)->value; }

static void grow(NameTable *table)
{
    NameTable larger = {table->arena, NEW_ARRAY(table->arena, NameEntry, table->capacity * 2),
                        table->capacity * 2, table->count};
    for (int i = 0; i < table->capacity; i++)
        if (table->entries[i].name)
            *entry_of(&larger, table->entries[i].name) = table->entries[i];
    *table = larger;
}

void name_table_set(NameTable *table, const char *name, void *value)
{
    if (table->count * 2 >= table->capacity)
        grow(table);
    NameEntry *entry = entry_of(table, name);
    table->count += entry->name == NULL;
    *entry = (NameEntry){name, value};
}
