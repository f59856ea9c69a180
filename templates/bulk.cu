// Matrix multiply on the tensor cores of sm_90a: C[b,m,n] = sum over k of A[b,m,k] * B[b,k,n], with a
// pointwise epilogue. Operands are f16 or bf16 with f32 accumulators, f32 rounded to tf32, or 8-bit integers
// with i32 accumulators. Warps are specialised: one producer thread copies boxes of A and B to shared memory
// (TMA), and consumer warp groups multiply them (wgmma).
//
// A thread block is persistent and computes BM x BN tiles of C; each warp group holds a WM x WN part of a
// tile in registers. A block iterates over k in steps of BK. Shared memory has STAGES tiles of A and of B,
// each with two barriers:
//
//   full    the copies of the stage are complete    the producer expects their bytes, consumers wait
//   free    the products of the stage are done      each warp arrives, the producer waits before it copies again
//
// The producer runs ahead by up to STAGES steps, also into the next tile during an epilogue.
//
// Multicast: MULTICAST blocks of a cluster compute tiles adjacent along m. Each copies a part of the common
// tile of B to all of them.
//
// Cluster split-K: where there are fewer tiles than SMs, SPLITS blocks of a cluster compute one tile, each
// over every SPLITS-th step of k. At the end each leaves its accumulators in place of its stages, reads those
// of some rows of all blocks, and reduces and stores them.
//
// Ping-pong: where each block computes many tiles, MAKERS warp groups compute whole tiles alternately. The
// epilogue of one overlaps the products of another.
//
// Several sums over the same points with one A and a B each are computed together (JOINED): a stage holds all
// B's, a group multiplies A by all of them at once, and a lane holds all sums of a point.
//
// 16-bit A and B may be contiguous along either dimension, others along k. Shared memory keeps the order of
// global memory.
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
#define PARAMETERS \
    const f16 *__restrict__ in0, const f16 *__restrict__ in1, f16 *__restrict__ out0, \
        const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b
#define TENSORS {in0, in1, out0}
#define MAP_LIST {&map_a, &map_b}
constexpr Region EVERYTHING = {0, 216136};   // of shared memory, in bytes
constexpr int SHARED_BYTES = 216136;   // of a block
using Element = f16;                                          // of A and B
using Value = float;                                          // of the products and their sum
using Kept = f16;                                             // what passes shared memory
constexpr Index M = 1024, N = 1024, K = 1024;                 // problem
constexpr int BM = 128, BN = 256, BK = 64;                    // rTile, shared memory
constexpr int WM = 64, WN = 256;                              // rTile, registers of a warp group
constexpr int STAGES = 4;                                     // of the pipeline along k
constexpr Index CHAIN = 128;                                  // promotion interval of the accumulators, in steps
constexpr int QN = 8;                                         // columns of C in one aligned access
constexpr bool SHIFTED = false;                               // rows of C are not aligned to it
constexpr Index PANEL = 8;                                    // rasterisation: tiles along m in a panel
constexpr int JOINED = 1;   // sums that are computed together
constexpr Index BATCHES = 1;
constexpr int MULTICAST = 2, SPLITS = 1;   // blocks of a cluster: multicast, split-K
constexpr int TURNS = 1;                                      // tiles of a persistent block
constexpr int MAKERS = 1;                                     // warp groups that compute tiles alternately
constexpr Index CLUSTERS = 16;
constexpr bool BACK_M = false, BACK_N = false;                // the last tile is shifted back to end where C does
// Implicit GEMM of a convolution: the rows of one operand are consecutive pixels, and k is channels within
// taps; a step has channels of one tap. The other operand is the filter, with a box for each tap. In a filter
// gradient k is the pixels, split across batches, and the rows of one operand are channels within taps.
constexpr bool IM2COL_A = false, IM2COL_B = false, TAPS_A = false, TAPS_B = false;
constexpr Index PART = 0;                                     // of k in each batch, if it is split
constexpr Index TAP = K;                                      // a tap's channels, in whole lines
// Columns of C may be phases with different taps. A tile skips the taps that none of its columns has.
constexpr bool PHASES = false, BACKWARDS = false;             // the last tiles first: they have the most taps
constexpr Index PHASE = N, TAPS = 1;                          // columns of a phase, taps in all
constexpr bool BESIDE = false;   // the epilogue loads vectors, which are prefetched
constexpr bool ROWS_FIRST = false;                            // vectors of adjacent rows of C lie side by side
constexpr bool REDUCES = false;                               // rows of C are reduced, and C is not stored
constexpr bool EARLY_A = false, EARLY_B = false;   // no launch of the program writes it

struct OperandA {
    static constexpr bool ALONG_K = true;    // k is contiguous in memory
    static constexpr bool BATCHED = false;   // each batch has its own
};
struct OperandB {
    static constexpr bool ALONG_K = false;
    static constexpr bool BATCHED = false;
};

// Copies a box of consecutive pixels, shifted by a tap; `seen` is the tap and first channel.
__device__ __forceinline__ void fetch_pixels(const TensorMap *map, Index, Index pixel, Index seen, Element *tile,
                                             unsigned long long *full)
{
    const int at[] = {static_cast<int>(seen), static_cast<int>(pixel), 0}, offset[] = {0};
    copy_pixels(tile, map, at, offset, full);
}

// Whether a phase has a tap; its other taps are zeros.
__device__ __forceinline__ bool has_tap(Index phase, Index tap) { return phase == 0 && tap == 0; }

// Copies a box of the filter from column n on; k is the tap and first channel.
__device__ __forceinline__ void fetch_filter(const TensorMap *map, Index, Index n, Index k, Element *tile,
                                             unsigned long long *full)
{
    const int at[] = {static_cast<int>(n), static_cast<int>(k)};
    copy_box_at(tile, map, at, full);
}

// If SHIFTED: elements of C before this one in the same aligned access, where it lies, and what it is.
__device__ __forceinline__ int shift_of(Index batch, Index m, Index n)
{
    return (int)((unsigned)(m * 1024 + n) % QN);
}
__device__ __forceinline__ Kept *place_of(const Tensors &t, Index batch, Index m, Index n)
{
    return t.out0 + (m * 1024 + n);
}
__device__ __forceinline__ Kept result(const Tensors &t, Index batch, Index m, Index n, Value total)
{
    return narrow<Kept>(total);
}

// Epilogue: vectors of C.
__device__ __forceinline__ void finish_vector(const Tensors &t, Index batch, Index m, Index n,
                                              const Kept (&total)[QN])
{
    move_vector<QN>(t.out0 + (m * 1024 + n), total);
}

// What the epilogue loads besides the sums of QN columns of a row: per row, and per column.
struct Beside {};
__device__ __forceinline__ void read_beside(const Tensors &, Index, Index, Index, Beside &) {}
struct Columns {};
__device__ __forceinline__ void read_columns(const Tensors &, Index, Index, Index, Columns &) {}
__device__ __forceinline__ void finish_vector(const Tensors &t, Index batch, Index m, Index n,
                                              const Kept (&total)[QN], const Beside &, const Columns &)
{
    finish_vector(t, batch, m, n, total);
}

