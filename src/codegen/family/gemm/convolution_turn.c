#include "codegen/family/gemm/convolution_turn.h"

#include "codegen/family/gemm/mma.h"
#include "ir/fuse_turn.h"

/* The axis of k along which one dimension goes alone; -1: there is none, or several. */
static int channel_of(const Product *product, const Access *image)
{
    uint32_t k = axis_group_mask(&product->group[GROUP_K]);
    int channel = -1;
    for (int d = 0; d < image->rank; d++) {
        int axis = affine_single_axis(&image->dims[d].index);
        if (axis < 0 || !(k >> axis & 1))
            continue;
        if (channel >= 0)
            return -1;
        channel = axis;
    }
    return channel;
}

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

/* `image`: which of the factors; the other one is the filter. */
static Rewritten *turn_factors(Arena *arena, const Fusion *fusion, const Product *product, int image)
{
    const Access *x = mma_access(product->factor[image]), *w = mma_access(product->factor[1 - image]);
    if (!x || !w || product->factor[1 - image]->kind != EXPR_ACCESS || !has_windows(x) || has_windows(w))
        return NULL;
    int channel = channel_of(product, x);
    if (channel < 0)
        return NULL;
    uint32_t filters = axis_group_mask(&product->group[image ? GROUP_M : GROUP_N]);
    TurnWish wish = {.images = {x, w},
                     .last = {1u << channel, 1u << channel},
                     .image_count = 2,
                     .results = filters,
                     .apart = axis_group_mask(&product->group[image ? GROUP_N : GROUP_M])};
    Rewritten *turned = fusion_turn(arena, fusion, &wish);
    if (turned)
        turned->main = with_axes_last(arena, turned->main, filters);
    return turned;
}

/* Bulk copies bring its pixels. */
static bool is_granted(Arena *arena, const Rewritten *turned, const Target *target)
{
    const Products *view = product_view(arena, turned->main, target);
    return view && view->boxed;
}

static Rewritten *turn(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    const Products *products = view;
    const Product *product = products->tiled;
    if (!product || products->boxed || product->guard || product->group[GROUP_BATCH].count)
        return NULL;
    for (int image = 0; image < 2; image++) {
        Rewritten *turned = turn_factors(arena, fusion, product, image);
        if (turned && is_granted(arena, turned, target))
            return turned;
    }
    return NULL;
}

/* Copies of planes to pixels and back take less than the best kernel that needs none. */
const Rewrite turn_planes = {.make = turn, .most_share = 1};
