// Convolution of few channels on tensor cores (implicit GEMM, NHWC or NCHW): f16 or bf16, f32 accumulators, and a
// pointwise epilogue.
//
//   Y[image, row, column, g, f] = sum over k, l and c of X[image, row + k, column + l, g, c] * F[g, f, k, l, c]
//
// A thread block computes BD x BA outputs of an image, for TC groups of channels with BF filters each. Its
// input with the halo is in shared memory, in the order of global memory, each element once. The rows of A
// are 16 outputs. A register of A is two elements that are contiguous there, loaded from the output's window.
// K consists of runs, each padded with zeros to a multiple of 8:
//
//   one group              a row of taps is a run: of 7 taps of 3 channels 21 elements, and 3 zeros
//   groups of 8 n          the channels of a tap
//   groups of 2 or 4       4 or 2 adjacent taps, of which each lane reads its own
//
//   image   c0 c1 c2 | c0 c1 c2 | c0 c1 c2 | ...        Where pixels have an odd number of elements and are copied as
//   output 0 [-- -- -- -- -- -- -- -- -- ...            16-byte vectors, a run begins one element early, with a zero
//   output 1            [-- -- -- -- -- -- ...          tap, so that registers are aligned words.
//
// A warp holds filters in registers and computes 16 or 32 outputs at a time. Adjacent lanes have adjacent
// filters, so stores need no staging. Where results are planes, a lane has ADJACENT outputs of a line, which are one access.
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
constexpr Region INPUTS = {0, 29232};   // of shared memory, in bytes
constexpr Region FILTERS = {29232, 18816};
constexpr int SHARED_BYTES = 48048;   // of a block
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
constexpr int SUMMED = 3;                                 // channels of a group
constexpr Index CHANNEL_STRIDE = 1;                       // of x
constexpr int TC = 1, BF = 64, BD = 8, BA = 112;          // rTile, block: groups, filters of each, outputs
constexpr int WARP_GROUPS = 1, WARP_TILES = 4;            // rTile, warp: groups, and 8-filter tiles of each
constexpr int FOLDED = 1, ROW_TILES = 1;                  // groups in an 8-filter tile; 16-output tiles of a warp
constexpr int BESIDE = 4;                                 // 8-filter tiles whose filters are interleaved
constexpr bool LOADS = false;                             // the epilogue loads something for each lane's outputs
constexpr int THREADS = 128, MIN_BLOCKS_PER_SM = 3;       // of the launch bounds
constexpr int RUN = 22, RUNS = 1, SHIFT = 1;              // elements; for each row of taps; zeros before the first tap
constexpr int TOGETHER = 1;                               // taps in eight elements
constexpr bool ROW_RUNS = true, PIECES = true;            // a row of taps is a run; copies are 16-byte vectors
constexpr int PIXEL = 3, LEAD = 7, REACH = 229;           // in shared memory: elements; before the first one; pixels,
constexpr int LINE = 696, LINES = 21;                     // elements of a line, lines
constexpr int VECTOR = 0;                                 // columns of a plane in an aligned vector; 0: no planes, or element by element
constexpr int PHASES = 1, PHASE = 229;                    // every PHASES-th pixel of a line is contiguous, so many
constexpr int ADJACENT = 1;                               // outputs of a line that a lane has
constexpr int QN = 8;                                     // filters, or such outputs, in one aligned access
constexpr int FILTER_RUN = 9408;                          // elements of a block's contiguous filters; 0: not contiguous
constexpr Index GROUP_STRIDE = 9408, FILTER_STRIDE = 147, ALL_FILTERS = 9408;   // elements of w
constexpr int SKEW = 0;             // elements between which eight are left out in shared memory, for its banks; 0: nowhere
constexpr bool BY_TERMS = false;    // they are those of a channel that is summed; else of eight filters
constexpr bool WORDS = false;       // two channels of a filter are one word
constexpr bool VECTORS = false;     // a lane's filters and their neighbours' are one vector, for each summed channel

