// Micro-kernels of `rollerc calibrate`: each does one thing that the model has a number for, and nothing
// else. Compiled with NVRTC for the GPU that is there; src/clock/micro.c says how they are launched and what
// is made of their times.
//
// `data` is a large buffer of random bits, p[] what the launch asks for, out[0] nanoseconds or cycles that a
// kernel took by its own clock. What is computed goes to out[8], so that nothing is left out.

typedef unsigned long long u64;

#define DEVICE static __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define MICRO_OF(threads, name) \
    extern "C" __global__ void __launch_bounds__(threads) micro_##name(unsigned *data, const int *p, u64 *out)
#define MICRO(name) MICRO_OF(1024, name)
#define TENSOR_MICRO(name) MICRO_OF(512, name)

DEVICE u64 now_ns()
{
    u64 ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
}

DEVICE long long thread_of_grid() { return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; }
DEVICE long long threads_of_grid() { return static_cast<long long>(gridDim.x) * blockDim.x; }
DEVICE bool is_first() { return thread_of_grid() == 0; }

DEVICE void keep(u64 *out, unsigned value)
{
    if (value == 0x12345678u && threadIdx.x == 1023)
        out[8] = value;
}

DEVICE unsigned random_bits(u64 x)
{
    x = (x + 1) * 0x9e3779b97f4a7c15ull;
    return static_cast<unsigned>((x ^ x >> 30) * 0xbf58476d1ce4e5b9ull >> 32);
}

MICRO(fill)   // p[0] MiB of random bits
{
    const long long count = static_cast<long long>(p[0]) << 18;
    for (long long i = thread_of_grid(); i < count; i += threads_of_grid())
        data[i] = random_bits(i);
}

MICRO(nothing) {}

// ---- bandwidths ----

DEVICE uint4 load_16_bytes(const uint4 *at)
{
    uint4 v;   // past L1
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
    return v;
}

// p[0] KiB, p[1] times; each thread has WAYS loads of 16 bytes under way. Other blocks read a line in the
// next round.
template <int WAYS> DEVICE void read_all(const unsigned *data, const int *p, u64 *out)
{
    const uint4 *lines = reinterpret_cast<const uint4 *>(data);
    const long long count = static_cast<long long>(p[0]) << 6, step = threads_of_grid();
    unsigned sum = 0;
    for (int round = 0; round < p[1]; round++) {
        const long long block = (blockIdx.x + static_cast<long long>(round) * 37) % gridDim.x;
        for (long long i = block * blockDim.x + threadIdx.x; i + (WAYS - 1) * step < count; i += WAYS * step) {
            uint4 v[WAYS];
            UNROLL for (int w = 0; w < WAYS; w++)
                v[w] = load_16_bytes(lines + i + w * step);
            UNROLL for (int w = 0; w < WAYS; w++)
                sum ^= v[w].x ^ v[w].y ^ v[w].z ^ v[w].w;
        }
    }
    keep(out, sum);
}
MICRO(read_1) { read_all<1>(data, p, out); }
MICRO(read_2) { read_all<2>(data, p, out); }
MICRO(read_4) { read_all<4>(data, p, out); }

enum { SHARED_WORDS = 8192 };   // 32 KiB

DEVICE void fill_shared(unsigned *shared, const unsigned *data, int words)
{
    for (int i = threadIdx.x; i < words; i += blockDim.x)
        shared[i] = data[i];
    __syncthreads();
}

MICRO(shared_read)   // p[0] times 8 loads of 16 bytes of each thread
{
    __shared__ __align__(16) unsigned shared[SHARED_WORDS];
    fill_shared(shared, data, SHARED_WORDS);
    const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    unsigned at = threadIdx.x * 16, sum = 0;
    for (int i = 0; i < p[0]; i++)
        UNROLL for (int k = 0; k < 8; k++) {
            unsigned x, y, z, w;
            asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                         : "r"(base + (at + k * 4096) % (4 * SHARED_WORDS)));
            sum ^= x ^ y ^ z ^ w;
        }
    keep(out, sum);
}

// ---- latencies: one thread follows indices from line to line ----

MICRO(link)   // 2^p[0] lines of 128 bytes, each with the number of the next: all in one circle
{
    const unsigned count = 1u << p[0];
    for (unsigned i = static_cast<unsigned>(thread_of_grid()); i < count; i += static_cast<unsigned>(threads_of_grid()))
        data[32ull * i] = (i * 1664525u + 1013904223u) & (count - 1);
}

