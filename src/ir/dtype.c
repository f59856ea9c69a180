// Element types as bits in memory: rounding, loading and storing without help from the processor's
// half types.
#include <math.h>
#include <string.h>

#include "ir/eval.h"

/* A binary floating-point format narrower than double. */
typedef struct Format {
    int digits;        // of the significand, the hidden one included
    int min_exponent;  // of the smallest normal number
    int bits;          // in memory
    double largest;
} Format;

static const Format F16 = {11, -14, 16, 65504};
static const Format BF16 = {8, -126, 16, 0x1.fep127};

static double double_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A normal double. Multiplying by it is what ldexp() does, in a fraction of the time. */
static double two_to(int exponent) { return double_from_bits((uint64_t)(exponent + 1023) << 52); }

static int exponent_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (int)(bits >> 52 & 0x7ff) - 1023;
}

/* A normal number without digits that it lacks: what an input holds. */
static inline bool is_held(const Format *format, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bool normal = exponent_of(value) >= format->min_exponent && fabs(value) <= format->largest;
    return normal && bits << (11 + format->digits) == 0;
}

/* Adding 1.5 * 2^52 steps leaves no bit below one step; taking it away gives the nearest multiple,
   ties to even. 1.0006 in f16: a step is 2^-10 = 0.00098, so the result is 1.00098. */
static double round_to(const Format *format, double value)
{
    if (isnan(value) || value == 0 || is_held(format, value))
        return value;
    if (fabs(value) >= 2 * format->largest)
        return copysign(INFINITY, value);
    int exponent = exponent_of(value);
    int normal = exponent > format->min_exponent ? exponent : format->min_exponent;
    int step = normal - format->digits + 1;
    double shift = 1.5 * two_to(step + 52);
    double rounded = (value + shift) - shift;
    return copysign(fabs(rounded) > format->largest ? INFINITY : fabs(rounded), value);
}

/* Truncates like a kernel's conversion: NaN is 0, what is too large is the largest. */
static int64_t to_integer(double value)
{
    if (isnan(value))
        return 0;
    if (value >= 0x1p63)
        return INT64_MAX;
    return value <= -0x1p63 ? INT64_MIN : (int64_t)value;
}

double dtype_round(DType type, double value)
{
    switch (type) {
    case DTYPE_F32: return (double)(float)value;
    case DTYPE_F16: return round_to(&F16, value);
    case DTYPE_BF16: return round_to(&BF16, value);
    case DTYPE_I32: return (int32_t)to_integer(value);
    case DTYPE_I8: return (int8_t)to_integer(value);
    case DTYPE_U8: return (uint8_t)to_integer(value);
    case DTYPE_B1: return value != 0;
    case DTYPE_I64: return (double)to_integer(value);
    default: return value;
    }
}

/* sign, exponent, fraction: f16 1 + 5 + 10 bits, bf16 1 + 8 + 7. `value` is already rounded. */
static uint16_t bits_of(const Format *format, double value)
{
    int fraction_bits = format->digits - 1;
    uint16_t sign = (uint16_t)(signbit(value) ? 0x8000 : 0);
    int infinite_exponent = (1 << (format->bits - 1 - fraction_bits)) - 1;
    if (isnan(value))
        return (uint16_t)(sign | infinite_exponent << fraction_bits | 1 << (fraction_bits - 1));
    if (isinf(value))
        return (uint16_t)(sign | infinite_exponent << fraction_bits);
    double steps = fabs(value) * two_to(fraction_bits - format->min_exponent);
    if (steps < 1 << fraction_bits)   // denormal: the number of steps is the pattern
        return (uint16_t)(sign | (int)steps);
    int exponent = exponent_of(value);
    int fraction = (int)(fabs(value) * two_to(fraction_bits - exponent)) - (1 << fraction_bits);
    return (uint16_t)(sign | (exponent - format->min_exponent + 1) << fraction_bits | fraction);
}

static double value_of(const Format *format, uint16_t bits)
{
    int fraction_bits = format->digits - 1;
    int fraction = bits & ((1 << fraction_bits) - 1);
    int exponent = (bits & 0x7fff) >> fraction_bits;
    int scale = format->min_exponent - fraction_bits;   // of the denormal numbers
    double magnitude;
    if (exponent == (1 << (format->bits - 1 - fraction_bits)) - 1)
        magnitude = fraction ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        magnitude = fraction * two_to(scale);
    else
        magnitude = ((1 << fraction_bits) + fraction) * two_to(scale + exponent - 1);
    return bits & 0x8000 ? -magnitude : magnitude;
}

/* memcpy: the memory of a verifier need not be aligned. */
#define LOAD(Type) \
    Type element; \
    memcpy(&element, (const char *)memory + index * (int64_t)sizeof element, sizeof element)