// The first element of an image's first row.
__device__ __forceinline__ const X *image(const Tensors &t, Index batch, Index)
{
    return t.in0 + batch * 150528;
}

// Where an element of a pixel's channels lies, from the first one on; false: in an image that does not exist. Taps along a third axis
// are channels, those of the images before and behind.
__device__ __forceinline__ bool find_element(Index, int element, Index &at)
{
    at = element;
    return true;
}
__device__ __forceinline__ A tap(Index summed, const Tensors &t, Index, Index multiplier, Index k, Index l)
{
    return load(t.in1, multiplier * 147 + k * 21 + l * 3 + summed);
}
__device__ __forceinline__ Index tap_at(Index summed, Index, Index multiplier, Index k, Index l)
{
    return multiplier * 147 + k * 21 + l * 3 + summed;
}
__device__ __forceinline__ const X *filters_of(const Tensors &t) { return t.in1; }
__device__ __forceinline__ void finish(const Tensors &t, Index batch, Index, Index multiplier, Index down,
                                       Index along, bool exists, const A (&totals)[QN])
{
    if (exists)
        store_vector<QN>(t.out0, batch * 802816 + down * 7168 + along * 64 + multiplier, totals);
}
// </rollerc>

constexpr bool PAIRED = TOGETHER > 1 && SUMMED % 4 == 0;     // (see is_paired)
constexpr int EIGHTS = (RUN + 7) / 8, STEPS = DOWN_TAPS * RUNS * EIGHTS;   // of a run; of K
constexpr int WARP_FILTERS = 8 * WARP_TILES, PARTS = BF / WARP_FILTERS;
constexpr int SHARES = TC / WARP_GROUPS * PARTS, SETS = THREADS / WARP / SHARES;   // of groups and filters; of outputs
constexpr int TILE = 16, PIXELS = (DOWN < BD ? DOWN : BD) * BA;
constexpr Index CHANNEL_BLOCKS = (CHANNELS + TC - 1) / TC, FILTER_BLOCKS = (MULTIPLIERS + BF - 1) / BF;
constexpr int DOWN_BLOCKS = (DOWN + BD - 1) / BD, ALONG_BLOCKS = (ALONG + BA - 1) / BA;

static_assert(SHARES * SETS * WARP == THREADS, "warps cover the block's groups and filters");
static_assert(WARP_TILES % BESIDE == 0, "tiles that are interleaved are a warp's");
static_assert(TC % WARP_GROUPS == 0 && BF % WARP_FILTERS == 0, "and have whole shares");
static_assert(2 * BESIDE * ADJACENT % QN == 0 && (ADJACENT == 1 || QN == ADJACENT), "a lane has whole accesses of outputs");
static_assert(PHASES == 1 || PHASES == ADJACENT * ALONG_STEP, "lanes of a phase read adjacent pixels");
static_assert(BATCH > 0 && (Index)REACH * PIXEL <= LINE + PIXEL, "lines hold what windows see");
static_assert(ALONG_STEP * PIXEL % 2 == 0 && (LEAD - SHIFT) % 2 == 0, "elements are read by aligned words");
static_assert(WARP_GROUPS % FOLDED == 0, "eights are full");
static_assert(!ROW_RUNS || ALONG_DILATION == 1 || ALONG_TAPS == 1, "a run has no gaps");

// The block's first output. Adjacent blocks read adjacent channels.
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

// A group has fewer elements in shared memory than the block's last groups would have.
__device__ __forceinline__ bool has_channel(const Corner &corner, int element)
{
    return ROW_RUNS ? element < SUMMED : CHANNELS % TC == 0 || corner.channel * SUMMED + element < CHANNELS * SUMMED;
}

// Where a pixel lies in its line.
__device__ __forceinline__ constexpr int pixel_offset(int pixel)
{
    return pixel % PHASES * (PHASE * PIXEL) + pixel / PHASES * PIXEL;
}

// A 16-byte vector of the input that is copied to shared memory: of whole lines where pixels are contiguous, otherwise of a pixel.
struct PixelPiece {
    static constexpr int SPAN = ROW_RUNS ? LINE : TC * SUMMED, EACH = SPAN / 8, SPANS = ROW_RUNS ? 1 : REACH;
    static constexpr int COUNT = LINES * SPANS * EACH;
    int to;
    bool exists;
    const X *at;

