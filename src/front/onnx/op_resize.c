// Resizing: which elements each one of the result is made of is known when the model is imported.
//
// Along an axis an element is a sum of elements of the input with coefficients; both are tables. Nearest
// elements need only places, which often are a plain quotient or multiple.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "front/onnx/map.h"
#include "front/onnx/operators.h"

enum { MOST_TAPS = 1 << 24 };   // of a table

/* One axis that is resized. */
typedef struct ResizeAxis {
    int64_t in, out;
    double scale, first, last;   // `first` and `last`: the region of interest
    int taps;
    int32_t *places;   // [out][taps], within the axis
    double *weights;
    bool *outside;   // [out]: beyond the tensor, for tf_crop_and_resize
    bool reaches_out;
} ResizeAxis;

typedef struct Resize {
    const char *mode, *coordinates, *nearest;
    bool smooths, excludes;
    double cubic;
    ResizeAxis axes[MAX_RANK];
} Resize;

// ---- sizes ----

static const GraphValue *known_reals(const Map *m, int input)
{
    const GraphValue *value = maybe(m, input);
    if (!value || (value->data && shape_count(&value->shape) == 0))
        return NULL;
    if (!value->data)
        need_ints(m, input);   // refuses, and says how to bind it
    return value;
}

static void set_scale(const Map *m, ResizeAxis *axis, double scale)
{
    double size = floor((double)((float)scale * (float)axis->in));
    if (!(scale > 0) || !(size >= 1) || size > (double)(1 << 30))
        refuse(m, "a scale of %g of %" PRId64 " elements", scale, axis->in);
    axis->scale = scale;
    axis->out = (int64_t)size;
}

/* The axes that scales and sizes belong to; -1 as count: all. */
static int axis_at(const Map *m, Ints axes, int index, int rank)
{
    return axes.count ? axis_of(m, axes.items[index], rank) : index;
}

static void read_scales(const Map *m, Resize *resize, Ints axes, int rank)
{
    const GraphValue *scales = known_reals(m, m->node->version < 11 ? 1 : 2);
    Reals given = attribute_reals(m, "scales");
    bool attribute = m->node->version < 9 && strcmp(m->node->op, "Upsample") == 0;
    int64_t count = attribute ? given.count : scales ? shape_count(&scales->shape) : 0;
    if (count != (axes.count ? axes.count : rank))
        refuse(m, "%" PRId64 " scales for %d axes", count, axes.count ? axes.count : rank);
    for (int i = 0; i < count; i++)
        set_scale(m, &resize->axes[axis_at(m, axes, i, rank)],
                  attribute ? (double)given.items[i] : constant_real(scales, i));
}

static void read_result_sizes(const Map *m, Resize *resize, Ints axes, int rank)
{
    Ints sizes = need_ints(m, 3);
    const char *policy = attribute_text(m, "keep_aspect_ratio_policy", "stretch");
    bool larger_scale = strcmp(policy, "not_smaller") == 0,
         keeps = larger_scale || strcmp(policy, "not_larger") == 0;
    if (sizes.count != (axes.count ? axes.count : rank) || (!keeps && strcmp(policy, "stretch") != 0))
        refuse(m, "%d sizes, policy '%s'", sizes.count, policy);
    double common = 0;
    for (int i = 0; i < sizes.count; i++) {
        ResizeAxis *axis = &resize->axes[axis_at(m, axes, i, rank)];
        if (sizes.items[i] < 1 || sizes.items[i] > 1 << 30 || axis->in < 1)
            refuse(m, "a size of %" PRId64, sizes.items[i]);
        axis->out = sizes.items[i];
        axis->scale = (double)axis->out / (double)axis->in;
        bool better = larger_scale ? axis->scale > common : axis->scale < common;
        common = i == 0 || better ? axis->scale : common;
    }
    for (int i = 0; i < sizes.count && keeps; i++) {
        ResizeAxis *axis = &resize->axes[axis_at(m, axes, i, rank)];
        axis->scale = common;
        double size = floor(common * (double)axis->in + 0.5);
        if (!(size >= 1) || size > (double)(1 << 30))
            refuse(m, "a size of %g", size);
        axis->out = (int64_t)size;
    }
}

static void read_region(const Map *m, Resize *resize, Ints axes, int rank)
{
    const GraphValue *region = known_reals(m, 1);
    int count = axes.count ? axes.count : rank;
    if (!region || shape_count(&region->shape) != 2 * count)
        refuse(m, "a region of %d axes is needed", count);
    for (int i = 0; i < count; i++) {
        ResizeAxis *axis = &resize->axes[axis_at(m, axes, i, rank)];
        axis->first = constant_real(region, i);
        axis->last = constant_real(region, count + i);
    }
}

