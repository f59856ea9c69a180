// A sum of products of two factors that share the reduced axes and differ in the others.
//
// The axes of the fused expression form four groups, and each group is one flat axis:
//   batch   spatial, in both factors       m   spatial, in the first only
//   k       reduced, in both               n   spatial, in the second only
// A convolution has this structure, too: m are its pixels or filters, k its channels and taps.
#pragma once
#include "codegen/cuda/expr.h"
#include "ir/fuse_join.h"
#include "ir/fuse_split.h"
#include "kernel/family.h"

enum { GROUP_BATCH, GROUP_M, GROUP_N, GROUP_K, GROUP_COUNT };

enum { LANES = 32 };   // of a warp, which has adjacent elements

/* How a 16-byte vector is read: by one aligned access, by the two that hold it, element by element. */
typedef enum Way { BY_PIECES, FROM_ANYWHERE, BY_ELEMENTS } Way;

typedef struct Reading {
    bool along_k;   // the neighbours
    Way way;
} Reading;

/* A factor that is contiguous along k, or else along its rows; its first element, the strides of its lines and batches. */
typedef struct Lines {
    bool along_k;
    int64_t start, line, batch;   // batch 0: there is one for all
} Lines;

typedef struct Product {
    const Expr *factor[2];   // A, B
    /* The number of sums that share A (fuse_join.h), and the B's of all but the first one. */
    int sums;
    const Expr *more[MAX_JOINED - 1];
    const Guard *guard;      // above the product, NULL if none (a split reduction has one)
    PointsShare share;       // the batch is a split of k, and the guard was that of its parts; chunk 0: it is not
    AxisGroup group[GROUP_COUNT];
    bool skinny;             // a thread accumulates all of A's rows, and vectors end with their axis
    Reading reading[2];      // of factors that are elements, or a zero in their place
    /* Of tensor cores, where both are, of one type; the second reads shared memory. NULL: none. */
    const Atom *atom, *shared_atom;
    Lines lines[2];          // where bulk copies bring boxes of them
    Lines more_lines[MAX_JOINED - 1];
    /* Rows of a factor are not lines, but pixels shifted by the taps of a filter (im2col.h); or they are taps
       and channels, and k is pixels. Then taps are padded to whole steps, which end with a tap's channels. NULL:
       neither. */
    const struct Im2col *pixels;
    const struct PhasedFilter *phased;   // the second factor where the first one's rows are pixels: phases.h; NULL: lines
    const struct Skips *skips;     // taps that tiles skip: skips.h; NULL: none
    const struct Beside *beside;   // of pixels, vectors that the epilogue reads: beside.h; NULL: none
} Product;

/* The view of products: the fusion's first definition as kernels with tiles of both factors see it, those with
   boxes (only these for a batch that is a split of k), and those with few rows. NULL: no such product. */
typedef struct Products {
    const Product *tiled, *boxed, *skinny;
    const struct ProductRows *rows;   // the fusion stores reductions of the first definition's rows: product_rows.h; NULL: others
} Products;
View product_view;

/* Registers that compilers need for a thread: with one step there is no prefetch, and inputs are loaded once. */
RegistersTaken product_registers_taken;

/* A becomes B, and its rows columns. */
void product_exchange(Product *product);

/* Columns of C are the points that are more contiguous: of dx[n, c, h, a:2, v, b:2] pixels (n, h, v), two
   elements apart, and not (c, a, b), of which two are contiguous. */
void product_store_together(const Fusion *fusion, Product *product);

/* Whether the fusion's first definition is a product, and its parts: for the view. */
bool product_find(const Fusion *fusion, Product *product);

/* As product_find(), where m may be empty, as a vector has no rows: m is the smaller of both groups and has at
   most 16, and each element of the other factor serves one column. */
bool product_find_skinny(const Fusion *fusion, Product *product);

/* Products of a batch that each move fewer bytes than memory does while a block starts: a block computes
   several. */
bool product_is_small(const Fusion *fusion, const Product *product, const DeviceSpec *device);

// ---- how the factors lie in memory ----

