// A kernel family: one way of computing, recognised by the structure of a fused expression.
//
// families.c holds the only list of them. Every family that matches offers candidates, and the model ranks
// them all.
#pragma once
#include "codegen/cuda/kernel.h"
#include "hal/device.h"
#include "ir/fuse.h"
#include "rprogram/rprogram.h"

enum { MAX_VARIANTS = 20 };   // kinds of kernels one family offers for one expression

/* What the generator hands to a family that writes its parameter block. */
typedef struct KernelPlan {
    const Fusion *fusion;
    const TileRules *rules;   // the variant the program was made from
    const RProgram *program;
    const DeviceSpec *device;
    int threads;   // of a block; see Family.whole_warps
    bool wide;     // positions need 64 bits
} KernelPlan;

/* What a parameter block and its template lay out, also where they say only as they run which part they
   use. */
typedef struct KernelMemory {
    int64_t shared_bytes;    // of a block
    int64_t scratch_bytes;   // of what the launch uses for itself
} KernelMemory;

typedef struct Family {
    const char *name;            // also tests/golden/kernel/<name>/
    const char *template_path;   // "templates/matmul.cu"
    /* Every TileRules.variant_name there is, ended by NULL: random programs must reach them all. */
    const char *const *variants;
    bool whole_warps;            // blocks smaller than a warp are launched with a whole one
    int copying_warps;           // beside those that compute
    bool fetches;                // reads elements at computed places
    bool tiles_both;             // factors of products: fewer, larger tiles and parts of the sums may take less
    /* By structure of the expression, never by a name. */
    bool (*matches)(const Fusion *fusion, const DeviceSpec *device);
    /* Fills at most MAX_VARIANTS rules, each another kind of kernel; returns their number. */
    int (*rules)(const Fusion *fusion, const DeviceSpec *device, TileRules *variants);
    /* Writes the constants, types and device functions of the parameter block (tensors are there already). */
    void (*emit)(StrBuf *out, const KernelPlan *plan);
    /* Fills in how bulk copies see what it reads; their number. NULL: it makes none. */
    int (*maps)(const KernelPlan *plan, TensorMap *maps);
    /* Of the same block. NULL: its kernels use no shared memory and none of their own. */
    KernelMemory (*memory)(const KernelPlan *plan);
} Family;

/* It can serve the expression. */
bool family_takes(const Family *family, const Fusion *fusion, const DeviceSpec *device);

/* The rules of its kinds of kernels; not those whose schedule has too many items for a Schedule. */
int family_rules(const Family *family, const Fusion *fusion, const DeviceSpec *device, TileRules *variants);

/* Threads of a block as it is launched. */
int launch_threads(const Family *family, const RProgram *program, const DeviceSpec *device);

/* All of them, ended by NULL; the last one matches whatever one plan consists of. */
extern const Family *const families[];

extern const Family elementwise_family, permute_family, reduce_family, window_family, depthwise_family,
    strip_family, toeplitz_family, pairs_family, filter_direct_family, filter_strip_family, filter_gemm_family,
    matmul_family, gemm_family, wgmma_family, bulk_family, skinny_family, rowwise_family, channelwise_family,
    resident_family, loopnest_family;
