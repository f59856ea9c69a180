// The host part of an emitted file: NAME_workspace and NAME_launch.
#pragma once
#include "base/strbuf.h"
#include "codegen/cuda/kernel.h"
#include "codegen/cuda/names.h"

/* Its text; gives the kernel's arguments their names, which are none of those in `names`. */
const char *launcher_text(Arena *arena, Kernel *kernel, bool hip, Names *names);

/* A C header that declares NAME_workspace and NAME_launch. */
char *codegen_header(Arena *arena, const Kernel *kernel);
