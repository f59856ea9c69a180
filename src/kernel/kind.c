#include "kernel/kind.h"

#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "rtile/space.h"

void kind_begin(Arena *arena, KernelKind *kind, const Fusion *fusion)
{
    *kind = (KernelKind){
        .space = space_new(arena, fusion),
        .schedule = arena_room(arena, sizeof(Schedule)),
    };
    memset(kind->schedule, 0, offsetof(Schedule, items));
}

KernelKind *kind_copy(Arena *arena, const KernelKind *kind)
{
    KernelKind *copy = arena_copy(arena, kind, sizeof *kind);
    copy->space = space_copy(arena, kind->space);
    copy->schedule = schedule_copy(arena, kind->schedule);
    if (kind->choice.value)
        kind_choose(arena, copy, kind->choice.value, kind->choice.bytes);
    return copy;
}

void kind_choose(Arena *arena, KernelKind *kind, const void *choice, size_t size)
{
    kind->choice = (FamilyChoice){arena_copy(arena, choice, size), size};
}

bool kind_passes_registers(const KernelKind *kind, const DeviceSpec *device)
{
    return kind->registers.held_words > 0 || !device->has.async_copy;
}

int kind_turns(const KernelKind *kind)
{
    int turns = 1;
    for (const Item *item = NULL; (item = schedule_next(kind->schedule, ITEM_LOOP, item));)
        if (item->loop.times && (item->loop.tiles || !kind->space->axes[item->loop.axis].reduction))
            turns *= item->loop.times;
    return turns;
}

static int blocks_along(const KernelKind *kind, bool reduction)
{
    const Schedule *schedule = kind->schedule;
    bool lies_there = kind->space->axes[schedule->cluster_axis].reduction == reduction;
    return schedule->cluster > 1 && lies_there ? schedule->cluster : 1;
}

int kind_splits(const KernelKind *kind) { return blocks_along(kind, true); }

int kind_multicast(const KernelKind *kind) { return blocks_along(kind, false); }

/* Bits that a thread's tiles of the inputs, or of the outputs, take in registers; INT64_MAX if there are too
   many. */
static int64_t register_bits(const KernelKind *kind, const RTile *tile, bool output, int input_buffers)
{
    const TileSpace *space = kind->space;
    int64_t bits = 0;
    for (int i = 0; i < space->tile_count; i++) {
        const DataTile *data = &space->tiles[i];
        int input_bits = data->register_bits ? data->register_bits : data->element_bits;
        int element_bits = output ? kind->registers.accumulator_bits : input_bits * input_buffers;
        if (data->output != output || data->beside || data->again || !element_bits)
            continue;
        int64_t elements = data_tile_distinct(data, tile, space->axis_count);
        if (!checked_add(bits, size_product(elements, element_bits), &bits))
            return INT64_MAX;
    }
    return bits;
}

int64_t kind_registers(const KernelKind *kind, const RTile *tile, int input_buffers)
{
    int64_t inputs = register_bits(kind, tile, false, input_buffers), most = 32 * (int64_t)kind->registers.most_inputs, bits;
    if (most && inputs > most)
        inputs = most;
    if (!checked_add(inputs, register_bits(kind, tile, true, input_buffers), &bits))
        return INT64_MAX / 32;
    int64_t threads = kind_tile_threads(kind);
    return bits / (32 * threads) + (bits % (32 * threads) != 0) + kind->registers.others;
}

bool kind_reads_ahead(const KernelKind *kind)
{
    return kind->registers.input_buffers > 1 && kind_tile_threads(kind) == 1;
}

const Loop *kind_unbuffered_loop(const KernelKind *kind)
{
    return kind->registers.input_buffers ? NULL : schedule_open_loop(kind->schedule);
}

bool kind_is_one_step(const KernelKind *kind, const RTile *block)
{
    const TileSpace *space = kind->space;
    int64_t steps = 1;
    for (int a = 0; a < space->axis_count; a++)
        if (space->axes[a].reduction)
            steps = size_product(steps, ceil_div(space->axes[a].extent, block->size[a]));
    return steps <= kind_splits(kind);
}

int64_t kind_footprint(const KernelKind *kind, const RTile *tile, const RTile *inner,
                        const DeviceSpec *device, Level level)
{
    if (level == LEVEL_SHARED)
        return kind_layout(kind, tile, inner, device).bytes;
    return 4 * kind_registers(kind, tile, kind->registers.input_buffers);
}

void kind_print(StrBuf *out, const KernelKind *kind)
{
    const TileSpace *space = kind->space;
    strbuf_printf(out, "rules %s: %d stages, ", kind->name, schedule_buffers(kind->schedule));
    if (kind->schedule->vectors > 0)
        strbuf_printf(out, "%d vectors, ", kind->schedule->vectors);
    if (space->instructions > 0)
        strbuf_printf(out, "%.4g instructions and ", space->instructions);
    strbuf_printf(out, "%.4g flop a point on %s\n", space->flops, unit_name[space->unit]);
    space_print(out, space);
}
