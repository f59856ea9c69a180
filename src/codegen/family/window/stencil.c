#include "codegen/family/window/stencil.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "rtile/rtile.h"

// ---- which parts of a term belong to windows ----

static Stencil sides_of(const Fusion *fusion)
{
    Stencil stencil = {.fusion = fusion, .tap = {-1, -1}};
    stencil.axis[DIRECTION_ALONG] = fusion->spatial_count - 1;
    stencil.axis[DIRECTION_DOWN] = fusion->spatial_count - 2;   // -1 if there is only one
    return stencil;
}

typedef struct LeafSearch {
    const Stencil *stencil;
    WindowOperand operand;
    uint32_t unpaired_taps;   // taps that stand without an output's position beside them
    int guards;
    bool fits;
} LeafSearch;

static bool same_reach(const WindowAxis *one, const WindowAxis *other)
{
    return one->tap == other->tap && one->stride == other->stride && one->dilation == other->dilation;
}

static void look_at_form(LeafSearch *search, const Affine *form)
{
    const Stencil *stencil = search->stencil;
    const Fusion *fusion = stencil->fusion;
    int directions = 0, tap = window_only_axis(form, fusion->spatial_count, fusion->axis_count);
    for (Direction direction = 0; direction < DIRECTIONS; direction++) {
        int axis = stencil->axis[direction];
        if (axis < 0 || !form->coef[axis])
            continue;
        WindowAxis reach = {.output = axis, .tap = tap, .taps = 1, .stride = form->coef[axis]};
        if (tap >= 0)
            reach.taps = fusion->axes[tap].extent, reach.dilation = form->coef[tap];
        WindowAxis *known = &search->operand.reach[direction];
        bool same = known->output < 0 || same_reach(known, &reach);
        search->fits &= tap > -2 && reach.stride > 0 && reach.dilation >= 0 && same;
        *known = reach;
        directions++;
    }
    search->fits &= directions <= 1;
    if (!directions)
        search->unpaired_taps |= affine_axes(form) >> fusion->spatial_count << fusion->spatial_count;
}

static void look_at_node(Expr *expr, void *context)
{
    LeafSearch *search = context;
    if (expr->kind == EXPR_INDEX)
        look_at_form(search, &expr->index);
    else if (expr->kind == EXPR_ACCESS)
        for (int d = 0; d < expr->access.rank; d++)
            look_at_form(search, &expr->access.dims[d].index);
    else if (expr->kind == EXPR_GUARD) {
        search->guards++;
        for (int i = 0; i < expr->guard.count; i++)
            look_at_form(search, &expr->guard.bounds[i].index);
    }
}

/* Elements that no output meets are left out: of `2*h + 4*r` every other one. */
static bool normalise(WindowAxis *reach)
{
    if (reach->output < 0)
        return true;
    int64_t common = greatest_common_divisor(reach->stride, reach->dilation);
    reach->stride /= common;
    reach->dilation /= common;
    return reach->stride == 1 || reach->dilation == 1;
}

/* Does each tap belong to one direction only, or to none, in this operand and in those found before? */
static bool taps_agree(const Stencil *stencil, const LeafSearch *search)
{
    const WindowAxis *reach = search->operand.reach;
    uint32_t unpaired_taps = search->unpaired_taps | stencil->unpaired_taps;
    for (Direction direction = 0; direction < DIRECTIONS; direction++) {
        int tap = reach[direction].tap, known = stencil->tap[direction];
        if (known >= 0 && (search->unpaired_taps >> known & 1 || (tap >= 0 && tap != known)))
            return false;
        if (tap >= 0 && (unpaired_taps >> tap & 1 || tap == stencil->tap[1 - direction]))
            return false;
    }
    return reach[DIRECTION_DOWN].tap !=
           reach[DIRECTION_ALONG].tap;   // else neither slides, or one tap moves both
}

static int find_leaf(const Stencil *stencil, const Expr *expr)
{
    for (int i = 0; i < stencil->count; i++)
        if (stencil->operands[i].expr == expr)
            return i;
    return -1;
}

