#include "front/onnx/needed.h"

static void want(NameTable *wanted, const char *name)
{
    if (*name)
        name_table_set(wanted, name, (void *)name);
}

NameTable needed_outputs(Arena *arena, Onnx__ValueInfoProto **outputs, size_t count)
{
    NameTable wanted = name_table_new(arena);
    for (size_t i = 0; i < count; i++)
        if (outputs[i]->name)
            want(&wanted, outputs[i]->name);
    return wanted;
}

/* All that a node reads, in its branches, too, whose own names do no harm. */
static void want_inputs(NameTable *wanted, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_input; i++)
        want(wanted, node->input[i]);
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__GraphProto *graph = node->attribute[i]->g;
        for (size_t j = 0; graph && j < graph->n_node; j++)
            want_inputs(wanted, graph->node[j]);
        for (size_t j = 0; graph && j < graph->n_output; j++)
            if (graph->output[j]->name)
                want(wanted, graph->output[j]->name);
    }
}

bool *needed_nodes(Arena *arena, Onnx__NodeProto **nodes, size_t count, NameTable *wanted)
{
    bool *needed = NEW_ARRAY(arena, bool, count + 1);
    for (size_t i = count; i-- > 0;) {
        for (size_t j = 0; j < nodes[i]->n_output && !needed[i]; j++)
            needed[i] = name_table_find(wanted, nodes[i]->output[j]) != NULL;
        if (needed[i])
            want_inputs(wanted, nodes[i]);
    }
    return needed;
}
