// What the two halves of the resident family share.
#pragma once
#include "codegen/family/rows/families.h"
#include "codegen/family/rows/structs.h"
#include "kernel/layout.h"
#include "rprogram/rprogram.h"
#include "rtile/space.h"

/* The family's view. */
typedef struct ResidentView {
    Reads reads;     // at every element, in vectors along the innermost axis
    const PassPlan *passes;
    uint32_t kept;   // what more than one pass reads (bit i: read i); bits are read again
} ResidentView;

/* Bits that one write covers: a whole word, or a part that no other row shares, if that leaves no padding to
   be written. 0: there is none. */
int resident_bit_run(const Fusion *fusion, int vector, const FusedOp *op);

/* Columns of a block; whole words of bits, too. */
int64_t resident_share(const Fusion *fusion, int cluster);

/* What a schedule of resident rows follows from. */
typedef struct ResidentKernel {
    const Fusion *fusion;
    const TileSpace *space;   // one tile for each read, then the outputs'
    const ResidentView *view;
    int cluster, threads, warp;   // threads of a block, of a warp
} ResidentKernel;
enum { KEPT_AT_ONCE = 8 };   // vectors of a thread whose loads are in flight
void resident_state(Schedule *schedule, const ResidentKernel *resident);

/* Family.emit */
void resident_emit(StrBuf *out, const KernelPlan *plan);
