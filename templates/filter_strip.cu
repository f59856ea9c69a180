// Filter gradient of a depthwise convolution with few taps: dw[c,k,l] = sum over n, i, j of d[n,c,i,j] *
// x[n,c,i*STRIDE_H+k*DILATION_H+TOP,j*STRIDE_W+l*DILATION_W+LEFT], 0 outside of x; and a pointwise epilogue.
//
// A thread accumulates all taps of LANES channels in registers. It iterates down strips of images, WIDTH
// columns of d wide and HEIGHT rows high, TURNS in each image. It loads each row of x and of d once, AHEAD
// rows before it is used. A row of x is multiplied by all rows of d that it uses, which stay in registers:
//
//   row of x   rows of d of tap row 0, 1, 2      WIDTH = 4, 3 x 3 taps
//     5   . x x x x .     5 4 3      row 6 of d replaces row 3
//     6   . x x x x .     6 5 4
//
// Columns of x that adjacent threads share are served by L1. Threads do not synchronise until all their
// images are done; then the sums of threads that share taps are reduced in a fixed order.
//
// Rows and columns out of bounds are zeros, and are multiplied, too. Where a sum is infinite or NaN, the
// block recomputes its taps one by one.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // x[64, 32, 32, 384]
    const float *in1;   // d[64, 32, 32, 384]
    float *out0;        // dw[384, 5, 5]
};
#define PARAMETERS const float *__restrict__ in0, const float *__restrict__ in1, float *__restrict__ out0
#define TENSORS {in0, in1, out0}
constexpr Region SUMS = {0, 3200};   // of shared memory, in bytes
constexpr Region MARKS = {3200, 32};
constexpr int SHARED_BYTES = 3232;   // of a block
using Value = float;                                          // of products and sums
constexpr Index IMAGES = 64;                                  // that are summed over
constexpr int XH = 32, XW = 32, DH = 32, DW = 32;             // of x and d
constexpr int KH = 5, KW = 5;                                 // taps
constexpr int TOP = -2, LEFT = -2;                            // row and column of x of the first tap, for element 0 of d
constexpr int STRIDE_H = 1, STRIDE_W = 1;                     // in x, from one element of d to the next,
constexpr int DILATION_H = 1, DILATION_W = 1;                 // from one tap to the next
constexpr Index CHANNELS = 384;
constexpr int TC = 32, LANES = 1;                             // channels of a block, of a thread
constexpr int HEIGHT = 32, WIDTH = 4;                         // rows and columns of d, of a thread
constexpr int DOWNS = 1, ALONGS = 8, SHARES = 1;              // threads: down, along images, of other images
constexpr int TURNS = 1;                                      // strips of a thread in each image
constexpr int THREADS = 256, MIN_BLOCKS_PER_SM = 2;           // of the launch bounds
constexpr int AHEAD = 3;                                      // rows in flight
constexpr bool CHANNELS_LAST = true;                          // adjacent threads have adjacent channels; else columns
constexpr int PIECE_X = 1, PIECE_D = 1;                       // columns in one aligned access, at most

struct SourceX {
    using Element = float;
    static constexpr bool PIECES = false;
    static constexpr Index COLUMN_STRIDE = 384;
    static __device__ __forceinline__ const Element *row(const Tensors &t, Index channel, Index image,
                                                         int row)
    {
        return t.in0 + (channel + image * 393216 + row * 12288);
    }
};
struct SourceD {
    using Element = float;
    static constexpr bool PIECES = false;
    static constexpr Index COLUMN_STRIDE = 384;
    static __device__ __forceinline__ const Element *row(const Tensors &t, Index channel, Index image,
                                                         int row)
    {
        return t.in1 + (channel + image * 393216 + row * 12288);
    }
};

__device__ __forceinline__ void finish(const Tensors &t, Index channel, int k, int l, Value total)
{
    store(t.out0, channel * 25 + k * 5 + l, total);
}
// </rollerc>

