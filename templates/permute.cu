// Permutation (tiled transpose): the output is contiguous along c, the input along r.
//
// A block moves TO x TR x TC points through shared memory. It reads vectors of VR along r and writes vectors
// of VC along c, so both sides access whole lines. A thread reads a piece of PC vectors and transposes it in
// registers, so that shared memory is accessed in vectors too:
//
//            r                       c
//         +------+               +------+      A piece is PC vectors, read along r. Its VR rows of PC points go
//       c | 0123 |  transposed r | 048c |      to shared memory, where rows of the tile are contiguous along c.
//         | 4567 |  ------->     | 159d |      Every VR rows are padded by PAD points: a warp that writes along
//         | 89ab |               | 26ae |      r then has no bank conflicts.
//         | cdef |               | 37bf |
//         +------+               +------+
//
// r and c may each stand for several axes of the tensors, those contiguous in the input and in the output;
// the other axes are `outer`. Where both are short, a block takes several outer positions.
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
constexpr Region TILE = {0, 16640};   // of shared memory, in bytes
constexpr int SHARED_BYTES = 16640;   // of a block
using Element = float;                               // of the input that is permuted
constexpr Index OUTER = 8, R = 1024, C = 1000;       // problem
constexpr int TO = 1, TR = 64, TC = 64;              // rTile, shared memory
constexpr int VR = 4, VC = 4, PC = 4;                // points of an access along r, along c; reads of a piece
constexpr int VW = 4;                                // points of a write; more than VC: across rows
constexpr bool COPIED = false, RAGGED = false;       // lines of the input, rows of the output are unaligned
constexpr bool PADDED = false;                       // the input has less columns
constexpr int TURN = 1;                              // rows that adjacent threads gather
constexpr int SHARE = 1;                             // alignment of the blocks' parts of a row, in points
constexpr int PAD = 4;                               // bank padding of every VR rows; of every copied line, in points
constexpr int WIDTH = 64;                            // columns in shared memory: more than TC where parts begin later
constexpr int OUTER_PITCH = 4160;                    // elements of shared memory for an outer position
constexpr int ALONG_R = 16, ALONG_C = 16;            // adjacent threads along r, along c
constexpr int VECTORS_R = 0;                         // vectors that hold an unaligned copied line
constexpr int THREADS = 256;

using Held = Piece<Element, PC, VR>;                 // a piece in registers

__device__ __forceinline__ const Element *input(const Tensors &t) { return t.in0; }
constexpr Index ELEMENTS = 8192000;   // of the input

// The position of a point in the input.
__device__ __forceinline__ Index source(Index outer, Index r, Index c) { return outer * 1024000 + c * 1024 + r; }

// Its position in the output.
__device__ __forceinline__ Index target(Index outer, Index r, Index c) { return outer * 1024000 + r * 1000 + c; }

__device__ __forceinline__ bool exists(Index c) { return c < C; }   // in the input

__device__ __forceinline__ void *output(const Tensors &t) { return t.out0; }

// Computes and stores VW points.
__device__ __forceinline__ void finish(const Tensors &t, Index outer, Index r, Index c, const Element (&x)[VW])
{
    move_vector<VW>(t.out0 + target(outer, r, c), x);
}
// </rollerc>

constexpr Index TILES_R = (R + TR - 1) / TR, TILES_C = (C + TC - 1) / TC;
constexpr bool ALONE = TO == 1;           // one outer position in a tile
constexpr bool JOINED = PAD == 0;         // copied lines are contiguous
constexpr int GROUP = VR * WIDTH + PAD;   // from VR rows of the shared tile to the next
constexpr int PITCH = TR + PAD;           // from a copied line to the next
constexpr int COPIES = JOINED ? 1 : WIDTH, ALL_COPIES = TO * COPIES;   // lines that are copied of an outer position, of a tile

