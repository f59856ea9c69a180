// What a GPU's results are judged by: inputs that take no time to make, and the reference's values of some
// elements of each output. A large reference is never computed whole.
#pragma once
#include <stdatomic.h>

#include "hal/gpu.h"
#include "hal/worker.h"
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
    int64_t *evaluated;             // of each class, how many of them have a value; shared
    Value *values[INPUT_CLASSES];   // shared
} Sample;

typedef struct ProfileReference {
    const Program *program;
    ProfileInput *inputs[INPUT_CLASSES];
    Sample *samples;      // one for each output
    atomic_bool *ready;   // of each class; shared
} ProfileReference;

/* Inputs, and which elements are compared. Their values lie in shared memory: any process may make them, and
   all see them. */
ProfileReference *reference_new(Arena *arena, const Program *program, SharedMemory *shared);

/* The values of one class. Outputs of which an element takes more scalar operations than `most_work` have
   none; 0: all have some. */
void reference_evaluate(ProfileReference *reference, int class, EvalMath math, double most_work);
bool reference_is_ready(const ProfileReference *reference);

/* How the elements that a kernel wrote differ. */
typedef struct Comparison {
    int64_t elements, unjudged;
    double max_abs, max_of_bound;
} Comparison;

/* Judges the elements of a sample, one after another at `memory`, or of b1 the words that hold them. False:
   `reason` says which one is wrong. */
bool sample_compare(const Sample *sample, int class, const void *memory, Comparison *comparison, char *reason,
                    size_t reason_bytes);
