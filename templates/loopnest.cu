// Generic loop nest: each thread computes one output point, or one 32-bit word of one-bit outputs.
//
// Reductions are plain loops of one thread. It is slow and simple on purpose: this kernel compiles every
// legal program.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // x[1000, 32]
    float *out0;        // y[1000]
};
#define PARAMETERS const float *__restrict__ in0, float *__restrict__ out0
#define TENSORS {in0, out0}
constexpr Index POINTS = 1000;   // outputs
constexpr int THREADS = 256;
constexpr int POINTS_PER_THREAD = 1;   // 32: a thread packs whole words of one-bit outputs
constexpr int BIT_OUTPUTS = 0;
constexpr int TURNS = 1;   // iterations of a thread, where the grid has too few threads for all outputs
constexpr long long STRIDE = 1024;   // threads of the grid

// Computes one output point; one-bit results go to `bits`.
__device__ __forceinline__ void compute(const Tensors &t, Index point, bool *)
{
    float sum0 = Sum::identity<float>();
    for (Index i1 = 0; i1 < 32; ++i1)
        sum0 = Sum::combine(sum0, load(t.in0, point * 32 + i1));
    store(t.out0, point, sum0);
}

__device__ __forceinline__ void store_words(const Tensors &t, Index word, const unsigned *words)
{
}
// </rollerc>

static_assert(POINTS_PER_THREAD == 1 || POINTS_PER_THREAD == 32, "a word of one-bit outputs belongs to one thread");

// The points of a thread of a larger grid.
__device__ __forceinline__ void make_points(const Tensors &t, Index thread)
{
    const Index first = thread * POINTS_PER_THREAD;
    bool bits[BIT_OUTPUTS + 1] = {};
    unsigned words[BIT_OUTPUTS + 1] = {};
#pragma unroll 1
    for (int i = 0; i < POINTS_PER_THREAD && first + i < POINTS; ++i) {
        compute(t, first + i, bits);
#pragma unroll
        for (int output = 0; output < BIT_OUTPUTS; ++output)
            words[output] |= (unsigned)bits[output] << i;
    }
    store_words(t, thread, words);
}

// Iterates from the end, so that the last block computes the last points.
__device__ __forceinline__ void make_others(const Tensors &t, Index thread)
{
    constexpr long long WANTED = ((long long)POINTS + POINTS_PER_THREAD - 1) / POINTS_PER_THREAD;
    constexpr long long END = (WANTED + THREADS - 1) / THREADS * THREADS;
#pragma unroll 1
    for (int turn = 1; turn < TURNS; turn = next_turn(turn, TURNS)) {
        const long long other = END - turn * STRIDE + thread;
        if (other >= STRIDE && other < WANTED)
            make_points(t, (Index)other);
    }
}

extern "C" __global__ void __launch_bounds__(BOUNDS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const Index thread = (Index)blockIdx.x * THREADS + (Index)threadIdx.x;
    const Index first = thread * POINTS_PER_THREAD;
    if (first >= POINTS)
        return;

    bool bits[BIT_OUTPUTS + 1] = {};
    unsigned words[BIT_OUTPUTS + 1] = {};
#pragma unroll 1
    for (int i = 0; i < POINTS_PER_THREAD && first + i < POINTS; ++i) {
        compute(t, first + i, bits);
#pragma unroll
        for (int output = 0; output < BIT_OUTPUTS; ++output)
            words[output] |= (unsigned)bits[output] << i;
    }
    store_words(t, thread, words);
    if (TURNS > 1)
        make_others(t, thread);
}
}   // namespace KERNEL
