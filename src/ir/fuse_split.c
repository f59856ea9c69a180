// Split-K: divides a reduction among several blocks, for small outputs with long sums (Roller leaves SMs idle
// there).
#include "ir/fuse_split.h"

#include <string.h>

#include "base/checked.h"
#include "ir/fuse_axes.h"

enum { VECTOR_BITS = 128 };   // what a thread loads at once

static int largest_reduction(const Fusion *fusion)
{
    int largest = -1;
    for (int a = fusion->spatial_count; a < fusion->axis_count; a++)
        if (largest < 0 || fusion->axes[a].extent > fusion->axes[largest].extent)
            largest = a;
    return largest;
}

static bool is_splittable(const Fusion *fusion)
{
    return fusion_is_reduction(fusion) && fusion->axis_count < MAX_AXES;
}

static Tensor *partial_tensor(Arena *arena, const Fusion *fusion, int64_t parts)
{
    const FusedOp *op = &fusion->ops[0];
    Tensor *tensor = NEW(arena, Tensor);
    tensor->name = arena_printf(arena, "%s.parts", op->out->name);
    tensor->id = -1;   // the plan that takes the pair numbers it
    tensor->dtype = op->body->type;
    tensor->role = ROLE_TEMPORARY;
    tensor->rank = fusion->spatial_count + 1;
    tensor->shape[0] = parts;
    for (int a = 0; a < fusion->spatial_count; a++)
        tensor->shape[a + 1] = fusion->axes[a].extent;
    return tensor;
}

static Expr *guarded_by(Arena *arena, const Fusion *fusion, Expr *body, Affine form, int64_t size)
{
    Dim *inside = NEW(arena, Dim);
    *inside = (Dim){form, size};
    Expr *guard = NEW(arena, Expr);
    *guard = (Expr){.kind = EXPR_GUARD, .type = body->type};
    guard->guard = (Guard){.count = 1, .bounds = inside, .body = body};
    guard->guard.otherwise = reduce_identity(arena, fusion->ops[0].reduce, body->type);
    return guard;
}

/* partial[part, s…] = reduce over r… of the body, which is over axes of its own: part, and all of the fusion's. */
static Fusion *partial_fusion(Arena *arena, const Fusion *fusion, Expr *body, Tensor *tensor)
{
    int spatial = fusion->spatial_count;
    Fusion *partial = NEW(arena, Fusion);
    partial->spatial_count = spatial + 1;
    partial->axis_count = fusion->axis_count + 1;
    partial->axes[0] = (Axis){.name = "part", .extent = tensor->shape[0]};
    memcpy(partial->axes + 1, fusion->axes, sizeof(Axis) * (size_t)fusion->axis_count);
    Affine dims[MAX_AXES];
    for (int d = 0; d <= spatial; d++)
        dims[d] = affine_axis(d);
    partial->ops = NEW(arena, FusedOp);
    partial->op_count = 1;
    partial->ops[0] = (FusedOp){
        .out = tensor,
        .stored = true,
        .spatial = (1u << (spatial + 1)) - 1,
        .reduced = fusion->ops[0].reduced << 1,
        .reduce = fusion->ops[0].reduce,
        .body = body,
        .store = access_new(arena, tensor, dims),
    };
    return partial;
}

/* k < chunk in place of the axis that is cut: body(s…, part * chunk + k). Where chunk is 1, there is no k. */
static Fusion *partial_of_axis(Arena *arena, const Fusion *fusion, int cut, int64_t chunk, Tensor *tensor)
{
    int64_t extent = fusion->axes[cut].extent, parts = tensor->shape[0];
    Affine forms[MAX_AXES];
    for (int a = 0; a < fusion->axis_count; a++)
        forms[a] = affine_axis(a + 1);
    forms[cut].coef[0] = chunk;
    Expr *body = expr_substitute(arena, fusion->ops[0].body, forms, fusion->axis_count);
    if (chunk * parts != extent)
        body = guarded_by(arena, fusion, body, forms[cut], extent);
    Fusion *partial = partial_fusion(arena, fusion, body, tensor);
    partial->axes[cut + 1].extent = chunk;
    fuse_drop_unit_axes(arena, partial);
    return partial;
}

