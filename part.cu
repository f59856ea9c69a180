//rollerc: {"schema":1,"name":"part","device":"h200","workspace":0,"args":[{"name":"A","role":"input","dtype":"f16","shape":[4096,4160]},{"name":"B","role":"input","dtype":"f16","shape":[4096,4096]},{"name":"C","role":"output","dtype":"f16","shape":[4096,4096]}],"launches":[{"kernel":"part_k0","grid":[512,1,1],"block":[256,1,1],"shared":197632,"cooperative":false,"early":true,"after":[],"args":[{"arg":0},{"arg":1},{"arg":2}]}]}
//
// part, constructed by rollerc 0.2.0 for the device h200. What it computes:
//
//   input A[4096, 4160] : f16
//   input B[4096, 4096] : f16
//   C[m, n] = sum[k:4096](A[m, k + 64] * B[n, k])
//   output C : f16
//
// This file is yours: it carries no licence obligations of rollerc.

namespace part_k0_scope {
// <rollerc: parameters>   templates/wgmma.cu (four stages) for part on h200, candidate 1 of 10
//
//   level            batch           m           n           k
//   global               1        4096        4096        4096   the problem
//   shared               1         128         256          64   512 blocks, 3.88 waves, 197632 bytes
//   register             1          64         256          64   256 threads, about 201 registers
//
//   predicted 260.36 us, bound by l2 (compute 187.30, shared 135.04, L2 213.22, DRAM 28.39)
//
using Index = int;
using Value = float;   // of products and sums
constexpr Index M = 4096, N = 4096, K = 4096;
constexpr int BM = 128, BN = 256, BK = 64;   // rTile, shared memory
constexpr int WM = 64, WN = 256;   // rTile, registers of a warp group
constexpr int STAGES = 4;   // of the pipeline
constexpr Index CHAIN = 128;   // promotion interval of the accumulators, in steps
constexpr int QN = 8;   // columns of C in one aligned access
constexpr Index PANEL = 16;   // rasterisation: tiles along m in a panel
// </rollerc>
}   // namespace part_k0_scope

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "part was made for the device h200 and needs sm_90 or later: compile it with -arch=sm_90a"
#endif

// The parts of templates/prelude/ that the file uses:
// <rollerc: intrinsics>
extern __shared__ __align__(16) unsigned char rollerc_shared[];
// </rollerc>

#define DEVICE [[maybe_unused]] static __device__ __forceinline__

// SHARED(TILE, float, As, [BK][BM + PAD]): the array `As` in the region TILE of shared memory, where it must fit.
#define SHARED_AT(offset, Type, name, ...) \
    [[maybe_unused]] Type(&name) __VA_ARGS__ = *reinterpret_cast<Type(*) __VA_ARGS__>(rollerc_shared + (offset))
