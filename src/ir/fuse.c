// Which definitions become one kernel. See fuse.h for the rules.
#include "ir/fuse.h"

#include <string.h>

#include "ir/common_factors.h"
#include "ir/exact_type.h"
#include "ir/fuse_axes.h"
#include "ir/fuse_beside.h"
#include "ir/fuse_functions.h"
#include "ir/fuse_in_place.h"
#include "ir/fuse_inline.h"
#include "ir/fuse_order.h"
#include "ir/fuse_settle.h"
#include "ir/fuse_tensors.h"
#include "ir/fuse_units.h"
#include "ir/prepared.h"
#include "ir/product_sides.h"
#include "ir/row_tiles.h"
#include "ir/stream.h"

typedef struct Fuser {
    Arena *arena;
    const Program *program;
    const TensorOp **definition;   // by tensor id; NULL: an input
    bool *inlined;                 // by tensor id: pointwise, folded into its readers
    bool *fetches;                 // by tensor id: made of elements at computed places
    const bool *apart;             // by tensor id: has a kernel of its own
    int *kernel_of;                // by tensor id: position of the fusion that makes it
    bool *prepared;                // by kernel: of weights alone, as all of it is or nothing
    DimOrder *orders;              // by tensor id: how the rows order the dimensions of elements
    KernelTensors tensors;         // that each kernel touches
    const Ranges *ranges;          // of the program's tensors
    bool rows;     // a kernel may hold several reductions over the same rows, and what is made of them,
    bool beside;   // or several whose windows slide over one tensor
    FusionPlan plan;
} Fuser;

// ---- which kernel a definition joins ----

static bool has_reductions(const Fusion *fusion) { return fusion->axis_count > fusion->spatial_count; }

/* Over the same points; in a kernel of rows, over the rows, their elements, or reducing rows to one. */
static bool same_domain(const Fuser *fuser, const Fusion *fusion, const TensorOp *op)
{
    bool of_rows = op->spatial_count == fusion->spatial_count;
    bool of_elements = fuser->rows && op->spatial_count == fusion->axis_count;
    if (op_is_pointwise(op) ? !of_rows && !of_elements : !of_rows || op->axis_count != fusion->axis_count)
        return false;
    for (int a = 0; a < op->axis_count; a++)
        if (fusion->axes[a].extent != op->axes[a].extent)
            return false;
    return true;
}

/* The access reads what the kernel made at the point itself: of its spatial axes or, in a kernel of rows, of
   all axes. */
static bool is_at_point(const Fuser *fuser, const Fusion *fusion, const Access *access, const Axis *axes)
{
    bool of_points = access->rank == fusion->spatial_count;
    bool of_elements = fuser->rows && access->rank == fusion->axis_count;
    return (of_points || of_elements) && reads_own_point(access, axes, access->rank);
}

typedef struct JoinTest {
    const Fuser *fuser;
    const TensorOp *reader;   // whose body is being walked
    int kernel;               // the candidate
    bool identity;            // so far: every step from the op to here was at the point itself
    bool legal, depends;
} JoinTest;

static void join_visit(Expr *expr, void *context)
{
    JoinTest *test = context;
    const Tensor *tensor = expr_tensor(expr);
    if (!tensor || !test->fuser->definition[tensor->id])
        return;
    int id = tensor->id;
    bool identity =
        test->identity && expr->kind == EXPR_ACCESS &&
        is_at_point(test->fuser, test->fuser->plan.fusions[test->kernel], &expr->access, test->reader->axes);
    if (test->fuser->inlined[id]) {
        JoinTest inner = *test;
        inner.reader = test->fuser->definition[id];
        inner.identity = identity;
        expr_visit(inner.reader->body, join_visit, &inner);
        test->legal = inner.legal;
        test->depends = inner.depends;
    } else if (test->fuser->kernel_of[id] == test->kernel) {
        test->legal &= identity;
        test->depends = true;
    } else {
        test->legal &= test->fuser->kernel_of[id] < test->kernel;
    }
}

typedef struct ShareSearch {
    const Fuser *fuser;
    const Fusion *fusion;
    const TensorOp *op;     // NULL: one of the fusion's own ops is being walked
    const Tensor *tensor;   // that the op reads
    bool found;
} ShareSearch;

