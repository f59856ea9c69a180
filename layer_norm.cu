//rollerc: {"schema":1,"name":"layer_norm","device":"h200","workspace":0,"args":[{"name":"x","role":"input","dtype":"f16","shape":[16384,1024]},{"name":"gamma","role":"input","dtype":"f32","shape":[1024]},{"name":"beta","role":"input","dtype":"f32","shape":[1024]},{"name":"y","role":"output","dtype":"f16","shape":[16384,1024]}],"launches":[{"kernel":"layer_norm_k0","grid":[16384,1,1],"block":[32,1,1],"shared":0,"cooperative":false,"args":[{"arg":0},{"arg":1},{"arg":2},{"arg":3}]}]}
//
// layer_norm, constructed by rollerc 0.1.0 for the device h200. What it computes:
//
//   input x[16384, 1024] : f16
//   input gamma[1024] : f32
//   input beta[1024] : f32
//   mean.1[i:16384] : f32 = sum[j:1024] x[i, j]
//   mean[i:16384] : f32 = div(mean.1[i], 1024)
//   var.1[i:16384] : f32 = sum[j:1024] sq(sub(x[i, j], mean[i]))
//   var[i:16384] : f32 = div(var.1[i], 1024)
//   y[i:16384, j:1024] : f16 = add(mul(mul(sub(x[i, j], mean[i]), rsqrt(add(var[i], 1e-05))), gamma[j]), beta[j])
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

// templates/prelude/memory.cuh:19
template <class T, int COUNT> struct alignas(COUNT * sizeof(T)) Vector { T at[COUNT]; };

// The widest access is 16 bytes.
template <class T, int N> struct VectorShape {
    static constexpr int WIDEST = 16, SIZE = static_cast<int>(sizeof(T));
    static constexpr int COUNT = N * SIZE > WIDEST ? WIDEST / SIZE : N;
    static_assert((COUNT & (COUNT - 1)) == 0 && N % COUNT == 0 && COUNT * SIZE <= WIDEST, "a power of two of bytes");
    using type = Vector<T, COUNT>;
};

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

// templates/prelude/memory.cuh:126
// N elements as they are, in one access. One side is an array of registers, the other is aligned to N of
// them.
template <int N, class T> DEVICE void move_vector(T *to, const T (&from)[N])
{
    Vector<T, N> vector;
    UNROLL for (int i = 0; i < N; i++)
        vector.at[i] = from[i];
    *reinterpret_cast<Vector<T, N> *>(to) = vector;
}
template <int N, class T> DEVICE void move_vector(T (&to)[N], const T *from)
{
    const Vector<T, N> vector = *reinterpret_cast<const Vector<T, N> *>(from);
    UNROLL for (int i = 0; i < N; i++)
        to[i] = vector.at[i];
}

// templates/prelude/words.cuh:1
// ---- words: elements of less than 4 bytes that are moved together ----

// Bytes of b and a, numbered 7…4 3…0; hexadecimal digit i of the selector says which becomes byte i.
DEVICE unsigned byte_permute(unsigned a, unsigned b, unsigned selector)
{
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
    return __byte_perm(a, b, selector);
#else
    const unsigned long long bytes = static_cast<unsigned long long>(b) << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; i++)
        result |= static_cast<unsigned>(bytes >> (selector >> 4 * i & 7u) * 8 & 0xffu) << 8 * i;
    return result;
#endif
}

// templates/prelude/words.cuh:58
// Elements of less than a word that are moved by words.
template <class T> union Word {
    static constexpr int SIZE = static_cast<int>(sizeof(T)), COUNT = (3 + SIZE) / SIZE;   // at least one
    unsigned bits;
    T at[COUNT];
};

template <class T, bool JOINED> struct PartOfVector { using type = T; };
template <class T> struct PartOfVector<T, true> { using type = unsigned; };

