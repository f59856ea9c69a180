// The file of a kernel holds what the kernel calls, and nothing else.
//
// What is there is found, not listed: from each kernel's entry, and from the launcher, every name leads to
// the definitions of that name, and from their text on to others. Before that, what one device settles is
// settled: conditions on its compiler (lines.h) and branches by constants (fold.h), so that a kernel without
// clusters names none of their functions. Of several overloads or specialisations of a name those go that
// nothing can call: the types of their arguments do not occur in what is taken, neither by name nor as a
// number's, or not with the number that they end with, as Product<f16, 128>. So what is left out could not have been reached; a name that is only spelled the same, as a local
// variable, takes a definition too many, never one too few.
#pragma once
#include "codegen/cuda/names.h"
#include "codegen/cuda/template.h"
#include "codegen/cuda/unit.h"

/* One launch's part of a file. */
typedef struct KernelText {
    const char *entry;                 // "softmax_k0"; its namespace is softmax_k0_scope
    const char *parameters;            // what replaces the template's block
    const char *provenance;            // the comment above them
    const char *signature, *tensors;   // `const f16 *__restrict__ x`, `{x}`
    const char *maps, *map_list;       // `const __grid_constant__ TensorMap map_a`, `{&map_a}`
    const char *bounds;                // `THREADS`, or `THREADS, 2`: of the launch
    const char *opening;   // of the kernel: `OPENING;`, else behind the statement that ends in TENSORS
    bool shares_body;                  // its body may be a struct that several kernels call
    Template template;
} KernelText;

typedef struct Trim Trim;

/* The prelude for one device, as the namespace NAME_prelude, and room for as many kernels. */
Trim *trim_new(const TemplateStore *store, TextTarget target, const char *name, int kernel_count);

/* The same of templates/main.cuh, which a kernel's main() calls. */
Trim *trim_main(const TemplateStore *store, TextTarget target);

void trim_add_kernel(Trim *trim, const KernelText *kernel);
void trim_add_user(Trim *trim, const char *text);   // the launcher, or whatever else calls the prelude

/* All names of the prelude are taken. */
void trim_avoid(const Trim *trim, Names *names);

/* After all were added, and before anything is written. */
void trim_take(Trim *trim);

/* __CUDA_ARCH__ that what is taken needs; 0: any. */
int trim_arch(const Trim *trim);

/* The kernel's constants, which depend on nothing else; what the prelude has for all; the rest of the
   kernel. */
void trim_write_constants(StrBuf *out, const Trim *trim, int kernel);
void trim_write_prelude(StrBuf *out, const Trim *trim);
void trim_write_main(StrBuf *out, const Trim *trim);
void trim_write_kernel(StrBuf *out, const Trim *trim, int kernel);

/* Last: names for the preprocessor end with the file. */
void trim_write_ends(StrBuf *out, const Trim *trim);

/* Paths of the files that every kernel is made of, "templates/prelude.cuh" first; NULL ends the list. */
const char *const *prelude_files(const TemplateStore *store);
