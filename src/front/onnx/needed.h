// What of a graph is read: the rest is not mapped.
#pragma once
#include "front/onnx/graph.h"

/* The names of a graph's outputs. */
NameTable needed_outputs(Arena *arena, Onnx__ValueInfoProto **outputs, size_t count);

/* Adds to `wanted` all that the nodes read which make something wanted; says which these are. */
bool *needed_nodes(Arena *arena, Onnx__NodeProto **nodes, size_t count, NameTable *wanted);
