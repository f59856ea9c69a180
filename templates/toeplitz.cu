// Depthwise convolution on tensor cores: f16, bf16, or f32 rounded to tf32, f32 accumulators, and a pointwise
// epilogue. Each channel has its own filter, whose rows become Toeplitz matrices:
//
//   Y[image, row, column] = sum over kh and i of X[image, row + kh - TOP, i] * T[kh][i, column]
//   T[kh][i, column]      = F[kh, i - column + SIDE]                         0 beside the filter's row
//
// A thread block computes BI images x BH rows x BN columns of one channel. Its input with the halo is in
// shared memory, and so is the filter. A warp's tile has 16 rows of A: WI images x GROUPS groups of R rows
// each. It iterates down the input. A row is loaded once, and multiplied by the R rows of the filter that map
// it to the R rows of outputs:
//
//   step   row of the input, group g   rows of the filter, for output row g * R + 0, 1, 2, 3
//     6    g * R + 6 - TOP             6  5  4  3
//     7    g * R + 7 - TOP             7  6  5  4          one of them is new in each step
//
// A fragment of T is 8 inputs (16 bytes; of f32: 4) by 8 outputs, and depends only on their distance: one
// register a distance. Rows and blocks that the filter does not reach are skipped.
//
// Where at most half of the nearest 8 inputs and half of the farthest have taps, fragments begin in the
// middle of a 16-byte vector (HALVED), which saves one. Of 5 taps:
//
//   vectors     8 block - 8 ...         - 1 | 8 block ...         + 7 | 8 block + 8 ...         + 15
//   taps        .   .   .   .   .   .   X X | X  X  X  X  X  X  X  X  | X X .   .   .   .   .   .
//   fragments                    4 ...        + 3 | + 4 ...     + 11
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const f16 *in0;   // X[64, 384, 32, 32]
    const f16 *in1;   // F[384, 31, 31]
    f16 *out0;        // Y[64, 384, 32, 32]
};
#define PARAMETERS const f16 *__restrict__ in0, const f16 *__restrict__ in1, f16 *__restrict__ out0
#define TENSORS {in0, in1, out0}
constexpr Region INPUTS = {0, 33120};   // of shared memory, in bytes
constexpr Region FILTER = {33120, 10240};
constexpr Region SLABS = {43360, 5120};
constexpr Region MARKS = {48480, 16};
constexpr int SHARED_BYTES = 48496;   // of a block
using Element = f16;                                          // of X and F
using Value = float;                                          // of products and sums
constexpr unsigned EXPONENT = 0x7c00u;                        // all ones: infinite or NaN
constexpr Index CHANNELS = 384, IMAGES = 64;                  // problem
constexpr int IH = 32, IW = 32, OH = 32, OW = 32;             // of an image: inputs, outputs,
constexpr int KH = 31, KW = 31, TOP = 15, SIDE = 15;          // taps; those of the first output out of bounds
constexpr int BI = 16, BH = 32, BN = 32;                      // rTile, shared memory
constexpr int WI = 16, WH = 4;                                // rTile, registers of a warp: rows of images; BN columns
constexpr int WARPS = 4;                                      // which take tiles in turn
constexpr int MIN_BLOCKS_PER_SM = 3;                          // of the launch bounds
constexpr int LEFT = 0;                                       // columns in shared memory before the first output's
constexpr int ROW = 4, ROWS = 32;                             // 16-byte vectors of a row; rows of an image
constexpr int GROUP_PITCH = 16, IMAGE_PITCH = 129;            // 16-byte vectors
constexpr int NEAREST = -3, DISTANCES = 7;                    // of vectors of inputs from blocks of outputs
constexpr bool HALVED = false;                                // fragments begin in the middle of a vector
constexpr int TAP_WORDS = 40;                                 // of a filter's row
constexpr bool PIECES = true;                                 // rows of X are aligned to 16 bytes
constexpr int QN = 8;                                         // columns of Y in one aligned access

// The element at column 0 of a row of X.
__device__ __forceinline__ Index input_at(Index channel, Index image, Index row)
{
    return image * 393216 + channel * 1024 + row * 32;
}
__device__ __forceinline__ const Element *input(const Tensors &t) { return t.in0; }
__device__ __forceinline__ Index input_size() { return 25165824; }
__device__ __forceinline__ Element filter(const Tensors &t, Index channel, Index kh, Index kw)
{
    return t.in1[channel * 961 + kh * 31 + kw];
}
__device__ __forceinline__ void finish(const Tensors &t, Index channel, Index image, Index row, Index first,
                                       const Value (&totals)[QN])
{
    store_vector<QN>(t.out0, image * 393216 + channel * 1024 + row * 32 + first, totals);
}
// </rollerc>

