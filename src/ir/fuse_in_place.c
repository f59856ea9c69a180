#include "ir/fuse_in_place.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "ir/prepared.h"

enum { VECTOR_BITS = 128 };

/* Where a tensor lies in another one. */
typedef struct Spot {
    Tensor *whole;   // NULL: it lies by itself
    int axis;
    int64_t first;
} Spot;

enum { NOBODY = -1, SEVERAL = -2 };

typedef struct Placer {
    Arena *arena;
    FusionPlan *plan;
    int *writer;     // by tensor id: the kernel that stores it, or NOBODY, SEVERAL
    bool *barred;    // by tensor id: read in another shape than its own, or at computed places
    bool *whole;     // by tensor id: others lie in it
    Spot *spots;     // by tensor id
    bool *mark;      // by tensor id: parts of what is looked at
} Placer;

// ---- who touches what ----

static void bar_visit(Expr *expr, void *context)
{
    bool *barred = context;
    Tensor *tensor = expr_tensor(expr);
    if (tensor && (expr->kind == EXPR_FETCH || !access_is_own(&expr->access)))
        barred[tensor->id] = true;
}

static void find_users(Placer *placer, int tensor_count)
{
    for (int t = 0; t < tensor_count; t++)
        placer->writer[t] = NOBODY;
    for (int f = 0; f < placer->plan->count; f++) {
        const Fusion *fusion = placer->plan->fusions[f];
        for (int i = 0; i < fusion->op_count; i++) {
            const FusedOp *op = &fusion->ops[i];
            expr_visit(op->body, bar_visit, placer->barred);
            if (!op->stored)
                continue;
            int *writer = &placer->writer[op->out->id];
            *writer = *writer == NOBODY ? f : SEVERAL;
            if (!access_is_own(&op->store))
                placer->barred[op->out->id] = true;
        }
    }
}

typedef struct MarkSearch {
    const bool *mark;
    bool found;
} MarkSearch;

static void mark_visit(Expr *expr, void *context)
{
    MarkSearch *search = context;
    const Tensor *tensor = expr_tensor(expr);
    search->found |= tensor && search->mark[tensor->id];
}

static bool reads_marked(const Placer *placer, const Fusion *fusion)
{
    MarkSearch search = {.mark = placer->mark};
    for (int i = 0; i < fusion->op_count; i++)
        expr_visit(fusion->ops[i].body, mark_visit, &search);
    return search.found;
}

// ---- which parts may be stored in place ----

static bool is_aligned(const Concatenation *concatenation, int64_t first)
{
    const Tensor *whole = concatenation->whole;
    int64_t before = whole->part_stride / whole->shape[concatenation->axis] * first;
    return before * dtype_info[whole->dtype].bits % VECTOR_BITS == 0;
}

static bool may_move(const Placer *placer, const Concatenation *concatenation, int part)
{
    const Tensor *tensor = concatenation->parts[part].tensor;
    int writer = placer->writer[tensor->id];
    return tensor->role == ROLE_TEMPORARY && !tensor->is_prepared && writer >= 0 &&
           !placer->barred[tensor->id] && !placer->spots[tensor->id].whole && !placer->whole[tensor->id] &&
           is_aligned(concatenation, concatenation->parts[part].first) &&
           !reads_marked(placer, placer->plan->fusions[writer]);
}

/* By kernels of their own: one that stores two parts would write one tensor twice. */
static bool have_own_writers(const Placer *placer, const Concatenation *concatenation)
{
    for (int i = 0; i < concatenation->count; i++)
        for (int k = 0; k < i; k++)
            if (placer->writer[concatenation->parts[i].tensor->id] ==
                placer->writer[concatenation->parts[k].tensor->id])
                return false;
    return true;
}

static void mark_parts(Placer *placer, const Concatenation *concatenation, bool on)
{
    placer->mark[concatenation->whole->id] = on;
    for (int i = 0; i < concatenation->count; i++)
        placer->mark[concatenation->parts[i].tensor->id] = on;
}

static bool may_place(Placer *placer, const Concatenation *concatenation)
{
    const Tensor *whole = concatenation->whole;
    if (placer->spots[whole->id].whole || whole->is_prepared || placer->writer[whole->id] == SEVERAL ||
        !is_aligned(concatenation, whole->shape[concatenation->axis]) ||
        !have_own_writers(placer, concatenation))
        return false;
    bool legal = true;
    mark_parts(placer, concatenation, true);
    for (int i = 0; i < concatenation->count && legal; i++)
        legal = may_move(placer, concatenation, i);
    mark_parts(placer, concatenation, false);
    return legal;
}

// ---- accesses of what has moved ----

static Access moved(const Placer *placer, const Access *access, const Spot *spot)
{
    Dim *dims = NEW_ARRAY(placer->arena, Dim, access->rank);
    memcpy(dims, access->dims, sizeof(Dim) * (size_t)access->rank);
    dims[spot->axis].index.constant += spot->first;
    dims[spot->axis].size = spot->whole->shape[spot->axis];
    return (Access){spot->whole, access->rank, dims};
}

