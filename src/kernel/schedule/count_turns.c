// Which tiles a persistent block makes, and in which order.
#include <assert.h>

#include "base/checked.h"
#include "kernel/schedule/count_parts.h"

/* Tiles along an axis; of a multicast cluster all or none. */
static int64_t tiles_along(const CountWalk *walk, int axis)
{
    const KernelKind *kind = walk->kind;
    int64_t tiles = ceil_div(kind->space->axes[axis].extent, walk->block->shared->size[axis]);
    return axis == kind->schedule->cluster_axis ? ceil_div(tiles, kind_multicast(kind)) : tiles;
}

/* The place of a cluster's tile: panels of so many rows side by side, each column by column (Corner in templates/bulk.cu). */
static TilePlace place_of(const CountWalk *walk, int64_t number, int64_t rank)
{
    const KernelKind *kind = walk->kind;
    int multicast = kind_multicast(kind), columns = space_last_spatial(kind->space, kind->space->axis_count),
        rows = space_last_spatial(kind->space, columns);
    assert(rows >= 0);
    int64_t across = tiles_along(walk, columns), down = tiles_along(walk, rows), lines = down,
            each = walk->block->panel / multicast;
    for (int a = 0; a < rows && kind->space->phases; a++)
        lines *= kind->space->axes[a].reduction ? 1 : tiles_along(walk, a);
    int64_t height = each > 1 ? each : 1, all = across * lines, block = number % all;
    int64_t panel = block / (height * across) * height, left = lines - panel,
            inside = block % (height * across);
    int64_t high = left < height ? left : height, row = panel + inside % high;
    TilePlace place = {{0}};
    number = number / all + row / down;
    place.at[rows] = row % down;
    place.at[columns] = inside / high;
    for (int a = rows - 1; a >= 0; a--)
        if (!kind->space->axes[a].reduction) {
            place.at[a] = number % tiles_along(walk, a);
            number /= tiles_along(walk, a);
        }
    int along = kind->schedule->cluster_axis;
    place.at[along] = place.at[along] * multicast + rank;
    return place;
}

int64_t count_places(const CountWalk *walk, TilePlace *places)
{
    const TileSpace *space = walk->kind->space;
    int64_t multicast = kind_multicast(walk->kind), clusters = walk->block->grid / multicast,
            all = 1, count = 0, turns = walk->block->turns;
    for (int a = 0; a < space->axis_count; a++)
        all *= space->axes[a].reduction ? 1 : tiles_along(walk, a);
    int64_t left = all - (turns - 1) * clusters, end = clusters - 1, own = walk->block->last ? end : 0;
    if (space->phases) {   // to and fro; who makes the last tile is the last block, which is in its place
        end = turns % 2 == 1 ? left - 1 : clusters - left;
        own = walk->block->last ? end : end == 0 ? clusters - 1 : 0;
    }
    for (int64_t turn = 0; turn < turns; turn++) {   // the last one may have fewer, of the last blocks
        int64_t number = turn * clusters + (space->phases && turn % 2 ? clusters - 1 - own : own);
        number -= turn + 1 == turns && !space->phases ? clusters * turns - all : 0;
        if (number < turn * clusters || number >= all)
            continue;
        number = schedule_is_backwards(walk->kind->schedule) ? all - 1 - number : number;
        places[count++] = place_of(walk, number, walk->block->last ? multicast - 1 : 0);
    }
    return count;
}
