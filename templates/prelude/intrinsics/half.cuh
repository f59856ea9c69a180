// ---- 16-bit floating point: conversions that are one instruction ----

struct f16 { unsigned short bits; };   // 1 sign, 5 exponent, 10 fraction
struct bf16 { unsigned short bits; };   // 1 sign, 8 exponent, 7 fraction: the upper half of a float

// Conversions round to the nearest, ties to even.
#if defined(__HIP__)
DEVICE float widen(f16 x) { return static_cast<float>(__builtin_bit_cast(_Float16, x.bits)); }
DEVICE f16 f16_of(float value) { return f16{__builtin_bit_cast(unsigned short, static_cast<_Float16>(value))}; }
#else
DEVICE float widen(f16 x) { float wide; asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits)); return wide; }
DEVICE f16 f16_of(float value) { f16 half; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(value)); return half; }
#endif

// exp(a) for a score minus its row's maximum, for 16-bit results: a third of the instructions of expf. Its
// relative error is at most (5/4 |a| + 4) 2^-24, a fiftieth of the rounding. A result below the range of f16 may become 0.
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

#if defined(__CUDA_ARCH__)
// 2^a, to 2 ulp. Subnormal results are flushed to 0.
DEVICE float power_of_two(float a) { float x; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(a)); return x; }
// 1 / a, to 1 ulp. Subnormal results are flushed to 0.
DEVICE float reciprocal_of(float a) { float x; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(a)); return x; }
#else
DEVICE float power_of_two(float a) { return exp2f(a); }
DEVICE float reciprocal_of(float a) { return 1.0f / a; }
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE unsigned pair_of(f16, float low, float high)   // in a register of the tensor cores: its lower half, and the upper
{ unsigned pair; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low)); return pair; }
DEVICE unsigned pair_of(bf16, float low, float high)   // in a register of the tensor cores: its lower half, and the upper
{ unsigned pair; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low)); return pair; }
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE bf16 bf16_rounded(float value)   // to the nearest, ties to even
{
    bf16 half;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
    return half;
}
#endif
