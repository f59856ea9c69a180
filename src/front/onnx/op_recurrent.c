// Recurrent layers, unrolled: a definition or a few for each step in time.
//
// What the inputs of all steps give is one product; each step multiplies the state before it. A step behind
// the end of its sequence keeps the state, in both directions: so a reversed sequence begins with its last
// step.
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

enum { MOST_STEPS = 4096 };   // each takes definitions, of which a program has at most 16,384

/* A layer in one direction. */
typedef struct Layer {
    const GraphValue *x, *w, *r, *bias, *lengths, *peepholes;
    int64_t steps, batch, inputs, hidden;
    int gates, direction;   // `direction`: the first index of the weights
    bool batch_first, reversed, resets_late;
    DType type;                // of states and sums
    const char *clip;          // NULL: none
    const char *texts[3];      // activations: "tanh($0)"
    const GraphValue *given;   // what the inputs give, with biases: [step, batch, gate and unit]
} Layer;

/* h and, of an LSTM, c before or after a step; NULL: zero. */
typedef struct State {
    const char *h, *c;      // element [n, j]
    const char *h_factor;   // h at [n, k]
} State;

// ---- activations ----

typedef struct Activation {
    const char *name, *text;   // $0 the value, $1 alpha, $2 beta
    double alpha, beta;
} Activation;

static const Activation activations[] = {
    {"Relu", "max($0, 0)", 0, 0},
    {"Tanh", "tanh($0)", 0, 0},
    {"Sigmoid", "sigmoid($0)", 0, 0},
    {"Affine", "($1 * ($0) + $2)", 1, 0},
    {"LeakyRelu", "select($0 < 0, $1 * ($0), $0)", 0.01, 0},
    {"ThresholdedRelu", "select($0 >= $1, $0, 0)", 1, 0},
    {"ScaledTanh", "($1 * tanh($2 * ($0)))", 1, 1},
    {"HardSigmoid", "max(0, min(1, $1 * ($0) + $2))", 0.2, 0.5},
    {"Elu", "select($0 < 0, $1 * (exp($0) - 1), $0)", 1, 0},
    {"Softsign", "(($0) / (1 + abs($0)))", 0, 0},
    {"Softplus", "(max($0, 0) + log(1 + exp(-abs($0))))", 0, 0},
};

static const Onnx__AttributeProto *find_texts(const Map *m)
{
    for (size_t i = 0; i < m->node->proto->n_attribute; i++)
        if (m->node->proto->attribute[i]->name &&
            strcmp(m->node->proto->attribute[i]->name, "activations") == 0)
            return m->node->proto->attribute[i];
    return NULL;
}

static const Activation *activation_named(const Map *m, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (strlen(activations[i].name) == length && strncasecmp(activations[i].name, name, length) == 0)
            return &activations[i];
    refuse(m, "activation '%.*s'", (int)length, name);
}

/* Those of one direction after the other; alpha and beta are those of the functions that take one, in their
   order. */
static void read_activations(const Map *m, int directions, int each, const char *const *usual, Layer *layers)
{
    const Onnx__AttributeProto *given = find_texts(m);
    Reals alphas = attribute_reals(m, "activation_alpha"), betas = attribute_reals(m, "activation_beta");
    if (given && given->ref_attr_name && *given->ref_attr_name)
        refuse(m, "activations of a function's caller");
    if (given && given->n_strings != (size_t)(directions * each))
        refuse(m, "%zu activations where %d are needed", given->n_strings, directions * each);
    int alpha = 0, beta = 0;
    for (int i = 0; i < directions * each; i++) {
        const char *name = given ? (const char *)given->strings[i].data : usual[i % each];
        const Activation *found = activation_named(m, name, given ? given->strings[i].len : strlen(name));
        double a = found->alpha, b = found->beta;
        if (strstr(found->text, "$1") && alpha < alphas.count)
            a = (double)alphas.items[alpha++];
        if (strstr(found->text, "$2") && beta < betas.count)
            b = (double)betas.items[beta++];
        Filling filling = {
            .operands = {"$0", literal_real(m->arena, DTYPE_F32, a), literal_real(m->arena, DTYPE_F32, b)}};
        layers[i / each].texts[i % each] = expand(m, found->text, &filling);
    }
    if (alpha < alphas.count || beta < betas.count)
        refuse(m, "%d alphas and %d betas, more than its activations take", alphas.count, betas.count);
}

