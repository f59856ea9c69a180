#include "codegen/family/depthwise/turn.h"

#include "codegen/family/depthwise/filter_gradient.h"
#include "ir/fuse_turn.h"

static Rewritten *turn(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    const Depthwise *shape = ((const DepthwiseView *)view)->sum;
    (void)target;
    if (!shape)
        return NULL;
    bool gradient = shape->summed.extent > 1;   // of a filter, which is as small as it is
    uint32_t image = depthwise_image_axes(shape);
    return fusion_turn(arena, fusion,
                       &(TurnWish){.images = {factor_access(shape->x), factor_access(shape->w)},
                                   .last = {image, image},
                                   .image_count = gradient ? 2 : 1,
                                   .results = gradient ? 0 : image,
                                   .apart = image});
}

/* What is made is as small as the filter, and stays as it is. */
static Rewritten *turn_groups(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    const FilterGradient *gradient = ((const DepthwiseView *)view)->grouped;
    (void)target;
    if (!gradient)
        return NULL;
    const Depthwise *shape = &gradient->shape;
    uint32_t groups = axis_group_mask(&shape->channel);
    return fusion_turn(arena, fusion, &(TurnWish){.images = {gradient->x.access, gradient->d.access},
                                   .last = {groups | axis_group_mask(&shape->batch),
                                            groups | axis_group_mask(&shape->multiplier)},
                                   .image_count = 2});
}

const Rewrite turn_images = {.make = turn};
const Rewrite turn_planes_of_groups = {.make = turn_groups, .splits = true};
