// A softmax between two products, in one pass, on the tensor cores of sm_90a:
//
//   s[i,j] = sum over d of Q[i,d] * K[j,d]
//   p[i,j] = exp(s[i,j] - maximum of row i)
//   Y[i,n] = sum over j of p[i,j] * V[j,n]
//
// templates/attention.cu says how rows are kept while columns go by: of its rows a group of four warps has
// the largest score so far and the sums of p and of p * V for that one. Here warps have roles: one thread
// copies boxes of Q, K and V to shared memory, while GROUPS groups of four warps each have WM = 64 of the
// block's BM rows (Shah et al., "FlashAttention-3", 2024).
//
// Scores of a step begin before the last step's p is multiplied by V, and while that product goes on they
// become the next p:
//
//   tensor cores    s0 = Q K0 |              s1 = Q K1 | Y += p0 V0 |              s2 = Q K2 | Y += p1 V1 | …
//   four warps                | p0 = softmax           |            p1 = softmax             |            …
//
// Groups take turns at the tensor cores, so that one makes its softmax while another's products go on. Rings
// of STAGES tiles of K and of V have two barriers a stage, `full` and `free`, as those of templates/bulk.cu,
// and so has one of Q_STAGES tiles of Q. Blocks make several tiles of Y, one after the other: what the next
// one needs is copied while this one ends.
//
// Where there are few tiles, WALKERS groups have the same rows and other columns: each goes from one of its
// steps to the next by itself. In the end they agree on the largest scores, and add up what they have made, in
// a fixed order, by way of shared memory. A block makes one tile.
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
constexpr Region EVERYTHING = {0, 216976};   // of shared memory: where it begins, bytes
constexpr int SHARED_BYTES = 216976;                           // of a block
using Element = f16;                                           // of Q, K, V, and of p
constexpr Index BATCH = 16, ROWS = 1024, COLUMNS = 1024;       // problem
constexpr int DEPTH = 128, WIDTH = 128;
constexpr int BM = 128, BN = 128;                              // rTile, shared memory
constexpr int WM = 64;                                         // rTile, registers of a group of four warps
constexpr int PARTS = 1;                                       // elements whose sum a share is
constexpr int WALKERS = 1;                                     // groups that share the columns
constexpr int STAGES = 2;                                      // steps of tiles in shared memory
constexpr int Q_STAGES = 2;                                    // tiles of Q there
constexpr bool BACKWARDS = false;                              // the last rows, of most columns, come first
constexpr bool MASKS = false;                                  // some columns are left out, by where they are
constexpr float SCALE = 0.12751743f;                           // of scores, and log2(e)
constexpr int QN = 8;                                          // columns of Y that are one aligned access
constexpr int TURNS = 1;                                       // tiles of Y that a block makes
constexpr Index BLOCKS = 128;

// Where a product's part of a tensor begins, as bulk copies see it.
struct Corner {
    int x, z;
};
__device__ __forceinline__ Corner q_corner(Index batch) { return {0, (int)batch}; }
__device__ __forceinline__ Corner k_corner(Index batch) { return {0, (int)batch}; }
__device__ __forceinline__ Corner v_corner(Index batch) { return {0, (int)batch}; }

// The columns of a row that count.
__device__ __forceinline__ Index first_column(Index batch, Index row) { return 0; }
__device__ __forceinline__ Index end_column(Index batch, Index row) { return COLUMNS; }

// What is made of s; INSIDE: its column is one of those.
template <bool INSIDE>
__device__ __forceinline__ float score(const Tensors &t, Index batch, Index row, Index column, float total)
{
    return total;
}

