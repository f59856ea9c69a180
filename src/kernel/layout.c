#include "kernel/layout.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "kernel/kind.h"

enum {
    ALIGNMENT = 16,   // of what is copied
    PLACES = 2        // double buffer of exchanges: one is written again when all have read it
};

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

int64_t kind_staged_bytes(const KernelKind *kind, const RTile *block, const RTile *inner, const DeviceSpec *device)
{
    const TileSpace *space = kind->space;
    int64_t bytes = 0;
    for (int i = 0; i < space->tile_count; i++) {
        const DataTile *data = &space->tiles[i];
        if (!data->staged)
            continue;
        if (data->plane) {
            int64_t span = data_tile_span_bytes(data, block, space->axis_count);
            if (span > TOO_MANY_BITS)
                return INT64_MAX;
            bytes += span * schedule_buffers(kind->schedule);
            continue;
        }
        StagedLines lines = staged_lines(space, data, block, inner, device);
        int64_t bits = size_product(size_product(lines.count, lines.width + lines.padding), staged_bits(data));
        if (bits > TOO_MANY_BITS)
            return INT64_MAX;
        bytes += round_up(ceil_div(bits, 8), 16) * schedule_buffers(kind->schedule);
    }
    return bytes;
}

void lay_out_staged(SharedLayout *layout, const KernelKind *kind, const RTile *block, const RTile *inner,
                    const DeviceSpec *device)
{
    layout_add(layout, "STAGED", kind_staged_bytes(kind, block, inner, device));
}

int64_t combining_lanes(const Exchange *exchange, int64_t warp, int64_t reducers, int64_t columns)
{
    if (exchange->along)
        return (reducers | warp) & -(reducers | warp);
    if (exchange->combine == COMBINE_TREE)
        return 1;
    return warp % columns == 0 && reducers % (warp / columns) == 0 ? warp / columns : 1;
}

static const Exchange *combining(const Schedule *schedule)
{
    for (const Item *item = NULL; (item = schedule_next(schedule, ITEM_EXCHANGE, item));)
        if (item->exchange.combine == COMBINE_HALVES || item->exchange.combine == COMBINE_TREE)
            return &item->exchange;
    return NULL;
}

void lay_out_sums(SharedLayout *layout, const KernelKind *kind, const RTile *block, const RTile *inner,
                    const DeviceSpec *device)
{
    const Exchange *exchange = combining(kind->schedule);
    int64_t reducers = (int64_t)rtile_tiles(kind->space, block, inner, true),
            columns = (int64_t)rtile_tiles(kind->space, block, inner, false),
            lanes = combining_lanes(exchange, device->warp_size, reducers, columns);
    int64_t sum_bytes = reducers / lanes * exchange->bytes;
    layout_add(layout, "PARTIAL", size_product(sum_bytes, (int64_t)rtile_points(kind->space, block, false)));
}

SharedLayout kind_layout(const KernelKind *kind, const RTile *block, const RTile *inner,
                          const DeviceSpec *device)
{
    SharedLayout layout = kind->shared;
    if (kind->lay_out)
        kind->lay_out(&layout, kind, block, inner, device);
    return layout;
}

// ---- what follows from a schedule ----

static int at_least_1(int times) { return times > 0 ? times : 1; }

/* Results are exchanged in shared memory more than once. */
static bool meets_again(const Schedule *schedule)
{
    int64_t count = 0;
    for (const Item *item = NULL; (item = schedule_next(schedule, ITEM_EXCHANGE, item));)
        if (item->exchange.ops)
            count += schedule_rounds(schedule, (int)(item - schedule->items)) * at_least_1(item->exchange.times);
    return count > 1;
}

/* Bytes of shared memory that an exchange takes. Rows are copied behind the first. */
static int64_t exchange_bytes(const Schedule *schedule, const Exchange *exchange)
{
    switch ((Combine)exchange->combine) {
    case COMBINE_NOTHING:
    case COMBINE_LANES:
    case COMBINE_QUADS:
    case COMBINE_ROWS:     // in the place of staged tiles
    case COMBINE_TREE:
    case COMBINE_HALVES:   // of a block's tile: lay_out_sums
    case COMBINE_TURNS:
    case COMBINE_DIAGONALS:
    case COMBINE_BITS: return 0;
    case COMBINE_ALL:
        return round_up((meets_again(schedule) ? PLACES : 1) * (int64_t)exchange->parts * exchange->bytes,
                        ALIGNMENT);
    case COMBINE_COLUMNS:
        return PLACES * (exchange->parts + 1) * (int64_t)exchange->width * exchange->values * exchange->bytes;
    }
    return 0;
}

/* Exchanges use the same places. */
static int64_t partial_bytes(const Schedule *schedule)
{
    int64_t most = 0;
    for (const Item *item = NULL; (item = schedule_next(schedule, ITEM_EXCHANGE, item));)
        most = larger(most, exchange_bytes(schedule, &item->exchange));
    return most;
}

static bool is_staged(const Schedule *schedule, int tile)
{
    for (const Item *load = NULL; (load = schedule_next(schedule, ITEM_LOAD, load));)
        if (load->move.to == PLACE_SHARED && load->move.tiles >> tile & 1)
            return true;
    return false;
}

void schedule_set_shared(KernelKind *kind)
{
    const Schedule *schedule = kind->schedule;
    int64_t copies = 0;
    for (int i = 0; i < kind->space->tile_count && schedule->kept; i++)
        if (is_staged(schedule, i))
            copies += at_least_1(schedule->rows) *
                      round_up(schedule->kept * kind->space->tiles[i].element_bits / 8, ALIGNMENT);
    layout_add(&kind->shared, "PARTIAL", partial_bytes(schedule));
    kind->shared.beside = kind->shared.bytes;
    if (copies)
        layout_add(&kind->shared, "COPIES", copies);
}
