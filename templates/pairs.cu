// Depthwise convolution on tensor cores with contiguous channels (NHWC): f16 or bf16, f32 accumulators, and a
// pointwise epilogue.
//
//   Y[image, row, column, c] = sum over k and l of X[image, row + k, column + l, c] * F[k, l, c]
//
// A register of a fragment holds two elements that are contiguous in memory, here two channels of a column.
// For such a pair, each row of taps is a matrix T of 4 * QUADS columns of inputs by 4 columns of outputs. An
// entry is 2 x 2: a tap for each channel on the diagonal, zeros beside it. Of 5 taps:
//
//                    outputs 0   1   2   3
//   inputs     0             f0
//   quad 0     1             f1  f0                  K has 8 of these rows, N the 4 columns. 5/8 of the entries
//              2             f2  f1  f0              are taps, and half of each entry is zero.
//              3             f3  f2  f1  f0
//              4             f4  f3  f2  f1
//   quad 1     5                 f4  f3  f2
//              6                     f4  f3
//              7                         f4
//
// The 16 rows of A are 16 groups of 4 columns of one row of images: lane l has column l % 4 of groups l / 4
// and l / 4 + 8. So a lane loads 4 * PAIRS contiguous bytes of a column, for PAIRS instructions, and
// accumulators have the layout of the inputs.
//
// A thread block computes TB images x BD rows x BA columns x TC channels. It iterates down the input. Each
// row, with its halo, is copied asynchronously to a ring of rows in shared memory, loaded once, and
// accumulated into as many rows of outputs as the filter has rows. A complete row is staged in shared memory,
// so that stores are coalesced along channels.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const f16 *in0;   // X[64, 32, 32, 384]
    const f16 *in1;   // F[5, 5, 384]
    f16 *out0;        // Y[64, 32, 32, 384]
};
#define PARAMETERS const f16 *__restrict__ in0, const f16 *__restrict__ in1, f16 *__restrict__ out0
#define TENSORS {in0, in1, out0}
constexpr Region INPUTS = {0, 36864};   // of shared memory, in bytes
constexpr Region OUTPUTS = {36864, 8192};
constexpr Region MARKS = {45056, 32};
constexpr int SHARED_BYTES = 45088;   // of a block
using X = f16;
using A = float;   // of products and sums
constexpr Index BATCH = 64, CHANNELS = 384, MULTIPLIERS = 1;
constexpr int DOWN = 32, ALONG = 32;                      // outputs
constexpr int ROWS = 32, COLUMNS = 32;                    // inputs
constexpr int DOWN_STEP = 1, ALONG_STEP = 1;
constexpr Index ROW_STRIDE = 12288, COLUMN_STRIDE = 384;   // of X
constexpr int DOWN_TAPS = 5, ALONG_TAPS = 5;
constexpr int DOWN_DILATION = 1, ALONG_DILATION = 1;
constexpr int DOWN_OFFSET = -2, ALONG_OFFSET = -2;        // input of output 0 and tap 0
constexpr int TB = 2, TC = 32, BD = 16, BA = 32;          // rTile, block
constexpr int PAIRS = 2;                                  // of channels, of a warp
constexpr int THREADS = 256, MIN_BLOCKS_PER_SM = 2;       // of the launch bounds
constexpr int RING = 8;                                   // rows of the input in shared memory
using Staged = f16;                                       // the type of staged sums
constexpr int QN = 8;                                     // channels in one aligned access of outputs

// The first element of an image's first row.
__device__ __forceinline__ const X *image(const Tensors &t, Index batch, Index channel)
{
    return t.in0 + (batch * 393216 + channel);
}
__device__ __forceinline__ A tap(const Tensors &t, Index channel, Index, Index k, Index l)
{
    return load(t.in1, k * 1920 + l * 384 + channel);
}
__device__ __forceinline__ void finish(const Tensors &t, Index batch, Index channel, Index, Index down,
                                       Index along, const Staged (&totals)[QN])
{
    move_vector<QN>(t.out0 + (batch * 393216 + down * 12288 + along * 384 + channel), totals);
}
// </rollerc>

