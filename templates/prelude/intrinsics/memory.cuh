// ---- global and shared memory accesses with cache hints and fixed widths ----

// N words moved by one access.
template <int N> struct alignas(N * 4) Words { unsigned at[N]; };

// Reads global memory that is read once and bypasses L1, which is left to data that is read often. The asm is
// volatile, so reads stay in order ahead of the arithmetic that uses them. Otherwise the compiler moves them
// to their uses, and few are in flight. So does ptxas with read-only loads (ld.global.nc), behind barriers
// and stores.
template <class Chunk> DEVICE Chunk stream_global(const Chunk *p)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
    union {
        Chunk chunk;
        unsigned words[4];
        unsigned short half;
    } read;
    if (sizeof(Chunk) == 16)
        asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(read.words[0]), "=r"(read.words[1]), "=r"(read.words[2]), "=r"(read.words[3])
                     : "l"(p));
    else if (sizeof(Chunk) == 8)
        asm volatile("ld.global.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
                     : "=r"(read.words[0]), "=r"(read.words[1])
                     : "l"(p));
    else if (sizeof(Chunk) == 4)
        asm volatile("ld.global.L1::no_allocate.u32 %0, [%1];" : "=r"(read.words[0]) : "l"(p));
    else if (sizeof(Chunk) == 2)
        asm volatile("ld.global.L1::no_allocate.u16 %0, [%1];" : "=h"(read.half) : "l"(p));
    else
        read.chunk = *p;
    return read.chunk;
#else
    return *p;
#endif
}

// Loads N elements by one aligned access if k < end, or has zeros in their place. There is no branch: a jump around each
// load takes more instructions than the load and its address.
template <class Index, class T, int N> DEVICE void load_below(Index k, Index end, const T *p, T (&out)[N])
{
#if defined(__CUDA_ARCH__)
    union {
        T at[N];
        unsigned words[N * sizeof(T) / 4];
    } read;
    constexpr int MOST = 2147483647;   // an end of 64 bits may be beyond
    const int there = static_cast<int>(k), least = end < MOST ? static_cast<int>(end) : MOST;
    if constexpr (sizeof read == 16)
        asm volatile("{ .reg .pred p; setp.lt.s32 p, %5, %6; mov.u32 %0, 0; mov.u32 %1, 0; mov.u32 %2, 0; mov.u32 %3, 0; "
                     "@p ld.global.v4.u32 {%0, %1, %2, %3}, [%4]; }"
                     : "=&r"(read.words[0]), "=&r"(read.words[1]), "=&r"(read.words[2]), "=&r"(read.words[3])
                     : "l"(p), "r"(there), "r"(least));
    else if constexpr (sizeof read == 8)
        asm volatile("{ .reg .pred p; setp.lt.s32 p, %3, %4; mov.u32 %0, 0; mov.u32 %1, 0; @p ld.global.v2.u32 {%0, %1}, [%2]; }"
                     : "=&r"(read.words[0]), "=&r"(read.words[1]) : "l"(p), "r"(there), "r"(least));
    else
        asm volatile("{ .reg .pred p; setp.lt.s32 p, %2, %3; mov.u32 %0, 0; @p ld.global.u32 %0, [%1]; }"
                     : "=&r"(read.words[0]) : "l"(p), "r"(there), "r"(least));
    UNROLL for (int i = 0; i < N; i++)
        out[i] = read.at[i];
#else
    UNROLL for (int i = 0; i < N; i++)
        out[i] = k < end ? p[i] : T();
#endif
}

// Stores words to shared memory in one access, aligned to all of them. The compiler may split the store of a
// Vector.
template <int N> DEVICE void store_shared(void *shared, const unsigned (&words)[N])
{
    static_assert(N == 1 || N == 2 || N == 4, "one access");
#if defined(__CUDA_ARCH__)
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    if constexpr (N == 1)
        asm volatile("st.shared.b32 [%0], %1;" : : "r"(target), "r"(words[0]) : "memory");
    else if constexpr (N == 2)
        asm volatile("st.shared.v2.b32 [%0], {%1, %2};" : : "r"(target), "r"(words[0]), "r"(words[1]) : "memory");
    else
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
                     : : "r"(target), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]) : "memory");
#else
    Words<N> copy;
    UNROLL for (int i = 0; i < N; i++)
        copy.at[i] = words[i];
    *static_cast<Words<N> *>(shared) = copy;
#endif
}

#ifdef __CUDA_ARCH__   // an address within the block's shared memory
DEVICE unsigned shared_address(const void *p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
#else
DEVICE unsigned shared_address(const void *p) { return static_cast<unsigned>(reinterpret_cast<unsigned long long>(p)); }
#endif
