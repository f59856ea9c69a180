//rollerc: {"schema":1,"name":"bn_relu_training","device":"h200","workspace":0,"args":[{"name":"x","role":"input","dtype":"f32","shape":[16,32,112,112]},{"name":"gamma","role":"input","dtype":"f32","shape":[32]},{"name":"beta","role":"input","dtype":"f32","shape":[32]},{"name":"y","role":"output","dtype":"f32","shape":[16,32,112,112]},{"name":"mean","role":"output","dtype":"f32","shape":[32]},{"name":"inv","role":"output","dtype":"f32","shape":[32]}],"launches":[{"kernel":"bn_relu_training_k0","grid":[256,1,1],"block":[512,1,1],"cluster":[8,1,1],"shared":100496,"cooperative":false,"args":[{"arg":0},{"arg":1},{"arg":2},{"arg":4},{"arg":5},{"arg":3}]}]}
//
// bn_relu_training, constructed by rollerc 0.1.0 for the device h200. What it computes:
//
//   input x[16, 32, 112, 112] : f32
//   input gamma[32] : f32
//   input beta[32] : f32
//   mean.1[c:32] : f32 = sum[n:16, h:112, v:112] x[n, c, h, v]
//   mean[c:32] : f32 = div(mean.1[c], 200704)
//   var.1[c:32] : f32 = sum[n:16, h:112, v:112] sq(sub(x[n, c, h, v], mean[c]))
//   var[c:32] : f32 = div(var.1[c], 200704)
//   inv[c:32] : f32 = rsqrt(add(var[c], 1e-05))
//   y[n:16, c:32, h:112, v:112] : f32 = relu(add(mul(mul(sub(x[n, c, h, v], mean[c]), inv[c]), gamma[c]), beta[c]))
//   output y[16, 32, 112, 112] : f32
//   output mean[32] : f32
//   output inv[32] : f32
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

// templates/prelude/threads.cuh:28
#if defined(__HIP__)
DEVICE int lane_id() { return static_cast<int>(__lane_id()); }
#elif !defined(ROLLERC_INTERP)
DEVICE int lane_id()
{
    int lane = 0;
#ifdef __CUDA_ARCH__
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
#endif
    return lane;
}
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

// templates/prelude/cluster.cuh:1
// ---- blocks that run together; the interpreter's stand-in has them, too ----

// A launch may put its blocks into clusters, which read and write each other's shared memory:
//
//   cluster_sync();                              // before the first access: they have all started
//   part[0] = total;                             // SHARED(…, part, …)
//   cluster_sync();
//   other = cluster_map(part, cluster_rank() ^ 1)[0];
//   cluster_sync();                              // before the end: none may go while others access it
//
// All threads of the cluster call cluster_sync(), or cluster_arrive() and later cluster_wait(). A launch without
// clusters, and a device that knows none, has clusters of one block.
#if defined(ROLLERC_INTERP)
// The stand-in has them.
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
DEVICE int cluster_rank()
{
    int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
DEVICE int cluster_size()
{
    int blocks;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    return blocks;
}
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
template <class T> DEVICE T *cluster_map(T *shared, int rank)
{
    T *there;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(shared), "r"(rank));
    return there;
}
#else
DEVICE int cluster_rank() { return 0; }
DEVICE int cluster_size() { return 1; }
DEVICE void cluster_arrive() {}
DEVICE void cluster_wait() { block_sync(); }
template <class T> DEVICE T *cluster_map(T *shared, int) { return shared; }
#endif

