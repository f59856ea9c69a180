// Fused attention on the tensor cores of sm_90a: Y = p V / sum of p, where p = exp(s - maximum of the row) and s = Q K.
// One producer thread copies boxes of Q, K and V to shared memory (TMA), and GROUPS warp groups compute 64 rows each (Shah
// et al., "FlashAttention-3", 2024). The online softmax of a step overlaps the product of the previous p and V:
//   tensor cores    s0 = Q K0 |              s1 = Q K1 | Y += p0 V0 |              s2 = Q K2 | Y += p1 V1 | …
//   warp group                | p0 = softmax           |            p1 = softmax             |            …
// Groups take turns (ping-pong): one's softmax runs beside another's products. What the next tile needs comes meanwhile.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const f16 *in0;   // q[16, 1024, 128]
    const f16 *in1;   // k[16, 1024, 128]
    const f16 *in2;   // v[16, 1024, 128]
    f16 *out0;        // y[16, 1024, 128]
};
#define PARAMETERS \
    const f16 *__restrict__ in0, const f16 *__restrict__ in1, const f16 *__restrict__ in2, \
        f16 *__restrict__ out0, const __grid_constant__ TensorMap map_a, \
        const __grid_constant__ TensorMap map_b, const __grid_constant__ TensorMap map_c
#define TENSORS {in0, in1, in2, out0}
#define MAP_LIST {&map_a, &map_b, &map_c}
constexpr Region EVERYTHING = {0, 264192};   // of shared memory, in bytes
using Element = f16;                                           // of Q, K, V, and of p
using Beside = f16;                                            // of what is read for each score
constexpr Index BATCH = 16, ROWS = 1024, COLUMNS = 1024;       // problem
constexpr int DEPTH = 128, WIDTH = 128;
constexpr int BM = 128, BN = 128;                              // rTile, shared memory
constexpr int WM = 64;                                         // rTile, registers of a warp group
constexpr int PARTS = 1;                                       // narrow elements that represent a p
constexpr int SPLITS = 1, CLUSTER = 1, WAYS = 1;               // warp groups and blocks that split the columns; both
constexpr int STAGES = 2, Q_STAGES = 2;                        // of the pipelines of K and V, and of Q
constexpr bool STAGED = false, BITS = false;                   // that is copied to shared memory, too; is a mask of bits
constexpr int BESIDE_ROWS = BM;                                // of a tile of that; 1: all rows have the same
constexpr bool BACKWARDS = false;                              // the last rows first: they have the most columns
constexpr bool HEADS_IN_TURN = false;                          // several waves: the longest rows of all come first
constexpr bool MASKS = false;                                  // some columns are masked by their position
constexpr bool FINISHED = false;                               // unmasked scores are not just sums
constexpr bool EXACT_SUMS = false;                             // maxima or sums are used otherwise than in quotients
constexpr float SCALE = 0.12751743f;                           // log2(e) times the factor of the scores
constexpr int QN = 4;                                          // columns of Y that a thread stores
constexpr int TURNS = 1;                                       // tiles of Y of a persistent block
constexpr Index BLOCKS = 128;

// A tile of Y, where its batch begins in Q, K and V, and the columns that any of its rows needs and that all need.
struct Corner { int x, z; };   // an element of a line, and a plane
struct Work { Index batch, row0; Corner q, k, v, beside; Index begin, end, clear_begin, clear_end; };
DEVICE Work work_of(Index batch, Index row0)
{
    return {batch, row0, {0, batch}, {0, batch}, {0, batch}, {0, 0}, 0, COLUMNS, 0, COLUMNS};
}

// The score as a function of s and of what is read beside it. INSIDE: the column is unmasked.
template <bool INSIDE, typename... Read>
DEVICE float score(const Tensors &t, Index batch, Index row, Index column, float total, Read... beside)
{
    return total;
}

DEVICE unsigned word_beside(const Tensors &t, Index batch, Index row, Index column) { return 0; }   // BITS
struct Row { float maximum, sum, inverse; };   // of scores, of p, 1 / sum of p
DEVICE void finish_row(const Tensors &t, Index batch, Index row, const Row &of) {}
DEVICE void finish_vector(const Tensors &t, Index batch, Index row, Index n, const float (&totals)[QN], const Row &of)
{
    float y0[QN];
    UNROLL for (int e = 0; e < QN; ++e)
        y0[e] = totals[e] * of.inverse;
    store_four(t.out0 + (batch * 131072 + row * 128 + n), y0);
}
// </rollerc>

