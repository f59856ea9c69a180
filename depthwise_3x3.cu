//rollerc: {"schema":1,"name":"depthwise_3x3","device":"h200","workspace":0,"args":[{"name":"x","role":"input","dtype":"f32","shape":[32,144,56,56]},{"name":"w","role":"input","dtype":"f32","shape":[144,3,3]},{"name":"y","role":"output","dtype":"f32","shape":[32,144,56,56]}],"launches":[{"kernel":"depthwise_3x3_k0","grid":[2304,1,1],"block":[448,1,1],"shared":50240,"cooperative":false,"args":[{"arg":0},{"arg":1},{"arg":2}]}]}
//
// depthwise_3x3, constructed by rollerc 0.1.0 for the device h200. What it computes:
//
//   input x[32, 144, 56, 56] : f32
//   input w[144, 3, 3] : f32
//   y[n:32, c:144, h:56, v:56] : f32 = sum[r:3, s:3] mul(guard(h + r - 1 < 56, v + s - 1 < 56; x[n, c, h + r - 1, v + s - 1]; 0), w[c, r, s])
//   output y[32, 144, 56, 56] : f32
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

// templates/prelude/language.cuh:17
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

// templates/prelude/types.cuh:1
// ---- element types: what stands in memory, and the compute type it is widened to ----

DEVICE float widen(float x) { return x; }
DEVICE double widen(double x) { return x; }
DEVICE int widen(signed char x) { return x; }
DEVICE int widen(unsigned char x) { return x; }
DEVICE int widen(unsigned short x) { return x; }
DEVICE int widen(int x) { return x; }
DEVICE long long widen(long long x) { return x; }

template <class T> using compute_type = decltype(widen(T()));

template <class T> struct Narrow {
    template <class V> DEVICE T from(V value) { return static_cast<T>(value); }   // integers wrap
};

template <class T, class V> DEVICE T narrow(V value) { return Narrow<T>::from(value); }

// templates/prelude/types.cuh:67
struct alignas(16) bits128 { unsigned words[4]; };   // elements that are moved as they are
DEVICE bits128 widen(bits128 x) { return x; }

// templates/prelude/memory.cuh:1
// ---- memory: elements, and vectors of N neighbours ----

// templates/prelude/memory.cuh:9
template <class T, class Index> DEVICE compute_type<T> load(const T *p, Index index)
{
    return widen(p[index]);
}

template <class T, class Index, class V> DEVICE void store(T *p, Index index, V value)
{
    p[index] = narrow<T>(value);
}

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

// templates/prelude/arithmetic.cuh:1
// ---- scalar operations (src/ir/ops.def): integers wrap, and nothing traps ----

template <class T> struct Arithmetic { using type = T; };
template <> struct Arithmetic<int> { using type = unsigned; };
template <> struct Arithmetic<long long> { using type = unsigned long long; };
template <class T> DEVICE typename Arithmetic<T>::type wrapping(T x)
{
    return static_cast<typename Arithmetic<T>::type>(x);
}

template <class T> DEVICE T op_neg(T a) { return static_cast<T>(-wrapping(a)); }
template <class T> DEVICE T op_add(T a, T b) { return static_cast<T>(wrapping(a) + wrapping(b)); }
template <class T> DEVICE T op_sub(T a, T b) { return static_cast<T>(wrapping(a) - wrapping(b)); }
template <class T> DEVICE T op_mul(T a, T b) { return static_cast<T>(wrapping(a) * wrapping(b)); }
template <class T> DEVICE T op_sq(T a) { return op_mul(a, a); }

