// ---- tensor cores: a warp multiplies tiles that its lanes hold together ----

using i8 = signed char;   // elements by the language's names, as f16 and bf16 are
using u8 = unsigned char;
using f32 = float;
using f64 = double;

// A 16 x 16 tile of 16-bit elements is four matrices of 8 x 8. Of each a lane has two neighbours in one register, lane l those
// in line l / 4 from l % 4 * 2 on:
//
//            k 0…7    k 8…15
//   line 0…7  [0]       [2]          lane 0  lane 1  lane 2  lane 3
//   8…15      [1]       [3]          lane 4  lane 5  …               a matrix; of each lane two elements
//
// So are 32 bytes a line, of each lane four, 8 floats, of each lane one, and 8 doubles.
//
// Lane l brings the address of line l % 8 of matrix l / 8, 16 bytes in shared memory.
#ifndef ROLLERC_INTERP
DEVICE void load_matrices(unsigned (&tile)[4], const void *line)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(line));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tile[0]), "=r"(tile[1]), "=r"(tile[2]), "=r"(tile[3])
                 : "r"(address));
#endif
}
#endif

// The same of tiles that lie in memory by columns: each matrix is turned on its way.
#ifndef ROLLERC_INTERP
DEVICE void load_matrices_turned(unsigned (&tile)[4], const void *line)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(line));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tile[0]), "=r"(tile[1]), "=r"(tile[2]), "=r"(tile[3])
                 : "r"(address));
#endif
}
#endif

// Of bytes, pairs of rows are turned together: what a lane has of two lines that follow each other becomes four neighbours
// along k of the first of both rows, and of the second.
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

// Tensor cores cut a float off behind ten bits of its fraction. What is half of the last one's weight at most is added before:
// it lies no farther from the float than the nearest such number may, and is the float where that is one.
template <int COUNT> DEVICE void round_tile(f32, unsigned (&tile)[COUNT])
{
    UNROLL for (int i = 0; i < COUNT; i++)
        tile[i] = __float_as_uint(__uint_as_float(tile[i]) * 1.00048828125f);   // 1 + 2^-11
}
template <class T, class V, int COUNT> DEVICE void round_tile(T, V (&)[COUNT]) {}

// c += a * b: a is such a tile of 16 rows, b of 8 columns (both halves of k in b0 and b1), c 16 x 8: of a lane c[0] and c[1] in
// row l / 4 from column l % 4 * 2 on, c[2] and c[3] eight rows further down. The first argument says of which type a and b are.
#define MULTIPLY_TILES(shape, word, sum)                                                                           \
    asm volatile("mma.sync.aligned." shape " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"      \
                 : "+" sum(c[0]), "+" sum(c[1]), "+" sum(c[2]), "+" sum(c[3])                                      \
                 : word(a[0]), word(a[1]), word(a[2]), word(a[3]), word(b0), word(b1))

DEVICE void multiply_tiles(f16, const unsigned (&a)[4], unsigned b0, unsigned b1, float (&c)[4])
{
#if defined(ROLLERC_INTERP)
    multiply_tiles_of(rollerc_interp::TILE_F16, a, b0, b1, c);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    MULTIPLY_TILES("m16n8k16.row.col.f32.f16.f16.f32", "r", "f");
#endif
}

DEVICE void multiply_tiles(bf16, const unsigned (&a)[4], unsigned b0, unsigned b1, float (&c)[4])
{
#if defined(ROLLERC_INTERP)
    multiply_tiles_of(rollerc_interp::TILE_BF16, a, b0, b1, c);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    MULTIPLY_TILES("m16n8k16.row.col.f32.bf16.bf16.f32", "r", "f");
#endif
}

DEVICE void multiply_tiles(f32, const unsigned (&a)[4], unsigned b0, unsigned b1, float (&c)[4])
{
#if defined(ROLLERC_INTERP)
    multiply_tiles_of(rollerc_interp::TILE_TF32, a, b0, b1, c);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    MULTIPLY_TILES("m16n8k8.row.col.f32.tf32.tf32.f32", "r", "f");
#endif
}

DEVICE void multiply_tiles(i8, const unsigned (&a)[4], unsigned b0, unsigned b1, int (&c)[4])
{
#if defined(ROLLERC_INTERP)
    multiply_tiles_of(rollerc_interp::TILE_I8, a, b0, b1, c);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    MULTIPLY_TILES("m16n8k32.row.col.s32.s8.s8.s32", "r", "r");
#endif
}