/* Adjacent threads should be assigned along the direction in which the factor is more contiguous. */
bool product_along_k(const Fusion *fusion, const Product *product, int factor);

/* Whether vectors along the group from multiples of `vector` on end with it. The last elements of a row of M or
   N may be followed by padding, as in a packed factor, which is loaded and not used. */
bool product_ends_in_vectors(const Fusion *fusion, const Access *access, const AxisGroup *group,
                             int64_t vector);

/* Elements of one access of the factor along its contiguous dimension, in a tile of `tile` elements along it. */
int product_vector(const Fusion *fusion, const Product *product, int factor, int64_t tile);

/* Contiguous elements of the factor along the group's flat axis. */
int64_t product_contiguous(const Fusion *fusion, const AxisGroup *group, const Access *access);

/* Whether `vector` elements along the group's flat axis, from multiples of it on, are always one access: they
   may be contiguous across several axes, as across the rows of a plane. */
bool product_has_vectors(const Fusion *fusion, const AxisGroup *group, const Affine *offset, int64_t vector);

/* Whether `columns` adjacent columns of C are one access in every output. */
bool product_stores_vectors(const Fusion *fusion, const AxisGroup *group, int64_t elements);

/* The only output, if it is contiguous along n, aligned or not; NULL: it is not, or there are several, or none. */
const FusedOp *product_only_output(const Fusion *fusion, const Product *product);

/* Elements lie in memory as the positions of three groups do, outermost first, but for axes along which all have the same one. */
bool product_lies_in_order(const Fusion *fusion, const Product *product, const Access *access, const int group[3]);

/* Whether adjacent elements of a factor may be strided, shared, or computed from several elements or none. */
bool product_lies_apart(const Fusion *fusion, const Product *product, int factor);

uint32_t guard_axes(const Guard *guard);   // of its bounds; NULL: none

/* The axes of a factor, those of the guard above the product among them. */
uint32_t product_factor_axes(const Product *product, int factor);

int product_element_bits(const Expr *factor);

/* Instructions of a thread to find the address of one element that is loaded alone. */
double product_search_instructions(const Product *product, int factor);

/* The tile of a factor: batch, then rows and k, as they are contiguous. */
TileSpace *product_space(Arena *arena, const Fusion *fusion, const Product *product);
DataTile product_factor_tile(const Product *product, int factor, bool along_k);

/* The first two tiles of a product's space, as bits; those of all factors. */
enum { FACTOR_TILES = 3 };
static inline uint32_t product_factor_tiles(const Product *product) { return (1u << (1 + product->sums)) - 1; }

/* Adds the following tiles: of each stored op, and of each tensor that the epilogue loads, over the axes batch,
   m, n. */
void product_add_results(TileSpace *space, const Fusion *fusion, const Product *product, const DeviceSpec *device);

/* The tiles that the epilogue loads, as bits. */
uint32_t product_read_beside(const TileSpace *space);

/* Fills in the instructions that find an element of a staged tile. */
void product_count_search(DataTile *tile, const Fusion *fusion, const Product *product, int factor, bool held);

/* Whether its lines along k begin at windows: they have no constant stride, and each address is computed once
   and kept. */
bool product_has_line_places(const Fusion *fusion, const Product *product, int factor);

/* Instructions of a thread for each element of an output: to compute it from a sum, find its address and store
   it, with so many contiguous elements at once. */
double product_end_instructions(const Fusion *fusion, const Product *product, int columns);

// ---- text ----

/* "batch", "m", "n", "k": the flat position along a group. */
const char *group_variable(int group);

/* M, N, K of the problem and of a block's tile, of which `block` has a size for each group. */
void product_emit_sizes(StrBuf *out, const Product *product, const int64_t *block);

/* The products, and those of a block. */
void product_emit_batch(StrBuf *out, const Product *product, const int64_t *block);

/* Positions of those axes of a group that are `used`. */
void product_emit_positions(StrBuf *out, const Scope *scope, const Product *product, int group,
                            const char *flat, uint32_t used);