static void share_visit(Expr *expr, void *context)
{
    ShareSearch *search = context;
    if (expr->kind != EXPR_ACCESS)
        return;
    const Tensor *tensor = expr->access.tensor;
    if (!search->op) {
        search->found |= tensor == search->tensor;
    } else if (reads_own_point(&expr->access, search->op->axes, search->op->axis_count)) {
        bool folded = search->fuser->inlined[tensor->id];
        ShareSearch inner = {.fuser = search->fuser, .fusion = search->fusion, .tensor = tensor};
        inner.op = folded ? search->fuser->definition[tensor->id] : NULL;
        if (folded)
            expr_visit(inner.op->body, share_visit, &inner);
        for (int i = 0; i < search->fusion->op_count && !folded; i++)
            expr_visit(search->fusion->ops[i].body, share_visit, &inner);
        search->found |= inner.found;
    }
}

/* Both read the same elements of a row: one kernel loads them once. */
static bool shares_rows(const Fuser *fuser, const Fusion *fusion, const TensorOp *op)
{
    ShareSearch search = {.fuser = fuser, .fusion = fusion, .op = op};
    if (fuser->rows && !op_is_pointwise(op))
        expr_visit(op->body, share_visit, &search);
    return search.found;
}

static bool is_apart(const Fuser *fuser, const Fusion *fusion, const TensorOp *op)
{
    const Tensor *first = fusion->ops[0].out;
    return fuser->apart[op->out->id] || (first->id >= 0 && fuser->apart[first->id]);
}

/* Families that reduce take only affine indices, and families that fetch make only points. */
static bool mixes_fetches(const Fuser *fuser, const Fusion *fusion, const TensorOp *op)
{
    bool reduces = !op_is_pointwise(op), fetches = fuser->fetches[op->out->id];
    for (int i = 0; i < fusion->op_count; i++) {
        const Tensor *made = fusion->ops[i].out;
        reduces |= fusion->ops[i].reduce != REDUCE_NONE;
        fetches |= made->id >= 0 && fuser->fetches[made->id];
    }
    return reduces && fetches;
}

/* A pointwise definition may join a kernel over the same points if all it reads is there by then. A
   reduction's kernel takes only its own epilogue; one of rows also takes other reductions of the elements it
   reads, one of windows those that slide over the same tensor. */
static bool may_join(Fuser *fuser, int kernel, const TensorOp *op)
{
    const Fusion *fusion = fuser->plan.fusions[kernel];
    bool slides = fuser->beside && fusion_slides_beside(fusion, op);
    if (fuser->prepared[kernel] != op->out->is_prepared || is_apart(fuser, fusion, op) ||
        mixes_fetches(fuser, fusion, op))
        return false;
    if (fusion->streams && (!op_is_pointwise(op) || op->spatial_count != fusion->spatial_count))
        return false;
    if (!slides && ((!op_is_pointwise(op) && !fuser->rows) || !same_domain(fuser, fusion, op)))
        return false;
    JoinTest test = {.fuser = fuser, .reader = op, .kernel = kernel, .identity = true, .legal = true};
    expr_visit(op->body, join_visit, &test);
    bool belongs = slides ? !test.depends
                          : test.depends || !has_reductions(fusion) || shares_rows(fuser, fusion, op);
    return test.legal && belongs && tensors_fit(&fuser->tensors, kernel, op);
}

// ---- building a kernel ----

static Expr *expand(Fuser *fuser, Fusion *fusion, Expr *expr, bool reducing);

static int find_value(const Fusion *fusion, const Tensor *tensor)
{
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].out == tensor)
            return i;
    return -1;
}

static Expr *value_of(Arena *arena, const Fusion *fusion, int index)
{
    Expr *value = NEW(arena, Expr);
    value->kind = EXPR_VALUE;
    value->type = dtype_info[fusion->ops[index].out->dtype].compute;
    value->value = index;
    return value;
}

/* The definition's body over the kernel's axes, and which of them it is reduced over: axes of its own, if its
   window is one of several. */
static Expr *body_of(Fuser *fuser, Fusion *fusion, const TensorOp *op, uint32_t *reduced)
{
    *reduced = ((1u << op->axis_count) - 1) & ~((1u << op->spatial_count) - 1);
    if (op_is_pointwise(op) || !fuser->beside || fusion->op_count == 0)
        return op->body;
    Affine forms[MAX_AXES];
    *reduced <<= fusion->axis_count - op->spatial_count;
    fusion_add_reduced_axes(fusion, op, forms);
    return expr_substitute(fuser->arena, op->body, forms, op->axis_count);
}

