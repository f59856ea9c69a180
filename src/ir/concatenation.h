// Concatenations: a tensor whose elements are those of others, which one its place along an axis says.
//
//   cat[i, l:96] = select(l < 64, pad(x[i, l], 0), pad(y[i, l - 64], 0))
//
// Of every `part_stride` elements, here 96, the first 64 are x's and the others y's: kernels that make x and
// y may store them there (fuse_in_place.h).
#pragma once
#include "ir/fuse.h"

typedef struct ConcatenatedPart {
    Tensor *tensor;
    int64_t first;   // position along the axis at which it begins
} ConcatenatedPart;

typedef struct Concatenation {
    Tensor *whole;
    int axis;
    ConcatenatedPart *parts;
    int count;
} Concatenation;

/* By tensor id; NULL: it is none. Of what is itself concatenated along the axis the parts are listed. Marks
   the tensors. */
const Concatenation **concatenations_find(Arena *arena, const Program *program);

/* The definition of a part by the whole: p[i, l] = cat[i, l + 64]. */
TensorOp *concatenation_part(Arena *arena, const Concatenation *concatenation, int part);

/* Of `select(place < border, …)` both. */
bool select_border(const Expr *expr, const Affine **place, int64_t *border);
/* What is read where low <= place < high: the access below guards that hold there; NULL: it is none. */
const Access *select_leaf(const Expr *leaf, const Affine *place, int64_t low, int64_t high);

/* What a kernel that is given a part sees as the element of the whole that it is. */
Access access_of_whole(Arena *arena, const Access *access);

/* Of every `part_stride` elements of a concatenation those from `first` to `end`; of other tensors all. */
typedef struct RowPart {
    int64_t first, end;
} RowPart;

RowPart access_part(const Fusion *fusion, const Access *access);
/* All that the kernel reads of the tensor, or stores of it. */
RowPart fusion_part(const Fusion *fusion, const Tensor *tensor, bool stored);
