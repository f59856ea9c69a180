// Reduction: each output combines REDUCED terms; an epilogue computes the output from the total.
//
// A block computes TS groups of OUTS contiguous outputs; TR threads share the terms of each group:
//
//   ROW: adjacent threads along the terms               else: along the outputs
//
//              terms ->                                             terms ->
//   outputs     0    1    2  …  TR-1 |  0    1  …       outputs     0    TS   2TS  … |  0    TS  …
//      |       TR  TR+1       …                            |        1  TS+1        …
//      v      2TR  …                                       v        2  …
//
// A thread loads TERMS contiguous terms of OUTS outputs at once (one of the two is 1), DEPTH such vectors in a step,
// and has ROUNDS steps in flight. At the end its DEPTH partial results are combined, then those of the threads: across
// LANES lanes by shuffles, the remaining PARTS through shared memory. The order is fixed by these constants.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // x[1000, 4096]
    float *out0;        // y[1000]
};
#define PARAMETERS const float *__restrict__ in0, float *__restrict__ out0
#define TENSORS {in0, out0}
constexpr Region PARTIAL = {0, 4096};   // of shared memory, in bytes
constexpr int SHARED_BYTES = 4096;   // of a block
using Reduction = Sum;
using A = float;                    // the type of accumulators
constexpr Index OUTPUTS = 1000, REDUCED = 4096;
constexpr bool ROW = true;          // adjacent threads along the terms
constexpr int THREADS = 256;
constexpr int TS = 1, TR = 256;     // groups of outputs, threads of a group
constexpr int OUTS = 1, TERMS = 4;  // of a thread at once
constexpr int VECTOR = 4;           // OUTS * TERMS
constexpr int DEPTH = 4;            // vectors of a step
constexpr bool AGAIN = true;        // threads that lack a vector load the last one again
constexpr bool LATE = false;        // terms load elements where they use them
constexpr int ROUNDS = 2;           // steps in flight; 1: as many as compilers choose
constexpr bool EARLY = false, CUT = false;   // the last part has fewer terms, and a part of a vector
__device__ __forceinline__ Index end_of(Index) { return REDUCED; }

// What one vector of terms loads.
struct Inputs {
    float x0[VECTOR];
};

__device__ __forceinline__ void load_terms(const Tensors &t, Index output, Index reduced, Inputs &in)
{
    const Index i0 = output;
    const Index i1 = reduced;
    load_vector<VECTOR>(t.in0, i0 * 4096 + i1, in.x0);
}

// Element e of the vector of terms that starts at (output, reduced).
__device__ __forceinline__ A term(const Tensors &, Index, Index, int e, const Inputs &in)
{
    return in.x0[e];
}

// A term that belongs to no whole vector.
__device__ __forceinline__ A single(const Tensors &t, Index output, Index reduced)
{
    const Index i0 = output;
    const Index i1 = reduced;
    return load(t.in0, i0 * 4096 + i1);
}

// What the epilogue loads besides the total.
constexpr bool BESIDE = false;   // anything
struct Beside {};
__device__ __forceinline__ Beside read_beside(const Tensors &, Index) { return {}; }
__device__ __forceinline__ void finish(const Tensors &t, Index output, A total, const Beside &)
{
    const Index i0 = output;
    const float v0 = total;
    store(t.out0, i0, v0);
}
// </rollerc>

constexpr Index CHUNK = (Index)TR * TERMS;   // terms of a group at once
constexpr Index STEP = DEPTH * CHUNK;        // of a step
constexpr Index STEPS = REDUCED / STEP, LEFT = REDUCED % STEP;   // whole steps, and the terms behind them
constexpr bool ENDS = EARLY && !AGAIN;       // every part walks to its own end,
constexpr bool OPEN = ENDS || ROUNDS == 1;   // and compilers choose how many steps are in flight

// The largest power of two that divides TR and a warp, so that a group of lanes is of one output.
constexpr int LANES = ROW ? (TR | WARP) & -(TR | WARP) : 1;
constexpr int PARTS = TR / LANES;   // of a group, combined through shared memory,
constexpr int TOGETHER = 8;         // so many at a time

static_assert(TS * TR <= THREADS && THREADS % WARP == 0, "whole warps, some of whose threads may idle");
static_assert((OUTS == 1 || TERMS == 1) && OUTS * TERMS == VECTOR, "a vector lies along one side");
static_assert(OUTPUTS % OUTS == 0 && REDUCED % TERMS == 0, "no vector reaches past the end");

// Vectors of a thread that begin at r, r + CHUNK, … < end. Of MOST that any thread has, all threads have the first CERTAIN.
template <int CERTAIN, int MOST>
__device__ __forceinline__ void accumulate(const Tensors &t, Index output, Index r, Index end, A (&acc)[DEPTH][OUTS])
{
    const auto exists = [&](int d) { return d < CERTAIN || r + d * CHUNK < end; };
    const auto first = [&](int d) { return d < CERTAIN ? r + d * CHUNK : op_min<Index>(r + d * CHUNK, end - TERMS); };

    // ---- load ----
    Inputs in[MOST > 0 ? MOST : 1];
    UNROLL for (int d = 0; d < MOST; ++d)
        if (AGAIN || exists(d))
            load_terms(t, output, first(d), in[d]);

    // ---- compute: a branch that loads a term and adds it waits ----
    UNROLL for (int d = 0; d < MOST; ++d)
        if (AGAIN || LATE || exists(d))
            UNROLL for (int e = 0; e < VECTOR; ++e) {
                A &sum = acc[d][e % OUTS];
                const A more = Reduction::combine(sum, term(t, output, first(d), e, in[d]));
                sum = exists(d) ? more : sum;
            }
}