// A row's results over the columns of a tile, and how they are reduced.
struct Row {
    Value largest = Max::identity<Value>();
    static constexpr int PASSES = 1;   // the second pass reduces functions of the first results

    static __device__ __forceinline__ Value point(const Tensors &, Index, Index, Index, Value total)
    {
        return total;
    }
    __device__ __forceinline__ void add(Pass<0>, const Tensors &, Index, Index, Index, Value value)
    {
        largest = Max::combine(largest, value);
    }
    __device__ __forceinline__ void meet(Pass<0>) { largest = warp_reduce<Max>(largest, 4); }
    __device__ __forceinline__ void leave(const Tensors &t, Index, Index m, Index tile) const
    {
        store(t.out0, tile * 1024 + m, largest);
    }
};
// </rollerc>

constexpr int WIDE = JOINED * ((WN + 31) / 32 * 32);   // columns of B of one instruction, for all sums
constexpr int GROUPS_N = BN / WN, GROUPS_EACH = BM / WM * GROUPS_N;   // warp groups of a tile
constexpr int GROUPS = MAKERS * GROUPS_EACH, THREADS = (1 + GROUPS) * 4 * WARP;
constexpr int BYTES = (int)sizeof(Element), AK = 32 / BYTES;   // k of an instruction
constexpr Index CLUSTERS_M = ((M + BM - 1) / BM + MULTICAST - 1) / MULTICAST, BLOCKS_N = (N + BN - 1) / BN;
constexpr Index ROWS = PANEL > MULTICAST ? PANEL / MULTICAST : 1;   // clusters along m in a panel
constexpr Index STEPS = (K + BK - 1) / BK;
constexpr Index SHARE = (STEPS + SPLITS - 1) / SPLITS;   // steps of the first block of the split
constexpr bool CHAINS = SHARE > CHAIN;   // longer than one promotion interval
constexpr int PARTS = 2;                 // eight-row halves of its sixteen that a warp stores
constexpr int SLAB_PARTS = sizeof(Kept) == 2 ? PARTS : 1, SLAB_COLUMNS = 64;   // staged together
// A thread of three warp groups has 168 of the 65536 registers: too few for 64 x 256 accumulators, or for 64
// x 192 and prefetched vectors of the epilogue, and more than the producer needs. One of four has 128: too few
// for 64 x 192, or for 64 x 128 and such vectors.
constexpr bool MOVES_REGISTERS = GROUPS / 2 == 1 && WIDE / 2 * (CHAINS ? 2 : 1) > (GROUPS == 2 ? 96 : 64) - (BESIDE ? 32 : 0);

static_assert(BM % WM == 0 && BN % WN == 0 && WM == 64 &&
                  (WN % SLAB_COLUMNS == 0 || (PHASES && BN == WN && PHASE % BN == 0 && !SHIFTED && !REDUCES)),
              "groups of warps cover the block's tile");
static_assert(JOINED == 1 || (BESIDE && !SHIFTED && !IM2COL_A && !IM2COL_B), "only those have sums side by side");
static_assert(BK * BYTES == 128, "a line of an operand in shared memory");
static_assert(QN == 1 || SHIFTED || N % QN == 0, "rows of C hold whole vectors");
static_assert((!BACK_M || (M > BM && !SHIFTED)) && (!BACK_N || (N > BN && N % QN == 0 && !SHIFTED)),
              "it has where to lie");
static_assert(!(TAPS_A && OperandA::ALONG_K) && !(TAPS_B && (OperandB::ALONG_K || MULTICAST > 1)),
              "this block's boxes of channels");
static_assert((STEPS - 1) * BK < K && STAGES >= 2, "no step is in vain");
static_assert(MAKERS == 1 || (SPLITS == 1 && !PHASES && !REDUCES), "all tiles have as many steps");
static_assert(SPLITS == 1 || (16 % SPLITS == 0 && MULTICAST == 1 && TURNS == 1 && STEPS >= SPLITS && !PHASES && !REDUCES),
              "all have a step, and rows");

// A tile of an operand in shared memory, in the layout of describe_operand(); PARTS blocks of a cluster copy
// a part each. For several sums it has BR rows of each, interleaved by EACH rows, so that a group multiplies
// by all at once.
template <class Operand, int BR, int PARTS, int COUNT, int EACH> struct Tile {
    static constexpr bool ALONG_K = Operand::ALONG_K;
    static_assert(ALONG_K || BYTES == 2, "others are not turned");
    static constexpr int ALL = COUNT * BR, ELEMENTS = ALL * BK, OWN = ALL / PARTS;
    static constexpr int BOX = !ALONG_K ? 64 : COUNT > 1 ? EACH : OWN;   // rows of one copy
    static_assert(ALL % PARTS == 0 && OWN % BOX == 0 && BOX <= 256, "boxes cover the tile");

    // By the producer thread: copies this block's part.
    static __device__ __forceinline__ void fetch(const TensorMap *const *maps, Index batch, Index row0,
                                                 Index k0, Element *tile, unsigned long long *full)
    {
        const int first = PARTS > 1 ? cluster_rank() * OWN : 0;
        const int z = Operand::BATCHED ? static_cast<int>(batch) : 0;
        UNROLL for (int row = first; row < first + OWN; row += BOX) {
            const TensorMap *const map = maps[COUNT > 1 ? row / EACH % COUNT : 0];
            const Index at = row0 + (COUNT > 1 ? row / (COUNT * EACH) * EACH + row % EACH : row);
            const int x = static_cast<int>(ALONG_K ? k0 : at), y = static_cast<int>(ALONG_K ? at : k0);
            if (PARTS > 1)
                copy_box_to((1u << PARTS) - 1, tile + row * BK, map, x, y, z, full);
            else
                copy_box(tile + row * BK, map, x, y, z, full);
        }
    }
    // The descriptor from this row and k on.
    static __device__ __forceinline__ unsigned long long part(const Element *tile, int row, int k)
    {
        return describe_operand(tile + row * BK + (ALONG_K ? k : k * 64), BK * 128, 8 * 128);
    }
};

// Of a tile that is the only one along a dimension, only the rows that exist are copied. The instruction
// reads B after the last row of A, and zeros after the last row of B; those products are not used.
constexpr int ROWS_A = OperandA::ALONG_K && M < BM ? ((int)M + 7) / 8 * 8 : BM;
constexpr int BOXES_N = (BN + 63) / 64 * 64;   // a filter's last box may reach past the tile
constexpr int ROWS_B = OperandB::ALONG_K && MULTICAST == 1 && JOINED == 1 && N < BN ? (int)N : BOXES_N;
static_assert(BM - ROWS_A <= JOINED * BOXES_N, "they lie in the same stage");

using TileA = Tile<OperandA, ROWS_A, 1, 1, ROWS_A>;
using TileB = Tile<OperandB, ROWS_B, MULTICAST, JOINED, WN>;