constexpr int GROUPS = BM / WM * SPLITS, GROUP_WARPS = 4, GROUP = GROUP_WARPS * WARP, LINE = 64;   // elements in 128 bytes
constexpr int DEPTH_LINES = (DEPTH + LINE - 1) / LINE, WIDTH_LINES = (WIDTH + LINE - 1) / LINE, WIDE = WIDTH_LINES * LINE;
constexpr Index TILES_M = (ROWS + BM - 1) / BM, TILES = BATCH * TILES_M;
constexpr float LOWEST = -3.402823466e38f;   // of finite numbers
// Tiles: 64 elements of all lines, as of describe_operand(), then the next 64. Use n of a tile has stage n % COUNT.
constexpr int Q = 0, K = 1, V = 2, VECTORS = (WIDTH + 2 * WAYS * QN - 1) / (2 * WAYS * QN);   // of four sums, of a thread
struct Shared {
    Element q[Q_STAGES][DEPTH_LINES][BM][LINE], k[STAGES][DEPTH_LINES][BN][LINE], v[STAGES][WIDTH_LINES][BN][LINE];
    unsigned long long full[3][STAGES], free[3][STAGES], turn[GROUPS];   // turn: that group may issue its products
};
struct Ends { float acc[SPLITS][BM][WIDE + 8]; Row rows[SPLITS][BM]; };   // padding: no bank conflicts in a store

static_assert(BM % WM == 0 && WM == 64 && BN % LINE == 0 && BN <= 256 && WIDE <= 256,
              "groups of warps multiply whole lines");
static_assert(GROUPS >= 2 && GROUPS <= 4, "as registers are dealt");
static_assert(BLOCKS * TURNS >= TILES && BLOCKS <= TILES, "all tiles are made");
static_assert(SPLITS == 1 || BM == WM, "warps that share columns have the same rows");
static_assert(WAYS == SPLITS * CLUSTER && (WAYS == 1 || TURNS == 1), "slabs replace the tiles of a block");
static_assert(WAYS == 1 || (Q_STAGES * DEPTH_LINES * BM + STAGES * BN * (DEPTH_LINES + WIDTH_LINES)) * 128 >= SPLITS * BM * (WIDE + 11) * 4,
              "slabs fit in place of tiles");
static_assert(QN == 4 && Q_STAGES <= STAGES, "pairs of lanes exchange columns");

