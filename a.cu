//rollerc: {"schema":1,"name":"a","device":"h200","workspace":0,"args":[{"name":"x","role":"input","dtype":"f16","shape":[4,3,32,32]},{"name":"w","role":"input","dtype":"f16","shape":[3,7,7]},{"name":"y","role":"output","dtype":"f16","shape":[4,3,32,32]}],"launches":[{"kernel":"a_k0","grid":[128,1,1],"block":[96,1,1],"shared":0,"cooperative":false,"args":[{"arg":0},{"arg":1},{"arg":2}]}]}
//
// a, constructed by rollerc 0.2.0 for the device h200. What it computes:
//
//   input x[4, 3, 32, 32] : f16
//   input w[3, 7, 7] : f16
//   y[n:4, c:3, h:32, v:32] : f16 = sum[r:7, s:7] mul(guard(h + r - 3 < 32, v + s - 3 < 32; x[n, c, h + r - 3, v + s - 3]; 0), w[c, r, s])
//   output y[4, 3, 32, 32] : f16
//
// This file is yours: it carries no licence obligations of rollerc.

namespace a_k0_scope {
// <rollerc: parameters>   templates/window.cu (windows) for a on h200, candidate 1 of 10
//
//   level            outer        down       along         tap    tap down   tap along
//   global              12          32          32           1           7           7   the problem
//   shared               3           1          32           1           7           7   128 blocks, 0.11 waves, 0 bytes
//   register             1           1           1           1           7           7   96 threads, about 66 registers
//
//   predicted 3.95 us, bound by launch (compute 0.17, shared 0.23, L2 0.23, DRAM 0.09)
//
using Index = int;
using A = float;   // what totals are accumulated in
constexpr Index OUTER = 12, DOWN = 32, ALONG = 32;   // outputs
constexpr int TAPS = 1, DOWN_TAPS = 7, ALONG_TAPS = 7;   // of a window: one by one, and those that slide
constexpr int THREADS = 96;
constexpr int TO = 3, TD = 1, TA = 32;   // threads of a block
constexpr int HEIGHT = 1;   // outputs of a thread, one below the other
constexpr int ROWS = 7, ROW_STEP = 1, ROW_TAP_STEP = 1;   // under the outputs; from one output to the next, from tap to tap
constexpr bool SAME_TERMS = false;   // of a row for all outputs that meet it
constexpr bool SAFE_PAST_END = true;   // terms past the last output read nothing outside of tensors

// What a block stages in shared memory: nothing.
using Staged = unsigned char;

// Outputs that a block collects in shared memory: none.
using Collected = unsigned char;
// </rollerc>
}   // namespace a_k0_scope

// What it uses of templates/prelude/:
#define DEVICE [[maybe_unused]] static __device__ __forceinline__

#ifndef ROLLERC_INTERP
#define UNROLL _Pragma("unroll")
#endif

namespace rollerc {
#ifndef ROLLERC_INTERP
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
#endif

// An integer that a float rounds is beyond what f16 can hold; of the others, not all are.
template <class Whole> DEVICE f16 f16_of(Whole value) { return f16_of(static_cast<float>(value)); }

DEVICE float widen(float x) { return x; }
DEVICE int widen(int x) { return x; }
template <class T> using compute_type = decltype(widen(T()));
template <class T> struct Narrow { template <class V> DEVICE T from(V value) { return static_cast<T>(value); } };   // wraps
template <> struct Narrow<f16> { template <class V> DEVICE f16 from(V value) { return f16_of(value); } };
template <class T, class V> DEVICE T narrow(V value) { return Narrow<T>::from(value); }
template <class T, class Index> DEVICE compute_type<T> load(const T *p, Index index) { return widen(p[index]); }

template <class T, class Index, class V>
DEVICE void store(T *p, Index index, V value) { p[index] = narrow<T>(value); }

template <class T> DEVICE T wrapping(T x) { return x; }
DEVICE unsigned wrapping(int x) { return static_cast<unsigned>(x); }
template <class T> DEVICE T op_add(T a, T b) { return static_cast<T>(wrapping(a) + wrapping(b)); }
template <class T> DEVICE T op_mul(T a, T b) { return static_cast<T>(wrapping(a) * wrapping(b)); }

struct Sum {
    template <class T> DEVICE T identity() { return 0; }
    template <class T> DEVICE T combine(T a, T b) { return op_add(a, b); }
};
}   // namespace rollerc

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