static void add_leaf(Stencil *stencil, const Expr *expr)
{
    const WindowAxis none = {.output = -1, .tap = -1};
    LeafSearch search = {.stencil = stencil, .operand = {.expr = expr, .reach = {none, none}}, .fits = true};
    expr_visit((Expr *)expr, look_at_node, &search);
    search.fits &= search.guards <= 1;   // what stands below two has two values outside
    for (Direction direction = 0; direction < DIRECTIONS; direction++)
        search.fits = search.fits && normalise(&search.operand.reach[direction]);
    if (!search.fits || !taps_agree(stencil, &search) || stencil->count == MAX_WINDOW_OPERANDS ||
        find_leaf(stencil, expr) >= 0)
        return;
    stencil->operands[stencil->count++] = search.operand;
    stencil->unpaired_taps |= search.unpaired_taps;
    for (Direction direction = 0; direction < DIRECTIONS; direction++)
        if (search.operand.reach[direction].tap >= 0)
            stencil->tap[direction] = search.operand.reach[direction].tap;
}

static void find_leaves(Stencil *stencil, const Expr *expr)
{
    if (expr->kind == EXPR_ACCESS || expr->kind == EXPR_GUARD)
        add_leaf(stencil, expr);
    else if (expr->kind == EXPR_CAST)
        find_leaves(stencil, expr->cast.body);
    else if (expr->kind == EXPR_APPLY)
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            find_leaves(stencil, expr->apply.operands[i]);
}

static int64_t axis_extent(const Fusion *fusion, int axis)
{
    return axis < 0 ? 1 : fusion->axes[axis].extent;
}

static int find_filter(const Stencil *stencil, const Expr *expr)
{
    for (int i = 0; i < stencil->filter_count; i++)
        if (stencil->filters[i].expr == expr)
            return i;
    return -1;
}

static void add_filter(Stencil *stencil, const Expr *expr)
{
    const Fusion *fusion = stencil->fusion;
    uint32_t axes = expr_axes(expr), reduced = axes >> fusion->spatial_count << fusion->spatial_count,
             taps = 0;
    Filter filter = {.expr = expr};
    for (Direction direction = 0; direction < DIRECTIONS; direction++) {
        int tap = stencil->tap[direction], output = stencil->axis[direction];
        bool has_tap = tap >= 0 && axes >> tap & 1;
        if (output >= 0 && axes >> output & 1)
            return;
        filter.taps[direction] = has_tap ? axis_extent(fusion, tap) : 1;
        taps |= has_tap ? 1u << tap : 0;
    }
    if (taps && taps == reduced && stencil->filter_count < MAX_WINDOW_OPERANDS)
        stencil->filters[stencil->filter_count++] = filter;
}

static void find_filters(Stencil *stencil, const Expr *expr)
{
    if (find_leaf(stencil, expr) >= 0)
        return;
    if (expr->kind == EXPR_ACCESS)
        add_filter(stencil, expr);
    else if (expr->kind == EXPR_CAST)
        find_filters(stencil, expr->cast.body);
    else if (expr->kind == EXPR_APPLY)
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            find_filters(stencil, expr->apply.operands[i]);
}

Stencil stencil_find(const Fusion *fusion)
{
    Stencil stencil = sides_of(fusion);
    find_leaves(&stencil, fusion->ops[0].body);
    find_filters(&stencil, fusion->ops[0].body);
    return stencil;
}

// ---- how much of it there is ----

int64_t stencil_filter_elements(const Stencil *stencil)
{
    int64_t elements = 0;
    for (int i = 0; i < stencil->filter_count; i++)
        elements += size_product(stencil->filters[i].taps[0], stencil->filters[i].taps[1]);
    return elements;
}

int64_t stencil_extent(const Stencil *stencil, Direction direction)
{
    return axis_extent(stencil->fusion, stencil->axis[direction]);
}