constexpr int GROUP = 4, GROUPS = BA / GROUP;                  // columns of outputs of an instruction; groups of a row
constexpr int QUADS = (GROUP + ALONG_TAPS - 1 + 3) / 4;        // of columns of inputs, for a group
constexpr int REACH = BA + 4 * (QUADS - 1);                    // columns of a row in the ring
constexpr int STEPS = BD + DOWN_TAPS - 1;                      // rows of the input
constexpr int LANES = 2 * PAIRS, WARPS = TC / LANES;           // channels of a warp
constexpr int PIECE = 8, OCTETS = TC / PIECE;                  // channels of a 16-byte vector
constexpr int STAGED_PIECE = 16 / (int)sizeof(Staged), STAGED_PIECES = TC / STAGED_PIECE;
constexpr int PIXELS = TB * BA;                                // of a row of outputs
constexpr int REACHED = ALONG + ALONG_TAPS - 1 + ALONG_OFFSET;   // columns of an image used,
constexpr int END = REACHED < COLUMNS ? REACHED : COLUMNS;       // of those that exist
constexpr Index CHANNEL_BLOCKS = (CHANNELS + TC - 1) / TC;
constexpr int DOWN_BLOCKS = (DOWN + BD - 1) / BD, ALONG_BLOCKS = (ALONG + BA - 1) / BA;

static_assert(TB * GROUPS == 16, "groups of columns are the rows of A");
static_assert(WARPS * WARP == THREADS, "warps cover the block's channels");
static_assert(TC % PIECE == 0 && CHANNELS % PIECE == 0, "pieces are whole");
static_assert(LANES <= STAGED_PIECE, "a lane's sums lie in one of them");
static_assert(QN <= STAGED_PIECE || QN % STAGED_PIECE == 0, "those of outputs lie in pieces");
static_assert(DOWN_STEP == 1 && ALONG_STEP == 1, "windows move by one");
static_assert(DOWN_DILATION == 1 && ALONG_DILATION == 1, "and have no gaps");

struct InputRow { X at[TB * REACH * TC]; };
struct OutputRow { Staged at[PIXELS * TC]; };

// The position of a 16-byte vector of a column that has PIECES of them, swizzled: those of eight adjacent
// columns are in eight groups of banks.
template <int PIECES> __device__ __forceinline__ int place(int column, int piece)
{
    constexpr int POWER = PIECES & -PIECES;   // the largest power of two that divides PIECES
    constexpr int TURNS = POWER < 8 ? POWER : 8;
    return column * PIECES + (piece ^ column / (8 / TURNS) % TURNS);
}

// The block's first output. Blocks are ordered as images in memory: adjacent ones read adjacent channels.
struct Corner {
    Index batch, channel;
    int down, along;
};
__device__ __forceinline__ Corner own_corner()
{
    const Index block = (Index)blockIdx.x, images = block / (CHANNEL_BLOCKS * MULTIPLIERS);
    return {images / (DOWN_BLOCKS * ALONG_BLOCKS) * TB, block % CHANNEL_BLOCKS * TC,
            (int)(images / ALONG_BLOCKS % DOWN_BLOCKS) * BD, (int)(images % ALONG_BLOCKS) * BA};
}

// A thread's copies of each row.
struct Copies {
    static constexpr int COUNT = TB * REACH * OCTETS, EACH = (COUNT + THREADS - 1) / THREADS;
    const X *from[EACH];   // read only if it exists
    int to[EACH];
    bool exists[EACH];
    int row;   // of the image

