// What the parts of the launcher's text share: launcher.c has the pieces, launcher_list.c several launches,
// launcher_prepare.c what programs with weights have beside them, graph.c NAME_graph, launcher_text.c the whole,
// header.c its declarations.
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
/* What the launches' status begins with: `cudaSuccess`, or what asks for all that kernels must be allowed. */
void launcher_status(StrBuf *out, const Kernel *kernel);
/* How many attributes a launch has: of clusters, and that it may begin early. */
int launcher_attribute_count(const Launch *launch);

/* The one launch of a program that has no other, to the end of the function. */
void launcher_alone(StrBuf *out, const Kernel *kernel);
bool launcher_alone_uses_prelude(const Kernel *kernel);

/* Launches of a list: those of a call, or those that make what is prepared. */
typedef struct LaunchRange {
    const char *name;
    int first, last;
} LaunchRange;

LaunchRange launcher_calls(const Kernel *kernel);
LaunchRange launcher_preparations(const Kernel *kernel);
/* All programs but those of one launch. */
bool launcher_is_list(const Kernel *kernel);
/* Functions of the kernels, and of a list. */
void launcher_functions(StrBuf *out, const Kernel *kernel);
void launcher_list(StrBuf *out, const Kernel *kernel, LaunchRange range);
/* `Launches to = {…};` and the call of the list's function. */
void launcher_begin_list(StrBuf *out, const Kernel *kernel, const char *stream);
void launcher_make_list(StrBuf *out, const Kernel *kernel, LaunchRange range);

/* `args`, and the tensor maps that they hold, not described yet; `program` NULL: in a kernel's own function. */
void launcher_write_arguments(StrBuf *out, const char *indent, const Program *program, const Launch *launch);
/* How bulk copies see the arguments, with `status` for what the driver says; `follows`: it may be an error
   already. */
void launcher_write_maps(StrBuf *out, const char *indent, const Program *program, const Launch *launch,
                         bool follows);
/* Grid and block. */
void launcher_write_shape(StrBuf *out, const Launch *launch);
/* NAME_graph. */
void launcher_graph(StrBuf *out, const Kernel *kernel);

/* NAME_PREPARED_ID, NAME_weights and NAME_prepared. */
void launcher_sizes_of_weights(StrBuf *out, const Kernel *kernel);
void launcher_prepare(StrBuf *out, const Kernel *kernel);
