//rollerc: {"schema":1,"name":"bn_backward_mask_nhwc","device":"a100","workspace":802816,"args":[{"name":"dy","role":"input","dtype":"f16","shape":[64,56,56,256]},{"name":"mask","role":"input","dtype":"b1","shape":[64,56,56,256]},{"name":"x","role":"input","dtype":"f16","shape":[64,56,56,256]},{"name":"mean","role":"input","dtype":"f32","shape":[256]},{"name":"inv","role":"input","dtype":"f32","shape":[256]},{"name":"gamma","role":"input","dtype":"f32","shape":[256]},{"name":"dx","role":"output","dtype":"f16","shape":[64,56,56,256]},{"name":"dz","role":"output","dtype":"f16","shape":[64,56,56,256]},{"name":"dgamma","role":"output","dtype":"f32","shape":[256]},{"name":"dbeta","role":"output","dtype":"f32","shape":[256]}],"launches":[{"kernel":"bn_backward_mask_nhwc_k0","grid":[1568,1,1],"block":[256,1,1],"shared":16896,"cooperative":false,"args":[{"arg":0},{"arg":1},{"arg":2},{"arg":3},{"arg":4},{"workspace":0},{"workspace":401408}]},{"kernel":"bn_backward_mask_nhwc_k1","grid":[256,1,1],"block":[64,1,1],"shared":16,"cooperative":false,"args":[{"workspace":0},{"workspace":401408},{"arg":9},{"arg":8}]},{"kernel":"bn_backward_mask_nhwc_k2","grid":[3136,1,1],"block":[256,1,1],"shared":0,"cooperative":false,"args":[{"arg":0},{"arg":1},{"arg":2},{"arg":3},{"arg":4},{"arg":5},{"arg":9},{"arg":8},{"arg":7},{"arg":6}]}]}
//
// bn_backward_mask_nhwc, constructed by rollerc 0.1.0 for the device a100. What it computes:
//
//   input dy[64, 56, 56, 256] : f16
//   input mask[64, 56, 56, 256] : b1
//   input x[64, 56, 56, 256] : f16
//   input mean[256] : f32
//   input inv[256] : f32
//   input gamma[256] : f32
//   dz[n:64, h:56, v:56, c:256] : f16 = select(mask[n, h, v, c], dy[n, h, v, c], 0)
//   xhat[n:64, h:56, v:56, c:256] : f32 = mul(sub(x[n, h, v, c], mean[c]), inv[c])
//   dbeta[c:256] : f32 = sum[n:64, h:56, v:56] dz[n, h, v, c]
//   dgamma[c:256] : f32 = sum[n:64, h:56, v:56] mul(dz[n, h, v, c], xhat[n, h, v, c])
//   dx[n:64, h:56, v:56, c:256] : f16 = mul(mul(gamma[c], inv[c]), sub(dz[n, h, v, c], div(add(dbeta[c], mul(xhat[n, h, v, c], dgamma[c])), 200704)))
//   output dx[64, 56, 56, 256] : f16
//   output dz[64, 56, 56, 256] : f16
//   output dgamma[256] : f32
//   output dbeta[256] : f32
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

#ifdef ROLLERC_INTERP
#define UNROLL_4
#else
#define UNROLL_4 _Pragma("unroll 4")
#endif

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

// templates/prelude/bits.cuh:1
// ---- b1: element e is bit e % 32 of word e / 32 ----

