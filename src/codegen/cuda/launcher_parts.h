// Interfaces between the parts of the launcher's text: launcher.c has the pieces, launcher_list.c several launches,
// launcher_prepare.c the functions of programs with weights, graph.c NAME_graph, launcher_text.c the whole,
// header.c its declarations.
#pragma once
#include "base/strbuf.h"
#include "codegen/cuda/kernel.h"

/* `in0`, `out1`: the argument's temporary name. */
const char *launcher_argument(Arena *arena, const Program *program, int argument);
/* `x[64, 1024] : f16` */
void launcher_tensor(StrBuf *out, const Tensor *stored);
bool launcher_is_weight(const Program *program, int argument);
/* The parameters of NAME_launch, with temporary or final names. */
void launcher_signature(StrBuf *out, const Kernel *kernel, bool numbered);
void launcher_graph_signature(StrBuf *out, const Kernel *kernel, bool numbered);
void launcher_prepare_signature(StrBuf *out, const Kernel *kernel);

/* ` || !workspace || (size_t)workspace % 256 != 0`, or nothing if there are no bytes. */
void launcher_check_place(StrBuf *out, const char *name, int64_t bytes);
/* `(void)workspace;` if it has none. */
void launcher_unused(StrBuf *out, const char *name, int64_t bytes);
/* Checks the alignment of the arguments of NAME_launch. */
void launcher_check(StrBuf *out, const Program *program, const Kernel *kernel);

/* The names of the prelude that the launcher uses. */
void launcher_using(StrBuf *out, const Kernel *kernel);
/* Launch attributes: clusters, and programmatic dependent launch. */
bool launcher_has_attributes(const Launch *launch);

/* The only launch of a program, to the end of the function. */
void launcher_alone(StrBuf *out, const Kernel *kernel);
bool launcher_alone_uses_prelude(const Kernel *kernel);

/* Launches of a list: those of a call, or those of NAME_prepare. */
typedef struct LaunchRange {
    const char *name;
    int first, last;
} LaunchRange;

LaunchRange launcher_calls(const Kernel *kernel);
LaunchRange launcher_preparations(const Kernel *kernel);
bool launcher_uses(const Kernel *kernel, LaunchRange range, int buffer);
/* All programs but those of one launch. */
bool launcher_is_list(const Kernel *kernel);
/* Functions of the kernels, and of a list. */
void launcher_functions(StrBuf *out, const Kernel *kernel);
void launcher_list(StrBuf *out, const Kernel *kernel, LaunchRange range);
/* `Launches to = {…};` and the call of the list's function. */
void launcher_begin_list(StrBuf *out, const Kernel *kernel, const char *stream);
void launcher_make_list(StrBuf *out, const Kernel *kernel, LaunchRange range);

/* `args`, and their tensor maps, not yet encoded; `program` NULL: in a kernel's own function. */
void launcher_write_arguments(StrBuf *out, const Program *program, const Launch *launch);
/* What comes before a launch: sets the attributes of its kernel, such as dynamic shared memory above 48 KB, and encodes tensor
   maps. `status` is the first error; "": nothing does. */
const char *launcher_steps(Arena *arena, const Program *program, const Launch *launch);
/* `132, 512`, the grid and the block. */
void launcher_write_shape(StrBuf *out, const Launch *launch);
void launcher_write_cluster(StrBuf *out, const Launch *launch);
/* NAME_graph. */
void launcher_graph(StrBuf *out, const Kernel *kernel);

/* NAME_PREPARED_ID, NAME_weights and NAME_prepared. */
void launcher_sizes_of_weights(StrBuf *out, const Kernel *kernel);
void launcher_prepare(StrBuf *out, const Kernel *kernel);
