// Reductions along axes.
#include <inttypes.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

/* Along the axes that are given; without any along all, unless none is meant. */
static void read_axes(const Map *m, const GraphValue *x, bool flags[MAX_RANK])
{
    bool some = axes_given(m, "axes", 1, x->shape.rank, flags);
    if (!some && !attribute_int(m, "noop_with_empty_axes", 0))
        for (int d = 0; d < MAX_RANK; d++)
            flags[d] = true;
}

static void reduce_to_output(Map *m, const char *text)
{
    const GraphValue *x = need(m, 0);
    bool flags[MAX_RANK];
    read_axes(m, x, flags);
    if (shape_count(&x->shape) == 0)
        refuse(m, "'%s' has no elements to be reduced", x->name);
    reduce(m, out(m, 0), x->type, x, flags, attribute_int(m, "keepdims", 1) != 0, text);
}

/* Of bools the largest or smallest. */
void map_reduce(Map *m)
{
    reduce_to_output(m, need(m, 0)->type == DTYPE_B1 ? fmt(m, "%s != 0", m->row->text) : m->row->text);
}

/* Integers become real numbers, and what comes of them integers. */
void map_reduce_real(Map *m)
{
    DType type = need(m, 0)->type;
    Filling within = {.operands = {"cast($0, f64)"}, .axes = "$r", .count = "$n"};
    reduce_to_output(m, is_real(type) ? m->row->text
                                      : fmt(m, "cast(%s, %s)", expand(m, m->row->text, &within), dtype_info[type].name));
}

/* The largest element is taken out first: no exponential is infinite. */
void map_log_sum_exp(Map *m)
{
    const GraphValue *x = need(m, 0);
    bool flags[MAX_RANK], keeps = attribute_int(m, "keepdims", 1) != 0;
    read_axes(m, x, flags);
    if (shape_count(&x->shape) == 0)
        refuse(m, "'%s' has no elements to be reduced", x->name);
    DType type = is_real(x->type) ? wide(x->type) : DTYPE_F64;
    GraphValue *largest = part(m, out(m, 0), "max"), *power = part(m, out(m, 0), "exp"),
               *sum = part(m, out(m, 0), "sum");
    reduce(m, largest, x->type, x, flags, false, "max[$r]($0)");
    const char *row = at_reduced(m, largest, &x->shape, flags);
    row = is_real(x->type) ? fmt(m, "select(abs(%s) < inf, %s, 0)", row, row) : fmt(m, "cast(%s, f64)", row);
    const char *element = at_broadcast(m, x, &x->shape);
    element = is_real(x->type) ? element : fmt(m, "cast(%s, f64)", element);
    define(m, power, type, &x->shape, letters_of(x->shape.rank), fmt(m, "exp(%s - %s)", element, row));
    reduce(m, sum, type, power, flags, false, "sum[$r]($0)");
    Dims shape = {0};
    char letters[MAX_RANK + 1] = {0};
    for (int d = 0, kept = 0; d < x->shape.rank; d++)
        if (!flags[d] || keeps) {
            if (!flags[d])
                letters[kept++] = letters_of(MAX_RANK)[shape.rank];
            shape.size[shape.rank++] = flags[d] ? 1 : x->shape.size[d];
        }
    const char *m_row = at(m, largest, letters_list(m, letters));
    m_row = is_real(x->type) ? fmt(m, "select(abs(%s) < inf, %s, 0)", m_row, m_row) : m_row;
    const char *result = fmt(m, "log(%s) + %s", at(m, sum, letters_list(m, letters)), m_row);
    define(m, out(m, 0), x->type, &shape, letters_of(shape.rank),
           is_real(x->type) ? result : fmt(m, "cast(%s, %s)", result, dtype_info[x->type].name));
}
