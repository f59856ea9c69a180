// Sliding windows (pooling, stencils, direct convolution): every output combines the terms under its window;
// an epilogue computes the output from the total.
//
// A block computes TO x TD * HEIGHT x TA outputs: outer positions, down, along. A thread computes HEIGHT of
// them in a column. Their windows overlap, so it loads the rows that they cover once. Example: max of 3 x 3,
// stride 2, HEIGHT = 2:
//
//   row in registers 0   x x x   \ output a = 0
//                    1   x x x   |
//                    2   x x x   /  \ output a = 1
//                    3   x x x      |
//                    4   x x x      /
//
// Windows of adjacent threads overlap, too. Either L1 serves the repeated loads, or the block first stages
// its input in shared memory: one contiguous part of the tensor, in 16-byte vectors across line ends.
//
//   tensor  ....|====|====|====|====|....      16-byte vectors
//                  ^ first         ^ last      what the block's windows cover
//
// The epilogue may stage outputs in shared memory (COLLECTS). Where all outputs that use a row combine the
// same terms of it, as in pooling, they are combined once.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // x[64, 113, 113]
    float *out0;        // y[64, 56, 56]
};
#define PARAMETERS const float *__restrict__ in0, float *__restrict__ out0
#define TENSORS {in0, out0}
constexpr Region STAGED = {0, 7760};   // of shared memory, in bytes
constexpr Region COLLECTED = {7760, 1824};
constexpr int SHARED_BYTES = 9584;   // of a block
using Reduction = Max;
using A = float;   // the type of accumulators
constexpr Index OUTER = 64, DOWN = 56, ALONG = 56;   // outputs
constexpr int TAPS = 1, DOWN_TAPS = 3, ALONG_TAPS = 3;   // of a window: the axes that do not slide, and those that do
constexpr int THREADS = 224;
constexpr int TO = 1, TD = 4, TA = 56;   // threads of a block
constexpr int HEIGHT = 2;   // outputs of a thread, in a column
constexpr int ROWS = 5, ROW_STEP = 2, ROW_TAP_STEP = 1;   // under the outputs; from one output to the next, from tap to tap
constexpr bool SAME_TERMS = true;   // all outputs that use a row combine the same terms
constexpr bool SAFE_PAST_END = true;   // terms past the last output do not read out of bounds

// The input that a block stages in shared memory.
constexpr bool STAGES = true;
using Staged = float;
constexpr int COPIES = 3;            // 16-byte copies of a thread
constexpr Index PLANE = 12769;     // elements from one plane to the next,
constexpr Index DOWN_STEP = 226;   // and from one row of outputs to the next
constexpr Index BEGIN = 0, END = 339;   // under the windows of a line
__device__ __forceinline__ const Staged *staged_tensor(const Tensors &t) { return t.in0; }
struct Tile {
    const Staged *at;
    Index origin;   // position in the tensor of the first element
};

// The outputs that a block stages in shared memory.
constexpr bool COLLECTS = true;
using Collected = float;
constexpr int PIECES = 1;   // 16-byte vectors that a thread writes
__device__ __forceinline__ Collected *collected_tensor(const Tensors &t) { return t.out0; }
struct Collection {
    Collected *at;
    Index origin;   // position in the tensor of the first element
};

// The input under a thread's windows. What is staged is loaded row by row, else all with the first row.
struct Windows {
    float x0[5][3];
};

__device__ __forceinline__ void load_windows(const Tensors &, const Tile &tile, Index outer, Index down, Index along,
                                             Index, int row, Windows &in)
{
    const Index p = row;
    const auto *const first0 = tile.at + (outer * 12769 + down * 226 + along * 2 - tile.origin);
    UNROLL for (Index q = 0; q < 3; ++q)
        in.x0[p][q] = load(first0, p * 113 + q);
}

constexpr bool FILTERS_FIRST = false;   // taps are loaded before the input is staged
__device__ __forceinline__ void load_filters(const Tensors &, Index, Windows &) {}

// The term of the thread's output a at one point of its window.
__device__ __forceinline__ A term(const Tensors &, Index, Index, Index, Index, int a, int r, int s, const Windows &in)
{
    return in.x0[a * 2 + r][s];
}

__device__ __forceinline__ void finish(const Tensors &, const Collection &out, Index outer, Index down, Index along,
                                       A total)
{
    const float v0 = total;
    store(out.at, outer * 3136 + down * 56 + along - out.origin, v0);
}
// </rollerc>