#ifndef ROLLERC_INTERP
DEVICE void cluster_sync()
{
    cluster_arrive();
    cluster_wait();
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

template <class T> using compute_type = decltype(widen(T()));

template <class T> struct Narrow {
    template <class V> DEVICE T from(V value) { return static_cast<T>(value); }   // integers wrap
};

template <class T, class V> DEVICE T narrow(V value) { return Narrow<T>::from(value); }

// templates/prelude/types.cuh:67
struct alignas(16) bits128 { unsigned words[4]; };   // elements that are moved as they are
DEVICE bits128 widen(bits128 x) { return x; }

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

// Reads by one aligned access, or several of 16 bytes: p + index must be aligned to it.
template <int N, class T, class Index, class V>
DEVICE void load_vector(const T *p, Index index, V (&out)[N])
{
    constexpr int COUNT = VectorShape<T, N>::COUNT;
    const Vector<T, COUNT> *chunks = reinterpret_cast<const Vector<T, COUNT> *>(p + index);
    UNROLL for (int i = 0; i < N / COUNT; i++)
        widen_vector(chunks[i], out + i * COUNT);
}

// templates/prelude/memory.cuh:77
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

// templates/prelude/arithmetic.cuh:25
// a / b for constants b whose reciprocal in float is off by at most 2^-25 (src/codegen/cuda/expr.c says why it is exact then,
// but for the last place of subnormal quotients).
DEVICE float divide_by(float a, float b)
{
    const float reciprocal = 1 / b, quotient = a * reciprocal;
    const float rest = fmaf(-quotient, b, a);   // NaN where a is infinite
    return rest == rest ? fmaf(rest, reciprocal, quotient) : quotient;
}

// templates/prelude/arithmetic.cuh:70
template <class T> DEVICE T op_max(T a, T b) { return a > b || a != a ? a : b; }   // NaN if either is
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE float op_max(float a, float b)
{
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
#endif

template <class T> DEVICE T op_min(T a, T b) { return a < b || a != a ? a : b; }   // NaN if either is
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE float op_min(float a, float b)
{
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
#endif

template <class T> DEVICE T op_relu(T a) { return op_max(a, static_cast<T>(0)); }

// templates/prelude/functions.cuh:1
// ---- scalar functions (src/ir/ops.def): float and double; some are defined for integers, too ----

// templates/prelude/functions.cuh:58
DEVICE float op_rsqrt(float a) { return rsqrtf(a); }
DEVICE double op_rsqrt(double a) { return rsqrt(a); }

// templates/prelude/async.cuh:1
// ---- copies that may be under way while the threads go on ----

// Copies of 16 bytes may be under way until async_wait<N>(): all groups but the last N have then landed.
#if defined(ROLLERC_INTERP)
template <int N> DEVICE void async_wait() { async_wait_for(N); }   // the rest is in the stand-in
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE void async_copy16(void *shared, const void *global)
{
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(target), "l"(global) : "memory");
}
// The same with read_global's priority in L2.
DEVICE void async_read16(void *shared, const void *global)
{
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("{ .reg .b64 policy;\n"
                 "  createpolicy.fractional.L2::evict_last.b64 policy;\n"
                 "  cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, policy; }"
                 :
                 : "r"(target), "l"(global)
                 : "memory");
}
DEVICE void async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#else
DEVICE void async_copy16(void *shared, const void *global)
{
    *static_cast<Vector<unsigned, 4> *>(shared) = *static_cast<const Vector<unsigned, 4> *>(global);
}
DEVICE void async_commit() {}
template <int N> DEVICE void async_wait() {}
#endif

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 800
DEVICE void async_read16(void *shared, const void *global) { async_copy16(shared, global); }
#endif

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

// templates/prelude/launch.cuh:20
#if defined(__HIP__) && !defined(__HIPCC_RTC__)
#define cudaFuncAttributeMaxDynamicSharedMemorySize hipFuncAttributeMaxDynamicSharedMemorySize
template <class Kernel>
static inline hipError_t cudaFuncSetAttribute(Kernel *kernel, hipFuncAttribute attribute, int value)
{
    return hipFuncSetAttribute(reinterpret_cast<const void *>(kernel), attribute, value);
}
#endif

#if defined(CUDART_VERSION) && CUDART_VERSION >= 11080 && !defined(__CUDACC_RTC__)   // launches with attributes
template <class Kernel>
static inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, Kernel *kernel, void **args)
{
    return cudaLaunchKernelExC(config, reinterpret_cast<const void *>(kernel), args);
}
#endif

#undef KERNEL
#undef ENTRY
#define KERNEL bn_relu_training_k0_scope
#define ENTRY bn_relu_training_k0

// Rows of any shape, kept on chip: reductions along a row with pointwise steps before, between and after them, while what is
// read again stays in the shared memory of the CLUSTER blocks that own the row. Memory is asked for every element once.
//
//   row     [ SHARE of rank 0 | SHARE of rank 1 | … ]           each block copies its share, then walks it once for each
//   rank 0   [VECTOR] [VECTOR] …   THREADS of them at a time    reduction and once for the results
//
// A thread reads only what it has copied itself. Results of a reduction pass from warp to block to cluster, always combined in
// the same order.

namespace KERNEL {
using namespace rollerc;

// A reduction over all threads of all blocks of the row, in three steps; every reduction of a kernel has its own slot.
template <class Reduction, class T> __device__ void reduce_block(T value, int slot);
__device__ void row_sync();
template <class Reduction, class T> __device__ T row_total(int slot);

// A vector on its way from memory to shared memory.
template <int N, class T, class Index> __device__ void keep_vector(T *kept, const T *from, Index index);

// <rollerc: parameters>   templates/resident.cu (cluster) for bn_relu_training on h200, candidate 1 of 10
//
//   level              row      column
//   global              32      212992   the problem
//   shared               1       26624   256 blocks, 0.97 waves, 100496 bytes
//   register             1        2048   512 threads, about 33 registers
//
//   predicted 21.03 us, bound by dram (compute 1.24, shared 1.71, L2 7.06, DRAM 12.12)
//
using Index = int;
struct Tensors {
    const float *in0;   // x[16, 32, 112, 112]
    const float *in1;   // gamma[32]
    const float *in2;   // beta[32]
    float *out0;   // mean[32]
    float *out1;   // inv[32]
    float *out2;   // y[16, 32, 112, 112]
};
#define PARAMETERS const float *__restrict__ in0, const float *__restrict__ in1, const float *__restrict__ in2, float *__restrict__ out0, float *__restrict__ out1, float *__restrict__ out2
#define TENSORS {in0, in1, in2, out0, out1, out2}
constexpr int SHARED_BYTES = 100496;   // of a block
constexpr Index COLUMNS = 200704;
constexpr Index SHARE = 25088;   // columns of a block
constexpr int CLUSTER = 8;   // blocks of a row
constexpr int THREADS = 512;
constexpr int VECTOR = 4;   // neighbouring elements that a thread reads and writes at once
constexpr int SLOTS = 2;   // reductions
constexpr int KEPT = 144;   // bytes of shared memory before what is kept
constexpr int KEPT_X0 = 144;
static_assert(KEPT_X0 + SHARE * (int)sizeof(float) <= SHARED_BYTES, "what is kept has room");

// What a vector of elements reads.
struct Inputs {
    float x0[VECTOR];
};

// Begins the copies of the vector at `column`, which is the block's at `own`.
__device__ __forceinline__ void keep(const Tensors &t, Index row, Index column, Index own)
{
    (void)row;
    const Index i0 = row;
    const Index i1 = column / 12544, i2 = column % 12544;
    keep_vector<VECTOR>((float *)(rollerc_shared + KEPT_X0) + own, t.in0, i0 * 12544 + i1 * 401408 + i2);
}

// Asks L2 for what the last walk alone reads.
__device__ __forceinline__ void announce(const Tensors &t, Index row, Index first, Index count)
{
    (void)t, (void)row, (void)first, (void)count;
}

// One row, step by step: this block's columns are [first, first + count).
__device__ __forceinline__ void compute(const Tensors &t, Index row, Index first, Index count)
{
    (void)row;
    constexpr Index STEP = THREADS * VECTOR;
    const Index i0 = row;
    const float f0 = load(t.in1, i0);
    const float f1 = load(t.in2, i0);
    float total0 = Sum::identity<float>();
#pragma unroll 4
    for (Index step = 0; step < SHARE; step += STEP) {
        const Index own = step + (Index)threadIdx.x * VECTOR, at = first + own;
        (void)at;
        if (own < count) {
            Inputs in;
            load_vector<VECTOR>((const float *)(rollerc_shared + KEPT_X0), own, in.x0);
            UNROLL for (int e = 0; e < VECTOR; ++e)
                total0 = Sum::combine(total0, in.x0[e]);
        }
    }
    reduce_block<Sum>(total0, 0);
    row_sync();
    const float v0 = row_total<Sum, float>(0);
    const float v1 = divide_by(v0, 200704.0f);
    float total2 = Sum::identity<float>();
#pragma unroll 4
    for (Index step = 0; step < SHARE; step += STEP) {
        const Index own = step + (Index)threadIdx.x * VECTOR, at = first + own;
        (void)at;
        if (own < count) {
            Inputs in;
            load_vector<VECTOR>((const float *)(rollerc_shared + KEPT_X0), own, in.x0);
            UNROLL for (int e = 0; e < VECTOR; ++e)
                total2 = Sum::combine(total2, op_sq(op_sub(in.x0[e], v1)));
        }
    }
    reduce_block<Sum>(total2, 1);
    row_sync();
    const float v2 = row_total<Sum, float>(1);
    const float v3 = divide_by(v2, 200704.0f);
    const float v4 = op_rsqrt(op_add(v3, 1e-05f));
    if (CLUSTER > 1)
        cluster_arrive();   // has read all that it wants of the others
    if (first == 0 && threadIdx.x == 0)
        store(t.out0, i0, v1);
    if (first == 0 && threadIdx.x == 0)
        store(t.out1, i0, v4);
#pragma unroll 4
    for (Index step = 0; step < SHARE; step += STEP) {
        const Index own = step + (Index)threadIdx.x * VECTOR, at = first + own;
        (void)at;
        const Index i1 = at / 12544, i2 = at % 12544;
        if (own < count) {
            Inputs in;
            load_vector<VECTOR>((const float *)(rollerc_shared + KEPT_X0), own, in.x0);
            float v5[VECTOR];
            UNROLL for (int e = 0; e < VECTOR; ++e)
                v5[e] = op_relu(op_add(op_mul(op_mul(op_sub(in.x0[e], v1), v4), f0), f1));
            store_vector<VECTOR>(t.out2, i0 * 12544 + i1 * 401408 + i2, v5);
        }
    }
}
// </rollerc>
// templates/resident.cu:73

constexpr int SLOT_BYTES = 8;                                       // of any result
constexpr int WARPS = THREADS / WARP;
static_assert(THREADS % WARP == 0, "whole warps");
static_assert(KEPT >= (SLOTS + WARPS) * SLOT_BYTES && KEPT % 16 == 0, "results come before what is kept");
static_assert(KEPT <= SHARED_BYTES, "results have room in shared memory");
static_assert(COLUMNS > (CLUSTER - 1) * SHARE, "every block has columns");
static_assert(SHARE % VECTOR == 0 && COLUMNS % VECTOR == 0, "shares are whole vectors");

template <class Reduction, class T> __device__ void reduce_block(T value, int slot)
{
    SHARED(0, T, partial, [WARPS]);                       // one of each warp
    SHARED((WARPS + slot) * SLOT_BYTES, T, total, [1]);   // the block's
    value = warp_reduce<Reduction>(value);
    block_sync();   // the reduction before has been read
    if (lane_id() == 0)
        partial[(int)threadIdx.x / WARP] = value;
    block_sync();
    if (threadIdx.x == 0) {
        T block_total = partial[0];
        for (int warp = 1; warp < WARPS; ++warp)
            block_total = Reduction::combine(block_total, partial[warp]);
        total[0] = block_total;
    }
}

__device__ __forceinline__ void row_sync()
{
    if (CLUSTER != 1)
        cluster_sync();
    else
        block_sync();
}

template <class Reduction, class T> __device__ T row_total(int slot)
{
    SHARED((WARPS + slot) * SLOT_BYTES, T, total, [1]);
    if (CLUSTER == 1)
        return total[0];
    T result = cluster_map(total, 0)[0];
    UNROLL for (int rank = 1; rank < CLUSTER; ++rank)
        result = Reduction::combine(result, cluster_map(total, rank)[0]);
    return result;
}

template <int N, class T, class Index> __device__ void keep_vector(T *kept, const T *from, Index index)
{
    constexpr int COUNT = sizeof(bits128) / sizeof(T);   // of one asynchronous copy
    if (N % COUNT == 0)
        UNROLL for (int i = 0; i < N; i += COUNT)
            async_copy16(kept + i, from + index + i);
    else
        UNROLL for (int i = 0; i < N; ++i)
            kept[i] = from[index + i];
}

extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const Index row = (Index)blockIdx.x / CLUSTER;
    const Index first = (Index)blockIdx.x % CLUSTER * SHARE;
    const Index count = op_min<Index>(COLUMNS - first, SHARE);
    for (Index own = (Index)threadIdx.x * VECTOR; own < count; own += THREADS * VECTOR)
        keep(t, row, first + own, own);
    async_commit();
    announce(t, row, first, count);
    async_wait<0>();
    compute(t, row, first, count);
    if (CLUSTER > 1)
        cluster_wait();   // others may still read this block's results
}
}   // namespace KERNEL
#undef PARAMETERS
#undef TENSORS

