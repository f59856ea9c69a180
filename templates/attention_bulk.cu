// Fused attention on the tensor cores of sm_90a: a softmax between two products, in one pass.
//
//   s[i,j] = sum over d of Q[i,d] * K[j,d]
//   p[i,j] = exp(s[i,j] - maximum of row i)
//   Y[i,n] = sum over j of p[i,j] * V[j,n]
//
// The online softmax is that of templates/attention.cu. Warps are specialised: one producer thread copies
// boxes of Q, K and V to shared memory (TMA), and GROUPS consumer warp groups compute WM = 64 of the block's
// BM rows each (Shah et al., "FlashAttention-3", 2024).
//
// The scores of a step are started before the product of the previous p and V. The softmax overlaps that
// product:
//
//   tensor cores    s0 = Q K0 |              s1 = Q K1 | Y += p0 V0 |              s2 = Q K2 | Y += p1 V1 | …
//   warp group                | p0 = softmax           |            p1 = softmax             |            …
//
// Warp groups take turns on the tensor cores (ping-pong): one computes its softmax during another's products.
// K and V are pipelined through STAGES tiles each, Q through Q_STAGES tiles. Each stage has the barriers
// `full` and `free`, as in templates/bulk.cu. Blocks are persistent: the loads of a block's next tile of Y
// overlap the end of the current one.
//
// Where there are few tiles, the columns are split across SPLITS warp groups, which take interleaved steps
// of the same rows. At the end they agree on the maximum of each row and reduce their sums through shared
// memory in a fixed order. Such a block computes one tile.
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
constexpr Region EVERYTHING = {0, 216976};   // of shared memory, in bytes
constexpr int SHARED_BYTES = 216976;                           // of a block
using Element = f16;                                           // of Q, K, V, and of p
constexpr Index BATCH = 16, ROWS = 1024, COLUMNS = 1024;       // problem
constexpr int DEPTH = 128, WIDTH = 128;
constexpr int BM = 128, BN = 128;                              // rTile, shared memory
constexpr int WM = 64;                                         // rTile, registers of a warp group
constexpr int PARTS = 1;                                       // narrow elements that represent a p
constexpr int SPLITS = 1;                                      // warp groups that split the columns
constexpr int STAGES = 2;                                      // of the pipeline of K and V
constexpr int Q_STAGES = 2;                                    // of the pipeline of Q
constexpr bool BACKWARDS = false;                              // the last rows first: they have the most columns
constexpr bool MASKS = false;                                  // some columns are masked by their position
constexpr float SCALE = 0.12751743f;                           // log2(e) times the factor of the scores
constexpr int QN = 8;                                          // columns of Y in one aligned access
constexpr int TURNS = 1;                                       // tiles of Y of a persistent block
constexpr Index BLOCKS = 128;

// The origin of a batch in a tensor, for bulk copies.
struct Corner {
    int x, z;
};
__device__ __forceinline__ Corner q_corner(Index batch) { return {0, (int)batch}; }
__device__ __forceinline__ Corner k_corner(Index batch) { return {0, (int)batch}; }
__device__ __forceinline__ Corner v_corner(Index batch) { return {0, (int)batch}; }

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
    store_vector<QN>(t.out0, batch * 131072 + row * 128 + n, y0);
}
// </rollerc>

constexpr int GROUPS = BM / WM * SPLITS, GROUP_WARPS = 4;
constexpr Index STEP = BN * SPLITS;                           // columns of a step of all of them
constexpr int LINE = 64;                                       // elements in 128 bytes
constexpr int DEPTHS = (DEPTH + 15) / 16, DEPTH_LINES = (DEPTH + LINE - 1) / LINE;
constexpr int WIDTH_LINES = (WIDTH + LINE - 1) / LINE;
constexpr int WIDE = WIDTH_LINES * LINE;
constexpr Index TILES_M = (ROWS + BM - 1) / BM, TILES = BATCH * TILES_M;
constexpr int SLAB_ROWS = SPLITS > 1 ? 16 : 8, SLAB_COLUMNS = SPLITS > 1 ? WIDE : 64;
constexpr bool LIFTED = LIFTS_PARTS<PARTS>;                    // p and V are scaled by 2^15

