// Matrix multiply on tensor cores (mma.sync): C[b,m,n] = sum over k of A[b,m,k] * B[b,k,n], with a pointwise
// epilogue. Operands are f16 or bf16 with f32 accumulators, f32 rounded to tf32, 8-bit integers with i32
// accumulators, or f64.
//
// A thread block computes a BM x BN tile of C, each of its warps a WM x WN tile of that in registers. The block
// iterates over k in steps of BK, pipelined through STAGES tiles of A and of B in shared memory.
//
//        k              BN
//    +-------+     +-----+-----+       A and B may be contiguous along either dimension. Shared memory keeps that
//    |   A   | BM  |  B  | WN  | k     order; load_matrices_turned() transposes as it loads registers. An operand is
//    +-------+     +-----+-----+       copied asynchronously in 16-byte vectors (PIECES) where its rows are aligned;
//                                      otherwise it is shifted or gathered through registers.
//
// Cluster split-K: where there are fewer tiles than SMs, CLUSTER blocks compute one tile and take interleaved steps
// of k. At the end each block reduces some rows across all blocks through its shared memory, in a fixed order.
//
// Where rows of a factor are phases with different taps, a step is of one tap, and those that a tile lacks are skipped.
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
#define OPENING (void)0   // waits for earlier launches
constexpr Region OPERANDS = {0, 147456};   // of shared memory, in bytes
constexpr Region SLABS = {0, 147456};
constexpr int SHARED_BYTES = 147456;   // of a block
using Element = f16;                                          // of A and B
using Value = float;                                          // of products and sums
constexpr Index M = 1024, N = 1024, K = 1024;                 // problem
constexpr int BM = 128, BN = 256, BK = 64;                    // rTile, shared memory
constexpr Index BATCH = 1;                                    // products
constexpr bool SIDE_BY_SIDE = false;   // adjacent blocks make adjacent products, which share lines of memory
constexpr int BB = 1;                                         // products of a block
constexpr int WM = 64, WN = 64;                               // rTile, registers of a warp
constexpr int AM = 16, AN = 8, AK = 16;                       // tile of one instruction
constexpr int STAGES = 3;                                     // of the pipeline
constexpr int CLUSTER = 1;                                    // blocks of a cluster that split k
constexpr Index CHAIN = 128;                                  // promotion interval of the accumulators, in steps
constexpr int QN = 8;                                         // columns of C in one aligned access
constexpr bool ROWS_FIRST = false;                            // vectors of adjacent rows of C lie side by side
constexpr Index PANEL = 8;                                    // rasterisation: tiles along m in a panel
constexpr bool REDUCES = false;                               // rows of C are reduced, and C is not stored
constexpr bool EARLY_A = false, EARLY_B = false;   // no launch of the program writes it
constexpr bool SKIPS = false;                                 // taps that no row of a tile has
constexpr bool BACKWARDS = false;                             // the last tiles first: they have the most taps
constexpr int TAPS = 1;                                       // of a channel

// The taps that some row of the tile has; the others are zeros.
__device__ __forceinline__ unsigned long long taps_of_tile(Index m0, Index n0) { return 1; }

struct OperandA {
    static constexpr bool ALONG_K = true;   // k is contiguous in memory
    static constexpr bool PIECES = true;    // in aligned 16-byte vectors
    static __device__ __forceinline__ CopySource<Element> at(const Tensors &t, Index batch, Index m, Index k)
    {
        return {t.in0 + (m * 1024 + k), true};
    }
};
struct OperandB {
    static constexpr bool ALONG_K = false;
    static constexpr bool PIECES = true;
    static __device__ __forceinline__ CopySource<Element> at(const Tensors &t, Index batch, Index n, Index k)
    {
        return {t.in1 + (k * 1024 + n), true};
    }
};

