// ---- tiles of tensor cores, and pieces of 16 bytes on their way to them ----

// Of bytes, pairs of rows are turned together: what a lane has of two lines that follow each other becomes
// four neighbours along k of the first of both rows, and of the second.
DEVICE void part_bytes(unsigned (&tile)[4])
{
    UNROLL for (int i = 0; i < 4; i += 2) {
        const unsigned first = tile[i], second = tile[i + 1];
        tile[i] = byte_permute(first, second, 0x6420u);
        tile[i + 1] = byte_permute(first, second, 0x7531u);
    }
}

// What a lane has of a matrix: 32 bits, or a double.
template <class T> struct TileWordOf { using type = unsigned; };
template <> struct TileWordOf<f64> { using type = f64; };
template <class T> using TileWord = typename TileWordOf<T>::type;

// An element as a register holds it.
template <class T> DEVICE unsigned bits_of(T x) { return x.bits; }
DEVICE unsigned bits_of(f32 x) { return __float_as_uint(x); }

// Tensor cores cut a float off behind ten bits of its fraction. What is half of the last one's weight at most
// is added before: it lies no farther from the float than the nearest such number may, and is the float where
// that is one.
template <int COUNT> DEVICE void round_tile(f32, unsigned (&tile)[COUNT])
{
    UNROLL for (int i = 0; i < COUNT; i++)
        tile[i] = __float_as_uint(__uint_as_float(tile[i]) * 1.00048828125f);   // 1 + 2^-11
}
template <class T, class V, int COUNT> DEVICE void round_tile(T, V (&)[COUNT]) {}

// Tensor cores cut off what they add, always towards zero: so many products one after the other lose too much
// that are all positive, 200000 of them more than the last 10 bits of a float. So c passes on what it has,
// several times. MORE: there are several chains.
template <bool MORE, int COUNT> struct Chains {
    float ended[COUNT] = {};

    __device__ __forceinline__ void end(float (&c)[COUNT])
    {
        UNROLL for (int i = 0; i < COUNT; i++) {
            ended[i] += c[i];
            c[i] = 0.0f;
        }
    }
    __device__ __forceinline__ void add_to(float (&c)[COUNT]) const
    {
        UNROLL for (int i = 0; i < COUNT; i++)
            c[i] += ended[i];
    }
};
template <int COUNT> struct Chains<false, COUNT> {
    template <class Value> __device__ __forceinline__ void end(Value (&)[COUNT]) const {}
    template <class Value> __device__ __forceinline__ void add_to(Value (&)[COUNT]) const {}
};

// Where an element or 16 bytes of them lie, if there are any.
template <class T> struct CopySource {
    const T *at;
    bool exists;
};

// The elements of 16 bytes, read one by one.
template <class T> struct PieceOfElements {
    struct Last {};
    Vector<T, 16 / sizeof(T)> elements;

    __device__ __forceinline__ void set(int i, T element) { elements.at[i] = element; }
    // By a predicated load: behind a branch, each would be waited for before the next begins.
    __device__ __forceinline__ void load(int i, const CopySource<T> &source, bool exists)
    {
        set(i, exists && source.exists ? *source.at : T());
    }
    __device__ __forceinline__ Vector<unsigned, 4> value(int) const
    {
        return *reinterpret_cast<const Vector<unsigned, 4> *>(&elements);
    }
};

// The elements of 16 bytes side by side that begin anywhere in a tensor of `size` elements: the two aligned
// pieces that hold them, on their way in registers until value() is asked for. Beyond the tensor nothing is
// read.
template <class T> struct PieceAnywhere {
    static constexpr int BYTES = static_cast<int>(sizeof(T)), COUNT = 16 / BYTES;
    unsigned words[8];
    unsigned first;   // where they begin among the elements of both

    // Of a tensor that ends within a piece: what lies in that one. It is loaded once, so that no other load
    // takes a branch: behind one, each would be waited for before the next begins.
    struct Last {
        Vector<unsigned, 4> piece;

        template <class Index> __device__ __forceinline__ void load(const T *p, Index size)
        {
            const Index from = size / COUNT * COUNT;
            PieceOfElements<T> rest;
            UNROLL for (int i = 0; i < COUNT; i++)
                rest.set(i, from + i < size ? p[from + i] : T());
            piece = rest.value(COUNT);
        }
    };
    template <class Index>
    __device__ __forceinline__ void load(const T *p, Index index, Index size, bool exists, const Last &last)
    {
        first = static_cast<unsigned>(index) % COUNT;
        UNROLL for (int i = 0; i < 2; i++) {
            const Index from = index - static_cast<Index>(first) + i * COUNT;
            UNROLL for (int j = 0; j < 4; j++)
                words[i * 4 + j] = from < size ? last.piece.at[j] : 0u;
            if (exists && from + COUNT <= size) {
                const Vector<unsigned, 4> piece = *reinterpret_cast<const Vector<unsigned, 4> *>(p + from);
                UNROLL for (int j = 0; j < 4; j++)
                    words[i * 4 + j] = piece.at[j];
            }
        }
    }
    // The first `count` of them, zeros behind.
    __device__ __forceinline__ Vector<unsigned, 4> value(int count) const
    {
        const unsigned byte = first * BYTES, selector = 0x3210u + 0x1111u * (byte % 4);
        unsigned shifted[8];
        UNROLL for (int i = 0; i < 8; i++)
            shifted[i] = words[i];
        UNROLL for (unsigned by = 2; by > 0; by /= 2)
            UNROLL for (int i = 0; i + static_cast<int>(by) < 8; i++)
                shifted[i] = byte / 4 & by ? shifted[i + by] : shifted[i];
        Vector<unsigned, 4> piece;
        UNROLL for (int i = 0; i < 4; i++) {
            const unsigned word = byte_permute(shifted[i], shifted[i + 1], selector);
            const int bytes = count * BYTES - i * 4;   // of this word
            piece.at[i] = bytes >= 4 ? word : bytes > 0 ? word & ~0u >> (32 - bytes * 8) : 0u;
        }
        return piece;
    }
};

// ---- floats as sums of narrower elements ----

// Two parts are of f16, lifted by 2^15 first: elements of at most 1 then lie where f16 is densest, and two of
// them err by 2^-40 at most. Three are of bf16.
template <int PARTS> constexpr bool LIFTS_PARTS = PARTS == 2;

// Two floats as PARTS pairs of elements, each of which has what those before it lack.
template <class Element, int PARTS> struct PairParts {
    static constexpr bool LIFTED = LIFTS_PARTS<PARTS>;
    unsigned at[PARTS];

    __device__ __forceinline__ PairParts(float low, float high)
    {
        float left[2] = {LIFTED ? low * 32768.0f : low, LIFTED ? high * 32768.0f : high};
        UNROLL for (int part = 0; part < PARTS; ++part) {
            at[part] = pair_of(Element(), left[0], left[1]);
            if (part + 1 < PARTS)
                UNROLL for (int e = 0; e < 2; ++e)
                    left[e] = op_sub(left[e], widen(Element{static_cast<unsigned short>(at[part] >> (16 * e))}));
        }
    }
};
