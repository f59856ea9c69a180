// The offsets of a plan's temporaries in the workspace, and what its launches use themselves.
#pragma once
#include "codegen/plan/plan.h"

typedef struct Workspace {
    int64_t *of_tensor;   // offset, by tensor id; of temporaries
    int64_t bytes;
    int64_t alive;        // most bytes alive at once, launch by launch
} Workspace;

/* `program` holds all tensors of the plan; those whose entry in `prepared` (by tensor id) is not -1 lie
   elsewhere. */
Workspace workspace_place(Arena *arena, const Program *program, const Plan *plan, const int64_t *prepared);
