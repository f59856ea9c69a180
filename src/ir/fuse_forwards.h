// Taps that count backwards, as those of a gradient for the image, count forwards instead:
//
//     sum[r](x[h - r + 2] * w[r])  over 5 taps  is  sum[r](x[h + r - 2] * w[4 - r])
#pragma once
#include "ir/fuse.h"

/* A tap that counts forwards in another window stays as it is. The fusion itself, if none is turned. */
const Fusion *fusion_with_taps_forwards(Arena *arena, const Fusion *fusion);
