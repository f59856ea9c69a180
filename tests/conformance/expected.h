// The host's side of checks.def: what every output must be. Plain C and C++.
#pragma once
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BOTH static inline
#include "values.h"

static int warp = 32;   // lanes

// ---- values of bit patterns, exactly ----

/* A real of 1 sign, `exponent` and `fraction` bits. */
static double value_of(uint32_t bits, int exponent, int fraction)
{
    const int bias = (1 << (exponent - 1)) - 1, e = (int)(bits >> fraction & ((1u << exponent) - 1));
    const double part = bits & ((1u << fraction) - 1);
    const double one = ldexp(1, fraction);
    const double size = e == 2 * bias + 1 ? (part != 0 ? NAN : INFINITY)
                      : e == 0            ? ldexp(part, 1 - bias - fraction)
                                          : ldexp(one + part, e - bias - fraction);
    return bits >> (exponent + fraction) & 1 ? -size : size;
}
static double value_f16(uint32_t bits) { return value_of(bits & 0xffff, 5, 10); }
static double value_bf16(uint32_t bits) { return value_of(bits & 0xffff, 8, 7); }
static double value_f32(uint32_t bits) { return value_of(bits, 8, 23); }

/* To the nearest value with `digits` significant bits, ties to even; `lowest`: the exponent of the least of all. */
static double round_real(double x, int digits, int lowest, double limit)
{
    if (isnan(x) || isinf(x) || x == 0)
        return x;
    int exponent;
    frexp(x, &exponent);
    const int quantum = exponent - digits < lowest ? lowest : exponent - digits;
    const double rounded = ldexp(nearbyint(ldexp(x, -quantum)), quantum);
    return fabs(rounded) >= limit ? copysign(INFINITY, x) : copysign(rounded, x);
}
static double round_f16(double x) { return round_real(x, 11, -24, 65536); }
static double round_bf16(double x) { return round_real(x, 8, -133, 0x1p128); }

// ---- helpers of the rows ----

static int64_t clamp(double x, double low, double high) { return (int64_t)(x < low ? low : x > high ? high : x); }
static int32_t wrap(int64_t x) { return (int32_t)(uint32_t)(uint64_t)x; }
static double larger(double a, double b) { return isnan(a) || isnan(b) ? NAN : a > b ? a : b; }

static int64_t ballot(int i)
{
    uint64_t lanes = 0;
    for (int lane = 0; lane < warp; lane++)
        lanes |= (uint64_t)(key(i - i % warp + lane) >> 2 & 1) << lane;
    return (int64_t)lanes;
}

/* A lane reads from its own group or one before it, else it keeps what it has. */
static int xor_partner(int i)
{
    const int lane = i % warp, partner = lane ^ lane_of(i), group = width_of(i);
    return partner / group <= lane / group ? i - lane + partner : i;
}

static int64_t reduced(int i, int what)
{
    const int first = i - i % width_of(i);
    int32_t total = key(first);
    for (int j = first + 1; j < first + width_of(i); j++) {
        const int32_t x = key(j);
        total = what == 0 ? wrap((int64_t)total + x)
              : what == 1 ? (x > total ? x : total)
              : what == 2 ? (x < total ? x : total)
                          : wrap((int64_t)total * x);
    }
    return total;
}

static int32_t word_of(int index)
{
    uint32_t word = 0;
    for (int n = 0; n < 4; n++)
        word |= (uint32_t)byte_of(4 * index + n) << 8 * n;
    return (int32_t)word;
}

#define WEIGHTED(name, element) \
    static int64_t name(int first, int count) \
    { \
        int64_t sum = 0; \
        for (int n = 0; n < count; n++) \
            sum += (n + 1) * (int64_t)(element); \
        return sum; \
    }
WEIGHTED(weighted_i8, (int8_t)byte_of(first + n))
WEIGHTED(weighted_u8, byte_of(first + n))
WEIGHTED(weighted_i32, word_of(first + n))
WEIGHTED(weighted_small, byte_of(first + n) - 128)

#define TURNED(name, element) \
    static int64_t name(int i, int columns, int rows) \
    { \
        int64_t sum = 0; \
        for (int row = 0; row < rows; row++) \
            for (int column = 0; column < columns; column++) \
                sum += (row * columns + column + 1) * (int64_t)element((i * columns + column) * rows + row); \
        return sum; \
    }
static int8_t signed_byte_of(int i) { return (int8_t)byte_of(i); }
TURNED(turned_i8, signed_byte_of)
TURNED(turned_i32, word_of)

/* Two neighbours in line l / 4 of each 8 x 8 matrix are lane l's; thread t brought line t % 8 of its warp's matrix t / 8. */
static int64_t dealt(int i, int turned)
{
    int64_t sum = 0;
    for (int n = 0; n < 8 && warp == 32; n++) {
        const int line = i % 32 / 4, two = i % 4 * 2 + n % 2;
        const int owner = i - i % 32 + n / 2 * 8 + (turned ? two : line), at = owner * 16 + (turned ? line : two) * 2;
        sum += (n + 1) * (int64_t)(byte_of(at % TABLE_BYTES) | byte_of(at % TABLE_BYTES + 1) << 8);
    }
    return sum;
}

