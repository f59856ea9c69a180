// Filter gradient of a convolution of groups on tensor cores (NHWC or NCHW): f16 or bf16, f32 accumulators, and a
// pointwise epilogue.
//
//   dw[g, f, k, l, c] = sum over n, i and j of
//                       x[n, i*STRIDE_H + k*DILATION_H + TOP, j*STRIDE_W + l*DILATION_W + LEFT, g, c] * d[n, i, j, g, f]
//
// A block computes all taps of TC groups. It iterates over strips of BD rows of d, or over BATCH whole images. They and
// the rows of x under their windows are in shared memory, channels innermost, each element once; those of the next step are
// being copied.
//
//         channels                  K is 16 pixels of the strip. The rows of A are two times 8 channels of x, each under
//       |c0…7 c8…15| c0…7 …         a tap of its own, the columns of B 8 filters of d. Both are transposed as they are
//   j   |  .    .  |                loaded. Lanes pass addresses of pixels, so windows may have any stride and
//   j+1 |  .    .  |                dilation.
//
// Every STRIDE_W-th column of x lies side by side: those under adjacent columns of d are in different banks.
//
// Warps share groups, then the taps of a group, then the pixels of a strip; those that share pixels add up
// their sums at the end, in order.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const f16 *in0;   // x[32, 28, 28, 32, 8]
    const f16 *in1;   // d[32, 28, 28, 32, 8]
    f16 *out0;        // dw[32, 8, 3, 3, 8]
};
#define PARAMETERS const f16 *__restrict__ in0, const f16 *__restrict__ in1, f16 *__restrict__ out0
#define TENSORS {in0, in1, out0}
constexpr Region STAGED_X = {0, 76800};   // of shared memory, in bytes
constexpr Region STAGED_D = {76800, 62720};
constexpr Region SUMS = {0, 10240};
constexpr int SHARED_BYTES = 139520;   // of a block
using Element = f16;                                          // of x and d
using Value = float;                                          // of products and sums
constexpr Index IMAGES = 32;                                  // that are summed over
constexpr int XH = 28, XW = 28, DH = 28, DW = 28;             // of x and d
constexpr int KH = 3, KW = 3;                                 // taps
constexpr int TOP = -1, LEFT = -1;                            // row and column of x of the first tap, for element 0 of d
constexpr int STRIDE_H = 1, STRIDE_W = 1;                     // in x, from one element of d to the next,
constexpr int DILATION_H = 1, DILATION_W = 1;                 // from one tap to the next
constexpr int CHANNELS = 8, FILTERS = 8;                      // of a group
constexpr int TC = 4, BD = 14, BATCH = 1;                     // rTile, block: groups; rows of d and images in a step
constexpr int TILES = 5;                                      // of a warp: two eights of channels under taps
constexpr int SETS = 2;                                       // warps with the same taps, which share pixels
constexpr int PIXEL_X = 40, PIXEL_D = 40;                     // elements in shared memory
constexpr Index PLANE_X = 1, PLANE_D = 1;                     // elements from one channel to the next
constexpr int VECTOR_X = 0, VECTOR_D = 0;                     // columns of a plane in an aligned vector; 0: channels are innermost
constexpr Index CHAIN = 36;                                   // promotion interval of the accumulators, in steps
constexpr bool CHAINS = true;                                 // longer than one promotion interval

struct SourceX {
    using Element = f16;
    static constexpr bool PIECES = false;   // rows are aligned to 16-byte vectors
    static constexpr Index COLUMN_STRIDE = 256;
    static __device__ __forceinline__ const Element *row(const Tensors &t, Index channel, Index image, int row)
    {
        return t.in0 + (channel * 8 + image * 200704 + row * 7168);
    }
};
struct SourceD {
    using Element = f16;
    static constexpr bool PIECES = false;
    static constexpr Index COLUMN_STRIDE = 256;
    static __device__ __forceinline__ const Element *row(const Tensors &t, Index channel, Index image, int row)
    {
        return t.in1 + (channel * 8 + image * 200704 + row * 7168);
    }
};

