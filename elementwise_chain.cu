//rollerc: {"schema":1,"name":"elementwise_chain","device":"h200","workspace":0,"args":[{"name":"x","role":"input","dtype":"f16","shape":[16384,1024]},{"name":"z","role":"input","dtype":"f16","shape":[16384,1024]},{"name":"gamma","role":"input","dtype":"f32","shape":[1024]},{"name":"beta","role":"input","dtype":"f32","shape":[1024]},{"name":"y","role":"output","dtype":"f16","shape":[16384,1024]}],"launches":[{"kernel":"elementwise_chain_k0","grid":[4096,1,1],"block":[128,1,1],"shared":0,"cooperative":false,"args":[{"arg":0},{"arg":1},{"arg":2},{"arg":3},{"arg":4}]}]}
//
// elementwise_chain, constructed by rollerc 0.1.0 for the device h200. What it computes:
//
//   input x[16384, 1024] : f16
//   input z[16384, 1024] : f16
//   input gamma[1024] : f32
//   input beta[1024] : f32
//   t[i:16384, j:1024] : f32 = add(mul(x[i, j], gamma[j]), beta[j])
//   u[i:16384, j:1024] : f32 = mul(0.7978846, add(t[i, j], mul(mul(mul(0.044715, t[i, j]), t[i, j]), t[i, j])))
//   g[i:16384, j:1024] : f32 = mul(mul(0.5, t[i, j]), add(1, tanh(u[i, j])))
//   y[i:16384, j:1024] : f16 = add(g[i, j], z[i, j])
//   output y[16384, 1024] : f16
//
// This file is yours: it carries no licence obligations of rollerc.

// templates/prelude.cuh:16
#if defined(__HIP__) && !defined(__HIPCC_RTC__)
#include <hip/hip_runtime.h>
#endif

// templates/prelude/language.cuh:1
// ---- words of the language ----

#define DEVICE [[maybe_unused]] static __device__ __forceinline__

#ifdef ROLLERC_INTERP
#define UNROLL
#else
#define UNROLL _Pragma("unroll")
#endif

// templates/prelude.cuh:22
namespace rollerc {

// templates/prelude/types.cuh:1
// ---- element types: what stands in memory, and the compute type it is widened to ----

DEVICE float widen(float x) { return x; }
DEVICE double widen(double x) { return x; }
DEVICE int widen(signed char x) { return x; }
DEVICE int widen(unsigned char x) { return x; }
DEVICE int widen(unsigned short x) { return x; }
DEVICE int widen(int x) { return x; }
DEVICE long long widen(long long x) { return x; }

template <class T> using compute_type = decltype(widen(T()));

template <class T> struct Narrow {
    template <class V> DEVICE T from(V value) { return static_cast<T>(value); }   // integers wrap
};

template <class T, class V> DEVICE T narrow(V value) { return Narrow<T>::from(value); }

// templates/prelude/half.cuh:1
// ---- reals of 16 bits ----

struct f16 { unsigned short bits; };   // 1 sign, 5 exponent, 10 fraction

// templates/prelude/half.cuh:7
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

// templates/prelude/half.cuh:28
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

// templates/prelude/half.cuh:55
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

// templates/prelude/memory.cuh:1
// ---- memory: elements, and vectors of N neighbours ----

// templates/prelude/memory.cuh:9
template <class T, class Index> DEVICE compute_type<T> load(const T *p, Index index)
{
    return widen(p[index]);
}

template <class T, class Index, class V> DEVICE void store(T *p, Index index, V value)
{
    p[index] = narrow<T>(value);
}

template <class T, int COUNT> struct alignas(COUNT * sizeof(T)) Vector { T at[COUNT]; };

// The widest access is 16 bytes.
template <class T, int N> struct VectorShape {
    static constexpr int WIDEST = 16, SIZE = static_cast<int>(sizeof(T));
    static constexpr int COUNT = N * SIZE > WIDEST ? WIDEST / SIZE : N;
    static_assert((COUNT & (COUNT - 1)) == 0 && N % COUNT == 0 && COUNT * SIZE <= WIDEST, "a power of two of bytes");
    using type = Vector<T, COUNT>;
};

template <class T, int COUNT, class V> DEVICE void widen_vector(Vector<T, COUNT> chunk, V *out)
{
    UNROLL for (int j = 0; j < COUNT; j++)
        out[j] = widen(chunk.at[j]);
}

// templates/prelude/memory.cuh:45
// Reads global memory, in accesses of 16 bytes with a priority in L2: it then gives up what was written before what was read.
// Kernels that write about as much as they read took 0.95 to 0.99 of the time so on an H200. Those after them took no longer,
// but for a first reader of the last 16 MB written: 7 us instead of 6.
template <class Chunk> DEVICE Chunk read_global(const Chunk *p)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if (sizeof(Chunk) == 16) {
        union {
            Chunk chunk;
            unsigned words[4];
        } read;
        asm volatile("{ .reg .b64 policy;\n"
                     "  createpolicy.fractional.L2::evict_last.b64 policy;\n"
                     "  ld.global.L1::evict_last.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], policy; }"
                     : "=r"(read.words[0]), "=r"(read.words[1]), "=r"(read.words[2]), "=r"(read.words[3])
                     : "l"(p));
        return read.chunk;
    }
#endif
    return *p;
}

