// The reference evaluator: the value of any element of a program, and how far a legal kernel may be from it.
//
// Values accumulate in double (integers in int64, wrapped to 32 bits where the language wraps). With each
// value goes a bound on the error that a legal order of evaluation in the operands' precision may make: a
// forward error analysis with unit round-off u of each compute type (2^-24 for f32, 2^-53 for f64) plus the
// rounding of every stored element type.
#pragma once
#include "ir/tensor_op.h"

typedef struct Value {
    double real;        // the value; integers and b1 as a double too (exact up to 2^53)
    double
        bound;   // |kernel - real| <= bound is legal; infinite: nothing can be said (a comparison too close to call)
    int64_t whole;      // the value of an i64, which a double may not hold
} Value;

/* Gives input elements: deterministic, the same on every machine. */
typedef struct InputSource {
    /* Element at the flat row-major offset `element` of program->inputs[input], already rounded to its
       type. */
    double (*element)(void *context, int input, int64_t element);
    void *context;
} InputSource;

/* What a kernel may do in f32: round correctly; round the factors of summed products to TF32; also use the
   approximate division, exp and log of the hardware. */
typedef enum EvalMath { EVAL_EXACT, EVAL_TF32, EVAL_FAST } EvalMath;
extern const char *const eval_math_name[];   // "exact", "tf32", "fast"

typedef struct Evaluator Evaluator;

Evaluator *evaluator_new(Arena *arena, const Program *program, InputSource inputs);
void evaluator_allow(Evaluator *evaluator, EvalMath math);   // before anything is evaluated; else EVAL_EXACT
void evaluator_free(Evaluator *evaluator);   // the memory of its memo tables

// What a program has instead of values that cost too much, told before anything is evaluated.

/* Of reductions of more than some thousand points only as many are looked at, evenly spread: sums are scaled,
   maxima may miss the largest. The values are like the right ones and cost nothing; their bounds mean
   nothing. */
void evaluator_estimate(Evaluator *evaluator);
/* The elements of `tensor` are those of `other`, an evaluator of the same program, and exact. */
void evaluator_give(Evaluator *evaluator, const Tensor *tensor, Evaluator *other);
/* … are those that `source` has of its input `input`, as if the tensor were an input of the program. */
void evaluator_replace(Evaluator *evaluator, const Tensor *tensor, InputSource source, int input);
/* Scalar operations that an element takes, or all elements do, with everything that they are made of. */
double evaluator_work(Evaluator *evaluator, const Tensor *tensor, bool whole);

/* Values of `count` elements of `tensor` at flat offsets. Intermediates that are needed are computed once and
   kept; programs with huge tensors are fine as long as the elements asked for are few. */
void evaluate(Evaluator *evaluator, const Tensor *tensor, const int64_t *elements, int64_t count,
              Value *values);

/* The same for elements [first, first + count): much faster for whole tensors. */
void evaluate_range(Evaluator *evaluator, const Tensor *tensor, int64_t first, int64_t count, Value *values);

/* May a legal kernel store `seen` where `expected` is right? NaN must be NaN; integers wrap: 255 of u8 is 1
   away from 0. */
bool value_allows(DType type, double seen, Value expected);

/* The same of element `index` of memory, of every bit of an i64. */
bool element_allowed(DType type, const void *memory, int64_t index, Value expected);

/* Stores what was evaluated. */
void value_store(DType type, void *memory, int64_t index, Value value);

/* Rounds to nearest even and widens again: what a reader of a stored element sees. Saturates like a kernel
   does. */
double dtype_round(DType type, double value);

/* Element `index` of memory laid out as kernels see it (b1: bit 32*w+j; f16, bf16: their bits). */
double dtype_load(DType type, const void *memory, int64_t index);
void dtype_store(DType type, void *memory, int64_t index, double value);
/* The same of many f32, one after another: of a hundred million weights. Neither has to be aligned. */
void dtype_store_singles(DType type, void *memory, const void *singles, int64_t count);

// ---- test inputs (eval_inputs.c) ----

/* What test inputs hold. The special ones find what random numbers hide: a total that starts at zero, a lost
   NaN, an element left out of a maximum. */
typedef enum InputKind {
    INPUT_REAL,   // reals in [-1, 1), integers in [-8, 8) (u8: [0, 16)), b1 0 or 1; indices in their dimension, at its
                  // ends and outside
    INPUT_WHOLE,      // reals are whole numbers in [-4, 4]: sums are exact
    INPUT_NEGATIVE,   // all below zero (u8, b1: as INPUT_REAL)
    INPUT_HIGH,       // zero, but 3 at one element of each row, in each another
    INPUT_LOW,        // zero, but -3 there (u8, b1: 1, but 0 there)
    INPUT_ENDS,       // zero, but for the first element and the last: -3 and 3 (u8, b1: 1)
    INPUT_NAN,        // reals in [-1, 1), but one NaN in each row
    INPUT_INFINITE,   // reals in [-1, 1), but one infinity of either sign in each row; of four rows one is all -inf
    INPUT_DENORMAL,   // reals are up to 8 of the smallest above zero
    INPUT_ROWS,       // all elements of a row are alike
    INPUT_KINDS
} InputKind;
extern const char *const input_kind_name[INPUT_KINDS];

typedef struct RandomInputs {
    const Program *program;
    uint64_t seed;
    InputKind kind;
} RandomInputs;

/* A hash of (seed, input, element), made a number of that kind: the same on every machine. An element of
   InputSource. */
double random_input_element(void *random_inputs, int input, int64_t element);

/* The same; where there are few, each is made once, since sums read it again and again. */
InputSource random_input_source(Arena *arena, RandomInputs inputs);

/* Does the kind change what the inputs hold? Only reals can be NaN, infinite or denormal. */
bool input_kind_applies(const Program *program, InputKind kind);
