// ---- tensor cores: mma.sync, one warp ----

using i8 = signed char;   // elements by the language's names, as f16 and bf16 are
using u8 = unsigned char;
using f32 = float;
using f64 = double;
using i32 = int;

// A 16 x 16 tile of 16-bit elements is four 8 x 8 matrices. Each lane holds two neighbours of each matrix in
// one register: lane l holds those of row l / 4 from column l % 4 * 2 on:
//
//            k 0…7    k 8…15
//   row 0…7    [0]       [2]          lane 0  lane 1  lane 2  lane 3
//   8…15       [1]       [3]          lane 4  lane 5  …               one matrix; two elements a lane
//
// Rows are 32 bytes, so 8-bit types have four elements a lane, floats one. Doubles have rows of 8.
//
// Lane l passes the address of row l % 8 of matrix l / 8: 16 bytes in shared memory (ldmatrix).
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
DEVICE void load_matrices(unsigned (&tile)[4], const void *line)
{ asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(tile[0]), "=r"(tile[1]), "=r"(tile[2]), "=r"(tile[3]) : "r"(shared_address(line))); }
// As load_matrices(), for column-major tiles: each matrix is transposed (ldmatrix.trans).
DEVICE void load_matrices_turned(unsigned (&tile)[4], const void *line)
{ asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(tile[0]), "=r"(tile[1]), "=r"(tile[2]), "=r"(tile[3]) : "r"(shared_address(line))); }
#else
DEVICE void load_matrices(unsigned (&)[4], const void *) {}
DEVICE void load_matrices_turned(unsigned (&)[4], const void *) {}
#endif

// c += a * b. a is a tile of 16 rows as above, b has 8 columns (both halves of k in b0 and b1), c is 16 x 8:
// a lane has c[0] and c[1] in row l / 4 from column l % 4 * 2 on, c[2] and c[3] eight rows below. The first
// argument names the type of a and b.
#define MULTIPLY_TILES(shape, word, sum)                                                                           \
    asm volatile("mma.sync.aligned." shape " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"      \
                 : "+" sum(c[0]), "+" sum(c[1]), "+" sum(c[2]), "+" sum(c[3])                                      \
                 : word(a[0]), word(a[1]), word(a[2]), word(a[3]), word(b0), word(b1))

DEVICE void multiply_tiles(f16, const unsigned (&a)[4], unsigned b0, unsigned b1, float (&c)[4])
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
{ MULTIPLY_TILES("m16n8k16.row.col.f32.f16.f16.f32", "r", "f"); }
#else
{}
#endif

DEVICE void multiply_tiles(bf16, const unsigned (&a)[4], unsigned b0, unsigned b1, float (&c)[4])
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
{ MULTIPLY_TILES("m16n8k16.row.col.f32.bf16.bf16.f32", "r", "f"); }
#else
{}
#endif

DEVICE void multiply_tiles(f32, const unsigned (&a)[4], unsigned b0, unsigned b1, float (&c)[4])
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
{ MULTIPLY_TILES("m16n8k8.row.col.f32.tf32.tf32.f32", "r", "f"); }
#else
{}
#endif

DEVICE void multiply_tiles(i8, const unsigned (&a)[4], unsigned b0, unsigned b1, int (&c)[4])
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
{ MULTIPLY_TILES("m16n8k32.row.col.s32.s8.s8.s32", "r", "r"); }
#else
{}
#endif

DEVICE void multiply_tiles(u8, const unsigned (&a)[4], unsigned b0, unsigned b1, int (&c)[4])
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
{ MULTIPLY_TILES("m16n8k32.row.col.s32.u8.u8.s32", "r", "r"); }
#else
{}
#endif

// c += a * b over the first half of k alone, in half the time: matrices 0 and 1 of the tile.
#define MULTIPLY_HALF_TILES(shape)                                                                                 \
    asm volatile("mma.sync.aligned." shape " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                  \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                  \
                 : "r"(a0), "r"(a1), "r"(b))

DEVICE void multiply_half_tiles(f16, unsigned a0, unsigned a1, unsigned b, float (&c)[4])
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    MULTIPLY_HALF_TILES("m16n8k8.row.col.f32.f16.f16.f32");
#endif
}

DEVICE void multiply_half_tiles(bf16, unsigned a0, unsigned a1, unsigned b, float (&c)[4])
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    MULTIPLY_HALF_TILES("m16n8k8.row.col.f32.bf16.bf16.f32");
#endif
}

DEVICE void multiply_half_tiles(f32, unsigned a0, unsigned a1, unsigned b, float (&c)[4])
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    MULTIPLY_HALF_TILES("m16n8k4.row.col.f32.tf32.tf32.f32");
#endif
}

// m16n8k8 of doubles; before sm_90 in parts of 8 rows and half of k.
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
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    MULTIPLY_TILES("m16n8k8.row.col.f64.f64.f64.f64", "d", "d");
#else
    multiply_doubles(a[0], b0, c[0], c[1]);
    multiply_doubles(a[1], b0, c[2], c[3]);
    multiply_doubles(a[2], b1, c[0], c[1]);
    multiply_doubles(a[3], b1, c[2], c[3]);
#endif
}
