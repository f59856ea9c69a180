// The text of a program while it is being written: statements that know what they read, so that only those
// that an output needs are printed.
#pragma once
#include "front/onnx/access.h"
#include "front/onnx/graph.h"

typedef struct Draft Draft;

/* `folding`: of a program that is evaluated at once; constants are its inputs, as they are. */
Draft *draft_new(Arena *arena, NameTable *taken, bool folding);

/* An `input` statement of the graph. Bools are bytes outside and a condition inside. */
void draft_input(Draft *draft, GraphValue *value);

/* The tensor that holds the value: of a constant one that is declared when it is first asked for. */
const char *draft_tensor(Draft *draft, const GraphValue *value);

/* `name[axes] : type = expr`. `axes` has a letter for each dimension; `expr` states the extents of all its
   reductions. Extents that follow from an access are left out. `stated`: the type must be written, since the
   language's own rule gives another one. */
void draft_define(Draft *draft, const char *comment, const char *name, const Dims *shape, const char *axes,
                  DType type, bool stated, const char *expr);
void draft_view(Draft *draft, const char *comment, const char *name, const Dims *shape, const char *of);

/* The value under its own name; copies it where something else holds it. */
void draft_output(Draft *draft, GraphValue *value);

/* From here on definitions are of a node that slides a window over its input, until draft_begin_node(). */
void draft_slide(Draft *draft);
void draft_begin_node(Draft *draft);

/* How a weight lies in the file. */
typedef struct DraftWeight {
    const GraphValue *value;
    DType type;
    StorageOrder order;
} DraftWeight;

typedef struct DraftText {
    const char *text;
    size_t length;
    DraftWeight *weights;   // in the order of their statements; of a draft that folds, of its inputs
    int weight_count;
} DraftText;

/* Leaves out what no output needs. */
void draft_prune(Draft *draft);

/* What the outputs need, and all inputs. */
DraftText draft_finish(Draft *draft);

/* A constant as it is written in an expression: 2.0, (-1), (1 == 1). */
const char *literal_real(Arena *arena, DType type, double value);
const char *literal_int(Arena *arena, int64_t value);
