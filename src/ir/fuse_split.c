// Split-K: divides a reduction among several blocks, for small outputs with long sums (Roller leaves SMs idle
// there).
#include "ir/fuse_split.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "ir/fuse_axes.h"

enum {
    VECTOR_BITS = 128,   // what a thread loads at once
    STEP_TERMS = 8,      // of the shortest step of a product,
    MANY_STEPS = 4       // of which one more is little
};

/* Do positions along the axis share elements, as overlapping windows do along rows? Then another axis of its
   dimension spans more than one step of it, and the other way round. */
static bool overlaps(const Fusion *fusion, const Dim *dim, int axis)
{
    int64_t step = llabs(dim->index.coef[axis]);
    for (int a = 0; step && a < fusion->spatial_count; a++) {
        int64_t other = llabs(dim->index.coef[a]);
        if (other && other < step * fusion->axes[axis].extent && step < other * fusion->axes[a].extent)
            return true;
    }
    return false;
}

static bool windows_overlap(const Fusion *fusion, int axis)
{
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    for (int i = 0; i < count; i++)
        for (int d = 0; found[i].op == 0 && d < found[i].access->rank; d++)
            if (overlaps(fusion, &found[i].access->dims[d], axis))
                return true;
    return false;
}

/* Parts along the axis have no element in common and cut no contiguous run of memory, as images of NHWC. */
static bool cuts_nothing(const Fusion *fusion, int axis)
{
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    for (int i = 0; i < count; i++) {
        const Access *access = found[i].access;
        if (found[i].op == 0 && access->rank > 0 &&
            llabs(access->dims[access->rank - 1].index.coef[axis]) == 1)
            return false;
    }
    return !windows_overlap(fusion, axis);
}

/* The longest axis that is cut without loss, if it has a term for each part: those of images are images
   still. Or else the longest one; -1: the fusion reduces nothing. */
static int axis_to_cut(const Fusion *fusion, int64_t parts)
{
    int longest[2] = {-1, -1};
    for (int a = fusion->spatial_count; a < fusion->axis_count; a++)
        for (int whole = 0; whole < 2; whole++)
            if ((longest[whole] < 0 || fusion->axes[a].extent > fusion->axes[longest[whole]].extent) &&
                (!whole || (fusion->axes[a].extent >= parts && cuts_nothing(fusion, a))))
                longest[whole] = a;
    return longest[1] >= 0 ? longest[1] : longest[0];
}

static bool is_splittable(const Fusion *fusion)
{
    return fusion_is_reduction(fusion) && fusion->axis_count < MAX_AXES;
}

/* How a reduction is cut: each position along some axes is a part of its own, and one more axis is cut into
   shares. */
typedef struct Cut {
    int whole[MAX_AXES], whole_count;   // outermost first
    int axis;
    int64_t shares, chunk;   // along it; terms of a share
} Cut;

static int leading_count(const Cut *cut) { return cut->whole_count + 1; }

/* Results of all parts: along the axes that are parts as a whole, then the shares, then what the fusion
   makes. */
static Tensor *partial_tensor(Arena *arena, const Fusion *fusion, const Cut *cut)
{
    const FusedOp *op = &fusion->ops[0];
    Tensor *tensor = NEW(arena, Tensor);
    tensor->name = arena_printf(arena, "%s.parts", op->out->name);
    tensor->id = -1;   // the plan that takes the pair numbers it
    tensor->dtype = op->body->type;
    tensor->role = ROLE_TEMPORARY;
    for (int i = 0; i < cut->whole_count; i++)
        tensor->shape[tensor->rank++] = fusion->axes[cut->whole[i]].extent;
    tensor->shape[tensor->rank++] = cut->shares;
    for (int a = 0; a < fusion->spatial_count; a++)
        tensor->shape[tensor->rank++] = fusion->axes[a].extent;
    return tensor;
}

static Expr *guarded_by(Arena *arena, const Fusion *fusion, Expr *body, Affine form, int64_t size)
{
    Dim *inside = NEW(arena, Dim);
    *inside = (Dim){form, size};
    return expr_guard(arena, body, inside, 1, reduce_identity(arena, fusion->ops[0].reduce, body->type));
}

/* Where the fusion's axes are in that of the parts: those that are parts as a whole, the shares, all
   others. */
static void place_axes(const Fusion *fusion, const Cut *cut, int *place)
{
    int next = leading_count(cut);
    for (int a = 0; a < fusion->axis_count; a++)
        place[a] = -1;
    for (int i = 0; i < cut->whole_count; i++)
        place[cut->whole[i]] = i;
    for (int a = 0; a < fusion->axis_count; a++)
        if (place[a] < 0)
            place[a] = next++;
}