    __device__ __forceinline__ Copies(const Tensors &t, const Corner &corner) : row(corner.down + DOWN_OFFSET)
    {
        UNROLL for (int i = 0; i < EACH; ++i) {
            const int number = (int)threadIdx.x + i * THREADS, octet = number % OCTETS,
                      pixel = number / OCTETS, column = corner.along + ALONG_OFFSET + pixel % REACH;
            const Index batch = corner.batch + pixel / REACH, channel = corner.channel + octet * PIECE;
            exists[i] = number < COUNT && pixel % REACH < BA + ALONG_TAPS - 1 && inside(column, END) &&
                        (BATCH % TB == 0 || batch < BATCH) && (CHANNELS % TC == 0 || channel < CHANNELS);
            from[i] = image(t, batch, channel) + row * ROW_STRIDE + column * COLUMN_STRIDE;
            to[i] = number < COUNT ? place<OCTETS>(pixel, octet) * PIECE : -1;
        }
    }
    // Copies the next row; zeros outside of the image.
    __device__ __forceinline__ void copy_to(InputRow &ring)
    {
        UNROLL for (int i = 0; i < EACH; ++i) {
            if ((i + 1) * THREADS <= COUNT || to[i] >= 0)
                async_copy16_or_zero(exists[i] && inside(row, ROWS), ring.at + to[i], from[i]);
            from[i] += ROW_STRIDE;
        }
        ++row;
    }
};

// A lane's entries of T: of tap `column of the input - column of the output`, for one channel of each pair.
struct Filter {
    unsigned at[DOWN_TAPS][PAIRS][QUADS];

    __device__ __forceinline__ Filter(const Tensors &t, Index channel)
    {
        const int lane = lane_id(), own = lane / 4 % 2;
        UNROLL for (int k = 0; k < DOWN_TAPS; ++k)
            UNROLL for (int pair = 0; pair < PAIRS; ++pair)
                UNROLL for (int quad = 0; quad < QUADS; ++quad) {
                    const int l = quad * 4 + lane % 4 - lane / 8;
                    const Index c = channel + pair * 2 + own;
                    const bool exists = inside(l, ALONG_TAPS) && (CHANNELS % TC == 0 || c < CHANNELS);
                    const unsigned bits = exists ? narrow<X>(tap(t, c, 0, k, l)).bits : 0u;
                    at[k][pair][quad] = bits << own * 16;
                }
    }
};

// The positions of a lane's elements in a row of either ring, for both halves of A's rows.
struct Places {
    int from[2][QUADS], to[2];

    // For a warp whose first channel in the block this is.
    __device__ __forceinline__ explicit Places(int channel)
    {
        const int lane = lane_id();
        UNROLL for (int half = 0; half < 2; ++half) {
            const int group = half * 8 + lane / 4, column = group % GROUPS * GROUP + lane % 4,
                      pixel = group / GROUPS * REACH + column;
            UNROLL for (int quad = 0; quad < QUADS; ++quad)
                from[half][quad] = place<OCTETS>(pixel + quad * 4, channel / PIECE) * PIECE + channel % PIECE;
            to[half] = place<STAGED_PIECES>(group * GROUP + lane % 4, channel / STAGED_PIECE) * STAGED_PIECE +
                       channel % STAGED_PIECE;
        }
    }
};

// A lane's part of a row of the input, for each quad.
struct Inputs {
    unsigned at[2][QUADS][PAIRS];

    __device__ __forceinline__ void load(const InputRow &row, const Places &places)
    {
        UNROLL for (int half = 0; half < 2; ++half)
            UNROLL for (int quad = 0; quad < QUADS; ++quad)
                move_vector<PAIRS>(at[half][quad],
                                   reinterpret_cast<const unsigned *>(row.at + places.from[half][quad]));
    }
};

// Accumulators of the rows of outputs in progress.
struct Sums {
    A at[DOWN_TAPS][PAIRS][4];
    A spoilt = 0;   // NaN once a sum of a complete row is infinite or NaN

