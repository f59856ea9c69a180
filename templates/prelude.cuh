// The prelude of every generated kernel: element types, scalar operations, and the few machine
// instructions in use.
//
// No headers: it compiles in milliseconds, with nvcc (sm_75 and later), NVRTC, HIP (gfx906 and later)
// and, when ROLLERC_INTERP is defined, as host C++: threadIdx, shuffles and barriers then come from a
// stand-in included before. Everything is static: two generated files link into one program.
#ifndef ROLLERC_PRELUDE
#define ROLLERC_PRELUDE

#if defined(__HIP__) && !defined(__HIPCC_RTC__)
#include <hip/hip_runtime.h>
#endif

#define DEVICE static __device__ __forceinline__

#ifdef ROLLERC_INTERP
#define UNROLL
#define UNROLL_4
#else
#define UNROLL _Pragma("unroll")
#define UNROLL_4 _Pragma("unroll 4")
#endif

// SHARED(0, float, As, [BK][BM + PAD]): the array `As` at byte 0 of the dynamic shared memory.
#ifndef ROLLERC_INTERP
extern __shared__ __align__(16) unsigned char rollerc_shared[];
#endif
#define SHARED(offset, Type, name, ...) \
    Type(&name) __VA_ARGS__ = *reinterpret_cast<Type(*) __VA_ARGS__>(rollerc_shared + (offset))

namespace rollerc {

// ---- threads ----

#if defined(ROLLERC_INTERP)

// The stand-in has them all.

#elif defined(__HIP__)

#ifdef __AMDGCN_WAVEFRONT_SIZE
constexpr int WARP = __AMDGCN_WAVEFRONT_SIZE;
#else
constexpr int WARP = 64;
#endif
using LaneMask = unsigned long long;   // bit i: lane i

DEVICE void block_sync() { __syncthreads(); }
DEVICE void warp_sync() { __builtin_amdgcn_wave_barrier(); }
DEVICE int lane_id() { return static_cast<int>(__lane_id()); }
DEVICE LaneMask warp_ballot(bool vote) { return __ballot(vote); }

template <class T> DEVICE T warp_shuffle(T value, int lane, int width = WARP)
{
    return __shfl(value, lane, width);
}
template <class T> DEVICE T warp_shuffle_xor(T value, int mask, int width = WARP)
{
    return __shfl_xor(value, mask, width);
}
template <class T> DEVICE T warp_shuffle_down(T value, int delta, int width = WARP)
{
    return __shfl_down(value, static_cast<unsigned>(delta), width);
}

#else

constexpr int WARP = 32;
using LaneMask = unsigned;
constexpr LaneMask ALL_LANES = 0xffffffffu;

DEVICE void block_sync() { __syncthreads(); }
DEVICE void warp_sync() { __syncwarp(ALL_LANES); }
DEVICE int lane_id()
{
    int lane = 0;
#ifdef __CUDA_ARCH__
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
#endif
    return lane;
}
DEVICE LaneMask warp_ballot(bool vote) { return __ballot_sync(ALL_LANES, vote); }

template <class T> DEVICE T warp_shuffle(T value, int lane, int width = WARP)
{
    return __shfl_sync(ALL_LANES, value, lane, width);
}
template <class T> DEVICE T warp_shuffle_xor(T value, int mask, int width = WARP)
{
    return __shfl_xor_sync(ALL_LANES, value, mask, width);
}
template <class T> DEVICE T warp_shuffle_down(T value, int delta, int width = WARP)
{
    return __shfl_down_sync(ALL_LANES, value, static_cast<unsigned>(delta), width);
}

#endif

// ---- blocks that run together ----
//
// A launch may put its blocks into clusters, which read and write each other's shared memory:
//
//   cluster_sync();                              // before the first access: they have all started
//   part[0] = total;                             // SHARED(…, part, …)
//   cluster_sync();
//   other = cluster_map(part, cluster_rank() ^ 1)[0];
//   cluster_sync();                              // before the end: none may go while others access it
//
// All threads of the cluster call cluster_sync(), or cluster_arrive() and later cluster_wait(). A launch without
// clusters, and a device that knows none, has clusters of one block. grid_sync() is for cooperative launches.
#if defined(ROLLERC_INTERP)

// The stand-in has them all.

#else

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

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

DEVICE void cluster_sync()
{
    cluster_arrive();
    cluster_wait();
}

#if defined(__HIP__)

DEVICE void grid_sync() { block_sync(); }   // no device of this dialect has cooperative launches: a grid is one block

#else

// The driver keeps a word for every cooperative launch, 4 bytes into its workspace (cooperative_groups/details/driver_abi.h
// of the toolkit). Each barrier adds 2^31 to it in all, so its highest bit flips when the last block has come:
//
//   block 0 adds 2^31 - (blocks - 1), every other block 1
DEVICE void grid_sync()
{
    block_sync();
#ifdef __CUDA_ARCH__
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
        unsigned high, low;
        asm("mov.u32 %0, %%envreg1;" : "=r"(high));
        asm("mov.u32 %0, %%envreg2;" : "=r"(low));
        unsigned *word = reinterpret_cast<unsigned *>(static_cast<unsigned long long>(high) << 32 | low) + 1;
        const bool first = blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0;
        const unsigned others = gridDim.x * gridDim.y * gridDim.z - 1;
        __threadfence();
        const unsigned before = atomicAdd(word, first ? 0x80000000u - others : 1u);
        while (!((before ^ *static_cast<volatile unsigned *>(word)) & 0x80000000u)) {
        }
        __threadfence();
    }
#endif
    block_sync();
}

