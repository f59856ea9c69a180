// Fusion: which definitions become one kernel, and over which axes that kernel runs.
//
// A pointwise definition that only others read is folded into its readers; one that reads a reduction's
// result at the same point becomes its epilogue; what is left is split into kernels that pass values through
// a workspace. Then Roller's axis fusion (OSDI'22, 3.4): axes that lie next to each other in every tensor
// that has them become one, axes of size one go. All of it is decided by the structure of the expressions.
#pragma once
#include "ir/tensor_op.h"

/* One value that a kernel makes at every point of some of its axes. */
typedef struct FusedOp {
    Tensor *out;          // the tensor it defines
    bool stored;          // written to memory: an output, or read by another kernel
    uint32_t spatial;     // bit a: axis a is one of its dimensions
    uint32_t reduced;     // bit a: axis a is reduced over by this op
    Reduce reduce;        // over the `reduced` axes; none: pointwise
    Expr *
        body;   // over the kernel's axes; may hold EXPR_VALUE of earlier ops. Rounded to out->dtype afterwards
    Access store;         // which element of `out` the point is
} FusedOp;

/* What becomes one kernel. */
typedef struct Fusion {
    int spatial_count, axis_count;   // spatial axes first, the innermost of `store` last
    Axis axes[MAX_AXES];
    FusedOp *ops;
    int op_count;
    Tensor **inputs;   int input_count;    // tensors it reads from memory, in order of their ids
    Tensor **outputs;  int output_count;   // tensors it writes, likewise
    int joined;            // so many of the first ops are sums of products that share a factor (fuse_join.h); 0: it is no such kernel
    bool
        streams;   // ops are made at points of their own: two sums of products with a softmax between (stream.h), or a
                   // product and reductions of its rows (row_tiles.h)
} Fusion;

typedef struct FusionPlan {
    const char
        *name;   // "inline" folds producers in, "materialize" keeps in memory what a reduction would compute
                 // again and again, "rows" joins reductions over the same rows and what is made of
                 // them, "beside" reductions whose windows slide over one tensor, "stream" two
                 // sums of products and the softmax between, "tiles" a product and its rows'
                 // reductions
    Fusion **fusions;                // in launch order
    int count;
    bool has_chains;                 // of streams (ir/stream.h): other plans have tensors of all rows and columns in memory
} FusionPlan;

typedef struct FusionPlans {
    FusionPlan *plans;               // at least one; the model decides between them
    int count;
    const Program *program;          // that they divide
} FusionPlans;

FusionPlans fuse(Arena *arena, const Program *program);

/* The kernel cut in two along its reduction: the first leaves `parts` partial results of an equal share of
   the reduction axis with the largest extent (if an axis has that many terms, shares no elements among them
   and is contiguous in no tensor, that one first, as images do), of a product in whole vectors of memory (an
   uneven last share is guarded by the reduction's identity), the second reduces them and goes on with the
   epilogue. More parts than that axis has terms are shares of it at each position along others. NULL if it
   has no single, leading reduction, there are not that many parts, each would be one term, which is no sum,
   or vectors leave half as many. */
typedef struct FusionPair {
    Fusion *partial, *final;
    const TensorOp *definition;   // of the partial results, for the reference evaluator
} FusionPair;
FusionPair *fusion_split(Arena *arena, const Fusion *fusion, int64_t parts);

/* About so many parts: up to twice as many if those are of equal size, and of whole vectors if that can be.
   200,000 in about 128 are 200 of 1000. */
int64_t fusion_even_parts(const Fusion *fusion, int64_t parts);

/* A kernel of rows cut in three: reductions of chunks of the rows, of at most `most` points each and all of
   the same size; the rows' own values from those; what is made of every element (no ops if that is nothing).
   NULL if a reduction depends on another one in any way but sum[r](sq(x[r] - m)), or a row is no more than
   one chunk. */
typedef struct FusionPhases {
    Fusion *partial, *combine;
    Fusion *elements,
        *chunks;   // two views of the last one: over points, and over (rows, parts | points of a chunk)
    Fusion
        *columns;   // a third: over (rows, innermost axis | the others); NULL: that axis is one of the rows'
    const TensorOp **definitions;   // of the chunks' results
    int definition_count;
} FusionPhases;
FusionPhases *fusion_cut(Arena *arena, const Fusion *fusion, int64_t most);

/* Sets the kernel's inputs to those of the candidates that it reads, in their order. */
void fusion_choose_inputs(Arena *arena, Fusion *fusion, Tensor *const *candidates, int count);