__device__ __forceinline__ void finish(const Tensors &t, Index channel, int k, int l, Value total, Index batch,
                                       Index multiplier)
{
    store(t.out0, channel * 576 + k * 24 + l * 8 + batch + multiplier * 72, total);
}
// </rollerc>

constexpr int EIGHTS = CHANNELS / 8, TAPS = KH * KW * EIGHTS;     // of channels; of these under all taps
constexpr int TILES_F = FILTERS / 8, PAIRS_F = (TILES_F + 1) / 2;   // of 8 filters
constexpr int SHARES = (TAPS + 2 * TILES - 1) / (2 * TILES);      // warps that share the taps of a group
constexpr int PARTS = TC * SHARES, WARPS = PARTS * SETS, THREADS = WARPS * WARP;
constexpr int REACH = (DW - 1) * STRIDE_W + (KW - 1) * DILATION_W + 1;      // columns of x under a row of d
constexpr int LINES = (BD - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1;      // rows of x under a strip
constexpr int SPAN = (REACH + STRIDE_W - 1) / STRIDE_W;             // columns of one phase
constexpr int LINE = STRIDE_W * SPAN * PIXEL_X, STRIP = LINES * LINE;   // elements
constexpr int STAGE_X = BATCH * STRIP, STAGE_D = BATCH * BD * DW * PIXEL_D;
constexpr int STRIPS = (DH + BD - 1) / BD;
constexpr Index STEPS = (IMAGES + BATCH - 1) / BATCH * STRIPS;

static_assert(CHANNELS % 8 == 0 && FILTERS % 8 == 0, "whole vectors");
static_assert(BATCH == 1 || BD == DH, "strips of one image, or whole images");
static_assert(PIXEL_X >= TC * CHANNELS && PIXEL_D >= TC * FILTERS, "pixels hold all groups");

__device__ __forceinline__ int images_of(Index step)
{
    return IMAGES % BATCH == 0 ? BATCH : (int)op_min<Index>(BATCH, IMAGES - step / STRIPS * BATCH);
}
__device__ __forceinline__ int rows_of(Index step)   // of d, of all images
{
    return images_of(step) * (DH % BD == 0 ? BD : op_min(BD, DH - (int)(step % STRIPS) * BD));
}

// Where a column under a row of d lies in a line.
__device__ __forceinline__ int place(int column)
{
    return (column % STRIDE_W * SPAN + column / STRIDE_W) * PIXEL_X;
}

// Starts the copies of a step's rows of d and of what is under their windows, with zeros outside of x.
__device__ __forceinline__ void copy_strip(const Tensors &t, Index group, Index step, Element *x, Element *d)
{
    const Index image = step / STRIPS * BATCH;
    const int first = (int)(step % STRIPS) * BD, top = first * STRIDE_H + TOP;
    if constexpr (VECTOR_X > 0) {
        constexpr int V = VECTOR_X > 0 ? VECTOR_X : 1;
        const auto from = [&](int line, int channel, int column) {
            const int row = top + line % LINES, own = column + LEFT;
            return PlaneElement<Element>{inside(row, XH) && inside(own, XW), SourceX::row(t, group, image + line / LINES, row) +
                                                                                 own * SourceX::COLUMN_STRIDE + channel * PLANE_X};
        };
        const auto to = [&](int line, int channel, int base, int column) {
            return x + (line * LINE + channel + (V % STRIDE_W == 0 ? base / STRIDE_W * PIXEL_X + place(column) : place(base + column)));
        };
        copy_planes<THREADS, V, TC * CHANNELS, (LEFT % V + V) % V, REACH, Element>(images_of(step) * LINES, PLANE_X, from, to);
    } else {
        constexpr int VECTORS_X = TC * CHANNELS / 8;   // of a pixel
        UNROLL_4 for (int i = (int)threadIdx.x; i < images_of(step) * (LINES * REACH * VECTORS_X); i += THREADS) {
            const int vector = i % VECTORS_X * 8, pixel = i / VECTORS_X, line = pixel / REACH;
            const int row = top + line % LINES, own = pixel % REACH, column = own + LEFT;
            const Element *const from = SourceX::row(t, group, image + line / LINES, row);
            async_copy16_or_zero(inside(row, XH) && inside(column, XW), x + line * LINE + place(own) + vector,
                                 from + column * SourceX::COLUMN_STRIDE + vector);
        }
    }
    if constexpr (VECTOR_D > 0) {
        constexpr int V = VECTOR_D > 0 ? VECTOR_D : 1;
        const auto from = [&](int row, int channel, int column) {
            return PlaneElement<Element>{inside(column, DW), SourceD::row(t, group, image + row / BD, first + row % BD) +
                                                                 column * SourceD::COLUMN_STRIDE + channel * PLANE_D};
        };
        const auto to = [&](int row, int channel, int base, int column) {
            return d + ((row * DW + base + column) * PIXEL_D + channel);
        };
        copy_planes<THREADS, V, TC * FILTERS, 0, DW, Element>(rows_of(step), PLANE_D, from, to);
    } else {
        constexpr int VECTORS_D = TC * FILTERS / 8;
        UNROLL_4 for (int i = (int)threadIdx.x; i < rows_of(step) * (DW * VECTORS_D); i += THREADS) {
            const int vector = i % VECTORS_D * 8, pixel = i / VECTORS_D, row = pixel / DW;
            const Element *const from = SourceD::row(t, group, image + row / BD, first + row % BD);
            async_copy16(d + pixel * PIXEL_D + vector,
                         from + pixel % DW * SourceD::COLUMN_STRIDE + vector);
        }
    }
}

// The offsets of a lane's vectors of x from its pixel: eights of channels under taps. Past the last one it is
// repeated.
struct Offsets {
    int at[TILES];

    __device__ __forceinline__ Offsets(int group, int share)
    {
        UNROLL for (int m = 0; m < TILES; ++m) {
            const int tap = op_min((share * TILES + m) * 2 + lane_id() / 8 % 2, TAPS - 1), window = tap / EIGHTS;
            at[m] = group * CHANNELS + tap % EIGHTS * 8 + window / KW * (DILATION_H * LINE) +
                    place(window % KW * DILATION_W);
        }
    }
};

// The bits of a lane's two pixels from `pixel` on that are among so many.
__device__ __forceinline__ unsigned bits_of_pixels(int pixel, int count)
{
    return (pixel < count ? 0xffffu : 0u) | (pixel + 1 < count ? 0xffff0000u : 0u);
}

struct Sums {
    Value at[TILES][TILES_F][4] = {};

    // Adds the products of 16 pixels of so many. Where some lie past the end, zeros of both factors are
    // multiplied.
    template <bool LAST>
    __device__ __forceinline__ void add(const Element *x, const Element *d, const Offsets &offsets, int first,
                                        int count)
    {
        const int lane = lane_id(), last = LAST ? count - 1 : first + 15;
        const int own = op_min(first + lane / 16 * 8 + lane % 8, last);            // of x,
        const int other = op_min(first + lane / 8 % 2 * 8 + lane % 8, last);       // and of d
        const int row = own / DW, image = BATCH > 1 ? row / BD : 0;
        const Element *const from =
            x + (image * STRIP + (row - image * BD) * (STRIDE_H * LINE) + own % DW * PIXEL_X);
        const unsigned bits[2] = {bits_of_pixels(first + lane % 4 * 2, count),
                                  bits_of_pixels(first + lane % 4 * 2 + 8, count)};
        unsigned b[PAIRS_F][4], a[4];
        UNROLL for (int p = 0; p < PAIRS_F; ++p) {
            load_matrices_turned(b[p], d + other * PIXEL_D + p * 16 + (2 * p + 1 < TILES_F ? lane / 16 * 8 : 0));
            UNROLL for (int e = 0; LAST && e < 4; ++e)
                b[p][e] &= bits[e % 2];
        }
        UNROLL for (int m = 0; m < TILES; ++m) {
            load_matrices_turned(a, from + offsets.at[m]);
            UNROLL for (int e = 0; LAST && e < 4; ++e)
                a[e] &= bits[e / 2];
            UNROLL for (int n = 0; n < TILES_F; ++n)
                multiply_tiles(Element(), a, b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1], at[m][n]);
        }
    }

    // Adds and clears others.
    __device__ __forceinline__ void take(Sums &sums)
    {
        UNROLL for (int m = 0; m < TILES; ++m)
            UNROLL for (int n = 0; n < TILES_F; ++n)
                UNROLL for (int e = 0; e < 4; ++e) {
                    at[m][n][e] = op_add(at[m][n][e], sums.at[m][n][e]);
                    sums.at[m][n][e] = 0;
                }
    }
};