static_assert((COPIED || TR % VR == 0) && TC % VC == 0, "tiles are whole vectors");
static_assert((COPIED || R % VR == 0) && (RAGGED || C % VC == 0), "vectors are inside or outside");
static_assert(COPIED || (WIDTH % PC == 0 && PAD % VC == 0 && PAD % PC == 0), "shared memory keeps vectors aligned");
static_assert((COPIED ? WIDTH * PITCH : TR / VR * GROUP) <= OUTER_PITCH, "an outer position has room for its points");
static_assert(COPIED || ALONG_R == TR / VR, "a line is read at once");
static_assert(COPIED || RAGGED || ALONG_C == TC / VC, "a line is written at once");
static_assert(!COPIED || PAD >= 2 * VR - 2 || (JOINED && TR == R), "copied vectors do not overlap");
static_assert(!COPIED || VECTORS_R * VR >= (JOINED ? WIDTH * TR : TR) + VR - 1, "all of a line is copied");
static_assert(!RAGGED || (SHARE % VC == 0 && THREADS % SHARE == 0), "a share begins with a whole vector");
static_assert(VW == VC || (TC == C && VR * TC % VW == 0 && PAD % VW == 0), "runs are whole vectors");

// Lines of a tile are numbered, N of each outer position: the line of its outer position, and that position.
template <int N> __device__ __forceinline__ int line_of(int line) { return ALONE ? line : line % N; }
template <int N> __device__ __forceinline__ int outer_of(int line) { return ALONE ? 0 : line / N; }

// How many of `most` points from `first` on are in bounds.
__device__ __forceinline__ int part(Index extent, Index first, int most)
{
    return (int)op_min(extent - first, (Index)most);
}

// The position of a point of a transposed tile in shared memory.
__device__ __forceinline__ int place(int outer, int r, int c) { return outer * OUTER_PITCH + r / VR * GROUP + r % VR * WIDTH + c; }

// The position of a point of a tile that begins at (outer0, r0, c0).
__device__ __forceinline__ int place_from(Index outer0, Index r0, Index c0, int outer, int r, int c)
{
    const int line = outer * OUTER_PITCH + c * PITCH;
    const unsigned from = (unsigned)source(outer0 + outer, r0, c0 + c);
    return COPIED ? line + (int)((from - (unsigned)line) % VR) + r : place(outer, r, c);
}

// Reads pieces, adjacent threads along r, and transposes them through registers and shared memory. All reads
// are in flight before the first is used.
__device__ __forceinline__ void load_turned(const Tensors &t, Element *tile, Index outer0, Index r0, Index c0)
{
    constexpr int LINES = THREADS / ALONG_R;                  // at once
    constexpr int PIECES = WIDTH / PC, ALL = TO * PIECES;     // of a line along r
    constexpr int READS = (ALL + LINES - 1) / LINES;
    static_assert(READS * LINES >= ALL && (READS - 1) * LINES < ALL, "each piece is read, and none in vain");
    Held piece[READS];
    const int r = (int)threadIdx.x % ALONG_R * VR, first = (int)threadIdx.x / ALONG_R;
    const bool busy = first < LINES && r0 + r < R;
    const auto reads = [&](int line) { return busy && line < ALL; };
    UNROLL for (int i = 0; i < READS; ++i) {
        const int line = first + i * LINES;
        const int c = line_of<PIECES>(line) * PC, outer = outer_of<PIECES>(line);
        const bool is_there = reads(line) && outer0 + outer < OUTER;
        UNROLL for (int e = 0; e < PC; ++e)
            if (is_there && exists(c0 + c + e))
                piece[i].read(e, input(t) + source(outer0 + outer, r0 + r, c0 + c + e));
    }
    UNROLL for (int i = 0; i < READS; ++i) {
        const int line = first + i * LINES;
        const int c = line_of<PIECES>(line) * PC, outer = outer_of<PIECES>(line);
        if (reads(line))
            UNROLL for (int j = 0; j < VR; ++j)
                piece[i].write(j, &tile[place(outer, r + j, c)]);
    }
}

