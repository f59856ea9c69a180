// Convolution of few channels on tensor cores, with these innermost in memory (NHWC), of f16 or bf16, with sums in
// f32, then a pointwise epilogue:
//
//   Y[image, row, column, g, f] = sum over k, l and c of X[image, row + k, column + l, g, c] * F[g, f, k, l, c]
//
// One thread block computes BD x BA outputs of an image, for TC groups of channels BF filters each. What these see of
// the image lies in shared memory as it does in memory, each element once. A's rows are 16 outputs, and a register of
// A is two elements that are neighbours there, read where the output's window begins. K is made of runs of them, each
// a multiple of 8 with zeros behind it:
//
//   one group              a row of taps is a run: of 7 taps of 3 channels 21 elements, and 3 zeros
//   groups of 8 n          the channels under a tap
//   groups of 2 or 4       4 or 2 taps side by side, of which each lane reads its own
//
//   image   c0 c1 c2 | c0 c1 c2 | c0 c1 c2 | ...        Where pixels are odd and copied in pieces of 16 bytes, a run begins
//   output 0 [-- -- -- -- -- -- -- -- -- ...            with an element of the pixel before, which counts as zero: so
//   output 1            [-- -- -- -- -- -- ...          registers are aligned words.
//
// A warp has filters in registers and makes sums of 16 or 32 outputs at a time. Lanes have filters side by side, and store
// them as they are.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const f16 *in0;   // X[32, 224, 224, 3]
    const f16 *in1;   // F[64, 7, 7, 3]
    f16 *out0;        // Y[32, 112, 112, 64]
};
#define PARAMETERS const f16 *__restrict__ in0, const f16 *__restrict__ in1, f16 *__restrict__ out0
#define TENSORS {in0, in1, out0}
constexpr Region INPUTS = {0, 29232};   // of shared memory: where it begins, bytes
constexpr Region FILTERS = {29232, 21504};
constexpr int SHARED_BYTES = 50736;   // of a block
using X = f16;
using A = float;   // of products and sums
constexpr Index BATCH = 32, CHANNELS = 1, MULTIPLIERS = 64;   // a multiplier: filters of a channel
constexpr int DOWN = 112, ALONG = 112;                    // outputs
constexpr int ROWS = 224, COLUMNS = 224;                  // inputs
constexpr int DOWN_STEP = 2, ALONG_STEP = 2;
constexpr Index ROW_STRIDE = 672, COLUMN_STRIDE = 3;      // of x
constexpr int DOWN_TAPS = 7, ALONG_TAPS = 7;
constexpr int DOWN_DILATION = 1, ALONG_DILATION = 1;
constexpr int DOWN_OFFSET = -3, ALONG_OFFSET = -3;        // input of output 0 and tap 0
constexpr int SUMMED = 3;                                 // channels of a group,
constexpr Index CHANNEL_STRIDE = 1;                       // of x
constexpr int TC = 1, BF = 64, BD = 8, BA = 112;          // rTile, block: groups, filters of each, outputs
constexpr int WARP_GROUPS = 1, WARP_TILES = 4;            // rTile, warp: groups, and of each eights of filters
constexpr int FOLDED = 1, ROW_TILES = 1;                  // groups that share an eight; sixteens of outputs of a warp
constexpr int THREADS = 128, MIN_BLOCKS_PER_SM = 3;       // that registers must suffice for
constexpr int RUN = 22, RUNS = 1, SHIFT = 1;              // elements; for each row of taps; of them before the first tap
constexpr int TOGETHER = 1;                               // taps that eight elements have
constexpr bool ROW_RUNS = true, PIECES = true;            // a row of taps is a run; copies are of 16 bytes
constexpr int PIXEL = 3, LEAD = 7, REACH = 229;           // in shared memory: elements; before the first one; pixels,
constexpr int LINE = 696, LINES = 21;                     // elements of a line, lines
constexpr int QN = 8;                                     // filters that are one aligned access of outputs

