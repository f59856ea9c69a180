// Fused attention on the tensor cores of sm_90a: a softmax between two products, in one pass.
//
//   s[i,j] = sum over d of Q[i,d] * K[j,d]
//   p[i,j] = exp(s[i,j] - maximum of row i)
//   Y[i,n] = sum over j of p[i,j] * V[j,n]
//
// The online softmax is that of templates/attention.cu. Warps are specialised: one producer thread copies boxes
// of Q, K and V to shared memory (TMA), and GROUPS consumer warp groups compute WM = 64 of the block's BM rows
// each (Shah et al., "FlashAttention-3", 2024). The softmax of a step overlaps the product of the previous p and V,
// which is started behind the scores of the step:
//
//   tensor cores    s0 = Q K0 |              s1 = Q K1 | Y += p0 V0 |              s2 = Q K2 | Y += p1 V1 | …
//   warp group                | p0 = softmax           |            p1 = softmax             |            …
//
// Warp groups take turns on the tensor cores (ping-pong): one computes its softmax during another's products. Tiles
// of Q, K and V are pipelined; each stage has the barriers `full` and `free`. Blocks are persistent: the loads of a
// block's next tile of Y overlap the end of the current one.
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
        f16 *__restrict__ out0
#define TENSORS {in0, in1, in2, out0}
constexpr Region EVERYTHING = {0, 215160};   // of shared memory, in bytes
constexpr int SHARED_BYTES = 215160;                           // of a block
using Element = f16;                                           // of Q, K, V, and of p
using Result = f16;                                            // of Y
constexpr bool STAGED = true;                                  // Y is one tensor of whole vectors
constexpr Index BATCH = 16, ROWS = 1024, COLUMNS = 1024;       // problem
constexpr int DEPTH = 128, WIDTH = 128;
constexpr int BM = 128, BN = 128;                              // rTile, shared memory
constexpr int WM = 64;                                         // rTile, registers of a warp group
constexpr int PARTS = 1;                                       // narrow elements that represent a p
constexpr int SPLITS = 1;                                      // warp groups that split the columns
constexpr int STAGES = 2, Q_STAGES = 2;                        // of the pipelines of K and V, and of Q
constexpr bool BACKWARDS = false;                              // the last rows first: they have the most columns
constexpr bool MASKS = false;                                  // some columns are masked by their position
constexpr bool EXACT_SUMS = false;                             // sums are used otherwise than in quotients
constexpr float SCALE = 0.12751743f;                           // log2(e) times the factor of the scores
constexpr int QN = 2;                                          // columns of Y that a thread stores
constexpr int TURNS = 1;                                       // tiles of Y of a persistent block
constexpr Index BLOCKS = 128;

// The origin of a batch in a tensor, for bulk copies.
struct Corner { int x, z; };
__device__ __forceinline__ Corner q_corner(Index batch) { return {0, (int)batch}; }
__device__ __forceinline__ Corner k_corner(Index batch) { return {0, (int)batch}; }
__device__ __forceinline__ Corner v_corner(Index batch) { return {0, (int)batch}; }

// The columns that any of some rows needs, from a multiple of BN on, and those that all of them need.
struct Columns { Index begin, end, clear_begin, clear_end; };
__device__ __forceinline__ Columns columns_of(Index batch, Index first_row, Index last_row)
{
    return {0, COLUMNS, 0, COLUMNS};
}

// The score as a function of s. INSIDE: the column is unmasked.
template <bool INSIDE>
__device__ __forceinline__ float score(const Tensors &t, Index batch, Index row, Index column, float total)
{
    return total;
}

