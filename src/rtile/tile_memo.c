#include "rtile/tile_memo.h"

#include <string.h>

enum { SLOTS = 1024, MOST_TILES = SLOTS / 2 };   // of a hash table, at least half empty

typedef struct MemoTile {
    RTile tile;
    double numbers[];
} MemoTile;

struct TileMemo {
    Arena *arena;
    int count, tiles;
    MemoTile *slots[SLOTS];
};

TileMemo *tile_memo_new(Arena *arena, int count)
{
    TileMemo *memo = NEW(arena, TileMemo);
    memo->arena = arena;
    memo->count = count;
    return memo;
}

static uint64_t hash_of(const RTile *tile, int axis_count)
{
    uint64_t hash = 0;
    for (int a = 0; a < axis_count; a++)
        hash = (hash ^ (uint64_t)tile->size[a]) * 0x9E3779B97F4A7C15u;
    return hash >> 32;
}

double *tile_memo_numbers(TileMemo *memo, const RTile *tile, int axis_count, bool *is_new)
{
    uint64_t slot = hash_of(tile, axis_count) % SLOTS;
    for (; memo->slots[slot]; slot = (slot + 1) % SLOTS)
        if (!memcmp(memo->slots[slot]->tile.size, tile->size, (size_t)axis_count * sizeof *tile->size)) {
            *is_new = false;
            return memo->slots[slot]->numbers;
        }
    if (memo->tiles == MOST_TILES)
        return NULL;
    MemoTile *added = arena_room(memo->arena, sizeof *added + (size_t)memo->count * sizeof *added->numbers);
    added->tile = *tile;
    memo->slots[slot] = added;
    memo->tiles++;
    *is_new = true;
    return added->numbers;
}
