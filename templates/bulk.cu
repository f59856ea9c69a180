// Matrix multiply on the tensor cores of sm_90a: C[b,m,n] = sum over k of A[b,m,k] * B[b,k,n], then a
// pointwise epilogue. Of f16 and bf16 with sums in f32, of f32 rounded to tf32, of bytes with sums in i32.
// Warps have roles: one thread copies boxes of A and B to shared memory, while groups of four warps multiply
// what has come.
//
// One thread block computes BM x BN tiles of C, one after the other, and each group a WM x WN part of that in
// registers. It walks along k in steps of BK. STAGES tiles of A and of B lie in shared memory, and two
// barriers belong to each:
//
//   full    the step's boxes have come      the copying thread expects so many bytes, groups wait for them
//   free    the step's products are done    each warp arrives, the copying thread waits before it goes on
//
// The copies run ahead as far as there are stages, also into the next tile while this one is stored.
// NEIGHBOURS blocks of a cluster have tiles side by side along m: each copies a part of their tile of B to
// all of them.
//
// Where there are too few tiles of C for all SMs, two SHARERS of a cluster make each: one walks along the
// first half of k, the other along the second one. In the end each leaves half of its sums in the other's
// shared memory, adds up the other half, and stores that.
//
// Where each block makes many tiles, MAKERS groups each make whole ones, in turn: one stores its tile, and
// makes what its epilogue says, while the tensor cores multiply for another.
//
// Several sums of the same points, of one A and a B each, are made together: a stage has all their B's, a
// group multiplies A with all of them at once, and a lane has the sums of a point side by side.
//
// A and B of 16-bit elements may lie in memory either way round, others lie along k; in shared memory they
// lie as they do there.
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
#define MAPS const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b
#define MAP_LIST {&map_a, &map_b}
constexpr Region EVERYTHING = {0, 216136};   // of shared memory: where it begins, bytes
constexpr int SHARED_BYTES = 216136;   // of a block
using Element = f16;                                          // of A and B
using Value = float;                                          // of the products and their sum
using Kept = f16;                                             // what the sum is rounded to
constexpr Index M = 1024, N = 1024, K = 1024;                 // problem
constexpr int BM = 128, BN = 256, BK = 64;                    // rTile, shared memory
constexpr int WM = 64, WN = 256;                              // rTile, registers of a group of four warps
constexpr int STAGES = 4;                                     // steps of tiles in shared memory
constexpr Index CHAIN = 128;                                  // steps whose products are added up in one go
constexpr int QN = 8;                                         // columns of C that are one aligned access
constexpr bool SHIFTED = false;                               // rows of C begin within one
constexpr Index PANEL = 8;                                    // rows of blocks that run together
constexpr int JOINED = 1;   // of each point, whose B's lie side by side in a stage
constexpr Index BATCHES = 1;
constexpr int NEIGHBOURS = 2, SHARERS = 1;   // blocks of a cluster: side by side, and of the same tile
constexpr int TURNS = 1;                                      // tiles that each makes
constexpr int MAKERS = 1;                                     // groups that each make whole tiles, in turn
constexpr Index CLUSTERS = 16;
constexpr bool BACK_M = false, BACK_N = false;                // the last tile lies back, to end where C does
// Of a convolution rows of a factor are pixels, one after the other from row to row and image to image, and k
// is tap by tap: a step has channels of what one tap of the filter sees. The other factor is the filter, whose
// taps are boxes of their own. Of the filter's gradient k is the pixels instead, of which each batch may have
// a part, and rows of one factor are tap by tap the channels that it sees.
constexpr bool IM2COL_A = false, IM2COL_B = false, TAPS_A = false, TAPS_B = false;
constexpr Index PART = 0;                                     // of k, which each batch has
constexpr Index TAP = K;                                      // a tap's channels, in whole lines
// Columns of C may be several phases, whose taps are not the same. Those that a tile's columns do not have
// are left out.
constexpr bool PHASES = false;
constexpr Index PHASE = N, TAPS = 1;                          // columns of a phase, and taps of all
constexpr bool BESIDE = false;   // the epilogue reads vectors, which are asked for ahead
constexpr bool REDUCES = false;                               // rows of C are reduced, and C is not stored
constexpr bool EARLY_A = false, EARLY_B = false;   // no launch of the program writes it

