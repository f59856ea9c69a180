// From a chosen plan to the text of a .cu file, as language.md ("The emitted .cu") describes it.
#pragma once
#include "codegen/cuda/kernel.h"
#include "codegen/cuda/launcher.h"
#include "codegen/cuda/template.h"
#include "codegen/plan/plan.h"
#include "hal/runtime.h"

/* The emitted file, a file for each kernel (kernel.h, `pieces`), or both where there are several kernels. */
typedef enum CodegenForm { CODEGEN_WHOLE, CODEGEN_BOTH, CODEGEN_PIECES } CodegenForm;

typedef struct CodegenRequest {
    const char *name;   // C identifier: kernels are NAME_k0, NAME_k1, …
    const Program *program;
    const char *expr;   // as written, a statement a line (ast_print_source); NULL: none
    const Plan *plan;
    const DeviceSpec *device;
    const TemplateStore *templates;
    bool fast_math;
    bool with_test;   // the file can be a program of its own, that checks and times the kernel
    CodegenForm form;
    int rank, kept;   // the plan's place among the kept candidates, for the comment; -1: its kernels were chosen by measurement
} CodegenRequest;

Kernel *codegen_kernel(Arena *arena, const CodegenRequest *request);

/* Launches, arguments and workspace of a plan, without any text: for candidates of the ranking that are not
   written. `likenesses`: with those of the kernels. */
Kernel *codegen_launches(Arena *arena, const CodegenRequest *request, bool likenesses);

/* What a runtime needs of the kernel; limits, machine code and builds are set by the caller. */
RuntimeSource kernel_source(const Kernel *kernel);
/* Bytes of each of its buffers. */
int64_t *kernel_buffers(Arena *arena, const Kernel *kernel);
