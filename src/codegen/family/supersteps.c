// supersteps: any kernel on a device whose units have no memory in common. It is ranked and never written: there is no
// template.
//
// One block is what one unit makes: its workers share the register tiles of it. In each step of the reduction the block gets
// what it reads from the memories of all units.
#include "base/checked.h"
#include "codegen/family/family.h"
#include "rtile/space.h"

enum {
    ACCUMULATORS = 16,      // of a worker beside its other registers (Tile Vertex ISA, AACC)
    WORKER_REGISTERS = 32   // of each, all its own: 16 for addresses, 16 for numbers
};

static const void *view_of(Arena *arena, const Fusion *fusion, const Target *target)
{
    (void)arena, (void)target;
    return fusion_is_uniform(fusion) ? fusion : NULL;
}

/* Memory of a unit that holds its part of all tensors, whatever the tiles are. */
static int64_t resident_bytes(const TileSpace *space, const DeviceSpec *device)
{
    RTile problem = rtile_problem(space);
    double bytes = 0;
    for (int i = 0; i < space->tile_count; i++)
        bytes += data_tile_bytes(&space->tiles[i], &problem, space->axis_count);
    double share = bytes / device->sm_count + 1;
    return share < (double)device->shared_per_sm ? (int64_t)share : device->shared_per_sm;
}

/* Elements of the tensor that lie in one line of a unit's memory: a worker reads them together. */
static int64_t line_elements(const DataTile *tile, const DeviceSpec *device)
{
    return tile->element_bits < 8 ? 1 : 8 * device->shared.transaction_bytes / tile->element_bits;
}

/* Whole lines along the axis that is contiguous in an output, and along those of the reduction that are in an input; unless
   the axis is shorter. */
static void align(KernelKind *kind, const DeviceSpec *device)
{
    const TileSpace *space = kind->space;
    for (int a = 0; a < space->axis_count; a++) {
        int64_t granule = 1;
        for (int i = 0; i < space->tile_count; i++) {
            const DataTile *tile = &space->tiles[i];
            bool along = tile->rank && tile->output != space->axes[a].reduction &&
                         tile->dims[tile->rank - 1].index.coef[a] == 1;
            int64_t line = along ? line_elements(tile, device) : 1;
            granule = line > granule && line <= space->axes[a].extent ? line : granule;
        }
        kind->space->rule[LEVEL_REGISTER][a] =
            (AxisRule){granule, space->axes[a].reduction ? granule : ACCUMULATORS};
        kind->space->rule[LEVEL_SHARED][a] = (AxisRule){granule, round_up(space->axes[a].extent, granule)};
    }
}

/* A worker stores one result of a point after another: accumulators hold those of the first one alone. */
static void store_in_turn(TileSpace *space)
{
    bool held = false;
    for (int i = 0; i < space->tile_count; i++) {
        space->tiles[i].beside = space->tiles[i].output && held;
        held |= space->tiles[i].output;
    }
}

/* Products of 16 bits an element have a unit of their own where the device does. */
static Unit unit_of(const Fusion *fusion, const TileSpace *space, const DeviceSpec *device)
{
    bool halves = fusion->ops[0].reduce == REDUCE_SUM && space->tile_count > 2;
    for (int i = 0; i < space->tile_count; i++)
        halves &= space->tiles[i].output || space->tiles[i].element_bits == 16;
    return halves && device->peak[UNIT_TENSOR_F16] > 0 ? UNIT_TENSOR_F16 : space->unit;
}

static void state(Schedule *schedule, const Fusion *fusion, const TileSpace *space)
{
    uint32_t inputs = space_inputs(space), changing = 0;
    for (int a = fusion->spatial_count; a < fusion->axis_count; a++) {
        schedule_loop(schedule, (Loop){.axis = (int8_t)a});
        changing |= space_along(space, a);
    }
    schedule_load(schedule, (Move){.tiles = inputs & changing, .to = PLACE_SHARED});
    schedule_reduce(schedule, schedule_ops(fusion, true));
    for (int a = fusion->spatial_count; a < fusion->axis_count; a++)
        schedule_end(schedule);
    schedule_load(schedule, (Move){.tiles = inputs & ~changing, .to = PLACE_SHARED});
    schedule_map(schedule, schedule_ops(fusion, false));
    schedule_store(schedule, (Move){.tiles = space_outputs(space)});
}

static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    (void)view;
    KernelKind *kind = &variants[0];
    if (!tiles_hold(fusion, 1))
        return 0;
    kind_begin(arena, kind, fusion);
    kind->name = "tiles";
    for (int a = 0; a < fusion->axis_count; a++)
        space_add_axis(kind->space, fusion->axes[a].name, fusion->axes[a].extent,
                       a >= fusion->spatial_count);
    space_add_staged_tiles(kind->space, fusion);
    store_in_turn(kind->space);
    kind->space->unit = unit_of(fusion, kind->space, device);
    align(kind, device);
    state(kind->schedule, fusion, kind->space);
    layout_add(&kind->shared, "RESIDENT", resident_bytes(kind->space, device));
    kind->lay_out = lay_out_staged;
    kind->registers.accumulator_bits = 32;
    kind->registers.others = WORKER_REGISTERS;
    return 1;
}

const Family supersteps_family = {
    .name = "supersteps",
    .variants = (const char *const[]){"tiles", NULL},
    .fetches = true,
    .view = view_of,
    .kinds = kinds,
};
