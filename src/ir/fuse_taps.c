// Products of an image and all taps of a filter, and the sums over taps behind them.
#include "ir/fuse_taps.h"

#include <string.h>

#include "ir/fuse_axes.h"

/* What is summed first, and what behind it. */
typedef struct Tapped {
    const Fusion *fusion;
    const Access *factor[2];     // the image first
    const Guard *guard[2];       // above them; NULL: there is none
    uint32_t spatial, taps, channels;   // axes; of those that are summed, `taps` move the image under the filter
    Dim dims[MAX_AXES];          // of the products, over the fusion's axes
    int count;
    int place[2][MAX_AXES];      // which of these a factor's dimension is; -1: it goes along channels
} Tapped;

static bool find_factors(Tapped *tapped, const Expr *body)
{
    if (!expr_is(body, OP_MUL))
        return false;
    for (int i = 0; i < 2; i++) {
        const Expr *factor = body->apply.operands[i];
        if (factor->kind == EXPR_GUARD && expr_is_zero(factor->guard.otherwise)) {
            tapped->guard[i] = &factor->guard;
            factor = factor->guard.body;
        }
        if (factor->kind != EXPR_ACCESS || factor->access.tensor->part_of || factor->access.tensor->part_stride)
            return false;
        tapped->factor[i] = &factor->access;
    }
    return true;
}

/* Summed axes along which the dimension moves beside spatial ones. */
static uint32_t taps_of(const Tapped *tapped, const Dim *dim)
{
    uint32_t axes = affine_axes(&dim->index);
    return axes & tapped->spatial ? axes & ~tapped->spatial : 0;
}

/* The image is the first factor that has windows. */
static void order_factors(Tapped *tapped)
{
    for (int d = 0; d < tapped->factor[0]->rank; d++)
        if (taps_of(tapped, &tapped->factor[0]->dims[d]))
            return;
    const Access *filter = tapped->factor[0];
    const Guard *guard = tapped->guard[0];
    tapped->factor[0] = tapped->factor[1];
    tapped->guard[0] = tapped->guard[1];
    tapped->factor[1] = filter;
    tapped->guard[1] = guard;
}

/* The rest are channels, if they are both factors' and stand in dimensions of their own, and in no guard. */
static bool find_axes(Tapped *tapped)
{
    const Fusion *fusion = tapped->fusion;
    tapped->spatial = (1u << fusion->spatial_count) - 1;
    order_factors(tapped);
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < tapped->factor[i]->rank; d++)
            tapped->taps |= taps_of(tapped, &tapped->factor[i]->dims[d]);
    tapped->channels = ((1u << fusion->axis_count) - 1) & ~tapped->spatial & ~tapped->taps;
    for (int i = 0; i < 2; i++) {
        const Guard *guard = tapped->guard[i];
        for (int b = 0; guard && b < guard->count; b++)
            if (affine_axes(&guard->bounds[b].index) & tapped->channels)
                return false;
        for (int d = 0; d < tapped->factor[i]->rank; d++) {
            uint32_t axes = affine_axes(&tapped->factor[i]->dims[d].index);
            if ((axes & tapped->channels) && (axes & ~tapped->channels))
                return false;
        }
        if (tapped->channels & ~access_axes(tapped->factor[i]))
            return false;
    }
    return tapped->taps && tapped->channels;
}

static bool is_of_channels(const Tapped *tapped, const Dim *dim)
{
    return affine_axes(&dim->index) & tapped->channels;
}

/* A dimension that both factors have, as groups, is one of the products. */
static void add_dim(Tapped *tapped, int factor, int d)
{
    const Dim *dim = &tapped->factor[factor]->dims[d];
    int same = 0;
    while (same < tapped->count && (affine_single_axis(&dim->index) < 0 || dim->size != tapped->dims[same].size ||
                                    !affine_equal(&dim->index, &tapped->dims[same].index)))
        same++;
    if (same == tapped->count)
        tapped->dims[tapped->count++] = *dim;
    tapped->place[factor][d] = same;
}

