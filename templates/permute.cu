// Permutation: the output's neighbours along c are far apart in the input, whose own neighbours lie along r.
//
// A block moves TO x TR x TC points through shared memory. It reads along r in vectors of VR and writes along
// c in vectors of VC, so that both sides of memory see whole lines. A thread reads pieces of PC vectors and
// turns them in its registers, so that shared memory too is accessed in vectors:
//
//            r                      c
//         +------+              +------+     The PC vectors of a piece are read along r; its VR rows of PC
//       c | 0123 |   turned   r | 048c |     points go to shared memory, where a row of the tile is
//         | 4567 |  ------->    | 159d |     contiguous along c. Every VR rows stand PAD points further: a
//         | 89ab |              | 26ae |     warp that writes along r then meets different banks.
//         | cdef |              | 37bf |
//         +------+              +------+
//
// r and c may each hold several axes of the tensors, those that are contiguous in the input and in the
// output; what is left is `outer`. Where both are short, a block takes several outer positions. Where a tile
// is one run in the output and C is odd, writes of VW points run on from row to row.
//
// Lines of the input that begin anywhere are COPIED instead, as they are: all whole vectors of memory that hold
// some of a line, which lies as far behind a whole vector in shared memory as in the input. There lines stand
// PAD points apart, or follow each other as they do in the input. What writes along c then gathers the VW points
// of a vector from as many lines:
//
//      input    ....|..ab|cdef|gh..|....     tile   |..ab|cdef|gh..|      line c
//                                                     |.ijk|lmno|p...|    line c + 1
//
// TURN neighbouring threads gather for as many rows: together they meet different banks.
//
// Rows of the output that are RAGGED begin anywhere. Writes are aligned all the same: blocks share a row where
// it is aligned to SHARE points, and so have whole vectors. What is less at its ends is written point by point.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // x[8, 1000, 1024]
    float *out0;        // y[8, 1024, 1000]
};
#define PARAMETERS const float *__restrict__ in0, float *__restrict__ out0
#define TENSORS {in0, out0}
using Element = float;                               // of the input that is permuted
constexpr Index OUTER = 8, R = 1024, C = 1000;       // problem
constexpr int TO = 1, TR = 64, TC = 64;              // rTile, shared memory
constexpr int VR = 4, VC = 4, PC = 4;                // points of an access along r, along c; reads of a piece
constexpr int VW = 4;                                // points of a write; more than VC: from row to row
constexpr bool COPIED = false, RAGGED = false;       // lines of the input, rows of the output begin anywhere
constexpr int TURN = 1;                              // rows that neighbouring threads gather
constexpr int SHARE = 1;                             // points that blocks' shares of a row are aligned to
constexpr int PAD = 4;                               // bank padding of every VR rows; of every copied line, elements
constexpr int THREADS = 256;

__device__ __forceinline__ const Element *input(const Tensors &t) { return t.in0; }
constexpr Index ELEMENTS = 8192000;   // of the input

// Where a point is in the input.
__device__ __forceinline__ Index source(Index outer, Index r, Index c) { return outer * 1024000 + c * 1024 + r; }

// Where it is in the output.
__device__ __forceinline__ Index target(Index outer, Index r, Index c) { return outer * 1024000 + r * 1000 + c; }

__device__ __forceinline__ void *output(const Tensors &t) { return t.out0; }

// Makes and stores VW points.
__device__ __forceinline__ void finish(const Tensors &t, Index outer, Index r, Index c, const Element (&x)[VW])
{
    move_vector<VW>(t.out0 + target(outer, r, c), x);
}
// </rollerc>

constexpr Index TILES_R = (R + TR - 1) / TR, TILES_C = (C + TC - 1) / TC;
constexpr int WIDTH = TILES_C > 1 && RAGGED ? TC + SHARE : TC;   // columns in shared memory: shares may begin later
constexpr int GROUP = VR * WIDTH + PAD;                       // from VR rows of the shared tile to the next
constexpr int PITCH = TR + PAD;                               // from a copied line to the next
constexpr int LINES = PAD == 0 ? 1 : WIDTH, LENGTH = PAD == 0 ? WIDTH * TR : TR;   // copied lines
constexpr int VECTORS_R = (LENGTH + 2 * VR - 2) / VR;         // that hold a copied line, wherever it begins
constexpr int OUTER_PITCH = COPIED ? (WIDTH * PITCH + 2 * VR - 2) / VR * VR : TR / VR * GROUP;

static_assert((COPIED || TR % VR == 0) && TC % VC == 0, "tiles are whole vectors");
static_assert((COPIED || R % VR == 0) && (RAGGED || C % VC == 0), "vectors are inside or outside");
static_assert(COPIED || (WIDTH % PC == 0 && PAD % VC == 0 && PAD % PC == 0), "shared memory keeps vectors aligned");
static_assert(!COPIED || PAD >= 2 * VR - 2 || (PAD == 0 && TR == R), "copied vectors do not overlap");
static_assert(!RAGGED || (SHARE % VC == 0 && THREADS % SHARE == 0), "a share begins with a whole vector");
static_assert(VW == VC || (TC == C && VR * TC % VW == 0 && PAD % VW == 0), "runs are whole vectors");

