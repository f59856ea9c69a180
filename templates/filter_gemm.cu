// Filter gradient of a depthwise convolution on tensor cores: dw[c,k,l] = sum over n, i, j of d[n,c,i,j] *
// x[n,c,i+k+TOP,j+l+LEFT], of f16, bf16, or f32 rounded to tf32, with f32 accumulators and a pointwise epilogue.
//
// For one row of taps k this is a matrix product: D = dT * x over all rows i of all images, with row i of d and row
// i+k+TOP of x. D[j][u] belongs to tap l = u - j - LEFT: each diagonal of D is one tap, and is summed once at the
// end.
//
//             u ->         j \ u   0 1 2 3 4 5        A block computes BK rows of taps of one channel, a warp
//           |x x x x x x| i  0     1 2 3 . . .        TK of them, for TJ columns of d. It iterates over the
//                            1     0 1 2 3 . .        images in steps of BATCH: x and d of a step are in
//   d d d   |           |    2     . 0 1 2 3 .        shared memory, those of the next are being copied.
//   j |     |     D     |    3     . . 0 1 2 3        Only 16 x 8 tiles of D that some tap crosses are
//     v                      l of KW = 4, LEFT = -1   computed.
//
// Where d has infinities or NaN, the block recomputes its taps one by one, since rows of x out of bounds are skipped.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const f16 *in0;   // x[64, 384, 32, 32]
    const f16 *in1;   // d[64, 384, 32, 32]
    f16 *out0;        // dw[384, 31, 31]
};
#define PARAMETERS const f16 *__restrict__ in0, const f16 *__restrict__ in1, f16 *__restrict__ out0
#define TENSORS {in0, in1, out0}
constexpr Region PICTURES_X = {0, 20480};   // of shared memory, in bytes
constexpr Region PICTURES_D = {20480, 20480};
constexpr Region ZERO_ROW = {40960, 64};
constexpr Region SLABS = {0, 33792};
constexpr Region SUMS = {0, 3968};
constexpr Region MARKS = {41024, 32};
constexpr int SHARED_BYTES = 41056;   // of a block
using Element = f16;                                          // of x and d
using Value = float;                                          // of products and sums
constexpr Index IMAGES = 64;                                  // that are summed over
constexpr int XH = 32, XW = 32, DH = 32, DW = 32;             // of x and d
constexpr int KH = 31, KW = 31;                               // taps
constexpr int TOP = -15, LEFT = -15;                          // row and column of x of the first tap, for element 0 of d
constexpr int BK = 32;                                        // rows of taps of a block
constexpr int TK = 4, TJ = 32;                                // of a warp: rows of taps, columns of d
constexpr int SHARES = 1;                                     // warps that split the images
constexpr int BATCH = 4;                                      // images of a step
constexpr Index BLOCKS_K = 1, STEPS = 16;                     // blocks of a channel
constexpr int GROUPS_K = 8, GROUPS_J = 1;                     // of warps
constexpr int LANE_TAPS = 1;                                  // of a row of taps
constexpr int WIDE_D = 32, PITCH_X = 40, PITCH_D = 40;   // rows in shared memory
constexpr int ZEROS = 32;                                     // a row of zeros, for rows out of bounds
constexpr int BAND = -16, PAIRS = 4;   // first column of x for a warp's columns of d; pairs of tiles from there
constexpr Index CHAIN = 64;                                   // promotion interval of the accumulators, in steps
constexpr bool CHAINS = false;                                // longer than one promotion interval

struct SourceX {
    static constexpr bool PIECES = true;   // rows are aligned to 16-byte vectors
    static constexpr Index COLUMN_STRIDE = 1;
    static __device__ __forceinline__ const Element *row(const Tensors &t, Index channel, Index image,
                                                         int row)
    {
        return t.in0 + (channel * 1024 + image * 393216 + row * 32);
    }
};
struct SourceD {
    static constexpr bool PIECES = true;
    static constexpr Index COLUMN_STRIDE = 1;
    static __device__ __forceinline__ const Element *row(const Tensors &t, Index channel, Index image,
                                                         int row)
    {
        return t.in1 + (channel * 1024 + image * 393216 + row * 32);
    }
};

