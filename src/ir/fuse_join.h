// Sums of products that share a factor as one kernel: gate and up of a gated layer, q, k and v of one
// activation.
#pragma once
#include "ir/fuse.h"

enum { MAX_JOINED = 3 };   // 64 columns of each are what the widest instruction makes at once

/* The cheap part of it: both are sums of products over the same axes that share a factor. */
bool fusions_may_join(const Fusion *one, const Fusion *other);

/* Fusions that follow each other in a plan as one: first all sums, over the same axes, then what is made of
   them; what one reads of another at its own point is a value there. `needed`, by tensor id: what others
   read, or an output. NULL: they are no such sums, or one waits for another. */
Fusion *fusion_join(Arena *arena, Fusion *const *parts, int count, const bool *needed);