int64_t stencil_taps(const Stencil *stencil, Direction direction)
{
    return axis_extent(stencil->fusion, stencil->tap[direction]);
}

int64_t operand_extent(const WindowOperand *operand, Direction direction, int64_t outputs)
{
    const WindowAxis *reach = &operand->reach[direction];
    return reach->output < 0 ? 1 : window_reach(reach, outputs);
}

bool operand_counts_outputs(const WindowAxis *reach)
{
    return reach->tap < 0 || reach->stride == 1;
}

// ---- device code ----

static const char *const output_name[DIRECTIONS] = {"a", "0"};   // of a thread
static const char *const tap_name[DIRECTIONS] = {"r", "s"};
static const char *const element_name[DIRECTIONS] = {"p", "q"};

static void append_scaled(char *text, size_t size, const char *name, int64_t scale)
{
    size_t length = strlen(text);
    if (scale == 0 || !strcmp(name, "0"))
        return;
    const char *plus = text[length - 1] == '[' ? "" : " + ";
    if (scale == 1)
        snprintf(text + length, size - length, "%s%s", plus, name);
    else
        snprintf(text + length, size - length, "%s%s * %lld", plus, name, (long long)scale);
}

const char *stencil_loaded(void *context, const Expr *expr)
{
    Stencil *stencil = context;
    int index = find_leaf(stencil, expr), filter = find_filter(stencil, expr);
    char *text = stencil->text;
    size_t size = sizeof stencil->text;
    if (filter >= 0) {
        const int64_t *taps = stencil->filters[filter].taps;
        snprintf(text, size, "in.w%d[%s][%s]", filter, taps[DIRECTION_DOWN] > 1 ? "r" : "0",
                 taps[DIRECTION_ALONG] > 1 ? "s" : "0");
        return text;
    }
    if (index < 0)
        return NULL;
    snprintf(text, size, "in.x%d", index);
    for (Direction direction = 0; direction < DIRECTIONS; direction++) {
        const WindowAxis *reach = &stencil->operands[index].reach[direction];
        strncat(text, "[", size - strlen(text) - 1);
        if (reach->output >= 0) {
            append_scaled(text, size, output_name[direction], reach->stride);
            append_scaled(text, size, tap_name[direction], reach->dilation);
        }
        strncat(text, text[strlen(text) - 1] == '[' ? "0]" : "]", size - strlen(text) - 1);
    }
    return text;
}

/* What must hold for outputs past the end, too. */
typedef struct Overshot {
    const Fusion *fusion;
    const int64_t *padded;
    Dim *bounds;
    int count;
} Overshot;

/* Of one access' dimensions those that outputs past the end would lead outside. */
static void add_overshot(Overshot *overshot, const Access *access)
{
    for (int d = 0; d < access->rank; d++) {
        const Dim *dim = &access->dims[d];
        int64_t low = 0, high = 0;
        bool known = affine_range(&dim->index, overshot->padded, overshot->fusion->axis_count, &low, &high);
        bool guarded = false;
        for (int i = 0; i < overshot->count; i++)
            guarded |= overshot->bounds[i].size <= dim->size &&
                       memcmp(&overshot->bounds[i].index, &dim->index, sizeof dim->index) == 0;
        if (!guarded && (!known || low < 0 || high >= dim->size))
            overshot->bounds[overshot->count++] = *dim;
    }
}

static void overshot_visit(Expr *expr, void *context)
{
    if (expr->kind == EXPR_ACCESS)
        add_overshot(context, &expr->access);
}

static void count_bounds(Expr *expr, void *context)
{
    *(int *)context += expr->kind == EXPR_ACCESS  ? expr->access.rank
                       : expr->kind == EXPR_GUARD ? expr->guard.count
                                                  : 0;
}