// What the epilogue loads besides the sums of QN columns of a row: per row, and per column.
struct Beside {};
__device__ __forceinline__ void read_beside(const Tensors &, Index, Index, Index, Index, Index, Beside &) {}
struct Columns {};
__device__ __forceinline__ void read_columns(const Tensors &, Index, Index, Index, Columns &) {}
__device__ __forceinline__ void finish_vector(const Tensors &t, Index batch, Index m0, Index n0, Index down, Index right,
                                              const Value (&total)[QN], const Beside &, const Columns &)
{
    store_vector<QN>(t.out0 + (m0 * 1024 + n0), down * 1024 + right, total);
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

constexpr int WARPS_N = BN / WN, WARPS = BM / WM * WARPS_N;       // of a product
constexpr int THREADS = BB * WARPS * WARP;
constexpr int BYTES = (int)sizeof(Element), PIECE = 16 / BYTES;   // elements of a 16-byte vector
using Word = TileWord<Element>;                                   // what a lane holds of a matrix
constexpr Index BLOCKS_M = (M + BM - 1) / BM, BLOCKS_N = (N + BN - 1) / BN;
constexpr Index BLOCKS = BLOCKS_M * BLOCKS_N, PRODUCTS = (BATCH + BB - 1) / BB;
constexpr Index STEPS = (K + BK - 1) / BK;
constexpr Index SURE = SKIPS ? 0 : STEPS / CLUSTER;   // steps that all blocks have
constexpr bool CHAINS = (STEPS + CLUSTER - 1) / CLUSTER > CHAIN;   // longer than one promotion interval
constexpr int PARTS = BK / AK;                     // of a step: what registers hold at a time
constexpr int TILES = WM / AM * (WN / AN);         // of C in a warp's registers
constexpr bool LATE = TILES * 4 >= 128;            // copies start after the last registers are loaded

static_assert(BM % WM == 0 && BN % WN == 0, "warps cover the block's tile");
static_assert(AM == 16 && AN == 8 && WM % AM == 0 && WN % (2 * AN) == 0, "tiles of 16 rows are loaded");
static_assert(AK * BYTES == (BYTES == 8 ? 64 : 32), "of a row a lane has a word in each half of k");
static_assert(BK % (2 * AK) == 0, "the registers of two parts are used in turn");
static_assert(QN == 1 || N % QN == 0, "rows of C hold whole vectors");
static_assert((STEPS - 1) * BK < K && STAGES >= 2, "no step is in vain");
static_assert(!SKIPS || (CLUSTER == 1 && STEPS % TAPS == 0), "a step is of one tap");
static_assert(CLUSTER <= STEPS && 8 % CLUSTER == 0,
              "every block of a cluster has a step, and as many rows in the end");

// A tile of an operand in shared memory: lines of 16-byte vectors along its contiguous dimension. Vectors are
// swizzled within a line, so that the same vector of eight consecutive lines, as load_matrices() reads them, lies
// in eight groups of banks:
//
//   line 0   0 1 2 3 4 5 6 7      line 0   0 1 2 3 | line 1   0 1 2 3      with 8 and 4 vectors in a line
//   line 1   1 0 3 2 5 4 7 6      line 2   1 0 3 2 | line 3   1 0 3 2
//   line 2   2 3 0 1 6 7 4 5      line 4   2 3 0 1 | line 5   2 3 0 1
//
// Lanes that load single words read two consecutive vectors of each of four lines: there pairs of vectors are
// swizzled.
template <class Operand, Index EXTENT, int BR> struct Tile {
    static constexpr bool ALONG_K = Operand::ALONG_K;
    static constexpr int LINES = ALONG_K ? BR : BK, LINE = (ALONG_K ? BK : BR) / PIECE;
    static constexpr int PITCH = LINE > 4 ? (LINE + 7) / 8 * 8 : LINE > 2 ? 4 : 2;   // 16-byte vectors
    static constexpr int ELEMENTS = BB * LINES * PITCH * PIECE;                // of all products
    static constexpr bool EVEN = THREADS % LINE == 0;                          // threads cover whole lines
    static constexpr int EACH = (BB * LINES * LINE + THREADS - 1) / THREADS;   // vectors that a thread copies
    static constexpr bool BY_MATRICES = ALONG_K ? BYTES <= 4 : BYTES <= 2;     // else word by word
    static constexpr bool PAIRED = !ALONG_K && BYTES != 2;                     // a lane has adjacent rows
    static constexpr int WIDE = BY_MATRICES ? 1 : 2, BANKS = PITCH < 8 ? PITCH : 8;
    static_assert(WIDE <= LINE, "pairs");

    // The swizzle of a line: an xor with the vector's number, different for lines that are read together.
    static __device__ __forceinline__ int turn_of(int line)
    {
        const int order = PAIRED && BY_MATRICES ? line / 4 * 2 + line % 2 : line;
        return order / (8 / BANKS) % (BANKS / WIDE) * WIDE;
    }

    // A thread's i-th vector in this step: its position in the tile and in the operand.
    struct Mine {
        bool mine, exists;   // the last threads may have no vector; it may be out of bounds
        Index batch, row, k;
        int place;

        __device__ __forceinline__ Mine(int i, Index batch0, Index row0, Index k0)
        {
            const int thread = (int)threadIdx.x, number = thread + i * THREADS;
            const int line = EVEN ? thread / LINE + i * (THREADS / LINE) : number / LINE;   // EVEN: fewer registers
            const int piece = EVEN ? thread % LINE : number % LINE;
            const int product = BB > 1 ? line / LINES : 0, own = line - product * LINES;
            mine = BB * LINES * LINE % THREADS == 0 || line < BB * LINES;
            batch = batch0 + product;
            row = row0 + (ALONG_K ? own : piece * PIECE);
            k = k0 + (ALONG_K ? piece * PIECE : own);
            exists = (BATCH % BB == 0 || batch < BATCH) && (EXTENT % BR == 0 || row < EXTENT) &&
                     (K % BK == 0 || k < K);
            place = (line * PITCH + (piece ^ turn_of(own))) * PIECE;
        }
    };

    // The row of the tile that row r of a half of 16 is.
    static __device__ __forceinline__ int row_of(int half, int r)
    {
        return PAIRED ? r * 2 + half : half * 8 + r;
    }

    // The addresses of a warp's operand: 16 rows of AK, of which matrix i has rows of half i % 2 and k of half i /
    // 2. `row` is the warp's first row. Only constants are left to add.
    struct Reader {
        int corner, turn, row, inner;

        __device__ __forceinline__ Reader(int product, int row_) : row(row_), inner(0)
        {
            const int lane = (int)threadIdx.x % WARP, half = lane / 8 % 2, far_half = lane / 16;
            if constexpr (!BY_MATRICES) {
                const int line = ALONG_K ? lane / 4 : lane % 4, along = ALONG_K ? lane % 4 : lane / 4 * 2;
                corner = ((ALONG_K ? row : 0) + line) * PITCH;
                turn = turn_of(line) ^ along / PIECE;
                inner = along % PIECE;
            } else if constexpr (PAIRED) {
                const int line = lane % 8 / 2 * 4 + half * 2 + lane % 2;
                corner = (far_half * 16 + line) * PITCH;
                turn = turn_of(line);
            } else {
                corner = ((ALONG_K ? row + half * 8 : far_half * 8) + lane % 8) * PITCH;
                turn = turn_of(lane % 8) ^ (ALONG_K ? far_half : half);
            }
            corner += product * LINES * PITCH;
        }
        template <class Register>
        __device__ __forceinline__ void load(Register (&tile)[4], const Element *from, int i, int k) const
        {
            if constexpr (ALONG_K && BY_MATRICES) {
                load_matrices(tile, from + (corner + i * 16 * PITCH + (k / PIECE ^ turn)) * PIECE);
            } else if constexpr (ALONG_K) {
                UNROLL for (int j = 0; j < 4; ++j) {
                    const int piece = (k + j / 2 * 4) / PIECE ^ turn;
                    tile[j] = from[(corner + (i * 16 + j % 2 * 8) * PITCH + piece) * PIECE + inner];
                }
            } else if constexpr (!BY_MATRICES) {
                UNROLL for (int j = 0; j < 4; j += 2) {
                    const int piece = (row + i * 16) / PIECE ^ turn;
                    const Element *const rows = from + (corner + (k + j * 2) * PITCH + piece) * PIECE + inner;
                    Register two[2];
                    move_vector<2>(two, reinterpret_cast<const Register *>(rows));
                    tile[j] = two[0];
                    tile[j + 1] = two[1];
                }
            } else {
                load_matrices_turned(tile,
                                     from + (corner + k * PITCH + ((row + i * 16) / PIECE ^ turn)) * PIECE);
                if constexpr (PAIRED)
                    part_bytes(tile);
            }
            round_tile(Element(), tile);
        }
    };
};

// A thread's part of the copy of a tile: asynchronous, or held in registers from ask() to end().
template <class Operand, class Tile, bool = Operand::PIECES> struct Fetch {
    __device__ __forceinline__ explicit Fetch(const Tensors &) {}
    __device__ __forceinline__ void ask(const Tensors &, Index, Index, Index) {}
    __device__ __forceinline__ void begin(const Tensors &t, Index batch, Index row0, Index k0, Element *tile)
    {
        UNROLL for (int i = 0; i < Tile::EACH; ++i) {
            const typename Tile::Mine it(i, batch, row0, k0);
            const CopySource<Element> source = Operand::at(t, it.batch, it.row, it.k);
            if (it.mine)
                async_copy16_or_zero(it.exists && source.exists, tile + it.place, source.at);
        }
    }
    __device__ __forceinline__ void end(Index, Index, Index, Element *) const {}
};
template <class Operand, class Tile> struct Fetch<Operand, Tile, false> {
    typename Operand::Held held[Tile::EACH];
    typename Operand::Held::Last last;

    static __device__ __forceinline__ bool exists(const typename Tile::Mine &it)
    {
        return it.exists && (!Operand::ENDS || it.k < Operand::end(it.batch));
    }
    __device__ __forceinline__ explicit Fetch(const Tensors &t) : last(Operand::last(t)) {}
    __device__ __forceinline__ void begin(const Tensors &, Index, Index, Index, Element *) {}
    __device__ __forceinline__ void ask(const Tensors &t, Index batch, Index row0, Index k0)
    {
        UNROLL for (int i = 0; i < Tile::EACH; ++i) {
            const typename Tile::Mine it(i, batch, row0, k0);
            Operand::read(t, it.batch, it.row, it.k, it.mine && exists(it), last, held[i]);
        }
    }
    __device__ __forceinline__ void end(Index batch, Index row0, Index k0, Element *tile) const
    {
        UNROLL for (int i = 0; i < Tile::EACH; ++i) {
            const typename Tile::Mine it(i, batch, row0, k0);
            const Index left = !exists(it) ? 0 : Tile::ALONG_K ? Operand::end(it.batch) - it.k : PIECE;   // elements in bounds
            const Vector<unsigned, 4> piece = held[i].value(left < PIECE ? (int)left : PIECE);
            if (it.mine)
                *reinterpret_cast<Vector<unsigned, 4> *>(tile + it.place) = piece;
        }
    }
};

using TileA = Tile<OperandA, M, BM>;
using TileB = Tile<OperandB, N, BN>;

// Epilogue staging of a warp's rows of C: 8 at a time; of a cluster the rows that this block reduces, of each
// block's accumulators. Row r is reduced by block r % CLUSTER.
constexpr int ROWS = CLUSTER > 1 ? WM : 8, OWN_ROWS = ROWS / CLUSTER;
struct Slab {
    Value at[ROWS][WN + 8];   // padding: no bank conflicts in a store

    __device__ __forceinline__ Value *line_of(int row, int rank)
    {
        return CLUSTER > 1 ? cluster_map(this, row % CLUSTER)->at[rank * OWN_ROWS + row / CLUSTER] : at[row];
    }

    // Reduces across the blocks of the cluster.
    __device__ __forceinline__ void read(int line, int column, Value (&total)[QN]) const
    {
        load_vector<QN>(at[line], column, total);
        UNROLL for (int other = 1; other < CLUSTER; ++other) {
            Value more[QN];
            load_vector<QN>(at[other * OWN_ROWS + line], column, more);
            UNROLL for (int e = 0; e < QN; ++e)
                total[e] = op_add(total[e], more[e]);
        }
    }
};

// The position of a warp's tile in C.
struct Corner {
    Index batch, m, n;
    int rank;   // of its block in the cluster
};

// One of a lane's vectors of these rows; adjacent lanes have adjacent columns. Where lanes cover whole rows, or a part of one, it
// lies so many rows `down` and columns to the `right` of the lane's first one, which are constants: vectors share an address.
// Single columns are many, and each would have an address of its own: 48 have 64 lanes, of which some are idle.
struct LaneVector {
    static constexpr int LINE = QN > 1 || WN == 16 || ROWS_FIRST ? WN / QN : (WN + WARP - 1) / WARP * WARP;   // lanes of a row
    static constexpr int COUNT = (OWN_ROWS * LINE + WARP - 1) / WARP;
    static constexpr bool EVEN = !ROWS_FIRST && (LINE % WARP == 0 || WARP % LINE == 0);
    int line, column;
    Index m0, n0, down, right;
    bool exists_in_row, exists;

    __device__ __forceinline__ LaneVector(const Corner &corner, int part, int i)
    {
        const int lane = (int)threadIdx.x % WARP, first = EVEN ? lane : 0, beyond = i * WARP + lane - first;
        const int rows = ROWS_FIRST ? beyond % OWN_ROWS : beyond / LINE;
        line = first / LINE + rows;
        right = (ROWS_FIRST ? beyond / OWN_ROWS : beyond % LINE) * QN;
        column = first % LINE * QN + right;
        m0 = corner.m + (CLUSTER > 1 ? first / LINE * CLUSTER + corner.rank : TileA::row_of(0, first / LINE));
        down = CLUSTER > 1 ? rows * CLUSTER : part / 2 * 16 + TileA::row_of(part % 2, rows);
        n0 = corner.n + column - right;
        exists_in_row = i * WARP + lane < OWN_ROWS * LINE && (LINE * QN <= WN || column < WN) &&
                        (BATCH % BB == 0 || corner.batch < BATCH) && n0 < N - right;
        exists = exists_in_row && m0 < M - down;
    }
};

// Vectors that the epilogue loads, some of them prefetched: during products, or while previous vectors are stored.
struct Ahead {
    static constexpr int ALL = WM / ROWS * LaneVector::COUNT;
    static constexpr int FIT = 16 / (((int)sizeof(Beside) + 3) / 4);   // in as many registers
    static constexpr int OF_ROWS = FIT < 1 ? 1 : FIT < ALL ? FIT : ALL;
    static constexpr int ACROSS = (LaneVector::LINE + WARP - 1) / WARP;   // vectors of a lane in a row, if it is the lane's in all
    static constexpr int OF_COLUMNS =
        ROWS_FIRST || (WARP % LaneVector::LINE && LaneVector::LINE % WARP) ? LaneVector::COUNT : ACROSS;
    static constexpr bool EARLY = TILES * 4 <= 32;   // registers suffice for them beside products
    Beside rows[OF_ROWS];
    Columns columns[OF_COLUMNS];

    __device__ __forceinline__ void ask_row(const Tensors &t, const Corner &corner, int vector)
    {
        const LaneVector own(corner, vector / LaneVector::COUNT, vector % LaneVector::COUNT);
        if (own.down < (own.exists_in_row ? M - own.m0 : 0))   // not `exists`, which compilers would keep until the store
            read_beside(t, corner.batch, own.m0, own.n0, own.down, own.right, rows[vector % OF_ROWS]);
    }
    __device__ __forceinline__ void begin(const Tensors &t, const Corner &corner)
    {
        UNROLL for (int i = 0; i < OF_COLUMNS; ++i) {
            const LaneVector own(corner, 0, i);
            if (own.n0 < N - own.right)
                read_columns(t, corner.batch, own.m0, own.n0 + own.right, columns[i]);
        }
        UNROLL for (int vector = 0; vector < OF_ROWS; ++vector)
            ask_row(t, corner, vector);
    }
};

__device__ __forceinline__ void store_part(const Tensors &t, const Slab &slab, const Corner &corner, int part,
                                           Ahead &ahead)
{
    UNROLL for (int i = 0; i < LaneVector::COUNT; ++i) {
        const LaneVector own(corner, part, i);
        const int vector = part * LaneVector::COUNT + i;
        Value total[QN];
        if (own.exists) {
            slab.read(own.line, own.column, total);
            finish_vector(t, corner.batch, own.m0, own.n0, own.down, own.right, total,
                          ahead.rows[vector % Ahead::OF_ROWS], ahead.columns[i % Ahead::OF_COLUMNS]);
        }
        if (vector + Ahead::OF_ROWS < Ahead::ALL)
            ahead.ask_row(t, corner, vector + Ahead::OF_ROWS);
    }
}

// The steps of a tile: of a block of a cluster one in CLUSTER; and which of all steps one of them is. Taps that the tile
// lacks are skipped.
__device__ __forceinline__ Index steps_of(Index m0, Index n0, int rank)
{
    Index count = (STEPS - rank + CLUSTER - 1) / CLUSTER;
    if (SKIPS) {
        const unsigned long long taps = taps_of_tile(m0, n0);
        count = 0;
        UNROLL for (int tap = 0; tap < TAPS; ++tap)
            count += (Index)(taps >> tap & 1) * (STEPS / TAPS);
    }
    return count;
}
__device__ __forceinline__ Index place_of(Index m0, Index n0, Index step)
{
    if (SKIPS) {
        const unsigned long long taps = taps_of_tile(m0, n0);
        Index before = step / (STEPS / TAPS), found = 0;   // taps
        UNROLL for (int tap = 0; tap < TAPS; ++tap)
            if ((taps >> tap & 1) && before-- == 0)
                found = tap;
        return found * (STEPS / TAPS) + step % (STEPS / TAPS);
    }
    return step;
}

extern "C" __global__ void __launch_bounds__(BOUNDS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED_AT(0, Element, As, [STAGES][TileA::ELEMENTS]);
    SHARED_AT(STAGES * TileA::ELEMENTS * (int)sizeof(Element), Element, Bs, [STAGES][TileB::ELEMENTS]);
    static_assert((int)(sizeof As + sizeof Bs) <= (CLUSTER > 1 ? SLABS.at : OPERANDS.bytes),
                  "all stages fit");
    Value acc[WM / AM][WN / AN][4] = {};                  // (WM,WN)
    Chains<CHAINS, 4> chains[WM / AM][WN / AN];
    Word a[2][WM / 16][4], b[2][WN / 16][4];              // (WM,AK) and (WN,AK), of this part and the next

    const int rank = (int)((Index)blockIdx.x % CLUSTER);
    const Index tile = (BACKWARDS ? BLOCKS * PRODUCTS * CLUSTER - 1 - (Index)blockIdx.x : (Index)blockIdx.x) / CLUSTER;
    const Index block = SIDE_BY_SIDE ? tile / PRODUCTS : tile % BLOCKS;
    const Index batch = (SIDE_BY_SIDE ? tile % PRODUCTS : tile / BLOCKS) * BB;
    const Index panel = block / (PANEL * BLOCKS_N) * PANEL;   // first row of blocks of the panel
    const Index rows = op_min<Index>(BLOCKS_M - panel, PANEL);
    const Index m0 = (panel + block % (PANEL * BLOCKS_N) % rows) * BM;
    const Index n0 = block % (PANEL * BLOCKS_N) / rows * BN;
    const Index steps = steps_of(m0, n0, rank);
    const auto place = [&](Index step) { return (place_of(m0, n0, step) * CLUSTER + rank) * BK; };   // along k
    const int warp = (int)threadIdx.x / WARP, own = BB > 1 ? warp / WARPS : 0;   // product in the block
    const int warp_m = (warp - own * WARPS) / WARPS_N * WM, warp_n = warp % WARPS_N * WN;
    const typename TileA::Reader reader_a(own, warp_m);
    const typename TileB::Reader reader_b(own, warp_n);

    if (CLUSTER > 1)
        cluster_arrive();   // this block has started

    const Corner corner = {batch + own, m0 + warp_m, n0 + warp_n, rank};
    Ahead ahead;

    // Load: the tiles of the first steps, then the registers of the first part. Operands that no launch writes are
    // copied before the wait for earlier launches. If all blocks have a step there is no branch, and addresses are
    // computed once for all.
    const auto has = [&](int step) { return step < SURE || step < steps; };
    if (EARLY_A)
        UNROLL for (int step = 0; step < STAGES - 1; ++step)
            if (has(step))
                Fetch<OperandA, TileA>(t).begin(t, batch, m0, place(step), As[step]);
    if (EARLY_B)
        UNROLL for (int step = 0; step < STAGES - 1; ++step)
            if (has(step))
                Fetch<OperandB, TileB>(t).begin(t, batch, n0, place(step), Bs[step]);
    OPENING;
    hold_loads();
    Fetch<OperandA, TileA> fetch_a(t);
    Fetch<OperandB, TileB> fetch_b(t);
    const auto ask = [&](Index step) {
        if (step < steps) {
            fetch_a.ask(t, batch, m0, place(step));
            fetch_b.ask(t, batch, n0, place(step));
        }
    };
    const auto end = [&](Index step, int stage) {
        fetch_a.end(batch, m0, place(step), As[stage]);
        fetch_b.end(batch, n0, place(step), Bs[stage]);
    };
    UNROLL for (int step = 0; step < STAGES - 1; ++step) {
        if (has(step)) {
            if (!EARLY_A)
                fetch_a.begin(t, batch, m0, place(step), As[step]);
            if (!EARLY_B)
                fetch_b.begin(t, batch, n0, place(step), Bs[step]);
            ask(step);
            end(step, step);
        }
        async_commit();
    }
    ask(STAGES - 1);
    if (Ahead::EARLY)
        ahead.begin(t, corner);
    async_wait<STAGES - 2>();
    block_sync();
    UNROLL for (int i = 0; i < WM / 16; ++i)
        reader_a.load(a[0][i], As[0], i, 0);
    UNROLL for (int j = 0; j < WN / 16; ++j)
        reader_b.load(b[0][j], Bs[0], j, 0);

    // Compute: part by part, while the registers of the next part are loaded and later steps are copied.
    const auto begin = [&](Index step, int stage) {
        if (step < steps) {
            fetch_a.begin(t, batch, m0, place(step), As[stage]);
            fetch_b.begin(t, batch, n0, place(step), Bs[stage]);
        }
        async_commit();
    };
    int now = 0, free = STAGES - 1;   // stages
#pragma unroll 1
    for (Index step = 0; step < steps; ++step) {
        const Index ahead = step + (STAGES - 1);
        const int next = step + 1 == steps ? now : now + 1 == STAGES ? 0 : now + 1;   // after the last step: any stage
        UNROLL for (int part = 0; part < PARTS; ++part) {
            const int used = part % 2, other = 1 - used;
            if (part == PARTS - 1) {
                if (ahead < steps)
                    end(ahead, free);
                ask(ahead + 1);   // in flight until the next step's last part
                async_wait<STAGES - 2>();
                block_sync();
            }
            const int stage = part == PARTS - 1 ? next : now, k = (part + 1) % PARTS * AK;
            UNROLL for (int i = 0; i < WM / 16; ++i)
                reader_a.load(a[other][i], As[stage], i, k);
            UNROLL for (int j = 0; j < WN / 16; ++j)
                reader_b.load(b[other][j], Bs[stage], j, k);
            if (part == 0 && !LATE)
                begin(ahead, free);
            UNROLL for (int tile = 0; tile < TILES; ++tile) {
                const int i = tile / (WN / AN), j = tile % (WN / AN);
                multiply_tiles(Element(), a[used][i], b[used][j / 2][j % 2], b[used][j / 2][2 + j % 2],
                               acc[i][j]);
            }
            if (part == 0 && LATE)
                begin(ahead, free);
        }
        free = now;
        now = next;
        if (CHAINS && (step + 1) % CHAIN == 0)
            UNROLL for (int i = 0; i < WM / AM; ++i)
                UNROLL for (int j = 0; j < WN / AN; ++j)
                    chains[i][j].end(acc[i][j]);
    }
    UNROLL for (int i = 0; i < WM / AM; ++i)
        UNROLL for (int j = 0; j < WN / AN; ++j)
            chains[i][j].add_to(acc[i][j]);

    if (REDUCES) {
        UNROLL for (int i = 0; i < WM / AM; ++i)
            reduce_rows<Row, WN>(t, acc[i][0], corner.batch, corner.m + i * 16, corner.n, M, N);
    } else {
        // Epilogue: stage eight rows of each warp at a time, or all rows where they are reduced across the cluster.
        SHARED(SLABS, Slab, slabs, [BB * WARPS]);   // over A and B, which other blocks may still read
        if (!Ahead::EARLY)
            ahead.begin(t, corner);
        if (CLUSTER > 1)
            cluster_wait();
        else
            block_sync();
        Slab &slab = slabs[warp];
        const int lane = (int)threadIdx.x % WARP;
        UNROLL for (int part = 0; part < WM / 8; ++part) {
            const int row = CLUSTER > 1 ? part / 2 * 16 + TileA::row_of(part % 2, lane / 4) : lane / 4;
            Value *const line = slab.line_of(row, rank);
            UNROLL for (int j = 0; j < WN / AN; ++j) {
                const Value two[2] = {acc[part / 2][j][part % 2 * 2], acc[part / 2][j][part % 2 * 2 + 1]};
                const int column = j / 2 * 16 + TileB::row_of(j % 2, lane % 4 * 2);
                if constexpr (TileB::PAIRED)
                    UNROLL for (int e = 0; e < 2; ++e)
                        line[column + e * 2] = two[e];
                else
                    move_vector<2>(line + column, two);
            }
            if (CLUSTER == 1) {
                warp_sync();
                store_part(t, slab, corner, part, ahead);
                warp_sync();
            }
        }
        if (CLUSTER > 1) {
            cluster_sync();
            store_part(t, slab, corner, 0, ahead);
        }
    }
}
}   // namespace KERNEL