constexpr int THREADS = WARPS * WARP;
constexpr int BLOCK = 8;                                  // adjacent outputs of an instruction
constexpr int WORD = sizeof(unsigned) / sizeof(Element);   // elements of a register
constexpr int PIECE = 4 * WORD;                           // of a 16-byte vector
constexpr int APART = BLOCK / PIECE;                      // vectors from one block of outputs to the next
constexpr int GROUPS = 16 / WI, R = WH / GROUPS;   // of rows of outputs; rows of each
constexpr int BLOCKS = BN / BLOCK;
constexpr int STEPS = R + KH - 1;                  // of a warp down the input, at most
constexpr bool SHORT = STEPS <= 16;                // each step has its own code
constexpr int FRAGMENTS = (ROW + 1) / 2;           // of 16 rows of two vectors, in a row of A
constexpr int REACH = DISTANCES - HALVED;          // fragments of a row of A for a block of outputs
constexpr int TILES_H = BH / WH, TURNS = (BI / WI * TILES_H + WARPS - 1) / WARPS;   // of warps
// Every block has all rows of an image.
constexpr bool ALL_ROWS = BH >= OH && ROWS == IH && TOP >= 0 && OH + KH - 1 - TOP >= IH;
constexpr Index BLOCKS_H = (OH + BH - 1) / BH, BLOCKS_N = (OW + BN - 1) / BN;

static_assert(WI * GROUPS == 16 && R * GROUPS == WH, "a warp has 16 rows of A");
static_assert(BI % WI == 0 && BH % WH == 0 && BI / WI * TILES_H == WARPS * TURNS && BN % BLOCK == 0,
              "warps cover the block's tile");
static_assert(LEFT % PIECE == 0, "the first inputs are whole pieces");
static_assert(!HALVED || (WORD == 2 && DISTANCES > 1), "half of the lanes have half of eight inputs");
static_assert(QN == 1 || OW % QN == 0, "rows of Y hold whole vectors");

// 16-byte vectors of X in shared memory: BI images, then a row of zeros. Vectors of eight rows of A, as
// load_matrices() reads them, lie in eight groups of banks: images and groups of rows are padded to an odd
// number of vectors, or to the number of groups.
constexpr int ZEROS = BI * IMAGE_PITCH, INPUT_PIECES = ZEROS + ROW;
static_assert(GROUPS == 1 || GROUP_PITCH % 8 == 1, "groups of rows lie in other banks");
static_assert((IMAGE_PITCH - GROUPS) % 8 == 0, "and images");

// Each row of 16-bit taps is stored twice, the second time shifted by an element, so that two neighbours are
// an aligned word whether the first one is even or odd. Rows are padded with zeros. The tap of the first
// word:
constexpr int FIRST_TAP = NEAREST * PIECE - BLOCK + SIDE - LEFT;
using TapRow = unsigned[WORD][TAP_WORDS];
static_assert(TAP_WORDS >= 4 * DISTANCES + BLOCK / WORD, "all taps have room");
static_assert(WORD == 1 || (TAP_WORDS % 32 >= 8 && TAP_WORDS % 32 <= 24), "both copies lie in other banks");

// Epilogue staging of a warp's rows.
struct Slab {
    Value at[8][BN + 8];   // padding: no bank conflicts among 16 lanes
};

// The position of a row of an image, in 16-byte vectors.
__device__ __forceinline__ int row_place(int row) { return row / R * GROUP_PITCH + row % R * ROW; }

// A thread's i-th vector of X.
struct Mine {
    int image, row, column, place;
    bool mine;

    __device__ __forceinline__ Mine(int i, int n0)
    {
        const int number = (int)threadIdx.x + i * THREADS, piece = number % ROW;
        row = number / ROW % ROWS;
        image = number / (ROW * ROWS);
        column = n0 - LEFT + piece * PIECE;
        place = (image * IMAGE_PITCH + row_place(row) + piece) * PIECE;
        mine = image < BI;
    }
};