struct Stage {
    Element a[TileA::ELEMENTS], b[JOINED * BOXES_N * BK];
};
constexpr int STEP_BYTES = (TileA::ELEMENTS + TileB::ELEMENTS) * BYTES;   // bytes copied in a step

// By all threads, once: clears the rows of B that no copy writes.
__device__ __forceinline__ void clear_behind(Stage *stages)
{
    constexpr int PIECES = (BN - ROWS_B) * BK * BYTES / (int)sizeof(bits128);
    for (int stage = 0; stage < STAGES; ++stage)
        for (int i = (int)threadIdx.x; i < PIECES; i += (int)blockDim.x)
            reinterpret_cast<bits128 *>(stages[stage].b + ROWS_B * BK)[i] = bits128();
    show_operands();
}

// Epilogue staging: a warp's rows of C, some columns at a time.
struct Slab {
    Kept at[SLAB_PARTS * 8][SLAB_COLUMNS + 8];   // padding: no bank conflicts in a store
};

// Split-K: a block's sums, which others read. Padding: no bank conflicts in a store.
struct Sums {
    Value at[BM][JOINED * BN + 8];
};

struct Ring {
    unsigned long long full[STAGES], free[STAGES], turn[MAKERS];   // turn: that group may issue products
};

constexpr int ALIGNMENT = 1024, SLABS = STAGES * (int)sizeof(Stage);
constexpr int RING = SPLITS == 1 ? SLABS + GROUPS * 4 * (int)sizeof(Slab)
                   : SLABS > (int)sizeof(Sums) ? SLABS : (int)sizeof(Sums);

// The position in the pipeline: the stage, and how often all stages were used.
struct Place {
    int stage = 0;
    unsigned round = 0;

    __device__ __forceinline__ void step()
    {
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        round += stage == 0;
    }
    // Skips the steps of a tile of another warp group.
    __device__ __forceinline__ void pass_tile()
    {
        stage += STEPS % STAGES;
        round += STEPS / STAGES + (stage >= STAGES);
        stage -= stage >= STAGES ? STAGES : 0;
    }
};

// The number of a cluster's tile where these go to and fro. The last cluster is in the place of the one that makes the last tile, so
// that the first and the last tile are, as elsewhere, those of the outermost blocks.
__device__ __forceinline__ Index to_and_fro(Index id, Index turn)
{
    constexpr Index LEFT = CLUSTERS_M * BLOCKS_N * BATCHES - (TURNS - 1) * CLUSTERS;   // tiles of the last turn
    constexpr Index LAST = TURNS % 2 == 1 ? LEFT - 1 : CLUSTERS - LEFT;
    const Index own = id == CLUSTERS - 1 ? LAST : id == LAST ? CLUSTERS - 1 : id;
    return turn * CLUSTERS + (turn % 2 == 1 ? CLUSTERS - 1 - own : own);
}

// The tile of C of an iteration. In the last iteration, which may be partial, the last blocks have tiles.
// Copies of boxes that cross the end of a tensor are slow: with BACK_M or BACK_N the last tile is shifted
// back. It then overlaps its neighbour, and does not store the common elements. Phases have tiles of unequal
// length: within a panel those of most taps first. Blocks go through them to and fro, so that after a
// long one comes a short one: of 9, 6, 6 and 4 taps one has the first and the last, one the two between.
struct Corner {
    Index batch, m, n;      // first element stored
    Index tile_m, tile_n;   // first element of the tile
    bool exists;

    __device__ __forceinline__ explicit Corner(Index turn)
    {
        constexpr Index EACH = CLUSTERS_M * BLOCKS_N, ALL = EACH * BATCHES;
        constexpr Index LINES = CLUSTERS_M * (PHASES ? BATCHES : 1);
        const Index rank = (Index)blockIdx.x % MULTICAST, own = (Index)blockIdx.x / (MULTICAST * SPLITS);
        const Index number = PHASES ? to_and_fro(own, turn) : turn * CLUSTERS + own;
        const Index cluster = number - (!PHASES && turn + 1 == TURNS ? CLUSTERS * TURNS - ALL : 0);
        const Index block = (PHASES && BACKWARDS ? ALL - 1 - cluster : cluster) % (PHASES ? ALL : EACH);
        const Index panel = block / (ROWS * BLOCKS_N) * ROWS;   // first row of clusters of the panel
        const Index rows = op_min<Index>(LINES - panel, ROWS);
        const Index row = panel + block % (ROWS * BLOCKS_N) % rows;
        exists = PHASES ? CLUSTERS * TURNS == ALL || cluster < ALL : cluster >= turn * CLUSTERS;
        batch = PHASES && BATCHES > 1 ? row / CLUSTERS_M : cluster / EACH;
        m = ((PHASES && BATCHES > 1 ? row % CLUSTERS_M : row) * MULTICAST + rank) * BM;
        n = block % (ROWS * BLOCKS_N) / rows * BN;
        tile_m = BACK_M ? op_min<Index>(m, M - BM) : m;
        tile_n = BACK_N ? op_min<Index>(n, N - BN) : n;
    }
    __device__ __forceinline__ bool stores_column(Index column) const
    {
        return BACK_N ? column >= n : column < (BN % 64 == 0 ? N : n + BN);   // slabs have 64
    }
    __device__ __forceinline__ bool stores(Index row, Index column) const
    {
        return (BACK_M ? row >= m : row < M) && stores_column(column);
    }
};

// The steps along k of this block.
struct Steps {
    Index first, count;

    // One of two constants, so that the compiler knows the loop is entered. Otherwise it moves accumulators
    // between registers, which serialises the products.
    __device__ __forceinline__ explicit Steps(int split)
        : first(split), count(STEPS / SPLITS + (split < STEPS % SPLITS ? 1 : 0))
    {
    }
};

// The taps of a tile's phases, and the steps of k in them.
struct TileTaps {
    Index first, end;   // phases
    Index tap = -1, channel = TAP;

    __device__ __forceinline__ explicit TileTaps(const Corner &corner)
        : first(corner.tile_n / PHASE), end((op_min<Index>(corner.tile_n + BN, N) + PHASE - 1) / PHASE)
    {
    }
    __device__ __forceinline__ bool has(Index other) const
    {
        bool found = false;
        for (Index phase = first; phase < end; ++phase)
            found = found || has_tap(phase, other);
        return found;
    }
    __device__ __forceinline__ Index steps() const
    {
        Index taps = 0;
        for (Index other = 0; other < TAPS; ++other)
            taps += has(other);
        return taps * (TAP / BK);
    }
    // The first k of the next step.
    __device__ __forceinline__ Index next()
    {
        if (channel == TAP) {
            channel = 0;
            do
                ++tap;
            while (!has(tap));
        }
        const Index k = tap * TAP + channel;
        channel += BK;
        return k;
    }
};

// The number of steps of a tile.
__device__ __forceinline__ Steps steps_of(const Steps &steps, const Corner &corner)
{
    Steps own = steps;
    if (PHASES)
        own.count = TileTaps(corner).steps();
    return own;
}

