// Row kernel: reductions along rows, with pointwise steps before, between and after them, in one pass over memory.
//
// A group of GROUP threads owns a row and keeps it in registers: VECTORS vectors of VECTOR neighbouring elements each,
// one group's width apart, so that the accesses of a warp are contiguous:
//
//   lane        0        1       …    GROUP-1  |    0        1      …
//   elements [VECTOR] [VECTOR]   …   [VECTOR]  | [VECTOR] [VECTOR]  …        <- VECTORS times, the last one ragged
//
// Groups within a warp reduce by shuffles, larger ones through shared memory as well. A block holds ROWS_OF_BLOCK groups.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// The result of a reduction over what the threads of a row's group hold, known to all of them.
template <class Reduction, class T> __device__ T reduce_row(T value);

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // x[1000, 512]
    float *out0;        // y[1000, 512]
};
#define PARAMETERS const float *__restrict__ in0, float *__restrict__ out0
#define TENSORS {in0, out0}
constexpr Index ROWS = 1000, COLUMNS = 512;
constexpr int GROUP = 32;           // threads of a row
constexpr int ROWS_OF_BLOCK = 4;    // groups
constexpr int VECTOR = 4;           // neighbouring elements that a thread reads and writes at once
constexpr int VECTORS = 4;          // of a thread

// What one vector of a row's elements reads.
struct Inputs {
    float x0[VECTOR];
};

__device__ __forceinline__ void load_elements(const Tensors &t, Index row, Index column, Inputs &in)
{
    load_vector<VECTOR>(t.in0, row * 512 + column, in.x0);
}

// One row. Vector k of this thread starts at `column + k * STEP`; `count` of them lie inside.
__device__ __forceinline__ void compute(const Tensors &t, Index row, Index column, bool stores,
                                        const Inputs (&inputs)[VECTORS])
{
    constexpr Index STEP = GROUP * VECTOR;
    float total0 = Sum::identity<float>();
    UNROLL for (int k = 0; k < VECTORS; ++k)
        if (column + k * STEP < COLUMNS)
            UNROLL for (int e = 0; e < VECTOR; ++e)
                total0 = Sum::combine(total0, inputs[k].x0[e]);
    const float v0 = reduce_row<Sum>(total0);
    UNROLL for (int k = 0; k < VECTORS; ++k)
        if (stores && column + k * STEP < COLUMNS) {
            float y0[VECTOR];
            UNROLL for (int e = 0; e < VECTOR; ++e)
                y0[e] = op_sub(inputs[k].x0[e], v0);
            store_vector<VECTOR>(t.out0, row * 512 + column + k * STEP, y0);
        }
}
// </rollerc>

constexpr int THREADS = GROUP * ROWS_OF_BLOCK;
constexpr int WARPS_OF_GROUP = (GROUP + WARP - 1) / WARP;
static_assert((GROUP & (GROUP - 1)) == 0, "a group is a power of two of threads");
static_assert(GROUP <= WARP || ROWS_OF_BLOCK == 1, "a group of several warps is a block");
static_assert(COLUMNS % VECTOR == 0, "rows are whole vectors");

template <class Reduction, class T> __device__ T reduce_row(T value)
{
    value = warp_reduce<Reduction>(value, GROUP < WARP ? GROUP : WARP);
    if (WARPS_OF_GROUP == 1)
        return value;
    SHARED(0, T, partial, [WARPS_OF_GROUP]);   // one of each warp
    block_sync();                              // the reduction before has been read
    if (lane_id() == 0)
        partial[(int)threadIdx.x / WARP] = value;
    block_sync();
    T total = partial[0];
    UNROLL for (int warp = 1; warp < WARPS_OF_GROUP; ++warp)
        total = Reduction::combine(total, partial[warp]);
    return total;
}

extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const int lane = (int)threadIdx.x % GROUP;
    const Index own_row = (Index)blockIdx.x * ROWS_OF_BLOCK + (Index)threadIdx.x / GROUP;
    const bool active = own_row < ROWS;   // else the group only takes part in barriers and shuffles
    const Index row = active ? own_row : ROWS - 1;
    const Index column = lane * VECTOR;

    Inputs inputs[VECTORS] = {};
    UNROLL for (int k = 0; k < VECTORS; ++k)
        if (active && column + k * GROUP * VECTOR < COLUMNS)
            load_elements(t, row, column + k * GROUP * VECTOR, inputs[k]);
    compute(t, row, column, active, inputs);
}
}   // namespace KERNEL