static_assert(BM % WM == 0 && WM == 64 && BN % LINE == 0 && BN <= 256 && WIDE <= 256,
              "groups of warps multiply whole lines");
static_assert(sizeof(Element) == 2 && GROUPS >= 2 && GROUPS <= 4, "as registers are dealt");
static_assert(BLOCKS * TURNS >= TILES, "all tiles are made");
static_assert(SPLITS == 1 || (BM == WM && TURNS == 1), "warps that share columns have the same rows");

// A tile of Q, K or V in shared memory, in the layout of describe_operand(): PARTS parts of 64 elements of
// all lines.
template <int LINES, int PARTS> struct Tile {
    static constexpr int ELEMENTS = LINES * PARTS * LINE, BYTES = ELEMENTS * (int)sizeof(Element);
    Element at[ELEMENTS];

    // By the producer thread.
    __device__ __forceinline__ void fetch(const TensorMap *map, Corner corner, Index line,
                                          unsigned long long *full)
    {
        mbarrier_expect(full, BYTES);
        UNROLL for (int part = 0; part < PARTS; ++part)
            copy_box(at + part * LINES * LINE, map, corner.x + part * LINE, (int)line, corner.z, full);
    }
    // Descriptors of an operand from a line and an element on: the sum runs along a line, or from line to
    // line.
    __device__ __forceinline__ unsigned long long along(int line, int element) const
    {
        const int part = element / LINE;
        return describe_operand(at + part * LINES * LINE + line * LINE + element % LINE, 1024, 1024);
    }
    __device__ __forceinline__ unsigned long long across(int line) const
    {
        return describe_operand(at + line * LINE, LINES * LINE * (int)sizeof(Element), 1024);
    }
};
using TileQ = Tile<BM, DEPTH_LINES>;
using TileK = Tile<BN, DEPTH_LINES>;
using TileV = Tile<BN, WIDTH_LINES>;

// Epilogue staging of a warp's rows of Y: eight rows of some columns, or all columns where they are reduced
// across groups.
struct Slab {
    float at[SLAB_ROWS][SLAB_COLUMNS + 8];   // padding: no bank conflicts in a store
    Row rows[SLAB_ROWS];
};

template <int COUNT> struct Ring {
    unsigned long long full[COUNT], free[COUNT];
};

// Tiles of the pipeline. If groups split the columns, slabs reuse them at the end.
struct Steps {
    TileK k[STAGES];
    TileV v[STAGES];
};
template <bool> struct SplitOf {
    Steps steps;
    Slab slabs[GROUPS * GROUP_WARPS];
};
template <> struct SplitOf<true> {
    union {
        Steps steps;
        Slab slabs[GROUP_WARPS];
    };
};
using Split = SplitOf<(SPLITS > 1)>;

// `turn`: that group may issue its products. `maxima`: of each group that splits the columns.
struct Shared {
    TileQ q[Q_STAGES];
    Split splits[SPLITS];
    Ring<Q_STAGES> q_ring;
    Ring<STAGES> k_ring[SPLITS], v_ring[SPLITS];
    union {
        unsigned long long turn[GROUPS];
        float maxima[SPLITS][SPLITS > 1 ? WM : 1];
    };
};
constexpr int ALIGNMENT = 1024;

// The position in a pipeline: the stage, and how often the stages were all used.
template <int COUNT> struct Place {
    int stage = 0;
    unsigned round = 0;

    __device__ __forceinline__ void step()
    {
        stage = stage + 1 == COUNT ? 0 : stage + 1;
        round += stage == 0;
    }
};

