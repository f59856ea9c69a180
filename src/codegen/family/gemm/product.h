// A sum of products of two factors that share the reduced axes and differ in the others.
//
// The axes of the fused expression fall into four groups, and each group is walked as one flat axis:
//   batch   spatial, in both factors       m   spatial, in the first only
//   k       reduced, in both               n   spatial, in the second only
// A convolution has this structure too: m are its pixels or filters, k its channels and taps.
#pragma once
#include "codegen/cuda/expr.h"
#include "ir/fuse_join.h"
#include "ir/fuse_split.h"
#include "kernel/family.h"

enum { GROUP_BATCH, GROUP_M, GROUP_N, GROUP_K, GROUP_COUNT };

/* How the neighbours of a piece are read: by one aligned access, by the two that hold them, one by one. */
typedef enum Way { BY_PIECES, FROM_ANYWHERE, BY_ELEMENTS } Way;

typedef struct Reading {
    bool along_k;   // the neighbours
    Way way;
} Reading;

/* A factor whose neighbours along k, or else along its rows, lie side by side; lines of them and batches are so
   many elements apart. */
typedef struct Lines {
    bool along_k;
    int64_t line, batch;   // batch 0: there is one for all
} Lines;

typedef struct Product {
    const Expr *factor[2];   // A, B
    /* Of several that share A (fuse_join.h) as many sums, and the B's of those behind the first one. */
    int sums;
    const Expr *more[MAX_JOINED - 1];
    const Guard *guard;      // above the product, NULL if none (a split reduction has one)
    PointsShare share;       // the batch is parts of k, and the guard was that of theirs; chunk 0: it is not
    AxisGroup group[GROUP_COUNT];
    bool skinny;             // a thread takes all of A's rows, and no vector ends beside its axis
    Reading reading[2];      // of factors that are elements, or a zero in their place
    /* Of tensor cores, where both are, of one type; the second reads shared memory. NULL: there is none. */
    const Atom *atom, *shared_atom;
    Lines lines[2];          // where bulk copies bring boxes of them
    Lines more_lines[MAX_JOINED - 1];
    /* Rows of a factor are no lines, but pixels under the taps of a filter: im2col.h; or they are taps and channels, and
       k is pixels. What has taps is as long as its steps then, which end with a tap's channels. NULL: there are none. */
    const struct Im2col *pixels;
    const struct PhasedFilter *phased;   // the second factor where the first one's rows are pixels: phases.h; NULL: lines
    const struct Skips *skips;     // lanes leave taps out: skips.h; NULL: none
    const struct Beside *beside;   // of pixels, vectors that the epilogue reads: beside.h; NULL: none
} Product;

/* The view of products: what the fusion's first definition is to kernels that tile both factors, those of them that
   are made of boxes (alone those of a batch that is parts of k), and those of few rows. NULL: no such product. */
typedef struct Products {
    const Product *tiled, *boxed, *skinny;
    const struct ProductRows *rows;   // the fusion stores reductions of the first definition's rows: product_rows.h; NULL: others
} Products;
View product_view;

/* Registers that compilers take for a thread: with one step no next tile is on its way, and inputs are there once. */
RegistersTaken product_registers_taken;

/* Columns of C are those points of which more lie together: of dx[n, c, h, a:2, v, b:2] pixels (n, h, v), two
   elements apart, and not (c, a, b), of which two lie side by side. */
void product_store_together(const Fusion *fusion, Product *product);

/* Whether the fusion's first definition is a product, and its parts: for the view. */
bool product_find(const Fusion *fusion, Product *product);

/* The same where m may be empty, for a vector has no rows: m is the smaller of both groups and has at most
   16, and each element of the other factor serves one column. */
bool product_find_skinny(const Fusion *fusion, Product *product);

/* Products of a batch each of which moves fewer bytes than memory does while a block starts: a block makes
   several. */
bool product_is_small(const Fusion *fusion, const Product *product, const DeviceSpec *device);

// ---- how the factors lie in memory ----

/* Neighbouring threads should walk the direction in which the factor's elements lie closer together. */
bool product_along_k(const Fusion *fusion, const Product *product, int factor);

/* Whether vectors along the group from multiples of `vector` on end with it. Behind the last elements of a
   row of M or N may be others, as of a packed factor: they are taken in vain. */
bool product_ends_in_vectors(const Fusion *fusion, const Access *access, const AxisGroup *group,
                             int64_t vector);

/* Elements of one access of the factor along its fast direction, inside a tile of `tile` elements that
   way. */
int product_vector(const Fusion *fusion, const Product *product, int factor, int64_t tile);

/* Whether so many neighbours along the group's flat axis from multiples of `vector` on are one access, of all of
   them: elements may lie side by side along several axes, as of a row and of the rows of a plane. */
bool product_has_vectors(const Fusion *fusion, const AxisGroup *group, const Affine *offset, int64_t vector);

/* Whether neighbours are one access of columns of C, in every output. */
bool product_stores_vectors(const Fusion *fusion, const Product *product, int columns);

/* The one output, if its elements lie side by side along n, wherever rows begin; NULL: they do not, or there
   are several, or none. */
const FusedOp *product_only_output(const Fusion *fusion, const Product *product);

