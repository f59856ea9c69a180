// Matrix multiply on the tensor cores of sm_90a (wgmma): C[b,m,n] = sum over k of A[b,m,k] * B[b,k,n], with a
// pointwise epilogue. Operands are f16 or bf16 with f32 accumulators, f32 truncated to tf32, or 8-bit integers with
// i32 accumulators.
//
// A thread block computes a BM x BN tile of C, each warp group a WM x WN tile of that in registers. The block
// iterates over k in steps of BK, pipelined through STAGES tiles of A and of B in shared memory, where the tensor
// cores read them:
//
//   step - 1        step             step + 1 … step + STAGES - 3      step + STAGES - 2
//   in use          next in use      in flight or complete             started once step - 2 is free
//
// 16-bit A and B may be contiguous along either dimension, others along k. Shared memory keeps the order of global
// memory. Copies are 16-byte vectors.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const f16 *in0;   // A[1024, 1024]
    const f16 *in1;   // B[1024, 1024]
    f16 *out0;        // C[1024, 1024]
};
#define PARAMETERS const f16 *__restrict__ in0, const f16 *__restrict__ in1, f16 *__restrict__ out0
#define TENSORS {in0, in1, out0}
constexpr Region OPERANDS = {0, 197632};   // of shared memory, in bytes
constexpr Region SLABS = {0, 197632};
constexpr int SHARED_BYTES = 197632;   // of a block
using Element = f16;                                          // of A and B
using Value = float;                                          // of products and sums
constexpr Index M = 1024, N = 1024, K = 1024;                 // problem
constexpr int BM = 128, BN = 256, BK = 64;                    // rTile, shared memory
constexpr int WM = 64, WN = 256;                              // rTile, registers of a warp group
constexpr int STAGES = 4;                                     // of the pipeline
constexpr Index CHAIN = 128;                                  // promotion interval of the accumulators, in steps
constexpr int QN = 8;                                         // columns of C in one aligned access
constexpr Index PANEL = 8;                                    // rasterisation: tiles along m in a panel

struct OperandA {
    static constexpr bool ALONG_K = true;   // k is contiguous in memory
    static __device__ __forceinline__ CopySource<Element> at(const Tensors &t, Index batch, Index m, Index k)
    {
        return {t.in0 + (m * 1024 + k), true};
    }
};
struct OperandB {
    static constexpr bool ALONG_K = false;
    static __device__ __forceinline__ CopySource<Element> at(const Tensors &t, Index batch, Index n, Index k)
    {
        return {t.in1 + (k * 1024 + n), true};
    }
};

__device__ __forceinline__ void finish_vector(const Tensors &t, Index batch, Index m, Index n, const Value (&total)[QN])
{
    store_vector<QN>(t.out0, m * 1024 + n, total);
}
// </rollerc>

constexpr int GROUPS_N = BN / WN, GROUPS = BM / WM * GROUPS_N, THREADS = GROUPS * 4 * WARP;
constexpr int BYTES = (int)sizeof(Element), PIECE = 16 / BYTES;   // elements of a 16-byte vector
constexpr int AK = 32 / BYTES;                                    // k of one instruction
constexpr Index BLOCKS_M = (M + BM - 1) / BM, BLOCKS_N = (N + BN - 1) / BN;
constexpr Index STEPS = (K + BK - 1) / BK;
constexpr bool CHAINS = STEPS > CHAIN;             // longer than one promotion interval

static_assert(BM % WM == 0 && BN % WN == 0 && WM == 64 && WN % 64 == 0, "groups of warps cover the block's tile");
static_assert(BK * BYTES == 128, "a line of an operand in shared memory");
static_assert(QN == 1 || N % QN == 0, "rows of C hold whole vectors");
static_assert((STEPS - 1) * BK < K && STAGES >= 3, "no step is in vain");

// A tile of an operand in shared memory, in the layout of describe_operand(): lines of 128 bytes along its
// contiguous dimension, one for each row, or one for each k and 64 rows of 16-bit elements.
template <class Operand, Index EXTENT, int BR> struct Tile {
    static constexpr bool ALONG_K = Operand::ALONG_K;
    static_assert(ALONG_K || BYTES == 2, "others are not turned");
    static constexpr int LINES = ALONG_K ? BR : BK, LINE = (ALONG_K ? BK : BR) / PIECE;
    static constexpr int ELEMENTS = BR * BK;
    static constexpr int EACH = (LINES * LINE + THREADS - 1) / THREADS;   // vectors that a thread copies

    static __device__ __forceinline__ void fetch(const Tensors &t, Index batch, Index row0, Index k0, Element *tile)
    {
        UNROLL for (int i = 0; i < EACH; ++i) {
            const int number = (int)threadIdx.x + i * THREADS, line = number / LINE, piece = number % LINE;
            if (LINES * LINE % THREADS != 0 && number >= LINES * LINE)
                break;   // three groups copy 512 vectors
            const Index row = row0 + (ALONG_K ? line : piece * PIECE), k = k0 + (ALONG_K ? piece * PIECE : line);
            const bool exists = (EXTENT % BR == 0 || row < EXTENT) && (K % BK == 0 || k < K);
            const CopySource<Element> source = Operand::at(t, batch, row, k);
            async_copy16_or_zero(exists && source.exists,
                                 tile + ((piece / 8 * LINES + line) * 8 + (piece % 8 ^ line % 8)) * PIECE, source.at);
        }
    }
    // The descriptor from this row and k on.
    static __device__ __forceinline__ unsigned long long part(const Element *tile, int row, int k)
    {
        return describe_operand(tile + row * BK + (ALONG_K ? k : k * 64), BK * 128, 8 * 128);
    }
};