// The first element of an image's first line.
__device__ __forceinline__ const X *image(const Tensors &t, Index batch, Index)
{
    return t.in0 + batch * 150528;
}
__device__ __forceinline__ A tap(Index summed, const Tensors &t, Index, Index multiplier, Index k, Index l)
{
    return load(t.in1, multiplier * 147 + k * 21 + l * 3 + summed);
}
__device__ __forceinline__ void finish(const Tensors &t, Index batch, Index, Index multiplier, Index down,
                                       Index along, const A (&totals)[QN])
{
    store_vector<QN>(t.out0, batch * 802816 + down * 7168 + along * 64 + multiplier, totals);
}
// </rollerc>

constexpr int EIGHTS = (RUN + 7) / 8, STEPS = DOWN_TAPS * RUNS * EIGHTS;   // of a run; of K
constexpr int PITCH = (STEPS | 1) * 8;                        // of filters: those of a warp's lanes in different banks
constexpr int WARP_FILTERS = 8 * WARP_TILES, PARTS = BF / WARP_FILTERS;
constexpr int SHARES = TC / WARP_GROUPS * PARTS, SETS = THREADS / WARP / SHARES;   // of groups and filters; of outputs
constexpr int BESIDE = WARP_TILES % 4 == 0 ? 4 : WARP_TILES;   // eights of which lanes have filters side by side
constexpr int TILE = 16, PIXELS = (DOWN < BD ? DOWN : BD) * BA;
constexpr Index CHANNEL_BLOCKS = (CHANNELS + TC - 1) / TC, FILTER_BLOCKS = (MULTIPLIERS + BF - 1) / BF;
constexpr int DOWN_BLOCKS = (DOWN + BD - 1) / BD, ALONG_BLOCKS = (ALONG + BA - 1) / BA;

static_assert(SHARES * SETS * WARP == THREADS, "warps cover the block's groups and filters");
static_assert(TC % WARP_GROUPS == 0 && BF % WARP_FILTERS == 0, "and have whole shares");
static_assert(2 * BESIDE % QN == 0, "a lane has whole accesses of outputs");
static_assert(BATCH > 0 && (Index)REACH * PIXEL <= LINE + PIXEL, "lines hold what windows see");
static_assert(ALONG_STEP * PIXEL % 2 == 0 && (LEAD - SHIFT) % 2 == 0, "elements are read by aligned words");
static_assert(WARP_GROUPS % FOLDED == 0, "eights are full");
static_assert(!ROW_RUNS || ALONG_DILATION == 1 || ALONG_TAPS == 1, "a run has no gaps");

// The block's first output. Blocks side by side read neighbouring channels.
struct Corner {
    Index batch, channel, multiplier;
    int down, along;
};
__device__ __forceinline__ Corner own_corner()
{
    const Index block = (Index)blockIdx.x, filters = block / CHANNEL_BLOCKS, tile = filters / FILTER_BLOCKS;
    return {tile / (DOWN_BLOCKS * ALONG_BLOCKS), block % CHANNEL_BLOCKS * TC, filters % FILTER_BLOCKS * BF,
            (int)(tile / ALONG_BLOCKS % DOWN_BLOCKS) * BD, (int)(tile % ALONG_BLOCKS) * BA};
}

// A thread's elements of COUNT, AHEAD of which are on their way together: `load` asks for each without a branch.
template <int COUNT, class Load, class Store>
__device__ __forceinline__ void copy_elements(const Load &load_element, const Store &store_element)
{
    constexpr int EACH = (COUNT + THREADS - 1) / THREADS, AHEAD = EACH < 32 ? EACH : 32;
#pragma unroll 1
    for (int first = 0; first < EACH; first += AHEAD) {
        X held[AHEAD];
        UNROLL for (int i = 0; i < AHEAD; ++i)
            held[i] = load_element(op_min((first + i) * THREADS + (int)threadIdx.x, COUNT - 1));
        UNROLL for (int i = 0; i < AHEAD; ++i)
            if (const int number = (first + i) * THREADS + (int)threadIdx.x; number < COUNT)
                store_element(number, held[i]);
    }
}