/* Grows the list of ops at 1, 2, 4, 8 … of them. */
static int append(Arena *arena, Fusion *fusion, FusedOp op)
{
    int count = fusion->op_count;
    if ((count & (count - 1)) == 0) {
        FusedOp *grown = NEW_ARRAY(arena, FusedOp, count ? 2 * count : 1);
        if (count)
            memcpy(grown, fusion->ops, sizeof *grown * (size_t)count);
        fusion->ops = grown;
    }
    fusion->ops[count] = op;
    return fusion->op_count++;
}

/* The sum without the factors that its terms share; never stored. */
static Tensor *bare_sum(Arena *arena, const Tensor *whole, DType type)
{
    Tensor *tensor = NEW(arena, Tensor);
    *tensor = *whole;
    tensor->name = arena_printf(arena, "%s.sum", whole->name);
    tensor->id = -1;
    tensor->dtype = type;
    tensor->role = ROLE_TEMPORARY;
    return tensor;
}

/* `fused`, whose body is a sum without its shared factors, and behind it an op that applies them. */
static int append_sum(Fuser *fuser, Fusion *fusion, FusedOp fused, const CommonFactors *common)
{
    FusedOp bare = fused;
    bare.out = bare.store.tensor = bare_sum(fuser->arena, fused.out, fused.body->type);
    fused.body = value_of(fuser->arena, fusion, append(fuser->arena, fusion, bare));
    for (int i = 0; i < common->count; i++)
        common->factors[i].expr = expand(fuser, fusion, common->factors[i].expr, false);
    fused.body = common_factors_apply(fuser->arena, common, fused.body);
    fused.reduce = REDUCE_NONE;
    fused.reduced = 0;
    return append(fuser->arena, fusion, fused);
}

/* The body of a sum as it stands there, and then, of what is folded into it, numbers. */
static Expr *expand_sum(Fuser *fuser, Fusion *fusion, Expr *body, uint32_t reduced, CommonFactors *common)
{
    SumScope sum = {
        .arena = fuser->arena,
        .at = {fuser->ranges, fusion->axes, fusion->axis_count, NULL},
        .reduced = reduced,
        .any_range = fuser->program->fast_math,
    };
    common_factors_find(&sum, body, FACTOR_ANY, common);
    common->term = expand(fuser, fusion, common->term, true);
    sum.at.fusion = fusion;
    common_factors_find_more(&sum, FACTOR_CONSTANT, common);
    bool alone = !fuser->rows && !fuser->beside;
    return alone ? product_of_sides(fuser->arena, common->term, fusion->axes, reduced) : common->term;
}

static int add_op(Fuser *fuser, Fusion *fusion, const TensorOp *op)
{
    bool reducing = !op_is_pointwise(op);
    uint32_t reduced;
    Expr *body = body_of(fuser, fusion, op, &reduced);
    Dim *dims = NEW_ARRAY(fuser->arena, Dim, op->spatial_count);
    for (int d = 0; d < op->spatial_count; d++)
        dims[d] = (Dim){affine_axis(d), op->axes[d].extent};
    FusedOp fused = {
        .out = op->out,
        .spatial = (1u << op->spatial_count) - 1,
        .reduced = reduced,
        .reduce = op->reduce,
        .store = {.tensor = op->out, .rank = op->spatial_count, .dims = dims},
    };
    fused.store = access_in_memory_order(fuser->arena, &fused.store, &fuser->orders[op->out->id]);
    CommonFactors common = {0};
    fused.body = op->reduce == REDUCE_SUM ? expand_sum(fuser, fusion, body, reduced, &common)
                                          : expand(fuser, fusion, body, reducing);
    return common.negated || common.count ? append_sum(fuser, fusion, fused, &common)
                                          : append(fuser->arena, fusion, fused);
}

/* What replaces an access inside the kernel: a value made at the same point, the definition's own
   expression, or the access itself. */
