// Equal layers are launches of one kernel. Launches are equal if their emitted texts are, with inputs named in the
// order of their first use, and if all other properties of the kernel are.
#pragma once
#include "codegen/cuda/kernel.h"
#include "kernel/family.h"

/* A launch's text before its tensors have the user's names: `in0`, `out1`, `v3`. */
typedef struct LaunchDraft {
    KernelPlan plan;
    const char *template_path;
    const char *tensors;   // the beginning of the parameter block: Index, and a struct of tensors
    const char *block;     // the rest of it
    uint64_t mapped;       // inputs that bulk copies alone read, by tensor maps: the struct lacks them
} LaunchDraft;

/* Sets the kernel's `leaders` and `likenesses`, and the kernel number of each launch. A launch takes its inputs
   in the order of its kernel's first launch: of x + y and y + x the second one passes y for x. */
void equal_kernels(Arena *arena, Kernel *kernel, const LaunchDraft *drafts);