// ---- where an element lies in the input ----

static double place_in(const Map *m, const Resize *resize, const ResizeAxis *axis, int64_t i)
{
    const char *how = resize->coordinates;
    double x = (double)i, width = axis->scale * (double)axis->in, last = (double)(axis->in - 1);
    if (strcmp(how, "half_pixel") == 0)
        return (x + 0.5) / axis->scale - 0.5;
    if (strcmp(how, "asymmetric") == 0)
        return x / axis->scale;
    if (strcmp(how, "align_corners") == 0)
        return width == 1 ? 0 : x * last / (width - 1);
    if (strcmp(how, "pytorch_half_pixel") == 0)
        return width == 1 ? -0.5 : (x + 0.5) / axis->scale - 0.5;
    if (strcmp(how, "tf_half_pixel_for_nn") == 0)
        return (x + 0.5) / axis->scale;
    if (strcmp(how, "half_pixel_symmetric") == 0)
        return (double)axis->in / 2 * (1 - (double)axis->out / width) + (x + 0.5) / axis->scale - 0.5;
    if (strcmp(how, "tf_crop_and_resize") == 0)
        return width == 1 ? (axis->first + axis->last) * last / 2
                          : axis->first * last + x * (axis->last - axis->first) * last / (width - 1);
    refuse(m, "coordinate_transformation_mode '%s'", how);
}

/* The element that is nearest. */
static int64_t nearest_to(const Map *m, const Resize *resize, double x)
{
    double low = floor(x), rest = x - low;
    const char *how = resize->nearest;
    bool up = strcmp(how, "ceil") == 0                 ? rest > 0
              : strcmp(how, "round_prefer_floor") == 0 ? rest > 0.5
                                                       : strcmp(how, "round_prefer_ceil") == 0 && rest >= 0.5;
    if (strcmp(how, "floor") != 0 && strncmp(how, "round_prefer_", 13) != 0 && strcmp(how, "ceil") != 0)
        refuse(m, "nearest_mode '%s'", how);
    return (int64_t)low + up;
}

// ---- coefficients ----

static double cubic_weight(double a, double x)
{
    x = fabs(x);
    return x <= 1  ? ((a + 2) * x - (a + 3)) * x * x + 1
           : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                   : 0;
}

/* How many taps there are on either side: more where a filter smooths what becomes smaller. */
static int64_t reach_of(const Resize *resize, double shrinks)
{
    int64_t plain = strcmp(resize->mode, "cubic") == 0 ? 2 : 1;
    return resize->smooths ? (int64_t)-floor(-(double)plain / shrinks) : plain;
}

/* Taps low+1-reach … low+reach around an element at `low` + `rest`, 0 < rest <= 1. */
static void weigh(const Resize *resize, const ResizeAxis *axis, int64_t low, double rest, double *weights,
                  int32_t *places)
{
    double shrinks = resize->smooths ? fmin(axis->scale, 1) : 1, sum = 0;
    int64_t reach = axis->taps / 2;
    for (int t = 0; t < axis->taps; t++) {
        int64_t place = low + 1 - reach + t;
        double distance = ((double)(1 - reach + t) - rest) * shrinks;
        weights[t] = strcmp(resize->mode, "cubic") == 0 ? cubic_weight(resize->cubic, distance)
                                                        : fmax(1 - fabs(distance), 0);
        if (resize->excludes && (place < 0 || place >= axis->in))
            weights[t] = 0;
        sum += weights[t];
        places[t] = (int32_t)smaller(larger(place, 0), axis->in - 1);
    }
    for (int t = 0; t < axis->taps && (resize->excludes || resize->smooths) && sum != 0; t++)
        weights[t] /= sum;
}