/* The filter's dimensions stand where the image has channels: planes stay planes, and pixels pixels. */
static bool find_dims(Tapped *tapped)
{
    bool added = false;
    if (tapped->factor[0]->rank + tapped->factor[1]->rank > MAX_AXES)
        return false;
    memset(tapped->place, -1, sizeof tapped->place);
    for (int d = 0; d < tapped->factor[0]->rank; d++) {
        if (!is_of_channels(tapped, &tapped->factor[0]->dims[d]))
            add_dim(tapped, 0, d);
        else if (!added)
            for (int e = 0; e < tapped->factor[1]->rank; e++)
                if (!is_of_channels(tapped, &tapped->factor[1]->dims[e]))
                    add_dim(tapped, 1, e);
        added |= is_of_channels(tapped, &tapped->factor[0]->dims[d]);
    }
    return tapped->count + __builtin_popcount(tapped->channels) <= MAX_AXES;
}

static Tensor *products_tensor(Arena *arena, const Tapped *tapped)
{
    const FusedOp *op = &tapped->fusion->ops[0];
    Tensor *tensor = NEW(arena, Tensor);
    *tensor = (Tensor){.name = arena_printf(arena, "%s.taps", op->out->name),
                       .id = -1,   // the plan that takes it numbers it
                       .dtype = op->body->type,
                       .role = ROLE_TEMPORARY,
                       .rank = tapped->count};
    for (int d = 0; d < tapped->count; d++)
        tensor->shape[d] = tapped->dims[d].size;
    return tensor;
}

/* The factor at a point of the products, whose axes for the fusion's channels are `forms`. */
static Expr *factor_of_point(Arena *arena, const Tapped *tapped, int factor, const Affine *forms)
{
    const Access *access = tapped->factor[factor];
    Dim *dims = NEW_ARRAY(arena, Dim, access->rank);
    for (int d = 0; d < access->rank; d++) {
        int place = tapped->place[factor][d];
        Affine index = place < 0 ? affine_substitute(&access->dims[d].index, forms, tapped->fusion->axis_count)
                                 : affine_axis(place);
        dims[d] = (Dim){index, access->dims[d].size};
    }
    return expr_access(arena, dtype_info[access->tensor->dtype].compute, (Access){access->tensor, access->rank, dims});
}

/* taps[d…] = sum over channels of both factors */
static TensorOp *products_op(Arena *arena, const Tapped *tapped, Tensor *tensor)
{
    const Fusion *fusion = tapped->fusion;
    TensorOp *op = NEW(arena, TensorOp);
    *op = (TensorOp){.out = tensor, .spatial_count = tapped->count, .axis_count = tapped->count, .reduce = REDUCE_SUM};
    for (int d = 0; d < tapped->count; d++)
        op->axes[d] = (Axis){.name = arena_printf(arena, "dim %d", d), .extent = tapped->dims[d].size};
    Affine forms[MAX_AXES] = {0};
    for (int a = 0; a < fusion->axis_count; a++)
        if (tapped->channels >> a & 1) {
            forms[a] = affine_axis(op->axis_count);
            op->axes[op->axis_count++] = fusion->axes[a];
        }
    op->body = expr_apply(arena, OP_MUL, fusion->ops[0].body->type, factor_of_point(arena, tapped, 0, forms),
                          factor_of_point(arena, tapped, 1, forms), NULL);
    return op;
}

