// What the epilogue of a product loads besides its sum: elements that are contiguous along n, as of a bias or a
// residual. Vectors of tensors with an element for each row are prefetched, so that the epilogue does not wait for
// them; so are single elements, which the compiler loads no earlier than the store before.
#pragma once
#include "codegen/family/gemm/product.h"

enum { MAX_BESIDE = 8 };   // more are read where they are used

typedef struct Beside {
    const Fusion *fusion;
    int columns;   // of a vector
    int sums;   // of its ops, which read factors
    bool ordered;   // what varies along m is loaded between barriers and stores, which ptxas moves read-only loads behind
    bool apart;     // product_place()
    const Access *access[MAX_BESIDE];
    bool of_rows[MAX_BESIDE];   // it varies along m or across the batch
    int count;
} Beside;

static inline bool beside_has_vectors(const Beside *beside) { return beside && beside->columns > 1; }

/* The loads of `columns` contiguous elements that are aligned accesses. */
Beside beside_find(const Fusion *fusion, const Product *product, int columns);

/* Of the loads of a product's epilogue, those whose vectors of `columns` elements are aligned accesses. */
Beside beside_in_vectors(const Fusion *fusion, const Product *product, int columns);

/* `struct Beside` and `read_beside`, of what varies along m; `struct Columns` and `read_columns` of the rest.
   Either may be empty. */
void beside_emit_reads(StrBuf *out, const Scope *scope, const Product *product, const Beside *beside,
                       int columns);

/* And finish_vector that takes both. */
void beside_emit(StrBuf *out, const Scope *scope, const Product *product, const Beside *beside, int columns,
                 bool kept);