    __device__ __forceinline__ PixelPiece(const Tensors &t, const Corner &corner, int number)
    {
        const int line = number / (EACH * SPANS), span = number / EACH % SPANS, part = number % EACH * 8;
        const int first = corner.along * ALONG_STEP + ALONG_OFFSET, column = first + span;
        const int row = corner.down * DOWN_STEP + DOWN_OFFSET + line;
        const int element = ROW_RUNS ? first * SUMMED - LEAD + part : part;   // of the line; of the pixel
        Index from = element;
        to = line * LINE + span * PIXEL + part;
        exists = inside(row, ROWS) && (ROW_RUNS ? inside(element, COLUMNS * SUMMED)
                                                : inside(column, COLUMNS) && has_channel(corner, element) &&
                                                      find_element(corner.batch, element, from));
        at = image(t, corner.batch, corner.channel) + row * ROW_STRIDE + (ROW_RUNS ? 0 : column * COLUMN_STRIDE) +
             from;
    }
};

// A part of a line that a warp copies element by element: lanes have adjacent columns of a plane, or adjacent elements of
// pixels, which are columns of their own where pixels are contiguous. Of elements out of bounds the nearest one is loaded:
// there is no branch, and all are in flight.
struct LinePart {
    static constexpr bool PLANES = CHANNEL_STRIDE > 1, FLAT = ROW_RUNS && PIXEL == SUMMED && COLUMN_STRIDE == SUMMED && !PLANES;
    static constexpr int CHANNELS_HERE = ROW_RUNS ? PIXEL : TC * SUMMED;
    static constexpr int WIDE = FLAT ? PIXEL : 1, APART = FLAT ? 1 : PIXEL;   // columns of a pixel; elements between columns
    static constexpr int OF_COLUMN = PLANES || FLAT ? 1 : CHANNELS_HERE, OF_LINE = PLANES ? CHANNELS_HERE : 1;
    static constexpr int LENGTH = REACH * WIDE * OF_COLUMN;
    static constexpr int ALL = (LENGTH + WARP - 1) / WARP, CUTS = (ALL + 15) / 16, EACH = (ALL + CUTS - 1) / CUTS;
    static constexpr int COUNT = LINES * OF_LINE * CUTS;
    const X *row;
    int to, own, first;   // own: of the line's elements this lane's first one; first: the line's first column
    bool exists;

    __device__ __forceinline__ LinePart(const Tensors &t, const Corner &corner, int number)
    {
        const int plane = number / CUTS % OF_LINE, line = number / (OF_LINE * CUTS);
        const int at = corner.down * DOWN_STEP + DOWN_OFFSET + line;
        first = (corner.along * ALONG_STEP + ALONG_OFFSET) * WIDE;
        own = number % CUTS * (EACH * WARP) + lane_id();
        to = line * LINE + plane;
        exists = inside(at, ROWS) && (!PLANES || has_channel(corner, plane));
        row = image(t, corner.batch, corner.channel) + near(at, ROWS) * ROW_STRIDE + channel(corner, plane) * CHANNEL_STRIDE;
    }
    template <class T> static __device__ __forceinline__ T near(T position, T size)
    {
        return op_max<T>(0, op_min<T>(position, size - 1));
    }
    static __device__ __forceinline__ Index channel(const Corner &corner, int element)
    {
        return near<Index>(element, (CHANNELS - corner.channel) * SUMMED);
    }
    __device__ __forceinline__ X load(const Corner &corner, int i) const
    {
        const int element = own + i * WARP, column = first + element / OF_COLUMN;
        return row[near(column, COLUMNS * WIDE) * (FLAT ? 1 : COLUMN_STRIDE) + channel(corner, element % OF_COLUMN)];
    }
    __device__ __forceinline__ void store(const Corner &corner, X *inputs, int i, X value) const
    {
        const int element = own + i * WARP, column = element / OF_COLUMN, part = element % OF_COLUMN;
        const bool is = exists && inside(first + column, COLUMNS * WIDE) && (OF_COLUMN == 1 || has_channel(corner, part));
        const X made = is ? value : narrow<X>(A(0));
        X *const place = inputs + (to + column * APART + part);
        if (LENGTH % (EACH * WARP) == 0 || element < LENGTH)
            *place = made;
    }
};