/* The operand below a guard that holds for every output of the problem. */
static const Expr *guard_overshot(Arena *arena, const Fusion *fusion, const Expr *expr, const int64_t *padded)
{
    int most = 0;
    expr_visit((Expr *)expr, count_bounds, &most);
    Overshot overshot = {fusion, padded, .bounds = NEW_ARRAY(arena, Dim, most)};
    bool is_guard = expr->kind == EXPR_GUARD;
    if (is_guard) {
        memcpy(overshot.bounds, expr->guard.bounds, sizeof(Dim) * (size_t)expr->guard.count);
        overshot.count = expr->guard.count;
    }
    expr_visit(is_guard ? expr->guard.body : (Expr *)expr, overshot_visit, &overshot);
    if (overshot.count == (is_guard ? expr->guard.count : 0))
        return expr;
    return expr_guard(arena, is_guard ? expr->guard.body : (Expr *)expr, overshot.bounds, overshot.count,
                      is_guard ? expr->guard.otherwise : NULL);
}

/* Where an element's position in a guarded dimension may lie outside: below the start if p < low, past the
   end if p > high, whatever output the thread starts at. */
typedef struct Doubt {
    int64_t low, high;
} Doubt;

/* The index is f*down + g*p + c with 0 <= down <= last. False: it is another form. */
static bool find_doubt(const Stencil *stencil, const WindowOperand *operand, const Dim *bound,
                       Direction direction, int64_t last, Doubt *doubt)
{
    const WindowAxis *reach = &operand->reach[direction];
    int axis = stencil->axis[direction];
    if (axis < 0 || reach->output < 0 || !bound->index.coef[axis])
        return false;
    for (int a = 0; a < stencil->fusion->axis_count; a++)
        if (a != axis && a != reach->tap && bound->index.coef[a])
            return false;
    int64_t f = bound->index.coef[axis], c = bound->index.constant;
    int64_t g = operand_counts_outputs(reach) ? f : bound->index.coef[reach->tap];
    *doubt = (Doubt){-floor_div(c, g), floor_div(bound->size - 1 - f * last - c, g)};
    return true;
}

/* `inside(…)`, or what of it is in doubt for some of the elements; nothing if none is. */
static void emit_bound(StrBuf *out, const Stencil *stencil, const WindowOperand *operand, const Dim *bound,
                       const Affine *index, int64_t height, const Scope *scope, bool *any)
{
    Doubt doubt;
    const char *position = affine_text(out->arena, index, scope->axis);
    for (Direction direction = 0; direction < DIRECTIONS; direction++) {
        int64_t outputs = direction == DIRECTION_DOWN ? height : 1;
        int64_t last = round_up(stencil_extent(stencil, direction), outputs) - outputs;
        if (!find_doubt(stencil, operand, bound, direction, last, &doubt))
            continue;
        if (doubt.low > 0) {
            strbuf_printf(out, "%s(%s >= %" PRId64 " || %s >= 0)", *any ? " && " : "", element_name[direction],
                          doubt.low, position);
            *any = true;
        }
        if (doubt.high < operand_extent(operand, direction, outputs) - 1) {
            strbuf_printf(out, "%s(%s <= %" PRId64 " || %s < %" PRId64 ")", *any ? " && " : "", element_name[direction],
                          doubt.high, position, bound->size);
            *any = true;
        }
        return;
    }
    strbuf_printf(out, "%sinside(%s, %" PRId64 ")", *any ? " && " : "", position, bound->size);
    *any = true;
}

/* `h + r` becomes `(down + p)`, `2*h + r` becomes `down * 2 + p`. */
static const Expr *count_elements(Arena *arena, const Stencil *stencil, const WindowOperand *operand,
                                  const Expr *expr, Scope *scope)
{
    Affine forms[MAX_AXES];
    for (int a = 0; a < MAX_AXES; a++)
        forms[a] = affine_axis(a);
    for (Direction direction = 0; direction < DIRECTIONS; direction++) {
        const WindowAxis *reach = &operand->reach[direction];
        int axis = stencil->axis[direction];
        if (reach->output < 0)
            continue;
        bool by_output = operand_counts_outputs(reach);
        if (by_output)
            scope->axis[axis] = arena_printf(arena, "(%s + %s)", scope->axis[axis], element_name[direction]);
        else
            scope->axis[reach->tap] = element_name[direction];
        if (by_output && reach->tap >= 0)
            forms[reach->tap] = affine_constant(0);
    }
    return expr_substitute(arena, expr, forms, MAX_AXES);
}