struct Row {
    float maximum, sum, inverse;   // of scores, of p, and of that sum
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

constexpr int GROUPS = BM / WM * WALKERS, GROUP_WARPS = 4;
constexpr Index STEP = BN * WALKERS;                           // columns of all of them
constexpr int LINE = 64;                                       // elements of a line of shared memory
constexpr int DEPTHS = (DEPTH + 15) / 16, DEPTH_LINES = (DEPTH + LINE - 1) / LINE;
constexpr int WIDTH_LINES = (WIDTH + LINE - 1) / LINE;
constexpr int WIDE = WIDTH_LINES * LINE;
constexpr Index TILES_M = (ROWS + BM - 1) / BM, TILES = BATCH * TILES_M;
constexpr int SLAB_ROWS = WALKERS > 1 ? 16 : 8, SLAB_COLUMNS = WALKERS > 1 ? WIDE : 64;
constexpr bool LIFTED = LIFTS_PARTS<PARTS>;                    // sums of p * V are

static_assert(BM % WM == 0 && WM == 64 && BN % LINE == 0 && BN <= 256 && WIDE <= 256,
              "groups of warps multiply whole lines");
static_assert(sizeof(Element) == 2 && GROUPS >= 2 && GROUPS <= 4, "as registers are dealt");
static_assert(BLOCKS * TURNS >= TILES, "all tiles are made");
static_assert(WALKERS == 1 || (BM == WM && TURNS == 1), "warps that share columns have the same rows");

// A factor's tile in shared memory, as describe_operand() has it: of so many lines, parts of 64 elements
// behind each other.
template <int LINES, int PARTS> struct Tile {
    static constexpr int ELEMENTS = LINES * PARTS * LINE, BYTES = ELEMENTS * (int)sizeof(Element);
    Element at[ELEMENTS];

    // By one thread.
    __device__ __forceinline__ void fetch(const TensorMap *map, Corner corner, Index line,
                                          unsigned long long *full)
    {
        mbarrier_expect(full, BYTES);
        UNROLL for (int part = 0; part < PARTS; ++part)
            copy_box(at + part * LINES * LINE, map, corner.x + part * LINE, (int)line, corner.z, full);
    }
    // From this line and element on; the sum goes along the lines, or from one to the next.
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

// Rows of a warp's part of Y on their way to memory: eight and some columns, or all of them where they are
// combined.
struct Slab {
    float at[SLAB_ROWS][SLAB_COLUMNS + 8];   // no two lanes of those that write together meet in a bank
    Row rows[SLAB_ROWS];
};

template <int COUNT> struct Ring {
    unsigned long long full[COUNT], free[COUNT];
};

// What walkers have: tiles of their steps, and slabs, which take their place when all columns have gone by.
struct Steps {
    TileK k[STAGES];
    TileV v[STAGES];
};
template <bool> struct WalkOf {
    Steps steps;
    Slab slabs[GROUPS * GROUP_WARPS];
};
template <> struct WalkOf<true> {
    union {
        Steps steps;
        Slab slabs[GROUP_WARPS];
    };
};
using Walk = WalkOf<(WALKERS > 1)>;

// What a block has in shared memory. `turn`: that group may begin its products; `maxima` of walkers' rows.
struct Shared {
    TileQ q[Q_STAGES];
    Walk walks[WALKERS];
    Ring<Q_STAGES> q_ring;
    Ring<STAGES> k_ring[WALKERS], v_ring[WALKERS];
    union {
        unsigned long long turn[GROUPS];
        float maxima[WALKERS][WALKERS > 1 ? WM : 1];
    };
};
constexpr int ALIGNMENT = 1024;

// Where one is in a ring of stages, and how often one has walked through it.
template <int COUNT> struct Place {
    int stage = 0;
    unsigned round = 0;

    __device__ __forceinline__ void step()
    {
        stage = stage + 1 == COUNT ? 0 : stage + 1;
        round += stage == 0;
    }
};

// The tile of Y that this block makes in a turn, and the columns that count for any of its rows, from a
// multiple of BN on; those from `clear_begin` to `clear_end` count for all. Of the last turn, which may have
// fewer, the last blocks make them. Where some rows have fewer columns blocks are dealt tiles from the first
// to the last and back again, so that all have about as many in the end.
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

// By one thread. At first it is as if all had been used.
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
            UNROLL for (int i = 0; i < WALKERS; ++i) {
                const Index column = first + i * BN;
                if (WALKERS > 1 && column >= work.end)
                    break;
                mbarrier_wait(&shared.k_ring[i].free[stage], used);
                shared.walks[i].steps.k[stage].fetch(map_k, k_corner(work.batch), column,
                                                     &shared.k_ring[i].full[stage]);
            }
            UNROLL for (int i = 0; i < WALKERS; ++i) {
                const Index column = first + i * BN;
                if (WALKERS > 1 && column >= work.end)
                    break;
                mbarrier_wait(&shared.v_ring[i].free[stage], used);
                shared.walks[i].steps.v[stage].fetch(map_v, v_corner(work.batch), column,
                                                     &shared.v_ring[i].full[stage]);
            }
        }
    }
}

