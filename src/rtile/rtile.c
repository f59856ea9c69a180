#include "rtile/rtile.h"

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

double rtile_traffic(const TileRules *rules, const RTile *tile, const DeviceSpec *device,
                     Level level)
{
    const TileSpace *space = rules->space;
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

/* Bits that a thread's tiles of the inputs, or of the outputs, take in registers; INT64_MAX if there are too
   many. */
static int64_t register_bits(const TileRules *rules, const RTile *tile, bool output)
{
    const TileSpace *space = rules->space;
    int64_t bits = 0;
    for (int i = 0; i < space->tile_count; i++) {
        const DataTile *data = &space->tiles[i];
        int input_bits = rules->input_bits ? rules->input_bits : data->element_bits;
        int element_bits = output ? rules->accumulator_bits : input_bits * rules->input_buffers;
        if (data->output != output || data->beside || !element_bits)
            continue;
        int64_t elements = data_tile_distinct(data, tile, space->axis_count);
        if (!checked_add(bits, size_product(elements, element_bits), &bits))
            return INT64_MAX;
    }
    return bits;
}

/* Accumulators, the inputs of one step if they are kept, and the rest: 32-bit registers of one
   thread. */
static int64_t register_count(const TileRules *rules, const RTile *tile)
{
    int64_t inputs = register_bits(rules, tile, false), most = 32 * (int64_t)rules->input_registers, bits;
    if (most && inputs > most)
        inputs = most;
    if (!checked_add(inputs, register_bits(rules, tile, true), &bits))
        return INT64_MAX / 32;
    int64_t threads = rules->tile_threads > 0 ? rules->tile_threads : 1;
    return bits / (32 * threads) + (bits % (32 * threads) != 0) + rules->register_overhead;
}

int64_t rtile_footprint(const TileRules *rules, const RTile *tile, const RTile *inner,
                        const DeviceSpec *device, Level level)
{
    if (level == LEVEL_SHARED)
        return rules_layout(rules, tile, inner, device).bytes;
    int64_t registers = register_count(rules, tile);
    return 4 * (rules->spills && registers > device->registers_per_thread ? device->registers_per_thread : registers);
}

TileCost rtile_cost(const TileRules *rules, const RTile *tile, const RTile *inner,
                    const DeviceSpec *device, Level level)
{
    return (TileCost){rtile_traffic(rules, tile, device, level),
                      rtile_footprint(rules, tile, inner, device, level)};
}

double rtile_reuse_score(const TileCost *tile, const TileCost *grown)
{
    double saved_bytes = tile->traffic - grown->traffic;
    double extra_bytes = (double)grown->footprint - (double)tile->footprint;
    return saved_bytes / (extra_bytes > 1 ? extra_bytes : 1);
}
