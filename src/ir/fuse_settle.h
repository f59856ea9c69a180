// The last steps of a plan: what kernels read and write, and their axes, merged.
#pragma once
#include "ir/fuse.h"

/* Inputs and outputs of all kernels of the plan: a kernel stores what another one reads. A kernel whose
   results nobody reads, since their readers were folded into kernels that make them themselves, is left
   out. */
void fusions_list_tensors(Arena *arena, FusionPlan *plan, int tensor_count);

/* Merges adjacent axes. A reduction of one term, which shows when axes of one point are removed, is dropped.
   False: a row's value is stored by a kernel of points, or no order of these serves all outputs. */
bool fusion_settle_axes(Arena *arena, Fusion *fusion);
