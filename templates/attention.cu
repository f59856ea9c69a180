// Fused attention: Y = p V / sum of p, where p = exp(s - maximum of the row) and s = Q K.
// A thread block computes BM rows of Y, each of its warps WM of them, in steps of BN columns. Q stays; K and V pass through
// STAGES tiles in shared memory. A warp keeps for each of its rows the running maximum of the scores, and the sums of p and
// of p V relative to it. When the maximum grows, both sums are rescaled (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018; Dao et al., "FlashAttention", 2022). Scores stay in registers: the accumulators of the
// first product are the left operand of the second. Exponentials are in base 2: p = 2^(s * SCALE - M) with
// M = SCALE * maximum. M is rounded once and used everywhere, so its error cancels.
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
constexpr Region EVERYTHING = {0, 60608};   // of shared memory, in bytes
using Element = f16;                                           // of Q, K, V, and of p
constexpr Index BATCH = 16, ROWS = 1024, COLUMNS = 1024;       // problem
constexpr int DEPTH = 64, WIDTH = 64;
constexpr int BM = 128, BN = 64;                               // rTile, shared memory
constexpr int WM = 16;                                         // rTile, registers of a warp
constexpr int PARTS = 1;                                       // narrow elements that represent a p
constexpr int SPLITS = 1, CLUSTER = 1;                         // warps and blocks that split the columns
constexpr int STAGES = 2;                                      // of the pipeline
constexpr int PIECE = 8;                                       // elements of a line of Q, K and V that are copied at once
constexpr bool BACKWARDS = false;                              // the last rows first: they have the most columns
constexpr bool MASKS = false;                                  // some columns are masked by their position
constexpr bool FINISHED = false;                               // unmasked scores are not just sums
constexpr bool EXACT_SUMS = false;                             // maxima or sums are used otherwise than in quotients
constexpr float SCALE = 0.18033688f;                           // log2(e) times the factor of the scores
constexpr int QN = 4;                                          // columns of Y that a thread stores

DEVICE const Element *q_at(const Tensors &t, Index batch, Index row, Index d) { return t.in0 + (batch * 65536 + row * 64 + d); }
DEVICE const Element *k_at(const Tensors &t, Index batch, Index column, Index d) { return t.in1 + (batch * 65536 + column * 64 + d); }
DEVICE const Element *v_at(const Tensors &t, Index batch, Index column, Index n) { return t.in2 + (batch * 65536 + column * 64 + n); }

// The columns that any row of a tile of Y needs, and that all need.
struct Columns { Index begin, end, clear_begin, clear_end; };
DEVICE Columns columns_of(Index batch, Index row0)
{
    return {0, COLUMNS, 0, COLUMNS};
}

// The score as a function of s. INSIDE: the column is unmasked.
template <bool INSIDE> DEVICE float score(const Tensors &t, Index batch, Index row, Index column, float total)
{
    return total;
}

struct Row { float maximum, sum, inverse; };   // of scores, of p, 1 / sum of p
DEVICE void finish_row(const Tensors &t, Index batch, Index row, const Row &of) {}
DEVICE void finish_vector(const Tensors &t, Index batch, Index row, Index n, const float (&totals)[QN], const Row &of)
{
    float y0[QN];
    UNROLL for (int e = 0; e < QN; ++e)
        y0[e] = totals[e] * of.inverse;
    store_four(t.out0 + (batch * 65536 + row * 64 + n), y0);
}
// </rollerc>