__host__ __device__ constexpr int power_of_two(int most)   // not above it
{
    return most < 2 ? 1 : 2 * power_of_two(most / 2);
}
constexpr int ALONG_LINE = power_of_two(VECTORS_R < THREADS ? VECTORS_R : THREADS);   // threads that copy a line

// Where a point of a turned tile is in shared memory.
__device__ __forceinline__ int place(int outer, int r, int c)
{
    return outer * OUTER_PITCH + r / VR * GROUP + r % VR * WIDTH + c;
}

// Where a point of a tile is that begins at (outer0, r0, c0).
__device__ __forceinline__ int place_from(Index outer0, Index r0, Index c0, int outer, int r, int c)
{
    const int line = outer * OUTER_PITCH + c * PITCH;
    const unsigned from = (unsigned)source(outer0 + outer, r0, c0 + c);
    return COPIED ? line + (int)((from - (unsigned)line) % VR) + r : place(outer, r, c);
}

// Reads pieces, neighbouring threads along r, and turns them in registers and shared memory. All reads are under
// way before the first is needed.
__device__ __forceinline__ void load_turned(const Tensors &t, Element *tile, Index outer0, Index r0, Index c0)
{
    constexpr int ALONG = (TR + VR - 1) / VR, LINES = THREADS / ALONG;   // threads beside each other; at once
    constexpr int PIECES = WIDTH / PC;                        // of a line along r, side by side
    constexpr int READS = (TO * PIECES + LINES - 1) / LINES;
    static_assert(COPIED || ALONG <= THREADS, "a line is taken at once");
    Piece<Element, PC, VR> piece[READS];
    const int r = (int)threadIdx.x % ALONG * VR, line_r = (int)threadIdx.x / ALONG;
    const bool reads = line_r < LINES && r0 + r < R;
    UNROLL for (int i = 0; i < READS; ++i) {
        const int line = line_r + i * LINES;
        const int c = (TO == 1 ? line : line % PIECES) * PC, outer = TO == 1 ? 0 : line / PIECES;
        const bool inside = reads && line < TO * PIECES && outer0 + outer < OUTER;
        UNROLL for (int e = 0; e < PC; ++e)
            if (inside && c0 + c + e < C)
                piece[i].read(e, input(t) + source(outer0 + outer, r0 + r, c0 + c + e));
    }
    UNROLL for (int i = 0; i < READS; ++i) {
        const int line = line_r + i * LINES;
        const int c = (TO == 1 ? line : line % PIECES) * PC, outer = TO == 1 ? 0 : line / PIECES;
        if (reads && line < TO * PIECES)
            UNROLL for (int j = 0; j < VR; ++j)
                piece[i].write(j, &tile[place(outer, r + j, c)]);
    }
}

// Copies lines as they are, neighbouring threads along r; without PAD those of an outer position are one line.
__device__ __forceinline__ void load_copied(const Tensors &t, Element *tile, Index outer0, Index r0, Index c0)
{
    const int columns = C - c0 < WIDTH ? (int)(C - c0) : WIDTH, rows = R - r0 < TR ? (int)(R - r0) : TR;
    const int lines = PAD == 0 ? 1 : columns, length = PAD == 0 ? columns * TR : rows;
    UNROLL for (int first = 0; first < TO * LINES; first += THREADS / ALONG_LINE) {
        const int each = first + (int)(threadIdx.x / ALONG_LINE);
        const int line = TO == 1 ? each : each % LINES, outer = TO == 1 ? 0 : each / LINES;
        const Index from = source(outer0 + outer, r0, c0 + line);
        const int before = (int)((unsigned)from % VR);
        Element *to = &tile[place_from(outer0, r0, c0, outer, 0, line)];
        UNROLL for (int vector = 0; vector < VECTORS_R; vector += ALONG_LINE) {
            const int at = (vector + (int)(threadIdx.x % ALONG_LINE)) * VR - before;
            if (each < TO * LINES && outer0 + outer < OUTER && line < lines && at < length) {
                if (from + at + VR <= ELEMENTS)
                    async_copy16(to + at, input(t) + from + at);
                else
                    copy_inside<VR>(to + at, input(t), from + at, ELEMENTS);
            }
        }
    }
    async_commit();
    async_wait<0>();
}

// Stores rows of a turned tile, neighbouring threads along c.
__device__ __forceinline__ void store_rows(const Tensors &t, const Element *tile, Index outer0, Index r0,
                                           Index c0)
{
    constexpr int ALONG = TC / VC, LINES = THREADS / ALONG, WRITES = (TO * TR + LINES - 1) / LINES;
    static_assert(COPIED || RAGGED || ALONG <= THREADS, "a line is taken at once");
    const int c = (int)threadIdx.x % ALONG * VC, line_c = (int)threadIdx.x / ALONG;
    const bool writes = line_c < LINES && c0 + c < C;
    UNROLL for (int i = 0; i < WRITES; ++i) {
        const int line = line_c + i * LINES;
        const int r = TO == 1 ? line : line % TR, outer = TO == 1 ? 0 : line / TR;
        if (writes && line < TO * TR && outer0 + outer < OUTER && r0 + r < R) {
            Element points[VW];
            move_vector<VW>(points, &tile[place(outer, r, c)]);
            finish(t, outer0 + outer, r0 + r, c0 + c, points);
        }
    }
}