#endif
#endif

// ---- element types: what stands in memory, and the compute type it is widened to ----

struct f16 { unsigned short bits; };    // 1 sign, 5 exponent, 10 fraction
struct bf16 { unsigned short bits; };   // 1 sign, 8 exponent, 7 fraction: the upper half of a float
struct alignas(16) bits128 { unsigned words[4]; };   // elements that are moved as they are

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
DEVICE float widen(float x) { return x; }
DEVICE double widen(double x) { return x; }
DEVICE int widen(signed char x) { return x; }
DEVICE int widen(unsigned char x) { return x; }
DEVICE int widen(unsigned short x) { return x; }
DEVICE int widen(int x) { return x; }
DEVICE long long widen(long long x) { return x; }
DEVICE bits128 widen(bits128 x) { return x; }

template <class T> using compute_type = decltype(widen(T()));

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
    else if (magnitude < 0x38800000u)    // below 2^-14: the last bit of 0.5f weighs 2^-24
        rounded = __float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3f000000u;
    else                                 // a carry may reach the exponent, up to infinity
        rounded = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    return static_cast<unsigned short>(sign | rounded);
}
DEVICE unsigned short bf16_bits_of(float x)
{
    const unsigned bits = __float_as_uint(x);
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const unsigned rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return static_cast<unsigned short>(is_nan ? bits >> 16 | 0x40u : rounded);
}

// A double on its way to 16 bits must be rounded once: the last bit of this float says whether
// anything was cut off.
DEVICE float round_to_odd(double x)
{
    const float nearest = static_cast<float>(x);
    const unsigned bits = __float_as_uint(nearest);
    if (x != x || static_cast<double>(nearest) == x || (bits & 1u))
        return nearest;
    const bool away = nearest < 0 ? nearest < x : nearest > x;   // beyond x, seen from zero
    return __uint_as_float(nearest == 0 ? (bits | 1u) : away ? bits - 1u : bits + 1u);
}

template <class T> struct Narrow {
    template <class V> DEVICE T from(V value) { return static_cast<T>(value); }   // integers wrap
};
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

template <class T, class V> DEVICE T narrow(V value) { return Narrow<T>::from(value); }

