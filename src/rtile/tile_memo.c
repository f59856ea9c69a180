#include "rtile/tile_memo.h"

#include <string.h>

enum { FIRST_SLOTS = 128 };

/* `sizes`: of the tile along the axes, then of the tile inside, if there is one; then the numbers. */
typedef struct MemoTile {
    uint64_t hash;
    int64_t sizes[];
} MemoTile;

struct TileMemo {
    Arena *arena;
    int axis_count;
    size_t bytes, count, slot_count;   // a power of two
    MemoTile **slots;                  // of a hash table, at least half empty
};

TileMemo *tile_memo_new(Arena *arena, int axis_count, size_t bytes)
{
    TileMemo *memo = NEW(arena, TileMemo);
    *memo = (TileMemo){.arena = arena, .axis_count = axis_count, .bytes = bytes, .slot_count = FIRST_SLOTS};
    memo->slots = NEW_ARRAY(arena, MemoTile *, FIRST_SLOTS);
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

static bool is_same(const int64_t *sizes, const RTile *tile, int axis_count)
{
    int axis = 0;
    while (axis < axis_count && sizes[axis] == tile->size[axis])
        axis++;
    return axis == axis_count;
}

static void grow(TileMemo *memo)
{
    TileMemo grown = *memo;
    grown.slot_count *= 2;
    grown.slots = NEW_ARRAY(memo->arena, MemoTile *, grown.slot_count);
    for (size_t i = 0; i < memo->slot_count; i++) {
        size_t at = memo->slots[i] ? memo->slots[i]->hash & (grown.slot_count - 1) : 0;
        while (memo->slots[i] && grown.slots[at])
            at = (at + 1) & (grown.slot_count - 1);
        if (memo->slots[i])
            grown.slots[at] = memo->slots[i];
    }
    *memo = grown;
}

void *tile_memo_find(TileMemo *memo, const RTile *tile, const RTile *inner, bool *is_new)
{
    if (2 * memo->count == memo->slot_count)
        grow(memo);
    int axes = memo->axis_count, sizes = inner ? 2 * axes : axes;
    uint64_t hash = hash_of(tile, inner, axes), at = hash & (memo->slot_count - 1);
    for (MemoTile *known; (known = memo->slots[at]); at = (at + 1) & (memo->slot_count - 1))
        if (known->hash == hash && is_same(known->sizes, tile, axes) &&
            (!inner || is_same(known->sizes + axes, inner, axes))) {
            *is_new = false;
            return known->sizes + sizes;
        }
    MemoTile *added = arena_room(memo->arena, sizeof *added + (size_t)sizes * sizeof(int64_t) + memo->bytes);
    added->hash = hash;
    memcpy(added->sizes, tile->size, (size_t)axes * sizeof(int64_t));
    if (inner)
        memcpy(added->sizes + axes, inner->size, (size_t)axes * sizeof(int64_t));
    memo->slots[at] = added;
    memo->count++;
    *is_new = true;
    return added->sizes + sizes;
}
