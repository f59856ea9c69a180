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
// Elements of less than a word may stand in lines that begin anywhere. They are still read and written by words: a
// read shifts each two of them into one, and a row's vectors begin at the output's first whole one. What is left at
// both ends of a row of the tile is written by words, and what is less than a word element by element.
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

__device__ __forceinline__ void *output(const Tensors &t) { return t.out0; }

// Makes and stores VW points.
__device__ __forceinline__ void finish(const Tensors &t, Index outer, Index r, Index c, const Element (&x)[VW])
{
    move_vector<VW>(t.out0 + target(outer, r, c), x);
}
// </rollerc>

constexpr Index TILES_R = (R + TR - 1) / TR, TILES_C = (C + TC - 1) / TC;
constexpr int GROUP = VR * TC + PAD;                          // from VR rows of the shared tile to the next
constexpr int ALONG_R = TR / VR, ALONG_C = TC / VC;           // threads beside each other
constexpr int LINES_R = THREADS / ALONG_R, LINES_C = THREADS / ALONG_C;   // that all threads take at once
constexpr int PIECES = TC / PC;                               // of a line along r, side by side
constexpr int READS = (TO * PIECES + LINES_R - 1) / LINES_R, WRITES = (TO * TR + LINES_C - 1) / LINES_C;
constexpr int POINTS = TO * TR * TC;
constexpr Index WHOLE = ELEMENTS / Word<Element>::COUNT * Word<Element>::COUNT;   // elements in whole words

static_assert(TR % VR == 0 && TC % VC == 0, "tiles are whole vectors");
static_assert((WORDS_R || R % VR == 0) && (WORDS_C || C % VC == 0), "vectors are inside or outside");
static_assert(!WORDS_R || (VR % Word<Element>::COUNT == 0 && WHOLE >= VR), "whole words, at least a vector");
static_assert(!WORDS_C || (VC % Word<Element>::COUNT == 0 && VW == VC), "whole words");
static_assert(TC % PC == 0 && PAD % VC == 0 && PAD % PC == 0, "shared memory keeps vectors aligned");
static_assert(VW == VC || (TC == C && VR * TC % VW == 0 && PAD % VW == 0), "runs are whole vectors");
static_assert(ALONG_R <= THREADS && ALONG_C <= THREADS, "a line is taken at once");

__device__ __forceinline__ int place(int outer, int r, int c)
{
    return (outer * ALONG_R + r / VR) * GROUP + r % VR * TC + c;
}

// What reads by whole words leave out: those that would reach past the input's last whole one.
__device__ __forceinline__ void read_ends(const Tensors &t, Element *tile, Index outer0, Index r0, Index c0)
{
    const int first_r = (int)threadIdx.x % ALONG_R * VR, line_r = (int)threadIdx.x / ALONG_R;
    for (int line = line_r; line < TO * PIECES; line += LINES_R)
        for (int e = 0; e < PC; ++e) {
            const int outer = line / PIECES, c = line % PIECES * PC + e;
            if (outer0 + outer >= OUTER || c0 + c >= C)
                continue;
            const Index from = source(outer0 + outer, r0 + first_r, c0 + c);
            for (int j = 0; j < VR; ++j)
                if (from + VR > WHOLE && r0 + first_r + j < R)
                    tile[place(outer, first_r + j, c)] = input(t)[from + j];
        }
}

// Elements from here to where the output is aligned to `count` of them, a power of two.
__device__ __forceinline__ int to_aligned(Index point, int count)
{
    return (int)((0u - (unsigned)point) % (unsigned)count);
}

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
            finish(t, outer0 + outer, r0 + r, c0 + c, points);
        }
    }
}

// Of a word, and of a vector along c.
constexpr int COUNT = Word<Element>::COUNT, WORDS = VC > COUNT ? VC / COUNT : 1;

// A point's element in the output, which has the input's type.
__device__ __forceinline__ Element *place_of(const Tensors &t, Index outer, Index r, Index c)
{
    return static_cast<Element *>(output(t)) + target(outer, r, c);
}

