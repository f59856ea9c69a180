// Fused attention: a softmax between two products, in one pass.
//
//   s[i,j] = sum over d of Q[i,d] * K[j,d]
//   p[i,j] = exp(s[i,j] - maximum of row i)
//   Y[i,n] = sum over j of p[i,j] * V[j,n]
//
// A thread block computes BM rows of Y, each of its warps WM of them. It iterates over j in steps of BN. A
// warp keeps for each of its rows the running maximum of the scores, and the sums of p and of p * V relative
// to it. When the maximum grows, both sums are rescaled (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018; Dao et al., "FlashAttention", 2022). Scores stay in registers: the
// accumulators of the first product are the left operand of the second.
//
// Where there are few rows, the columns are split across SPLITS warps of a block and CLUSTER blocks, which
// take interleaved steps of the same rows. At the end their results are reduced through shared memory in a
// fixed order.
//
//                DEPTH                      Q stays; K and V are pipelined through STAGES tiles
//              +--------+                   in shared memory.
//              | K  BN  |  j
//    DEPTH     +--------+       WIDTH       Exponentials are in base 2: p = 2^(s * SCALE - M) with
//   +------+   +--------+      +------+     M = SCALE * maximum. M is rounded once and used
//   | Q BM |   | s -> p |  ->  | Y BM |     everywhere, so its error cancels.
//   +------+   +--------+      +------+
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const f16 *in0;   // q[16, 1024, 64]
    const f16 *in1;   // k[16, 1024, 64]
    const f16 *in2;   // v[16, 1024, 64]
    f16 *out0;        // y[16, 1024, 64]
};
#define PARAMETERS \
    const f16 *__restrict__ in0, const f16 *__restrict__ in1, const f16 *__restrict__ in2, \
        f16 *__restrict__ out0
#define TENSORS {in0, in1, in2, out0}
constexpr Region TILES_Q = {0, 18432};   // of shared memory, in bytes
constexpr Region TILES_K = {18432, 18432};
constexpr Region TILES_V = {36864, 18432};
constexpr Region SLABS = {0, 19200};
constexpr Region MAXIMA = {0, 512};
constexpr Region SENT = {0, 320};
constexpr int SHARED_BYTES = 55296;                            // of a block
using Element = f16;                                           // of Q, K, V, and of p
constexpr Index BATCH = 16, ROWS = 1024, COLUMNS = 1024;       // problem
constexpr int DEPTH = 64, WIDTH = 64;
constexpr int BM = 128, BN = 64;                               // rTile, shared memory
constexpr int WM = 16;                                         // rTile, registers of a warp
constexpr int PARTS = 1;                                       // narrow elements that represent a p
constexpr int SPLITS = 1, CLUSTER = 1;                         // warps and blocks that split the columns
constexpr int STAGES = 2;                                      // of the pipeline
constexpr bool BACKWARDS = false;                              // the last rows first: they have the most columns
constexpr bool MASKS = false;                                  // some columns are masked by their position
constexpr float SCALE = 0.18033688f;                           // log2(e) times the factor of the scores
constexpr int QN = 8;                                          // columns of Y in one aligned access

__device__ __forceinline__ const Element *q_at(const Tensors &t, Index batch, Index row, Index d)
{
    return t.in0 + (batch * 65536 + row * 64 + d);
}
__device__ __forceinline__ const Element *k_at(const Tensors &t, Index batch, Index column, Index d)
{
    return t.in1 + (batch * 65536 + column * 64 + d);
}
__device__ __forceinline__ const Element *v_at(const Tensors &t, Index batch, Index column, Index n)
{
    return t.in2 + (batch * 65536 + column * 64 + n);
}

// The unmasked columns of a row: from first_column() to before end_column().
__device__ __forceinline__ Index first_column(Index batch, Index row) { return 0; }
__device__ __forceinline__ Index end_column(Index batch, Index row) { return COLUMNS; }

// The score as a function of s. INSIDE: the column is unmasked.
template <bool INSIDE>
__device__ __forceinline__ float score(const Tensors &t, Index batch, Index row, Index column, float total)
{
    return total;
}

