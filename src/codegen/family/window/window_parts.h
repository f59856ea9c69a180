// What the two halves of the window family share: which program it constructs, and how it is written.
#pragma once
#include "codegen/family/window/families.h"
#include "codegen/family/window/stencil.h"
#include "rprogram/rprogram.h"

/* Space axes. */
enum { OUTER, DOWN, ALONG, OTHER, DOWN_TAP, ALONG_TAP };

enum {
    MAX_WINDOW_HEIGHT = 24,   // outputs of a thread, at most
    MAX_KEPT_TAPS = 81        // that a thread keeps in registers: 9 x 9
};

/* The part of one tensor that a block reads, as one piece of memory. */
typedef struct StagedInput {
    const Access *access;   // NULL: there is none
    int64_t plane;          // elements of one outer position
    int64_t down_step;      // elements from one output's windows to those of the one below
    int64_t low, high;      // first and last element under a line's windows, seen from the line's start
} StagedInput;

/* Of the operands' tensors the largest that can be staged. */
StagedInput window_stage(const Stencil *stencil);

/* The family's view. */
typedef struct WindowView {
    Stencil stencil;
    StagedInput stage;
} WindowView;

/* Does a thread ask for the taps of all filters, which it keeps in registers, before the block copies what it
   stages? They come meanwhile; asked for behind the copies they take their turn (tuning-log 102). */
bool window_reads_filters_first(const Stencil *stencil, const StagedInput *stage);

/* What the operand reads, if it is one access of whole elements; else NULL. */
const Access *operand_access(const Expr *expr);

/* The only output, if its elements lie as the outputs' positions follow each other: then a block may collect
   its outputs in shared memory and write them as one piece. NULL: not so. */
const FusedOp *window_collected(const Fusion *fusion);

/* Family.emit */
void window_emit(StrBuf *out, const KernelPlan *plan);
