// Runs every check of checks.def: block b the b-th of them.
#include "../../templates/prelude.cuh"

#define BOTH static __device__ inline
#include "values.h"

namespace conformance {
using namespace rollerc;

struct Memory {
    const unsigned char *table;   // (TABLE_BYTES), aligned to 16
    unsigned char *scratch;       // (THREADS * 96), shared
};

constexpr bool HAS_TILES = WARP == 32;   // AMD's are others
#if defined(ROLLERC_INTERP) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr bool HAS_SHARED_TILES = HAS_TILES;
#else
constexpr bool HAS_SHARED_TILES = false;
#endif

#if defined(ROLLERC_INTERP) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800)
template <class T> DEVICE unsigned rounded_pair(float low, float high) { return pair_of(T(), low, high); }
#else
template <class T> DEVICE unsigned rounded_pair(float, float) { return 0; }   // nvcc's pass for the host has none
#endif

DEVICE unsigned long long bits_of(float x) { return __float_as_uint(x); }
DEVICE unsigned long long bits_of(double x) { return static_cast<unsigned long long>(__double_as_longlong(x)); }
DEVICE unsigned long long bits_of(f16 x) { return x.bits; }
DEVICE unsigned long long bits_of(bf16 x) { return x.bits; }
DEVICE unsigned long long bits_of(long long x) { return static_cast<unsigned long long>(x); }

template <class T> DEVICE T scaled(int x, float by) { return narrow<T>(static_cast<float>(x) * by); }
template <> __device__ __forceinline__ i8 scaled<i8>(int x, float) { return static_cast<i8>(x); }
template <> __device__ __forceinline__ u8 scaled<u8>(int x, float) { return static_cast<u8>(x); }

// The sum of (n + 1) times the n-th element: any element at another place changes it.
template <int N, class V> DEVICE long long weighted(const V (&v)[N])
{
    long long sum = 0;
    for (int n = 0; n < N; n++)
        sum += (n + 1) * static_cast<long long>(v[n]);
    return sum;
}

template <class T, int N> DEVICE long long read_vector(const Memory &memory, int i)
{
    compute_type<T> v[N];
    load_vector<N>(reinterpret_cast<const T *>(memory.table), i * N, v);
    return weighted(v);
}

DEVICE int element(const Memory &memory, int index, const signed char *)
{
    return static_cast<signed char>(memory.table[index]);
}
DEVICE int element(const Memory &memory, int index, const int *)
{
    return reinterpret_cast<const int *>(memory.table)[index];
}
DEVICE int element(const Memory &memory, int index, const f16 *) { return memory.table[index] - 128; }

template <class T, int N> DEVICE long long write_vector(const Memory &memory, int i)
{
    compute_type<T> in[N], out[N];
    T *const to = reinterpret_cast<T *>(memory.scratch);
    for (int n = 0; n < N; n++)
        in[n] = static_cast<compute_type<T>>(element(memory, i * N + n, to));
    store_vector<N>(to, i % THREADS * N, in);
    for (int n = 0; n < N; n++)
        out[n] = load(to, i % THREADS * N + n);
    return weighted(out);
}

DEVICE float divided(float a, float b)
{
    float quotient[1] = {a};
    divide_all(quotient, divisor_of(b));
    return quotient[0];
}

template <class T, int N> DEVICE long long copy_vector(const Memory &memory, int i)
{
    T v[N];
    T *const to = reinterpret_cast<T *>(memory.scratch) + i % THREADS * N;
    move_vector<N>(v, reinterpret_cast<const T *>(memory.table) + i * N);
    move_vector<N>(to, v);
    for (int n = 0; n < N; n++)
        v[n] = to[n];
    return weighted(v);
}

// COLUMNS vectors of ROWS elements, turned.
template <class T, int COLUMNS, int ROWS> DEVICE long long turn(const Memory &memory, int i)
{
    Piece<T, COLUMNS, ROWS> piece;
    T v[COLUMNS * ROWS];
    T *const to = reinterpret_cast<T *>(memory.scratch) + i % THREADS * COLUMNS * ROWS;
    for (int column = 0; column < COLUMNS; column++)
        piece.read(column, reinterpret_cast<const T *>(memory.table) + (i * COLUMNS + column) * ROWS);
    for (int row = 0; row < ROWS; row++)
        piece.write(row, to + row * COLUMNS);
    for (int n = 0; n < COLUMNS * ROWS; n++)
        v[n] = to[n];
    return weighted(v);
}

template <class T, int N> DEVICE long long line(const Memory &memory, int i)
{
    Line<T, N> line;
    T v[N];
    line.load(reinterpret_cast<const T *>(memory.table), i);
    for (int n = 0; n < N; n++)
        v[n] = static_cast<T>(line[n]);
    return weighted(v);
}

template <int N> DEVICE long long bits(const Memory &memory, int i)
{
    bool in[N];
    unsigned *const words = reinterpret_cast<unsigned *>(memory.scratch);
    for (int n = 0; n < N; n++)
        in[n] = bit_of(i * N + n);
    words[i % THREADS] = ~0u;
    block_sync();
    store_bits<N>(words, i * N, in, is_active(i));
    block_sync();
    load_bits<N>(words, i * N, in);
    unsigned result = 0;
    for (int n = 0; n < N; n++)
        result |= static_cast<unsigned>(in[n] && load_bit(words, i * N + n)) << n;
    block_sync();
    return result;
}

// Two halves of the block meet from two places: each reads what the other one wrote.
DEVICE long long met_in_roles(const Memory &memory, int i)
{
    int *const words = reinterpret_cast<int *>(memory.scratch);
    words[i % THREADS] = key(i);
    if (threadIdx.x < THREADS / 2)
        roles_sync<THREADS>();
    else
        roles_sync<THREADS>();
    const int result = words[(i + THREADS / 2) % THREADS];
    block_sync();
    return result;
}

DEVICE long long copied(const Memory &memory, int i, int elements)
{
    unsigned char v[16];
    unsigned char *const to = memory.scratch + i % THREADS * 16;
    copy_inside<16>(elements == 16, to, memory.table, i * 16 % TABLE_BYTES, i * 16 % TABLE_BYTES + elements);
    async_commit();
    async_wait<0>();
    for (int n = 0; n < 16; n++)
        v[n] = to[n];
    return weighted(v);
}

// What of its warp's lines of 16 bytes becomes a lane's: two elements of each of four 8 x 8 matrices.
DEVICE long long matrices(const Memory &memory, int i, bool turned)
{
    unsigned tile[4] = {};
    unsigned char *const line = memory.scratch + i % THREADS * 16;
    for (int n = 0; n < 16; n++)
        line[n] = memory.table[i * 16 % TABLE_BYTES + n];
    block_sync();
    if (HAS_TILES && turned)
        load_matrices_turned(tile, line);
    if (HAS_TILES && !turned)
        load_matrices(tile, line);
    block_sync();
    int v[8];
    for (int n = 0; n < 8; n++)
        v[n] = static_cast<int>(tile[n / 2] >> n % 2 * 16 & 0xffffu);
    return weighted(v);
}

// Of lines of bytes: four that follow each other, in two columns side by side.
DEVICE long long turned_bytes(const Memory &memory, int i)
{
    unsigned tile[4] = {};
    unsigned char *const line = memory.scratch + i % THREADS * 16;
    for (int n = 0; n < 16; n++)
        line[n] = memory.table[i * 16 % TABLE_BYTES + n];
    block_sync();
    if (HAS_TILES) {
        load_matrices_turned(tile, line);
        part_bytes(tile);
    }
    block_sync();
    int v[16];
    for (int n = 0; n < 16; n++)
        v[n] = static_cast<int>(tile[n / 4] >> n % 4 * 8 & 0xffu);
    return weighted(v);
}

// A lane's four elements of c, each where the layout of mma.m16n8kK in the PTX ISA says: of a row it has K / 8 neighbours in each
// half of k.
template <class T, class Sum, int K> struct LaneTiles {
    T a[4][K / 8], b[2][K / 8];
    Sum c[4];

    DEVICE LaneTiles of(int i, float scale)
    {
        const int line = i % 32 / 4, first = i % 4 * (K / 8);
        LaneTiles own;
        for (int n = 0; n < 4; n++) {
            own.c[n] = static_cast<Sum>(tile_c(line + n / 2 * 8, i % 4 * 2 + n % 2));
            for (int e = 0; e < K / 8; e++)
                own.a[n][e] = scaled<T>(tile_a(i / 32, line + n % 2 * 8, first + e + n / 2 * (K / 2)), scale);
        }
        for (int n = 0; n < 2; n++)
            for (int e = 0; e < K / 8; e++)
                own.b[n][e] = narrow<T>(tile_b(first + e + n * (K / 2), line));
        return own;
    }
    DEVICE TileWord<T> word(const T *elements) { return *reinterpret_cast<const TileWord<T> *>(elements); }
};

template <class T, class Sum, int K> DEVICE long long product(int i, float scale, bool round = false)
{
    using Tiles = LaneTiles<T, Sum, K>;
    Tiles own = Tiles::of(i, scale);
    int v[4];
    TileWord<T> a[4];
    for (int n = 0; n < 4; n++)
        a[n] = Tiles::word(own.a[n]);
    if (round)
        round_tile(T(), a);
    if (HAS_TILES)
        multiply_tiles(T(), a, Tiles::word(own.b[0]), Tiles::word(own.b[1]), own.c);
    for (int n = 0; n < 4; n++)
        v[n] = HAS_TILES ? static_cast<int>(own.c[n]) : 0;
    return weighted(v);
}

// Of the first half of K alone: as many lines, and their other elements are zeros.
template <class T, int K> DEVICE long long half_product(int i)
{
    using Tiles = LaneTiles<T, float, 2 * K>;
    Tiles own = Tiles::of(i, 1);
    int v[4];
    if (HAS_TILES)
        multiply_half_tiles(T(), Tiles::word(own.a[0]), Tiles::word(own.a[1]), Tiles::word(own.b[0]), own.c);
    for (int n = 0; n < 4; n++)
        v[n] = HAS_TILES ? static_cast<int>(own.c[n]) : 0;
    return weighted(v);
}

// What lies a little closer to zero than a number of 11 bits is this one.
DEVICE long long rounded_product(int i) { return product<f32, float, 8>(i, 1 - 0x1p-13f, true); }

// A thread's 32 of 64 x 64 sums, of operands that lie along k or, turned, along their rows; elsewhere what they should be.
template <class T, class Sum, bool TURN_A, bool TURN_B> DEVICE long long shared_product(const Memory &memory, int i, float scale, int mask)
{
    constexpr int K = 32 / static_cast<int>(sizeof(T)), PIECE = K / 2, TILE = 8192 / static_cast<int>(sizeof(T));
    T *const tiles = reinterpret_cast<T *>(memory.scratch + (0u - shared_address(memory.scratch)) % 1024);
    Sum c[32] = {};
    int v[32];
    for (int n = static_cast<int>(threadIdx.x); n < 2 * 64 * K; n += THREADS) {
        const int which = n / (64 * K), row = n / K % 64, k = n % K;
        const bool turn = which ? TURN_B : TURN_A;
        const int line = turn ? k : row, at = turn ? row : k;
        tiles[which * TILE + (line * 8 + (at / PIECE ^ line % 8)) * PIECE + at % PIECE] =
            which ? narrow<T>(tile_b(k, row)) : scaled<T>(tile_a(0, row, k), scale);
    }
    show_operands();
    block_sync();
    if (HAS_SHARED_TILES) {
        open_products(c);
        multiply_shared<TURN_A, TURN_B>(Product<T, 64>(), c, describe_operand(tiles, 8192, 1024),
                                        describe_operand(tiles + TILE, 8192, 1024));
        close_products();
        wait_products<0>(c);
    }
    block_sync();
    for (int n = 0; n < 32; n++)
        v[n] = HAS_SHARED_TILES ? static_cast<int>(c[n]) : HAS_TILES ? shared_sum(i, n, K, mask) : 0;
    return weighted(v);
}

// The same of A in registers, its products behind others that begin the sums or on their own. BEGIN: the first product begins sums that
// hold anything.
template <class T, bool TURN_B, bool BEGIN> DEVICE long long held_product(const Memory &memory, int i)
{
    constexpr int K = 16, PIECE = 8, TILE = 4096;
    T *const tiles = reinterpret_cast<T *>(memory.scratch + (0u - shared_address(memory.scratch)) % 1024);
    const int lane = static_cast<int>(threadIdx.x) % WARP, row0 = static_cast<int>(threadIdx.x) / WARP % 4 * 16 + lane / 4;
    float c[32];
    unsigned a[4];
    int v[32];
    for (int n = static_cast<int>(threadIdx.x); n < 2 * 64 * K; n += THREADS) {
        const int which = n / (64 * K), row = n / K % 64, k = n % K;
        const bool turn = which && TURN_B;
        const int line = turn ? k : row, at = turn ? row : k;
        tiles[which * TILE + (line * 8 + (at / PIECE ^ line % 8)) * PIECE + at % PIECE] =
            narrow<T>(which ? tile_b(k, row) : tile_a(0, row, k));
    }
    for (int n = 0; n < 4; n++) {
        const int row = row0 + n % 2 * 8, k = lane % 4 * 2 + n / 2 * 8;
        a[n] = pair_of(T(), static_cast<float>(tile_a(0, row, k)), static_cast<float>(tile_a(0, row, k + 1)));
    }
    for (int n = 0; n < 32; n++)
        c[n] = BEGIN ? 1e30f : 0.0f;
    show_operands();
    block_sync();
    if (HAS_SHARED_TILES) {
        open_products(c);
        if (BEGIN)
            multiply_shared<false, TURN_B>(Product<T, 64>(), c, describe_operand(tiles, 8192, 1024),
                                           describe_operand(tiles + TILE, 8192, 1024), false);
        else
            multiply_held<TURN_B>(Held<T, 64>(), c, a, describe_operand(tiles + TILE, 8192, 1024));
        close_products();
        wait_products<0>(c);
    }
    block_sync();
    for (int n = 0; n < 32; n++)
        v[n] = HAS_SHARED_TILES ? static_cast<int>(c[n]) : HAS_TILES ? shared_sum(i, n, K, -1) : 0;
    return weighted(v);
}

// The elements of 16 bytes from element i on, of a tensor of so many; the first `count` of them.
template <class T, int COUNT> DEVICE long long from_anywhere(const Memory &memory, int i)
{
    const T *table = reinterpret_cast<const T *>(memory.table);
    PieceAnywhere<T> piece;
    typename PieceAnywhere<T>::Last last;
    last.load(table, 4096 - 3);
    piece.load(table, i, 4096 - 3, true, last);
    const Vector<unsigned, 4> value = piece.value(COUNT);
    long long v[16 / sizeof(T)];
    for (int n = 0; n < static_cast<int>(16 / sizeof(T)); n++)
        v[n] = reinterpret_cast<const T *>(&value)[n];
    return weighted(v);
}

#define REAL(name, count, type, device, host) CHECK(name, count, device)
#define NEAR(name, count, type, ulps, device, host) CHECK(name, count, device)
#define WHOLE(name, count, device, host) CHECK(name, count, static_cast<long long>(device))

#define CHECK(name, count, device) \
    DEVICE unsigned long long check_##name([[maybe_unused]] const Memory &memory, [[maybe_unused]] int i) \
    { \
        return bits_of(device); \
    }
#include "checks.def"
#undef CHECK

extern "C" __global__ void conformance_k0(const unsigned char *table, unsigned long long *out)
{
    SHARED_AT(0, unsigned char, scratch, [THREADS * 96]);
    const Memory memory = {table, scratch};
    int check = 0;
#define CHECK(name, count, device) \
    if (static_cast<int>(blockIdx.x) == check++) \
        for (int i = static_cast<int>(threadIdx.x); i < (count); i += THREADS) \
            out[i] = check_##name(memory, i); \
    out += count;
#include "checks.def"
#undef CHECK
}

}   // namespace conformance

#define CHECK(name, count, device) +1
enum { CHECKS = 0
#include "checks.def"
};

extern "C" int conformance_launch(const void *in0, void *out0, void *, void *stream)
{
    void *args[] = {&in0, &out0};
    return cudaLaunchKernel(conformance::conformance_k0, dim3(CHECKS), dim3(THREADS), args, THREADS * 96,
                            static_cast<cudaStream_t>(stream));
}