struct Row {
    float maximum, sum, inverse;   // of scores, of p, 1 / sum of p
};
__device__ __forceinline__ void finish_row(const Tensors &t, Index batch, Index row, Row of) {}
__device__ __forceinline__ void finish_vector(const Tensors &t, Index batch, Index row, Index n,
                                              const float (&totals)[QN], const Row &of)
{
    const float inverse = of.inverse;
    float y0[QN];
    UNROLL for (int e = 0; e < QN; ++e)
        y0[e] = totals[e] * inverse;
    store_vector<QN>(t.out0, batch * 65536 + row * 64 + n, y0);
}
// </rollerc>

constexpr int WARPS = BM / WM * SPLITS, THREADS = WARPS * WARP;
constexpr int OWNERS = SPLITS > 1 ? WARP : THREADS;           // threads that copy a tile of K or V
constexpr Index STEP = (Index)BN * SPLITS * CLUSTER;          // columns of a step of all of them
constexpr int PIECE = 8;                                       // elements of a 16-byte vector
constexpr int DEPTHS = (DEPTH + 15) / 16, WIDTHS = (WIDTH + 15) / 16;
constexpr Index BLOCKS = (ROWS + BM - 1) / BM;                 // blocks of a batch
constexpr bool EVEN = !MASKS && COLUMNS % BN == 0;             // all columns of a step exist, unmasked
constexpr bool LIFTED = LIFTS_PARTS<PARTS>;                    // p and V are scaled by 2^15
constexpr int HALVES = ROWS > 8 ? 2 : 1;                       // halves of a 16-row tile that exist
constexpr bool KEEPS_Q = WM / 16 * DEPTHS <= 8;                // Q is held in registers
constexpr int DEPTHS_AT_ONCE = KEEPS_Q ? DEPTHS : 4;           // a warp of 32 rows lacks registers for more

static_assert(BM % WM == 0 && WM % 16 == 0 && BN % 16 == 0, "tiles of 16 rows are multiplied");
static_assert(DEPTH % PIECE == 0 && WIDTH % PIECE == 0 && STAGES >= 2, "rows are whole pieces");
static_assert(SPLITS > 1 ? BM == WM : CLUSTER == 1, "warps that share columns have the same rows");

// A tile of Q, K or V in shared memory, in multiples of 16 columns. Lines are padded by one 16-byte vector,
// so that the same vector of eight consecutive lines lies in eight different groups of banks. OWNERS threads
// copy it.
template <int LINES, int LINE, int OWNERS, bool WHOLE = false> struct Tile {
    static constexpr int WIDE = (LINE + 15) / 16 * 16, PITCH = WIDE + PIECE, ELEMENTS = LINES * PITCH;

    // Starts the copy of LINES lines from `first` on. Unless WHOLE, lines from `end` on become zeros.
    template <class At>
    static __device__ __forceinline__ void begin(Element *tile, Index first, Index end, At at)
    {
        constexpr int PIECES = WIDE / PIECE, STRIDE = OWNERS % PIECES ? 0 : OWNERS / PIECES;   // lines
        constexpr int ROUNDS = (LINES * PIECES + OWNERS - 1) / OWNERS;
        const unsigned own = threadIdx.x % OWNERS;   // unsigned: divisions are shifts
#pragma unroll(ROUNDS <= 8 ? ROUNDS : 4)   // beyond 8, compilers keep the addresses in registers
        for (int i = 0; i < ROUNDS; ++i) {
            const unsigned number = STRIDE ? own : i * OWNERS + own;
            const int line = number / PIECES + i * STRIDE, piece = number % PIECES;
            const bool exists = (WHOLE || first + line < end) && (LINE % 16 == 0 || piece * PIECE < LINE);
            Element *place = tile + line * PITCH + piece * PIECE;
            if (LINES * PIECES % OWNERS == 0 || line < LINES)
                async_copy16_or_zero(exists, place, at(first + line, piece * PIECE));
        }
    }
    // A left operand of 16 lines and 16 elements: matrix i has lines of half i % 2 and elements of half i /
    // 2.
    static __device__ __forceinline__ void load(unsigned (&matrices)[4], const Element *tile, int line,
                                                int element)
    {
        const int lane = (int)threadIdx.x % WARP;
        load_matrices(matrices, tile + (line + lane % 16) * PITCH + element + lane / 16 * 8);
    }
    // Two adjacent right operands: matrix i has lines of half i / 2.
    static __device__ __forceinline__ void load_right(unsigned (&matrices)[4], const Element *tile, int line,
                                                      int element)
    {
        const int lane = (int)threadIdx.x % WARP, own = line + lane / 16 * 8 + lane % 8;
        load_matrices(matrices, tile + own * PITCH + element + lane / 8 % 2 * 8);
    }
    // As load_right(), transposed, for lines along the sum: matrix i has elements of half i / 2.
    static __device__ __forceinline__ void load_turned(unsigned (&matrices)[4], const Element *tile, int line,
                                                       int element)
    {
        const int lane = (int)threadIdx.x % WARP;
        load_matrices_turned(matrices, tile + (line + lane % 16) * PITCH + element + lane / 16 * 8);
    }
};
using TileQ = Tile<BM, DEPTH, THREADS>;
using TileK = Tile<BN, DEPTH, OWNERS, EVEN>;
using TileV = Tile<BN, WIDTH, OWNERS, EVEN>;