/* Of bytes: of matrices 2 j and 2 j + 1 four lines that follow each other, in column l / 4 * 2 and beside it. */
static int64_t dealt_bytes(int i)
{
    int64_t sum = 0;
    for (int n = 0; n < 16 && warp == 32; n++) {
        const int matrix = n / 8 * 2 + n % 4 / 2, line = i % 4 * 2 + n % 2, column = i % 32 / 4 * 2 + n / 4 % 2;
        const int owner = i - i % 32 + matrix * 8 + line;
        sum += (n + 1) * (int64_t)byte_of((owner * 16 + column) % TABLE_BYTES);
    }
    return sum;
}

/* Of elements of which only the bits of the mask count. */
static int64_t multiplied(int i, int depth, int mask)
{
    int64_t sum = 0;
    for (int e = 0; e < 4 && warp == 32; e++) {
        const int m = i % 32 / 4 + e / 2 * 8, n = i % 4 * 2 + e % 2;
        int64_t c = tile_c(m, n);
        for (int k = 0; k < depth; k++)
            c += (tile_a(i / 32, m, k) & mask) * (tile_b(k, n) & mask);
        sum += (e + 1) * c;
    }
    return sum;
}

static int64_t multiplied_shared(int i, int depth, int mask)
{
    int64_t sum = 0;
    for (int n = 0; n < 32 && warp == 32; n++)
        sum += (n + 1) * shared_sum(i, n, depth, mask);
    return sum;
}

/* Elements that lie in the tensor, the first `count` of them. */
static int64_t found_anywhere(int i, int count, int bytes)
{
    int64_t sum = 0;
    for (int n = 0; n < count && i + n < 4096 - 3; n++)
        for (int b = 0; b < bytes; b++)
            sum += (n + 1) * ((int64_t)byte_of(bytes * (i + n) + b) << 8 * b);
    return sum;
}

static int64_t permuted(int i)
{
    const uint64_t bytes = (uint64_t)(uint32_t)key(i + 1) << 32 | (uint32_t)key(i);
    uint32_t result = 0;
    for (int n = 0; n < 4; n++)
        result |= (uint32_t)(bytes >> 8 * ((uint32_t)key(i + 2) >> 4 * n & 7) & 0xff) << 8 * n;
    return result;
}

/* What thread i reads back after store_bits<count>: zeros of inactive lanes, ones where no lane of a word was active. */
static int64_t packed(int i, int count)
{
    const int lanes = 32 / count, first = i / lanes * lanes;
    bool written = false;
    for (int lane = 0; lane < lanes; lane++)
        written |= is_active(first + lane);
    uint32_t result = 0;
    for (int n = 0; n < count; n++)
        result |= (uint32_t)(written ? is_active(i) && bit_of(i * count + n) : 1) << n;
    return result;
}

// ---- the rows ----

typedef enum { INTEGER, F16, BF16, F32, F64 } ResultType;

#define REAL(name, count, type, device, host) static double expected_##name(int i) { return (void)i, (double)(host); }
#define NEAR(name, count, type, ulps, device, host) REAL(name, count, type, device, host)
#define WHOLE(name, count, device, host) static int64_t expected_##name(int i) { return (void)i, (int64_t)(host); }
#include "checks.def"
#undef REAL
#undef NEAR
#undef WHOLE

typedef struct Check {
    const char *name;
    int count;
    ResultType type;
    int ulps;
    double (*real)(int);
    int64_t (*whole)(int);
} Check;

#define REAL(name, count, type, device, host) {#name, count, type, 0, expected_##name, NULL},
#define NEAR(name, count, type, ulps, device, host) {#name, count, type, ulps, expected_##name, NULL},
#define WHOLE(name, count, device, host) {#name, count, INTEGER, 0, NULL, expected_##name},
static const Check checks[] = {
#include "checks.def"
};
enum { CHECK_COUNT = sizeof checks / sizeof checks[0] };

static int64_t output_count(void)
{
    int64_t count = 0;
    for (int c = 0; c < CHECK_COUNT; c++)
        count += checks[c].count;
    return count;
}

static double real_result(uint64_t bits, ResultType type)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return type == F64 ? value : type == F32 ? value_f32((uint32_t)bits)
         : type == F16 ? value_f16((uint32_t)bits) : value_bf16((uint32_t)bits);
}

static bool same_real(double got, double want, ResultType type, int ulps)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (ulps == 0)
        return got == want && signbit(got) == signbit(want);
    if (got == want)
        return true;
    const double rounded = type == F32 ? (float)want : want;
    int exponent;
    frexp(want, &exponent);
    const int digits = type == F32 ? 24 : 53, lowest = type == F32 ? -149 : -1074;
    const double ulp = ldexp(1, exponent - digits < lowest ? lowest : exponent - digits);
    return got == rounded || fabs(got - want) <= ulps * ulp;
}

/* Compares all outputs; prints a line for each check that fails, and gives how many do. */
static int failed_checks(const uint64_t *out)
{
    int failed = 0;
    for (int c = 0; c < CHECK_COUNT; out += checks[c++].count) {
        const Check *check = &checks[c];
        for (int i = 0; i < check->count; i++) {
            const double want = check->real ? check->real(i) : (double)check->whole(i);
            const double got = check->real ? real_result(out[i], check->type) : (double)(int64_t)out[i];
            if (check->real ? same_real(got, want, check->type, check->ulps) : (int64_t)out[i] == check->whole(i))
                continue;
            printf("%s: element %d is %.17g, must be %.17g\n", check->name, i, got, want);
            failed++;
            break;
        }
    }
    fflush(stdout);
    return failed;
}