// templates/prelude/arithmetic.cuh:70
template <class T> DEVICE T op_max(T a, T b) { return a > b || a != a ? a : b; }   // NaN if either is
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE float op_max(float a, float b)
{
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
#endif

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

// templates/prelude/reductions.cuh:1
// ---- reductions ----

// templates/prelude/reductions.cuh:16
struct Sum {
    template <class T> DEVICE T identity() { return 0; }
    template <class T> DEVICE T combine(T a, T b) { return op_add(a, b); }
};

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

#if defined(__HIP__) && !defined(__HIPCC_RTC__)
#define cudaFuncAttributeMaxDynamicSharedMemorySize hipFuncAttributeMaxDynamicSharedMemorySize
template <class Kernel>
static inline hipError_t cudaFuncSetAttribute(Kernel *kernel, hipFuncAttribute attribute, int value)
{
    return hipFuncSetAttribute(reinterpret_cast<const void *>(kernel), attribute, value);
}
#endif

#undef KERNEL
#undef ENTRY
#define KERNEL depthwise_3x3_k0_scope
#define ENTRY depthwise_3x3_k0

// Sliding windows: every output combines the terms under its window; an epilogue makes the final value of the total.
//
// A block makes TO x TD * HEIGHT x TA outputs: outer positions, down, along. A thread makes HEIGHT of them, one below the
// other. Their windows overlap, so it reads what they cover once and keeps it; max of 3 x 3, stride 2, HEIGHT = 2:
//
//   kept row 0   x x x   \ output a = 0
//            1   x x x   |
//            2   x x x   /  \ output a = 1
//            3   x x x      |
//            4   x x x      /
//
// Windows of neighbouring threads overlap as well: either the first touch brings an element into L1 and the others find it
// there, or the block first copies all it reads into shared memory: one piece of the tensor, 16 bytes at a time, however
// long its lines are.
//
//   tensor  ....|====|====|====|====|....      pieces of 16 bytes
//                  ^ first         ^ last      what the block's windows cover
//
// Its outputs may go the same way back. Where all outputs that meet a row combine the same terms of it, as in pooling, they
// are combined once.

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>   templates/window.cu (staged) for depthwise_3x3 on h200, candidate 1 of 10
//
//   level            outer        down       along         tap    tap down   tap along
//   global            4608          56          56           1           3           3   the problem
//   shared               2          56          56           1           3           3   2304 blocks, 5.82 waves, 50240 bytes
//   register             1          14           1           1           3           3   448 threads, about 42 registers
//
//   predicted 35.61 us, bound by dram (compute 18.86, shared 11.03, L2 15.17, DRAM 26.06)
//
using Index = int;
struct Tensors {
    const float *in0;   // x[32, 144, 56, 56]
    const float *in1;   // w[144, 3, 3]
    float *out0;   // y[32, 144, 56, 56]
};
#define PARAMETERS const float *__restrict__ in0, const float *__restrict__ in1, float *__restrict__ out0
#define TENSORS {in0, in1, out0}
constexpr int SHARED_BYTES = 50240;   // of a block
using Reduction = Sum;
using A = float;   // what totals are accumulated in
constexpr Index OUTER = 4608, DOWN = 56, ALONG = 56;   // outputs
constexpr int TAPS = 1, DOWN_TAPS = 3, ALONG_TAPS = 3;   // of a window: one by one, and those that slide
constexpr int THREADS = 448;
constexpr int TO = 2, TD = 4, TA = 56;   // threads of a block
constexpr int HEIGHT = 14;   // outputs of a thread, one below the other
constexpr int ROWS = 16, ROW_STEP = 1, ROW_TAP_STEP = 1;   // under the outputs; from one output to the next, from tap to tap
constexpr bool SAME_TERMS = false;   // of a row for all outputs that meet it
constexpr bool SAFE_PAST_END = true;   // terms past the last output read nothing outside of tensors

// What a block stages in shared memory.
constexpr bool STAGES = true;
using Staged = float;
constexpr int STAGED_BYTES = 25120;
constexpr int COPIES = 4;   // of 16 bytes each, of a thread
constexpr Index PLANE = 3136, DOWN_STEP = 56;   // elements from one output's to the next one's
constexpr Index BEGIN = -57, END = 113;   // of what is under the windows of a line
__device__ __forceinline__ const float *staged_tensor(const Tensors &t)
{
    return t.in0;
}
struct Tile {
    const Staged *at;
    Index origin;   // position in the tensor of what stands first
};

// Outputs that a block collects in shared memory.
constexpr bool COLLECTS = true;
using Collected = float;
constexpr int COLLECTED_BYTES = 25120;
__device__ __forceinline__ Collected *collected_tensor(const Tensors &t)
{
    return t.out0;
}
struct Collection {
    Collected *at;
    Index origin;   // position in the tensor of what stands first
};

// What the windows of a thread's outputs cover.
struct Windows {
    float x0[16][3];
};

__device__ __forceinline__ void load_windows(const Tensors &t, const Tile &tile, Index outer, Index down, Index along, Index tap, Windows &in)
{
    (void)t, (void)tile, (void)outer, (void)down, (void)along, (void)tap, (void)in;
    [[maybe_unused]] const Index i0 = outer / 144, i1 = outer % 144;
    UNROLL for (int p = 0; p < 16; ++p)
        UNROLL for (int q = 0; q < 3; ++q)
            in.x0[p][q] = (p >= 1 || (down + p) - 1 >= 0) && (p <= 14 || (down + p) - 1 < 56) && (q >= 1 || (along + q) - 1 >= 0) && (q <= 1 || (along + q) - 1 < 56) ? load(tile.at, i0 * 451584 + i1 * 3136 + (down + p) * 56 + (along + q) - 57 - tile.origin) : 0.0f;
}

// Of the thread's output a, at one point of its window.
__device__ __forceinline__ A term(const Tensors &t, Index outer, Index down, Index along, Index tap, int a, int r, int s, const Windows &in)
{
    (void)t, (void)outer, (void)down, (void)along, (void)tap, (void)a, (void)r, (void)s, (void)in;
    [[maybe_unused]] const Index i0 = outer / 144, i1 = outer % 144;
    return op_mul(in.x0[a + r][s], load(t.in1, i1 * 9 + r * 3 + s));
}

__device__ __forceinline__ void finish(const Tensors &t, const Collection &out, Index outer, Index down, Index along, A total)
{
    (void)t, (void)out, (void)outer, (void)down, (void)along;
    [[maybe_unused]] const Index i0 = outer / 144, i1 = outer % 144;
    const float v0 = total;
    store(out.at, i0 * 451584 + i1 * 3136 + down * 56 + along - out.origin, v0);
}
// </rollerc>
// templates/window.cu:95

constexpr Index DOWN_BLOCKS = (DOWN + TD * HEIGHT - 1) / (TD * HEIGHT);   // blocks from top to bottom
constexpr Index ALONG_BLOCKS = (ALONG + TA - 1) / TA;                     // blocks along a line
constexpr bool WHOLE = DOWN % HEIGHT == 0;                                // no thread's outputs reach past the bottom

static_assert(TO * TD * TA == THREADS, "every thread has its place");
static_assert(HEIGHT >= 1 && TAPS >= 1, "something to do");

static_assert(STAGED_BYTES + COLLECTED_BYTES <= SHARED_BYTES, "what is staged and what is collected fit");
static_assert(!COLLECTS || TO == 1 || TD * HEIGHT >= DOWN, "a block's outputs are one piece");

// The nearest position in a plane, or behind it: windows reach past both ends, and some lie outside as a whole.
__device__ __forceinline__ Index in_plane(Index position) { return op_max<Index>(op_min<Index>(position, PLANE), 0); }

// Copies what the block at (outer, down) reads of the staged tensor.
__device__ __forceinline__ Tile stage(const Tensors &t, Index outer, Index down)
{
    SHARED(0, Staged, tile, [STAGED_BYTES / sizeof(Staged) + 1]);
    constexpr int PIECE = sizeof(bits128) / sizeof(Staged);   // elements of one copy
    constexpr Index ELEMENTS = OUTER * PLANE;
    constexpr int REST = (int)(ELEMENTS % PIECE);   // of its end, where they are no whole piece
    const Index first = outer * PLANE + in_plane(down * DOWN_STEP + BEGIN);
    const Index last =
        (op_min<Index>(outer + TO, OUTER) - 1) * PLANE + in_plane((down + TD * HEIGHT - 1) * DOWN_STEP + END);
    const Index origin = first / PIECE * PIECE;
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
    for (int e = (int)threadIdx.x; e < REST; e += THREADS) {
        const Index at = ELEMENTS - REST + e;
        if (at >= first && at < last)
            tile[at - origin] = staged_tensor(t)[at];
    }
    async_wait<0>();
    return {tile, origin};
}

// Position of the block's first output, and of the one behind its last.
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
    SHARED(STAGED_BYTES, Collected, outputs, [COLLECTED_BYTES / sizeof(Collected) + 1]);
    return {outputs, first_output(outer, down) / OUT_PIECE * OUT_PIECE};
}