    // Accumulates the input's row of a step: row k of the taps maps it to row `step - k`. The row that
    // completes is first.
    __device__ __forceinline__ void add(const Inputs &inputs, const Filter &filter, int step)
    {
        // 0, but unknown to the compiler: otherwise it copies each instruction's operands, which need
        // consecutive registers, again into the same registers.
        const unsigned zero = blockIdx.y;
        UNROLL for (int pair = 0; pair < PAIRS; ++pair) {
            unsigned a[QUADS][2];
            UNROLL for (int quad = 0; quad < QUADS; ++quad)
                UNROLL for (int half = 0; half < 2; ++half)
                    a[quad][half] = inputs.at[half][quad][pair] ^ zero;
            UNROLL for (int k = DOWN_TAPS - 1; k >= 0; --k) {
                A(&sums)[4] = at[(step + DOWN_TAPS - k) % DOWN_TAPS][pair];
                if (k == 0)
                    UNROLL for (int e = 0; e < 4; ++e)
                        sums[e] = 0;
                const unsigned(&b)[QUADS] = filter.at[k][pair];
                UNROLL for (int quad = 0; quad + 1 < QUADS; quad += 2) {
                    const unsigned both[4] = {a[quad][0], a[quad][1], a[quad + 1][0], a[quad + 1][1]};
                    multiply_tiles(X(), both, b[quad], b[quad + 1], sums);
                }
                if (QUADS % 2)
                    multiply_half_tiles(X(), a[QUADS - 1][0], a[QUADS - 1][1], b[QUADS - 1], sums);
            }
        }
    }
    // Stages a complete row. A NaN of one channel of a pair spreads to the other, so one of them is tested.
    template <class Sum> __device__ __forceinline__ void leave(Sum *row, const Places &places, int which)
    {
        UNROLL for (int i = 0; i < 2 * PAIRS; ++i)
            spoilt += at[which][i / 2][i % 2 * 2] * 0;
        UNROLL for (int half = 0; half < 2; ++half)
            if constexpr (sizeof(Sum) == 2) {
                unsigned words[PAIRS];
                UNROLL for (int pair = 0; pair < PAIRS; ++pair) {
                    const A *sums = at[which][pair] + half * 2;
                    words[pair] = narrow<Sum>(sums[0]).bits | (unsigned)narrow<Sum>(sums[1]).bits << 16;
                }
                store_shared(row + places.to[half], words);
            } else {
                Sum sums[LANES];
                UNROLL for (int c = 0; c < LANES; ++c)
                    sums[c] = narrow<Sum>(at[which][c / 2][half * 2 + c % 2]);
                move_vector<LANES>(row + places.to[half], sums);
            }
    }
};

// One sum, computed from its own products only.
__device__ __forceinline__ A sum_alone(const Tensors &t, Index batch, Index channel, int down, int along)
{
    A total = 0;
#pragma unroll 1
    for (int k = 0; k < DOWN_TAPS; ++k)
#pragma unroll 1
        for (int l = 0; l < ALONG_TAPS; ++l) {
            const int row = down + DOWN_OFFSET + k, column = along + ALONG_OFFSET + l;
            const bool exists = inside(row, ROWS) && inside(column, COLUMNS);
            const X *from = image(t, batch, channel);
            const A element = exists ? widen(from[row * ROW_STRIDE + column * COLUMN_STRIDE]) : 0;
            total += element * tap(t, channel, 0, k, l);
        }
    return total;
}