// By the producer thread: copies rows that are channels within taps. Boxes past the last row copy the last
// rows again; their products are not used.
template <class Tile>
__device__ __forceinline__ void fetch_taps(const TensorMap *map, Index batch, Index rows, Index row0, Index k0,
                                           Element *tile, unsigned long long *full)
{
    UNROLL for (int row = 0; row < Tile::OWN; row += Tile::BOX)
        fetch_pixels(map, batch, k0, op_min<Index>(row0 + row, rows - Tile::BOX), tile + row * BK, full);
}

// By the producer thread: copies a filter's channels of a tap. Lines of a batch follow those of the one before.
template <class Tile>
__device__ __forceinline__ void fetch_tap(const TensorMap *const *maps, Index batch, Index rows, Index row0, Index k0,
                                          Element *tile, unsigned long long *full)
{
    Tile::fetch(maps, k0 / TAP, row0 + (Tile::ALONG_K ? batch * rows : 0), k0 % TAP + (Tile::ALONG_K ? 0 : batch * TAP), tile, full);
}

// By the producer thread: copies a step's tile of A.
__device__ __forceinline__ void fetch_a(const TensorMap *const *maps, const Corner &corner, Index k0,
                                        Element *tile, unsigned long long *full)
{
    if (IM2COL_A)
        fetch_pixels(maps[0], corner.batch, corner.tile_m, k0, tile, full);
    else if (IM2COL_B)
        fetch_tap<TileA>(maps, corner.batch, M, corner.tile_m, k0, tile, full);
    else if (TAPS_A)
        fetch_taps<TileA>(maps[0], corner.batch, M, corner.tile_m, k0, tile, full);
    else
        TileA::fetch(maps, corner.batch, corner.tile_m, k0, tile, full);
}

// By the producer thread: copies a step's tile of B.
__device__ __forceinline__ void fetch_b(const TensorMap *const *maps, const Corner &corner, Index k0,
                                        Element *tile, unsigned long long *full)
{
    if (IM2COL_B)
        fetch_pixels(maps[1], corner.batch, corner.tile_n, k0, tile, full);
    else if (IM2COL_A)
        fetch_tap<TileB>(maps + 1, corner.batch, N, corner.tile_n, k0, tile, full);
    else if (TAPS_B)
        fetch_taps<TileB>(maps[1], corner.batch, N, corner.tile_n, k0, tile, full);
    else
        TileB::fetch(maps + 1, corner.batch, corner.tile_n, k0, tile, full);
}

__device__ __forceinline__ Index first_k(const Corner &corner, const Steps &steps, Index step)
{
    return corner.batch * PART + (steps.first + step * SPLITS) * BK;
}

// By the producer thread, before it waits for earlier launches: copies operands that no launch writes, of the
// first steps of the first tile.
__device__ __forceinline__ void copy_early(const TensorMap *const *maps, Stage *stages, Ring &ring,
                                           const Steps &steps)
{
    const Corner corner(0);
    const Index count = corner.exists ? op_min<Index>(steps.count, STAGES) : 0;
#pragma unroll 1
    for (int step = 0; step < count; ++step) {
        const Index k0 = first_k(corner, steps, step);
        mbarrier_expect(&ring.full[step], STEP_BYTES);
        if (EARLY_A)
            fetch_a(maps, corner, k0, stages[step].a, &ring.full[step]);
        if (EARLY_B)
            fetch_b(maps, corner, k0, stages[step].b, &ring.full[step]);
    }
}

__device__ __forceinline__ bool was_early(bool first_tile, Index step) { return first_tile && step < STAGES; }

// By the producer thread: copies all steps of a tile.
__device__ __forceinline__ void copy_operands(const TensorMap *const *maps, Stage *stages, Ring &ring,
                                              const Corner &corner, const Steps &steps, Place &place,
                                              bool first_tile)
{
#pragma unroll 1
    for (Index step = 0; step < steps.count; ++step, place.step()) {
        unsigned long long *full = &ring.full[place.stage];
        const Index k0 = first_k(corner, steps, step);
        if ((!EARLY_A && !EARLY_B) || !was_early(first_tile, step)) {
            mbarrier_wait(&ring.free[place.stage], (place.round & 1) ^ 1);   // all stages are free at first
            mbarrier_expect(full, STEP_BYTES);
        }
        if (!EARLY_A || !was_early(first_tile, step))
            fetch_a(maps, corner, k0, stages[place.stage].a, full);
        if (!EARLY_B || !was_early(first_tile, step))
            fetch_b(maps, corner, k0, stages[place.stage].b, full);
    }
}

// As copy_operands(), for phases. A box of the filter has columns of one phase, and zeros behind them. Boxes past
// the last column copy the last columns again; their products are not used.
__device__ __forceinline__ void copy_phases(const TensorMap *const *maps, Stage *stages, Ring &ring,
                                            const Corner &corner, Place &place)
{
    TileTaps taps(corner);
    const Index count = taps.steps();
#pragma unroll 1
    for (Index step = 0; step < count; ++step, place.step()) {
        mbarrier_wait(&ring.free[place.stage], (place.round & 1) ^ 1);
        unsigned long long *full = &ring.full[place.stage];
        mbarrier_expect(full, STEP_BYTES);
        const Index k0 = taps.next();
        fetch_pixels(maps[0], corner.batch, corner.tile_m, k0, stages[place.stage].a, full);
        Element *filter = stages[place.stage].b;
        UNROLL for (int row = 0; row < BN; row += 64)
            fetch_filter(maps[1], corner.batch, op_min<Index>(corner.tile_n + row, BN < BOXES_N ? N : N - 64), k0,
                         filter + row * BK, full);
    }
}

// By each consumer warp: frees a stage for the producers that write to it.
__device__ __forceinline__ void release(Ring &ring, int stage)
{
    const int lane = (int)threadIdx.x % WARP;
    if (MULTICAST == 1 && lane == 0)
        mbarrier_arrive(&ring.free[stage]);
    if (MULTICAST > 1 && lane < MULTICAST)
        mbarrier_arrive_at(&ring.free[stage], lane);
}

// Orders warp groups that compute alternate tiles: each lets the next one issue after it has waited for its
// last stage. So no group waits for a stage two rounds ahead, whose barrier would have the same parity.
struct Turns {
    int maker;
    unsigned made = 0;   // tiles so far

    __device__ __forceinline__ void await(Ring &ring) const
    {
        if (MAKERS > 1)
            mbarrier_wait(&ring.turn[maker], (made & 1) ^ (maker == 0 ? 1 : 0));
    }
    __device__ __forceinline__ void pass(Ring &ring)
    {
        if (MAKERS > 1 && (int)threadIdx.x % WARP == 0)
            mbarrier_arrive(&ring.turn[maker + 1 == MAKERS ? 0 : maker + 1]);
        ++made;
    }
};

