// Checks a kernel's description after every pass that makes or rewrites one. A wrong one would be emitted
// without an error: it compiles, and stores somewhere else.
//
//   m[a, b, c] = sum[h] x[a, b, c, h], m of [2, 3, 5]
//     the store [a, b, c] steps by 15, 5 and 1: c counts 0 … 4, b goes on at 5, a at 15, and 2 * 15 are all 30 elements
//     a list [b, c] that another pass has rewritten steps by 5 and 1, never by a: 15 elements twice
//   x[2*i + r - 3] below the guard 0 <= 2*i + r - 3 < 224
//     alone the index is -3 … 225 for 112 i's and 7 r's; it is 1 * the guard's form + 0, so it lies in 0 … 223
//   x[i + 5] below the guards 0 <= i - 1 < 9 and 0 <= i + 1 < 2
//     the first leaves i's from 1 on, the second only 0: x is never read, wherever it may be
//
// It takes some microseconds and no memory; a kernel is never looked at element by element.
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "ir/concatenation.h"
#include "ir/fuse.h"

/* The guards above an expression, innermost first. */
typedef struct Enclosing {
    const Guard *guard;
    const struct Enclosing *outer;
} Enclosing;

/* Points low[a] <= a <= high[a] of every axis. */
typedef struct Box {
    int64_t low[MAX_AXES], high[MAX_AXES];
} Box;

typedef struct Check {
    const Fusion *fusion;
    int64_t extents[MAX_AXES];
    Box box;              // the points at which what is looked at may be needed
    uint32_t rows, all;   // the spatial axes, all axes
    int op;               // that is looked at
    uint32_t axes;        // over which its body is
    FusionFault fault;    // the first that was found
} Check;

static void found(Check *check, const Tensor *tensor, const char *what)
{
    if (!check->fault.what)
        check->fault = (FusionFault){tensor, what};
}

static void expect(Check *check, bool sound, const Tensor *tensor, const char *what)
{
    if (!sound)
        found(check, tensor, what);
}

static bool is_listed(const Tensor *tensor, Tensor *const *list, int count)
{
    for (int i = 0; i < count; i++)
        if (list[i] == tensor)
            return true;
    return false;
}

// ---- where an access reaches ----

/* Each dimension is a run of those of the shape: [4, 6, 3] may be seen as [4, 18], [24, 3] or [72], never as
   [6, 12]. Then its strides are some of the shape's. */
static bool is_run_of(const Access *access, const int64_t *shape, int rank)
{
    int at = rank;
    for (int d = access->rank - 1; d >= 0; d--) {
        int64_t size = 1;
        while (size < access->dims[d].size && at > 0)
            if (!checked_mul(size, shape[--at], &size))
                return false;
        if (size != access->dims[d].size)
            return false;
    }
    while (at > 0)
        if (shape[--at] != 1)
            return false;
    return true;
}

/* Of the tensor's own shape, or of one in which the program views it. */
static bool is_view(const Access *access)
{
    const TensorView *view = access->tensor->views;
    while (view && !is_run_of(access, view->shape, view->rank))
        view = view->next;
    return view || is_run_of(access, access->tensor->shape, access->tensor->rank);
}

/* The smallest and the largest value of the form's terms but `axis` (-1: of all) over the box. False: past 64
   bits. */
static bool range_without(const Affine *form, int axis, const Box *box, int64_t *low, int64_t *high)
{
    *low = *high = form->constant;
    for (int a = 0; a < MAX_AXES; a++) {
        int64_t first, last;
        if (a == axis || !form->coef[a])
            continue;
        if (!checked_mul(form->coef[a], box->low[a], &first) ||
            !checked_mul(form->coef[a], box->high[a], &last) ||
            !checked_add(*low, first < last ? first : last, low) ||
            !checked_add(*high, first < last ? last : first, high))
            return false;
    }
    return true;
}

/* Keeps those points of the axis at which 0 <= coef * axis + rest < size is possible for a rest in [low,
   high]. */
