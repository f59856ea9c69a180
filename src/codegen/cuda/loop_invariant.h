// Reads that stay the same while a thread goes through its elements: they are made once.
#pragma once
#include "codegen/cuda/expr.h"

enum { MAX_INVARIANTS = 16 };   // held in registers; more are read where they are used

typedef struct Invariants {
    const Access *access[MAX_INVARIANTS];
    Affine offset[MAX_INVARIANTS];
    int count;
} Invariants;

/* The distinct unguarded reads that move along none of the axes. */
Invariants invariants_find(const Fusion *fusion, uint32_t moving);

/* Position of the access among them; -1: it is not there. */
int invariants_position(const Invariants *invariants, const Access *access);

/* All axes along which they do move. */
uint32_t invariants_axes(const Invariants *invariants);
