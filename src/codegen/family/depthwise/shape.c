#include "codegen/family/depthwise/shape.h"

#include <stdlib.h>

#include "base/checked.h"

enum { MAX_POSITION = 1 << 30 };   // along the image: an int in the kernel

const Access *factor_access(const Expr *factor)
{
    return factor->kind == EXPR_GUARD ? &factor->guard.body->access : &factor->access;
}

/* An access of real elements, or one below a guard that gives zeros. */
static bool is_factor(const Expr *expr)
{
    if (expr->kind == EXPR_GUARD) {
        if (!expr_is_zero(expr->guard.otherwise))
            return false;
        expr = expr->guard.body;
    }
    return expr->kind == EXPR_ACCESS && dtype_info[expr->access.tensor->dtype].is_real;
}

// ---- image axes ----

/* Is the dimension guarded? A guard leaves nothing in doubt only if it is the dimension's own. */
static bool is_guarded(const Expr *factor, const Dim *dim)
{
    for (int i = 0; factor->kind == EXPR_GUARD && i < factor->guard.count; i++)
        if (affine_equal(&factor->guard.bounds[i].index, &dim->index))
            return true;
    return false;
}

/* Turns the input, then the taps, so that both go forwards. */
static void turn_forwards(WindowAxis *axis, Depthwise *shape)
{
    if (axis->stride < 0) {
        axis->input_turned = true;
        axis->stride = -axis->stride, axis->dilation = -axis->dilation;
        axis->pad = 1 - axis->inputs - axis->pad;
        shape->x_origin += (axis->inputs - 1) * axis->x_stride;
        axis->x_stride = -axis->x_stride;
    }
    if (axis->dilation < 0) {
        axis->taps_turned = true;
        axis->pad -= (axis->taps - 1) * axis->dilation;
        axis->dilation = -axis->dilation;
        shape->w_origin += (axis->taps - 1) * axis->w_stride;
        axis->w_stride = -axis->w_stride;
    }
}

static bool add_image_axis(const Fusion *fusion, Depthwise *shape, const Dim *dim, int64_t stride)
{
    WindowAxis *axis = &shape->image[shape->image_count];
    if (shape->image_count == MAX_IMAGE_AXES || !window_find(fusion, dim, axis))
        return false;
    axis->x_stride = stride;
    axis->w_stride = axis->tap < 0 ? 0 : shape->w_offset.coef[axis->tap];
    turn_forwards(axis, shape);
    shape->image_count++;
    return true;
}

/* A dimension of the image: a tap moves it beside an output's position, or it is padded. A position that
   moves the filter, too, is a channel: of images in four parts `x[16*part + n, …]` meets `d[16*part + n,
   …]`. */
static bool is_image_dim(const Fusion *fusion, const Depthwise *shape, const Dim *dim)
{
    int output = window_only_axis(&dim->index, 0, fusion->spatial_count);
    bool has_tap = window_only_axis(&dim->index, fusion->spatial_count, fusion->axis_count) != -1;
    bool in_w = output >= 0 && expr_axes(shape->w) >> output & 1;
    return (output != -1 && has_tap && !in_w) || is_guarded(shape->x, dim);
}

/* Input 0 and tap 0 are where the offset of everything else leads: the dimensions' constants count no
   more. */
static bool find_image(const Fusion *fusion, Depthwise *shape)
{
    const Access *access = factor_access(shape->x);
    shape->x_origin = shape->x_offset.constant;
    shape->w_origin = shape->w_offset.constant;
    int64_t stride = tensor_elements(access->tensor);
    for (int d = 0; d < access->rank; d++) {
        const Dim *dim = &access->dims[d];
        stride /= dim->size;
        if (!is_image_dim(fusion, shape, dim))
            continue;
        shape->x_origin -= dim->index.constant * stride;
        if (!add_image_axis(fusion, shape, dim, stride))
            return false;
    }
    return shape->image_count > 0;
}

static void sort_image(Depthwise *shape)
{
    for (int i = 1; i < shape->image_count; i++)
        for (int j = i; j > 0 && shape->image[j].output < shape->image[j - 1].output; j--) {
            WindowAxis axis = shape->image[j];
            shape->image[j] = shape->image[j - 1];
            shape->image[j - 1] = axis;
        }
}

