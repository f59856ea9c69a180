// Skinny matrix multiply: C[b,m,n] = sum over k of A[b,m,k] * B[b,k,n] with few rows m, and a pointwise epilogue.
// It is bound by the bandwidth of memory: B is read once. With one row it is a matrix-vector product.
//
// A block computes all M rows of BN columns. Each thread iterates over k in steps of BK and accumulates M rows by
// TN columns. It loads TN columns by TK of k of B into registers, and then all rows of A at these k, which hit L1.
//
//   B contiguous along k: adjacent threads along k            else: along n
//
//              k ->                                               n ->
//      n     0    1    2  …  THREADS_K - 1 |  0  1  …       k    0    1    2  …  THREADS_N - 1
//      |     K    K+1  …                                    |    N    N+1  …
//      v     2K   …                                         v    2N   …
//
// At the end sums are reduced across the threads of a column. Within a warp each exchange halves the sums of a
// lane. Example of 4 sums and 4 lanes:
//
//   mask 2    lanes 0, 1 keep sums 0 and 1 of both, lanes 2, 3 sums 2 and 3
//   mask 1    lane 0 keeps sum 0 of all four, lane 1 sum 1, …
//
// The remaining PARTS are reduced through shared memory. In cluster split-K each block first reduces its own sums,
// then some of the sums across all blocks, in a fixed order.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // A[4, 4096]
    const float *in1;   // B[4096, 4096]
    float *out0;        // C[4, 4096]
};
#define PARAMETERS const float *__restrict__ in0, const float *__restrict__ in1, float *__restrict__ out0
#define TENSORS {in0, in1, out0}
constexpr Region PARTIAL = {0, 4096};   // of shared memory, in bytes
constexpr int SHARED_BYTES = 4096;   // of a block
using Value = float;                                          // of products and sums
constexpr Index N = 4096, K = 4096;
constexpr int M = 4;                                          // rows
constexpr int BN = 32, BK = 256;                              // rTile, block
constexpr int TN = 4, TK = 8;                                 // rTile, registers
constexpr int THREADS = 256, MIN_BLOCKS_PER_SM = 1;   // of the launch bounds
constexpr int CLUSTER = 1;                                    // blocks of a cluster that split k
constexpr bool STORES_ALONG_M = false;                        // C is contiguous along m
constexpr int QN = 1;                                         // columns of C in one aligned access

struct OperandA {
    static constexpr bool ALONG_K = true;   // k is contiguous in memory
    static constexpr int VECTOR = 4;        // elements of one access
    static __device__ __forceinline__ void read(const Tensors &t, Index batch, Index m, Index k, Value (&v)[VECTOR])
    {
        load_vector<VECTOR>(t.in0, m * 4096 + k, v);
    }
};
struct OperandB {
    static constexpr bool ALONG_K = false;
    static constexpr int VECTOR = 4;
    static __device__ __forceinline__ void read(const Tensors &t, Index batch, Index n, Index k, Value (&v)[VECTOR])
    {
        stream_vector<VECTOR>(t.in1, k * 4096 + n, v);
    }
};

// What the epilogue loads besides the sums of QN columns of a row: per row, and per column.
struct Beside {};
__device__ __forceinline__ void read_beside(const Tensors &, Index, Index, Index, Beside &) {}
struct Columns {};
__device__ __forceinline__ void read_columns(const Tensors &, Index, Index, Index, Columns &) {}
__device__ __forceinline__ void finish_vector(const Tensors &t, Index batch, Index m, Index n,
                                              const Value (&total)[QN], const Beside &, const Columns &)
{
    store_vector<QN>(t.out0, m * 4096 + n, total);
}
// </rollerc>

