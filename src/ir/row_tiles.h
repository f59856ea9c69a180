// Rows of a product that are reduced where they are made, tile by tile: the log-sum of logits, the nearest of
// many points.
//
//   l[i, v] = sum[d](x[i, d] * w[v, d])          p[c, i] = max[v in tile c](l[i, v])
//   m[i]    = max[v](l[i, v])                    q[c, i] = sum[v in tile c](exp(l[i, v] - p[c, i]))
//   z[i]    = sum[v](exp(l[i, v] - m[i]))        m[i] = max[c](p[c, i])    z[i] = sum[c](q[c, i] * exp(p[c, i] - m[i]))
//
// One kernel makes p and q while l's tile is in registers, a small second one makes the rows' values of them,
// in fixed order. l never reaches memory. A reduction may read no other one of its row (sum, max, min, prod),
// or in one of two ways the extreme of its row: as above (doc/language.md, "Arithmetic"), or as where it
// lies, min[v](select(l[i, v] == m[i], v, N)), which is exact.
#pragma once
#include "ir/fuse.h"

/* Makes one kernel of each product of which nothing but a row's reductions is kept and of the kernel of
   those: axes rows | columns, terms; `streams`. `whole`: all kernels, in order; returns how many are left. */
int row_tiles_join(Arena *arena, Fusion **whole, int count);

/* Such a kernel cut in two, where tiles have so many columns. Partial: axes tiles, rows | columns, terms.
   NULL: it is none, or one tile would hold the row. */
typedef struct RowTiles {
    Fusion *partial, *combine;
    const TensorOp **definitions;   // of the tiles' results
    int definition_count;
} RowTiles;
RowTiles *row_tiles_cut(Arena *arena, const Fusion *whole, int64_t columns);

// ---- which reductions (row_tiles_find.c) ----

/* How a reduction of a row is made of its tiles'. */
typedef enum RowWay {
    ROW_NONE,       // it is no reduction
    ROW_ALONE,      // of all tiles' results, as of elements
    ROW_EXPONENT,   // a sum of exp(t - m): tiles have maxima of their own
    ROW_PLACE       // what an extreme lies at: of tiles that have it
} RowWay;

typedef struct RowSum {
    RowWay way;
    int extreme;     // the op that is m
    Expr *body;      // over the kernel's axes, nothing in it but values of the product's kernel and m
    Expr *missing;   // of ROW_PLACE: the value of what is no extreme
} RowSum;

/* By op of the kernel, of which the first `product_ops` are the product's. NULL: a reduction is of another
   kind. */
RowSum *row_sums_find(Arena *arena, const Fusion *whole, int product_ops);

/* The product and what is made of its elements stand first: how many. */
int row_tiles_product_ops(const Fusion *whole);
