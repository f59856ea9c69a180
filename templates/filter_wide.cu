// Filter gradient of a convolution of many channels, or of groups of many, on tensor cores that read shared memory (NHWC): f16 or
// bf16, f32 accumulators, and a pointwise epilogue.
//
//   dw[g, f, k, l, c] = sum over n, i and j of
//                       x[n, i*STRIDE_H + k*DILATION_H + TOP, j*STRIDE_W + l*DILATION_W + LEFT, g, c] * d[n, i, j, g, f]
//
// A block computes all taps of SIDE channels and SIDE filters of a group. It iterates over strips of BD rows of d, or over
// BATCH whole images. A producer thread copies boxes (TMA) of them and of the rows of x under their windows, each element
// once, while warp groups multiply those of the step before. A pixel is a line of 128 bytes in shared memory.
//
//          x: columns                      A warp group computes a row of taps. The rows of its product are filters, the
//       |0 1 2 … 7|8 9 …| . .|             columns SIDE channels under each tap. K is 16 pixels: two runs of eight in rows of d,
//   l=0  +-------+                         whose columns are padded with zeros to a multiple of eight. The lines of B under
//   l=1    +-------+                       a tap begin DILATION_W lines after those under the tap before: they overlap. With
//                                          a stride, phases of columns are multiplied one after the other.
//
// Of channels and filters past the last one of a group the products are not stored.
//
// A padded column multiplies x by zero, which is not a number if x is not finite. So sums that are not numbers are
// computed again, by plain loops.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const f16 *in0;   // x[4, 14, 14, 16, 64]
    const f16 *in1;   // d[4, 14, 14, 16, 64]
    f16 *out0;        // dw[16, 64, 3, 3, 64]
};
#define PARAMETERS \
    const f16 *__restrict__ in0, const f16 *__restrict__ in1, f16 *__restrict__ out0, \
        const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b
#define TENSORS {in0, in1, out0}
constexpr Region EVERYTHING = {0, 166944};   // of shared memory, in bytes
constexpr int SHARED_BYTES = 166944;   // of a block
using Element = f16;                                          // of x and d
using Value = float;                                          // of products and sums
constexpr Index IMAGES = 4;                                   // that are summed over
constexpr int XH = 14, XW = 14, DH = 14, DW = 14;             // of x and d
constexpr int KH = 3, KW = 3;                                 // taps
constexpr int TOP = -1, LEFT = -1;                            // row and column of x of the first tap, for element 0 of d
constexpr int STRIDE_H = 1, STRIDE_W = 1;                     // in x, from one element of d to the next,
constexpr int DILATION_H = 1, DILATION_W = 1;                 // from one tap to the next
constexpr Index IMAGE_X = 200704, IMAGE_D = 200704;           // elements from one image to the next
constexpr int CHANNELS = 64, FILTERS = 64;                    // of a group
constexpr bool TAPS_INSIDE = false;                           // results of all taps are adjacent
constexpr int BD = 14, BATCH = 1;                             // rTile, block: rows of d and images in a step
constexpr int STAGES = 2;                                     // of the pipeline along the pixels

struct SourceX {
    using Element = f16;
    static constexpr bool PIECES = false;   // rows are aligned to 16-byte vectors
    static constexpr Index COLUMN_STRIDE = 1024;
    static __device__ __forceinline__ const Element *row(const Tensors &t, Index channel, Index image, int row)
    {
        return t.in0 + (channel * 64 + image * 200704 + row * 14336);
    }
};
struct SourceD {
    using Element = f16;
    static constexpr bool PIECES = false;   // rows are aligned to 16-byte vectors
    static constexpr Index COLUMN_STRIDE = 1024;
    static __device__ __forceinline__ const Element *row(const Tensors &t, Index channel, Index image, int row)
    {
        return t.in1 + (channel * 64 + image * 200704 + row * 14336);
    }
};

__device__ __forceinline__ void finish(const Tensors &t, Index channel, int k, int l, Value total, Index batch,
                                       Index multiplier)
{
    store(t.out0, channel * 36864 + k * 192 + l * 64 + batch + multiplier * 576, total);
}
// </rollerc>

