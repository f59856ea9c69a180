// Constants that are made of constants: a definition that reads nothing else is evaluated when it is
// imported.
#pragma once
#include "front/onnx/draft.h"

/* Elements of what is folded, and of what it is made of. */
enum { MOST_FOLDED = 1024 };

/* The outputs of a draft that folds become constants. False: they cost more than `left`, operations that may
   be spent on folding, from which theirs are taken. `label` names the node. */
bool fold(Arena *arena, Draft *draft, GraphValue *const *outputs, int count, const char *label,
          double *left);
