// Depthwise convolution with a small filter: every output is the sum of products of its own channel of the
// image and the filter of that channel.
//
//   y[b, c, m, i, j] = sum[k, l](x[b, c, i*DOWN_STEP + k*DOWN_DILATION + DOWN_OFFSET, …] * w[c, m, k, l])
//
// A thread computes a strip of an image, WIDTH outputs wide and HEIGHT high, of LANES channels. It iterates
// down the input, holds the filter in registers, and loads each row once, AHEAD rows before it is used. A row
// is multiplied by each row of the filter that maps it to a row of outputs, so OPEN rows of accumulators are
// live. The row that has used the filter's last row is stored:
//
//   row of the input   rows of outputs of tap 0, 1, 2      WIDTH = 4, 3 x 3 taps
//     5    . x x x x .     5 4 3      row 3 is stored
//     6    . x x x x .     6 5 4      row 4
//
// Columns that adjacent threads share are served by L1. Threads do not synchronise, so that loads of some
// overlap the arithmetic of others. Zeros outside of the image are multiplied, too: to skip a row would take
// a branch, and loads do not move across branches.
//
// With KNOWN_ENDS the first and the last rows of the input have code of their own, which uses only the filter
// rows that map to the strip: 32 rows of outputs with 5 x 5 taps use 160 rows of taps, not 36 times 5. In an
// image of one strip, rows out of bounds are known to be zeros there.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // x[64, 384, 32, 32]
    const float *in1;   // w[384, 5, 5]
    float *out0;        // y[64, 384, 32, 32]
};
#define PARAMETERS const float *__restrict__ in0, const float *__restrict__ in1, float *__restrict__ out0
#define TENSORS {in0, in1, out0}
constexpr int SHARED_BYTES = 0;   // of a block
using X = float;
using A = float;   // of products and sums
constexpr Index BATCH = 64, CHANNELS = 384, MULTIPLIERS = 1;   // a multiplier: filters of a channel
constexpr int DOWN = 32, ALONG = 32;                           // outputs
constexpr int ROWS = 32, COLUMNS = 32;                         // inputs
constexpr int DOWN_TAPS = 5, ALONG_TAPS = 5;
constexpr int DOWN_STEP = 1, DOWN_DILATION = 1, DOWN_OFFSET = -2;
constexpr int ALONG_STEP = 1, ALONG_DILATION = 1, ALONG_OFFSET = -2;
constexpr Index ROW_STRIDE = 32, COLUMN_STRIDE = 1;   // of x
constexpr int TB = 16, TC = 1, BD = 32, BA = 32;      // rTile, block
constexpr int HEIGHT = 32, WIDTH = 4, LANES = 1;   // rTile, registers of a thread: down, along, channels
constexpr int THREADS = 128, MIN_BLOCKS_PER_SM = 4;   // of the launch bounds
constexpr int AHEAD = 3;                              // rows of the input in flight
constexpr bool CHANNELS_LAST = false;   // adjacent threads have adjacent channels; else columns
constexpr int PIECE = 4;                // columns of x in one aligned access, at most
constexpr int QN = 4;                   // outputs in one: adjacent columns, or channels
__device__ __forceinline__ const X *image(const Tensors &t, Index batch, Index channel)
{
    return t.in0 + (batch * 393216 + channel * 1024);
}
__device__ __forceinline__ A tap(const Tensors &t, Index channel, Index, Index k, Index l)
{
    return load(t.in1, channel * 25 + k * 5 + l);
}
__device__ __forceinline__ void finish(const Tensors &t, Index batch, Index channel, Index, Index down,
                                       Index along, const A (&totals)[QN])
{
    store_vector<QN>(t.out0, batch * 393216 + channel * 1024 + down * 32 + along, totals);
}
// </rollerc>

