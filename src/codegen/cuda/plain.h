// The expression once more, as anyone would write it: a function on the host for each definition, in double
// precision, with a loop for each index that is reduced over. A kernel's file made --with-test
// compares the kernel with it.
//
//   auto m = keep([&](long long i) { return (float)(largest_of<double>(1024, [&](long long j) { return x(i * 1024 + j); })); });
#pragma once
#include "base/strbuf.h"
#include "codegen/cuda/kernel.h"
#include "codegen/cuda/names.h"

/* The program's main(), in terms of templates/main.cuh. */
const char *plain_main(Arena *arena, const Program *program, const Kernel *kernel, Names *names);
