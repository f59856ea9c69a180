// The comment above a kernel's constants.
#pragma once
#include "codegen/codegen.h"

/* The launch's rTiles, the model's estimate, and the launches that share its kernel. */
const char *provenance(Arena *arena, const CodegenRequest *request, const Kernel *kernel, int index);
