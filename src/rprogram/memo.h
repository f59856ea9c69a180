// Constructions that come again: the kernels of a program are often alike, 300 products in a chain need one
// construction.
#pragma once
#include "rprogram/rprogram.h"

typedef struct ConstructMemo ConstructMemo;

ConstructMemo *construct_memo_new(Arena *arena, const Target *target, int keep);

/* Kinds that differ in extents alone, as those of a sum in two parts, in four, ...: the first is constructed, and its
   tiles are tried for others whose sums are up to four times as long or as short. */
typedef struct TileSeries {
    Arena *arena;
    struct KnownTiles *first;
} TileSeries;

/* rprogram_construct(), or what it said of the same kind before; of a kind of a series (NULL: there is none) with tiles of
   the one whose sums are nearest in length. Names of axes make no difference. The programs last at least as
   long as the series, or without one as long as `choices`. */
const RProgram *construct_memo_ask(ConstructMemo *memo, Arena *scratch, Arena *choices,
                                   const KernelKind *kind, TileSeries *series, double known_us, int *count,
                                   ConstructStats *stats);
