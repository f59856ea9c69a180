// Streamed chains (attention): a sum of products, a softmax along its columns, and a second sum of products
// with those shares.
//
//   s[b, i, j] = sum[d](q[b, i, d] * k[b, j, d])          a score of every row and column, also of q / 4 and k / 4
//   t[b, i, j] = …                                        made of it, point by point: scale, bias, mask
//   m[b, i]    = max[j](t[b, i, j])
//   e[b, i, j] = exp(t[b, i, j] - m[b, i])
//   z[b, i]    = sum[j](e[b, i, j])
//   p[b, i, j] = e[b, i, j] / z[b, i]  : f16              any quotient or product with what a row has
//   y[b, i, n] = sum[j](p[b, i, j] * v[b, j, n])
//
// One kernel walks along j and keeps a row's maximum so far, and its sums for that maximum, which are
// rescaled when it grows (doc/language.md, "Arithmetic"). Nothing of the size of s is in memory. It is found
// by structure. p has the type of v, and is rounded at the scale of the maximum so far (there, too). Or p is
// f32, and is multiplied as a sum of several elements of v's type.
#pragma once
#include "ir/fuse.h"

typedef struct Stream {
    Fusion *fusion;             // axes: those of y, then j, then d
    const TensorOp *sum;        // y: the kernel replaces it
    const Tensor *share;        // p
    const TensorOp **members;   // all definitions that the kernel makes, y among them
    int member_count;
    Tensor **factors;   // read as they are stored: q, k and v
    int factor_count;
} Stream;

typedef struct StreamList {
    Stream *streams;
    int count;
} StreamList;

StreamList streams_find(Arena *arena, const Program *program);

/* A real that is made of numbers alone, as sqrt(64) is. */
bool stream_number(const Expr *expr, double *value);

/* The definition is a member of one of them: that one, else NULL. */
const Stream *streams_member(const StreamList *list, const Tensor *tensor);

// ---- questions of the evaluator ----

/* By tensor id: definitions of f16 or bf16 that are no outputs and are read only as a factor of sums of
   products, or by sums beside those. They may be rounded at another scale, or not at all (doc/language.md,
   "Arithmetic"). */
bool *streams_find_loose(Arena *arena, const Program *program);

/* By tensor id: those that are p of a chain, or of its parts. Where they are 0, a term of the sum that they
   are a factor of may be left out (doc/language.md, "Arithmetic"). */
bool *streams_find_shares(Arena *arena, const Program *program);

// ---- the chain that is built (stream_build.c) ----

enum { MAX_ROW_SUMS = 4, MAX_SCALES = 4 };

/* What was found, over the kernel's axes. */
typedef struct Chain {
    Arena *arena;
    const Program *program;
    const TensorOp *const *definition;   // by tensor id; NULL: an input
    const bool *loose;                   // by tensor id: may be rounded at any scale (streams_find_loose)
    bool guarded;                        // factors may stand below guards, as parts of a chain read them
    bool *used;                          // by tensor id: expanded, or one of the reductions
    const TensorOp *sum;                 // y
    int column, depth;                   // axes j and d
    uint32_t rows;                       // axes of m
    const Expr *value;                   // v's element
    bool value_guarded;                  // it stands below a guard
    const TensorOp *weight;              // p: what y's other factor reads
    Expr *weight_access, *share;         // p[…], and its body with all definitions in it
    Expr *exponential, *score;           // exp(t - m), t: likewise
    const TensorOp *maximum, *product;   // m, s
    Expr *maximum_access, *product_access;
    const Expr *sides[2];   // q's element, k's
    struct {
        Op op;
        Expr *by;
    } scales[MAX_SCALES];   // of s: numbers in its terms
    int scale_count;
    const char *exponential_name;         // of the definition that is e; NULL: it has none
    const TensorOp *sums[MAX_ROW_SUMS];   // z
    Expr *sums_access[MAX_ROW_SUMS];
    int sum_count;
} Chain;

/* The kernel of the chain and of what else is made of its rows. False: other kernels read what it does not
   store. */
bool chain_build(Chain *chain, Stream *stream);

// ---- a kernel that is cut along its columns (stream_split.c) ----

/* The first kernel keeps each part's maxima and sums, at the scale of these maxima; the others combine
   them. */
typedef struct StreamParts {
    Fusion *partial;
    Fusion *results, *rows;         // rows: what is stored of rows alone; NULL: nothing is
    const TensorOp **definitions;   // of the first one's ops
    int definition_count;
} StreamParts;

/* About so many parts. NULL: they would have too few columns. */
StreamParts *stream_split(Arena *arena, const Fusion *fusion, int64_t parts);
