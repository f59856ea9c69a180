// Pointwise kernel: every output point depends on one point of each input.
//
// A thread computes VECTORS vectors of VECTOR contiguous points, one block's width apart, so accesses of a
// warp are coalesced and several are in flight:
//
//   thread      0        1        2       …     THREADS-1 |   0    …
//   points   [VECTOR] [VECTOR] [VECTOR]   …     [VECTOR]  | [VECTOR]        <- VECTORS times
//
// Of the points beyond the last whole block of this kind each thread computes one vector, so none waits for
// another. A partial last vector is read and written point by point.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // x[1000003]
    float *out0;        // y[1000003]
};
#define PARAMETERS const float *__restrict__ in0, float *__restrict__ out0
#define TENSORS {in0, out0}
constexpr Index POINTS = 1000003;
constexpr int THREADS = 256;
constexpr int VECTOR = 4;   // contiguous points of an access
constexpr int VECTORS = 2;   // vectors of a thread, one block apart

// What one vector of points loads, and what it computes.
struct Inputs {
    float x0[VECTOR];
};
struct Outputs {
    float y0[VECTOR];
};

__device__ __forceinline__ void load_points(const Tensors &t, Index point, Inputs &in)
{
    load_vector<VECTOR>(t.in0, point, in.x0);
}

// Inputs that many points read hit a cache: they are loaded when they are used, which saves registers.
__device__ __forceinline__ void load_reused(const Tensors &, Index, Inputs &) {}

__device__ __forceinline__ void load_point(const Tensors &t, Index point, int e, Inputs &in)
{
    in.x0[e] = load(t.in0, point);
}

__device__ __forceinline__ void compute(const Tensors &, Index, int e, const Inputs &in, Outputs &out)
{
    out.y0[e] = op_relu(in.x0[e]);
}

__device__ __forceinline__ void store_points(const Tensors &t, Index point, const Outputs &out)
{
    store_vector<VECTOR>(t.out0, point, out.y0);
}

__device__ __forceinline__ void store_point(const Tensors &t, Index point, int e, const Outputs &out)
{
    store(t.out0, point, out.y0[e]);
}

// All lanes of a warp call it: together they pack words of one-bit outputs.
__device__ __forceinline__ void store_words(const Tensors &, Index, const Outputs &) {}
// </rollerc>

extern "C" __global__ void __launch_bounds__(BOUNDS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const Index block = (Index)blockIdx.x, thread = (Index)threadIdx.x;
    constexpr Index STEP = THREADS * VECTOR, BLOCK = STEP * VECTORS;   // points of a vector of each thread; of a block
    constexpr Index WHOLE = POINTS / BLOCK;                            // blocks

    if (POINTS % BLOCK == 0 || block < WHOLE) {   // all loads are in flight before the first is used
        const Index first = block * BLOCK + thread * VECTOR;
        Inputs in[VECTORS];
        UNROLL for (int u = 0; u < VECTORS; ++u)
            load_points(t, first + u * STEP, in[u]);
        UNROLL for (int u = 0; u < VECTORS; ++u) {
            const Index point = first + u * STEP;
            Outputs out;
            load_reused(t, point, in[u]);
            UNROLL for (int e = 0; e < VECTOR; ++e)
                compute(t, point + e, e, in[u], out);
            store_points(t, point, out);
            store_words(t, point, out);
        }
        return;
    }

    const Index point = WHOLE * BLOCK + (block - WHOLE) * STEP + thread * VECTOR;
    Inputs in;
    Outputs out = {};
    if (point + VECTOR <= POINTS) {
        load_points(t, point, in);
        load_reused(t, point, in);
        UNROLL for (int e = 0; e < VECTOR; ++e)
            compute(t, point + e, e, in, out);
        store_points(t, point, out);
    } else if (point < POINTS) {
        UNROLL for (int e = 0; e < POINTS % VECTOR; ++e) {
            load_point(t, point + e, e, in);
            compute(t, point + e, e, in, out);
            store_point(t, point + e, e, out);
        }
    }
    store_words(t, point, out);
}
}   // namespace KERNEL