struct OperandA {
    static constexpr bool ALONG_K = true;    // neighbours along k are neighbours in memory
    static constexpr bool BATCHED = false;   // each batch has its own
};
struct OperandB {
    static constexpr bool ALONG_K = false;
    static constexpr bool BATCHED = false;
};

// A box of pixels from that one on, under the tap and from the channel on that `seen` says.
__device__ __forceinline__ void fetch_pixels(const TensorMap *map, Index pixel, Index seen, Element *tile,
                                             unsigned long long *full)
{
    const int at[] = {static_cast<int>(seen), static_cast<int>(pixel), 0}, offset[] = {0};
    copy_pixels(tile, map, at, offset, full);
}

// Of all other taps the phase has zeros.
__device__ __forceinline__ bool has_tap(Index phase, Index tap) { return phase == 0 && tap == 0; }

// A box of the filter from column n and from the channel on that k says.
__device__ __forceinline__ void fetch_filter(const TensorMap *map, Index n, Index k, Element *tile,
                                             unsigned long long *full)
{
    const int at[] = {static_cast<int>(n), static_cast<int>(k)};
    copy_box_at(tile, map, at, full);
}

// Elements of C that lie before this one in the same aligned access.
__device__ __forceinline__ int shift_of(Index batch, Index m, Index n)
{
    return (int)((unsigned)(m * 1024 + n) % QN);
}

// The epilogue of one element of C.
__device__ __forceinline__ void finish(const Tensors &t, Index batch, Index m, Index n, Value total)
{
    store(t.out0, m * 1024 + n, total);
}
__device__ __forceinline__ void finish_vector(const Tensors &t, Index batch, Index m, Index n,
                                              const Kept (&total)[QN])
{
    move_vector<QN>(t.out0 + (m * 1024 + n), total);
}

// What the epilogue reads beside the sums of QN columns of a row: of that row, and of all rows.
struct Beside {};
__device__ __forceinline__ void read_beside(const Tensors &, Index, Index, Index, Beside &) {}
struct Columns {};
__device__ __forceinline__ void read_columns(const Tensors &, Index, Index, Index, Columns &) {}
__device__ __forceinline__ void finish_vector(const Tensors &t, Index batch, Index m, Index n,
                                              const Kept (&total)[QN], const Beside &, const Columns &)
{
    finish_vector(t, batch, m, n, total);
}

