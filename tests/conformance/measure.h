// How far functions are from the right values: what gpu_functions.py generates calls this, on a GPU or, with MEASURE_HOST, on
// the host.
//
// f32 is judged by double on the device, f64 by long double on the host, f16 and bf16 like f32. A unit in the last place is the
// distance of neighbours around the right value, of denormal ones the smallest number.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#ifdef MEASURE_HOST
#define DEVICE static inline
#define UNROLL
#define BOTH inline
#define HERE inline   // where the prelude runs
#define ROLLERC_INTERP 1
static inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
static inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
namespace rollerc {
#include "prelude/arithmetic.cuh"
#include "prelude/functions.cuh"
static inline float softmax_exp_f16(float a) { return expf(a); }
static inline float softmax_exp_bf16(float a) { return expf(a); }
}
#else
#include "prelude.cuh"
#include <cuda_runtime.h>
#define BOTH __host__ __device__ inline
#define HERE __device__ inline
#endif

namespace measure {
using namespace rollerc;
using std::acos, std::asin, std::atan, std::ceil, std::copysign, std::cos, std::erf, std::exp, std::fabs, std::floor, std::fmin, std::ilogb,
    std::isinf, std::isnan, std::ldexp, std::log, std::pow, std::rint, std::sin, std::sqrt, std::tanh;

struct Format { int digits, least, most; };   // of the significand, exponents of the smallest and the largest normal number
constexpr Format F32 = {24, -126, 127}, F64 = {53, -1022, 1023}, F16 = {11, -14, 15}, BF16 = {8, -126, 127};

/* What became of one argument. */
struct Error {
    float ulps;        // negative: of another kind
    double flushed;    // the right value, if 0 stands for it
};

template <class R> static BOTH Error error_of(R seen, R right, Format format, bool may_flush)
{
    const R limit = ldexp(R(1), format.most + 1), size = fabs(right);
    if (isnan(seen) || isnan(right))
        return {isnan(seen) && isnan(right) ? 0.0f : -1.0f, 0};
    if (may_flush && seen == 0 && size > ldexp(R(1), format.least - format.digits) && size < ldexp(R(1), format.least))
        return {0, double(size)};   // that would round to more than 0
    if (isinf(right) || size >= limit)   // the largest and what follows it may be either
        return {isinf(seen) && (seen > 0) == (right > 0) ? 0.0f : isinf(right) ? -1.0f : 1.0f, 0};
    if (isinf(seen))
        seen = copysign(limit, seen);
    const int exponent = size > 0 ? ilogb(size) : format.least;
    const R ulp = ldexp(R(1), (exponent > format.least ? exponent : format.least) - (format.digits - 1));
    const R ulps = fabs(seen - right) / ulp;
    return {ulps < R(1e30) ? float(ulps) : 1e30f, 0};
}

/* The worst of many. The bits of floats above zero are in their order. */
struct Worst {
    unsigned long long key;        // ulps << 32 | number of the argument
    unsigned long long wrong, wrong_at, flushed, flushed_from;
};

#ifdef MEASURE_HOST
static inline unsigned bits_of_float(float x) { unsigned u; std::memcpy(&u, &x, 4); return u; }
static inline float float_of_bits(unsigned u) { float x; std::memcpy(&x, &u, 4); return x; }
template <class T> static inline void raise(T *to, T value) { *to = *to < value ? value : *to; }
static inline void count(unsigned long long *to) { ++*to; }
#else
static HERE unsigned bits_of_float(float x) { return __float_as_uint(x); }
static HERE float float_of_bits(unsigned u) { return __uint_as_float(u); }
static HERE void raise(unsigned long long *to, unsigned long long value) { if (*(volatile unsigned long long *)to < value) atomicMax(to, value); }
static HERE void count(unsigned long long *to) { atomicAdd(to, 1ull); }
#endif

static HERE unsigned long long bits_of_double(double x)
{
#ifdef MEASURE_HOST
    unsigned long long u;
    std::memcpy(&u, &x, 8);
    return u;
#else
    return (unsigned long long)__double_as_longlong(x);
#endif
}

static HERE void note(Worst *worst, Error error, unsigned number)
{
    if (error.ulps < 0) {
        count(&worst->wrong);
        raise(&worst->wrong_at, (unsigned long long)number);
        return;
    }
    if (error.flushed > 0) {
        count(&worst->flushed);
        raise(&worst->flushed_from, bits_of_double(error.flushed));
    }
    raise(&worst->key, (unsigned long long)bits_of_float(error.ulps) << 32 | number);
}

static BOTH unsigned hash(unsigned x)   // lowbias32
{
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ x >> 16;
}

/* pow(NaN, 0) is 1, but not of a signalling one. */
static HERE float quiet(unsigned bits) { return float_of_bits((bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : bits); }

/* The second operand that goes with the number: any bits, or one that keeps pow, products and quotients in range. */
static HERE float second_of(unsigned number, float a)
{
    const unsigned h = hash(number ^ 0x9e3779b9u);
    const double spread = (double)(int)hash(h) * 0x1p-31;
    if (number % 4 == 0)
        return quiet(h);
    if (number % 4 == 1)   // a^b from 2^-150 to 2^129
        return (float)(fabs((double)a) > 0 && fabs((double)a) != 1 ? (spread * 140 - 10) / log2(fabs((double)a)) : spread);
    if (number % 4 == 2)   // a * b, a / b around the denormal numbers
        return (float)ldexp(1 + fabs(spread), (int)(h % 250) - 125);
    return (float)((int)(h % 65) - 32) / 2;
}

template <class F, bool PAIRS> static HERE void one_f32(Worst *worst, unsigned number, bool may_flush)
{
    const unsigned bits = PAIRS ? hash(number) : number;
    const float a = quiet(PAIRS && number % 4 ? bits & 0x7fffffffu : bits), b = PAIRS ? second_of(number, a) : 0;
    note(worst, error_of<double>(F::device(a, b), F::right((double)a, (double)b), F32, may_flush), number);
}

/* In units of (5/4 |a| + 4) 2^-24 of the right value. */
template <class F> static HERE void one_softmax(Worst *worst, unsigned number)
{
    const float a = float_of_bits(number | 0x80000000u);
    const double seen = F::device(a, 0.0f), right = F::right(a, 0);
    Error error = error_of<double>(seen, right, F32, true);
    if (error.ulps > 0 && right >= 0x1p-126)
        error.ulps = (float)(fabs(seen - right) / (right * (1.25 * fabs((double)a) + 4) * 0x1p-24));
    else if (error.ulps > 0)   // one smallest number counts as nothing
        error.ulps = error.ulps <= 2 * (fabsf(a) + 4) ? 0 : error.ulps;
    note(worst, error, number);
}

// ---- loops ----

static unsigned long long every = 1;
static bool first = true;

static void begin(unsigned long long step)
{
    every = step;
    std::printf("{\"functions\": [");
}

static int end()
{
#ifdef MEASURE_HOST
    std::printf("],\n \"on\": \"the host\", \"every\": %llu}\n", every);
#else
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, 0);
    std::printf("],\n \"on\": \"%s\", \"cuda\": %d, \"every\": %llu}\n", properties.name, CUDART_VERSION, every);
#endif
    return 0;
}

static void print(const char *name, const char *type, const Worst &worst, unsigned long long arguments, bool exact)
{
    float ulps;
    double from = 0;
    const unsigned bits = (unsigned)(worst.key >> 32);
    std::memcpy(&ulps, &bits, 4);
    std::memcpy(&from, &worst.flushed_from, 8);
    std::printf("%s\n  {\"function\": \"%s\", \"type\": \"%s\", \"arguments\": %llu, \"ulps\": %.4g, \"at\": \"0x%08x\", "
                "\"flushed\": %llu, \"flushed_from\": %.6g, \"wrong\": %llu, \"wrong_at\": \"0x%08llx\", \"exact\": %s}",
                first ? "" : ",", name, type, arguments, ulps, (unsigned)worst.key, worst.flushed, from, worst.wrong, worst.wrong_at,
                exact ? "true" : "false");
    first = false;
}

#ifdef MEASURE_HOST
template <class One> static Worst over(unsigned long long numbers, One one, unsigned long long step)
{
    Worst worst = {};
    for (unsigned long long n = 0; n < numbers; n += step)
        one(&worst, (unsigned)n);
    return worst;
}
#else
static void require(cudaError_t status)
{
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

template <class One> __global__ void loop(Worst *worst, unsigned long long numbers, unsigned long long step, One one)
{
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x * step;
    for (unsigned long long n = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) * step; n < numbers; n += stride)
        one(worst, (unsigned)n);
}

template <class One> static Worst over(unsigned long long numbers, One one, unsigned long long step)
{
    Worst worst = {}, *memory;
    require(cudaMalloc(&memory, sizeof worst));
    require(cudaMemset(memory, 0, sizeof worst));
    loop<<<4096, 256>>>(memory, numbers, step, one);
    require(cudaGetLastError());
    require(cudaMemcpy(&worst, memory, sizeof worst, cudaMemcpyDeviceToHost));
    require(cudaFree(memory));
    return worst;
}
#endif

template <class F, bool PAIRS> struct OneF32 {
    bool may_flush;
    HERE void operator()(Worst *worst, unsigned number) const { one_f32<F, PAIRS>(worst, number, may_flush); }
};
template <class F> struct OneSoftmax {
    HERE void operator()(Worst *worst, unsigned number) const { one_softmax<F>(worst, number); }
};

template <class F, bool PAIRS> static void measure_f32(const char *name, bool may_flush, bool exact)
{
    print(name, "f32", over(1ull << 32, OneF32<F, PAIRS>{may_flush}, every), ((1ull << 32) + every - 1) / every, exact);
}

template <class F> static void measure_softmax(const char *name)
{
    print(name, "f32", over(1ull << 31, OneSoftmax<F>{}, every), ((1ull << 31) + every - 1) / every, false);
}

#ifndef MEASURE_HOST   // the prelude's halves are the device's
template <class F, class T> struct One16 {
    Format format;
    HERE void operator()(Worst *worst, unsigned number) const
    {
        const float a = widen(T{(unsigned short)number}), seen = widen(narrow<T>(F::device(a, 0.0f)));
        note(worst, error_of<double>(seen, F::right((double)a, 0.0), format, false), number);
    }
};
BOTH Format format_of(f16) { return F16; }
BOTH Format format_of(bf16) { return BF16; }

template <class F, class T> static void measure_16(const char *name, const char *type)
{
    print(name, type, over(65536, One16<F, T>{format_of(T())}, 1), 65536, false);
}
#endif

// ---- f64: the host judges what the device made ----

enum { DOUBLES = 1 << 22 };

static BOTH unsigned long long bits64(unsigned number) { return (unsigned long long)hash(number) << 32 | hash(~number); }

/* Any bits, ordinary numbers, those whose exponential lies at the ends of the type, tiny ones, those around -1 and 1. */
static BOTH double argument_of(unsigned number, int operand)
{
    const unsigned long long bits = bits64(number * 2 + operand);
    const double spread = (double)(long long)bits * 0x1p-63;
    if (number % 4 == 1)
        return spread * 20;
    if (number % 4 == 2)
        return spread * 800;
    if (number % 8 == 3)
        return ldexp(spread, -(int)(bits % 1100));
    if (number % 8 == 7)
        return copysign(1 + ldexp(spread, -(int)(bits % 54)), spread * (bits & 64 ? 1 : -1));
    double any;
    memcpy(&any, &bits, 8);
    return any;
}

template <class F> struct OneF64 {
    HERE double operator()(unsigned number) const { return F::device(argument_of(number, 0), argument_of(number, 1)); }
};

#ifdef MEASURE_HOST
template <class One> static std::vector<double> made(One one, unsigned step)
{
    std::vector<double> results(DOUBLES);
    for (unsigned n = 0; n < DOUBLES; n += step)
        results[n] = one(n);
    return results;
}
#else
template <class One> __global__ void fill(double *results, One one)
{
    for (unsigned n = blockIdx.x * blockDim.x + threadIdx.x; n < DOUBLES; n += gridDim.x * blockDim.x)
        results[n] = one(n);
}

template <class One> static std::vector<double> made(One one, unsigned)
{
    std::vector<double> results(DOUBLES);
    double *memory;
    require(cudaMalloc(&memory, sizeof *memory * DOUBLES));
    fill<<<1024, 256>>>(memory, one);
    require(cudaGetLastError());
    require(cudaMemcpy(results.data(), memory, sizeof *memory * DOUBLES, cudaMemcpyDeviceToHost));
    require(cudaFree(memory));
    return results;
}
#endif

template <class F, bool PAIRS> static void measure_f64(const char *name, bool exact)
{
    const unsigned step = every > 1 ? 61 : 1;
    const std::vector<double> results = made(OneF64<F>{}, step);
    Worst worst = {};
    for (unsigned n = 0; n < DOUBLES; n += step) {
        const long double a = argument_of(n, 0), b = argument_of(n, 1);
        const Error error = error_of<long double>(results[n], F::right(a, b), F64, false);
        unsigned bits;
        std::memcpy(&bits, &error.ulps, 4);
        const unsigned long long key = (unsigned long long)bits << 32 | n;
        if (error.ulps < 0)
            worst.wrong++, worst.wrong_at = n;
        else
            worst.key = worst.key < key ? key : worst.key;
    }
    print(name, "f64", worst, (DOUBLES + step - 1) / step, exact);
}

}   // namespace measure