__device__ __forceinline__ void load_input(const Tensors &t, Element *Xs, Index channel, Index i0, int top,
                                           int first_row, int n0)
{
    constexpr int TOGETHER = PIECES ? 8 : 4;   // copies of a thread in flight
    [[maybe_unused]] PieceAnywhere<Element>::Last last;
    if constexpr (!PIECES)
        last.load(input(t), input_size());
#pragma unroll 1
    for (int i = 0; i * THREADS < BI * ROWS * ROW; i += TOGETHER) {
        [[maybe_unused]] PieceAnywhere<Element> held[TOGETHER];
        UNROLL for (int j = 0; j < TOGETHER; ++j) {
            const Mine it(i + j, n0);
            const int row = top + it.row;   // among those used by the block
            const bool reached = ALL_ROWS || (inside(row - first_row, BH + KH - 1) &&
                                              inside(row, op_min(IH, OH + KH - 1 - TOP)));
            const bool exists =
                it.mine && reached && (IMAGES % BI == 0 || i0 + it.image < IMAGES) && inside(it.column, IW);
            const Index at = exists ? input_at(channel, i0 + it.image, row) + it.column : 0;
            if constexpr (!PIECES)
                held[j].load(input(t), at, input_size(), exists, last);
            else if (it.mine)
                async_copy16_or_zero(exists, Xs + it.place, input(t) + at);
        }
        if constexpr (!PIECES)
            UNROLL for (int j = 0; j < TOGETHER; ++j) {
                const Mine it(i + j, n0);
                const bool exists = inside(top + it.row, IH) && it.column >= 0;   // whether the image exists is not tested
                const Vector<unsigned, 4> piece = held[j].value(exists ? IW - it.column : 0);
                if (it.mine)
                    *reinterpret_cast<Vector<unsigned, 4> *>(Xs + it.place) = piece;
            }
    }
    async_commit();
    for (int i = (int)threadIdx.x; i < (INPUT_PIECES - ZEROS) * 4; i += THREADS)
        reinterpret_cast<unsigned *>(Xs + ZEROS * PIECE)[i] = 0u;
}

// Stores a word of each copy at a time, and a row of zeros at the end. Returns whether the thread's taps are
// finite. Loads of several words are in flight; a block of one warp would wait for each.
__device__ __forceinline__ bool load_filter(const Tensors &t, TapRow (&Fs)[KH + 1], Index channel)
{
    constexpr int WORDS = (KH + 1) * TAP_WORDS;
    constexpr int EACH = (WORDS + THREADS - 1) / THREADS;   // of a thread
    constexpr int TOGETHER = EACH < 16 ? EACH : 16;
    bool found = false;
#pragma unroll 1
    for (int first = (int)threadIdx.x; first < WORDS; first += TOGETHER * THREADS) {
        unsigned taps[TOGETHER][2 * WORD - 1];
        UNROLL for (int i = 0; i < TOGETHER; ++i) {
            const int place = first + i * THREADS, kh = place / TAP_WORDS,
                      kw = FIRST_TAP + place % TAP_WORDS * WORD;
            UNROLL for (int j = 0; j < 2 * WORD - 1; ++j)
                taps[i][j] = kh < KH && inside(kw + j, KW) ? bits_of(filter(t, channel, kh, kw + j)) : 0u;
            round_tile(Element(), taps[i]);
        }
        UNROLL for (int i = 0; i < TOGETHER; ++i) {
            const int place = first + i * THREADS;
            UNROLL for (int j = 0; j < 2 * WORD - 1; ++j)
                found |= (taps[i][j] & EXPONENT) == EXPONENT;
            UNROLL for (int copy = 0; copy < WORD; ++copy)
                if (place < WORDS)
                    Fs[place / TAP_WORDS][copy][place % TAP_WORDS] =
                        taps[i][copy] | (WORD > 1 ? taps[i][copy + WORD - 1] << 16 : 0u);
        }
    }
    return found;
}

// A row of A.
struct Inputs {
    unsigned at[FRAGMENTS][4];

