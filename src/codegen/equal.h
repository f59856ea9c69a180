// Equal layers are launches of one kernel. Which those are is told by what would be written for each: with inputs called by the
// order in which the text first names them, the texts are equal, and so is all else that a kernel takes as given.
#pragma once
#include "codegen/cuda/kernel.h"
#include "kernel/family.h"

/* What is written for a launch before its tensors have the user's names: `in0`, `out1`, `v3`. */
typedef struct LaunchDraft {
    KernelPlan plan;
    const char *template_path;
    const char *tensors;   // what the parameter block begins with: Index, and a struct of all tensors
    const char *block;     // the rest of it
} LaunchDraft;

/* Fills in the kernel's `leaders` and `likenesses`, and of each launch the number of its kernel. A launch takes its inputs in the order of the first
   one that has its kernel: of x + y and y + x the second one gives y for x. */
void equal_kernels(Arena *arena, Kernel *kernel, const LaunchDraft *drafts);
