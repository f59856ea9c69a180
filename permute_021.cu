//rollerc: {"schema":1,"name":"permute_021","device":"h200","workspace":0,"args":[{"name":"x","role":"input","dtype":"f16","shape":[64,1024,1024]},{"name":"y","role":"output","dtype":"f16","shape":[64,1024,1024]}],"launches":[{"kernel":"permute_021_k0","grid":[4096,1,1],"block":[256,1,1],"shared":33024,"cooperative":false,"args":[{"arg":0},{"arg":1}]}]}
//
// permute_021, constructed by rollerc 0.1.0 for the device h200. What it computes:
//
//   input x[64, 1024, 1024] : f16
//   y[b:64, c:1024, r:1024] : f16 = x[b, r, c]
//   output y[64, 1024, 1024] : f16
//
// This file is yours: it carries no licence obligations of rollerc.

// templates/prelude.cuh:16
#if defined(__HIP__) && !defined(__HIPCC_RTC__)
#include <hip/hip_runtime.h>
#endif

// templates/prelude/language.cuh:1
// ---- words of the language ----

#define DEVICE [[maybe_unused]] static __device__ __forceinline__

#ifdef ROLLERC_INTERP
#define UNROLL
#else
#define UNROLL _Pragma("unroll")
#endif

#ifdef ROLLERC_INTERP
#define UNROLL_4
#else
#define UNROLL_4 _Pragma("unroll 4")
#endif

// SHARED(0, float, As, [BK][BM + PAD]): the array `As` at byte 0 of the dynamic shared memory.
#ifndef ROLLERC_INTERP
extern __shared__ __align__(16) unsigned char rollerc_shared[];
#endif
#define SHARED(offset, Type, name, ...) \
    Type(&name) __VA_ARGS__ = *reinterpret_cast<Type(*) __VA_ARGS__>(rollerc_shared + (offset))

// templates/prelude.cuh:22
namespace rollerc {

// templates/prelude/threads.cuh:1
// ---- threads; the interpreter's stand-in has them all ----

// templates/prelude/threads.cuh:18
#ifndef ROLLERC_INTERP
DEVICE void block_sync() { __syncthreads(); }
#endif

// templates/prelude/threads.cuh:83
// for (int i : Steps<END, STEP>(first)): first, first + STEP, … as often as the STEP goes into END, rounded up. All threads
// go through such a loop equally often, whatever their first.
template <int END, int STEP = 1> struct Steps {
    struct At {
        int offset, first;

        __device__ __forceinline__ int operator*() const { return first + offset; }
        __device__ __forceinline__ bool operator!=(const At &end) const { return offset < end.offset; }
        __device__ __forceinline__ void operator++() { offset += STEP; }
    };
    int first;

    __device__ __forceinline__ explicit Steps(int first_ = 0) : first(first_) {}
    __device__ __forceinline__ At begin() const { return {0, first}; }
    __device__ __forceinline__ At end() const { return {END, first}; }
};

// templates/prelude/half.cuh:1
// ---- reals of 16 bits ----

struct f16 { unsigned short bits; };   // 1 sign, 5 exponent, 10 fraction

// templates/prelude/memory.cuh:1
// ---- memory: elements, and vectors of N neighbours ----

// 0 <= index < extent: what `pad` asks before it reads.
template <class Index> DEVICE bool inside(Index index, long long extent)
{
    return index >= 0 && index < static_cast<Index>(extent);
}

// templates/prelude/memory.cuh:19
template <class T, int COUNT> struct alignas(COUNT * sizeof(T)) Vector { T at[COUNT]; };

// templates/prelude/memory.cuh:126
// N elements as they are, in one access. One side is an array of registers, the other is aligned to N of
// them.
template <int N, class T> DEVICE void move_vector(T *to, const T (&from)[N])
{
    Vector<T, N> vector;
    UNROLL for (int i = 0; i < N; i++)
        vector.at[i] = from[i];
    *reinterpret_cast<Vector<T, N> *>(to) = vector;
}
template <int N, class T> DEVICE void move_vector(T (&to)[N], const T *from)
{
    const Vector<T, N> vector = *reinterpret_cast<const Vector<T, N> *>(from);
    UNROLL for (int i = 0; i < N; i++)
        to[i] = vector.at[i];
}

// templates/prelude/words.cuh:1
// ---- words: elements of less than 4 bytes that are moved together ----

// Bytes of b and a, numbered 7…4 3…0; hexadecimal digit i of the selector says which becomes byte i.
DEVICE unsigned byte_permute(unsigned a, unsigned b, unsigned selector)
{
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
    return __byte_perm(a, b, selector);
#else
    const unsigned long long bytes = static_cast<unsigned long long>(b) << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; i++)
        result |= static_cast<unsigned>(bytes >> (selector >> 4 * i & 7u) * 8 & 0xffu) << 8 * i;
    return result;
#endif
}