static void fill_axis(const Map *m, const Resize *resize, ResizeAxis *axis)
{
    bool nearest = strcmp(resize->mode, "nearest") == 0;
    int64_t reach = nearest ? 0 : reach_of(resize, fmin(axis->scale, 1));
    if (axis->out * larger(2 * reach, 1) > MOST_TAPS || reach > MOST_TAPS)
        refuse(m, "%" PRId64 " elements of %" PRId64 " others each", axis->out, 2 * reach);
    axis->taps = nearest ? 1 : (int)(2 * reach);
    axis->places = NEW_ARRAY(m->arena, int32_t, axis->out * axis->taps);
    axis->weights = NEW_ARRAY(m->arena, double, axis->out * axis->taps);
    axis->outside = NEW_ARRAY(m->arena, bool, axis->out);
    bool crops = strcmp(resize->coordinates, "tf_crop_and_resize") == 0;
    for (int64_t i = 0; i < axis->out; i++) {
        double x = place_in(m, resize, axis, i), low = ceil(x) - 1;
        axis->outside[i] = crops && !(x >= 0 && x <= (double)(axis->in - 1));
        axis->reaches_out |= axis->outside[i];
        if (!(fabs(x) < (double)(1 << 30)))
            refuse(m, "a place at %g", x);
        if (nearest)
            axis->places[i] = (int32_t)smaller(larger(nearest_to(m, resize, x), 0), axis->in - 1);
        else
            weigh(resize, axis, (int64_t)low, x - low, axis->weights + i * axis->taps,
                  axis->places + i * axis->taps);
    }
}

static bool is_resized(const Resize *resize, int d)
{
    const ResizeAxis *axis = &resize->axes[d];
    bool crops =
        strcmp(resize->coordinates, "tf_crop_and_resize") == 0 && (axis->first != 0 || axis->last != 1);
    return axis->out != axis->in || axis->scale != 1 || crops;
}

// ---- definitions ----

static bool is_quotient(const ResizeAxis *axis, int64_t shift, int64_t divisor)
{
    bool same = true;
    for (int64_t i = 0; i < axis->out && same; i++)
        same = axis->places[i] == (i + shift) / divisor;
    return same;
}

static bool is_multiple(const ResizeAxis *axis, int64_t factor)
{
    bool same = true;
    for (int64_t i = 0; i < axis->out && same; i++)
        same = axis->places[i] == axis->places[0] + factor * i;
    return same;
}

/* Places of nearest elements: `i/2`, `2*i + 1`, or an element of a table. */
static const char *nearest_place(Map *m, const ResizeAxis *axis, int d)
{
    char letter = letters_of(MAX_RANK)[d];
    int64_t factor = axis->out > 1 ? axis->places[1] - axis->places[0] : 0;
    if (factor > 0 && is_multiple(axis, factor))
        return affine(m, factor, letter, axis->places[0]);
    int64_t divisor = ceil_div(axis->out, axis->in);
    for (int64_t shift = 0; shift < divisor && divisor > 1; shift++)
        if (is_quotient(axis, shift, divisor))
            return fmt(m, shift ? "(%s)/%" PRId64 : "%s/%" PRId64, affine(m, 1, letter, shift), divisor);
    GraphValue *table = part(m, out(m, 0), fmt(m, "at%d", d));
    give(m, table, DTYPE_I32, (Dims){1, {axis->out}}, axis->places);
    return at(m, table, fmt(m, "%c", letter));
}

static const void *reals_of(const Map *m, const double *values, int64_t count, DType type)
{
    if (type == DTYPE_F64)
        return values;
    float *reals = NEW_ARRAY(m->arena, float, count);
    for (int64_t i = 0; i < count; i++)
        reals[i] = (float)values[i];
    return reals;
}

/* One axis of `x` as sums. */
static void define_axis(Map *m, GraphValue *value, DType type, const GraphValue *x, const ResizeAxis *axis,
                        int d)
{
    char letter = letters_of(MAX_RANK)[d];
    GraphValue *places = part(m, out(m, 0), fmt(m, "at%d", d)),
               *weights = part(m, out(m, 0), fmt(m, "weight%d", d));
    DType real = x->type == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    Dims table = {2, {axis->out, axis->taps}}, shape = x->shape;
    give(m, places, DTYPE_I32, table, axis->places);
    give(m, weights, real, table, reals_of(m, axis->weights, axis->out * axis->taps, real));
    shape.size[d] = axis->out;
    const char *tap = fmt(m, "%c, t", letter);
    StrBuf at_x = strbuf_new(m->arena);
    for (int i = 0; i < shape.rank; i++)
        add_place(&at_x, i == d ? at(m, places, tap) : fmt(m, "%c", letters_of(MAX_RANK)[i]));
    define(m, value, type, &shape, letters_of(shape.rank),
           fmt(m, "sum[t:%d](%s * %s)", axis->taps, at(m, weights, tap), at(m, x, at_x.text)));
}

/* Conditions of the axes on which some elements lie beyond the tensor; "": none does. */
static const char *inside_text(Map *m, const Resize *resize, int rank)
{
    StrBuf inside = strbuf_new(m->arena);
    for (int d = 0; d < rank; d++) {
        const ResizeAxis *axis = &resize->axes[d];
        if (!axis->reaches_out)
            continue;
        GraphValue *table = part(m, out(m, 0), fmt(m, "outside%d", d));
        give(m, table, DTYPE_B1, (Dims){1, {axis->out}}, axis->outside);
        strbuf_printf(&inside, "%s!%s", inside.length ? " && " : "",
                      at(m, table, fmt(m, "%c", letters_of(MAX_RANK)[d])));
    }
    return inside.text;
}