constexpr int LAST_TAP = (KH - 1) * DILATION_H;   // rows of x below the first one
constexpr int STEPS = (HEIGHT - 1) * STRIDE_H + LAST_TAP + 1;
// The assignment of rows of d to registers repeats after CYCLE rows of x, that of rows of d and loaded rows
// after ROUND.
constexpr int OPEN = LAST_TAP / STRIDE_H + 1, CYCLE = OPEN * STRIDE_H;
constexpr int ROUND = (AHEAD + CYCLE - 1) / CYCLE * CYCLE;

constexpr int INNER = CHANNELS_LAST ? TC / LANES : 1;        // adjacent threads with other channels
constexpr int TOGETHER = CHANNELS_LAST ? 1 : WARP;           // threads reduced by shuffles
constexpr int PARTS = DOWNS * ALONGS * SHARES / TOGETHER;    // of each tap's sum

// A thread's part of a row of x, and of d.
struct StripX {
    using Element = SourceX::Element;
    static constexpr int EXTENT = XW, COUNT = (WIDTH - 1) * STRIDE_W + (KW - 1) * DILATION_W + 1;
    static constexpr int OFFSET = LEFT, WIDEST = PIECE_X, ELEMENTS = LANES;
    static constexpr Index STRIDE = SourceX::COLUMN_STRIDE;
};
struct StripD {
    using Element = SourceD::Element;
    static constexpr int EXTENT = DW, COUNT = WIDTH, OFFSET = 0, WIDEST = PIECE_D, ELEMENTS = LANES;
    static constexpr Index STRIDE = SourceD::COLUMN_STRIDE;
};

static_assert(INNER * DOWNS * ALONGS * SHARES == THREADS && THREADS % WARP == 0, "each strip has its thread");
static_assert(CHANNELS_LAST || TC * LANES == 1, "a warp's sums are of one channel");
static_assert(WIDTH * STRIDE_W % PIECE_X == 0 && XW % PIECE_X == 0, "pieces of x are whole");
static_assert(WIDTH % PIECE_D == 0 && DW % PIECE_D == 0, "those of d");
static_assert(CHANNELS % LANES == 0, "lanes have whole channels");

struct Rows {
    StripRow<StripX> x;
    StripRow<StripD> d;
};

// The position of a thread's first strip in each image.
struct Place {
    Index channel;
    int row, column;   // of d
};

struct Taps {
    Value sum[KH][KW][LANES];
    Value held[OPEN][WIDTH * LANES];   // rows of d

    // Accumulates the row of x of step `step` of a cycle into each row of taps.
    __device__ __forceinline__ void add(const Value (&x)[StripX::COUNT * LANES], int step)
    {
        UNROLL for (int k = 0; k < KH; ++k) {
            const int above = step + CYCLE - k * DILATION_H;
            if (above % STRIDE_H != 0)
                continue;
            const Value(&d)[WIDTH * LANES] = held[above / STRIDE_H % OPEN];
            UNROLL for (int l = 0; l < KW; ++l)
                UNROLL for (int i = 0; i < WIDTH * LANES; ++i) {
                    const int j = i / LANES, e = i % LANES;
                    Value &sum_here = sum[k][l][e];
                    sum_here = op_add(op_mul(d[i], x[(j * STRIDE_W + l * DILATION_W) * LANES + e]), sum_here);
                }
        }
    }
};

// Loads the row of x of step `step`, and the row of d that it uses first.
__device__ __forceinline__ void load_step(Rows &rows, const Tensors &t, const Place &place, Index image,
                                          int step, bool brings_d)
{
    const int row = place.row * STRIDE_H + TOP + step, column = place.column * STRIDE_W + LEFT;
    rows.x.load(SourceX::row(t, place.channel, image, row) + column * SourceX::COLUMN_STRIDE, column,
                step < STEPS && inside(row, XH));
    if (brings_d) {
        const int i = step / STRIDE_H, own = place.row + i;
        rows.d.load(SourceD::row(t, place.channel, image, own) + place.column * SourceD::COLUMN_STRIDE,
                    place.column, i < HEIGHT && own < DH);
    }
}