// The tiles of a persistent block. With masks, blocks take tiles in alternating order, which balances their columns.
template <class Make> DEVICE void for_each_tile(Make make)
{
#pragma unroll 1
    for (int turn = 0; turn < TURNS; turn = next_turn(turn, TURNS)) {
        const Index own = MASKS && turn % 2 ? BLOCKS - 1 - (Index)blockIdx.x : (Index)blockIdx.x / CLUSTER;
        const Index n = own + (turn + 1 < TURNS ? turn * BLOCKS : TILES - BLOCKS), tile = BACKWARDS ? TILES - 1 - n : n;
        if (turn == 0 || n >= turn * BLOCKS)   // in a partial iteration, the last one, the last blocks have tiles
            make(HEADS_IN_TURN ? work_of(tile % BATCH, tile / BATCH * BM) : work_of(tile / TILES_M, tile % TILES_M * BM));
    }
}
// By the producer: copies a tile's lines from `line` on, once its stage is free.
template <int COUNT, int PARTS, int LINES> DEVICE void fetch(Element (&tiles)[COUNT][PARTS][LINES][LINE], Shared &shared, int of,
                                                             unsigned n, const TensorMap *map, Corner corner, Index line)
{
    unsigned long long *const full = &shared.full[of][n % COUNT];
    mbarrier_wait(&shared.free[of][n % COUNT], n / COUNT % 2 ^ 1);
    mbarrier_expect(full, (int)sizeof *tiles);
    UNROLL for (int part = 0; part < PARTS; ++part)
        copy_box(tiles[n % COUNT][part], map, corner.x + part * LINE, (int)line, corner.z, full);
}
DEVICE void arrive(unsigned long long *barrier) { if ((int)threadIdx.x % WARP == 0) mbarrier_arrive(barrier); }   // by a warp
// Online softmax of a lane's rows l / 4 and l / 4 + 8. `scaled` is M; `sum` is over this lane's columns only.
struct Softmax { float maximum[2], scaled[2], sum[2], factor[2]; };
// Scores become p relative to the running maximum; `factor` rescales the previous sums. -inf never is the maximum.
DEVICE void add_scores(Softmax &softmax, float (&s)[BN / 2])
{
    UNROLL for (int half = 0; half < 2; ++half) {
        const auto own = [&](int j) -> float & { return s[j / 2 * 4 + half * 2 + j % 2]; };
        float &maximum = softmax.maximum[half], &scaled = softmax.scaled[half], largest = maximum, sum = 0.0f;
        UNROLL for (int j = 0; j < BN / 4; ++j)
            largest = op_max(largest, own(j));
        UNROLL for (int lanes = 2; lanes > 0; lanes /= 2)   // four share a row
            largest = op_max(largest, warp_shuffle_xor(largest, lanes, 4));
        const float origin = origin_of(largest, SCALE), base = origin != 0.0f ? 0.0f : scaled_of(largest, SCALE);
        softmax.factor[half] = power_of_two(fmaf(origin_of(maximum, SCALE) - origin, SCALE, scaled - base));
        if (origin != 0.0f)
            UNROLL for (int j = 0; j < BN / 4; ++j)
                own(j) -= origin;
        UNROLL for (int j = 0; j < BN / 4; ++j)
            sum += own(j) = power_of_two(fmaf(own(j), SCALE, -base));
        softmax.sum[half] = fmaf(softmax.sum[half], softmax.factor[half], sum);
        maximum = largest;
        scaled = base;
    }
}

// Quotients of sums do not show how M is rounded, nor that a row has no maximum. Two parts of p and V are scaled by 2^15.
DEVICE void correct_sums(Softmax &softmax, int half, float (&acc)[WIDE / 2])
{
    float &maximum = softmax.maximum[half], &sum = softmax.sum[half];
    if (EXACT_SUMS && sum == 0.0f)
        maximum = -infinity<float>();
    const bool rounded = EXACT_SUMS && origin_of(maximum, SCALE) == 0.0f;
    const float of_sum = rounded ? power_of_two(-fmaf(maximum, SCALE, -scaled_of(maximum, SCALE))) : 1.0f;
    const float of_acc = PARTS == 2 ? of_sum * 0x1p-15f : of_sum;
    sum *= of_sum;
    UNROLL for (int j = 0; j < WIDE / 4; ++j)
        acc[j / 2 * 4 + half * 2 + j % 2] *= of_acc;
}

// Epilogue. Of each 16 columns two lanes exchange what they have, so that a lane stores four that are contiguous.
DEVICE void store_row(const Tensors &t, Index batch, Index row, int half, float (&acc)[WIDE / 2], const Row &of)
{
    const int lane = (int)threadIdx.x % WARP, odd = lane % 2;
    if (lane % 4 == 0 && row < ROWS)
        finish_row(t, batch, row, of);
    UNROLL for (int i = half * 2; i < WIDE / 2; i += i % 2 == 0 ? 1 : 7) {
        const float other = warp_shuffle_xor(odd ? acc[i] : acc[i + 4], 1);
        acc[i] = odd ? other : acc[i];
        acc[i + 4] = odd ? acc[i + 4] : other;
    }
    UNROLL for (int i = half * 2; i < WIDE / 2; i += 8) {
        const int n = i / 4 * 8 + odd * 8 + lane % 4 / 2 * 4;
        if (row < ROWS && n < WIDTH)
            finish_vector(t, batch, row, n, {acc[i], acc[i + 1], acc[i + 4], acc[i + 5]}, of);
    }
}

