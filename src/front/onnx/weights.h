// The file of weights.
#pragma once
#include "front/onnx/draft.h"

/* All of them in the order of their statements, each at the next multiple of 256, of the type and in the order of
   dimensions that its statement has. */
const char *weights_bytes(Arena *arena, const DraftText *text, size_t *length);