// Stores rows of the tile that begin anywhere: all whole vectors, then the words of the one that is left, whose end stands
// at the row's begin, then the elements of the word in which these meet.
__device__ __forceinline__ void store_words(const Tensors &t, const Element *tile, Index outer0, Index r0,
                                            Index c0)
{
    const int columns = C - c0 < TC ? (int)(C - c0) : TC;
    const unsigned *words = reinterpret_cast<const unsigned *>(tile);
    const int vector_c = (int)threadIdx.x % ALONG_C * VC, line_c = (int)threadIdx.x / ALONG_C;
    Vector<unsigned, WORDS> vectors[WRITES];
    UNROLL for (int i = 0; i < WRITES; ++i) {   // without branches: all are read before the first is needed
        const int line = line_c + i * LINES_C;
        const int r = TO == 1 ? line : line % TR, outer = TO == 1 ? 0 : line / TR;
        const bool writes = line_c < LINES_C && line < TO * TR && outer0 + outer < OUTER && r0 + r < R;
        const int c = vector_c + to_aligned(writes ? target(outer0 + outer, r0 + r, c0) : 0, VC);
        const unsigned at = writes && c + VC <= columns ? (unsigned)place(outer, r, c) : 0;
        shift_words(vectors[i].at, words + at / COUNT, words + (at + (VC - 1)) / COUNT,
                    at % COUNT * (unsigned)sizeof(Element));
    }
    UNROLL for (int i = 0; i < WRITES; ++i) {
        const int line = line_c + i * LINES_C;
        const int r = TO == 1 ? line : line % TR, outer = TO == 1 ? 0 : line / TR;
        const bool writes = line_c < LINES_C && line < TO * TR && outer0 + outer < OUTER && r0 + r < R;
        const int c = vector_c + to_aligned(writes ? target(outer0 + outer, r0 + r, c0) : 0, VC);
        if (writes && c + VC <= columns)
            *reinterpret_cast<Vector<unsigned, WORDS> *>(place_of(t, outer0 + outer, r0 + r, c0 + c)) = vectors[i];
    }

    constexpr int ENDS = 2 * WORDS;   // words before the first whole vector, and behind the last one
    UNROLL for (int first = 0; first < TO * TR * ENDS; first += THREADS) {
        const int end = first + (int)threadIdx.x, line = end / ENDS, k = end % ENDS;
        const int r = TO == 1 ? line : line % TR, outer = TO == 1 ? 0 : line / TR;
        if (line >= TO * TR || outer0 + outer >= OUTER || r0 + r >= R)
            continue;
        const Index begin = target(outer0 + outer, r0 + r, c0);
        const int before = to_aligned(begin, VC), whole = columns > before ? (columns - before) / VC * VC : 0;
        const int c = k < WORDS ? to_aligned(begin, COUNT) + k * COUNT : before + whole + (k - WORDS) * COUNT;
        if (c + COUNT <= (k < WORDS && before < columns ? before : columns)) {
            const unsigned at = (unsigned)place(outer, r, c);
            unsigned word[1];
            shift_words(word, words + at / COUNT, words + (at + (COUNT - 1)) / COUNT, at % COUNT * (unsigned)sizeof(Element));
            *reinterpret_cast<unsigned *>(place_of(t, outer0 + outer, r0 + r, c0 + c)) = word[0];
        }
    }

    constexpr int SINGLES = 2 * COUNT;   // elements before the first whole word, and behind the last one
    UNROLL for (int first = 0; first < TO * TR * SINGLES; first += THREADS) {
        const int end = first + (int)threadIdx.x, line = end / SINGLES, e = end % SINGLES;
        const int r = TO == 1 ? line : line % TR, outer = TO == 1 ? 0 : line / TR;
        if (line >= TO * TR || outer0 + outer >= OUTER || r0 + r >= R)
            continue;
        const int before = to_aligned(target(outer0 + outer, r0 + r, c0), COUNT);
        const int behind = (columns > before ? columns - before : 0) % COUNT;
        const int c = e < COUNT ? e : columns - behind + e - COUNT;
        if (c < columns && (e < COUNT ? e < before : e - COUNT < behind))
            *place_of(t, outer0 + outer, r0 + r, c0 + c) = tile[place(outer, r, c)];
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
        finish(t, outer0, r0, run, points);
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
    bool ends = false;   // a read by words would reach past the input's last whole one
    UNROLL for (int i = 0; i < READS; ++i) {
        const int line = line_r + i * LINES_R;
        const int c = (TO == 1 ? line : line % PIECES) * PC, outer = TO == 1 ? 0 : line / PIECES;
        const bool inside = reads && line < TO * PIECES && outer0 + outer < OUTER;
        UNROLL for (int e = 0; e < PC; ++e)
            if (WORDS_R) {   // without branches, see above
                const bool each = inside && c0 + c + e < C;
                const Index from = each ? source(outer0 + outer, r0 + r, c0 + c + e) : 0;
                read_words(piece[i], e, input(t), from + VR <= WHOLE ? from : 0);
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
    if (WORDS_R && ends)
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