static Fusion *products_fusion(Arena *arena, const Tapped *tapped, const TensorOp *op)
{
    Fusion *products = NEW(arena, Fusion);
    products->spatial_count = op->spatial_count;
    products->axis_count = op->axis_count;
    memcpy(products->axes, op->axes, sizeof products->axes);
    Affine dims[MAX_AXES];
    for (int d = 0; d < op->spatial_count; d++)
        dims[d] = affine_axis(d);
    uint32_t spatial = (1u << op->spatial_count) - 1;
    products->op_count = 1;
    products->ops = NEW(arena, FusedOp);
    products->ops[0] = (FusedOp){.out = op->out, .stored = true, .spatial = spatial,
                                 .reduced = ((1u << op->axis_count) - 1) & ~spatial, .reduce = REDUCE_SUM,
                                 .body = op->body, .store = access_new(arena, op->out, dims)};
    fusion_choose_tensors_beside(arena, products, tapped->fusion, NULL, 0);
    fuse_axes(arena, products);
    fusion_verify(products, "fusion_sum_taps_behind (products)");
    return products;
}

/* An element of the products where both factors are inside. */
static Expr *term_of(Arena *arena, const Tapped *tapped, Tensor *tensor)
{
    Affine indices[MAX_AXES];
    for (int d = 0; d < tapped->count; d++)
        indices[d] = tapped->dims[d].index;
    int count = 0, most = 0;
    for (int i = 0; i < 2; i++)
        most += tapped->guard[i] ? tapped->guard[i]->count : 0;
    Dim *bounds = NEW_ARRAY(arena, Dim, most);
    for (int i = 0; i < 2; i++)
        for (int b = 0; tapped->guard[i] && b < tapped->guard[i]->count; b++)
            bounds[count++] = tapped->guard[i]->bounds[b];
    return expr_guard(arena, expr_access(arena, tensor->dtype, access_new(arena, tensor, indices)), bounds, count, NULL);
}

/* The fusion over its taps alone. */
static Fusion *sums_fusion(Arena *arena, const Tapped *tapped, Tensor *tensor)
{
    const Fusion *fusion = tapped->fusion;
    Fusion *sums = fusion_copy(arena, fusion);
    Affine forms[MAX_AXES] = {0};
    sums->axis_count = 0;
    for (int a = 0; a < fusion->axis_count; a++)
        if (!(tapped->channels >> a & 1)) {
            forms[a] = affine_axis(sums->axis_count);
            sums->axes[sums->axis_count++] = fusion->axes[a];
        }
    sums->ops[0].body = expr_substitute(arena, term_of(arena, tapped, tensor), forms, fusion->axis_count);
    sums->ops[0].reduced = ((1u << sums->axis_count) - 1) & ~tapped->spatial;
    fusion_choose_inputs_beside(arena, sums, fusion, &tensor, 1);
    fuse_axes(arena, sums);
    fusion_verify(sums, "fusion_sum_taps_behind (sums)");
    return sums;
}

/* At least half of the products belong to an output: under windows by 2 in two dimensions a quarter would. */
static bool are_needed(const Tapped *tapped)
{
    double products = 1, terms = 1;
    for (int d = 0; d < tapped->count; d++)
        products *= (double)tapped->dims[d].size;
    for (int a = 0; a < tapped->fusion->axis_count; a++)
        if (!(tapped->channels >> a & 1))
            terms *= (double)tapped->fusion->axes[a].extent;
    return products <= 2 * terms;
}

Rewritten *fusion_sum_taps_behind(Arena *arena, const Fusion *fusion)
{
    Tapped tapped = {.fusion = fusion};
    if (fusion->streams || fusion->joined || !fusion_is_reduction(fusion) || fusion->ops[0].reduce != REDUCE_SUM ||
        !find_factors(&tapped, fusion->ops[0].body) || !find_axes(&tapped) || !find_dims(&tapped) || !are_needed(&tapped))
        return NULL;
    Tensor *tensor = products_tensor(arena, &tapped);
    TensorOp *op = products_op(arena, &tapped, tensor);
    Rewritten *form = NEW(arena, Rewritten);
    form->definitions[form->definition_count++] = op;
    form->main = products_fusion(arena, &tapped, op);
    form->behind[form->behind_count++] = sums_fusion(arena, &tapped, tensor);
    return form;
}