// The tile of Y of an iteration, and its columns from a multiple of BN on that are unmasked for any of its
// rows. Columns from `clear_begin` to `clear_end` are unmasked for all rows. In the last iteration, which may
// be partial, the last blocks have tiles. With masks, blocks take tiles in alternating order, which balances
// their columns.
struct Work {
    Index batch, row0, begin, end, clear_begin, clear_end;
    bool exists;

    __device__ __forceinline__ explicit Work(Index turn)
    {
        const Index own = MASKS && turn % 2 ? BLOCKS - 1 - (Index)blockIdx.x : (Index)blockIdx.x;
        const Index number = turn * BLOCKS + own - (turn + 1 == TURNS ? BLOCKS * TURNS - TILES : 0);
        const Index tile = BACKWARDS ? TILES - 1 - number : number;
        exists = number >= turn * BLOCKS;
        batch = tile / TILES_M;
        row0 = tile % TILES_M * BM;
        const Index last = op_min<Index>(row0 + BM, ROWS) - 1;
        begin = clear_begin = 0;
        end = clear_end = COLUMNS;
        if (MASKS) {
            const Index first_of[2] = {first_column(batch, row0), first_column(batch, last)};
            const Index end_of[2] = {end_column(batch, row0), end_column(batch, last)};
            begin = op_min<Index>(op_min<Index>(first_of[0], first_of[1]), COLUMNS - 1) / BN * BN;
            clear_begin = op_max<Index>(first_of[0], first_of[1]);
            end = op_max<Index>(op_max<Index>(end_of[0], end_of[1]), begin + 1);
            clear_end = op_min<Index>(end_of[0], end_of[1]);
        }
    }
};

// By the producer thread. All stages are free at first.
__device__ __forceinline__ void copy_tiles(const TensorMap *map_q, const TensorMap *map_k,
                                           const TensorMap *map_v, Shared &shared)
{
    Place<Q_STAGES> tile;
    Place<STAGES> place;
#pragma unroll 1
    for (int turn = 0; turn < TURNS; turn = next_turn(turn, TURNS)) {
        const Work work(turn);
        if (!work.exists)
            continue;
        mbarrier_wait(&shared.q_ring.free[tile.stage], (tile.round & 1) ^ 1);
        shared.q[tile.stage].fetch(map_q, q_corner(work.batch), work.row0, &shared.q_ring.full[tile.stage]);
        tile.step();
#pragma unroll 1
        for (Index first = work.begin; first < work.end; first += STEP, place.step()) {
            const int stage = place.stage;
            const unsigned used = (place.round & 1) ^ 1;
            UNROLL for (int i = 0; i < SPLITS; ++i) {
                const Index column = first + i * BN;
                if (SPLITS > 1 && column >= work.end)
                    break;
                mbarrier_wait(&shared.k_ring[i].free[stage], used);
                shared.splits[i].steps.k[stage].fetch(map_k, k_corner(work.batch), column,
                                                     &shared.k_ring[i].full[stage]);
            }
            UNROLL for (int i = 0; i < SPLITS; ++i) {
                const Index column = first + i * BN;
                if (SPLITS > 1 && column >= work.end)
                    break;
                mbarrier_wait(&shared.v_ring[i].free[stage], used);
                shared.splits[i].steps.v[stage].fetch(map_v, v_corner(work.batch), column,
                                                     &shared.v_ring[i].full[stage]);
            }
        }
    }
}

// One lane arrives for its warp.
__device__ __forceinline__ void arrive(unsigned long long *barrier)
{
    if ((int)threadIdx.x % WARP == 0)
        mbarrier_arrive(barrier);
}

// Orders the groups on the tensor cores: each lets the next one issue. Groups that split the columns do not
// wait.
struct Turns {
    unsigned done = 0;

    __device__ __forceinline__ void await(Shared &shared, int group) const
    {
        if (SPLITS == 1)
            mbarrier_wait(&shared.turn[group], (done & 1) ^ (group == 0 ? 1 : 0));
    }
    __device__ __forceinline__ void pass(Shared &shared, int group)
    {
        if (SPLITS == 1)
            arrive(&shared.turn[group + 1 == GROUPS ? 0 : group + 1]);
        ++done;
    }
};