// templates/prelude/bits.cuh:41
// N neighbouring bits, of one word.
template <int N> struct PackedBits {
    static_assert(32 % N == 0, "a group of bits lies in one word");
    unsigned word;

    template <class Index> __device__ __forceinline__ void load(const unsigned *words, Index index)
    {
        word = words[index / 32] >> (index % 32);
    }
    __device__ __forceinline__ bool operator[](int e) const { return word >> e & 1u; }
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

// templates/prelude/arithmetic.cuh:25
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
#define KERNEL bn_backward_mask_nhwc_k0_scope
#define ENTRY bn_backward_mask_nhwc_k0

// Column kernel: reductions over outer axes for every one of the inner positions (channels, where they are stored innermost),
// with pointwise steps before, between and after them, in one pass over memory.
//
// A thread owns VECTOR neighbouring channels and keeps POSITIONS_EACH positions of them in registers; LANES threads side by
// side make an access of a whole line, GROUPS of such rows share the positions:
//
//                 channels   lane 0   lane 1   …   lane LANES-1
//   position 0    group 0   [VECTOR] [VECTOR]  …  [VECTOR]
//   position 1    group 1   [VECTOR] [VECTOR]  …  [VECTOR]
//   …                                                              the groups take GROUPS positions at a time
//
// Results of a channel are combined down the groups: by shuffles inside a warp, through shared memory between warps. Where
// nothing is reduced, or elements are only added up, the block goes on in steps of GROUPS * POSITIONS_EACH positions. Where a
// block cannot hold all positions, SHARES of them may hold them together: all blocks of such a launch run at the same time, leave
// their results for each other, and meet.

namespace KERNEL {
using namespace rollerc;

// The results of a reduction over what all groups hold for this thread's channels, known to all of them. Reductions take turns
// at two places in shared memory, 0 and 1: by the time one is used again, all have read it.
template <class Reduction, class T, int COUNT> __device__ void reduce_columns(T (&value)[COUNT], int place);

// Of blocks that share the positions: leaves what reduce_columns() has left in all threads for the others, and after they have
// met takes what this thread's group is to combine of it, for reduce_columns(). `column` counts the channels of all slabs; every
// reduction has its turn, a place of its own. Squared distances are from the mean of each share, and become those from `centre`.
template <class T, class Index, int COUNT>
__device__ void leave_share(char *scratch, Index column, const T (&value)[COUNT], int turn, bool stores);
template <class Reduction, class T, class Index, int COUNT>
__device__ void reduce_shares(char *scratch, Index column, T (&value)[COUNT], int turn);
template <class T, class Index, int COUNT>
__device__ void reduce_share_distances(char *scratch, Index column, T (&distances)[COUNT], int turn, int turn_of_sum,
                                       const T (&centre)[COUNT]);

// The block's share of the positions; how many there are in one.
__device__ int own_share();
__device__ int positions_of_share(int share);

// Is there a position k steps of GROUPS behind `position`?
template <class Index> __device__ bool is_inside(Index position, int k);

// Of the positions from this thread's `position` on, how many of its next POSITIONS_EACH there are.
template <class Index> __device__ int positions_inside(Index position);

// <rollerc: parameters>   templates/channelwise.cu (totals) for bn_backward_mask_nhwc on a100, candidate 1 of 10
//
//   level          channel        slab    position
//   global             256         392         512   the problem
//   shared              64           1          64   1568 blocks, 3.63 waves, 16896 bytes
//   register             8           1           2   256 threads, about 57 registers
//
//   predicted 162.58 us, bound by dram (compute 16.55, shared 12.60, L2 32.84, DRAM 137.28)
//
using Index = int;
struct Tensors {
    const f16 *in0;   // dy[64, 56, 56, 256]
    const unsigned *in1;   // mask[64, 56, 56, 256], one bit an element
    const f16 *in2;   // x[64, 56, 56, 256]
    const float *in3;   // mean[256]
    const float *in4;   // inv[256]
    float *out0;   // chunks.0[256, 392]
    float *out1;   // chunks.1[256, 392]
};
#define PARAMETERS const f16 *__restrict__ in0, const unsigned *__restrict__ in1, const f16 *__restrict__ in2, const float *__restrict__ in3, const float *__restrict__ in4, float *__restrict__ out0, float *__restrict__ out1
#define TENSORS {in0, in1, in2, in3, in4, out0, out1}
constexpr int SHARED_BYTES = 16896;   // of a block
constexpr Index CHANNELS = 256;
constexpr Index POSITIONS = 512;
constexpr int LANES = 8;   // threads side by side
constexpr int GROUPS = 32;   // rows of them
constexpr int VECTOR = 8;   // neighbouring channels that a thread reads and writes at once
constexpr int POSITIONS_EACH = 2;   // of a thread
constexpr int SHARES = 1;   // blocks that hold all positions of their channels together
constexpr int MIN_BLOCKS_PER_SM = 0;   // that a unit's registers must suffice for; 0: the compiler chooses
constexpr int REDUCTIONS = 2;   // over the positions
constexpr long long SCRATCH_BYTES = 0;   // for what shares leave for each other
constexpr int RESULT_BYTES = 4;   // of the widest reduction
constexpr Index COLUMNS = 100352;   // channels of all slabs
constexpr bool BACKWARDS = false;   // the last blocks first: L2 may still hold what they read

// What is read once for a thread's channels.
struct Fixed {
    float x0[VECTOR];
    float x1[VECTOR];
};

__device__ __forceinline__ void load_fixed(const Tensors &t, Index slab, Index channel, Fixed &fixed)
{
    (void)t, (void)slab, (void)channel, (void)fixed;
    const Index i0 = channel;
    load_vector<VECTOR>(t.in3, i0, fixed.x0);
    load_vector<VECTOR>(t.in4, i0, fixed.x1);
}

// What the channels of one position read.
struct Inputs {
    PackedBits<VECTOR> x0;
    Packed<f16, VECTOR> x1;
    Packed<f16, VECTOR> x2;
};

__device__ __forceinline__ void load_elements(const Tensors &t, Index slab, Index channel, Index at, Inputs &in)
{
    (void)t, (void)slab, (void)channel, (void)at, (void)in;
    const Index i1 = slab;
    const Index i0 = channel;
    const Index i2 = at;
    in.x0.load(t.in1, i0 + i1 * 131072 + i2 * 256);
    in.x1.load(t.in0, i0 + i1 * 131072 + i2 * 256);
    in.x2.load(t.in2, i0 + i1 * 131072 + i2 * 256);
}

// What is carried from step to step.
struct Totals {
    float x1[VECTOR];
    float x3[VECTOR];
    __device__ __forceinline__ Totals()
    {
        UNROLL for (int e = 0; e < VECTOR; ++e) {
            x1[e] = Sum::identity<float>();
            x3[e] = Sum::identity<float>();
        }
    }
};

// A step of this thread's channels. Its position k is `position + k * GROUPS`.
__device__ __forceinline__ void compute(const Tensors &t, Index slab, Index channel, Index position, bool,
                                        const Fixed &fixed, const Inputs (&inputs)[POSITIONS_EACH], Totals &totals)
{
    (void)t, (void)slab, (void)channel, (void)fixed;
    const Index i1 = slab;
    const Index i0 = channel;
    (void)i0;
    (void)i1;
    UNROLL for (int k = 0; k < POSITIONS_EACH; ++k) {
        const bool within = is_inside(position, k);
        const Index at = within ? position + k * GROUPS : 0;
        const Inputs &in = inputs[k];
        (void)in, (void)at;
        float v0[VECTOR];
        UNROLL for (int e = 0; e < VECTOR; ++e)
            v0[e] = (in.x0[e] ? in.x1[e] : 0.0f);
        float v2[VECTOR];
        UNROLL for (int e = 0; e < VECTOR; ++e)
            v2[e] = op_mul(op_sub(in.x2[e], fixed.x0[e]), fixed.x1[e]);
        UNROLL for (int e = 0; within && e < VECTOR; ++e)
            totals.x1[e] = Sum::combine(totals.x1[e], v0[e]);
        UNROLL for (int e = 0; within && e < VECTOR; ++e)
            totals.x3[e] = Sum::combine(totals.x3[e], op_mul(v0[e], v2[e]));
    }
}

// What is made of the totals, which are those of positions `position`, `position + GROUPS`, …
__device__ __forceinline__ void finish(const Tensors &t, Index slab, Index channel, Index position, bool stores,
                                       const Fixed &fixed, const Totals &totals)
{
    (void)t, (void)slab, (void)channel, (void)fixed;
    const Index i1 = slab;
    const Index i0 = channel;
    (void)i0;
    (void)i1;
    float total1[VECTOR];
    UNROLL for (int e = 0; e < VECTOR; ++e)
        total1[e] = totals.x1[e];
    reduce_columns<Sum>(total1, 0);
    float v1[VECTOR];
    UNROLL for (int e = 0; e < VECTOR; ++e)
        v1[e] = total1[e];
    float total3[VECTOR];
    UNROLL for (int e = 0; e < VECTOR; ++e)
        total3[e] = totals.x3[e];
    reduce_columns<Sum>(total3, 1);
    float v3[VECTOR];
    UNROLL for (int e = 0; e < VECTOR; ++e)
        v3[e] = total3[e];
    UNROLL for (int e = 0; stores && position == 0 && e < VECTOR; ++e)
        store(t.out0, (i0 + e) * 392 + i1, v1[e]);
    UNROLL for (int e = 0; stores && position == 0 && e < VECTOR; ++e)
        store(t.out1, (i0 + e) * 392 + i1, v3[e]);
}
// </rollerc>
// templates/channelwise.cu:113

constexpr int THREADS = LANES * GROUPS;
constexpr int TILE = LANES * VECTOR;                              // channels of a block
constexpr Index TILES = (CHANNELS + TILE - 1) / TILE;
constexpr int GROUPS_OF_WARP = (WARP + LANES - 1) / LANES;        // that shuffles combine
constexpr int PARTIALS = (GROUPS + GROUPS_OF_WARP - 1) / GROUPS_OF_WARP;
constexpr Index STEP = GROUPS * POSITIONS_EACH;                   // positions
constexpr bool EVEN = POSITIONS % STEP == 0;                      // every step is a whole one
static_assert(THREADS % WARP == 0, "whole warps");
static_assert((LANES & (LANES - 1)) == 0, "groups lie at the same lanes of every warp");
static_assert(CHANNELS % VECTOR == 0, "channels are whole vectors");

constexpr int PLACE_BYTES = (PARTIALS + 1) * TILE * RESULT_BYTES;   // one row for each warp's groups, one for the totals
static_assert(REDUCTIONS == 0 || PARTIALS == 1 || 2 * PLACE_BYTES <= SHARED_BYTES, "both places have room");
static_assert(SHARES == 1 || 1ll * REDUCTIONS * SHARES * COLUMNS * RESULT_BYTES <= SCRATCH_BYTES, "what shares leave fits");

template <class Reduction, class T, int COUNT> __device__ void reduce_columns(T (&value)[COUNT], int place)
{
    UNROLL for (int e = 0; e < COUNT; ++e)
        for (int mask = LANES; mask < WARP; mask *= 2)
            value[e] = Reduction::combine(value[e], warp_shuffle_xor(value[e], mask));
    if (PARTIALS == 1)
        return;
    SHARED(place * PLACE_BYTES, T, partial, [PARTIALS + 1][TILE]);
    const int thread = (int)threadIdx.x, lane = thread % LANES, group = thread / LANES;
    if (group % GROUPS_OF_WARP == 0)
        UNROLL for (int e = 0; e < COUNT; ++e)
            partial[group / GROUPS_OF_WARP][lane * VECTOR + e] = value[e];
    block_sync();
    for (int channel = thread; channel < TILE; channel += THREADS) {
        T total = partial[0][channel];
        UNROLL for (int i = 1; i < PARTIALS; ++i)
            total = Reduction::combine(total, partial[i][channel]);
        partial[PARTIALS][channel] = total;
    }
    block_sync();
    UNROLL for (int e = 0; e < COUNT; ++e)
        value[e] = partial[PARTIALS][lane * VECTOR + e];
}

__device__ int own_share() { return (int)blockIdx.x % SHARES; }

__device__ int positions_of_share(int share)
{
    return static_cast<int>(op_min<Index>(POSITIONS - share * STEP, STEP));
}

// What a share has left of a channel's reduction.
//
//   scratch    turn 0: share 0 [COLUMNS], share 1 [COLUMNS], …    turn 1: …
template <class T> __device__ T *share_at(char *scratch, int turn, int share)
{
    return reinterpret_cast<T *>(scratch + turn * SHARES * COLUMNS * RESULT_BYTES) + share * COLUMNS;
}

template <class T, class I, int COUNT>
__device__ void leave_share(char *scratch, I column, const T (&value)[COUNT], int turn, bool stores)
{
    if (stores && (int)threadIdx.x < LANES)
        store_vector<COUNT>(share_at<T>(scratch, turn, own_share()), column, value);
}

template <class Reduction, class T, class I, int COUNT>
__device__ void reduce_shares(char *scratch, I column, T (&value)[COUNT], int turn)
{
    UNROLL for (int e = 0; e < COUNT; ++e)
        value[e] = Reduction::template identity<T>();
    UNROLL_4 for (int share = (int)threadIdx.x / LANES; share < SHARES; share += GROUPS) {
        T other[COUNT];
        load_vector<COUNT>(share_at<T>(scratch, turn, share), column, other);
        UNROLL for (int e = 0; e < COUNT; ++e)
            value[e] = Reduction::combine(value[e], other[e]);
    }
}

template <class T, class I, int COUNT>
__device__ void reduce_share_distances(char *scratch, I column, T (&distances)[COUNT], int turn, int turn_of_sum,
                                       const T (&centre)[COUNT])
{
    UNROLL for (int e = 0; e < COUNT; ++e)
        distances[e] = 0;
    UNROLL_4 for (int share = (int)threadIdx.x / LANES; share < SHARES; share += GROUPS) {
        T own[COUNT], sum[COUNT];
        load_vector<COUNT>(share_at<T>(scratch, turn, share), column, own);
        load_vector<COUNT>(share_at<T>(scratch, turn_of_sum, share), column, sum);
        UNROLL for (int e = 0; e < COUNT; ++e)
            distances[e] += own[e] + around_centre(sum[e], positions_of_share(share), centre[e]);
    }
}

template <class I> __device__ bool is_inside(I position, int k)
{
    return EVEN || position + k * GROUPS < POSITIONS;
}

template <class I> __device__ int positions_inside(I position)
{
    if (EVEN)
        return POSITIONS_EACH;
    const I left = (POSITIONS - position + GROUPS - 1) / GROUPS;   // a group begins less than GROUPS behind the last one
    return static_cast<int>(op_min(left, static_cast<I>(POSITIONS_EACH)));
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS_PER_SM) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const Index group = (Index)threadIdx.x / LANES, lane = (Index)threadIdx.x % LANES;
    const Index block = BACKWARDS ? (Index)(gridDim.x - 1 - blockIdx.x) : (Index)blockIdx.x;
    const Index share = own_share(), tile = block / SHARES % TILES, slab = block / SHARES / TILES;
    const Index own_channel = tile * TILE + lane * VECTOR;
    const bool active = own_channel < CHANNELS;   // else the thread only takes part in barriers and shuffles
    const Index channel = active ? own_channel : CHANNELS - VECTOR;

    Fixed fixed;
    load_fixed(t, slab, channel, fixed);
    Totals totals;
    for (Index first = share * STEP; first < POSITIONS; first += SHARES * STEP) {
        const Index position = first + group;
        Inputs inputs[POSITIONS_EACH];
        UNROLL for (int k = 0; k < POSITIONS_EACH; ++k)   // past the last one: another, so that no load waits for a branch
            load_elements(t, slab, channel, is_inside(position, k) ? position + k * GROUPS : first, inputs[k]);
        compute(t, slab, channel, position, active, fixed, inputs, totals);
    }
    finish(t, slab, channel, group, active, fixed, totals);
}
}   // namespace KERNEL
#undef PARAMETERS
#undef TENSORS