    // Half of the lanes pass the address of the second vector of each tile; if there is none, of the first
    // one.
    __device__ __forceinline__ void load(const Element *row, int second)
    {
        UNROLL for (int i = 0; i < FRAGMENTS; ++i)
            load_matrices(at[i], row + (i * 2 + (i * 2 + 1 < ROW ? second : 0)) * PIECE);
        UNROLL for (int i = 0; i < FRAGMENTS; ++i)
            round_tile(Element(), at[i]);
    }
    // Half of a tile's registers: a vector of each row, or zeros beside the row.
    __device__ __forceinline__ unsigned piece(int i, int half) const
    {
        return i >= 0 && i < ROW ? at[i / 2][i % 2 * 2 + half] : 0u;
    }
    // A fragment: a vector, or its upper half and the lower half of the next, each held by half of the lanes.
    __device__ __forceinline__ unsigned fragment(int i, int half) const
    {
        return HALVED && !has_upper() ? piece(i + 1, half) : piece(i, half);
    }
    static __device__ __forceinline__ bool has_upper() { return threadIdx.x % 4 >= 2; }
};
// A row of the filter: lane l has taps 8 * distance + 2 * (l % 4) - l / 4 + {0, 1} of all distances; of f32,
// tap 4 * distance + l % 4 - l / 4.
struct Taps {
    unsigned at[REACH];

    __device__ __forceinline__ void load(const unsigned *row)
    {
        const unsigned *own = row + (HALVED && !Inputs::has_upper() ? 4 : 0);
        UNROLL for (int i = 0; i < REACH; ++i)
            at[i] = own[i * 4];
    }
};
// A row of outputs of each group.
struct Sums {
    Value at[BLOCKS][4];

    __device__ __forceinline__ void add(const Inputs &inputs, const Taps &taps)
    {
        UNROLL for (int block = 0; block < BLOCKS; ++block) {
            const int nearest = block * APART + NEAREST, from = op_max(nearest, -HALVED),
                      end = op_min(nearest + REACH, ROW);
            UNROLL for (int i = from; i < end; i += 2) {
                const unsigned a0 = inputs.fragment(i, 0), a1 = inputs.fragment(i, 1);
                if (i + 1 < end) {
                    const unsigned a[4] = {a0, a1, inputs.fragment(i + 1, 0), inputs.fragment(i + 1, 1)};
                    multiply_tiles(Element(), a, taps.at[i - nearest], taps.at[i + 1 - nearest], at[block]);
                } else
                    multiply_half_tiles(Element(), a0, a1, taps.at[i - nearest], at[block]);
            }
        }
    }
};

