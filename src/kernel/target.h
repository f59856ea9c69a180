// What kernels are made for: a device, and what the user allows of its arithmetic.
#pragma once
#include "hal/atoms.h"
#include "ir/eval.h"

typedef struct Target {
    const DeviceSpec *device;
    EvalMath math;
    unsigned without;   // ConstructParts that are left out, to see what they buy
} Target;

/* The instruction for elements of this type, which lie in that place; NULL: there is none, or it rounds more
   than is allowed. */
static inline const Atom *target_atom(const Target *target, DType element, AtomPlace place)
{
    return atom_for(target->device, dtype_info[element].name, place, target->math != EVAL_EXACT);
}