// What a reader of a stored T sees.
template <class T, class V> DEVICE compute_type<T> round_to(V value)
{
    return widen(narrow<T>(value));
}

// Between compute types; a real value becomes an integer by cast_int only.
template <class T, class V> DEVICE T convert(V value) { return static_cast<T>(value); }

template <class T> struct Integer;
template <> struct Integer<signed char> { static constexpr int LOW = -128, HIGH = 127; };
template <> struct Integer<unsigned char> { static constexpr int LOW = 0, HIGH = 255; };
template <> struct Integer<int> {
    using Unsigned = unsigned;
    static constexpr int LOW = -2147483647 - 1, HIGH = 2147483647;
};
template <> struct Integer<long long> {
    using Unsigned = unsigned long long;
    static constexpr long long LOW = -9223372036854775807LL - 1, HIGH = 9223372036854775807LL;
};

// Truncates; saturates to the range of T; NaN gives 0.
template <class T, class Real> DEVICE compute_type<T> cast_int(Real value)
{
    using Wide = compute_type<T>;
    if (value != value)
        return 0;
    if (value <= static_cast<Real>(Integer<T>::LOW))
        return static_cast<Wide>(Integer<T>::LOW);
    if (value >= static_cast<Real>(Integer<T>::HIGH))
        return static_cast<Wide>(Integer<T>::HIGH);
    return static_cast<Wide>(value);
}

// NVRTC knows no INFINITY.
template <class T> struct Special;
template <> struct Special<float> {
    DEVICE float infinity() { return __uint_as_float(0x7f800000u); }
    DEVICE float nan() { return __uint_as_float(0x7fffffffu); }
};
template <> struct Special<double> {
    DEVICE double infinity() { return __longlong_as_double(0x7ff0000000000000LL); }
    DEVICE double nan() { return __longlong_as_double(0x7fffffffffffffffLL); }
};
template <class T> DEVICE T infinity() { return Special<T>::infinity(); }
template <class T> DEVICE T nan_value() { return Special<T>::nan(); }

// ---- memory ----

// 0 <= index < extent: what `pad` asks before it reads.
template <class Index> DEVICE bool inside(Index index, long long extent)
{
    return index >= 0 && index < static_cast<Index>(extent);
}

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
    static constexpr int COUNT = N * sizeof(T) > 16 ? 16 / static_cast<int>(sizeof(T)) : N;
    static_assert((COUNT & (COUNT - 1)) == 0 && N % COUNT == 0, "a power of two of bytes");
    using type = Vector<T, COUNT>;
};

// One aligned access, or several of 16 bytes. p + index must be aligned to it.
template <int N, class T, class Index, class V>
DEVICE void load_vector(const T *p, Index index, V (&out)[N])
{
    using Piece = typename VectorShape<T, N>::type;
    constexpr int COUNT = VectorShape<T, N>::COUNT;
    const Piece *pieces = reinterpret_cast<const Piece *>(p + index);
    UNROLL for (int i = 0; i < N / COUNT; i++) {
        const Piece piece = pieces[i];
        UNROLL for (int j = 0; j < COUNT; j++)
            out[i * COUNT + j] = widen(piece.at[j]);
    }
}
template <int N, class T, class Index, class V>
DEVICE void store_vector(T *p, Index index, const V (&in)[N])
{
    using Piece = typename VectorShape<T, N>::type;
    constexpr int COUNT = VectorShape<T, N>::COUNT;
    Piece *pieces = reinterpret_cast<Piece *>(p + index);
    UNROLL for (int i = 0; i < N / COUNT; i++) {
        Piece piece;
        UNROLL for (int j = 0; j < COUNT; j++)
            piece.at[j] = narrow<T>(in[i * COUNT + j]);
        pieces[i] = piece;
    }
}

