// Sliding windows: every output combines the TAPS terms under its window; an epilogue makes the final value of the total.
//
// A block makes TO lines of TI * TILE outputs along the innermost axis. A thread makes TILE outputs of one line, TI apart,
// so that its loads are independent and neighbouring threads read neighbouring windows. Windows overlap: the first touch
// brings an element into L1, the others find it there. Max of 3, stride 2, TI = 2, TILE = 2:
//
//   input      0   1   2   3   4   5   6   7   8
//   output 0  [    0    ]                            thread 0
//   output 1          [    1    ]                    thread 1
//   output 2                  [    2    ]            thread 0
//   output 3                          [    3    ]    thread 1
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
using Reduction = Max;
using A = float;                                // what totals are accumulated in
constexpr Index OUTER = 64 * 56, INNER = 56;    // lines of outputs, outputs of a line
constexpr int TAPS = 9;                         // points of a window
constexpr int THREADS = 224;
constexpr int TO = 8, TI = 28;                  // threads of a block: lines, along a line
constexpr int TILE = 2;                         // outputs of a thread, TI apart

__device__ __forceinline__ A term(const Tensors &t, Index outer, Index inner, Index tap)
{
    const Index i0 = outer / 56, i1 = outer % 56;
    const Index i3 = tap / 3, i4 = tap % 3;
    return load(t.in0, i0 * 12769 + i1 * 226 + i3 * 113 + inner * 2 + i4);
}

__device__ __forceinline__ void finish(const Tensors &t, Index outer, Index inner, A total)
{
    const Index i0 = outer / 56, i1 = outer % 56;
    const float v0 = total;
    store(t.out0, i0 * 3136 + i1 * 56 + inner, v0);
}
// </rollerc>

constexpr Index LINE_BLOCKS = (INNER + TI * TILE - 1) / (TI * TILE);   // blocks along a line
constexpr bool WHOLE = INNER % (TI * TILE) == 0;                       // no thread's outputs reach past the line's end
constexpr int UNROLLED_TAPS = TAPS <= 64 && TAPS * TILE <= 256 ? TAPS : 1;   // else code grows beyond what pays

static_assert(TO * TI == THREADS, "every thread has its place");
static_assert(TILE >= 1 && TAPS >= 1, "something to do");

extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const Index block = (Index)blockIdx.x;
    const int thread = (int)threadIdx.x;
    const Index outer = block / LINE_BLOCKS * TO + thread / TI;
    const Index inner = block % LINE_BLOCKS * (TI * TILE) + thread % TI;
    if (outer >= OUTER)
        return;

    // ---- load and compute ----
    A acc[TILE];
    UNROLL for (int j = 0; j < TILE; ++j)
        acc[j] = Reduction::template identity<A>();
#pragma unroll UNROLLED_TAPS
    for (int tap = 0; tap < TAPS; ++tap)
        UNROLL for (int j = 0; j < TILE; ++j)
            if (WHOLE || inner + j * TI < INNER)
                acc[j] = Reduction::combine(acc[j], term(t, outer, inner + j * TI, tap));

    // ---- store ----
    UNROLL for (int j = 0; j < TILE; ++j)
        if (WHOLE || inner + j * TI < INNER)
            finish(t, outer, inner + j * TI, acc[j]);
}
}   // namespace KERNEL
