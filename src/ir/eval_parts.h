// What the parts of the reference evaluator share: a value with its error bound, and what can be
// done with it.
//
//   bound 0         the kernel has exactly this value (a NaN where this is NaN, the same infinity)
//   bound finite    the kernel's value lies in [value - bound, value + bound]; value is finite
//   bound infinite  nothing is known: an overflow, a zero divisor or a comparison too close to call
//
// A bound is never NaN. Of a b1 the bound is 0 (decided) or infinite (undecided).
#pragma once
#include "ir/common_factors.h"
#include "ir/eval.h"

typedef struct Real {
    double value, bound;
} Real;

typedef struct Whole {   // integers and b1
    int64_t value;
    double bound;
} Whole;

/* Which of the two is told by the compute type that goes with it. */
typedef union Cell {
    Real real;
    Whole whole;
} Cell;

/* The rounding errors of a compute type. */
typedef struct Precision {
    double unit;       // relative error of a correctly rounded operation
    double tiny;       // absolute error near zero: one step of the denormal numbers
    double largest;    // nothing below it overflows
    double overflow;   // everything above it does
} Precision;

const Precision *precision_of(DType compute_type);

// One operation (eval_bound.c, eval_whole.c).
double op_value(Op op, double a, double b);   // as ops.def says
/* On `count` points: a loop for each operation is faster than a decision for each point. */
void real_apply(Op op, DType type, const Cell *a, const Cell *b, int count, Cell *results);
/* `result` of an f32 operation, with what `math` allows (eval_math.c); `summed`: the operation's value is a
   term of a sum. */
Real math_allow(EvalMath math, bool summed, Op op, Real a, Real b, Real result);
Whole whole_apply(Op op, DType type, Whole a, Whole b);
Whole real_compare(Op op, Real a, Real b);
Whole whole_compare(Op op, Whole a, Whole b);
Whole logic_apply(Op op, Whole a, Whole b);
Cell cell_select(DType type, Whole condition, Cell a, Cell b);

/* What the arithmetic on bounds itself may have lost. */
double loosened(double bound, double value);
/* Smallest interval around `value` that holds [low, high]. */
Real real_between(double value, double low, double high);
int64_t wrap_to(DType type, int64_t value);

/* From a compute type to an element type, as that type's compute type sees it: cast, or a store and
   a load. */
Cell cell_convert(DType to, DType from, Cell cell);

/* A real that may also stay as it was, or be rounded at another scale: off by one unit in the last place of
   the type. */
Cell cell_loosen(DType to, Cell cell, Cell rounded);

/* A reduction in progress, in a free order (eval_fold.c). */
typedef struct Fold {
    Reduce reduce;
    DType type;
    int64_t count;
    Cell result;                         // value and sum of the terms' bounds so far
    double magnitude;                    // sum: of |term| + bound;  prod: of the factors above 1
    double shrink;                       // prod: product of the factors below 1
    double low, high;                    // max, min: of the terms' intervals
    bool fraction;                       // a term was no whole number
    bool nan, plus, minus, zero;         // a term certainly was NaN, inf, -inf, 0
    bool unknown;                        // … or could have been anything
} Fold;

Fold fold_start(Reduce reduce, DType type);
void fold_add(Fold *fold, const Cell *terms, int count);
Cell fold_end(const Fold *fold);
/* Of `points` terms if those that were added are like all others. */
Cell fold_estimate(const Fold *fold, int64_t points);

/* Elements that were computed before, in pages of 64 (eval_memo.c). */
enum { PAGE_CELLS = 64 };
typedef struct Page Page;
typedef struct Memo {
    Page **pages;          // by number, or a hash table of them
    int64_t slots, used;   // slots of `pages`, pages in it
    bool hashed;
} Memo;

Memo memo_new(int64_t elements);
void memo_free(Memo *memo);
/* Forgets everything if a huge tensor's pages have become too many. */
void memo_trim(Memo *memo);
/* Copies the leading elements that are known and says how many. A negative offset asks for nothing.
   */
