#include "rtile/rtile.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

size_t space_bytes(const TileSpace *space)
{
    return offsetof(TileSpace, tiles) + (size_t)space->tile_count * sizeof *space->tiles;
}

size_t schedule_bytes(const Schedule *schedule)
{
    return offsetof(Schedule, items) + (size_t)schedule->count * sizeof *schedule->items;
}

TileSpace *space_copy(Arena *arena, const TileSpace *space)
{
    return arena_copy(arena, space, space_bytes(space));
}

Schedule *schedule_copy(Arena *arena, const Schedule *schedule)
{
    return arena_copy(arena, schedule, schedule_bytes(schedule));
}

TileRules *rules_copy(Arena *arena, const TileRules *rules)
{
    TileRules *copy = arena_copy(arena, rules, sizeof *rules);
    copy->space = space_copy(arena, rules->space);
    copy->schedule = schedule_copy(arena, rules->schedule);
    return copy;
}

void rules_choose(TileRules *rules, const void *choice, size_t size)
{
    assert(size <= sizeof rules->choice.bytes);
    memcpy(rules->choice.bytes, choice, size);
}

void rules_chosen(const TileRules *rules, void *choice, size_t size)
{
    memcpy(choice, rules->choice.bytes, size);
}

bool goes_through_registers(const TileRules *rules, const DeviceSpec *device)
{
    return rules->copies_through_registers || !device->has.async_copy;
}

int tile_buffers(const TileRules *rules)
{
    return rules->keeps_vectors ? rules->vectors : rules->stages;
}

double point_flops(const TileSpace *space)
{
    return space->instructions > 0 ? 2 * space->instructions : space->flops;
}