__device__ __forceinline__ void finish(const Tensors &t, Index channel, int k, int l, Value total)
{
    store(t.out0, channel * 961 + k * 31 + l, total);
}
// </rollerc>

constexpr int PIECE = 16 / sizeof(Element);                          // elements of a 16-byte vector
constexpr int AM = 16, AN = 8, AK = 2 * PIECE;                       // tile of one instruction
constexpr int TILES_J = TJ / AM, PARTS = GROUPS_J * SHARES, WARPS = GROUPS_K * PARTS, THREADS = WARPS * WARP;
using PlaneX = Plane<SourceX, XH, XW, PITCH_X, 0>;
using PlaneD = Plane<SourceD, DH, DW, PITCH_D, 0>;
constexpr int STEP_X = BATCH * PlaneX::ELEMENTS, STEP_D = BATCH * PlaneD::ELEMENTS;   // elements

static_assert(BK == GROUPS_K * TK && TJ % AM == 0, "whole tiles");

// Whether some tap crosses the 16 x 8 tile of columns a*16 … of d and BAND + b*8 … of x.
__device__ __forceinline__ constexpr bool meets(int a, int b)
{
    const int tap = BAND + b * AN - a * AM - LEFT;   // of their first columns
    return tap > -AN && tap < KW + AM - 1;
}

// Stages sixteen rows of D for the sums along diagonals.
struct Slab {
    Value at[AM][PAIRS * 16 + 2];
};

// The addresses of a lane for AK rows of an image; `row(k)` is where a row begins. Of 16-bit elements it passes a row
// of one of four matrices, which are transposed as they are loaded. Of f32 it loads rows l % 4 and l % 4 + 4 of
// column l / 4; the PITCHes are 8 and 24 banks.
struct Rows {
    static constexpr bool TURNED = sizeof(Element) == 2;
    static constexpr int COUNT = TURNED ? 1 : 2;
    const Element *at[COUNT];

    template <class Row> __device__ __forceinline__ explicit Rows(Row row)
    {
        const int lane = (int)threadIdx.x % WARP;
        UNROLL for (int i = 0; i < COUNT; ++i)
            at[i] = TURNED ? row(lane / 16 * 8 + lane % 8) + lane / 8 % 2 * 8 : row(lane % 4 + i * 4) + lane / 4;
    }
    // Loads sixteen columns.
    __device__ __forceinline__ void load(unsigned (&tile)[4], int column) const
    {
        if constexpr (TURNED)
            load_matrices_turned(tile, at[0] + column);
        else
            UNROLL for (int i = 0; i < 4; ++i)
                tile[i] = bits_of(at[i / 2][column + i % 2 * 8]);
        round_tile(Element(), tile);
    }
};

// A warp's part of D.
struct Product {
    Value acc[TK][TILES_J][PAIRS * 2][4];

    // Tiles of x for columns [j0, j0 + TJ) of d, in the row that starts at `row`; others are never multiplied.
    static __device__ __forceinline__ int column_of(int j0, int p) { return j0 + BAND + p * 16; }
    static __device__ __forceinline__ bool is_inside(int j0, int p)
    {
        return column_of(j0, p) >= 0 && column_of(j0, p) < XW;
    }
    static __device__ __forceinline__ void load(unsigned (&b)[PAIRS][4], const Rows &rows, int j0)
    {
        UNROLL for (int p = 0; p < PAIRS; ++p)
            if (is_inside(j0, p))
                rows.load(b[p], column_of(j0, p));
    }