/* The same of the whole's inputs and of tensors that are made ahead. */
void fusion_choose_inputs_beside(Arena *arena, Fusion *part, const Fusion *whole, Tensor *const *ahead,
                                 int count);
/* And as outputs what it stores. */
void fusion_choose_tensors_beside(Arena *arena, Fusion *part, const Fusion *whole, Tensor *const *ahead,
                                  int count);

/* The op over its own axes, of the tensors that the kernel's other ops would store. */
const TensorOp *fused_op_define(Arena *arena, const Fusion *fusion, const FusedOp *op);

/* With axes and ops of its own, whose expressions are the same. */
Fusion *fusion_copy(Arena *arena, const Fusion *fusion);

/* The kernel of a definition without a reduction, which may write a view of its tensor; it reads some of the
   candidates. */
Fusion *fusion_of_copy(Arena *arena, const TensorOp *op, Access store, Tensor *const *candidates, int count);

/* Every access of the fusion in order of appearance, and whether a guard stands above it. */
enum { MAX_ACCESSES = 128 };   // that are looked at; what comes after is still computed, only not considered
typedef struct FusedAccess {
    const Access *access;
    const Fetch *fetch;               // whose access it is; NULL: a plain one
    bool in_place;                    // read for the place of a fetch
    bool guarded;
    int op;                           // position in ops
} FusedAccess;
int fusion_accesses(const Fusion *fusion, FusedAccess *found, int most);

/* The flat offset of what is read, to count traffic: computed places are assumed to advance by one from point
   to point along the axes that they depend on. */
Affine fused_offset(const Fusion *fusion, const FusedAccess *found);

/* Elements at computed places are read, which most families do not do. */
bool fusion_fetches(const Fusion *fusion);

/* Every op is made at the points of the spatial axes. (In a kernel of rows some are made at all axes'
   points.) */
bool fusion_is_uniform(const Fusion *fusion);

/* Any op is a reduction. */
bool fusion_reduces(const Fusion *fusion);

/* One reduction over all reduction axes, then only pointwise ops at its points. */
bool fusion_is_reduction(const Fusion *fusion);

/* The only op that is stored; NULL: there are several, or none. */
const FusedOp *fusion_only_output(const Fusion *fusion);

/* Several reductions, each over axes of its own. */
bool fusion_is_beside(const Fusion *fusion);

/* The op is made at every element of the reduced axes, along the rows. */
bool fusion_is_of_elements(const Fusion *fusion, const FusedOp *op);

/* Any reduction has a part in the expression. */
bool fusion_depends_on_reductions(const Fusion *fusion, const Expr *expr);

/* Is the op sum[r](sq(x[r] - m)), m a share of sum[r](x[r]), like a mean, and x made of no reduction? Such a
   sum can be made of parts: fuse_phases.c. */
typedef struct CentredSum {
    const Expr *element;   // x
    int centre;            // the op that makes m
    int total;             // the earlier op that is sum[r](x[r])
} CentredSum;
bool fusion_centred_sum(const Fusion *fusion, int op, CentredSum *sum);

/* Arithmetic operations of one point of the whole axis space (a fused multiply-add counts 2), and results of
   the special function unit. Epilogue ops count for the share of points they run on. */
typedef struct FusionWork { double flops, special; bool is_f64; } FusionWork;
FusionWork fusion_work(const Fusion *fusion);

/* What is wrong with the description of a kernel: its tensors are accessed by their own strides and inside
   their dimensions, stores reach each element once, values are used where they are made. `tensor` NULL: the
   kernel itself. */
typedef struct FusionFault {
    const Tensor *tensor;
    const char *what;   // "is accessed outside its dimensions"; NULL: nothing is
} FusionFault;
FusionFault fusion_fault(const Fusion *fusion);

/* Asked after every pass that makes or rewrites kernels: a fault is a bug in rollerc, which ends with
   EXIT_BUG. */
void fusion_verify(const Fusion *fusion, const char *pass);

void fusion_plans_print(StrBuf *out, const FusionPlans *plans);   // `-d fusion`
void fusion_print(StrBuf *out, const Fusion *fusion);

/* A fusion in another form: kernels before it make what it reads, those behind it results of what it
   makes. */
enum { MAX_BEFORE = 2, MAX_BEHIND = 3 };
typedef struct Rewritten {
    Fusion *before[MAX_BEFORE], *main, *behind[MAX_BEHIND];
    int before_count, behind_count;
    const TensorOp
        *definitions[MAX_BEFORE + MAX_BEHIND];   // of what they pass on, for the reference evaluator
    int definition_count;
} Rewritten;