// N neighbours as they lie in memory, narrow ones in words: one is widened when it is asked for, so that no branch around
// a load waits for it.
template <class T, int N> struct Packed {
    static constexpr int EACH = N % Word<T>::COUNT == 0 ? Word<T>::COUNT : 1;   // elements of a part
    using Part = typename PartOfVector<T, (EACH > 1)>::type;
    using Piece = typename VectorShape<Part, N / EACH>::type;
    static constexpr int COUNT = VectorShape<Part, N / EACH>::COUNT, PIECES = N / EACH / COUNT;
    Piece pieces[PIECES];

    template <class Index> __device__ __forceinline__ void load(const T *p, Index index)
    {
        UNROLL for (int i = 0; i < PIECES; ++i)
            pieces[i] = reinterpret_cast<const Piece *>(p + index)[i];
    }
    template <class Index> __device__ __forceinline__ void read(const T *p, Index index)
    {
        UNROLL for (int i = 0; i < PIECES; ++i)
            pieces[i] = read_global(reinterpret_cast<const Piece *>(p + index) + i);
    }
    __device__ __forceinline__ compute_type<T> operator[](int e) const
    {
        union {
            Part part;
            T at[EACH];
        };
        part = pieces[e / EACH / COUNT].at[e / EACH % COUNT];
        return widen(at[e % EACH]);
    }
};

// templates/prelude/words.cuh:141
// COLUMNS x ROWS elements in registers, read column by column and written row by row.
template <class T, int COLUMNS, int ROWS, bool = sizeof(T) == 1 && COLUMNS == 4 && ROWS % 4 == 0>
struct Piece {
    T at[COLUMNS][ROWS];

    __device__ __forceinline__ void read(int column, const T *from) { move_vector<ROWS>(at[column], from); }
    __device__ __forceinline__ void write(int row, T *to) const
    {
        T elements[COLUMNS];
        UNROLL for (int i = 0; i < COLUMNS; i++)
            elements[i] = at[i][row];
        move_vector<COLUMNS>(to, elements);
    }
};

// Bytes stay in words: 4 x 4 of them are turned by 8 permutations.
template <class T, int ROWS> struct Piece<T, 4, ROWS, true> {
    unsigned at[4][ROWS / 4];

    __device__ __forceinline__ void read(int column, const T *from)
    {
        move_vector<ROWS / 4>(at[column], reinterpret_cast<const unsigned *>(from));
    }
    __device__ __forceinline__ void write(int row, T *to) const
    {
        const unsigned pair = row % 4 < 2 ? 0x5140u : 0x7362u, both = row % 2 ? 0x7632u : 0x5410u;
        const unsigned low = byte_permute(at[0][row / 4], at[1][row / 4], pair);
        const unsigned high = byte_permute(at[2][row / 4], at[3][row / 4], pair);
        *reinterpret_cast<unsigned *>(to) = byte_permute(low, high, both);
    }
};

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

template <class T> DEVICE T op_div(T a, T b) { return b == 0 ? 0 : b == -1 ? op_neg(a) : a / b; }
DEVICE double op_div(double a, double b) { return a / b; }
#if defined(ROLLERC_FAST_MATH)
DEVICE float op_div(float a, float b) { return __fdividef(a, b); }
#else
DEVICE float op_div(float a, float b) { return a / b; }
#endif

// a / b for constants b whose reciprocal in float is off by at most 2^-25 (src/codegen/cuda/expr.c says why it is exact then,
// but for the last place of subnormal quotients).
DEVICE float divide_by(float a, float b)
{
    const float reciprocal = 1 / b, quotient = a * reciprocal;
    const float rest = fmaf(-quotient, b, a);   // NaN where a is infinite
    return rest == rest ? fmaf(rest, reciprocal, quotient) : quotient;
}

