// The layout of `prepared`: weights as they are, and what the launches of NAME_prepare compute from weights.
//
//   prepared:  w0 | w2 | w2.packed | scale | …        each at a multiple of 256; the weights first, in order
//
// It holds only what calls read. Temporaries of NAME_prepare are in the workspace.
#pragma once
#include "codegen/cuda/kernel.h"
#include "codegen/plan/plan.h"

/* The offset of each tensor of the kernel's program in `prepared`, by tensor id; -1: not there. Also sets the
   kernel's fields of weights. */
int64_t *prepare_place(Arena *arena, const Plan *plan, Kernel *kernel);

/* Where a launch reads a weight, or reads or writes what NAME_prepare computes; false: it is neither, or in the
   workspace. */
bool prepare_find(const Kernel *kernel, const int64_t *places, const Tensor *tensor, bool in_call, LaunchArg *arg);
