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
constexpr bool LATE = false;        // terms load elements where they use them
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

__device__ __forceinline__ void finish(const Tensors &t, Index output, A total)
{
    const Index i0 = output;
    const float v0 = total;
    store(t.out0, i0, v0);
}
// </rollerc>

constexpr Index CHUNK = (Index)TR * TERMS;   // terms of a group at once
constexpr Index STEP = DEPTH * CHUNK;        // of a step
constexpr Index STEPS = REDUCED / STEP, LEFT = REDUCED % STEP;   // whole steps, and the terms behind them
constexpr int ELEMENTS = DEPTH * VECTOR;      // of a step
constexpr int MOST = VECTOR > 1 ? 32 : 16;    // in flight
constexpr bool OPEN = EARLY || (STEPS > 1 && ELEMENTS > 16);   // compilers choose how many steps are in flight
constexpr int ROUNDS = ELEMENTS > 16 ? 1 : MOST / ELEMENTS;    // else so many

// The largest power of two that divides TR and a warp, so that a group of lanes is of one output.
constexpr int LANES = ROW ? (TR | WARP) & -(TR | WARP) : 1;
constexpr int PARTS = TR / LANES;   // of a group, combined through shared memory,
constexpr int TOGETHER = 8;         // so many at a time

static_assert(TS * TR <= THREADS && THREADS % WARP == 0, "whole warps, some of whose threads may idle");
static_assert((OUTS == 1 || TERMS == 1) && OUTS * TERMS == VECTOR, "a vector lies along one side");
static_assert(OUTPUTS % OUTS == 0 && REDUCED % TERMS == 0, "no vector reaches past the end");

// Terms r, r + CHUNK, … of a thread, up to `end`; all of them exist if WHOLE. Unless OPEN, most vectors after the whole steps exist
// for every thread and need no guard: compilers give guarded loads one register, and wait between them.
template <bool WHOLE>
__device__ __forceinline__ void accumulate(const Tensors &t, Index output, Index r, Index end, A (&acc)[DEPTH][OUTS])
{
    const Index last = end - (TERMS - 1);   // of a whole vector
    const auto exists = [&](int d) {
        return WHOLE || (!OPEN && (d + 1) * CHUNK <= LEFT) || ((OPEN || d * CHUNK < LEFT) && r + d * CHUNK < last);
    };

    // ---- load ----
    Inputs in[DEPTH];
    UNROLL for (int d = 0; d < DEPTH; ++d)
        if (exists(d))
            load_terms(t, output, r + d * CHUNK, in[d]);

    // ---- compute: a branch that loads a term and adds it waits, so past the end the last term is loaded again ----
    A late[DEPTH][VECTOR];
    UNROLL for (int d = 0; d < DEPTH && LATE && !WHOLE; ++d)
        UNROLL for (int e = 0; e < VECTOR; ++e)
            late[d][e] = term(t, output, op_min<Index>(r + d * CHUNK, end - TERMS), e, in[d]);
    UNROLL for (int d = 0; d < DEPTH; ++d)
        if (exists(d))
            UNROLL for (int e = 0; e < VECTOR; ++e) {
                A &sum = acc[d][e % OUTS];
                sum = Reduction::combine(sum, LATE && !WHOLE ? late[d][e] : term(t, output, r + d * CHUNK, e, in[d]));
            }
        else if (CUT)
            for (Index k = r + d * CHUNK; k < end; ++k)
                acc[d][0] = Reduction::combine(acc[d][0], single(t, output, k));
}

extern "C" __global__ void __launch_bounds__(BOUNDS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const int thread = (int)threadIdx.x;
    const int ts = ROW ? thread / TR : thread % TS;
    const int tr = ROW ? thread % TR : thread / TS;
    const bool grouped = thread < TS * TR;   // the last warp may have spare threads
    const Index output = ((Index)blockIdx.x * TS + ts) * OUTS;
    const bool active = grouped && output < OUTPUTS;

    // ---- load and compute: this thread's part of the terms ----
    A acc[DEPTH][OUTS];
    UNROLL for (int d = 0; d < DEPTH; ++d)
        UNROLL for (int o = 0; o < OUTS; ++o)
            acc[d][o] = Reduction::template identity<A>();
    if (active) {
        const Index end = end_of(output);
        Index r = (Index)tr * TERMS;
        if constexpr (OPEN) {
            for (; r + (DEPTH - 1) * CHUNK + (TERMS - 1) < end; r += STEP)
                accumulate<true>(t, output, r, end, acc);
        } else {
#pragma unroll 1
            for (Index round = 0; round < STEPS / ROUNDS; ++round)
                UNROLL for (int step = 0; step < ROUNDS; ++step, r += STEP)
                    accumulate<true>(t, output, r, end, acc);
            UNROLL for (int step = 0; step < STEPS % ROUNDS; ++step, r += STEP)
                accumulate<true>(t, output, r, end, acc);
        }
        if (EARLY ? r < end : LEFT != 0)
            accumulate<false>(t, output, r, end, acc);
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
        for (int parts = PARTS; parts > 1;) {   // each of a few takes several others, whose loads are under way together
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
    if (active && tr == 0)
        UNROLL for (int o = 0; o < OUTS; ++o)
            finish(t, output + o, total[o]);
}
}   // namespace KERNEL
