//rollerc: {"schema":1,"name":"reduce_rows","device":"h200","workspace":0,"args":[{"name":"x","role":"input","dtype":"f32","shape":[16384,4096]},{"name":"y","role":"output","dtype":"f32","shape":[16384]}],"launches":[{"kernel":"reduce_rows_k0","grid":[4096,1,1],"block":[64,1,1],"shared":4096,"cooperative":false,"args":[{"arg":0},{"arg":1}]}]}
//
// reduce_rows, constructed by rollerc 0.1.0 for the device h200. What it computes:
//
//   input x[16384, 4096] : f32
//   y[i:16384] : f32 = sum[j:4096] x[i, j]
//   output y[16384] : f32
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

// templates/prelude/language.cuh:17
// SHARED(0, float, As, [BK][BM + PAD]): the array `As` at byte 0 of the dynamic shared memory.
#ifndef ROLLERC_INTERP
extern __shared__ __align__(16) unsigned char rollerc_shared[];
#endif
#define SHARED(offset, Type, name, ...) \
    Type(&name) __VA_ARGS__ = *reinterpret_cast<Type(*) __VA_ARGS__>(rollerc_shared + (offset))

// templates/prelude.cuh:22
namespace rollerc {

// templates/prelude/threads.cuh:1
// ---- threads; the interpreter's stand-in has them all ----

#if defined(__HIP__) && defined(__AMDGCN_WAVEFRONT_SIZE)
constexpr int WARP = __AMDGCN_WAVEFRONT_SIZE;
#elif defined(__HIP__)
constexpr int WARP = 64;
#elif !defined(ROLLERC_INTERP)
constexpr int WARP = 32;
#endif

#if defined(__HIP__)
using LaneMask = unsigned long long;   // bit i: lane i
#elif !defined(ROLLERC_INTERP)
using LaneMask = unsigned;
constexpr LaneMask ALL_LANES = 0xffffffffu;
#endif

#ifndef ROLLERC_INTERP
DEVICE void block_sync() { __syncthreads(); }
#endif

// templates/prelude/threads.cuh:59
#if defined(__HIP__)
template <class T> DEVICE T warp_shuffle_xor(T value, int mask, int width = WARP)
{
    return __shfl_xor(value, mask, width);
}
#elif !defined(ROLLERC_INTERP)
template <class T> DEVICE T warp_shuffle_xor(T value, int mask, int width = WARP)
{
    return __shfl_xor_sync(ALL_LANES, value, mask, width);
}
#endif

// templates/prelude/types.cuh:1
// ---- element types: what stands in memory, and the compute type it is widened to ----

DEVICE float widen(float x) { return x; }
DEVICE double widen(double x) { return x; }
DEVICE int widen(signed char x) { return x; }
DEVICE int widen(unsigned char x) { return x; }
DEVICE int widen(unsigned short x) { return x; }
DEVICE int widen(int x) { return x; }
DEVICE long long widen(long long x) { return x; }

// templates/prelude/types.cuh:13
template <class T> struct Narrow {
    template <class V> DEVICE T from(V value) { return static_cast<T>(value); }   // integers wrap
};

template <class T, class V> DEVICE T narrow(V value) { return Narrow<T>::from(value); }

// templates/prelude/memory.cuh:1
// ---- memory: elements, and vectors of N neighbours ----

// templates/prelude/memory.cuh:14
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

// Reads by one aligned access, or several of 16 bytes: p + index must be aligned to it.
template <int N, class T, class Index, class V>
DEVICE void load_vector(const T *p, Index index, V (&out)[N])
{
    constexpr int COUNT = VectorShape<T, N>::COUNT;
    const Vector<T, COUNT> *chunks = reinterpret_cast<const Vector<T, COUNT> *>(p + index);
    UNROLL for (int i = 0; i < N / COUNT; i++)
        widen_vector(chunks[i], out + i * COUNT);
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

// templates/prelude/reductions.cuh:1
// ---- reductions ----

// templates/prelude/reductions.cuh:16
struct Sum {
    template <class T> DEVICE T identity() { return 0; }
    template <class T> DEVICE T combine(T a, T b) { return op_add(a, b); }
};

// templates/prelude/reductions.cuh:98
// Every lane of a group of `width` neighbours gets the group's result. Four lanes:
//
//   mask 2    0+2  1+3  2+0  3+1
//   mask 1    (0+2)+(1+3)  …       each lane adds its partner's half
template <class Reduction, class T> DEVICE T warp_reduce(T value, int width = WARP)
{
    for (int mask = width / 2; mask > 0; mask /= 2)
        value = Reduction::combine(value, warp_shuffle_xor(value, mask, width));
    return value;
}

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
#define KERNEL reduce_rows_k0_scope
#define ENTRY reduce_rows_k0

// Reduction: each output combines REDUCED terms; an epilogue makes the final value of the total.
//
// A block makes TS groups of OUTS neighbouring outputs, and TR threads share the terms of each group:
//
//   ROW: neighbouring threads along the terms           else: along the outputs
//
//              terms ->                                             terms ->
//   outputs     0    1    2  …  TR-1 |  0    1  …       outputs     0    TS   2TS  … |  0    TS  …
//      |       TR  TR+1       …                            |        1  TS+1        …
//      v      2TR  …                                       v        2  …
//
// A thread takes TERMS neighbouring terms of OUTS outputs at once (one of them is 1), DEPTH times before it needs any of
// them. In the end its DEPTH partial results become one, then those of the threads: LANES neighbours exchange theirs by
// shuffles, the PARTS that are left meet in shared memory. The order depends on nothing but these constants.

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>   templates/reduce.cu (row-x4) for reduce_rows on h200, candidate 1 of 10
//
//   level           output     reduced
//   global           16384        4096   the problem
//   shared               4         128   4096 blocks, 1.48 waves, 4096 bytes
//   register             1           8   64 threads, about 41 registers
//
//   predicted 72.28 us, bound by dram (compute 1.95, shared 8.44, L2 35.97, DRAM 62.47)
//
using Index = int;
struct Tensors {
    const float *in0;   // x[16384, 4096]
    float *out0;   // y[16384]
};
#define PARAMETERS const float *__restrict__ in0, float *__restrict__ out0
#define TENSORS {in0, out0}
constexpr int SHARED_BYTES = 4096;   // of a block
using Reduction = Sum;
using A = float;   // what totals are accumulated in
constexpr Index OUTPUTS = 16384, REDUCED = 4096;
constexpr bool ROW = true;   // neighbouring threads lie along the terms
constexpr int THREADS = 64;
constexpr int TS = 4, TR = 16;   // groups of outputs, threads of a group
constexpr int OUTS = 1, TERMS = 4;   // of a thread at once
constexpr int VECTOR = 4;   // OUTS * TERMS
constexpr int DEPTH = 2;   // vectors whose loads are under way together

// What one vector of terms reads.
struct Inputs {
    float x0[VECTOR];
};

__device__ __forceinline__ void load_terms(const Tensors &t, Index output, Index reduced, Inputs &in)
{
    (void)t, (void)output, (void)reduced, (void)in;
    [[maybe_unused]] const Index i0 = output;
    [[maybe_unused]] const Index i1 = reduced;
    load_vector<VECTOR>(t.in0, i0 * 4096 + i1, in.x0);
}

// Element e of the vector of terms that starts at (output, reduced).
__device__ __forceinline__ A term(const Tensors &t, Index output, Index reduced, int e, const Inputs &in)
{
    (void)t, (void)output, (void)reduced, (void)e, (void)in;
    [[maybe_unused]] const Index i0 = output;
    [[maybe_unused]] const Index i1 = reduced;
    return in.x0[e];
}

__device__ __forceinline__ void finish(const Tensors &t, Index output, A total)
{
    [[maybe_unused]] const Index i0 = output;
    const float v0 = total;
    store(t.out0, i0, v0);
}
// </rollerc>
// templates/reduce.cu:64

constexpr Index CHUNK = (Index)TR * TERMS;   // terms that a group takes at once
constexpr Index STEP = DEPTH * CHUNK;        // that it takes before it needs the first

// The largest power of two that divides TR and a warp: groups of so many lanes never straddle an output.
constexpr int LANES = ROW ? (TR | WARP) & -(TR | WARP) : 1;
constexpr int PARTS = TR / LANES;   // of a group, that meet in shared memory

static_assert(TS * TR <= THREADS && THREADS % WARP == 0, "whole warps, some of whose threads may idle");
static_assert((OUTS == 1 || TERMS == 1) && OUTS * TERMS == VECTOR, "a vector lies along one side");
static_assert(PARTS == 1 || PARTS * OUTS * TS * (int)sizeof(A) <= SHARED_BYTES, "parts have room in shared memory");
static_assert(OUTPUTS % OUTS == 0 && REDUCED % TERMS == 0, "no vector reaches past the end");

// Terms r, r + CHUNK, … of a thread; all of them exist if WHOLE.
template <bool WHOLE>
__device__ __forceinline__ void accumulate(const Tensors &t, Index output, Index r, A (&acc)[DEPTH][OUTS])
{
    // ---- load ----
    Inputs in[DEPTH];
    UNROLL for (int d = 0; d < DEPTH; ++d)
        if (WHOLE || r + d * CHUNK < REDUCED)
            load_terms(t, output, r + d * CHUNK, in[d]);

    // ---- compute ----
    UNROLL for (int d = 0; d < DEPTH; ++d)
        if (WHOLE || r + d * CHUNK < REDUCED)
            UNROLL for (int e = 0; e < VECTOR; ++e) {
                A &sum = acc[d][e % OUTS];
                sum = Reduction::combine(sum, term(t, output, r + d * CHUNK, e, in[d]));
            }
}

extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const int thread = (int)threadIdx.x;
    const int ts = ROW ? thread / TR : thread % TS;
    const int tr = ROW ? thread % TR : thread / TS;
    const bool grouped = thread < TS * TR;   // the last warp may have threads to spare
    const Index output = ((Index)blockIdx.x * TS + ts) * OUTS;
    const bool active = grouped && output < OUTPUTS;

    // ---- load and compute: this thread's share of the terms ----
    A acc[DEPTH][OUTS];
    UNROLL for (int d = 0; d < DEPTH; ++d)
        UNROLL for (int o = 0; o < OUTS; ++o)
            acc[d][o] = Reduction::template identity<A>();
    if (active) {
        Index r = (Index)tr * TERMS;
        for (; r + (DEPTH - 1) * CHUNK < REDUCED; r += STEP)
            accumulate<true>(t, output, r, acc);
        if (REDUCED % STEP != 0)
            accumulate<false>(t, output, r, acc);
    }

    // ---- combine: within the thread, the warp, the block ----
    A total[OUTS];
    UNROLL for (int o = 0; o < OUTS; ++o) {
        total[o] = acc[0][o];
        UNROLL for (int d = 1; d < DEPTH; ++d)
            total[o] = Reduction::combine(total[o], acc[d][o]);
        total[o] = warp_reduce<Reduction>(total[o], LANES);
    }
    if (PARTS != 1) {
        SHARED(0, A, part, [PARTS][OUTS][TS]);
        const int p = tr / LANES;
        const bool holds = grouped && tr % LANES == 0;
        UNROLL for (int o = 0; o < OUTS; ++o)
            if (holds)
                part[p][o][ts] = total[o];
        block_sync();
        for (int parts = PARTS; parts > 1;) {   // the upper half joins the lower one
            const int half = (parts + 1) / 2;
            if (holds && p + half < parts)
                UNROLL for (int o = 0; o < OUTS; ++o) {
                    total[o] = Reduction::combine(total[o], part[p + half][o][ts]);
                    part[p][o][ts] = total[o];
                }
            parts = half;
            block_sync();
        }
    }

    // ---- store ----
    if (active && tr == 0)
        UNROLL for (int o = 0; o < OUTS; ++o)
            finish(t, output + o, total[o]);
}
}   // namespace KERNEL
#undef PARAMETERS
#undef TENSORS

#ifndef __CUDACC_RTC__
extern "C" size_t reduce_rows_workspace(void)
{
    return 0;
}

// in0: x[16384, 4096], f32
// out0: y[16384], f32
extern "C" int reduce_rows_launch(const void *in0, void *out0, void *workspace, void *stream)
{
    if (((size_t)in0 | (size_t)out0) % 16 != 0)
        return cudaErrorInvalidValue;
    (void)workspace;
    cudaError_t status = cudaSuccess;
    {   // reduce_rows_k0
        const void *a0 = in0;
        const void *a1 = out0;
        void *args[] = {&a0, &a1};
        status = cudaLaunchKernel(reduce_rows_k0_scope::reduce_rows_k0, dim3(4096, 1, 1), dim3(64, 1, 1), args,
                                  4096, (cudaStream_t)stream);
        if (status != cudaSuccess)
            return (int)status;
    }
    return (int)status;
}
#endif