// Epilogue staging of a warp's rows of Y: eight at a time, or all rows where they are reduced across warps.
template <int LINES> struct alignas(32) Slab {   // for accesses of eight floats
    float at[LINES][WIDTHS * 16 + 8];   // padding: no bank conflicts in a store
    Row rows[LINES];
};
constexpr int MADE_ROWS = WM / 2 * HALVES;                     // rows that a warp computes
constexpr int SLAB_ROWS = SPLITS == 1 ? 8 : MADE_ROWS;
using OwnSlab = Slab<SLAB_ROWS>;
constexpr int ROWS_OF_TILE = ROWS < WM ? (int)ROWS : WM;
constexpr int FINISHED = (ROWS_OF_TILE + CLUSTER - 1) / CLUSTER;   // rows that a block of a cluster stores
using SentSlab = Slab<CLUSTER == 1 ? 1 : FINISHED>;                // what another block contributes to them

// Online softmax of a warp's rows. Scores become p relative to the running maximum.
struct Softmax {
    // Of rows l / 4 and l / 4 + 8. scaled: M. sum: over this lane's columns only.
    float maximum[WM / 16][HALVES], scaled[WM / 16][HALVES], sum[WM / 16][HALVES];

    __device__ __forceinline__ Softmax()
    {
        UNROLL for (int i = 0; i < WM / 16; ++i)
            UNROLL for (int half = 0; half < HALVES; ++half) {
                maximum[i][half] = scaled[i][half] = -infinity<float>();
                sum[i][half] = 0.0f;
            }
    }
    // `factor`: rescales the previous sums. While all scores are -inf the sums stay 0.
    __device__ __forceinline__ void add(int i, int half, float (&s)[BN / 8][4], float &factor)
    {
        float largest = maximum[i][half];
        UNROLL for (int j = 0; j < BN / 8; ++j)
            UNROLL for (int e = 0; e < 2; ++e)
                largest = op_max(largest, s[j][half * 2 + e]);
        UNROLL for (int lanes = 2; lanes > 0; lanes /= 2)   // four share a row
            largest = op_max(largest, warp_shuffle_xor(largest, lanes, 4));
        const float origin = origin_of(largest, SCALE);
        const float grown = origin != 0.0f ? 0.0f : scaled_of(largest, SCALE);
        const float base = largest == -infinity<float>() ? 0.0f : grown;
        const float grows = origin_of(maximum[i][half], SCALE) - origin;
        factor = power_of_two(fmaf(grows, SCALE, scaled[i][half] - base));
        if (origin != 0.0f)
            UNROLL for (int j = 0; j < BN / 8; ++j)
                UNROLL for (int e = 0; e < 2; ++e)
                    s[j][half * 2 + e] -= origin;
        maximum[i][half] = largest;
        scaled[i][half] = grown;
        float shares = 0.0f;
        UNROLL for (int j = 0; j < BN / 8; ++j)
            UNROLL for (int e = 0; e < 2; ++e) {
                float &own = s[j][half * 2 + e];
                own = power_of_two(fmaf(own, SCALE, -base));
                shares += own;
            }
        sum[i][half] = fmaf(sum[i][half], factor, shares);
    }
    // A row's result. `factor` corrects the rounding of M in all sums; it is NaN if no column is unmasked.
    __device__ __forceinline__ Row row(int i, int half, float &factor) const
    {
        const float largest = maximum[i][half];
        factor = origin_of(largest, SCALE) != 0.0f
                     ? 1.0f
                     : power_of_two(-fmaf(largest, SCALE, -scaled_of(largest, SCALE)));
        float total = sum[i][half];
        UNROLL for (int lanes = 2; lanes > 0; lanes /= 2)
            total += warp_shuffle_xor(total, lanes, 4);
        total *= factor;
        return {largest, total, 1.0f / total};
    }
};