/* What a kernel stores, as it is given it: where the part begins, so that equal kernels stay equal. */
static Access moved_store(const Placer *placer, const Access *store, const Spot *spot)
{
    Spot first = *spot;
    first.first = 0;
    Access there = moved(placer, store, &first);
    there.tensor = arena_copy(placer->arena, spot->whole, sizeof *spot->whole);
    there.tensor->name = store->tensor->name;
    there.tensor->views = NULL;
    there.tensor->part_of = spot->whole;
    there.tensor->part = store->tensor;
    int64_t step = spot->whole->part_stride / spot->whole->shape[spot->axis];
    there.tensor->part_first = step * spot->first;
    there.tensor->part_end = step * (spot->first + store->dims[spot->axis].size);
    return there;
}

static bool same_element(const Access *left, const Access *right)
{
    bool same = left->tensor == right->tensor && left->rank == right->rank;
    for (int d = 0; d < left->rank && same; d++)
        same = affine_equal(&left->dims[d].index, &right->dims[d].index);
    return same;
}

/* All that is chosen between lies in one tensor, at one place: `all`. */
static bool is_one_place(const Placer *placer, const Expr *expr, const Affine *place, int64_t low,
                         int64_t high, Access *all)
{
    const Affine *compared;
    int64_t border;
    if (select_border(expr, &compared, &border) && affine_equal(compared, place)) {
        border = larger(low, smaller(border, high));   // of a slice one side may hold nothing
        return (low == border || is_one_place(placer, expr->apply.operands[1], place, low, border, all)) &&
               (border == high || is_one_place(placer, expr->apply.operands[2], place, border, high, all));
    }
    const Access *leaf = select_leaf(expr, place, low, high);
    if (!leaf || !placer->spots[leaf->tensor->id].whole)
        return false;
    Access there = moved(placer, leaf, &placer->spots[leaf->tensor->id]);
    if (!all->tensor)
        *all = there;
    return same_element(all, &there);
}

typedef struct Relocation {
    const Placer *placer;
    int64_t extents[MAX_AXES];
    int axis_count;
} Relocation;

static bool find_one_place(const Relocation *relocation, const Expr *expr, Access *all)
{
    const Affine *place;
    int64_t border, low, high;
    *all = (Access){0};
    return select_border(expr, &place, &border) &&
           affine_range(place, relocation->extents, relocation->axis_count, &low, &high) &&
           is_one_place(relocation->placer, expr, place, low, high + 1, all);
}

static void rewrite_visit(Expr *expr, void *context)
{
    const Relocation *relocation = context;
    Access all;
    if (expr->kind == EXPR_ACCESS && relocation->placer->spots[expr->access.tensor->id].whole) {
        expr->access =
            moved(relocation->placer, &expr->access, &relocation->placer->spots[expr->access.tensor->id]);
    } else if (find_one_place(relocation, expr, &all)) {
        expr->kind = EXPR_ACCESS;
        expr->access = all;
    }
}

static Relocation relocation_of(const Placer *placer, const Fusion *fusion)
{
    Relocation relocation = {.placer = placer, .axis_count = fusion->axis_count};
    for (int a = 0; a < fusion->axis_count; a++)
        relocation.extents[a] = fusion->axes[a].extent;
    return relocation;
}

// ---- kernels ----

/* The op makes what lies in memory already, element by element: where its tensor begins there. */
static bool is_there(const Placer *placer, const FusedOp *op, Spot *spot)
{
    if (op->body->kind != EXPR_ACCESS || !placer->whole[op->body->access.tensor->id] ||
        op->reduce != REDUCE_NONE || op->body->access.tensor->dtype != op->out->dtype ||
        op->body->access.rank != op->store.rank)
        return false;
    *spot = (Spot){.whole = op->body->access.tensor, .axis = -1};
    for (int d = 0; d < op->store.rank; d++) {
        const Dim *read = &op->body->access.dims[d], *made = &op->store.dims[d];
        Affine apart = read->index;
        apart.constant = made->index.constant;
        if (!affine_equal(&apart, &made->index))
            return false;
        if (read->size == made->size && read->index.constant == made->index.constant)
            continue;
        if (spot->axis >= 0)
            return false;
        spot->axis = d;
        spot->first = read->index.constant - made->index.constant;
    }
    return true;
}

typedef struct Removal {
    int op;
    const Access *access;
} Removal;

static void remove_visit(Expr *expr, void *context)
{
    const Removal *removal = context;
    if (expr->kind != EXPR_VALUE)
        return;
    if (expr->value == removal->op) {
        expr->kind = EXPR_ACCESS;
        expr->access = *removal->access;
    } else {
        expr->value -= expr->value > removal->op;
    }
}

/* Who uses its value reads it. */
static void remove_op(Fusion *fusion, int i)
{
    const Access access = fusion->ops[i].body->access;
    Removal removal = {i, &access};
    fusion->op_count--;
    for (int k = i; k < fusion->op_count; k++) {
        fusion->ops[k] = fusion->ops[k + 1];
        expr_visit(fusion->ops[k].body, remove_visit, &removal);
    }
}

