// A model's graph as the importer sees it: values with shapes, and nodes in an order in which each reads what
// came before it.
#pragma once
#include <onnx.pb-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "front/onnx/name_table.h"
#include "ir/tensor_op.h"

typedef struct Dims {
    int rank;
    int64_t size[MAX_RANK];
} Dims;

typedef struct GraphNode GraphNode;

typedef enum ValueState {
    VALUE_UNKNOWN,   // what makes it has not been mapped yet
    VALUE_KNOWN,
    VALUE_REFUSED   // what makes it cannot be taken; that was said
} ValueState;

typedef struct GraphValue {
    const char *name;     // in the model
    const char *own;      // its name in the program
    const char *tensor;   // that holds it in the program; NULL: none yet
    ValueState state;
    const char *problem;   // why nothing can be done with it; NULL: something can
    DType type;            // bool is b1
    Dims shape;
    const void
        *data;   // of a constant: its elements, row-major, a bool a byte; NULL: known when the program runs
    bool uniform;   // of a constant: `data` is one element, and all others are like it
    bool is_input, is_output;
    int place;   // of a weight in the file of weights: initialisers in the model's order, then others
    const GraphNode *maker;   // NULL: an input or an initialiser
} GraphValue;

struct GraphNode {
    const char *label;   // for messages: Conv 'conv1'
    const char *op, *domain;
    int version;           // of the operators of its domain
    GraphValue **inputs;   // NULL: left out
    int input_count;
    GraphValue **outputs;   // NULL: not wanted
    int output_count;
    const Onnx__NodeProto *proto;
    const GraphNode *caller;   // of whose function's body it is one; NULL: it stands in a graph
};

/* Names of values that are seen from a graph, a branch of an `If` or a function's body. */
typedef struct GraphScope GraphScope;
struct GraphScope {
    NameTable values;
    const GraphScope *around;   // NULL: nothing is seen of it
};

GraphValue *graph_scope_find(const GraphScope *scope, const char *name);

/* Elements, at most 2^40; more, or a size below 0: -1. */
int64_t shape_count(const Dims *shape);
bool shape_equal(const Dims *a, const Dims *b);
Dims shape_of(int rank, const int64_t *sizes);
/* `[2, 3]`, for messages and comments. */
const char *shape_text(Arena *arena, const Dims *shape);

/* Bytes of an element of a constant: of a bool 1. */
int constant_bytes(DType type);
/* Element `index` of a constant of integers or bools. */
int64_t constant_int(const GraphValue *value, int64_t index);
/* Element `index` of any constant. */
/* All elements have the same bits. */
bool constant_is_one_value(const GraphValue *value);

double constant_real(const GraphValue *value, int64_t index);
/* Makes the value a constant that holds these elements; all alike are kept as one. */
void constant_set(GraphValue *value, DType type, Dims shape, const void *data);
