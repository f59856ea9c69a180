#include "ir/fuse_axes.h"

#include <string.h>

#include "base/checked.h"

/* An access and its dimensions while they are rewritten. */
typedef struct View {
    Access *access;
    Dim *dims;
} View;

// Every list of dimensions of the kernel, and every form that uses axes in another way (guards, index
// values).
typedef struct Forms {
    Arena *arena;
    View *views;
    int view_count;
    Affine **others;
    int other_count;
} Forms;

/* Other kernels, and other ops of this one, may share the list. */
static Dim *own_dims(Arena *arena, const Dim *dims, int count)
{
    Dim *own = NEW_ARRAY(arena, Dim, count);
    if (count)
        memcpy(own, dims, sizeof(Dim) * (size_t)count);
    return own;
}

static void add_view(Forms *forms, Access *access)
{
    Dim *dims = own_dims(forms->arena, access->dims, access->rank);
    access->dims = dims;
    forms->views[forms->view_count++] = (View){access, dims};
}

static void forms_visit(Expr *expr, void *context)
{
    Forms *forms = context;
    if (expr->kind == EXPR_ACCESS) {
        add_view(forms, &expr->access);
    } else if (expr->kind == EXPR_FETCH) {
        add_view(forms, &expr->fetch.access);
    } else if (expr->kind == EXPR_INDEX) {
        forms->others[forms->other_count++] = &expr->index;
    } else if (expr->kind == EXPR_GUARD) {
        Dim *bounds = own_dims(forms->arena, expr->guard.bounds, expr->guard.count);
        expr->guard.bounds = bounds;
        for (int i = 0; i < expr->guard.count; i++)
            forms->others[forms->other_count++] = &bounds[i].index;
    }
}

static void count_visit(Expr *expr, void *context)
{
    *(int *)context += expr->kind == EXPR_GUARD ? expr->guard.count : 1;
}

/* Expressions may share nodes with other kernels: copy them before they are rewritten. */
static Forms forms_of(Arena *arena, Fusion *fusion)
{
    int most = fusion->op_count;
    for (int i = 0; i < fusion->op_count; i++) {
        fusion->ops[i].body = expr_copy(arena, fusion->ops[i].body);
        expr_visit(fusion->ops[i].body, count_visit, &most);
    }
    Forms forms = {arena, .views = NEW_ARRAY(arena, View, most), .others = NEW_ARRAY(arena, Affine *, most)};
    for (int i = 0; i < fusion->op_count; i++) {
        add_view(&forms, &fusion->ops[i].store);
        expr_visit(fusion->ops[i].body, forms_visit, &forms);
    }
    return forms;
}

static void form_remove_axis(Affine *form, int axis)
{
    for (int a = axis; a + 1 < MAX_AXES; a++)
        form->coef[a] = form->coef[a + 1];
    form->coef[MAX_AXES - 1] = 0;
}

static uint32_t mask_remove_axis(uint32_t mask, int axis)
{
    uint32_t below = (1u << axis) - 1;
    return (mask & below) | ((mask >> 1) & ~below);
}

static void remove_axis(Fusion *fusion, Forms *forms, int axis)
{
    for (int i = 0; i < forms->view_count; i++)
        for (int d = 0; d < forms->views[i].access->rank; d++)
            form_remove_axis(&forms->views[i].dims[d].index, axis);
    for (int i = 0; i < forms->other_count; i++)
        form_remove_axis(forms->others[i], axis);
    for (int i = 0; i < fusion->op_count; i++) {
        fusion->ops[i].spatial = mask_remove_axis(fusion->ops[i].spatial, axis);
        fusion->ops[i].reduced = mask_remove_axis(fusion->ops[i].reduced, axis);
    }
    fusion->spatial_count -= axis < fusion->spatial_count;
    fusion->axis_count--;
    for (int a = axis; a < fusion->axis_count; a++)
        fusion->axes[a] = fusion->axes[a + 1];
}