static Expr *expand_access(Fuser *fuser, Fusion *fusion, Expr *expr, bool reducing)
{
    const Tensor *tensor = expr->access.tensor;
    bool identity = (fuser->rows || !reducing) && is_at_point(fuser, fusion, &expr->access, fusion->axes);
    int index = identity ? find_value(fusion, tensor) : -1;
    if (index >= 0)
        return value_of(fuser->arena, fusion, index);
    if (!fuser->inlined[tensor->id]) {
        Expr *read = NEW(fuser->arena, Expr);
        *read = *expr;
        read->access = access_in_memory_order(fuser->arena, &expr->access, &fuser->orders[tensor->id]);
        return read;
    }
    const TensorOp *op = fuser->definition[tensor->id];
    if (identity)
        return value_of(fuser->arena, fusion, add_op(fuser, fusion, op));
    Affine forms[MAX_AXES] = {0};
    for (int d = 0; d < expr->access.rank; d++)
        forms[d] = expr->access.dims[d].index;
    Expr *body = expr_substitute(fuser->arena, op->body, forms, op->axis_count);
    body = expand(fuser, fusion, body, reducing);
    bool exact = tensor->exact ||
                 (body->type == dtype_info[tensor->dtype].compute && expr_is_exact(body, tensor->dtype));
    return exact ? body : expr_cast(fuser->arena, tensor->dtype, body);
}

static void expand_places(Fuser *fuser, Fusion *fusion, Fetch *fetch, bool reducing)
{
    FetchPlace *places = NEW_ARRAY(fuser->arena, FetchPlace, fetch->count);
    for (int i = 0; i < fetch->count; i++)
        places[i] =
            (FetchPlace){expand(fuser, fusion, fetch->places[i].value, reducing), fetch->places[i].stride};
    fetch->places = places;
}

static Expr *expand(Fuser *fuser, Fusion *fusion, Expr *expr, bool reducing)
{
    if (expr->kind == EXPR_ACCESS)
        return expand_access(fuser, fusion, expr, reducing);
    Expr *copy = NEW(fuser->arena, Expr);
    *copy = *expr;
    if (expr->kind == EXPR_FETCH)
        expand_places(fuser, fusion, &copy->fetch, reducing);
    else if (expr->kind == EXPR_GUARD)
        copy->guard.body = expand(fuser, fusion, expr->guard.body, reducing);
    else if (expr->kind == EXPR_CAST)
        copy->cast.body = expand(fuser, fusion, expr->cast.body, reducing);
    else if (expr->kind == EXPR_APPLY)
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            copy->apply.operands[i] = expand(fuser, fusion, expr->apply.operands[i], reducing);
    return copy;
}

static int new_kernel(Fuser *fuser, const TensorOp *op)
{
    Fusion *fusion = NEW(fuser->arena, Fusion);
    const DimOrder *order = &fuser->orders[op->out->id];
    fusion->spatial_count = order->known ? order->spatial_count : op->spatial_count;
    fusion->axis_count = op->axis_count;
    memcpy(fusion->axes, op->axes, sizeof op->axes);
    for (int a = fusion->spatial_count; a < fusion->axis_count; a++)
        fusion->axes[a].reduction = true;
    fuser->plan.fusions[fuser->plan.count] = fusion;
    fuser->prepared[fuser->plan.count] = op->out->is_prepared;
    return fuser->plan.count++;
}

typedef struct LatestSearch {
    const Fuser *fuser;
    int kernel;   // the last one that makes what the op reads; -1: it reads inputs alone
} LatestSearch;

static void latest_visit(Expr *expr, void *context)
{
    LatestSearch *search = context;
    const Tensor *tensor = expr_tensor(expr);
    if (!tensor || !search->fuser->definition[tensor->id])
        return;
    if (search->fuser->inlined[tensor->id])
        expr_visit(search->fuser->definition[tensor->id]->body, latest_visit, context);
    else if (search->fuser->kernel_of[tensor->id] > search->kernel)
        search->kernel = search->fuser->kernel_of[tensor->id];
}

/* The last kernel that it may join, or one of its own; none that comes before a kernel whose results it
   reads. */
static void place(Fuser *fuser, const TensorOp *op)
{
    LatestSearch latest = {fuser, -1};
    expr_visit(op->body, latest_visit, &latest);
    int first = latest.kernel < 0 ? 0 : latest.kernel, kernel = fuser->plan.count - 1;
    while (kernel >= first && !may_join(fuser, kernel, op))
        kernel--;
    if (kernel < first)
        kernel = new_kernel(fuser, op);
    fuser->kernel_of[op->out->id] = kernel;
    tensors_add(fuser->arena, &fuser->tensors, kernel, op);
    add_op(fuser, fuser->plan.fusions[kernel], op);
}