// Writes what was collected, in pieces of 16 bytes where they are whole.
__device__ __forceinline__ void write_collection(const Tensors &t, const Collection &out, Index outer, Index down)
{
    const int first = (int)(first_output(outer, down) - out.origin);
    const int end = (int)(end_output(outer, down) - out.origin);
    Collected *to = collected_tensor(t) + out.origin;
    for (int i = (int)threadIdx.x * OUT_PIECE; i < end; i += THREADS * OUT_PIECE)
        if (i >= first && i + OUT_PIECE <= end) {
            Collected piece[OUT_PIECE];
            move_vector<OUT_PIECE>(piece, out.at + i);
            move_vector<OUT_PIECE>(to + i, piece);
        } else
            UNROLL for (int e = 0; e < OUT_PIECE; ++e)
                if (i + e >= first && i + e < end)
                    to[i + e] = out.at[i + e];
}

// Adds the terms that lie in row p of what the windows cover: output a meets it with tap r where a * ROW_STEP + r *
// ROW_TAP_STEP is p. Rows from the top down, so that few of them are needed at a time.
__device__ __forceinline__ void add_row(const Tensors &t, Index outer, Index down, Index along, int tap, int p,
                                        const Windows &in, A (&acc)[HEIGHT])
{
    A row = Reduction::template identity<A>();
    if (SAME_TERMS) {
        const int a = ROW_STEP == 1 ? p : 0, r = ROW_STEP == 1 ? 0 : p;   // an output and a tap that meet the row
        row = term(t, outer, down, along, tap, a, r, 0, in);
        UNROLL for (int s = 1; s < ALONG_TAPS; ++s)
            row = Reduction::combine(row, term(t, outer, down, along, tap, a, r, s, in));
    }
    UNROLL for (int r = 0; r < DOWN_TAPS; ++r) {
        const int above = p - r * ROW_TAP_STEP, a = above / ROW_STEP;
        if (above < 0 || above % ROW_STEP != 0 || a >= HEIGHT || (!WHOLE && !SAFE_PAST_END && down + a >= DOWN))
            continue;
        UNROLL for (int s = 0; s < (SAME_TERMS ? 1 : ALONG_TAPS); ++s) {
            const A value = SAME_TERMS ? row : term(t, outer, down, along, tap, a, r, s, in);
            acc[a] = TAPS == 1 && r + s == 0 ? value : Reduction::combine(acc[a], value);
        }
    }
}

