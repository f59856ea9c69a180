// Parts of a concatenation are stored where they belong.
//
//   x[i, l:64] = …    y[i, l:32] = …    cat[i, l:96] = x beside y
//     three kernels, of which the third copies, become two that store to cat[i, l] and cat[i, l + 64]; who reads x reads
//     cat[i, l], and who would choose between x and y at each element reads cat
//
// That is so where the plan stores each part, for itself and by a kernel of its own that reads none of the
// others, and where parts and rows begin at 16-byte vectors: no kernel is added, and none must store or read
// single elements for it. The largest concatenation goes first; others that are a run of its parts lie in it.
#pragma once
#include "ir/concatenation.h"

/* Before axes are merged. Kernels that only made a concatenation are left without ops. */
void fuse_in_place(Arena *arena, const Program *program, const Concatenation *const *found, FusionPlan *plan);
