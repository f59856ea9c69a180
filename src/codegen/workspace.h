// Where in the workspace a plan's temporaries lie, and what its launches use for themselves.
#pragma once
#include "codegen/plan/plan.h"

typedef struct Workspace {
    int64_t *of_tensor;   // offset, by tensor id; of temporaries
    int64_t bytes;
    int64_t alive;        // of these, the most that is alive at once, one launch after the other
} Workspace;

/* `program` holds all tensors of the plan; those of which `prepared` (by tensor id) is not -1 lie elsewhere. */
Workspace workspace_place(Arena *arena, const Program *program, const Plan *plan, const int64_t *prepared);
