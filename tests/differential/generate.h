// Random programs of the tensor language, valid by construction: whatever generate() writes must compile.
//
// It covers the grammar: all element types, affine indices with strides, reversals and constants, windows, pad, select,
// casts, index values, nested reductions, several stages and outputs, params, rank 0 to 8, extents 1 to 40.
#pragma once
#include <stdint.h>

#include "base/strbuf.h"

/* The same (seed, number) gives the same text on every machine. */
char *generate(Arena *arena, uint64_t seed, uint64_t number);

/* A program of a shape that people write; the same for the same state. generate() gives one in eight. */
char *generate_known(Arena *arena, uint64_t state);

/* splitmix64: well mixed bits of any number. */
uint64_t generate_hash(uint64_t x);