// A row's results over the columns of a tile, and what they are made of.
struct Row {
    Value largest = Max::identity<Value>();
    static constexpr int PASSES = 1;   // those of the second one are made of the first one's

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

constexpr int WIDE = JOINED * WN;   // columns of an instruction's B, of all sums
constexpr int GROUPS_N = BN / WN, GROUPS_EACH = BM / WM * GROUPS_N;   // of a tile
constexpr int GROUPS = MAKERS * GROUPS_EACH;
constexpr int BYTES = (int)sizeof(Element), AK = 32 / BYTES;   // of an instruction, of WM rows and WN columns
constexpr Index CLUSTERS_M = ((M + BM - 1) / BM + NEIGHBOURS - 1) / NEIGHBOURS, BLOCKS_N = (N + BN - 1) / BN;
constexpr Index ROWS = PANEL > NEIGHBOURS ? PANEL / NEIGHBOURS : 1;   // of clusters, in a panel
constexpr Index STEPS = (K + BK - 1) / BK;
constexpr Index SHARE = (STEPS + SHARERS - 1) / SHARERS;   // of the steps, that the first sharer has
constexpr bool CHAINS = SHARE > CHAIN;   // more than one
constexpr int PARTS = 2 / SHARERS;       // of eight rows, which each warp stores of its sixteen,
constexpr int SLAB_PARTS = sizeof(Kept) == 2 ? PARTS : 1, SLAB_COLUMNS = 64;   // of which so many go together
// Of 65536 registers three groups of warps have 168 a thread: too few for sums of 64 x 256, or of 64 x 192 and
// what the epilogue asks for ahead, and too many for those who copy.
constexpr bool MOVES_REGISTERS = GROUPS == 2 && WIDE / 2 * (CHAINS ? 2 : 1) > (BESIDE ? 64 : 96);

static_assert(BM % WM == 0 && BN % WN == 0 && WM == 64 && WN % SLAB_COLUMNS == 0,
              "groups of warps cover the block's tile");
static_assert(JOINED == 1 || (BESIDE && !SHIFTED && !IM2COL_A && !IM2COL_B), "only those have sums side by side");
static_assert(BK * BYTES == 128, "a line of an operand in shared memory");
static_assert(QN == 1 || SHIFTED || N % QN == 0, "rows of C hold whole vectors");
static_assert((!BACK_M || (M > BM && !SHIFTED)) && (!BACK_N || (N > BN && N % QN == 0 && !SHIFTED)),
              "it has where to lie");
static_assert(!(TAPS_A && OperandA::ALONG_K) && !(TAPS_B && (OperandB::ALONG_K || NEIGHBOURS > 1)),
              "this block's boxes of channels");
static_assert((STEPS - 1) * BK < K && STAGES >= 2, "no step is in vain");
static_assert(MAKERS == 1 || (SHARERS == 1 && !PHASES && !REDUCES), "all tiles have as many steps");
static_assert(SHARERS == 1 || (SHARERS == 2 && NEIGHBOURS == 1 && TURNS == 1 && STEPS > 1),
              "both have a step");

// A tile of an operand in shared memory, as describe_operand() has it, which PARTS blocks bring together. Of
// several sums it has BR rows for each: side by side what a group multiplies at once, EACH rows for one sum
// after the other.
template <class Operand, int BR, int PARTS, int COUNT, int EACH> struct Tile {
    static constexpr bool ALONG_K = Operand::ALONG_K;
    static_assert(ALONG_K || BYTES == 2, "others are not turned");
    static constexpr int ALL = COUNT * BR, ELEMENTS = ALL * BK, OWN = ALL / PARTS;
    static constexpr int BOX = !ALONG_K ? 64 : COUNT > 1 ? EACH : OWN;   // rows that one copy brings
    static_assert(ALL % PARTS == 0 && OWN % BOX == 0 && BOX <= 256, "boxes cover the tile");

    // By one thread: this block's part.
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
    // From this row and k on.
    static __device__ __forceinline__ unsigned long long part(const Element *tile, int row, int k)
    {
        return describe_operand(tile + row * BK + (ALONG_K ? k : k * 64), BK * 128, 8 * 128);
    }
};

// Of a tile that is the only one, no more rows are copied than there are: of those that an instruction
// multiplies, the rows behind A's are B's, and those behind B's are zeros. Nobody asks for their products.
constexpr int ROWS_A = OperandA::ALONG_K && M < BM ? ((int)M + 7) / 8 * 8 : BM;
constexpr int ROWS_B = OperandB::ALONG_K && NEIGHBOURS == 1 && JOINED == 1 && N < BN ? (int)N : BN;
static_assert(BM - ROWS_A <= JOINED * BN, "they lie in the same stage");

using TileA = Tile<OperandA, ROWS_A, 1, 1, ROWS_A>;
using TileB = Tile<OperandB, ROWS_B, NEIGHBOURS, JOINED, WN>;

struct Stage {
    Element a[TileA::ELEMENTS], b[JOINED * BN * BK];
};
constexpr int STEP_BYTES = (TileA::ELEMENTS + TileB::ELEMENTS) * BYTES;   // that are copied

// By all threads, once: no copy reaches there.
__device__ __forceinline__ void clear_behind(Stage *stages)
{
    constexpr int PIECES = (BN - ROWS_B) * BK * BYTES / (int)sizeof(bits128);
    for (int stage = 0; stage < STAGES; ++stage)
        for (int i = (int)threadIdx.x; i < PIECES; i += (int)blockDim.x)
            reinterpret_cast<bits128 *>(stages[stage].b + ROWS_B * BK)[i] = bits128();
    show_operands();
}

// A warp's rows of C on their way from registers to memory, some columns at a time.
struct Slab {
    Kept at[SLAB_PARTS * 8][SLAB_COLUMNS + 8];   // no two lanes of those that write together meet in a bank
};

// What the block that shares this one's tile leaves in its shared memory: half of each thread's sums, lane
// beside lane.
struct Shared {
    Value at[WIDE / 16][4 * WARP][4];
};

struct Ring {
    unsigned long long full[STAGES], free[STAGES], turn[MAKERS];   // that maker may multiply
};

constexpr int ALIGNMENT = 1024, SLABS = STAGES * (int)sizeof(Stage);
constexpr int SUMS = SLABS + GROUPS * 4 * (int)sizeof(Slab);
constexpr int RING = SUMS + (SHARERS > 1 ? GROUPS * (int)sizeof(Shared) : 0);

// Where one is in the ring of stages, and how often one has walked through it.
struct Place {
    int stage = 0;
    unsigned round = 0;

