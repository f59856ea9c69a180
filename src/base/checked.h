// Size arithmetic that says when it overflowed. Every product of user-given numbers goes through here.
#pragma once
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

static inline bool checked_mul(int64_t a, int64_t b, int64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}
static inline bool checked_add(int64_t a, int64_t b, int64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

/* Where something before has made sure that it fits: extents and strides of programs that passed the front
   end. */
static inline int64_t fitting_mul(int64_t a, int64_t b)
{
    int64_t product;
    bool fits = checked_mul(a, b, &product);
    assert(fits);
    return product;
}
static inline int64_t fitting_add(int64_t a, int64_t b)
{
    int64_t sum;
    bool fits = checked_add(a, b, &sum);
    assert(fits);
    return sum;
}

static inline int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t round_up(int64_t a, int64_t step) { return ceil_div(a, step) * step; }
/* The least number from `a` on that is `rest` more than a multiple of `step`. */
static inline int64_t round_up_to_rest(int64_t a, int64_t step, int64_t rest)
{
    return a + ((rest - a) % step + step) % step;
}
