// Normalisations by means and variances of the data itself.
#include <inttypes.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

/* Mean and variance over the flagged axes, which they have not. */
typedef struct Moments {
    GraphValue *mean, *centered, *variance;
} Moments;

static Moments define_moments(Map *m, const GraphValue *named, const GraphValue *x, DType type,
                              const bool flags[MAX_RANK])
{
    Moments moments = {part(m, named, "mean"), part(m, named, "centered"), part(m, named, "var")};
    reduce(m, moments.mean, type, x, flags, false, "sum[$r]($0) / $n");
    define(m, moments.centered, type, &x->shape, letters_of(x->shape.rank),
           fmt(m, "%s - %s", at_broadcast(m, x, &x->shape), at_reduced(m, moments.mean, &x->shape, flags)));
    reduce(m, moments.variance, type, moments.centered, flags, false, "sum[$r](sq($0)) / $n");
    return moments;
}

/* `text` of $0, the element less its mean, and $1, the variance; then scaled. */
static const char *normalized(const Map *m, const Moments *moments, const Dims *shape,
                              const bool flags[MAX_RANK], const char *text)
{
    return expand(m, text,
                  &(Filling){.operands = {at_broadcast(m, moments->centered, shape),
                                          at_reduced(m, moments->variance, shape, flags)}});
}

static void flag_from(bool flags[MAX_RANK], int first)
{
    for (int d = 0; d < MAX_RANK; d++)
        flags[d] = d >= first;
}

static const char by_deviation[] = "$0 / sqrt($1 + {epsilon=1e-05})";

// ---- each channel of each image ----

void map_instance_normalization(Map *m)
{
    const GraphValue *x = need(m, 0);
    bool flags[MAX_RANK];
    if (x->shape.rank < 3)
        refuse(m, "%s has no dimensions behind the channels", shape_text(m->arena, &x->shape));
    flag_from(flags, 2);
    Moments moments = define_moments(m, out(m, 0), x, wide(x->type), flags);
    define(m, out(m, 0), x->type, &x->shape, letters_of(x->shape.rank),
           fmt(m, "%s * %s + %s", normalized(m, &moments, &x->shape, flags, by_deviation),
               at_channel(m, need(m, 1), &x->shape, 1), at_channel(m, need(m, 2), &x->shape, 1)));
}

/* The element of a vector for channels, or before version 21 for groups of them. */
static const char *at_group(const Map *m, const GraphValue *vector, int64_t channels, int64_t groups)
{
    int64_t wanted = m->node->version < 21 ? groups : channels, each = channels / groups;
    if (vector->shape.rank != 1 || vector->shape.size[0] != wanted)
        refuse(m, "'%s' is no vector of %" PRId64 " elements", vector->name, wanted);
    return at(m, vector, wanted == channels ? "j" : fmt(m, "j/%" PRId64, each));
}

void map_group_normalization(Map *m)
{
    const GraphValue *x = need(m, 0);
    int64_t groups = attribute_int(m, "num_groups", 0), channels = x->shape.rank < 2 ? 0 : x->shape.size[1];
    if (groups < 1 || channels < 1 || channels % groups)
        refuse(m, "%" PRId64 " groups do not divide the channels of %s", groups,
               shape_text(m->arena, &x->shape));
    comment(m, "%" PRId64 " groups", groups);
    Dims shape = {3, {x->shape.size[0], groups, shape_count(&x->shape) / (x->shape.size[0] * groups)}};
    GraphValue *grouped = part(m, out(m, 0), "groups");
    view_as(m, grouped, x, &shape);
    bool flags[MAX_RANK];
    flag_from(flags, 2);
    Moments moments = define_moments(m, out(m, 0), grouped, wide(x->type), flags);
    const char *group = fmt(m, groups == channels ? "i, j" : "i, j/%" PRId64, channels / groups);
    define(m, out(m, 0), x->type, &x->shape, letters_of(x->shape.rank),
           fmt(m, "(%s - %s) / sqrt(%s + %s) * %s + %s", at_broadcast(m, x, &x->shape),
               at(m, moments.mean, group), at(m, moments.variance, group),
               attribute_literal(m, "epsilon", "1e-05"), at_group(m, need(m, 1), channels, groups),
               at_group(m, need(m, 2), channels, groups)));
}

// ---- the last dimensions ----

/* In which statistics are, by `stash_type`: f32 or f64. */
static DType stash_of(const Map *m, const GraphValue *x)
{
    int64_t type = attribute_int(m, "stash_type", 1);
    if (type != 1 && type != 11)
        refuse(m, "'stash_type' is %" PRId64 "; statistics are in f32 (1) or f64 (11)", type);
    return type == 11 || x->type == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
}

static const char *at_scale(const Map *m, int input, const GraphValue *x)
{
    const GraphValue *value = need(m, input);
    if (!broadcasts_to(m, value, &x->shape))
        refuse(m, "%s is not stretched to %s", shape_text(m->arena, &value->shape),
               shape_text(m->arena, &x->shape));
    return at_broadcast(m, value, &x->shape);
}

/* Output 0. Of statistics in f64 the language makes f64 by itself. */
static void define_stashed(Map *m, const GraphValue *x, DType type, const char *expr)
{
    bool wider = stash_of(m, x) == DTYPE_F64 && type != DTYPE_F64;
    (wider ? define_typed : define)(m, out(m, 0), type, &x->shape, letters_of(x->shape.rank), expr);
}

