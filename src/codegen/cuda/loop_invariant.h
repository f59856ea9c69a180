// Reads that stay the same while a thread goes through its elements: they are made once.
#pragma once
#include "codegen/cuda/expr.h"

enum { MAX_FIXED = 16 };   // held in registers; more are read where they are used

typedef struct Fixed {
    const Access *access[MAX_FIXED];
    Affine offset[MAX_FIXED];
    int count;
} Fixed;

/* The distinct unguarded reads that move along none of the axes. */
Fixed fixed_find(const Fusion *fusion, uint32_t moving);

/* Position of the access among them; -1: it is not there. */
int fixed_position(const Fixed *fixed, const Access *access);

/* All axes along which they do move. */
uint32_t fixed_axes(const Fixed *fixed);