constexpr bool ALONG_K = OperandB::ALONG_K;
constexpr int VECTOR_K = ALONG_K ? OperandB::VECTOR : 1, VECTOR_N = ALONG_K ? 1 : OperandB::VECTOR;
constexpr int THREADS_N = BN / TN, THREADS_K = BK / TK, USED = THREADS_N * THREADS_K;
constexpr int RUN = ALONG_K ? VECTOR_K : TK;   // contiguous k of a thread
constexpr int RUNS = TK / RUN;                 // of a thread, THREADS_K runs apart
constexpr int STEP_M = OperandA::ALONG_K ? 1 : OperandA::VECTOR, STEP_K = OperandA::ALONG_K ? OperandA::VECTOR : 1;

// Lanes that share columns: a power of two of them, LANE_STRIDE apart.
constexpr int LANE_STRIDE = ALONG_K ? 1 : THREADS_N;
constexpr int LANES = ALONG_K ? (THREADS_K | WARP) & -(THREADS_K | WARP)
                      : WARP % THREADS_N != 0 ? 1
                      : THREADS_K % (WARP / THREADS_N) == 0 ? WARP / THREADS_N
                                                            : 1;
constexpr int PARTS = THREADS_K / LANES;
constexpr int SUMS = M * TN;
constexpr Index BLOCKS_N = (N + BN - 1) / BN;

// The step that reaches past the end: where it begins, and its runs, of which the last one may end within. It is one step of the
// whole block: were it whole for some lanes of a warp, the warp would take it twice.
constexpr Index LAST = K / BK * BK;
constexpr int LAST_RUNS = (K - LAST + THREADS_K * RUN - 1) / (THREADS_K * RUN);
template <bool WHOLE> __device__ __forceinline__ bool is_inside(int run, Index k)
{
    return WHOLE || run + 1 < LAST_RUNS || k < K;
}
constexpr bool ALONE = CLUSTER == 1;   // no split-K
constexpr bool JOINS = !ALONE && PARTS > 1;   // the block reduces its parts before others read them
constexpr int LEFT = JOINS ? 1 : PARTS;       // parts of a block's sum

static_assert(BN % TN == 0 && BK % TK == 0 && USED <= THREADS, "threads cover the block's tile");
static_assert(THREADS % WARP == 0, "whole warps, some of whose threads may idle");
static_assert(TN % VECTOR_N == 0 && TK % RUN == 0, "a thread reads whole vectors of B");
static_assert((CLUSTER - 1) * (Index)BK < K, "every block of a cluster has a step");
static_assert(N % VECTOR_N == 0 && K % VECTOR_K == 0, "no vector of B reaches past the end");
static_assert(PARTS * M * BN * (int)sizeof(Value) <= PARTIAL.bytes, "all parts have room in shared memory");
static_assert(BN % QN == 0 && N % QN == 0 && (QN == 1 || !STORES_ALONG_M), "rows of C hold whole vectors");
static_assert(M % STEP_M == 0 && RUN % STEP_K == 0 && K % STEP_K == 0, "nor does one of A");

// A thread's columns are TN / VECTOR_N vectors, THREADS_N vectors apart.
__device__ __forceinline__ int column_of(int tn, int j)
{
    return (j / VECTOR_N * THREADS_N + tn) * VECTOR_N + j % VECTOR_N;
}

// The sums of M rows by TN columns. After the reduction across lanes this one has those from `first` on, if any.
struct Sums {
    Value at[SUMS];
    int first;
    bool none;
};