/* partial[part…, s…] = reduce over r… of the body, which is over its axes: those that `place` says, and the
   shares. */
static Fusion *partial_fusion(Arena *arena, const Fusion *fusion, const Cut *cut, const int *place,
                              Expr *body, Tensor *tensor)
{
    Fusion *partial = NEW(arena, Fusion);
    partial->spatial_count = tensor->rank;
    partial->axis_count = fusion->axis_count + 1;
    for (int a = 0; a < fusion->axis_count; a++)
        partial->axes[place[a]] = fusion->axes[a];
    for (int i = 0; i < cut->whole_count; i++)
        partial->axes[i].reduction = false;
    partial->axes[cut->whole_count] = (Axis){.name = "part", .extent = cut->shares};
    Affine dims[MAX_AXES];
    for (int d = 0; d < tensor->rank; d++)
        dims[d] = affine_axis(d);
    uint32_t spatial = (1u << partial->spatial_count) - 1;
    partial->ops = NEW(arena, FusedOp);
    partial->op_count = 1;
    partial->ops[0] = (FusedOp){
        .out = tensor,
        .stored = true,
        .spatial = spatial,
        .reduced = ((1u << partial->axis_count) - 1) & ~spatial,
        .reduce = fusion->ops[0].reduce,
        .body = body,
        .store = access_new(arena, tensor, dims),
    };
    return partial;
}

/* k < chunk in place of the axis that is cut: body(s…, share * chunk + k). Where chunk is 1, there is no
   k. */
static Fusion *partial_of_axes(Arena *arena, const Fusion *fusion, const Cut *cut, Tensor *tensor)
{
    int64_t extent = fusion->axes[cut->axis].extent;
    int place[MAX_AXES];
    place_axes(fusion, cut, place);
    Affine forms[MAX_AXES];
    for (int a = 0; a < fusion->axis_count; a++)
        forms[a] = affine_axis(place[a]);
    forms[cut->axis].coef[cut->whole_count] = cut->chunk;
    Expr *body = expr_substitute(arena, fusion->ops[0].body, forms, fusion->axis_count);
    if (cut->chunk * cut->shares != extent)
        body = guarded_by(arena, fusion, body, forms[cut->axis], extent);
    Fusion *partial = partial_fusion(arena, fusion, cut, place, body, tensor);
    partial->axes[place[cut->axis]].extent = cut->chunk;
    if (cut->chunk ==
        1)   // else there are none, and a copy of a long expression for each number of parts takes memory
        fuse_drop_unit_axes(arena, partial);
    return partial;
}

/* Of all points those of the part: 0 <= point - part * chunk < chunk. */
static Fusion *partial_of_points(Arena *arena, const Fusion *fusion, const AxisGroup *points, const Cut *cut,
                                 Tensor *tensor)
{
    int place[MAX_AXES];
    place_axes(fusion, cut, place);
    Affine forms[MAX_AXES], point = affine_constant(0);
    for (int a = 0; a < fusion->axis_count; a++)
        forms[a] = affine_axis(place[a]);
    int64_t stride = 1;
    for (int i = points->count - 1; i >= 0; i--) {
        point.coef[place[points->axes[i]]] = stride;
        stride *= fusion->axes[points->axes[i]].extent;
    }
    point.coef[0] = -cut->chunk;
    Expr *body = expr_substitute(arena, fusion->ops[0].body, forms, fusion->axis_count);
    return partial_fusion(arena, fusion, cut, place, guarded_by(arena, fusion, body, point, cut->chunk),
                          tensor);
}

