// Operators that are an expression at each point.
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"
#include "front/onnx/tensor.h"

void map_same(Map *m) { broadcast(m, need(m, 0)->type, m->row->text); }

static void need_real(const Map *m, const GraphValue *value)
{
    if (!is_real(value->type))
        refuse(m, "'%s' is of type %s, and real numbers are expected", value->name,
               dtype_info[value->type].name);
}

void map_real(Map *m) { need_real(m, need(m, 0)), map_same(m); }

/* `name = expr` is a part, in f32 at least; `step` ends at a semicolon. */
static const char *define_step(Map *m, const char *step, const Dims *shape, const Filling *filling)
{
    const char *equals = strstr(step, " = "), *end = strchr(step, ';');
    GraphValue *value = part(m, out(m, 0), fmt(m, "%.*s", (int)(equals - step), step));
    const char *expr = expand(m, fmt(m, "%.*s", (int)(end - equals - 3), equals + 3), filling);
    define(m, value, wide(need(m, 0)->type), shape, letters_of(shape->rank), expr);
    return at_broadcast(m, value, shape);
}

void map_steps(Map *m)
{
    const GraphValue *x = need(m, 0);
    need_real(m, x);
    Filling filling = {.operands = {at_broadcast(m, x, &x->shape)}};
    const char *text = m->row->text;
    for (int next = 5; strchr(text, ';'); next++) {
        filling.operands[next] = define_step(m, text, &x->shape, &filling);
        text = strchr(text, ';') + 2;
    }
    define(m, out(m, 0), x->type, &x->shape, letters_of(x->shape.rank), expand(m, text, &filling));
}

void map_condition(Map *m) { need(m, 0), broadcast(m, DTYPE_B1, m->row->text); }

static void need_bool(const Map *m, int input)
{
    const GraphValue *value = need(m, input);
    if (value->type != DTYPE_B1)
        refuse(m, "'%s' is of type %s, and not bool", value->name, dtype_info[value->type].name);
}

/* Of bools alone. */
void map_logic(Map *m)
{
    for (int i = 0; i < m->node->input_count; i++)
        need_bool(m, i);
    map_condition(m);
}

/* Of all inputs: $0 is what those before make, $1 the next one. */
static const char *all_inputs(const Map *m, const Dims *shape)
{
    const char *all = at_broadcast(m, need(m, 0), shape);
    for (int i = 1; i < m->node->input_count; i++)
        all = expand(m, m->row->text, &(Filling){.operands = {all, at_broadcast(m, need(m, i), shape)}});
    return all;
}

void map_many(Map *m)
{
    Dims shape = broadcast_shape(m, 0, m->node->input_count);
    define(m, out(m, 0), need(m, 0)->type, &shape, letters_of(shape.rank), all_inputs(m, &shape));
}

void map_mean(Map *m)
{
    need_real(m, need(m, 0));
    Dims shape = broadcast_shape(m, 0, m->node->input_count);
    define(m, out(m, 0), need(m, 0)->type, &shape, letters_of(shape.rank),
           fmt(m, "(%s) / %d", all_inputs(m, &shape), m->node->input_count));
}

/* A bound of Clip: an attribute before version 11, then an input; NULL: there is none. */
static const char *bound(const Map *m, const char *name, int input, const Dims *shape)
{
    if (m->node->version < 11)
        return has_attribute(m, name) ? attribute_literal(m, name, NULL) : NULL;
    return maybe(m, input) ? at_broadcast(m, maybe(m, input), shape) : NULL;
}

void map_clip(Map *m)
{
    const GraphValue *x = need(m, 0);
    const char *low = bound(m, "min", 1, &x->shape), *high = bound(m, "max", 2, &x->shape);
    const char *clipped = at_broadcast(m, x, &x->shape);
    if (low)
        clipped = fmt(m, "max(%s, %s)", clipped, low);
    if (high)
        clipped = fmt(m, "min(%s, %s)", clipped, high);
    define(m, out(m, 0), x->type, &x->shape, letters_of(x->shape.rank), clipped);
}

static void cast_to(Map *m, DType to)
{
    const GraphValue *x = need(m, 0);
    const char *text = x->type == DTYPE_B1               ? "select($0, 1, 0)"
                       : to == DTYPE_B1                  ? "$0 != 0"
                       : is_real(x->type) == is_real(to) ? "$0"
                                                         : fmt(m, "cast($0, %s)", dtype_info[to].name);
    broadcast(m, to, x->type == to ? "$0" : text);
}

void map_cast(Map *m)
{
    DType to;
    const char *problem = tensor_type((int)attribute_int(m, "to", 0), &to);
    if (problem)
        refuse(m, "to %s", problem);
    cast_to(m, to);
}

/* Of the second input the type alone is read. */
void map_cast_like(Map *m)
{
    Map inner = map_on(m, out(m, 0), &(const GraphValue *){need(m, 0)}, 1);
    cast_to(&inner, need(m, 1)->type);
}

/* `condition`, `then`, `else`. */
void map_where(Map *m)
{
    need_bool(m, 0);
    broadcast(m, need(m, 1)->type, "select($0, $1, $2)");
}

void map_gelu(Map *m)
{
    const char *how = attribute_text(m, "approximate", "none");
    need_real(m, need(m, 0));
    if (strcmp(how, "tanh") == 0)
        broadcast(m, need(m, 0)->type,
                  "0.5 * $0 * (1 + tanh(0.7978845608028654 * ($0 + 0.044715 * $0 * $0 * $0)))");
    else if (strcmp(how, "none") == 0)
        broadcast(m, need(m, 0)->type, "0.5 * $0 * (1 + erf($0 * 0.7071067811865476))");
    else
        refuse(m, "'approximate' is '%s'", how);
}

void map_is_inf(Map *m)
{
    bool below = attribute_int(m, "detect_negative", 1) != 0,
         above = attribute_int(m, "detect_positive", 1) != 0;
    need_real(m, need(m, 0));
    broadcast(m, DTYPE_B1,
              below && above ? "abs($0) == inf"
              : above        ? "$0 == inf"
              : below        ? "$0 == -inf"
                             : "$0 != $0 && $0 == $0");
}

/* Before version 7 a slope belongs to a channel. */
void map_prelu(Map *m)
{
    const GraphValue *x = need(m, 0), *slope = need(m, 1);
    if (m->node->version >= 7 || shape_count(&slope->shape) == 1) {
        if (!broadcasts_to(m, slope, &x->shape))
            refuse(m, "%s is not stretched to %s", shape_text(m->arena, &slope->shape),
                   shape_text(m->arena, &x->shape));
        broadcast(m, x->type, m->row->text);
        return;
    }
    if (x->shape.rank < 2)
        refuse(m, "a slope for each channel of %s", shape_text(m->arena, &x->shape));
    Filling filling = {.operands = {at_broadcast(m, x, &x->shape), at_channel(m, slope, &x->shape, 1)}};
    define(m, out(m, 0), x->type, &x->shape, letters_of(x->shape.rank), expand(m, m->row->text, &filling));
}

/* A real expression of a tensor that may be of integers. */
void map_any(Map *m)
{
    const GraphValue *x = need(m, 0);
    const char *value = expand(m, m->row->text, &(Filling){.operands = {at_broadcast(m, x, &x->shape)}});
    define_typed(m, out(m, 0), x->type, &x->shape, letters_of(x->shape.rank),
                 is_real(x->type) ? value : fmt(m, "cast(%s, %s)", value, dtype_info[x->type].name));
}

/* Operators that the language cannot say. */
void map_unsayable(Map *m) { refuse(m, "%s", m->row->text); }