static double load_f64(const void *memory, int64_t index) { LOAD(double); return element; }
static double load_f32(const void *memory, int64_t index) { LOAD(float); return element; }
static double load_i32(const void *memory, int64_t index) { LOAD(int32_t); return element; }
static double load_i64(const void *memory, int64_t index) { LOAD(int64_t); return (double)element; }
static double load_i8(const void *memory, int64_t index) { LOAD(int8_t); return element; }
static double load_u8(const void *memory, int64_t index) { LOAD(uint8_t); return element; }
static uint16_t load_u16(const void *memory, int64_t index) { LOAD(uint16_t); return element; }
static uint32_t load_u32(const void *memory, int64_t index) { LOAD(uint32_t); return element; }

double dtype_load(DType type, const void *memory, int64_t index)
{
    switch (type) {
    case DTYPE_F64: return load_f64(memory, index);
    case DTYPE_F32: return load_f32(memory, index);
    case DTYPE_F16: return value_of(&F16, load_u16(memory, index));
    case DTYPE_BF16: return value_of(&BF16, load_u16(memory, index));
    case DTYPE_I32: return load_i32(memory, index);
    case DTYPE_I8: return load_i8(memory, index);
    case DTYPE_U8: return load_u8(memory, index);
    case DTYPE_B1: return load_u32(memory, index / 32) >> index % 32 & 1;
    case DTYPE_I64: return load_i64(memory, index);
    default: return 0;
    }
}

static void store(void *memory, int64_t index, const void *element, size_t size)
{
    memcpy((char *)memory + index * (int64_t)size, element, size);
}

static void store_bit(void *memory, int64_t index, bool bit)
{
    uint32_t word = load_u32(memory, index / 32);
    uint32_t mask = (uint32_t)1 << index % 32;
    word = bit ? word | mask : word & ~mask;
    store(memory, index / 32, &word, sizeof word);
}

void dtype_store(DType type, void *memory, int64_t index, double value)
{
    double rounded = dtype_round(type, value);
    int64_t integer = to_integer(rounded);
    float single = (float)rounded;
    uint16_t half;
    switch (type) {
    case DTYPE_F64: store(memory, index, &rounded, 8); break;
    case DTYPE_F32: store(memory, index, &single, 4); break;
    case DTYPE_F16: half = bits_of(&F16, rounded); store(memory, index, &half, 2); break;
    case DTYPE_BF16: half = bits_of(&BF16, rounded); store(memory, index, &half, 2); break;
    case DTYPE_B1: store_bit(memory, index, rounded != 0); break;
    default:   // integers: the low bytes come first
        store(memory, index, &integer, (size_t)dtype_info[type].bits / 8);
        break;
    }
}

/* An f32 as bits: those of a normal number of f16 or bf16 are its own upper ones, rounded to nearest even,
   with another bias. 1.0006 is 0x3f8013a9; with 0xfff added and the lowest 13 bits gone it is 0x1fc01, less
   112 << 10 0x3c01, f16's 1.00098. */
static bool half_of_single(const Format *format, uint32_t bits, uint16_t *half)
{
    int dropped = 24 - format->digits, bias = 127 - 1 + format->min_exponent;
    uint32_t magnitude = bits & 0x7fffffff, lowest = (uint32_t)(format->min_exponent + 127) << 23;
    uint32_t even = magnitude >> dropped & 1, half_step = (1u << (dropped - 1)) - 1 + even;
    uint32_t rounded = (magnitude + half_step) >> dropped;
    uint32_t pattern = rounded - ((uint32_t)bias << (23 - dropped));
    *half = (uint16_t)((bits >> 16 & 0x8000) | pattern);
    uint32_t infinite = (1u << (format->bits - format->digits)) - 1;
    return magnitude >= lowest && pattern >> (format->digits - 1) < infinite && magnitude < 0x7f800000;
}

static void store_halves(DType type, const Format *format, char *memory, const char *singles, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        uint16_t half;
        memcpy(&bits, singles + i * 4, sizeof bits);
        if (half_of_single(format, bits, &half))
            memcpy(memory + i * 2, &half, sizeof half);
        else
            dtype_store(type, memory, i, load_f32(singles, i));
    }
}

void dtype_store_singles(DType type, void *memory, const void *singles, int64_t count)
{
    if (type == DTYPE_F16)
        store_halves(type, &F16, memory, singles, count);
    else if (type == DTYPE_BF16)
        store_halves(type, &BF16, memory, singles, count);
    else
        for (int64_t i = 0; i < count; i++)
            dtype_store(type, memory, i, load_f32(singles, i));
}