// Rows that are no whole vectors: of a vector that hangs over the end of its tensor, or over the ends of its row, only the
// elements inside are read, or written.
template <int N, class T, class Index, class V>
DEVICE void load_inside(const T *p, Index index, Index size, V (&out)[N])
{
    if (index + N <= size)
        load_vector<N>(p, index, out);
    else
        for (int i = 0; i < N; i++)
            out[i] = index + i < size ? load(p, index + i) : V();
}
template <int N, class T, class Index, class V>
DEVICE void store_inside(bool whole, T *p, Index index, Index column, Index columns, const V (&in)[N])
{
    if (whole)
        store_vector<N>(p, index, in);
    else
        UNROLL for (int i = 0; i < N; i++)
            if (inside(column + i, columns))
                store(p, index + i, in[i]);
}

// Asks L2 for what will be read later.
DEVICE void prefetch(const void *global)
{
#if defined(__CUDA_ARCH__)
    asm volatile("prefetch.global.L2 [%0];" : : "l"(global));
#else
    (void)global;
#endif
}

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

// Elements of less than a word that are moved by words.
template <class T> union Word {
    static constexpr int COUNT = sizeof(T) < 4 ? 4 / static_cast<int>(sizeof(T)) : 1;
    unsigned bits;
    T at[COUNT];
};

// N neighbours that may begin anywhere, held as they lie in memory: narrow ones in words that are shifted when an element
// is asked for, so that loads of several lines are under way together.
template <class T, int N, bool = (Word<T>::COUNT > 1 && N % Word<T>::COUNT == 0)> struct Line {
    T at[N];

    __device__ __forceinline__ compute_type<T> operator[](int i) const { return widen(at[i]); }
    __device__ __forceinline__ void set(int i, T element) { at[i] = element; }
    template <class Index> __device__ __forceinline__ void load(const T *p, Index first)
    {
        UNROLL for (int i = 0; i < N; i++)
            at[i] = p[first + i];
    }
};
template <class T, int N> struct Line<T, N, true> {
    static constexpr int COUNT = Word<T>::COUNT;
    unsigned words[N / COUNT + 1];
    unsigned selector;   // of the bytes of an element's word

    __device__ __forceinline__ compute_type<T> operator[](int i) const
    {
        Word<T> word;
        word.bits = byte_permute(words[i / COUNT], words[i / COUNT + 1], selector);
        return widen(word.at[i % COUNT]);
    }
    __device__ __forceinline__ void set(int i, T element)
    {
        Word<T> word;
        word.bits = words[i / COUNT];
        word.at[i % COUNT] = element;
        words[i / COUNT] = word.bits;
        selector = 0x3210u;
    }
    // All words that hold some of the elements are inside the tensor; p is aligned to a word.
    template <class Index> __device__ __forceinline__ void load(const T *p, Index first)
    {
        const unsigned *from = reinterpret_cast<const unsigned *>(p);
        UNROLL for (int i = 0; i < N / COUNT; i++)
            words[i] = from[first / COUNT + i];
        words[N / COUNT] = from[(first + (N - 1)) / COUNT];
        selector = 0x3210u + 0x1111u * static_cast<unsigned>(first % COUNT) * static_cast<unsigned>(sizeof(T));
    }
};

// COLUMNS x ROWS elements in registers, read column by column and written row by row.
template <class T, int COLUMNS, int ROWS, bool = sizeof(T) == 1 && COLUMNS % 4 == 0 && ROWS % 4 == 0>
struct Piece {
    T at[COLUMNS][ROWS];

    __device__ __forceinline__ void read(int column, const T *from) { move_vector<ROWS>(at[column], from); }
    __device__ __forceinline__ void set_word(int column, int i, unsigned bits)
    {
        Word<T> word;
        word.bits = bits;
        UNROLL for (int j = 0; j < Word<T>::COUNT && j < ROWS; j++)
            at[column][(i * Word<T>::COUNT + j) % ROWS] = word.at[j];
    }
    __device__ __forceinline__ void write(int row, T *to) const
    {
        T elements[COLUMNS];
        UNROLL for (int i = 0; i < COLUMNS; i++)
            elements[i] = at[i][row];
        move_vector<COLUMNS>(to, elements);
    }
};