static const char *activated(const Map *m, const Layer *layer, int which, const char *value)
{
    if (layer->clip)
        value = fmt(m, "min(max(%s, -%s), %s)", value, layer->clip, layer->clip);
    return expand(m, layer->texts[which], &(Filling){.operands = {value}});
}

// ---- inputs ----

static void check_shape(const Map *m, const GraphValue *value, int rank, int64_t a, int64_t b, int64_t c)
{
    Dims wanted = {rank, {a, b, c}};
    if (value && !shape_equal(&value->shape, &wanted))
        refuse(m, "'%s' is %s and not %s", value->name, shape_text(m->arena, &value->shape),
               shape_text(m->arena, &wanted));
}

static bool all_as_long(const GraphValue *lengths, int64_t steps)
{
    bool same = lengths->data != NULL;
    for (int64_t i = 0; same && i < shape_count(&lengths->shape); i++)
        same = constant_int(lengths, i) == steps;
    return same;
}

/* What all directions have in common; returns how many there are. */
static int read_layers(Map *m, int gates, int per_direction, const char *const *usual, Layer layers[2])
{
    const char *direction = attribute_text(m, "direction", "forward");
    bool both = strcmp(direction, "bidirectional") == 0, reverse = strcmp(direction, "reverse") == 0;
    if (!both && !reverse && strcmp(direction, "forward") != 0)
        refuse(m, "direction '%s'", direction);
    Layer layer = {
        .x = need(m, 0), .w = need(m, 1), .r = need(m, 2), .bias = maybe(m, 3), .lengths = maybe(m, 4)};
    layer.gates = gates;
    layer.batch_first = attribute_int(m, "layout", 0) != 0;
    layer.type = wide(layer.x->type);
    if (layer.x->shape.rank != 3 || layer.r->shape.rank != 3)
        refuse(m, "sequences %s, weights %s", shape_text(m->arena, &layer.x->shape),
               shape_text(m->arena, &layer.r->shape));
    layer.steps = layer.x->shape.size[layer.batch_first];
    layer.batch = layer.x->shape.size[!layer.batch_first];
    layer.inputs = layer.x->shape.size[2];
    layer.hidden = layer.r->shape.size[2];
    if (layer.steps < 1 || layer.steps > MOST_STEPS)
        refuse(m, "%" PRId64 " steps; at least one and at most %d are unrolled", layer.steps, MOST_STEPS);
    check_shape(m, layer.w, 3, both + 1, gates * layer.hidden, layer.inputs);
    check_shape(m, layer.r, 3, both + 1, gates * layer.hidden, layer.hidden);
    check_shape(m, layer.bias, 2, both + 1, 2 * gates * layer.hidden, 0);
    check_shape(m, layer.lengths, 1, layer.batch, 0, 0);
    if (layer.lengths && all_as_long(layer.lengths, layer.steps))
        layer.lengths = NULL;
    layer.clip = has_attribute(m, "clip") ? attribute_literal(m, "clip", NULL) : NULL;
    for (int d = 0; d <= both; d++) {
        layers[d] = layer;
        layers[d].direction = d;
        layers[d].reversed = reverse || d == 1;
    }
    read_activations(m, both + 1, per_direction, usual, layers);
    comment(m, "%s, %" PRId64 " steps", direction, layer.steps);
    return both + 1;
}