// Copies the input, with zeros outside of the image.
__device__ __forceinline__ void copy_inputs(const Tensors &t, const Corner &corner, X *inputs)
{
    if constexpr (VECTOR > 0) {
        constexpr int V = VECTOR > 0 ? VECTOR : 1;
        const auto from = [&](int line, int channel, int column) {
            const int row = corner.down * DOWN_STEP + DOWN_OFFSET + line, own = corner.along * ALONG_STEP + ALONG_OFFSET + column;
            return PlaneElement<X>{inside(row, ROWS) && inside(own, COLUMNS) && has_channel(corner, channel),
                                   image(t, corner.batch, corner.channel) + row * ROW_STRIDE + own * COLUMN_STRIDE + channel * CHANNEL_STRIDE};
        };
        const auto to = [&](int line, int channel, int base, int column) {
            return inputs + (line * LINE + channel + (V % PHASES == 0 ? base / PHASES * PIXEL + pixel_offset(column) : pixel_offset(base + column)));
        };
        copy_planes<THREADS, V, TC * SUMMED, (ALONG_OFFSET % V + V) % V, REACH, X>(LINES, CHANNEL_STRIDE, from, to);
    } else if constexpr (PIECES) {
        UNROLL_4 for (int number = (int)threadIdx.x; number < PixelPiece::COUNT; number += THREADS) {
            const PixelPiece piece(t, corner, number);
            async_copy16_or_zero(piece.exists, inputs + piece.to, piece.at);
        }
    } else {
        constexpr int WARPS = THREADS / WARP, AHEAD = 16 / LinePart::EACH;   // parts whose elements are in flight
#pragma unroll 1
        for (int number = (int)threadIdx.x / WARP; number < LinePart::COUNT; number += AHEAD * WARPS) {
            X held[AHEAD][LinePart::EACH];
            UNROLL for (int a = 0; a < AHEAD; ++a) {
                const LinePart part(t, corner, op_min(number + a * WARPS, LinePart::COUNT - 1));
                UNROLL for (int i = 0; i < LinePart::EACH; ++i)
                    held[a][i] = part.load(corner, i);
            }
            UNROLL for (int a = 0; a < AHEAD; ++a) {
                const LinePart part(t, corner, number + a * WARPS);
                if (a == 0 || LinePart::COUNT % (AHEAD * WARPS) == 0 || number + a * WARPS < LinePart::COUNT)
                    UNROLL for (int i = 0; i < LinePart::EACH; ++i)
                        part.store(corner, inputs, i, held[a][i]);
            }
        }
    }
}

// Copies the block's filters to shared memory in the order of global memory. The last block may have fewer; of a tensor that is no
// whole vectors, which one block has, the last elements are copied one by one.
constexpr int FILTER_ROOM = FILTER_RUN == 0 ? 8 : FILTER_RUN + (SKEW > 0 ? FILTER_RUN / SKEW * 8 : 0);
__device__ __forceinline__ void copy_filters(const Tensors &t, Index first, X *filters)
{
    constexpr int VECTORS_END = FILTER_RUN / 8 * 8;
    const auto place = [&](int element) { return filters + element + (SKEW > 0 ? element / SKEW * 8 : 0); };
    UNROLL_4 for (int element = (int)threadIdx.x * 8; element < VECTORS_END; element += THREADS * 8)
        async_copy16_or_zero(first + element < ALL_FILTERS, place(element), filters_of(t) + (first + element));
    if (VECTORS_END < FILTER_RUN && (int)threadIdx.x < FILTER_RUN - VECTORS_END)
        *place(VECTORS_END + (int)threadIdx.x) = filters_of(t)[VECTORS_END + (int)threadIdx.x];
}

