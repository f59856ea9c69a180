// What the two halves of the resident family share.
#pragma once
#include "codegen/family/family.h"
#include "codegen/family/rows/passes.h"

/* What is read at every element, in vectors along the innermost axis. */
Reads resident_reads(const Fusion *fusion, int vector);

/* Neighbouring elements of one access: 16 bytes of the narrowest tensor, if the innermost extent is whole vectors. */
int resident_vector(const Fusion *fusion);

/* Whether runs of so many elements are aligned and contiguous in the tensor. */
bool resident_is_run(const Fusion *fusion, const Affine *offset, int64_t run);

/* Bits that one write covers: a whole word, or a part that no other row shares, if that leaves no padding to be written. 0:
   there is none. */
int resident_bit_run(const Fusion *fusion, const FusedOp *op);

/* What more than one pass reads (bit i: read i); bits are read again. */
uint32_t resident_kept(const Fusion *fusion, const Reads *reads, const Passes *passes);

int resident_reductions(const Fusion *fusion);

/* Columns of a block; whole words of bits, too. */
int64_t resident_share(const Fusion *fusion, int cluster);

/* The shared memory of a block: partial results of its warps and its totals, then its share of every read that is kept. */
typedef struct ResidentLayout {
    int64_t kept[MAX_LOADED];   // where read i begins
    int64_t bytes;
} ResidentLayout;
ResidentLayout resident_layout(const Fusion *fusion, const DeviceSpec *device, int cluster, int threads);

/* Family.emit */
void resident_emit(StrBuf *out, const KernelPlan *plan);