/* The value where the places lie within the tensor, and elsewhere the attribute's. */
static void define_cropped(Map *m, const Resize *resize, const GraphValue *made, DType type,
                           const Dims *shape)
{
    const char *inside = inside_text(m, resize, shape->rank),
               *element = at(m, made, letters_list(m, letters_of(shape->rank)));
    define(m, out(m, 0), type, shape, letters_of(shape->rank),
           fmt(m, "select(%s, %s, %s)", inside, element, attribute_literal(m, "extrapolation_value", "0.0")));
}

static void define_nearest(Map *m, const Resize *resize, const GraphValue *x, GraphValue *value,
                           const Dims *shape)
{
    StrBuf places = strbuf_new(m->arena);
    for (int d = 0; d < shape->rank; d++)
        add_place(&places, is_resized(resize, d) ? nearest_place(m, &resize->axes[d], d)
                                                 : fmt(m, "%c", letters_of(MAX_RANK)[d]));
    move(m, value, x, shape, places.text);
}

/* Axis by axis. */
static void define_filtered(Map *m, const Resize *resize, const GraphValue *x, GraphValue *value)
{
    int last = -1;
    for (int d = 0; d < x->shape.rank; d++)
        last = is_resized(resize, d) ? d : last;
    if (last < 0)
        view_as(m, value, x, &x->shape);
    DType type = x->type;
    if (!is_real(type))
        refuse(m, "integers, of which mode '%s' makes fractions", resize->mode);
    for (int d = 0; d <= last; d++)
        if (is_resized(resize, d)) {
            GraphValue *next = d == last ? value : part(m, out(m, 0), fmt(m, "axis%d", d));
            define_axis(m, next, d == last ? type : wide(type), x, &resize->axes[d], d);
            x = next;
        }
}

static Resize read_resize(const Map *m, const GraphValue *x)
{
    bool old = m->node->version < 11;
    Resize resize = {
        .mode = attribute_text(m, "mode", "nearest"),
        .coordinates = attribute_text(m, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"),
        .nearest = attribute_text(m, "nearest_mode", old ? "floor" : "round_prefer_floor"),
        .smooths = attribute_int(m, "antialias", 0) != 0,
        .excludes = attribute_int(m, "exclude_outside", 0) != 0,
        .cubic = attribute_real(m, "cubic_coeff_a", -0.75)};
    if (strcmp(resize.mode, "bilinear") == 0)
        resize.mode = "linear";   // of version 1
    if (strcmp(resize.mode, "nearest") != 0 && strcmp(resize.mode, "linear") != 0 &&
        strcmp(resize.mode, "cubic") != 0)
        refuse(m, "mode '%s'", resize.mode);
    for (int d = 0; d < x->shape.rank; d++)
        resize.axes[d] = (ResizeAxis){.in = x->shape.size[d], .out = x->shape.size[d], .scale = 1, .last = 1};
    return resize;
}

void map_resize(Map *m)
{
    const GraphValue *x = need(m, 0);
    int rank = x->shape.rank;
    Resize resize = read_resize(m, x);
    Ints axes = attribute_ints(m, "axes");
    bool sized = m->node->version >= 11 && maybe(m, 3) && shape_count(&maybe(m, 3)->shape) > 0;
    if (sized)
        read_result_sizes(m, &resize, axes, rank);
    else
        read_scales(m, &resize, axes, rank);
    if (strcmp(resize.coordinates, "tf_crop_and_resize") == 0)
        read_region(m, &resize, axes, rank);
    comment(m, "%s, %s", resize.mode, resize.coordinates);
    Dims shape = {.rank = rank};
    bool reaches_out = false;
    for (int d = 0; d < rank; d++) {
        if (is_resized(&resize, d))
            fill_axis(m, &resize, &resize.axes[d]);
        shape.size[d] = resize.axes[d].out;
        reaches_out |= resize.axes[d].reaches_out;
    }
    GraphValue *value = reaches_out ? part(m, out(m, 0), "inside") : out(m, 0);
    if (strcmp(resize.mode, "nearest") == 0)
        define_nearest(m, &resize, x, value, &shape);
    else
        define_filtered(m, &resize, x, value);
    if (reaches_out)
        define_cropped(m, &resize, value, x->type, &shape);
}