/* Of a factor, neighbours of the walk may lie far apart, be shared, or be made of several elements or
   none. */
bool product_lies_apart(const Fusion *fusion, const Product *product, int factor);

/* The axes of a factor, those of the guard above the product among them. */
uint32_t product_factor_axes(const Product *product, int factor);

int product_element_bits(const Expr *factor);

/* The tensor it is read from; NULL: none. */
const char *product_factor_name(const Product *product, int factor);

/* Of a thread to find one element that is loaded alone. */
double product_search_instructions(const Fusion *fusion, const Product *product, int factor);

/* The first two tiles of a product's space, as bits; those of all factors. */
enum { FACTOR_TILES = 3 };
static inline uint32_t product_factor_tiles(const Product *product) { return (1u << (1 + product->sums)) - 1; }

/* Tiles behind those: each stored op's, and each tensor's that the epilogue reads, over the axes batch, m, n. */
void product_add_results(TileSpace *space, const Fusion *fusion, const Product *product, const DeviceSpec *device);

/* Those that the epilogue reads, as bits. */
uint32_t product_read_beside(const TileSpace *space);

/* The same where its threads share lines of the tile evenly. */
double product_line_instructions(const Fusion *fusion, const Product *product, int factor);

/* To find a vector that is copied: where threads share lines evenly, or else. */
double product_copy_instructions(const Fusion *fusion, const Product *product, int factor, bool even);

/* Positions along k that all vectors of a thread have, where threads share lines evenly. */
double product_step_instructions(const Fusion *fusion, const Product *product, int factor);

/* Its lines, along k, begin where windows do: they are no constant stride apart, and each place is found once and kept. */
bool product_has_line_places(const Fusion *fusion, const Product *product, int factor);

/* Of a thread for each element of an output, to make it of a sum, find where it lies and store it, so many
   neighbours at once. */
double product_end_instructions(const Fusion *fusion, const Product *product, int columns);

// ---- text ----

/* "batch", "m", "n", "k": the flat position along a group. */
const char *group_variable(int group);

/* M, N, K of the problem and of a block's tile, of which `block` has a size for each group. */
void product_emit_sizes(StrBuf *out, const Product *product, const int64_t *block);

/* The products, and those that a block makes. */
void product_emit_batch(StrBuf *out, const Product *product, const int64_t *block);

/* Positions of those axes of a group that are `used`. */
void product_emit_positions(StrBuf *out, const Scope *scope, const Product *product, int group,
                            const char *flat, uint32_t used);

typedef enum OperandWay {
    OPERAND_LOADED,     // into registers;
    OPERAND_STREAMED,   // likewise, and no other thread reads it: it is an access
    OPERAND_COPIED      // to shared memory: aligned vectors or elements of an access, or zeros in their place
} OperandWay;

/* `inside(i1 - 1, 56) && …`, behind so many bounds that were written before; their number. */
int product_emit_bounds(StrBuf *out, const Scope *scope, const Guard *guard, int before);

/* How a kernel walks along k: so many terms a step, which are channels under one tap, or as the group has them. */
typedef struct ProductSteps {
    int64_t terms;
    int channel;   // axis of the fusion along which these lie; -1: as the group has them
} ProductSteps;

/* Under one tap what all terms of a step have in common is found once. Not where neighbours along k would lie
   farther apart by that. */
ProductSteps product_steps(const Fusion *fusion, const Product *product, int64_t terms);

/* `struct OperandA` or B, which reads `vector` elements of the factor, or says where they lie. Which ones: of a
   step, or (NULL) from k on. */
void product_emit_operand(StrBuf *out, const Scope *scope, const Product *product, int factor, int vector,
                          OperandWay way, const ProductSteps *steps);

/* `finish`: the epilogue of one element of C; `finish_vector`: of QN neighbours along n, stored as vectors if
   so. `kept`: their totals are what the sum is rounded to. */
void emit_finish(StrBuf *out, const Scope *scope, const Product *product);

/* `shift_of`: elements of the only output that lie before this one in the same aligned access of QN. */
void product_emit_shift(StrBuf *out, const Scope *scope, const Product *product);
/* The offset as `m * 128 + n`, where elements lie evenly apart along each group, or along its inner axes and its outer
   ones; else nothing, and false. */
bool product_emit_offset(StrBuf *out, const Fusion *fusion, const Product *product, const Affine *offset);

/* One element of all outputs there; nothing, and false, where one lies unevenly. */
bool product_emit_flat_elements(StrBuf *out, const char *indent, const Scope *scope, const Product *product);

/* Vectors of all outputs there, or, if so, of the sums as they are; nothing, and false, where one lies
   unevenly. */
bool product_emit_flat_stores(StrBuf *out, const Scope *scope, const Product *product, bool moved);

/* What else finish_vector takes, and axes whose positions each element still needs. */
typedef struct FinishReads {
    const char *parameters;
    uint32_t axes;
} FinishReads;

/* `reads` NULL: each element is read where it is used, and positions along all axes are found for each vector. */
void emit_finish_vector(StrBuf *out, const Scope *scope, const Product *product, bool vector_stores,
                        bool kept, const FinishReads *reads);
