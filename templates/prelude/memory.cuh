// ---- memory: elements, and vectors of N neighbours ----

// 0 <= index < extent: what `pad` asks before it reads.
template <class Index> DEVICE bool inside(Index index, long long extent)
{
    return index >= 0 && index < static_cast<Index>(extent);
}

template <class T, class Index> DEVICE compute_type<T> load(const T *p, Index index) { return widen(p[index]); }

template <class T, class Index, class V>
DEVICE void store(T *p, Index index, V value) { p[index] = narrow<T>(value); }

template <class T, int COUNT> struct alignas(COUNT * sizeof(T)) Vector { T at[COUNT]; };
template <class T, int N> constexpr int AT_ONCE = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;   // the widest access is 16 bytes

template <class T, int COUNT, class V> DEVICE void widen_vector(Vector<T, COUNT> chunk, V *out)
{
    UNROLL for (int j = 0; j < COUNT; j++)
        out[j] = widen(chunk.at[j]);
}

// Reads by one aligned access, or several of 16 bytes: p + index must be aligned to it.
template <int N, class T, class Index, class V>
DEVICE void load_vector(const T *p, Index index, V (&out)[N])
{
    constexpr int COUNT = AT_ONCE<T, N>;
    const Vector<T, COUNT> *chunks = reinterpret_cast<const Vector<T, COUNT> *>(p + index);
    UNROLL for (int i = 0; i < N / COUNT; i++)
        widen_vector(chunks[i], out + i * COUNT);
}

// load_vector of global memory, by read_global.
template <int N, class T, class Index, class V>
DEVICE void read_vector(const T *p, Index index, V (&out)[N])
{
    constexpr int COUNT = AT_ONCE<T, N>;
    const Vector<T, COUNT> *chunks = reinterpret_cast<const Vector<T, COUNT> *>(p + index);
    UNROLL for (int i = 0; i < N / COUNT; i++)
        widen_vector(read_global(chunks + i), out + i * COUNT);
}

// Reads global memory that is read once: past L1, which is left to what is read often. Reads keep their order, before the
// arithmetic that waits for them: put beside their uses, few would be under way.
template <class Chunk> DEVICE Chunk stream_global(const Chunk *p)
{
#if !defined(ROLLERC_INTERP) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
    union {
        Chunk chunk;
        unsigned words[4];
        unsigned short half;
    } read;
    if (sizeof(Chunk) == 16)
        asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(read.words[0]), "=r"(read.words[1]), "=r"(read.words[2]), "=r"(read.words[3])
                     : "l"(p));
    else if (sizeof(Chunk) == 8)
        asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
                     : "=r"(read.words[0]), "=r"(read.words[1])
                     : "l"(p));
    else if (sizeof(Chunk) == 4)
        asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(read.words[0]) : "l"(p));
    else if (sizeof(Chunk) == 2)
        asm volatile("ld.global.nc.L1::no_allocate.u16 %0, [%1];" : "=h"(read.half) : "l"(p));
    else
        read.chunk = *p;
    return read.chunk;
#else
    return *p;
#endif
}

// load_vector of global memory, by stream_global: one access.
template <int N, class T, class Index, class V>
DEVICE void stream_vector(const T *p, Index index, V (&out)[N])
{
    static_assert(AT_ONCE<T, N> == N, "one access");
    widen_vector(stream_global(reinterpret_cast<const Vector<T, N> *>(p + index)), out);
}

// Writes by one aligned access, or several of 16 bytes: p + index must be aligned to it.
template <int N, class T, class Index, class V> DEVICE void store_vector(T *p, Index index, const V (&in)[N])
{
    constexpr int COUNT = AT_ONCE<T, N>;
    UNROLL for (int i = 0; i < N; i += COUNT) {
        Vector<T, COUNT> chunk;
        UNROLL for (int j = 0; j < COUNT; j++)
            chunk.at[j] = narrow<T>(in[i + j]);
        *reinterpret_cast<Vector<T, COUNT> *>(p + index + i) = chunk;
    }
}

// Rows that are no whole vectors: of a vector that hangs over the end of its tensor only the elements inside are read. `inside`:
// it does not, and no branch is in the way of the next load.
template <int N, class T, class Index, class V>
DEVICE void load_inside(bool inside, const T *p, Index index, Index size, V (&out)[N])
{
    if (inside || index + N <= size)
        load_vector<N>(p, index, out);
    else
        for (int i = 0; i < N; i++)
            out[i] = index + i < size ? load(p, index + i) : V();
}

// Rows that are no whole vectors: of a vector that hangs over the ends of its row only the elements inside are written.
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
#if !defined(ROLLERC_INTERP) && defined(__CUDA_ARCH__)
    asm volatile("prefetch.global.L2 [%0];" : : "l"(global));
#else
    (void)global;
#endif
}

// N elements as they are, in one access. One side is an array of registers, the other is aligned to N of them.
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

// Words to shared memory, aligned to all of them, in one access: out of a Vector the compiler may take them one by one.
template <int N> DEVICE void store_shared(void *shared, const unsigned (&words)[N])
{
    static_assert(N == 1 || N == 2 || N == 4, "one access");
#if !defined(ROLLERC_INTERP) && defined(__CUDA_ARCH__)
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    if constexpr (N == 1)
        asm volatile("st.shared.b32 [%0], %1;" : : "r"(target), "r"(words[0]) : "memory");
    else if constexpr (N == 2)
        asm volatile("st.shared.v2.b32 [%0], {%1, %2};" : : "r"(target), "r"(words[0]), "r"(words[1]) : "memory");
    else
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
                     :
                     : "r"(target), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                     : "memory");
#else
    move_vector<N>(static_cast<unsigned *>(shared), words);
#endif
}
