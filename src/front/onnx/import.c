#include <string.h>

#include "base/diag.h"
#include "front/onnx/bind.h"
#include "front/onnx/layout.h"
#include "front/onnx/map.h"
#include "front/onnx/mapped.h"
#include "front/onnx/needed.h"
#include "front/onnx/onnx.h"
#include "front/onnx/precision.h"
#include "front/onnx/walk.h"
#include "front/onnx/weights.h"
#include "front/onnx/wire.h"

/* Of the evaluator, for all constants that are folded: half a second. */
static const double folding_work = 1 << 24;

static void tell_problem(void *text) { fatal(EXIT_INPUT, "%s", (const char *)text); }

static void tell_problems(Import *import)
{
    int more = import->problem_count - MOST_PROBLEMS;
    const char **last = &import->problems[MOST_PROBLEMS - 1];
    if (more > 0)
        *last = arena_printf(import->arena, "%s; %d more nodes cannot be taken", *last, more);
    for (int i = 0; i < import->problem_count && i < MOST_PROBLEMS; i++)
        diag_attempt(tell_problem, (void *)import->problems[i]);
    diag_finish();
}

// ---- inputs and outputs ----

static bool is_initializer(const NameTable *initializers, const char *name)
{
    return name_table_find(initializers, name) != NULL;
}

/* Inputs that no initialiser gives, in order; the kernel's arguments. */
static void add_inputs(Import *import, GraphScope *scope, const Onnx__GraphProto *graph, Bindings *bindings)
{
    NameTable initializers = name_table_new(import->arena);
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (graph->initializer[i]->name)
            name_table_set(&initializers, graph->initializer[i]->name, graph->initializer[i]);
    for (size_t i = 0; i < graph->n_input; i++) {
        const char *name = graph->input[i]->name;
        if (!name || !*name || name_table_find(&scope->values, name))
            fatal(EXIT_INPUT, "'%s': two inputs have one name, or one has none", import->path);
        if (is_initializer(&initializers, name))
            continue;
        GraphValue *value = walk_add_value(import, scope, name, NULL);
        bind_input(bindings, graph->input[i], value);
        value->is_input = !value->data;
        value->place = import->places++;
    }
}

static void add_outputs(Import *import, GraphScope *scope, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_output; i++) {
        const char *name = graph->output[i]->name ? graph->output[i]->name : "";
        GraphValue *value = graph_scope_find(scope, name);
        if (!value)
            value = walk_add_value(import, scope, name, NULL);
        value->is_output = true;
    }
}

// ---- the model ----

static void check_versions(const Import *import)
{
    const Onnx__ModelProto *model = import->model;
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const char *domain = model->opset_import[i]->domain ? model->opset_import[i]->domain : "";
        int newest = operator_newest(strcmp(domain, "ai.onnx") == 0 ? "" : domain);
        if (newest && model->opset_import[i]->version > newest)
            fatal(EXIT_INPUT, "'%s' has operators of version %lld; the newest that is known is %d",
                  import->path, (long long)model->opset_import[i]->version, newest);
    }
    if (model->graph->n_sparse_initializer)
        fatal(EXIT_INPUT, "'%s' has sparse weights", import->path);
}

static void write_outputs(Import *import, const GraphScope *scope, const Onnx__GraphProto *graph)
{
    if (!graph->n_output)
        fatal(EXIT_INPUT, "'%s' has no output", import->path);
    for (size_t i = 0; i < graph->n_output; i++) {
        GraphValue *value = graph_scope_find(scope, graph->output[i]->name ? graph->output[i]->name : "");
        if (value->state == VALUE_UNKNOWN)
            fatal(EXIT_INPUT, "output '%s' is made by no node", value->name);
        if (value->problem || shape_count(&value->shape) == 0)
            fatal(EXIT_INPUT, "output '%s' has %s", value->name,
                  value->problem ? value->problem : "no elements");
        draft_output(import->draft, value);
    }
}

static void import_graph(Import *import, Bindings *bindings)
{
    const Onnx__ModelProto *model = import->model;
    GraphScope scope = {name_table_new(import->arena), NULL};
    add_inputs(import, &scope, model->graph, bindings);
    bindings_finish(bindings, import->path);
    for (size_t i = 0; i < model->graph->n_initializer; i++)
        walk_add_initializer(import, &scope, model->graph->initializer[i]);
    add_outputs(import, &scope, model->graph);
    for (size_t i = 0; i < model->graph->n_input; i++) {
        GraphValue *value = graph_scope_find(&scope, model->graph->input[i]->name);
        if (value->is_input)
            draft_input(import->draft, value);
    }
    Body body = {model->graph->node,
                 model->graph->n_node,
                 model->opset_import,
                 model->n_opset_import,
                 NULL,
                 needed_outputs(import->arena, model->graph->output, model->graph->n_output)};
    walk_body(import, &scope, &body);
    tell_problems(import);
    write_outputs(import, &scope, model->graph);
}

OnnxProgram onnx_import_bytes(Arena *arena, const char *path, const void *bytes, size_t length,
                              const OnnxOptions *options)
{
    Import import = {
        .arena = arena, .path = path, .taken = name_table_new(arena), .folding_left = folding_work};
    import.model = wire_unpack(arena, path, bytes, length);
    import.draft = draft_new(arena, &import.taken, false);
    check_versions(&import);
    Bindings bindings = bindings_new(arena, options->bindings, options->binding_count);
    import_graph(&import, &bindings);
    bool narrows = options->precision == DTYPE_F16 || options->precision == DTYPE_BF16;
    layout_arrange(import.draft, options->layout, narrows);
    precision_lower(import.draft, options->precision, options->io_precision);
    DraftText *draft = NEW(arena, DraftText);
    *draft = draft_finish(import.draft);
    return (OnnxProgram){draft->text, draft->length, weights_length(draft), draft};
}

FileParts onnx_weights(Arena *arena, const OnnxProgram *program)
{
    return weights_parts(arena, program->draft);
}

OnnxProgram onnx_import(Arena *arena, const char *path, const OnnxOptions *options)
{
    Mapped file = mapped_open(path);
    OnnxProgram program = onnx_import_bytes(arena, path, file.bytes, file.length, options);
    mapped_close(file);
    return program;
}