constexpr Index DOWN_BLOCKS = (DOWN + TD * HEIGHT - 1) / (TD * HEIGHT);   // blocks from top to bottom
constexpr Index ALONG_BLOCKS = (ALONG + TA - 1) / TA;                     // blocks along a line
constexpr bool WHOLE = DOWN % HEIGHT == 0;                                // no thread crosses the bottom

static_assert(TO * TD * TA == THREADS, "every thread has its place");
static_assert(HEIGHT >= 1 && TAPS >= 1, "something to do");
static_assert(STAGED.bytes + COLLECTED.bytes <= SHARED_BYTES, "what is staged and what is collected fit");
static_assert(!COLLECTS || TO == 1 || TD * HEIGHT >= DOWN, "a block's outputs are one piece");

// Clamps a position to its plane, or one past its end: windows cross both ends, and some lie wholly outside.
__device__ __forceinline__ Index in_plane(Index position) { return op_max<Index>(op_min<Index>(position, PLANE), 0); }

// Copies the input of the block at (outer, down) of the staged tensor.
__device__ __forceinline__ Tile stage(const Tensors &t, Index outer, Index down)
{
    SHARED_AT(0, Staged, tile, [STAGED.bytes / sizeof(Staged) + 1]);
    constexpr int PIECE = sizeof(bits128) / sizeof(Staged);   // elements of a 16-byte vector
    constexpr Index ELEMENTS = OUTER * PLANE;
    constexpr int REST = (int)(ELEMENTS % PIECE);   // of its partial last vector
    const Index first = outer * PLANE + in_plane(down * DOWN_STEP + BEGIN);
    const Index last =
        (op_min<Index>(outer + TO, OUTER) - 1) * PLANE + in_plane((down + TD * HEIGHT - 1) * DOWN_STEP + END);
    const Index origin = first & -PIECE;
    const int mine = (int)threadIdx.x * PIECE, length = (int)(last - origin);
    const Staged *from = staged_tensor(t) + origin + mine;
#pragma unroll COPIES >= 1 && COPIES <= 16 ? COPIES : 4
    for (int c = 0; c < COPIES; ++c) {
        const int i = mine + c * THREADS * PIECE;
        if (i >= length)
            break;
        if (REST == 0 || origin + i + PIECE <= ELEMENTS)
            async_copy16(&tile[i], from + c * THREADS * PIECE);
    }
    async_commit();
    if (last > ELEMENTS - REST)
        UNROLL for (int e = 0; e < REST; e += THREADS) {
            const Index at = ELEMENTS - REST + e + (int)threadIdx.x;
            if (at >= first && at < last)
                tile[at - origin] = staged_tensor(t)[at];
        }
    return {tile, origin};
}

// The position of the block's first output, and of the one after its last.
__device__ __forceinline__ Index first_output(Index outer, Index down) { return (outer * DOWN + down) * ALONG; }
__device__ __forceinline__ Index end_output(Index outer, Index down)
{
    const Index last_outer = op_min<Index>(outer + TO, OUTER);
    const Index last_down = op_min<Index>(down + TD * HEIGHT, DOWN);
    return ((last_outer - 1) * DOWN + last_down) * ALONG;
}

constexpr int OUT_PIECE = sizeof(bits128) / sizeof(Collected);

__device__ __forceinline__ Collection collection(Index outer, Index down)
{
    SHARED_AT(COLLECTED.at, Collected, outputs, [COLLECTED.bytes / sizeof(Collected) + 1]);
    return {outputs, first_output(outer, down) & -OUT_PIECE};
}

// Writes the staged outputs, in 16-byte vectors where they are whole.
__device__ __forceinline__ void write_collection(const Tensors &t, const Collection &out, Index outer, Index down)
{
    const int first = (int)(first_output(outer, down) - out.origin);
    const int end = (int)(end_output(outer, down) - out.origin);
    Collected *to = collected_tensor(t) + out.origin;
#pragma unroll PIECES >= 1 && PIECES <= 16 ? PIECES : 4
    for (int c = 0; c < PIECES; ++c) {
        const int i = ((int)threadIdx.x + c * THREADS) * OUT_PIECE;
        if (i >= end)
            break;
        if (i >= first && i + OUT_PIECE <= end) {
            Collected piece[OUT_PIECE];
            move_vector<OUT_PIECE>(piece, out.at + i);
            move_vector<OUT_PIECE>(to + i, piece);
        } else
            UNROLL for (int e = 0; e < OUT_PIECE; ++e)
                if (i + e >= first && i + e < end)
                    to[i + e] = out.at[i + e];
    }
}

