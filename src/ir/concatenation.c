#include "ir/concatenation.h"

#include <string.h>

#include "base/checked.h"

// ---- what a select chooses ----

bool select_border(const Expr *expr, const Affine **place, int64_t *border)
{
    if (expr->kind != EXPR_APPLY || expr->apply.op != OP_SELECT)
        return false;
    const Expr *condition = expr->apply.operands[0];
    if (condition->kind != EXPR_APPLY || condition->apply.op != OP_LT)
        return false;
    const Expr *index = condition->apply.operands[0], *number = condition->apply.operands[1];
    if (index->kind != EXPR_INDEX || number->kind != EXPR_CONST || dtype_info[number->type].is_real)
        return false;
    *place = &index->index;
    *border = number->constant.integer;
    return true;
}

/* form = place + shift. */
static bool is_shifted(const Affine *form, const Affine *place, int64_t *shift)
{
    *shift = form->constant - place->constant;
    return memcmp(form->coef, place->coef, sizeof form->coef) == 0;
}

static bool guard_holds(const Guard *guard, const Affine *place, int64_t low, int64_t high)
{
    for (int i = 0; i < guard->count; i++) {
        int64_t shift;
        if (!is_shifted(&guard->bounds[i].index, place, &shift) || low + shift < 0 ||
            high + shift > guard->bounds[i].size)
            return false;
    }
    return true;
}

const Access *select_leaf(const Expr *leaf, const Affine *place, int64_t low, int64_t high)
{
    while (leaf->kind == EXPR_GUARD && guard_holds(&leaf->guard, place, low, high))
        leaf = leaf->guard.body;
    return leaf->kind == EXPR_ACCESS ? &leaf->access : NULL;
}

// ---- definitions that concatenate ----

typedef struct Finder {
    Arena *arena;
    const Concatenation **found;   // by tensor id
    const TensorOp *op;            // that is looked at
    int axis;                      // of the first condition; -1: none yet
    ConcatenatedPart *parts;
    int count, room;
} Finder;

/* All of the tensor at [low, high) of the axis, and at the definition's own point along others. */
static bool reads_part(const Finder *finder, const Access *access, int64_t low, int64_t high)
{
    const TensorOp *op = finder->op;
    if (!access_is_own(access) || access->rank != op->spatial_count ||
        access->tensor->dtype != op->out->dtype)
        return false;
    for (int d = 0; d < access->rank; d++) {
        const Dim *dim = &access->dims[d];
        Affine own = affine_axis(d);
        int64_t shift;
        if (!is_shifted(&dim->index, &own, &shift) || shift != (d == finder->axis ? -low : 0) ||
            dim->size != (d == finder->axis ? high - low : op->axes[d].extent))
            return false;
    }
    return true;
}

static void add_part(Finder *finder, Tensor *tensor, int64_t first)
{
    if (finder->count == finder->room) {
        finder->room = finder->room ? 2 * finder->room : 4;
        ConcatenatedPart *grown = NEW_ARRAY(finder->arena, ConcatenatedPart, finder->room);
        if (finder->count)
            memcpy(grown, finder->parts, sizeof *grown * (size_t)finder->count);
        finder->parts = grown;
    }
    finder->parts[finder->count++] = (ConcatenatedPart){tensor, first};
}

static bool add_leaf(Finder *finder, const Expr *leaf, int64_t low, int64_t high)
{
    Affine place = affine_axis(finder->axis);
    const Access *access = select_leaf(leaf, &place, low, high);
    if (!access || !reads_part(finder, access, low, high))
        return false;
    const Concatenation *inner = finder->found[access->tensor->id];
    if (!inner || inner->axis != finder->axis) {
        add_part(finder, access->tensor, low);
        return true;
    }
    for (int i = 0; i < inner->count; i++)
        add_part(finder, inner->parts[i].tensor, low + inner->parts[i].first);
    return true;
}

static bool add_leaves(Finder *finder, const Expr *expr, int64_t low, int64_t high)
{
    const Affine *place;
    int64_t border;
    if (!select_border(expr, &place, &border))
        return finder->axis >= 0 && add_leaf(finder, expr, low, high);
    int axis = affine_single_axis(place);
    if (finder->axis < 0 && axis >= 0) {
        finder->axis = axis;
        high = finder->op->axes[axis].extent;
    }
    return axis >= 0 && axis == finder->axis && low < border && border < high &&
           add_leaves(finder, expr->apply.operands[1], low, border) &&
           add_leaves(finder, expr->apply.operands[2], border, high);
}

static int64_t part_stride(const Concatenation *concatenation)
{
    int64_t stride = 1;
    for (int d = concatenation->axis; d < concatenation->whole->rank; d++)
        stride *= concatenation->whole->shape[d];
    return stride;
}

const Concatenation **concatenations_find(Arena *arena, const Program *program)
{
    const Concatenation **found = NEW_ARRAY(arena, const Concatenation *, program->tensor_count);
    for (int i = 0; i < program->op_count; i++) {
        const TensorOp *op = program->ops[i];
        Finder finder = {.arena = arena, .found = found, .op = op, .axis = -1};
        bool whole =
            op->reduce == REDUCE_NONE && op->out->dtype != DTYPE_B1 && op->spatial_count == op->out->rank;
        if (!whole || !add_leaves(&finder, op->body, 0, 0))
            continue;
        Concatenation *concatenation = NEW(arena, Concatenation);
        *concatenation = (Concatenation){op->out, finder.axis, finder.parts, finder.count};
        op->out->part_stride = part_stride(concatenation);
        found[op->out->id] = concatenation;
    }
    return found;
}

