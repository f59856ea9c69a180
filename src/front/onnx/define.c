#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/names.h"

static void settle(const Map *m, GraphValue *value, DType type, const Dims *shape)
{
    int64_t count = shape_count(shape);
    if (count < 0)
        refuse(m, "'%s' would have the shape %s: too large", value->name, shape_text(m->arena, shape));
    if (count == 0 && !m->folding)
        refuse(m, "'%s' would have the shape %s, and a tensor without elements is none", value->name,
               shape_text(m->arena, shape));
    value->type = type;
    value->shape = *shape;
    value->state = VALUE_KNOWN;
    value->maker = m->node;
    value->data = NULL;
    value->uniform = false;
    if (count == 0)
        value->data = "";
}

/* Must the type be written? Where only such are read that are of it, the language's rule gives it: sums of
   f32 are f32. */
static bool written(const Map *m, DType type, bool alone)
{
    bool natural =
        type == DTYPE_B1 ||
        ((type == DTYPE_F32 || type == DTYPE_F64 || type == DTYPE_I32 || type == DTYPE_I64) && !alone);
    int inputs = 0;
    for (int i = 0; i < m->node->input_count && natural && type != DTYPE_B1; i++)
        if (m->node->inputs[i]) {
            natural &= m->node->inputs[i]->type == type;
            inputs++;
        }
    return !natural || (!inputs && type != DTYPE_B1);
}

/* Bools that are an output are bytes under its name: inside they are another tensor. */
static const char *name_inside(const Map *m, const GraphValue *value, DType type)
{
    if (type != DTYPE_B1 || !value->is_output || m->folding)
        return value->own;
    return names_take(m->taken, fmt(m, "%s_b1", value->own), NULL);
}

static void write(Map *m, GraphValue *value, DType type, const Dims *shape, const char *axes,
                  const char *expr, bool stated)
{
    settle(m, value, type, shape);
    if (value->data)
        return;
    value->tensor = name_inside(m, value, type);
    draft_define(m->draft, m->comment, value->tensor, shape, axes, type, stated, expr);
}

void define(Map *m, GraphValue *value, DType type, const Dims *shape, const char *axes, const char *expr)
{
    write(m, value, type, shape, axes, expr, written(m, type, !strchr(expr, '[')));
}

void define_typed(Map *m, GraphValue *value, DType type, const Dims *shape, const char *axes,
                  const char *expr)
{
    write(m, value, type, shape, axes, expr, true);
}

void define_moved(Map *m, GraphValue *value, DType type, const Dims *shape, const char *axes,
                  const char *expr)
{
    bool moves = strchr(expr, '[') && !strstr(expr, "select(");
    write(m, value, type, shape, axes, expr, !moves && written(m, type, !strchr(expr, '[')));
}

GraphValue *part(Map *m, const GraphValue *of, const char *suffix)
{
    GraphValue *value = NEW(m->arena, GraphValue);
    value->name = fmt(m, "%s_%s", of->name, suffix);
    value->own = names_take(m->taken, fmt(m, "%s_%s", of->own, suffix), NULL);
    value->maker = m->node;
    return value;
}

/* A scalar has no dimension that a view could name. */
static void define_same(Map *m, GraphValue *value, const GraphValue *of, const Dims *shape)
{
    StrBuf places = strbuf_new(m->arena);
    for (int d = 0; d < of->shape.rank; d++)
        strbuf_puts(&places, d ? ", 0" : "0");
    define(m, value, of->type, shape, "", at(m, of, places.text));
}

void view_as(Map *m, GraphValue *value, const GraphValue *of, const Dims *shape)
{
    if (shape_count(shape) != shape_count(&of->shape))
        refuse(m, "%s cannot become %s: the counts of elements differ", shape_text(m->arena, &of->shape),
               shape_text(m->arena, shape));
    if (of->data) {
        settle(m, value, of->type, shape);
        value->data = of->data;
        value->uniform = of->uniform;
        value->place = (*m->places)++;
    } else if (shape_equal(shape, &of->shape)) {
        settle(m, value, of->type, shape);
        value->tensor = of->tensor;
    } else if (shape->rank == 0) {
        define_same(m, value, of, shape);
    } else {
        settle(m, value, of->type, shape);
        value->tensor = name_inside(m, value, of->type);
        draft_view(m->draft, m->comment, value->tensor, shape, of->tensor);
    }
}

void give(Map *m, GraphValue *value, DType type, Dims shape, const void *data)
{
    settle(m, value, type, &shape);
    constant_set(value, type, shape, data);
    value->place = (*m->places)++;
}

void give_uniform(Map *m, GraphValue *value, DType type, Dims shape, const void *element)
{
    settle(m, value, type, &shape);
    value->data = element;
    value->uniform = shape_count(&shape) > 0;
    value->place = (*m->places)++;
}

void give_ints(Map *m, GraphValue *value, int count, const int64_t *items)
{
    int64_t *copy = NEW_ARRAY(m->arena, int64_t, count + 1);
    if (count)
        memcpy(copy, items, (size_t)count * sizeof *copy);
    give(m, value, DTYPE_I64, shape_of(1, (int64_t[]){count}), copy);
}