// A strip of one image.
__device__ __forceinline__ void add_strip(Taps &taps, const Tensors &t, const Place &place, Index image)
{
    Rows rows[ROUND];   // in flight
    UNROLL for (int step = 0; step < AHEAD; ++step)
        load_step(rows[step], t, place, image, step, step % STRIDE_H == 0);
    UNROLL for (int slot = 0; slot < OPEN; ++slot)
        UNROLL for (int i = 0; i < WIDTH * LANES; ++i)
            taps.held[slot][i] = 0;
#pragma unroll 1
    for (int round = 0; round < STEPS; round += ROUND)
        UNROLL for (int i = 0; i < ROUND; ++i) {
            if (STEPS % ROUND != 0 && round + i >= STEPS)
                break;
            Value x[StripX::COUNT * LANES];
            rows[i].x.widen_to(x);
            if (i % STRIDE_H == 0)
                rows[i].d.widen_to(taps.held[i / STRIDE_H % OPEN]);
            load_step(rows[(i + AHEAD) % ROUND], t, place, image, round + i + AHEAD,
                      (i + AHEAD) % STRIDE_H == 0);
            taps.add(x, i % CYCLE);
        }
}

__device__ __forceinline__ Value exact_total(const Tensors &t, Index channel, int k, int l)
{
    return exact_correlation<Value, SourceX, SourceD, XH, XW, DH, DW, STRIDE_H, STRIDE_W>(
        t, channel, IMAGES, k * DILATION_H + TOP, l * DILATION_W + LEFT);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS_PER_SM) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED(SUMS, Value, total, [KH * KW][TC]);
    SHARED(MARKS, int, marks, [THREADS / WARP]);
    const Index first = (Index)blockIdx.x * TC;
    const int thread = (int)threadIdx.x, inner = thread % INNER, strip = thread / INNER;
    const int share = strip / (ALONGS * DOWNS);
    const Place place = {first + inner * LANES, strip / ALONGS % DOWNS * HEIGHT, strip % ALONGS * WIDTH};

    // ---- load and compute ----
    Taps taps = {};
    if (CHANNELS % TC == 0 || place.channel < CHANNELS)
#pragma unroll 1
        for (Index image = share; image < IMAGES; image += SHARES)
#pragma unroll 1
            for (int turn = 0; turn < TURNS; ++turn)
                add_strip(taps, t, {place.channel, place.row, place.column + turn * (ALONGS * WIDTH)}, image);

    // ---- reduce: lanes that share taps, then one part after the other ----
    if (TOGETHER > 1)
        UNROLL for (int tap = 0; tap < KH * KW; ++tap)
            UNROLL for (int lanes = TOGETHER / 2; lanes > 0; lanes /= 2) {
                Value &sum = taps.sum[tap / KW][tap % KW][0];
                sum = op_add(sum, warp_shuffle_xor(sum, lanes));
            }
#pragma unroll 1
    for (int p = 0; p < PARTS; ++p) {
        block_sync();
        if (strip == p * TOGETHER)
            UNROLL for (int tap = 0; tap < KH * KW; ++tap)
                UNROLL for (int e = 0; e < LANES; ++e) {
                    Value &sum = total[tap][inner * LANES + e];
                    const Value own = taps.sum[tap / KW][tap % KW][e];
                    sum = p == 0 ? own : op_add(sum, own);
                }
    }
    block_sync();

    // ---- store ----
    bool doubt = false;
    for (int i = thread; i < KH * KW * TC; i += THREADS)
        if (first + i % TC < CHANNELS) {
            const Value sum = total[i / TC][i % TC];
            doubt |= op_sub(sum, sum) != 0;
        }
    doubt = any_of_block<THREADS / WARP>(doubt, marks);
    for (int i = thread; i < KH * KW * TC; i += THREADS) {
        const Index channel = first + i % TC;
        const int k = i / TC / KW, l = i / TC % KW;
        if (channel < CHANNELS)
            finish(t, channel, k, l, doubt ? exact_total(t, channel, k, l) : total[i / TC][i % TC]);
    }
}
}   // namespace KERNEL