/* The product of the inputs of all steps with their weights, and the biases. */
static void define_given(Map *m, Layer *layer)
{
    int d = layer->direction;
    int64_t size = layer->gates * layer->hidden;
    GraphValue *given = part(m, layer->x, "given");
    const char *product = fmt(m, "sum[k:%" PRId64 "](%s * %s)", layer->inputs,
                              at(m, layer->x, layer->batch_first ? "n, t, k" : "t, n, k"),
                              at(m, layer->w, fmt(m, "%d, j, k", d)));
    if (layer->bias) {
        product = fmt(m, "%s + %s", product, at(m, layer->bias, fmt(m, "%d, j", d)));
        if (!layer->resets_late)
            product = fmt(m, "%s + %s", product, at(m, layer->bias, fmt(m, "%d, j + %" PRId64, d, size)));
    }
    define(m, given, layer->type, &(Dims){3, {layer->steps, layer->batch, size}}, "tnj", product);
    layer->given = given;
}

/* The state before the first step. */
static State initial_state(const Map *m, const Layer *layer, const GraphValue *h, const GraphValue *c)
{
    State state = {0};
    int64_t directions = layer->w->shape.size[0];
    int64_t a = layer->batch_first ? layer->batch : directions,
            b = layer->batch_first ? directions : layer->batch;
    check_shape(m, h, 3, a, b, layer->hidden);
    check_shape(m, c, 3, a, b, layer->hidden);
    const char *places =
        layer->batch_first ? fmt(m, "n, %d", layer->direction) : fmt(m, "%d, n", layer->direction);
    if (h) {
        state.h = at(m, h, fmt(m, "%s, j", places));
        state.h_factor = at(m, h, fmt(m, "%s, k", places));
    }
    if (c)
        state.c = at(m, c, fmt(m, "%s, j", places));
    return state;
}

// ---- steps ----

static Dims state_shape(const Layer *layer) { return (Dims){2, {layer->batch, layer->hidden}}; }

/* What the state gives for gates `first` … of the weights: [n, j]; NULL: the state is zero. */
static const GraphValue *define_recurrence(Map *m, const Layer *layer, const char *factor, int first,
                                           int count)
{
    if (!factor && !(layer->resets_late && layer->bias))
        return NULL;
    GraphValue *value = part(m, layer->r, "step");
    int64_t offset = first * layer->hidden, size = layer->gates * layer->hidden;
    const char *row = offset ? fmt(m, "j + %" PRId64, offset) : "j";
    const char *product = factor ? fmt(m, "sum[k:%" PRId64 "](%s * %s)", layer->hidden, factor,
                                       at(m, layer->r, fmt(m, "%d, %s, k", layer->direction, row)))
                                 : "";
    if (layer->resets_late && layer->bias)
        product = fmt(m, "%s%s%s", product, factor ? " + " : "",
                      at(m, layer->bias, fmt(m, "%d, j + %" PRId64, layer->direction, size + offset)));
    define(m, value, layer->type, &(Dims){2, {layer->batch, count * layer->hidden}}, "nj", product);
    return value;
}

static const char *unit(const Map *m, const Layer *layer, int gate)
{
    return gate ? fmt(m, "j + %" PRId64, gate * layer->hidden) : "j";
}

static const char *given_at(const Map *m, const Layer *layer, int64_t step, int gate)
{
    return at(m, layer->given, fmt(m, "%" PRId64 ", n, %s", step, unit(m, layer, gate)));
}

/* What the inputs and the state give for one gate; `gate` of the recurrence is counted from its first. */
static const char *gate_sum(const Map *m, const Layer *layer, int64_t step, int gate,
                            const GraphValue *recurrence, int recurrent_gate)
{
    const char *given = given_at(m, layer, step, gate);
    return recurrence
               ? fmt(m, "%s + %s", given, at(m, recurrence, fmt(m, "n, %s", unit(m, layer, recurrent_gate))))
               : given;
}

/* The state after the step, where the sequence is not at its end. */
static const GraphValue *define_state(Map *m, const Layer *layer, int64_t step, const char *suffix,
                                      const char *next, const char *before)
{
    GraphValue *value = part(m, out(m, 0) ? out(m, 0) : layer->x, suffix);
    if (layer->lengths)
        next = fmt(m, "select(%" PRId64 " < %s, %s, %s)", step, at(m, layer->lengths, "n"), next,
                   before ? before : "0");
    Dims shape = state_shape(layer);
    define(m, value, layer->type, &shape, "nj", next);
    return value;
}

