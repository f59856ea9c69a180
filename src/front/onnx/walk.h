// GraphNode by node through a graph, the branches of its conditions and the bodies of its functions.
#pragma once
#include "front/onnx/draft.h"
#include "front/onnx/graph.h"

enum { MOST_PROBLEMS = 20 };   // that are told

typedef struct Import {
    Arena *arena;
    const char *path;
    const Onnx__ModelProto *model;
    NameTable taken;   // names of the program
    Draft *draft;
    int places;                            // of weights so far
    int depth;                             // of branches and functions
    const char *problems[MOST_PROBLEMS];   // of nodes that cannot be taken
    int problem_count;                     // of all, told or not
    int node_count;                        // that were looked at
    double folding_left;                   // operations that may still be spent on folding
} Import;

/* What a graph, a branch or a function is made of. */
typedef struct Body {
    Onnx__NodeProto **nodes;
    size_t node_count;
    Onnx__OperatorSetIdProto **versions;
    size_t version_count;
    const GraphNode *caller;   // of a function's body
    NameTable wanted;          // what is read of it outside: its outputs
} Body;

GraphValue *walk_add_value(Import *import, GraphScope *scope, const char *name, const char *op);
void walk_add_initializer(Import *import, GraphScope *scope, const Onnx__TensorProto *tensor);

/* Maps the nodes that are needed; those that cannot be taken are problems. */
void walk_body(Import *import, GraphScope *scope, Body *body);