// ---- the other axes ----

static bool is_image_axis(const Depthwise *shape, int axis)
{
    for (int i = 0; i < shape->image_count; i++)
        if (shape->image[i].output == axis || shape->image[i].tap == axis)
            return true;
    return false;
}

/* An output's position moves the image in one dimension only and never the filter; a tap moves both. */
static bool image_axes_are_apart(const Fusion *fusion, const Depthwise *shape)
{
    const Access *x = factor_access(shape->x);
    uint32_t in_w = expr_axes(shape->w), seen = 0;
    for (int i = 0; i < shape->image_count; i++) {
        const WindowAxis *axis = &shape->image[i];
        uint32_t both = 1u << axis->output | (axis->tap >= 0 ? 1u << axis->tap : 0);
        if (seen & both || in_w >> axis->output & 1 || (axis->tap >= 0 && !(in_w >> axis->tap & 1)))
            return false;
        seen |= both;
    }
    for (int d = 0; d < x->rank; d++)
        if (!is_image_dim(fusion, shape, &x->dims[d]) && affine_axes(&x->dims[d].index) & seen)
            return false;
    return true;
}

static bool find_groups(const Fusion *fusion, const FusedOp *op, Depthwise *shape)
{
    AxisGroup *groups[] = {&shape->batch, &shape->channel, &shape->multiplier, &shape->summed};
    for (int g = 0; g < 4; g++)
        *groups[g] = (AxisGroup){.extent = 1};
    uint32_t in_x = expr_axes(shape->x), in_w = expr_axes(shape->w);
    for (int a = 0; a < fusion->axis_count; a++) {
        if (is_image_axis(shape, a) || !((op->spatial | op->reduced) >> a & 1))
            continue;
        bool x = in_x >> a & 1, w = in_w >> a & 1, reduced = a >= fusion->spatial_count;
        if (reduced ? !(x && w) : !(x || w))
            return false;
        axis_group_add(reduced ? &shape->summed
                       : !w    ? &shape->batch
                       : x     ? &shape->channel
                               : &shape->multiplier,
                       fusion, a);
    }
    return true;
}

static bool find_roles(const Fusion *fusion, const FusedOp *op, const Expr *x, const Expr *w,
                       Depthwise *shape)
{
    *shape = (Depthwise){
        .x = x,
        .w = w,
        .type = op->body->type,
        .x_offset = access_offset(factor_access(x)),
        .w_offset = access_offset(factor_access(w)),
    };
    bool guarded = x->kind == EXPR_GUARD;   // by what lies outside of the image, and nothing else
    if ((guarded && !window_guards(&x->guard, factor_access(x))) || !find_image(fusion, shape))
        return false;
    sort_image(shape);
    return image_axes_are_apart(fusion, shape) && find_groups(fusion, op, shape);
}

static bool some_taps(const Depthwise *shape)
{
    for (int i = 0; i < shape->image_count; i++)
        if (shape->image[i].tap >= 0)
            return true;
    return false;
}

/* Where either factor could be the image (a gradient of a strided filter writes `x[h - r] * w[2*r + a]`), it
   is the larger. */
bool depthwise_find_sum(const Fusion *fusion, const FusedOp *op, Depthwise *shape)
{
    if (op->reduce != REDUCE_SUM || op->body->kind != EXPR_APPLY || op->body->apply.op != OP_MUL)
        return false;
    const Expr *a = op->body->apply.operands[0], *b = op->body->apply.operands[1];
    if (!is_factor(a) || !is_factor(b))
        return false;
    bool b_is_larger = tensor_elements(factor_access(b)->tensor) > tensor_elements(factor_access(a)->tensor);
    const Expr *x = b_is_larger ? b : a, *w = b_is_larger ? a : b;
    return (find_roles(fusion, op, x, w, shape) && some_taps(shape)) ||
           (find_roles(fusion, op, w, x, shape) && some_taps(shape));
}