// Where there are few tiles, SPLITS warp groups of CLUSTER blocks take interleaved steps of the same rows. At the end each leaves
// its sums in place of Q, K and V. Of each row 2 * WAYS threads add them up, in a fixed order; blocks have rows in turn.
DEVICE void sync_ways() { CLUSTER > 1 ? cluster_sync() : roles_sync<(1 + GROUPS) * GROUP>(); }
DEVICE void store_together(const Tensors &t, Ends &ends, const Work &work, int group, float (&acc)[WIDE / 2], Softmax &softmax)
{
    const int split = SPLITS > 1 ? group : 0, line0 = (group - split) * WM + (int)threadIdx.x % GROUP / WARP * 16 + (int)threadIdx.x % WARP / 4;
    const int pair = (int)threadIdx.x % 4 * 2, own = (int)threadIdx.x - GROUP, line = own / (2 * WAYS) * CLUSTER + (int)blockIdx.x % CLUSTER;
    roles_sync<(1 + GROUPS) * GROUP>();   // all tiles have been used
    UNROLL for (int half = 0; half < 2; ++half) {
        if (pair == 0)
            ends.rows[split][line0 + half * 8] = {softmax.maximum[half], softmax.sum[half], 0.0f};
        UNROLL for (int i = 0; i < WIDE / 8; ++i)
            *(Vector<float, 2> *)&ends.acc[split][line0 + half * 8][i * 8 + pair] = {{acc[i * 4 + half * 2], acc[i * 4 + half * 2 + 1]}};
    }
    sync_ways();   // all sums are there
    const Ends *left[CLUSTER];   // by each block
    UNROLL for (int i = 0; i < CLUSTER; ++i)
        left[i] = CLUSTER > 1 ? cluster_map(&ends, i) : &ends;
    Row rows[WAYS], of = {-infinity<float>(), 0.0f, 0.0f};
    float totals[VECTORS][QN] = {}, weight[WAYS];   // 0: all columns are masked or negligible
    UNROLL for (int i = 0; i < WAYS; ++i)
        rows[i] = left[i / SPLITS]->rows[i % SPLITS][line], of.maximum = op_max(of.maximum, rows[i].maximum);
    UNROLL for (int i = 0; i < WAYS; ++i) {
        weight[i] = power_of_two((rows[i].maximum - of.maximum) * SCALE);
        of.sum += weight[i] == 0.0f ? 0.0f : rows[i].sum * weight[i];
    }
    of.inverse = 1.0f / of.sum;
    const auto column = [&](int k) { return (own % (2 * WAYS) + k * 2 * WAYS) * QN; };
    UNROLL for (int k = 0; k < VECTORS; ++k)   // no load waits behind a store
        UNROLL for (int i = 0; i < WAYS && column(k) < WIDTH; ++i) {
            const Vector<float, QN> part = *(const Vector<float, QN> *)&left[i / SPLITS]->acc[i % SPLITS][line][column(k)];
            UNROLL for (int e = 0; e < QN; ++e)
                totals[k][e] += weight[i] == 0.0f ? 0.0f : part.at[e] * weight[i];
        }
    if (own % (2 * WAYS) == 0 && work.row0 + line < ROWS)
        finish_row(t, work.batch, work.row0 + line, of);
    UNROLL for (int k = 0; k < VECTORS && column(k) < WIDTH && work.row0 + line < ROWS; ++k)
        finish_vector(t, work.batch, work.row0 + line, column(k), totals[k], of);
}

