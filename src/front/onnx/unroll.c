#include "front/onnx/unroll.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "front/onnx/map.h"
#include "front/onnx/needed.h"
#include "front/onnx/operators.h"

enum { MOST_STEPS = 4096 };   // each takes definitions, of which a program has at most 16,384

/* A loop while it is unrolled. */
typedef struct Unrolled {
    Import *import;
    const Walker *walker;
    const GraphScope *around;
    const Body *body;
    const GraphNode *node;
    const Onnx__GraphProto *graph;   // of one step
    int states;                      // values that go from step to step
    GraphValue **state;
    int kept;              // outputs of each step that are concatenated
    GraphValue ***steps;   // of each of those: the values of all steps
    int count;             // steps that were made
} Unrolled;

// ---- nodes that the loop itself stands for ----

/* Inputs to one output by a mapping, as a node of the graph would be. */
static void run(const Unrolled *u, Mapping *map, const char *text, GraphValue **inputs, int count,
                GraphValue *output)
{
    Arena *arena = u->import->arena;
    GraphNode *node = NEW(arena, GraphNode);
    *node = *u->node;
    node->inputs = inputs;
    node->input_count = count;
    node->outputs = NEW(arena, GraphValue *);
    node->outputs[0] = output;
    node->output_count = output != NULL;
    Operator *row = NEW(arena, Operator);
    *row = (Operator){.name = node->op, .map = map, .text = text};
    u->walker->map(u->import, node, row);
}

/* How often a loop runs must be known. */
static void map_known(Map *m)
{
    for (int i = 0; i < 2; i++)
        if (maybe(m, i) && need_ints(m, i).count != 1)
            refuse(m, "'%s' is no scalar", need(m, i)->name);
}

/* One element along an axis: the row's text is its places. */
static void map_step(Map *m)
{
    const GraphValue *x = need(m, 0);
    int axis = atoi(strchr(m->row->text, ';') + 1);
    Dims shape = {.rank = x->shape.rank - 1};
    for (int d = 0; d < shape.rank; d++)
        shape.size[d] = x->shape.size[d + (d >= axis)];
    move(m, out(m, 0), x, &shape, fmt(m, "%.*s", (int)strcspn(m->row->text, ";"), m->row->text));
}

/* Values of all steps along a new axis, which the row's text is. */
static void map_stacked(Map *m)
{
    int count = m->node->input_count;
    const Dims *each = &need(m, 0)->shape;
    if (each->rank == MAX_RANK)
        refuse(m, "%d dimensions; a tensor has at most %d", each->rank + 1, MAX_RANK);
    int axis = axis_of(m, atoi(m->row->text), each->rank + 1);
    Dims shape = {.rank = each->rank + 1};
    StrBuf places = strbuf_new(m->arena);
    for (int d = 0; d < shape.rank; d++) {
        shape.size[d] = d == axis ? count : each->size[d - (d > axis)];
        if (d != axis)
            add_place(&places, fmt(m, "%c", letters_of(shape.rank)[d]));
    }
    int64_t *ends = NEW_ARRAY(m->arena, int64_t, count);
    const char **elements = NEW_ARRAY(m->arena, const char *, count);
    for (int i = 0; i < count; i++) {
        if (!shape_equal(&need(m, i)->shape, each) || need(m, i)->type != need(m, 0)->type)
            refuse(m, "its steps make %s and %s", shape_text(m->arena, each),
                   shape_text(m->arena, &need(m, i)->shape));
        ends[i] = i + 1;
        elements[i] = at(m, need(m, i), places.text);
    }
    define(m, out(m, 0), need(m, 0)->type, &shape, letters_of(shape.rank),
           select_range(m, fmt(m, "%c", letters_of(shape.rank)[axis]), ends, elements, count));
}

// ---- steps ----

static const Onnx__AttributeProto *attribute(const GraphNode *node, const char *name)
{
    for (size_t i = 0; i < node->proto->n_attribute; i++)
        if (node->proto->attribute[i]->name && strcmp(node->proto->attribute[i]->name, name) == 0)
            return node->proto->attribute[i];
    return NULL;
}

/* Integer `index` of a list; 0: there is none. */
static int64_t item(const Unrolled *u, const char *name, int index)
{
    const Onnx__AttributeProto *list = attribute(u->node, name);
    return list && (size_t)index < list->n_ints ? list->ints[index] : 0;
}

static GraphValue *constant(const Unrolled *u, DType type, int64_t number)
{
    GraphScope nowhere = {name_table_new(u->import->arena), NULL};
    GraphValue *value = u->walker->add_value(u->import, &nowhere, "step", NULL);
    void *data = arena_alloc(u->import->arena, sizeof number);
    if (type == DTYPE_B1)
        *(char *)data = number != 0;
    else
        memcpy(data, &number, sizeof number);
    constant_set(value, type, (Dims){0}, data);
    value->place = u->import->places++;
    return value;
}

