// Norms of windows, and windows put back.
#include <inttypes.h>

#include "base/checked.h"
#include "front/onnx/map.h"
#include "front/onnx/operators.h"

/* The order of the norm: an integer, before version 2 a real number. */
static double order_of(const Map *m)
{
    double order = m->node->version < 2 ? attribute_real(m, "p", 2) : (double)attribute_int(m, "p", 2);
    if (!(order > 0))
        refuse(m, "a norm of order %g", order);
    return order;
}

/* Of a sum that fmt() makes of `reduced` and a term. */
static const char *norm_term(const Map *m, double order, const char *element)
{
    return order == 1   ? fmt(m, "abs(%s)", element)
           : order == 2 ? fmt(m, "sq(%s)", element)
                        : fmt(m, "pow(abs(%s), %s)", element, literal_real(m->arena, DTYPE_F64, order));
}

static const char *norm_of(const Map *m, double order, const char *sum)
{
    return order == 1   ? sum
           : order == 2 ? fmt(m, "sqrt(%s)", sum)
                        : fmt(m, "pow(%s, 1 / %s)", sum, literal_real(m->arena, DTYPE_F64, order));
}

void map_lp_pool(Map *m)
{
    const GraphValue *x = need(m, 0);
    double order = order_of(m);
    Window window = pool_window(m, x);
    const char *term = norm_term(m, order, pool_element(m, x, &window, "0"));
    Dims shape = window_result(&window, x->shape.size[0], x->shape.size[1]);
    define(m, out(m, 0), x->type, &shape, fmt(m, "nc%s", window_letters(&window)),
           norm_of(m, order, window_reduce(m, "sum", "", &window, term)));
}

void map_global_lp_pool(Map *m)
{
    const GraphValue *x = need(m, 0);
    double order = order_of(m);
    bool flags[MAX_RANK];
    for (int d = 0; d < MAX_RANK; d++)
        flags[d] = d >= 2;
    reduce(m, out(m, 0), x->type, x, flags, true,
           norm_of(m, order, fmt(m, "sum[$r](%s)", norm_term(m, order, "$0"))));
}

// ---- MaxUnpool ----

/* The size that was pooled. */
static Dims unpooled_shape(const Map *m, const GraphValue *x)
{
    Ints kernel = attribute_ints(m, "kernel_shape"), strides = attribute_ints(m, "strides"),
         pads = attribute_ints(m, "pads");
    int rank = x->shape.rank - 2;
    if (rank < 1 || kernel.count != rank || (strides.count && strides.count != rank) ||
        (pads.count && pads.count != 2 * rank))
        refuse(m, "windows of %d dimensions, %d strides and %d pads of a tensor %s", kernel.count,
               strides.count, pads.count, shape_text(m->arena, &x->shape));
    Dims shape = x->shape;
    for (int d = 0; d < rank; d++)
        shape.size[d + 2] = (x->shape.size[d + 2] - 1) * (strides.count ? strides.items[d] : 1) +
                            kernel.items[d] - (pads.count ? pads.items[d] + pads.items[rank + d] : 0);
    return shape;
}

/* The whole tensor, or, of another shape, its first elements along each dimension. */
static Dims wanted_shape(const Map *m, const Dims *pooled)
{
    if (!maybe(m, 2))
        return *pooled;
    Ints sizes = need_ints(m, 2);
    if (sizes.count != pooled->rank)
        refuse(m, "%d sizes for %d dimensions", sizes.count, pooled->rank);
    return shape_of(sizes.count, sizes.items);
}

void map_max_unpool(Map *m)
{
    const GraphValue *x = need(m, 0), *places = need(m, 1);
    Dims pooled = unpooled_shape(m, x), shape = wanted_shape(m, &pooled);
    int64_t plane = 1, count = 1;
    for (int d = 2; d < x->shape.rank; d++) {
        if (pooled.size[d] < 1 || !checked_mul(plane, pooled.size[d], &plane) || plane > INT32_MAX)
            refuse(m, "a result %s", shape_text(m->arena, &pooled));
        count *= x->shape.size[d];
    }
    if (!shape_equal(&x->shape, &places->shape))
        refuse(m, "places %s of elements %s", shape_text(m->arena, &places->shape),
               shape_text(m->arena, &x->shape));
    Dims flat = {3, {x->shape.size[0], x->shape.size[1], count}},
         made = {3, {flat.size[0], flat.size[1], plane}};
    GraphValue *list = part(m, out(m, 0), "list"), *at_list = part(m, out(m, 0), "places"),
               *last = part(m, out(m, 0), "last"), *all = part(m, out(m, 0), "all"),
               *seen = part(m, out(m, 0), "seen");
    view_as(m, list, x, &flat);
    view_as(m, at_list, places, &flat);
    define(m, last, DTYPE_I32, &made, "ncp",
           fmt(m,
               "max[r:%" PRId64 "](select(%s == (cast(n, i64) * %" PRId64 " + c) * %" PRId64 " + p, r, -1))",
               count, at(m, at_list, "n, c, r"), made.size[1], plane));
    const char *which = at(m, last, "n, c, p");
    define_moved(m, all, x->type, &made, "ncp",
                 fmt(m, "select(%s >= 0, %s, 0)", which, at(m, list, fmt(m, "n, c, %s", which))));
    if (shape_equal(&shape, &pooled)) {
        view_as(m, out(m, 0), all, &shape);
        return;
    }
    view_as(m, seen, all, &pooled);
    define_moved(m, out(m, 0), x->type, &shape, letters_of(shape.rank),
                 at_padded(m, seen, letters_list(m, letters_of(shape.rank)), "0"));
}
