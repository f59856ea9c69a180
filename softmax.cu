//rollerc: {"schema":1,"name":"softmax","device":"h200","workspace":0,"args":[{"name":"x","role":"input","dtype":"f16","shape":[49152,1024]},{"name":"y","role":"output","dtype":"f16","shape":[49152,1024]}],"launches":[{"kernel":"softmax_k0","grid":[24576,1,1],"block":[64,1,1],"shared":0,"cooperative":false,"early":true,"after":[],"args":[{"arg":0},{"arg":1}]}]}
//
// softmax, constructed by rollerc 0.2.0 for the device h200. What it computes:
//
//   param R = 49152
//   param N = 1024
//   input x[R, N] : f16
//   m[i] = max[j](x[i, j])
//   e[i, j] = exp(x[i, j] - m[i])
//   s[i] = sum[j](e[i, j])
//   y[i, j] = e[i, j] / s[i]
//   output y : f16
//
// This file is yours: it carries no licence obligations of rollerc.

namespace softmax_k0_scope {
// <rollerc: parameters>   templates/rowwise.cu (warp) for softmax on h200, candidate 1 of 10
//
//   level              row      column
//   global           49152        1024   the problem
//   shared               2        1024   24576 blocks, 9.31 waves, 0 bytes
//   register             1          32   64 threads, about 46 registers
//
//   predicted 47.40 us, bound by dram (compute 15.53, shared 3.08, L2 26.05, DRAM 44.80)
//
using Index = int;
constexpr Index ROWS = 49152;
constexpr int THREADS = 64, MIN_BLOCKS_PER_SM = 0;   // of a block; of the launch bounds, 0: unset
constexpr int GROUP = 32, ROWS_OF_BLOCK = 2;   // threads of a row; groups of a block
constexpr int VECTOR = 8, VECTORS = 4;   // contiguous elements of an access; accesses of a thread
constexpr Index STEP = GROUP * VECTOR;   // from one vector of a thread to the next
constexpr int PASSES = 3;   // over a row
// </rollerc>
}   // namespace softmax_k0_scope

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "softmax was made for the device h200 and needs sm_90 or later: compile it with -arch=sm_90a"
#endif

// The parts of templates/prelude/ that the file uses:
#define DEVICE [[maybe_unused]] static __device__ __forceinline__