/* No two windows share an element, so that each load waits for memory. Where they overlap, loads that are all in flight gain nothing:
   75 kernels took 0.998 of the time, 41 of windows that lie apart 0.918 (tuning-log 255). */
static bool lie_apart(const WindowOperand *operand)
{
    bool apart = true;
    for (Direction direction = 0; direction < DIRECTIONS; direction++) {
        const WindowAxis *reach = &operand->reach[direction];
        apart &= reach->output < 0 || llabs(reach->stride) > (reach->taps - 1) * llabs(reach->dilation);
    }
    return apart;
}

void operand_emit(StrBuf *out, const Stencil *stencil, const WindowOperand *operand, int64_t height,
                  Scope *scope)
{
    int64_t padded[MAX_AXES];
    for (int a = 0; a < stencil->fusion->axis_count; a++)
        padded[a] = stencil->fusion->axes[a].extent;
    if (stencil->axis[DIRECTION_DOWN] >= 0)
        padded[stencil->axis[DIRECTION_DOWN]] = round_up(padded[stencil->axis[DIRECTION_DOWN]], height);
    const Expr *guarded = guard_overshot(out->arena, stencil->fusion, operand->expr, padded);
    const Expr *element = count_elements(out->arena, stencil, operand, guarded, scope);
    if (guarded->kind != EXPR_GUARD) {
        emit_expr(out, scope, element);
        return;
    }
    StrBuf condition = strbuf_new(out->arena);
    bool any = false;
    for (int i = 0; i < guarded->guard.count; i++)
        emit_bound(&condition, stencil, operand, &guarded->guard.bounds[i], &element->guard.bounds[i].index,
                   height, scope, &any);
    if (any && lie_apart(operand) && emit_load_or(out, scope, &element->guard, condition.text))
        return;
    if (any)
        strbuf_printf(out, "%s ? ", condition.text);
    emit_expr(out, scope, element->guard.body);
    if (any) {
        strbuf_puts(out, " : ");
        emit_expr(out, scope, element->guard.otherwise);
    }
}

static uint32_t axes_beside_leaves(const Stencil *stencil, const Expr *expr)
{
    uint32_t axes = 0;
    if (find_leaf(stencil, expr) >= 0)
        return 0;
    if (expr->kind == EXPR_CAST)
        return axes_beside_leaves(stencil, expr->cast.body);
    if (expr->kind != EXPR_APPLY)
        return expr_axes(expr);
    for (int i = 0; i < op_info[expr->apply.op].operands; i++)
        axes |= axes_beside_leaves(stencil, expr->apply.operands[i]);
    return axes;
}

const WindowAxis *stencil_rows(const Stencil *stencil)
{
    int tap = stencil->tap[DIRECTION_DOWN];
    const WindowAxis *first = &stencil->operands[0].reach[DIRECTION_DOWN];
    for (int i = 0; i < stencil->count; i++) {
        const WindowAxis *reach = &stencil->operands[i].reach[DIRECTION_DOWN];
        if (reach->tap != tap || !same_reach(reach, first))
            return NULL;
    }
    return tap >= 0 ? first : NULL;
}

static bool stands_beside_operands(const Stencil *stencil, int axis)
{
    return axis >= 0 && axes_beside_leaves(stencil, stencil->fusion->ops[0].body) >> axis & 1;
}

bool stencil_same_terms(const Stencil *stencil)
{
    return !stands_beside_operands(stencil, stencil->tap[DIRECTION_DOWN]) && stencil_is_safe(stencil);
}

bool stencil_is_safe(const Stencil *stencil)
{
    return !stands_beside_operands(stencil, stencil->axis[DIRECTION_DOWN]);
}
