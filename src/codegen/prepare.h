// What NAME_prepare leaves for calls: weights as they are, and what its launches make of weights.
//
//   prepared:  w0 | w2 | w2.packed | scale | …        each at a multiple of 256; the weights first, in their order
//
// Only what a call reads has a place in it. What the launches of NAME_prepare pass on to each other is in the workspace.
#pragma once
#include "codegen/cuda/kernel.h"
#include "codegen/plan/plan.h"

/* By tensor id of the kernel's program: where it lies in `prepared`; -1: it does not. Fills in what the kernel says of
   weights, too. */
int64_t *prepare_place(Arena *arena, const Plan *plan, Kernel *kernel);

/* Where a launch finds a weight, or what NAME_prepare made, or makes it; false: it is neither, or in the workspace. */
bool prepare_find(const Kernel *kernel, const int64_t *places, const Tensor *tensor, bool in_call, LaunchArg *arg);
