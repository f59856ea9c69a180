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
// Elements of less than a word may stand in lines that begin anywhere. They are still read and written by whole
// words: a read shifts two of them into one (load_word), and a row's writes begin at its first whole word, so that
// the last word of a row of the tile consists of both its ends, which are written element by element:
//
//   tile row     0 1 2 3 4 5 6 7         starts one element behind a word of the output
//   in memory  . 0 1 2|3 4 5 6|7 . .     words: 3456, and 7|012 in pieces
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
constexpr bool WORDS_R = false, WORDS_C = false;     // lines along r, along c begin anywhere, and are moved by words
constexpr int PAD = 4;                               // bank padding of every VR rows, elements
constexpr int THREADS = 256;

__device__ __forceinline__ const Element *input(const Tensors &t) { return t.in0; }
constexpr Index ELEMENTS = 8192000;   // of the input

// Where a point is in the input.
__device__ __forceinline__ Index source(Index outer, Index r, Index c) { return outer * 1024000 + c * 1024 + r; }

// Where it is in the output.
__device__ __forceinline__ Index target(Index outer, Index r, Index c) { return outer * 1024000 + r * 1000 + c; }

// Makes and stores N points.
template <int N>
__device__ __forceinline__ void finish(const Tensors &t, Index outer, Index r, Index c, const Element (&x)[N])
{
    move_vector<N>(t.out0 + target(outer, r, c), x);
}
// </rollerc>

constexpr Index TILES_R = (R + TR - 1) / TR, TILES_C = (C + TC - 1) / TC;
constexpr int GROUP = VR * TC + PAD;                          // from VR rows of the shared tile to the next
constexpr int ALONG_R = TR / VR, ALONG_C = TC / VC;           // threads beside each other
constexpr int LINES_R = THREADS / ALONG_R, LINES_C = THREADS / ALONG_C;   // that all threads take at once
constexpr int PIECES = TC / PC;                               // of a line along r, side by side
constexpr int READS = (TO * PIECES + LINES_R - 1) / LINES_R, WRITES = (TO * TR + LINES_C - 1) / LINES_C;
constexpr int POINTS = TO * TR * TC;
constexpr Index WHOLE = WORDS_R ? ELEMENTS / VR * VR : ELEMENTS;   // elements in whole words

static_assert(TR % VR == 0 && TC % VC == 0, "tiles are whole vectors");
static_assert((WORDS_R || R % VR == 0) && (WORDS_C || C % VC == 0), "vectors are inside or outside");
static_assert(!WORDS_R || (VR * sizeof(Element) == 4 && WHOLE > 0), "a word");
static_assert(!WORDS_C || (VC * sizeof(Element) == 4 && VW == VC), "a word");
static_assert(TC % PC == 0 && PAD % VC == 0 && PAD % PC == 0, "shared memory keeps vectors aligned");
static_assert(VW == VC || (TC == C && VR * TC % VW == 0 && PAD % VW == 0), "runs are whole vectors");
static_assert(ALONG_R <= THREADS && ALONG_C <= THREADS, "a line is taken at once");

__device__ __forceinline__ int place(int outer, int r, int c)
{
    return (outer * ALONG_R + r / VR) * GROUP + r % VR * TC + c;
}

// The elements behind the input's last whole word, for which the thread's own reads put others into the tile.
__device__ __forceinline__ void read_ends(const Tensors &t, Element *tile, Index outer0, Index r0, Index c0)
{
    const int first_r = (int)threadIdx.x % ALONG_R * VR, line_r = (int)threadIdx.x / ALONG_R;
    for (int line = line_r; line < TO * PIECES; line += LINES_R)
        for (int at = 0; at < PC * VR; ++at) {
            const int outer = line / PIECES, r = first_r + at % VR, c = line % PIECES * PC + at / VR;
            if (outer0 + outer >= OUTER || r0 + r >= R || c0 + c >= C)
                continue;
            const Index from = source(outer0 + outer, r0 + r, c0 + c);
            if (from >= WHOLE)
                tile[place(outer, r, c)] = input(t)[from];
        }
}

// Elements from here to the next word of the output.
__device__ __forceinline__ int to_next_word(Index point) { return (int)((VC - point % VC) % VC); }

// Stores rows of the tile, neighbouring threads along c.
__device__ __forceinline__ void store_rows(const Tensors &t, const Element *tile, Index outer0, Index r0,
                                           Index c0)
{
    const int c = (int)threadIdx.x % ALONG_C * VC, line_c = (int)threadIdx.x / ALONG_C;
    const bool writes = line_c < LINES_C && c0 + c < C;
    UNROLL for (int i = 0; i < WRITES; ++i) {
        const int line = line_c + i * LINES_C;
        const int r = TO == 1 ? line : line % TR, outer = TO == 1 ? 0 : line / TR;
        if (writes && line < TO * TR && outer0 + outer < OUTER && r0 + r < R) {
            Element points[VW];
            move_vector<VW>(points, &tile[place(outer, r, c)]);
            finish<VW>(t, outer0 + outer, r0 + r, c0 + c, points);
        }
    }
}