bool depthwise_flatten(const Fusion *fusion, const Depthwise *shape, Depthwise *flat)
{
    const WindowAxis *depth = &shape->image[0];
    *flat = *shape;
    if (shape->image_count < MAX_IMAGE_AXES)
        return true;
    if (depth->input_turned || depth->tap < 0)
        return false;
    const Access *x = factor_access(shape->x);
    for (int d = 0; d < x->rank; d++)
        if (x->dims[d].index.coef[depth->output])
            flat->deep = &x->dims[d];
    flat->x_origin += flat->deep->index.constant * depth->x_stride;
    flat->w_origin += depth->taps_turned ? (depth->taps - 1) * depth->w_stride : 0;
    for (int i = 1; i < shape->image_count; i++)
        flat->image[i - 1] = shape->image[i];
    flat->image_count--;
    return find_groups(fusion, &fusion->ops[0], flat) && flat->summed.axes[0] == depth->tap;
}

AxisGroup depthwise_channels(const Fusion *fusion, const Depthwise *shape)
{
    AxisGroup channels = {.extent = 1};
    for (int i = shape->deep ? 1 : 0; i < shape->summed.count; i++)
        axis_group_add(&channels, fusion, shape->summed.axes[i]);
    return channels;
}

bool depthwise_find(const Fusion *fusion, Depthwise *shape)
{
    return fusion_is_reduction(fusion) && depthwise_find_sum(fusion, &fusion->ops[0], shape);
}

static bool is_short(const WindowAxis *axis)
{
    return axis->inputs < MAX_POSITION && axis->outputs < MAX_POSITION &&
           window_reach(axis, axis->outputs) < MAX_POSITION && llabs(axis->pad) < MAX_POSITION;
}

bool depthwise_is_direct(const Depthwise *shape)
{
    if (shape->summed.extent > 1 || shape->image_count > 2)
        return false;
    for (int i = 0; i < shape->image_count; i++)
        if (!is_short(&shape->image[i]))
            return false;
    return true;
}

// ---- where it lies ----

Affine depthwise_form(const Affine *offset, int64_t origin, const AxisGroup *one, const AxisGroup *other)
{
    Affine form = {.constant = origin};
    uint32_t axes = axis_group_mask(one) | axis_group_mask(other);
    for (int a = 0; a < MAX_AXES; a++)
        form.coef[a] = axes >> a & 1 ? offset->coef[a] : 0;
    return form;
}

int64_t depthwise_alignment(const Affine *form, int except)
{
    int64_t all = form->constant;
    for (int a = 0; a < MAX_AXES; a++)
        all |= a == except ? 0 : form->coef[a];
    return all;
}

// ---- how much of it there is ----

uint32_t depthwise_image_axes(const Depthwise *shape)
{
    uint32_t axes = 0;
    for (int i = 0; i < shape->image_count; i++)
        axes |= 1u << shape->image[i].output | (shape->image[i].tap >= 0 ? 1u << shape->image[i].tap : 0);
    return axes;
}

int depthwise_are_together(const Fusion *fusion, const Affine *offset, int axis, int most)
{
    for (int a = 0; a < MAX_AXES; a++)
        while (most > 1 && (a == axis ? offset->coef[a] != 1 || fusion->axes[a].extent % most : offset->coef[a] % most))
            most /= 2;
    while (most > 1 && offset->constant % most)
        most /= 2;
    return most;
}

int depthwise_stores_together(const Fusion *fusion, int axis, int most)
{
    for (int i = 0; i < fusion->op_count; i++) {
        Affine offset = access_offset(&fusion->ops[i].store);
        if (fusion->ops[i].stored)
            most = depthwise_are_together(fusion, &offset, axis, most);
    }
    return most;
}

int64_t strip_accesses(int64_t offset, int64_t piece, int64_t reach)
{
    int64_t accesses = 0, columns;
    for (int64_t column = 0; column < reach; column += columns, accesses++)
        for (columns = piece; (offset + column) % columns != 0 || column + columns > reach;)
            columns /= 2;
    return accesses;
}

enum { EIGHT_PLANES = 8 };

/* Counted in SASS. */
double planes_instructions(int64_t vector, int64_t pad, int64_t columns)
{
    enum { FIND = 38, OF_COLUMN = 8 };
    int64_t lead = (vector - pad % vector) % vector;
    double read = (double)round_up(lead + columns, vector) / (double)columns;
    return (double)(FIND + OF_COLUMN * vector) / (double)(EIGHT_PLANES * vector) * read;
}

int planes_in_flight(int64_t vector) { return EIGHT_PLANES * (int)smaller(EIGHT_PLANES, 4 * vector); }