// Sums QN columns over the slabs of all warps, which are scaled to the same maximum. Of eight lanes that read
// 16 bytes each, half begin with the second half of their columns: no bank conflicts.
__device__ __forceinline__ Row add_up(const OwnSlab (&slabs)[WARPS], int line, int n, float (&totals)[QN])
{
    constexpr int HALF = QN == 8 ? 4 : QN;
    const bool turned = QN == 8 && n & 32;
    float sum = 0.0f, sums[QN] = {};
    UNROLL for (int i = 0; i < WARPS; ++i) {
        sum += slabs[i].rows[line].sum;
        UNROLL for (int at = 0; at < QN; at += HALF) {
            float own[HALF];
            load_vector<HALF>(slabs[i].at[line], n + (turned ? QN - HALF - at : at), own);
            UNROLL for (int e = 0; e < HALF; ++e)
                sums[at + e] += own[e];
        }
    }
    UNROLL for (int e = 0; e < QN; ++e)
        totals[e] = turned ? sums[(e + HALF) % QN] : sums[e];
    return {slabs[0].rows[line].maximum, sum, 1.0f / sum};
}

// Reduces what the blocks of a cluster have sent, rescaled to the overall maximum. A block whose columns are
// all masked or negligible contributes nothing.
__device__ __forceinline__ Row combine(const SentSlab (&sent)[CLUSTER], int line, int n, float (&totals)[QN])
{
    float largest = sent[0].rows[line].maximum, sum = 0.0f;
    UNROLL for (int i = 1; i < CLUSTER; ++i)
        largest = op_max(largest, sent[i].rows[line].maximum);
    UNROLL for (int e = 0; e < QN; ++e)
        totals[e] = 0.0f;
    UNROLL for (int i = 0; i < CLUSTER; ++i) {
        const float weight = power_of_two((sent[i].rows[line].maximum - largest) * SCALE);
        float own[QN];
        load_vector<QN>(sent[i].at[line], n, own);
        sum += weight == 0.0f ? 0.0f : sent[i].rows[line].sum * weight;
        UNROLL for (int e = 0; e < QN; ++e)
            totals[e] += weight == 0.0f ? 0.0f : own[e] * weight;
    }
    return {largest, sum, 1.0f / sum};
}

__device__ __forceinline__ void finish(const Tensors &t, Index batch, Index row, Index n,
                                       const float (&totals)[QN], const Row &of)
{
    if (n == 0)
        finish_row(t, batch, row, of);
    finish_vector(t, batch, row, n, totals, of);
}

// Calls `make(line, n)` for each vector of the block's rows; the rows are interleaved across the blocks.
template <class Make>
__device__ __forceinline__ void for_vectors(Index row0, int rank, int blocks, Make make)
{
    constexpr int VECTORS = WIDTH / QN;
    const int lines = ((int)op_min<Index>(ROWS - row0, BM) - rank + blocks - 1) / blocks;
#pragma unroll 1
    for (unsigned number = threadIdx.x; (int)number < lines * VECTORS; number += THREADS)
        make(number / VECTORS * blocks + rank, number % VECTORS * QN);
}

