// Row kernel for long rows: reductions along a row, with pointwise steps before, between and after them. A
// cluster of CLUSTER blocks holds the row in its shared memory. Global memory is read once.
//
//   row     [ SHARE of rank 0 | SHARE of rank 1 | … ]           each block copies its share, then iterates over it once for
//   rank 0   [VECTOR] [VECTOR] …   THREADS of them at a time    each reduction and once for the results
//
// A thread reads only what it has copied itself. A reduction goes from warps to the block to the cluster, in
// a fixed order.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// A reduction across all threads of all blocks of a row, in three steps. Each reduction of a kernel has its
// own slot.
template <class Reduction, class T> __device__ void reduce_block(T value, int slot);
__device__ void row_sync();
template <class Reduction, class T> __device__ T row_total(int slot);

// Copies a vector from global to shared memory.
template <int N, class T, class Index> __device__ void keep_vector(T *kept, const T *from, Index index);

// Prefetches to L2 the line that begins at a block's column `own`.
template <class T, class Index> __device__ void announce_line(const T *line, Index own);

// The values of a row before the first pass. This block's columns are [first, first + count).
template <class Index> struct RowStart {
    static constexpr int PASSES = 0;
    Index row, first, count;

    template <class... Any> __device__ __forceinline__ void finish(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void store_row(const Any &...) const {}
};

// A pass; it inherits the results of earlier passes. It overrides some of:
//
//   load_inputs      loads a vector's inputs           reduce      reduces totals in the block
//   make             its elements                      finish      totals of the row, and their results
//   add              adds elements to the totals       store_row   stores results
//   store_elements   stores elements
//   pack_elements    stores one-bit elements, by whole warps
template <class Earlier> struct Pass : Earlier {
    using Before = Earlier;
    static constexpr int PASSES = Earlier::PASSES + 1;

    template <class... Any> __device__ __forceinline__ void load_inputs(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void make(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void add(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void store_elements(const Any &...) const {}
    template <class... Any> __device__ __forceinline__ void pack_elements(const Any &...) const {}
    template <class... Any> __device__ __forceinline__ void reduce(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void finish(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void store_row(const Any &...) const {}
};

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // x[100, 4096]
    float *out0;        // y[100, 4096]
};
#define PARAMETERS const float *__restrict__ in0, float *__restrict__ out0
#define TENSORS {in0, out0}
constexpr Region PARTIAL = {0, 80};   // of shared memory, in bytes
constexpr Region COPIES = {80, 8192};
constexpr int SHARED_BYTES = 8272;   // of a block
constexpr Index COLUMNS = 4096;
constexpr Index SHARE = 2048;   // columns of a block
constexpr int CLUSTER = 2;      // blocks of a row
constexpr int THREADS = 256;
constexpr int VECTOR = 4;       // contiguous elements of an access
constexpr int SLOTS = 1;        // reductions
constexpr int KEPT_AT_ONCE = 8;   // vectors of a thread whose loads are in flight
constexpr int KEPT = 80;        // bytes of shared memory before the copy of the row
static_assert(KEPT + SHARE * (int)sizeof(float) <= SHARED_BYTES, "what is kept has room");

// Starts the copies of the vector at `column`, the block's column `own`.
__device__ __forceinline__ void keep(const Tensors &t, Index row, Index column, Index own)
{
    keep_vector<VECTOR>((float *)(rollerc_shared + KEPT) + own, t.in0, row * 4096 + column);
}

// Prefetches to L2 what only the last pass reads.
__device__ __forceinline__ void announce(const Tensors &, Index, Index, Index) {}

// What a vector of elements loads.
struct Inputs {
    float x0[VECTOR];
};

// What the passes compute of it.
struct Elements {
    float v1[VECTOR];
};

struct Start : RowStart<Index> {};

struct Pass0 : Pass<Start> {
    float total0 = Sum::identity<float>();
    float v0;

    __device__ __forceinline__ void load_inputs(const Tensors &, Index, Index own, Inputs &in)
    {
        load_vector<VECTOR>((const float *)(rollerc_shared + KEPT), own, in.x0);
    }
    __device__ __forceinline__ void add(const Tensors &, Index, const Inputs &in, const Elements &)
    {
        UNROLL for (int e = 0; e < VECTOR; ++e)
            total0 = Sum::combine(total0, in.x0[e]);
    }
    __device__ __forceinline__ void reduce() { reduce_block<Sum>(total0, 0); }
    __device__ __forceinline__ void finish(const Tensors &) { v0 = row_total<Sum, float>(0); }
};

struct Pass1 : Pass<Pass0> {
    __device__ __forceinline__ void load_inputs(const Tensors &, Index, Index own, Inputs &in)
    {
        load_vector<VECTOR>((const float *)(rollerc_shared + KEPT), own, in.x0);
    }
    __device__ __forceinline__ void make(const Tensors &, Index, const Inputs &in, Elements &el)
    {
        UNROLL for (int e = 0; e < VECTOR; ++e)
            el.v1[e] = op_sub(in.x0[e], v0);
    }
    __device__ __forceinline__ void store_elements(const Tensors &t, Index at, const Elements &el) const
    {
        store_vector<VECTOR>(t.out0, row * 4096 + at, el.v1);
    }
};
using LastPass = Pass1;
// </rollerc>

constexpr int SLOT_BYTES = 8;                                       // of any result
constexpr int WARPS = THREADS / WARP;
static_assert(THREADS % WARP == 0, "whole warps");
static_assert(KEPT % 16 == 0, "what is copied is aligned");
static_assert(COLUMNS > (CLUSTER - 1) * SHARE, "every block has columns");
static_assert(SHARE % VECTOR == 0 && COLUMNS % VECTOR == 0, "shares are whole vectors");

template <class Reduction, class T> __device__ void reduce_block(T value, int slot)
{
    SHARED_AT(0, T, partial, [WARPS]);                       // one of each warp
    SHARED_AT((WARPS + slot) * SLOT_BYTES, T, total, [1]);   // the block's
    static_assert((WARPS + SLOTS) * SLOT_BYTES <= PARTIAL.bytes, "all results have room");
    value = warp_reduce<Reduction>(value);
    block_sync();   // the previous reduction has been read
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
    SHARED_AT((WARPS + slot) * SLOT_BYTES, T, total, [1]);
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

template <class T, class Index> __device__ void announce_line(const T *line, Index own)
{
    constexpr int LINE_BYTES = 128;   // of a line of L2
    if (own % (LINE_BYTES / (int)sizeof(T)) == 0)
        prefetch(line);
}

// ---- passes ----

// A pass over the block's columns. All threads make the same number of steps, since whole warps pack bits.
template <class Pass> __device__ __forceinline__ void walk(const Tensors &t, Pass &pass)
{
    UNROLL_4 for (Index step = 0; step < SHARE; step += THREADS * VECTOR) {
        const Index own = step + (Index)threadIdx.x * VECTOR, at = pass.first + own;
        Elements el = {};
        if (own < pass.count) {
            Inputs in;
            pass.load_inputs(t, at, own, in);
            pass.make(t, at, in, el);
            pass.add(t, at, in, el);
            pass.store_elements(t, at, el);
        }
        pass.pack_elements(t, at, el, own < pass.count);
    }
}

// All passes up to this one; each ends with a barrier across the row.
template <class Pass> __device__ __forceinline__ void reduce_all(const Tensors &t, Pass &pass)
{
    if constexpr (Pass::PASSES > 1)
        reduce_all<typename Pass::Before>(t, pass);
    walk<Pass>(t, pass);
    pass.reduce();
    row_sync();
    pass.finish(t);
}

template <class Pass> __device__ __forceinline__ void store_rows(const Tensors &t, const Pass &pass)
{
    if constexpr (Pass::PASSES > 0)
        store_rows<typename Pass::Before>(t, pass);
    pass.store_row(t);
}

// Computes one row: the reductions, then the results.
__device__ __forceinline__ void compute(const Tensors &t, LastPass &pass)
{
    pass.Start::finish(t);
    reduce_all<LastPass::Before>(t, pass);
    if (CLUSTER > 1)
        cluster_arrive();   // has read all that it needs of other blocks
    if (pass.first == 0 && threadIdx.x == 0)
        store_rows<LastPass>(t, pass);
    walk<LastPass>(t, pass);
}

extern "C" __global__ void __launch_bounds__(BOUNDS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const Index row = (Index)blockIdx.x / CLUSTER;
    const Index first = (Index)blockIdx.x % CLUSTER * SHARE;
    const Index count = op_min<Index>(COLUMNS - first, SHARE);
    // What is too narrow to be copied asynchronously passes through registers.
#pragma unroll 1
    for (Index step = 0; step < SHARE; step += KEPT_AT_ONCE * THREADS * VECTOR)
        UNROLL for (int k = 0; k < KEPT_AT_ONCE; ++k) {
            const Index own = step + (k * THREADS + (Index)threadIdx.x) * VECTOR;
            if (own < count)
                keep(t, row, first + own, own);
        }
    async_commit();
    for (Index own = (Index)threadIdx.x * VECTOR; own < count; own += THREADS * VECTOR)
        announce(t, row, first + own, own);
    async_wait<0>();
    LastPass pass;
    pass.row = row, pass.first = first, pass.count = count;
    compute(t, pass);
    if (CLUSTER > 1)
        cluster_wait();   // others may still read this block's results
}
}   // namespace KERNEL