constexpr int WARPS = BM / WM * SPLITS, THREADS = WARPS * WARP;
constexpr int OWNERS = SPLITS > 1 ? WARP : THREADS;        // threads that copy a tile of K or V
constexpr int DEPTHS = (DEPTH + 15) / 16, WIDTHS = (WIDTH + 15) / 16, HEIGHTS = WM / 16;   // 16 are multiplied at once
constexpr int PAD = 8;                                     // elements of a 16-byte vector
constexpr Index BLOCKS = (ROWS + BM - 1) / BM;             // of a batch
constexpr bool EVEN = !MASKS && COLUMNS % BN == 0;         // all columns of a step exist, unmasked
constexpr bool AHEAD = SPLITS > 1;   // a warp alone on its scheduler multiplies K of the next step beside this one's softmax
constexpr int HALVES = ROWS > 8 ? 2 : 1;                   // halves of a 16-row tile that exist
constexpr int HELD = HEIGHTS * DEPTHS <= 8 ? DEPTHS : 1;   // of DEPTHS of Q, in registers
constexpr int AT_ONCE = HELD == DEPTHS ? DEPTHS : 4;       // a warp of 32 rows lacks registers for more
constexpr float LOWEST = -3.402823466e38f;                 // of finite numbers
struct Shared {   // lines are padded by one vector: the same vector of eight consecutive lines lies in eight groups of banks
    Element queries[BM][DEPTHS * 16 + PAD];
    Element keys[SPLITS][STAGES][BN][DEPTHS * 16 + PAD], values[SPLITS][STAGES][BN][WIDTHS * 16 + PAD];
};

static_assert(BM % WM == 0 && WM % 16 == 0 && BN % 16 == 0, "tiles of 16 rows are multiplied");
static_assert(DEPTH % PIECE == 0 && WIDTH % PIECE == 0 && STAGES >= 2, "rows are whole pieces");
static_assert(SPLITS > 1 ? BM == WM : CLUSTER == 1, "warps that share columns have the same rows");
static_assert(QN == 4, "pairs of lanes exchange columns");

// By OWNERS threads: starts the copy of a tile's lines from `first` on. Unless WHOLE, lines from `end` on become zeros.
template <int OWNERS, int LINE, bool WHOLE, int LINES, int PITCH, class At>
DEVICE void fetch(Element (&tile)[LINES][PITCH], Index first, Index end, At at)
{
    constexpr int PIECES = (PITCH - PAD) / PIECE, STRIDE = OWNERS % PIECES ? 0 : OWNERS / PIECES;   // of a line; lines
    constexpr int ROUNDS = (LINES * PIECES + OWNERS - 1) / OWNERS;
    const unsigned own = threadIdx.x % OWNERS;   // unsigned: divisions are shifts
#pragma unroll(ROUNDS <= 8 ? ROUNDS : PIECE > 1 ? 4 : 16)   // beyond 8, compilers keep the addresses in registers
    for (int i = 0; i < ROUNDS; ++i) {
        const unsigned number = STRIDE ? own : i * OWNERS + own;
        const int line = number / PIECES + i * STRIDE, element = number % PIECES * PIECE;
        const bool exists = (WHOLE || first + line < end) && (LINE % 16 == 0 || element < LINE);
        if (LINES * PIECES % OWNERS != 0 && line >= LINES)
            break;
        if (PIECE == 8)
            async_copy16_of_line(exists, &tile[line][element], at(first + line, element));
        if (PIECE == 4 || PIECE == 2)
            async_copy_element_or_zero(exists, (Vector<Element, PIECE == 4 ? 4 : 2> *)&tile[line][element],
                                       (const Vector<Element, PIECE == 4 ? 4 : 2> *)at(first + line, element));
        if (PIECE == 1)
            tile[line][element] = exists ? *at(first + line, element) : Element();
    }
}

struct Scores { float at[HEIGHTS][BN / 8][4]; };   // (WM,BN) of a warp
// Online softmax of a lane's rows l / 4 and l / 4 + 8. `scaled` is M; `sum` is over this lane's columns only.
struct Softmax {
    float maximum[2] = {LOWEST, LOWEST}, scaled[2] = {-infinity<float>(), -infinity<float>()}, sum[2] = {}, factor[2] = {};
};
// Scores become p relative to the running maximum; `factor` rescales the previous sums. -inf never is the maximum.
DEVICE void add_scores(Softmax &softmax, int half, float (&s)[BN / 8][4])
{
    const auto own = [&](int j) -> float & { return s[j / 2][half * 2 + j % 2]; };
    float &maximum = softmax.maximum[half], &scaled = softmax.scaled[half], largest = maximum, sum = 0.0f;
    UNROLL for (int j = 0; j < BN / 4; ++j)
        largest = op_max(largest, own(j));
    UNROLL for (int lanes = 2; lanes > 0; lanes /= 2)   // four share a row
        largest = op_max(largest, warp_shuffle_xor(largest, lanes, 4));
    const float origin = origin_of(largest, SCALE), base = origin != 0.0f ? 0.0f : scaled_of(largest, SCALE);
    softmax.factor[half] = power_of_two(fmaf(origin_of(maximum, SCALE) - origin, SCALE, scaled - base));
    if (AHEAD || origin != 0.0f)   // no branch between products that may overlap
        UNROLL for (int j = 0; j < BN / 4; ++j)
            own(j) -= origin;
    UNROLL for (int j = 0; j < BN / 4; ++j)
        sum += own(j) = power_of_two(fmaf(own(j), SCALE, -base));
    softmax.sum[half] = fmaf(softmax.sum[half], softmax.factor[half], sum);
    maximum = largest;
    scaled = base;
}

