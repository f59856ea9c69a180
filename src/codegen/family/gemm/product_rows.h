// A product of whose rows only reductions are stored, one for each tile of so many columns (ir/row_tiles.h), as the
// families of products see it: threads reduce their accumulators, and C is not stored.
#pragma once
#include "codegen/cuda/expr.h"
#include "codegen/family/gemm/product.h"

typedef struct ProductRows {
    Fusion product;   // axes rows, column | terms: the sum and functions of it, none of it stored
    Fusion
        all;   // and behind these ops the reductions: those of a tile's columns, without the condition of that
    int tile;   // of `all`: the axis of the tiles, after all others
    int column;
    int value;         // the op that is reduced
    int64_t columns;   // of a tile: those of a warp group
    uint64_t extremes,
        others;   // bit i: op i of `all` is a reduction of elements alone; of these and such a one
} ProductRows;

/* By the structure of a kernel that row_tiles_cut() made; NULL: another one. */
const ProductRows *product_rows_find(Arena *arena, const Fusion *fusion);

/* Those of the view: an axis of columns of its own, and sums of floats. */
bool product_rows_fit(const ProductRows *rows, const Product *product);

/* Adds to a kind of the product: what is stored, the arithmetic, and that the columns of a register tile are a
   tile's. */
void product_rows_add(KernelKind *kind, const ProductRows *rows, const Product *product);

/* The schedule after the products: each element, then pass by pass the reductions of lanes and across them. */
void product_rows_schedule(Schedule *schedule, const ProductRows *rows, const TileSpace *space);

/* The same in numbers, where the view (Products) has rows. */
StatedWork product_rows_work;

/* `Row` of the parameter block. */
void product_rows_emit(StrBuf *out, const KernelPlan *plan, const ProductRows *rows, const Product *product);
