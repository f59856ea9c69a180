#include "rtile/rtile.h"

#include <stddef.h>

#include "base/checked.h"

RTile rtile_problem(const TileSpace *space)
{
    RTile problem = {0};
    for (int a = 0; a < space->axis_count; a++)
        problem.size[a] = space->axes[a].extent;
    return problem;
}

int space_last_spatial(const TileSpace *space, int end)
{
    int axis = end - 1;
    while (axis >= 0 && space->axes[axis].reduction)
        axis--;
    return axis;
}

double rtile_points(const TileSpace *space, const RTile *tile, bool reduction)
{
    double points = 1;
    for (int a = 0; a < space->axis_count; a++)
        if (space->axes[a].reduction == reduction)
            points *= (double)tile->size[a];
    return points;
}

double rtile_tiles(const TileSpace *space, const RTile *outer, const RTile *inner, bool reduction)
{
    double tiles = 1;
    for (int a = 0; a < space->axis_count; a++)
        if (space->axes[a].reduction == reduction)
            tiles *= (double)ceil_div(outer->size[a], inner->size[a]);
    return tiles;
}

double rtile_traffic(const TileSpace *space, const RTile *tile, const DeviceSpec *device, Level level)
{
    double bytes = 0;
    for (int i = 0; i < space->tile_count; i++) {
        const DataTile *data = &space->tiles[i];
        double moved = level == LEVEL_REGISTER
            ? data_tile_bytes(data, tile, space->axis_count)
            : data_tile_traffic(data, tile, space->axis_count, device->dram.transaction_bytes);
        bytes += moved * data_tile_visits(space, data, tile);
    }
    double points = rtile_points(space, tile, false);
    for (int a = 0; a < space->axis_count; a++)
        if (space->axes[a].reduction)
            points *= (double)space->axes[a].extent;
    return bytes / points;
}

size_t space_bytes(const TileSpace *space)
{
    return offsetof(TileSpace, tiles) + (size_t)space->tile_count * sizeof *space->tiles;
}

TileSpace *space_copy(Arena *arena, const TileSpace *space)
{
    return arena_copy(arena, space, space_bytes(space));
}

double point_flops(const TileSpace *space)
{
    return space->instructions > 0 ? 2 * space->instructions : space->flops;
}

double rtile_reuse_score(const TileCost *tile, const TileCost *grown)
{
    double saved_bytes = tile->traffic - grown->traffic;
    double extra_bytes = (double)grown->footprint - (double)tile->footprint;
    return saved_bytes / (extra_bytes > 1 ? extra_bytes : 1);
}