// Reduces COUNT sums across lanes MASK apart and nearer. Each lane keeps one half of them; the lower one keeps all
// if their number is odd.
template <int COUNT, int MASK, bool MORE = (MASK >= LANE_STRIDE)> struct Halve {
    static constexpr int KEPT = COUNT % 2 == 0 ? COUNT / 2 : COUNT;
    using Next = Halve<KEPT, MASK / 2, (MASK / 2 >= LANE_STRIDE)>;
    static constexpr int LEFT = Next::LEFT;   // sums of a lane at the end

    static __device__ __forceinline__ void run(Sums &sums)
    {
        const bool upper = KEPT < COUNT && (lane_id() & MASK) != 0;
        Value other[KEPT];
        UNROLL for (int i = 0; i < KEPT; ++i) {
            const Value mine = upper ? sums.at[(i + KEPT) % COUNT] : sums.at[i];
            other[i] = upper ? sums.at[i] : sums.at[(i + KEPT) % COUNT];
            sums.at[i] = mine;
        }
        warp_sync();   // otherwise the selections become a branch around all, with the shuffles on both sides
        UNROLL for (int i = 0; i < KEPT; ++i)
            sums.at[i] = op_add(sums.at[i], warp_shuffle_xor(other[i], MASK));
        sums.first += upper ? KEPT : 0;
        sums.none |= KEPT == COUNT && (lane_id() & MASK) != 0;
        Next::run(sums);
    }
};
template <int COUNT, int MASK> struct Halve<COUNT, MASK, false> {
    static constexpr int LEFT = COUNT;
    static __device__ __forceinline__ void run(Sums &) {}
};
using Lanes = Halve<SUMS, LANES / 2 * LANE_STRIDE, (LANES > 1)>;

// QN columns of a row, of all that a block makes. A thread loads the parts of AHEAD of them and what their epilogue needs, and
// then stores: behind the branch around each store its loads would be waited for one by one.
constexpr int VECTORS = M * BN / QN, APART = CLUSTER * THREADS, EACH = (VECTORS + APART - 1) / APART;
constexpr int ROUNDS = (EACH + 7) / 8, AHEAD = (EACH + ROUNDS - 1) / ROUNDS;
struct Place {
    int m, column;
    __device__ __forceinline__ explicit Place(int vector)
        : m(STORES_ALONG_M ? vector % M : vector / (BN / QN)), column(STORES_ALONG_M ? vector / M : vector % (BN / QN) * QN)
    {
    }
};

// The part of B that a thread loads at once.
struct TileB {
    Value at[RUNS][RUN][TN];

    template <bool WHOLE> __device__ __forceinline__ void load(const Tensors &t, Index batch, Index n0, int tn, Index k)
    {
        UNROLL for (int r = 0; r < (WHOLE ? RUNS : LAST_RUNS); ++r)
            UNROLL for (int e = 0; e < RUN; e += VECTOR_K)
                UNROLL for (int j = 0; j < TN; j += VECTOR_N) {
                    const Index row = k + r * (THREADS_K * RUN) + e;
                    const Index column = op_min<Index>(n0 + column_of(tn, j), N - VECTOR_N);   // past the end: any
                    Value v[OperandB::VECTOR] = {};
                    if (is_inside<WHOLE>(r, row))
                        OperandB::read(t, batch, column, row, v);
                    UNROLL for (int i = 0; i < OperandB::VECTOR; ++i)
                        at[r][e + (ALONG_K ? i : 0)][j + (ALONG_K ? 0 : i)] = v[i];
                }
    }
};

// sums += the rows of A at these k times the loaded part of B.
template <bool WHOLE>
__device__ __forceinline__ void multiply(const Tensors &t, Index batch, Index k, const TileB &b, Sums &sums)
{
    UNROLL for (int r = 0; r < (WHOLE ? RUNS : LAST_RUNS); ++r)
        UNROLL for (int m = 0; m < M; m += STEP_M)
            UNROLL for (int e = 0; e < RUN; e += STEP_K) {
                const Index row = k + r * (THREADS_K * RUN) + e;
                Value a[OperandA::VECTOR] = {};
                if (is_inside<WHOLE>(r, row))
                    OperandA::read(t, batch, m, row, a);
                UNROLL for (int i = 0; i < OperandA::VECTOR; ++i)
                    UNROLL for (int j = 0; j < TN; ++j) {
                        Value &sum = sums.at[(m + (STEP_M > 1 ? i : 0)) * TN + j];
                        sum = op_add(op_mul(a[i], b.at[r][e + (STEP_M > 1 ? 0 : i)][j]), sum);
                    }
            }
}