// By each warp of a group: multiplies its part of the tile. The products of a step overlap the issue of the
// next.
__device__ __forceinline__ void multiply(Value (&acc)[WIDE / 2], const Stage *stages, Ring &ring,
                                         const Steps &steps, Place &place, Turns &turns, int group_m,
                                         int group_n)
{
    if (PHASES && steps.count == 0)
        return;
    turns.await(ring);
    Chains<CHAINS, WIDE / 2> chain;
    int last = 0;   // the stage of the previous step
#pragma unroll 1
    for (Index step = 0; step < steps.count; ++step, place.step()) {
        mbarrier_wait(&ring.full[place.stage], place.round & 1);
        open_products(acc);
        const Stage &now = stages[place.stage];
        UNROLL for (int k = 0; k < BK; k += AK)
            multiply_shared<!TileA::ALONG_K, !TileB::ALONG_K>(Product<Element, WIDE>(), acc,
                                                              TileA::part(now.a, group_m, k),
                                                              TileB::part(now.b, group_n * JOINED, k));
        close_products();
        wait_products<1>(acc);
        if (step > 0)
            release(ring, last);
        last = place.stage;
        if (CHAINS && (step + 1) % CHAIN == 0) {
            wait_products<0>(acc);
            chain.end(acc);
        }
    }
    turns.pass(ring);
    wait_products<0>(acc);
    chain.add_to(acc);
    release(ring, last);
}

// Loads QN neighbours of a row. Eight floats are two 16-byte accesses; half of each eight lanes begin with
// the second one: no bank conflicts.
__device__ __forceinline__ void read_totals(const Kept *row, int column, bool turned, Kept (&total)[QN])
{
    if (AT_ONCE<Kept, QN> == QN) {
        move_vector<QN>(total, row + column);
        return;
    }
    Kept first[4], second[4];
    move_vector<4>(first, row + column + (turned ? 4 : 0));
    move_vector<4>(second, row + column + (turned ? 0 : 4));
    UNROLL for (int e = 0; e < QN; ++e)
        total[e] = (e < 4) == turned ? second[e % 4] : first[e % 4];
}

// Writes a warp's accumulators from column `first` on to its slab.
__device__ __forceinline__ void fill_slab(Slab &slab, const Value *own, int first)
{
    const int lane = (int)threadIdx.x % WARP;
    UNROLL for (int j = 0; j < SLAB_COLUMNS / 8; ++j)
        UNROLL for (int i = 0; i < SLAB_PARTS; ++i) {
            if (first + j * 8 >= WN)
                continue;
            const Value two[2] = {own[j * 4 + i * 2], own[j * 4 + i * 2 + 1]};
            store_vector<2>(slab.at[i * 8 + lane / 4], j * 8 + lane % 4 * 2, two);
        }
}

// The position of a lane's vectors in a slab of a warp's rows; all have the same columns.
struct LaneVector {
    static constexpr int COUNT = SLAB_PARTS * 8 * SLAB_COLUMNS / QN / WARP;
    int row, column;

    __device__ __forceinline__ explicit LaneVector(int i)
    {
        const int vector = (int)threadIdx.x % WARP + i * WARP;
        row = vector / (SLAB_COLUMNS / QN);
        column = vector % (SLAB_COLUMNS / QN) * QN;
    }
};

// Epilogue: stages rows of a warp from (m0, n0) on in shared memory, so that stores are coalesced. `own`: the
// lane's sums from column `first` of the group's part on.
__device__ __forceinline__ void store_rows(const Tensors &t, const Value *own, Slab &slab,
                                           const Corner &corner, Index m0, Index n0, int first)
{
    const int lane = (int)threadIdx.x % WARP;
    fill_slab(slab, own, first);
    warp_sync();
    UNROLL_4 for (int v = lane; v < SLAB_PARTS * 8 * SLAB_COLUMNS / QN; v += WARP) {
        const int row = ROWS_FIRST ? v % (SLAB_PARTS * 8) : v / (SLAB_COLUMNS / QN);
        const int column = (ROWS_FIRST ? v / (SLAB_PARTS * 8) : v % (SLAB_COLUMNS / QN)) * QN;
        const Index m = m0 + row, n = n0 + column;
        if (!corner.stores(m, n))
            continue;
        Kept total[QN];
        read_totals(slab.at[row], column, lane / 4 % 2, total);
        finish_vector(t, corner.batch, m, n, total);
    }
    warp_sync();
}

// As store_rows(), for rows that are not aligned; the slab has finished elements of C. An access takes its elements from
// two vectors of the slab; up to QN - 1 columns may be repeated before the first column. Example: of 256 columns that begin at the
// fourth element of an access, the first 5 and the last 3 are stored one by one, and the 31 vectors between
// them whole.
struct ShiftedRows {
    Index batch, m0, n0;
    int columns;         // that exist
    bool begins, ends;   // first, last columns of the warp's part of a row

    __device__ __forceinline__ ShiftedRows(Index batch, Index m0, Index n0, bool first, bool last)
        : batch(batch), m0(m0), n0(n0), columns((int)op_min<Index>(N - n0, SLAB_COLUMNS)), begins(first),
          ends(last || N - n0 <= SLAB_COLUMNS)
    {
    }
    __device__ __forceinline__ int shift(int row) const { return shift_of(batch, m0 + row, n0); }

    // Where the first whole vector begins, and where the last one ends.
    __device__ __forceinline__ int begin(int row) const
    {
        return begins ? (QN - shift(row)) % QN : -shift(row);
    }
    __device__ __forceinline__ int end(int row) const
    {
        return begin(row) + (columns - begin(row)) / QN * QN;
    }

