// Constructions that come again: the kernels of a program are often alike, 300 products in a chain need one
// construction.
#pragma once
#include "rprogram/rprogram.h"

typedef struct ConstructMemo ConstructMemo;

ConstructMemo *construct_memo_new(Arena *arena, const Target *target, int keep);

/* rprogram_construct(), or what it said of the same kind before. Names of axes make no difference. */
int construct_memo_ask(ConstructMemo *memo, Arena *scratch, const KernelKind *kind, RProgram *kept,
                       ConstructStats *stats);