__device__ __forceinline__ void meet()
{
    if (ALONE)
        block_sync();
    else
        cluster_sync();
}

// Compilers issue the loads of several steps in the registers that MIN_BLOCKS_PER_SM leaves; beyond these they delay loads until their
// first use.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS_PER_SM) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const int thread = (int)threadIdx.x;
    const int tn = ALONG_K ? thread / THREADS_K : thread % THREADS_N;
    const int tk = ALONG_K ? thread % THREADS_K : thread / THREADS_N;
    const Index tile = (Index)blockIdx.x / CLUSTER, n0 = tile % BLOCKS_N * BN, batch = tile / BLOCKS_N;
    const int rank = (int)((Index)blockIdx.x % CLUSTER);
    const bool active = thread < USED;   // the last warp may have spare threads

    // ---- load and compute: this thread's part of the products ----
    Sums sums = {};
    if (active) {
        const int run = tk * RUN;
        TileB b;
#pragma unroll 1
        for (Index step = (Index)rank * BK; step < LAST; step += CLUSTER * BK) {
            b.template load<true>(t, batch, n0, tn, step + run);
            multiply<true>(t, batch, step + run, b, sums);
        }
        if (rank == LAST / BK % CLUSTER && LAST + run < K) {
            b.template load<false>(t, batch, n0, tn, LAST + run);
            multiply<false>(t, batch, LAST + run, b, sums);
        }
    }

    // ---- reduce: within the warp, the block, the cluster ----
    Lanes::run(sums);
    SHARED(PARTIAL, Value, part, [PARTS][M][BN]);
    UNROLL for (int i = 0; i < Lanes::LEFT; ++i)
        if (active && !sums.none)
            part[tk / LANES][(sums.first + i) / TN][column_of(tn, (sums.first + i) % TN)] = sums.at[i];
    if constexpr (JOINS) {
        block_sync();
        for (int i = thread; i < M * BN; i += THREADS) {
            Value total = part[0][i / BN][i % BN];
            UNROLL for (int p = 1; p < PARTS; ++p)
                total = op_add(total, part[p][i / BN][i % BN]);
            part[0][i / BN][i % BN] = total;
        }
    }
    meet();

    // ---- store ----
    for (int first = rank * THREADS + thread; first < VECTORS; first += AHEAD * APART) {
        Beside beside[AHEAD];
        Columns columns[AHEAD];
        Value totals[AHEAD][QN] = {};
        const auto exists = [&](int vector) {
            return (VECTORS % (AHEAD * APART) == 0 || vector < VECTORS) && n0 + Place(vector).column < N;
        };
        UNROLL for (int i = 0; i < AHEAD; ++i) {
            const Place at(op_min(first + i * APART, VECTORS - 1));
            const Index n = op_min<Index>(n0 + at.column, N - QN);   // past the end: any
            read_beside(t, batch, at.m, n, beside[i]);
            read_columns(t, batch, at.m, n, columns[i]);
        }
        UNROLL for (int i = 0; i < AHEAD; ++i) {
            const Place at(first + i * APART);
            UNROLL for (int r = 0; r < CLUSTER; ++r) {
                const auto *parts = ALONE ? part : cluster_map(part, r);
                UNROLL for (int p = 0; p < LEFT; ++p) {
                    Value sums_of[QN];
                    if (!exists(first + i * APART))
                        continue;
                    load_vector<QN>(&parts[p][at.m][at.column], 0, sums_of);
                    UNROLL for (int q = 0; q < QN; ++q)
                        totals[i][q] = op_add(totals[i][q], sums_of[q]);
                }
            }
        }
        UNROLL for (int i = 0; i < AHEAD; ++i) {
            const Place at(first + i * APART);
            if (exists(first + i * APART))
                finish_vector(t, batch, at.m, n0 + at.column, totals[i], beside[i], columns[i]);
        }
    }
    if (!ALONE)
        meet();   // no block exits while others read its sums
}
}   // namespace KERNEL