#undef KERNEL
#undef ENTRY
#define KERNEL bn_backward_mask_nhwc_k1_scope
#define ENTRY bn_backward_mask_nhwc_k1

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

// <rollerc: parameters>   templates/rowwise.cu (block) for bn_backward_mask_nhwc on a100, candidate 1 of 10
//
//   level              row      column
//   global             256         512   the problem
//   shared               1         512   256 blocks, 0.09 waves, 16 bytes
//   register             1           8   64 threads, about 38 registers
//
//   predicted 5.34 us, bound by launch (compute 0.08, shared 0.07, L2 0.23, DRAM 0.65)
//
using Index = int;
struct Tensors {
    const float *in0;   // chunks.0[256, 392]
    const float *in1;   // chunks.1[256, 392]
    float *out0;   // dbeta[256]
    float *out1;   // dgamma[256]
};
#define PARAMETERS const float *__restrict__ in0, const float *__restrict__ in1, float *__restrict__ out0, float *__restrict__ out1
#define TENSORS {in0, in1, out0, out1}
constexpr int SHARED_BYTES = 16;   // of a block
constexpr Index ROWS = 256, COLUMNS = 392;
constexpr int GROUP = 64;   // threads of a row
constexpr int CLUSTER = 1;   // blocks of a group
constexpr int ROWS_OF_BLOCK = 1;   // groups
constexpr int ROWS_OF_GROUP = 1;   // which it makes one after the other
constexpr int ROWS_TOGETHER = 1;   // and at the same time, so that what is the same for every row is read once
constexpr Index ROWS_APART = 1;   // from one of them to the next, which begins alike
constexpr int TURNS = 2;   // reductions of a row
constexpr int RESULT_BYTES = 4;   // of the widest one, and a warp
constexpr int PARTIAL_BYTES = 16;   // of shared memory, for what warps leave; copies of rows lie behind it
constexpr int MIN_BLOCKS_PER_SM = 0;   // that a unit's registers must suffice for; 0: the compiler chooses
constexpr int VECTOR = 4;   // neighbouring elements that a thread reads and writes at once
constexpr int VECTORS = 2;   // of a thread
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
    Packed<float, VECTOR> x0;
    Packed<float, VECTOR> x1;
};

