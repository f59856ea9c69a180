#include "front/onnx/walk.h"

#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "front/onnx/fold.h"
#include "front/onnx/map.h"
#include "front/onnx/names.h"
#include "front/onnx/needed.h"
#include "front/onnx/tensor.h"
#include "front/onnx/unroll.h"

enum {
    MOST_NESTED = 32,       // branches and functions within each other
    MOST_NODES = 1 << 17,   // those of functions counted where they are called; large models have 50,000
};

static void note_problem(Import *import, const char *text)
{
    for (int i = 0; i < import->problem_count && i < MOST_PROBLEMS; i++)
        if (strcmp(import->problems[i], text) == 0)
            return;
    if (import->problem_count < MOST_PROBLEMS)
        import->problems[import->problem_count] = text;
    import->problem_count++;
}

// ---- values ----

GraphValue *walk_add_value(Import *import, GraphScope *scope, const char *name, const char *op)
{
    GraphValue *value = NEW(import->arena, GraphValue);
    value->name = name;
    value->own = names_take(&import->taken, name, op);
    name_table_set(&scope->values, name, value);
    return value;
}

void walk_add_initializer(Import *import, GraphScope *scope, const Onnx__TensorProto *tensor)
{
    const char *name = tensor->name ? tensor->name : "";
    if (name_table_find(&scope->values, name))
        fatal(EXIT_INPUT, "'%s' has two weights of the name '%s'", import->path, name);
    GraphValue *value = walk_add_value(import, scope, name, NULL);
    DType type;
    Dims shape;
    const void *data = tensor_read(import->arena, import->path, tensor, &type, &shape, &value->problem);
    if (data)
        constant_set(value, type, shape, data);
    value->place = import->places++;
}

// ---- nodes ----

static int version_of(const Body *body, const char *domain)
{
    for (size_t i = 0; i < body->version_count; i++) {
        const char *named = body->versions[i]->domain ? body->versions[i]->domain : "";
        if (strcmp(strcmp(named, "ai.onnx") == 0 ? "" : named, domain) == 0)
            return (int)smaller(larger(body->versions[i]->version, 0), 1 << 20);
    }
    return 0;
}

static const char *label_of(Arena *arena, const Onnx__NodeProto *proto)
{
    const char *op = proto->op_type ? proto->op_type : "";
    if (proto->name && *proto->name)
        return arena_printf(arena, "%s '%s'", op, proto->name);
    return arena_printf(arena, "%s that makes '%s'", op, proto->n_output ? proto->output[0] : "");
}

/* Left out, by its empty name or as an input of the function that was left out. */
static GraphValue absent;

static GraphValue *input_of(Import *import, const GraphScope *scope, const GraphNode *node, const char *name)
{
    if (!*name)
        return NULL;
    GraphValue *value = graph_scope_find(scope, name);
    if (!value || (value->state == VALUE_UNKNOWN && value != &absent && !value->problem))
        fatal(EXIT_INPUT, "%s reads '%s', which nothing before it makes", node->label, name);
    (void)import;
    return value == &absent ? NULL : value;
}

/* NULL: nothing reads it. */
static GraphValue *output_of(Import *import, GraphScope *scope, const Body *body, const GraphNode *node,
                             const char *name)
{
    if (!name_table_find(&body->wanted, name))
        return NULL;
    GraphValue *value = name_table_find(&scope->values, name);
    if (value &&
        (value->state != VALUE_UNKNOWN || value->is_input || value == &absent || value->maker == node))
        fatal(EXIT_INPUT, "%s makes '%s', which is there already", node->label, name);
    value = value ? value : walk_add_value(import, scope, name, node->op);
    value->maker = node;
    return value;
}

