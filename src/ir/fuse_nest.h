// Nest: what one rewrite makes is the fusion of another.
//
//     a, main, z  with main = b, other, y  ->  a, b, other, y, z
#pragma once
#include "ir/fuse.h"

/* False: there are too many kernels, and nothing has changed. */
bool fusion_nest(Rewritten *outer, const Rewritten *inner);
