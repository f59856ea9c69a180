#include "rtile/rtile.h"

bool axis_shared_by_threads(const TileRules *rules, int axis)
{
    return !rules->space.axes[axis].reduction || rules->threads_reduce;
}

bool goes_through_registers(const TileRules *rules, const DeviceSpec *device)
{
    return rules->copies_through_registers || !device->has.async_copy;
}