// Warps that split the columns agree on the maximum of each row and write their sums, scaled to it, to their
// slabs.
__device__ __forceinline__ void leave_rows(float (&maxima)[WARPS][MADE_ROWS], OwnSlab (&slabs)[WARPS],
                                           const float (&acc)[WM / 16][WIDTHS * 2][4], const Softmax &softmax)
{
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    UNROLL for (int half = 0; half < HALVES; ++half)
        if (lane % 4 == 0)
            maxima[warp][half * 8 + lane / 4] = softmax.maximum[0][half];
    block_sync();   // and all tiles have been read
    UNROLL for (int half = 0; half < HALVES; ++half) {
        const int line = half * 8 + lane / 4;
        float largest = maxima[0][line], factor;
        UNROLL for (int i = 1; i < WARPS; ++i)
            largest = op_max(largest, maxima[i][line]);
        const float weight = power_of_two((softmax.maximum[0][half] - largest) * SCALE);
        const Row own = softmax.row(0, half, factor);
        const float lowered = (LIFTED ? factor * 0x1p-15f : factor) * weight;
        const bool counts = weight != 0.0f;
        if (lane % 4 == 0)
            slabs[warp].rows[line] = {largest, counts ? own.sum * weight : 0.0f, 0.0f};
        UNROLL for (int n = 0; n < WIDTHS * 2; ++n) {
            const float two[2] = {counts ? acc[0][n][half * 2] * lowered : 0.0f,
                                  counts ? acc[0][n][half * 2 + 1] * lowered : 0.0f};
            move_vector<2>(slabs[warp].at[line] + n * 8 + lane % 4 * 2, two);
        }
    }
    block_sync();
}

__device__ __forceinline__ void combine_and_store(const Tensors &t, const OwnSlab (&slabs)[WARPS],
                                                  SentSlab (&sent)[CLUSTER], Index batch, Index row0,
                                                  int rank)
{
    if (CLUSTER > 1)
        cluster_wait();   // all blocks of the cluster have started
    for_vectors(row0, 0, 1, [&](int line, int n) {
        float totals[QN];
        const Row own = add_up(slabs, line, n, totals);
        if (CLUSTER == 1) {
            finish(t, batch, row0 + line, n, totals, own);
        } else {
            SentSlab &there = *cluster_map(&sent[rank], line % CLUSTER);
            if (n == 0)
                there.rows[line / CLUSTER] = own;
            move_vector<QN>(there.at[line / CLUSTER] + n, totals);
        }
    });
    if (CLUSTER > 1) {
        cluster_sync();
        for_vectors(row0, rank, CLUSTER, [&](int line, int n) {
            float totals[QN];
            const Row own = combine(sent, line / CLUSTER, n, totals);
            finish(t, batch, row0 + line, n, totals, own);
        });
    }
}

