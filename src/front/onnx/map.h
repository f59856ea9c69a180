// What an operator's mapping is made of: inputs, attributes, and helpers that write definitions.
//
// A mapping reads its inputs with need() or maybe(), gives each output that out() has a type and a shape, and
// writes definitions; or it refuses the node. The very same mapping folds constants: what it writes is then
// evaluated at once.
#pragma once
#include <setjmp.h>

#include "front/onnx/draft.h"
#include "front/onnx/graph.h"

typedef struct Operator Operator;
typedef struct Refusal Refusal;

typedef struct Map {
    Arena *arena;
    const GraphNode *node;
    const Operator *row;
    Draft *draft;
    NameTable *taken;
    bool folding;          // all inputs are constants: `draft` is evaluated at once
    const char *comment;   // above the definitions; comment() adds to it
    int *places;           // of weights: the next one
    const char *model;     // the file
    Refusal *refusal;
} Map;

typedef void Mapping(Map *m);

/* One row of the table of operators. */
struct Operator {
    const char *domain;   // "" is ONNX's own
    const char *name;
    int since;   // version from which this row holds, until another of the same name does
    Mapping *map;
    const char *text;   // of rows that share a mapping: the expression
};

/* The row of a node; NULL: there is none. */
const Operator *operator_find(const GraphNode *node);
/* Newest version of a domain's operators that is known; 0: the domain is not. */
int operator_newest(const char *domain);

// ---- inputs and outputs (map.c) ----

/* Where a node that cannot be taken ends, and why. */
struct Refusal {
    jmp_buf back;
    const char *text;
};