// Zeros in T or outside of the image multiply infinities and NaN to NaN: sums that may have met such are
// recomputed from their own products only.
__device__ __forceinline__ void sum_alone(const Tensors &t, Index channel, Index image, Index row,
                                          Index column, Value *sums)
{
#pragma unroll 1
    for (int e = 0; e < QN; ++e) {
        sums[e] = 0;
        for (Index kh = 0; kh < KH; ++kh)
            for (Index kw = 0; kw < KW; ++kw) {
                const Index y = row + kh - TOP, x = column + e + kw - SIDE;
                const bool exists = inside(y, IH) && inside(x, IW);
                const Value element = exists ? widen(input(t)[input_at(channel, image, y) + x]) : 0;
                sums[e] += element * widen(filter(t, channel, kh, kw));
            }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS_PER_SM) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED(INPUTS, Element, Xs, [INPUT_PIECES * PIECE]);
    SHARED(FILTER, TapRow, Fs, [KH + 1]);
    SHARED(SLABS, Slab, slabs, [WARPS]);
    SHARED(MARKS, int, marks, [WARPS]);

    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const Index block = (Index)blockIdx.x / CHANNELS, channel = (Index)blockIdx.x % CHANNELS;
    const int n0 = (int)(block % BLOCKS_N) * BN, h0 = (int)(block / BLOCKS_N % BLOCKS_H) * BH;
    const Index i0 = block / (BLOCKS_N * BLOCKS_H) * BI;
    const int top = ROWS == IH ? 0 : h0 - TOP;   // row of the image that is the first one in shared memory

    load_input(t, Xs, channel, i0, top, h0 - TOP, n0);
    const bool found = load_filter(t, Fs, channel);
    async_wait<0>();
    const bool infinite = any_of_block<WARPS>(found, marks);   // or NaN: some tap

#pragma unroll 1
    for (int turn = 0; turn < TURNS; ++turn) {   // in alternating order: the first and the last rows are less work
        const int tile = turn * WARPS + (turn % 2 ? WARPS - 1 - warp : warp),
                  tile_image = tile / TILES_H * WI;
        const int row0 = h0 + tile % TILES_H * WH;
        const Index image0 = i0 + tile_image;

        // Lane l passes the address of row l % 16 of A.
        const int group = lane % 16 % GROUPS, place = (tile_image + lane % 16 / GROUPS) * IMAGE_PITCH;
        const int above = row0 - TOP;                         // the image's row of group 0 in step 0
        const auto row_of = [&](int step) {
            const int row = above + step + group * R - top;
            return Xs + (inside(row, ROWS) ? place + row_place(row) : ZEROS) * PIECE;
        };
        const bool idle = (OH % BH != 0 && row0 >= OH) || (IMAGES % BI != 0 && image0 >= IMAGES);
        const int from = op_max(0, -(above + (GROUPS - 1) * R));   // steps
        const int last = idle ? -1 : op_min(STEPS - 1, IH - 1 - above);
        const int copy = lane / 4 % WORD;
        const unsigned *own_taps = &Fs[0][copy][(BLOCK - lane / 4 - copy) / WORD + lane % 4];
        const auto taps_of = [&](int kh) { return own_taps + (inside(kh, KH) ? kh : KH) * WORD * TAP_WORDS; };

        // Compute: load the next row of the input while this one is multiplied.
        Sums sums[R] = {};
        Taps taps[R];   // the last R rows of the filter
        Inputs inputs[2];
        if constexpr (SHORT) {
            if (!idle)
                inputs[0].load(row_of(0), lane / 16);
            UNROLL for (int step = 0; step < STEPS; ++step) {
                if (!idle && step + 1 < STEPS)
                    inputs[(step + 1) % 2].load(row_of(step + 1), lane / 16);
                if (!idle && step < KH)
                    taps[step % R].load(taps_of(step));
                if (step >= from && step <= last)
                    UNROLL for (int j = 0; j < R; ++j)
                        if (step - j >= 0 && step - j < KH)
                            sums[j].add(inputs[step % 2], taps[(step - j + R) % R]);
            }
        } else if (from <= last) {
            UNROLL for (int j = 1; j < R; ++j)
                taps[R - j].load(taps_of(from - j));
            inputs[0].load(row_of(from), lane / 16);
            // R steps at a time, so that registers of rows are constants.
#pragma unroll 1
            for (int first = from; first <= last; first += R) {
                UNROLL for (int i = 0; i < R; ++i) {
                    inputs[(i + 1) % 2].load(row_of(first + i + 1), lane / 16);
                    taps[i].load(taps_of(first + i));
                    if (first + i <= last)
                        UNROLL for (int j = 0; j < R; ++j)
                            sums[j].add(inputs[i % 2], taps[(i - j + R) % R]);
                }
                if (R % 2)
                    inputs[0] = inputs[1];
            }
        }

        // Epilogue: stage eight rows of A at a time in shared memory, so that stores are coalesced.
        Slab &slab = slabs[warp];
        UNROLL for (int part = 0; part < 2 * R; ++part) {
            const int half = part % 2, j = part / 2;
            UNROLL for (int b = 0; b < BLOCKS; ++b) {
                const Value two[2] = {sums[j].at[b][half * 2], sums[j].at[b][half * 2 + 1]};
                move_vector<2>(&slab.at[lane / 4][b * BLOCK + lane % 4 * 2], two);
            }
            warp_sync();
            UNROLL_4 for (int i = 0; i < 8 * BN / QN; i += WARP) {
                const int v = i + lane, slab_row = v / (BN / QN), at = v % (BN / QN) * QN,
                          a_row = half * 8 + slab_row;
                const Index image = image0 + a_row / GROUPS, row = row0 + a_row % GROUPS * R + j,
                            column = n0 + at;
                if ((8 * BN / QN % WARP != 0 && slab_row >= 8) ||
                    (IMAGES % BI != 0 && image >= IMAGES) || (OH % BH != 0 && row >= OH) ||
                    (OW % BN != 0 && column >= OW))
                    continue;
                Value totals[QN];
                load_vector<QN>(slab.at[slab_row], at, totals);
                if (infinite || totals[0] * 0 != 0) {   // a NaN of one of eight adjacent outputs spreads to all
                    sum_alone(t, channel, image, row, column, slab.at[slab_row] + at);
                    load_vector<QN>(slab.at[slab_row], at, totals);
                }
                finish(t, channel, image, row, column, totals);
            }
            warp_sync();
        }
    }
}
}   // namespace KERNEL
