// Which definitions are folded into their readers.
#include "ir/fuse_inline.h"

#include "ir/fuse_reach.h"
#include "ir/prepared.h"

enum {
    INLINE_NODES = 400
};   // of an expression that grows by what is folded in; past it, that goes through memory

/* Lists by tensor id. */
typedef struct Inliner {
    const TensorOp *const *definition;   // NULL: an input
    bool *inlined;
    bool *epilogue;   // a reduction, or pointwise at the points of one
    bool *fetches;    // reads elements at computed places, itself or by what is folded into it
    bool *reduces;    // is made of a reduction's result
    bool *spreads;    // the same for many points, as an element of a norm is
} Inliner;

typedef struct Census {
    const Inliner *inliner;
    const int *size;   // by tensor id, of the expanded definition
    const TensorOp *op;
    int nodes;
    bool computes;   // is more than a move: holds a function or a conversion
    bool converts;   // reads elements of another type
    bool reduces;    // reads what is made of a reduction,
    bool spreads;    // at more points than that has
} Census;

/* An op reads an element again and again if some of its axes are not in the access. */
static bool access_is_reused(const Access *access, const TensorOp *reader)
{
    for (int a = 0; a < reader->axis_count; a++) {
        bool present = false;
        for (int d = 0; d < access->rank; d++)
            present |= access->dims[d].index.coef[a] != 0;
        if (!present && reader->axes[a].extent > 1)
            return true;
    }
    return false;
}

static void census_visit(Expr *expr, void *context)
{
    Census *census = context;
    const Inliner *inliner = census->inliner;
    census->nodes++;
    census->computes |= expr->kind == EXPR_APPLY || expr->kind == EXPR_CAST;
    if (expr->kind != EXPR_ACCESS)
        return;
    int id = expr->access.tensor->id;
    census->nodes += inliner->inlined[id] ? census->size[id] : 0;
    census->converts |= expr->access.tensor->dtype != census->op->out->dtype;
    census->reduces |= inliner->reduces[id];
    census->spreads |=
        inliner->spreads[id] || (inliner->reduces[id] && access_is_reused(&expr->access, census->op));
}

typedef struct ReuseSearch {
    const TensorOp *reader;
    bool *reused;   // by tensor id
} ReuseSearch;

static void reuse_visit(Expr *expr, void *context)
{
    ReuseSearch *search = context;
    if (expr->kind == EXPR_ACCESS)
        search->reused[expr->access.tensor->id] |= access_is_reused(&expr->access, search->reader);
}

/* By tensor id: a reduction reads its elements again and again, directly or after moves. */
static bool *reused_by_reductions(Arena *arena, const Program *program)
{
    bool *reused = NEW_ARRAY(arena, bool, program->tensor_count);
    for (int i = program->op_count - 1; i >= 0; i--) {   // readers stand behind what they read
        ReuseSearch search = {program->ops[i], reused};
        const Expr *body = search.reader->body;
        if (!op_is_pointwise(search.reader))
            expr_visit(search.reader->body, reuse_visit, &search);
        else if (body->kind == EXPR_ACCESS && reused[search.reader->out->id])
            reused[body->access.tensor->id] = true;
    }
    return reused;
}

bool reads_own_point(const Access *access, const Axis *axes, int spatial_count)
{
    if (access->rank != spatial_count)
        return false;
    for (int d = 0; d < access->rank; d++)
        if (affine_single_axis(&access->dims[d].index) != d || access->dims[d].size != axes[d].extent)
            return false;
    return true;
}

typedef struct EpilogueSearch {
    const Inliner *inliner;
    const TensorOp *op;
    bool found;
} EpilogueSearch;

static void epilogue_visit(Expr *expr, void *context)
{
    EpilogueSearch *search = context;
    if (expr->kind == EXPR_ACCESS && search->inliner->epilogue[expr->access.tensor->id])
        search->found |= reads_own_point(&expr->access, search->op->axes, search->op->spatial_count);
}

/* What is made of a reduction's result at its own points is the epilogue of the reduction's kernel. */
static bool belongs_to_a_reduction(const Inliner *inliner, const TensorOp *op)
{
    EpilogueSearch search = {.inliner = inliner, .op = op};
    if (op_is_pointwise(op))
        expr_visit(op->body, epilogue_visit, &search);
    return search.found || !op_is_pointwise(op);
}