namespace softmax_prelude {
// <rollerc: intrinsics>
#define UNROLL _Pragma("unroll")
constexpr int WARP = 32;

template <class T> DEVICE T warp_shuffle_xor(T value, int mask, int width = WARP)
{
    return __shfl_xor_sync(0xffffffffu, value, mask, width);
}

DEVICE float op_max(float a, float b)   // the overload of arithmetic.cuh compares
{
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

// Reads global memory. Accesses of 16 bytes hint L2 to keep what they read longer than what is written: 0.95 to 0.99
// of the time where as much is written as read.
template <class Chunk> DEVICE Chunk read_global(const Chunk *p)
{
    if (sizeof(Chunk) != 16)
        return *p;
    union { Chunk chunk; unsigned words[4]; } read;
    asm volatile("{ .reg .b64 policy;\n  createpolicy.fractional.L2::evict_last.b64 policy;\n"
                 "  ld.global.L1::evict_last.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], policy; }"
                 : "=r"(read.words[0]), "=r"(read.words[1]), "=r"(read.words[2]), "=r"(read.words[3]) : "l"(p));
    return read.chunk;
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

// exp(a) for a score minus its row's maximum, for 16-bit results: a third of the instructions of expf. The relative
// error is at most (5/4 |a| + 4) 2^-24, a fiftieth of the rounding. Results below the range of f16 may be 0.
DEVICE float softmax_exp_f16(float a)
{
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(a * 1.442695041f));
    return power;
}

// Waits until all earlier launches in the stream have completed. Their results are visible afterwards.
DEVICE void wait_for_earlier() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

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
DEVICE int widen(unsigned short x) { return x; }
template <class T> using compute_type = decltype(widen(T()));
template <class T> struct Narrow { template <class V> DEVICE T from(V value) { return static_cast<T>(value); } };   // wraps
template <> struct Narrow<f16> { DEVICE f16 from(float value) { return f16_of(value); } };
template <class T, class V> DEVICE T narrow(V value) { return Narrow<T>::from(value); }   // from the compute type of T
template <class T, int COUNT> struct alignas(COUNT * sizeof(T)) Vector { T at[COUNT]; };
template <class T, int N> constexpr int AT_ONCE = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;   // the widest access is 16 bytes

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

// N narrow elements, packed as in memory. Each is widened when it is used, so that no load is waited for early.
template <class T, int N> struct Packed {
    static constexpr int EACH = 4 / static_cast<int>(sizeof(T)), COUNT = AT_ONCE<unsigned, N / EACH>, PIECES = N / EACH / COUNT;
    using Chunk = Vector<unsigned, COUNT>;
    Chunk pieces[PIECES];

    __device__ __forceinline__ compute_type<T> operator[](int e) const
    {
        union { unsigned word; T at[EACH]; };
        word = pieces[e / EACH / COUNT].at[e / EACH % COUNT];
        return widen(at[e % EACH]);
    }
};

template <class T, int N, class Index> DEVICE void read_packed(const T *p, Index index, Packed<T, N> &out)
{
    UNROLL for (int i = 0; i < out.PIECES; ++i)
        out.pieces[i] = read_global(reinterpret_cast<const typename Packed<T, N>::Chunk *>(p + index) + i);
}

template <class T> DEVICE T wrapping(T x) { return x; }
DEVICE unsigned wrapping(int x) { return static_cast<unsigned>(x); }
template <class T> DEVICE T op_add(T a, T b) { return static_cast<T>(wrapping(a) + wrapping(b)); }
template <class T> DEVICE T op_sub(T a, T b) { return static_cast<T>(wrapping(a) - wrapping(b)); }
template <class T> DEVICE T op_max(T a, T b) { return a > b || a != a ? a : b; }   // NaN if either is
template <class T> DEVICE T op_min(T a, T b) { return a < b || a != a ? a : b; }
DEVICE int lowest(int) { return -2147483647 - 1; }
DEVICE float lowest(float) { return __uint_as_float(0xff800000u); }   // NVRTC knows no INFINITY

struct Sum {
    template <class T> DEVICE T identity() { return 0; }
    template <class T> DEVICE T combine(T a, T b) { return op_add(a, b); }
};

struct Max {
    template <class T> DEVICE T identity() { return lowest(T()); }
    template <class T> DEVICE T combine(T a, T b) { return op_max(a, b); }
};

// Reduces N values, a power of two, as a tree: 0+4 1+5 2+6 3+7, then their sums.
template <class Reduction, class T, int N> DEVICE T reduce_vector(T (&x)[N])
{
    UNROLL for (int half = N / 2; half > 0; half /= 2)
        UNROLL for (int i = 0; i < half; i++)
            x[i] = Reduction::combine(x[i], x[i + half]);
    return x[0];
}

// Reduces across groups of `width` lanes; every lane gets the result. Order of four lanes: 0+2, then (0+2)+(1+3).
template <class Reduction, class T> DEVICE T warp_reduce(T value, int width = WARP)
{
    for (int mask = width / 2; mask > 0; mask /= 2)
        value = Reduction::combine(value, warp_shuffle_xor(value, mask, width));
    return value;
}
}   // namespace softmax_prelude

// Row kernel: reductions along rows, with pointwise steps before, between and after them.
//
// A group of GROUP threads computes a row. A thread has VECTORS vectors of VECTOR contiguous elements, one group's
// width apart, so accesses of a warp are coalesced. The row stays in registers or in shared memory for all PASSES;
// a row that fits neither is read again by every pass. A block has ROWS_OF_BLOCK groups.
//
//   lane        0        1       …    GROUP-1  |    0        1      …
//   elements [VECTOR] [VECTOR]   …   [VECTOR]  | [VECTOR] [VECTOR]  …        <- VECTORS times, the last one ragged

namespace softmax_k0_scope {
using namespace softmax_prelude;
// <rollerc: functions>
struct Tensors {
    const f16 *x;   // [49152, 1024]
    f16 *y;   // [49152, 1024]
};

struct Inputs {   // what one vector of a row's elements loads
    Packed<f16, VECTOR> x0;
};

__device__ __forceinline__ void load_elements(const Tensors &t, Index row, Index at, int k, int r, Inputs &in)
{
    read_packed(t.x, row * 1024 + at, in.x0);
}

struct Elements {   // what the passes compute of a vector
    float e_[VECTOR];
    float y[VECTOR];
};

// A row, the column of the thread's vector 0, and the results of the passes.
struct Row {
    Index row, column;
    float m_total = Max::identity<float>(), m, s_total = Sum::identity<float>(), s, y_reciprocal;

