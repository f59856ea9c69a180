#include "codegen/family/window/stencil.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

// ---- which parts of a term slide ----

static Slides sides_of(const Fusion *fusion)
{
    Slides slides = {.fusion = fusion, .tap = {-1, -1}};
    slides.axis[SIDE_ALONG] = fusion->spatial_count - 1;
    slides.axis[SIDE_DOWN] = fusion->spatial_count - 2;   // -1 if there is only one
    return slides;
}

Slides slides_none(const Fusion *fusion) { return sides_of(fusion); }

typedef struct LeafSearch {
    const Slides *slides;
    Leaf leaf;
    uint32_t loose;   // taps that stand without an output's position beside them
    int guards;
    bool fits;
} LeafSearch;

/* The only reduction axis of the form; -1: none, -2: several. */
static int only_tap(const Fusion *fusion, const Affine *form)
{
    int tap = -1;
    for (int a = fusion->spatial_count; a < fusion->axis_count; a++)
        if (form->coef[a])
            tap = tap == -1 ? a : -2;
    return tap;
}

static void look_at_form(LeafSearch *search, const Affine *form)
{
    const Slides *slides = search->slides;
    int sides = 0, tap = only_tap(slides->fusion, form);
    for (Side side = 0; side < SIDES; side++) {
        int axis = slides->axis[side];
        if (axis < 0 || !form->coef[axis])
            continue;
        Slide slide = {.moves = true, .tap = tap, .step = form->coef[axis]};
        slide.tap_step = tap >= 0 ? form->coef[tap] : 0;
        Slide *known = &search->leaf.slide[side];
        bool same = known->tap == slide.tap && known->step == slide.step && known->tap_step == slide.tap_step;
        search->fits &= tap > -2 && slide.step > 0 && slide.tap_step >= 0 && (!known->moves || same);
        *known = slide;
        sides++;
    }
    search->fits &= sides <= 1;
    for (int a = slides->fusion->spatial_count; a < slides->fusion->axis_count && !sides; a++)
        search->loose |= form->coef[a] ? 1u << a : 0;
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

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Elements that no output meets are left out: of `2*h + 4*r` every other one. */
static bool normalise(Slide *slide)
{
    if (!slide->moves)
        return true;
    int64_t common = greatest_common_divisor(slide->step, slide->tap_step);
    slide->step /= common;
    slide->tap_step /= common;
    return slide->step == 1 || slide->tap_step == 1;
}

/* Does each tap belong to one side only, or to none, in this leaf and in those found before? */
static bool taps_agree(const Slides *slides, const LeafSearch *search)
{
    const Slide *slide = search->leaf.slide;
    uint32_t loose = search->loose | slides->loose;
    for (Side side = 0; side < SIDES; side++) {
        int tap = slide[side].tap, known = slides->tap[side];
        if (known >= 0 && (search->loose >> known & 1 || (tap >= 0 && tap != known)))
            return false;
        if (tap >= 0 && (loose >> tap & 1 || tap == slides->tap[1 - side]))
            return false;
    }
    return slide[SIDE_DOWN].tap != slide[SIDE_ALONG].tap;   // else neither slides, or one tap moves both
}

static int find_leaf(const Slides *slides, const Expr *expr)
{
    for (int i = 0; i < slides->count; i++)
        if (slides->leaves[i].expr == expr)
            return i;
    return -1;
}

static void add_leaf(Slides *slides, const Expr *expr)
{
    LeafSearch search = {
        .slides = slides, .leaf = {.expr = expr, .slide = {{.tap = -1}, {.tap = -1}}}, .fits = true};
    expr_visit((Expr *)expr, look_at_node, &search);
    search.fits &= search.guards <= 1;   // what stands below two has two values outside
    for (Side side = 0; side < SIDES; side++)
        search.fits = search.fits && normalise(&search.leaf.slide[side]);
    if (!search.fits || !taps_agree(slides, &search) || slides->count == MAX_LEAVES ||
        find_leaf(slides, expr) >= 0)
        return;
    slides->leaves[slides->count++] = search.leaf;
    slides->loose |= search.loose;
    for (Side side = 0; side < SIDES; side++)
        if (search.leaf.slide[side].tap >= 0)
            slides->tap[side] = search.leaf.slide[side].tap;
}

static void find_leaves(Slides *slides, const Expr *expr)
{
    if (expr->kind == EXPR_ACCESS || expr->kind == EXPR_GUARD)
        add_leaf(slides, expr);
    else if (expr->kind == EXPR_CAST)
        find_leaves(slides, expr->cast.body);
    else if (expr->kind == EXPR_APPLY)
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            find_leaves(slides, expr->apply.operands[i]);
}

Slides slides_find(const Fusion *fusion)
{
    Slides slides = sides_of(fusion);
    find_leaves(&slides, fusion->ops[0].body);
    return slides;
}

// ---- how much of it there is ----

static int64_t axis_extent(const Fusion *fusion, int axis)
{
    return axis < 0 ? 1 : fusion->axes[axis].extent;
}

int64_t slides_extent(const Slides *slides, Side side)
{
    return axis_extent(slides->fusion, slides->axis[side]);
}

int64_t slides_taps(const Slides *slides, Side side)
{
    return axis_extent(slides->fusion, slides->tap[side]);
}

int64_t leaf_extent(const Slides *slides, const Leaf *leaf, Side side, int64_t outputs)
{
    const Slide *slide = &leaf->slide[side];
    if (!slide->moves)
        return 1;
    return slide->step * (outputs - 1) + slide->tap_step * (axis_extent(slides->fusion, slide->tap) - 1) + 1;
}

// ---- device code ----

static const char *const output_name[SIDES] = {"a", "0"};   // a thread's outputs lie down one column
static const char *const tap_name[SIDES] = {"r", "s"};
static const char *const element_name[SIDES] = {"p", "q"};

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

const char *slides_loaded(void *context, const Expr *expr)
{
    Slides *slides = context;
    int index = find_leaf(slides, expr);
    if (index < 0)
        return NULL;
    char *text = slides->text;
    size_t size = sizeof slides->text;
    snprintf(text, size, "in.x%d", index);
    for (Side side = 0; side < SIDES; side++) {
        const Slide *slide = &slides->leaves[index].slide[side];
        strncat(text, "[", size - strlen(text) - 1);
        if (slide->moves) {
            append_scaled(text, size, output_name[side], slide->step);
            append_scaled(text, size, tap_name[side], slide->tap_step);
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

/* The leaf below a guard that holds for every output of the problem. */
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
    Expr *guarded = NEW(arena, Expr);
    *guarded = (Expr){.kind = EXPR_GUARD, .type = expr->type, .loc = expr->loc};
    guarded->guard = (Guard){overshot.count, overshot.bounds, is_guard ? expr->guard.body : (Expr *)expr,
                             is_guard ? expr->guard.otherwise : expr_constant(arena, expr->type, 0)};
    return guarded;
}

/* Where an element's position in a guarded dimension may lie outside: below the start if p < low, past the end if
   p > high, whatever output the thread starts at. */
typedef struct Doubt {
    int64_t low, high;
} Doubt;

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* The index is f*down + g*p + c with 0 <= down <= last. False: it is another form. */
static bool find_doubt(const Slides *slides, const Leaf *leaf, const Dim *bound, Side side, int64_t last,
                       Doubt *doubt)
{
    const Slide *slide = &leaf->slide[side];
    int axis = slides->axis[side];
    if (axis < 0 || !slide->moves || !bound->index.coef[axis])
        return false;
    for (int a = 0; a < slides->fusion->axis_count; a++)
        if (a != axis && a != slide->tap && bound->index.coef[a])
            return false;
    int64_t f = bound->index.coef[axis], c = bound->index.constant;
    int64_t g = slide->tap < 0 || slide->step == 1 ? f : bound->index.coef[slide->tap];
    *doubt = (Doubt){-floor_div(c, g), floor_div(bound->size - 1 - f * last - c, g)};
    return true;
}

/* `inside(…)`, or what of it is in doubt for some of the elements; nothing if none is. */
static void emit_bound(StrBuf *out, const Slides *slides, const Leaf *leaf, const Dim *bound,
                       const Affine *index, int64_t height, const Scope *scope, bool *any)
{
    Doubt doubt;
    for (Side side = 0; side < SIDES; side++) {
        int64_t outputs = side == SIDE_DOWN ? height : 1;
        int64_t last = round_up(slides_extent(slides, side), outputs) - outputs;
        if (!find_doubt(slides, leaf, bound, side, last, &doubt))
            continue;
        StrBuf position = strbuf_new(out->arena);
        emit_affine(&position, index, scope->axis);
        if (doubt.low > 0) {
            strbuf_printf(out, "%s(%s >= %" PRId64 " || %s >= 0)", *any ? " && " : "", element_name[side],
                          doubt.low, position.text);
            *any = true;
        }
        if (doubt.high < leaf_extent(slides, leaf, side, outputs) - 1) {
            strbuf_printf(out, "%s(%s <= %" PRId64 " || %s < %" PRId64 ")", *any ? " && " : "",
                          element_name[side], doubt.high, position.text, bound->size);
            *any = true;
        }
        return;
    }
    strbuf_puts(out, *any ? " && inside(" : "inside(");
    emit_affine(out, index, scope->axis);
    strbuf_printf(out, ", %" PRId64 ")", bound->size);
    *any = true;
}

/* `h + r` becomes `(down + p)`, `2*h + r` becomes `down * 2 + p`. */
static const Expr *count_elements(Arena *arena, const Slides *slides, const Leaf *leaf, const Expr *expr,
                                  Scope *scope)
{
    Affine forms[MAX_AXES];
    for (int a = 0; a < MAX_AXES; a++)
        forms[a] = affine_axis(a);
    for (Side side = 0; side < SIDES; side++) {
        const Slide *slide = &leaf->slide[side];
        int axis = slides->axis[side];
        if (!slide->moves)
            continue;
        bool by_output = slide->tap < 0 || slide->step == 1;
        if (by_output)
            scope->axis[axis] = arena_printf(arena, "(%s + %s)", scope->axis[axis], element_name[side]);
        else
            scope->axis[slide->tap] = element_name[side];
        if (by_output && slide->tap >= 0)
            forms[slide->tap] = affine_constant(0);
    }
    return expr_substitute(arena, expr, forms, MAX_AXES);
}

void leaf_emit(StrBuf *out, const Slides *slides, const Leaf *leaf, int64_t height, Scope *scope)
{
    int64_t padded[MAX_AXES];
    for (int a = 0; a < slides->fusion->axis_count; a++)
        padded[a] = slides->fusion->axes[a].extent;
    if (slides->axis[SIDE_DOWN] >= 0)
        padded[slides->axis[SIDE_DOWN]] = round_up(padded[slides->axis[SIDE_DOWN]], height);
    const Expr *guarded = guard_overshot(out->arena, slides->fusion, leaf->expr, padded);
    const Expr *element = count_elements(out->arena, slides, leaf, guarded, scope);
    if (guarded->kind != EXPR_GUARD) {
        emit_expr(out, scope, element);
        return;
    }
    StrBuf condition = strbuf_new(out->arena);
    bool any = false;
    for (int i = 0; i < guarded->guard.count; i++)
        emit_bound(&condition, slides, leaf, &guarded->guard.bounds[i], &element->guard.bounds[i].index,
                   height, scope, &any);
    if (any)
        strbuf_printf(out, "%s ? ", condition.text);
    emit_expr(out, scope, element->guard.body);
    if (any) {
        strbuf_puts(out, " : ");
        emit_expr(out, scope, element->guard.otherwise);
    }
}

static uint32_t axes_beside_leaves(const Slides *slides, const Expr *expr)
{
    uint32_t axes = 0;
    if (find_leaf(slides, expr) >= 0)
        return 0;
    if (expr->kind == EXPR_CAST)
        return axes_beside_leaves(slides, expr->cast.body);
    if (expr->kind != EXPR_APPLY)
        return expr_axes(expr);
    for (int i = 0; i < op_info[expr->apply.op].operands; i++)
        axes |= axes_beside_leaves(slides, expr->apply.operands[i]);
    return axes;
}

const Slide *slides_rows(const Slides *slides)
{
    int tap = slides->tap[SIDE_DOWN];
    const Slide *first = &slides->leaves[0].slide[SIDE_DOWN];
    for (int i = 0; i < slides->count; i++) {
        const Slide *slide = &slides->leaves[i].slide[SIDE_DOWN];
        if (slide->tap != tap || slide->step != first->step || slide->tap_step != first->tap_step)
            return NULL;
    }
    return tap >= 0 ? first : NULL;
}

static bool stands_beside_leaves(const Slides *slides, int axis)
{
    return axis >= 0 && axes_beside_leaves(slides, slides->fusion->ops[0].body) >> axis & 1;
}

bool slides_same_terms(const Slides *slides)
{
    return !stands_beside_leaves(slides, slides->tap[SIDE_DOWN]) && slides_are_safe(slides);
}

bool slides_are_safe(const Slides *slides) { return !stands_beside_leaves(slides, slides->axis[SIDE_DOWN]); }