// Two 8-element steps of a run are paired where a tap has four elements: a lane has those of one tap, two in
// each step.
__device__ __forceinline__ constexpr bool is_paired(int eight) { return PAIRED && (eight | 1) < EIGHTS; }

// Of a run, the first of a lane's two elements in an 8-element step.
__device__ __forceinline__ int own_element(int eight)
{
    const int quad = lane_id() % 4;
    return is_paired(eight) ? eight / 2 * 16 + quad * 4 + eight % 2 * 2 : eight * 8 + quad * 2;
}

// An element of a filter's run. One past its end is a zero; the nearest one is loaded, without a branch, which compilers
// find only where every element might be past the end.
struct Term {
    int k, l, summed;
    bool exists;

    __device__ __forceinline__ Term(int run, int place)
    {
        const int element = place - SHIFT;
        const int each = ROW_RUNS ? PIXEL : SUMMED;
        const int column = RUNS > 1 ? run % RUNS : op_max(element, 0) / each;
        const int own = RUNS > 1 ? element : op_max(element, 0) % each;
        const bool whole = FILTER_RUN > 0 && RUNS > 1 && SUMMED % 8 == 0;
        k = run / RUNS;
        exists = whole || (element >= 0 && column < ALONG_TAPS && own < SUMMED);
        l = op_min(column, ALONG_TAPS - 1);
        summed = whole ? own : op_min(own, SUMMED - 1);
    }
};
__device__ __forceinline__ A filter_element(const Tensors &t, Index channel, Index multiplier, const Term &term)
{
    const A value = tap(term.summed, t, channel, multiplier, term.k, term.l);
    return term.exists ? value : A(0);
}

__device__ __forceinline__ unsigned word_of(const X *at)
{
    unsigned word[1];
    move_vector<1>(word, reinterpret_cast<const unsigned *>(at));
    return word[0];
}

// Two elements of a filter in shared memory.
struct Staged {
    const X *filters;
    const Corner &corner;

    __device__ __forceinline__ const X *at(Index channel, Index multiplier, const Term &term) const
    {
        const Index run = corner.channel * GROUP_STRIDE + corner.multiplier * FILTER_STRIDE;
        [[maybe_unused]] const Index group = channel - corner.channel, own = multiplier - corner.multiplier;
        [[maybe_unused]] const Index skipped = BY_TERMS ? group * SUMMED + term.summed : (group * MULTIPLIERS + own) / 8;
        return filters + (tap_at(term.summed, channel, multiplier, term.k, term.l) - run + (SKEW > 0 ? skipped * 8 : 0));
    }
    template <int N>
    __device__ __forceinline__ void move(Index channel, Index multiplier, const Term &term, unsigned (&words)[N]) const
    {
        move_vector<N>(words, reinterpret_cast<const unsigned *>(at(channel, multiplier, term)));
    }
    __device__ __forceinline__ unsigned operator()(Index channel, Index multiplier, const Term &low, const Term &high) const
    {
        if (WORDS)
            return word_of(at(channel, multiplier, low));
        const X first = *at(channel, multiplier, low), second = *at(channel, multiplier, high);
        return (low.exists ? first.bits : 0u) | (high.exists ? (unsigned)second.bits << 16 : 0u);
    }
};

// A lane's registers of B: column `lane / 4` of 8-filter tiles. Filters are interleaved across BESIDE tiles,
// so that a lane's sums are contiguous: lane 1 has columns 2 and 3 of each tile, which are filters 8 to 15 of
// 32. Of 2 or 4 filters each is repeated; of groups that share a tile each uses some of its columns.
struct Filter {
    unsigned at[WARP_GROUPS][STEPS][WARP_TILES];

