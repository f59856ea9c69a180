// What the parts of the generator share: choices.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "differential/generate.h"

typedef struct Random {
    uint64_t state;
} Random;

static inline int64_t random_below(Random *random, int64_t count)
{
    random->state = generate_hash(random->state);
    return (int64_t)(random->state >> 16) % count;
}

static inline bool random_chance(Random *random, int percent) { return random_below(random, 100) < percent; }

/* Any element of an array. */
#define PICK(random, list) ((list)[random_below((random), (int64_t)(sizeof(list) / sizeof *(list)))])

/* `a * b`, a term of a sum, in every sixth program with what its terms share: numbers and, of reals,
   `other`, an element that no summed axis chooses. Choices of its own, which leave the caller's as they are. */
char *generate_term(Arena *arena, uint64_t state, const char *a, const char *b, const char *other);
char *generate_whole_term(Arena *arena, uint64_t state, const char *a, const char *b);
/* A product of functions of both, in one program of twelve; else NULL. */
const char *generate_functions(Arena *arena, uint64_t state, const char *a, const char *b);

/* A program of the grammar at large. */
char *generate_grammar(Arena *arena, uint64_t state);

/* One of a few shapes that people write, at all sizes: rows and channels that are normalised, axes in another order. */
char *generate_known(Arena *arena, uint64_t state);

/* A sum of products of 16-bit elements, in any order of the axes: tensor cores serve no other types. */
char *generate_product(Arena *arena, uint64_t state);

/* A sum of products with few rows, or a matrix times a vector, whichever way both lie. */
char *generate_skinny(Arena *arena, uint64_t state);

/* A filter for each channel of images, forwards or turned, and any part of what it makes. */
char *generate_depthwise(Arena *arena, uint64_t state);
char *generate_depthwise_last(Arena *arena, uint64_t state);

/* A convolution of lines, planes or boxes with no, one or a few filters, channels mostly last. */
char *generate_convolution(Arena *arena, uint64_t state);

/* Concatenations of what kernels make. */
char *generate_joined(Arena *arena, uint64_t state);

/* Several readers of a padded definition that is no output. */
char *generate_padded(Arena *arena, uint64_t state);

/* The gradient of a filter for each channel, summed over images and pixels. */
char *generate_filter_gradient(Arena *arena, uint64_t state);

/* Two sums of products with a softmax between them. */
char *generate_attention(Arena *arena, uint64_t state);

/* A sum of products, and reductions of its rows. */
char *generate_product_rows(Arena *arena, uint64_t state);

/* A sum of products over any axes, in any dimensions of the factors: what almost is of a kernel's structure. */
char *generate_sum(Arena *arena, uint64_t state);

/* A program as networks have them: layers over a few axes, each made of what others left. */
char *generate_network(Arena *arena, uint64_t state);

/* Moves, as models have them: views, elements as indices, quotients and remainders. */
char *generate_places(Arena *arena, uint64_t state);