// What is read beside the scores of a step, STAGED: pieces of 128 bytes of all lines, swizzled as operands are. It comes
// with K, whose stage it shares. Pieces begin at multiples of 1024 bytes.
constexpr int PIECE = 128 / (int)sizeof(Beside), PIECE_BYTES = (BESIDE_ROWS > 1 ? BESIDE_ROWS : 8) * 128;
constexpr int BESIDE_BYTES = BN / PIECE * PIECE_BYTES;
DEVICE unsigned char *beside_at(Shared &shared, unsigned byte)
{
    constexpr int AT = ((int)sizeof(Shared) + 1023) / 1024 * 1024;
    static_assert(AT + STAGES * BESIDE_BYTES + 1024 <= EVERYTHING.bytes, "it fits, wherever it begins");
    return reinterpret_cast<unsigned char *>(&shared) + AT + byte;
}
DEVICE void fetch_beside(Shared &shared, unsigned n, const TensorMap *map, const Work &work, Index column)
{
    unsigned long long *const full = &shared.full[K][n % STAGES];
    mbarrier_expect(full, BESIDE_ROWS * BN * (int)sizeof(Beside));
    UNROLL for (int part = 0; part < BN / PIECE; ++part)
        copy_box(beside_at(shared, n % STAGES * BESIDE_BYTES + part * PIECE_BYTES), map, work.beside.x + (int)column + part * PIECE,
                 BESIDE_ROWS > 1 ? (int)work.row0 : 0,
                 work.beside.z, full);
}
// Scores as functions of s and of that: of every 8 columns a lane has a pair in its row, of the tile's `line`, and in the one
// eight below.
template <bool INSIDE>
DEVICE void score_beside(const Tensors &t, Shared &shared, unsigned step, Index batch, Index row, int line, Index column,
                         float (&s)[BN / 2])
{
    const int pair = (int)threadIdx.x % 4 * 2;
    const unsigned own = step % STAGES * BESIDE_BYTES + line * 128 + (line % 8 * 16 ^ pair * (int)sizeof(Beside));
    UNROLL for (int i = 0; i < BN / 2; i += 2) {
        const int x = i / 4 * 8, y = i / 2 % 2 * 8;
        Beside two[2];
        move_vector(two, reinterpret_cast<const Beside *>(beside_at(shared, own ^ x % PIECE * (int)sizeof(Beside)) +
                                                          x / PIECE * PIECE_BYTES + (BESIDE_ROWS > 1 ? y * 128 : 0)));
        UNROLL for (int e = 0; e < 2; ++e) {
            const Index place = column + x + pair + e;
            s[i + e] = INSIDE || place < COLUMNS
                           ? score<INSIDE>(t, batch, op_min<Index>(row + y, ROWS - 1), place, s[i + e], two[e])
                           : -infinity<float>();
        }
    }
}

// BITS: of a lane's two rows the words of a step's columns, which it asks for while the scores are made.
DEVICE void read_words(const Tensors &t, Index batch, Index row, Index column, unsigned (&words)[BN / 16])
{
    UNROLL for (int i = 0; i < BN / 16; ++i) {
        const Index place = column + i / 2 * 32;
        words[i] = place < COLUMNS ? word_beside(t, batch, op_min<Index>(row + i % 2 * 8, ROWS - 1), place) : 0u;
    }
}
template <bool INSIDE>
DEVICE void score_bits(const Tensors &t, Index batch, Index row, Index column, const unsigned (&words)[BN / 16], float (&s)[BN / 2])
{
    UNROLL for (int i = 0; i < BN / 2; ++i) {
        const int x = i / 4 * 8 + (int)threadIdx.x % 4 * 2 + i % 2, y = i / 2 % 2;
        const bool bit = words[i / 16 * 2 + y] >> x % 32 & 1u;
        s[i] = INSIDE || column + x < COLUMNS
                   ? score<INSIDE>(t, batch, op_min<Index>(row + y * 8, ROWS - 1), column + x, s[i], bit)
                   : -infinity<float>();
    }
}