/* The body, of which input i is inputs[i]; false: something in it cannot be taken. Its outputs take their
   places. */
static bool make_step(Unrolled *u, GraphValue **inputs, GraphValue **outputs)
{
    Import *import = u->import;
    u->walker->count(import);   // a body may be empty
    GraphScope scope = {name_table_new(import->arena), u->around};
    int problems = import->problem_count;
    for (size_t i = 0; i < u->graph->n_initializer; i++)
        u->walker->add_initializer(import, &scope, u->graph->initializer[i]);
    for (size_t i = 0; i < u->graph->n_input; i++)
        if (u->graph->input[i]->name)
            name_table_set(&scope.values, u->graph->input[i]->name, inputs[i]);
    Body inner = {u->graph->node,    u->graph->n_node,
                  u->body->versions, u->body->version_count,
                  u->body->caller,   needed_outputs(import->arena, u->graph->output, u->graph->n_output)};
    u->walker->body(import, &scope, &inner);
    bool made = import->problem_count == problems;
    for (size_t i = 0; i < u->graph->n_output && made; i++) {
        outputs[i] = graph_scope_find(&scope, u->graph->output[i]->name ? u->graph->output[i]->name : "");
        if (!outputs[i] || outputs[i]->state != VALUE_KNOWN || outputs[i]->problem) {
            u->walker->refuse(import, u->node, "its body does not make all its outputs");
            made = false;
        }
    }
    return made;
}

/* `first`: inputs before the states; a Loop has some, and its body gives a condition before them. */
static Unrolled begin(Import *import, const Walker *walker, const GraphScope *scope, const Body *body,
                      const GraphNode *node, int first, int states)
{
    const Onnx__AttributeProto *graph = attribute(node, "body");
    Unrolled u = {import, walker, scope, body, node, graph ? graph->g : NULL, states, NULL, 0, NULL, 0};
    u.state = NEW_ARRAY(import->arena, GraphValue *, states + 1);
    for (int i = 0; i < states; i++)
        u.state[i] = first + i < node->input_count ? node->inputs[first + i] : NULL;
    int64_t kept = u.graph ? (int64_t)u.graph->n_output - (first > 0) - states : 0;
    u.kept = (int)smaller(larger(kept, 0), 1 << 16);
    u.steps = NEW_ARRAY(import->arena, GraphValue **, u.kept + 1);
    for (int i = 0; i < u.kept; i++)
        u.steps[i] = NEW_ARRAY(import->arena, GraphValue *, MOST_STEPS);
    return u;
}

static bool has_body(const Unrolled *u, int64_t inputs, int64_t outputs)
{
    bool fits = u->graph && u->states >= 0 && (int64_t)u->graph->n_input == inputs &&
                (int64_t)u->graph->n_output == outputs;
    for (int i = 0; i < u->states && fits; i++)
        fits = u->state[i] != NULL;
    if (!fits)
        u->walker->refuse(u->import, u->node, "its body has other inputs and outputs than it needs");
    return fits;
}

/* What the loop makes, under its own names. `axes`: the attribute that says along which axis steps are
   concatenated. */
static void end(const Unrolled *u, const char *axes, const char *directions)
{
    for (int i = 0; i < u->states && i < u->node->output_count; i++)
        if (u->node->outputs[i])
            run(u, map_identity, "", &u->state[i], 1, u->node->outputs[i]);
    for (int i = 0; i < u->kept && u->states + i < u->node->output_count; i++) {
        GraphValue *output = u->node->outputs[u->states + i];
        if (!output)
            continue;
        if (!u->count) {
            u->walker->refuse(u->import, u->node, "it makes no step, and a tensor without elements is none");
            return;
        }
        for (int a = 0, b = u->count - 1; a < b && item(u, directions, i); a++, b--) {
            GraphValue *swapped = u->steps[i][a];
            u->steps[i][a] = u->steps[i][b];
            u->steps[i][b] = swapped;
        }
        run(u, map_stacked, arena_printf(u->import->arena, "%" PRId64, item(u, axes, i)), u->steps[i],
            u->count, output);
    }
}

// ---- Loop ----

/* Whether a condition holds, which must be known; NULL: it does. */
static bool holds(const GraphValue *condition) { return !condition || constant_int(condition, 0) != 0; }

