// ---- tensor cores: a warp multiplies tiles that its lanes hold together ----

// A 16 x 16 tile of 16-bit elements is four matrices of 8 x 8. Of each a lane has two neighbours in one register, lane l those
// in line l / 4 from l % 4 * 2 on:
//
//            k 0…7    k 8…15
//   line 0…7  [0]       [2]          lane 0  lane 1  lane 2  lane 3
//   8…15      [1]       [3]          lane 4  lane 5  …               a matrix; of each lane two elements
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

// c += a * b: a is such a tile of 16 rows, b of 8 columns (k 0…7 in b0, 8…15 in b1), c 16 x 8 in f32: of a lane c[0] and c[1] in
// row l / 4 from column l % 4 * 2 on, c[2] and c[3] eight rows further down. The first argument says of which type a and b are.
DEVICE void multiply_tiles(f16, const unsigned (&a)[4], unsigned b0, unsigned b1, float (&c)[4])
{
#if defined(ROLLERC_INTERP)
    multiply_tiles_of(rollerc_interp::TILE_F16, a, b0, b1, c);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

DEVICE void multiply_tiles(bf16, const unsigned (&a)[4], unsigned b0, unsigned b1, float (&c)[4])
{
#if defined(ROLLERC_INTERP)
    multiply_tiles_of(rollerc_interp::TILE_BF16, a, b0, b1, c);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
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
    __device__ __forceinline__ void end(float (&)[COUNT]) const {}
    __device__ __forceinline__ void add_to(float (&)[COUNT]) const {}
};

// Eight 16-bit elements that were read one by one.
struct PieceOfElements {
    struct Last {};
    Vector<unsigned, 4> piece;

    __device__ __forceinline__ void set(int i, unsigned bits)
    {
        piece.at[i / 2] = i % 2 ? piece.at[i / 2] | bits << 16 : bits;
    }
    __device__ __forceinline__ Vector<unsigned, 4> value(int) const { return piece; }
};

// Eight 16-bit elements side by side that begin anywhere in a tensor of `size` elements: the two aligned pieces of 16 bytes
// that hold them, on their way in registers until value() is asked for. Beyond the tensor nothing is read.
struct PieceAnywhere {
    unsigned words[8];
    unsigned first;   // where they begin among these 16 elements

    // Of a tensor that ends within a piece: what lies in that one. It is loaded once, so that no other load takes a branch:
    // behind one, each would be waited for before the next begins.
    struct Last {
        unsigned words[4];

        template <class T, class Index> DEVICE unsigned bits_of(const T *p, Index index, Index size)
        {
            return index < size ? p[index].bits : 0u;
        }
        template <class T, class Index> __device__ __forceinline__ void load(const T *p, Index size)
        {
            const Index from = size / 8 * 8;
            UNROLL for (int j = 0; j < 4; j++)
                words[j] = bits_of(p, from + j * 2, size) | bits_of(p, from + j * 2 + 1, size) << 16;
        }
    };
    template <class T, class Index>
    __device__ __forceinline__ void load(const T *p, Index index, Index size, bool exists, const Last &last)
    {
        first = static_cast<unsigned>(index) % 8;
        UNROLL for (int i = 0; i < 2; i++) {
            const Index from = index - static_cast<Index>(first) + i * 8;
            UNROLL for (int j = 0; j < 4; j++)
                words[i * 4 + j] = from < size ? last.words[j] : 0u;
            if (exists && from + 8 <= size) {
                const Vector<unsigned, 4> piece = *reinterpret_cast<const Vector<unsigned, 4> *>(p + from);
                UNROLL for (int j = 0; j < 4; j++)
                    words[i * 4 + j] = piece.at[j];
            }
        }
    }
    // The first `count` of them, zeros behind.
    __device__ __forceinline__ Vector<unsigned, 4> value(int count) const
    {
        unsigned shifted[8];
        UNROLL for (int i = 0; i < 8; i++)
            shifted[i] = words[i];
        UNROLL for (unsigned by = 2; by > 0; by /= 2)
            UNROLL for (int i = 0; i + static_cast<int>(by) < 8; i++)
                shifted[i] = first / 2 & by ? shifted[i + by] : shifted[i];
        Vector<unsigned, 4> piece;
        UNROLL for (int i = 0; i < 4; i++) {
            const unsigned word = byte_permute(shifted[i], shifted[i + 1], first % 2 ? 0x5432u : 0x3210u);
            piece.at[i] = count >= 2 * i + 2 ? word : count == 2 * i + 1 ? word & 0xffffu : 0u;
        }
        return piece;
    }
};

// Where 16 bytes lie, if there are any.
template <class T> struct CopySource {
    const T *at;
    bool exists;
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
