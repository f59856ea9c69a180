// All kernel families. families.c holds the only list; kernel/family.h describes the record.
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

/* The family's view of the fusion; NULL: the family does not serve it. */
const void *family_view(const Family *family, Viewed *viewed);

/* Its kinds of kernels for the fusion, without those whose schedule has too many items for a Schedule. */
int family_kinds(Arena *arena, const Family *family, Viewed *viewed, KernelKind *variants);

/* Threads of a block as it is launched. */
int launch_threads(const Family *family, const RProgram *program, const DeviceSpec *device);

/* Its blocks. */
int64_t launch_blocks(const Family *family, const KernelPlan *plan);

/* All families that emit text, ended by NULL; the last one matches every fusion of some plan. */
extern const Family *const families[];

/* Those that serve the device, ended by NULL. */
const Family *const *families_of(const DeviceSpec *device);

extern const Family elementwise_family, reduce_family, loopnest_family, supersteps_family;