// templates/prelude/words.cuh:141
// COLUMNS x ROWS elements in registers, read column by column and written row by row.
template <class T, int COLUMNS, int ROWS, bool = sizeof(T) == 1 && COLUMNS == 4 && ROWS % 4 == 0>
struct Piece {
    T at[COLUMNS][ROWS];

    __device__ __forceinline__ void read(int column, const T *from) { move_vector<ROWS>(at[column], from); }
    __device__ __forceinline__ void write(int row, T *to) const
    {
        T elements[COLUMNS];
        UNROLL for (int i = 0; i < COLUMNS; i++)
            elements[i] = at[i][row];
        move_vector<COLUMNS>(to, elements);
    }
};

// Bytes stay in words: 4 x 4 of them are turned by 8 permutations.
template <class T, int ROWS> struct Piece<T, 4, ROWS, true> {
    unsigned at[4][ROWS / 4];

    __device__ __forceinline__ void read(int column, const T *from)
    {
        move_vector<ROWS / 4>(at[column], reinterpret_cast<const unsigned *>(from));
    }
    __device__ __forceinline__ void write(int row, T *to) const
    {
        const unsigned pair = row % 4 < 2 ? 0x5140u : 0x7362u, both = row % 2 ? 0x7632u : 0x5410u;
        const unsigned low = byte_permute(at[0][row / 4], at[1][row / 4], pair);
        const unsigned high = byte_permute(at[2][row / 4], at[3][row / 4], pair);
        *reinterpret_cast<unsigned *>(to) = byte_permute(low, high, both);
    }
};

// templates/prelude/arithmetic.cuh:1
// ---- scalar operations (src/ir/ops.def): integers wrap, and nothing traps ----

// templates/prelude/arithmetic.cuh:80
template <class T> DEVICE T op_min(T a, T b) { return a < b || a != a ? a : b; }   // NaN if either is
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE float op_min(float a, float b)
{
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
#endif

// templates/prelude/async.cuh:1
// ---- copies that may be under way while the threads go on ----

// Copies of 16 bytes may be under way until async_wait<N>(): all groups but the last N have then landed.
#if defined(ROLLERC_INTERP)
template <int N> DEVICE void async_wait() { async_wait_for(N); }   // the rest is in the stand-in
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE void async_copy16(void *shared, const void *global)
{
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(target), "l"(global) : "memory");
}
// The same with read_global's priority in L2.
DEVICE void async_read16(void *shared, const void *global)
{
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("{ .reg .b64 policy;\n"
                 "  createpolicy.fractional.L2::evict_last.b64 policy;\n"
                 "  cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, policy; }"
                 :
                 : "r"(target), "l"(global)
                 : "memory");
}
DEVICE void async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#else
DEVICE void async_copy16(void *shared, const void *global)
{
    *static_cast<Vector<unsigned, 4> *>(shared) = *static_cast<const Vector<unsigned, 4> *>(global);
}
DEVICE void async_commit() {}
template <int N> DEVICE void async_wait() {}
#endif

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 800
DEVICE void async_read16(void *shared, const void *global) { async_copy16(shared, global); }
#endif

// templates/prelude.cuh:36
}   // namespace rollerc

// templates/prelude/launch.cuh:1
// ---- what the launcher needs ----