// p[0] steps after p[1] that are not timed; from another line each time, p[2] of 2^p[3], since those of the
// last time are in L2.
template <class Next> DEVICE void chase(const int *p, u64 *out, Next next)
{
    unsigned at = static_cast<unsigned>(p[2]) & ((1u << p[3]) - 1);
    for (int i = 0; i < p[1]; i++)
        at = next(at);
    const u64 begin = now_ns();
    for (int i = 0; i < p[0]; i++)
        at = next(at);
    out[0] = now_ns() - begin;
    out[8] = at;
}

MICRO(chase_loads)
{
    chase(p, out, [&](unsigned at) {
        unsigned next;
        asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(next) : "l"(data + 32ull * at));
        return next;
    });
}

MICRO(chase_shared)   // out[0] in cycles
{
    __shared__ unsigned next[1024];
    for (unsigned i = 0; i < 1024; i++)
        next[i] = (i * 1664525u + 1013904223u) & 1023;
    const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(next));
    unsigned at = 0;
    const long long begin = clock64();
    for (int i = 0; i < p[0]; i++)
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(at) : "r"(base + 4 * at));
    out[0] = clock64() - begin;
    out[8] = at;
}

MICRO(chase_copies)   // each line by an asynchronous copy of 16 bytes
{
#if __CUDA_ARCH__ >= 800
    __shared__ __align__(128) unsigned line[32];
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(line));
    chase(p, out, [&](unsigned at) {
        unsigned next;
        asm volatile("cp.async.cg.shared.global [%1], [%2], 16;\n cp.async.wait_all;\n ld.shared.u32 %0, [%1];"
                     : "=r"(next)
                     : "r"(to), "l"(data + 32ull * at)
                     : "memory");
        return next;
    });
#endif
}

MICRO(chase_bulk)   // each line by a bulk copy of 128 bytes
{
#if __CUDA_ARCH__ >= 900
    __shared__ __align__(128) unsigned line[32];
    __shared__ __align__(8) u64 barrier;
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(line)),
                   mark = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
    asm volatile("mbarrier.init.shared.b64 [%0], 1;\n fence.proxy.async.shared::cta;" ::"r"(mark) : "memory");
    unsigned phase = 0;
    chase(p, out, [&](unsigned at) {
        unsigned next;
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 128;\n"
                     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%2], 128, [%0];" ::"r"(mark),
                     "r"(to), "l"(data + 32ull * at)
                     : "memory");
        asm volatile("{ .reg .pred done;\n"
                     "again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
                     "@!done bra again; }" ::"r"(mark), "r"(phase)
                     : "memory");
        phase ^= 1;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(next) : "r"(to) : "memory");
        return next;
    });
#endif
}

// ---- meetings: p[0] of them ----

MICRO(barrier)   // out[0] in cycles
{
    const int times = p[0];   // behind a barrier it would be loaded again
    __syncthreads();
    const long long begin = clock64();
    for (int i = 0; i < times; i++)
        __syncthreads();
    if (is_first())
        out[0] = clock64() - begin;
}

MICRO(cluster_barrier)
{
#if __CUDA_ARCH__ >= 900
    const u64 begin = now_ns();
    for (int i = 0; i < p[0]; i++)
        asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
    if (is_first())
        out[0] = now_ns() - begin;
#endif
}

MICRO(exchange)   // p[0] times 4 loads of 16 bytes of each thread from the shared memory of the cluster's next block
{
#if __CUDA_ARCH__ >= 900
    __shared__ __align__(16) unsigned shared[SHARED_WORDS];
    fill_shared(shared, data, SHARED_WORDS);
    unsigned other, sum = 0;
    asm volatile("{ .reg .u32 rank, blocks;\n"
                 "mov.u32 rank, %%cluster_ctarank;\n mov.u32 blocks, %%cluster_nctarank;\n"
                 "add.u32 rank, rank, 1;\n rem.u32 rank, rank, blocks;\n"
                 "mapa.shared::cluster.u32 %0, %1, rank; }"
                 : "=r"(other)
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))));
    asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
    const u64 begin = now_ns();
    for (int i = 0; i < p[0]; i++)
        UNROLL for (int k = 0; k < 4; k++) {
            unsigned x, y, z, w;
            asm volatile("ld.volatile.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                         : "r"(other + (threadIdx.x * 16 + k * 8192) % (4 * SHARED_WORDS)));
            sum ^= x ^ y ^ z ^ w;
        }
    __syncthreads();
    if (is_first())
        out[0] = now_ns() - begin;
    asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
    keep(out, sum);
#endif
}