struct Row { float maximum, sum, inverse; };   // of scores, of p, 1 / sum of p
__device__ __forceinline__ void finish_row(const Tensors &t, Index batch, Index row, Row of) {}
__device__ __forceinline__ void finish_vector(const Tensors &t, Index batch, Index row, Index n,
                                              const float (&totals)[QN], const Row &of, Result *to)
{
    const float inverse = of.inverse;
    float y0[QN];
    UNROLL for (int e = 0; e < QN; ++e)
        y0[e] = totals[e] * inverse;
    store_pair(to, y0);
}
__device__ __forceinline__ Result *result_at(const Tensors &t, Index batch, Index row, Index n)
{
    return t.out0 + (batch * 131072 + row * 128 + n);
}
// </rollerc>

constexpr int GROUPS = BM / WM * SPLITS, GROUP_WARPS = 4;
constexpr int LINE = 64;                                       // elements in 128 bytes
constexpr int DEPTH_LINES = (DEPTH + LINE - 1) / LINE, WIDTH_LINES = (WIDTH + LINE - 1) / LINE;
constexpr int WIDE = WIDTH_LINES * LINE;
constexpr Index TILES_M = (ROWS + BM - 1) / BM, TILES = BATCH * TILES_M;

static_assert(BM % WM == 0 && WM == 64 && BN % LINE == 0 && BN <= 256 && WIDE <= 256,
              "groups of warps multiply whole lines");
static_assert(GROUPS >= 2 && GROUPS <= 4, "as registers are dealt");
static_assert(BLOCKS * TURNS >= TILES, "all tiles are made");
static_assert(SPLITS == 1 || (BM == WM && TURNS == 1), "warps that share columns have the same rows");

// Tiles in shared memory, in parts of 64 elements of all lines, in the layout of describe_operand().
using TileQ = Element[DEPTH_LINES][BM][LINE];
using TileK = Element[DEPTH_LINES][BN][LINE];
using TileV = Element[WIDTH_LINES][BN][LINE];

// Use n of a pipeline has stage n % COUNT. At first all are free.
struct Stage { unsigned long long full, free; };

struct Shared {
    TileQ q[Q_STAGES];
    TileK k[STAGES];
    TileV v[STAGES];
    Stage q_stages[Q_STAGES], k_stages[STAGES], v_stages[STAGES];
    unsigned long long turn[GROUPS];   // that group may issue its products
};
struct StagingShared : Shared {
    alignas(16) Result slabs[GROUPS * GROUP_WARPS][8][WIDE + 8];   // padding: no bank conflicts
};

// By a warp. `warps` use what is there.
template <int COUNT> __device__ __forceinline__ void begin_stages(Stage (&stages)[COUNT], int warps)
{
    const int lane = (int)threadIdx.x % WARP;
    if (lane < COUNT) {
        mbarrier_init(&stages[lane].full, 1);
        mbarrier_init(&stages[lane].free, warps);
    }
}

template <int COUNT> __device__ __forceinline__ void await_full(Stage (&stages)[COUNT], unsigned n)
{
    mbarrier_wait(&stages[n % COUNT].full, n / COUNT % 2);
}

// One lane arrives for its warp.
__device__ __forceinline__ void arrive(unsigned long long *barrier)
{
    if ((int)threadIdx.x % WARP == 0)
        mbarrier_arrive(barrier);
}

// The tile of Y of an iteration, and its columns. In the last iteration, which may be partial, the last blocks have
// tiles. With masks, blocks take tiles in alternating order, which balances their columns.
struct Work {
    Index batch, row0;
    bool exists;
    Columns columns;
};
__device__ __forceinline__ Work work_of(Index turn)
{
    const Index own = MASKS && turn % 2 ? BLOCKS - 1 - (Index)blockIdx.x : (Index)blockIdx.x;
    const Index number = turn * BLOCKS + own - (turn + 1 == TURNS ? BLOCKS * TURNS - TILES : 0);
    const Index tile = BACKWARDS ? TILES - 1 - number : number;
    const Index batch = tile / TILES_M, row0 = tile % TILES_M * BM;
    return {batch, row0, number >= turn * BLOCKS, columns_of(batch, row0, op_min<Index>(row0 + BM, ROWS) - 1)};
}