    // Fills columns from `from` on with the lane's sums. Positions outside of C read what the epilogue loads from the
    // last row or column; they are never stored.
    template <int COLUMNS>
    __device__ __forceinline__ void fill_from(const Tensors &t, Slab &slab, const Value *own, int from) const
    {
        const int lane = (int)threadIdx.x % WARP;
        UNROLL for (int j = 0; j < COLUMNS / 8; ++j)
            UNROLL for (int i = 0; i < SLAB_PARTS; ++i) {
                const int row = i * 8 + lane / 4, column = from + j * 8 + lane % 4 * 2;
                const Index m = op_min<Index>(m0 + row, M - 1), n = n0 + column, last = N - 1;
                const Value *const sums = own + j * 4 + i * 2;
                const Kept two[2] = {result(t, batch, m, op_min<Index>(n, last), sums[0]),
                                     result(t, batch, m, op_min<Index>(n + 1, last), sums[1])};
                move_vector<2>(slab.at[row] + QN + column, two);
            }
    }
    // Repeats the columns before the first one.
    __device__ __forceinline__ void fill(const Tensors &t, Slab &slab, const Value *own, bool first) const
    {
        if (first)
            fill_from<SLAB_COLUMNS>(t, slab, own, 0);
        else
            fill_from<SLAB_COLUMNS + QN>(t, slab, own - QN / 2, -QN);
    }
    static __device__ __forceinline__ void read(const Kept *row, int column, Kept (&total)[QN])
    {
        union {
            unsigned words[8];
            Kept at[2 * QN];
        };
        const int first = column % QN, pieces[] = {column - first, (column + QN - 1) / QN * QN};
        UNROLL for (int i = 0; i < 2; ++i) {
            unsigned piece[4];
            move_vector<4>(piece, reinterpret_cast<const unsigned *>(row + pieces[i]));
            UNROLL for (int j = 0; j < 4; ++j)
                words[i * 4 + j] = piece[j];
        }
        begin_words_at<true>(words, (unsigned)first * (unsigned)sizeof(Kept));
        UNROLL for (int e = 0; e < QN; ++e)
            total[e] = at[e];
    }
    __device__ __forceinline__ void store_vectors(const Tensors &t, const Slab &slab) const
    {
        Kept made[LaneVector::COUNT][QN];
        UNROLL for (int i = 0; i < LaneVector::COUNT; ++i) {
            const LaneVector vector(i);
            read(slab.at[vector.row], QN + op_min<int>(begin(vector.row) + vector.column, SLAB_COLUMNS - QN), made[i]);
        }
        UNROLL for (int i = 0; i < LaneVector::COUNT; ++i) {
            const LaneVector vector(i);
            const int column = begin(vector.row) + vector.column;
            if (m0 + vector.row < M && column + QN <= columns)
                move_vector<QN>(place_of(t, batch, m0 + vector.row, n0 + column), made[i]);
        }
    }
    // Stores the elements before the first and after the last whole vector: at most one vector of 64 columns.
    __device__ __forceinline__ void store_elements(const Tensors &t, const Slab &slab) const
    {
        constexpr int EACH = SLAB_PARTS * 8 * QN / WARP;
        const int lane = (int)threadIdx.x % WARP;
#pragma unroll 1
        for (int first = 0; first < (columns < SLAB_COLUMNS ? 2 * QN : QN); first += QN) {
            int row[EACH], column[EACH];
            bool stored[EACH];
            Kept made[EACH];
            UNROLL for (int i = 0; i < EACH; ++i) {
                const int e = first + lane % QN;
                row[i] = lane / QN + i * (WARP / QN);
                const int front = op_min<int>(op_max<int>(begin(row[i]), 0), columns);   // before the first vector
                column[i] = e < front ? e : end(row[i]) + e - front;
                stored[i] = m0 + row[i] < M && column[i] < columns && (e < front || ends);
                made[i] = slab.at[row[i]][QN + op_min<int>(column[i], SLAB_COLUMNS - 1)];
            }
            UNROLL for (int i = 0; i < EACH; ++i)
                if (stored[i])
                    *place_of(t, batch, m0 + row[i], n0 + column[i]) = made[i];
        }
    }
};

// By all threads of the blocks of a split: all sums are left; and later, a block has read others' before they end.
__device__ __forceinline__ void sync_splits() { cluster_sync(); }
__device__ __forceinline__ void arrive_read()
{
    warp_sync();   // lanes go to a cluster's barrier together
    cluster_arrive();
}
__device__ __forceinline__ void await_read() { cluster_wait(); }

// By each warp: leaves its sums of the tile for the blocks of the split.
__device__ __forceinline__ void leave_sums(const Value (&acc)[WIDE / 2], Sums &sums, int row, int column)
{
    const int lane = (int)threadIdx.x % WARP;
    UNROLL for (int j = 0; j < WIDE / 8; ++j)
        UNROLL for (int i = 0; i < 2; ++i) {
            const Value two[2] = {acc[j * 4 + i * 2], acc[j * 4 + i * 2 + 1]};
            move_vector<2>(sums.at[row + i * 8 + lane / 4] + j * 8 / WN * BN + column + j * 8 % WN + lane % 4 * 2, two);
        }
}

// A loop with few instructions, but for the selection of the lane's accumulators.
__device__ __forceinline__ void store_shifted_rows(const Tensors &t, const Value *acc, Slab &slab,
                                                   Index batch, Index m0, Index n0)
{
#pragma unroll 1
    for (int first = 0; first < WN && n0 + first < N; first += SLAB_COLUMNS) {
        const ShiftedRows rows(batch, m0, n0 + first, first == 0, first + SLAB_COLUMNS >= WN);
        UNROLL for (int at = 0; at < WN; at += SLAB_COLUMNS)
            if (at == first)
                rows.fill(t, slab, acc + at / 2, at == 0);
        warp_sync();
        rows.store_vectors(t, slab);
        if (rows.begins || rows.ends)
            rows.store_elements(t, slab);
        warp_sync();
    }
}

__device__ __forceinline__ void store_tile(const Tensors &t, const Value (&acc)[WIDE / 2], Slab &slab,
                                           const Corner &corner, Index m0, Index n0)
{
    static_assert(!SHIFTED || PARTS == SLAB_PARTS, "elements of 16 bits");
    if (SHIFTED) {
        store_shifted_rows(t, acc, slab, corner.batch, m0, n0);
        return;
    }
    UNROLL for (int part = 0; part < PARTS; part += SLAB_PARTS)
        UNROLL for (int first = 0; first < WN; first += SLAB_COLUMNS)
            store_rows(t, acc + first / 2 + part * 2, slab, corner, m0 + part * 8, n0 + first, first);
}

// Vectors that the epilogue loads, prefetched by so many slabs: during the last products, or while the
// previous slab is stored. For 64 x 128 sums and a 16-bit residual, 32 registers hold those of the whole
// tile.
constexpr __device__ int slabs_ahead(int bytes, int all)
{
    return bytes > 128 ? 1 : 128 / bytes < all ? 128 / bytes : all;
}
struct Ahead {
    static constexpr int ACROSS = BOXES_N / GROUPS_N / SLAB_COLUMNS, ALL = PARTS / SLAB_PARTS * ACROSS;
    static constexpr int OF_ROWS = slabs_ahead(LaneVector::COUNT * (int)sizeof(Beside), ALL);
    static constexpr int OF_COLUMNS = slabs_ahead((int)sizeof(Columns), ALL);
    static_assert(WARP % (SLAB_COLUMNS / QN) == 0, "each lane has as many, and the same columns of all rows");
    Beside rows[OF_ROWS][LaneVector::COUNT];
    Columns columns[OF_COLUMNS];