/* The node cannot be taken; `format` says what it lacks. */
_Noreturn void refuse(const Map *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

const GraphValue *need(const Map *m, int input);                  // refuses where it is left out
const GraphValue *maybe(const Map *m, int input);                 // NULL: left out
GraphValue *out(const Map *m, int output);                        // NULL: not wanted
void refuse_output(const Map *m, int output, const char *what);   // if it is wanted

/* The mapping of the same node on other values, for a mapping that is made of another one. */
Map map_on(const Map *m, GraphValue *output, const GraphValue *const *inputs, int count);

/* An input that must be known now. Refuses one of data, and names the option that binds an input. */
const GraphValue *need_constant(const Map *m, int input);

/* Integers that must be known now: shapes, axes. */
typedef struct Ints {
    int count;
    const int64_t *items;
} Ints;
Ints need_ints(const Map *m, int input);

/* A part of the comment above the node's definitions: `3x3, stride 2`. */
void comment(Map *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

// ---- attributes (attributes.c) ----

bool has_attribute(const Map *m, const char *name);
int64_t attribute_int(const Map *m, const char *name, int64_t otherwise);
double attribute_real(const Map *m, const char *name, double otherwise);
const char *attribute_text(const Map *m, const char *name, const char *otherwise);
Ints attribute_ints(const Map *m, const char *name);   // none: no items
typedef struct Reals {
    int count;
    const float *items;
} Reals;
Reals attribute_reals(const Map *m, const char *name);
const Onnx__TensorProto *attribute_tensor(const Map *m, const char *name);   // NULL: there is none
/* A number as an expression has it, of an attribute or else as given; NULL `otherwise`: the node needs it. */
const char *attribute_literal(const Map *m, const char *name, const char *otherwise);

/* -1 is the last of `rank` dimensions; refuses what is none. */
int axis_of(const Map *m, int64_t axis, int rank);
/* Axes as an attribute, or since `version` as an input; sorted out: flags of `rank` dimensions; true: some
   are given. */
bool axes_given(const Map *m, const char *name, int input, int rank, bool flags[MAX_RANK]);

// ---- expressions (express.c) ----

const char *fmt(const Map *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* An element: `x[i, 2*h + r]`; of a constant that is the same everywhere the constant itself. */
const char *at(const Map *m, const GraphValue *value, const char *places);
/* The same within `pad(…, otherwise)`. */
const char *at_padded(const Map *m, const GraphValue *value, const char *places, const char *otherwise);
/* A letter for each dimension. Dimensions of size 1 are read at 0 where the letter's extent is another:
   broadcasting. `extents` belong to `all`, the letters of the definition. */
const char *at_letters(const Map *m, const GraphValue *value, const char *letters, const char *all,
                       const Dims *extents);
/* Aligned at the last dimension: what ONNX's broadcasting reads at the point "ijkl…" of `shape`. */
const char *at_broadcast(const Map *m, const GraphValue *value, const Dims *shape);
/* The element of a vector for dimension `axis` of the point "ijkl…" of a tensor of `shape`. */
const char *at_channel(const Map *m, const GraphValue *vector, const Dims *shape, int axis);

/* Of a tensor of one element. */
const char *at_only(const Map *m, const GraphValue *value);
/* The point "ijkl…" of a tensor of `rank`, but that dimension `axis` is read at `place`. */
const char *at_place(const Map *m, const GraphValue *value, int axis, const char *place);
/* What reduce() made of a tensor of `shape` over the flagged axes, without keeping them. */
const char *at_reduced(const Map *m, const GraphValue *value, const Dims *shape, const bool flags[MAX_RANK]);

/* `$0` … `$9`: operands; `$r` and `$n`: `axes` and `count` of a reduction; `{alpha=0.01}`: an attribute. */
typedef struct Filling {
    const char *operands[10];
    const char *axes, *count;
} Filling;
const char *expand(const Map *m, const char *text, const Filling *filling);

const char *literal(const Map *m, const GraphValue *value);   // element 0 of a constant
/* `i, j, k` */
const char *letters_list(const Map *m, const char *letters);
/* The first `rank` of "ijklmnop": letters of the dimensions of what has no better ones. */
const char *letters_of(int rank);
/* f32 of f16 and bf16, in which sums, statistics and exponentials are; else the type itself. */
static inline DType wide(DType type) { return type == DTYPE_F16 || type == DTYPE_BF16 ? DTYPE_F32 : type; }
static inline bool is_real(DType type) { return dtype_info[type].is_real; }

// ---- definitions (define.c) ----

/* `value[axes] : type = expr`, with a letter for each dimension. */
void define(Map *m, GraphValue *value, DType type, const Dims *shape, const char *axes, const char *expr);
/* The same of an expression that is of another type by itself, as one of integers alone or of parts in f64:
   the type is written in any case. */
void define_typed(Map *m, GraphValue *value, DType type, const Dims *shape, const char *axes,
                  const char *expr);
/* The same of an expression that only moves elements of that type. */
void define_moved(Map *m, GraphValue *value, DType type, const Dims *shape, const char *axes,
                  const char *expr);
/* A tensor beside the output: `y_max`. */
GraphValue *part(Map *m, const GraphValue *of, const char *suffix);
/* The same elements in another shape, or the same value under another name. Costs nothing. */
void view_as(Map *m, GraphValue *value, const GraphValue *of, const Dims *shape);
/* A constant: all its elements, or one that all are like. */
void give_uniform(Map *m, GraphValue *value, DType type, Dims shape, const void *element);
void give(Map *m, GraphValue *value, DType type, Dims shape, const void *data);
void give_ints(Map *m, GraphValue *value, int count, const int64_t *items);   // a vector of i64

// ---- helpers of many operators ----

/* helpers.c: what two shapes are stretched to. */
Dims broadcast_shapes(const Map *m, const Dims *shape, const Dims *other);
/* The shape to which inputs [first, end) broadcast. */
Dims broadcast_shape(const Map *m, int first, int end);
/* Has the value, stretched, this shape? */
bool broadcasts_to(const Map *m, const GraphValue *value, const Dims *shape);
/* The output 0 of all inputs at each point: "$0 + $1". */
void broadcast(Map *m, DType type, const char *text);

/* An output = text over the flagged axes of `x`: "sum[$r]($0) / $n". `keep`: they stay, of size 1. */
void reduce(Map *m, GraphValue *value, DType type, const GraphValue *x, const bool flags[MAX_RANK], bool keep,
            const char *text);

/* op_statistics.c: BatchNormalization with the mean and variance of the batch. */
void batch_normalization_training(Map *m);

/* Products of operands, summed over the letters that the result has not: "ik", "kj" to "ij". */
typedef struct Factor {
    const GraphValue *value;
    const char *letters;   // of its dimensions
} Factor;
/* The extent of each letter 'a' + i that terms have; refuses those that differ, but for 1. */
void letter_extents(const Map *m, const Factor *terms, int count, int64_t extents[26]);
Dims shape_of_letters(const char *letters, const int64_t extents[26]);
/* `sum[k:64](a[i, k] * b[k, j])` */
const char *contraction(const Map *m, const char *result, const Factor *terms, int count);

/* window.c: a window that slides over the dimensions behind the first two. */
typedef struct Window {
    int rank;   // of the window: 1 to 3
    int64_t in[3], kernel[3], stride[3], dilation[3], before[3], after[3], result[3];
    bool ceils;
} Window;
/* From attributes (strides, dilations, pads, auto_pad, ceil_mode); of `x`, under a kernel of these sizes. */
Window window_of(const Map *m, const GraphValue *x, const int64_t *kernel);
Dims window_result(const Window *window, int64_t batch, int64_t channels);
const char *window_letters(const Window *window);   // of the result's dimensions behind the first two: "hv"
const char *window_tap_places(const Map *m,
                              const Window *window);   // "r, s": of the kernel's element; "0" of a size 1
/* `sum[k:64, r:3, s:3](expr)`, of which `more` is "k:64"; without axes `expr` alone. */
const char *window_reduce(const Map *m, const char *reduction, const char *more, const Window *window,
                          const char *expr);
/* `sum[r:3](…)`, how many elements of dimension `d` in [low, high) lie under the window; a number where all
   do. */
const char *window_count(const Map *m, const Window *window, int d, int64_t low, int64_t high);
const char *window_places(const Map *m, const Window *window);   // "2*h + r - 1, 2*v + s - 1"
bool window_reaches_out(const Window *window);                   // beyond the tensor
void window_comment(Map *m, const Window *window);
const char *window_place(const Map *m, const Window *window, int d);   // one of them
/* op_window.c: the channel of `inputs` that channel f of `features` reads for the k-th of its group. */
const char *group_channel(const Map *m, int64_t groups, int64_t features, int64_t inputs);
Window pool_window(Map *m, const GraphValue *x);   // of the attribute `kernel_shape`
const char *pool_element(const Map *m, const GraphValue *x, const Window *window, const char *otherwise);

/* Each element of the output is one of the input's; `places` is where it lies. */
void move(Map *m, GraphValue *value, const GraphValue *x, const Dims *shape, const char *places);

// ---- places (places.c) ----

/* `i`, `i + 3`, `9 - i`, `2*i + 1` */
const char *affine(const Map *m, int64_t factor, char letter, int64_t offset);
/* The next of a list of places. */
void add_place(StrBuf *places, const char *place);
/* elements[k] where `index` is below ends[k] and no lower end: `select(i < 4, …, …)`, nested no deeper than
   the logarithm of their number. */
const char *select_range(const Map *m, const char *index, const int64_t *ends, const char *const *elements,
                         int count);
/* Zero, or false, as `select` takes it. */
static inline const char *zero_of(DType type) { return type == DTYPE_B1 ? "(1 == 0)" : "0"; }

// ---- indices (op_index.c) ----

/* Indices of a dimension of `size` elements, of which negative ones are counted from the back. */
const GraphValue *indices_from_front(Map *m, const GraphValue *indices, int64_t size);