#if defined(__HIP__) && !defined(__HIPCC_RTC__)
#define cudaError_t hipError_t
#define cudaSuccess hipSuccess
#define cudaErrorInvalidValue hipErrorInvalidValue
#define cudaStream_t hipStream_t
#endif

#if defined(__HIP__) && !defined(__HIPCC_RTC__)
template <class Kernel>
static inline hipError_t cudaLaunchKernel(Kernel *kernel, dim3 grid, dim3 block, void **args,
                                          size_t shared, hipStream_t stream)
{
    const void *function = reinterpret_cast<const void *>(kernel);
    return hipLaunchKernel(function, grid, block, args, shared, stream);
}
#endif

#undef KERNEL
#undef ENTRY
#define KERNEL permute_021_k0_scope
#define ENTRY permute_021_k0

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

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>   templates/permute.cu (256x256) for permute_021 on h200, candidate 1 of 10
//
//   level            outer        rows     columns
//   global              64        1024        1024   the problem
//   shared               1         128         128   4096 blocks, 7.76 waves, 33024 bytes
//   register             1         128         128   256 threads, about 64 registers
//
//   predicted 70.12 us, bound by dram (compute 6.37, shared 8.44, L2 34.82, DRAM 59.84)
//
using Index = int;
struct Tensors {
    const f16 *in0;   // x[64, 1024, 1024]
    f16 *out0;   // y[64, 1024, 1024]
};
#define PARAMETERS const f16 *__restrict__ in0, f16 *__restrict__ out0
#define TENSORS {in0, out0}
constexpr int SHARED_BYTES = 33024;   // of a block
using Element = f16;   // of the input that is permuted
constexpr Index OUTER = 64, R = 1024, C = 1024;   // problem
constexpr int TO = 1, TR = 128, TC = 128;   // rTile, shared memory
constexpr int VR = 8, VC = 8, PC = 8;   // points of an access along r, along c; reads of a piece
constexpr int VW = 8;   // points of a write; more than VC: from row to row
constexpr bool COPIED = false, RAGGED = false;   // lines of the input, rows of the output begin anywhere
constexpr int TURN = 1;   // rows that neighbouring threads gather
constexpr int SHARE = 1;   // points that blocks' shares of a row are aligned to
constexpr int PAD = 8;   // bank padding of every VR rows; of every copied line, elements
constexpr int WIDTH = 128;   // columns in shared memory: more than TC where shares begin later
constexpr int OUTER_PITCH = 16512;   // elements of shared memory for an outer position
constexpr int ALONG_R = 16, ALONG_C = 16;   // threads beside each other along r, along c
constexpr int VECTORS_R = 0;   // that hold a copied line, wherever it begins
constexpr int THREADS = 256;

__device__ __forceinline__ const Element *input(const Tensors &t) { return t.in0; }
constexpr Index ELEMENTS = 67108864;   // of the input

// Where a point is in the input.
__device__ __forceinline__ Index source(Index outer, Index r, Index c)
{
    const Index i0 = outer;
    const Index i2 = c;
    return i0 * 1048576 + i2 * 1024 + r;
}

// Where it is in the output.
__device__ __forceinline__ Index target(Index outer, Index r, Index c)
{
    const Index i0 = outer;
    const Index i1 = r;
    return i0 * 1048576 + i1 * 1024 + c;
}

__device__ __forceinline__ void *output(const Tensors &t) { return t.out0; }

// Makes and stores VW points.
__device__ __forceinline__ void finish(const Tensors &t, Index outer, Index r, Index c, const Element (&x)[VW])
{
    move_vector<VW>(t.out0 + target(outer, r, c), x);
}
// </rollerc>
// templates/permute.cu:77

constexpr Index TILES_R = (R + TR - 1) / TR, TILES_C = (C + TC - 1) / TC;
constexpr bool ALONE = TO == 1;           // an outer position in a tile
constexpr bool JOINED = PAD == 0;         // copied lines follow each other
constexpr int GROUP = VR * WIDTH + PAD;   // from VR rows of the shared tile to the next
constexpr int PITCH = TR + PAD;           // from a copied line to the next

