// Convolutions and pooling.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

/* The channel of `x` that output channel f reads for the k-th of its group. */
static const char *group_channel(const Map *m, int64_t groups, int64_t features, int64_t inputs)
{
    int64_t each = features / groups, taken = inputs / groups;
    if (groups == 1)
        return taken == 1 ? "0" : "k";
    const char *group = each == 1 ? "f" : fmt(m, "f/%" PRId64, each);
    return taken == 1 ? group : fmt(m, "%s*%" PRId64 " + k", group, taken);
}

static void check_conv(const Map *m, const GraphValue *x, const GraphValue *w, int64_t groups)
{
    if (x->shape.rank < 3 || x->shape.rank != w->shape.rank)
        refuse(m, "the shapes %s and %s are those of no convolution", shape_text(m->arena, &x->shape),
               shape_text(m->arena, &w->shape));
    if (groups < 1 || w->shape.size[0] % groups || x->shape.size[1] != w->shape.size[1] * groups)
        refuse(m, "%" PRId64 " groups do not divide the channels of %s and %s", groups,
               shape_text(m->arena, &x->shape), shape_text(m->arena, &w->shape));
}

void map_conv(Map *m)
{
    const GraphValue *x = need(m, 0), *w = need(m, 1), *bias = maybe(m, 2);
    int64_t groups = attribute_int(m, "group", 1), features = w->shape.size[0], taken = w->shape.size[1];
    check_conv(m, x, w, groups);
    Ints kernel = attribute_ints(m, "kernel_shape");
    for (int d = 0; d < kernel.count; d++)
        if (kernel.count != w->shape.rank - 2 || kernel.items[d] != w->shape.size[d + 2])
            refuse(m, "'kernel_shape' is not that of the weights %s", shape_text(m->arena, &w->shape));
    Window window = window_of(m, x, w->shape.size + 2);
    window_comment(m, &window);
    if (groups > 1)
        comment(m, "%" PRId64 " groups", groups);
    const char *places =
        fmt(m, "n, %s, %s", group_channel(m, groups, features, x->shape.size[1]), window_places(m, &window));
    const char *element = window_reaches_out(&window) ? at_padded(m, x, places, "0") : at(m, x, places);
    bool alone = taken == 1;   // one channel for each: no sum over channels
    const char *weight = at(m, w, fmt(m, "f, %s, %s", alone ? "0" : "k", window_tap_places(m, &window)));
    const char *sum = window_reduce(m, "sum", alone ? "" : fmt(m, "k:%" PRId64, taken), &window,
                                    fmt(m, "%s * %s", element, weight));
    sum = bias ? fmt(m, "%s + %s", sum, at(m, bias, "f")) : sum;
    Dims shape = window_result(&window, x->shape.size[0], features);
    define(m, out(m, 0), x->type, &shape, fmt(m, "nf%s", window_letters(&window)), sum);
}

// ---- pooling ----

static Window pool_window(Map *m, const GraphValue *x)
{
    Ints kernel = attribute_ints(m, "kernel_shape");
    if (kernel.count != x->shape.rank - 2)
        refuse(m, "'kernel_shape' has %d integers for a tensor of %d dimensions", kernel.count,
               x->shape.rank);
    Window window = window_of(m, x, kernel.items);
    window_comment(m, &window);
    return window;
}

static const char *pool_element(const Map *m, const GraphValue *x, const Window *window,
                                const char *otherwise)
{
    const char *places = fmt(m, "n, c, %s", window_places(m, window));
    return window_reaches_out(window) ? at_padded(m, x, places, otherwise) : at(m, x, places);
}

static void define_pooled(Map *m, const GraphValue *x, const Window *window, const char *expr)
{
    Dims shape = window_result(window, x->shape.size[0], x->shape.size[1]);
    define(m, out(m, 0), x->type, &shape, fmt(m, "nc%s", window_letters(window)), expr);
}

void map_max_pool(Map *m)
{
    const GraphValue *x = need(m, 0);
    refuse_output(m, 1, "where the largest elements lie");
    Window window = pool_window(m, x);
    const char *lowest = x->type == DTYPE_U8 ? "0" : x->type == DTYPE_I8 ? "-128" : "-inf";
    define_pooled(m, x, &window, window_reduce(m, "max", "", &window, pool_element(m, x, &window, lowest)));
}

void map_average_pool(Map *m)
{
    const GraphValue *x = need(m, 0);
    Window window = pool_window(m, x);
    bool pads_count = attribute_int(m, "count_include_pad", 0) != 0;
    StrBuf count = strbuf_new(m->arena);
    for (int d = 0; d < window.rank; d++)
        strbuf_printf(&count, "%s%s", d ? " * " : "",
                      window_count(m, &window, d, pads_count ? -window.before[d] : 0,
                                   window.in[d] + (pads_count ? window.after[d] : 0)));
    define_pooled(m, x, &window,
                  fmt(m, "%s / (%s)", window_reduce(m, "sum", "", &window, pool_element(m, x, &window, "0")),
                      count.text));
}

/* Over all dimensions behind the first two. */
void map_global_pool(Map *m)
{
    const GraphValue *x = need(m, 0);
    bool flags[MAX_RANK];
    for (int d = 0; d < MAX_RANK; d++)
        flags[d] = d >= 2;
    reduce(m, out(m, 0), x->type, x, flags, true, m->row->text);
}
