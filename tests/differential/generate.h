// Random programs of the tensor language, valid by construction: whatever generate() writes must compile.
//
// They cover the grammar (all element types, affine indices with strides, reversals and constants, windows, pad, select,
// casts, index values, nested reductions, several stages and outputs, params, rank 0 to 8) and what networks are made of:
// layers put together by chance, over axes, in orders and of types that are chance, too.
#pragma once
#include <stdint.h>

#include "base/arena.h"

/* The same (seed, number) gives the same text on every machine. */
char *generate(Arena *arena, uint64_t seed, uint64_t number);

/* Of moves alone: views, elements as indices, quotients and remainders. */
char *generate_moves(Arena *arena, uint64_t seed, uint64_t number);

/* Two products with a softmax between them, or almost. */
char *generate_chains(Arena *arena, uint64_t seed, uint64_t number);
/* Only concatenations. */
char *generate_joined_alone(Arena *arena, uint64_t seed, uint64_t number);

/* A sum whose terms are multiplied and divided by what they share, and powers of such: for any values of its inputs.
   Tensors are named by what they hold: t moderate numbers, all others any. */
char *generate_factors(Arena *arena, uint64_t seed, uint64_t number);

/* A device file: of a GPU that could be. */
char *generate_device(Arena *arena, uint64_t number);

/* splitmix64: well mixed bits of any number. */
uint64_t generate_hash(uint64_t x);