    template <class Pair> __device__ __forceinline__ void read(const Corner &corner, int group, int first, const Pair &pair)
    {
        const int column = lane_id() / 4;
        UNROLL for (int g = 0; g < WARP_GROUPS; ++g)
            UNROLL for (int j = 0; j < WARP_TILES; ++j) {
                const int own = FOLDED > 1 ? (int)(column % MULTIPLIERS)
                                           : first + j / BESIDE * (8 * BESIDE) + column / 2 * (2 * BESIDE) +
                                                 j % BESIDE * 2 + column % 2;
                const Index channel = op_min<Index>(corner.channel + group + g, CHANNELS - 1);
                const Index multiplier = op_min<Index>(corner.multiplier + own, MULTIPLIERS - 1);
                UNROLL for (int i = 0; i < STEPS; ++i) {
                    const int k = own_element(i % EIGHTS);
                    at[g][i][j] = pair(channel, multiplier, Term(i / EIGHTS, k), Term(i / EIGHTS, k + 1));
                }
            }
    }

    // Of two channels all filters of an even and an odd column, which lie side by side: each takes its own.
    template <class Pairs>
    __device__ __forceinline__ void read_vectors(const Corner &corner, int group, int first, const Pairs &pairs)
    {
        const int column = lane_id() / 4;
        const unsigned own = column % 2 ? 0x7632u : 0x5410u;
        UNROLL for (int g = 0; g < WARP_GROUPS; ++g)
            UNROLL for (int j = 0; j < WARP_TILES; j += BESIDE) {
                const Index channel = op_min<Index>(corner.channel + group + g, CHANNELS - 1);
                const Index multiplier = corner.multiplier + first + j * 8 + column / 2 * (2 * BESIDE);
                UNROLL for (int i = 0; i < STEPS; ++i) {
                    const int k = own_element(i % EIGHTS);
                    unsigned low[BESIDE], high[BESIDE];
                    pairs.move(channel, multiplier, Term(i / EIGHTS, k), low);
                    pairs.move(channel, multiplier, Term(i / EIGHTS, k + 1), high);
                    UNROLL for (int e = 0; e < BESIDE; ++e)
                        at[g][i][j + e] = byte_permute(low[e], high[e], own);
                }
            }
    }
};

// The offset of an element of a run from its first one, whose pixel is this one of the window.
__device__ __forceinline__ int run_offset(int element, int pixel)
{
    return TOGETHER == 1 ? pixel_offset(pixel) + element
                         : pixel_offset(pixel + element / SUMMED * ALONG_DILATION) + element % SUMMED;
}

// Outputs of a lane: one in each half of each tile, of which ADJACENT ones are side by side.
constexpr int HALVES = 2 * ROW_TILES, OUTPUTS = HALVES / ADJACENT;
__device__ __forceinline__ int first_output(int tile, int i)
{
    return tile * TILE + (i * 8 + lane_id() / 4) * ADJACENT;
}

// The positions of a lane's words of A, of single and of paired steps: where windows of its first adjacent outputs begin, and
// of its elements from there, unless they may be those of several phases.
constexpr bool ONE_PHASE = PHASES == 1 || TOGETHER == 1;
struct Places {
    int at[OUTPUTS], paired[OUTPUTS];

    __device__ __forceinline__ void find(int tile, int group)
    {
        const int quad = lane_id() % 4;
        UNROLL for (int i = 0; i < OUTPUTS; ++i) {
            const int pixel = op_min(first_output(tile, i), PIXELS - ADJACENT);
            const int window = pixel / BA * (DOWN_STEP * LINE) +
                               pixel % BA / ADJACENT * ((PHASES > 1 ? 1 : ADJACENT * ALONG_STEP) * PIXEL) + LEAD - SHIFT +
                               group * SUMMED;
            at[i] = window + (ONE_PHASE ? run_offset(quad * 2, 0) : 0);
            paired[i] = window + (ONE_PHASE ? run_offset(quad * 4, 0) : 0);
        }
    }
    __device__ __forceinline__ int of(int i, int eight) const { return is_paired(eight) ? paired[i] : at[i]; }
};

