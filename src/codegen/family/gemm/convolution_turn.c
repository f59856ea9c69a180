#include "codegen/family/gemm/convolution_turn.h"

#include "codegen/family/gemm/mma.h"
#include "codegen/family/gemm/parts.h"
#include "ir/fuse_turn.h"

/* The axes of the group along which a dimension of the tensor goes alone. */
static uint32_t lone_axes(const AxisGroup *group, const Access *access)
{
    uint32_t axes = 0, all = axis_group_mask(group);
    for (int d = 0; d < access->rank; d++) {
        int axis = affine_single_axis(&access->dims[d].index);
        if (axis >= 0)
            axes |= all & 1u << axis;
    }
    return axes;
}

static bool is_one(uint32_t axes) { return axes && !(axes & (axes - 1)); }

/* A window slides along a dimension, or steps through it. */
static bool has_windows(const Access *image)
{
    for (int d = 0; d < image->rank; d++)
        if (affine_single_axis(&image->dims[d].index) < 0 && !affine_is_constant(&image->dims[d].index))
            return true;
    return false;
}

// ---- axes in another order ----

static uint32_t moved_axes(uint32_t axes, const int *place, int count)
{
    uint32_t moved = 0;
    for (int a = 0; a < count; a++)
        moved |= (axes >> a & 1) << place[a];
    return moved;
}

static Access moved_store(Arena *arena, const Access *store, const Affine *forms, int count)
{
    Dim *dims = NEW_ARRAY(arena, Dim, store->rank);
    for (int d = 0; d < store->rank; d++)
        dims[d] = (Dim){affine_substitute(&store->dims[d].index, forms, count), store->dims[d].size};
    return (Access){store->tensor, store->rank, dims};
}

/* The same kernel, those spatial axes behind the others: the innermost one of what is stored comes last. */
static Fusion *with_axes_last(Arena *arena, const Fusion *fusion, uint32_t last)
{
    int place[MAX_AXES], next = 0;
    Affine forms[MAX_AXES];
    Fusion *moved = fusion_copy(arena, fusion);
    for (int comes_last = 0; comes_last < 2; comes_last++)
        for (int a = 0; a < fusion->spatial_count; a++)
            if ((int)(last >> a & 1) == comes_last)
                place[a] = next++;
    for (int a = fusion->spatial_count; a < fusion->axis_count; a++)
        place[a] = next++;
    for (int a = 0; a < fusion->axis_count; a++) {
        forms[a] = affine_axis(place[a]);
        moved->axes[place[a]] = fusion->axes[a];
    }
    for (int i = 0; i < fusion->op_count; i++) {
        FusedOp *op = &moved->ops[i];
        op->spatial = moved_axes(op->spatial, place, fusion->axis_count);
        op->reduced = moved_axes(op->reduced, place, fusion->axis_count);
        op->body = expr_substitute(arena, op->body, forms, fusion->axis_count);
        if (op->stored)
            op->store = moved_store(arena, &op->store, forms, fusion->axis_count);
    }
    fusion_verify(moved, "convolution_turn");
    return moved;
}

/* Channels of both factors come last. `image`: which of them; the other one is the filter. */
static bool wish_of_factors(const Product *product, int image, TurnWish *wish)
{
    const Access *x = mma_access(product->factor[image]), *w = mma_access(product->factor[1 - image]);
    bool phased = mma_guard(product, 1 - image);   // taps of a filter beside it are zeros
    if (!x || !w || has_windows(w) != phased)
        return false;
    uint32_t channel = lone_axes(&product->group[GROUP_K], x);
    *wish = (TurnWish){.images = {x, w}, .last = {channel, channel}, .image_count = 2};
    return is_one(channel);
}

/* Those of what is made, too. */
static Rewritten *turn_factors(Arena *arena, const Fusion *fusion, const Product *product, int image)
{
    TurnWish wish;
    if (!wish_of_factors(product, image, &wish) || !has_windows(wish.images[0]))
        return NULL;
    uint32_t filters = lone_axes(&product->group[image ? GROUP_M : GROUP_N], wish.images[1]);
    if (!filters)
        return NULL;
    wish.results = filters;
    wish.apart = axis_group_mask(&product->group[image ? GROUP_N : GROUP_M]);
    Rewritten *turned = fusion_turn(arena, fusion, &wish);
    if (turned)
        turned->main = with_axes_last(arena, turned->main, filters);
    return turned;
}

/* The same of a filter's gradient: channels of both are of what it makes, and those of the image its last. */
static Rewritten *turn_gradient(Arena *arena, const Fusion *fusion, const Product *product, int image)
{
    const Access *x = mma_access(product->factor[image]), *dy = mma_access(product->factor[1 - image]);
    if (!x || !dy || product->factor[1 - image]->kind != EXPR_ACCESS || has_windows(dy))
        return NULL;
    uint32_t channel = lone_axes(&product->group[image ? GROUP_N : GROUP_M], x);
    uint32_t filters = lone_axes(&product->group[image ? GROUP_M : GROUP_N], dy);
    if (!is_one(channel) || !is_one(filters))
        return NULL;
    TurnWish wish = {.images = {x, dy}, .last = {channel, filters}, .image_count = 2, .results = channel};
    Rewritten *turned = fusion_turn(arena, fusion, &wish);
    if (turned)
        turned->main = with_axes_last(arena, turned->main, channel);
    return turned;
}

/* Bulk copies bring its pixels. */
static bool is_granted(Arena *arena, const Rewritten *turned, const Target *target)
{
    const Products *view = product_view(arena, turned->main, target);
    return view && view->boxed;
}

/* The product that bulk copies do not bring as it is; NULL: they do, or it is none. */
static const Product *unboxed(const Products *products)
{
    const Product *product = products->tiled;
    return !product || products->boxed || product->guard || product->group[GROUP_BATCH].count ? NULL : product;
}

static Rewritten *turn(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    const Product *product = unboxed(view);
    if (!product)
        return NULL;
    for (int image = 1; image >= 0; image--) {   // what is made has the second one's axes last already
        Rewritten *turned = turn_gradient(arena, fusion, product, image);
        if (turned && is_granted(arena, turned, target)) {
            parts_within(arena, turned, target);
            return turned;
        }
        turned = turn_factors(arena, fusion, product, image);
        if (turned && is_granted(arena, turned, target))
            return turned;
    }
    return NULL;
}

/* What is made stays. A filter whose lines can be copied is not turned. */
static Rewritten *turn_to_columns(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    const Product *product = unboxed(view);
    TurnWish wish;
    if (!product || !wish_of_factors(product, 1, &wish))
        return NULL;
    for (int count = 1; count <= 2; count++) {
        wish.image_count = count;
        Rewritten *turned = fusion_turn(arena, fusion, &wish);
        if (turned && is_granted(arena, turned, target))
            return turned;
    }
    return NULL;
}

/* Copies of planes take less than the best kernel that needs none. */
const Rewrite turn_planes = {.make = turn, .most_share = 1};
const Rewrite turn_planes_to_columns = {.make = turn_to_columns, .most_share = 1};
