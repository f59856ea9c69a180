// Matrix multiply on the CUDA cores: C[b,m,n] = sum over k of A[b,m,k] * B[b,k,n], with a pointwise epilogue.
//
// A thread block computes a BM x BN tile of C. It iterates over k in steps of BK. Each step copies a BM x BK
// tile of A and a BK x BN tile of B from global to shared memory; each thread accumulates a TM x TN tile in
// registers:
//
//            k                  BN
//        +-------+        +-----------+         A and B may be contiguous along either dimension, or computed from an
//        |   A   | BM   k |     B     |         index (implicit GEMM): only `OperandA::read` and `OperandB::read` know.
//        +-------+        +-----------+         In shared memory k is always the outer index.
//
// A thread's TM rows are groups of GM contiguous rows, BM / (TM/GM) rows apart, so that a warp reads shared
// memory in vectors and without bank conflicts; likewise its columns. Where rows of C are not whole vectors,
// there are two other ways to coalesce stores: DEALT permutes the columns of B in shared memory, so that
// adjacent threads have adjacent columns; COLLECTED stages C in shared memory, one row of each thread at a
// time.
//
// Loads of later steps overlap the computation: the next step through registers, or STAGES - 1 steps ahead
// with asynchronous copies where COPIED. In the latter case no barrier is directly followed by a copy or a
// store, and a thread loads its registers for the next k while it multiplies for this one.
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
constexpr Region STAGED = {0, 16640};   // of shared memory, in bytes
constexpr int SHARED_BYTES = 16640;   // of a block
using Value = float;                                          // of products and sums
constexpr Index M = 1024, N = 1024, K = 1024;                 // problem
constexpr int BM = 128, BN = 128, BK = 8;                     // rTile, shared memory
constexpr int TM = 8, TN = 8;                                 // rTile, registers
constexpr Index BATCH = 1;                                    // products
constexpr bool SIDE_BY_SIDE = false;   // adjacent blocks make adjacent products, which share lines of memory
constexpr int BB = 1;                                         // products of a block
constexpr int PAD_A = 4, PAD_B = 0;                           // bank padding, elements
constexpr int GM = 4, GN = 4;                                 // contiguous rows, columns of a thread
constexpr int QN = 4;                                         // columns of C in one aligned access: GN or 1
constexpr Index PANEL = 8;                                    // rasterisation: tiles along m in a panel
constexpr bool DEALT = false;                                 // adjacent threads have adjacent columns
constexpr bool COLLECTED = false;                             // the epilogue stages rows in shared memory
constexpr int STAGES = 2;                                     // of the pipeline
constexpr int WRITTEN_OUT = 4;                                // terms of a step; AHEAD: all
constexpr bool COPIED_A = false, COPIED_B = false;            // copied asynchronously, from at()
constexpr bool SKIPS = false;                                 // taps that no row of a tile has
constexpr bool BACKWARDS = false;                             // the last tiles first: they have the most taps
constexpr int TAPS = 1;                                       // of a channel

// With SKIPS: the steps of a tile, each of one of its taps.
struct Walk {
    Index step, count;
    __device__ __forceinline__ Walk(Index step) : step(step), count(0) {}
    __device__ __forceinline__ Walk(Index m0, Index n0) : Walk(m0) {}
    __device__ __forceinline__ void advance() {}
};

