// What the files of the permute family share: the sides that its axes fall into, and the tile a block moves.
// Internal to it.
//
//   rows      the innermost axes of the input      outer     what is left
//   columns   the innermost axes of the output
//
// Each side is walked as one flat axis.
#pragma once
#include "codegen/cuda/expr.h"
#include "codegen/family/permute/families.h"
#include "rprogram/rprogram.h"

enum { OUTER, ROWS, COLUMNS, SIDE_COUNT };   // axes of the space, too

enum { BLOCK_THREADS = 256 };   // at most

typedef struct Permute {
    const Access *access;    // of the input that is permuted
    Affine source, target;   // offsets of a point in the input and in every output
    AxisGroup side[SIDE_COUNT];
    Dim bound;           // `size` positions of an axis of the columns that the input has, before zeros; 0: it has all
    int element_bytes;   // of the input
    int widest_bytes;    // of the widest output element, or of the input's
    bool moves;          // nothing is computed: all elements move as they are
} Permute;

/* Kinds of tiles: bytes of a tile along rows, along columns, of an access. */
typedef struct Kind {
    const char *name;
    int row_bytes, column_bytes, access_bytes;
    bool copies;   // for copied lines only
} Kind;

/* A tile as its block moves it. */
typedef struct Shape {
    int64_t tile[SIDE_COUNT];
    int vector[SIDE_COUNT];   // points of one access; 1 for OUTER
    bool copied;              // lines along rows begin anywhere: they are staged as they are
    bool ragged;              // the output's rows begin anywhere
    int turn;                 // rows that neighbouring threads gather
    int share;                // points that blocks' shares of a ragged row are aligned to
    int64_t width;            // columns in shared memory: more than the tile's where a share may begin later
    int piece;                // vectors along rows that a thread turns together
    int write;                // points of one write: vector[COLUMNS], or more that run from row to row
    int64_t line_stride;      // in the input, between neighbours along columns
    int64_t row_stride;       // in the output, between neighbours along rows
    bool follow;              // a line along rows ends where its neighbour along columns begins
    int64_t padding;   // of every vector[ROWS] rows in shared memory, or of every copied line, elements
} Shape;

// ---- permute_sides.c ----

/* False: the fusion is no permutation of one input. */
bool permute_find(const Fusion *fusion, Permute *permute);

// ---- permute_shape.c ----

/* All but its padding and turn. */
Shape permute_shape(const Fusion *fusion, const Permute *permute, const Kind *kind);

/* Elements that the tile takes in shared memory. */
int64_t permute_tile_elements(const Shape *shape);

/* Vectors that hold some of a copied line, wherever it begins; lines that follow each other are one. 0: none
   is copied. */
int64_t permute_copied_vectors(const Shape *shape);

/* Threads of a block that are beside each other along a line of the tile as it is read, and as it is
   written. */
int64_t permute_along_rows(const Shape *shape, int threads);
int64_t permute_along_columns(const Shape *shape, int threads);

/* The least turn and padding with which a warp meets the banks most evenly, on both of its ways through the
   tile. */
void permute_avoid_conflicts(Shape *shape, int element_bytes, const DeviceSpec *device);

// ---- permute_work.c ----

/* Family.work of a ragged shape. */
bool permute_ragged_work(const Permute *permute, const Shape *shape, const CountedItem *at, ItemWork *work);
