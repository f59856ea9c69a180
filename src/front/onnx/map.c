#include "front/onnx/map.h"

#include <stdarg.h>
#include <string.h>

void refuse(const Map *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    m->refusal->text = arena_vprintf(m->arena, format, args);
    va_end(args);
    longjmp(m->refusal->back, 1);
}

const GraphValue *maybe(const Map *m, int input)
{
    return input < m->node->input_count ? m->node->inputs[input] : NULL;
}

const GraphValue *need(const Map *m, int input)
{
    const GraphValue *value = maybe(m, input);
    if (!value)
        refuse(m, "input %d is left out", input);
    return value;
}

GraphValue *out(const Map *m, int output)
{
    return output < m->node->output_count ? m->node->outputs[output] : NULL;
}

void refuse_output(const Map *m, int output, const char *what)
{
    if (out(m, output))
        refuse(m, "%s, its output %d, is not made", what, output);
}

Map map_on(const Map *m, GraphValue *output, const GraphValue *const *inputs, int count)
{
    GraphNode *node = NEW(m->arena, GraphNode);
    *node = *m->node;
    node->inputs = NEW_ARRAY(m->arena, GraphValue *, count + 1);
    memcpy(node->inputs, inputs, (size_t)count * sizeof *inputs);
    node->input_count = count;
    node->outputs = NEW_ARRAY(m->arena, GraphValue *, 1);
    node->outputs[0] = output;
    node->output_count = 1;
    Map inner = *m;
    inner.node = node;
    return inner;
}

void comment(Map *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(m->arena, format, args);
    va_end(args);
    m->comment = arena_printf(m->arena, "%s%s%s", m->comment, strchr(m->comment, ':') ? ", " : ": ", text);
}

// ---- what must be known now ----

enum {
    LARGEST_BOUND = 1024,    // elements of an input that one may be asked to bind
    LARGEST_SEARCH = 1000,   // steps: for a message, in a graph whose paths join again
};

/* An input of the graph, a scalar or a few integers, that the value is made of: the likely cause. NULL: none
   is near. */
static const GraphValue *cause(const GraphValue *value, int *steps)
{
    if (value->is_input)
        return value->shape.rank == 0 ||
                       (!is_real(value->type) && shape_count(&value->shape) <= LARGEST_BOUND)
                   ? value
                   : NULL;
    for (int i = 0; value->maker && i < value->maker->input_count && ++*steps < LARGEST_SEARCH; i++) {
        const GraphValue *input = value->maker->inputs[i], *found = input ? cause(input, steps) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

const GraphValue *need_constant(const Map *m, int input)
{
    const GraphValue *value = need(m, input);
    if (value->data)
        return value;
    int steps = 0;
    const GraphValue *bound = value->is_input ? value : cause(value, &steps);
    if (bound)
        refuse(m,
               "'%s' must be known when the model is imported, and %s '%s': bind it with --bind %s=VALUE,…",
               value->name, value->is_input ? "is the graph's input" : "depends on the graph's input",
               bound->name, bound->name);
    refuse(m, "'%s' must be known when the model is imported, and depends on data", value->name);
}

Ints need_ints(const Map *m, int input)
{
    const GraphValue *value = need_constant(m, input);
    int64_t count = shape_count(&value->shape);
    if (is_real(value->type) || value->shape.rank > 1 || count > LARGEST_BOUND)
        refuse(m, "'%s' is no vector of integers", value->name);
    int64_t *items = NEW_ARRAY(m->arena, int64_t, count + 1);
    for (int i = 0; i < count; i++)
        items[i] = constant_int(value, i);
    return (Ints){(int)count, items};
}