static void drop_unit_dims(View *view)
{
    int kept = 0;
    for (int d = 0; d < view->access->rank; d++)
        if (view->dims[d].size != 1 || !affine_is_constant(&view->dims[d].index) ||
            view->dims[d].index.constant)
            view->dims[kept++] = view->dims[d];
    view->access->rank = kept;
}

/* But those that chains of reductions walk (ir/stream.h). */
static void drop_unit_axes(Fusion *fusion, Forms *forms)
{
    for (int a = fusion->axis_count - 1; a >= 0; a--)
        if (fusion->axes[a].extent == 1 && (!fusion->streams || a < fusion->spatial_count))
            remove_axis(fusion, forms, a);
    for (int i = 0; i < forms->view_count; i++)
        drop_unit_dims(&forms->views[i]);
    for (int i = 0; i < fusion->op_count; i++)
        if (!fusion->ops[i].reduced)
            fusion->ops[i].reduce = REDUCE_NONE;   // of one term: the term
}

/* Where dims d, d+1 of the access are just `outer`, `inner` and hold inner's whole extent: d. Neither axis
   anywhere: -1. Anything else: -2, they cannot be merged. */
static int pair_position(const Access *access, int outer, int inner, int64_t inner_extent)
{
    int found = -1, uses = 0;
    for (int d = 0; d < access->rank; d++) {
        const Affine *index = &access->dims[d].index;
        uses += (index->coef[outer] != 0) + (index->coef[inner] != 0);
        if (d + 1 < access->rank && affine_single_axis(index) == outer &&
            affine_single_axis(&access->dims[d + 1].index) == inner &&
            access->dims[d + 1].size == inner_extent)
            found = d;
    }
    if (uses == 0)
        return -1;
    return found >= 0 && uses == 2 ? found : -2;
}

static bool may_merge(const Fusion *fusion, const Forms *forms, int outer, int inner)
{
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if ((op->spatial >> outer & 1) != (op->spatial >> inner & 1) ||
            (op->reduced >> outer & 1) != (op->reduced >> inner & 1))
            return false;
    }
    for (int i = 0; i < forms->other_count; i++)
        if (forms->others[i]->coef[outer] || forms->others[i]->coef[inner])
            return false;
    for (int i = 0; i < forms->view_count; i++)
        if (pair_position(forms->views[i].access, outer, inner, fusion->axes[inner].extent) == -2)
            return false;
    return true;
}

static void merge(Arena *arena, Fusion *fusion, Forms *forms, int outer, int inner)
{
    Axis *axis = &fusion->axes[outer];
    int64_t inner_extent = fusion->axes[inner].extent;
    for (int i = 0; i < forms->view_count; i++) {
        const View *view = &forms->views[i];
        int d = pair_position(view->access, outer, inner, inner_extent);
        if (d < 0)
            continue;
        view->dims[d].size = fitting_mul(view->dims[d].size, inner_extent);
        for (int e = d + 1; e + 1 < view->access->rank; e++)
            view->dims[e] = view->dims[e + 1];
        view->access->rank--;
    }
    axis->name = arena_printf(arena, "%s*%s", axis->name, fusion->axes[inner].name);
    axis->extent = fitting_mul(axis->extent, inner_extent);
    remove_axis(fusion, forms, inner);
}

static bool merge_one_pair(Arena *arena, Fusion *fusion, Forms *forms)
{
    for (int outer = 0; outer < fusion->axis_count; outer++)
        for (int inner = 0; inner < fusion->axis_count; inner++)
            if (inner != outer && may_merge(fusion, forms, outer, inner)) {
                merge(arena, fusion, forms, outer, inner);
                return true;
            }
    return false;
}

void fuse_drop_unit_axes(Arena *arena, Fusion *fusion)
{
    Forms forms = forms_of(arena, fusion);
    drop_unit_axes(fusion, &forms);
}

void fuse_axes(Arena *arena, Fusion *fusion)
{
    Forms forms = forms_of(arena, fusion);
    drop_unit_axes(fusion, &forms);
    while (merge_one_pair(arena, fusion, &forms))
        ;
}