    template <int PASS> __device__ __forceinline__ void make(const Tensors &t, Index at, int k, const Inputs &in, Elements &el)
    {
        if constexpr (PASS == 0) {
            float m_terms[VECTOR];
            UNROLL for (int e = 0; e < VECTOR; ++e)
                m_terms[e] = in.x0[e];
            m_total = Max::combine(m_total, reduce_vector<Max>(m_terms));
        }
        if constexpr (PASS == 1) {
            UNROLL for (int e = 0; e < VECTOR; ++e)
                el.e_[e] = softmax_exp_f16(op_sub(in.x0[e], m));
            float s_terms[VECTOR];
            UNROLL for (int e = 0; e < VECTOR; ++e)
                s_terms[e] = el.e_[e];
            s_total = Sum::combine(s_total, reduce_vector<Sum>(s_terms));
        }
        if constexpr (PASS == 2)
            UNROLL for (int e = 0; e < VECTOR; ++e)
                el.y[e] = el.e_[e] * y_reciprocal;
    }
    template <int PASS> __device__ __forceinline__ void store_elements(const Tensors &t, Index at, int k, const Elements &el) const
    {
        if constexpr (PASS == 2)
            store_vector<VECTOR>(t.y, row * 1024 + at, el.y);
    }
    template <int PASS> __device__ __forceinline__ void finish(const Tensors &t)
    {
        if constexpr (PASS == 0)
            m = warp_reduce<Max>(m_total, GROUP);
        if constexpr (PASS == 1) {
            s = warp_reduce<Sum>(s_total, GROUP);
            y_reciprocal = 1.0f / s;
        }
    }
};
// </rollerc>
// templates/rowwise.cu:257
// ---- passes ----

// A pass and the following ones over a row in registers.
template <int PASS, class Row>
__device__ __forceinline__ void walk(const Tensors &t, Row &row, const Inputs *inputs, Elements *elements, bool stores, int made)
{
    UNROLL for (int k = 0; k < VECTORS; ++k) {
        const Index at = row.column + k * STEP;
        row.template make<PASS>(t, at, k, inputs[k], elements[k]);
        if (stores)
            row.template store_elements<PASS>(t, at, k, elements[k]);
    }
    row.template finish<PASS>(t);
    if constexpr (PASS + 1 < PASSES)
        walk<PASS + 1>(t, row, inputs, elements, stores, made);
}

// Computes a row in registers. A group past the last row takes part in barriers and shuffles, and stores nothing.
template <class Row> __device__ __forceinline__ void make_row(const Tensors &t, int lane, Index own, int made)
{
    Row row;
    row.row = op_min<Index>(own, ROWS - 1), row.column = lane * VECTOR;
    Inputs inputs[VECTORS];
    UNROLL for (int k = 0; k < VECTORS; ++k)
        load_elements(t, row.row, row.column + k * STEP, k, 0, inputs[k]);
    Elements elements[VECTORS];
    walk<0>(t, row, inputs, elements, own < ROWS, made);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS_PER_SM) softmax_k0(const f16 *__restrict__ x, f16 *__restrict__ y)
{
    const Tensors t = {x, y};
    wait_for_earlier();   // programmatic dependent launch: earlier launches have completed
    int thread = (int)threadIdx.x;
    Index block = (Index)blockIdx.x;
    make_row<Row>(t, thread % GROUP, block * ROWS_OF_BLOCK + thread / GROUP, 0);
}
}   // namespace softmax_k0_scope

#ifndef __CUDACC_RTC__
extern "C" size_t softmax_workspace(void) { return 0; }

// x[49152, 1024] : f16, y[49152, 1024] : f16
extern "C" int softmax_launch(const void *x, void *y, void *workspace, void *stream)
{
    if (((size_t)x | (size_t)y) % 16 != 0)
        return (int)cudaErrorInvalidValue;
    (void)workspace;
    using namespace softmax_prelude;
    void *args[] = {&x, &y};
    cudaLaunchAttribute attributes[1] = {};
    attributes[0] = begins_early();
    const cudaLaunchConfig_t config = {dim3(24576, 1, 1), dim3(64, 1, 1),
                                       0, (cudaStream_t)stream, attributes, 1};
    return (int)cudaLaunchKernelExC(&config, softmax_k0_scope::softmax_k0, args);
}
#endif

#undef DEVICE
#undef UNROLL

#ifdef ROLLERC_MAIN   // nvcc -arch=sm_90a -DROLLERC_MAIN softmax.cu && ./a.out
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

template <class T> T larger(T a, T b) { return a > b || a != a ? a : b; }

// Reductions over all values of an index.
template <class T, class F> T sum_of(long long count, F term)
{
    T total = 0;
    for (long long i = 0; i < count; i++)
        total = total + term(i);
    return total;
}
template <class T, class F> T largest_of(long long count, F term)
{
    T total = term(0);
    for (long long i = 1; i < count; i++)
        total = larger<T>(total, term(i));
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
    Tensor<f16> x(50331648, 50331648, true);
    Tensor<f16> y_found(50331648, 50331648, false);
    auto m = keep([&](long long i) { return (float)(largest_of<double>(1024, [&](long long j) { return x(i * 1024 + j); })); });
    auto e = keep([&](long long i, long long j) { return (float)(std::exp((x(i * 1024 + j) - m(i)))); });
    auto s = keep([&](long long i) { return (float)(sum_of<double>(1024, [&](long long j) { return e(i, j); })); });
    auto y = keep([&](long long i, long long j) { return rounded<f16>((e(i, j) / s(i))); });
    void *workspace = nullptr;
    cudaMalloc(&workspace, softmax_workspace() + 1);
    const auto run = [&] { return softmax_launch(x.there, y_found.there, workspace, nullptr); };
    if (!ran(run()))
        return 1;
    bool right = true;
    right &= check("y", y_found, 50331648, 3e-3, [&](long long element) { return y(element / 1024, element % 1024); });
    time_it("softmax", run, 201326592, 452984832);
    return right ? 0 : 1;
}
#endif   // ROLLERC_MAIN