__device__ __forceinline__ void load_elements(const Tensors &t, Index row, Index at, Inputs &in)
{
    (void)t, (void)row, (void)at, (void)in;
    const Index i0 = row;
    const Index i1 = at;
    in.x0.load(t.in0, i0 * 392 + i1);
    in.x1.load(t.in1, i0 * 392 + i1);
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
    float total1 = Sum::identity<float>();
    UNROLL for (int k = 0; k < VECTORS; ++k)
        if (begins_inside(column, k)) {
            const Inputs &in = inputs[k];
            float terms0[VECTOR];
            UNROLL for (int e = 0; e < VECTOR; ++e)
                terms0[e] = in.x0[e];
            total0 = Sum::combine(total0, reduce_vector<Sum>(terms0));
            float terms1[VECTOR];
            UNROLL for (int e = 0; e < VECTOR; ++e)
                terms1[e] = in.x1[e];
            total1 = Sum::combine(total1, reduce_vector<Sum>(terms1));
        }
    const float v0 = reduce_row<Sum>(total0, TURNS * made);
    if (stores && column <= 0)
        store(t.out0, i0, v0);
    const float v1 = reduce_row<Sum>(total1, 1 + TURNS * made);
    if (stores && column <= 0)
        store(t.out1, i0, v1);
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

#undef KERNEL
#undef ENTRY
#define KERNEL bn_backward_mask_nhwc_k2_scope
#define ENTRY bn_backward_mask_nhwc_k2

// Column kernel: reductions over outer axes for every one of the inner positions (channels, where they are stored innermost),
// with pointwise steps before, between and after them, in one pass over memory.
//
// A thread owns VECTOR neighbouring channels and keeps POSITIONS_EACH positions of them in registers; LANES threads side by
// side make an access of a whole line, GROUPS of such rows share the positions:
//
//                 channels   lane 0   lane 1   …   lane LANES-1
//   position 0    group 0   [VECTOR] [VECTOR]  …  [VECTOR]
//   position 1    group 1   [VECTOR] [VECTOR]  …  [VECTOR]
//   …                                                              the groups take GROUPS positions at a time
//
// Results of a channel are combined down the groups: by shuffles inside a warp, through shared memory between warps. Where
// nothing is reduced, or elements are only added up, the block goes on in steps of GROUPS * POSITIONS_EACH positions. Where a
// block cannot hold all positions, SHARES of them may hold them together: all blocks of such a launch run at the same time, leave
// their results for each other, and meet.

namespace KERNEL {
using namespace rollerc;

// The results of a reduction over what all groups hold for this thread's channels, known to all of them. Reductions take turns
// at two places in shared memory, 0 and 1: by the time one is used again, all have read it.
template <class Reduction, class T, int COUNT> __device__ void reduce_columns(T (&value)[COUNT], int place);

// Of blocks that share the positions: leaves what reduce_columns() has left in all threads for the others, and after they have
// met takes what this thread's group is to combine of it, for reduce_columns(). `column` counts the channels of all slabs; every
// reduction has its turn, a place of its own. Squared distances are from the mean of each share, and become those from `centre`.
template <class T, class Index, int COUNT>
__device__ void leave_share(char *scratch, Index column, const T (&value)[COUNT], int turn, bool stores);
template <class Reduction, class T, class Index, int COUNT>
__device__ void reduce_shares(char *scratch, Index column, T (&value)[COUNT], int turn);
template <class T, class Index, int COUNT>
__device__ void reduce_share_distances(char *scratch, Index column, T (&distances)[COUNT], int turn, int turn_of_sum,
                                       const T (&centre)[COUNT]);

// The block's share of the positions; how many there are in one.
__device__ int own_share();
__device__ int positions_of_share(int share);

// Is there a position k steps of GROUPS behind `position`?
template <class Index> __device__ bool is_inside(Index position, int k);

// Of the positions from this thread's `position` on, how many of its next POSITIONS_EACH there are.
template <class Index> __device__ int positions_inside(Index position);

// <rollerc: parameters>   templates/channelwise.cu (elements) for bn_backward_mask_nhwc on a100, candidate 1 of 10
//
//   level          channel        slab    position
//   global             256        3136          64   the problem
//   shared             256           1          32   3136 blocks, 14.52 waves, 0 bytes
//   register             8           1           4   256 threads, about 97 registers
//
//   predicted 288.67 us, bound by dram (compute 24.71, shared 18.04, L2 60.93, DRAM 269.24)
//
using Index = int;
struct Tensors {
    const f16 *in0;   // dy[64, 56, 56, 256]
    const unsigned *in1;   // mask[64, 56, 56, 256], one bit an element
    const f16 *in2;   // x[64, 56, 56, 256]
    const float *in3;   // mean[256]
    const float *in4;   // inv[256]
    const float *in5;   // gamma[256]
    const float *in6;   // dbeta[256]
    const float *in7;   // dgamma[256]
    f16 *out0;   // dz[64, 56, 56, 256]
    f16 *out1;   // dx[64, 56, 56, 256]
};
#define PARAMETERS const f16 *__restrict__ in0, const unsigned *__restrict__ in1, const f16 *__restrict__ in2, const float *__restrict__ in3, const float *__restrict__ in4, const float *__restrict__ in5, const float *__restrict__ in6, const float *__restrict__ in7, f16 *__restrict__ out0, f16 *__restrict__ out1
#define TENSORS {in0, in1, in2, in3, in4, in5, in6, in7, out0, out1}
constexpr int SHARED_BYTES = 0;   // of a block
constexpr Index CHANNELS = 256;
constexpr Index POSITIONS = 64;
constexpr int LANES = 32;   // threads side by side
constexpr int GROUPS = 8;   // rows of them
constexpr int VECTOR = 8;   // neighbouring channels that a thread reads and writes at once
constexpr int POSITIONS_EACH = 4;   // of a thread
constexpr int SHARES = 1;   // blocks that hold all positions of their channels together
constexpr int MIN_BLOCKS_PER_SM = 0;   // that a unit's registers must suffice for; 0: the compiler chooses
constexpr int REDUCTIONS = 0;   // over the positions
constexpr long long SCRATCH_BYTES = 0;   // for what shares leave for each other
constexpr int RESULT_BYTES = 4;   // of the widest reduction
constexpr Index COLUMNS = 802816;   // channels of all slabs
constexpr bool BACKWARDS = true;   // the last blocks first: L2 may still hold what they read

// What is read once for a thread's channels.
struct Fixed {
    float x0[VECTOR];
    float x1[VECTOR];
    float x2[VECTOR];
    float x3[VECTOR];
    float x4[VECTOR];
};

__device__ __forceinline__ void load_fixed(const Tensors &t, Index slab, Index channel, Fixed &fixed)
{
    (void)t, (void)slab, (void)channel, (void)fixed;
    const Index i0 = channel;
    load_vector<VECTOR>(t.in3, i0, fixed.x0);
    load_vector<VECTOR>(t.in4, i0, fixed.x1);
    load_vector<VECTOR>(t.in5, i0, fixed.x2);
    load_vector<VECTOR>(t.in6, i0, fixed.x3);
    load_vector<VECTOR>(t.in7, i0, fixed.x4);
}

// What the channels of one position read.
struct Inputs {
    PackedBits<VECTOR> x0;
    Packed<f16, VECTOR> x1;
    Packed<f16, VECTOR> x2;
};

__device__ __forceinline__ void load_elements(const Tensors &t, Index slab, Index channel, Index at, Inputs &in)
{
    (void)t, (void)slab, (void)channel, (void)at, (void)in;
    const Index i1 = slab;
    const Index i0 = channel;
    const Index i2 = at;
    in.x0.load(t.in1, i0 + i1 * 16384 + i2 * 256);
    in.x1.load(t.in0, i0 + i1 * 16384 + i2 * 256);
    in.x2.load(t.in2, i0 + i1 * 16384 + i2 * 256);
}

// What is carried from step to step.
struct Totals {};

// This thread's channels, step by step. Its position k is `position + k * GROUPS`.
__device__ __forceinline__ void compute(const Tensors &t, Index slab, Index channel, Index position,
                                        bool stores, const Fixed &fixed, const Inputs (&inputs)[POSITIONS_EACH], Totals &)
{
    (void)t, (void)slab, (void)channel, (void)fixed;
    const Index i1 = slab;
    const Index i0 = channel;
    UNROLL for (int k = 0; k < POSITIONS_EACH; ++k) {
        const bool within = stores && is_inside(position, k);
        const Index at = within ? position + k * GROUPS : 0;
        const Inputs &in = inputs[k];
        (void)in, (void)at;
        const Index i2 = at;
        float v0[VECTOR];
        UNROLL for (int e = 0; e < VECTOR; ++e)
            v0[e] = (in.x0[e] ? in.x1[e] : 0.0f);
        float v1[VECTOR];
        UNROLL for (int e = 0; e < VECTOR; ++e)
            v1[e] = op_mul(op_sub(in.x2[e], fixed.x0[e]), fixed.x1[e]);
        float v2[VECTOR];
        UNROLL for (int e = 0; e < VECTOR; ++e)
            v2[e] = op_mul(op_mul(fixed.x2[e], fixed.x1[e]), op_sub(v0[e], divide_by(op_add(fixed.x3[e], op_mul(v1[e], fixed.x4[e])), 200704.0f)));
        if (within)
            store_vector<VECTOR>(t.out0, i0 + i1 * 16384 + i2 * 256, v0);
        if (within)
            store_vector<VECTOR>(t.out1, i0 + i1 * 16384 + i2 * 256, v2);
    }
}

// What is made of the totals.
__device__ __forceinline__ void finish(const Tensors &, Index, Index, Index, bool, const Fixed &, const Totals &) {}
// </rollerc>
// templates/channelwise.cu:113

constexpr int THREADS = LANES * GROUPS;
constexpr int TILE = LANES * VECTOR;                              // channels of a block
constexpr Index TILES = (CHANNELS + TILE - 1) / TILE;
constexpr int GROUPS_OF_WARP = (WARP + LANES - 1) / LANES;        // that shuffles combine
constexpr int PARTIALS = (GROUPS + GROUPS_OF_WARP - 1) / GROUPS_OF_WARP;
constexpr Index STEP = GROUPS * POSITIONS_EACH;                   // positions
constexpr bool EVEN = POSITIONS % STEP == 0;                      // every step is a whole one
static_assert(THREADS % WARP == 0, "whole warps");
static_assert((LANES & (LANES - 1)) == 0, "groups lie at the same lanes of every warp");
static_assert(CHANNELS % VECTOR == 0, "channels are whole vectors");

constexpr int PLACE_BYTES = (PARTIALS + 1) * TILE * RESULT_BYTES;   // one row for each warp's groups, one for the totals
static_assert(REDUCTIONS == 0 || PARTIALS == 1 || 2 * PLACE_BYTES <= SHARED_BYTES, "both places have room");
static_assert(SHARES == 1 || 1ll * REDUCTIONS * SHARES * COLUMNS * RESULT_BYTES <= SCRATCH_BYTES, "what shares leave fits");

template <class Reduction, class T, int COUNT> __device__ void reduce_columns(T (&value)[COUNT], int place)
{
    UNROLL for (int e = 0; e < COUNT; ++e)
        for (int mask = LANES; mask < WARP; mask *= 2)
            value[e] = Reduction::combine(value[e], warp_shuffle_xor(value[e], mask));
    if (PARTIALS == 1)
        return;
    SHARED(place * PLACE_BYTES, T, partial, [PARTIALS + 1][TILE]);
    const int thread = (int)threadIdx.x, lane = thread % LANES, group = thread / LANES;
    if (group % GROUPS_OF_WARP == 0)
        UNROLL for (int e = 0; e < COUNT; ++e)
            partial[group / GROUPS_OF_WARP][lane * VECTOR + e] = value[e];
    block_sync();
    for (int channel = thread; channel < TILE; channel += THREADS) {
        T total = partial[0][channel];
        UNROLL for (int i = 1; i < PARTIALS; ++i)
            total = Reduction::combine(total, partial[i][channel]);
        partial[PARTIALS][channel] = total;
    }
    block_sync();
    UNROLL for (int e = 0; e < COUNT; ++e)
        value[e] = partial[PARTIALS][lane * VECTOR + e];
}

__device__ int own_share() { return (int)blockIdx.x % SHARES; }

__device__ int positions_of_share(int share)
{
    return static_cast<int>(op_min<Index>(POSITIONS - share * STEP, STEP));
}

// What a share has left of a channel's reduction.
//
//   scratch    turn 0: share 0 [COLUMNS], share 1 [COLUMNS], …    turn 1: …
template <class T> __device__ T *share_at(char *scratch, int turn, int share)
{
    return reinterpret_cast<T *>(scratch + turn * SHARES * COLUMNS * RESULT_BYTES) + share * COLUMNS;
}

template <class T, class I, int COUNT>
__device__ void leave_share(char *scratch, I column, const T (&value)[COUNT], int turn, bool stores)
{
    if (stores && (int)threadIdx.x < LANES)
        store_vector<COUNT>(share_at<T>(scratch, turn, own_share()), column, value);
}

template <class Reduction, class T, class I, int COUNT>
__device__ void reduce_shares(char *scratch, I column, T (&value)[COUNT], int turn)
{
    UNROLL for (int e = 0; e < COUNT; ++e)
        value[e] = Reduction::template identity<T>();
    UNROLL_4 for (int share = (int)threadIdx.x / LANES; share < SHARES; share += GROUPS) {
        T other[COUNT];
        load_vector<COUNT>(share_at<T>(scratch, turn, share), column, other);
        UNROLL for (int e = 0; e < COUNT; ++e)
            value[e] = Reduction::combine(value[e], other[e]);
    }
}

template <class T, class I, int COUNT>
__device__ void reduce_share_distances(char *scratch, I column, T (&distances)[COUNT], int turn, int turn_of_sum,
                                       const T (&centre)[COUNT])
{
    UNROLL for (int e = 0; e < COUNT; ++e)
        distances[e] = 0;
    UNROLL_4 for (int share = (int)threadIdx.x / LANES; share < SHARES; share += GROUPS) {
        T own[COUNT], sum[COUNT];
        load_vector<COUNT>(share_at<T>(scratch, turn, share), column, own);
        load_vector<COUNT>(share_at<T>(scratch, turn_of_sum, share), column, sum);
        UNROLL for (int e = 0; e < COUNT; ++e)
            distances[e] += own[e] + around_centre(sum[e], positions_of_share(share), centre[e]);
    }
}

template <class I> __device__ bool is_inside(I position, int k)
{
    return EVEN || position + k * GROUPS < POSITIONS;
}

template <class I> __device__ int positions_inside(I position)
{
    if (EVEN)
        return POSITIONS_EACH;
    const I left = (POSITIONS - position + GROUPS - 1) / GROUPS;   // a group begins less than GROUPS behind the last one
    return static_cast<int>(op_min(left, static_cast<I>(POSITIONS_EACH)));
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS_PER_SM) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const Index group = (Index)threadIdx.x / LANES, lane = (Index)threadIdx.x % LANES;
    const Index block = BACKWARDS ? (Index)(gridDim.x - 1 - blockIdx.x) : (Index)blockIdx.x;
    const Index share = own_share(), tile = block / SHARES % TILES, slab = block / SHARES / TILES;
    const Index own_channel = tile * TILE + lane * VECTOR;
    const bool active = own_channel < CHANNELS;   // else the thread only takes part in barriers and shuffles
    const Index channel = active ? own_channel : CHANNELS - VECTOR;

    Fixed fixed;
    load_fixed(t, slab, channel, fixed);
    Totals totals;
    for (Index first = share * STEP; first < POSITIONS; first += SHARES * STEP) {
        const Index position = first + group;
        Inputs inputs[POSITIONS_EACH];
        UNROLL for (int k = 0; k < POSITIONS_EACH; ++k)   // past the last one: another, so that no load waits for a branch
            load_elements(t, slab, channel, is_inside(position, k) ? position + k * GROUPS : first, inputs[k]);
        compute(t, slab, channel, position, active, fixed, inputs, totals);
    }
    finish(t, slab, channel, group, active, fixed, totals);
}
}   // namespace KERNEL
#undef PARAMETERS
#undef TENSORS