/* Of all points those of the part: 0 <= point - part * chunk < chunk. */
static Fusion *partial_of_points(Arena *arena, const Fusion *fusion, const AxisGroup *points, int64_t chunk,
                                 Tensor *tensor)
{
    Affine forms[MAX_AXES], point = affine_constant(0);
    for (int a = 0; a < fusion->axis_count; a++)
        forms[a] = affine_axis(a + 1);
    int64_t stride = 1;
    for (int i = points->count - 1; i >= 0; i--) {
        point.coef[points->axes[i] + 1] = stride;
        stride *= fusion->axes[points->axes[i]].extent;
    }
    point.coef[0] = -chunk;
    Expr *body = expr_substitute(arena, fusion->ops[0].body, forms, fusion->axis_count);
    return partial_fusion(arena, fusion, guarded_by(arena, fusion, body, point, chunk), tensor);
}

/* The kernel's first op now reduces partial[part, s…] over `part`; its epilogue is unchanged. */
static Fusion *final_fusion(Arena *arena, const Fusion *fusion, Tensor *tensor)
{
    int spatial = fusion->spatial_count;
    Fusion *final = NEW(arena, Fusion);
    *final = *fusion;
    final->axis_count = spatial + 1;
    final->axes[spatial] = (Axis){.name = "part", .extent = tensor->shape[0], .reduction = true};
    final->ops = NEW_ARRAY(arena, FusedOp, fusion->op_count);
    memcpy(final->ops, fusion->ops, sizeof(FusedOp) * (size_t)fusion->op_count);

    Affine dims[MAX_AXES] = {affine_axis(spatial)};
    for (int a = 0; a < spatial; a++)
        dims[a + 1] = affine_axis(a);
    Expr *read = NEW(arena, Expr);
    *read = (Expr){.kind = EXPR_ACCESS, .type = tensor->dtype, .access = access_new(arena, tensor, dims)};
    final->ops[0].body = read;
    final->ops[0].reduced = 1u << spatial;
    return final;
}

static bool reads(const Expr *expr, const Tensor *tensor)
{
    switch (expr->kind) {
    case EXPR_ACCESS: return expr->access.tensor == tensor;
    case EXPR_FETCH:
        for (int i = 0; i < expr->fetch.count; i++)
            if (reads(expr->fetch.places[i].value, tensor))
                return true;
        return expr->fetch.access.tensor == tensor;
    case EXPR_GUARD: return reads(expr->guard.body, tensor);
    case EXPR_CAST: return reads(expr->cast.body, tensor);
    case EXPR_APPLY:
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            if (reads(expr->apply.operands[i], tensor))
                return true;
        return false;
    case EXPR_CONST:
    case EXPR_INDEX:
    case EXPR_VALUE: return false;
    }
    return false;
}

void fusion_choose_inputs(Arena *arena, Fusion *fusion, Tensor *const *candidates, int count)
{
    fusion->inputs = NEW_ARRAY(arena, Tensor *, count);
    fusion->input_count = 0;
    for (int i = 0; i < count; i++)
        for (int op = 0; op < fusion->op_count; op++)
            if (reads(fusion->ops[op].body, candidates[i])) {
                fusion->inputs[fusion->input_count++] = candidates[i];
                break;
            }
}

int64_t fusion_even_parts(const Fusion *fusion, int64_t parts)
{
    int cut = largest_reduction(fusion);
    for (int64_t vector = 8; cut >= 0 && vector >= 1; vector /= 2)
        for (int64_t more = parts; more < 2 * parts; more++)
            if (fusion->axes[cut].extent % (more * vector) == 0)
                return more;
    return parts;
}

static const TensorOp *definition_of(Arena *arena, const Fusion *partial)
{
    TensorOp *op = NEW(arena, TensorOp);
    op->out = partial->ops[0].out;
    op->spatial_count = partial->spatial_count;
    op->axis_count = partial->axis_count;
    memcpy(op->axes, partial->axes, sizeof op->axes);
    op->reduce = partial->ops[0].reduce;
    op->body = partial->ops[0].body;
    return op;
}