// ---- the stage ----

typedef enum PlanKind {
    PLAN_INLINE,
    PLAN_MATERIALIZE,
    PLAN_ROWS,
    PLAN_BESIDE,
    PLAN_TILES,
    PLAN_STREAM,   // the last, since it is planned first, and the others only if it has no kernels
    PLAN_KINDS
} PlanKind;

static Fuser fuser_new(Arena *arena, const Program *program, PlanKind kind)
{
    static const char *const names[] = {"inline", "materialize", "rows", "beside", "tiles", "stream"};
    DimOrder *orders = NEW_ARRAY(arena, DimOrder, program->tensor_count);
    bool rows = kind == PLAN_ROWS || kind == PLAN_STREAM || kind == PLAN_TILES;
    if (rows)
        program = fuse_order(arena, program, orders);
    int count = program->tensor_count;
    Fuser fuser = {
        .arena = arena,
        .program = program,
        .definition = NEW_ARRAY(arena, const TensorOp *, count),
        .inlined = NEW_ARRAY(arena, bool, count),
        .fetches = NEW_ARRAY(arena, bool, count),
        .kernel_of = NEW_ARRAY(arena, int, count),
        .prepared = NEW_ARRAY(arena, bool, program->op_count),
        .orders = orders,
        .ranges = ranges_new(arena, program),
        .rows = rows,
        .beside = kind == PLAN_BESIDE,
        .plan = {.name = names[kind],
                 .fusions = NEW_ARRAY(arena, Fusion *, program->op_count),
                 .has_chains = kind == PLAN_STREAM},
    };
    for (int i = 0; i < program->op_count; i++)
        fuser.definition[program->ops[i]->out->id] = program->ops[i];
    fuser.tensors = tensors_new(arena, program, fuser.definition, fuser.inlined);
    return fuser;
}

/* Factors of streamed kernels are tensors in memory, not folded. */
static void keep_factors(Fuser *fuser, const StreamList *streams)
{
    for (int s = 0; s < streams->count; s++)
        for (int i = 0; i < streams->streams[s].factor_count; i++)
            fuser->inlined[streams->streams[s].factors[i]->id] = false;
}

/* A kernel that makes of weights alone what others have made before any call would make it in each: it is not
   built. */
static void drop_partly_prepared(StreamList *streams)
{
    int kept = 0;
    for (int s = 0; s < streams->count; s++) {
        const Stream *stream = &streams->streams[s];
        bool mixed = false;
        for (int i = 0; i < stream->member_count; i++)
            mixed |= stream->members[i]->out->is_prepared != stream->sum->out->is_prepared;
        if (!mixed)
            streams->streams[kept++] = *stream;
    }
    streams->count = kept;
}

/* The kernel is placed where its last sum is defined, behind all that it reads. */
static void place_stream(Fuser *fuser, const Stream *stream)
{
    int kernel = fuser->plan.count++;
    fuser->plan.fusions[kernel] = stream->fusion;
    fuser->prepared[kernel] = stream->sum->out->is_prepared;
    for (int i = 0; i < stream->member_count; i++) {
        fuser->kernel_of[stream->members[i]->out->id] = kernel;
        tensors_add(fuser->arena, &fuser->tensors, kernel, stream->members[i]);
    }
}

/* All definitions that are prepared, or all others, in the order of the program. */
static void place_all(Fuser *fuser, const StreamList *streams, bool prepared)
{
    for (int i = 0; i < fuser->program->op_count; i++) {
        const Tensor *out = fuser->program->ops[i]->out;
        const Stream *stream = streams_member(streams, out);
        if (out->is_prepared != prepared)
            continue;
        if (stream && stream->sum->out == out)
            place_stream(fuser, stream);
        else if (!stream && !fuser->inlined[out->id])
            place(fuser, fuser->program->ops[i]);
    }
}

/* Rows and their elements, or several reductions, in one kernel. */
static bool joins_rows(const FusionPlan *plan)
{
    for (int f = 0; f < plan->count; f++) {
        int reductions = 0;
        for (int i = 0; i < plan->fusions[f]->op_count; i++)
            reductions += plan->fusions[f]->ops[i].reduce != REDUCE_NONE;
        if (reductions > 1 || !fusion_is_uniform(plan->fusions[f]))
            return true;
    }
    return false;
}