static void narrow_axis(Box *box, int axis, int64_t coef, int64_t low, int64_t high, int64_t size)
{
    int64_t least, most;   // of coef * axis
    if (!checked_mul(high, -1, &least) || !checked_add(size - 1, -low, &most))
        return;
    int64_t first = coef > 0 ? -floor_div(-least, coef) : -floor_div(-most, coef);
    int64_t last = coef > 0 ? floor_div(most, coef) : floor_div(least, coef);
    box->low[axis] = first > box->low[axis] ? first : box->low[axis];
    box->high[axis] = last < box->high[axis] ? last : box->high[axis];
}

/* The part of the box in which the guard may hold, each axis for itself. False: it never does, nothing below
   it is read. */
static bool narrow(Box *box, const Guard *guard)
{
    for (int i = 0; i < guard->count; i++) {
        const Dim *bound = &guard->bounds[i];
        int64_t low, high;
        if (range_without(&bound->index, -1, box, &low, &high) && (high < 0 || low >= bound->size))
            return false;
        for (int a = 0; a < MAX_AXES; a++) {
            if (bound->index.coef[a] && range_without(&bound->index, a, box, &low, &high))
                narrow_axis(box, a, bound->index.coef[a], low, high, bound->size);
            if (box->low[a] > box->high[a])
                return false;
        }
    }
    return true;
}

/* 0 <= 2*p + k - 1 < 4 and 0 <= 2*p + k + 1 < 2 never hold both, though p and k may have any value in
   each. */
static bool exclude_each_other(const Dim *one, const Dim *other)
{
    int64_t apart;   // what the other's form is more
    if (memcmp(one->index.coef, other->index.coef, sizeof one->index.coef) != 0 ||
        !checked_add(other->index.constant, -one->index.constant, &apart))
        return false;
    return apart >= other->size || -apart >= one->size;
}

/* The innermost guard excludes one of those around it. */
static bool is_excluded(const Enclosing *inner)
{
    for (const Enclosing *around = inner; around; around = around->outer)
        for (int i = 0; i < around->guard->count; i++)
            for (int j = 0; j < inner->guard->count; j++)
                if (exclude_each_other(&around->guard->bounds[i], &inner->guard->bounds[j]))
                    return true;
    return false;
}

/* What an index is made of: `rest` over all points, and multiples of guarded forms whose sum lies in
   [low, high]. */
typedef struct ReadReach {
    Affine rest;
    int64_t low, high;
} ReadReach;

/* One multiple more of a guard's form, which lies in [0, size). False: it cannot be said in 64 bits. */
static bool take_bound(ReadReach *reach, const Dim *bound, int64_t times)
{
    int64_t end, part;
    if (!checked_mul(times, bound->size - 1, &end) ||
        !checked_add(reach->low, end < 0 ? end : 0, &reach->low) ||
        !checked_add(reach->high, end > 0 ? end : 0, &reach->high))
        return false;
    for (int a = 0; a < MAX_AXES; a++)
        if (!checked_mul(-times, bound->index.coef[a], &part) ||
            !checked_add(reach->rest.coef[a], part, &reach->rest.coef[a]))
            return false;
    return checked_mul(-times, bound->index.constant, &part) &&
           checked_add(reach->rest.constant, part, &reach->rest.constant);
}

/* How often the bound's form goes into `rest` if the axis is to go; 0: it does not, or an axis before it said
   the same. */
static int64_t times_of(const Affine *rest, const Affine *form, int axis)
{
    if (!form->coef[axis] || rest->coef[axis] % form->coef[axis])
        return 0;
    int64_t times = rest->coef[axis] / form->coef[axis];
    for (int a = 0; a < axis; a++)
        if (form->coef[a] && rest->coef[a] == times * form->coef[a])
            return 0;
    return times;
}

/* Whoever reads x[f(t)] in the place of t[g], below a guard of g, reads at whole multiples of what the guard
   holds: all ways of taking such multiples out of the index are tried, and one of them leaves what lies
   inside without a guard. */