constexpr Index CHANNEL_BLOCKS = (CHANNELS + TC - 1) / TC;
constexpr int DOWN_BLOCKS = (DOWN + BD - 1) / BD, ALONG_BLOCKS = (ALONG + BA - 1) / BA;
constexpr int LAST_TAP = (DOWN_TAPS - 1) * DOWN_DILATION;   // rows below the first one
constexpr int STEPS = (HEIGHT - 1) * DOWN_STEP + LAST_TAP + 1;
constexpr int REACH = (WIDTH - 1) * ALONG_STEP + (ALONG_TAPS - 1) * ALONG_DILATION + 1;   // columns
// The assignment of accumulators to registers repeats after CYCLE rows, that of accumulators and loaded rows
// after ROUND.
constexpr int OPEN = LAST_TAP / DOWN_STEP + 1, CYCLE = OPEN * DOWN_STEP;
constexpr int ROUND = (AHEAD + CYCLE - 1) / CYCLE * CYCLE;
// Threads with many taps are bound by arithmetic. Others, and those that load single elements, are bound by
// memory, where longer code is slower.
constexpr bool KNOWN_ENDS = DOWN_TAPS * ALONG_TAPS >= 25 && (CHANNELS_LAST || PIECE > 1);
// Steps from WHOLE to WHOLE_END share one unrolled loop body; with known ends all their taps map to rows of
// the strip. Earlier and later steps have code of their own.
constexpr int WHOLE = KNOWN_ENDS ? LAST_TAP : 0;
constexpr int WITHIN = KNOWN_ENDS ? (HEIGHT - 1) * DOWN_STEP + 1 : STEPS;
constexpr int WHOLE_END = WITHIN > WHOLE ? WHOLE + (WITHIN - WHOLE) / ROUND * ROUND : WHOLE;

constexpr int STRIPS = TB * (TC / LANES) * (BD / HEIGHT) * (BA / WIDTH);   // of a block

static_assert(STRIPS <= THREADS, "every strip has its thread");
static_assert(TC % LANES == 0 && BD % HEIGHT == 0 && BA % WIDTH == 0 && CHANNELS % LANES == 0,
              "strips are whole");
static_assert(WIDTH * ALONG_STEP % PIECE == 0 && COLUMNS % PIECE == 0, "pieces are whole");
static_assert((CHANNELS_LAST ? LANES : WIDTH) % QN == 0 && (CHANNELS_LAST || ALONG % QN == 0),
              "and those of outputs");

// A thread's part of a row of the input.
struct Under {
    using Element = X;
    static constexpr int EXTENT = COLUMNS, COUNT = REACH, OFFSET = ALONG_OFFSET, WIDEST = PIECE;
    static constexpr int ELEMENTS = LANES;
    static constexpr Index STRIDE = COLUMN_STRIDE;
};

// The first output of a thread.
struct Strip {
    Index batch, channel, multiplier;
    int down, along;
};

// Blocks are ordered as images in memory, strips as their inputs.
__device__ __forceinline__ Strip own_strip()
{
    constexpr int DOWNS = BD / HEIGHT, ALONGS = BA / WIDTH, INNER = CHANNELS_LAST ? TC / LANES : 1;
    const Index block = (Index)blockIdx.x, lines = block / ALONG_BLOCKS, images = lines / DOWN_BLOCKS;
    const int thread = (int)threadIdx.x, strip = thread / INNER, image = strip / (ALONGS * DOWNS);
    const int channel = CHANNELS_LAST ? thread % INNER : image % TC;
    return {images / (CHANNEL_BLOCKS * MULTIPLIERS) * TB + (CHANNELS_LAST ? image : image / TC),
            images / MULTIPLIERS % CHANNEL_BLOCKS * TC + channel * LANES, images % MULTIPLIERS,
            (int)(lines % DOWN_BLOCKS) * BD + strip / ALONGS % DOWNS * HEIGHT,
            (int)(block % ALONG_BLOCKS) * BA + strip % ALONGS * WIDTH};
}

struct Filter {
    A tap[DOWN_TAPS][ALONG_TAPS][LANES];
};
struct Sums {
    A at[OPEN][WIDTH * LANES];

    // The row of outputs to which row `k` of the taps maps a step's row of the input; none: -1.
    static __device__ __forceinline__ int output_row(int step, int k)
    {
        const int row = step - k * DOWN_DILATION, down = row / DOWN_STEP;
        return row % DOWN_STEP != 0 || (KNOWN_ENDS && (row < 0 || down >= HEIGHT)) ? -1 : down;
    }
    // Adds the products of a step's row of the input to each row of outputs.
    __device__ __forceinline__ void add(const A (&x)[REACH * LANES], const Filter &filter, int step)
    {
        UNROLL for (int k = 0; k < DOWN_TAPS; ++k) {
            const int row = output_row(step, k);
            if (row < 0)
                continue;
            A(&sums)[WIDTH * LANES] = at[row % OPEN];
            UNROLL for (int i = 0; i < WIDTH * LANES; ++i) {
                const int j = i / LANES, e = i % LANES;
                if (k == 0)
                    sums[i] = 0;
                UNROLL for (int l = 0; l < ALONG_TAPS; ++l)
                    sums[i] += x[(j * ALONG_STEP + l * ALONG_DILATION) * LANES + e] * filter.tap[k][l][e];
            }
        }
    }
    // Adds the products of a row of zeros, the same for all outputs of a row: not 0 where a tap is infinite.
    __device__ __forceinline__ void add_zeros(const Filter &filter, int step)
    {
        UNROLL for (int k = 0; k < DOWN_TAPS; ++k) {
            const int row = output_row(step, k);
            if (row < 0)
                continue;
            A zeros[LANES] = {};
            UNROLL for (int l = 0; l < ALONG_TAPS; ++l)
                UNROLL for (int e = 0; e < LANES; ++e)
                    zeros[e] += 0 * filter.tap[k][l][e];
            UNROLL for (int i = 0; i < WIDTH * LANES; ++i)
                at[row % OPEN][i] = (k == 0 ? 0 : at[row % OPEN][i]) + zeros[i % LANES];
        }
    }
};

