#include "ir/axis_group.h"

#include "base/checked.h"

void axis_group_add(AxisGroup *group, const Fusion *fusion, int axis)
{
    group->axes[group->count++] = axis;
    group->extent = fitting_mul(group->extent, fusion->axes[axis].extent);
}

int axis_group_innermost(const AxisGroup *group) { return group->axes[group->count - 1]; }

uint32_t axis_group_mask(const AxisGroup *group)
{
    uint32_t mask = 0;
    for (int i = 0; i < group->count; i++)
        mask |= 1u << group->axes[i];
    return mask;
}

int64_t axis_group_stride(const AxisGroup *group, const Affine *offset)
{
    return group->count ? offset->coef[axis_group_innermost(group)] : 0;
}

bool axis_group_has_stride(const AxisGroup *group, const Fusion *fusion, const Affine *offset, int64_t stride)
{
    for (int i = group->count - 1; i >= 0; i--) {
        if (offset->coef[group->axes[i]] != stride)
            return false;
        stride *= fusion->axes[group->axes[i]].extent;
    }
    return true;
}

void axis_group_place(const AxisGroup *group, const Fusion *fusion, int64_t flat, int64_t *at)
{
    for (int i = group->count - 1; i >= 0; i--) {
        int64_t extent = fusion->axes[group->axes[i]].extent;
        at[group->axes[i]] = flat % extent;
        flat /= extent;
    }
}