    __device__ __forceinline__ void step()
    {
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        round += stage == 0;
    }
    // Over the steps of a tile that is another maker's.
    __device__ __forceinline__ void pass_tile()
    {
        stage += STEPS % STAGES;
        round += STEPS / STAGES + (stage >= STAGES);
        stage -= stage >= STAGES ? STAGES : 0;
    }
};

// The tile of C that this block makes in a turn. Of the last turn, which may have fewer, the last blocks make
// them. Boxes that go on behind the end of a tensor come slowly: where the last tile lies back instead, it
// holds elements of its neighbour's, too, which it does not store.
struct Corner {
    Index batch, m, n;      // of what it stores
    Index tile_m, tile_n;   // of the tile
    bool exists;

    __device__ __forceinline__ explicit Corner(Index turn)
    {
        constexpr Index ALL = CLUSTERS_M * BLOCKS_N, FREE = CLUSTERS * TURNS - ALL * BATCHES;
        const Index rank = (Index)blockIdx.x % NEIGHBOURS;
        const Index number = turn * CLUSTERS + (Index)blockIdx.x / (NEIGHBOURS * SHARERS);
        const Index cluster = number - (turn + 1 == TURNS ? FREE : 0), block = cluster % ALL;
        const Index panel = block / (ROWS * BLOCKS_N) * ROWS;   // first row of clusters of this panel
        const Index rows = op_min<Index>(CLUSTERS_M - panel, ROWS);
        exists = cluster >= turn * CLUSTERS;
        batch = cluster / ALL;
        m = ((panel + block % (ROWS * BLOCKS_N) % rows) * NEIGHBOURS + rank) * BM;
        n = block % (ROWS * BLOCKS_N) / rows * BN;
        tile_m = BACK_M ? op_min<Index>(m, M - BM) : m;
        tile_n = BACK_N ? op_min<Index>(n, N - BN) : n;
    }
    __device__ __forceinline__ bool stores_column(Index column) const
    {
        return BACK_N ? column >= n : column < N;
    }
    __device__ __forceinline__ bool stores(Index row, Index column) const
    {
        return (BACK_M ? row >= m : row < M) && stores_column(column);
    }
};

// The steps along k that are this block's.
struct Steps {
    Index first, count;

