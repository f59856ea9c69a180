// Numbers that follow from a tile, or from one and another inside it, computed once: dozens of register tiles share each block tile, and
// rounds of construction meet the same pairs again.
#pragma once
#include "rtile/rtile.h"

typedef struct TileMemo TileMemo;

/* Of tiles of so many axes, and so many bytes of numbers each. */
TileMemo *tile_memo_new(Arena *arena, int axis_count, size_t bytes);

/* The numbers of the tile with that one inside (NULL: whatever is inside), which stay where they are; `is_new`: nobody has
   filled them yet. */
void *tile_memo_find(TileMemo *memo, const RTile *tile, const RTile *inner, bool *is_new);
