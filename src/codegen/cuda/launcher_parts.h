// What both forms of the host part share: NAME_launch (launcher.c) and NAME_graph (graph.c).
#pragma once
#include <inttypes.h>

#include "base/strbuf.h"
#include "codegen/cuda/kernel.h"
#include "hal/runtime.h"

/* `in0`, `out1`: what the argument is called until it has its name. */
const char *launcher_argument(Arena *arena, const Program *program, int argument);
/* Alignment of the pointers. */
void launcher_write_checks(StrBuf *out, const Kernel *kernel);
/* `cudaError_t status`, of what kernels must be allowed. */
void launcher_write_status(StrBuf *out, const Kernel *kernel);
/* Kernel k is launched more than once: a function of its own makes the launch. */
bool launcher_is_shared(const Kernel *kernel, int k);
/* `args`, and the tensor maps that they hold, not described yet; `program` NULL: in a kernel's own function. */
void launcher_write_arguments(StrBuf *out, const char *indent, const Program *program, const Launch *launch);
/* How bulk copies see the arguments, with `status` for what the driver says. */
void launcher_write_maps(StrBuf *out, const char *indent, const Program *program, const Launch *launch);
/* Grid and block. */
void launcher_write_shape(StrBuf *out, const Launch *launch);

/* A cluster that is larger than what kernels may have without asking. */
bool launcher_needs_large_cluster(const Launch *launch);
/* Some kernel must be allowed something: NAME_allow is there. */
bool launcher_needs_allowance(const Kernel *kernel);
/* `const void *x, void *y, void *workspace`, with the launcher's names, or with numbers for them. */
void launcher_write_parameters(StrBuf *out, const Kernel *kernel, bool numbered);
/* The head of NAME_graph, likewise. */
void launcher_write_graph_signature(StrBuf *out, const Kernel *kernel, bool numbered);
/* NAME_graph. */
void launcher_write_graph(StrBuf *out, const Kernel *kernel);
