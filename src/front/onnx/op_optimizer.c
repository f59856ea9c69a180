// A step of an optimizer: of each tensor its new value and state.
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

enum { MOST_STATES = 4 };   // value, gradient and what the optimizer keeps

/* How many tensors: all their values, then all gradients, then all of each state. */
static int tensor_count(const Map *m, int kinds)
{
    int given = m->node->input_count - 2;
    if (given < kinds || given % kinds)
        refuse(m, "%d inputs are no groups of %d", given, kinds);
    return given / kinds;
}

/* $0 the rate, $1 the time, $2 the value, $3 the gradient, $4 and $5 states, $6 what earlier steps gave. */
static Filling filling_of(const Map *m, int tensor, int count, int kinds, const Dims *shape)
{
    Filling filling = {.operands = {at_broadcast(m, need(m, 0), shape), at_broadcast(m, need(m, 1), shape)}};
    for (int kind = 0; kind < kinds; kind++) {
        const GraphValue *value = need(m, 2 + kind * count + tensor);
        if (!shape_equal(&value->shape, shape))
            refuse(m, "shapes %s and %s of one tensor", shape_text(m->arena, shape),
                   shape_text(m->arena, &value->shape));
        filling.operands[2 + kind] = at_broadcast(m, value, shape);
    }
    if (shape_count(&need(m, 0)->shape) != 1 || shape_count(&need(m, 1)->shape) != 1)
        refuse(m, "a rate and a time of more than one element");
    return filling;
}

/* A definition that later ones read as operand `operand`: output `output`, or a part where nothing wants
   it. */
static void step(Map *m, Filling *filling, int operand, int output, const char *suffix, const Dims *shape,
                 const char *text)
{
    DType type = need(m, 2)->type;
    GraphValue *value = output >= 0 ? out(m, output) : NULL;
    if (!value)
        value = part(m, need(m, 2), suffix);
    define(m, value, type, shape, letters_of(shape->rank), expand(m, text, filling));
    if (operand >= 0)
        filling->operands[operand] = at_broadcast(m, value, shape);
}

void map_adagrad(Map *m)
{
    int count = tensor_count(m, 3);
    for (int t = 0; t < count; t++) {
        const Dims *shape = &need(m, 2 + t)->shape;
        Filling filling = filling_of(m, t, count, 3, shape);
        step(m, &filling, 3, -1, "gradient", shape, "{norm_coefficient=0.0} * $2 + $3");
        step(m, &filling, 4, count + t, "squares", shape, "$4 + sq($3)");
        if (out(m, t))
            step(m, &filling, -1, t, "", shape,
                 "$2 - $0 / (1 + cast($1, f32) * {decay_factor=0.0}) * $3 / (sqrt($4) + {epsilon=1e-06})");
    }
}

void map_adam(Map *m)
{
    int count = tensor_count(m, 4);
    for (int t = 0; t < count; t++) {
        const Dims *shape = &need(m, 2 + t)->shape;
        Filling filling = filling_of(m, t, count, 4, shape);
        step(m, &filling, 3, -1, "gradient", shape, "{norm_coefficient=0.0} * $2 + $3");
        step(m, &filling, 4, count + t, "momentum", shape, "{alpha=0.9} * $4 + (1 - {alpha=0.9}) * $3");
        step(m, &filling, 5, 2 * count + t, "squares", shape,
             "{beta=0.999} * $5 + (1 - {beta=0.999}) * sq($3)");
        step(m, &filling, 6, -1, "rate", shape,
             "select($1 > 0, $0 * sqrt(1 - pow({beta=0.999}, cast($1, f32))) / (1 - pow({alpha=0.9}, "
             "cast($1, f32))), $0)");
        if (out(m, t))
            step(m, &filling, -1, t, "", shape,
                 "(1 - {norm_coefficient_post=0.0}) * ($2 - $6 * ($4 / (sqrt($5) + {epsilon=1e-06})))");
    }
}

void map_momentum(Map *m)
{
    int count = tensor_count(m, 3);
    const char *mode = attribute_text(m, "mode", "");
    bool nesterov = strcmp(mode, "nesterov") == 0;
    if (!nesterov && strcmp(mode, "standard") != 0)
        refuse(m, "'mode' is '%s'", mode);
    for (int t = 0; t < count; t++) {
        const Dims *shape = &need(m, 2 + t)->shape;
        Filling filling = filling_of(m, t, count, 3, shape);
        step(m, &filling, 3, -1, "gradient", shape, "{norm_coefficient} * $2 + $3");
        step(m, &filling, 4, count + t, "momentum", shape, "{alpha} * $4 + select($1 > 0, {beta}, 1) * $3");
        if (out(m, t))
            step(m, &filling, -1, t, "", shape, nesterov ? "$2 - $0 * ($3 + {alpha} * $4)" : "$2 - $0 * $4");
    }
}