DEVICE void multiply_tiles(u8, const unsigned (&a)[4], unsigned b0, unsigned b1, int (&c)[4])
{
#if defined(ROLLERC_INTERP)
    multiply_tiles_of(rollerc_interp::TILE_U8, a, b0, b1, c);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    MULTIPLY_TILES("m16n8k32.row.col.s32.u8.u8.s32", "r", "r");
#endif
}

// c += a * b of the first half of k alone, in half the time: matrices 0 and 1 of the tile.
#define MULTIPLY_HALF_TILES(shape)                                                                                 \
    asm volatile("mma.sync.aligned." shape " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                  \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                  \
                 : "r"(a0), "r"(a1), "r"(b))

DEVICE void multiply_half_tiles(f16, unsigned a0, unsigned a1, unsigned b, float (&c)[4])
{
#if defined(ROLLERC_INTERP)
    multiply_half_tiles_of(rollerc_interp::TILE_F16, a0, a1, b, c);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    MULTIPLY_HALF_TILES("m16n8k8.row.col.f32.f16.f16.f32");
#endif
}

DEVICE void multiply_half_tiles(bf16, unsigned a0, unsigned a1, unsigned b, float (&c)[4])
{
#if defined(ROLLERC_INTERP)
    multiply_half_tiles_of(rollerc_interp::TILE_BF16, a0, a1, b, c);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    MULTIPLY_HALF_TILES("m16n8k8.row.col.f32.bf16.bf16.f32");
#endif
}

DEVICE void multiply_half_tiles(f32, unsigned a0, unsigned a1, unsigned b, float (&c)[4])
{
#if defined(ROLLERC_INTERP)
    multiply_half_tiles_of(rollerc_interp::TILE_TF32, a0, a1, b, c);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    MULTIPLY_HALF_TILES("m16n8k4.row.col.f32.tf32.tf32.f32");
#endif
}

// In parts before sm_90: of 8 rows and half of k.
DEVICE void multiply_doubles(f64 a, f64 b, f64 &c0, f64 &c1)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(c0), "+d"(c1)
                 : "d"(a), "d"(b));
#endif
}

DEVICE void multiply_tiles(f64, const f64 (&a)[4], f64 b0, f64 b1, f64 (&c)[4])
{
#if defined(ROLLERC_INTERP)
    multiply_tiles_of(rollerc_interp::TILE_F64, a, b0, b1, c);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    MULTIPLY_TILES("m16n8k8.row.col.f64.f64.f64.f64", "d", "d");
#else
    multiply_doubles(a[0], b0, c[0], c[1]);
    multiply_doubles(a[1], b0, c[2], c[3]);
    multiply_doubles(a[2], b1, c[0], c[1]);
    multiply_doubles(a[3], b1, c[2], c[3]);
#endif
}

// Tensor cores cut off what they add, always towards zero: so many products one after the other lose too much that are all
// positive, 200000 of them more than the last 10 bits of a float. So c passes on what it has, several times.
// MORE: there are several chains.
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

// The elements of 16 bytes side by side that begin anywhere in a tensor of `size` elements: the two aligned pieces that hold
// them, on their way in registers until value() is asked for. Beyond the tensor nothing is read.
template <class T> struct PieceAnywhere {
    static constexpr int BYTES = static_cast<int>(sizeof(T)), COUNT = 16 / BYTES;
    unsigned words[8];
    unsigned first;   // where they begin among the elements of both

    // Of a tensor that ends within a piece: what lies in that one. It is loaded once, so that no other load takes a branch:
    // behind one, each would be waited for before the next begins.
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

// 16 bytes from memory, or zeros where there is nothing to read.
DEVICE void async_copy16_or_zero(bool exists, void *shared, const void *global)
{
#if defined(ROLLERC_INTERP)
    async_copy16(shared, exists ? global : async_zeros());
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(target), "l"(global), "r"(exists ? 16 : 0)
                 : "memory");
#else
    if (exists)
        async_copy16(shared, global);
    else
        *static_cast<Vector<unsigned, 4> *>(shared) = Vector<unsigned, 4>();
#endif
}
