// The shared memory of a block: named regions, made once. Their sum is the budget of construction and the size that
// a launch requests, and they are the constants that are emitted. What follows from a schedule is laid out here.
#pragma once
#include "rtile/rtile.h"
#include "schedule/schedule.h"

typedef struct KernelKind KernelKind;   // kernel/kind.h

/* A part of a block's shared memory. */
typedef struct SharedRegion {
    const char *name;   // of the constant in the parameter block: `constexpr Region MARKS = {3200, 32};`
    int64_t at, bytes;
} SharedRegion;

/* Regions may reuse the bytes of those that are no longer used. */
enum { MAX_REGIONS = 6 };   // of filter_gemm: two operands, zeros, epilogue staging, sums, marks
typedef struct SharedLayout {
    int count;
    SharedRegion regions[MAX_REGIONS];
    int64_t bytes;    // of all
    int64_t beside;   // of these, without staged tiles
    bool unstated;    // how many bytes copies to and from it move: whole padded lines, and other values, too
} SharedLayout;

/* Adds the regions that depend on the tiles of a block. */
typedef void LayOut(SharedLayout *layout, const KernelKind *kind, const RTile *block, const RTile *inner,
                    const DeviceSpec *device);

/* Adds a region after all others; or at an offset. */
void layout_add(SharedLayout *layout, const char *name, int64_t bytes);
void layout_put(SharedLayout *layout, const char *name, int64_t at, int64_t bytes);

/* The one of that name. */
const SharedRegion *layout_region(const SharedLayout *layout, const char *name);

/* All regions of a block with these tiles. */
SharedLayout kind_layout(const KernelKind *kind, const RTile *block, const RTile *inner, const DeviceSpec *device);

/* Every staged tile, its contiguous extent padded against bank conflicts, in all its stages; a LayOut that adds
   them as STAGED. */
int64_t kind_staged_bytes(const KernelKind *kind, const RTile *block, const RTile *inner, const DeviceSpec *device);
LayOut lay_out_staged;

/* Lanes that combine their sums by shuffles: those that share a row; by halves those that share columns, if they are equally
   many in every warp. */
int64_t combining_lanes(const Exchange *exchange, int64_t warp, int64_t reducers, int64_t columns);

/* Adds the remaining sums of the block's tile as PARTIAL. */
LayOut lay_out_sums;

/* Adds what follows from the kind's schedule: PARTIAL, results that threads exchange, then COPIES, staged tiles
   that are kept as one run. PARTIAL is small, since L1 is what shared memory leaves of an SM, in large steps
   (tuning-log 29). Each read of a row that is copied has a tile, also one that many rows share: a scale[b] of
   rows (b,t) is as long as the row is. */
void schedule_set_shared(KernelKind *kind);