// What the block's outputs see: whole lines where a pixel follows the other without a gap, else pixel by pixel. Of planes
// threads side by side have columns side by side.
struct Inputs {
    static constexpr bool WHOLE = ROW_RUNS && PIECES, PLANES = CHANNEL_STRIDE > 1;
    static constexpr int PART = PIECES ? 8 : 1, SPAN = WHOLE ? LINE : ROW_RUNS ? PIXEL : TC * SUMMED;
    static constexpr int SPANS = WHOLE ? 1 : REACH, EACH = SPAN / PART, COUNT = LINES * SPANS * EACH;
    int to;
    bool exists;
    const X *at;   // of single elements that do not exist, the nearest one

    __device__ __forceinline__ Inputs(const Tensors &t, const Corner &corner, int number)
    {
        const int line = number / (EACH * SPANS), span = PLANES ? number % SPANS : number / EACH % SPANS;
        const int part = (PLANES ? number / SPANS % EACH : number % EACH) * PART;
        const int first = corner.along * ALONG_STEP + ALONG_OFFSET, column = first + span;
        const int row = corner.down * DOWN_STEP + DOWN_OFFSET + line;
        const int element = WHOLE ? first * SUMMED - LEAD + part : part;   // of the line; of the pixel
        to = line * LINE + span * PIXEL + part;
        exists = inside(row, ROWS) && (WHOLE ? inside(element, COLUMNS * SUMMED)
                                             : inside(column, COLUMNS) && has_channel(corner, element));
        const Index channels = (CHANNELS - corner.channel) * SUMMED;
        at = image(t, corner.batch, corner.channel) + near(row, ROWS) * ROW_STRIDE +
             (WHOLE ? 0 : near(column, COLUMNS) * COLUMN_STRIDE) + near<Index>(element, channels) * CHANNEL_STRIDE;
    }
    template <class T> static __device__ __forceinline__ T near(T position, T size)
    {
        return PIECES ? position : op_max<T>(0, op_min<T>(position, size - 1));
    }
    static __device__ __forceinline__ bool has_channel(const Corner &corner, int element)
    {
        return ROW_RUNS ? element < SUMMED
                        : CHANNELS % TC == 0 || corner.channel * SUMMED + element < CHANNELS * SUMMED;
    }
};

// Zeros beside the image.
__device__ __forceinline__ void copy_inputs(const Tensors &t, const Corner &corner, X *inputs)
{
    if constexpr (PIECES)
        UNROLL_4 for (int number = (int)threadIdx.x; number < Inputs::COUNT; number += THREADS) {
            const Inputs piece(t, corner, number);
            async_copy16_or_zero(piece.exists, inputs + piece.to, piece.at);
        }
    else
        copy_elements<Inputs::COUNT>(
            [&](int number) __attribute__((always_inline)) {
                const Inputs element(t, corner, number);
                const X value = *element.at;
                return element.exists ? value : narrow<X>(A(0));
            },
            [&](int number, X value) __attribute__((always_inline)) { inputs[Inputs(t, corner, number).to] = value; });
}

// An element of the block's filters, which lie one after the other in the order of K, with its zeros.
__device__ __forceinline__ X filter_element(const Tensors &t, const Corner &corner, int own, int k)
{
    const int run = k / (EIGHTS * 8), element = k % (EIGHTS * 8) - SHIFT, each = ROW_RUNS ? PIXEL : SUMMED;
    const int l = RUNS > 1 ? run % RUNS : op_max(element, 0) / each, c = RUNS > 1 ? element : op_max(element, 0) % each;
    const Index channel = corner.channel + own / BF, multiplier = corner.multiplier + own % BF;
    const bool exists = element >= 0 && l < ALONG_TAPS && c < SUMMED;
    const A value = tap(op_min(c, SUMMED - 1), t, op_min(channel, CHANNELS - 1), op_min(multiplier, MULTIPLIERS - 1),
                        run / RUNS, op_min(l, ALONG_TAPS - 1));
    return narrow<X>(exists ? value : A(0));
}