static State state_of(const Map *m, const GraphValue *h, const GraphValue *c)
{
    return (State){at(m, h, "n, j"), c ? at(m, c, "n, j") : NULL, at(m, h, "n, k")};
}

static State step_rnn(Map *m, const Layer *layer, int64_t step, State before)
{
    const GraphValue *recurrence = define_recurrence(m, layer, before.h_factor, 0, 1);
    const char *next = activated(m, layer, 0, gate_sum(m, layer, step, 0, recurrence, 0));
    return state_of(m, define_state(m, layer, step, "h", next, before.h), NULL);
}

/* Gates z, r, h. The reset is before the product with the state or, late, behind it. */
static State step_gru(Map *m, const Layer *layer, int64_t step, State before)
{
    const GraphValue *recurrence =
        define_recurrence(m, layer, before.h_factor, 0, layer->resets_late ? 3 : 2);
    const char *z = activated(m, layer, 0, gate_sum(m, layer, step, 0, recurrence, 0)),
               *r = activated(m, layer, 0, gate_sum(m, layer, step, 1, recurrence, 1)),
               *sum = given_at(m, layer, step, 2);
    if (layer->resets_late && recurrence) {
        sum = fmt(m, "%s + %s * %s", sum, r, at(m, recurrence, fmt(m, "n, %s", unit(m, layer, 2))));
    } else if (before.h) {
        GraphValue *kept = part(m, layer->r, "kept");
        Dims shape = state_shape(layer);
        define(m, kept, layer->type, &shape, "nj", fmt(m, "%s * %s", r, before.h));
        sum = gate_sum(m, layer, step, 2, define_recurrence(m, layer, at(m, kept, "n, k"), 2, 1), 0);
    }
    const char *next = fmt(m, "(1 - %s) * %s", z, activated(m, layer, 1, sum));
    next = before.h ? fmt(m, "%s + %s * %s", next, z, before.h) : next;
    return state_of(m, define_state(m, layer, step, "h", next, before.h), NULL);
}

/* A gate of an LSTM that peepholes let see the cell. */
static const char *lstm_gate(const Map *m, const Layer *layer, int64_t step, int gate, int peephole,
                             const GraphValue *recurrence, const char *cell)
{
    const char *sum = gate_sum(m, layer, step, gate, recurrence, gate);
    if (layer->peepholes && cell)
        sum =
            fmt(m, "%s + %s * %s", sum,
                at(m, layer->peepholes, fmt(m, "%d, %s", layer->direction, unit(m, layer, peephole))), cell);
    return activated(m, layer, 0, sum);
}

/* Gates i, o, f, c; peepholes i, o, f. */
static State step_lstm(Map *m, const Layer *layer, int64_t step, State before)
{
    const GraphValue *recurrence = define_recurrence(m, layer, before.h_factor, 0, 4);
    const char *i = lstm_gate(m, layer, step, 0, 0, recurrence, before.c);
    const char *f = attribute_int(m, "input_forget", 0)
                        ? fmt(m, "(1 - %s)", i)
                        : lstm_gate(m, layer, step, 2, 2, recurrence, before.c);
    const char *next =
        fmt(m, "%s * %s", i, activated(m, layer, 1, gate_sum(m, layer, step, 3, recurrence, 3)));
    if (before.c)
        next = fmt(m, "%s * %s + %s", f, before.c, next);
    const GraphValue *c = define_state(m, layer, step, "c", next, before.c);
    const char *cell = at(m, c, "n, j");
    Layer plain = *layer;
    plain.clip = NULL;   // of gates alone
    const char *o = lstm_gate(m, layer, step, 1, 1, recurrence, cell);
    next = fmt(m, "%s * %s", o, activated(m, &plain, 2, cell));
    return state_of(m, define_state(m, layer, step, "h", next, before.h), c);
}