/* Positions of terms along k, or along its taps, which threads find in every step: the innermost first, each quotient of the one
   before. */
void product_emit_terms(StrBuf *out, const Scope *scope, const AxisGroup *terms, const char *flat, uint32_t used);

typedef enum OperandWay {
    OPERAND_LOADED,     // into registers;
    OPERAND_STREAMED,   // likewise, and no other thread reads it: it is an access
    OPERAND_HELD,       // into registers, from where it lies: aligned vectors or elements of an access, or zeros in their place;
    OPERAND_COPIED      // to shared memory: aligned vectors or elements of an access, or zeros in their place
} OperandWay;

/* The guard above the product says no more than where k ends in a batch: the last part of a reduction has fewer terms. */
bool product_guard_ends_k(const Product *product);

/* `inside(i1 - 1, 56) && …`, behind so many bounds that were written before; their number. */
int product_emit_bounds(StrBuf *out, const Scope *scope, const Guard *guard, int before);

/* The iteration over k: so many terms a step, which are channels of one tap, or in the group's order. */
typedef struct ProductSteps {
    int64_t terms;
    int channel;   // axis of the fusion of these channels; -1: in the group's order
} ProductSteps;

/* Steps of one tap compute what their terms have in common once. Not used where they would be less contiguous
   along k. */
ProductSteps product_steps(const Fusion *fusion, const Product *product, int64_t terms);

/* DataTile.even_terms of a factor. */
int64_t product_even_terms(const Fusion *fusion, const Product *product, int factor);

/* `struct OperandA` or B, which loads `vector` elements of the factor, or has their address: of a step, or
   (NULL) from k on. */
void product_emit_operand(StrBuf *out, const Scope *scope, const Product *product, int factor, int vector,
                          OperandWay way, const ProductSteps *steps);

/* `finish`: the epilogue of one element of C; `finish_vector`: of QN elements along n, with vector stores if
   `vector_stores`. `kept`: their totals have the type that the sum is rounded to. */
void emit_finish(StrBuf *out, const Scope *scope, const Product *product);

/* Of the only output, whose rows are not aligned: `shift_of`, elements before this one in the same aligned access of QN;
   `place_of`, where it lies; `result`, what it is. */
void product_emit_shifted(StrBuf *out, const Scope *scope, const Product *product);

/* `pointer + index` is the access's element at (batch, m, n), of the tensor's text. If `apart` m is m0 + down and n is n0 + right,
   and index has what is of `down` and `right` alone, constants of unrolled loops: all vectors of a lane share one address, `m0` and
   `n0`, where products of m itself would be computed for each. `index` is NULL unless strides are constant along each
   group, or along its inner and its outer axes. */
typedef struct ElementPlace {
    const char *pointer, *index;
} ElementPlace;

ElementPlace product_place(Arena *arena, const Fusion *fusion, const Product *product, const Access *access,
                           const char *tensor, bool apart);

/* Parameters of a function of an element of C, and what makes m and n of them. */
static inline const char *position_parameters(bool apart)
{
    return apart ? "Index m0, Index n0, Index down, Index right" : "Index m, Index n";
}

static inline const char *position_opening(bool apart)
{
    return apart ? "    [[maybe_unused]] const Index m = m0 + down, n = n0 + right;\n" : "";
}

/* One element of all outputs there; nothing, and false, where strides are not constant. */
bool product_emit_flat_elements(StrBuf *out, const Scope *scope, const Product *product);

/* Vectors of all outputs there, or, if `moved`, of the sums unconverted; nothing, and false, where strides are
   not constant. */
bool product_emit_flat_stores(StrBuf *out, const Scope *scope, const Product *product, bool moved, bool apart);

/* Further arguments of finish_vector, and axes whose positions each element still needs. */
typedef struct FinishReads {
    const char *parameters;
    uint32_t axes;
    bool apart;   // of product_place()
} FinishReads;

void emit_finish_vector(StrBuf *out, const Scope *scope, const Product *product, bool vector_stores,
                        bool kept, const FinishReads *reads);