// The producer thread copies a tile's lines from `line` on, once its stage is free.
template <int COUNT, int PARTS, int LINES>
__device__ __forceinline__ void fetch(Element (&tiles)[COUNT][PARTS][LINES][LINE], Stage (&stages)[COUNT], unsigned n,
                                      const TensorMap *map, Corner corner, Index line)
{
    Stage &stage = stages[n % COUNT];
    mbarrier_wait(&stage.free, n / COUNT % 2 ^ 1);
    mbarrier_expect(&stage.full, (int)sizeof *tiles);
    UNROLL for (int part = 0; part < PARTS; ++part)
        copy_box(tiles[n % COUNT][part], map, corner.x + part * LINE, (int)line, corner.z, &stage.full);
}

__device__ __forceinline__ void copy_tiles(const TensorMap *map_q, const TensorMap *map_k, const TensorMap *map_v,
                                           Shared &shared)
{
    unsigned tile = 0, step = 0;
#pragma unroll 1
    for (int turn = 0; turn < TURNS; turn = next_turn(turn, TURNS)) {
        const Work work = work_of(turn);
        if (!work.exists)
            continue;
        fetch(shared.q, shared.q_stages, tile++, map_q, q_corner(work.batch), work.row0);
#pragma unroll 1
        for (Index column = work.columns.begin; column < work.columns.end; column += BN * SPLITS, step += SPLITS) {
            UNROLL for (int i = 0; i < SPLITS; ++i)
                if (SPLITS == 1 || column + i * BN < work.columns.end)
                    fetch(shared.k, shared.k_stages, step + i, map_k, k_corner(work.batch), column + i * BN);
            UNROLL for (int i = 0; i < SPLITS; ++i)
                if (SPLITS == 1 || column + i * BN < work.columns.end)
                    fetch(shared.v, shared.v_stages, step + i, map_v, v_corner(work.batch), column + i * BN);
        }
    }
}

// Online softmax of a lane's rows l / 4 and l / 4 + 8. `scaled` is M; `sum` is over this lane's columns only.
struct Softmax { float maximum[2], scaled[2], sum[2]; };

// Scores become p relative to the running maximum. `factor`: rescales the previous sums. While all scores are -inf
// the sums stay 0.
__device__ __forceinline__ void add_scores(Softmax &softmax, float (&s)[BN / 2], float (&factor)[2])
{
    UNROLL for (int half = 0; half < 2; ++half) {
        const auto own = [&](int j) -> float & { return s[j / 2 * 4 + half * 2 + j % 2]; };
        float largest = own(0), sum = 0.0f;
        UNROLL for (int j = 1; j < BN / 4; ++j)
            largest = op_max(largest, own(j));
        largest = op_max(softmax.maximum[half], largest_of_row(largest));
        const float origin = origin_of(largest, SCALE), grown = origin != 0.0f ? 0.0f : scaled_of(largest, SCALE);
        const float base = largest == -infinity<float>() ? 0.0f : grown;
        const float grows = origin_of(softmax.maximum[half], SCALE) - origin;
        factor[half] = power_of_two(fmaf(grows, SCALE, softmax.scaled[half] - base));
        if (origin != 0.0f)
            UNROLL for (int j = 0; j < BN / 4; ++j)
                own(j) -= origin;
        UNROLL for (int j = 0; j < BN / 4; ++j) {
            own(j) = power_of_two(fmaf(own(j), SCALE, -base));
            sum += own(j);
        }
        softmax.maximum[half] = largest;
        softmax.scaled[half] = grown;
        softmax.sum[half] = fmaf(softmax.sum[half], factor[half], sum);
    }
}

