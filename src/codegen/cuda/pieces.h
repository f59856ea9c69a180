// Concatenations: an element of one of several tensors, which one its place along an axis says.
//
//   select(l < 64, pad(x[i, l], 0), select(l < 96, pad(y[i, l - 64], 0), pad(z[i, l - 96], 0)))
//
// Where each vector of points lies in one of them, that one is found first and read alone.
#pragma once
#include "codegen/cuda/expr.h"

enum { MAX_PIECES = 32 };

typedef struct Piece {
    const Access *access;
    Affine offset;
    int64_t end;   // its last position along the axis and one; it begins where the one before ends
} Piece;

typedef struct Pieces {
    int axis;
    int count;
    Piece piece[MAX_PIECES];
} Pieces;

/* Of vectors along an axis of the kernel. False: the expression is no concatenation, or not of whole aligned
   vectors of one type. */
bool pieces_find(const Fusion *fusion, int along, int64_t vector, const Expr *expr, Pieces *pieces);

/* Is the access one of those that the concatenation is made of? */
bool pieces_hold(const Expr *tree, const Access *access);

/* A call with `from` and `at`, the tensor and the place of the scope's point. */
void pieces_emit(StrBuf *out, const char *indent, const Scope *scope, int along, int64_t vector,
                 const Expr *tree, const char *call);
