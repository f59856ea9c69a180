// Split-K of a sum over pixels, as of a filter's gradient: one part for each block of a wave, and a kernel that
// reduces them in order.
#pragma once
#include "kernel/family.h"

/* As many parts as make tiles of 128 rows and 256, 192 or 128 columns one wave. */
extern const Rewrite parts_of_wide_tiles, parts_of_medium_tiles, parts_of_square_tiles;

/* Splits the sum of another rewrite's main kernel, with tiles of so many columns. False: one part suffices,
   or those of `other` columns (0: none) have the same parts. */
bool parts_within(Arena *arena, Rewritten *rewritten, const Target *target, int64_t columns, int64_t other);