static bool lies_inside(const Check *check, ReadReach reach, int64_t size, const Enclosing *around, int first)
{
    int64_t low, high;
    if (range_without(&reach.rest, -1, &check->box, &low, &high) &&
        checked_add(low, reach.low, &low) && checked_add(high, reach.high, &high) && low >= 0 && high < size)
        return true;
    for (; around; around = around->outer, first = 0)
        for (int i = first; i < around->guard->count; i++)
            for (int a = 0; a < check->fusion->axis_count; a++) {
                const Dim *bound = &around->guard->bounds[i];
                ReadReach less = reach;
                int64_t times = times_of(&reach.rest, &bound->index, a);
                if (times && take_bound(&less, bound, times) && lies_inside(check, less, size, around, i + 1))
                    return true;
            }
    return false;
}

static void check_access(Check *check, const Access *access, const Enclosing *around)
{
    expect(check, is_view(access), access->tensor, "is accessed by other strides than its own");
    for (int d = 0; d < access->rank; d++) {
        const Dim *dim = &access->dims[d];
        expect(check, lies_inside(check, (ReadReach){dim->index, 0, 0}, dim->size, around, 0), access->tensor,
               "is accessed outside its dimensions");
    }
}

// ---- what an op is made of ----

static void check_value(Check *check, const Expr *expr)
{
    const Fusion *fusion = check->fusion;
    const Tensor *out = fusion->ops[check->op].out;
    if (expr->value < 0 || expr->value >= check->op) {
        found(check, out, "uses a value that is not made yet");
        return;
    }
    const FusedOp *made = &fusion->ops[expr->value];
    expect(check, (made->spatial & ~check->axes) == 0, out, "uses a value of points that it is not made at");
    expect(check, expr->type == dtype_info[made->out->dtype].compute, out, "uses a value as another type");
}

static void check_axes(Check *check, uint32_t axes)
{
    expect(check, (axes & ~check->axes) == 0, check->fusion->ops[check->op].out,
           "uses an axis that it is not over");
}

static void check_read(Check *check, const Expr *expr, const Access *access, const Enclosing *around)
{
    check_axes(check, access_axes(access));
    check_access(check, access, around);
    expect(check, expr->type == dtype_info[access->tensor->dtype].compute, access->tensor,
           "is read as another type");
    expect(check, is_listed(access->tensor, check->fusion->inputs, check->fusion->input_count),
           access->tensor, "is read and is no input");
    expect(check, !is_listed(access->tensor, check->fusion->outputs, check->fusion->output_count),
           access->tensor, "is read by the kernel that writes it");
}

static void check_expr(Check *check, const Expr *expr, const Enclosing *around);

/* The front end checks that computed places stay inside: no interval of indices bounds what a tensor
   holds. */
static void check_fetch(Check *check, const Expr *expr, const Enclosing *around)
{
    const Fetch *fetch = &expr->fetch;
    check_read(check, expr, &fetch->access, around);
    for (int i = 0; i < fetch->count; i++) {
        const Expr *value = fetch->places[i].value;
        bool is_integer = value->type == DTYPE_I32 || value->type == DTYPE_I64;
        expect(check, is_integer, fetch->access.tensor, "is read at a place that is no integer");
        check_expr(check, value, around);
    }
}

static void check_guarded(Check *check, const Guard *guard, const Enclosing *around)
{
    Box outside = check->box;
    Enclosing inside = {guard, around};
    if (narrow(&check->box, guard) && !is_excluded(&inside))
        check_expr(check, guard->body, &inside);
    check->box = outside;
}

static void check_expr(Check *check, const Expr *expr, const Enclosing *around)
{
    switch (expr->kind) {
    case EXPR_CONST: break;
    case EXPR_INDEX: check_axes(check, affine_axes(&expr->index)); break;
    case EXPR_VALUE: check_value(check, expr); break;
    case EXPR_ACCESS: check_read(check, expr, &expr->access, around); break;
    case EXPR_FETCH: check_fetch(check, expr, around); break;
    case EXPR_CAST: check_expr(check, expr->cast.body, around); break;
    case EXPR_GUARD:
        for (int i = 0; i < expr->guard.count; i++)
            check_axes(check, affine_axes(&expr->guard.bounds[i].index));
        check_guarded(check, &expr->guard, around);
        break;
    case EXPR_APPLY:
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            check_expr(check, expr->apply.operands[i], around);
        break;
    }
}

/* Made at every point of the rows, or at every element of them; a reduction takes all that is not the rows',
   and each of several side by side its own part of that. */
