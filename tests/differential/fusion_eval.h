// What a fused kernel means, point by point: every op at every point of its axes, into memory as its `store` says.
//
// It knows nothing of how kernels are written; what is wrong here is wrong whatever family takes the fusion. It finds
// elements outside their tensor, read before they are written, written twice or never, and axes and tensors that the
// fusion does not name among its own.
//
// Values are the reference evaluator's without their bounds: in double, rounded where a smaller type is stored. Or every
// operation is rounded to its compute type as in a kernel, whose sums go from the first term to the last.
#pragma once
#include <stdint.h>

#include "ir/fuse.h"

/* Which of the two is told by the compute type that goes with it. */
typedef union Scalar {
    double real;
    int64_t whole;   // integers and b1
} Scalar;

/* The elements of one tensor, row-major, as a reader sees them. */
typedef struct Storage {
    const Tensor *tensor;   // a kernel that only moves elements sees it in larger units
    int64_t count;
    Scalar *elements;
    bool *written;
    struct Storage *next;   // of those without an id
} Storage;

typedef struct Memory {
    Arena *arena;
    const Program *program;
    Storage *tensors;   // by id
    Storage *others;    // of tensors that only the kernels know: their id is -1
    bool rounds;        // every operation
} Memory;

/* Inputs are to be filled in, through memory_of(). */
Memory *memory_new(Arena *arena, const Program *program);

/* Made at the first use. */
Storage *memory_of(Memory *memory, const Tensor *tensor);

/* No element has been written. */

/* The same for all but the program's inputs. */
void memory_forget(Memory *memory);

/* Runs the kernel; what its outputs held before is gone. NULL, or what is wrong with it. */
const char *fusion_evaluate(Memory *memory, const Fusion *fusion);

/* Steps that this takes: of every op its points, each as many times as its body has nodes. */
double fusion_steps(const Fusion *fusion);