// Stores rows of the tile by words of the output: first all whole words, then the rows' ends.
__device__ __forceinline__ void store_words(const Tensors &t, const Element *tile, Index outer0, Index r0,
                                            Index c0)
{
    const int columns = C - c0 < TC ? (int)(C - c0) : TC;
    const int word_c = (int)threadIdx.x % ALONG_C * VC, line_c = (int)threadIdx.x / ALONG_C;
    Word<Element> words[WRITES];
    UNROLL for (int i = 0; i < WRITES; ++i) {   // without branches: all are read before the first is needed
        const int line = line_c + i * LINES_C;
        const int r = TO == 1 ? line : line % TR, outer = TO == 1 ? 0 : line / TR;
        const int c = word_c + to_next_word(target(outer0 + outer, r0 + r, c0));
        const bool writes = line_c < LINES_C && line < TO * TR && outer0 + outer < OUTER && r0 + r < R;
        words[i].bits = load_word(tile, writes && c + VC <= columns ? place(outer, r, c) : 0);
    }
    UNROLL for (int i = 0; i < WRITES; ++i) {
        const int line = line_c + i * LINES_C;
        const int r = TO == 1 ? line : line % TR, outer = TO == 1 ? 0 : line / TR;
        const int c = word_c + to_next_word(target(outer0 + outer, r0 + r, c0));
        const bool writes = line_c < LINES_C && line < TO * TR && outer0 + outer < OUTER && r0 + r < R;
        if (writes && c + VC <= columns) {
            Element points[VC];
            UNROLL for (int e = 0; e < VC; ++e)
                points[e] = words[i].at[e % Word<Element>::COUNT];
            finish<VC>(t, outer0 + outer, r0 + r, c0 + c, points);
        }
    }
    constexpr int ENDS = 2 * VC;   // elements before the first whole word, and behind the last one
    UNROLL for (int first = 0; first < TO * TR * ENDS; first += THREADS) {
        const int end = first + (int)threadIdx.x, line = end / ENDS, e = end % ENDS;
        const int r = TO == 1 ? line : line % TR, outer = TO == 1 ? 0 : line / TR;
        const int before = to_next_word(target(outer0 + outer, r0 + r, c0));
        const int behind = (columns - before) % VC;
        const int c = e < VC ? e : columns - behind + e - VC;
        if (line < TO * TR && outer0 + outer < OUTER && r0 + r < R && c < columns && (e < VC ? e < before : e - VC < behind)) {
            const Element point[1] = {tile[place(outer, r, c)]};
            finish<1>(t, outer0 + outer, r0 + r, c0 + c, point);
        }
    }
}

// Stores the tile as one run: all its points lie together in the output.
__device__ __forceinline__ void store_run(const Tensors &t, const Element *tile, Index outer0, Index r0)
{
    const int rows = R - r0 < TR ? (int)(R - r0) : TR;
    const int outers = OUTER - outer0 < TO ? (int)(OUTER - outer0) : TO;
    UNROLL for (int first = 0; first < POINTS; first += THREADS * VW) {
        const int run = first + (int)threadIdx.x * VW;
        if (run >= outers * rows * TC)
            continue;
        Element points[VW];
        move_vector<VW>(points, &tile[run + run / (VR * TC) * PAD]);
        finish<VW>(t, outer0, r0, run, points);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED(0, Element, tile, [TO * ALONG_R * GROUP]);         // (TO,TR,TC)
    Piece<Element, PC, VR> piece[READS];

    const Index c0 = (Index)blockIdx.x % TILES_C * TC;
    const Index r0 = (Index)blockIdx.x / TILES_C % TILES_R * TR;
    const Index outer0 = (Index)blockIdx.x / (TILES_C * TILES_R) * TO;

    // Load: neighbouring threads along r. All reads are under way before the first is needed.
    const int r = (int)threadIdx.x % ALONG_R * VR, line_r = (int)threadIdx.x / ALONG_R;
    const bool reads = line_r < LINES_R && r0 + r < R;
    bool ends = false;   // a read by words reaches past the input's last whole one
    UNROLL for (int i = 0; i < READS; ++i) {
        const int line = line_r + i * LINES_R;
        const int c = (TO == 1 ? line : line % PIECES) * PC, outer = TO == 1 ? 0 : line / PIECES;
        const bool inside = reads && line < TO * PIECES && outer0 + outer < OUTER;
        UNROLL for (int e = 0; e < PC; ++e)
            if (WORDS_R) {   // without branches, see above
                const bool each = inside && c0 + c + e < C;
                const Index from = each ? source(outer0 + outer, r0 + r, c0 + c + e) : 0;
                piece[i].set(e, load_word(input(t), from, WHOLE / VR - 1));
                ends |= from + VR > WHOLE;
            } else if (inside && c0 + c + e < C)
                piece[i].read(e, input(t) + source(outer0 + outer, r0 + r, c0 + c + e));
    }

    // Turn, in registers and shared memory.
    UNROLL for (int i = 0; i < READS; ++i) {
        const int line = line_r + i * LINES_R;
        const int c = (TO == 1 ? line : line % PIECES) * PC, outer = TO == 1 ? 0 : line / PIECES;
        if (reads && line < TO * PIECES)
            UNROLL for (int j = 0; j < VR; ++j)
                piece[i].write(j, &tile[place(outer, r + j, c)]);
    }
    if (WHOLE < ELEMENTS && ends)
        read_ends(t, tile, outer0, r0, c0);
    block_sync();

    if (WORDS_C)
        store_words(t, tile, outer0, r0, c0);
    else if (VW == VC)
        store_rows(t, tile, outer0, r0, c0);
    else
        store_run(t, tile, outer0, r0);
}
}   // namespace KERNEL