    // One of two constants, so that the compiler sees a loop that is entered: else it moves sums between
    // registers, and products wait for that.
    __device__ __forceinline__ explicit Steps(int sharer)
        : first(sharer * SHARE), count(sharer == 0 ? SHARE : STEPS - SHARE)
    {
    }
};

// The taps that a tile's phases have, of which each is so many steps.
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
    // The next step's first k.
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

// The steps of a tile.
__device__ __forceinline__ Steps steps_of(const Steps &steps, const Corner &corner)
{
    Steps own = steps;
    if (PHASES)
        own.count = TileTaps(corner).steps();
    return own;
}

// By one thread: rows of a tile that are channels of one tap after the other, of which there are so many.
// Behind the last ones come those again, which nobody asks for.
template <class Tile>
__device__ __forceinline__ void fetch_taps(const TensorMap *map, Index rows, Index row0, Index k0,
                                           Element *tile, unsigned long long *full)
{
    UNROLL for (int row = 0; row < Tile::OWN; row += Tile::BOX)
        fetch_pixels(map, k0, op_min<Index>(row0 + row, rows - Tile::BOX), tile + row * BK, full);
}

// By one thread: a step's part of A.
__device__ __forceinline__ void fetch_a(const TensorMap *const *maps, const Corner &corner, Index k0,
                                        Element *tile, unsigned long long *full)
{
    if (IM2COL_A)
        fetch_pixels(maps[0], corner.tile_m, k0, tile, full);
    else if (IM2COL_B)
        TileA::fetch(maps, k0 / TAP, corner.tile_m, k0 % TAP, tile, full);
    else if (TAPS_A)
        fetch_taps<TileA>(maps[0], M, corner.tile_m, k0, tile, full);
    else if (TAPS_B)
        TileA::fetch(maps, 0, corner.tile_m, k0, tile, full);
    else
        TileA::fetch(maps, corner.batch, corner.tile_m, k0, tile, full);
}

// By one thread: a step's part of B.
__device__ __forceinline__ void fetch_b(const TensorMap *const *maps, const Corner &corner, Index k0,
                                        Element *tile, unsigned long long *full)
{
    if (IM2COL_B)
        fetch_pixels(maps[1], corner.tile_n, k0, tile, full);
    else if (IM2COL_A)
        TileB::fetch(maps + 1, k0 / TAP, corner.tile_n, k0 % TAP, tile, full);
    else if (TAPS_B)
        fetch_taps<TileB>(maps[1], N, corner.tile_n, k0, tile, full);
    else if (TAPS_A)
        TileB::fetch(maps + 1, 0, corner.tile_n, k0, tile, full);
    else
        TileB::fetch(maps + 1, corner.batch, corner.tile_n, k0, tile, full);
}

__device__ __forceinline__ Index first_k(const Corner &corner, const Steps &steps, Index step)
{
    return corner.batch * PART + (steps.first + step) * BK;
}

// By one thread, before the launches before this one have ended: of the first tile's first steps what no
// launch writes.
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

// By one thread.
__device__ __forceinline__ void copy_operands(const TensorMap *const *maps, Stage *stages, Ring &ring,
                                              const Corner &corner, const Steps &steps, Place &place,
                                              bool first_tile)
{
#pragma unroll 1
    for (Index step = 0; step < steps.count; ++step, place.step()) {
        unsigned long long *full = &ring.full[place.stage];
        const Index k0 = first_k(corner, steps, step);
        if ((!EARLY_A && !EARLY_B) || !was_early(first_tile, step)) {
            mbarrier_wait(&ring.free[place.stage], (place.round & 1) ^ 1);   // at first as if they had been used
            mbarrier_expect(full, STEP_BYTES);
        }
        if (!EARLY_A || !was_early(first_tile, step))
            fetch_a(maps, corner, k0, stages[place.stage].a, full);
        if (!EARLY_B || !was_early(first_tile, step))
            fetch_b(maps, corner, k0, stages[place.stage].b, full);
    }
}

// By one thread: of phases. A box of the filter has columns of one; behind the last ones come those again,
// which nobody asks for.
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
        fetch_pixels(maps[0], corner.tile_m, k0, stages[place.stage].a, full);
        Element *filter = stages[place.stage].b;
        UNROLL for (int row = 0; row < BN; row += 64)
            fetch_filter(maps[1], op_min<Index>(corner.tile_n + row, N - 64), k0, filter + row * BK, full);
    }
}