// A thread's part of a row of outputs: make(sums, pixel, channel of the block's) for each vector.
template <class Make>
__device__ __forceinline__ void store_row(const Tensors &t, const Corner &corner, int row, const Make &make)
{
    const int down = corner.down + row;
    if (DOWN % BD != 0 && down >= DOWN)
        return;
    constexpr int COUNT = PIXELS * TC / QN, EACH = (COUNT + THREADS - 1) / THREADS;
    UNROLL_4 for (int e = 0; e < EACH; ++e) {
        const int number = (int)threadIdx.x + e * THREADS, own = number % (TC / QN) * QN,
                  pixel = number / (TC / QN), along = corner.along + pixel % BA;
        const Index channel = corner.channel + own, batch = corner.batch + pixel / BA;
        if ((COUNT % THREADS != 0 && number >= COUNT) || (ALONG % BA != 0 && along >= ALONG) ||
            (BATCH % TB != 0 && batch >= BATCH) || (CHANNELS % TC != 0 && channel >= CHANNELS))
            continue;
        Staged sums[QN];
        make(sums, pixel, own);
        finish(t, batch, channel, 0, down, along, sums);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS_PER_SM) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED(INPUTS, InputRow, ring, [RING]);
    SHARED(OUTPUTS, OutputRow, outputs, [2]);
    SHARED(MARKS, int, marks, [WARPS]);
    const Corner corner = own_corner();
    const int channel = (int)threadIdx.x / WARP * LANES;   // the warp's first, in the block

    // ---- load ----
    Copies copies(t, corner);
    UNROLL for (int step = 0; step < RING - 1; ++step) {
        if (step < STEPS)
            copies.copy_to(ring[step]);
        async_commit();
    }
    const Filter filter(t, corner.channel + channel);
    const Places places(channel);

    const auto store_sums = [&](int row, const OutputRow &from) __attribute__((always_inline)) {
        store_row(t, corner, row, [&](Staged(&sums)[QN], int pixel, int own) __attribute__((always_inline)) {
            constexpr int TOGETHER = QN < STAGED_PIECE ? QN : STAGED_PIECE;
            UNROLL for (int e = 0; e < QN; e += TOGETHER) {
                const int piece = (own + e) / STAGED_PIECE, first = (own + e) % STAGED_PIECE;
                const Staged *at = from.at + place<STAGED_PIECES>(pixel, piece) * STAGED_PIECE + first;
                Staged some[TOGETHER];
                move_vector<TOGETHER>(some, at);
                UNROLL for (int j = 0; j < TOGETHER; ++j)
                    sums[e + j] = some[j];
            }
        });
    };

    // ---- compute ----
    Sums sums;
#pragma unroll 1
    for (int first = 0; first < STEPS; first += DOWN_TAPS)
        UNROLL for (int i = 0; i < DOWN_TAPS; ++i) {   // unrolled, so that the complete row is a constant
            const int step = first + i, next = step + RING - 1;
            if (STEPS % DOWN_TAPS != 0 && step >= STEPS)
                break;
            async_wait<RING - 2>();
            block_sync();
            if (next < STEPS)
                copies.copy_to(ring[next % RING]);
            async_commit();
            if (step >= DOWN_TAPS)
                store_sums(step - DOWN_TAPS, outputs[(step - 1) % 2]);
            Inputs inputs;
            inputs.load(ring[step % RING], places);
            sums.add(inputs, filter, i);
            if (step >= DOWN_TAPS - 1)
                sums.leave(outputs[step % 2].at, places, (i + 1) % DOWN_TAPS);
        }
    const bool spoilt = any_of_block<WARPS>(sums.spoilt != 0, marks);
    store_sums(STEPS - DOWN_TAPS, outputs[(STEPS - 1) % 2]);

    // Zeros in T multiply infinities and NaN to NaN: a block that may have met such recomputes its sums.
    if (spoilt)
#pragma unroll 1
        for (int row = 0; row < BD; ++row)
            store_row(t, corner, row, [&](Staged(&sums)[QN], int pixel, int own) {
                UNROLL for (int e = 0; e < QN; ++e)
                    sums[e] = narrow<Staged>(sum_alone(t, corner.batch + pixel / BA, corner.channel + own + e,
                                                       corner.down + row, corner.along + pixel % BA));
            });
}
}   // namespace KERNEL