// A row's result, and the factor of its sums: it corrects the rounding of M, which quotients of sums do not show.
__device__ __forceinline__ Row row_of(const Softmax &softmax, int half, float &factor)
{
    const float largest = softmax.maximum[half];
    factor = 1.0f;
    if (EXACT_SUMS)
        factor = origin_of(largest, SCALE) != 0.0f
                     ? 1.0f
                     : power_of_two(-fmaf(largest, SCALE, -scaled_of(largest, SCALE)));
    const float sum = sum_of_row(softmax.sum[half]) * factor;
    if (PARTS == 2)   // p and V are scaled by 2^15
        factor *= 0x1p-15f;
    return {largest, sum, 1.0f / sum};
}

// Issues a group's product Q K of a step, when it is the group's turn. s is valid once it was waited for.
__device__ __forceinline__ void begin_scores(Shared &shared, const TileQ &q, unsigned step, int group,
                                             float (&s)[BN / 2], float (&acc)[WIDE / 2])
{
    const int row = SPLITS > 1 ? 0 : group * WM;
    const TileK &k = shared.k[step % STAGES];
    await_full(shared.k_stages, step);
    if (SPLITS == 1)
        mbarrier_wait(&shared.turn[group], step % 2 ^ (group == 0));
    open_products(acc);
    begin_product<false, false>(Product<Element, BN>(), s, describe_operand(q[0][row], 1024, 1024),
                                describe_operand(k[0][0], 1024, 1024));
    UNROLL for (int d = 16; d < DEPTH; d += 16)
        multiply_shared<false, false>(Product<Element, BN>(), s,
                                      describe_operand(q[d / LINE][row] + d % LINE, 1024, 1024),
                                      describe_operand(k[d / LINE][0] + d % LINE, 1024, 1024));
    close_products();
}

// Issues the product p V of a step.
__device__ __forceinline__ void begin_sums(const unsigned (&p)[BN / 16 * PARTS][4], const TileV &v,
                                           float (&acc)[WIDE / 2])
{
    UNROLL for (int j = 0; j < BN / 16 * PARTS; ++j)
        multiply_held<true>(Held<Element, WIDE>(), acc, p[j],
                            describe_operand(v[0][j / PARTS * 16], (int)sizeof *v, 1024));
    close_products();
}

// Applies the expression and the mask to s.
__device__ __forceinline__ void finish_scores(const Tensors &t, const Work &work, Index row, Index column,
                                              float (&s)[BN / 2])
{
    const auto line = [&](int i) { return op_min<Index>(row + i / 2 % 2 * 8, ROWS - 1); };
    const auto place = [&](int i) { return column + i / 4 * 8 + (int)threadIdx.x % 4 * 2 + i % 2; };
    if (column < work.columns.clear_begin || column + BN > work.columns.clear_end) {
        UNROLL for (int i = 0; i < BN / 2; ++i)
            s[i] = place(i) < COLUMNS ? score<false>(t, work.batch, line(i), place(i), s[i]) : -infinity<float>();
    } else {
        UNROLL for (int i = 0; i < BN / 2; ++i)
            s[i] = score<true>(t, work.batch, line(i), place(i), s[i]);
    }
}

// p as the left operand of a product, the smallest parts first.
__device__ __forceinline__ void take_shares(const float (&s)[BN / 2], unsigned (&p)[BN / 16 * PARTS][4])
{
    UNROLL for (int i = 0; i < BN / 4; ++i) {
        if (PARTS == 1) {
            p[i / 4][i % 4] = hold_word(pair_of(Element(), s[i * 2], s[i * 2 + 1]));
        } else {
            const PairParts<Element, PARTS> pair(s[i * 2], s[i * 2 + 1]);
            UNROLL for (int part = 0; part < PARTS; ++part)
                p[i / 4 * PARTS + part][i % 4] = hold_word(pair.at[PARTS - 1 - part]);
        }
    }
}