// Bytes stay in words: 4 x 4 of them are turned by 8 permutations.
template <class T, int COLUMNS, int ROWS> struct Piece<T, COLUMNS, ROWS, true> {
    unsigned at[COLUMNS][ROWS / 4];

    __device__ __forceinline__ void read(int column, const T *from)
    {
        move_vector<ROWS / 4>(at[column], reinterpret_cast<const unsigned *>(from));
    }
    __device__ __forceinline__ void set_word(int column, int i, unsigned bits) { at[column][i] = bits; }
    __device__ __forceinline__ void write(int row, T *to) const
    {
        const unsigned pair = row % 4 < 2 ? 0x5140u : 0x7362u, both = row % 2 ? 0x7632u : 0x5410u;
        unsigned words[COLUMNS / 4];
        UNROLL for (int i = 0; i < COLUMNS / 4; i++) {
            const unsigned low = byte_permute(at[4 * i][row / 4], at[4 * i + 1][row / 4], pair);
            const unsigned high = byte_permute(at[4 * i + 2][row / 4], at[4 * i + 3][row / 4], pair);
            words[i] = byte_permute(low, high, both);
        }
        move_vector<COLUMNS / 4>(reinterpret_cast<unsigned *>(to), words);
    }
};

// WORDS words, the first of which begins `bytes` behind words[0]. The last one that holds some of them is words[WORDS], or
// stands at `last`.
template <int WORDS>
DEVICE void shift_words(unsigned (&out)[WORDS], const unsigned *words, const unsigned *last, unsigned bytes)
{
    const unsigned selector = 0x3210u + 0x1111u * bytes;
    unsigned low = words[0];
    UNROLL for (int i = 0; i < WORDS; i++) {
        const unsigned high = i + 1 < WORDS ? words[i + 1] : *last;
        out[i] = byte_permute(low, high, selector);
        low = high;
    }
}

// A column of whole words whose elements begin anywhere, `first` behind an address that is aligned to a word. Only words
// that hold some of them are read.
template <class T, int COLUMNS, int ROWS, class Index>
DEVICE void read_words(Piece<T, COLUMNS, ROWS> &piece, int column, const T *elements, Index first)
{
    using Unsigned = typename Integer<Index>::Unsigned;
    constexpr unsigned COUNT = Word<T>::COUNT;
    constexpr int WORDS = ROWS > Word<T>::COUNT ? ROWS / Word<T>::COUNT : 1;
    const Unsigned begin = static_cast<Unsigned>(first);
    const unsigned *words = reinterpret_cast<const unsigned *>(elements);
    unsigned shifted[WORDS];
    shift_words(shifted, words + begin / COUNT, words + (begin + (ROWS - 1)) / COUNT,
                static_cast<unsigned>(begin % COUNT) * static_cast<unsigned>(sizeof(T)));
    UNROLL for (int i = 0; i < WORDS; i++)
        piece.set_word(column, i, shifted[i]);
}

// b1: element e is bit e % 32 of word e / 32.
template <class Index> DEVICE bool load_bit(const unsigned *words, Index index)
{
    return words[index / 32] >> (index % 32) & 1u;
}
template <int N, class Index>
DEVICE void load_bits(const unsigned *words, Index index, bool (&out)[N])
{
    static_assert(32 % N == 0, "a group of bits lies in one word");
    const unsigned word = words[index / 32] >> (index % 32);
    UNROLL for (int i = 0; i < N; i++)
        out[i] = word >> i & 1u;
}

