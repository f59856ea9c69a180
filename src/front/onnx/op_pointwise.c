// Operators that are an expression at each point.
#include "front/onnx/map.h"
#include "front/onnx/operators.h"
#include "front/onnx/tensor.h"

void map_same(Map *m) { broadcast(m, need(m, 0)->type, m->row->text); }
void map_condition(Map *m) { need(m, 0), broadcast(m, DTYPE_B1, m->row->text); }

/* Any number of inputs: $0 is what those before make, $1 the next one. */
void map_many(Map *m)
{
    DType type = need(m, 0)->type;
    Dims shape = broadcast_shape(m, 0, m->node->input_count);
    const char *all = at_broadcast(m, need(m, 0), &shape);
    for (int i = 1; i < m->node->input_count; i++)
        all = expand(m, m->row->text, &(Filling){.operands = {all, at_broadcast(m, need(m, i), &shape)}});
    define(m, out(m, 0), type, &shape, letters_of(shape.rank), all);
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

void map_cast(Map *m)
{
    DType from = need(m, 0)->type, to;
    const char *problem = tensor_type((int)attribute_int(m, "to", 0), &to);
    if (problem)
        refuse(m, "to %s", problem);
    if (to == DTYPE_B1)
        broadcast(m, to, from == DTYPE_B1 ? "$0" : "$0 != 0");
    else if (from == DTYPE_B1)
        broadcast(m, to, "select($0, 1, 0)");
    else
        broadcast(m, to, is_real(from) == is_real(to) ? "$0" : fmt(m, "cast($0, %s)", dtype_info[to].name));
}