// A group's rows of a tile. The first step is peeled, and always exists: otherwise the compiler moves accumulators
// between registers, which serialises the products. `tile` and `step` count those of the block.
__device__ __forceinline__ void stream(const Tensors &t, Shared &shared, const Work &work, unsigned tile,
                                       unsigned &step, int group, Index row, float (&acc)[WIDE / 2], Softmax &softmax)
{
    float s[BN / 2], factor[2];
    unsigned p[BN / 16 * PARTS][4];
    const TileQ &q = shared.q[tile % Q_STAGES];
    Index column = work.columns.begin;
    if (SPLITS > 1)
        column += (Index)step * BN;
    if (SPLITS > 1 && column >= work.columns.end)
        return;
    await_full(shared.q_stages, tile);
    begin_scores(shared, q, step, group, s, acc);
    if (SPLITS == 1)
        arrive(&shared.turn[(group + 1) % GROUPS]);
    wait_products<0>(s);
    arrive(&shared.k_stages[step % STAGES].free);
    finish_scores(t, work, row, column, s);
    add_scores(softmax, s, factor);
    take_shares(s, p);
#pragma unroll 1
    for (column += BN * SPLITS; column < work.columns.end; column += BN * SPLITS) {
        const unsigned last = step;   // whose p is not yet multiplied
        step += SPLITS;
        begin_scores(shared, q, step, group, s, acc);
        await_full(shared.v_stages, last);
        begin_sums(p, shared.v[last % STAGES], acc);
        if (SPLITS == 1)
            arrive(&shared.turn[(group + 1) % GROUPS]);
        wait_products<1>(s);
        arrive(&shared.k_stages[step % STAGES].free);
        finish_scores(t, work, row, column, s);
        add_scores(softmax, s, factor);
        wait_products<0>(acc);
        arrive(&shared.v_stages[last % STAGES].free);
        UNROLL for (int i = 0; i < WIDE / 2; ++i)
            acc[i] *= factor[i / 2 % 2];
        take_shares(s, p);
    }
    arrive(&shared.q_stages[tile % Q_STAGES].free);
    await_full(shared.v_stages, step);
    open_products(acc);
    begin_sums(p, shared.v[step % STAGES], acc);
    wait_products<0>(acc);
    arrive(&shared.v_stages[step % STAGES].free);
    step += SPLITS;
}

// Epilogue: a lane finishes pairs of columns of two rows. A warp stages eight rows at a time in shared memory, so that
// stores are coalesced.
__device__ __forceinline__ void store_rows(const Tensors &t, StagingShared &shared, const Work &work, Index row0,
                                           const float (&acc)[WIDE / 2], const Softmax &softmax)
{
    constexpr int PIECE = 16 / (int)sizeof(Result);
    const int lane = (int)threadIdx.x % WARP;
    Result(&slab)[8][WIDE + 8] = shared.slabs[STAGED ? (int)threadIdx.x / WARP - GROUP_WARPS : 0];
    UNROLL for (int half = 0; half < 2; ++half) {
        const Index first = row0 + half * 8, row = first + lane / 4;
        float factor;
        const Row own = row_of(softmax, half, factor);
        if (lane % 4 == 0 && row < ROWS)
            finish_row(t, work.batch, row, own);
        UNROLL for (int j = 0; j < WIDE / 8; ++j) {
            const int n = j * 8 + lane % 4 * 2, at = j * 4 + half * 2;
            const float totals[] = {acc[at] * factor, acc[at + 1] * factor};
            if (row < ROWS && n < WIDTH)
                finish_vector(t, work.batch, row, n, totals, own, slab[lane / 4] + n);
        }
        if (STAGED) {
            warp_sync();
            UNROLL for (int i = 0; i < WIDE / PIECE; i += WARP / 8) {
                const int number = i * 8 + lane, line = number / (WIDE / PIECE), n = number % (WIDE / PIECE) * PIECE;
                if (first + line < ROWS && n < WIDTH)
                    copy_vector<PIECE>(result_at(t, work.batch, first + line, n), slab[line] + n);
            }
            warp_sync();
        }
    }
}

