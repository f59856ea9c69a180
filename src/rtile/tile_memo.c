#include "rtile/tile_memo.h"

#include <string.h>

typedef struct MemoTile {
    RTile tile, inner;
    _Alignas(8) char numbers[];
} MemoTile;

struct TileMemo {
    Arena *arena;
    int most, tiles;
    size_t bytes;
    MemoTile *slots[];   // of a hash table, 2 * most
};

TileMemo *tile_memo_new(Arena *arena, int most, size_t bytes)
{
    TileMemo *memo = arena_alloc(arena, sizeof *memo + 2 * (size_t)most * sizeof *memo->slots);
    memo->arena = arena;
    memo->most = most;
    memo->bytes = bytes;
    return memo;
}

static uint64_t hash_of(const RTile *tile, const RTile *inner, int axis_count)
{
    uint64_t hash = 0;
    for (int a = 0; a < axis_count; a++) {
        hash = (hash ^ (uint64_t)tile->size[a]) * 0x9E3779B97F4A7C15u;
        hash = inner ? (hash ^ (uint64_t)inner->size[a]) * 0x9E3779B97F4A7C15u : hash;
    }
    return hash >> 32;
}

static bool is_same(const RTile *a, const RTile *b, int axis_count)
{
    int axis = 0;
    while (axis < axis_count && a->size[axis] == b->size[axis])
        axis++;
    return axis == axis_count;
}

void *tile_memo_find(TileMemo *memo, const RTile *tile, const RTile *inner, int axis_count, void *own, bool *is_new)
{
    uint64_t slots = 2 * (uint64_t)memo->most, at = hash_of(tile, inner, axis_count) % slots;
    for (; memo->slots[at]; at = (at + 1) % slots)
        if (is_same(&memo->slots[at]->tile, tile, axis_count) &&
            (!inner || is_same(&memo->slots[at]->inner, inner, axis_count))) {
            *is_new = false;
            return memo->slots[at]->numbers;
        }
    *is_new = true;
    if (memo->tiles == memo->most)
        return own;
    MemoTile *added = arena_room(memo->arena, sizeof *added + memo->bytes);
    added->tile = *tile;
    if (inner)
        added->inner = *inner;
    memo->slots[at] = added;
    memo->tiles++;
    return added->numbers;
}