    __device__ __forceinline__ void ask_rows(const Tensors &t, const Corner &corner, Index m0, Index n0,
                                             int slab)
    {
        UNROLL for (int i = 0; i < LaneVector::COUNT; ++i) {
            const LaneVector own(i);
            const Index m = m0 + slab / ACROSS * SLAB_PARTS * 8 + own.row;
            const Index n = n0 + slab % ACROSS * SLAB_COLUMNS + own.column;
            if (corner.stores(m, n))
                read_beside(t, corner.batch, m, n, rows[slab % OF_ROWS][i]);
        }
    }
    __device__ __forceinline__ void ask_columns(const Tensors &t, const Corner &corner, Index m0, Index n0,
                                                int slab)
    {
        const Index n = n0 + slab % ACROSS * SLAB_COLUMNS + LaneVector(0).column;
        if (corner.stores_column(n))
            read_columns(t, corner.batch, m0, n, columns[slab % OF_COLUMNS]);
    }
    __device__ __forceinline__ void begin(const Tensors &t, const Corner &corner, Index m0, Index n0)
    {
        UNROLL for (int slab = 0; slab < OF_ROWS; ++slab)
            ask_rows(t, corner, m0, n0, slab);
        UNROLL for (int slab = 0; slab < OF_COLUMNS; ++slab)
            ask_columns(t, corner, m0, n0, slab);
    }
    // Prefetches the next slab's vectors, once the registers of this one are free.
    __device__ __forceinline__ void go_on(const Tensors &t, const Corner &corner, Index m0, Index n0,
                                          int slab)
    {
        if (slab + OF_ROWS < ALL)
            ask_rows(t, corner, m0, n0, slab + OF_ROWS);
        if (slab + OF_COLUMNS < ALL)
            ask_columns(t, corner, m0, n0, slab + OF_COLUMNS);
    }
};

__device__ __forceinline__ void read_lane_vector(const Slab &slab, const LaneVector &vector,
                                                 Kept (&totals)[JOINED * QN], int sum)
{
    Kept total[QN];
    read_totals(slab.at[vector.row], vector.column, (int)threadIdx.x % WARP / 4 % 2, total);
    UNROLL for (int e = 0; e < QN; ++e)
        totals[sum * QN + e] = total[e];
}

// Transposes a lane's sums through the slab, one sum after the other.
__device__ __forceinline__ void turn_sums(Kept (&totals)[LaneVector::COUNT][JOINED * QN], const Value *own,
                                          Slab &slab, const Corner &corner, Index m0, Index n0)
{
    UNROLL for (int sum = 0; sum < JOINED; ++sum) {
        fill_slab(slab, own + sum * (WN / 2), 0);
        warp_sync();
        UNROLL for (int i = 0; i < LaneVector::COUNT; ++i) {
            const LaneVector vector(i);
            if (corner.stores(m0 + vector.row, n0 + vector.column))
                read_lane_vector(slab, vector, totals[i], sum);
        }
        warp_sync();
    }
}

// As store_tile(), with prefetched vectors.
__device__ __forceinline__ void store_tile_beside(const Tensors &t, const Value (&acc)[WIDE / 2], Slab &slab,
                                                  const Corner &corner, Index m0, Index n0, Ahead &ahead)
{
    UNROLL for (int step = 0; step < Ahead::ALL; ++step) {
        const int part = step / Ahead::ACROSS * SLAB_PARTS, first = step % Ahead::ACROSS * SLAB_COLUMNS;
        const Value *const own = acc + first / 2 + part * 2;
        Kept totals[LaneVector::COUNT][JOINED * QN];
        if (JOINED > 1)
            turn_sums(totals, own, slab, corner, m0 + part * 8, n0 + first);
        else
            fill_slab(slab, own, first);
        warp_sync();
        UNROLL for (int i = 0; i < LaneVector::COUNT; ++i) {
            const LaneVector vector(i);
            const Index m = m0 + part * 8 + vector.row, n = n0 + first + vector.column;
            if (!corner.stores(m, n))
                continue;
            if (JOINED == 1)
                read_lane_vector(slab, vector, totals[i], 0);
            finish_vector(t, corner.batch, m, n, totals[i], ahead.rows[step % Ahead::OF_ROWS][i],
                          ahead.columns[step % Ahead::OF_COLUMNS]);
        }
        warp_sync();
        ahead.go_on(t, corner, m0, n0, step);
    }
}

// One of a lane's vectors of the warp's rows that this block of the split reduces: every SPLITS-th one.
struct ShareVector {
    static constexpr int LINE = WN / QN, ALL = 16 / SPLITS * LINE, COUNT = (ALL + WARP - 1) / WARP;
    int row, column;   // of the warp's
    bool exists;

    __device__ __forceinline__ ShareVector(const Corner &corner, Index m0, Index n0, int split, int i)
    {
        const int vector = (int)threadIdx.x % WARP + i * WARP;
        row = vector / LINE * SPLITS + split;
        column = vector % LINE * QN;
        exists = vector < ALL && corner.stores(m0 + row, n0 + column);
    }
    // Reduces in the order of the blocks. `at`: the vector in their sums.
    __device__ __forceinline__ void read(Value *at, Kept (&kept)[JOINED * QN]) const
    {
        Value totals[SPLITS][JOINED * QN];
        UNROLL for (int block = 0; block < SPLITS; ++block)
            UNROLL for (int sum = 0; sum < JOINED; ++sum) {
                Value part[QN];
                load_vector<QN>(cluster_map(at, block), sum * BN, part);
                UNROLL for (int e = 0; e < QN; ++e)
                    totals[block][sum * QN + e] = part[e];
            }
        UNROLL for (int e = 0; e < JOINED * QN; ++e) {
            UNROLL for (int block = 1; block < SPLITS; ++block)
                totals[0][e] = op_add(totals[0][e], totals[block][e]);
            kept[e] = narrow<Kept>(totals[0][e]);
        }
    }
};

// By each warp of a split: leaves its sums, and reduces and stores the block's share of the warp's rows. All blocks stay until
// their sums are read.
__device__ __forceinline__ void store_share(const Tensors &t, const Value (&acc)[WIDE / 2], Sums &sums,
                                            const Corner &corner, int split, int row, int column)
{
    constexpr int COUNT = ShareVector::COUNT;
    const Index m0 = corner.tile_m + row, n0 = corner.tile_n + column;
    Kept kept[COUNT][QN];
    leave_sums(acc, sums, row, column);
    sync_splits();
    UNROLL for (int i = 0; i < COUNT; ++i) {
        const ShareVector own(corner, m0, n0, split, i);
        if (own.exists)
            own.read(sums.at[row + own.row] + column + own.column, kept[i]);
    }
    arrive_read();
    UNROLL for (int i = 0; i < COUNT; ++i) {
        const ShareVector own(corner, m0, n0, split, i);
        if (own.exists)
            finish_vector(t, corner.batch, m0 + own.row, n0 + own.column, kept[i]);
    }
    await_read();
}

// The same with vectors that the epilogue loads, before it waits for the other blocks.
__device__ __forceinline__ void store_share_beside(const Tensors &t, const Value (&acc)[WIDE / 2], Sums &sums,
                                                   const Corner &corner, int split, int row, int column)
{
    constexpr int COUNT = ShareVector::COUNT;
    const Index m0 = corner.tile_m + row, n0 = corner.tile_n + column;
    Kept kept[COUNT][JOINED * QN];
    Beside rows[COUNT];
    Columns columns[COUNT];
    leave_sums(acc, sums, row, column);
    UNROLL for (int i = 0; i < COUNT; ++i) {
        const ShareVector own(corner, m0, n0, split, i);
        if (own.exists) {
            read_beside(t, corner.batch, m0 + own.row, n0 + own.column, rows[i]);
            read_columns(t, corner.batch, m0 + own.row, n0 + own.column, columns[i]);
        }
    }
    sync_splits();
    UNROLL for (int i = 0; i < COUNT; ++i) {
        const ShareVector own(corner, m0, n0, split, i);
        if (own.exists)
            own.read(sums.at[row + own.row] + column + own.column, kept[i]);
    }
    arrive_read();
    UNROLL for (int i = 0; i < COUNT; ++i) {
        const ShareVector own(corner, m0, n0, split, i);
        if (own.exists)
            finish_vector(t, corner.batch, m0 + own.row, n0 + own.column, kept[i], rows[i], columns[i]);
    }
    await_read();
}

