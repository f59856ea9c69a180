// Inputs of a graph: their types and shapes, with symbols and values that the user binds.
#pragma once
#include "front/onnx/graph.h"
#include "front/onnx/onnx.h"

typedef struct Bindings {
    Arena *arena;
    const OnnxBinding *items;
    int count;
    bool *used;
    NameTable open;   // symbols without a binding, to the tensors that have them
    const char **open_names;
    int open_count;
} Bindings;

Bindings bindings_new(Arena *arena, const OnnxBinding *items, int count);

/* Type and shape of an input; where its values are bound it is a constant. */
void bind_input(Bindings *bindings, const Onnx__ValueInfoProto *info, GraphValue *value);

/* Refuses symbols that are not bound, all at once, and bindings of what the model does not have. */
void bindings_finish(const Bindings *bindings, const char *model);