/* What only this kernel sees, though a tensor in memory has its values. */
static Tensor *unstored(Arena *arena, const Tensor *tensor)
{
    Tensor *copy = arena_copy(arena, tensor, sizeof *tensor);
    copy->id = -1;
    copy->role = ROLE_TEMPORARY;
    copy->part_stride = 0;
    return copy;
}

static void rewrite_op(Placer *placer, const Relocation *relocation, FusedOp *op)
{
    op->body = expr_copy(placer->arena, op->body);
    expr_visit(op->body, rewrite_visit, (void *)relocation);
    if (op->out->id < 0)
        return;
    const Spot *spot = &placer->spots[op->out->id];
    if (op->stored && spot->whole) {
        op->store = moved_store(placer, &op->store, spot);
        op->out = op->store.tensor;
    } else if (!op->stored && (spot->whole || placer->whole[op->out->id])) {
        op->out = op->store.tensor = unstored(placer->arena, op->out);
    }
}

static void rewrite_kernel(Placer *placer, int f)
{
    Fusion *fusion = placer->plan->fusions[f];
    Relocation relocation = relocation_of(placer, fusion);
    for (int i = 0; i < fusion->op_count; i++) {
        FusedOp *op = &fusion->ops[i];
        Tensor *out = op->out;
        Spot spot;
        rewrite_op(placer, &relocation, op);
        if (fusion->streams || !is_there(placer, op, &spot))
            continue;
        bool is_part = op->stored && out->role == ROLE_TEMPORARY && spot.whole != out &&
                       !placer->barred[out->id] && placer->writer[out->id] == f && !placer->whole[out->id] &&
                       spot.axis >= 0;
        if (is_part)
            placer->spots[out->id] = spot;
        if (is_part || spot.whole == out)
            remove_op(fusion, i--);
    }
}

// ---- all of them ----

/* Its own kernel, if it has one, has nothing left to do. */
static bool is_made_of_parts(Placer *placer, const Concatenation *concatenation)
{
    const Tensor *whole = concatenation->whole;
    int writer = placer->writer[whole->id];
    if (writer < 0)
        return true;
    const Fusion *fusion = placer->plan->fusions[writer];
    Relocation relocation = relocation_of(placer, fusion);
    for (int i = 0; i < fusion->op_count && !fusion->streams; i++) {
        FusedOp op = fusion->ops[i];
        Spot spot;
        if (op.out != whole || !op.stored)
            continue;
        op.body = expr_copy(placer->arena, op.body);
        expr_visit(op.body, rewrite_visit, &relocation);
        return is_there(placer, &op, &spot) && spot.whole == whole && spot.axis < 0;
    }
    return false;
}

static void set_spots(Placer *placer, const Concatenation *concatenation, bool on)
{
    placer->whole[concatenation->whole->id] = on;
    for (int i = 0; i < concatenation->count; i++) {
        const ConcatenatedPart *part = &concatenation->parts[i];
        placer->spots[part->tensor->id] =
            on ? (Spot){concatenation->whole, concatenation->axis, part->first} : (Spot){0};
    }
}

static int by_size(const void *left, const void *right)
{
    const Tensor *a = (*(const Concatenation *const *)left)->whole,
                 *b = (*(const Concatenation *const *)right)->whole;
    int64_t more = tensor_bytes(b) - tensor_bytes(a);
    return more ? (more > 0 ? 1 : -1) : a->id - b->id;
}

static const Concatenation **sorted(Arena *arena, const Program *program, const Concatenation *const *found,
                                    int *count)
{
    const Concatenation **list = NEW_ARRAY(arena, const Concatenation *, program->tensor_count);
    *count = 0;
    for (int t = 0; t < program->tensor_count; t++)
        if (found[t])
            list[(*count)++] = found[t];
    qsort(list, (size_t)*count, sizeof *list, by_size);
    return list;
}

void fuse_in_place(Arena *arena, const Program *program, const Concatenation *const *found, FusionPlan *plan)
{
    int tensors = program->tensor_count, count, placed = 0;
    const Concatenation **list = sorted(arena, program, found, &count);
    Placer placer = {
        .arena = arena,
        .plan = plan,
        .writer = NEW_ARRAY(arena, int, tensors),
        .barred = NEW_ARRAY(arena, bool, tensors),
        .whole = NEW_ARRAY(arena, bool, tensors),
        .spots = NEW_ARRAY(arena, Spot, tensors),
        .mark = NEW_ARRAY(arena, bool, tensors),
    };
    if (count)
        find_users(&placer, tensors);
    for (int i = 0; i < count; i++) {
        if (!may_place(&placer, list[i]))
            continue;
        set_spots(&placer, list[i], true);
        if (is_made_of_parts(&placer, list[i]))
            placed++;
        else
            set_spots(&placer, list[i], false);
    }
    for (int f = 0; f < plan->count && placed; f++)
        rewrite_kernel(&placer, f);
}
