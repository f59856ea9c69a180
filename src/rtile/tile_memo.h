// Numbers that follow from a tile, or from one and another inside it, computed once: dozens of register tiles share each block tile, and
// rounds of construction meet the same pairs again.
#pragma once
#include "rtile/rtile.h"

typedef struct TileMemo TileMemo;

/* `most`: tiles; `count`: numbers of each. */
TileMemo *tile_memo_new(Arena *arena, int most, int count);

/* The numbers of the tile with that one inside (NULL: whatever is inside); `is_new`: nobody has filled them yet. NULL: there is no
   room for more tiles. */
double *tile_memo_numbers(TileMemo *memo, const RTile *tile, const RTile *inner, int axis_count, bool *is_new);