static void check_masks(Check *check, const FusedOp *op)
{
    bool reduces = op->reduce != REDUCE_NONE;
    if (check->fusion->streams) {   // each at points of its own, and along axes of its own
        expect(check, reduces ? op->reduced && !(op->reduced & op->spatial) : !op->reduced, op->out,
               "reduces over axes that it is made at");
        return;
    }
    expect(check, op->spatial == check->rows || (op->spatial == check->all && !reduces), op->out,
           "is made at points that are none of the kernel's");
    uint32_t columns = check->all & ~check->rows;
    bool is_part = op->reduced && !(op->reduced & ~columns) && fusion_is_beside(check->fusion);
    expect(check, reduces ? op->reduced == columns || is_part : !op->reduced, op->out,
           "reduces over other axes than the kernel's");
}

// ---- what an op stores ----

/* The steps of the axes are mixed radix: the smallest is 1, the next one is how far that axis gets, up to all
   elements; or to the part of a row that the kernel makes of a concatenation, and then on from row to row. */
static bool reaches_each_once(const Check *check, const FusedOp *op)
{
    Affine offset = access_offset(&op->store);
    RowPart part = access_part(check->fusion, &op->store);
    int64_t reached = 1, row = op->out->part_stride;
    uint32_t left = op->spatial;
    for (int a = 0; a < check->fusion->axis_count; a++)
        if (check->extents[a] == 1)
            left &= ~(1u << a);
    if (row && reached == part.end - part.first)   // of one element
        reached = row;
    for (int a = 0; a < check->fusion->axis_count; a++)
        if (left >> a & 1 && offset.coef[a] == reached) {
            if (!checked_mul(reached, check->extents[a], &reached))
                return false;
            if (row && reached == part.end - part.first)
                reached = row;
            left &= ~(1u << a);
            a = -1;   // from the first axis again
        }
    return !left && offset.constant == part.first - op->out->part_first && (!row || part.end <= row) &&
           reached == tensor_elements(op->out);
}

static void check_store(Check *check, const FusedOp *op)
{
    expect(check, op->store.tensor == op->out, op->out, "is stored as another tensor");
    expect(check, (access_axes(&op->store) & ~op->spatial) == 0, op->out,
           "is stored by axes that it is not made at");
    check_access(check, &op->store, NULL);
    expect(check, reaches_each_once(check, op), op->out, "does not have each element stored once");
    expect(check, is_listed(op->out, check->fusion->outputs, check->fusion->output_count), op->out,
           "is stored and is no output");
}

// ---- the kernel ----

static void check_kernel(Check *check)
{
    const Fusion *fusion = check->fusion;
    if (fusion->spatial_count > fusion->axis_count || fusion->axis_count > MAX_AXES) {
        found(check, NULL, "has more axes than there are");
        return;
    }
    for (int a = 0; a < fusion->axis_count; a++) {
        check->extents[a] = fusion->axes[a].extent;
        check->box.high[a] = fusion->axes[a].extent - 1;
        expect(check, check->extents[a] > 0, NULL, "has an axis without a point");
        expect(check, fusion->axes[a].reduction == (a >= fusion->spatial_count), NULL,
               "has a reduction axis among its spatial ones");
    }
    check->rows = (1u << fusion->spatial_count) - 1;
    check->all = (1u << fusion->axis_count) - 1;
}

FusionFault fusion_fault(const Fusion *fusion)
{
    Check check = {.fusion = fusion};
    check_kernel(&check);
    for (int i = 0; i < fusion->op_count && !check.fault.what; i++) {
        const FusedOp *op = &fusion->ops[i];
        check.op = i;
        check.axes = op->spatial | op->reduced;
        check_masks(&check, op);
        check_expr(&check, op->body, NULL);
        if (op->stored)
            check_store(&check, op);
    }
    return check.fault;
}

void fusion_verify(const Fusion *fusion, const char *pass)
{
    FusionFault fault = fusion_fault(fusion);
    if (fault.what)
        fatal(EXIT_BUG, "a bug in rollerc, seen after %s: %s%s%s %s", pass, fault.tensor ? "'" : "the kernel",
              fault.tensor ? fault.tensor->name : "", fault.tensor ? "'" : "", fault.what);
}
