// The tensor IR: what every stage after the front end speaks.
//
//   program  = tensors, ops in an order in which each reads only what came before it
//   op       = out[s0, s1, …] = reduce[r0, r1, …] body          reduce is none, sum, max, min or prod
//   body     = constant | affine index value | access | fetch | guard | apply op to bodies | cast
//   access   = tensor[affine, affine, …]                        always inside the tensor's bounds, or below a guard
//   fetch    = an access with integer bodies added to some of its indices: table[idx[t], d], x[i / 4]
//   guard    = if every 0 <= affine < extent then body else constant        (the language's `pad`)
//   affine   = integer coefficients times the op's axes plus a constant
//
// A reduction nested in a larger expression is an op of its own by the time it is here, with an anonymous
// tensor.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/source.h"
#include "base/strbuf.h"

enum {
    MAX_RANK = 8,    // dimensions of a tensor that the user can write
    MAX_AXES = 16,   // axes of one op or fused kernel; a grouped 3-D convolution has 10
    MAX_OPERANDS = 3 // of one scalar operation: select
};

typedef enum DType {
#define DTYPE(id, ...) DTYPE_##id,
#include "ir/dtypes.def"
#undef DTYPE
    DTYPE_COUNT
} DType;

typedef struct DTypeInfo {
    const char *name;     // as the language spells it
    int bits;             // in memory
    const char *cuda;     // element type in a kernel; b1 lives in `unsigned` words
    DType compute;        // inside an expression
    bool is_real;
    bool in_language;
} DTypeInfo;

extern const DTypeInfo dtype_info[DTYPE_COUNT];

/* Bytes of `count` elements in memory; b1 takes whole 4-byte words. */
int64_t dtype_bytes(DType type, int64_t count);

typedef enum OpClass {
    OP_CLASS_ARITH,
    OP_CLASS_WHOLE,
    OP_CLASS_REAL,
    OP_CLASS_COMPARE,
    OP_CLASS_LOGIC,
    OP_CLASS_SELECT
} OpClass;

typedef enum Op {
#define OP(id, ...) OP_##id,
#include "ir/ops.def"
#undef OP
    OP_COUNT
} Op;

typedef struct OpInfo {
    const char *name;     // OP id in lower case, for printers: "add"
    const char *spelling; // in the language
    int operands;
    OpClass class;
    const char *cuda;     // device code, operands %0 %1 %2
} OpInfo;

extern const OpInfo op_info[OP_COUNT];

typedef enum Reduce { REDUCE_NONE, REDUCE_SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD } Reduce;

extern const char *const reduce_name[];

/* coef[0]*axis0 + coef[1]*axis1 + … + constant */
typedef struct Affine {
    int64_t coef[MAX_AXES];
    int64_t constant;
} Affine;

typedef struct Axis {
    const char *name;   // for printers and comments only: nothing is ever decided by it
    int64_t extent;
    bool reduction;
} Axis;

/* Another shape in which the program sees a tensor: as many elements, row-major. */
typedef struct TensorView TensorView;
struct TensorView {
    int rank;
    int64_t shape[MAX_RANK];
    const TensorView *next;
};

typedef enum Role { ROLE_INPUT, ROLE_OUTPUT, ROLE_TEMPORARY } Role;

typedef struct Tensor Tensor;
struct Tensor {
    const char *name;   // of a temporary made by rollerc: "y.1"
    int id;             // position in Program.tensors
    DType dtype;
    Role role;
    bool is_weight;             // an input that stays the same over calls
    bool is_prepared;           // a temporary made of weights alone: NAME_prepare makes it, once (prepared.h)
    int rank;   // at most MAX_RANK, except temporaries that hold a nested reduction (MAX_AXES)
    int64_t shape[MAX_AXES];    // row-major, dense
    const TensorView *views;    // in which some access may see it; NULL: none
    int64_t
        part_stride;   // of a concatenation: elements from a row of its parts to the next (concatenation.h); 0: it is none
    const Tensor *
        part_of;   // the tensor of this id, of which a kernel is given what lies from here on (fuse_in_place.h); NULL: all
    const Tensor *part;         // … which is this one of the program's
    int64_t part_first;         // elements of it that lie before that,
    int64_t part_end;           // … and up to where the kernel makes them, in each row
    int64_t
        indexes;   // elements are indices of a dimension of this size: test inputs lie there; 0: they are none
    bool exact;                 // its definition's values are of its type as they are: none is rounded
    const Tensor *shown;        // an output that is a view: its name and shape for the user; NULL: its own
    Loc loc;
};

typedef struct Expr Expr;