// Where there are few tiles, the columns are split across SPLITS warp groups, which take interleaved steps of the
// same rows. At the end they agree on the maximum of each row and reduce their sums through shared memory in a fixed
// order: slabs replace the tiles. Such a block computes one tile.
constexpr int SLAB_ROWS = 16;
struct Slab {
    float at[SLAB_ROWS][WIDE + 8];   // padding: no bank conflicts in a store
    Row rows[SLAB_ROWS];
};
struct SplitShared : Shared {
    float maxima[SPLITS][WM];

    __device__ __forceinline__ Slab &slab(int split, int warp)
    {
        return reinterpret_cast<Slab *>(this)[split * GROUP_WARPS + warp];
    }
};
static_assert(SPLITS * GROUP_WARPS * (int)sizeof(Slab) <= STAGES * (int)(sizeof(TileK) + sizeof(TileV)), "slabs fit");

// Synchronises all threads: after the tiles were used, and after the sums were written.
__device__ __forceinline__ void meet() { roles_sync<(1 + GROUPS) * GROUP_WARPS * WARP>(); }

// Groups exchange the maximum of each row, then write their sums, scaled to it. A group whose columns are all masked
// or negligible writes zeros.
__device__ __forceinline__ void leave_rows(SplitShared &shared, int split, const float (&acc)[WIDE / 2],
                                           const Softmax &softmax)
{
    static_assert((int)sizeof(SplitShared) + 1024 <= EVERYTHING.bytes, "it fits, wherever it begins");
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP % GROUP_WARPS;
    Slab &slab = shared.slab(split, warp);
    UNROLL for (int half = 0; half < 2; ++half)
        if (lane % 4 == 0)
            shared.maxima[split][warp * 16 + half * 8 + lane / 4] = softmax.maximum[half];
    meet();
    UNROLL for (int half = 0; half < 2; ++half) {
        const int line = half * 8 + lane / 4;
        float largest = shared.maxima[0][warp * 16 + line], factor;
        UNROLL for (int i = 1; i < SPLITS; ++i)
            largest = op_max(largest, shared.maxima[i][warp * 16 + line]);
        const float weight = power_of_two((softmax.maximum[half] - largest) * SCALE);
        const Row own = row_of(softmax, half, factor);
        const float share = factor * weight;
        const bool counts = weight != 0.0f;
        if (lane % 4 == 0)
            slab.rows[line] = {largest, counts ? own.sum * weight : 0.0f, 0.0f};
        UNROLL for (int j = 0; j < WIDE / 8; ++j) {
            const int at = j * 4 + half * 2;
            const float two[2] = {counts ? acc[at] * share : 0.0f, counts ? acc[at + 1] * share : 0.0f};
            move_vector<2>(slab.at[line] + j * 8 + lane % 4 * 2, two);
        }
    }
}

// Sums QN columns over the slabs of all groups. Of eight lanes that read 16 bytes each, half begin with the second
// half of their columns: no bank conflicts.
__device__ __forceinline__ Row combine(SplitShared &shared, int row, int n, float (&totals)[QN])
{
    constexpr int HALF = QN == 8 ? 4 : QN;
    const int warp = row / SLAB_ROWS, line = row % SLAB_ROWS;
    const bool turned = QN == 8 && n & 32;
    float sum = 0.0f, sums[QN] = {};
    UNROLL for (int i = 0; i < SPLITS; ++i) {
        const Slab &of = shared.slab(i, warp);
        sum += of.rows[line].sum;
        UNROLL for (int at = 0; at < QN; at += HALF) {
            float own[HALF];
            load_vector<HALF>(of.at[line], n + (turned ? QN - HALF - at : at), own);
            UNROLL for (int e = 0; e < HALF; ++e)
                sums[at + e] += own[e];
        }
    }
    UNROLL for (int e = 0; e < QN; ++e)
        totals[e] = turned ? sums[(e + HALF) % QN] : sums[e];
    return {shared.slab(0, warp).rows[line].maximum, sum, 1.0f / sum};
}