// By each warp.
__device__ __forceinline__ void arrive(unsigned long long *barrier)
{
    if ((int)threadIdx.x % WARP == 0)
        mbarrier_arrive(barrier);
}

// Groups of warps that take turns: each lets the next one begin. Walkers don't.
struct Turns {
    unsigned done = 0;

    __device__ __forceinline__ void await(Shared &shared, int group) const
    {
        if (WALKERS == 1)
            mbarrier_wait(&shared.turn[group], (done & 1) ^ (group == 0 ? 1 : 0));
    }
    __device__ __forceinline__ void pass(Shared &shared, int group)
    {
        if (WALKERS == 1)
            arrive(&shared.turn[group + 1 == GROUPS ? 0 : group + 1]);
        ++done;
    }
};

// The rows of a lane, l / 4 and 8 further down.
struct Softmax {
    float maximum[2], scaled[2], sum[2];   // scaled: M; sums of this lane's columns alone

    __device__ __forceinline__ Softmax()
    {
        UNROLL for (int half = 0; half < 2; ++half) {
            maximum[half] = scaled[half] = -infinity<float>();
            sum[half] = 0.0f;
        }
    }
    // Scores become shares of what the largest so far would have, which may grow. `factor`: what all sums so
    // far are multiplied by. As long as all scores are -inf nothing is added up.
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
    // Of a whole row. M was rounded, and all sums are off by the same factor, which is NaN where no column
    // counts.
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

// By a group of warps: its rows' scores of a step, when open_products() has been called. They are there once
// one has waited.
__device__ __forceinline__ void begin_scores(float (&s)[BN / 2], const TileQ &q, const TileK &k, int rows)
{
    begin_product<false, false>(Product<Element, BN>(), s, q.along(rows, 0), k.along(0, 0));
    UNROLL for (int d = 1; d < DEPTHS; ++d)
        multiply_shared<false, false>(Product<Element, BN>(), s, q.along(rows, d * 16),
                                      k.along(0, d * 16));
    close_products();
}

// The same of the second product.
__device__ __forceinline__ void begin_sums(float (&acc)[WIDE / 2], const unsigned (&p)[PARTS][BN / 16][4],
                                           const TileV &v)
{
    UNROLL for (int j = 0; j < BN / 16; ++j)
        UNROLL for (int part = PARTS - 1; part >= 0; --part)   // small ones first
            multiply_held<true>(Product<Element, WIDE>(), acc, p[part][j], v.across(j * 16));
    close_products();
}

// What the expression makes of them.
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
                hold_word(p[part][j][i]);
        }
}

