// What the epilogue of a product reads beside its sum: elements side by side along n, as a bias or a residual. Vectors of
// what has an element for each row are asked for ahead, so that nobody waits for them when the sums are complete.
#pragma once
#include "codegen/family/gemm/product.h"

enum { MAX_BESIDE = 8 };   // more are read where they are used

typedef struct Beside {
    const Fusion *fusion;
    int sums;   // of its ops, which read factors
    const Access *access[MAX_BESIDE];
    bool of_rows[MAX_BESIDE];   // it moves along m or from product to product
    int count;
} Beside;

/* Reads of so many neighbours that are one aligned access, or several. */
Beside beside_find(const Fusion *fusion, const Product *product, int columns);

/* `struct Beside` and `read_beside`, of what moves along m, `struct Columns` and `read_columns` of the rest. Either may
   be empty. */
void beside_emit_reads(StrBuf *out, const Scope *scope, const Product *product, const Beside *beside,
                       int columns);

/* And finish_vector that takes both. */
void beside_emit(StrBuf *out, const Scope *scope, const Product *product, const Beside *beside, int columns,
                 bool kept);