static GraphNode *resolve(Import *import, GraphScope *scope, const Body *body, const Onnx__NodeProto *proto)
{
    GraphNode *node = NEW(import->arena, GraphNode);
    const char *domain = proto->domain ? proto->domain : "";
    *node = (GraphNode){.label = label_of(import->arena, proto),
                        .op = proto->op_type ? proto->op_type : "",
                        .domain = strcmp(domain, "ai.onnx") == 0 ? "" : domain,
                        .inputs = NEW_ARRAY(import->arena, GraphValue *, proto->n_input + 1),
                        .input_count = (int)proto->n_input,
                        .outputs = NEW_ARRAY(import->arena, GraphValue *, proto->n_output + 1),
                        .output_count = (int)proto->n_output,
                        .proto = proto,
                        .caller = body->caller};
    node->version = version_of(body, node->domain);
    for (int i = 0; i < node->input_count; i++)
        node->inputs[i] = input_of(import, scope, node, proto->input[i]);
    for (int i = 0; i < node->output_count; i++)
        node->outputs[i] = output_of(import, scope, body, node, proto->output[i]);
    return node;
}

static void set_outputs(const GraphNode *node, ValueState state)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i])
            node->outputs[i]->state = state;
}

static void refuse_node(Import *import, const GraphNode *node, const char *text)
{
    note_problem(import, arena_printf(import->arena, "%s: %s", node->label, text));
    set_outputs(node, VALUE_REFUSED);
}

/* The comment above a node's definitions: `Conv conv1`, also of an exporter's `/conv1/Conv`. */
static const char *comment_of(Arena *arena, const GraphNode *node)
{
    const char *name = node->proto->name ? node->proto->name : "", *slash = strrchr(name, '/');
    size_t length = slash && strcmp(slash + 1, node->op) == 0 ? (size_t)(slash - name) : strlen(name);
    char *text = arena_printf(arena, "%s%s%.*s", node->op, length ? " " : "", (int)length, name);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = ' ';
    return text;
}

static void check_outputs(const Map *m)
{
    for (int i = 0; i < m->node->output_count; i++)
        if (out(m, i) && out(m, i)->state != VALUE_KNOWN)
            refuse(m, "its output %d is not made", i);
}

/* False: the node was refused, and is told. */
static bool map_node(Import *import, Map *m)
{
    Refusal refusal = {.text = NULL};
    m->refusal = &refusal;
    if (setjmp(refusal.back)) {
        refuse_node(import, m->node, refusal.text);
        return false;
    }
    draft_begin_node(m->draft);
    m->row->map(m);
    check_outputs(m);
    return true;
}

// ---- constants ----

static bool is_small(const GraphValue *value)
{
    return value->data && (value->uniform || shape_count(&value->shape) <= MOST_FOLDED);
}

static bool has_small_inputs(const GraphNode *node)
{
    bool small = true;
    for (int i = 0; i < node->input_count && small; i++)
        small = !node->inputs[i] || is_small(node->inputs[i]);
    return small;
}

static bool has_small_outputs(const GraphNode *node)
{
    bool small = true;
    for (int i = 0; i < node->output_count && small; i++)
        small = !node->outputs[i] || node->outputs[i]->data || node->outputs[i]->uniform ||
                shape_count(&node->outputs[i]->shape) <= MOST_FOLDED;
    return small;
}

static void forget_outputs(const GraphNode *node)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i]) {
            node->outputs[i]->data = node->outputs[i]->tensor = NULL;
            node->outputs[i]->uniform = false;
            node->outputs[i]->state = VALUE_UNKNOWN;
        }
}

/* Names that a draft of one node must not take. */
static NameTable names_around(Arena *arena, const GraphNode *node)
{
    NameTable taken = name_table_new(arena);
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i])
            name_table_set(&taken, node->inputs[i]->own, node->inputs[i]);
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i])
            name_table_set(&taken, node->outputs[i]->own, node->outputs[i]);
    return taken;
}

/* True: the node's outputs are constants now, or it was refused. */
static bool fold_node(Import *import, Map m)
{
    NameTable taken = names_around(import->arena, m.node);
    m.folding = true;
    m.taken = &taken;
    m.draft = draft_new(import->arena, &taken, true);
    if (!map_node(import, &m))
        return true;
    if (!has_small_outputs(m.node)) {
        forget_outputs(m.node);
        return false;
    }
    if (!fold(import->arena, m.draft, m.node->outputs, m.node->output_count, m.node->label,
              &import->folding_left)) {
        forget_outputs(m.node);
        return false;
    }
    for (int i = 0; i < m.node->output_count; i++)
        if (m.node->outputs[i])
            m.node->outputs[i]->place = import->places++;
    return true;
}