constexpr int SIDE = 64, EIGHT = 8;                     // channels and filters of a block; pixels of a run
constexpr int BLOCKS_C = (CHANNELS + SIDE - 1) / SIDE, BLOCKS_F = (FILTERS + SIDE - 1) / SIDE;   // of a group
constexpr int RUNS = (DW + EIGHT - 1) / EIGHT;          // of a row of d
// Column j*STRIDE_W + l*DILATION_W + LEFT of x: every STRIDE_W-th one, a phase, lies side by side. Taps APART from each other
// have the same phase, and lie TOGETHER columns of it apart.
constexpr int APART = DILATION_W % STRIDE_W == 0 ? 1 : STRIDE_W, TOGETHER = DILATION_W * APART / STRIDE_W;
constexpr int BEGIN = LEFT < 0 ? (LEFT + 1) / STRIDE_W - 1 : LEFT / STRIDE_W;   // first column of a phase
__device__ __forceinline__ constexpr int offset_of(int tap) { return tap * DILATION_W + LEFT - BEGIN * STRIDE_W; }
constexpr int SPAN = DW + offset_of(KW - 1) / STRIDE_W;             // columns of a phase of a row of x
constexpr int LINES = (BD - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1;       // rows of x under a strip
constexpr int PIXELS_X = BATCH * LINES * STRIDE_W * SPAN, PIXELS_D = BATCH * BD * RUNS * EIGHT;   // of a stage
constexpr int COLUMNS = KW * SIDE;                      // of a warp group's product
constexpr int STRIPS = (DH + BD - 1) / BD;
constexpr Index STEPS = IMAGES / BATCH * STRIPS;
constexpr int WARPS = KH * 4, THREADS = WARPS * WARP, TAPS = KH * KW, COPYING = 1;   // that warp copies
constexpr bool PADDED = DW % EIGHT != 0 || DH % BD != 0;

static_assert(XW % STRIDE_W == 0, "phases are of one length");
static_assert(BATCH == 1 || BD == DH, "strips of one image, or whole images");
static_assert(IMAGES % BATCH == 0 && BATCH * BD * RUNS % 2 == 0, "whole steps of whole instructions");

// Padded columns of d meet columns of the next row of x, and behind the last one lines of zeros.
constexpr int LINES_X = (PIXELS_X + RUNS * EIGHT - DW + EIGHT - 1) / EIGHT * EIGHT;

struct Stage {
    Element x[LINES_X][SIDE], d[PIXELS_D][SIDE];
};

// By all threads, once.
__device__ __forceinline__ void clear_behind(Stage *stages)
{
    constexpr int PIECES = (LINES_X - PIXELS_X) * SIDE * (int)sizeof(Element) / (int)sizeof(bits128);   // of a stage
    for (int stage = 0; stage < STAGES; ++stage)
        for (int i = (int)threadIdx.x; i < PIECES; i += THREADS)
            reinterpret_cast<bits128 *>(stages[stage].x[PIXELS_X])[i] = bits128();
    show_operands();
}

// The sums of a block: filters by channels under taps. Lanes are in different banks that fill rows, read channels, or read taps
// of some channels.
struct Sums {
    static constexpr int TAP = SIDE + 4, ROW = (TAPS * TAP + 31) / 32 * 32 + 8;
    Value at[SIDE][ROW];
};

struct Ring {
    unsigned long long full[STAGES], free[STAGES];
};
constexpr int RING = STAGES * (int)sizeof(Stage) > (int)sizeof(Sums) ? STAGES * (int)sizeof(Stage) : (int)sizeof(Sums);

// What a block computes: the group, the first channel and filter.
struct Corner {
    Index group;
    int channel, filter;

    __device__ __forceinline__ Corner()
        : group((Index)blockIdx.x / (BLOCKS_C * BLOCKS_F)), channel((int)((Index)blockIdx.x / BLOCKS_F % BLOCKS_C) * SIDE),
          filter((int)((Index)blockIdx.x % BLOCKS_F) * SIDE)
    {
    }
};

// By one thread: copies a box from this element of an image on, and from this row and column on.
__device__ __forceinline__ void copy_pictures(const TensorMap *map, Index first, Index pixel, Index image, int row, int column,
                                              Element *to, unsigned long long *full)
{
    const int at[] = {static_cast<int>(first % pixel), column, 0, row, static_cast<int>(first / image)};
    copy_box_at(to, map, at, full);
}

// By one thread: starts the copies of a step.
__device__ __forceinline__ void copy_step(const Tensors &t, const TensorMap *map_x, const TensorMap *map_d, Stage &stage,
                                          unsigned long long *full, const Corner &corner, Index step)
{
    const int row = (int)(step % STRIPS) * BD;
    const Index image = step / STRIPS * BATCH;
    const Index x = SourceX::row(t, corner.group, image, 0) - SourceX::row(t, 0, 0, 0);
    const Index d = SourceD::row(t, corner.group, image, 0) - SourceD::row(t, 0, 0, 0);
    mbarrier_expect(full, (PIXELS_X + PIXELS_D) * SIDE * (int)sizeof(Element));
    copy_pictures(map_x, x + corner.channel, SourceX::COLUMN_STRIDE, IMAGE_X, row * STRIDE_H + TOP, BEGIN, stage.x[0], full);
    copy_pictures(map_d, d + corner.filter, SourceD::COLUMN_STRIDE, IMAGE_D, row, 0, stage.d[0], full);
}

// The line of x under a run of d, for the first row of taps and the first column of the first phase.
__device__ __forceinline__ constexpr int line_of(int run)
{
    return (run / (RUNS * BD) * LINES + run / RUNS % BD * STRIDE_H) * (STRIDE_W * SPAN) + run % RUNS * EIGHT;
}

// Taps of a row from `first` on that have its phase; where their sums begin.
__device__ __forceinline__ constexpr int taps_from(int first) { return (KW - first + APART - 1) / APART; }
__device__ __forceinline__ constexpr int sums_from(int first)
{
    return (first * (KW / APART) + (first < KW % APART ? first : KW % APART)) * (SIDE / 2);
}

// By each warp of a group: multiplies two runs of d and x under the taps of a row, phase by phase.
template <int FIRST>
__device__ __forceinline__ void multiply_runs(Value (&acc)[COLUMNS / 2], const Element (*x)[SIDE], const Element (*d)[SIDE],
                                              int run)
{
    if constexpr (FIRST < APART && FIRST < KW) {
        constexpr int COUNT = taps_from(FIRST), OFFSET = offset_of(FIRST);
        const int line = line_of(run) + OFFSET % STRIDE_W * SPAN + OFFSET / STRIDE_W;
        multiply_shared<true, true>(Product<Element, COUNT * SIDE>(),
                                    reinterpret_cast<Value(&)[COUNT * SIDE / 2]>(acc[sums_from(FIRST)]),
                                    describe_operand(d[run * EIGHT], 0, EIGHT * 128),
                                    describe_operand(x[line], TOGETHER * 128, (line_of(run + 1) - line_of(run)) * 128));
        multiply_runs<FIRST + 1>(acc, x, d, run);
    }
}

// By each warp of a group: multiplies all steps. One warp starts the copies of a later step in a stage that all groups have
// multiplied, while they multiply the next one.
__device__ __forceinline__ void multiply(Value (&acc)[COLUMNS / 2], const Tensors &t, const TensorMap *map_x, const TensorMap *map_d,
                                         Stage *stages, Ring &ring, const Corner &corner, int warp)
{
#pragma unroll 1
    for (Index step = 0; step < STEPS; ++step) {
        const int stage = (int)(step % STAGES);
        mbarrier_wait(&ring.full[stage], (unsigned)(step / STAGES) & 1);
        open_products(acc);
        const Element(*const x)[SIDE] = stages[stage].x + warp / 4 * (DILATION_H * STRIDE_W * SPAN);
        UNROLL for (int run = 0; run < BATCH * BD * RUNS; run += 2)
            multiply_runs<0>(acc, x, stages[stage].d, run);
        close_products();
        wait_products<1>(acc);
        if (step > 0 && step + STAGES - 1 < STEPS) {
            const int last = (int)((step + STAGES - 1) % STAGES);
            if (threadIdx.x % WARP == 0)
                mbarrier_arrive(&ring.free[last]);
            if (warp == COPYING) {
                mbarrier_wait(&ring.free[last], (unsigned)((step - 1) / STAGES) & 1);
                if (threadIdx.x % WARP == 0)
                    copy_step(t, map_x, map_d, stages[last], &ring.full[last], corner, step + STAGES - 1);
                warp_sync();
            }
        }
    }
    wait_products<0>(acc);
}

// By each warp of a group: stages its sums, of which a lane has two adjacent ones in each of two rows, eight apart.
__device__ __forceinline__ void leave(const Value (&acc)[COLUMNS / 2], Sums &sums, int warp)
{
    const int lane = (int)threadIdx.x % WARP, filter = warp % 4 * 16 + lane / 4;
    UNROLL for (int l = 0; l < KW; ++l)
        UNROLL for (int n = 0; n < SIDE / 8; ++n)
            UNROLL for (int i = 0; i < 2; ++i) {
                const Value *const own = acc + sums_from(l % APART) + l / APART * (SIDE / 2) + n * 4 + i * 2;
                const Value two[2] = {own[0], own[1]};
                store_vector<2>(sums.at[filter + i * 8], (warp / 4 * KW + l) * Sums::TAP + n * 8 + lane % 4 * 2, two);
            }
}

// A sum without padded columns.
__device__ __forceinline__ Value plain_sum(const Tensors &t, Index group, int channel, int filter, int k, int l)
{
    Value total = 0;
#pragma unroll 1
    for (Index image = 0; image < IMAGES; ++image)
#pragma unroll 1
        for (int pixel = 0; pixel < DH * DW; ++pixel) {
            const int i = pixel / DW, row = i * STRIDE_H + k * DILATION_H + TOP;
            const int j = pixel % DW, column = j * STRIDE_W + l * DILATION_W + LEFT;
            const Element *const x = SourceX::row(t, group, image, row), *const d = SourceD::row(t, group, image, i);
            const bool exists = inside(row, XH) && inside(column, XW);
            const Value left = exists ? widen(x[column * SourceX::COLUMN_STRIDE + channel]) : 0;
            total += left * widen(d[j * SourceD::COLUMN_STRIDE + filter]);
        }
    return total;
}

// By each warp: stores rows of the sums, lanes adjacent results; AGAIN: those that are no numbers. False: one is none.
template <bool AGAIN>
__device__ __forceinline__ bool store_sums(const Tensors &t, const Sums &sums, const Corner &corner, int warp)
{
    constexpr int PIECES = SIDE / WARP;
    const int lane = (int)threadIdx.x % WARP;
    bool numbers = true;
#pragma unroll 1
    for (int row = warp; row < SIDE && corner.filter + row < FILTERS; row += WARPS)
#pragma unroll AGAIN ? 1 : TAPS * PIECES
        for (int i = 0; i < TAPS * PIECES; ++i) {
            const int tap = TAPS_INSIDE ? (i * WARP + lane) % TAPS : i / PIECES;
            const int own = TAPS_INSIDE ? (i * WARP + lane) / TAPS : i % PIECES * WARP + lane;
            const int channel = corner.channel + own, filter = corner.filter + row, k = tap / KW, l = tap % KW;
            Value total = sums.at[row][tap * Sums::TAP + own];
            numbers = numbers && total == total;
            if ((CHANNELS % SIDE != 0 && channel >= CHANNELS) || (AGAIN && total == total))
                continue;
            if (AGAIN)
                total = plain_sum(t, corner.group, channel, filter, k, l);
            finish(t, corner.group, k, l, total, channel, filter);
        }
    return numbers;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) ENTRY(PARAMETERS)
{
    unsigned char *const start = rollerc_shared + (0u - shared_address(rollerc_shared)) % 1024;
    Stage *const stages = reinterpret_cast<Stage *>(start);
    Sums &sums = *reinterpret_cast<Sums *>(start);   // over the stages
    Ring &ring = *reinterpret_cast<Ring *>(start + RING);
    static_assert(RING + (int)sizeof(Ring) + 1024 <= EVERYTHING.bytes, "it fits, wherever it begins");
    const Tensors t = TENSORS;
    const Corner corner;
    const int warp = same_in_warp((int)threadIdx.x / WARP);

    if (threadIdx.x == COPYING * WARP) {
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(&ring.full[stage], 1);
            mbarrier_init(&ring.free[stage], 4 * KH);
        }
        for (int stage = 0; stage < STAGES && stage < STEPS; ++stage)
            copy_step(t, &map_a, &map_b, stages[stage], &ring.full[stage], corner, stage);
    }
    if (LINES_X > PIXELS_X)
        clear_behind(stages);
    block_sync();

    Value acc[COLUMNS / 2] = {};   // (SIDE,COLUMNS) of four warps
    multiply(acc, t, &map_a, &map_b, stages, ring, corner, warp);
    block_sync();
    leave(acc, sums, warp);
    block_sync();

    const bool numbers = store_sums<false>(t, sums, corner, warp);
    if (PADDED && !numbers)
        store_sums<true>(t, sums, corner, warp);
}
}   // namespace KERNEL