typedef enum ExprKind {
    EXPR_CONST,   // number
    EXPR_INDEX,   // value of an affine form: an index variable used as a value
    EXPR_ACCESS,  // element of a tensor
    EXPR_FETCH,   // element of a tensor at a place that is computed
    EXPR_GUARD,   // `pad`
    EXPR_APPLY,   // scalar operation
    EXPR_CAST,    // round or convert to an element type
    EXPR_VALUE    // after fusion only: what an earlier op of the same kernel made at this point
} ExprKind;

/* One tensor dimension's index and size. After axis fusion the dimensions are those of a view of the
   tensor. */
typedef struct Dim {
    Affine index;
    int64_t size;
} Dim;

typedef struct Access {
    Tensor *tensor;
    int rank;
    const Dim *
        dims;   // row-major: the last one is contiguous. Others may share the list: who rewrites it makes a new one
} Access;

/* An integer that is added to the index of one dimension of that stride. It is bounded whatever tensors it
   reads: the sum with the dimension's index stays inside the dimension. */
typedef struct FetchPlace {
    Expr *value;      // of type i32 or i64
    int64_t stride;
} FetchPlace;

/* table[idx[t], d] of table[V, D]: access table[0, d] and one place, idx[t] clamped to 0 … V-1, of stride D.
   Recognisers of accesses do not see it: whoever takes one asks for it by its kind. */
typedef struct Fetch {
    Access access;
    int count;
    FetchPlace *places;
} Fetch;

typedef struct Guard {
    int count;
    const Dim *bounds;   // 0 <= index < size for each, else the value is `otherwise`; shared, too
    Expr *body;
    Expr *otherwise;  // EXPR_CONST
} Guard;

struct Expr {
    ExprKind kind;
    DType type;       // compute type of the value: f64, f32, i32, i64 or b1
    Loc loc;
    union {
        struct { double real; int64_t integer; } constant;   // `real` for real types, else `integer`
        Affine index;
        Access access;
        Fetch fetch;
        Guard guard;
        struct { Op op; Expr *operands[MAX_OPERANDS]; } apply;
        struct {
            DType to;
            Expr *body;
        } cast;   // `type` is the compute type of `to`: f16 rounds, then widens
        int value;                                // position in Fusion.ops
    };
};

/* A definition. Axes [0, spatial_count) are the dimensions of `out` in order, the others are reduced over. */
typedef struct TensorOp {
    Tensor *out;
    int spatial_count, axis_count;
    Axis axes[MAX_AXES];
    Reduce reduce;         // accumulates in body->type; the result is then rounded to out->dtype
    Expr *body;
    Loc loc;
} TensorOp;

typedef struct Program {
    Tensor **tensors;  int tensor_count;
    TensorOp **ops;    int op_count;
    Tensor **inputs;   int input_count;    // in the order of the `input`, then of the `weight` statements
    Tensor **outputs;  int output_count;   // in the order of the `output` statements
    bool fast_math;   // --math=fast: sums may leave the range of their type (common_factors.h)
} Program;

/* What the user calls an input or an output, and its shape for him. */
static inline const Tensor *tensor_shown(const Tensor *tensor)
{
    return tensor->shown ? tensor->shown : tensor;
}

/* The program also sees the tensor in the shape of `seen`. */
void tensor_add_view(Arena *arena, Tensor *tensor, const Tensor *seen);

/* Elements of a tensor. */
int64_t tensor_elements(const Tensor *tensor);
int64_t tensor_bytes(const Tensor *tensor);
int64_t tensors_bytes(Tensor *const *tensors, int count);

/* Of all inputs and outputs. */
int64_t program_bytes(const Program *program);

/* Of a part: whether the element of the whole is one of it. */
static inline bool tensor_has(const Tensor *tensor, int64_t element)
{
    int64_t at = tensor->part_of ? element % tensor->part_stride : 0;
    return !tensor->part_of || (tensor->part_first <= at && at < tensor->part_end);
}

// Affine forms.
Affine affine_constant(int64_t value);
Affine affine_axis(int axis);
bool affine_is_constant(const Affine *form);
bool affine_equal(const Affine *left, const Affine *right);
/* The axis if the form is exactly that axis (coefficient 1, no constant), else -1. */
int affine_single_axis(const Affine *form);
/* Whether `vector` elements along the axis, from a multiple of it on, are one aligned access of the
   offset. */
bool affine_allows_vector(const Affine *form, int axis, int64_t vector);
/* Smallest and largest value over the box 0 <= axis < extent. Returns false on overflow. */
bool affine_range(const Affine *form, const int64_t *extents, int axis_count, int64_t *low, int64_t *high);
/* How far the dimension reaches inside a tile of `tile[axis]` points: for `2*oh + kh` and 4 oh's and 3 kh's,
   2*(4-1) + 1*(3-1) + 1 = 9 elements. At most 2^62: no tensor is as long. */
