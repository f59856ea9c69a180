#include "rtile/rtile.h"

#include <assert.h>
#include <string.h>

void rules_choose(TileRules *rules, const void *choice, size_t size)
{
    assert(size <= sizeof rules->choice.bytes);
    memcpy(rules->choice.bytes, choice, size);
}

void rules_chosen(const TileRules *rules, void *choice, size_t size)
{
    memcpy(choice, rules->choice.bytes, size);
}

bool axis_shared_by_threads(const TileRules *rules, int axis)
{
    return !rules->space.axes[axis].reduction || rules->threads_reduce;
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