// All blocks are there; each leaves a word for the next one, and reads its own.
MICRO(grid_barrier)   // out[1] is 0 before
{
    volatile u64 *arrived = out + 1;
    unsigned seen = 0;
    const u64 begin = now_ns();
    for (int i = 0; i < p[0]; i++) {
        if (threadIdx.x == 0) {
            reinterpret_cast<volatile unsigned *>(data)[32 * blockIdx.x] = i;
            __threadfence();
            atomicAdd(out + 1, 1ull);
            while (*arrived < static_cast<u64>(gridDim.x) * (i + 1)) {
            }
            __threadfence();
            seen ^= reinterpret_cast<volatile unsigned *>(data)[32 * ((blockIdx.x + 1) % gridDim.x)];
        }
        __syncthreads();
    }
    if (is_first())
        out[0] = now_ns() - begin;
    keep(out, seen);
}

// ---- instructions: p[0] times 16 of each chain; a chain waits for itself ----

#define CHAINS(type, first, COUNT, instruction)                 \
    type x[COUNT];                                              \
    UNROLL for (int k = 0; k < COUNT; k++) x[k] = first;        \
    for (int i = 0; i < p[0]; i++)                              \
        UNROLL for (int r = 0; r < 16; r++)                     \
            UNROLL for (int k = 0; k < COUNT; k++) instruction; \
    type sum = x[0];                                            \
    UNROLL for (int k = 1; k < COUNT; k++) sum += x[k];         \
    keep(out, static_cast<unsigned>(sum))

template <int COUNT> DEVICE void fma_chains(const unsigned *data, const int *p, u64 *out)
{
    const float a = data[0] * 1e-12f, b = data[1] * 1e-12f;
    CHAINS(float, threadIdx.x + k, COUNT, x[k] = __fmaf_rn(x[k], a, b));
}
MICRO(fma_1) { fma_chains<1>(data, p, out); }
MICRO(fma_2) { fma_chains<2>(data, p, out); }
MICRO(fma_4) { fma_chains<4>(data, p, out); }
MICRO(fma_8) { fma_chains<8>(data, p, out); }

MICRO(fp64)
{
    const double a = data[0] * 1e-12, b = data[1] * 1e-12;
    CHAINS(double, threadIdx.x + k, 4, x[k] = __fma_rn(x[k], a, b));
}

MICRO(int32)
{
    const int a = static_cast<int>(data[0]), b = static_cast<int>(data[1]);
    CHAINS(int, static_cast<int>(threadIdx.x) + k, 8, asm volatile("mad.lo.s32 %0, %0, %1, %2;" : "+r"(x[k]) : "r"(a), "r"(b)));
}

MICRO(sfu)
{
    CHAINS(float, 1.0f / (threadIdx.x + k + 2), 8, asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x[k])));
}

// ---- tensor cores, operands of random bits between 1/2 and 1 in size: power limits zeros less than numbers ----

enum : unsigned {
    KEPT_F16 = 0x83ff83ff, SET_F16 = 0x38003800, KEPT_BF16 = 0x807f807f, SET_BF16 = 0x3f003f00,
    KEPT_F32 = 0x807fffff, SET_F32 = 0x3f000000, KEPT_I8 = 0xffffffff, SET_I8 = 0
};

// p[0] times 8 products of each of 4 tiles of sums
#define MMA(type, KEPT, SET, kind, shape, A, B, a_list, b_list)                                                       \
    unsigned a[4], b[2];                                                                                              \
    UNROLL for (int i = 0; i < 4; i++) a[i] = operand(data, i, KEPT, SET);                                            \
    UNROLL for (int i = 0; i < 2; i++) b[i] = operand(data, 4 + i, KEPT, SET);                                        \
    type c[4][4] = {};                                                                                                \
    for (int i = 0; i < p[0]; i++)                                                                                    \
        UNROLL for (int r = 0; r < 8; r++)                                                                            \
            UNROLL for (int k = 0; k < 4; k++)                                                                        \
                asm volatile("mma.sync.aligned." shape " {%0, %1, %2, %3}, " a_list ", " b_list ", {%0, %1, %2, %3};" \
                             : kind(c[k][0]), kind(c[k][1]), kind(c[k][2]), kind(c[k][3])                             \
                             : A, B);                                                                                 \
    keep(out, static_cast<unsigned>(c[0][0] + c[1][1] + c[2][2] + c[3][3]))
#define A_4 "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])
#define B_2 "r"(b[0]), "r"(b[1])

#if __CUDA_ARCH__ >= 800
DEVICE unsigned operand(const unsigned *data, int i, unsigned kept, unsigned set)
{
    return (data[threadIdx.x * 16 + i] & kept) | set;
}