// The offset from there to those of a step, for one of the adjacent outputs; of a pair's second step, from those of the first.
__device__ __forceinline__ int step_offset(int i, int output)
{
    const int eight = is_paired(i % EIGHTS) ? i % EIGHTS / 2 * 2 : i % EIGHTS;
    const int column = TOGETHER == 1 ? i / EIGHTS % RUNS : eight * TOGETHER, quad = ONE_PHASE ? 0 : lane_id() % 4;
    return i / (EIGHTS * RUNS) * (DOWN_DILATION * LINE) + (TOGETHER == 1 ? eight * 8 : 0) +
           run_offset(is_paired(eight) ? quad * 4 : quad * 2, output * ALONG_STEP + column * ALONG_DILATION);
}

// Whether some lane has elements past the run in that step; and the valid bits of a lane's word.
__device__ __forceinline__ constexpr bool leaves_run(int eight)
{
    return (eight == 0 && SHIFT > 0) || (is_paired(eight) ? (eight / 2 + 1) * 16 : (eight + 1) * 8) > RUN;
}
__device__ __forceinline__ unsigned bits_of_run(int eight)
{
    const int k = own_element(eight);
    return (k >= SHIFT && k < RUN ? 0xffffu : 0u) | (k + 1 < RUN ? 0xffff0000u : 0u);
}

// A lane's words of a step, of both halves of each tile.
struct Words {
    unsigned now[HALVES], next[HALVES];   // `next`: of the pair's second step

    __device__ __forceinline__ void read(const X *inputs, const Places &places, int g, int i)
    {
        const int eight = i % EIGHTS;
        UNROLL for (int r = 0; r < HALVES; ++r) {
            const X *const from = inputs + places.of(r / ADJACENT, eight) + (g * SUMMED + step_offset(i, r % ADJACENT));
            if (is_paired(eight) && eight % 2 == 1)
                now[r] = next[r];
            else if (is_paired(eight))
                read_pair(r, from);
            else
                now[r] = word_of(from);
            if (leaves_run(eight))
                now[r] &= bits_of_run(eight);
        }
    }
    __device__ __forceinline__ void read_pair(int r, const X *from)
    {
        unsigned both[2];
        move_vector<2>(both, reinterpret_cast<const unsigned *>(from));
        now[r] = both[0];
        next[r] = both[1];
    }
};

// Accumulators of ROW_TILES tiles: each register of B is used with ROW_TILES of A.
struct Sums {
    A at[ROW_TILES][WARP_GROUPS][WARP_TILES][4] = {};

    __device__ __forceinline__ void add(const X *inputs, const Places &places, const Filter &filter)
    {
        UNROLL for (int g = 0; g < WARP_GROUPS; ++g) {
            unsigned a[ROW_TILES][4];
            Words words;
            UNROLL for (int i = 0; i < STEPS; ++i) {
                words.read(inputs, places, g, i);
                UNROLL for (int r = 0; r < HALVES; ++r)
                    a[r / 2][i % 2 * 2 + r % 2] = words.now[r];
                UNROLL for (int j = 0; j < WARP_TILES; ++j)
                    UNROLL for (int u = 0; u < ROW_TILES; ++u)
                        if (i % 2 == 1)
                            multiply_tiles(X(), a[u], filter.at[g][i - 1][j], filter.at[g][i][j], at[u][g][j]);
                        else if (i == STEPS - 1)
                            multiply_half_tiles(X(), a[u][0], a[u][1], filter.at[g][i][j], at[u][g][j]);
            }
        }
    }

    // A filter's sum: in one of the halves of tiles, of a group, from a tile of filters on.
    __device__ __forceinline__ A of(int half, int g, int j, int filter) const
    {
        const int quad = lane_id() % 4;
        A sum = at[half / 2][g][j + filter / 2][half % 2 * 2 + filter % 2];
        UNROLL for (int other = 1; other < FOLDED; ++other) {
            const A another = at[half / 2][g + other][j + filter / 2][half % 2 * 2 + filter % 2];
            sum = quad * 2 / MULTIPLIERS == other ? another : sum;
        }
        return sum;
    }