extern "C" __global__ void __launch_bounds__(BOUNDS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED(TILES_Q, Element, Qs, [TileQ::ELEMENTS]);
    SHARED(TILES_K, Element, all_ks, [SPLITS][STAGES][TileK::ELEMENTS]);
    SHARED(TILES_V, Element, all_vs, [SPLITS][STAGES][TileV::ELEMENTS]);
    SHARED(MAXIMA, float, maxima, [WARPS][MADE_ROWS]);
    SHARED(SLABS, OwnSlab, slabs, [WARPS]);
    SHARED(SENT, SentSlab, sent, [CLUSTER]);
    float acc[WM / 16][WIDTHS * 2][4] = {};                     // (WM,WIDTH)
    unsigned q[KEEPS_Q ? WM / 16 : 1][KEEPS_Q ? DEPTHS : 1][4];
    Softmax softmax;

    const int warp = (int)threadIdx.x / WARP, split = warp % SPLITS;
    const int rank = (int)((Index)blockIdx.x % CLUSTER);   // in its cluster
    Element(&Ks)[STAGES][TileK::ELEMENTS] = all_ks[split];
    Element(&Vs)[STAGES][TileV::ELEMENTS] = all_vs[split];

    const Index tile = (Index)blockIdx.x / CLUSTER, block = BACKWARDS ? BATCH * BLOCKS - 1 - tile : tile;
    const Index batch = block / BLOCKS, row0 = block % BLOCKS * BM, last = op_min<Index>(row0 + BM, ROWS) - 1;
    const int warp_row = warp / SPLITS * WM, lane = (int)threadIdx.x % WARP;

    // Iterate from the first column that is unmasked for any row to the last one. If all columns are unmasked
    // for all rows, scores are not masked.
    const Index first =
        MASKS ? op_min<Index>(first_column(batch, row0), first_column(batch, last)) / BN * BN : 0;
    const Index end = MASKS ? op_max<Index>(end_column(batch, row0), end_column(batch, last)) : COLUMNS;
    const Index clear_begin = MASKS ? op_max<Index>(first_column(batch, row0), first_column(batch, last)) : 0;
    const Index clear_end = MASKS ? op_min<Index>(end_column(batch, row0), end_column(batch, last)) : COLUMNS;
    const Index begin = first + (rank * SPLITS + split) * BN;
    const auto copy = [&](Index column, int stage) {
        if (column < end) {
            TileK::begin(Ks[stage], column, end, [&](Index line, int d) { return k_at(t, batch, line, d); });
            TileV::begin(Vs[stage], column, end, [&](Index line, int n) { return v_at(t, batch, line, n); });
        }
        async_commit();
    };
    if (CLUSTER > 1)
        cluster_arrive();
    TileQ::begin(Qs, row0, ROWS, [&](Index line, int d) { return q_at(t, batch, line, d); });
    UNROLL for (int stage = 0; stage < STAGES - 1; ++stage)
        copy(begin + stage * STEP, stage);
    if (SPLITS > 1) {   // warps synchronise once, for Q
        async_wait<STAGES - 2>();
        block_sync();
    }

    int now = 0;   // stage
#pragma unroll 1
    for (Index column = begin; column < end; column += STEP) {
        async_wait<STAGES - 2>();
        if (SPLITS > 1)
            warp_sync();
        else
            block_sync();
        if (KEEPS_Q && column == begin)
            UNROLL for (int i = 0; i < WM / 16; ++i)
                UNROLL for (int d = 0; d < DEPTHS; ++d)
                    TileQ::load(q[KEEPS_Q ? i : 0][KEEPS_Q ? d : 0], Qs, warp_row + i * 16, d * 16);
        copy(column + (STAGES - 1) * STEP, now == 0 ? STAGES - 1 : now - 1);

        // Scores.
        float s[WM / 16][BN / 8][4] = {};   // (WM,BN)
#pragma unroll DEPTHS_AT_ONCE
        for (int d = 0; d < DEPTHS; ++d) {
            unsigned rows[WM / 16][4];
            UNROLL for (int i = 0; i < WM / 16; ++i)
                if (!KEEPS_Q)
                    TileQ::load(rows[i], Qs, warp_row + i * 16, d * 16);
            UNROLL for (int j = 0; j < BN / 16; ++j) {
                unsigned columns[4];
                TileK::load_right(columns, Ks[now], j * 16, d * 16);
                UNROLL for (int i = 0; i < WM / 16; ++i)
                    UNROLL for (int half = 0; half < 2; ++half)
                        multiply_tiles(Element(), KEEPS_Q ? q[KEEPS_Q ? i : 0][KEEPS_Q ? d : 0] : rows[i],
                                       columns[half * 2], columns[half * 2 + 1], s[i][j * 2 + half]);
            }
        }
        const bool clear = EVEN || (column >= clear_begin && column + BN <= clear_end);
        UNROLL for (int i = 0; i < WM / 16; ++i)
            UNROLL for (int j = 0; j < BN / 8; ++j)
                UNROLL for (int e = 0; e < HALVES * 2; ++e) {
                    const Index row = row0 + warp_row + i * 16 + lane / 4 + e / 2 * 8;
                    const Index line = op_min<Index>(row, ROWS - 1);
                    const Index own = column + j * 8 + lane % 4 * 2 + e % 2;
                    float &total = s[i][j][e];
                    if (clear)
                        total = score<true>(t, batch, line, own, total);
                    else
                        total = own < COLUMNS ? score<false>(t, batch, line, own, total) : -infinity<float>();
                }

        // p; if the maximum grew, all sums are rescaled.
        UNROLL for (int i = 0; i < WM / 16; ++i) {
            float factor[HALVES];
            UNROLL for (int half = 0; half < HALVES; ++half)
                softmax.add(i, half, s[i], factor[half]);
            UNROLL for (int n = 0; n < WIDTHS * 2; ++n)
                UNROLL for (int e = 0; e < HALVES * 2; ++e)
                    acc[i][n][e] *= factor[e / 2];
        }
        UNROLL for (int j = 0; j < BN / 16; ++j) {
            unsigned p[PARTS][WM / 16][4] = {};
            UNROLL for (int i = 0; i < WM / 16; ++i)
                UNROLL for (int e = 0; e < 4; e += 3 - HALVES) {
                    const float (&two)[4] = s[i][j * 2 + e / 2];
                    const float low = two[e % 2 * 2], high = two[e % 2 * 2 + 1];
                    if (PARTS == 1) {
                        p[0][i][e] = pair_of(Element(), low, high);
                    } else {
                        const PairParts<Element, PARTS> pair(low, high);
                        UNROLL for (int part = 0; part < PARTS; ++part)
                            p[part][i][e] = pair.at[part];
                    }
                }
            UNROLL for (int n = 0; n < WIDTHS; ++n) {
                unsigned values[4];
                TileV::load_turned(values, Vs[now], j * 16, n * 16);
                UNROLL for (int i = 0; i < WM / 16; ++i)
                    UNROLL for (int half = 0; half < 2; ++half)
                        UNROLL for (int part = PARTS - 1; part >= 0; --part)   // smallest parts first
                            multiply_tiles(Element(), p[part][i], values[half * 2], values[half * 2 + 1],
                                           acc[i][n * 2 + half]);
            }
        }
        now = now + 1 == STAGES ? 0 : now + 1;
    }

    async_wait<0>();
    if (SPLITS > 1) {
        leave_rows(maxima, slabs, acc, softmax);
        combine_and_store(t, slabs, sent, batch, row0, rank);
        return;
    }
    // Epilogue: stage eight rows of each warp at a time in shared memory.
    block_sync();
    OwnSlab &slab = slabs[warp];
    UNROLL for (int part = 0; part < MADE_ROWS / 8; ++part) {
        const int i = part / HALVES, half = part % HALVES;
        const Index first_row = row0 + warp_row + i * 16 + half * 8;
        const int line = lane / 4;
        float factor;
        const Row own = softmax.row(i, half, factor);
        const float lowered = LIFTED ? factor * 0x1p-15f : factor;
        if (lane % 4 == 0)
            slab.rows[line] = own;
        UNROLL for (int n = 0; n < WIDTHS * 2; ++n) {
            const float two[2] = {acc[i][n][half * 2] * lowered, acc[i][n][half * 2 + 1] * lowered};
            move_vector<2>(slab.at[line] + n * 8 + lane % 4 * 2, two);
        }
        warp_sync();
        if (lane % 4 == 0 && first_row + lane / 4 < ROWS)
            finish_row(t, batch, first_row + lane / 4, own);
        UNROLL_4 for (int number = lane; number < 8 * WIDTH / QN; number += WARP) {
            const int other = number / (WIDTH / QN), n = number % (WIDTH / QN) * QN;
            if (first_row + other < ROWS) {
                float totals[QN];
                load_vector<QN>(slab.at[other], n, totals);
                finish_vector(t, batch, first_row + other, n, totals, slab.rows[other]);
            }
        }
        warp_sync();
    }
}
}   // namespace KERNEL