static inline int64_t affine_extent(const Affine *form, const int64_t *tile, int axis_count)
{
    const int64_t most = (int64_t)1 << 62;
    int64_t extent = 1;
    for (int a = 0; a < axis_count; a++) {
        int64_t reach;
        if (!form->coef[a])
            continue;
        if (__builtin_mul_overflow(form->coef[a] < 0 ? -form->coef[a] : form->coef[a], tile[a] - 1, &reach) ||
            __builtin_add_overflow(extent, reach, &extent) || extent > most)
            return most;
    }
    return extent;
}
/* form = by * quotient + rest with 0 <= rest < by at every point of the box; false: there are no such forms.
   Of (8*i + j)/8 they are i and j where j stays below 8. */
bool affine_divide(const Affine *form, int64_t by, const int64_t *extents, int axis_count, Affine *quotient,
                   Affine *rest);
/* Replace axis i by forms[i]. */
Affine affine_substitute(const Affine *form, const Affine *forms, int axis_count);
/* Flat row-major offset of an access as one form, in elements. */
Affine access_offset(const Access *access);
/* tensor[indices[0], indices[1], …] */
Access access_new(Arena *arena, Tensor *tensor, const Affine *indices);
/* It names the tensor's own dimensions, and not those of a view. */
bool access_is_own(const Access *access);
/* The tensor that an access or a fetch reads; NULL: the expression is neither. */
static inline Tensor *expr_tensor(const Expr *expr)
{
    return expr->kind == EXPR_ACCESS ? expr->access.tensor
           : expr->kind == EXPR_FETCH ? expr->fetch.access.tensor
                                      : NULL;
}

// Building expressions.
Expr *expr_constant(Arena *arena, DType compute_type, double value);
bool expr_is_zero(const Expr *expr);
static inline bool expr_is(const Expr *expr, Op op) { return expr->kind == EXPR_APPLY && expr->apply.op == op; }
Expr *expr_value(Arena *arena, int op, const Tensor *out);   // what op `op` of a fusion makes of that tensor
Expr *expr_access(Arena *arena, DType compute_type, Access access);
/* The body where all bounds hold, elsewhere `otherwise`, or, if that is NULL, zero. The body alone if there are none. */
Expr *expr_guard(Arena *arena, Expr *body, const Dim *bounds, int count, Expr *otherwise);
Expr *expr_apply(Arena *arena, Op op, DType type, Expr *a, Expr *b, Expr *c);
Expr *expr_cast(Arena *arena, DType to, Expr *body);
/* A copy of the nodes. Their lists of dimensions are shared. */
Expr *expr_copy(Arena *arena, const Expr *expr);
/* A copy of the tree with each axis i replaced by forms[i]. */
Expr *expr_substitute(Arena *arena, const Expr *expr, const Affine *forms, int axis_count);
/* What it is made of, the i-th of it; NULL: there are no more. Not what stands beside a guard, a constant. */
Expr *expr_child(const Expr *expr, int i);
/* Calls visit for every node, parents first. */
void expr_visit(Expr *expr, void (*visit)(Expr *expr, void *context), void *context);
/* The first node for which the test is true, parents first; NULL: there is none. */
typedef bool ExprTest(const Expr *expr, const void *context);
const Expr *expr_find(const Expr *expr, ExprTest *test, const void *context);
bool expr_reads_value(const Expr *expr, int op);   // what op `op` of a fusion makes
int expr_bounds(const Expr *expr);                 // positions that guards test
int expr_size(const Expr *expr);
/* A copy of the node, its operands, bodies and places what `make` makes of them. */
typedef Expr *ExprMake(const Expr *expr, void *context);
Expr *expr_remake(Arena *arena, const Expr *expr, ExprMake *make, void *context);

/* Both have the same places; NULL has none. */
bool fetch_places_equal(const Fetch *left, const Fetch *right);
/* Whether two trees over the same axes are the same, node by node. */
bool expr_equal(const Expr *left, const Expr *right);
/* Bit a: axis a stands in an index, a guard or as a value. */
uint32_t affine_axes(const Affine *form);
uint32_t access_axes(const Access *access);
uint32_t expr_axes(const Expr *expr);

/* The same but for accesses and fetches that are there already. */
uint32_t expr_axes_left(const Expr *expr, bool (*is_there)(const void *context, const Expr *read),
                        const void *context);

/* The identity of the reduction in the given compute type: 0, 1, -inf or the smallest integer, … */
Expr *reduce_identity(Arena *arena, Reduce reduce, DType compute_type);

// Printers (`-d op`).
void affine_print(StrBuf *out, const Affine *form, const Axis *axes, int axis_count);
void expr_print(StrBuf *out, const Expr *expr, const Axis *axes, int axis_count);
void op_print(StrBuf *out, const TensorOp *op);
void program_print(StrBuf *out, const Program *program);
