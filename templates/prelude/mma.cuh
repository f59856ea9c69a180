// ---- tensor core tiles, and the 16-byte vectors that fill them ----

// Of 8-bit elements, transposes pairs of rows: a lane's bytes of two consecutive rows become four neighbours
// along k for each of two columns.
DEVICE void part_bytes(unsigned (&tile)[4])
{
    UNROLL for (int i = 0; i < 4; i += 2) {
        const unsigned first = tile[i], second = tile[i + 1];
        tile[i] = byte_permute(first, second, 0x6420u);
        tile[i + 1] = byte_permute(first, second, 0x7531u);
    }
}

// What a lane holds of a matrix: 32 bits, or a double.
template <class T> struct TileWordOf { using type = unsigned; };
template <> struct TileWordOf<f64> { using type = f64; };
template <class T> using TileWord = typename TileWordOf<T>::type;

// The bits of an element in a register.
template <class T> DEVICE unsigned bits_of(T x) { return x.bits; }
DEVICE unsigned bits_of(f32 x) { return __float_as_uint(x); }

// Tensor cores truncate a float to 10 bits of fraction. This adds at most half the weight of the last bit
// first, so the truncated value is one of the two nearest, and exact values stay exact.
template <int COUNT> DEVICE void round_tile(f32, unsigned (&tile)[COUNT])
{
    UNROLL for (int i = 0; i < COUNT; i++)
        tile[i] = __float_as_uint(__uint_as_float(tile[i]) * 1.00048828125f);   // 1 + 2^-11
}
template <class T, class V, int COUNT> DEVICE void round_tile(T, V (&)[COUNT]) {}

// Tensor cores truncate when they accumulate, always towards zero, so long sums of positive products lose
// accuracy: 200,000 of them more than the last 10 bits of a float. At each promotion interval c is added to
// `ended` in float and cleared. MORE: the sum is longer than one interval.
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

// The source of a copy of an element or of 16 bytes, if there is one.
template <class T> struct CopySource {
    const T *at;
    bool exists;
};

// A 16-byte vector, read element by element.
template <class T> struct PieceOfElements {
    struct Last {};
    Vector<T, 16 / sizeof(T)> elements;

    __device__ __forceinline__ void set(int i, T element) { elements.at[i] = element; }
    // A predicated load. Behind a branch, each load would be waited for before the next begins.
    __device__ __forceinline__ void load(int i, const CopySource<T> &source, bool exists)
    {
        set(i, exists && source.exists ? *source.at : T());
    }
    __device__ __forceinline__ Vector<unsigned, 4> value(int) const
    {
        return *reinterpret_cast<const Vector<unsigned, 4> *>(&elements);
    }
};

// A 16-byte vector that begins at any element of a tensor of `size` elements. The two aligned vectors that
// hold it stay in registers until value() is called. Nothing is read beyond the tensor.
template <class T> struct PieceAnywhere {
    static constexpr int BYTES = static_cast<int>(sizeof(T)), COUNT = 16 / BYTES;
    unsigned words[8];
    unsigned first;   // index of the first element within both

    // The tail of a tensor that ends within a vector. It is loaded once, so that other loads take no branch:
    // behind one, each load would be waited for before the next begins.
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
    // The first `count` elements, followed by zeros.
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
            const int bytes = count * BYTES - i * 4;   // valid bytes of this word
            piece.at[i] = bytes >= 4 ? word : bytes > 0 ? word & ~0u >> (32 - bytes * 8) : 0u;
        }
        return piece;
    }
};

// ---- floats as sums of narrower elements ----

// Splits two floats into PARTS pairs of narrow elements; each part is the rounded remainder of those before
// it. Two parts are f16 and scaled by 2^15 first: elements of at most 1 then lie where f16 is most precise,
// with an error of at most 2^-40. Three parts are bf16.
template <class Element, int PARTS> struct PairParts {
    static constexpr bool LIFTED = PARTS == 2;
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

// Stores four elements of 16 bits; p is aligned to all of them.
template <class T> DEVICE void store_four(T *p, const float (&in)[4])
{ *(Vector<unsigned, 2> *)p = {{pair_of(T(), in[0], in[1]), pair_of(T(), in[2], in[3])}}; }