// Quotients of sums do not show how M is rounded, nor that a row has no maximum. Two parts of p and V are scaled by 2^15.
DEVICE void correct_sums(Softmax &softmax, int half, float (&acc)[WIDTHS * 2][4])
{
    float &maximum = softmax.maximum[half], &sum = softmax.sum[half];
    if (EXACT_SUMS && sum == 0.0f)
        maximum = -infinity<float>();
    const bool rounded = EXACT_SUMS && origin_of(maximum, SCALE) == 0.0f;
    const float of_sum = rounded ? power_of_two(-fmaf(maximum, SCALE, -scaled_of(maximum, SCALE))) : 1.0f;
    const float of_acc = PARTS == 2 ? of_sum * 0x1p-15f : of_sum;
    sum *= of_sum;
    UNROLL for (int n = 0; n < WIDTHS * 2; ++n)
        UNROLL for (int e = half * 2; e < half * 2 + 2; ++e)
            acc[n][e] *= of_acc;
}

// Epilogue. Of each 16 columns two lanes exchange what they have, so that a lane stores four that are contiguous.
DEVICE void store_row(const Tensors &t, Index batch, Index row, int half, float (&acc)[WIDTHS * 2][4], const Row &of)
{
    const int lane = (int)threadIdx.x % WARP, odd = lane % 2, e = half * 2;
    if (lane % 4 == 0 && row < ROWS)
        finish_row(t, batch, row, of);
    UNROLL for (int i = 0; i < WIDTHS * 2; ++i) {
        float &left = acc[i / 2 * 2][e + i % 2], &right = acc[i / 2 * 2 + 1][e + i % 2];
        const float other = warp_shuffle_xor(odd ? left : right, 1);
        left = odd ? other : left;
        right = odd ? right : other;
    }
    UNROLL for (int i = 0; i < WIDTHS * 2; i += 2) {
        const int n = i * 8 + odd * 8 + lane % 4 / 2 * 4;
        if (row < ROWS && n < WIDTH)
            finish_vector(t, batch, row, n, {acc[i][e], acc[i][e + 1], acc[i + 1][e], acc[i + 1][e + 1]}, of);
    }
}

// Where there are few rows, the columns are split across SPLITS warps of a block and CLUSTER blocks, which take interleaved
// steps of the same rows. At the end their sums are reduced through shared memory in a fixed order: slabs replace the tiles.
constexpr int MADE_ROWS = WM / 2 * HALVES, KEPT_ROWS = ROWS < WM ? (int)ROWS : WM;   // that a warp computes; that exist
struct alignas(16) Slab {
    float at[MADE_ROWS][WIDTHS * 16 + PAD];   // padding: no bank conflicts in a store
    Row rows[MADE_ROWS];
};
struct Ends { Slab left[WARPS], sum; };   // of the warps; of the block, for all blocks of the cluster

DEVICE void leave_rows(Slab &slab, const float (&acc)[WIDTHS * 2][4], const Softmax &softmax)
{
    const int lane = (int)threadIdx.x % WARP;
    UNROLL for (int half = 0; half < HALVES; ++half) {
        const int line = half * 8 + lane / 4;
        if (lane % 4 == 0)
            slab.rows[line] = {softmax.maximum[half], softmax.sum[half], 0.0f};
        UNROLL for (int n = 0; n < WIDTHS * 2; ++n)
            *(Vector<float, 2> *)(slab.at[line] + n * 8 + lane % 4 * 2) = {{acc[n][half * 2], acc[n][half * 2 + 1]}};
    }
}

