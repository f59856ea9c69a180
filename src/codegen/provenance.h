// The comment above a kernel's constants.
#pragma once
#include "codegen/codegen.h"

/* Why the kernel of the launch is as it is: its rTiles, what the model says, and which launches have it, too. */
const char *provenance(Arena *arena, const CodegenRequest *request, const Kernel *kernel, int index);