static_assert((COPIED || TR % VR == 0) && TC % VC == 0, "tiles are whole vectors");
static_assert((COPIED || R % VR == 0) && (RAGGED || C % VC == 0), "vectors are inside or outside");
static_assert(COPIED || (WIDTH % PC == 0 && PAD % VC == 0 && PAD % PC == 0), "shared memory keeps vectors aligned");
static_assert((COPIED ? WIDTH * PITCH : TR / VR * GROUP) <= OUTER_PITCH, "an outer position has room for its points");
static_assert(TO * OUTER_PITCH * (int)sizeof(Element) <= SHARED_BYTES, "the tile has room in shared memory");
static_assert(COPIED || ALONG_R == TR / VR, "a line is read at once");
static_assert(COPIED || RAGGED || ALONG_C == TC / VC, "a line is written at once");
static_assert(!COPIED || PAD >= 2 * VR - 2 || (JOINED && TR == R), "copied vectors do not overlap");
static_assert(!COPIED || VECTORS_R * VR >= (JOINED ? WIDTH * TR : TR) + VR - 1, "all of a line is copied");
static_assert(!RAGGED || (SHARE % VC == 0 && THREADS % SHARE == 0), "a share begins with a whole vector");
static_assert(VW == VC || (TC == C && VR * TC % VW == 0 && PAD % VW == 0), "runs are whole vectors");

// Lines of a tile's outer positions are counted on, N of each: which it is of its outer position, and of which.
template <int N> __device__ __forceinline__ int line_of(int line) { return ALONE ? line : line % N; }
template <int N> __device__ __forceinline__ int outer_of(int line) { return ALONE ? 0 : line / N; }

// Of `most` points from `first` on, those inside.
__device__ __forceinline__ int part(Index extent, Index first, int most)
{
    return (int)op_min(extent - first, (Index)most);
}

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
    constexpr int LINES = THREADS / ALONG_R;                  // at once
    constexpr int PIECES = WIDTH / PC, ALL = TO * PIECES;     // of a line along r, side by side
    constexpr int READS = (ALL + LINES - 1) / LINES;
    static_assert(READS * LINES >= ALL && (READS - 1) * LINES < ALL, "each piece is read, and none in vain");
    Piece<Element, PC, VR> piece[READS];
    const int r = (int)threadIdx.x % ALONG_R * VR, first = (int)threadIdx.x / ALONG_R;
    const bool busy = first < LINES && r0 + r < R;
    const auto reads = [&](int line) { return busy && line < ALL; };
    UNROLL for (int i : Steps<READS>()) {
        const int line = first + i * LINES;
        const int c = line_of<PIECES>(line) * PC, outer = outer_of<PIECES>(line);
        const bool inside = reads(line) && outer0 + outer < OUTER;
        UNROLL for (int e : Steps<PC>())
            if (inside && c0 + c + e < C)
                piece[i].read(e, input(t) + source(outer0 + outer, r0 + r, c0 + c + e));
    }
    UNROLL for (int i : Steps<READS>()) {
        const int line = first + i * LINES;
        const int c = line_of<PIECES>(line) * PC, outer = outer_of<PIECES>(line);
        if (reads(line))
            UNROLL for (int j = 0; j < VR; ++j)
                piece[i].write(j, &tile[place(outer, r + j, c)]);
    }
}

