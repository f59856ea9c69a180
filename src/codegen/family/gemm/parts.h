// Parts of a sum over pixels, as of a filter's gradient, one for each block of a wave, and a kernel behind that adds them up in order.
#pragma once
#include "kernel/family.h"

/* Parts so many that tiles of 128 rows and 256, 192 or 128 columns are as many as SMs. */
extern const Rewrite parts_of_wide_tiles, parts_of_medium_tiles, parts_of_square_tiles;

/* The sum of another rewrite's main kernel in parts of square tiles; as it is, where one part has them all. */
void parts_within(Arena *arena, Rewritten *rewritten, const Target *target);