struct OperandA {
    static constexpr bool ALONG_K = true;   // k is contiguous in memory
    static constexpr int VECTOR = 4;        // elements of one access
    static constexpr bool PLACED = false;   // at() says where they lie; EVEN: terms of a step are TERM apart
    static constexpr bool EVEN = false;
    static __device__ __forceinline__ void read(const Tensors &t, Index batch, Index m, Index step, int inner,
                                                Value (&v)[VECTOR])
    {
        load_vector<VECTOR>(t.in0, m * 1024 + step * BK + inner, v);
    }
};
struct OperandB {
    static constexpr bool ALONG_K = false;
    static constexpr int VECTOR = 4;
    static constexpr bool PLACED = false, EVEN = false;
    static __device__ __forceinline__ void read(const Tensors &t, Index batch, Index n, Index step, int inner,
                                                Value (&v)[VECTOR])
    {
        load_vector<VECTOR>(t.in1, (step * BK + inner) * 1024 + n, v);
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
    store_vector<QN>(t.out0, m * 1024 + n, total);
}
// </rollerc>

constexpr int EACH = (BM / TM) * (BN / TN), THREADS = BB * EACH;  // threads of a product, of a block
constexpr int LDA = BB * BM + PAD_A, LDB = BB * BN + PAD_B;       // shared row lengths; products are contiguous
constexpr Index BLOCKS_M = (M + BM - 1) / BM, BLOCKS_N = (N + BN - 1) / BN;
constexpr Index BLOCKS = BLOCKS_M * BLOCKS_N, PRODUCTS = (BATCH + BB - 1) / BB;
constexpr Index TERMS = SKIPS ? K / TAPS : K;                     // with SKIPS of a tap; the last step of each may be shorter
constexpr Index STEPS = SKIPS ? (TERMS + BK - 1) / BK * TAPS : (K + BK - 1) / BK;
constexpr bool COPIES = COPIED_A || COPIED_B, AHEAD = STAGES > 2;
constexpr __device__ int greatest_common_divisor(int a, int b) { return b ? greatest_common_divisor(b, a % b) : a; }

static_assert(BM % TM == 0 && BN % TN == 0, "threads cover the block's tile");
static_assert(TM % GM == 0 && TN % GN == 0, "a thread's rows and columns are whole groups");
static_assert(QN == 1 || (QN == GN && N % QN == 0), "rows of C hold whole vectors");
static_assert((SKIPS ? STEPS / TAPS - 1 : STEPS - 1) * BK < TERMS, "no step is in vain");
static_assert(BB == 1 || !COPIES, "copies are of one product");
static_assert(AHEAD || !COPIES, "one step is on its way in registers");
static_assert(!AHEAD || BK % 2 == 0, "a step ends with the registers that it began with");
static_assert(LDA % GM == 0 && LDB % GN == 0, "shared rows keep vectors aligned");
static_assert(!COLLECTED || (BB == 1 && !DEALT && QN == 1), "a round of the block's threads is whole rows");

// The position of a row of A's tile, or a column of B's, in its line of shared memory, and the one that is
// there. DEALT columns of a thread are LANES apart: of 8 threads, thread t has columns t, 8 + t, 16 + t and
// 24 + t.
constexpr int LANES = BN / TN;
template <bool OF_B, int FROM = LANES, int TO = GN> __device__ __forceinline__ int place_of(int row)
{
    const unsigned at = (unsigned)row;
    return OF_B && DEALT ? (int)(at / (LANES * GN) * (LANES * GN) + at % FROM * TO + at % (LANES * GN) / FROM) : row;
}
template <bool OF_B> __device__ __forceinline__ int row_at(int place) { return place_of<OF_B, GN, LANES>(place); }

// Parts of a line are copied by adjacent threads. Rows of windows are found one by one: a thread has two, whose
// terms are found once.
template <class Operand, bool COPIED> struct InParts { static constexpr bool VALUE = false; };
template <class Operand> struct InParts<Operand, true> {
    static constexpr bool VALUE = Operand::ALONG_K || Operand::AFFINE;
};

// Copies of single elements along rows: each thread that copies has as many rows as the others, all at one place in a line.
template <class Operand, bool COPIED> struct FindsRows { static constexpr bool VALUE = false; };
template <class Operand> struct FindsRows<Operand, true> {
    static constexpr bool VALUE = !Operand::ALONG_K && !Operand::AFFINE;
};
constexpr __device__ int even_threads(int line)
{
    int threads = line;
    for (int parts = 2; threads > THREADS; ++parts)
        threads = line % parts == 0 ? line / parts : threads;
    return THREADS / threads * threads;
}

// A thread's part of the copy of a tile from global to shared memory: LOADS vectors along the operand's
// contiguous dimension.
template <class Operand, bool OF_B, bool COPIED, Index EXTENT, int BR, int LD> struct Fetch {
    static constexpr int VECTOR = Operand::VECTOR;
    static constexpr bool ALONG_K = Operand::ALONG_K;
    static constexpr int LENGTH = (ALONG_K ? BK : BR) / VECTOR;    // vectors along the contiguous dimension
    // Parts of a line: along k one sector, so that a warp's four lines lie in banks of their own. They are so
    // close that a thread's vectors share an address.
    static constexpr int FAST = InParts<Operand, COPIED>::VALUE ? greatest_common_divisor(LENGTH, ALONG_K ? 32 / (int)sizeof(Value) : 32)
                                : COPIED && LENGTH % 2 == 0     ? LENGTH / 2
                                                                : LENGTH;
    static_assert(LENGTH % FAST == 0, "parts are equally long");
    static constexpr int PARTS = LENGTH / FAST;
    static constexpr int VECTORS = BK * BB * BR / VECTOR / PARTS;  // of a part
    static constexpr bool BY_ELEMENTS = VECTOR == 1;               // each is copied to its own place
    // Threads that copy. Pixels are found one by one: of 160 threads and lines of 64 pixels 128 have one pixel each.
    static constexpr int WORKERS = FindsRows<Operand, COPIED && BY_ELEMENTS>::VALUE ? even_threads(FAST) : THREADS;
    static constexpr int LOADS = (VECTORS + WORKERS - 1) / WORKERS * PARTS;
    // The vectors of a thread are PERIOD sequences, in each of which they are LINES lines apart. WIDE: each
    // line takes several vectors of every thread. APART: so are their rows.
    static constexpr bool WIDE = FAST % WORKERS == 0;
    static constexpr int PERIOD = WIDE ? 1 : FAST / greatest_common_divisor(FAST, WORKERS), LINES = WORKERS * PERIOD / FAST;
    static constexpr int ROWS = WIDE ? FAST / WORKERS : PERIOD;    // vectors of a thread, until its first row's next one
    static constexpr bool APART = ALONG_K && !WIDE && BB == 1 && LANES * GN % LINES == 0 && LINES % GN == 0;
    static_assert((ALONG_K ? BK : BR) % VECTOR == 0, "a tile holds whole vectors");
    static_assert(!COPIED || BY_ELEMENTS || (!ALONG_K && VECTOR * sizeof(Value) == 16 && !(OF_B && DEALT)),
                  "vectors that are copied have their place as they are");

    // Vectors of one row share an address and, as the term where they end, the test of what is there.
    static constexpr bool SHARES = Operand::EVEN && !ALONG_K;

    Value v[LOADS][VECTOR];

    // A thread's i-th vector: row (of A) or column (of B) and k in the tile, and the product. The last
    // threads may have none.
    struct Mine {
        int product, row, place, k;
        bool exists;
        // Of the position in shared memory.
        __device__ __forceinline__ int at(int e) const { return ALONG_K ? place : place_of<OF_B>(row + e); }

        __device__ __forceinline__ explicit Mine(int load)
        {
            const int i = load / PARTS, part = load % PARTS;
            const int number = (int)threadIdx.x + i % PERIOD * WORKERS;
            const int line = WIDE ? i * WORKERS / FAST : number / FAST + i / PERIOD * LINES;
            const int vector = part * FAST + (WIDE ? i * WORKERS % FAST + number : number % FAST);
            product = BB > 1 ? line / (ALONG_K ? BR : BK) : 0;
            place = line - product * BR;
            row = !ALONG_K ? vector * VECTOR
                  : APART  ? row_at<OF_B>(number / FAST) + row_at<OF_B>(i / PERIOD * LINES)
                           : row_at<OF_B>(place);
            k = ALONG_K ? vector * VECTOR : line - product * BK;
            exists = VECTORS % WORKERS == 0 || (int)threadIdx.x + i * WORKERS < VECTORS;
        }
    };

    static __device__ __forceinline__ void copy(bool inside, Value *to, const Value *from)
    {
        if (BY_ELEMENTS)
            async_copy_element_or_zero(inside, to, from);
        else
            async_copy16_or_zero(inside, to, from);
    }

    // The number of first steps whose tiles are entirely in bounds. An affine box is, if its corners are.
    static __device__ __forceinline__ Index whole_steps(const Tensors &t, Index batch, Index row0, Index steps)
    {
        if constexpr (COPIED) {
            if constexpr (Operand::AFFINE) {
                const auto inside = [&](Index step, int k) {
                    bool both = row0 + BR <= EXTENT && step * BK + k < K;
                    Operand::at(t, batch, row0, step, k, both);
                    Operand::at(t, batch, row0 + (BR - 1), step, k, both);
                    return both;
                };
                return !inside(0, 0) || !inside(steps - 2, BK - 1) ? 0 : steps - !inside(steps - 1, BK - 1);
            }
        }
        return 0;
    }

    // Starts the copies, without bounds checks or with zeros out of bounds. The addresses of an affine
    // sequence are constants apart: kept for each vector they would take registers of the whole loop.
    template <bool WHOLE>
    static __device__ __forceinline__ void copy_tile(const Tensors &t, Index batch, Index row0, Index step, Value (&tile)[BK][LD])
    {
        constexpr bool BY_ROWS = SHARES && !Operand::AFFINE && TERMS % BK;
        if (WORKERS < THREADS && (int)threadIdx.x >= WORKERS)
            return;
        UNROLL for (int i = 0; i < LOADS; ++i) {
            const Mine it(i), first(BY_ROWS           ? i / PARTS % ROWS * PARTS + i % PARTS
                                    : Operand::AFFINE ? i / PARTS % PERIOD * PARTS
                                                      : i);
            const Mine &tested = BY_ROWS ? first : it;
            const Index row = row0 + tested.row, begun = (SKIPS ? quotient_by<TAPS>(step) : step) * BK;
            bool inside = EXTENT % BR == 0 || row < EXTENT, any = true;
            Operand::at(t, batch, row, step, tested.k, inside);
            inside = BY_ROWS ? it.k < (inside ? TERMS - begun : 0) : inside && (TERMS % BK == 0 || begun + it.k < TERMS);
            const Value *from = Operand::at(t, batch, row0 + first.row, step, first.k, any);
            const Index apart = (it.row - first.row) * Operand::ROW + (it.k - first.k) * Operand::TERM;
            if (it.exists)
                copy(WHOLE || inside, BY_ROWS ? &tile[first.k][first.at(0)] + (it.k - first.k) * LD : &tile[it.k][it.at(0)], from + apart);
        }
    }

    // Starts the copies, or loads what end() stores.
    __device__ __forceinline__ void begin(const Tensors &t, Index batch, Index row0, Index step, Index whole, Value (&tile)[BK][LD])
    {
        if constexpr (COPIED) {
            Operand::AFFINE && step < whole ? copy_tile<true>(t, batch, row0, step, tile) : copy_tile<false>(t, batch, row0, step, tile);
        } else {
            UNROLL for (int i = 0; i < LOADS; ++i) {
                const Mine it(i), first(SHARES ? i % ROWS : i);
                const Index of = batch + it.product, row = row0 + first.row, begun = (SKIPS ? quotient_by<TAPS>(step) : step) * BK;
                bool inside = it.exists & (BATCH % BB == 0 || of < BATCH) & (EXTENT % BR == 0 || row < EXTENT);
                if constexpr (Operand::PLACED) {
                    const Value *from = Operand::at(t, of, row, step, first.k, inside) + (it.k - first.k) * Operand::TERM;
                    if (SHARES)
                        load_below<Index>(it.k, inside ? TERMS - begun : 0, from, v[i]);
                    else
                        load_below<Index>(0, inside & (TERMS % BK == 0 || begun + it.k < TERMS), from, v[i]);
                } else if (inside && begun + it.k < TERMS) {
                    Operand::read(t, of, row, step, it.k, v[i]);
                } else {
                    UNROLL for (int e = 0; e < VECTOR; ++e)
                        v[i][e] = 0;
                }
            }
        }
    }

    __device__ __forceinline__ void end(Value (&tile)[BK][LD]) const
    {
        UNROLL for (int i = 0; i < LOADS && !COPIED; ++i) {
            const Mine it(i);
            if (!it.exists)
                continue;
            UNROLL for (int e = 0; e < VECTOR; ++e)
                tile[it.k + (ALONG_K ? e : 0)][it.product * BR + it.at(e)] = v[i][e];
        }
    }
};

// Q contiguous values of shared memory, one access.
template <int Q> struct alignas(sizeof(Value) * Q) Group {
    Value at[Q];
};

// The registers of an operand for one k: T rows or columns in groups of Q, APART from group to group.
template <int T, int Q, int APART> struct Fragment {
    Group<Q> group[T / Q];
    static_assert(sizeof group == T * sizeof(Value), "what acc takes up");

    __device__ __forceinline__ void read(const Value *line, int first)
    {
        UNROLL for (int g = 0; g < T / Q; ++g)
            group[g] = *reinterpret_cast<const Group<Q> *>(&line[g * APART + first]);
    }
    __device__ __forceinline__ Value at(int i) const { return group[i / Q].at[i % Q]; }
};

// An accumulator in another register. Vectors are stored from consecutive registers; accumulators that are
// allocated there conflict with the registers of B, since an FFMA reads one register of each of two banks at
// a time. threadIdx.y is 0, which the compiler does not know.
__device__ __forceinline__ float moved(float sum) { return __uint_as_float(__float_as_uint(sum) ^ threadIdx.y); }
template <class T> __device__ __forceinline__ T moved(T sum) { return sum; }

// Where rows of threads are no whole number of banks: of ten threads to a row, eight lanes read 16 bytes each,
// and threads 8 and 9 the banks of the next row's first two. So threads of eight columns lie below each other,
// and behind SIDE of these come all rows of the last two columns. Single elements are stored in shorter runs
// then, parts of sectors, and stay as they are.
constexpr int BANKS = 128 / ((int)sizeof(Value) * GN);   // groups of columns that lanes read at once
constexpr bool WRAPS = QN > 1 && BN / TN > BANKS && BN / TN % BANKS != 0;
constexpr int REST = WRAPS ? BN / TN % BANKS : BN / TN;
constexpr int SIDE = (BN / TN - REST) * (BM / TM);

// The order in which a thread's accumulators are updated: along its rows or, AHEAD, its longer side, and
// back. Consecutive updates share an operand, which is reused without a register read: of three reads two are
// from one bank, which takes a cycle more.
constexpr bool DOWN = AHEAD && TM >= TN;
constexpr __device__ int there_and_back(int n, int length) { return n / length % 2 ? length - 1 - n % length : n % length; }
constexpr __device__ int column_of(int n) { return DOWN ? n / TM : there_and_back(n, TN); }
constexpr __device__ int row_of(int n) { return DOWN ? there_and_back(n, TM) : n / TN; }

// A thread's j-th element of the rows that are staged together: the i-th of each thread.
struct Collected {
    int line, column;
    Index m, n;
    bool exists;

