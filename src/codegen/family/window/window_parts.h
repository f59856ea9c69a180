// What the two halves of the window family share: which program it constructs, and how it is written.
#pragma once
#include "codegen/family/family.h"
#include "codegen/family/window/stencil.h"

/* Space axes. */
enum { OUTER, DOWN, ALONG, OTHER, DOWN_TAP, ALONG_TAP };

/* The family's choice: what is kept of the input. */
typedef enum WindowKeeps { KEEPS_NOTHING, KEEPS_WINDOWS, KEEPS_WINDOWS_OF_STAGED } WindowKeeps;
WindowKeeps window_keeps(const TileRules *rules);

Stencil window_stencil(const Fusion *fusion, WindowKeeps keeps);

/* The part of one tensor that a block reads, as one piece of memory. */
typedef struct StagedInput {
    const Access *access;   // NULL: there is none
    int64_t plane;          // elements of one outer position
    int64_t down_step;      // elements from one output's windows to those of the one below
    int64_t low, high;      // first and last element under a line's windows, seen from the line's start
} StagedInput;

/* Of the operands' tensors the largest that can be staged. */
StagedInput window_stage(const Stencil *stencil);

/* What the operand reads, if it is one access of whole elements; else NULL. */
const Access *operand_access(const Expr *expr);

/* The only output, if its elements lie as the outputs' positions follow each other: then a block may collect
   its outputs in shared memory and write them as one piece. NULL: not so. */
const FusedOp *window_collected(const Fusion *fusion);

/* Family.emit */
void window_emit(StrBuf *out, const KernelPlan *plan);
/* Family.memory */
KernelMemory window_memory(const KernelPlan *plan);
