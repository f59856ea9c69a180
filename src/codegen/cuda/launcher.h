// The host part of an emitted file: NAME_workspace and NAME_launch.
#pragma once
#include "base/strbuf.h"
#include "codegen/cuda/kernel.h"

/* Position of the tensor among the program's arguments: inputs, then outputs; -1: it is a temporary. */
int program_argument(const Program *program, const Tensor *tensor);

void write_launcher(StrBuf *out, const Program *program, const Kernel *kernel);