#ifndef __CUDACC_RTC__
extern "C" size_t bn_backward_mask_nhwc_workspace(void)
{
    return 802816;
}

// in0: dy[64, 56, 56, 256], f16
// in1: mask[64, 56, 56, 256], b1
// in2: x[64, 56, 56, 256], f16
// in3: mean[256], f32
// in4: inv[256], f32
// in5: gamma[256], f32
// out0: dx[64, 56, 56, 256], f16
// out1: dz[64, 56, 56, 256], f16
// out2: dgamma[256], f32
// out3: dbeta[256], f32
extern "C" int bn_backward_mask_nhwc_launch(const void *in0, const void *in1, const void *in2, const void *in3, const void *in4, const void *in5, void *out0, void *out1, void *out2, void *out3, void *workspace, void *stream)
{
    if (((size_t)in0 | (size_t)in1 | (size_t)in2 | (size_t)in3 | (size_t)in4 | (size_t)in5 | (size_t)out0 | (size_t)out1 | (size_t)out2 | (size_t)out3) % 16 != 0 || !workspace || (size_t)workspace % 256 != 0)
        return cudaErrorInvalidValue;
    cudaError_t status = cudaSuccess;
    {   // bn_backward_mask_nhwc_k0
        const void *a0 = in0;
        const void *a1 = in1;
        const void *a2 = in2;
        const void *a3 = in3;
        const void *a4 = in4;
        const void *a5 = (char *)workspace + 0;
        const void *a6 = (char *)workspace + 401408;
        void *args[] = {&a0, &a1, &a2, &a3, &a4, &a5, &a6};
        status = cudaLaunchKernel(bn_backward_mask_nhwc_k0_scope::bn_backward_mask_nhwc_k0, dim3(1568, 1, 1), dim3(256, 1, 1), args,
                                  16896, (cudaStream_t)stream);
        if (status != cudaSuccess)
            return (int)status;
    }
    {   // bn_backward_mask_nhwc_k1
        const void *a0 = (char *)workspace + 0;
        const void *a1 = (char *)workspace + 401408;
        const void *a2 = out3;
        const void *a3 = out2;
        void *args[] = {&a0, &a1, &a2, &a3};
        status = cudaLaunchKernel(bn_backward_mask_nhwc_k1_scope::bn_backward_mask_nhwc_k1, dim3(256, 1, 1), dim3(64, 1, 1), args,
                                  16, (cudaStream_t)stream);
        if (status != cudaSuccess)
            return (int)status;
    }
    {   // bn_backward_mask_nhwc_k2
        const void *a0 = in0;
        const void *a1 = in1;
        const void *a2 = in2;
        const void *a3 = in3;
        const void *a4 = in4;
        const void *a5 = in5;
        const void *a6 = out3;
        const void *a7 = out2;
        const void *a8 = out1;
        const void *a9 = out0;
        void *args[] = {&a0, &a1, &a2, &a3, &a4, &a5, &a6, &a7, &a8, &a9};
        status = cudaLaunchKernel(bn_backward_mask_nhwc_k2_scope::bn_backward_mask_nhwc_k2, dim3(3136, 1, 1), dim3(256, 1, 1), args,
                                  0, (cudaStream_t)stream);
        if (status != cudaSuccess)
            return (int)status;
    }
    return (int)status;
}
#endif
