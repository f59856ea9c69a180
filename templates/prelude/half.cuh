// ---- reals of 16 bits ----

struct f16 { unsigned short bits; };   // 1 sign, 5 exponent, 10 fraction

struct bf16 { unsigned short bits; };   // 1 sign, 8 exponent, 7 fraction: the upper half of a float

DEVICE float widen(f16 x)
{
#if defined(__CUDA_ARCH__)
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
#elif defined(__HIP_DEVICE_COMPILE__)
    return static_cast<float>(__builtin_bit_cast(_Float16, x.bits));
#else
    const unsigned sign = (x.bits & 0x8000u) << 16;
    const unsigned rest = (x.bits & 0x7fffu) << 13;
    if (rest >= 0x0f800000u)   // infinity, NaN
        return __uint_as_float(sign | 0x70000000u | rest);
    const float two_to_112 = __uint_as_float(0x77800000u);   // biases: 127 - 15
    const float magnitude = __uint_as_float(rest) * two_to_112;
    return sign ? -magnitude : magnitude;
#endif
}

DEVICE float widen(bf16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }

// Round to nearest even in integer arithmetic.
DEVICE unsigned short f16_bits_of(float x)
{
    const unsigned bits = __float_as_uint(x);
    const unsigned sign = bits >> 16 & 0x8000u;
    const unsigned magnitude = bits & 0x7fffffffu;
    unsigned rounded;
    if (magnitude > 0x7f800000u)         // NaN
        rounded = 0x7fffu;
    else if (magnitude >= 0x47800000u)   // 2^16 and up
        rounded = 0x7c00u;
    else if (magnitude < 0x38800000u)    // below 2^-14: the last bit of 0.5f weighs 2^-24, its upper half is cut off
        rounded = __float_as_uint(__uint_as_float(magnitude) + 0.5f);
    else                                 // a carry may reach the exponent, up to infinity
        rounded = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    return static_cast<unsigned short>(sign | rounded);
}

// Round to nearest even: the upper half, and a carry from the lower one.
DEVICE unsigned short bf16_bits_of(float x)
{
    const unsigned bits = __float_as_uint(x);
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const unsigned rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return static_cast<unsigned short>(is_nan ? 0x7fffu : rounded);
}

// A double on its way to 16 bits must be rounded once: the last bit of this float says whether
// anything was cut off.
DEVICE float round_to_odd(double x)
{
    const float nearest = static_cast<float>(x);
    const unsigned bits = __float_as_uint(nearest);
    const bool away = bits >> 31 ? nearest < x : nearest > x;   // beyond x, seen from zero
    return __uint_as_float((away ? bits - 1u : bits) | static_cast<unsigned>(nearest != x));
}

template <> struct Narrow<f16> {
    DEVICE f16 from(float value)
    {
#if defined(__CUDA_ARCH__)
        f16 half;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
        return half;
#elif defined(__HIP_DEVICE_COMPILE__)
        return f16{__builtin_bit_cast(unsigned short, static_cast<_Float16>(value))};
#else
        return f16{f16_bits_of(value)};
#endif
    }
    DEVICE f16 from(double value) { return from(round_to_odd(value)); }
    DEVICE f16 from(int value) { return from(static_cast<double>(value)); }
    DEVICE f16 from(long long value) { return from(static_cast<double>(value)); }
};

template <> struct Narrow<bf16> {
    DEVICE bf16 from(float value)
    {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        bf16 half;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
        return half;
#else
        return bf16{bf16_bits_of(value)};
#endif
    }
    DEVICE bf16 from(double value) { return from(round_to_odd(value)); }
    DEVICE bf16 from(int value) { return from(static_cast<double>(value)); }
    DEVICE bf16 from(long long value) { return from(static_cast<double>(value)); }
};