#define SHARED(REGION, Type, name, ...) SHARED_AT(REGION.at, Type, name, __VA_ARGS__); \
    static_assert((int)sizeof(Type __VA_ARGS__) <= REGION.bytes, #name " has room in " #REGION)

namespace part_prelude {
// <rollerc: intrinsics>
#define UNROLL _Pragma("unroll")
#define UNROLL_4 _Pragma("unroll 4")
constexpr int WARP = 32;
DEVICE void block_sync() { __syncthreads(); }
DEVICE void warp_sync() { __syncwarp(0xffffffffu); }

template <class T> DEVICE T warp_shuffle(T value, int lane, int width = WARP)
{
    return __shfl_sync(0xffffffffu, value, lane, width);
}

struct f16 { unsigned short bits; };   // 1 sign, 5 exponent, 10 fraction

DEVICE float widen(f16 x)
{
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
}

DEVICE f16 f16_of(float value)   // to the nearest, ties to even
{
    f16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
    return half;
}

// Waits until all earlier launches in the stream have completed. Their results are visible afterwards.
DEVICE void wait_for_earlier() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Programmatic dependent launch: the next launch may begin once every block of this one has called let_next_begin()
// or has ended. A block must not read what earlier launches wrote before wait_for_earlier() has returned:
//
//   launch 0   wait_for_earlier();  let_next_begin();  …  write a            // all earlier work in the stream has completed
//   launch 1   wait_for_earlier();  let_next_begin();  …  read a, write b    // launch 0 has completed
//   launch 2   wait_for_earlier();                     …  read a and b       // launches 0 and 1 have completed
//
// A launch that depends on no earlier launch of its program waits at its end instead of its beginning, since later
// launches rely on its wait. It may use buffers of earlier calls, which had completed before launch 0 let it begin.
// Without the launch attribute (begins_early() of the launcher) the wait returns at once.
DEVICE void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;"); }

// Starts an asynchronous copy of 16 bytes. async_wait<N>() waits until all but the last N committed groups have
// completed. There is no L2 cache hint: ptxas 13.0 may encode a copy with one as an illegal instruction, where it
// finds a part of the shared address that is uniform.
DEVICE void async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// Copies 16 bytes; writes zeros unless the source exists.
DEVICE void async_copy16_or_zero(bool exists, void *shared, const void *global)
{
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 : : "r"(target), "l"(global), "r"(exists ? 16 : 0) : "memory");
}

// The address within the block's shared memory.
DEVICE unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Fence: makes the thread's stores to shared memory visible to wgmma and to bulk copies. Synchronise the threads
// afterwards.
DEVICE void show_operands()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Keeps the compiler from moving accesses to an accumulator across this point.
DEVICE void hold_sum(float &c) { asm volatile("" : "+f"(c)::"memory"); }
DEVICE void hold_sum(int &c) { asm volatile("" : "+r"(c)::"memory"); }
template <class Value, int COUNT> DEVICE void hold_sums(Value (&c)[COUNT])
{
    UNROLL for (int i = 0; i < COUNT; i++)
        hold_sum(c[i]);
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// An instruction of sm_90a. nvcc also makes PTX of sm_90, which has none of these.
#define SM90A(...) asm volatile(__VA_ARGS__)
#endif

#ifndef __CUDA_ARCH_FEAT_SM90_ALL
#define SM90A(...) __trap()
#endif

// A thread must not touch its accumulators between open_products() and wait_products<N>(), which waits for all but
// the last N closed groups.
//
//   open_products(c);
//   multiply_shared<false, false>(Product<f16, 128>(), c, a, b);   // once or several times
//   close_products();
//   wait_products<0>(c);
template <class Value, int COUNT> DEVICE void open_products(Value (&c)[COUNT])
{
    hold_sums(c);
    SM90A("wgmma.fence.sync.aligned;" ::: "memory");
}
DEVICE void close_products() { SM90A("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N, class Value, int COUNT> DEVICE void wait_products(Value (&c)[COUNT])
{
    SM90A("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
    hold_sums(c);
}

// A value that all lanes share, made visibly uniform for the compiler.
DEVICE int same_in_warp(int x)
{
    return warp_shuffle(x, 0);
}

// The element type of a and b, and the columns of c. A thread has COLUMNS / 2 accumulators.
template <class Element, int COLUMNS> struct Product {};

// A thread's accumulators as asm operands, in groups of 32.
#define SUMS_4(kind, i) kind(c[i]), kind(c[i + 1]), kind(c[i + 2]), kind(c[i + 3])
#define SUMS_8(kind, i) SUMS_4(kind, i), SUMS_4(kind, i + 4)
#define SUMS_32(kind) SUMS_8(kind, 0), SUMS_8(kind, 8), SUMS_8(kind, 16), SUMS_8(kind, 24)
#define SUMS_64(kind) SUMS_32(kind), SUMS_8(kind, 32), SUMS_8(kind, 40), SUMS_8(kind, 48), SUMS_8(kind, 56)
#define SUMS_96(kind) SUMS_64(kind), SUMS_8(kind, 64), SUMS_8(kind, 72), SUMS_8(kind, 80), SUMS_8(kind, 88)
#define SUMS_128(kind) \
    SUMS_96(kind), SUMS_8(kind, 96), SUMS_8(kind, 104), SUMS_8(kind, 112), SUMS_8(kind, 120)
#define REGISTERS_32 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define REGISTERS_64 \
    REGISTERS_32 ", " "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define REGISTERS_96 \
    REGISTERS_64 ", " "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define REGISTERS_128 \
    REGISTERS_96 ", " "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, " \
    "%110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, " \
    "%126, %127"
// The instruction, its accumulators and its further operands.
#define WGMMA(shape, registers, operands, sums, ...) \
    SM90A("wgmma.mma_async.sync.aligned.m64" shape " {" registers "}, " operands ";" : sums : __VA_ARGS__)
#define BOTH_SHARED "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B)

// c += a * b over 32 bytes of k: a has 64 rows, b has the columns of Product. TURN: that operand is stored with its
// rows contiguous (16-bit elements only). Warp w of the group has rows w * 16 to w * 16 + 15 of c. Of every 8 columns
// a lane has c[0] and c[1] in row l / 4 from column l % 4 * 2 on, c[2] and c[3] eight rows below.
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<f16, 256>, float (&c)[128], unsigned long long a, unsigned long long b)
{
    WGMMA("n256k16.f32.f16.f16", REGISTERS_128, "%128, %129, 1, 1, 1, %130, %131", SUMS_128("+f"), BOTH_SHARED);
}

#if defined(CUDART_VERSION) && CUDART_VERSION >= 11080 && !defined(__CUDACC_RTC__)
template <class Kernel>
static inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, Kernel *kernel, void **args)
{
    return ::cudaLaunchKernelExC(config, reinterpret_cast<const void *>(kernel), args);
}
#endif

#ifndef __CUDACC_RTC__
// The launch attribute of programmatic dependent launch. Graphs support it since CUDA 12.3.
static inline cudaLaunchAttribute begins_early()
{
    int driver = 0;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed =
        CUDART_VERSION >= 12030 && cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12030;
    return attribute;
}
#endif
// </rollerc>

template <class T> DEVICE T widen(T x) { return x; }
DEVICE int widen(unsigned char x) { return x; }
DEVICE int widen(unsigned short x) { return x; }
template <class T> struct Narrow { template <class V> DEVICE T from(V value) { return static_cast<T>(value); } };   // wraps
template <> struct Narrow<f16> { DEVICE f16 from(float value) { return f16_of(value); } };
template <class T, class V> DEVICE T narrow(V value) { return Narrow<T>::from(value); }   // from the compute type of T
struct Region { int at, bytes; };   // of shared memory, in bytes: see SHARED
template <class T, int COUNT> struct alignas(COUNT * sizeof(T)) Vector { T at[COUNT]; };
template <class T, int N> constexpr int AT_ONCE = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;   // the widest access is 16 bytes

template <class T, int COUNT, class V> DEVICE void widen_vector(Vector<T, COUNT> chunk, V *out)
{
    UNROLL for (int j = 0; j < COUNT; j++)
        out[j] = widen(chunk.at[j]);
}

// Loads N elements by one aligned access, or by several of 16 bytes. p + index must be aligned to the access.
template <int N, class T, class Index, class V>
DEVICE void load_vector(const T *p, Index index, V (&out)[N])
{
    constexpr int COUNT = AT_ONCE<T, N>;
    const Vector<T, COUNT> *chunks = reinterpret_cast<const Vector<T, COUNT> *>(p + index);
    UNROLL for (int i = 0; i < N / COUNT; i++)
        widen_vector(chunks[i], out + i * COUNT);
}

// Stores N elements by one aligned access, or by several of 16 bytes. p + index must be aligned to the access.
template <int N, class T, class Index, class V> DEVICE void store_vector(T *p, Index index, const V (&in)[N])
{
    constexpr int COUNT = AT_ONCE<T, N>;
    UNROLL for (int i = 0; i < N; i += COUNT) {
        Vector<T, COUNT> chunk;
        UNROLL for (int j = 0; j < COUNT; j++)
            chunk.at[j] = narrow<T>(in[i + j]);
        *reinterpret_cast<Vector<T, COUNT> *>(p + index + i) = chunk;
    }
}

// Moves N elements unconverted in one access. One side is a register array, the other is aligned to N elements.
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

template <class T> DEVICE T op_min(T a, T b) { return a < b || a != a ? a : b; }

// Tensor cores truncate when they accumulate, always towards zero, so long sums of positive products lose accuracy:
// 200,000 of them more than the last 10 bits of a float. At each promotion interval c is added to `ended` in float
// and cleared. MORE: the sum is longer than one interval.
template <bool MORE, int COUNT> struct Chains {
    float ended[COUNT] = {};

    __device__ __forceinline__ void end(float (&c)[COUNT])
    {
        UNROLL for (int i = 0; i < COUNT; i++) {
            ended[i] += c[i];
            c[i] = 0.0f;
        }
    }
    __device__ __forceinline__ void add_to(float (&c)[COUNT]) const
    {
        UNROLL for (int i = 0; i < COUNT; i++)
            c[i] += ended[i];
    }
};
template <int COUNT> struct Chains<false, COUNT> {
    template <class Value> __device__ __forceinline__ void end(Value (&)[COUNT]) const {}
    template <class Value> __device__ __forceinline__ void add_to(Value (&)[COUNT]) const {}
};

// The source of a copy of an element or of 16 bytes, if there is one.
template <class T> struct CopySource {
    const T *at;
    bool exists;
};

// The shared-memory descriptor of an operand. An operand is stored in lines of 128 bytes with 128-byte swizzle: the
// 16-byte vector p of line l is stored at position p ^ l % 8. Each group of eight lines is aligned to 1024 bytes.
//
//   k contiguous      line r is 128 bytes of row r; groups of eight rows are `stride` bytes apart
//   rows contiguous   line k is rows 0…63 of that k, of 16-bit elements; groups of eight k are `stride` bytes apart, rows 64…127
//                     lie `leading` bytes after
//
// The descriptor holds the address, `leading` and `stride` in units of 16 bytes, and the swizzle mode in its highest
// two bits.
DEVICE unsigned long long describe_operand(const void *first, int leading, int stride)
{
    return (shared_address(first) >> 4 & 0x3fffu) | static_cast<unsigned long long>(leading >> 4) << 16 |
           static_cast<unsigned long long>(stride >> 4) << 32 | 1ull << 62;
}
}   // namespace part_prelude

// Matrix multiply on the tensor cores of sm_90a (wgmma): C[b,m,n] = sum over k of A[b,m,k] * B[b,k,n], with a
// pointwise epilogue. Operands are f16 or bf16 with f32 accumulators, f32 truncated to tf32, or 8-bit integers with
// i32 accumulators.
//
// A thread block computes a BM x BN tile of C, each warp group a WM x WN tile of that in registers. The block
// iterates over k in steps of BK, pipelined through STAGES tiles of A and of B in shared memory, where the tensor
// cores read them:
//
//   step - 1        step             step + 1 … step + STAGES - 3      step + STAGES - 2
//   in use          next in use      in flight or complete             started once step - 2 is free
//
// 16-bit A and B may be contiguous along either dimension, others along k. Shared memory keeps the order of global
// memory. Copies are 16-byte vectors.

namespace part_k0_scope {
using namespace part_prelude;
// <rollerc: functions>
struct Tensors {
    const f16 *A;   // [4096, 4160]
    const f16 *B;   // [4096, 4096]
    f16 *C;   // [4096, 4096]
};
constexpr Region OPERANDS = {0, 197632};   // of shared memory, in bytes
constexpr Region SLABS = {0, 197632};
using Element = f16;   // of A and B

struct OperandA {
    static constexpr bool ALONG_K = true;   // k is contiguous in memory
    static constexpr bool PIECES = true;    // in aligned 16-byte vectors
    static __device__ __forceinline__ CopySource<Element> at(const Tensors &t, Index batch, Index m, Index k)
    {
        (void)batch;
        const Index i0 = m;
        const Index i2 = k;
        return {t.A + (i0 * 4160 + i2 + 64), true};
    }
};

struct OperandB {
    static constexpr bool ALONG_K = true;   // k is contiguous in memory
    static constexpr bool PIECES = true;    // in aligned 16-byte vectors
    static __device__ __forceinline__ CopySource<Element> at(const Tensors &t, Index batch, Index n, Index k)
    {
        (void)batch;
        const Index i1 = n;
        const Index i2 = k;
        return {t.B + (i1 * 4096 + i2), true};
    }
};
__device__ __forceinline__ void finish_vector(const Tensors &t, Index batch, Index m, Index n, const Value (&totals)[QN])
{
    (void)batch;
    float y0[QN];
    UNROLL for (int e = 0; e < QN; ++e) {
        const Value total = totals[e];
        const float C = total;
        y0[e] = C;
    }
    {
        const Index i0 = m;
        const Index i1 = n;
        store_vector<QN>(t.C, i0 * 4096 + i1, y0);
    }
}
// </rollerc>
// templates/wgmma.cu:62
constexpr int GROUPS_N = BN / WN, GROUPS = BM / WM * GROUPS_N, THREADS = GROUPS * 4 * WARP;
constexpr int BYTES = (int)sizeof(Element), PIECE = 16 / BYTES;   // elements of a 16-byte vector
constexpr int AK = 32 / BYTES;                                    // k of one instruction
constexpr Index BLOCKS_M = (M + BM - 1) / BM, BLOCKS_N = (N + BN - 1) / BN;
constexpr Index STEPS = (K + BK - 1) / BK;
constexpr bool CHAINS = STEPS > CHAIN;             // longer than one promotion interval
static_assert(BK * BYTES == 128, "a line of an operand in shared memory");

// A tile of an operand in shared memory, in the layout of describe_operand(): lines of 128 bytes along its
// contiguous dimension, one for each row, or one for each k and 64 rows of 16-bit elements.
template <class Operand, Index EXTENT, int BR> struct Tile {
    static constexpr bool ALONG_K = Operand::ALONG_K;
    static_assert(ALONG_K || BYTES == 2, "others are not turned");
    static constexpr int LINES = ALONG_K ? BR : BK, LINE = (ALONG_K ? BK : BR) / PIECE;
    static constexpr int ELEMENTS = BR * BK;
    static constexpr int EACH = (LINES * LINE + THREADS - 1) / THREADS;   // vectors that a thread copies

    static __device__ __forceinline__ void fetch(const Tensors &t, Index batch, Index row0, Index k0, Element *tile)
    {
        UNROLL for (int i = 0; i < EACH; ++i) {
            const int number = (int)threadIdx.x + i * THREADS, line = number / LINE, piece = number % LINE;
            if (LINES * LINE % THREADS != 0 && number >= LINES * LINE)
                break;   // three groups copy 512 vectors
            const Index row = row0 + (ALONG_K ? line : piece * PIECE), k = k0 + (ALONG_K ? piece * PIECE : line);
            const bool exists = (EXTENT % BR == 0 || row < EXTENT) && (K % BK == 0 || k < K);
            const CopySource<Element> source = Operand::at(t, batch, row, k);
            async_copy16_or_zero(exists && source.exists,
                                 tile + ((piece / 8 * LINES + line) * 8 + (piece % 8 ^ line % 8)) * PIECE, source.at);
        }
    }
    // The descriptor from this row and k on.
    static __device__ __forceinline__ unsigned long long part(const Element *tile, int row, int k)
    {
        return describe_operand(tile + row * BK + (ALONG_K ? k : k * 64), BK * 128, 8 * 128);
    }
};

// Epilogue staging of a warp's 8 rows of C.
struct Slab {
    Value at[8][WN + 8];   // padding: no bank conflicts among 16 lanes
};

using TileA = Tile<OperandA, M, BM>;
using TileB = Tile<OperandB, N, BN>;

struct Stage {
    Element a[TileA::ELEMENTS], b[TileB::ELEMENTS];
};

constexpr int ALIGNMENT = 1024;

extern "C" __global__ void __launch_bounds__(THREADS) part_k0(const f16 *__restrict__ A, const f16 *__restrict__ B, f16 *__restrict__ C)
{
    const Tensors t = {A, B, C};
    wait_for_earlier();   // programmatic dependent launch: earlier launches have completed
    let_next_begin();   // the next launch may begin
    SHARED(SLABS, Slab, slabs, [GROUPS * 4]);                 // over A and B
    Stage *const stages = reinterpret_cast<Stage *>(rollerc_shared + (0u - shared_address(rollerc_shared)) % ALIGNMENT);
    static_assert(STAGES * (int)sizeof(Stage) + ALIGNMENT <= OPERANDS.bytes, "all stages fit, wherever they begin");
    Value acc[WN / 2] = {};                               // (WM,WN) of four warps
    Chains<CHAINS, WN / 2> chain;

    const Index block = (Index)blockIdx.x % (BLOCKS_M * BLOCKS_N), batch = (Index)blockIdx.x / (BLOCKS_M * BLOCKS_N);
    const Index panel = block / (PANEL * BLOCKS_N) * PANEL;                   // first row of blocks of the panel
    const Index rows = op_min<Index>(BLOCKS_M - panel, PANEL);
    const Index m0 = (panel + block % (PANEL * BLOCKS_N) % rows) * BM;
    const Index n0 = block % (PANEL * BLOCKS_N) / rows * BN;
    const int warp = same_in_warp((int)threadIdx.x / WARP);
    const int group_m = warp / 4 / GROUPS_N * WM, group_n = warp / 4 % GROUPS_N * WN;

    // Load: the tiles of the first steps.
    UNROLL for (int step = 0; step < STAGES - 2; ++step) {
        if (step < STEPS) {
            TileA::fetch(t, batch, m0, step * BK, stages[step].a);
            TileB::fetch(t, batch, n0, step * BK, stages[step].b);
        }
        async_commit();
    }

    // Compute: the products of a step overlap the issue of the next ones and the copy of a later step.
    int now = 0, free = STAGES - 2;   // stages
#pragma unroll 1
    for (Index step = 0; step < STEPS; ++step) {
        async_wait<STAGES - 3>();
        show_operands();
        block_sync();
        open_products(acc);
        UNROLL for (int k = 0; k < BK; k += AK)
            multiply_shared<!TileA::ALONG_K, !TileB::ALONG_K>(Product<Element, WN>(), acc,
                                                              TileA::part(stages[now].a, group_m, k),
                                                              TileB::part(stages[now].b, group_n, k));
        close_products();
        const Index ahead = step + (STAGES - 2);
        if (ahead < STEPS) {
            TileA::fetch(t, batch, m0, ahead * BK, stages[free].a);
            TileB::fetch(t, batch, n0, ahead * BK, stages[free].b);
        }
        async_commit();
        wait_products<1>(acc);
        now = now + 1 == STAGES ? 0 : now + 1;
        free = free + 1 == STAGES ? 0 : free + 1;
    }
    wait_products<0>(acc);
    chain.add_to(acc);

    // Epilogue: stage eight rows of each warp at a time in shared memory, so that stores are coalesced.
    block_sync();
    Slab &slab = slabs[warp];
    const int lane = (int)threadIdx.x % WARP;
    UNROLL for (int part = 0; part < 2; ++part) {
        UNROLL for (int j = 0; j < WN / 8; ++j) {
            const Value *const own = acc + j * 4 + part * 2, two[2] = {own[0], own[1]};
            move_vector<2>(&slab.at[lane / 4][j * 8 + lane % 4 * 2], two);
        }
        warp_sync();
        UNROLL_4 for (int first = 0; first < 8 * WN / QN; first += WARP) {
            const int v = first + lane, row = v / (WN / QN), column = v % (WN / QN) * QN;
            const Index m = m0 + group_m + warp % 4 * 16 + part * 8 + row, n = n0 + group_n + column;
            if (row >= 8 || m >= M || n >= N)
                continue;
            Value total[QN];
            load_vector<QN>(slab.at[row], column, total);
            finish_vector(t, batch, m, n, total);
        }
        warp_sync();
    }
}
}   // namespace part_k0_scope

#ifndef __CUDACC_RTC__
extern "C" size_t part_workspace(void) { return 0; }

// Sets the attributes of the kernels, once per thread and device.
static cudaError_t part_allow()
{
    static thread_local unsigned long long allowed = 0;   // bit i: on device i
    int device = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (status == cudaSuccess && device < 64 && allowed >> device & 1)
        return cudaSuccess;
    if (status == cudaSuccess)
        status = cudaFuncSetAttribute(part_k0_scope::part_k0, cudaFuncAttributeMaxDynamicSharedMemorySize, 197632);
    if (status == cudaSuccess && device < 64)
        allowed |= 1ull << device;
    return status;
}

// A[4096, 4160] : f16, B[4096, 4096] : f16, C[4096, 4096] : f16
extern "C" int part_launch(const void *A, const void *B, void *C, void *workspace, void *stream)
{
    if (((size_t)A | (size_t)B | (size_t)C) % 16 != 0)
        return (int)cudaErrorInvalidValue;
    (void)workspace;
    using namespace part_prelude;
    cudaError_t status = part_allow();
    if (status == cudaSuccess) {
        void *args[] = {&A, &B, &C};
        cudaLaunchAttribute attributes[1] = {};
        attributes[0] = begins_early();
        const cudaLaunchConfig_t config = {dim3(512, 1, 1), dim3(256, 1, 1),
                                           197632, (cudaStream_t)stream, attributes, 1};
        status = cudaLaunchKernelExC(&config, part_k0_scope::part_k0, args);
    }
    return (int)status;
}
#endif

#undef DEVICE
#undef SHARED_AT
#undef SHARED
#undef UNROLL
#undef UNROLL_4
#undef SM90A
#undef SUMS_4
#undef SUMS_8
#undef SUMS_32
#undef SUMS_64
#undef SUMS_96
#undef SUMS_128
#undef REGISTERS_32
#undef REGISTERS_64
#undef REGISTERS_96
#undef REGISTERS_128
#undef WGMMA
#undef BOTH_SHARED

#ifdef ROLLERC_MAIN   // nvcc -arch=sm_90a -DROLLERC_MAIN part.cu && ./a.out
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector>

namespace plain {

using f16 = __half;
template <class T> double get(const T *p, long long i) { return p[i]; }
inline double get(const f16 *p, long long i) { return __half2float(p[i]); }

template <class T> void set(T *p, long long i, double value)   // whole numbers from -8 to 8, or 0 to 16
{
    p[i] = static_cast<T>(T(0.5) != T(0) ? value : 4 * value + (T(-1) < T(0) ? 0 : 8));
}
inline void set(f16 *p, long long i, double value) { p[i] = __double2half(value); }

template <class T> double rounded(double value)
{
    T as[1];
    set(as, 0, value);
    return get(as, 0);
}

// Reductions over all values of an index.
template <class T, class F> T sum_of(long long count, F term)
{
    T total = 0;
    for (long long i = 0; i < count; i++)
        total = total + term(i);
    return total;
}

// Pseudo-random numbers: scattered over the whole range.
inline long long scattered(long long i) { return static_cast<long long>((i + 1) * 0x9e3779b97f4a7c15ull >> 20); }

// A tensor on the host and on the device. Inputs are multiples of 1/64 from -2 to 2.
template <class T> struct Tensor {
    std::vector<T> here;
    T *there = nullptr;

    Tensor(long long count, long long words, bool input) : here(words)
    {
        for (long long i = 0; input && i < count; i++)
            set(here.data(), i, static_cast<double>(scattered(i) % 256) / 64 - 2);
        cudaMalloc(&there, words * sizeof(T));
        cudaMemcpy(there, here.data(), words * sizeof(T), cudaMemcpyHostToDevice);
    }
    double operator()(long long i) const { return get(here.data(), i); }
};

// Caches the last value of a definition: loops around it use the same value again.
template <class F> struct Kept {
    F compute;
    double value;
    long long last[17];

    template <class... I> double operator()(I... at)
    {
        const long long now[] = {at..., 0};
        if (memcmp(now, last, sizeof now) != 0) {
            value = compute(at...);
            memcpy(last, now, sizeof now);
        }
        return value;
    }
};
template <class F> Kept<F> keep(F compute) { return {compute, 0, {-1}}; }

inline bool ran(int status)
{
    if (status == 0)
        status = static_cast<int>(cudaDeviceSynchronize());
    if (status != 0)
        printf("it does not run: %s\n", cudaGetErrorString(static_cast<cudaError_t>(status)));
    return status == 0;
}

// Checks as many elements as two seconds allow. `share`: the error allowed for reals, relative to the largest value; 0: values
// are equal, but for one in a hundred, which the rounding of compared values may change.
template <class T, class F> bool check(const char *name, Tensor<T> &found, long long count, double share, F wanted)
{
    cudaMemcpy(found.here.data(), found.there, found.here.size() * sizeof(T), cudaMemcpyDeviceToHost);
    const auto start = std::chrono::steady_clock::now();
    double error = 0, largest = 0;
    long long seen = 0, others = 0;
    for (; seen < count && (seen < 2 || std::chrono::steady_clock::now() - start < std::chrono::seconds(2)); seen++) {
        const long long i = seen == 0 ? count - 1 : scattered(seen) % count;
        const double is = found(i), should = wanted(i);
        const bool both = std::isfinite(is) && std::isfinite(should), same = is == should || (is != is && should != should);
        error = same ? error : both ? fmax(error, fabs(is - should)) : INFINITY;
        largest = std::isfinite(should) ? fmax(largest, fabs(should)) : largest;
        others += !same;
    }
    const bool right = share > 0 ? error <= share * largest : others * 100 <= seen;
    printf("%s: %s, off by up to %.3g of %.3g, in %lld of %lld elements\n", name, right ? "right" : "WRONG", error, largest,
           seen, count);
    return right;
}

template <class F> void time_it(const char *name, F run, double bytes, double operations)
{
    cudaEvent_t start, stop;
    cudaEventCreate(&start), cudaEventCreate(&stop);
    for (int i = 0; i < 60; i++) {
        if (i == 10)
            cudaEventRecord(start);
        run();
    }
    cudaEventRecord(stop);
    cudaEventSynchronize(stop);
    float ms = 0;
    cudaEventElapsedTime(&ms, start, stop);
    const double us = ms * 1e3 / 50;
    printf("%s: %.2f us, %.0f GB/s, %.0f GFLOP/s\n", name, us, bytes / us / 1e3, operations / us / 1e3);
}

}   // namespace plain

int main()
{
    using namespace plain;
    Tensor<f16> A(17039360, 17039360, true);
    Tensor<f16> B(16777216, 16777216, true);
    Tensor<f16> C_found(16777216, 16777216, false);
    auto C = keep([&](long long m, long long n) { return rounded<f16>(sum_of<double>(4096, [&](long long k) { return (A(m * 4160 + k + 64) * B(n * 4096 + k)); })); });
    void *workspace = nullptr;
    cudaMalloc(&workspace, part_workspace() + 1);
    const auto run = [&] { return part_launch(A.there, B.there, C_found.there, workspace, nullptr); };
    if (!ran(run()))
        return 1;
    bool right = true;
    right &= check("C", C_found, 16777216, 3e-3, [&](long long element) { return C(element / 4096, element % 4096); });
    time_it("part", run, 101187584, 206158430208);
    return right ? 0 : 1;
}
#endif   // ROLLERC_MAIN
