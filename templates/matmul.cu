// Matrix multiply: C[b,m,n] = sum over k of A[b,m,k] * B[b,k,n], then a pointwise epilogue.
//
// One thread block computes one BM x BN tile of C. It walks along k in steps of BK; each step brings a BM x BK tile of A
// and a BK x BN tile of B from global to shared memory, then every thread adds to its TM x TN register tile:
//
//            k                  BN
//        +-------+        +-----------+         A and B may lie in memory either way round (or be computed from an
//        |   A   | BM   k |     B     |         index, as a convolution does): only `OperandA::read` and
//        +-------+        +-----------+         `OperandB::read` know. In shared memory k is always the outer index.
//
// A thread's TM rows are groups of QM neighbours, BM / (TM/QM) rows apart, so that a warp reads shared memory in whole
// vectors without bank conflicts; likewise its columns. While a step is computed the next one is on its way in registers.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // A[1024, 1024]
    const float *in1;   // B[1024, 1024]
    float *out0;        // C[1024, 1024]
};
#define PARAMETERS const float *__restrict__ in0, const float *__restrict__ in1, float *__restrict__ out0
#define TENSORS {in0, in1, out0}
constexpr int SHARED_BYTES = 16640;   // of a block
using Value = float;                                          // of the products and their sum
constexpr Index M = 1024, N = 1024, K = 1024;                 // problem
constexpr int BM = 128, BN = 128, BK = 8;                     // rTile, shared memory
constexpr int TM = 8, TN = 8;                                 // rTile, registers
constexpr int PAD_A = 4, PAD_B = 0;                           // bank padding, elements
constexpr int QM = 4, QN = 4;                                 // neighbouring rows, columns of a thread
constexpr Index PANEL = 8;                                    // rows of blocks that run together: their A and B stay in L2
constexpr bool VECTOR_STORES = true;                          // QN columns of C are one aligned access

struct OperandA {
    static constexpr bool ALONG_K = true;   // neighbours along k are neighbours in memory
    static constexpr int VECTOR = 4;        // elements of one access
    static __device__ __forceinline__ void read(const Tensors &t, Index batch, Index m, Index k, Value (&v)[VECTOR])
    {
        load_vector<VECTOR>(t.in0, m * 1024 + k, v);
    }
};
struct OperandB {
    static constexpr bool ALONG_K = false;
    static constexpr int VECTOR = 4;
    static __device__ __forceinline__ void read(const Tensors &t, Index batch, Index n, Index k, Value (&v)[VECTOR])
    {
        load_vector<VECTOR>(t.in1, k * 1024 + n, v);
    }
};

__device__ __forceinline__ void finish(const Tensors &t, Index batch, Index m, Index n, Value total)
{
    store(t.out0, m * 1024 + n, total);
}
__device__ __forceinline__ void finish_vector(const Tensors &t, Index batch, Index m, Index n, const Value (&total)[QN])
{
    store_vector<QN>(t.out0, m * 1024 + n, total);
}
// </rollerc>

constexpr int THREADS = (BM / TM) * (BN / TN);
constexpr int LDA = BM + PAD_A, LDB = BN + PAD_B;                 // shared row lengths
constexpr Index BLOCKS_M = (M + BM - 1) / BM, BLOCKS_N = (N + BN - 1) / BN;
constexpr Index STEPS = (K + BK - 1) / BK;

static_assert(BM % TM == 0 && BN % TN == 0, "threads cover the block's tile");
static_assert(TM % QM == 0 && TN % QN == 0, "a thread's rows and columns are whole groups");
static_assert(!VECTOR_STORES || N % QN == 0, "rows of C hold whole vectors");
static_assert((STEPS - 1) * BK < K, "no step is in vain");
static_assert(2 * BK * (LDA + LDB) * (int)sizeof(Value) <= SHARED_BYTES, "two buffers of both tiles fit");
static_assert(LDA % QM == 0 && LDB % QN == 0, "shared rows keep vectors aligned");

// One thread's share of a tile on its way from global to shared memory: LOADS vectors along the operand's fast direction.
template <class Operand, Index EXTENT, int BR, int LD> struct Fetch {
    static constexpr int VECTOR = Operand::VECTOR;
    static constexpr bool ALONG_K = Operand::ALONG_K;
    static constexpr int FAST = (ALONG_K ? BK : BR) / VECTOR;      // vectors along the fast direction
    static constexpr int VECTORS = BK * BR / VECTOR;
    static constexpr int LOADS = (VECTORS + THREADS - 1) / THREADS;
    static constexpr bool EVEN = THREADS % FAST == 0;              // threads take whole lines
    static_assert((ALONG_K ? BK : BR) % VECTOR == 0, "a tile holds whole vectors");

    Value v[LOADS][VECTOR];

    // A thread's i-th vector: row (of A) or column (of B) and k inside the tile. The last threads may be left without one.
    struct Mine {
        int row, k;
        bool exists;

        __device__ __forceinline__ explicit Mine(int i)
        {
            const int thread = (int)threadIdx.x, number = thread + i * THREADS;
            const int line = EVEN ? thread / FAST + i * (THREADS / FAST) : number / FAST;   // of EVEN: less to keep for each i
            const int vector = EVEN ? thread % FAST : number % FAST;
            row = ALONG_K ? line : vector * VECTOR;
            k = ALONG_K ? vector * VECTOR : line;
            exists = VECTORS % THREADS == 0 || number < VECTORS;
        }
    };

    __device__ __forceinline__ void from_global(const Tensors &t, Index batch, Index row0, Index k0)
    {
        UNROLL for (int i = 0; i < LOADS; ++i) {
            const Mine it(i);
            const Index row = row0 + it.row, k = k0 + it.k;
            if (it.exists && row < EXTENT && k < K)
                Operand::read(t, batch, row, k, v[i]);
            else
                UNROLL for (int e = 0; e < VECTOR; ++e)
                    v[i][e] = 0;
        }
    }

    __device__ __forceinline__ void to_shared(Value (&tile)[BK][LD]) const
    {
        UNROLL for (int i = 0; i < LOADS; ++i) {
            const Mine it(i);
            if (!it.exists)
                continue;
            UNROLL for (int e = 0; e < VECTOR; ++e)
                tile[it.k + (ALONG_K ? e : 0)][it.row + (ALONG_K ? 0 : e)] = v[i][e];
        }
    }
};