void unroll_loop(Import *import, const Walker *walker, const GraphScope *scope, const Body *body,
                 const GraphNode *node)
{
    Unrolled u =
        begin(import, walker, scope, body, node, 2, node->input_count > 2 ? node->input_count - 2 : 0);
    GraphValue *most = node->input_count > 0 ? node->inputs[0] : NULL;
    const GraphValue *condition = node->input_count > 1 ? node->inputs[1] : NULL;
    int problems = import->problem_count;
    run(&u, map_known, "", node->inputs, (int)smaller(node->input_count, 2), NULL);
    if (import->problem_count > problems || !has_body(&u, 2 + u.states, 1 + u.states + u.kept)) {
        walker->set_refused(node);
        return;
    }
    GraphValue **inputs = NEW_ARRAY(import->arena, GraphValue *, u.states + 2),
               **outputs = NEW_ARRAY(import->arena, GraphValue *, 1 + u.states + u.kept);
    inputs[1] = constant(&u, DTYPE_B1, 1);
    for (; holds(condition) && (!most || u.count < constant_int(most, 0)); u.count++) {
        inputs[0] = constant(&u, DTYPE_I64, u.count);
        memcpy(inputs + 2, u.state, (size_t)u.states * sizeof *inputs);
        if (u.count == MOST_STEPS || !make_step(&u, inputs, outputs) || !outputs[0]->data) {
            walker->refuse(import, node,
                           u.count == MOST_STEPS
                               ? "it makes more than 4,096 steps"
                               : "when it ends depends on data, or its body cannot be taken");
            return;
        }
        condition = outputs[0];
        memcpy(u.state, outputs + 1, (size_t)u.states * sizeof *outputs);
        for (int i = 0; i < u.kept; i++)
            u.steps[i][u.count] = outputs[1 + u.states + i];
    }
    end(&u, "", "");
}

// ---- Scan ----

/* Step `t` of what is scanned; its name is that of the body's input. */
static GraphValue *scanned_at(const Unrolled *u, int input, int64_t t)
{
    GraphValue **x = NEW(u->import->arena, GraphValue *);
    *x = u->node->inputs[u->states + input];
    int64_t axis = item(u, "scan_input_axes", input), rank = (*x)->shape.rank;
    axis = axis < 0 ? axis + rank : axis;
    int64_t step = item(u, "scan_input_directions", input) ? (*x)->shape.size[axis] - 1 - t : t;
    StrBuf places = strbuf_new(u->import->arena);
    for (int d = 0; d < rank; d++)
        add_place(&places, d == axis
                               ? arena_printf(u->import->arena, "%" PRId64, step)
                               : arena_printf(u->import->arena, "%c", letters_of(MAX_RANK)[d - (d > axis)]));
    strbuf_printf(&places, ";%" PRId64, axis);
    GraphScope nowhere = {name_table_new(u->import->arena), NULL};
    const char *name = u->graph->input[u->states + input]->name;
    GraphValue *value = u->walker->add_value(u->import, &nowhere, name ? name : "step", NULL);
    run(u, map_step, places.text, x, 1, value);
    return value;
}

/* How many steps there are; -1: the inputs do not agree, or are no sequences. */
static int64_t scan_length(const Unrolled *u, int scanned)
{
    int64_t length = -1;
    for (int i = 0; i < scanned; i++) {
        const GraphValue *x = u->node->inputs[u->states + i];
        int64_t axis = x ? item(u, "scan_input_axes", i) : 0, rank = x ? x->shape.rank : 0;
        axis = axis < 0 ? axis + rank : axis;
        if (axis < 0 || axis >= rank || (length >= 0 && x->shape.size[axis] != length))
            return -1;
        length = x->shape.size[axis];
    }
    return length <= MOST_STEPS ? length : -1;
}

void unroll_scan(Import *import, const Walker *walker, const GraphScope *scope, const Body *body,
                 const GraphNode *node)
{
    const Onnx__AttributeProto *number = attribute(node, "num_scan_inputs");
    int scanned = number ? (int)smaller(larger(number->i, 0), node->input_count) : 0;
    Unrolled u = begin(import, walker, scope, body, node, 0, node->input_count - scanned);
    int64_t length = scan_length(&u, scanned);
    if (node->version < 9 || length < 0) {
        walker->refuse(import, node,
                       node->version < 9 ? "sequences of a batch, as before version 9"
                                         : "its sequences are not of one length, at most 4,096");
        return;
    }
    if (!has_body(&u, u.states + scanned, u.states + u.kept)) {
        walker->set_refused(node);
        return;
    }
    GraphValue **inputs = NEW_ARRAY(import->arena, GraphValue *, u.states + scanned + 1),
               **outputs = NEW_ARRAY(import->arena, GraphValue *, u.states + u.kept + 1);
    for (; u.count < length; u.count++) {
        memcpy(inputs, u.state, (size_t)u.states * sizeof *inputs);
        for (int i = 0; i < scanned; i++)
            inputs[u.states + i] = scanned_at(&u, i, u.count);
        if (!make_step(&u, inputs, outputs)) {
            walker->set_refused(node);
            return;
        }
        memcpy(u.state, outputs, (size_t)u.states * sizeof *outputs);
        for (int i = 0; i < u.kept; i++)
            u.steps[i][u.count] = outputs[u.states + i];
    }
    end(&u, "scan_output_axes", "scan_output_directions");
}