    // Of adjacent outputs: runs of 2 * BESIDE filters of a group, of each filter all outputs.
    template <class Leave> __device__ __forceinline__ void leave(int output, const Leave &leave_run) const
    {
        const int quad = lane_id() % 4;
        UNROLL for (int g = 0; g < WARP_GROUPS; g += FOLDED)
            UNROLL for (int j = 0; j < WARP_TILES; j += BESIDE) {
                A run[2 * BESIDE * ADJACENT];
                UNROLL for (int e = 0; e < 2 * BESIDE * ADJACENT; ++e)
                    run[e] = of(output * ADJACENT + e % ADJACENT, g, j, e / ADJACENT);
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
    SHARED(FILTERS, X, filters, [FILTER_ROOM]);
    const Corner corner = own_corner();
    const int warp = (int)threadIdx.x / WARP, share = warp % SHARES;
    const int group = share / PARTS * WARP_GROUPS, first = share % PARTS * WARP_FILTERS;   // in the block

    // ---- load ----
    copy_inputs(t, corner, inputs);
    Filter filter;
    if (FILTER_RUN > 0)
        copy_filters(t, corner.channel * GROUP_STRIDE + corner.multiplier * FILTER_STRIDE, filters);
    else
        filter.read(corner, group, first, [&](Index channel, Index multiplier, const Term &low, const Term &high) {
            return pair_of(X(), filter_element(t, channel, multiplier, low), filter_element(t, channel, multiplier, high));
        });
    async_commit();
    async_wait<0>();
    block_sync();
    if (FILTER_RUN > 0)
        VECTORS ? filter.read_vectors(corner, group, first, Staged{filters, corner})
                : filter.read(corner, group, first, Staged{filters, corner});

    // ---- compute ----
    const int rows = DOWN % BD == 0 ? BD : op_min(BD, DOWN - corner.down);
    // Where the epilogue loads, outputs that do not exist have the nearest one's position: without a branch all of its loads are in
    // flight together.
    const auto finish_run = [&](bool exists, Index channel, Index multiplier, int down, int along,
                                const A(&run)[2 * BESIDE * ADJACENT]) __attribute__((always_inline)) {
        constexpr bool WHOLE_FILTERS = MULTIPLIERS % BF == 0 || FOLDED > 1, WHOLE_GROUPS = CHANNELS % TC == 0;
        UNROLL for (int e = 0; e < 2 * BESIDE * ADJACENT; e += QN) {
            A totals[QN];
            UNROLL for (int i = 0; i < QN; ++i)
                totals[i] = run[e + i];
            const Index own = multiplier + e / ADJACENT, last = MULTIPLIERS - (ADJACENT > 1 ? 1 : QN);
            const bool is = exists && (WHOLE_GROUPS || channel < CHANNELS) && (WHOLE_FILTERS || own <= last);
            if (LOADS || is)
                finish(t, corner.batch, WHOLE_GROUPS || !LOADS ? channel : op_min(channel, CHANNELS - 1),
                       WHOLE_FILTERS || !LOADS ? own : op_min(own, last), down, along, !LOADS || is, totals);
        }
    };
#pragma unroll 1
    for (int tile = warp / SHARES * ROW_TILES; tile * TILE < rows * BA; tile += SETS * ROW_TILES) {
        Places places;
        places.find(tile, group);
        Sums sums;
        sums.add(inputs, places, filter);
        UNROLL for (int i = 0; i < OUTPUTS; ++i) {
            const int first_pixel = first_output(tile, i);
            const int pixel = LOADS ? op_min(first_pixel, rows * BA - ADJACENT) : first_pixel;
            const int down = corner.down + pixel / BA, along = corner.along + pixel % BA;
            const bool exists = first_pixel < rows * BA && (ALONG % BA == 0 || along < ALONG);
            if (LOADS || exists)
                sums.leave(i, [&](int g, int column, const A(&run)[2 * BESIDE * ADJACENT]) __attribute__((always_inline)) {
                    finish_run(!LOADS || exists, corner.channel + group + g, corner.multiplier + first + column, down,
                               ALONG % BA == 0 || !LOADS ? along : op_min(along, ALONG - ADJACENT), run);
                });
        }
    }
}
}   // namespace KERNEL