/* False: there is no product of which only reductions of rows are wanted. */
static bool join_products(Fuser *fuser)
{
    int count = fuser->plan.count;
    fuser->plan.count = row_tiles_join(fuser->arena, fuser->plan.fusions, count);
    return fuser->plan.count < count;
}

/* All kernels; false: they are those of the plain plan, which has `plain_count`. */
static bool place_kernels(Fuser *fuser, const Program *program, PlanKind kind, int plain_count)
{
    StreamList streams = {0};
    if (kind == PLAN_STREAM)
        streams = streams_find(fuser->arena, program);
    drop_partly_prepared(&streams);
    if (kind == PLAN_STREAM && !streams.count)
        return false;
    KeepReused keep = kind == PLAN_MATERIALIZE ? KEEP_ALL : fuser->rows ? KEEP_ROWS : KEEP_NONE;
    bool differs =
        fuse_inline(fuser->arena, fuser->program, fuser->definition, keep, fuser->inlined, fuser->fetches);
    if (kind == PLAN_MATERIALIZE && !differs)
        return false;
    keep_factors(fuser, &streams);
    place_all(fuser, &streams, true);   // first, so that what reads them may join any kernel of a call
    place_all(fuser, &streams, false);
    if (kind == PLAN_ROWS)
        return joins_rows(&fuser->plan);
    if (kind == PLAN_TILES)
        return join_products(fuser);
    return kind != PLAN_BESIDE || fuser->plan.count != plain_count;
}

/* False: a kernel's points have no order that serves all its outputs. Those definitions are marked. */
static bool settle_all(Fuser *fuser, bool *apart)
{
    bool settled = true;
    for (int f = 0; f < fuser->plan.count; f++) {
        Fusion *fusion = fuser->plan.fusions[f];
        fusion_verify(fusion, "fuse");
        if (fusion_settle_axes(fuser->arena, fusion))
            continue;
        settled = false;
        for (int i = 0; i < fusion->op_count; i++)
            if (fusion->ops[i].out->id >= 0)
                apart[fusion->ops[i].out->id] = true;
    }
    return settled;
}

static void finish(Fuser *fuser)
{
    FusionPlan *plan = &fuser->plan;
    for (int f = 0; f < plan->count; f++) {
        fusion_verify(plan->fusions[f], "fuse_axes");
        fuse_functions(fuser->arena, plan->fusions[f]);
        fuse_units(fuser->arena, plan->fusions[f]);
    }
    for (int f = 0; f < plan->count; f++)
        fusion_verify(plan->fusions[f], "fuse_units");
}

/* False if the plan would equal the plain one, or cannot be made. */
static bool make_plan(Arena *arena, const Program *program, const Concatenation *const *joined, PlanKind kind,
                      int plain_count, FusionPlan *plan)
{
    enum { MOST_ROUNDS = 4 };   // each separates what could not be settled in those before
    bool *apart = NEW_ARRAY(arena, bool, program->tensor_count), settled = false;
    for (int round = 0; round < MOST_ROUNDS && !settled; round++) {
        Fuser fuser = fuser_new(arena, program, kind);
        fuser.apart = apart;
        if (!place_kernels(&fuser, program, kind, plain_count))
            return false;
        fusions_list_tensors(arena, &fuser.plan, program->tensor_count);
        fuse_in_place(arena, program, joined, &fuser.plan);
        fusions_list_tensors(arena, &fuser.plan, program->tensor_count);
        settled = settle_all(&fuser, apart);
        if (settled)
            finish(&fuser);
        *plan = fuser.plan;
    }
    return settled;
}

FusionPlans fuse(Arena *arena, const Program *program)
{
    FusionPlans plans = {.plans = NEW_ARRAY(arena, FusionPlan, PLAN_KINDS), .program = program};
    prepared_mark(program);
    const Concatenation **joined = concatenations_find(arena, program);
    for (PlanKind kind = PLAN_INLINE; kind < PLAN_KINDS; kind++)
        plans.count +=
            make_plan(arena, program, joined, kind, plans.plans[0].count, &plans.plans[plans.count]);
    return plans;
}