// A group's rows of a tile. `tile` and `step` count those of the block. The first step is peeled, and always exists:
// otherwise the compiler moves accumulators between registers, which serialises the products.
DEVICE void make_tile(const Tensors &t, Shared &shared, const Work &work, unsigned tile, unsigned &step, int group)
{
    [[maybe_unused]] const int line0 = SPLITS > 1 ? 0 : group * WM, place0 = (int)threadIdx.x % 4 * 2;
    const Index row = work.row0 + line0 + (int)threadIdx.x / WARP % 4 * 16 + (int)threadIdx.x % WARP / 4;
    Softmax softmax = {{LOWEST, LOWEST}, {-infinity<float>(), -infinity<float>()}};
    float acc[WIDE / 2] = {}, s[BN / 2];   // (WM,WIDTH) and (WM,BN) of four warps
    unsigned p[BN / 16 * PARTS][4];        // the smallest parts first
    const auto begin_sums = [&](unsigned of) {   // issues the product p V
        mbarrier_wait(&shared.full[V][of % STAGES], of / STAGES % 2);
        open_products(acc);
        UNROLL for (int j = 0; j < BN / 16 * PARTS; ++j)
            multiply_held<true>(Held<Element, WIDE>(), acc, p[j],
                                describe_operand(shared.v[of % STAGES][0][j / PARTS * 16], BN * LINE * 2, 1024));
        close_products();
    };
    const auto add_step = [&](bool first, Index column) {
        const unsigned last = step;   // whose p is not yet multiplied
        step += first ? 0 : SPLITS;
        mbarrier_wait(&shared.full[K][step % STAGES], step / STAGES % 2);
        if (SPLITS == 1)
            mbarrier_wait(&shared.turn[group], step % 2 ^ (group == 0));
        open_products(acc);
        UNROLL for (int i = 0; i < BN / 2; ++i) drop_sum(s[i]);
        UNROLL for (int d = 0; d < DEPTH; d += 16) {
            const auto q = describe_operand(&shared.q[tile % Q_STAGES][d / LINE][line0][d % LINE], 1024, 1024);
            const auto k = describe_operand(&shared.k[step % STAGES][d / LINE][0][d % LINE], 1024, 1024);
            multiply_shared<false, false>(Product<Element, BN>(), s, q, k, d > 0);
        }
        close_products();
        if (!first)
            begin_sums(last);
        if (SPLITS == 1)
            arrive(&shared.turn[(group + 1) % GROUPS]);
        [[maybe_unused]] unsigned words[BN / 16];
        if (BITS)
            read_words(t, work.batch, row, column, words);
        first ? wait_products<0>(s) : wait_products<1>(s);
        if (!STAGED)
            arrive(&shared.free[K][step % STAGES]);
        const bool border = column < work.clear_begin || column + BN > work.clear_end;
        [[maybe_unused]] const auto line = [&](int i) { return op_min<Index>(row + i / 2 % 2 * 8, ROWS - 1); };
        const auto place = [&](int i) { return column + i / 4 * 8 + place0 + i % 2; };
        if (STAGED) {
            const int beside_line = BESIDE_ROWS > 1 ? (int)(row - work.row0) : 0;
            if ((MASKS || COLUMNS % BN != 0) && border)
                score_beside<false>(t, shared, step, work.batch, row, beside_line, column, s);
            else
                score_beside<true>(t, shared, step, work.batch, row, beside_line, column, s);
            warp_sync();   // all have read it
            arrive(&shared.free[K][step % STAGES]);
        }
        if (BITS) {
            if ((MASKS || COLUMNS % BN != 0) && border)
                score_bits<false>(t, work.batch, row, column, words, s);
            else
                score_bits<true>(t, work.batch, row, column, words, s);
        }
        if (!STAGED && !BITS) {
            if ((MASKS || COLUMNS % BN != 0) && border)
                UNROLL for (int i = 0; i < BN / 2; ++i)
                    s[i] = place(i) < COLUMNS ? score<false>(t, work.batch, line(i), place(i), s[i]) : -infinity<float>();
            else if (FINISHED)
                UNROLL for (int i = 0; i < BN / 2; ++i)
                    s[i] = score<true>(t, work.batch, line(i), place(i), s[i]);
        }
        add_scores(softmax, s);
        if (!first) {
            wait_products<0>(acc);
            arrive(&shared.free[V][last % STAGES]);
            UNROLL for (int i = 0; i < WIDE / 2; ++i)
                acc[i] *= softmax.factor[i / 2 % 2];
        }
        UNROLL for (int i = 0; i < BN / 4; ++i)
            if (PARTS == 1)
                p[i / 4][i % 4] = hold_word(pair_of(Element(), s[i * 2], s[i * 2 + 1]));
            else {
                const PairParts<Element, PARTS> pair(s[i * 2], s[i * 2 + 1]);
                UNROLL for (int part = 0; part < PARTS; ++part)
                    p[i / 4 * PARTS + part][i % 4] = hold_word(pair.at[PARTS - 1 - part]);
            }
    };
    Index column = work.begin + ((int)blockIdx.x % CLUSTER * SPLITS + (SPLITS > 1 ? group : 0)) * BN;
    mbarrier_wait(&shared.full[Q][tile % Q_STAGES], tile / Q_STAGES % 2);
    if (WAYS == 1 || column < work.end) {
        add_step(true, column);
#pragma unroll 1
        for (column += BN * WAYS; column < work.end; column += BN * WAYS)
            add_step(false, column);
        if (WAYS == 1)   // else a block has one tile
            arrive(&shared.free[Q][tile % Q_STAGES]);
        begin_sums(step);
        wait_products<0>(acc);
        arrive(&shared.free[V][step % STAGES]);
        if (WAYS == 1)
            ++step;
    }
    UNROLL for (int half = 0; half < 2; ++half) {
        float &sum = softmax.sum[half];
        UNROLL for (int lanes = 2; lanes > 0; lanes /= 2)
            sum += warp_shuffle_xor(sum, lanes, 4);
        if (EXACT_SUMS || PARTS == 2)
            correct_sums(softmax, half, acc);
        if (WAYS == 1)
            store_row(t, work.batch, row + half * 8, half, acc, {softmax.maximum[half], sum, 1.0f / sum});
    }
    if (WAYS > 1)
        store_together(t, reinterpret_cast<Ends &>(shared), work, group, acc, softmax);
}