// Adds up slabs, rescaled to the overall maximum: every STEP-th line from `first` on, each by SHARE threads. Calls
// `make(line, n, totals, row)` for each vector. A slab whose columns are all masked or negligible has no weight.
template <int STEP, int COUNT, class Slabs, class Make> DEVICE void combine(int first, int lines, Slabs slab, Make make)
{
    constexpr int OF_ROW = (WIDTH + QN - 1) / QN, OF_LINE = THREADS / ((KEPT_ROWS + STEP - 1) / STEP);
    constexpr int SHARE = OF_LINE < OF_ROW ? OF_LINE : OF_ROW, VECTORS = (OF_ROW + SHARE - 1) / SHARE;   // of a thread
    const int line = (int)threadIdx.x / SHARE * STEP + first, n0 = (int)threadIdx.x % SHARE * QN;
    if (line >= lines)
        return;
    Row rows[COUNT];
    Vector<float, QN> own[VECTORS][COUNT];
    UNROLL for (int i = 0; i < COUNT; ++i)
        rows[i] = slab(i).rows[line];
    UNROLL for (int turn = 0; turn < VECTORS; ++turn)
        UNROLL for (int i = 0; i < COUNT; ++i)
            if (n0 + turn * SHARE * QN < WIDTH)
                own[turn][i] = *(const Vector<float, QN> *)(slab(i).at[line] + n0 + turn * SHARE * QN);   // beside the rows: other blocks are far
    float weight[COUNT];
    Row of = {rows[0].maximum, 0.0f, 0.0f};
    UNROLL for (int i = 1; i < COUNT; ++i)
        of.maximum = op_max(of.maximum, rows[i].maximum);
    UNROLL for (int i = 0; i < COUNT; ++i) {
        weight[i] = power_of_two((rows[i].maximum - of.maximum) * SCALE);
        of.sum += weight[i] == 0.0f ? 0.0f : rows[i].sum * weight[i];
    }
    UNROLL for (int turn = 0; turn < VECTORS; ++turn) {
        const int n = n0 + turn * SHARE * QN;
        if (n >= WIDTH)
            return;
        float totals[QN] = {};
        UNROLL for (int i = 0; i < COUNT; ++i)
            UNROLL for (int e = 0; e < QN; ++e)
                totals[e] = fmaf(weight[i] == 0.0f ? 0.0f : own[turn][i].at[e], weight[i], totals[e]);
        make(line, n, totals, of);
    }
}

// Blocks of a cluster finish rows round-robin.
DEVICE void combine_and_store(const Tensors &t, Ends &ends, Index batch, Index row0, int rank)
{
    const int lines = (int)op_min<Index>(ROWS - row0, BM);
    const auto left = [&](int i) -> const Slab & { return ends.left[i]; };
    const auto finish = [&](int line, int n, const float (&totals)[QN], Row of) {
        of.inverse = 1.0f / of.sum;
        if (n == 0)
            finish_row(t, batch, row0 + line, of);
        finish_vector(t, batch, row0 + line, n, totals, of);
    };
    if (CLUSTER == 1)
        combine<1, WARPS>(0, lines, left, finish);
    else {
        combine<1, WARPS>(0, lines, left, [&](int line, int n, const float (&totals)[QN], const Row &of) {
            if (n == 0)
                ends.sum.rows[line] = of;
            *(Vector<float, QN> *)(ends.sum.at[line] + n) = {{totals[0], totals[1], totals[2], totals[3]}};
        });
        cluster_sync();
        combine<CLUSTER, CLUSTER>(rank, lines, [&](int i) -> const Slab & { return *cluster_map(&ends.sum, i); }, finish);
        cluster_leave();   // others may still read this block's sums
    }
}