// load_vector of global memory, by read_global.
template <int N, class T, class Index, class V>
DEVICE void read_vector(const T *p, Index index, V (&out)[N])
{
    constexpr int COUNT = VectorShape<T, N>::COUNT;
    const Vector<T, COUNT> *chunks = reinterpret_cast<const Vector<T, COUNT> *>(p + index);
    UNROLL for (int i = 0; i < N / COUNT; i++)
        widen_vector(read_global(chunks + i), out + i * COUNT);
}

// Writes by one aligned access, or several of 16 bytes: p + index must be aligned to it.
template <int N, class T, class Index, class V>
DEVICE void store_vector(T *p, Index index, const V (&in)[N])
{
    using Chunk = typename VectorShape<T, N>::type;
    constexpr int COUNT = VectorShape<T, N>::COUNT;
    Chunk *chunks = reinterpret_cast<Chunk *>(p + index);
    UNROLL for (int i = 0; i < N / COUNT; i++) {
        Chunk chunk;
        UNROLL for (int j = 0; j < COUNT; j++)
            chunk.at[j] = narrow<T>(in[i * COUNT + j]);
        chunks[i] = chunk;
    }
}

// templates/prelude/arithmetic.cuh:1
// ---- scalar operations (src/ir/ops.def): integers wrap, and nothing traps ----

template <class T> struct Arithmetic { using type = T; };
template <> struct Arithmetic<int> { using type = unsigned; };
template <> struct Arithmetic<long long> { using type = unsigned long long; };
template <class T> DEVICE typename Arithmetic<T>::type wrapping(T x)
{
    return static_cast<typename Arithmetic<T>::type>(x);
}

template <class T> DEVICE T op_neg(T a) { return static_cast<T>(-wrapping(a)); }
template <class T> DEVICE T op_add(T a, T b) { return static_cast<T>(wrapping(a) + wrapping(b)); }
template <class T> DEVICE T op_sub(T a, T b) { return static_cast<T>(wrapping(a) - wrapping(b)); }
template <class T> DEVICE T op_mul(T a, T b) { return static_cast<T>(wrapping(a) * wrapping(b)); }
template <class T> DEVICE T op_sq(T a) { return op_mul(a, a); }

// templates/prelude/functions.cuh:1
// ---- scalar functions (src/ir/ops.def): float and double; some are defined for integers, too ----

// templates/prelude/functions.cuh:61
DEVICE float op_tanh(float a) { return tanhf(a); }
DEVICE double op_tanh(double a) { return tanh(a); }

// templates/prelude.cuh:36
}   // namespace rollerc

// templates/prelude/launch.cuh:1
// ---- what the launcher needs ----