// All lanes of the warp call it; lane l holds the N bits after those of lane l - 1, and lanes together fill one word (or a
// narrower part of one, where a word's bits belong to several warps).
//
//   N = 8    lane 0: bits 0..7 | lane 1: 8..15 | lane 2: 16..23 | lane 3: 24..31   lane 0 writes
//
// Bits of lanes that are not active are zero; a word without an active lane is not written.
template <int N, class Word, class Index>
DEVICE void store_bits(Word *words, Index index, const bool (&in)[N], bool active)
{
    constexpr int BITS = 8 * sizeof(Word), LANES = BITS / N;
    static_assert(BITS % N == 0, "a group of bits lies in one word");
    const int lane = lane_id(), first = lane / LANES * LANES;
    const unsigned active_lanes =
        static_cast<unsigned>(warp_ballot(active) >> first) & (~0u >> (32 - LANES));
    unsigned word = 0;
    UNROLL for (int i = 0; i < N; i++)
        word |= static_cast<unsigned>(active && in[i]) << i;
    word <<= lane % LANES * N;
    UNROLL for (int mask = 1; mask < LANES; mask *= 2)
        word |= warp_shuffle_xor(word, mask);
    if (lane == first && active_lanes)
        words[index / BITS] = static_cast<Word>(word);
}

// Copies `valid_bytes` (0 to 16) and fills the rest of the 16 with zeros; both sides are aligned to
// 16. The copy may be under way until async_wait<N>(): all groups but the last N have then landed.
#if defined(ROLLERC_INTERP)

template <int N> DEVICE void async_wait() { async_wait_for(N); }   // the rest is in the stand-in

#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

DEVICE void async_copy16(void *shared, const void *global, int valid_bytes = 16)
{
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(target), "l"(global), "r"(valid_bytes)
                 : "memory");
}
DEVICE void async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

#else

DEVICE void async_copy16(void *shared, const void *global, int valid_bytes = 16)
{
    Vector<unsigned, 4> value = {};
    if (valid_bytes == 16)
        value = *static_cast<const Vector<unsigned, 4> *>(global);
    else
        for (int i = 0; i < valid_bytes; i++)
            reinterpret_cast<char *>(&value)[i] = static_cast<const char *>(global)[i];
    *static_cast<Vector<unsigned, 4> *>(shared) = value;
}
DEVICE void async_commit() {}
template <int N> DEVICE void async_wait() {}

#endif

// N elements, but those beyond the end of their tensor become zeros.
template <int N, class T, class Index> DEVICE void copy_inside(T *shared, const T *p, Index index, Index size)
{
    constexpr int COUNT = 16 / static_cast<int>(sizeof(T)), BYTES = static_cast<int>(sizeof(T));
    UNROLL for (int i = 0; i < N; i += COUNT) {
        const Index left = size - index - i;
        async_copy16(shared + i, p + index + i, left >= COUNT ? 16 : left > 0 ? static_cast<int>(left) * BYTES : 0);
    }
}

// ---- scalar operations (src/ir/ops.def): float, double, int, long long ----
// Integers wrap, and nothing traps.

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

// a / b for constants b whose reciprocal in float is off by at most 2^-25 (src/codegen/emit.c says why it is exact then,
// but for the last place of subnormal quotients).
DEVICE float divide_by(float a, float b)
{
    const float reciprocal = 1 / b, quotient = a * reciprocal;
    const float rest = fmaf(-quotient, b, a);   // NaN where a is infinite
    return rest == rest ? fmaf(rest, reciprocal, quotient) : quotient;
}

// N values divided by one. Correctly rounded like op_div, for a third of its instructions: with r = 1/b and q = a r, the
// remainder a - q b is exact, and q + r (a - q b) is the quotient rounded once (Markstein, IBM J. R&D 34(1), 1990).
// Where that leaves the ordinary numbers it ends in infinity or NaN, and those vectors are divided one by one.
struct Divisor {
    float value, reciprocal;
};
DEVICE Divisor divisor_of(float b) { return {b, op_div(1.0f, b)}; }

