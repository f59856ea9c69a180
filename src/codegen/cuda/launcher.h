// The host part of an emitted file: NAME_workspace, NAME_launch and, but for HIP, NAME_graph.
#pragma once
#include "base/strbuf.h"
#include "codegen/cuda/kernel.h"
#include "codegen/cuda/names.h"

/* Its text; gives the kernel's arguments their names, which are none of those in `names`. */
const char *launcher_text(Arena *arena, Kernel *kernel, bool hip, Names *names);

/* A C header that declares them. */
char *codegen_header(Arena *arena, const Kernel *kernel);