/* A statistic as an output: the dimensions that it is over are 1. */
static void define_statistic(Map *m, int output, const GraphValue *of, const GraphValue *x,
                             const bool flags[MAX_RANK], const char *text)
{
    if (!out(m, output))
        return;
    Dims shape = x->shape;
    for (int d = 0; d < shape.rank; d++)
        shape.size[d] = flags[d] ? 1 : shape.size[d];
    DType type = attribute_int(m, "stash_type", 1) == 11 ? DTYPE_F64 : DTYPE_F32;
    define(m, out(m, output), type, &shape, letters_of(shape.rank),
           expand(m, text, &(Filling){.operands = {at_reduced(m, of, &shape, flags)}}));
}

void map_layer_normalization(Map *m)
{
    const GraphValue *x = need(m, 0);
    int axis = axis_of(m, attribute_int(m, "axis", -1), x->shape.rank);
    bool flags[MAX_RANK];
    flag_from(flags, axis);
    comment(m, "axis %d", axis);
    const GraphValue *named = out(m, 0) ? out(m, 0) : out(m, 1) ? out(m, 1) : out(m, 2);
    Moments moments = define_moments(m, named, x, stash_of(m, x), flags);
    const char *bias = maybe(m, 2) ? fmt(m, " + %s", at_scale(m, 2, x)) : "";
    if (out(m, 0))
        define_stashed(m, x, x->type,
                       fmt(m, "%s * %s%s", normalized(m, &moments, &x->shape, flags, by_deviation),
                           at_scale(m, 1, x), bias));
    define_statistic(m, 1, moments.mean, x, flags, "$0");
    define_statistic(m, 2, moments.variance, x, flags, "1 / sqrt($0 + {epsilon=1e-05})");
}

void map_rms_normalization(Map *m)
{
    const GraphValue *x = need(m, 0);
    int axis = axis_of(m, attribute_int(m, "axis", -1), x->shape.rank);
    bool flags[MAX_RANK];
    flag_from(flags, axis);
    comment(m, "axis %d", axis);
    GraphValue *square = part(m, out(m, 0), "square");
    reduce(m, square, stash_of(m, x), x, flags, false, "sum[$r](sq($0)) / $n");
    const char *root = fmt(m, "sqrt(%s + %s)", at_reduced(m, square, &x->shape, flags),
                           attribute_literal(m, "epsilon", "1e-05"));
    define_stashed(m, x, need(m, 1)->type,
                   fmt(m, "%s / %s * %s", at_broadcast(m, x, &x->shape), root, at_scale(m, 1, x)));
}

// ---- other axes ----

void map_mean_variance_normalization(Map *m)
{
    const GraphValue *x = need(m, 0);
    bool flags[MAX_RANK];
    if (!has_attribute(m, "axes") && x->shape.rank < 4)
        refuse(m, "axes 0, 2 and 3 of %s", shape_text(m->arena, &x->shape));
    if (!axes_given(m, "axes", -1, x->shape.rank, flags))
        flags[0] = flags[2] = flags[3] = true;
    Moments moments = define_moments(m, out(m, 0), x, wide(x->type), flags);
    define(m, out(m, 0), x->type, &x->shape, letters_of(x->shape.rank),
           normalized(m, &moments, &x->shape, flags, "$0 / (sqrt($1) + 1e-09)"));
}

/* Where the norm is 0 the result is. */
void map_lp_normalization(Map *m)
{
    const GraphValue *x = need(m, 0);
    int64_t p = attribute_int(m, "p", 2);
    if (p != 1 && p != 2)
        refuse(m, "'p' is %" PRId64 "; 1 and 2 are norms", p);
    bool flags[MAX_RANK] = {false};
    flags[axis_of(m, attribute_int(m, "axis", -1), x->shape.rank)] = true;
    GraphValue *norm = part(m, out(m, 0), "norm");
    reduce(m, norm, wide(x->type), x, flags, false, p == 1 ? "sum[$r](abs($0))" : "sqrt(sum[$r](sq($0)))");
    const char *length = at_reduced(m, norm, &x->shape, flags);
    define(m, out(m, 0), x->type, &x->shape, letters_of(x->shape.rank),
           fmt(m, "select(%s == 0, 0, %s / %s)", length, at_broadcast(m, x, &x->shape), length));
}

// ---- a batch, in training ----

static void define_running(Map *m, int output, const GraphValue *before, const GraphValue *now)
{
    if (!out(m, output))
        return;
    Filling filling = {.operands = {at(m, before, "i"), at(m, now, "i")}};
    define(m, out(m, output), before->type, &before->shape, "i",
           expand(m, "$0 * {momentum=0.9} + $1 * (1 - {momentum=0.9})", &filling));
}

void batch_normalization_training(Map *m)
{
    const GraphValue *x = need(m, 0);
    bool flags[MAX_RANK];
    flag_from(flags, 0);
    flags[1] = false;
    Moments moments = define_moments(m, out(m, 0) ? out(m, 0) : x, x, wide(x->type), flags);
    const char *scale = at_channel(m, need(m, 1), &x->shape, 1),
               *bias = at_channel(m, need(m, 2), &x->shape, 1);
    if (out(m, 0))
        define(m, out(m, 0), x->type, &x->shape, letters_of(x->shape.rank),
               fmt(m, "%s * %s + %s", normalized(m, &moments, &x->shape, flags, by_deviation), scale, bias));
    at_channel(m, need(m, 3), &x->shape, 1), at_channel(m, need(m, 4), &x->shape, 1);   // or refuses
    define_running(m, 1, need(m, 3), moments.mean);
    define_running(m, 2, need(m, 4), moments.variance);
}
