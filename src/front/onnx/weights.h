// The file of weights.
#pragma once
#include "base/file_parts.h"
#include "front/onnx/draft.h"

size_t weights_length(const DraftText *text);

/* All of them in the order of their statements, each at the next multiple of 256, of the type and in the
   order of dimensions that its statement has. One that lies so in the model is not copied. */
FileParts weights_parts(Arena *arena, const DraftText *text);