namespace a_k0_scope {
using namespace rollerc;
// <rollerc: functions>
struct Tensors {
    const f16 *x;   // [4, 3, 32, 32]
    const f16 *w;   // [3, 7, 7]
    f16 *y;   // [4, 3, 32, 32]
};
using Reduction = Sum;

// What a block stages in shared memory: nothing.
struct Tile {
    const Staged *at;
    Index origin;   // position in the tensor of what stands first
};

// Outputs that a block collects in shared memory: none.
struct Collection {
    Collected *at;
    Index origin;   // position in the tensor of what stands first
};

// What the windows of a thread's outputs cover.
struct Windows {
    float x0[7][7];
};

__device__ __forceinline__ void load_windows(const Tensors &t, const Tile &tile, Index outer, Index down, Index along, Index tap, Windows &in)
{
    (void)tile, (void)tap;
    [[maybe_unused]] const Index i0 = outer / 3, i1 = outer % 3;
    UNROLL for (int p = 0; p < 7; ++p)
        UNROLL for (int q = 0; q < 7; ++q)
            in.x0[p][q] = (p >= 3 || (down + p) - 3 >= 0) && (p <= 3 || (down + p) - 3 < 32) && (q >= 3 || (along + q) - 3 >= 0) && (q <= 3 || (along + q) - 3 < 32) ? load(t.x, i0 * 3072 + i1 * 1024 + (down + p) * 32 + (along + q) - 99) : 0.0f;
}

// Of the thread's output a, at one point of its window.
__device__ __forceinline__ A term(const Tensors &t, Index outer, Index down, Index along, Index tap, int a, int r, int s, const Windows &in)
{
    (void)down, (void)along, (void)tap;
    [[maybe_unused]] const Index i0 = outer / 3, i1 = outer % 3;
    return op_mul(in.x0[a + r][s], load(t.w, i1 * 49 + r * 7 + s));
}

__device__ __forceinline__ void finish(const Tensors &t, const Collection &out, Index outer, Index down, Index along, A total)
{
    (void)out;
    [[maybe_unused]] const Index i0 = outer / 3, i1 = outer % 3;
    const float y = total;
    store(t.y, i0 * 3072 + i1 * 1024 + down * 32 + along, y);
}
// </rollerc>
// templates/window.cu:96
constexpr Index DOWN_BLOCKS = (DOWN + TD * HEIGHT - 1) / (TD * HEIGHT);   // blocks from top to bottom
constexpr Index ALONG_BLOCKS = (ALONG + TA - 1) / TA;                     // blocks along a line
constexpr bool WHOLE = DOWN % HEIGHT == 0;                                // no thread's outputs reach past the bottom

// Adds the terms that lie in row p of what the windows cover: output a meets it with tap r where a * ROW_STEP + r *
// ROW_TAP_STEP is p. Rows from the top down, so that few of them are needed at a time.
__device__ __forceinline__ void add_row(const Tensors &t, Index outer, Index down, Index along, int tap, int p,
                                        const Windows &in, A (&acc)[HEIGHT])
{
    A row = Reduction::template identity<A>();
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
        finish(t, out, outer, down + a, along, acc[a]);
}

extern "C" __global__ void __launch_bounds__(THREADS) a_k0(const f16 *__restrict__ x, const f16 *__restrict__ w, f16 *__restrict__ y)
{
    const Tensors t = {x, w, y};
    const Index block = (Index)blockIdx.x;
    const int thread = (int)threadIdx.x;
    const Index first_outer = block / (DOWN_BLOCKS * ALONG_BLOCKS) * TO;
    const Index first_down = block / ALONG_BLOCKS % DOWN_BLOCKS * (TD * HEIGHT);
    const Index outer = first_outer + thread / (TD * TA);
    const Index down = first_down + thread / TA % TD * HEIGHT;
    const Index along = block % ALONG_BLOCKS * TA + thread % TA;

    Tile tile = {};
    Collection out = {};
    if (outer < OUTER && down < DOWN && along < ALONG)
        make_outputs(t, tile, out, outer, down, along);
}
}   // namespace a_k0_scope

#ifndef __CUDACC_RTC__
extern "C" size_t a_workspace(void) { return 0; }

// x[4, 3, 32, 32] : f16, w[3, 7, 7] : f16, y[4, 3, 32, 32] : f16
extern "C" int a_launch(const void *x, const void *w, void *y, void *workspace, void *stream)
{
    if (((size_t)x | (size_t)w | (size_t)y) % 16 != 0)
        return (int)cudaErrorInvalidValue;
    (void)workspace;
    void *args[] = {&x, &w, &y};
    return (int)cudaLaunchKernel(a_k0_scope::a_k0, dim3(128, 1, 1), dim3(96, 1, 1),
        args, 0, (cudaStream_t)stream);
}
#endif

#ifdef ROLLERC_MAIN   // nvcc -arch=sm_90a -DROLLERC_MAIN a.cu && ./a.out
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

inline bool inside(long long index, long long size) { return index >= 0 && index < size; }

// Any order of numbers that goes everywhere.
inline long long scattered(long long i) { return static_cast<long long>((i + 1) * 0x9e3779b97f4a7c15ull >> 20); }

// A tensor here and on the device: multiples of 1/64 from -2 to 2; an output holds nothing yet.
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

// Its last value is kept: the loops around it ask for the same one again and again.
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

// Some elements, or all within two seconds. `share`: of the largest value, that a real may be off by; 0: one in a hundred
// may be another one, where the rounding of what was compared decides.
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
    Tensor<f16> x(12288, 12288, true);
    Tensor<f16> w(147, 147, true);
    Tensor<f16> y_found(12288, 12288, false);
    auto y = keep([&](long long n, long long c, long long h, long long v) -> double {
        double total = 0;
        for (long long r = 0; r < 7; r++)
        for (long long s = 0; s < 7; s++)
            total = total + ((inside(h + r - 3, 32) && inside(v + s - 3, 32) ? x(n * 3072 + c * 1024 + h * 32 + v + r * 32 + s - 99) : (double)0) * w(c * 49 + r * 7 + s));
        return rounded<f16>(total);
    });
    void *workspace = nullptr;
    cudaMalloc(&workspace, a_workspace() + 1);
    const auto run = [&] { return a_launch(x.there, w.there, y_found.there, workspace, nullptr); };
    if (!ran(run()))
        return 1;
    bool right = true;
    right &= check("y", y_found, 12288, 3e-3, [&](long long element) { return y(element / 3072, element / 1024 % 3, element / 32 % 32, element % 32); });
    time_it("a", run, 49446, 2408448);
    return right ? 0 : 1;
}
#endif   // ROLLERC_MAIN