// ---- functions and branches ----

static const Onnx__FunctionProto *function_of(const Import *import, const GraphNode *node)
{
    for (size_t i = 0; i < import->model->n_functions; i++) {
        const Onnx__FunctionProto *function = import->model->functions[i];
        const char *domain = function->domain ? function->domain : "";
        if (function->name && strcmp(function->name, node->op) == 0 && strcmp(domain, node->domain) == 0)
            return function;
    }
    return NULL;
}

static bool enter(Import *import, const GraphNode *node)
{
    if (import->depth == MOST_NESTED)
        refuse_node(import, node, "more than 32 functions and branches within each other");
    else
        import->depth++;
    return node->output_count == 0 || import->depth < MOST_NESTED || node->outputs[0]->state != VALUE_REFUSED;
}

/* The body's nodes, in the place of the one that calls it. */
static void inline_function(Import *import, const GraphNode *node, const Onnx__FunctionProto *function)
{
    GraphScope scope = {name_table_new(import->arena), NULL};
    for (size_t i = 0; i < function->n_input; i++) {
        GraphValue *given = (int)i < node->input_count ? node->inputs[i] : NULL;
        name_table_set(&scope.values, function->input[i], given ? given : &absent);
    }
    for (size_t i = 0; i < function->n_output && (int)i < node->output_count; i++)
        if (node->outputs[i] && !name_table_find(&scope.values, function->output[i]))
            name_table_set(&scope.values, function->output[i], node->outputs[i]);
    NameTable wanted = name_table_new(import->arena);
    for (size_t i = 0; i < function->n_output && (int)i < node->output_count; i++)
        if (node->outputs[i])
            name_table_set(&wanted, function->output[i], function->output[i]);
    bool own = function->n_opset_import > 0;
    Body body = {function->node,
                 function->n_node,
                 own ? function->opset_import : import->model->opset_import,
                 own ? function->n_opset_import : import->model->n_opset_import,
                 node,
                 wanted};
    walk_body(import, &scope, &body);
}

static const Onnx__GraphProto *branch_of(const GraphNode *node, const char *name)
{
    for (size_t i = 0; i < node->proto->n_attribute; i++)
        if (node->proto->attribute[i]->name && strcmp(node->proto->attribute[i]->name, name) == 0)
            return node->proto->attribute[i]->g;
    return NULL;
}

/* What the branch makes, under the names of the `If`. */
static void map_branch_outputs(Map *m)
{
    const Onnx__GraphProto *branch = branch_of(m->node, m->row->name);
    for (int i = 0; i < m->node->output_count; i++) {
        const GraphValue *made = m->node->inputs[i];
        if (!branch || !made || made->state != VALUE_KNOWN)
            refuse(m, "its branch does not make output %d", i);
        if (out(m, i))
            view_as(m, out(m, i), made, &made->shape);
    }
}

static Map map_of(Import *import, const GraphNode *node, const Operator *row)
{
    return (Map){.arena = import->arena,
                 .node = node,
                 .row = row,
                 .draft = import->draft,
                 .taken = &import->taken,
                 .comment = comment_of(import->arena, node),
                 .places = &import->places,
                 .model = import->path};
}

static void take_branch(Import *import, const GraphScope *around, const Body *body, GraphNode *node,
                        const char *which)
{
    const Onnx__GraphProto *branch = branch_of(node, which);
    GraphScope scope = {name_table_new(import->arena), around};
    for (size_t i = 0; branch && i < branch->n_initializer; i++)
        walk_add_initializer(import, &scope, branch->initializer[i]);
    int problems = import->problem_count;
    if (branch) {
        Body inner = {branch->node,   branch->n_node,
                      body->versions, body->version_count,
                      body->caller,   needed_outputs(import->arena, branch->output, branch->n_output)};
        walk_body(import, &scope, &inner);
    }
    GraphNode *ends = NEW(import->arena, GraphNode);   // makes the values, and so must stay
    *ends = *node;
    ends->input_count = node->output_count;
    ends->inputs = NEW_ARRAY(import->arena, GraphValue *, node->output_count + 1);
    for (int i = 0; branch && i < node->output_count && (size_t)i < branch->n_output; i++)
        ends->inputs[i] = graph_scope_find(&scope, branch->output[i]->name ? branch->output[i]->name : "");
    Map m = map_of(import, ends, &(Operator){.name = which, .map = map_branch_outputs});
    if (import->problem_count > problems)
        set_outputs(node, VALUE_REFUSED);
    else
        map_node(import, &m);
}