extern "C" __global__ void __launch_bounds__(BOUNDS) ENTRY(PARAMETERS)
{
    Shared &shared = *reinterpret_cast<Shared *>(rollerc_shared);
    static_assert((int)sizeof(Shared) <= EVERYTHING.bytes, "it fits");
    const Tensors t = TENSORS;
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    const int split = warp % SPLITS, line0 = warp / SPLITS * WM;
    const int rank = (int)((Index)blockIdx.x % CLUSTER);   // in its cluster
    const Index tile = (Index)blockIdx.x / CLUSTER, block = BACKWARDS ? BATCH * BLOCKS - 1 - tile : tile;
    const Index batch = block / BLOCKS, row0 = block % BLOCKS * BM;
    const Columns all = columns_of(batch, row0);
    const Index begin = all.begin + (rank * SPLITS + split) * BN;
    constexpr Index STEP = (Index)BN * SPLITS * CLUSTER;   // columns of a step of all of them
    auto &keys = shared.keys[split];
    auto &values = shared.values[split];
    float acc[HEIGHTS][WIDTHS * 2][4] = {};   // (WM,WIDTH)
    unsigned rows[HEIGHTS][HELD][4];          // of Q
    Softmax softmax[HEIGHTS];
    const auto load_q = [&](int d) {
        UNROLL for (int i = 0; i < HEIGHTS; ++i)
            load_matrices(rows[i][d % HELD], &shared.queries[line0 + i * 16 + lane % 16][d * 16 + lane / 16 * 8]);
    };
    const auto copy_k = [&](Index column, int stage) {
        if (column < all.end)
            fetch<OWNERS, DEPTH, EVEN>(keys[stage], column, all.end,
                                       [&](Index line, int d) { return k_at(t, batch, line, d); });
    };
    const auto copy_v = [&](Index column, int stage) {
        if (column < all.end)
            fetch<OWNERS, WIDTH, EVEN>(values[stage], column, all.end,
                                       [&](Index line, int n) { return v_at(t, batch, line, n); });
    };
    Scores s = {};
    const auto multiply_k = [&](int stage, Scores &scores) {
#pragma unroll AT_ONCE
        for (int d = 0; d < DEPTHS; ++d) {
            if (HELD < DEPTHS)
                load_q(d);
            UNROLL for (int j = 0; j < BN / 16; ++j) {
                unsigned two[4];   // adjacent right operands: matrix i has lines of half i / 2
                load_matrices(two, &keys[stage][j * 16 + lane / 16 * 8 + lane % 8][d * 16 + lane / 8 % 2 * 8]);
                UNROLL for (int i = 0; i < HEIGHTS; ++i)
                    UNROLL for (int half = 0; half < 2; ++half)
                        multiply_tiles(Element(), rows[i][d % HELD], two[half * 2], two[half * 2 + 1], scores.at[i][j * 2 + half]);
            }
        }
    };
    fetch<THREADS, DEPTH, false>(shared.queries, row0, ROWS, [&](Index line, int d) { return q_at(t, batch, line, d); });
    if (AHEAD) {
        copy_k(begin, 0);
        async_commit();
    }
    UNROLL for (int stage = 0; stage < STAGES - 1; ++stage) {
        copy_k(begin + (stage + AHEAD) * STEP, stage + AHEAD);
        copy_v(begin + stage * STEP, stage);
        async_commit();
    }
    if (AHEAD) {   // warps synchronise once, for Q
        async_wait<STAGES - 1>();
        block_sync();
        UNROLL for (int d = 0; d < HELD; ++d)
            load_q(d);
        if (begin < all.end)
            multiply_k(0, s);
    }
    int now = 0;   // stage
#pragma unroll 1
    for (Index column = begin; column < all.end; column += STEP) {
        async_wait<STAGES - 2>();
        if (AHEAD)
            warp_sync();
        else
            block_sync();
        const int next = now + 1 == STAGES ? 0 : now + 1, last = now == 0 ? STAGES - 1 : now - 1;
        copy_k(column + (STAGES - 1 + AHEAD) * STEP, AHEAD ? now : last);
        copy_v(column + (STAGES - 1) * STEP, last);
        async_commit();
        [[maybe_unused]] Scores ahead = {};
        if (AHEAD)
            multiply_k(column + STEP < all.end ? next : now, ahead);   // behind the last step nobody needs them
        else {
            if (HELD == DEPTHS && column == begin)
                UNROLL for (int d = 0; d < DEPTHS; ++d)
                    load_q(d);
            s = {};
            multiply_k(now, s);
        }
        const bool clear = EVEN || (column >= all.clear_begin && column + BN <= all.clear_end);
        UNROLL for (int i = 0; i < HEIGHTS; ++i)
            UNROLL for (int j = 0; j < BN / 8; ++j)
                UNROLL for (int e = 0; e < HALVES * 2; ++e) {
                    const Index row = op_min<Index>(row0 + line0 + i * 16 + lane / 4 + e / 2 * 8, ROWS - 1);
                    const Index own = column + j * 8 + lane % 4 * 2 + e % 2;
                    float &total = s.at[i][j][e];
                    if (!clear)
                        total = own < COLUMNS ? score<false>(t, batch, row, own, total) : -infinity<float>();
                    else if (FINISHED)
                        total = score<true>(t, batch, row, own, total);
                }
        UNROLL for (int i = 0; i < HEIGHTS; ++i) {
            UNROLL for (int half = 0; half < HALVES; ++half)
                add_scores(softmax[i], half, s.at[i]);
            UNROLL for (int n = 0; n < WIDTHS * 2; ++n)
                UNROLL for (int e = 0; e < HALVES * 2; ++e)
                    acc[i][n][e] *= softmax[i].factor[e / 2];
        }
        UNROLL for (int j = 0; j < BN / 16; ++j) {
            unsigned p[PARTS][HEIGHTS][4] = {};
            UNROLL for (int i = 0; i < HEIGHTS; ++i)
                UNROLL for (int e = 0; e < 4; e += 3 - HALVES) {
                    const float (&two)[4] = s.at[i][j * 2 + e / 2];
                    if (PARTS == 1)
                        p[0][i][e] = pair_of(Element(), two[e % 2 * 2], two[e % 2 * 2 + 1]);
                    else {
                        const PairParts<Element, PARTS> pair(two[e % 2 * 2], two[e % 2 * 2 + 1]);
                        UNROLL for (int part = 0; part < PARTS; ++part)
                            p[part][i][e] = pair.at[part];
                    }
                }
            UNROLL for (int n = 0; n < WIDTHS; ++n) {
                unsigned two[4];   // lines lie along the sum: matrix i has elements of half i / 2
                load_matrices_turned(two, &values[now][j * 16 + lane % 16][n * 16 + lane / 16 * 8]);
                UNROLL for (int i = 0; i < HEIGHTS; ++i)
                    UNROLL for (int half = 0; half < 2; ++half)
                        UNROLL for (int part = PARTS - 1; part >= 0; --part)   // smallest parts first
                            multiply_tiles(Element(), p[part][i], two[half * 2], two[half * 2 + 1], acc[i][n * 2 + half]);
            }
        }
        if (AHEAD)
            s = ahead;
        now = next;
    }
    async_wait<0>();
    UNROLL for (int i = 0; i < HEIGHTS; ++i)
        UNROLL for (int half = 0; half < HALVES; ++half) {
            float &sum = softmax[i].sum[half];
            UNROLL for (int lanes = 2; lanes > 0; lanes /= 2)
                sum += warp_shuffle_xor(sum, lanes, 4);
            if (EXACT_SUMS || PARTS == 2)
                correct_sums(softmax[i], half, acc[i]);
            if (SPLITS == 1)
                store_row(t, batch, row0 + line0 + i * 16 + half * 8 + lane / 4, half, acc[i],
                          {softmax[i].maximum[half], sum, 1.0f / sum});
        }
    if (SPLITS > 1) {
        static_assert(sizeof(Ends) <= sizeof(Shared), "sums fit");
        Ends &ends = reinterpret_cast<Ends &>(shared);
        block_sync();   // all tiles have been read
        leave_rows(ends.left[warp], acc[0], softmax[0]);
        block_sync();   // all slabs are there
        combine_and_store(t, ends, batch, row0, rank);
    }
}
}   // namespace KERNEL