// COPIED: unaligned lines of the input are copied as they are, by all aligned vectors that hold a part of a
// line. A line has the same alignment in shared memory as in the input. Lines are padded by PAD points, or
// contiguous as in the input: JOINED lines of an outer position are one line. Adjacent threads copy along r.
//
//      input    ....|..ab|cdef|gh..|....     tile   |..ab|cdef|gh..|      line c
//                                                     |.ijk|lmno|p...|    line c + 1
struct Line {
    bool is_there;
    Index from;    // in the input
    int length;
    Element *to;   // its place in shared memory
};

__device__ __forceinline__ Line copied_line(Element *tile, Index outer0, Index r0, Index c0, int each)
{
    const int line = line_of<COPIES>(each), outer = outer_of<COPIES>(each);
    return {each < ALL_COPIES && outer0 + outer < OUTER && (JOINED || exists(c0 + line)),
            source(outer0 + outer, r0, c0 + line), JOINED ? part(C, c0, WIDTH) * TR : part(R, r0, TR),
            &tile[place_from(outer0, r0, c0, outer, 0, line)]};
}

__device__ __forceinline__ void load_copied(const Tensors &t, Element *tile, Index outer0, Index r0, Index c0)
{
    constexpr int AT_ONCE = THREADS / ALONG_R, REST = (int)(ELEMENTS % VR);   // lines; elements of the last vector
    const int first = (int)threadIdx.x / ALONG_R;
    UNROLL for (int i = 0; i < ALL_COPIES; i += AT_ONCE) {
        const Line line = copied_line(tile, outer0, r0, c0, first + i);
        const int before = (int)((unsigned)line.from % VR);
        UNROLL for (int v = 0; v < VECTORS_R; v += ALONG_R) {
            const int at = (v + (int)threadIdx.x % ALONG_R) * VR - before;
            if (first < AT_ONCE && line.is_there && at < line.length &&
                (REST == 0 || line.from + at + VR <= ELEMENTS))
                async_copy16(line.to + at, input(t) + line.from + at);
        }
    }
    async_commit();
    if (REST > 0)
#pragma unroll 1
        for (int each = (int)threadIdx.x; each < ALL_COPIES; each += THREADS) {
            const Line line = copied_line(tile, outer0, r0, c0, each);
#pragma unroll 1
            for (Index at = op_max<Index>(ELEMENTS - REST - line.from, 0); line.is_there && at < line.length; ++at)
                line.to[at] = input(t)[line.from + at];
        }
    async_wait<0>();
}

// Stores rows of a transposed tile, adjacent threads along c.
__device__ __forceinline__ void store_rows(const Tensors &t, const Element *tile, Index outer0, Index r0, Index c0)
{
    constexpr int LINES = THREADS / ALONG_C;
    const int c = (int)threadIdx.x % ALONG_C * VC, first = (int)threadIdx.x / ALONG_C;
    const bool writes = first < LINES && c0 + c < C;
    UNROLL for (int i = 0; i < TO * TR; i += LINES) {
        const int line = first + i;
        const int r = line_of<TR>(line), outer = outer_of<TR>(line);
        if (writes && line < TO * TR && outer0 + outer < OUTER && r0 + r < R) {
            Element points[VW];
            move_vector<VW>(points, &tile[place(outer, r, c)]);
            finish(t, outer0 + outer, r0 + r, c0 + c, points);
        }
    }
}

// Stores a transposed tile as one run: all its points are contiguous in the output. Where C is odd, writes of
// VW points cross rows.
__device__ __forceinline__ void store_run(const Tensors &t, const Element *tile, Index outer0, Index r0)
{
    const int points_inside = part(OUTER, outer0, TO) * part(R, r0, TR) * TC;
    UNROLL for (int i = 0; i < TO * TR * TC; i += THREADS * VW) {
        const int run = i + (int)threadIdx.x * VW;
        if (run >= points_inside)
            continue;
        Element points[VW];
        move_vector<VW>(points, &tile[run + run / (VR * TC) * PAD]);
        finish(t, outer0, r0, run, points);
    }
}