TENSOR_MICRO(mma_f16)
{
    MMA(float, KEPT_F16, SET_F16, "+f", "m16n8k16.row.col.f32.f16.f16.f32", A_4, B_2, "{%4, %5, %6, %7}", "{%8, %9}");
}
TENSOR_MICRO(mma_bf16)
{
    MMA(float, KEPT_BF16, SET_BF16, "+f", "m16n8k16.row.col.f32.bf16.bf16.f32", A_4, B_2, "{%4, %5, %6, %7}", "{%8, %9}");
}
TENSOR_MICRO(mma_tf32)
{
    MMA(float, KEPT_F32, SET_F32, "+f", "m16n8k8.row.col.f32.tf32.tf32.f32", A_4, B_2, "{%4, %5, %6, %7}", "{%8, %9}");
}
TENSOR_MICRO(mma_i8)
{
    MMA(int, KEPT_I8, SET_I8, "+r", "m16n8k32.row.col.s32.s8.s8.s32", A_4, B_2, "{%4, %5, %6, %7}", "{%8, %9}");
}
#endif

#if __CUDA_ARCH__ >= 900
TENSOR_MICRO(mma_f64)
{
    double a[4], b[2], c[4][4] = {};
    for (int i = 0; i < 4; i++)
        a[i] = operand(data, i, KEPT_I8, 0) * 2e-10 - 0.5;
    for (int i = 0; i < 2; i++)
        b[i] = operand(data, 4 + i, KEPT_I8, 0) * 2e-10 - 0.5;
    for (int i = 0; i < p[0]; i++)
        UNROLL for (int r = 0; r < 8; r++)
            UNROLL for (int k = 0; k < 4; k++)
                asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                             "{%0, %1, %2, %3};"
                             : "+d"(c[k][0]), "+d"(c[k][1]), "+d"(c[k][2]), "+d"(c[k][3])
                             : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
    keep(out, static_cast<unsigned>(c[0][0] + c[1][1] + c[2][2] + c[3][3]));
}
#endif

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define SUMS_8(kind, i) \
    kind(c[i]), kind(c[i + 1]), kind(c[i + 2]), kind(c[i + 3]), kind(c[i + 4]), kind(c[i + 5]), kind(c[i + 6]), kind(c[i + 7])
#define SUMS_64(kind) \
    SUMS_8(kind, 0), SUMS_8(kind, 8), SUMS_8(kind, 16), SUMS_8(kind, 24), SUMS_8(kind, 32), SUMS_8(kind, 40), SUMS_8(kind, 48), \
        SUMS_8(kind, 56)
#define REGISTERS_64 \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, " \
    "%26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, " \
    "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

// Rows of 128 bytes, eight of them 1024 apart, their pieces of 16 bytes swizzled: PTX ISA, matrix
// descriptors.
DEVICE u64 descriptor(const unsigned *shared)
{
    const u64 address = __cvta_generic_to_shared(shared);
    return (address & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

// p[0] times four products of 64 x 128 sums by each of the block's groups of four warps, 32 bytes of k each
#define WGMMA(type, KEPT, SET, kind, shape, behind)                                                       \
    extern __shared__ __align__(1024) unsigned shared[];                                                  \
    const int group = threadIdx.x / 128;                                                                  \
    for (int i = threadIdx.x; i < 4096 + 2048 * static_cast<int>(blockDim.x / 128); i += blockDim.x)      \
        shared[i] = (random_bits(i) & KEPT) | SET;                                                        \
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                                          \
    __syncthreads();                                                                                      \
    const u64 a = descriptor(shared + 4096 + 2048 * group), b = descriptor(shared);                       \
    type c[64] = {};                                                                                      \
    for (int i = 0; i < p[0]; i++) {                                                                      \
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                           \
        UNROLL for (int k = 0; k < 4; k++) asm volatile(                                                  \
            "wgmma.mma_async.sync.aligned." shape " " REGISTERS_64 ", %64, %65, 1" behind ";"             \
            : SUMS_64(kind)                                                                               \
            : "l"(a + 2 * k), "l"(b + 2 * k));                                                            \
        asm volatile("wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;" ::: "memory"); \
    }                                                                                                     \
    type sum = 0;                                                                                         \
    UNROLL for (int i = 0; i < 64; i++) sum += c[i];                                                      \
    keep(out, static_cast<unsigned>(sum))

TENSOR_MICRO(wgmma_f16) { WGMMA(float, KEPT_F16, SET_F16, "+f", "m64n128k16.f32.f16.f16", ", 1, 1, 0, 0"); }
TENSOR_MICRO(wgmma_bf16) { WGMMA(float, KEPT_BF16, SET_BF16, "+f", "m64n128k16.f32.bf16.bf16", ", 1, 1, 0, 0"); }
TENSOR_MICRO(wgmma_tf32) { WGMMA(float, KEPT_F32, SET_F32, "+f", "m64n128k8.f32.tf32.tf32", ", 1, 1"); }
TENSOR_MICRO(wgmma_i8) { WGMMA(int, KEPT_I8, SET_I8, "+r", "m64n128k32.s32.s8.s8", ""); }
#endif
