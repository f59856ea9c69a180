// Loops whose counts are known: their bodies, once for each step.
#pragma once
#include "front/onnx/map.h"
#include "front/onnx/walk.h"

/* What walking does for a loop, which it calls itself. */
typedef struct Walker {
    void (*body)(Import *import, GraphScope *scope, Body *body);
    void (*map)(Import *import, const GraphNode *node,
                const Operator *row);   // constants where its inputs are
    void (*refuse)(Import *import, const GraphNode *node, const char *text);
    void (*set_refused)(const GraphNode *node);   // what was told already
    GraphValue *(*add_value)(Import *import, GraphScope *scope, const char *name, const char *op);
    void (*add_initializer)(Import *import, GraphScope *scope, const Onnx__TensorProto *tensor);
    void (*count)(Import *import);   // a node, or what takes as much; ends where there are too many
} Walker;

/* A `Loop` or a `Scan` that stands in a graph of these names. */
void unroll_loop(Import *import, const Walker *walker, const GraphScope *scope, const Body *body,
                 const GraphNode *node);
void unroll_scan(Import *import, const Walker *walker, const GraphScope *scope, const Body *body,
                 const GraphNode *node);
