// Convolutions and pooling.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

const char *group_channel(const Map *m, int64_t groups, int64_t features, int64_t inputs)
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

Window pool_window(Map *m, const GraphValue *x)
{
    Ints kernel = attribute_ints(m, "kernel_shape");
    if (kernel.count != x->shape.rank - 2)
        refuse(m, "'kernel_shape' has %d integers for a tensor of %d dimensions", kernel.count,
               x->shape.rank);
    Window window = window_of(m, x, kernel.items);
    window_comment(m, &window);
    return window;
}

const char *pool_element(const Map *m, const GraphValue *x, const Window *window, const char *otherwise)
{
    const char *places = fmt(m, "n, c, %s", window_places(m, window));
    return window_reaches_out(window) ? at_padded(m, x, places, otherwise) : at(m, x, places);
}

static void define_pooled(Map *m, GraphValue *value, const GraphValue *x, const Window *window,
                          const char *expr)
{
    Dims shape = window_result(window, x->shape.size[0], x->shape.size[1]);
    define(m, value, x->type, &shape, fmt(m, "nc%s", window_letters(window)), expr);
}

/* Where in the tensor the first element of each window lies that is as large as `largest`. */
static void define_largest_places(Map *m, const GraphValue *x, const GraphValue *largest, const Window *w,
                                  const char *element)
{
    const char *letters = fmt(m, "nc%s", window_letters(w));
    int64_t plane = 1;
    const char *place = "";
    StrBuf inside = strbuf_new(m->arena);
    for (int d = 0; d < w->rank; d++) {
        const char *p = window_place(m, w, d);
        place = d ? fmt(m, "(%s) * %" PRId64 " + %s", place, w->in[d], p) : p;
        if (window_reaches_out(w))
            strbuf_printf(&inside, "%s >= 0 && %s < %" PRId64 " && ", p, p, w->in[d]);
        plane *= w->in[d];
    }
    bool by_column = attribute_int(m, "storage_order", 0) != 0;
    if (plane > INT32_MAX || (by_column && w->rank > 2))
        refuse(m, "places of the largest elements by column of %d dimensions", w->rank);
    const char *nan = is_real(x->type) ? fmt(m, " || %s != %s", element, element) : "";
    const char *found = fmt(m, "select(%s(%s == %s%s), %s, %" PRId64 ")", inside.text, element,
                            at(m, largest, letters_list(m, letters)), nan, place, plane - 1);
    GraphValue *first = part(m, out(m, 1), "first");
    Dims shape = window_result(w, x->shape.size[0], x->shape.size[1]);
    define(m, first, DTYPE_I32, &shape, letters, window_reduce(m, "min", "", w, found));
    const char *at_first = at(m, first, letters_list(m, letters));
    if (by_column && w->rank == 2)
        at_first = fmt(m, "(%s %% %" PRId64 " * %" PRId64 " + %s / %" PRId64 ")", at_first, w->in[1],
                       w->in[0], at_first, w->in[1]);
    define(m, out(m, 1), DTYPE_I64, &shape, letters,
           fmt(m, "(cast(n, i64) * %" PRId64 " + c) * %" PRId64 " + %s", x->shape.size[1], plane, at_first));
}

void map_max_pool(Map *m)
{
    const GraphValue *x = need(m, 0);
    Window window = pool_window(m, x);
    const char *lowest = x->type == DTYPE_U8 ? "0" : x->type == DTYPE_I8 ? "-128" : "-inf";
    const char *element = pool_element(m, x, &window, lowest);
    GraphValue *largest = out(m, 0) ? out(m, 0) : part(m, out(m, 1), "largest");
    define_pooled(m, largest, x, &window, window_reduce(m, "max", "", &window, element));
    if (out(m, 1))
        define_largest_places(m, x, largest, &window, element);
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
    define_pooled(m, out(m, 0), x, &window,
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