// By each warp: those who copy to the stage may do so again.
__device__ __forceinline__ void release(Ring &ring, int stage)
{
    const int lane = (int)threadIdx.x % WARP;
    if (NEIGHBOURS == 1 && lane == 0)
        mbarrier_arrive(&ring.free[stage]);
    if (NEIGHBOURS > 1 && lane < NEIGHBOURS)
        mbarrier_arrive_at(&ring.free[stage], lane);
}

// By each warp of a maker, of which each lets the next one multiply: it has waited for its last boxes then, so
// that nobody waits for boxes two rounds ahead, whose barriers would look alike.
struct Turns {
    int maker;
    unsigned made = 0;   // tiles

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

// By each warp of a group: its part of the tile. The products of one step go on while the next one's begin.
__device__ __forceinline__ void multiply(Value (&acc)[WIDE / 2], const Stage *stages, Ring &ring,
                                         const Steps &steps, Place &place, Turns &turns, int group_m,
                                         int group_n)
{
    if (PHASES && steps.count == 0)
        return;
    turns.await(ring);
    Chains<CHAINS, WIDE / 2> chain;
    int last = 0;   // the stage of the step before
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

// By all threads of both sharers: behind it, both have started.
__device__ __forceinline__ void await_sharer() { cluster_wait(); }

// By all threads of both sharers: behind it, what they leave for each other is there.
__device__ __forceinline__ void meet_sharers() { cluster_sync(); }

// By each warp of a group. Of its sixteen rows a lane has sums of two, eight apart: this block keeps the
// first one of each or the second one, in place of the first.
__device__ __forceinline__ void add_shared(Value (&acc)[WIDE / 2], Shared &sums, int sharer)
{
    const int thread = (int)threadIdx.x % (4 * WARP);
    Shared &there = *cluster_map(&sums, 1 - sharer);
    await_sharer();
    UNROLL for (int v = 0; v < WIDE / 16; ++v) {
        Value left[4];
        UNROLL for (int e = 0; e < 4; ++e) {
            const int at = v * 8 + e / 2 * 4 + e % 2;
            const Value first = acc[at], second = acc[at + 2];
            left[e] = sharer ? first : second;
            acc[at] = sharer ? second : first;
        }
        move_vector<4>(there.at[v][thread], left);
    }
    meet_sharers();
    UNROLL for (int v = 0; v < WIDE / 16; ++v) {
        Value more[4];
        move_vector<4>(more, sums.at[v][thread]);
        UNROLL for (int e = 0; e < 4; ++e)
            acc[v * 8 + e / 2 * 4 + e % 2] = op_add(acc[v * 8 + e / 2 * 4 + e % 2], more[e]);
    }
}

// QN neighbours of a row. Eight of four bytes are two accesses of 16: of eight lanes side by side half take
// the second one first, so that no two meet in a bank.
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

// Some columns of a warp's sums on their way from registers to rows, from that column of the slab on.
template <int COLUMNS> __device__ __forceinline__ void fill_slab(Slab &slab, const Value *own, int first)
{
    const int lane = (int)threadIdx.x % WARP;
    UNROLL for (int j = 0; j < COLUMNS / 8; ++j)
        UNROLL for (int i = 0; i < SLAB_PARTS; ++i) {
            const Value two[2] = {own[j * 4 + i * 2], own[j * 4 + i * 2 + 1]};
            store_vector<2>(slab.at[i * 8 + lane / 4], first + j * 8 + lane % 4 * 2, two);
        }
}

// Some rows of a warp from (m0, n0) on, by way of shared memory so that lanes side by side have columns side
// by side. `own`: the lane's sums.
__device__ __forceinline__ void store_rows(const Tensors &t, const Value *own, Slab &slab,
                                           const Corner &corner, Index m0, Index n0)
{
    const int lane = (int)threadIdx.x % WARP;
    fill_slab<SLAB_COLUMNS>(slab, own, 0);
    warp_sync();
    UNROLL_4 for (int v = lane; v < SLAB_PARTS * 8 * SLAB_COLUMNS / QN; v += WARP) {
        const int row = v / (SLAB_COLUMNS / QN), column = v % (SLAB_COLUMNS / QN) * QN;
        const Index m = m0 + row, n = n0 + column;
        if (!corner.stores(m, n))
            continue;
        Kept total[QN];
        read_totals(slab.at[row], column, lane / 4 % 2, total);
        finish_vector(t, corner.batch, m, n, total);
    }
    warp_sync();
}

// The same of rows that begin within an aligned access. The elements of one lie in two vectors of the slab,
// where up to QN - 1 columns may lie once more in front of the first one. Of 256 columns from the fourth element
// of an access on the first 5 and the last 3 are stored one by one, between them are 31 vectors.
struct ShiftedRows {
    Index batch, m0, n0;
    int columns;         // that exist
    bool begins, ends;   // with them a row of the warp's part

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

    // Those before the first one lie before it once more.
    static __device__ __forceinline__ void fill(Slab &slab, const Value *own, bool first)
    {
        if (first)
            fill_slab<SLAB_COLUMNS>(slab, own, QN);
        else
            fill_slab<SLAB_COLUMNS + QN>(slab, own - QN / 2, 0);
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
        UNROLL_4 for (int v = (int)threadIdx.x % WARP; v < SLAB_PARTS * 8 * SLAB_COLUMNS / QN; v += WARP) {
            const int row = v / (SLAB_COLUMNS / QN), column = begin(row) + v % (SLAB_COLUMNS / QN) * QN;
            if (m0 + row >= M || column + QN > columns)
                continue;
            Kept total[QN];
            read(slab.at[row], QN + column, total);
            finish_vector(t, batch, m0 + row, n0 + column, total);
        }
    }
    // In front of the first whole vector, and behind the last one: of 64 columns as many as a vector has.
    __device__ __forceinline__ void store_elements(const Tensors &t, const Slab &slab) const
    {
#pragma unroll 1
        for (int first = 0; first < (columns < SLAB_COLUMNS ? 2 * QN : QN); first += QN)
            UNROLL_4 for (int v = (int)threadIdx.x % WARP; v < SLAB_PARTS * 8 * QN; v += WARP) {
                const int row = v / QN, e = first + v % QN;
                const int front = op_min<int>(op_max<int>(begin(row), 0), columns);   // singles there
                const int column = e < front ? e : end(row) + e - front;
                if (m0 + row < M && column < columns && (e < front || ends))
                    finish(t, batch, m0 + row, n0 + column, widen(slab.at[row][QN + column]));
            }
    }
};

// As few instructions as there may be: they are a loop's, but for those that find the lane's sums.
__device__ __forceinline__ void store_shifted_rows(const Tensors &t, const Value *acc, Slab &slab,
                                                   Index batch, Index m0, Index n0)
{
#pragma unroll 1
    for (int first = 0; first < WN && n0 + first < N; first += SLAB_COLUMNS) {
        const ShiftedRows rows(batch, m0, n0 + first, first == 0, first + SLAB_COLUMNS >= WN);
        UNROLL for (int at = 0; at < WN; at += SLAB_COLUMNS)
            if (at == first)
                rows.fill(slab, acc + at / 2, at == 0);
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
            store_rows(t, acc + first / 2 + part * 2, slab, corner, m0 + part * 8, n0 + first);
}

// Where a lane's vectors of a slab lie, which holds rows of a warp: its columns are the same in all of them.
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

// What the epilogue reads for a warp's part of a tile, so many slabs ahead: while the last products are on
// their way, or the slab before is stored. Of 64 x 128 sums and a residual of 16 bits 32 registers are the
// whole tile's.
constexpr __device__ int slabs_ahead(int bytes, int all)
{
    return bytes > 128 ? 1 : 128 / bytes < all ? 128 / bytes : all;
}
struct Ahead {
    static constexpr int ACROSS = WN / SLAB_COLUMNS, ALL = PARTS / SLAB_PARTS * ACROSS;
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
    // Behind the slab, whose places are free.
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

// Those of a lane's vectors that exist, of all sums, which go through the slab one after the other.
__device__ __forceinline__ void turn_sums(Kept (&totals)[LaneVector::COUNT][JOINED * QN], const Value *own,
                                          Slab &slab, const Corner &corner, Index m0, Index n0)
{
    UNROLL for (int sum = 0; sum < JOINED; ++sum) {
        fill_slab<SLAB_COLUMNS>(slab, own + sum * (WN / 2), 0);
        warp_sync();
        UNROLL for (int i = 0; i < LaneVector::COUNT; ++i) {
            const LaneVector vector(i);
            if (corner.stores(m0 + vector.row, n0 + vector.column))
                read_lane_vector(slab, vector, totals[i], sum);
        }
        warp_sync();
    }
}

// As store_tile(), with what was asked for.
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
            fill_slab<SLAB_COLUMNS>(slab, own, 0);
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

extern "C" __global__ void __launch_bounds__((1 + GROUPS) * 4 * WARP, 1)
    ENTRY(PARAMETERS, MAPS)
{
    unsigned char *const start = rollerc_shared + (0u - shared_address(rollerc_shared)) % ALIGNMENT;
    static_assert(RING + (int)sizeof(Ring) + ALIGNMENT <= EVERYTHING.bytes,
                  "all stages fit, wherever they begin");
    Stage *const stages = reinterpret_cast<Stage *>(start);
    Ring &ring = *reinterpret_cast<Ring *>(start + RING);
    const int warp = same_in_warp((int)threadIdx.x / WARP), sharer = (int)((Index)blockIdx.x % SHARERS);
    const Steps steps(sharer);
    const TensorMap *const maps[] = MAP_LIST;   // of A, and of each B

    if (threadIdx.x == 0) {
        UNROLL for (int i = 0; i < 1 + JOINED; ++i)
            prefetch_map(maps[i]);
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(&ring.full[stage], 1);
            mbarrier_init(&ring.free[stage], NEIGHBOURS * GROUPS_EACH * 4);
        }
        UNROLL for (int maker = 0; MAKERS > 1 && maker < MAKERS; ++maker)
            mbarrier_init(&ring.turn[maker], GROUPS_EACH * 4);
    }
    if (ROWS_B < BN)
        clear_behind(stages);
    if (NEIGHBOURS > 1)
        cluster_sync();
    else
        block_sync();
    if (SHARERS > 1)
        cluster_arrive();   // has started
    if ((EARLY_A || EARLY_B) && threadIdx.x == 0)
        copy_early(maps, stages, ring, steps);
    const Tensors t = TENSORS;

    Place place;
    if (warp < 4) {
        // Load.
        if (MOVES_REGISTERS)
            give_registers<40>();
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
        if (SHARERS > 1) {
            await_sharer();
            meet_sharers();
        }
    } else {
        // Compute and store.
        if (MOVES_REGISTERS)
            take_registers<232>();
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
            } else if (BESIDE) {
                const Index m0 = corner.tile_m + group_m + warp % 4 * 16 + sharer * 8;
                const Index n0 = corner.tile_n + group_n;
                Ahead ahead;
                ahead.begin(t, corner, m0, n0);
                multiply(acc, stages, ring, steps_of(steps, corner), place, turns, group_m, group_n);
                if (SHARERS > 1)
                    add_shared(acc, reinterpret_cast<Shared *>(start + SUMS)[group], sharer);
                store_tile_beside(t, acc, slab, corner, m0, n0, ahead);
            } else {
                multiply(acc, stages, ring, steps_of(steps, corner), place, turns, group_m, group_n);
                if (SHARERS > 1)
                    add_shared(acc, reinterpret_cast<Shared *>(start + SUMS)[group], sharer);
                store_tile(t, acc, slab, corner, corner.tile_m + group_m + warp % 4 * 16 + sharer * 8,
                           corner.tile_n + group_n);
            }
        }
    }
    if (NEIGHBOURS > 1)
        cluster_sync();   // the others still copy here, or arrive
}
}   // namespace KERNEL
