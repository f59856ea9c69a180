// What single blocks of an interpreted launch did, in memory that the child shares with its parent.
#pragma once
#include "hal/interp/interface.h"
#include "hal/runtime.h"

/* In the parent, before the child: zeros. NULL: there is no memory. */
InterpCounts *interp_counts_map(int tensors);
/* In the parent, after it; unmaps. */
RuntimeCounts *interp_counts_take(Arena *arena, InterpCounts *counts, int tensors);