extern "C" __global__ void __launch_bounds__(BOUNDS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED(STAGED_X, Element, xs, [2 * STAGE_X]);
    SHARED(STAGED_D, Element, ds, [2 * STAGE_D]);
    SHARED(SUMS, Value, left, [SETS > 1 ? SETS - 1 : 1][SETS > 1 ? PARTS : 1][TILES][TILES_F][4][WARP]);   // over x and d
    const Index first = (Index)blockIdx.x * TC;   // group
    const int warp = (int)threadIdx.x / WARP, part = warp % PARTS, set = warp / PARTS;
    const int group = part / SHARES, share = part % SHARES;
    const Offsets offsets(group, share);

    copy_strip(t, first, 0, xs, ds);
    async_commit();
    Sums totals, sums;
#pragma unroll 1
    for (Index step = 0; step < STEPS; ++step) {
        const int now = (int)(step % 2);
        async_wait<0>();
        block_sync();
        if (step + 1 < STEPS)
            copy_strip(t, first, step + 1, xs + (1 - now) * STAGE_X, ds + (1 - now) * STAGE_D);
        async_commit();
        const Element *const x = xs + now * STAGE_X, *const d = ds + now * STAGE_D + group * FILTERS;
        const int count = rows_of(step) * DW;
        int pixel = set * 16;
#pragma unroll 1
        for (; pixel + 16 <= count; pixel += SETS * 16)
            sums.add<false>(x, d, offsets, pixel, count);
        if (pixel < count)
            sums.add<true>(x, d, offsets, pixel, count);
        if (CHAINS && ((step + 1) % CHAIN == 0 || step + 1 == STEPS))
            totals.take(sums);
    }
    if (!CHAINS)
        totals = sums;

    // ---- combine the sums of sets ----
    if constexpr (SETS > 1) {
        async_wait<0>();
        block_sync();
        UNROLL for (int m = 0; m < TILES; ++m)
            UNROLL for (int n = 0; n < TILES_F; ++n)
                UNROLL for (int e = 0; e < 4; ++e)
                    if (set > 0)
                        left[set - 1][part][m][n][e][lane_id()] = totals.at[m][n][e];
        block_sync();
    }

    // ---- store ----
    if (set > 0)
        return;
    UNROLL for (int m = 0; m < TILES; ++m)
        UNROLL for (int n = 0; n < TILES_F; ++n)
            UNROLL for (int e = 0; e < 4; ++e) {
                const int tap = (share * TILES + m) * 2 + e / 2, window = tap / EIGHTS;
                Value total = totals.at[m][n][e];
                UNROLL for (int s = 1; s < SETS; ++s)
                    total = op_add(total, left[s - 1][part][m][n][e][lane_id()]);
                if (tap < TAPS)
                    finish(t, first + group, window / KW, window % KW, total, tap % EIGHTS * 8 + lane_id() / 4,
                           n * 8 + lane_id() % 4 * 2 + e % 2);
            }
}
}   // namespace KERNEL