// Points from here to where a block's part of a row begins. RAGGED rows of the output are unaligned. Writes
// are aligned all the same: blocks split a row at positions aligned to SHARE points, and so have whole
// vectors.
__device__ __forceinline__ int to_share(Index point)
{
    return RAGGED ? (int)((0u - (unsigned)point) % SHARE) : 0;
}

// Stores whole vectors whose VW points are in VW different lines of shared memory. TURN adjacent threads
// gather for as many rows, without bank conflicts.
__device__ __forceinline__ void store_gathered(const Tensors &t, const Element *tile, Index outer0, Index r0,
                                               Index c0)
{
    constexpr int ROWS = (TR + TURN - 1) / TURN * TURN, VECTORS = TC / VC;
    static_assert(ROWS == TR || (TR == R && ROWS < TR + TURN), "what is behind a tile's rows is behind all rows");
    constexpr int LINES = THREADS / (ALONG_C * TURN) * TURN;
    const int first = (int)(threadIdx.x / TURN % ALONG_C);
    const int line = (int)(threadIdx.x / (TURN * ALONG_C) * TURN + threadIdx.x % TURN);
    const int columns = part(C, c0, WIDTH);
    UNROLL_4 for (int i = 0; i < TO * ROWS; i += LINES) {
        const int row = line + i;
        const int r = line_of<ROWS>(row), outer = outer_of<ROWS>(row);
        const bool is_there = row < TO * ROWS && r0 + r < R && outer0 + outer < OUTER;
        const int begin = to_share(target(outer0 + outer, r0 + r, c0));
        UNROLL for (int v = 0; v < VECTORS; v += ALONG_C) {
            const int vector = first + v;
            const int c = begin + vector * VC;
            if (line < LINES && is_there && vector < VECTORS && c + VC <= columns) {
                Element points[VW];
                UNROLL for (int e = 0; e < VW; ++e)
                    if (!PADDED || exists(c0 + c + e))
                        points[e] = tile[place_from(outer0, r0, c0, outer, r, c + e)];
                finish(t, outer0 + outer, r0 + r, c0 + c, points);
            }
        }
    }
}

// Stores the ends of rows: before the first block's part, and after the last whole vector.
__device__ __forceinline__ void store_ends(const Tensors &t, const Element *tile, Index outer0, Index r0, Index c0)
{
    const int columns = part(C, c0, WIDTH), e = (int)(threadIdx.x % SHARE);
    UNROLL_4 for (int i = 0; i < TO * TR; i += THREADS / SHARE) {
        const int row = i + (int)(threadIdx.x / SHARE);
        const int r = line_of<TR>(row), outer = outer_of<TR>(row);
        if (row >= TO * TR || r0 + r >= R || outer0 + outer >= OUTER)
            continue;
        Element *to = static_cast<Element *>(output(t)) + target(outer0 + outer, r0 + r, c0);
        const int begin = to_share(target(outer0 + outer, r0 + r, c0));
        if (c0 == 0 && e < op_min(begin, columns))
            to[e] = tile[place_from(outer0, r0, c0, outer, r, e)];
        const int end = op_min(begin + TC, columns), behind = begin + (end - begin) / VW * VW + e;
        if (behind < end)
            to[behind] = tile[place_from(outer0, r0, c0, outer, r, behind)];
    }
}

extern "C" __global__ void __launch_bounds__(BOUNDS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED(TILE, Element, tile, [TO * OUTER_PITCH]);         // (TO,TR,WIDTH), or (TO,WIDTH,TR) if COPIED
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
    if (RAGGED && (c0 == 0 || part(C, c0, WIDTH) != WIDTH))
        store_ends(t, tile, outer0, r0, c0);
}
}   // namespace KERNEL