TensorOp *concatenation_part(Arena *arena, const Concatenation *concatenation, int part)
{
    const ConcatenatedPart *of = &concatenation->parts[part];
    TensorOp *op = NEW(arena, TensorOp);
    Affine indices[MAX_AXES];
    *op = (TensorOp){.out = of->tensor, .spatial_count = of->tensor->rank, .axis_count = of->tensor->rank};
    for (int d = 0; d < of->tensor->rank; d++) {
        op->axes[d] = (Axis){.name = arena_printf(arena, "dim %d", d), .extent = of->tensor->shape[d]};
        indices[d] = affine_axis(d);
        indices[d].constant = d == concatenation->axis ? of->first : 0;
    }
    op->body = expr_access(arena, dtype_info[of->tensor->dtype].compute, access_new(arena, concatenation->whole, indices));
    return op;
}

// ---- which part a kernel touches ----

/* The guards above an access, innermost first. */
typedef struct Around {
    const Guard *guard;
    const struct Around *outer;
} Around;

/* Guards hold back what lies outside of their bounds. */
static void narrow(const Affine *index, const Around *around, int64_t *low, int64_t *high)
{
    for (; around; around = around->outer)
        for (int i = 0; i < around->guard->count; i++) {
            const Dim *bound = &around->guard->bounds[i];
            int64_t shift;
            if (!is_shifted(&bound->index, index, &shift))
                continue;
            *low = larger(*low, -shift);
            *high = smaller(*high, bound->size - 1 - shift);
        }
}

static RowPart part_below(const Fusion *fusion, const Access *access, const Around *around)
{
    const Tensor *tensor = access->tensor;
    int64_t extents[MAX_AXES], row = tensor->part_stride, stride = 1, first = 0, last = 0;
    const RowPart all = {0, row ? row : tensor_elements(tensor)};
    for (int a = 0; a < fusion->axis_count; a++)
        extents[a] = fusion->axes[a].extent;
    for (int d = access->rank - 1; d >= 0 && stride < row; d--) {
        const Dim *dim = &access->dims[d];
        int64_t low, high;
        if (!affine_range(&dim->index, extents, fusion->axis_count, &low, &high))
            return all;
        narrow(&dim->index, around, &low, &high);
        if (low > high)   // never read
            return (RowPart){0, 0};
        first += stride * larger(low, 0);
        last += stride * smaller(high, dim->size - 1);
        stride *= dim->size;
    }
    bool known = row && stride == row && first <= last;
    return known ? (RowPart){tensor->part_first + first, tensor->part_first + last + 1} : all;
}

RowPart access_part(const Fusion *fusion, const Access *access) { return part_below(fusion, access, NULL); }

static RowPart part_of_both(RowPart some, RowPart more)
{
    if (some.end == 0 || more.end == 0)
        return some.end ? some : more;
    return (RowPart){smaller(some.first, more.first), larger(some.end, more.end)};
}

typedef struct RowPartSearch {
    const Fusion *fusion;
    const Tensor *tensor;
    RowPart part;   // end 0: nothing was found yet
} RowPartSearch;

static void search_part(RowPartSearch *search, const Expr *expr, const Around *around)
{
    if (expr->kind == EXPR_ACCESS && expr->access.tensor == search->tensor)
        search->part = part_of_both(search->part, part_below(search->fusion, &expr->access, around));
    if (expr->kind == EXPR_FETCH && expr->fetch.access.tensor == search->tensor)
        search->part = (RowPart){0, search->tensor->part_stride};
    if (expr->kind == EXPR_GUARD)
        search_part(search, expr->guard.body, &(Around){&expr->guard, around});
    else if (expr->kind == EXPR_CAST)
        search_part(search, expr->cast.body, around);
    else if (expr->kind == EXPR_FETCH)
        for (int i = 0; i < expr->fetch.count; i++)
            search_part(search, expr->fetch.places[i].value, around);
    else if (expr->kind == EXPR_APPLY)
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            search_part(search, expr->apply.operands[i], around);
}

RowPart fusion_part(const Fusion *fusion, const Tensor *tensor, bool stored)
{
    RowPartSearch search = {.fusion = fusion, .tensor = tensor};
    for (int i = 0; i < fusion->op_count && tensor->part_stride; i++)
        if (!stored)
            search_part(&search, fusion->ops[i].body, NULL);
        else if (fusion->ops[i].stored && fusion->ops[i].out == tensor)
            search.part = part_of_both(search.part, access_part(fusion, &fusion->ops[i].store));
    return search.part.end
               ? search.part
               : (RowPart){0, tensor->part_stride ? tensor->part_stride : tensor_elements(tensor)};
}

Access access_of_whole(Arena *arena, const Access *access)
{
    Dim *dims = NEW_ARRAY(arena, Dim, access->rank);
    int64_t stride = 1, before = access->tensor->part_first;
    for (int d = access->rank - 1; d >= 0; d--) {
        dims[d] = access->dims[d];
        stride *= dims[d].size;
    }
    for (int d = 0; d < access->rank; d++) {
        stride /= dims[d].size;
        dims[d].index.constant += before / stride;
        before %= stride;
    }
    return (Access){(Tensor *)access->tensor->part_of, access->rank, dims};
}