// Online softmax of a lane's rows l / 4 and l / 4 + 8.
struct Softmax {
    float maximum[2], scaled[2], sum[2];   // scaled: M; sum: over this lane's columns only

    __device__ __forceinline__ Softmax()
    {
        UNROLL for (int half = 0; half < 2; ++half) {
            maximum[half] = scaled[half] = -infinity<float>();
            sum[half] = 0.0f;
        }
    }
    // Scores become p relative to the running maximum. `factor`: rescales the previous sums. While all scores
    // are -inf the sums stay 0.
    __device__ __forceinline__ void add(float (&s)[BN / 2], float (&factor)[2])
    {
        UNROLL for (int half = 0; half < 2; ++half) {
            float largest = s[half * 2];
            UNROLL for (int j = 0; j < BN / 8; ++j)
                UNROLL for (int e = 0; e < 2; ++e)
                    largest = op_max(largest, s[j * 4 + half * 2 + e]);
            largest = op_max(maximum[half], largest_of_row(largest));
            const float origin = origin_of(largest, SCALE);
            const float grown = origin != 0.0f ? 0.0f : scaled_of(largest, SCALE);
            const float base = largest == -infinity<float>() ? 0.0f : grown;
            const float grows = origin_of(maximum[half], SCALE) - origin;
            factor[half] = power_of_two(fmaf(grows, SCALE, scaled[half] - base));
            if (origin != 0.0f)
                UNROLL for (int j = 0; j < BN / 8; ++j)
                    UNROLL for (int e = 0; e < 2; ++e)
                        s[j * 4 + half * 2 + e] -= origin;
            maximum[half] = largest;
            scaled[half] = grown;
            float shares = 0.0f;
            UNROLL for (int j = 0; j < BN / 8; ++j)
                UNROLL for (int e = 0; e < 2; ++e) {
                    float &own = s[j * 4 + half * 2 + e];
                    own = power_of_two(fmaf(own, SCALE, -base));
                    shares += own;
                }
            sum[half] = fmaf(sum[half], factor[half], shares);
        }
    }
    // A row's result. `factor` corrects the rounding of M in all sums; it is NaN if no column is unmasked.
    __device__ __forceinline__ Row row(int half, float &factor) const
    {
        const float largest = maximum[half];
        factor = origin_of(largest, SCALE) != 0.0f
                     ? 1.0f
                     : power_of_two(-fmaf(largest, SCALE, -scaled_of(largest, SCALE)));
        const float total = sum_of_row(sum[half]) * factor;
        return {largest, total, 1.0f / total};
    }
};

// Issues a group's product Q K of a step, after open_products(). s is valid once it was waited for.
__device__ __forceinline__ void begin_scores(float (&s)[BN / 2], const TileQ &q, const TileK &k, int rows)
{
    begin_product<false, false>(Product<Element, BN>(), s, q.along(rows, 0), k.along(0, 0));
    UNROLL for (int d = 1; d < DEPTHS; ++d)
        multiply_shared<false, false>(Product<Element, BN>(), s, q.along(rows, d * 16),
                                      k.along(0, d * 16));
    close_products();
}

// Issues the product p V of a step.
__device__ __forceinline__ void begin_sums(float (&acc)[WIDE / 2], const unsigned (&p)[PARTS][BN / 16][4],
                                           const TileV &v)
{
    UNROLL for (int j = 0; j < BN / 16; ++j)
        UNROLL for (int part = PARTS - 1; part >= 0; --part)   // smallest parts first
            multiply_held<true>(Held<Element, WIDE>(), acc, p[part][j], v.across(j * 16));
    close_products();
}

