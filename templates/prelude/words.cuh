// ---- words: elements narrower than 4 bytes, moved as words ----

// Selects bytes of a (numbers 0 to 3) and b (4 to 7): hexadecimal digit i of the selector is the number of
// byte i.
DEVICE unsigned byte_permute(unsigned a, unsigned b, unsigned selector) { return __byte_perm(a, b, selector); }

// Shifts words so that they begin with byte `first` of the first 16: a whole word unless NARROW.
template <bool NARROW, int WORDS> DEVICE void begin_words_at(unsigned (&words)[WORDS], unsigned first)
{
    UNROLL for (unsigned by = 2; by > 0; by /= 2)
        UNROLL for (int i = 0; i < WORDS; i++)
            if (i + static_cast<int>(by) < WORDS)
                words[i] = first / 4 & by ? words[i + by] : words[i];
    if (NARROW)
        UNROLL for (int i = 0; i + 1 < WORDS; i++)
            words[i] = byte_permute(words[i], words[i + 1], 0x3210u + 0x1111u * (first % 4));
}

// Loads N elements that begin anywhere in a tensor of `size` elements, by the aligned 16-byte vectors that
// hold them:
//
//   vectors          [0 1 2 3] [4 5 6 7]     floats, N = 4 from element 3 on
//   shift 2 words    [2 3 4 5] [6 7 …        if they begin in the second half of a vector
//   shift 1 word     [3 4 5 6] …             if they begin at an odd word; narrow elements are then shifted by bytes
//
// Beyond the ends of the tensor nothing is read, and `out` is undefined. `inside_all`: no vector crosses an
// end, and no branch delays the next load.
template <int N, class T, class Index, class V>
DEVICE void load_anywhere(bool inside_all, const T *p, Index index, Index size, V (&out)[N])
{
    constexpr int BYTES = static_cast<int>(sizeof(T)), COUNT = 16 / BYTES, PIECES = N / COUNT + 1, WORDS = PIECES * 4;
    static_assert(N % COUNT == 0, "whole pieces");
    union {
        unsigned words[WORDS];
        T at[PIECES * COUNT];
    };
    const unsigned first = static_cast<unsigned>(index) % COUNT * BYTES;
    const Index aligned = index - static_cast<Index>(first / BYTES), tail = size - size % COUNT;
    UNROLL for (int i = 0; i < PIECES; i++) {
        const Index from = aligned + i * COUNT;
        if (inside_all || (from >= 0 && from < tail)) {
            const Vector<unsigned, 4> piece = *reinterpret_cast<const Vector<unsigned, 4> *>(p + from);
            UNROLL for (int j = 0; j < 4; j++)
                words[i * 4 + j] = piece.at[j];
        }
        UNROLL for (int j = 0; j < static_cast<int>(size % COUNT); j++)   // of the last vector, which is partial
            if (!inside_all && from == tail)
                at[i * COUNT + j] = p[tail + j];
    }
    begin_words_at<(BYTES < 4)>(words, first);
    UNROLL for (int i = 0; i < N; i++)
        out[i] = widen(at[i]);
}

// Elements narrower than a word, moved as words.
template <class T> union Word {
    static constexpr int SIZE = static_cast<int>(sizeof(T)), COUNT = (3 + SIZE) / SIZE;   // at least one
    unsigned bits;
    T at[COUNT];
};

// N narrow elements, packed as in memory. Each is widened when it is used: no load is waited for early.
template <class T, int N> struct Packed {
    static constexpr int EACH = 4 / static_cast<int>(sizeof(T)), COUNT = AT_ONCE<unsigned, N / EACH>, PIECES = N / EACH / COUNT;
    using Chunk = Vector<unsigned, COUNT>;
    Chunk pieces[PIECES];

    __device__ __forceinline__ compute_type<T> operator[](int e) const
    {
        union { unsigned word; T at[EACH]; };
        word = pieces[e / EACH / COUNT].at[e / EACH % COUNT];
        return widen(at[e % EACH]);
    }
};

template <class T, int N, class Index> DEVICE void load_packed(const T *p, Index index, Packed<T, N> &out)
{
    UNROLL for (int i = 0; i < out.PIECES; ++i)
        out.pieces[i] = reinterpret_cast<const typename Packed<T, N>::Chunk *>(p + index)[i];
}

template <class T, int N, class Index> DEVICE void read_packed(const T *p, Index index, Packed<T, N> &out)
{
    UNROLL for (int i = 0; i < out.PIECES; ++i)
        out.pieces[i] = read_global(reinterpret_cast<const typename Packed<T, N>::Chunk *>(p + index) + i);
}

template <class T, int N, class Index> DEVICE void stream_packed(const T *p, Index index, Packed<T, N> &out)
{
    UNROLL for (int i = 0; i < out.PIECES; ++i)
        out.pieces[i] = stream_global(reinterpret_cast<const typename Packed<T, N>::Chunk *>(p + index) + i);
}

// N elements that may begin anywhere, packed as in memory. Narrow ones stay in words and are shifted when
// they are used, so that loads of several lines are in flight at a time.
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
    static constexpr int COUNT = Word<T>::COUNT, WORDS = N / COUNT;
    unsigned words[WORDS + 1];
    unsigned selector;   // for the bytes of an element

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
        UNROLL for (int i = 0; i < WORDS; i++)
            words[i] = from[first / COUNT + i];
        words[WORDS] = from[(first + (N - 1)) / COUNT];
        selector = 0x3210u + 0x1111u * static_cast<unsigned>(first % COUNT) * static_cast<unsigned>(sizeof(T));
    }
};

// COLUMNS x ROWS elements in registers, read by columns and written by rows.
template <class T, int COLUMNS, int ROWS> struct Piece {
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

// As Piece, of bytes, which stay in words: 4 x 4 of them are transposed by 8 permutations.
template <class T, int COLUMNS, int ROWS> struct PieceOfBytes {
    static_assert(sizeof(T) == 1 && COLUMNS == 4 && ROWS % 4 == 0, "words of bytes");
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