#if defined(__HIP__) && !defined(__HIPCC_RTC__)
#define cudaError_t hipError_t
#define cudaSuccess hipSuccess
#define cudaErrorInvalidValue hipErrorInvalidValue
#define cudaStream_t hipStream_t
#endif

#if defined(__HIP__) && !defined(__HIPCC_RTC__)
template <class Kernel>
static inline hipError_t cudaLaunchKernel(Kernel *kernel, dim3 grid, dim3 block, void **args,
                                          size_t shared, hipStream_t stream)
{
    const void *function = reinterpret_cast<const void *>(kernel);
    return hipLaunchKernel(function, grid, block, args, shared, stream);
}
#endif

#undef KERNEL
#undef ENTRY
#define KERNEL elementwise_chain_k0_scope
#define ENTRY elementwise_chain_k0

// Pointwise kernel: every output point depends on one point of each input.
//
// A thread owns VECTORS vectors of VECTOR neighbouring points, one block's width apart, so that each access of a warp is
// contiguous and several are under way at once:
//
//   thread      0        1        2       …     THREADS-1 |   0    …
//   points   [VECTOR] [VECTOR] [VECTOR]   …     [VECTOR]  | [VECTOR]        <- VECTORS times
//
// The last vector may reach past the end: it is read and written point by point.

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>   templates/elementwise.cu (x8) for elementwise_chain on h200, candidate 1 of 10
//
//   level            point
//   global        16777216   the problem
//   shared            4096   4096 blocks, 10.34 waves, 0 bytes
//   register            32   128 threads, about 168 registers
//
//   predicted 30.66 us, bound by dram (compute 3.55, shared 6.33, L2 17.56, DRAM 22.70)
//
using Index = int;
struct Tensors {
    const f16 *in0;   // x[16384, 1024]
    const f16 *in1;   // z[16384, 1024]
    const float *in2;   // gamma[1024]
    const float *in3;   // beta[1024]
    f16 *out0;   // y[16384, 1024]
};
#define PARAMETERS const f16 *__restrict__ in0, const f16 *__restrict__ in1, const float *__restrict__ in2, const float *__restrict__ in3, f16 *__restrict__ out0
#define TENSORS {in0, in1, in2, in3, out0}
constexpr Index POINTS = 16777216;
constexpr int THREADS = 128;
constexpr int VECTOR = 8;   // neighbouring points that a thread reads and writes at once
constexpr int VECTORS = 4;   // vectors of a thread, one block apart

// What one vector of points reads, and what it makes.
struct Inputs {
    float x0[VECTOR];
    float x1[VECTOR];
    float x2[VECTOR];
    float x3[VECTOR];
};
struct Outputs {
    float y0[VECTOR];
};

__device__ __forceinline__ void load_points(const Tensors &t, Index point, Inputs &in)
{
    (void)t, (void)point, (void)in;
    read_vector<VECTOR>(t.in0, point, in.x0);
    read_vector<VECTOR>(t.in1, point, in.x3);
}

// What many points read comes from a cache: it is loaded when it is needed, and takes no registers before.
__device__ __forceinline__ void load_reused(const Tensors &t, Index point, Inputs &in)
{
    (void)t, (void)point, (void)in;
    const Index i1 = point % 1024;
    read_vector<VECTOR>(t.in2, i1, in.x1);
    read_vector<VECTOR>(t.in3, i1, in.x2);
}

__device__ __forceinline__ void load_point(const Tensors &t, Index point, int e, Inputs &in)
{
    (void)t, (void)point, (void)e, (void)in;
    const Index i0 = point / 1024, i1 = point % 1024;
    in.x0[e] = load(t.in0, i0 * 1024 + i1);
    in.x1[e] = load(t.in2, i1);
    in.x2[e] = load(t.in3, i1);
    in.x3[e] = load(t.in1, i0 * 1024 + i1);
}