    __device__ __forceinline__ Collected(Index m0, Index n0, int i, int j)
    {
        const int number = j * THREADS + (int)threadIdx.x;
        line = number / BN;
        column = number % BN;
        m = m0 + i / GM * (BM / TM * GM) + line * GM + i % GM;
        n = n0 + column;
        exists = m < M && n < N;
    }
};

// Stores a thread's sums, in vectors where possible. Single elements of a tile that is in bounds have no
// predicates, so stores of adjacent columns are issued together; beside loads of columns that gains nothing.
// The epilogue loads what varies along columns once, and rows as many ahead as the operands had registers for;
// of single elements half as many, since their addresses take registers, too.
template <bool WHOLE>
__device__ __forceinline__ void store_tile(const Tensors &t, Index batch, Index m0, Index n0, int ty, int tx,
                                           const Value (&acc)[TM][TN])
{
    constexpr int VECTORS = TN / QN, OF_GROUP = GN / QN;
    constexpr int WORDS = ((int)sizeof(Beside) + 3) / 4 * VECTORS;
    constexpr int FIT = (AHEAD && QN > 1 ? 2 : 1) * (TM + TN) / WORDS;
    constexpr int ROWS = FIT < 1 ? 1 : FIT < TM ? FIT : TM;
    Columns columns[VECTORS];
    Beside rows[ROWS][VECTORS];
    const auto row = [&](int i) { return m0 + i / GM * (BM / TM * GM) + ty * GM + i % GM; };
    const auto column = [&](int j) {
        return n0 + j / OF_GROUP * (BN / TN * GN) + (DEALT ? tx + j % OF_GROUP * (BN / TN) : tx * GN + j % OF_GROUP * QN);
    };
    const auto ask_row = [&](int i) {
        UNROLL for (int j = 0; j < VECTORS; ++j)
            if (WHOLE || (row(i) < M && column(j) < N))
                read_beside(t, batch, row(i), column(j), rows[i % ROWS][j]);
    };
    UNROLL for (int j = 0; j < VECTORS; ++j)
        if (WHOLE || column(j) < N)
            read_columns(t, batch, m0, column(j), columns[j]);
    UNROLL for (int i = 0; i < ROWS; ++i)
        ask_row(i);
    UNROLL for (int i = 0; i < TM; ++i) {
        const Index m = row(i);
        UNROLL for (int j = 0; j < VECTORS; ++j) {
            const Index n = column(j);
            Value total[QN];
            UNROLL for (int q = 0; q < QN; ++q)
                total[q] = QN > 1 ? moved(acc[i][j * QN + q]) : acc[i][j];
            if (WHOLE || (m < M && n < N))
                finish_vector(t, batch, m, n, total, rows[i % ROWS][j], columns[j]);
        }
        if (i + ROWS < TM)
            ask_row(i + ROWS);
    }
}

extern "C" __global__ void __launch_bounds__(BOUNDS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED_AT(0, Value, As, [STAGES][BK][LDA]);                                  // (STAGES,BK,BM)
    SHARED_AT(STAGES * BK * LDA * (int)sizeof(Value), Value, Bs, [STAGES][BK][LDB]);   // (STAGES,BK,BN)
    static_assert((int)(sizeof As + sizeof Bs) <= STAGED.bytes, "all stages of both tiles fit");
    Value acc[TM][TN] = {};                                                   // (TM,TN)
    Fragment<TM, GM, BM / TM * GM> a[2];                                      // (2,TM): of this k and the next, if AHEAD
    Fragment<TN, GN, BN / TN * GN> b[2];                                      // (2,TN)

    const Index tile = BACKWARDS ? BLOCKS * PRODUCTS - 1 - (Index)blockIdx.x : (Index)blockIdx.x;
    const Index block = SIDE_BY_SIDE ? tile / PRODUCTS : tile % BLOCKS;
    const Index batch = (SIDE_BY_SIDE ? tile % PRODUCTS : tile / BLOCKS) * BB;
    const Index panel = block / (PANEL * BLOCKS_N) * PANEL;                   // first row of blocks of the panel
    const Index rows = op_min<Index>(BLOCKS_M - panel, PANEL);
    const Index m0 = (panel + block % (PANEL * BLOCKS_N) % rows) * BM;
    const Index n0 = block % (PANEL * BLOCKS_N) / rows * BN;
    const int own = BB > 1 ? (int)threadIdx.x / EACH : 0;                     // product in the block
    const int thread = (int)threadIdx.x - own * EACH;
    const int ty = WRAPS && thread < SIDE ? thread / BANKS % (BM / TM) : (thread - SIDE) / REST;
    const int tx = WRAPS && thread < SIDE ? thread / (BANKS * (BM / TM)) * BANKS + thread % BANKS
                                 : BN / TN - REST + (thread - SIDE) % REST;
    const int row = own * BM + ty * GM, column = own * BN + tx * GN;          // its first ones in shared memory

    // Load the first tiles.
    Fetch<OperandA, false, COPIED_A, M, BM, LDA> fetch_a;
    Fetch<OperandB, true, COPIED_B, N, BN, LDB> fetch_b;
    [[maybe_unused]] auto walk = SKIPS ? Walk(m0, n0) : 0;                    // with SKIPS: the step copied next
    const Index steps = SKIPS ? walk.count : STEPS;
    const Index whole_a = fetch_a.whole_steps(t, batch, m0, steps), whole_b = fetch_b.whole_steps(t, batch, n0, steps);
    const auto begin = [&](Index number, int stage) {
        const Index step = SKIPS ? walk.step : number;
        fetch_a.begin(t, batch, m0, step, whole_a, As[stage]);
        fetch_b.begin(t, batch, n0, step, whole_b, Bs[stage]);
        if (SKIPS)
            walk.advance();
    };
    const auto end = [&](int stage) {
        fetch_a.end(As[stage]);
        fetch_b.end(Bs[stage]);
    };
    UNROLL for (int step = 0; step < STAGES - 1; ++step) {
        if (step < steps) {
            begin(step, step);
            end(step);
        }
        if (COPIES)
            async_commit();
    }
    if constexpr (COPIES)
        async_wait<STAGES - 2>();
    block_sync();
    if (AHEAD && steps > 0) {
        a[0].read(As[0][0], row);
        b[0].read(Bs[0][0], column);
    }

    // Compute: multiply one step in shared memory while later ones are copied.
    [[maybe_unused]] int turn = 0, before = STAGES - 1;   // stages
#pragma unroll 1
    for (Index step = 0; step < steps; ++step) {
        const int now = AHEAD ? turn : (int)(step & 1), free = AHEAD ? before : 1 - now;
        const Index ahead = step + (STAGES - 1);
        const bool more = ahead < steps;
        const int next = step + 1 == steps ? now : now + 1 == STAGES ? 0 : now + 1;   // after the last step: any stage
        if (!AHEAD && more)
            begin(ahead, free);
#pragma unroll WRITTEN_OUT
        for (int k = 0; k < BK; ++k) {
            const int used = AHEAD ? k % 2 : 0, other = AHEAD ? 1 - used : 0;
            const bool first = AHEAD && k == 0, last = AHEAD && k == BK - 1;
            if (last) {
                if (more)
                    end(free);
                if constexpr (COPIES)
                    async_wait<STAGES - 2>();
                block_sync();
            }
            const int stage = last ? next : now, line = AHEAD ? (k + 1) % BK : k;
            a[other].read(As[stage][line], row);
            b[other].read(Bs[stage][line], column);
            if (first && more)
                begin(ahead, free);
            if (first && COPIES)
                async_commit();
            UNROLL for (int n = 0; n < TM * TN; ++n) {
                const int i = row_of(n), j = column_of(n);
                acc[i][j] = op_add(op_mul(a[used].at(i), b[used].at(j)), acc[i][j]);
            }
        }
        if (!AHEAD && more) {
            end(free);
            block_sync();
        }
        before = now;
        turn = next;
    }

    // Epilogue: stores C, in vectors where possible.
    if constexpr (COLLECTED) {
        SHARED_AT(0, Value, Cs, [BM / TM][BN]);                               // over As and Bs
        static_assert((int)sizeof Cs <= STAGED.bytes, "a row of each thread fits");
        UNROLL for (int i = 0; i < TM; ++i) {
            Columns columns[TN];
            Beside rows[TN];
            UNROLL for (int j = 0; j < TN; ++j) {
                const Collected it(m0, n0, i, j);
                if (it.exists) {
                    read_columns(t, batch, it.m, it.n, columns[j]);
                    read_beside(t, batch, it.m, it.n, rows[j]);
                }
            }
            block_sync();
            UNROLL for (int g = 0; g < TN / GN; ++g) {
                Group<GN> own_sums;
                UNROLL for (int q = 0; q < GN; ++q)
                    own_sums.at[q] = acc[i][g * GN + q];
                *reinterpret_cast<Group<GN> *>(&Cs[ty][(g * (BN / TN) + tx) * GN]) = own_sums;
            }
            block_sync();
            UNROLL for (int j = 0; j < TN; ++j) {
                const Collected it(m0, n0, i, j);
                const Value total[QN] = {Cs[it.line][it.column]};
                if (it.exists)
                    finish_vector(t, batch, it.m, it.n, total, rows[j], columns[j]);
            }
        }
        return;
    }
    const Index product = batch + own;
    if (BATCH % BB && product >= BATCH)
        return;
    const bool whole = QN == 1 && __is_empty(Columns) && m0 + BM <= M && n0 + BN <= N;
    whole ? store_tile<true>(t, product, m0, n0, ty, tx, acc) : store_tile<false>(t, product, m0, n0, ty, tx, acc);
}
}   // namespace KERNEL