/* The kernel's first op now reduces partial[part…, s…] over the parts; its epilogue is unchanged. */
static Fusion *final_fusion(Arena *arena, const Fusion *fusion, const Cut *cut, Tensor *tensor)
{
    int spatial = fusion->spatial_count, leading = leading_count(cut);
    Fusion *final = NEW(arena, Fusion);
    *final = *fusion;
    final->axis_count = spatial + leading;
    final->ops = NEW_ARRAY(arena, FusedOp, fusion->op_count);
    memcpy(final->ops, fusion->ops, sizeof(FusedOp) * (size_t)fusion->op_count);

    Affine dims[MAX_AXES];
    for (int i = 0; i < leading; i++) {
        final->axes[spatial + i] = (Axis){.name = "part", .extent = tensor->shape[i], .reduction = true};
        dims[i] = affine_axis(spatial + i);
    }
    for (int a = 0; a < spatial; a++)
        dims[leading + a] = affine_axis(a);
    final->ops[0].body = expr_access(arena, tensor->dtype, access_new(arena, tensor, dims));
    final->ops[0].reduced = ((1u << leading) - 1) << spatial;
    if (leading > 1)
        fuse_axes(arena, final);
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
    int cut = axis_to_cut(fusion, parts);
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

static FusionPair *pair_of(Arena *arena, const Fusion *fusion, const Cut *cut, Fusion *partial,
                           Tensor *tensor)
{
    FusionPair *pair = NEW(arena, FusionPair);
    pair->partial = partial;
    pair->definition = definition_of(arena, partial);
    pair->final = final_fusion(arena, fusion, cut, tensor);
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

/* Terms that lie side by side in both factors of a product, or in one of them under taps, and which a thread
   loads at once; 1: there are none. Parts that begin within them are slow: of 448 channels under nine taps 14
   are three times and a half as much, and each is an access of its own. */
static int64_t terms_together(const Fusion *fusion, int cut, bool taps)
{
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES), factors = taps;
    int64_t together = 1;
    for (int i = 0; i < count; i++) {
        const Access *access = found[i].access;
        if (found[i].op != 0 || !(access_axes(access) >> cut & 1))
            continue;
        int bits = dtype_info[access->tensor->dtype].bits;
        bool beside = access->dims[access->rank - 1].index.coef[cut] == 1 &&
                      fusion->axes[cut].extent * bits % VECTOR_BITS == 0;
        if (!beside && !taps)
            return 1;
        if (beside && VECTOR_BITS / bits > together)
            together = VECTOR_BITS / bits;
        factors++;
    }
    return factors > 1 ? together : 1;
}

/* One axis, if it has so many terms; else others with it, outer ones first, which are parts as a
   whole: of eight images of 81 rows 128 parts are 16 shares of the rows of each. */
static bool find_cut(const Fusion *fusion, int64_t parts, Cut *cut)
{
    *cut = (Cut){.axis = axis_to_cut(fusion, parts), .shares = parts};
    int64_t extent = cut->axis < 0 ? 0 : fusion->axes[cut->axis].extent;
    for (int a = fusion->spatial_count; a < fusion->axis_count && parts > extent; a++)
        if (a != cut->axis && 2 * fusion->axes[a].extent <= cut->shares) {
            cut->whole[cut->whole_count++] = a;
            cut->shares /= fusion->axes[a].extent;
        }
    return cut->shares >= 2 && cut->shares <= extent;
}

/* Shares of whole vectors, none of which is empty. Along one axis those that are not all alike are whole
   steps of a product's loop: 86 terms take as many steps as 88, and the next share of 88 begins with a whole
   vector. */
static bool round_shares(const Fusion *fusion, Cut *cut)
{
    int64_t extent = fusion->axes[cut->axis].extent, wanted = cut->shares;
    int left =
        fusion->axis_count - fusion->spatial_count - cut->whole_count;   // axes along which parts are summed
    cut->chunk = round_up(ceil_div(extent, wanted), terms_together(fusion, cut->axis, left > 1));
    if (left == 1 && cut->chunk > MANY_STEPS * STEP_TERMS && extent % cut->chunk != 0)
        cut->chunk = round_up(cut->chunk, STEP_TERMS);
    cut->shares = ceil_div(extent, cut->chunk);
    return cut->shares >= 2 && 2 * cut->shares > wanted && (cut->chunk > 1 || left > 1);
}

FusionPair *fusion_split(Arena *arena, const Fusion *fusion, int64_t parts)
{
    Cut cut;
    if (fusion->streams || !is_splittable(fusion) || parts < 2 || !find_cut(fusion, parts, &cut) ||
        !round_shares(fusion, &cut))
        return NULL;
    Tensor *tensor = partial_tensor(arena, fusion, &cut);
    return pair_of(arena, fusion, &cut, partial_of_axes(arena, fusion, &cut, tensor), tensor);
}

FusionPair *fusion_split_points(Arena *arena, const Fusion *fusion, const AxisGroup *points, int64_t chunk)
{
    if (fusion->streams || !is_splittable(fusion) || chunk >= points->extent ||
        points->count != fusion->axis_count - fusion->spatial_count)
        return NULL;
    Cut cut = {.axis = -1, .shares = ceil_div(points->extent, chunk), .chunk = chunk};
    Tensor *tensor = partial_tensor(arena, fusion, &cut);
    return pair_of(arena, fusion, &cut, partial_of_points(arena, fusion, points, &cut, tensor), tensor);
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