int memo_copy(Memo *memo, const int64_t *offsets, int count, Cell *cells);
/* Lists each unknown element once; the caller must memo_put() them all before it asks for any. */
int memo_claim(Memo *memo, const int64_t *offsets, int count, int64_t *wanted);
void memo_put(Memo *memo, const int64_t *offsets, int count, const Cell *cells);

/* How a tensor's elements come about. */
typedef struct Reach {
    const TensorOp *op;          // NULL: they are given
    int64_t points[MAX_AXES];    // of its reduction axes that are looked at
} Reach;

/* Scalar operations for a box of elements of each tensor, by id (zeros: nothing), and for all that they are
   made of; the boxes of that are added (eval_work.c). */
double work_wanted(const Program *program, const Reach *reaches, int64_t (*boxes)[MAX_AXES]);

/* The expression with what it reads replaced by its definition, where `definition_of` gives one
   (eval_inline.c). */
typedef const TensorOp *DefinitionOf(void *context, const Tensor *tensor);
Expr *expr_inline(Arena *arena, Expr *expr, DefinitionOf *definition_of, void *context);
/* The value that `op` stores at the element that is read; NULL: of a view. */
Expr *definition_at(Arena *arena, const TensorOp *op, const Access *access);

// Sums whose terms share factors, for which a kernel may wait (eval_common.c).

/* A sum as it stands, and with factors behind it as kernels have them: what all terms share, and numbers that
   definitions hide. */
enum { MOST_FORMS = 3 };
typedef struct SumForms {
    CommonFactors form[MOST_FORMS];   // the first has no factors: its term is the body
    int count;
} SumForms;
void sum_forms(Arena *arena, const Ranges *ranges, const TensorOp *op, EvalMath math, SumForms *forms);

/* Either is legal: the value of the first, and an interval that covers both. */
Real real_either(Real chosen, Real other);

// Sums that a kernel may make of chunks (eval_centred.c).

/* x - m, if the op is sum[r](sq(x[r] - m)) but for common factors, without which `term` is left, and m a
   share of a sum of as many points; else NULL. */
Expr *centred_difference(Arena *arena, const TensorOp *op, Expr *term, DefinitionOf *definition_of,
                         void *context);
/* `difference`, x - m, as far off as the means of chunks may make it seem. */
Real centred_allow(DType type, Real centre, Real difference);

/* Points of an op's axes that are evaluated together: runs along one of them. */
enum { BATCH = 256, MAX_RUNS = 64 };   // a run of a 3x3 window is 3 points
typedef struct Run {
    int lane, length;        // lanes [lane, lane + length)
    int axis;                // that it goes along; -1: of one point
    int element;             // position of its output in the list that was asked for
    bool last;               // of its output
    int64_t at[MAX_AXES];    // the first point
} Run;
typedef struct Batch {
    int lanes, run_count;
    Run runs[MAX_RUNS];
} Batch;

/* An op's body as a list of steps over batches (eval_tape.c). */
typedef struct Tape Tape;
typedef void ReadElements(void *context, const Tensor *tensor, const int64_t *offsets, int count,
                          Cell *cells);

/* `difference`: that in the body which centred_difference() gave; NULL: none. `shares`:
   streams_find_shares(). */
Tape *tape_compile(Arena *arena, const TensorOp *op, EvalMath math, const Expr *difference,
                   const SumForms *forms, const bool *shares);
/* Values at every lane; `read` gives the elements of the tensors that are named. */
void tape_run(Tape *tape, const Batch *batch, ReadElements *read, void *context);
/* The terms of a form: of the first the body's values. */
const Cell *tape_terms(const Tape *tape, int form);
/* The sum of a form's terms with the factors behind it, as they are at the lane. */
Cell tape_finish(const Tape *tape, int form, Cell sum, int lane);
