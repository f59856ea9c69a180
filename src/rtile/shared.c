#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "rtile/rtile.h"

void layout_put(SharedLayout *layout, const char *name, int64_t at, int64_t bytes)
{
    int64_t end;
    assert(layout->count < MAX_REGIONS);
    layout->regions[layout->count++] = (SharedRegion){name, at, bytes};
    if (!checked_add(at, bytes, &end))
        end = INT64_MAX;
    if (end > layout->bytes)
        layout->bytes = end;
}

void layout_add(SharedLayout *layout, const char *name, int64_t bytes)
{
    layout_put(layout, name, layout->bytes, bytes);
}

const SharedRegion *layout_region(const SharedLayout *layout, const char *name)
{
    int i = 0;
    while (i < layout->count && strcmp(layout->regions[i].name, name) != 0)
        i++;
    assert(i < layout->count);
    return &layout->regions[i];
}

int64_t rtile_staged_bytes(const TileRules *rules, const RTile *block, const RTile *inner, const DeviceSpec *device)
{
    const TileSpace *space = rules->space;
    int64_t bytes = 0;
    for (int i = 0; i < space->tile_count; i++) {
        const DataTile *data = &space->tiles[i];
        if (!data->staged)
            continue;
        if (data->plane) {
            int64_t span = data_tile_span_bytes(data, block, space->axis_count);
            if (span > TOO_MANY_BITS)
                return INT64_MAX;
            bytes += span * tile_buffers(rules);
            continue;
        }
        StagedLines lines = staged_lines(rules, data, block, inner, device);
        int64_t bits = size_product(size_product(lines.count, lines.width + lines.padding), staged_bits(data));
        if (bits > TOO_MANY_BITS)
            return INT64_MAX;
        bytes += round_up(ceil_div(bits, 8), 16) * tile_buffers(rules);
    }
    return bytes;
}

void lay_out_staged(SharedLayout *layout, const TileRules *rules, const RTile *block, const RTile *inner,
                    const DeviceSpec *device)
{
    layout_add(layout, "STAGED", rtile_staged_bytes(rules, block, inner, device));
}

SharedLayout rules_layout(const TileRules *rules, const RTile *block, const RTile *inner,
                          const DeviceSpec *device)
{
    SharedLayout layout = rules->shared;
    if (rules->lay_out)
        rules->lay_out(&layout, rules, block, inner, device);
    return layout;
}