// Applies the expression and the mask to s.
__device__ __forceinline__ void finish_scores(const Tensors &t, const Work &work, Index row, Index column,
                                              float (&s)[BN / 2])
{
    const int lane = (int)threadIdx.x % WARP;
    const auto line = [&](int i) { return op_min<Index>(row + i / 2 % 2 * 8, ROWS - 1); };
    const auto place = [&](int i) { return column + i / 4 * 8 + lane % 4 * 2 + i % 2; };
    if (column >= work.clear_begin && column + BN <= work.clear_end) {
        UNROLL for (int i = 0; i < BN / 2; ++i)
            s[i] = score<true>(t, work.batch, line(i), place(i), s[i]);
    } else {
        UNROLL for (int i = 0; i < BN / 2; ++i)
            s[i] = place(i) < COLUMNS ? score<false>(t, work.batch, line(i), place(i), s[i])
                                      : -infinity<float>();
    }
}

__device__ __forceinline__ void take_shares(const float (&s)[BN / 2], unsigned (&p)[PARTS][BN / 16][4])
{
    UNROLL for (int j = 0; j < BN / 16; ++j)
        UNROLL for (int i = 0; i < 4; ++i) {
            const float low = s[j * 8 + i * 2], high = s[j * 8 + i * 2 + 1];
            if (PARTS == 1) {
                p[0][j][i] = pair_of(Element(), low, high);
            } else {
                const PairParts<Element, PARTS> pair(low, high);
                UNROLL for (int part = 0; part < PARTS; ++part)
                    p[part][j][i] = pair.at[part];
            }
            UNROLL for (int part = 0; part < PARTS; ++part)
                p[part][j][i] = hold_word(p[part][j][i]);
        }
}

// A group's rows of a tile. The first step is peeled, and always exists: otherwise the compiler moves
// accumulators between registers, which serialises the products.
__device__ __forceinline__ void stream(const Tensors &t, Shared &shared, const Work &work,
                                       const Place<Q_STAGES> &tile, Place<STAGES> &place, Turns &turns,
                                       int group, Index row, float (&acc)[WIDE / 2], Softmax &softmax)
{
    float s[BN / 2], factor[2];
    unsigned p[PARTS][BN / 16][4];
    const TileQ &q = shared.q[tile.stage];
    const int split = SPLITS > 1 ? group : 0, rows = SPLITS > 1 ? 0 : group * WM;
    const Steps &steps = shared.splits[split].steps;
    Ring<STAGES> &k_ring = shared.k_ring[split], &v_ring = shared.v_ring[split];
    const Index begin = work.begin + split * BN;
    if (SPLITS > 1 && begin >= work.end)
        return;
    mbarrier_wait(&shared.q_ring.full[tile.stage], tile.round & 1);
    mbarrier_wait(&k_ring.full[place.stage], place.round & 1);
    turns.await(shared, group);
    open_products(acc);
    begin_scores(s, q, steps.k[place.stage], rows);
    turns.pass(shared, group);
    wait_products<0>(s);
    arrive(&k_ring.free[place.stage]);
    finish_scores(t, work, row, begin, s);
    softmax.add(s, factor);
    take_shares(s, p);
    Place<STAGES> last = place;   // the step whose p is not yet multiplied
    place.step();
#pragma unroll 1
    for (Index column = begin + STEP; column < work.end; column += STEP, place.step()) {
        mbarrier_wait(&k_ring.full[place.stage], place.round & 1);
        turns.await(shared, group);
        open_products(acc);
        begin_scores(s, q, steps.k[place.stage], rows);
        mbarrier_wait(&v_ring.full[last.stage], last.round & 1);
        begin_sums(acc, p, steps.v[last.stage]);
        turns.pass(shared, group);
        wait_products<1>(s);
        arrive(&k_ring.free[place.stage]);
        finish_scores(t, work, row, column, s);
        softmax.add(s, factor);
        wait_products<0>(acc);
        arrive(&v_ring.free[last.stage]);
        UNROLL for (int i = 0; i < WIDE / 2; ++i)
            acc[i] *= factor[i / 2 % 2];
        take_shares(s, p);
        last = place;
    }
    arrive(&shared.q_ring.free[tile.stage]);
    mbarrier_wait(&v_ring.full[last.stage], last.round & 1);
    open_products(acc);
    begin_sums(acc, p, steps.v[last.stage]);
    wait_products<0>(acc);
    arrive(&v_ring.free[last.stage]);
}

