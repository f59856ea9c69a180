// Rows of any shape, kept on chip: reductions along a row with pointwise steps before, between and after them, while what is
// read again stays in the shared memory of the CLUSTER blocks that own the row. Memory is asked for every element once.
//
//   row     [ SHARE of rank 0 | SHARE of rank 1 | … ]           each block copies its share, then walks it once for each
//   rank 0   [VECTOR] [VECTOR] …   THREADS of them at a time    reduction and once for the results
//
// A thread reads only what it has copied itself. Results of a reduction pass from warp to block to cluster, always combined in
// the same order.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// A reduction over all threads of all blocks of the row, in three steps; every reduction of a kernel has its own slot.
template <class Reduction, class T> __device__ void reduce_block(T value, int slot);
__device__ void row_sync();
template <class Reduction, class T> __device__ T row_total(int slot);

// A vector on its way from memory to shared memory.
template <int N, class T, class Index> __device__ void keep_vector(T *kept, const T *from, Index index);

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // x[100, 4096]
    float *out0;        // y[100, 4096]
};
#define PARAMETERS const float *__restrict__ in0, float *__restrict__ out0
#define TENSORS {in0, out0}
constexpr int SHARED_BYTES = 8272;   // of a block
constexpr Index COLUMNS = 4096;
constexpr Index SHARE = 2048;   // columns of a block
constexpr int CLUSTER = 2;      // blocks of a row
constexpr int THREADS = 256;
constexpr int VECTOR = 4;       // neighbouring elements that a thread reads and writes at once
constexpr int SLOTS = 1;        // reductions
constexpr int KEPT = 80;        // bytes of shared memory before what is kept
static_assert(KEPT + SHARE * (int)sizeof(float) <= SHARED_BYTES, "what is kept has room");

// Begins the copies of the vector at `column`, which is the block's at `own`.
__device__ __forceinline__ void keep(const Tensors &t, Index row, Index column, Index own)
{
    keep_vector<VECTOR>((float *)(rollerc_shared + KEPT) + own, t.in0, row * 4096 + column);
}

// Asks L2 for what the last walk alone reads.
__device__ __forceinline__ void announce(const Tensors &, Index, Index, Index) {}

// One row, step by step: this block's columns are [first, first + count).
__device__ __forceinline__ void compute(const Tensors &t, Index row, Index first, Index count)
{
    constexpr Index STEP = THREADS * VECTOR;
    float total0 = Sum::identity<float>();
    for (Index own = (Index)threadIdx.x * VECTOR; own < count; own += STEP) {
        float x0[VECTOR];
        load_vector<VECTOR>((const float *)(rollerc_shared + KEPT), own, x0);
        UNROLL for (int e = 0; e < VECTOR; ++e)
            total0 = Sum::combine(total0, x0[e]);
    }
    reduce_block<Sum>(total0, 0);
    row_sync();
    const float v0 = row_total<Sum, float>(0);
    cluster_arrive();
    for (Index own = (Index)threadIdx.x * VECTOR; own < count; own += STEP) {
        float x0[VECTOR], y0[VECTOR];
        load_vector<VECTOR>((const float *)(rollerc_shared + KEPT), own, x0);
        UNROLL for (int e = 0; e < VECTOR; ++e)
            y0[e] = op_sub(x0[e], v0);
        store_vector<VECTOR>(t.out0, row * 4096 + first + own, y0);
    }
}
// </rollerc>

constexpr int SLOT_BYTES = 8;                                       // of any result
constexpr int WARPS = THREADS / WARP;
static_assert(THREADS % WARP == 0, "whole warps");
static_assert(KEPT >= (SLOTS + WARPS) * SLOT_BYTES && KEPT % 16 == 0, "results come before what is kept");
static_assert(KEPT <= SHARED_BYTES, "results have room in shared memory");
static_assert(COLUMNS > (CLUSTER - 1) * SHARE, "every block has columns");
static_assert(SHARE % VECTOR == 0 && COLUMNS % VECTOR == 0, "shares are whole vectors");

template <class Reduction, class T> __device__ void reduce_block(T value, int slot)
{
    SHARED(0, T, partial, [WARPS]);                       // one of each warp
    SHARED((WARPS + slot) * SLOT_BYTES, T, total, [1]);   // the block's
    value = warp_reduce<Reduction>(value);
    block_sync();   // the reduction before has been read
    if (lane_id() == 0)
        partial[(int)threadIdx.x / WARP] = value;
    block_sync();
    if (threadIdx.x == 0) {
        T block_total = partial[0];
        for (int warp = 1; warp < WARPS; ++warp)
            block_total = Reduction::combine(block_total, partial[warp]);
        total[0] = block_total;
    }
}

__device__ __forceinline__ void row_sync()
{
    if (CLUSTER != 1)
        cluster_sync();
    else
        block_sync();
}

template <class Reduction, class T> __device__ T row_total(int slot)
{
    SHARED((WARPS + slot) * SLOT_BYTES, T, total, [1]);
    if (CLUSTER == 1)
        return total[0];
    T result = cluster_map(total, 0)[0];
    UNROLL for (int rank = 1; rank < CLUSTER; ++rank)
        result = Reduction::combine(result, cluster_map(total, rank)[0]);
    return result;
}

template <int N, class T, class Index> __device__ void keep_vector(T *kept, const T *from, Index index)
{
    constexpr int COUNT = sizeof(bits128) / sizeof(T);   // of one asynchronous copy
    if (N % COUNT == 0)
        UNROLL for (int i = 0; i < N; i += COUNT)
            async_copy16(kept + i, from + index + i);
    else
        UNROLL for (int i = 0; i < N; ++i)
            kept[i] = from[index + i];
}

extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const Index row = (Index)blockIdx.x / CLUSTER;
    const Index first = (Index)blockIdx.x % CLUSTER * SHARE;
    const Index count = op_min<Index>(COLUMNS - first, SHARE);
    for (Index own = (Index)threadIdx.x * VECTOR; own < count; own += THREADS * VECTOR)
        keep(t, row, first + own, own);
    async_commit();
    announce(t, row, first, count);
    async_wait<0>();
    compute(t, row, first, count);
    if (CLUSTER > 1)
        cluster_wait();   // others may still read this block's results
}
}   // namespace KERNEL