    // Accumulates AK rows of one image from i0 on: the rows of x for the next row of taps are loaded during the
    // products.
    __device__ __forceinline__ void add(const Element *x, const Element *d, const Element *zeros, int i0,
                                        int k0, int j0)
    {
        const int first = i0 + k0 + TOP;   // row of x
        if (first + AK + TK - 1 <= 0 || first >= XH)
            return;
        const auto exists = [&](int row) { return DH % AK == 0 || i0 + row < DH; };
        const Rows rows_d([&](int row) { return exists(row) ? d + (i0 + row) * PITCH_D : zeros; });
        unsigned a[TILES_J][4], b[2][PAIRS][4];
        UNROLL for (int m = 0; m < TILES_J; ++m)
            rows_d.load(a[m], j0 + m * AM < WIDE_D ? j0 + m * AM : 0);
        UNROLL for (int k = -1; k < TK; ++k) {
            const Rows rows_x([&](int row) {
                const int next = first + row + k + 1;
                return exists(row) && next >= 0 && next < XH ? x + next * PITCH_X : zeros;
            });
            if (k + 1 < TK)
                load(b[(k + 1) % 2], rows_x, j0);
            UNROLL for (int p = 0; p < PAIRS && k >= 0; ++p)
                UNROLL for (int m = 0; m < TILES_J; ++m)
                    UNROLL for (int n = 0; n < 2; ++n)
                        if (meets(m, p * 2 + n) && is_inside(j0, p))
                            multiply_tiles(Element(), a[m], b[k % 2][p][n], b[k % 2][p][2 + n],
                                           acc[k][m][p * 2 + n]);
        }
    }

    // Adds the diagonals to the taps, lane l those of l, l + 32, …, and clears D.
    __device__ __forceinline__ void fold(Slab &slab, int j0, Value (&taps)[TK][LANE_TAPS])
    {
        const int lane = (int)threadIdx.x % WARP;
        UNROLL for (int k = 0; k < TK; ++k)
            UNROLL for (int m = 0; m < TILES_J; ++m) {
                UNROLL for (int n = 0; n < PAIRS * 2; ++n)
                    UNROLL for (int e = 0; e < 4; ++e) {
                        slab.at[lane / 4 + e / 2 * 8][n * AN + lane % 4 * 2 + e % 2] = acc[k][m][n][e];
                        acc[k][m][n][e] = 0;
                    }
                warp_sync();
                UNROLL for (int i = 0; i < LANE_TAPS; ++i)
                    for (int j = 0; j < AM; ++j) {
                        const int l = lane + i * WARP, v = m * AM + j, u = v + l + LEFT - BAND;   // relative to j0
                        if (l < KW && j0 + v < DW && inside(j0 + u + BAND, XW))
                            taps[k][i] = op_add(taps[k][i], slab.at[j][u]);
                    }
                warp_sync();
            }
    }
};

__device__ __forceinline__ int images_of(Index step)
{
    return (int)op_min<Index>(IMAGES - step * BATCH, BATCH);
}

__device__ __forceinline__ void copy_step(const Tensors &t, Index channel, Index step, Element *x, Element *d)
{
    PlaneX::copy<THREADS>(t, channel, step * BATCH, images_of(step), x);
    PlaneD::copy<THREADS>(t, channel, step * BATCH, images_of(step), d);
}

// Added to an element without its sign, this carries into the sign if the element is infinite or NaN, whose exponent
// is all ones. A float may also become infinite when it is rounded.
__device__ __forceinline__ unsigned least_exponent(f16) { return 0x04000400u; }
__device__ __forceinline__ unsigned least_exponent(bf16) { return 0x00800080u; }
__device__ __forceinline__ unsigned least_exponent(f32) { return 0x00802000u; }
constexpr unsigned SIGNS = sizeof(Element) == 2 ? 0x80008000u : 0x80000000u;   // of a word