// ---- outputs ----

/* Elements [n, j] of all steps and directions: `states[d * steps + t]`. */
static void define_sequence(Map *m, const Layer *layers, int directions, const State *states)
{
    const Layer *layer = &layers[0];
    int64_t steps = layer->steps, *ends = NEW_ARRAY(m->arena, int64_t, steps + 2);
    const char **elements = NEW_ARRAY(m->arena, const char *, steps), *sides[2];
    for (int64_t t = 0; t < steps; t++)
        ends[t] = t + 1;
    for (int d = 0; d < directions; d++) {
        for (int64_t t = 0; t < steps; t++)
            elements[t] = states[d * steps + t].h;
        sides[d] = select_range(m, "t", ends, elements, (int)steps);
    }
    const char *all = select_range(m, "d", (int64_t[]){1, 2}, sides, directions);
    if (layer->lengths)
        all = fmt(m, "select(t < %s, %s, 0)", at(m, layer->lengths, "n"), all);
    Dims shape = {4, {steps, directions, layer->batch, layer->hidden}};
    if (layer->batch_first)
        shape = (Dims){4, {layer->batch, steps, directions, layer->hidden}};
    define(m, out(m, 0), layer->x->type, &shape, layer->batch_first ? "ntdj" : "tdnj", all);
}

static void define_last(Map *m, const Layer *layer, int directions, int output, const char *const *elements)
{
    Dims shape = {3, {directions, layer->batch, layer->hidden}};
    if (layer->batch_first)
        shape = (Dims){3, {layer->batch, directions, layer->hidden}};
    define(m, out(m, output), layer->x->type, &shape, layer->batch_first ? "ndj" : "dnj",
           select_range(m, "d", (int64_t[]){1, 2}, elements, directions));
}

typedef State Step(Map *m, const Layer *layer, int64_t step, State before);

static void unroll(Map *m, Layer *layers, int directions, Step *step, const GraphValue *h,
                   const GraphValue *c)
{
    int64_t steps = layers[0].steps;
    State *states = NEW_ARRAY(m->arena, State, directions * steps), last[2];
    for (int d = 0; d < directions; d++) {
        define_given(m, &layers[d]);
        last[d] = initial_state(m, &layers[d], h, c);
        for (int64_t i = 0; i < steps; i++) {
            int64_t t = layers[d].reversed ? steps - 1 - i : i;
            states[d * steps + t] = last[d] = step(m, &layers[d], t, last[d]);
        }
    }
    if (out(m, 0))
        define_sequence(m, layers, directions, states);
    if (out(m, 1))
        define_last(m, layers, directions, 1, (const char *[]){last[0].h, last[directions - 1].h});
    if (out(m, 2))
        define_last(m, layers, directions, 2, (const char *[]){last[0].c, last[directions - 1].c});
}

void map_rnn(Map *m)
{
    Layer layers[2];
    int directions = read_layers(m, 1, 1, (const char *[]){"Tanh"}, layers);
    unroll(m, layers, directions, step_rnn, maybe(m, 5), NULL);
}

void map_gru(Map *m)
{
    Layer layers[2];
    int directions = read_layers(m, 3, 2, (const char *[]){"Sigmoid", "Tanh"}, layers);
    for (int d = 0; d < directions; d++)
        layers[d].resets_late = attribute_int(m, "linear_before_reset", 0) != 0;
    unroll(m, layers, directions, step_gru, maybe(m, 5), NULL);
}

void map_lstm(Map *m)
{
    Layer layers[2];
    int directions = read_layers(m, 4, 3, (const char *[]){"Sigmoid", "Tanh", "Tanh"}, layers);
    check_shape(m, maybe(m, 7), 2, directions, 3 * layers[0].hidden, 0);
    for (int d = 0; d < directions; d++)
        layers[d].peepholes = maybe(m, 7);
    unroll(m, layers, directions, step_lstm, maybe(m, 5), maybe(m, 6));
}
