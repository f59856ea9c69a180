// The text of a program while it is being written: statements that know what they read, so that only those are
// printed which an output needs.
#pragma once
#include "front/onnx/graph.h"

/* No type is written: the language's own rule gives the right one. */
#define DTYPE_NATURAL DTYPE_COUNT

typedef struct Draft Draft;

/* `folding`: of a program that is evaluated at once; constants are its inputs, as they are. */
Draft *draft_new(Arena *arena, NameTable *taken, bool folding);

/* An `input` statement of the graph. Bools are bytes outside and a condition inside. */
void draft_input(Draft *draft, GraphValue *value);

/* The tensor that holds the value: of a constant one that is declared when it is first asked for. */
const char *draft_tensor(Draft *draft, const GraphValue *value);

/* `name[axes] : type = expr`. `axes` has a letter for each dimension; `expr` states the extents of all its reductions.
   Extents that follow from an access are left out. `inputs` decides whether the type must be written. */
void draft_define(Draft *draft, const char *comment, const char *name, const Dims *shape, const char *axes,
                  DType type, const char *expr);
void draft_view(Draft *draft, const char *comment, const char *name, const Dims *shape, const char *of);

/* The value under its own name; copies it where something else holds it. */
void draft_output(Draft *draft, GraphValue *value);

typedef struct DraftText {
    const char *text;
    size_t length;
    const GraphValue **weights;   // in the order of their statements; of a draft that folds, of its inputs
    int weight_count;
} DraftText;

/* What the outputs need, and all inputs. */
DraftText draft_finish(Draft *draft);

/* A constant as it is written in an expression: 2.0, (-1), (1 == 1). */
const char *literal_real(Arena *arena, DType type, double value);
const char *literal_int(Arena *arena, int64_t value);