// templates/prelude/arithmetic.cuh:80
template <class T> DEVICE T op_min(T a, T b) { return a < b || a != a ? a : b; }   // NaN if either is
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE float op_min(float a, float b)
{
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
#endif

// templates/prelude/functions.cuh:1
// ---- scalar functions (src/ir/ops.def): float and double; some are defined for integers, too ----

// templates/prelude/functions.cuh:58
DEVICE float op_rsqrt(float a) { return rsqrtf(a); }
DEVICE double op_rsqrt(double a) { return rsqrt(a); }

// templates/prelude/reductions.cuh:1
// ---- reductions ----

// templates/prelude/reductions.cuh:16
struct Sum {
    template <class T> DEVICE T identity() { return 0; }
    template <class T> DEVICE T combine(T a, T b) { return op_add(a, b); }
};

// templates/prelude/reductions.cuh:36
// N values, a power of two, as a tree: 0+4 1+5 2+6 3+7, then their sums.
template <class Reduction, class T, int N> DEVICE T reduce_vector(T (&x)[N])
{
    static_assert((N & (N - 1)) == 0, "halves");
    UNROLL for (int half = N / 2; half > 0; half /= 2)
        UNROLL for (int i = 0; i < half; i++)
            x[i] = Reduction::combine(x[i], x[i + half]);
    return x[0];
}

// templates/prelude/reductions.cuh:62
// Values that are known by their number, their sum and the sum of their squared distances from their own mean (Chan,
// Golub and LeVeque; see src/ir/fuse_phases.c). Of a constant that mean is the constant.
DEVICE float mean_of(float sum, int count) { return divide_by(sum, static_cast<float>(count)); }
DEVICE double mean_of(double sum, int count) { return sum / count; }

// What the squared distances gain as the mean gives way to another centre: count * sq(sum / count - centre)
template <class T> DEVICE T around_centre(T sum, int count, T centre)
{
    return count > 0 ? static_cast<T>(count) * op_sq(mean_of(sum, count) - centre) : 0;
}

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
#define KERNEL layer_norm_k0_scope
#define ENTRY layer_norm_k0

// Row kernel: reductions along rows, with pointwise steps before, between and after them.
//
// A group of GROUP threads owns a row, VECTORS vectors of VECTOR neighbouring elements each, one group's width apart, so
// that the accesses of a warp are contiguous. `compute` keeps them in registers or in shared memory, so that memory sees
// a row once; where neither can hold it, every pass reads the row again.
//
//   lane        0        1       …    GROUP-1  |    0        1      …
//   elements [VECTOR] [VECTOR]   …   [VECTOR]  | [VECTOR] [VECTOR]  …        <- VECTORS times, the last one ragged
//
// Groups within a warp reduce by shuffles, larger ones through shared memory as well. A block holds ROWS_OF_BLOCK groups.

namespace KERNEL {
using namespace rollerc;

// The result of a reduction over what the threads of a row's group hold, known to all of them. `turn` counts the reductions of
// all rows that the group makes.
template <class Reduction, class T> __device__ T reduce_row(T value, int turn);

// What a warp knows of its part of a row: `distances` is the sum of the squared ones from the part's own mean.
template <class T> struct alignas(2 * sizeof(T)) Part {
    T sum, distances;
};

// sum[j](x[j]) and sum[j](sq(x[j] - centre)) in one turn, from what each thread knows of its `count` elements: their sum,
// and their squared distances from their mean. Gives the parts of all warps, for row_sum() and, with any centre,
// row_distances(), both to be called before the next turn. `shift` is shift_of() the row.
template <class T> __device__ const Part<T> *share_parts(T sum, T distances, int count, int turn);
template <class T> __device__ T row_sum(const Part<T> *parts);
template <class T, class Index> __device__ T row_distances(const Part<T> *parts, T centre, Index shift);

// <rollerc: parameters>   templates/rowwise.cu (warp) for layer_norm on h200, candidate 1 of 10
//
//   level              row      column
//   global           16384        1024   the problem
//   shared               1        1024   16384 blocks, 3.88 waves, 0 bytes
//   register             1          32   32 threads, about 54 registers
//
//   predicted 23.50 us, bound by dram (compute 11.94, shared 5.15, L2 8.82, DRAM 14.90)
//
using Index = int;
struct Tensors {
    const f16 *in0;   // x[16384, 1024]
    const float *in1;   // gamma[1024]
    const float *in2;   // beta[1024]
    f16 *out0;   // y[16384, 1024]
};
#define PARAMETERS const f16 *__restrict__ in0, const float *__restrict__ in1, const float *__restrict__ in2, f16 *__restrict__ out0
#define TENSORS {in0, in1, in2, out0}
constexpr int SHARED_BYTES = 0;   // of a block
constexpr Index ROWS = 16384, COLUMNS = 1024;
constexpr int GROUP = 32;   // threads of a row
constexpr int CLUSTER = 1;   // blocks of a group
constexpr int ROWS_OF_BLOCK = 1;   // groups
constexpr int ROWS_OF_GROUP = 1;   // which it makes one after the other
constexpr int ROWS_TOGETHER = 1;   // and at the same time, so that what is the same for every row is read once
constexpr Index ROWS_APART = 1;   // from one of them to the next, which begins alike
constexpr int TURNS = 2;   // reductions of a row
constexpr int RESULT_BYTES = 4;   // of the widest one, and a warp
constexpr int PARTIAL_BYTES = 0;   // of shared memory, for what warps leave; copies of rows lie behind it
constexpr int MIN_BLOCKS_PER_SM = 0;   // that a unit's registers must suffice for; 0: the compiler chooses
constexpr int VECTOR = 4;   // neighbouring elements that a thread reads and writes at once
constexpr int VECTORS = 8;   // of a thread
constexpr Index STEP = GROUP * VECTOR;   // from one vector of a thread to its next one

// Whether any of the thread's vector k, or all of it, lies in the row; `column` is where vector 0 begins. Of all
// but the row's first and last vectors that is known as the loop over k is unrolled.
__device__ __forceinline__ bool begins_inside(Index column, int k)
{
    return (k + 1) * STEP <= COLUMNS || column + k * STEP < COLUMNS;
}

// Elements of the row before that its first aligned vector begins with.
__device__ __forceinline__ Index shift_of(Index) { return 0; }

// What one vector of a row's elements reads.
struct Inputs {
    Packed<f16, VECTOR> x0;
};

__device__ __forceinline__ void load_elements(const Tensors &t, Index row, Index at, Inputs &in)
{
    (void)t, (void)row, (void)at, (void)in;
    const Index i0 = row;
    const Index i1 = at;
    in.x0.read(t.in0, i0 * 1024 + i1);
}

// What is the same for every row.
struct Weights {
    Packed<float, VECTOR> x1;
    Packed<float, VECTOR> x2;
};

__device__ __forceinline__ void load_weights(const Tensors &t, Index row, Index at, Weights &in)
{
    (void)t, (void)row, (void)at, (void)in;
    const Index i1 = at;
    in.x1.read(t.in1, i1);
    in.x2.read(t.in2, i1);
}

// Begins to copy the row that comes next, where rows are copied to shared memory ahead of their turn.
__device__ __forceinline__ void copy_ahead(const Tensors &, Index, Index) {}

// One row, pass by pass. Vector k of this thread starts at column + k * STEP. Groups beyond the last
// row repeat it without storing.
__device__ __forceinline__ void compute(const Tensors &t, Index row, Index column, bool stores, int made)
{
    (void)t, (void)row, (void)stores, (void)made;
    Inputs inputs[VECTORS];
    UNROLL for (int k = 0; k < VECTORS; ++k)
        if (begins_inside(column, k))
            load_elements(t, row, column + k * STEP, inputs[k]);
    const Index i0 = row;
    float total0 = Sum::identity<float>();
    UNROLL for (int k = 0; k < VECTORS; ++k)
        if (begins_inside(column, k)) {
            const Inputs &in = inputs[k];
            float terms0[VECTOR];
            UNROLL for (int e = 0; e < VECTOR; ++e)
                terms0[e] = in.x0[e];
            total0 = Sum::combine(total0, reduce_vector<Sum>(terms0));
        }
    const float v0 = reduce_row<Sum>(total0, TURNS * made);
    const float v1 = op_div(v0, 1024.0f);
    float total2 = Sum::identity<float>();
    UNROLL for (int k = 0; k < VECTORS; ++k)
        if (begins_inside(column, k)) {
            const Inputs &in = inputs[k];
            float terms2[VECTOR];
            UNROLL for (int e = 0; e < VECTOR; ++e)
                terms2[e] = op_sq(op_sub(in.x0[e], v1));
            total2 = Sum::combine(total2, reduce_vector<Sum>(terms2));
        }
    const float v2 = reduce_row<Sum>(total2, 1 + TURNS * made);
    const float v3 = op_div(v2, 1024.0f);
    float v4[VECTORS][VECTOR];
    UNROLL for (int k = 0; k < VECTORS; ++k)
        if (begins_inside(column, k)) {
            const Index at = column + k * STEP;
            const Index i1 = at;
            const Inputs &in = inputs[k];
            Weights weights;
            load_weights(t, row, at, weights);
            UNROLL for (int e = 0; e < VECTOR; ++e)
                v4[k][e] = op_add(op_mul(op_mul(op_sub(in.x0[e], v1), op_rsqrt(op_add(v3, 1e-05f))), weights.x1[e]), weights.x2[e]);
            if (stores)
                store_vector<VECTOR>(t.out0, i0 * 1024 + i1, v4[k]);
        }
}
// </rollerc>
// templates/rowwise.cu:105

constexpr int THREADS = GROUP * ROWS_OF_BLOCK / CLUSTER;
constexpr int WARPS_OF_GROUP = (GROUP + WARP - 1) / WARP;
static_assert(GROUP % WARP == 0 || (GROUP < WARP && (GROUP & (GROUP - 1)) == 0), "whole warps, or a part of one");
static_assert(GROUP <= WARP || ROWS_OF_BLOCK == 1, "a group of several warps is a block, or a cluster of blocks");

// Of shared memory, before the copies of rows.
constexpr int PLACES_OF_TURNS = TURNS * ROWS_OF_GROUP * ROWS_TOGETHER > 1 ? 2 : 1;
static_assert(WARPS_OF_GROUP == 1 || PLACES_OF_TURNS * WARPS_OF_GROUP * RESULT_BYTES <= PARTIAL_BYTES,
              "what warps leave has room in shared memory");
static_assert(PARTIAL_BYTES <= SHARED_BYTES, "a launch gives a block as much");

constexpr bool FEW = WARPS_OF_GROUP <= 8;   // then each thread goes through the results of all warps

// Every warp leaves its result with every block of the group. Two turns have a place each, so that one barrier a turn is
// enough: a place is written again only after the barrier of the turn between, when it has been read. Blocks that combine
// their own warps' results first took 1.02 to 1.25 of the time on an H200.
//
//   places of a block   turn 0: warp 0, 1, 2, … of block 0 | warps of block 1 | …    turn 1: the same
template <class T> __device__ const T *share_result(const T &result, int turn)
{
    SHARED(turn % 2 * WARPS_OF_GROUP * RESULT_BYTES, T, place, [WARPS_OF_GROUP]);
    const int warp = (int)threadIdx.x / WARP, lane = lane_id();
    if (CLUSTER > 1) {
        if (turn == 0)
            cluster_wait();   // all blocks have started
        if (lane < CLUSTER)
            *cluster_map(&place[cluster_rank() * (WARPS_OF_GROUP / CLUSTER) + warp], lane) = result;
        cluster_sync();
    } else {
        if (lane == 0)
            place[warp] = result;
        block_sync();
    }
    return place;
}

template <class Reduction, class T> __device__ T reduce_row(T value, int turn)
{
    value = warp_reduce<Reduction>(value, op_min<int>(GROUP, WARP));
    if (WARPS_OF_GROUP == 1)
        return value;
    const T *results = share_result(value, turn);
    T total = Reduction::template identity<T>();
    UNROLL for (int i = FEW ? 0 : lane_id(); i < WARPS_OF_GROUP; i += FEW ? 1 : WARP)
        total = Reduction::combine(total, results[i]);
    return FEW ? total : warp_reduce<Reduction>(total);
}

template <class T> __device__ const Part<T> *share_parts(T sum, T distances, int count, int turn)
{
    const T total = warp_reduce<Sum>(sum);
    const int elements = warp_reduce<Sum>(count);
    const T mean = mean_of(total, elements);
    distances = warp_reduce<Sum>(distances + around_centre(sum, count, mean));
    return share_result(Part<T>{total, distances}, turn);
}

template <class T> __device__ T row_sum(const Part<T> *parts)
{
    T total = 0;
    UNROLL for (int i = FEW ? 0 : lane_id(); i < WARPS_OF_GROUP; i += FEW ? 1 : WARP)
        total += parts[i].sum;
    return FEW ? total : warp_reduce<Sum>(total);
}

// How many of the row's elements a warp has; all have some, since more than one vector of each thread is the row's.
template <class I> __device__ int elements_of_warp(int warp, I shift)
{
    constexpr int WIDTH = WARP * VECTOR;   // of its vectors at each STEP
    const I left = COLUMNS + shift - warp * WIDTH;
    return static_cast<int>(left / STEP * WIDTH + op_min<I>(left % STEP, WIDTH) - (warp == 0 ? shift : 0));
}

template <class T, class I> __device__ T row_distances(const Part<T> *parts, T centre, I shift)
{
    T total = 0;
    UNROLL for (int i = FEW ? 0 : lane_id(); i < WARPS_OF_GROUP; i += FEW ? 1 : WARP)
        total += parts[i].distances + around_centre(parts[i].sum, elements_of_warp(i, shift), centre);
    return FEW ? total : warp_reduce<Sum>(total);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS_PER_SM) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    if (CLUSTER > 1)
        cluster_arrive();
    const int thread = (int)((Index)blockIdx.x % CLUSTER) * THREADS + (int)threadIdx.x;
    const int lane = thread % GROUP;
    const Index first = (Index)blockIdx.x / CLUSTER * ROWS_OF_GROUP * ROWS_OF_BLOCK;   // of the block
    // A row that is no whole vectors begins within its first one, where the tensors are aligned.
    copy_ahead(t, first, lane * VECTOR - shift_of(first));
    for (int made = 0; made < ROWS_OF_GROUP && (made == 0 || first + made * ROWS_OF_BLOCK < ROWS); ++made) {
        const Index own = first + made * ROWS_OF_BLOCK + thread / GROUP;
        const Index own_row = own / ROWS_APART * (ROWS_APART * ROWS_TOGETHER) + own % ROWS_APART;
        const bool active = own_row < ROWS;   // else the group takes part in barriers and shuffles, and stores nothing
        const Index row = op_min<Index>(own_row, ROWS - 1);
        compute(t, row, lane * VECTOR - shift_of(row), active, made);
    }
}
}   // namespace KERNEL
#undef PARAMETERS
#undef TENSORS

#ifndef __CUDACC_RTC__
extern "C" size_t layer_norm_workspace(void)
{
    return 0;
}

// in0: x[16384, 1024], f16
// in1: gamma[1024], f32
// in2: beta[1024], f32
// out0: y[16384, 1024], f16
extern "C" int layer_norm_launch(const void *in0, const void *in1, const void *in2, void *out0, void *workspace, void *stream)
{
    if (((size_t)in0 | (size_t)in1 | (size_t)in2 | (size_t)out0) % 16 != 0)
        return cudaErrorInvalidValue;
    (void)workspace;
    cudaError_t status = cudaSuccess;
    {   // layer_norm_k0
        const void *a0 = in0;
        const void *a1 = in1;
        const void *a2 = in2;
        const void *a3 = out0;
        void *args[] = {&a0, &a1, &a2, &a3};
        status = cudaLaunchKernel(layer_norm_k0_scope::layer_norm_k0, dim3(16384, 1, 1), dim3(32, 1, 1), args,
                                  0, (cudaStream_t)stream);
        if (status != cudaSuccess)
            return (int)status;
    }
    return (int)status;
}
#endif
