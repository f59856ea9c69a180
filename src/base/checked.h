// Size arithmetic that says when it overflowed. Every product of user-given numbers goes through here.
#pragma once
#include <stdbool.h>
#include <stdint.h>

static inline bool checked_mul(int64_t a, int64_t b, int64_t *product) { return !__builtin_mul_overflow(a, b, product); }
static inline bool checked_add(int64_t a, int64_t b, int64_t *sum) { return !__builtin_add_overflow(a, b, sum); }

static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t round_up(int64_t a, int64_t step) { return ceil_div(a, step) * step; }
