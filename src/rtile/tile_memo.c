#include "rtile/tile_memo.h"

enum { FIRST_SLOTS = 128 };

typedef struct MemoTile {
    uint64_t hash;
    RTile tile, inner;
    _Alignas(8) char numbers[];
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

static bool is_same(const RTile *a, const RTile *b, int axis_count)
{
    int axis = 0;
    while (axis < axis_count && a->size[axis] == b->size[axis])
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
    uint64_t hash = hash_of(tile, inner, memo->axis_count), at = hash & (memo->slot_count - 1);
    for (MemoTile *known; (known = memo->slots[at]); at = (at + 1) & (memo->slot_count - 1))
        if (known->hash == hash && is_same(&known->tile, tile, memo->axis_count) &&
            (!inner || is_same(&known->inner, inner, memo->axis_count))) {
            *is_new = false;
            return known->numbers;
        }
    MemoTile *added = arena_room(memo->arena, sizeof *added + memo->bytes);
    added->hash = hash;
    added->tile = *tile;
    if (inner)
        added->inner = *inner;
    memo->slots[at] = added;
    memo->count++;
    *is_new = true;
    return added->numbers;
}