// By the consumer groups.
__device__ __forceinline__ void combine_and_store(const Tensors &t, SplitShared &shared, const Work &work)
{
    constexpr unsigned VECTORS = WIDTH / QN, THREADS = GROUPS * GROUP_WARPS * WARP;   // vectors of a row
    meet();
#pragma unroll 1
    for (unsigned number = threadIdx.x - GROUP_WARPS * WARP; number < BM * VECTORS; number += THREADS) {
        const int line = number / VECTORS, n = number % VECTORS * QN;
        if (work.row0 + line >= ROWS)
            break;
        float totals[QN];
        const Row own = combine(shared, line, n, totals);
        if (n == 0)
            finish_row(t, work.batch, work.row0 + line, own);
        finish_vector(t, work.batch, work.row0 + line, n, totals, own, nullptr);
    }
}

extern "C" __global__ void __launch_bounds__((1 + GROUPS) * GROUP_WARPS * WARP, 1)
    ENTRY(PARAMETERS, const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
          const __grid_constant__ TensorMap map_c)
{
    Shared &shared = *reinterpret_cast<Shared *>(rollerc_shared + (0u - shared_address(rollerc_shared)) % 1024);
    static_assert((int)sizeof(Shared) + 1024 <= EVERYTHING.bytes, "it fits, wherever it begins");
    static_assert(!STAGED || (int)sizeof(StagingShared) + 1024 <= EVERYTHING.bytes, "it fits, wherever it begins");
    const int warp = same_in_warp((int)threadIdx.x / WARP), lane = (int)threadIdx.x % WARP;
    if (warp == 0) {
        begin_stages(shared.q_stages, GROUPS * GROUP_WARPS);
        begin_stages(shared.k_stages, GROUPS / SPLITS * GROUP_WARPS);
        begin_stages(shared.v_stages, GROUPS / SPLITS * GROUP_WARPS);
    } else if (warp == 1 && lane < GROUPS) {
        mbarrier_init(&shared.turn[lane], GROUP_WARPS);
    } else if (threadIdx.x == 2 * WARP) {
        prefetch_map(&map_a);
        prefetch_map(&map_b);
        prefetch_map(&map_c);
    }
    block_sync();
    const Tensors t = TENSORS;

    if (warp < GROUP_WARPS) {   // load
        give_registers<GROUPS == 3 ? 32 : 24>();
        if (threadIdx.x == 0)
            copy_tiles(&map_a, &map_b, &map_c, shared);
        if (SPLITS > 1) {
            meet();
            meet();
        }
    } else {   // compute and store
        take_registers<GROUPS == 2 ? 240 : GROUPS == 3 ? 160 : 112>();
        const int group = warp / GROUP_WARPS - 1;
        unsigned tile = 0, step = SPLITS > 1 ? group : 0;
#pragma unroll 1
        for (int turn = 0; turn < TURNS; turn = next_turn(turn, TURNS)) {
            const Work work = work_of(turn);
            if (!work.exists)
                continue;
            const Index row0 = work.row0 + (SPLITS > 1 ? 0 : group * WM) + warp % 4 * 16;
            float acc[WIDE / 2] = {};   // (WM,WIDTH) of four warps
            Softmax softmax = {{-infinity<float>(), -infinity<float>()}, {-infinity<float>(), -infinity<float>()}, {}};
            stream(t, shared, work, tile++, step, group, row0 + lane / 4, acc, softmax);
            if (SPLITS > 1) {
                leave_rows(static_cast<SplitShared &>(shared), group, acc, softmax);
                combine_and_store(t, static_cast<SplitShared &>(shared), work);
            } else {
                store_rows(t, static_cast<StagingShared &>(shared), work, row0, acc, softmax);
            }
        }
    }
}
}   // namespace KERNEL