__device__ __forceinline__ void compute(const Tensors &t, Index point, int e, const Inputs &in, Outputs &out)
{
    (void)t, (void)point, (void)in;
    const float v0 = op_add(op_mul(in.x0[e], in.x1[e]), in.x2[e]);
    const float v1 = op_mul(0.7978846f, op_add(v0, op_mul(op_mul(op_mul(0.044715f, v0), v0), v0)));
    const float v2 = op_mul(op_mul(0.5f, v0), op_add(1.0f, op_tanh(v1)));
    const float v3 = op_add(v2, in.x3[e]);
    out.y0[e] = v3;
}

__device__ __forceinline__ void store_points(const Tensors &t, Index point, const Outputs &out)
{
    (void)t, (void)point, (void)out;
    store_vector<VECTOR>(t.out0, point, out.y0);
}

__device__ __forceinline__ void store_point(const Tensors &t, Index point, int e, const Outputs &out)
{
    (void)t, (void)point, (void)e, (void)out;
    store(t.out0, point, out.y0[e]);
}

// All lanes of a warp call it: they pack words together.
__device__ __forceinline__ void store_words(const Tensors &t, Index point, const Outputs &out)
{
    (void)t, (void)point, (void)out;
}
// </rollerc>
// templates/elementwise.cu:67

extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const Index first = ((Index)blockIdx.x * (THREADS * VECTORS) + (Index)threadIdx.x) * VECTOR;
    constexpr Index STEP = THREADS * VECTOR;   // from one vector of a thread to its next

    if (((Index)blockIdx.x + 1) * (STEP * VECTORS) <= POINTS) {   // all loads are under way before the first is needed
        Inputs in[VECTORS];
        UNROLL for (int u = 0; u < VECTORS; ++u)
            load_points(t, first + u * STEP, in[u]);
        UNROLL for (int u = 0; u < VECTORS; ++u) {
            const Index point = first + u * STEP;
            Outputs out;
            load_reused(t, point, in[u]);
            UNROLL for (int e = 0; e < VECTOR; ++e)
                compute(t, point + e, e, in[u], out);
            store_points(t, point, out);
            store_words(t, point, out);
        }
        return;
    }

    for (int u = 0; u < VECTORS; ++u) {   // the last block
        const Index point = first + u * STEP;
        Inputs in;
        Outputs out = {};
        if (point + VECTOR <= POINTS) {
            load_points(t, point, in);
            load_reused(t, point, in);
            UNROLL for (int e = 0; e < VECTOR; ++e)
                compute(t, point + e, e, in, out);
            store_points(t, point, out);
        } else
            UNROLL for (int e = 0; e < VECTOR; ++e)
                if (point + e < POINTS) {
                    load_point(t, point + e, e, in);
                    compute(t, point + e, e, in, out);
                    store_point(t, point + e, e, out);
                }
        store_words(t, point, out);
    }
}
}   // namespace KERNEL
#undef PARAMETERS
#undef TENSORS

#ifndef __CUDACC_RTC__
extern "C" size_t elementwise_chain_workspace(void)
{
    return 0;
}

// in0: x[16384, 1024], f16
// in1: z[16384, 1024], f16
// in2: gamma[1024], f32
// in3: beta[1024], f32
// out0: y[16384, 1024], f16
extern "C" int elementwise_chain_launch(const void *in0, const void *in1, const void *in2, const void *in3, void *out0, void *workspace, void *stream)
{
    if (((size_t)in0 | (size_t)in1 | (size_t)in2 | (size_t)in3 | (size_t)out0) % 16 != 0)
        return cudaErrorInvalidValue;
    (void)workspace;
    cudaError_t status = cudaSuccess;
    {   // elementwise_chain_k0
        const void *a0 = in0;
        const void *a1 = in1;
        const void *a2 = in2;
        const void *a3 = in3;
        const void *a4 = out0;
        void *args[] = {&a0, &a1, &a2, &a3, &a4};
        status = cudaLaunchKernel(elementwise_chain_k0_scope::elementwise_chain_k0, dim3(4096, 1, 1), dim3(128, 1, 1), args,
                                  0, (cudaStream_t)stream);
        if (status != cudaSuccess)
            return (int)status;
    }
    return (int)status;
}
#endif