// Copies lines as they are, neighbouring threads along r; JOINED ones of an outer position are one line.
__device__ __forceinline__ void load_copied(const Tensors &t, Element *tile, Index outer0, Index r0, Index c0)
{
    constexpr int LINES = JOINED ? 1 : WIDTH;
    const int columns = part(C, c0, WIDTH), length = JOINED ? columns * TR : part(R, r0, TR);
    UNROLL for (int each : Steps<TO * LINES, THREADS / ALONG_R>((int)(threadIdx.x / ALONG_R))) {
        const int line = line_of<LINES>(each), outer = outer_of<LINES>(each);
        const Index from = source(outer0 + outer, r0, c0 + line);
        const int before = (int)((unsigned)from % VR);
        Element *to = &tile[place_from(outer0, r0, c0, outer, 0, line)];
        UNROLL for (int vector : Steps<VECTORS_R, ALONG_R>((int)(threadIdx.x % ALONG_R))) {
            const int at = vector * VR - before;
            if (each < TO * LINES && outer0 + outer < OUTER && (JOINED || line < columns) && at < length) {
                if (ELEMENTS % VR == 0 || from + at + VR <= ELEMENTS)
                    async_copy16(to + at, input(t) + from + at);
                else
#pragma unroll 1
                    for (Index i = from + at; i < ELEMENTS; ++i)
                        to[i - from] = input(t)[i];
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
    constexpr int LINES = THREADS / ALONG_C;
    const int c = (int)threadIdx.x % ALONG_C * VC, first = (int)threadIdx.x / ALONG_C;
    const bool writes = first < LINES && c0 + c < C;
    UNROLL for (int line : Steps<TO * TR, LINES>(first)) {
        const int r = line_of<TR>(line), outer = outer_of<TR>(line);
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
    const int points_inside = part(OUTER, outer0, TO) * part(R, r0, TR) * TC;
    UNROLL for (int run : Steps<TO * TR * TC, THREADS * VW>((int)threadIdx.x * VW)) {
        if (run >= points_inside)
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
    static_assert(ROWS == TR || (TR == R && ROWS < TR + TURN), "what is behind a tile's rows is behind all rows");
    constexpr int LINES = THREADS / (ALONG_C * TURN) * TURN;
    const int first = (int)(threadIdx.x / TURN % ALONG_C);
    const int line = (int)(threadIdx.x / (TURN * ALONG_C) * TURN + threadIdx.x % TURN);
    const int columns = part(C, c0, WIDTH);
    UNROLL_4 for (int row : Steps<TO * ROWS, LINES>(line)) {
        const int r = line_of<ROWS>(row), outer = outer_of<ROWS>(row);
        const bool inside = row < TO * ROWS && r0 + r < R && outer0 + outer < OUTER;
        const int begin = to_share(target(outer0 + outer, r0 + r, c0));
        UNROLL for (int vector : Steps<VECTORS, ALONG_C>(first)) {
            const int c = begin + vector * VC;
            if (line < LINES && inside && vector < VECTORS && c + VC <= columns) {
                Element points[VW];
                UNROLL for (int e : Steps<VW>())
                    points[e] = tile[place_from(outer0, r0, c0, outer, r, c + e)];
                finish(t, outer0 + outer, r0 + r, c0 + c, points);
            }
        }
    }
}

// Stores what is left at the ends of rows: before the first block's share, and behind the last whole vector.
__device__ __forceinline__ void store_ends(const Tensors &t, const Element *tile, Index outer0, Index r0, Index c0)
{
    const int columns = part(C, c0, WIDTH), e = (int)(threadIdx.x % SHARE);
    UNROLL_4 for (int row : Steps<TO * TR, THREADS / SHARE>((int)(threadIdx.x / SHARE))) {
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
    if (RAGGED && (c0 == 0 || part(C, c0, WIDTH) != WIDTH))
        store_ends(t, tile, outer0, r0, c0);
}
}   // namespace KERNEL
#undef PARAMETERS
#undef TENSORS

#ifndef __CUDACC_RTC__
extern "C" size_t permute_021_workspace(void)
{
    return 0;
}

// in0: x[64, 1024, 1024], f16
// out0: y[64, 1024, 1024], f16
extern "C" int permute_021_launch(const void *in0, void *out0, void *workspace, void *stream)
{
    if (((size_t)in0 | (size_t)out0) % 16 != 0)
        return cudaErrorInvalidValue;
    (void)workspace;
    cudaError_t status = cudaSuccess;
    {   // permute_021_k0
        const void *a0 = in0;
        const void *a1 = out0;
        void *args[] = {&a0, &a1};
        status = cudaLaunchKernel(permute_021_k0_scope::permute_021_k0, dim3(4096, 1, 1), dim3(256, 1, 1), args,
                                  33024, (cudaStream_t)stream);
        if (status != cudaSuccess)
            return (int)status;
    }
    return (int)status;
}
#endif