// Epilogue: a warp stages eight of its rows at a time in shared memory, so that stores are coalesced.
__device__ __forceinline__ void store_rows(const Tensors &t, Slab &slab, const Work &work, Index row0,
                                           const float (&acc)[WIDE / 2], const Softmax &softmax)
{
    constexpr int VECTORS = 8 * SLAB_COLUMNS / QN;   // in whole warp accesses
    const int lane = (int)threadIdx.x % WARP;
    UNROLL for (int half = 0; half < 2; ++half) {
        const Index first = row0 + half * 8;
        float factor;
        const Row own = softmax.row(half, factor);
        const float lowered = LIFTED ? factor * 0x1p-15f : factor;
        if (lane % 4 == 0)
            slab.rows[lane / 4] = own;
        if (lane % 4 == 0 && first + lane / 4 < ROWS)
            finish_row(t, work.batch, first + lane / 4, own);
        UNROLL for (int part = 0; part < WIDTH_LINES; ++part) {
            UNROLL for (int j = 0; j < SLAB_COLUMNS / 8; ++j) {
                const int at = (part * (SLAB_COLUMNS / 8) + j) * 4 + half * 2;
                const float two[2] = {acc[at] * lowered, acc[at + 1] * lowered};
                move_vector<2>(slab.at[lane / 4] + j * 8 + lane % 4 * 2, two);
            }
            warp_sync();
            UNROLL_4 for (int round = 0; round < VECTORS / WARP; ++round) {
                const int number = round * WARP + lane;
                const int line = number / (SLAB_COLUMNS / QN), column = number % (SLAB_COLUMNS / QN) * QN;
                const int n = part * SLAB_COLUMNS + column;
                if (first + line < ROWS && n < WIDTH) {
                    float totals[QN];
                    load_vector<QN>(slab.at[line], column, totals);
                    finish_vector(t, work.batch, first + line, n, totals, slab.rows[line]);
                }
            }
            warp_sync();
        }
    }
}

// Synchronises all threads: after the tiles were used, and after the sums were written.
__device__ __forceinline__ void meet() { roles_sync<(1 + GROUPS) * GROUP_WARPS * WARP>(); }

// Groups exchange the maximum of each row, then write their sums, scaled to it, over their tiles. A group
// whose columns are all masked or negligible writes zeros.
__device__ __forceinline__ void leave_rows(Shared &shared, int split, const float (&acc)[WIDE / 2],
                                           const Softmax &softmax)
{
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP % GROUP_WARPS;
    Slab &slab = shared.splits[split].slabs[warp];
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
        const Row own = softmax.row(half, factor);
        const float lowered = (LIFTED ? factor * 0x1p-15f : factor) * weight;
        const bool counts = weight != 0.0f;
        if (lane % 4 == 0)
            slab.rows[line] = {largest, counts ? own.sum * weight : 0.0f, 0.0f};
        UNROLL for (int j = 0; j < WIDE / 8; ++j) {
            const int at = j * 4 + half * 2;
            const float two[2] = {counts ? acc[at] * lowered : 0.0f, counts ? acc[at + 1] * lowered : 0.0f};
            move_vector<2>(slab.at[line] + j * 8 + lane % 4 * 2, two);
        }
    }
}