__device__ __forceinline__ void copy_filters(const Tensors &t, const Corner &corner, X *filters)
{
    constexpr int K = STEPS * 8;
    copy_elements<TC * BF * K>(
        [&](int number) __attribute__((always_inline)) { return filter_element(t, corner, number / K, number % K); },
        [&](int number, X value) __attribute__((always_inline)) { filters[number / K * PITCH + number % K] = value; });
}

__device__ __forceinline__ unsigned word_of(const X *at)
{
    unsigned word[1];
    move_vector<1>(word, reinterpret_cast<const unsigned *>(at));
    return word[0];
}

// A lane's registers of B: column `lane / 4` of eight filters. These are not side by side, so that a lane's sums of BESIDE
// eights are: lane 1 has sums of columns 2 and 3 of each, which are filters 8 to 15 of 32. Of 2 or 4
// filters each comes several times, and of groups that share an eight each leaves some of its columns.
struct Filter {
    unsigned at[WARP_GROUPS][STEPS][WARP_TILES];

    __device__ __forceinline__ Filter(const X *filters, int group, int first)
    {
        const int column = lane_id() / 4, k = lane_id() % 4 * 2;
        UNROLL for (int g = 0; g < WARP_GROUPS; ++g)
            UNROLL for (int j = 0; j < WARP_TILES; ++j) {
                const int own = FOLDED > 1 ? (int)(column % MULTIPLIERS)
                                           : first + j / BESIDE * (8 * BESIDE) + column / 2 * (2 * BESIDE) + j % BESIDE * 2 + column % 2;
                const X *const from = filters + ((group + g) * BF + own) * PITCH + k;
                UNROLL for (int i = 0; i < STEPS; ++i)
                    at[g][i][j] = word_of(from + i * 8);
            }
    }
};

// Where a lane's words of A lie: of the outputs `lane / 4` and 8 further of a tile.
struct Places {
    int at[2];

    __device__ __forceinline__ void find(int tile, int group)
    {
        const int k = lane_id() % 4 * 2;
        const int own = TOGETHER == 1 ? k : k / SUMMED * (ALONG_DILATION * PIXEL) + k % SUMMED;
        UNROLL for (int half = 0; half < 2; ++half) {
            const int pixel = op_min(tile * TILE + half * 8 + lane_id() / 4, PIXELS - 1);
            at[half] = pixel / BA * (DOWN_STEP * LINE) + pixel % BA * (ALONG_STEP * PIXEL) + LEAD - SHIFT +
                       group * SUMMED + own;
        }
    }
};

// From the window's first element to those of a step.
__device__ __forceinline__ constexpr int step_offset(int i)
{
    const int eight = i % EIGHTS, run = i / EIGHTS % RUNS, row = i / (EIGHTS * RUNS);
    return row * (DOWN_DILATION * LINE) + run * (ALONG_DILATION * PIXEL) +
           eight * (TOGETHER == 1 ? 8 : TOGETHER * ALONG_DILATION * PIXEL);
}

// Bits of a lane's word that belong to the run, in its i-th eight.
__device__ __forceinline__ unsigned bits_of_run(int eight)
{
    const int k = eight * 8 + lane_id() % 4 * 2;
    return (k >= SHIFT && k < RUN ? 0xffffu : 0u) | (k + 1 < RUN ? 0xffff0000u : 0u);
}

// Those of ROW_TILES tiles: each register of B meets as many of A.
struct Sums {
    A at[ROW_TILES][WARP_GROUPS][WARP_TILES][4] = {};

    __device__ __forceinline__ void add(const X *inputs, const Places (&places)[ROW_TILES], const Filter &filter)
    {
        const unsigned first = bits_of_run(0), last = bits_of_run(EIGHTS - 1);
        UNROLL for (int g = 0; g < WARP_GROUPS; ++g) {
            unsigned a[ROW_TILES][4];
            UNROLL for (int i = 0; i < STEPS; ++i) {
                UNROLL for (int r = 0; r < ROW_TILES * 2; ++r) {
                    unsigned word = word_of(inputs + places[r / 2].at[r % 2] + (g * SUMMED + step_offset(i)));
                    if (SHIFT > 0 && i % EIGHTS == 0)
                        word &= first;
                    if (RUN % 8 != 0 && i % EIGHTS == EIGHTS - 1)
                        word &= last;
                    a[r / 2][i % 2 * 2 + r % 2] = word;
                }
                UNROLL for (int j = 0; j < WARP_TILES; ++j)
                    UNROLL for (int u = 0; u < ROW_TILES; ++u)
                        if (i % 2 == 1)
                            multiply_tiles(X(), a[u], filter.at[g][i - 1][j], filter.at[g][i][j], at[u][g][j]);
                        else if (i == STEPS - 1)
                            multiply_half_tiles(X(), a[u][0], a[u][1], filter.at[g][i][j], at[u][g][j]);
            }
        }
    }