// The same for rows that are not aligned, one element after the other.
__device__ __forceinline__ void store_share_elements(const Tensors &t, const Value (&acc)[WIDE / 2], Sums &sums,
                                                     const Corner &corner, int split, int row, int column)
{
    constexpr int COUNT = 16 / SPLITS * WN / WARP;
    Value totals[COUNT];
    leave_sums(acc, sums, row, column);
    sync_splits();
    UNROLL for (int i = 0; i < COUNT; ++i) {
        const int e = (int)threadIdx.x % WARP + i * WARP, down = e / WN * SPLITS + split, right = e % WN;
        if (!corner.stores(corner.tile_m + row + down, corner.tile_n + column + right))
            continue;
        totals[i] = cluster_map(&sums, 0)->at[row + down][column + right];
        UNROLL for (int block = 1; block < SPLITS; ++block)
            totals[i] = op_add(totals[i], cluster_map(&sums, block)->at[row + down][column + right]);
    }
    arrive_read();
    UNROLL for (int i = 0; i < COUNT; ++i) {
        const int e = (int)threadIdx.x % WARP + i * WARP;
        const Index m = corner.tile_m + row + e / WN * SPLITS + split, n = corner.tile_n + column + e % WN;
        if (corner.stores(m, n))
            *place_of(t, corner.batch, m, n) = result(t, corner.batch, m, n, totals[i]);
    }
    await_read();
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    ENTRY(PARAMETERS)
{
    unsigned char *const start = rollerc_shared + (0u - shared_address(rollerc_shared)) % ALIGNMENT;
    static_assert(RING + (int)sizeof(Ring) + ALIGNMENT <= EVERYTHING.bytes,
                  "all stages fit, wherever they begin");
    Stage *const stages = reinterpret_cast<Stage *>(start);
    Ring &ring = *reinterpret_cast<Ring *>(start + RING);
    const int warp = same_in_warp((int)threadIdx.x / WARP), split = (int)((Index)blockIdx.x % SPLITS);
    const Steps steps(split);
    const TensorMap *const maps[] = MAP_LIST;   // of A, and of each B

    if (threadIdx.x == 0) {
        UNROLL for (int i = 0; i < 1 + JOINED; ++i)
            prefetch_map(maps[i]);
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(&ring.full[stage], 1);
            mbarrier_init(&ring.free[stage], MULTICAST * GROUPS_EACH * 4);
        }
        UNROLL for (int maker = 0; MAKERS > 1 && maker < MAKERS; ++maker)
            mbarrier_init(&ring.turn[maker], GROUPS_EACH * 4);
    }
    if (ROWS_B < BN)
        clear_behind(stages);
    if (MULTICAST > 1)
        cluster_sync();
    else
        block_sync();
    if ((EARLY_A || EARLY_B) && threadIdx.x == 0)
        copy_early(maps, stages, ring, steps);
    const Tensors t = TENSORS;

    Place place;
    if (warp < 4) {
        // Load.
        if (MOVES_REGISTERS)
            give_registers<GROUPS == 2 ? 40 : 32>();
        if (threadIdx.x == 0)
#pragma unroll 1
            for (int turn = 0; turn < TURNS; turn = next_turn(turn, TURNS)) {
                const Corner corner(turn);
                if (!corner.exists)
                    continue;
                if (PHASES)
                    copy_phases(maps, stages, ring, corner, place);
                else
                    copy_operands(maps, stages, ring, corner, steps, place, turn == 0);
            }
        warp_sync();
        if (SPLITS > 1) {
            roles_sync<THREADS>();
            sync_splits();
            arrive_read();
            await_read();
        }
    } else {
        // Compute and store.
        if (MOVES_REGISTERS)
            take_registers<GROUPS == 2 ? 232 : 160>();
        const int maker = MAKERS > 1 ? (warp / 4 - 1) / GROUPS_EACH : 0;
        const int group = warp / 4 - 1 - maker * GROUPS_EACH;
        const int group_m = group / GROUPS_N * WM, group_n = group % GROUPS_N * WN;
        Turns turns = {maker};
        int next = 0;   // maker
        [[maybe_unused]] Slab &slab = reinterpret_cast<Slab *>(start + SLABS)[warp - 4];
#pragma unroll 1
        for (int turn = 0; turn < TURNS; turn = next_turn(turn, TURNS)) {
            const Corner corner(turn);
            if (!corner.exists)
                continue;
            const bool own = MAKERS == 1 || next == maker;
            next = next + 1 == MAKERS ? 0 : next + 1;
            if (!own) {
                place.pass_tile();
                continue;
            }
            Value acc[WIDE / 2] = {};   // (WM,WIDE) of four warps
            if (REDUCES) {
                multiply(acc, stages, ring, steps_of(steps, corner), place, turns, group_m, group_n);
                reduce_rows<Row, WN>(t, acc, corner.batch, corner.m + group_m + warp % 4 * 16,
                                     corner.n + group_n, M, N);
            } else if (SPLITS > 1) {
                Sums &sums = *reinterpret_cast<Sums *>(start);
                multiply(acc, stages, ring, steps, place, turns, group_m, group_n);
                roles_sync<THREADS>();   // all products of the block are done
                if (SHIFTED)
                    store_share_elements(t, acc, sums, corner, split, group_m + warp % 4 * 16, group_n);
                else if (BESIDE)
                    store_share_beside(t, acc, sums, corner, split, group_m + warp % 4 * 16, group_n);
                else
                    store_share(t, acc, sums, corner, split, group_m + warp % 4 * 16, group_n);
            } else if (BESIDE) {
                const Index m0 = corner.tile_m + group_m + warp % 4 * 16;
                const Index n0 = corner.tile_n + group_n;
                Ahead ahead;
                ahead.begin(t, corner, m0, n0);
                multiply(acc, stages, ring, steps_of(steps, corner), place, turns, group_m, group_n);
                store_tile_beside(t, acc, slab, corner, m0, n0, ahead);
            } else {
                multiply(acc, stages, ring, steps_of(steps, corner), place, turns, group_m, group_n);
                store_tile(t, acc, slab, corner, corner.tile_m + group_m + warp % 4 * 16,
                           corner.tile_n + group_n);
            }
        }
    }
    if (MULTICAST > 1)
        cluster_sync();   // other blocks still copy or arrive here
}
}   // namespace KERNEL
