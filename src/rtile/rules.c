#include "rtile/rtile.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

void rules_parts(const TileRules *rules, RulesPart parts[RULES_PARTS])
{
    size_t items = offsetof(TileRules, schedule) + offsetof(Schedule, items);
    size_t space = offsetof(TileRules, space), tiles = offsetof(TileSpace, tiles);
    parts[0] = (RulesPart){0, items + (size_t)rules->schedule.count * sizeof(Item)};
    parts[1] = (RulesPart){space, tiles + (size_t)rules->space.tile_count * sizeof(DataTile)};
}

TileRules *rules_copy(Arena *arena, const TileRules *rules)
{
    RulesPart parts[RULES_PARTS];
    rules_parts(rules, parts);
    TileRules *copy = arena_room(arena, parts[1].at + parts[1].length);
    for (int i = 0; i < RULES_PARTS; i++)
        memcpy((char *)copy + parts[i].at, (const char *)rules + parts[i].at, parts[i].length);
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