template <int N> DEVICE void divide_all(float (&a)[N], Divisor by)
{
#if defined(ROLLERC_FAST_MATH)
    UNROLL for (int i = 0; i < N; i++)
        a[i] *= by.reciprocal;
#else
    float quotient[N], zero = 0;
    UNROLL for (int i = 0; i < N; i++) {
        const float estimate = a[i] * by.reciprocal;
        quotient[i] = fmaf(fmaf(-estimate, by.value, a[i]), by.reciprocal, estimate);
        zero = fmaf(quotient[i], 0.0f, zero);
    }
    if (zero == 0)
        UNROLL for (int i = 0; i < N; i++)
            a[i] = quotient[i];
    else
        for (int i = 0; i < N; i++)
            a[i] = op_div(a[i], by.value);
#endif
}

template <class T> DEVICE T op_max(T a, T b) { return a > b ? a : b; }
template <class T> DEVICE T op_min(T a, T b) { return a < b ? a : b; }
DEVICE double op_max(double a, double b) { return a > b || a != a ? a : b; }   // NaN if either is
DEVICE double op_min(double a, double b) { return a < b || a != a ? a : b; }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE float op_max(float a, float b)
{
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
DEVICE float op_min(float a, float b)
{
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
#else
DEVICE float op_max(float a, float b) { return a > b || a != a ? a : b; }
DEVICE float op_min(float a, float b) { return a < b || a != a ? a : b; }
#endif
template <class T> DEVICE T op_relu(T a) { return op_max(a, static_cast<T>(0)); }

template <class T> DEVICE T op_abs(T a) { return a < 0 ? op_neg(a) : a; }
template <class T> DEVICE T op_floor(T a) { return a; }
template <class T> DEVICE T op_ceil(T a) { return a; }
DEVICE float op_abs(float a) { return fabsf(a); }
DEVICE float op_floor(float a) { return floorf(a); }
DEVICE float op_ceil(float a) { return ceilf(a); }
DEVICE double op_abs(double a) { return fabs(a); }
DEVICE double op_floor(double a) { return floor(a); }
DEVICE double op_ceil(double a) { return ceil(a); }

#if defined(ROLLERC_FAST_MATH)
DEVICE float op_exp(float a) { return __expf(a); }
DEVICE float op_log(float a) { return __logf(a); }
#else
DEVICE float op_exp(float a) { return expf(a); }
DEVICE float op_log(float a) { return logf(a); }
#endif
DEVICE float op_sqrt(float a) { return sqrtf(a); }
DEVICE float op_rsqrt(float a) { return rsqrtf(a); }
DEVICE float op_tanh(float a) { return tanhf(a); }
DEVICE float op_erf(float a) { return erff(a); }
DEVICE float op_sigmoid(float a) { return op_div(1.0f, 1.0f + op_exp(-a)); }
DEVICE float op_sin(float a) { return sinf(a); }
DEVICE float op_cos(float a) { return cosf(a); }
DEVICE float op_pow(float a, float b) { return powf(a, b); }

DEVICE double op_exp(double a) { return exp(a); }
DEVICE double op_log(double a) { return log(a); }
DEVICE double op_sqrt(double a) { return sqrt(a); }
DEVICE double op_rsqrt(double a) { return rsqrt(a); }
DEVICE double op_tanh(double a) { return tanh(a); }
DEVICE double op_erf(double a) { return erf(a); }
DEVICE double op_sigmoid(double a) { return op_div(1.0, 1.0 + op_exp(-a)); }
DEVICE double op_sin(double a) { return sin(a); }
DEVICE double op_cos(double a) { return cos(a); }
DEVICE double op_pow(double a, double b) { return pow(a, b); }

// ---- reductions ----

template <class T> struct Range {
    DEVICE T lowest() { return Integer<T>::LOW; }
    DEVICE T highest() { return Integer<T>::HIGH; }
};
template <> struct Range<float> {
    DEVICE float lowest() { return -infinity<float>(); }
    DEVICE float highest() { return infinity<float>(); }
};
template <> struct Range<double> {
    DEVICE double lowest() { return -infinity<double>(); }
    DEVICE double highest() { return infinity<double>(); }
};

struct Sum {
    template <class T> DEVICE T identity() { return 0; }
    template <class T> DEVICE T combine(T a, T b) { return op_add(a, b); }
};
struct Prod {
    template <class T> DEVICE T identity() { return 1; }
    template <class T> DEVICE T combine(T a, T b) { return op_mul(a, b); }
};
struct Max {
    template <class T> DEVICE T identity() { return Range<T>::lowest(); }
    template <class T> DEVICE T combine(T a, T b) { return op_max(a, b); }
};
struct Min {
    template <class T> DEVICE T identity() { return Range<T>::highest(); }
    template <class T> DEVICE T combine(T a, T b) { return op_min(a, b); }
};

// N values, a power of two, as a tree: 0+4 1+5 2+6 3+7, then their sums.
template <class Reduction, class T, int N> DEVICE T reduce_vector(T (&x)[N])
{
    static_assert((N & (N - 1)) == 0, "halves");
    UNROLL for (int half = N / 2; half > 0; half /= 2)
        UNROLL for (int i = 0; i < half; i++)
            x[i] = Reduction::combine(x[i], x[i + half]);
    return x[0];
}

// The maximum of a row and the sum of exp(x - maximum), both so far, and N elements more (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", 2018). As long as all are -inf, exp(x) is 0 and so is the sum.
template <int N> DEVICE void add_exponentials(float &maximum, float &sum, const float (&x)[N])
{
    float terms[N];
    UNROLL for (int i = 0; i < N; i++)
        terms[i] = x[i];
    const float grown = op_max(maximum, reduce_vector<Max>(terms));
    const float base = grown == -infinity<float>() ? 0.0f : grown;
    UNROLL for (int i = 0; i < N; i++)
        terms[i] = op_exp(op_sub(x[i], base));
    sum = op_add(op_mul(sum, op_exp(op_sub(maximum, base))), reduce_vector<Sum>(terms));
    maximum = grown;
}

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

}   // namespace rollerc

// ---- what the launcher needs ----

#if defined(__HIP__) && !defined(__HIPCC_RTC__)
#define cudaError_t hipError_t
#define cudaSuccess hipSuccess
#define cudaErrorInvalidValue hipErrorInvalidValue
#define cudaStream_t hipStream_t
#define cudaGetLastError hipGetLastError
#define cudaMemsetAsync hipMemsetAsync
#define cudaFuncAttributeMaxDynamicSharedMemorySize hipFuncAttributeMaxDynamicSharedMemorySize

template <class Kernel>
static inline hipError_t cudaLaunchKernel(Kernel *kernel, dim3 grid, dim3 block, void **args,
                                          size_t shared, hipStream_t stream)
{
    const void *function = reinterpret_cast<const void *>(kernel);
    return hipLaunchKernel(function, grid, block, args, shared, stream);
}
template <class Kernel>
static inline hipError_t cudaFuncSetAttribute(Kernel *kernel, hipFuncAttribute attribute, int value)
{
    return hipFuncSetAttribute(reinterpret_cast<const void *>(kernel), attribute, value);
}
#elif defined(CUDART_VERSION) && CUDART_VERSION >= 11080 && !defined(__CUDACC_RTC__)   // launches with attributes
template <class Kernel>
static inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, Kernel *kernel, void **args)
{
    return cudaLaunchKernelExC(config, reinterpret_cast<const void *>(kernel), args);
}
#endif

#endif   // ROLLERC_PRELUDE

// A template compiles as it stands; rollerc gives each launch its own names.
#ifndef KERNEL
#define KERNEL kernel_default
#endif
#ifndef ENTRY
#define ENTRY entry_default
#endif
