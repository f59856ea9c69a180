// Reductions along axes.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"
#include "ir/eval.h"

/* Along the axes that are given; without any along all, unless none is meant. */
static void read_axes(const Map *m, const GraphValue *x, bool flags[MAX_RANK])
{
    bool some = axes_given(m, "axes", 1, x->shape.rank, flags);
    if (!some && !attribute_int(m, "noop_with_empty_axes", 0))
        for (int d = 0; d < MAX_RANK; d++)
            flags[d] = true;
}

/* Of no elements: 0, 1, or what is below or above all. */
static void give_empty(Map *m, DType type, const Dims *shape, const char *text)
{
    double least = type == DTYPE_I8    ? -128
                   : type == DTYPE_I32 ? INT32_MIN
                   : type == DTYPE_I64 ? -0x1p63
                                       : (double)-INFINITY;
    double most = type == DTYPE_I8    ? 127
                  : type == DTYPE_U8  ? 255
                  : type == DTYPE_I32 ? (double)INT32_MAX
                                      : (double)INFINITY;
    int kind = strncmp(text, "max", 3) == 0    ? 0
               : strncmp(text, "min", 3) == 0  ? 1
               : strncmp(text, "prod", 4) == 0 ? 2
               : strncmp(text, "log", 3) == 0  ? 3
                                               : 4;
    double values[] = {type == DTYPE_U8 ? 0 : least, most, 1, -INFINITY, 0};
    if (strstr(text, "$n") || type == DTYPE_B1 || (kind == 1 && type == DTYPE_I64) ||
        (kind == 3 && !is_real(type)))
        refuse(m, "'%s' has no elements to be reduced", need(m, 0)->name);
    void *element = NEW(m->arena, double);
    dtype_store(type, element, 0, values[kind]);
    give_uniform(m, out(m, 0), type, *shape, element);
}

/* What is left of a shape. */
static Dims reduced_shape(const Dims *shape, const bool flags[MAX_RANK], bool keeps)
{
    Dims left = {0};
    for (int d = 0; d < shape->rank; d++)
        if (!flags[d] || keeps)
            left.size[left.rank++] = flags[d] ? 1 : shape->size[d];
    return left;
}

static void reduce_to_output(Map *m, const char *text)
{
    const GraphValue *x = need(m, 0);
    bool flags[MAX_RANK], keeps = attribute_int(m, "keepdims", 1) != 0;
    read_axes(m, x, flags);
    Dims shape = reduced_shape(&x->shape, flags, keeps);
    if (shape_count(&x->shape) == 0 && shape_count(&shape) != 0)
        give_empty(m, x->type, &shape, text);
    else
        reduce(m, out(m, 0), x->type, x, flags, keeps, text);
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
    reduce_to_output(
        m, is_real(type) ? m->row->text
                         : fmt(m, "cast(%s, %s)", expand(m, m->row->text, &within), dtype_info[type].name));
}

/* The largest element is taken out first: no exponential is infinite. */
void map_log_sum_exp(Map *m)
{
    const GraphValue *x = need(m, 0);
    bool flags[MAX_RANK], keeps = attribute_int(m, "keepdims", 1) != 0;
    read_axes(m, x, flags);
    Dims shape = reduced_shape(&x->shape, flags, keeps);
    if (shape_count(&x->shape) == 0 && shape_count(&shape) != 0) {
        give_empty(m, x->type, &shape, "log");
        return;
    }
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
    char letters[MAX_RANK + 1] = {0};   // of the result's dimensions that are no sums
    for (int d = 0, at = 0, kept = 0; d < x->shape.rank; at += !flags[d] || keeps, d++)
        if (!flags[d])
            letters[kept++] = letters_of(MAX_RANK)[at];
    const char *m_row = at(m, largest, letters_list(m, letters));
    m_row = is_real(x->type) ? fmt(m, "select(abs(%s) < inf, %s, 0)", m_row, m_row) : m_row;
    const char *result = fmt(m, "log(%s) + %s", at(m, sum, letters_list(m, letters)), m_row);
    define(m, out(m, 0), x->type, &shape, letters_of(shape.rank),
           is_real(x->type) ? result : fmt(m, "cast(%s, %s)", result, dtype_info[x->type].name));
}
