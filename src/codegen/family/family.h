// All kernel families, and what is the same for each of them. families.c holds the only list; what a family is:
// kernel/family.h.
#pragma once
#include "codegen/cuda/kernel.h"
#include "codegen/family/attention/families.h"
#include "codegen/family/depthwise/families.h"
#include "codegen/family/gemm/families.h"
#include "codegen/family/permute/families.h"
#include "codegen/family/rows/families.h"
#include "codegen/family/window/families.h"
#include "kernel/family.h"
#include "rprogram/rprogram.h"

/* What the fusion is to the family; NULL: nothing. */
const void *family_view(const Family *family, Viewed *viewed);

/* Its kinds of kernels, if it has any for the fusion; not those whose schedule has too many items for a Schedule. */
int family_kinds(Arena *arena, const Family *family, Viewed *viewed, KernelKind *variants);

/* Threads of a block as it is launched. */
int launch_threads(const Family *family, const RProgram *program, const DeviceSpec *device);

/* All of them that have a text, ended by NULL; the last one matches whatever one plan consists of. */
extern const Family *const families[];

/* Those that serve the device, ended by NULL. */
const Family *const *families_of(const DeviceSpec *device);

extern const Family elementwise_family, reduce_family, loopnest_family, supersteps_family;
