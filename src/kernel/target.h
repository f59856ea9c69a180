// What kernels are made for: a device, and the arithmetic that the user allows.
#pragma once
#include "hal/atoms.h"
#include "ir/eval.h"

/* Parts of the construction that can be left out, to see what each buys (bench/ablation.py). As bits. */
typedef enum ConstructPart {
    PART_SCORE = 1,             // axes grow in their order, not by reuse
    PART_BEAM = 2,              // one path, as in the paper
    PART_SHRINK = 4,
    PART_BANK_PADDING = 8,
    PART_TENSOR_PADDING = 16,   // tiles divide the tensors
    PART_MODEL = 32             // the first programs found are kept, not the best
} ConstructPart;

typedef struct Target {
    const DeviceSpec *device;
    EvalMath math;
    unsigned without;   // ConstructParts
} Target;

/* The instruction for elements of this type in that place; NULL: none, or it rounds more than is allowed. */
static inline const Atom *target_atom(const Target *target, DType element, AtomPlace place)
{
    return atom_for(target->device, dtype_info[element].name, place, target->math != EVAL_EXACT);
}