// Sums QN columns over the slabs of all groups. Of eight lanes that read 16 bytes each, half begin with the
// second half of their columns: no bank conflicts.
__device__ __forceinline__ Row combine(const Shared &shared, int row, int n, float (&totals)[QN])
{
    constexpr int HALF = QN == 8 ? 4 : QN;
    const int slab = row / SLAB_ROWS, line = row % SLAB_ROWS;
    const bool turned = QN == 8 && n & 32;
    float sum = 0.0f, sums[QN] = {};
    UNROLL for (int i = 0; i < SPLITS; ++i) {
        const Slab &of = shared.splits[i].slabs[slab];
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
    return {shared.splits[0].slabs[slab].rows[line].maximum, sum, 1.0f / sum};
}

// By the consumer groups.
__device__ __forceinline__ void combine_and_store(const Tensors &t, const Shared &shared, const Work &work)
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
        finish_vector(t, work.batch, work.row0 + line, n, totals, own);
    }
}

// By warps 0 to 2.
__device__ __forceinline__ void begin_barriers(Shared &shared, int warp)
{
    const int lane = (int)threadIdx.x % WARP, split = lane / STAGES, stage = lane % STAGES;
    if (warp == 0 && split < SPLITS) {
        mbarrier_init(&shared.k_ring[split].full[stage], 1);
        mbarrier_init(&shared.v_ring[split].full[stage], 1);
        mbarrier_init(&shared.k_ring[split].free[stage], GROUPS * 4 / SPLITS);
        mbarrier_init(&shared.v_ring[split].free[stage], GROUPS * 4 / SPLITS);
    } else if (warp == 1 && lane < Q_STAGES) {
        mbarrier_init(&shared.q_ring.full[lane], 1);
        mbarrier_init(&shared.q_ring.free[lane], GROUPS * 4);
    } else if (SPLITS == 1 && warp == 2 && lane < GROUPS) {
        mbarrier_init(&shared.turn[lane], 4);
    }
}

extern "C" __global__ void __launch_bounds__((1 + GROUPS) * GROUP_WARPS * WARP, 1)
    ENTRY(PARAMETERS, const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
          const __grid_constant__ TensorMap map_c)
{
    const unsigned skipped = (0u - shared_address(rollerc_shared)) % ALIGNMENT;
    Shared &shared = *reinterpret_cast<Shared *>(rollerc_shared + skipped);
    static_assert((int)sizeof(Shared) + ALIGNMENT <= EVERYTHING.bytes, "it fits, wherever it begins");
    const int warp = same_in_warp((int)threadIdx.x / WARP);

    begin_barriers(shared, warp);
    if (threadIdx.x == 3 * WARP) {
        prefetch_map(&map_a);
        prefetch_map(&map_b);
        prefetch_map(&map_c);
    }
    block_sync();
    const Tensors t = TENSORS;

    if (warp < GROUP_WARPS) {
        // Load.
        give_registers<GROUPS == 3 ? 32 : 24>();
        if (threadIdx.x == 0)
            copy_tiles(&map_a, &map_b, &map_c, shared);
        if (SPLITS > 1) {
            meet();
            meet();
        }
    } else {
        // Compute and store.
        take_registers<GROUPS == 2 ? 240 : GROUPS == 3 ? 160 : 112>();
        const int group = warp / GROUP_WARPS - 1;
        Place<Q_STAGES> tile;
        Place<STAGES> place;
        Turns turns;
#pragma unroll 1
        for (int turn = 0; turn < TURNS; turn = next_turn(turn, TURNS)) {
            const Work work(turn);
            if (!work.exists)
                continue;
            const Index row0 = work.row0 + (SPLITS > 1 ? 0 : group * WM) + warp % 4 * 16;
            const Index row = row0 + (int)threadIdx.x % WARP / 4;
            float acc[WIDE / 2] = {};   // (WM,WIDTH) of four warps
            Softmax softmax;
            stream(t, shared, work, tile, place, turns, group, row, acc, softmax);
            tile.step();
            if (SPLITS > 1) {
                leave_rows(shared, group, acc, softmax);
                combine_and_store(t, shared, work);
            } else {
                store_rows(t, shared.splits[0].slabs[warp - GROUP_WARPS], work, row0, acc, softmax);
            }
        }
    }
}
}   // namespace KERNEL