__device__ __forceinline__ Value exact_total(const Tensors &t, Index channel, int k, int l)
{
    return exact_correlation<Value, SourceX, SourceD, XH, XW, DH, DW>(t, channel, IMAGES, k + TOP, l + LEFT);
}

extern "C" __global__ void __launch_bounds__(BOUNDS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED(PICTURES_X, Element, xs, [2 * STEP_X]);
    SHARED(PICTURES_D, Element, ds, [2 * STEP_D]);
    SHARED(ZERO_ROW, Element, zeros, [ZEROS]);
    SHARED(SLABS, Slab, slabs, [WARPS]);
    SHARED(SUMS, Value, parts, [PARTS][BK][KW]);          // over the slabs
    SHARED(MARKS, int, marks, [WARPS]);
    const Index channel = (Index)blockIdx.x / BLOCKS_K;
    const int k0 = (int)((Index)blockIdx.x % BLOCKS_K) * BK, thread = (int)threadIdx.x, warp = thread / WARP;
    const int warp_k = warp / PARTS * TK, part = warp % PARTS, j0 = part / SHARES * TJ, share = part % SHARES;

    // ---- load: what no image covers stays zero ----
    for (int i = thread; i < 2 * STEP_X; i += THREADS)
        xs[i] = Element();
    for (int i = thread; i < 2 * STEP_D; i += THREADS)
        ds[i] = Element();
    for (int i = thread; i < ZEROS; i += THREADS)
        zeros[i] = Element();
    block_sync();
    copy_step(t, channel, 0, xs, ds);
    async_commit();

    // ---- compute ----
    Product product = {};
    Value taps[TK][LANE_TAPS] = {};
    unsigned reached = 0;   // signs: set where some element of d is infinite or NaN
#pragma unroll 1
    for (Index step = 0; step < STEPS; ++step) {
        const int now = (int)(step % 2);
        async_wait<0>();
        block_sync();
        if (step + 1 < STEPS)
            copy_step(t, channel, step + 1, xs + (1 - now) * STEP_X, ds + (1 - now) * STEP_D);
        async_commit();
        const int count = images_of(step);
        for (int i = thread * PIECE; i < count * PlaneD::ELEMENTS; i += THREADS * PIECE) {
            unsigned words[4];
            move_vector<4>(words, reinterpret_cast<const unsigned *>(ds + now * STEP_D + i));
            UNROLL for (int e = 0; e < 4; ++e)
                reached |= (words[e] & ~SIGNS) + least_exponent(Element());
        }
#pragma unroll 1
        for (int image = share; image < count; image += SHARES)
#pragma unroll 1
            for (int i0 = 0; i0 < DH; i0 += AK)
                product.add(xs + now * STEP_X + image * PlaneX::ELEMENTS,
                            ds + now * STEP_D + image * PlaneD::ELEMENTS, zeros, i0, k0 + warp_k, j0);
        if (CHAINS && (step + 1) % CHAIN == 0)
            product.fold(slabs[warp], j0, taps);
    }

    // ---- combine: diagonals, then parts ----
    async_wait<0>();
    block_sync();
    product.fold(slabs[warp], j0, taps);
    block_sync();
    UNROLL for (int k = 0; k < TK; ++k)
        UNROLL for (int i = 0; i < LANE_TAPS; ++i)
            if (thread % WARP + i * WARP < KW)
                parts[part][warp_k + k][thread % WARP + i * WARP] = taps[k][i];

    // ---- store ----
    const bool again = any_of_block<WARPS>((reached & SIGNS) != 0, marks);   // waits for all parts, too
    for (int i = thread; i < BK * KW; i += THREADS) {
        const int k = k0 + i / KW, l = i % KW;
        Value total = parts[0][i / KW][l];
        UNROLL for (int p = 1; p < PARTS; ++p)
            total = op_add(total, parts[p][i / KW][l]);
        if (k < KH)
            finish(t, channel, k, l, again ? exact_total(t, channel, k, l) : total);
    }
}
}   // namespace KERNEL
