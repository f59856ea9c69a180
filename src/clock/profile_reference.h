// What a GPU's results are judged by: inputs that take no time to make, and the reference's values of some
// elements of each output. A large reference is never computed whole.
#pragma once
#include "hal/gpu.h"
#include "ir/eval.h"

enum { INPUT_CLASSES = 2 };   // random reals; whole numbers, whose sums are exact

/* An input's elements are drawn from a few random ones by a hash of their position. */
typedef struct ProfileInput {
    int element_bytes;   // in memory; 0: b1
    double values[GPU_TABLE];
    _Alignas(8) unsigned char stored[GPU_TABLE * 8];   // as they lie in memory; of b1, a byte each
} ProfileInput;

/* Some elements of one output: the first, the last, corners, edges, and others at random. */
typedef struct Sample {
    const Tensor *tensor;
    int64_t count, *elements;
    Value *values[INPUT_CLASSES];
} Sample;

typedef struct ProfileReference {
    const Program *program;
    ProfileInput *inputs[INPUT_CLASSES];
    Sample *samples;   // one for each output
} ProfileReference;

/* Outputs of which one element takes more scalar operations than `most_work` have empty samples; 0: all have some. */
ProfileReference *profile_reference(Arena *arena, const Program *program, EvalMath math, double most_work);

/* How the elements that a kernel wrote differ. */
typedef struct Comparison {
    int64_t elements, unjudged;
    double max_abs, max_of_bound;
} Comparison;

/* Judges the elements of a sample, one after another at `memory`, or of b1 the words that hold them. False:
   `reason` says which one is wrong. */
bool sample_compare(const Sample *sample, int class, const void *memory, Comparison *comparison, char *reason,
                    size_t reason_bytes);