extern "C" __global__ void __launch_bounds__((1 + GROUPS) * GROUP, 1)
    ENTRY(PARAMETERS)
{
    Shared &shared = *reinterpret_cast<Shared *>(rollerc_shared + (0u - shared_address(rollerc_shared)) % 1024);
    static_assert((int)sizeof(Shared) + 1024 <= EVERYTHING.bytes, "it fits, wherever it begins");
    if (threadIdx.x < 3 * STAGES) {
        mbarrier_init(&shared.full[threadIdx.x / STAGES][threadIdx.x % STAGES], STAGED && threadIdx.x / STAGES == K ? 2 : 1);
        mbarrier_init(&shared.free[threadIdx.x / STAGES][threadIdx.x % STAGES], BM / WM * GROUP_WARPS);
    }
    if (SPLITS == 1 && threadIdx.x < GROUPS)
        mbarrier_init(&shared.turn[threadIdx.x], GROUP_WARPS);
    const TensorMap *const maps[] = MAP_LIST;   // of Q, K, V, and what is STAGED
    block_sync();
    const Tensors t = TENSORS;
    const int group = same_in_warp((int)threadIdx.x / WARP) / GROUP_WARPS - 1;
    unsigned tile = 0, step = SPLITS > 1 && group > 0 ? group : 0;
    if (group < 0) {   // load
        give_registers<GROUPS == 3 ? 32 : 24>();
        if (threadIdx.x == 0)
            for_each_tile([&](const Work &work) {
                fetch(shared.q, shared, Q, tile++, maps[Q], work.q, work.row0);
#pragma unroll 1
                for (Index column = work.begin + (int)blockIdx.x % CLUSTER * SPLITS * BN; column < work.end; column += BN * WAYS, step += SPLITS) {
                    UNROLL for (int i = 0; i < SPLITS && column + i * BN < work.end; ++i)
                        fetch(shared.k, shared, K, step + i, maps[K], work.k, column + i * BN);
                    if (STAGED)
                        UNROLL for (int i = 0; i < SPLITS && column + i * BN < work.end; ++i)
                            fetch_beside(shared, step + i, maps[3], work, column + i * BN);
                    UNROLL for (int i = 0; i < SPLITS && column + i * BN < work.end; ++i)
                        fetch(shared.v, shared, V, step + i, maps[V], work.v, column + i * BN);
                }
            });
        if (WAYS > 1)   // barriers of clusters want whole warps
            roles_sync<(1 + GROUPS) * GROUP>(), warp_sync(), sync_ways();
    } else {   // compute and store
        take_registers<GROUPS == 2 ? 240 : GROUPS == 3 ? 160 : 112>();
        for_each_tile([&](const Work &work) { make_tile(t, shared, work, tile++, step, group); });
    }
    if (CLUSTER > 1)
        cluster_sync();   // others have read this block's sums
}
}   // namespace KERNEL
