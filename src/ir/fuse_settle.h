// What kernels read and write, and the axes that are left of their points.
#pragma once
#include "ir/fuse.h"

/* Inputs and outputs of all kernels of the plan: stored is what another one reads. A kernel of which nothing is read, as all
   its readers have been folded into kernels that make it themselves, is left out. */
void fusions_list_tensors(Arena *arena, FusionPlan *plan, int tensor_count);

/* Axes that lie next to each other become one. A reduction of one term is none, which shows when axes of one point are
   gone. False: a row's value is stored by a kernel of points, or no order of these serves all outputs. */
bool fusion_settle_axes(Arena *arena, Fusion *fusion);