// Stores a turned tile as one run: all its points lie together in the output.
__device__ __forceinline__ void store_run(const Tensors &t, const Element *tile, Index outer0, Index r0)
{
    const int rows = R - r0 < TR ? (int)(R - r0) : TR;
    const int outers = OUTER - outer0 < TO ? (int)(OUTER - outer0) : TO;
    UNROLL for (int first = 0; first < TO * TR * TC; first += THREADS * VW) {
        const int run = first + (int)threadIdx.x * VW;
        if (run >= outers * rows * TC)
            continue;
        Element points[VW];
        move_vector<VW>(points, &tile[run + run / (VR * TC) * PAD]);
        finish(t, outer0, r0, run, points);
    }
}

// Points from here to where a block's share of a row begins.
__device__ __forceinline__ int to_share(Index point)
{
    return RAGGED ? (int)((0u - (unsigned)point) % SHARE) : 0;
}

// Stores whole vectors whose points lie apart in shared memory, neighbouring threads along r, then along c.
__device__ __forceinline__ void store_gathered(const Tensors &t, const Element *tile, Index outer0, Index r0,
                                               Index c0)
{
    constexpr int ROWS = (TR + TURN - 1) / TURN * TURN, VECTORS = TC / VC;
    constexpr int ALONG = VECTORS < THREADS / TURN ? VECTORS : THREADS / TURN;
    constexpr int LINES = THREADS / (ALONG * TURN) * TURN;
    const int vector = (int)(threadIdx.x / TURN % ALONG);
    const int line = (int)(threadIdx.x / (TURN * ALONG) * TURN + threadIdx.x % TURN);
    const int columns = C - c0 < WIDTH ? (int)(C - c0) : WIDTH;
    UNROLL_4 for (int first = 0; first < TO * ROWS; first += LINES) {
        const int row = first + line, r = TO == 1 ? row : row % ROWS, outer = TO == 1 ? 0 : row / ROWS;
        const bool inside = row < TO * ROWS && r < TR && r0 + r < R && outer0 + outer < OUTER;
        const int begin = to_share(target(outer0 + outer, r0 + r, c0)) + vector * VC;
        UNROLL for (int next = 0; next < VECTORS; next += ALONG) {
            const int c = begin + next * VC;
            if (line < LINES && inside && next + vector < VECTORS && c + VC <= columns) {
                Element points[VW];
                UNROLL for (int e = 0; e < VW; ++e)
                    points[e] = tile[place_from(outer0, r0, c0, outer, r, c + e)];
                finish(t, outer0 + outer, r0 + r, c0 + c, points);
            }
        }
    }
}

// Stores what is left at the ends of rows: before the first block's share, and behind the last whole vector.
__device__ __forceinline__ void store_ends(const Tensors &t, const Element *tile, Index outer0, Index r0, Index c0)
{
    const int columns = C - c0 < WIDTH ? (int)(C - c0) : WIDTH, e = (int)(threadIdx.x % SHARE);
    UNROLL_4 for (int first = 0; first < TO * TR; first += THREADS / SHARE) {
        const int row = first + (int)(threadIdx.x / SHARE);
        const int r = TO == 1 ? row : row % TR, outer = TO == 1 ? 0 : row / TR;
        if (row >= TO * TR || r0 + r >= R || outer0 + outer >= OUTER)
            continue;
        Element *to = static_cast<Element *>(output(t)) + target(outer0 + outer, r0 + r, c0);
        const int begin = to_share(target(outer0 + outer, r0 + r, c0));
        if (c0 == 0 && e < begin && e < columns)
            to[e] = tile[place_from(outer0, r0, c0, outer, r, e)];
        const int behind = columns - begin < TC ? (columns - begin) / VW * VW + begin + e : columns;
        if (columns > begin && e < VW && behind < columns)
            to[behind] = tile[place_from(outer0, r0, c0, outer, r, behind)];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED(0, Element, tile, [TO * OUTER_PITCH]);         // (TO,TR,WIDTH), or (TO,WIDTH,TR) if COPIED

    const Index c0 = (Index)blockIdx.x % TILES_C * TC;
    const Index r0 = (Index)blockIdx.x / TILES_C % TILES_R * TR;
    const Index outer0 = (Index)blockIdx.x / (TILES_C * TILES_R) * TO;

    if (COPIED)
        load_copied(t, tile, outer0, r0, c0);
    else
        load_turned(t, tile, outer0, r0, c0);
    block_sync();

    if (COPIED || RAGGED)
        store_gathered(t, tile, outer0, r0, c0);
    else if (VW == VC)
        store_rows(t, tile, outer0, r0, c0);
    else
        store_run(t, tile, outer0, r0);
    if (RAGGED && (c0 == 0 || c0 + WIDTH >= C))
        store_ends(t, tile, outer0, r0, c0);
}
}   // namespace KERNEL