__device__ __forceinline__ void store_row(const Tensors &t, const Strip &strip, int down,
                                          const A (&sums)[WIDTH * LANES])
{
    UNROLL for (int i = 0; i < WIDTH * LANES; i += QN) {
        const int along = strip.along + i / LANES;
        if (ALONG % WIDTH != 0 && along >= ALONG)
            break;
        A totals[QN];
        UNROLL for (int e = 0; e < QN; ++e)
            totals[e] = sums[i + e];
        finish(t, strip.batch, strip.channel + i % LANES, strip.multiplier, down, along, totals);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS_PER_SM) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const Strip strip = own_strip();
    if ((STRIPS < THREADS && (int)threadIdx.x >= STRIPS) || (BATCH % TB != 0 && strip.batch >= BATCH) ||
        (CHANNELS % TC != 0 && strip.channel >= CHANNELS) || (DOWN % BD != 0 && strip.down >= DOWN) ||
        (ALONG % BA != 0 && strip.along >= ALONG))
        return;
    const int first_row = strip.down * DOWN_STEP + DOWN_OFFSET,
              first_column = strip.along * ALONG_STEP + ALONG_OFFSET;
    const X *first =
        image(t, strip.batch, strip.channel) + first_row * ROW_STRIDE + first_column * COLUMN_STRIDE;

    // ---- load ----
    StripRow<Under> rows[ROUND];   // in flight
    UNROLL for (int step = 0; step < AHEAD; ++step)
        rows[step].load(first + step * ROW_STRIDE, first_column, inside(first_row + step, ROWS));
    Filter filter;
    UNROLL for (int k = 0; k < DOWN_TAPS; ++k)
        UNROLL for (int l = 0; l < ALONG_TAPS; ++l)
            UNROLL for (int e = 0; e < LANES; ++e)
                filter.tap[k][l][e] = tap(t, strip.channel + e, strip.multiplier, k, l);

    // ---- compute ----
    Sums sums = {};
    // `like` is a constant: a step with the same registers and rows of taps.
    const auto go = [&](int step, int like, bool zeros) __attribute__((always_inline)) {
        const int slot = like % ROUND, next = step + AHEAD, past = like - LAST_TAP;
        A x[REACH * LANES];
        rows[slot].widen_to(x);
        rows[(slot + AHEAD) % ROUND].load(first + next * ROW_STRIDE, first_column,
                                          next < STEPS && inside(first_row + next, ROWS));
        if (zeros)
            sums.add_zeros(filter, like);
        else
            sums.add(x, filter, like);
        const int down = strip.down + (step - LAST_TAP) / DOWN_STEP;
        if (past % DOWN_STEP == 0 && (KNOWN_ENDS ? past >= 0 : step >= LAST_TAP) &&
            (DOWN % HEIGHT == 0 || down < DOWN))
            store_row(t, strip, down, sums.at[past / DOWN_STEP % OPEN]);
    };
    const auto go_at_end = [&](int step) __attribute__((always_inline)) {
        const bool zeros = KNOWN_ENDS && HEIGHT >= DOWN && !inside(step + DOWN_OFFSET, ROWS);
        go(step, KNOWN_ENDS ? step : ROUND + step, zeros);
    };
    UNROLL for (int step = 0; step < WHOLE; ++step)
        go_at_end(step);
#pragma unroll 1
    for (int round = WHOLE; round < WHOLE_END; round += ROUND)
        UNROLL for (int i = 0; i < ROUND; ++i)
            go(round + i, KNOWN_ENDS ? WHOLE + i : ROUND + i, false);
    UNROLL for (int step = WHOLE_END; step < STEPS; ++step)
        go_at_end(step);
}
}   // namespace KERNEL
