// Numbers that follow from a tile alone, computed once however many programs have that tile: dozens of register tiles share each block tile.
#pragma once
#include "rtile/rtile.h"

typedef struct TileMemo TileMemo;

/* `count`: numbers of each tile. */
TileMemo *tile_memo_new(Arena *arena, int count);

/* The tile's numbers; `is_new`: nobody has filled them yet. NULL: there is no room for more tiles. */
double *tile_memo_numbers(TileMemo *memo, const RTile *tile, int axis_count, bool *is_new);
