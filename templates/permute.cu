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
// read shifts each two of them into one, and a row's vectors begin at the output's first whole one, so that the last
// vector of a row of the tile consists of both its ends. These are written word by word, and what is less than a word
// element by element. For words and vectors of four:
//
//   tile row     0 1 2 3 4 5 6 7         starts one element behind a word of the output
//   in memory  . 0 1 2|3 4 5 6|7 . .     3456 at once; 7012 is what the row ends with and begins with
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
constexpr Index WHOLE = ELEMENTS / Word<Element>::COUNT * Word<Element>::COUNT;   // elements in whole words

static_assert(TR % VR == 0 && TC % VC == 0, "tiles are whole vectors");
static_assert((WORDS_R || R % VR == 0) && (WORDS_C || C % VC == 0), "vectors are inside or outside");
static_assert(!WORDS_R || (VR % Word<Element>::COUNT == 0 && WHOLE > 0), "whole words");
static_assert(!WORDS_C || (VC % Word<Element>::COUNT == 0 && VW == VC), "whole words");
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

// Elements from here to where the output is aligned to `count` of them.
__device__ __forceinline__ int to_aligned(Index point, int count) { return (int)((count - point % count) % count); }

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

// A thread's vector of a row that begins anywhere.
struct Chunk {
    static constexpr int COUNT = Word<Element>::COUNT, WORDS = VC / COUNT > 0 ? VC / COUNT : 1;
    unsigned words[WORDS];
    int outer, r, c, columns;   // c may be past the end: the row's beginning follows it
    bool writes;

    __device__ __forceinline__ Chunk() {}
    __device__ __forceinline__ Chunk(int i, Index outer0, Index r0, Index c0)
    {
        const int line = (int)threadIdx.x / ALONG_C + i * LINES_C;
        outer = TO == 1 ? 0 : line / TR;
        r = TO == 1 ? line : line % TR;
        c = (int)threadIdx.x % ALONG_C * VC + to_aligned(target(outer0 + outer, r0 + r, c0), VC);
        columns = C - c0 < TC ? (int)(C - c0) : TC;
        writes = (int)threadIdx.x / ALONG_C < LINES_C && line < TO * TR && outer0 + outer < OUTER && r0 + r < R;
    }
    __device__ __forceinline__ void read(const Element *tile)
    {
        const unsigned *row = reinterpret_cast<const unsigned *>(tile) + (writes ? place(outer, r, 0) / COUNT : 0);
        const unsigned selector = 0x3210u + 0x1111u * (unsigned)(c % COUNT * (int)sizeof(Element));
        unsigned low = row[word(0)];
        UNROLL for (int k = 0; k < WORDS; ++k) {
            const unsigned high = row[word(k + 1)];
            words[k] = byte_permute(low, high, selector);
            low = high;
        }
    }
    __device__ __forceinline__ int word(int k) const
    {
        const int at = c / COUNT + k;
        return at < TC / COUNT ? at : at - TC / COUNT;
    }
    __device__ __forceinline__ void write(const Tensors &t, Index outer0, Index r0, Index c0) const
    {
        Element points[WORDS * COUNT];
        UNROLL for (int k = 0; k < WORDS; ++k) {
            Word<Element> word;
            word.bits = words[k];
            UNROLL for (int j = 0; j < COUNT; ++j)
                points[k * COUNT + j] = word.at[j];
        }
        if (writes && c + VC <= columns)
            finish<WORDS * COUNT>(t, outer0 + outer, r0 + r, c0 + c, points);
        else if (writes)
            UNROLL for (int k = 0; k < WORDS; ++k) {
                const int at = c + k * COUNT < TC ? c + k * COUNT : c + k * COUNT - TC;
                Element each[COUNT];
                UNROLL for (int j = 0; j < COUNT; ++j)
                    each[j] = points[k * COUNT + j];
                if (at + COUNT <= columns)
                    finish<COUNT>(t, outer0 + outer, r0 + r, c0 + at, each);
            }
    }
};

// Stores rows of the tile by words of the output, then what is left at their ends.
__device__ __forceinline__ void store_words(const Tensors &t, const Element *tile, Index outer0, Index r0,
                                            Index c0)
{
    Chunk chunks[WRITES];
    UNROLL for (int i = 0; i < WRITES; ++i) {   // without branches: all are read before the first is needed
        chunks[i] = Chunk(i, outer0, r0, c0);
        chunks[i].read(tile);
    }
    UNROLL for (int i = 0; i < WRITES; ++i)
        chunks[i].write(t, outer0, r0, c0);

    constexpr int COUNT = Chunk::COUNT, ENDS = 2 * COUNT;   // before the first whole word, and behind the last one
    const int columns = C - c0 < TC ? (int)(C - c0) : TC;
    UNROLL for (int first = 0; first < TO * TR * ENDS; first += THREADS) {
        const int end = first + (int)threadIdx.x, line = end / ENDS, e = end % ENDS;
        const int r = TO == 1 ? line : line % TR, outer = TO == 1 ? 0 : line / TR;
        if (line >= TO * TR || outer0 + outer >= OUTER || r0 + r >= R)
            continue;
        const int before = to_aligned(target(outer0 + outer, r0 + r, c0), COUNT);
        const int behind = (columns > before ? columns - before : 0) % COUNT;
        const int c = e < COUNT ? e : columns - behind + e - COUNT;
        if (c < columns && (e < COUNT ? e < before : e - COUNT < behind)) {
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
                read_words(piece[i], e, input(t), from, WHOLE / Word<Element>::COUNT - 1);
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
    if (WORDS_R && WHOLE < ELEMENTS && ends)
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
