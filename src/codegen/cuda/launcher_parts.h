// What the parts of the launcher's text share: launcher.c has the pieces, launcher_prepare.c what programs with weights have beside
// them, graph.c NAME_graph, launcher_text.c the whole, header.c its declarations.
#pragma once
#include "base/strbuf.h"
#include "codegen/cuda/kernel.h"

/* `in0`, `out1`: what the argument is called until it has its name. */
const char *launcher_argument(Arena *arena, const Program *program, int argument);
/* `x[64, 1024] : f16` */
void launcher_tensor(StrBuf *out, const Tensor *stored);
bool launcher_is_weight(const Program *program, int argument);
/* Of NAME_launch, with numbers for names or with those. */
void launcher_signature(StrBuf *out, const Kernel *kernel, bool numbered);
void launcher_graph_signature(StrBuf *out, const Kernel *kernel, bool numbered);
void launcher_prepare_signature(StrBuf *out, const Kernel *kernel);

/* ` || !workspace || (size_t)workspace % 256 != 0`, or nothing if it has no bytes. */
void launcher_check_place(StrBuf *out, const char *name, int64_t bytes);
/* `(void)workspace;` if it has none. */
void launcher_unused(StrBuf *out, const char *name, int64_t bytes);
/* What NAME_launch is given is aligned. */
void launcher_check(StrBuf *out, const Program *program, const Kernel *kernel);

/* What kernels must be allowed. */
void launcher_allowances(StrBuf *out, const Kernel *kernel, bool hip);
/* What the launcher takes of the prelude. */
void launcher_using(StrBuf *out, const Kernel *kernel);
/* Whether launches [first, last) take something of it. */
bool launcher_uses_prelude(const Kernel *kernel, int first, int last);
/* Functions of kernels that are launched more than once. */
void launcher_functions(StrBuf *out, const Kernel *kernel, bool hip);
/* `cudaError_t status = …` */
void launcher_status(StrBuf *out, const Kernel *kernel);
/* Launches [first, last), and the end of the function. */
void launcher_range(StrBuf *out, const Kernel *kernel, int first, int last);
/* The same of a call's launches, which may be one. */
void launcher_launches(StrBuf *out, const Kernel *kernel);

/* Kernel k is launched more than once: a function of its own makes the launch. */
bool launcher_is_shared(const Kernel *kernel, int k);
/* `args`, and the tensor maps that they hold, not described yet; `program` NULL: in a kernel's own function. */
void launcher_write_arguments(StrBuf *out, const char *indent, const Program *program, const Launch *launch);
/* How bulk copies see the arguments, with `status` for what the driver says. */
void launcher_write_maps(StrBuf *out, const char *indent, const Program *program, const Launch *launch);
/* The arguments, `x, (char *)workspace + 256, `. */
void launcher_write_values(StrBuf *out, const Program *program, const Launch *launch);
/* Grid and block. */
void launcher_write_shape(StrBuf *out, const Launch *launch);
/* NAME_graph. */
void launcher_graph(StrBuf *out, const Kernel *kernel);

/* NAME_PREPARED_ID, NAME_weights and NAME_prepared. */
void launcher_sizes_of_weights(StrBuf *out, const Kernel *kernel);
void launcher_prepare(StrBuf *out, const Kernel *kernel, bool hip);