static void map_known_condition(Map *m)
{
    if (need_ints(m, 0).count != 1)
        refuse(m, "its condition '%s' is no scalar", need(m, 0)->name);
}

static void run_if(Import *import, const GraphScope *scope, const Body *body, GraphNode *node)
{
    GraphNode condition = *node;
    condition.output_count = 0;
    Map m = map_of(import, &condition, &(Operator){.name = "If", .map = map_known_condition});
    if (map_node(import, &m))
        take_branch(import, scope, body, node,
                    constant_int(node->inputs[0], 0) ? "then_branch" : "else_branch");
    else
        set_outputs(node, VALUE_REFUSED);
}

// ---- the walk ----

/* Why none of the inputs' problems is the node's: they were told, or the type cannot be taken. */
static bool inputs_are_known(Import *import, const GraphNode *node)
{
    for (int i = 0; i < node->input_count; i++) {
        const GraphValue *value = node->inputs[i];
        if (value && value->problem)
            refuse_node(import, node,
                        arena_printf(import->arena, "'%s' has %s", value->name, value->problem));
        if (value && (value->problem || value->state == VALUE_REFUSED)) {
            set_outputs(node, VALUE_REFUSED);
            return false;
        }
    }
    return true;
}

static void map_or_fold(Import *import, const GraphNode *node, const Operator *row)
{
    Map m = map_of(import, node, row);
    if (has_small_inputs(node) && fold_node(import, m))
        return;
    map_node(import, &m);
}

static void set_refused(const GraphNode *node) { set_outputs(node, VALUE_REFUSED); }

static bool is_operator(const GraphNode *node, const char *name)
{
    return strcmp(node->op, name) == 0 && !*node->domain;
}

static void run_operator(Import *import, const GraphNode *node)
{
    const Operator *row = operator_find(node);
    if (!row) {
        const char *domain = *node->domain ? node->domain : "ai.onnx";
        refuse_node(import, node,
                    arena_printf(import->arena, "the operator %s of %s, version %d, is not known", node->op,
                                 domain, node->version));
        return;
    }
    if (!inputs_are_known(import, node))
        return;
    map_or_fold(import, node, row);
}

static void count_node(Import *import)
{
    if (import->node_count++ == MOST_NODES)
        fatal(
            EXIT_INPUT,
            "'%s' has more than %d nodes, those of its functions and loops counted each time they are called",
            import->path, MOST_NODES);
}

static const Walker walker = {walk_body,      map_or_fold,          refuse_node, set_refused,
                              walk_add_value, walk_add_initializer, count_node};

void walk_body(Import *import, GraphScope *scope, Body *body)
{
    const bool *needed = needed_nodes(import->arena, body->nodes, body->node_count, &body->wanted);
    for (size_t i = 0; i < body->node_count; i++) {
        if (!needed[i])
            continue;
        count_node(import);
        GraphNode *node = resolve(import, scope, body, body->nodes[i]);
        const Onnx__FunctionProto *function = function_of(import, node);
        bool loops = is_operator(node, "Loop"), scans = is_operator(node, "Scan");
        bool nests = function || loops || scans || is_operator(node, "If");
        if (!nests) {
            run_operator(import, node);
            continue;
        }
        if (!inputs_are_known(import, node) || !enter(import, node))
            continue;
        if (function)
            inline_function(import, node, function);
        else if (loops)
            unroll_loop(import, &walker, scope, body, node);
        else if (scans)
            unroll_scan(import, &walker, scope, body, node);
        else
            run_if(import, scope, body, node);
        import->depth--;
    }
}