// Epilogue staging of a warp's 8 rows of C.
struct Slab {
    Value at[8][WN + 8];   // padding: no bank conflicts among 16 lanes
};

using TileA = Tile<OperandA, M, BM>;
using TileB = Tile<OperandB, N, BN>;

struct Stage {
    Element a[TileA::ELEMENTS], b[TileB::ELEMENTS];
};

constexpr int ALIGNMENT = 1024;

extern "C" __global__ void __launch_bounds__(BOUNDS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED(SLABS, Slab, slabs, [GROUPS * 4]);                 // over A and B
    Stage *const stages = reinterpret_cast<Stage *>(rollerc_shared + (0u - shared_address(rollerc_shared)) % ALIGNMENT);
    static_assert(STAGES * (int)sizeof(Stage) + ALIGNMENT <= OPERANDS.bytes, "all stages fit, wherever they begin");
    Value acc[WN / 2] = {};                               // (WM,WN) of four warps
    Chains<CHAINS, WN / 2> chain;

    const Index block = (Index)blockIdx.x % (BLOCKS_M * BLOCKS_N), batch = (Index)blockIdx.x / (BLOCKS_M * BLOCKS_N);
    const Index panel = block / (PANEL * BLOCKS_N) * PANEL;                   // first row of blocks of the panel
    const Index rows = op_min<Index>(BLOCKS_M - panel, PANEL);
    const Index m0 = (panel + block % (PANEL * BLOCKS_N) % rows) * BM;
    const Index n0 = block % (PANEL * BLOCKS_N) / rows * BN;
    const int warp = same_in_warp((int)threadIdx.x / WARP);
    const int group_m = warp / 4 / GROUPS_N * WM, group_n = warp / 4 % GROUPS_N * WN;

    // Load: the tiles of the first steps.
    UNROLL for (int step = 0; step < STAGES - 2; ++step) {
        if (step < STEPS) {
            TileA::fetch(t, batch, m0, step * BK, stages[step].a);
            TileB::fetch(t, batch, n0, step * BK, stages[step].b);
        }
        async_commit();
    }

    // Compute: the products of a step overlap the issue of the next ones and the copy of a later step.
    int now = 0, free = STAGES - 2;   // stages
#pragma unroll 1
    for (Index step = 0; step < STEPS; ++step) {
        async_wait<STAGES - 3>();
        show_operands();
        block_sync();
        open_products(acc);
        UNROLL for (int k = 0; k < BK; k += AK)
            multiply_shared<!TileA::ALONG_K, !TileB::ALONG_K>(Product<Element, WN>(), acc,
                                                              TileA::part(stages[now].a, group_m, k),
                                                              TileB::part(stages[now].b, group_n, k));
        close_products();
        const Index ahead = step + (STAGES - 2);
        if (ahead < STEPS) {
            TileA::fetch(t, batch, m0, ahead * BK, stages[free].a);
            TileB::fetch(t, batch, n0, ahead * BK, stages[free].b);
        }
        async_commit();
        wait_products<1>(acc);
        now = now + 1 == STAGES ? 0 : now + 1;
        free = free + 1 == STAGES ? 0 : free + 1;
        if (CHAINS && (step + 1) % CHAIN == 0) {
            wait_products<0>(acc);
            chain.end(acc);
        }
    }
    wait_products<0>(acc);
    chain.add_to(acc);

    // Epilogue: stage eight rows of each warp at a time in shared memory, so that stores are coalesced.
    block_sync();
    Slab &slab = slabs[warp];
    const int lane = (int)threadIdx.x % WARP;
    UNROLL for (int part = 0; part < 2; ++part) {
        UNROLL for (int j = 0; j < WN / 8; ++j) {
            const Value *const own = acc + j * 4 + part * 2, two[2] = {own[0], own[1]};
            move_vector<2>(&slab.at[lane / 4][j * 8 + lane % 4 * 2], two);
        }
        warp_sync();
        UNROLL_4 for (int first = 0; first < 8 * WN / QN; first += WARP) {
            const int v = first + lane, row = v / (WN / QN), column = v % (WN / QN) * QN;
            const Index m = m0 + group_m + warp % 4 * 16 + part * 8 + row, n = n0 + group_n + column;
            if (row >= 8 || m >= M || n >= N)
                continue;
            Value total[QN];
            load_vector<QN>(slab.at[row], column, total);
            finish_vector(t, batch, m, n, total);
        }
        warp_sync();
    }
}
}   // namespace KERNEL
