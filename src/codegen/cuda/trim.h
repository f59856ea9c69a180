// An emitted file holds the definitions that its kernels use, and no others.
//
// They are found in the text, not listed: starting from each kernel's entry and from the launcher, each name leads
// to the definitions of that name, and their text to further names. Before that, conditions on the device's
// compiler (lines.h) and branches by constants (fold.h) are resolved, so that a kernel without clusters names none
// of their functions. An overload or a specialisation is left out if nothing can call it: a type of its arguments
// does not occur in the text that is kept, neither by name nor as a literal's, or not with its last number, as in
// Product<f16, 128>. So only unreachable definitions are left out; a local variable of the same name keeps a
// definition too many, never one too few.
#pragma once
#include "codegen/cuda/names.h"
#include "codegen/cuda/template.h"
#include "codegen/cuda/unit.h"

/* A launch's part of a file. */
typedef struct KernelText {
    const char *entry;                 // "softmax_k0"; its namespace is softmax_k0_scope
    const char *parameters;            // replaces the template's block
    const char *provenance;            // the comment above them
    const char *signature, *tensors;   // `const f16 *__restrict__ x`, and tensor maps; `{x}`
    const char *map_list;              // `{&map_a}`
    const char *bounds;                // `THREADS`, or `THREADS, 2`: of the launch
    const char *opening;   // of the kernel: `OPENING;`, else after the statement that ends in TENSORS
    bool shares_body;                  // its body may be a struct that several kernels call
    Template template;
} KernelText;

typedef struct Trim Trim;

/* The prelude for one device, as the namespace NAME_prelude, for so many kernels. */
Trim *trim_new(const TemplateStore *store, TextTarget target, const char *name, int kernel_count);

/* As trim_new(), for templates/main.cuh, which a kernel's main() uses. */
Trim *trim_main(const TemplateStore *store, TextTarget target);

void trim_add_kernel(Trim *trim, const KernelText *kernel);
void trim_add_user(Trim *trim, const char *text);   // the launcher, or other code that uses the prelude

/* Reserves all names of the prelude. */
void trim_avoid(const Trim *trim, Names *names);

/* Selects the definitions; call it after all were added, and before anything is written. */
void trim_take(Trim *trim);

/* The __CUDA_ARCH__ that the selected definitions need; 0: any. */
int trim_arch(const Trim *trim);

/* The kernel's constants, which depend on nothing else; the common prelude; the rest of the kernel. */
void trim_write_constants(StrBuf *out, const Trim *trim, int kernel);
void trim_write_prelude(StrBuf *out, const Trim *trim);
void trim_write_main(StrBuf *out, const Trim *trim);
void trim_write_kernel(StrBuf *out, const Trim *trim, int kernel);

/* Paths of the files in every kernel, "templates/prelude.cuh" first; NULL ends the list. */
const char *const *prelude_files(const TemplateStore *store);
