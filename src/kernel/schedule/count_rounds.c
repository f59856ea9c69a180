// How often a block goes through its loops.
#include "base/checked.h"
#include "kernel/schedule/count_parts.h"

int64_t count_rounds(const CountWalk *walk, const Loop *loop)
{
    const RTile *shared = walk->block->shared, *inner = walk->block->inner;
    if (loop->tiles)
        return 1;
    const Axis *axis = &walk->kind->space->axes[loop->axis];
    if (loop->times && !loop->dealt)   // rows that a block makes in turn may be fewer at the end
        return axis->reduction ? loop->times
                               : ceil_div(walk->region.count[loop->axis], shared->size[loop->axis]);
    if (loop->by_thread)
        return ceil_div(shared->size[loop->axis], inner->size[loop->axis]);
    const TapPhases *phases = walk->kind->space->phases;
    if (phases && phases->k_axis == loop->axis)
        return tap_count(phases_used(phases, walk->region.first[phases->columns_axis],
                                     shared->size[phases->columns_axis]))
             * ceil_div(phases->step, shared->size[loop->axis]);
    int64_t steps = loop->times ? loop->times : ceil_div(axis->extent, shared->size[loop->axis]);
    int64_t cluster = kind_splits(walk->kind), rank = walk->block->last ? cluster - 1 : 0;
    if (!axis->reduction || cluster == 1)
        return steps;
    int64_t run = larger(loop->times ? loop->dealt : walk->kind->schedule->run / shared->size[loop->axis], 1),
            left = steps % (run * cluster) - rank * run;
    return steps / (run * cluster) * run + (left < 0 ? 0 : smaller(left, run));   // in turn
}

int64_t count_times(const CountWalk *walk, int item)
{
    const Schedule *schedule = walk->kind->schedule;
    int64_t times = 1;
    for (int i = 0; i < item; i++)
        if (schedule_is_around(schedule, i, item))
            times *= count_rounds(walk, &schedule->items[i].loop);
    return times;
}