static FusionPair *pair_of(Arena *arena, const Fusion *fusion, Fusion *partial, Tensor *tensor)
{
    FusionPair *pair = NEW(arena, FusionPair);
    pair->partial = partial;
    pair->definition = definition_of(arena, partial);
    pair->final = final_fusion(arena, fusion, tensor);
    Tensor **candidates = NEW_ARRAY(arena, Tensor *, fusion->input_count + 1);
    for (int i = 0; i < fusion->input_count; i++)
        candidates[i] = fusion->inputs[i];
    candidates[fusion->input_count] = tensor;
    fusion_choose_inputs(arena, pair->partial, candidates, fusion->input_count);
    fusion_choose_inputs(arena, pair->final, candidates, fusion->input_count + 1);
    pair->partial->outputs = NEW(arena, Tensor *);
    pair->partial->outputs[pair->partial->output_count++] = tensor;
    fusion_verify(fusion, "fusion_split");
    fusion_verify(pair->partial, "fusion_split (partial)");
    fusion_verify(pair->final, "fusion_split (final)");
    return pair;
}

/* Terms that lie side by side in both factors of a product, and which a thread loads at once; 1: there are none. Parts that begin
   within them are slow: of 448 channels under nine taps 14 are three times and a half as much, and each is an access of its own. */
static int64_t terms_together(const Fusion *fusion, int cut)
{
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES), factors = 0;
    int64_t together = 1;
    for (int i = 0; i < count; i++) {
        const Access *access = found[i].access;
        if (found[i].op != 0 || !(access_axes(access) >> cut & 1))
            continue;
        int bits = dtype_info[access->tensor->dtype].bits;
        if (access->dims[access->rank - 1].index.coef[cut] != 1 || fusion->axes[cut].extent * bits % VECTOR_BITS != 0)
            return 1;
        if (VECTOR_BITS / bits > together)
            together = VECTOR_BITS / bits;
        factors++;
    }
    return factors > 1 ? together : 1;
}

FusionPair *fusion_split(Arena *arena, const Fusion *fusion, int64_t parts)
{
    int cut = largest_reduction(fusion);
    if (fusion->streams || cut < 0 || !is_splittable(fusion) || parts < 2 || parts > fusion->axes[cut].extent)
        return NULL;
    int64_t extent = fusion->axes[cut].extent, chunk = round_up(ceil_div(extent, parts), terms_together(fusion, cut));
    int64_t full = ceil_div(extent, chunk);   // no empty parts
    if (full < 2 || 2 * full <= parts || (full == extent && fusion->axis_count == fusion->spatial_count + 1))
        return NULL;
    Tensor *tensor = partial_tensor(arena, fusion, full);
    return pair_of(arena, fusion, partial_of_axis(arena, fusion, cut, chunk, tensor), tensor);
}

FusionPair *fusion_split_points(Arena *arena, const Fusion *fusion, const AxisGroup *points, int64_t chunk)
{
    if (fusion->streams || !is_splittable(fusion) || chunk >= points->extent ||
        points->count != fusion->axis_count - fusion->spatial_count)
        return NULL;
    Tensor *tensor = partial_tensor(arena, fusion, ceil_div(points->extent, chunk));
    return pair_of(arena, fusion, partial_of_points(arena, fusion, points, chunk, tensor), tensor);
}

/* The axis whose coefficient is the largest below `below`; -1: there is none. */
static int next_axis(const Affine *form, int64_t below)
{
    int next = -1;
    for (int a = 0; a < MAX_AXES; a++)
        if (form->coef[a] > 0 && form->coef[a] < below && (next < 0 || form->coef[a] > form->coef[next]))
            next = a;
    return next;
}

bool points_share_find(const Fusion *fusion, const Guard *guard, PointsShare *share)
{
    *share = (PointsShare){.part = -1, .points = {.extent = 1}};
    if (guard->count != 1 || guard->bounds[0].index.constant)
        return false;
    const Affine *point = &guard->bounds[0].index;
    int64_t chunk = guard->bounds[0].size, below = INT64_MAX;
    for (int a = 0; a < fusion->spatial_count; a++)
        if (point->coef[a] == -chunk && share->part < 0)
            share->part = a;
        else if (point->coef[a])
            return false;
    for (int axis; (axis = next_axis(point, below)) >= 0; below = point->coef[axis])
        axis_group_add(&share->points, fusion, axis);
    if (share->part < 0 || share->points.count != fusion->axis_count - fusion->spatial_count ||
        !axis_group_has_stride(&share->points, fusion, point, 1))
        return false;
    share->chunk = chunk;
    return true;
}
