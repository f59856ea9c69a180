// ---- reals of 16 bits; the interpreter's stand-in has f16 in integer arithmetic ----

#ifndef ROLLERC_INTERP
struct f16 { unsigned short bits; };   // 1 sign, 5 exponent, 10 fraction
DEVICE float widen(f16 x)
{
#if defined(__HIP__)
    return static_cast<float>(__builtin_bit_cast(_Float16, x.bits));
#else
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
#endif
}

DEVICE f16 f16_of(float value)   // to the nearest, ties to even
{
#if defined(__HIP__)
    return f16{__builtin_bit_cast(unsigned short, static_cast<_Float16>(value))};
#else
    f16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
    return half;
#endif
}

// exp(a) of what lies a below its row's maximum, where shares of the sum are rounded to 16 bits: a third of the instructions, off
// by (|a| + 4) 2^-24 of itself, a hundredth of that rounding (src/ir/eval_bound.c allows it); shares below all of f16 may be 0.
#if defined(__CUDA_ARCH__)
DEVICE float softmax_exp_f16(float a)
{
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(a * 1.442695041f));
    return power;
}
DEVICE float softmax_exp_bf16(float a)
{
    float power;
    asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(a * 1.442695041f));
    return power;
}
#elif defined(ROLLERC_FAST_MATH)
DEVICE float softmax_exp_f16(float a) { return __expf(a); }
DEVICE float softmax_exp_bf16(float a) { return __expf(a); }
#else
DEVICE float softmax_exp_f16(float a) { return expf(a); }
DEVICE float softmax_exp_bf16(float a) { return expf(a); }
#endif
#endif

struct bf16 { unsigned short bits; };   // 1 sign, 8 exponent, 7 fraction: the upper half of a float

DEVICE float widen(bf16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }

// To the nearest, ties to even: by an instruction, or the upper half and a carry from the lower one.
#if !defined(ROLLERC_INTERP) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE bf16 bf16_of(float value)
{
    bf16 half;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
    return half;
}
#else
DEVICE bf16 bf16_of(float value)
{
    const unsigned bits = __float_as_uint(value);
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const unsigned rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return bf16{static_cast<unsigned short>(is_nan ? 0x7fffu : rounded)};
}
#endif

// A double on its way to 16 bits must be rounded once: the last bit of this float says whether
// anything was cut off.
DEVICE float round_to_odd(double x)
{
    const float nearest = static_cast<float>(x);
    const unsigned bits = __float_as_uint(nearest);
    const bool away = bits >> 31 ? nearest < x : nearest > x;   // beyond x, seen from zero
    return __uint_as_float((away ? bits - 1u : bits) | static_cast<unsigned>(nearest != x));
}

DEVICE f16 f16_of(double value) { return f16_of(round_to_odd(value)); }
DEVICE bf16 bf16_of(double value) { return bf16_of(round_to_odd(value)); }

DEVICE f16 f16_of(int value) { return f16_of(static_cast<float>(value)); }   // what a float rounds is beyond f16
DEVICE f16 f16_of(long long value) { return f16_of(static_cast<float>(value)); }
DEVICE bf16 bf16_of(int value) { return bf16_of(static_cast<double>(value)); }
DEVICE bf16 bf16_of(long long value) { return bf16_of(static_cast<double>(value)); }