// Makes and stores a thread's outputs.
__device__ __forceinline__ void make_outputs(const Tensors &t, const Tile &tile, const Collection &out, Index outer,
                                             Index down, Index along)
{
    // ---- load and compute ----
    A acc[HEIGHT];
    UNROLL for (int a = 0; a < HEIGHT; ++a)
        acc[a] = Reduction::template identity<A>();
#pragma unroll TAPS <= 64 && TAPS * HEIGHT <= 256 ? TAPS : 1   // else code grows beyond what pays
    for (int tap = 0; tap < TAPS; ++tap) {
        Windows in;
        load_windows(t, tile, outer, down, along, tap, in);
        UNROLL for (int p = 0; p < ROWS; ++p)
            add_row(t, outer, down, along, tap, p, in, acc);
    }

    // ---- store ----
    UNROLL for (int a = 0; a < HEIGHT; ++a)
        if (WHOLE || down + a < DOWN)
            finish(t, out, outer, down + a, along, acc[a]);
}

extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS)
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
    Collection out = {};
    if (STAGES) {
        tile = stage(t, first_outer, first_down);
        block_sync();
    }
    if (COLLECTS)
        out = collection(first_outer, first_down);
    if (outer < OUTER && down < DOWN && along < ALONG)
        make_outputs(t, tile, out, outer, down, along);
    if (COLLECTS) {
        block_sync();
        write_collection(t, out, first_outer, first_down);
    }
}
}   // namespace KERNEL
#undef PARAMETERS
#undef TENSORS

#ifndef __CUDACC_RTC__
extern "C" size_t depthwise_3x3_workspace(void)
{
    return 0;
}

// in0: x[32, 144, 56, 56], f32
// in1: w[144, 3, 3], f32
// out0: y[32, 144, 56, 56], f32
extern "C" int depthwise_3x3_launch(const void *in0, const void *in1, void *out0, void *workspace, void *stream)
{
    if (((size_t)in0 | (size_t)in1 | (size_t)out0) % 16 != 0)
        return cudaErrorInvalidValue;
    (void)workspace;
    cudaError_t status = cudaSuccess;
    {   // depthwise_3x3_k0
        const void *a0 = in0;
        const void *a1 = in1;
        const void *a2 = out0;
        void *args[] = {&a0, &a1, &a2};
        status = cudaFuncSetAttribute(depthwise_3x3_k0_scope::depthwise_3x3_k0, cudaFuncAttributeMaxDynamicSharedMemorySize, 50240);
        if (status != cudaSuccess)
            return (int)status;
        status = cudaLaunchKernel(depthwise_3x3_k0_scope::depthwise_3x3_k0, dim3(2304, 1, 1), dim3(448, 1, 1), args,
                                  50240, (cudaStream_t)stream);
        if (status != cudaSuccess)
            return (int)status;
    }
    return (int)status;
}
#endif
