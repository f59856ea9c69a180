// What the two halves of the resident family share.
#pragma once
#include "codegen/cuda/loop_invariant.h"
#include "codegen/cuda/rows.h"
#include "codegen/family/rows/families.h"
#include "codegen/family/rows/passes.h"
#include "kernel/layout.h"
#include "rprogram/rprogram.h"
#include "rtile/space.h"

/* The family's view. */
typedef struct ResidentView {
    int vector;      // neighbouring elements of one access
    Reads reads;     // at every element, in vectors along the innermost axis
    Passes passes;
    uint32_t kept;   // what more than one pass reads (bit i: read i); bits are read again
} ResidentView;

/* Whether runs of so many elements are aligned and contiguous in the tensor. */
bool resident_is_run(const Fusion *fusion, const Affine *offset, int64_t run);

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
void resident_state(Schedule *schedule, const ResidentKernel *resident);

/* The parameter block under construction. */
typedef struct ResidentEmitter {
    StrBuf *out;
    const KernelPlan *plan;
    const Fusion *fusion;
    int vector;
    Reads reads;
    Invariants invariants;
    Passes passes;
    uint32_t kept;
    Scope first, element;   // the first element of a vector; element e of it
    uint64_t elements;      // bit i: some pass makes op i's
    char text[24];
} ResidentEmitter;

/* Axes whose positions the reads need (bit i: read i). */
uint32_t resident_axes(const ResidentEmitter *emitter, uint32_t reads);

void resident_emit_passes(ResidentEmitter *emitter);

/* Family.emit */
void resident_emit(StrBuf *out, const KernelPlan *plan);