/* The access names the dimensions that the definition is made in, which need not stand in the order of memory
   (fuse_order.h), and not those of a view. */
static bool names_axes(const Access *access, const TensorOp *op)
{
    for (int d = 0; d < access->rank && access->rank == op->spatial_count; d++)
        if (access->dims[d].size != op->axes[d].extent)
            return false;
    return access->rank == op->spatial_count;
}

typedef struct FarSearch {
    Inliner *inliner;
    const TensorOp *reader;
    bool fetches;
} FarSearch;

static void far_visit(Expr *expr, void *context)
{
    const FarSearch *search = context;
    Inliner *inliner = search->inliner;
    const Tensor *tensor = expr_tensor(expr);
    if (!tensor || !inliner->inlined[tensor->id])
        return;
    bool in_reduction = inliner->fetches[tensor->id] && !op_is_pointwise(search->reader);
    inliner->inlined[tensor->id] =
        expr->kind == EXPR_ACCESS && names_axes(&expr->access, inliner->definition[tensor->id]) &&
        !in_reduction && reach_fits(search->reader, &expr->access, inliner->definition, inliner->inlined);
}

static void fetches_visit(Expr *expr, void *context)
{
    FarSearch *search = context;
    const Tensor *tensor = expr->kind == EXPR_ACCESS ? expr->access.tensor : NULL;
    bool folded = tensor && search->inliner->inlined[tensor->id] && search->inliner->fetches[tensor->id];
    search->fetches |= expr->kind == EXPR_FETCH || folded;
}

/* A definition is not folded if its reader's indices would pass 64 bits, if it is read in other dimensions
   than it is made in or at computed places, or if a reduction would have to fetch: its families read rows. */
static void keep_far_reads(Inliner *inliner, const TensorOp *op)
{
    FarSearch search = {inliner, op, false};
    expr_visit(op->body, far_visit, &search);
    expr_visit(op->body, fetches_visit, &search);
    inliner->fetches[op->out->id] = search.fetches;
}

/* An image of f32 for a convolution of f16 is rounded by a copy: folded, it would keep the convolution off
   tensor cores, whose time is far longer than the copy's. */
static bool is_rounded(const Census *census)
{
    DType type = census->op->out->dtype;
    return census->converts && !census->computes && (type == DTYPE_F16 || type == DTYPE_BF16);
}

static bool is_kept(const Census *census, KeepReused keep)
{
    return is_rounded(census) ||
           (census->computes && (keep == KEEP_ALL || (keep == KEEP_ROWS && census->spreads)));
}

bool fuse_inline(Arena *arena, const Program *program, const TensorOp *const *definition, KeepReused keep,
                 bool *inlined, bool *fetches)
{
    Inliner inliner = {definition,
                       inlined,
                       NEW_ARRAY(arena, bool, program->tensor_count),
                       fetches,
                       NEW_ARRAY(arena, bool, program->tensor_count),
                       NEW_ARRAY(arena, bool, program->tensor_count)};
    int *size = NEW_ARRAY(arena, int, program->tensor_count);
    bool *reused = reused_by_reductions(arena, program), *prepared = prepared_for_calls(arena, program);
    bool differs = false;
    for (int i = 0; i < program->op_count; i++) {
        const TensorOp *op = program->ops[i];
        keep_far_reads(&inliner, op);
        inliner.epilogue[op->out->id] = belongs_to_a_reduction(&inliner, op);
        Census census = {.inliner = &inliner, .size = size, .op = op};
        expr_visit(op->body, census_visit, &census);
        inliner.reduces[op->out->id] = census.reduces || !op_is_pointwise(op);
        inliner.spreads[op->out->id] = census.spreads && !inliner.epilogue[op->out->id];
        if (inliner.epilogue[op->out->id] || op->out->role == ROLE_OUTPUT)
            continue;
        size[op->out->id] = census.nodes;
        bool fits = census.nodes <= INLINE_NODES;
        bool keeps = fits && is_kept(&census, keep) && reused[op->out->id];
        inlined[op->out->id] = fits && !keeps && !prepared[op->out->id];
        differs |= keeps && !is_rounded(&census) && !prepared[op->out->id];
    }
    return differs;
}
