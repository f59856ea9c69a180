#include "base/words.h"

#include <string.h>

enum { FIRST_CAPACITY = 64 };

static size_t hash(Slice name)
{
    size_t hash = 0xcbf29ce484222325u;   // FNV-1a
    for (const char *c = name.start; c < name.end; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    return hash;
}

WordTable word_table_new(Arena *arena, size_t capacity)
{
    return (WordTable){.arena = arena, .words = NEW_ARRAY(arena, Word, capacity), .capacity = capacity};
}

/* Where the name is, or would be. */
static Word *place_of(const WordTable *table, Slice name)
{
    size_t at = hash(name) & (table->capacity - 1);
    while (table->words[at].name.start && !slice_same(table->words[at].name, name))
        at = (at + 1) & (table->capacity - 1);
    return &table->words[at];
}

void *word_find(const WordTable *table, Slice name)
{
    return table->count ? place_of(table, name)->value : NULL;
}

static void grow(WordTable *table)
{
    WordTable grown = word_table_new(table->arena, table->capacity ? 2 * table->capacity : FIRST_CAPACITY);
    grown.count = table->count;
    for (size_t i = 0; i < table->capacity; i++)
        if (table->words[i].name.start)
            *place_of(&grown, table->words[i].name) = table->words[i];
    *table = grown;
}

void **word_place(WordTable *table, Slice name)
{
    if (2 * table->count >= table->capacity)
        grow(table);
    Word *word = place_of(table, name);
    table->count += !word->name.start;
    word->name = name;
    return &word->value;
}