#ifndef __CUDACC_RTC__
extern "C" size_t bn_relu_training_workspace(void)
{
    return 0;
}

// in0: x[16, 32, 112, 112], f32
// in1: gamma[32], f32
// in2: beta[32], f32
// out0: y[16, 32, 112, 112], f32
// out1: mean[32], f32
// out2: inv[32], f32
extern "C" int bn_relu_training_launch(const void *in0, const void *in1, const void *in2, void *out0, void *out1, void *out2, void *workspace, void *stream)
{
    if (((size_t)in0 | (size_t)in1 | (size_t)in2 | (size_t)out0 | (size_t)out1 | (size_t)out2) % 16 != 0)
        return cudaErrorInvalidValue;
    (void)workspace;
    cudaError_t status = cudaSuccess;
    {   // bn_relu_training_k0
        const void *a0 = in0;
        const void *a1 = in1;
        const void *a2 = in2;
        const void *a3 = out1;
        const void *a4 = out2;
        const void *a5 = out0;
        void *args[] = {&a0, &a1, &a2, &a3, &a4, &a5};
        status = cudaFuncSetAttribute(bn_relu_training_k0_scope::bn_relu_training_k0, cudaFuncAttributeMaxDynamicSharedMemorySize, 100496);
        if (status != cudaSuccess)
            return (int)status;
        cudaLaunchAttribute attributes[2] = {};
        attributes[0].id = cudaLaunchAttributeClusterDimension;
        attributes[0].val.clusterDim = {8, 1, 1};
        attributes[1].id = cudaLaunchAttributeCooperative;
        attributes[1].val.cooperative = 0;
        const cudaLaunchConfig_t config = {dim3(256, 1, 1), dim3(512, 1, 1),
                                           100496, (cudaStream_t)stream, attributes, 2};
        status = cudaLaunchKernelExC(&config, bn_relu_training_k0_scope::bn_relu_training_k0, args);
        if (status != cudaSuccess)
            return (int)status;
    }
    return (int)status;
}
#endif
