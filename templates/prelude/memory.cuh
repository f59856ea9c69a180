// ---- memory: elements, and vectors of N elements ----

struct Region { int at, bytes; };   // of shared memory, in bytes: see SHARED

// 0 <= index < extent: the test of `pad` before it reads.
template <class Index> DEVICE bool inside(Index index, long long extent)
{
    return index >= 0 && index < static_cast<Index>(extent);
}

// Positions in loops, from 0 <= k < 2^31, by a product and a shift: FACTOR * BY exceeds 2^SHIFT by at most
// BY. Compilers divide numbers that they know to be below 2^16 in 16-bit arithmetic, in up to eight times as
// many instructions.
DEVICE constexpr int bits_below(int n) { return n > 1 ? 1 + bits_below(n / 2 + n % 2) : 0; }
template <int BY> DEVICE int quotient_by(int k)
{
    constexpr int SHIFT = 31 + bits_below(BY);
    constexpr unsigned FACTOR = (unsigned)((1ull << SHIFT) / BY + 1);
    return (BY & (BY - 1)) == 0 ? k / BY : (int)((unsigned long long)(unsigned)k * FACTOR >> SHIFT);
}
template <long long BY> DEVICE long long quotient_by(long long k) { return k / BY; }
template <long long BY, class Index> DEVICE Index remainder_by(Index k) { return k - quotient_by<BY>(k) * (Index)BY; }

template <class T, class Index> DEVICE compute_type<T> load(const T *p, Index index) { return widen(p[index]); }

// An element of 16 bits where it exists, else the one of these bits. Widened behind the choice: a conversion under the condition
// would keep its predicate until the element has come, and there are predicates for seven loads.
template <class T, class Index> DEVICE compute_type<T> load_or(bool exists, unsigned short otherwise, const T *p, Index index)
{
    return widen(exists ? p[index] : T{otherwise});
}

template <class T, class Index, class V>
DEVICE void store(T *p, Index index, V value) { p[index] = narrow<T>(value); }

template <class T, int COUNT> struct alignas(COUNT * sizeof(T)) Vector { T at[COUNT]; };
template <class T, int N> constexpr int AT_ONCE = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;   // the widest access is 16 bytes

template <class T, int COUNT, class V> DEVICE void widen_vector(Vector<T, COUNT> chunk, V *out)
{
    UNROLL for (int j = 0; j < COUNT; j++)
        out[j] = widen(chunk.at[j]);
}

// Loads N elements by one aligned access, or by several of 16 bytes. p + index must be aligned to the access.
template <int N, class T, class Index, class V>
DEVICE void load_vector(const T *p, Index index, V (&out)[N])
{
    constexpr int COUNT = AT_ONCE<T, N>;
    const Vector<T, COUNT> *chunks = reinterpret_cast<const Vector<T, COUNT> *>(p + index);
    UNROLL for (int i = 0; i < N / COUNT; i++)
        widen_vector(chunks[i], out + i * COUNT);
}

// As load_vector(), of global memory by read_global().
template <int N, class T, class Index, class V>
DEVICE void read_vector(const T *p, Index index, V (&out)[N])
{
    constexpr int COUNT = AT_ONCE<T, N>;
    const Vector<T, COUNT> *chunks = reinterpret_cast<const Vector<T, COUNT> *>(p + index);
    UNROLL for (int i = 0; i < N / COUNT; i++)
        widen_vector(read_global(chunks + i), out + i * COUNT);
}

// Every second of 2 N elements, which read_vector() loads.
template <int N, class T, class Index, class V> DEVICE void read_second(const T *p, Index index, V (&out)[N])
{
    V all[2 * N];
    read_vector<2 * N>(p, index, all);
    UNROLL for (int i = 0; i < N; i++)
        out[i] = all[2 * i];
}

// As load_vector(), of global memory by one stream_global() access.
template <int N, class T, class Index, class V>
DEVICE void stream_vector(const T *p, Index index, V (&out)[N])
{
    static_assert(AT_ONCE<T, N> == N, "one access");
    widen_vector(stream_global(reinterpret_cast<const Vector<T, N> *>(p + index)), out);
}

// Stores N elements by one aligned access, or by several of 16 bytes. p + index must be aligned to the access.
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

// Loads a vector that lies wholly inside or outside of its tensor. Outside nothing is read, and `out` is
// undefined. No branch.
template <int N, class T, class Index, class V>
DEVICE void load_if_inside(const T *p, Index index, Index size, V (&out)[N])
{
    if (inside(index, size))
        load_vector<N>(p, index, out);
}

// Loads a vector that may cross the end of its tensor, of which only the elements inside are read. `inside`:
// it does not cross. Elements are converted behind the branch, which would wait for them, and come in words,
// of which the compiler makes no halves.
template <int N, class T, class Index, class V>
DEVICE void load_inside(bool inside, const T *p, Index index, Index size, V (&out)[N])
{
    constexpr int BYTES = N * static_cast<int>(sizeof(T)), WORDS = (BYTES + 3) / 4;
    union {
        unsigned words[WORDS];
        T at[N];
    };
    const bool whole = inside || index + N <= size;
    if (whole && BYTES % 4 == 0)
        UNROLL for (int i = 0; i < WORDS; i += AT_ONCE<unsigned, WORDS>) {
            constexpr int COUNT = AT_ONCE<unsigned, WORDS>;
            const Vector<unsigned, COUNT> chunk = *reinterpret_cast<const Vector<unsigned, COUNT> *>(p + index + i * N / WORDS);
            UNROLL for (int j = 0; j < COUNT; j++)
                words[i + j] = chunk.at[j];
        }
    else
        UNROLL for (int i = 0; i < N; i++)
            at[i] = index + i < size ? p[index + i] : T();
    UNROLL for (int i = 0; i < N; i++)
        out[i] = widen(at[i]);
}

// load_inside() in two parts, for a thread that loads several vectors. The first has no branch, which would wait for earlier
// loads to be converted: in place of a vector that crosses the end it loads the one before. The second, when all loads are in
// flight, loads the elements of such a vector.
template <int N, class T, class Index, class V>
DEVICE void load_before_end(bool inside, const T *p, Index index, Index size, V (&out)[N])
{
    if (size >= N)
        load_vector<N>(p, inside || index + N <= size ? index : index - N, out);
}

template <int N, class T, class Index, class V> DEVICE void load_end(const T *p, Index index, Index size, V (&out)[N])
{
    if (index + N > size)
        UNROLL for (int i = 0; i < N; i++)
            out[i] = index + i < size ? widen(p[index + i]) : V();
}

// Stores a vector. Unless `whole`, it may cross the ends of its row, and only the elements inside are
// written.
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

// Moves N elements unconverted in one access. One side is a register array, the other is aligned to N elements.
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

// Copies N elements in one access.
template <int N, class T> DEVICE void copy_vector(T *to, const T *x) { *(Vector<T, N> *)to = *(const Vector<T, N> *)x; }
