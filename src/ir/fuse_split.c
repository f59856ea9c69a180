// Cutting a reduction over several blocks: the plan for small outputs with long sums (Roller leaves SMs idle
// there).
#include <string.h>

#include "base/checked.h"
#include "ir/fuse_axes.h"

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

/* partial[part, s…] = reduce over (r…, k < chunk) of body(s…, part * chunk + k). Where chunk is 1, there is
   no k. */
static Fusion *partial_fusion(Arena *arena, const Fusion *fusion, int cut, int64_t parts, Tensor *tensor)
{
    int spatial = fusion->spatial_count;
    int64_t extent = fusion->axes[cut].extent, chunk = ceil_div(extent, parts);
    Fusion *partial = NEW(arena, Fusion);
    partial->spatial_count = spatial + 1;
    partial->axis_count = fusion->axis_count + 1;
    partial->axes[0] = (Axis){.name = "part", .extent = parts};
    memcpy(partial->axes + 1, fusion->axes, sizeof(Axis) * (size_t)fusion->axis_count);
    partial->axes[cut + 1].extent = chunk;

    Affine forms[MAX_AXES];
    for (int a = 0; a < fusion->axis_count; a++)
        forms[a] = affine_axis(a + 1);
    forms[cut].coef[0] = chunk;
    Expr *body = expr_substitute(arena, fusion->ops[0].body, forms, fusion->axis_count);
    if (chunk * parts != extent) {
        Dim *inside = NEW(arena, Dim);
        *inside = (Dim){forms[cut], extent};
        Expr *guard = NEW(arena, Expr);
        *guard = (Expr){.kind = EXPR_GUARD, .type = body->type};
        guard->guard = (Guard){.count = 1, .bounds = inside, .body = body};
        guard->guard.otherwise = reduce_identity(arena, fusion->ops[0].reduce, body->type);
        body = guard;
    }
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
    fuse_drop_unit_axes(arena, partial);
    return partial;
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

FusionPair *fusion_split(Arena *arena, const Fusion *fusion, int64_t parts)
{
    int cut = largest_reduction(fusion);
    if (fusion->streams || cut < 0 || !is_splittable(fusion) || parts < 2 || parts > fusion->axes[cut].extent)
        return NULL;
    parts = ceil_div(fusion->axes[cut].extent, ceil_div(fusion->axes[cut].extent, parts));   // no empty parts
    if (parts == fusion->axes[cut].extent && fusion->axis_count == fusion->spatial_count + 1)
        return NULL;
    Tensor *tensor = partial_tensor(arena, fusion, parts);
    FusionPair *pair = NEW(arena, FusionPair);
    pair->partial = partial_fusion(arena, fusion, cut, parts, tensor);
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