// Of 76 rows and 64 taps nvcc does not write out both loops: it took 48 s, and the rows stayed in memory. It does
// of 74 and 62 (4588 rounds); of more rounds each of the fewer outputs is asked which tap uses a row.
constexpr bool BY_TAPS = DOWN_TAPS <= HEIGHT || ROWS * DOWN_TAPS <= 4096;

// Adds the terms of row p: output a uses it with tap r if a * ROW_STEP + r * ROW_TAP_STEP is p. Rows are used
// from the top down, so that few of them are live at a time.
__device__ __forceinline__ void add_row(const Tensors &t, Index outer, Index down, Index along, int tap, int p,
                                        const Windows &in, A (&acc)[HEIGHT])
{
    A row = Reduction::template identity<A>();
    if (SAME_TERMS) {
        const int a = ROW_STEP == 1 ? p : 0, r = ROW_STEP == 1 ? 0 : p;   // an output and a tap that use the row
        row = term(t, outer, down, along, tap, a, r, 0, in);
        UNROLL for (int s = 1; s < ALONG_TAPS; ++s)
            row = Reduction::combine(row, term(t, outer, down, along, tap, a, r, s, in));
    }
    UNROLL for (int i = 0; i < (BY_TAPS ? DOWN_TAPS : HEIGHT); ++i) {
        const int a = BY_TAPS ? (p - i * ROW_TAP_STEP) / ROW_STEP : HEIGHT - 1 - i;
        const int r = BY_TAPS ? i : (p - a * ROW_STEP) / ROW_TAP_STEP;
        if (a * ROW_STEP + r * ROW_TAP_STEP != p || a < 0 || a >= HEIGHT || r < 0 || r >= DOWN_TAPS ||
            (!WHOLE && !SAFE_PAST_END && down + a >= DOWN))
            continue;
        UNROLL for (int s = 0; s < (SAME_TERMS ? 1 : ALONG_TAPS); ++s) {
            const A value = SAME_TERMS ? row : term(t, outer, down, along, tap, a, r, s, in);
            acc[a] = TAPS == 1 && r + s == 0 ? value : Reduction::combine(acc[a], value);
        }
    }
}

// Computes and stores a thread's outputs.
__device__ __forceinline__ void make_outputs(const Tensors &t, const Tile &tile, const Collection &out, Index outer,
                                             Index down, Index along, Windows &in)
{
    // ---- load and compute ----
    A acc[HEIGHT];
    UNROLL for (int a = 0; a < HEIGHT; ++a)
        acc[a] = Reduction::template identity<A>();
#pragma unroll TAPS <= 64 && TAPS * HEIGHT <= 256 ? TAPS : 1   // larger bodies are not worth their code
    for (int tap = 0; tap < TAPS; ++tap) {
        // Of rows that are loaded before the first is used compilers hold all in registers.
        UNROLL for (int p = 0; p < ROWS; ++p) {
            load_windows(t, tile, outer, down, along, tap, p, in);
            add_row(t, outer, down, along, tap, p, in, acc);
        }
    }

    // ---- store ----
    UNROLL for (int a = 0; a < HEIGHT; ++a)
        if (WHOLE || down + a < DOWN)
            finish(t, out, outer, down + a, along, acc[a]);
}

extern "C" __global__ void __launch_bounds__(BOUNDS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const Index block = (Index)blockIdx.x;
    const int thread = (int)threadIdx.x;
    const Index first_outer = block / (DOWN_BLOCKS * ALONG_BLOCKS) * TO;
    const Index first_down = block / ALONG_BLOCKS % DOWN_BLOCKS * (TD * HEIGHT);
    const Index outer = first_outer + thread / (TD * TA);
    const Index down = first_down + thread / TA % TD * HEIGHT;
    const Index along = block % ALONG_BLOCKS * TA + thread % TA;

    Tile tile = {};
    Windows in;
    Collection out = {};
    if (STAGES) {
        if (FILTERS_FIRST)
            load_filters(t, op_min<Index>(outer, OUTER - 1), in);
        tile = stage(t, first_outer, first_down);
        async_wait<0>();
        block_sync();
    }
    if (COLLECTS)
        out = collection(first_outer, first_down);
    if (outer < OUTER && down < DOWN && along < ALONG)
        make_outputs(t, tile, out, outer, down, along, in);
    if (COLLECTS) {
        block_sync();
        write_collection(t, out, first_outer, first_down);
    }
}
}   // namespace KERNEL
