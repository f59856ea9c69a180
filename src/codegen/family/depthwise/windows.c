#include "codegen/family/depthwise/windows.h"

#include "base/checked.h"

static bool same_group(const AxisGroup *one, const AxisGroup *other)
{
    return axis_group_mask(one) == axis_group_mask(other);
}

static bool slide_alike(const WindowAxis *one, const WindowAxis *other)
{
    return one->output == other->output && one->inputs == other->inputs && one->stride == other->stride &&
           one->x_stride == other->x_stride;
}

/* The image is the same one, and windows of both move alike over it. */
static bool over_same_image(const Depthwise *one, const Depthwise *other)
{
    if (factor_access(one->x)->tensor != factor_access(other->x)->tensor ||
        one->x_origin != other->x_origin || one->image_count != other->image_count ||
        one->type != other->type)
        return false;
    for (int i = 0; i < one->image_count; i++)
        if (!slide_alike(&one->image[i], &other->image[i]))
            return false;
    const AxisGroup *groups[] = {&one->batch, &one->channel};
    for (int g = 0; g < 2; g++)
        for (int i = 0; i < groups[g]->count; i++)
            if (one->x_offset.coef[groups[g]->axes[i]] != other->x_offset.coef[groups[g]->axes[i]])
                return false;
    return same_group(&one->batch, &other->batch) && same_group(&one->channel, &other->channel) &&
           same_group(&one->multiplier, &other->multiplier) && !one->summed.count && !other->summed.count;
}

static int64_t last_of(const WindowAxis *axis) { return (axis->taps - 1) * axis->dilation - axis->pad; }

/* From the first tap of any window to the last one, with a tap at every input: of 3 taps from -1 on and 2
   from 1 on four. */
static WindowAxis cover(const Windows *windows, int i)
{
    WindowAxis axis = windows->shape[0].image[i];
    if (windows->count == 1)
        return axis;
    int64_t last = last_of(&axis);
    for (int w = 1; w < windows->count; w++) {
        const WindowAxis *other = &windows->shape[w].image[i];
        axis.pad = larger(axis.pad, other->pad);
        last = larger(last, last_of(other));
    }
    axis.dilation = 1, axis.taps = last + axis.pad + 1;
    return axis;
}

bool windows_find(const Fusion *fusion, Windows *windows)
{
    *windows = (Windows){.count = 0};
    if (!fusion_is_uniform(fusion))
        return false;
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (op->reduce == REDUCE_NONE)
            continue;
        int w = windows->count++;
        if (w == MAX_WINDOWS || !depthwise_find_sum(fusion, op, &windows->shape[w]) ||
            !over_same_image(&windows->shape[0], &windows->shape[w]))
            return false;
        windows->op[w] = i;
    }
    windows->all = windows->shape[0];
    for (int i = 0; i < windows->all.image_count; i++)
        windows->all.image[i] = cover(windows, i);
    return windows->count > 0;
}

int windows_number(const Windows *windows, int op)
{
    for (int w = 0; w < windows->count; w++)
        if (windows->op[w] == op)
            return w;
    return -1;
}
