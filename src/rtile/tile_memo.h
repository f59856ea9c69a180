// Numbers that follow from a tile, or from one and another inside it, computed once: dozens of register tiles share each block tile, and
// rounds of construction meet the same pairs again.
#pragma once
#include "rtile/rtile.h"

typedef struct TileMemo TileMemo;

/* `most`: tiles; `bytes`: of the numbers of each. */
TileMemo *tile_memo_new(Arena *arena, int most, size_t bytes);

/* The numbers of the tile with that one inside (NULL: whatever is inside), `own` where there is no room for more tiles;
   `is_new`: nobody has filled them yet. */
void *tile_memo_find(TileMemo *memo, const RTile *tile, const RTile *inner, int axis_count, void *own, bool *is_new);