    // Those of an output in one half of a tile: run by run of 2 * BESIDE filters of a group.
    template <class Leave> __device__ __forceinline__ void leave(int tile, int half, const Leave &leave_run) const
    {
        const int quad = lane_id() % 4;
        UNROLL for (int g = 0; g < WARP_GROUPS; g += FOLDED)
            UNROLL for (int j = 0; j < WARP_TILES; j += BESIDE) {
                A run[2 * BESIDE];
                UNROLL for (int e = 0; e < 2 * BESIDE; ++e) {
                    run[e] = at[tile][g][j + e / 2][half * 2 + e % 2];
                    UNROLL for (int other = 1; other < FOLDED; ++other)
                        if (quad * 2 / MULTIPLIERS == other)
                            run[e] = at[tile][g + other][j + e / 2][half * 2 + e % 2];
                }
                const int column = j * 8 + quad * (2 * BESIDE);
                if (FOLDED > 1)
                    leave_run(g + (int)(column / MULTIPLIERS), (int)(column % MULTIPLIERS), run);
                else
                    leave_run(g, column, run);
            }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS_PER_SM) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED(INPUTS, X, inputs, [LINES * LINE]);
    SHARED(FILTERS, X, filters, [TC * BF * PITCH]);
    const Corner corner = own_corner();
    const int warp = (int)threadIdx.x / WARP, share = warp % SHARES;
    const int group = share / PARTS * WARP_GROUPS, first = share % PARTS * WARP_FILTERS;   // of the block's

    // ---- load ----
    copy_inputs(t, corner, inputs);
    copy_filters(t, corner, filters);
    async_commit();
    async_wait<0>();
    block_sync();
    const Filter filter(filters, group, first);

    // ---- compute ----
    const int rows = DOWN % BD == 0 ? BD : op_min(BD, DOWN - corner.down);
    const auto finish_run = [&](Index channel, Index multiplier, int down, int along, const A(&run)[2 * BESIDE])
        __attribute__((always_inline)) {
        if (CHANNELS % TC != 0 && channel >= CHANNELS)
            return;
        UNROLL for (int e = 0; e < 2 * BESIDE; e += QN) {
            A totals[QN];
            UNROLL for (int i = 0; i < QN; ++i)
                totals[i] = run[e + i];
            if (MULTIPLIERS % BF == 0 || FOLDED > 1 || multiplier + e < MULTIPLIERS)
                finish(t, corner.batch, channel, multiplier + e, down, along, totals);
        }
    };
#pragma unroll 1
    for (int tile = warp / SHARES * ROW_TILES; tile * TILE < rows * BA; tile += SETS * ROW_TILES) {
        Places places[ROW_TILES];
        UNROLL for (int u = 0; u < ROW_TILES; ++u)
            places[u].find(tile + u, group);
        Sums sums;
        sums.add(inputs, places, filter);
        UNROLL for (int r = 0; r < ROW_TILES * 2; ++r) {
            const int pixel = tile * TILE + r * 8 + lane_id() / 4, own = pixel / BA;
            const int down = corner.down + own, along = corner.along + pixel % BA;
            if (own < rows && (ALONG % BA == 0 || along < ALONG))
                sums.leave(r / 2, r % 2, [&](int g, int column, const A(&run)[2 * BESIDE]) __attribute__((always_inline)) {
                    finish_run(corner.channel + group + g, corner.multiplier + first + column, down, along, run);
                });
        }
    }
}
}   // namespace KERNEL
