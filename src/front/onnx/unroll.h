// Loops whose counts are known: their bodies, once for each step.
#pragma once
#include "front/onnx/walk.h"

/* A `Loop` or a `Scan` that stands in a graph of these names. */
void unroll_loop(Import *import, const GraphScope *scope, const Body *body, const GraphNode *node);
void unroll_scan(Import *import, const GraphScope *scope, const Body *body, const GraphNode *node);