// Q neighbours of shared memory as one access.
template <int Q> struct alignas(sizeof(Value) * Q) Group {
    Value at[Q];
};

extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED(0, Value, As, [2][BK][LDA]);                                       // (2,BK,BM)
    SHARED(2 * BK * LDA * (int)sizeof(Value), Value, Bs, [2][BK][LDB]);       // (2,BK,BN)
    Value acc[TM][TN] = {};                                                   // (TM,TN)

    const Index block = (Index)blockIdx.x % (BLOCKS_M * BLOCKS_N), batch = (Index)blockIdx.x / (BLOCKS_M * BLOCKS_N);
    const Index panel = block / (PANEL * BLOCKS_N) * PANEL;                   // first row of blocks of this panel
    const Index rows = op_min<Index>(BLOCKS_M - panel, PANEL);
    const Index m0 = (panel + block % (PANEL * BLOCKS_N) % rows) * BM;
    const Index n0 = block % (PANEL * BLOCKS_N) / rows * BN;
    const int ty = (int)threadIdx.x / (BN / TN), tx = (int)threadIdx.x % (BN / TN);

    // Load the first tiles.
    Fetch<OperandA, M, BM, LDA> fetch_a;
    Fetch<OperandB, N, BN, LDB> fetch_b;
    fetch_a.from_global(t, batch, m0, 0);
    fetch_b.from_global(t, batch, n0, 0);
    fetch_a.to_shared(As[0]);
    fetch_b.to_shared(Bs[0]);
    block_sync();

    // Compute: one step on the tiles in shared memory while the next ones are fetched.
#pragma unroll 1
    for (Index step = 0; step < STEPS; ++step) {
        const int now = (int)(step & 1);
        const Index next = step + 1;
        const bool more = next < STEPS;
        if (more) {
            fetch_a.from_global(t, batch, m0, next * BK);
            fetch_b.from_global(t, batch, n0, next * BK);
        }
#pragma unroll BK > 8 ? 8 : (BK + 1) / 2   // never a whole step: slower to compile, and to run
        for (int k = 0; k < BK; ++k) {
            Group<QM> a[TM / QM];                                             // (TM)
            Group<QN> b[TN / QN];                                             // (TN)
            static_assert(sizeof a == TM * sizeof(Value) && sizeof b == TN * sizeof(Value), "what acc takes up");
            UNROLL for (int g = 0; g < TM / QM; ++g)
                a[g] = *reinterpret_cast<const Group<QM> *>(&As[now][k][g * (BM / TM * QM) + ty * QM]);
            UNROLL for (int g = 0; g < TN / QN; ++g)
                b[g] = *reinterpret_cast<const Group<QN> *>(&Bs[now][k][g * (BN / TN * QN) + tx * QN]);
            UNROLL for (int i = 0; i < TM; ++i)
                UNROLL for (int j = 0; j < TN; ++j)
                    acc[i][j] = op_add(op_mul(a[i / QM].at[i % QM], b[j / QN].at[j % QN]), acc[i][j]);
        }
        if (more) {
            fetch_a.to_shared(As[1 - now]);
            fetch_b.to_shared(Bs[1 - now]);
            block_sync();
        }
    }

    // Store: the epilogue, and C in vectors where it allows.
    UNROLL for (int i = 0; i < TM; ++i) {
        const Index m = m0 + i / QM * (BM / TM * QM) + ty * QM + i % QM;
        if (m >= M)
            continue;
        UNROLL for (int g = 0; g < TN / QN; ++g) {
            const Index n = n0 + g * (BN / TN * QN) + tx * QN;
            Value total[QN];
            UNROLL for (int q = 0; q < QN; ++q)
                total[q] = acc[i][g * QN + q];
            if (VECTOR_STORES) {
                if (n < N)
                    finish_vector(t, batch, m, n, total);
            } else {
                UNROLL for (int q = 0; q < QN; ++q)
                    if (n + q < N)
                        finish(t, batch, m, n + q, total[q]);
            }
        }
    }
}
}   // namespace KERNEL