extern "C" __global__ void __launch_bounds__(BOUNDS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const int thread = (int)threadIdx.x;
    const int ts = ROW ? thread / TR : thread % TS;
    const int tr = ROW ? thread % TR : thread / TS;
    const bool grouped = thread < TS * TR;   // the last warp may have spare threads
    const Index output = ((Index)blockIdx.x * TS + ts) * OUTS;
    const bool active = grouped && output < OUTPUTS, stores = active && tr == 0;

    // ---- load and compute: this thread's part of the terms, behind what the epilogue would wait for ----
    [[maybe_unused]] Beside beside = {};
    if (BESIDE && OUTS == 1 && stores)   // finding it for several outputs takes longer than that
        beside = read_beside(t, output);
    A acc[DEPTH][OUTS];
    UNROLL for (int d = 0; d < DEPTH; ++d)
        UNROLL for (int o = 0; o < OUTS; ++o)
            acc[d][o] = Reduction::template identity<A>();
    if (active) {
        Index r = (Index)tr * TERMS;
        if (AGAIN && EARLY && end_of(output) < REDUCED) {
            const Index terms = end_of(output), end = terms / TERMS * TERMS;   // of whole vectors
#pragma unroll 1
            while (r < end + tr * TERMS)
                UNROLL for (int step = 0; step < ROUNDS; ++step, r += STEP)
                    accumulate<0, DEPTH>(t, output, r, end, acc);
            if (CUT)
#pragma unroll 1
                for (Index k = end + tr; k < terms; k += TR)
                    acc[0][0] = Reduction::combine(acc[0][0], single(t, output, k));
        } else {
            const Index end = ENDS ? end_of(output) : REDUCED;
            if constexpr (OPEN) {
                const Index stop = ENDS ? end - (DEPTH - 1) * CHUNK : tr * TERMS + STEPS * STEP;
                for (; r < stop; r += STEP)
                    accumulate<DEPTH, DEPTH>(t, output, r, end, acc);
            } else {
#pragma unroll 1
                for (Index round = 0; round < STEPS / ROUNDS; ++round)
                    UNROLL for (int step = 0; step < ROUNDS; ++step, r += STEP)
                        accumulate<DEPTH, DEPTH>(t, output, r, end, acc);
                UNROLL for (int step = 0; step < STEPS % ROUNDS; ++step, r += STEP)
                    accumulate<DEPTH, DEPTH>(t, output, r, end, acc);
            }
            if (ENDS ? r < end : LEFT != 0)
                accumulate<ENDS ? 0 : LEFT / CHUNK, ENDS ? DEPTH : (LEFT + CHUNK - 1) / CHUNK>(t, output, r, end, acc);
        }
    }

    // ---- reduce: within the thread, the warp, the block ----
    A total[OUTS];
    UNROLL for (int o = 0; o < OUTS; ++o) {
        total[o] = acc[0][o];
        UNROLL for (int d = 1; d < DEPTH; ++d)
            total[o] = Reduction::combine(total[o], acc[d][o]);
        total[o] = warp_reduce<Reduction>(total[o], LANES);
    }
    if (PARTS != 1) {
        SHARED(PARTIAL, A, part, [PARTS * OUTS * TS]);
        const int p = tr / LANES;
        const int first = ROW ? ts * PARTS : ts, next = ROW ? 1 : OUTS * TS;   // adjacent lanes have adjacent parts: no bank conflicts
        const bool holds = grouped && tr % LANES == 0;
        UNROLL for (int o = 0; o < OUTS; ++o)
            if (holds)
                part[first + p * next + o * TS] = total[o];
        UNROLL for (int parts = PARTS; parts > 1;) {   // each of a few takes several others, whose loads are under way together
            const int left = (parts + TOGETHER - 1) / TOGETHER;
            block_sync();
            if (holds && p < left)
                UNROLL for (int o = 0; o < OUTS; ++o) {
                    UNROLL for (int other = 1; other < TOGETHER && other * left < parts; ++other)
                        if ((other + 1) * left <= parts || p + other * left < parts)
                            total[o] = Reduction::combine(total[o], part[first + (p + other * left) * next + o * TS]);
                    if (left > 1)
                        part[first + p * next + o * TS] = total[o];
                }
            parts = left;
        }
    }

    // ---- store ----
    if (stores)
        UNROLL for (int o = 0; o < OUTS; ++o)
            finish(t, output + o, total[o], BESIDE && OUTS > 1 ? read_beside(t, output + o) : beside);
}
}   // namespace KERNEL