// By a group of warps: its rows of a tile. Its first step stands before the loop, and there always is one:
// else the compiler moves sums between registers, and products wait for that.
__device__ __forceinline__ void stream(const Tensors &t, Shared &shared, const Work &work,
                                       const Place<Q_STAGES> &tile, Place<STAGES> &place, Turns &turns,
                                       int group, Index row, float (&acc)[WIDE / 2], Softmax &softmax)
{
    float s[BN / 2], factor[2];
    unsigned p[PARTS][BN / 16][4];
    const TileQ &q = shared.q[tile.stage];
    const int walker = WALKERS > 1 ? group : 0, rows = WALKERS > 1 ? 0 : group * WM;
    const Steps &steps = shared.walks[walker].steps;
    Ring<STAGES> &k_ring = shared.k_ring[walker], &v_ring = shared.v_ring[walker];
    const Index begin = work.begin + walker * BN;
    if (WALKERS > 1 && begin >= work.end)
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
    Place<STAGES> last = place;   // the step whose p waits to be multiplied
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

// By each warp: eight of its rows at a time by way of shared memory, so that lanes side by side have columns
// side by side.
__device__ __forceinline__ void store_rows(const Tensors &t, Slab &slab, const Work &work, Index row0,
                                           const float (&acc)[WIDE / 2], const Softmax &softmax)
{
    constexpr int VECTORS = 8 * SLAB_COLUMNS / QN;   // whole rounds of a warp
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

// By all threads of both roles, twice: walkers have used their tiles, and have left their rows.
__device__ __forceinline__ void meet() { roles_sync<(1 + GROUPS) * GROUP_WARPS * WARP>(); }

// By the groups: when each knows the largest score of a row of all, they leave their sums, scaled for that
// one, in the place of their tiles. A walker without a column that counts, or with none that counts beside that
// score, leaves zeros.
__device__ __forceinline__ void leave_rows(Shared &shared, int walker, const float (&acc)[WIDE / 2],
                                           const Softmax &softmax)
{
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP % GROUP_WARPS;
    Slab &slab = shared.walks[walker].slabs[warp];
    UNROLL for (int half = 0; half < 2; ++half)
        if (lane % 4 == 0)
            shared.maxima[walker][warp * 16 + half * 8 + lane / 4] = softmax.maximum[half];
    meet();
    UNROLL for (int half = 0; half < 2; ++half) {
        const int line = half * 8 + lane / 4;
        float largest = shared.maxima[0][warp * 16 + line], factor;
        UNROLL for (int i = 1; i < WALKERS; ++i)
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

// Neighbours in a row of all walkers' slabs. Of eight lanes, which read 16 bytes each at a time, half begin
// with the other half of their columns: they read all banks.
__device__ __forceinline__ Row combine(const Shared &shared, int row, int n, float (&totals)[QN])
{
    constexpr int HALF = QN == 8 ? 4 : QN;
    const int slab = row / SLAB_ROWS, line = row % SLAB_ROWS;
    const bool turned = QN == 8 && n & 32;
    float sum = 0.0f, sums[QN] = {};
    UNROLL for (int i = 0; i < WALKERS; ++i) {
        const Slab &of = shared.walks[i].slabs[slab];
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
    return {shared.walks[0].slabs[slab].rows[line].maximum, sum, 1.0f / sum};
}

// By the groups.
__device__ __forceinline__ void combine_and_store(const Tensors &t, const Shared &shared, const Work &work)
{
    constexpr unsigned VECTORS = WIDTH / QN, THREADS = GROUPS * GROUP_WARPS * WARP;   // of a row
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

// By warps 0 to 2, each lane some of them.
__device__ __forceinline__ void begin_barriers(Shared &shared, int warp)
{
    const int lane = (int)threadIdx.x % WARP, walker = lane / STAGES, stage = lane % STAGES;
    if (warp == 0 && walker < WALKERS) {
        mbarrier_init(&shared.k_ring[walker].full[stage], 1);
        mbarrier_init(&shared.v_ring[walker].full[stage], 1);
        mbarrier_init(&shared.k_ring[walker].free[stage], GROUPS * 4 / WALKERS);
        mbarrier_init(&shared.v_ring[walker].free[stage], GROUPS * 4 / WALKERS);
    } else if (warp == 1 && lane < Q_STAGES) {
        mbarrier_init(&shared.q_ring.full[lane], 1);
        mbarrier_init(&shared.q_ring.free[lane], GROUPS * 4);
    } else if (WALKERS == 1 && warp == 2 && lane < GROUPS) {
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
        if (WALKERS > 1) {
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
            const Index row0 = work.row0 + (WALKERS > 1 ? 0 : group * WM) + warp % 4 * 16;
            const Index row = row0 + (int)threadIdx.x % WARP / 4;
            float acc[WIDE / 2] = {};   // (WM,WIDTH) of four warps
            Softmax softmax;
            stream(t, shared, work, tile, place, turns, group, row, acc, softmax);
            tile.step();
            if (WALKERS > 1) {
                leave_rows(shared, group, acc, softmax);
                combine_and_store(t, shared, work);
            } else {
                store_rows(t, shared.walks[0].slabs[warp - GROUP_WARPS], work, row0, acc, softmax);
            }
        }
    }
}
}   // namespace KERNEL
