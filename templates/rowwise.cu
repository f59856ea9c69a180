// Row kernel: reductions along rows, with pointwise steps before, between and after them.
//
// A group of GROUP threads owns a row, VECTORS vectors of VECTOR neighbouring elements each, one group's width apart, so
// that the accesses of a warp are contiguous. `compute` keeps them in registers or in shared memory, so that memory sees
// a row once; where neither can hold it, every pass reads the row again.
//
//   lane        0        1       …    GROUP-1  |    0        1      …
//   elements [VECTOR] [VECTOR]   …   [VECTOR]  | [VECTOR] [VECTOR]  …        <- VECTORS times, the last one ragged
//
// Groups within a warp reduce by shuffles, larger ones through shared memory as well. A block holds ROWS_OF_BLOCK groups.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// The result of a reduction over what the threads of a row's group hold, known to all of them. `turn` counts the reductions of
// all rows that the group makes.
template <class Reduction, class T> __device__ T reduce_row(T value, int turn);

// What a warp knows of its part of a row: `distances` is the sum of the squared ones from the part's own mean.
template <class T> struct alignas(2 * sizeof(T)) Part {
    T sum, distances;
};

// sum[j](x[j]) and sum[j](sq(x[j] - centre)) in one turn, from what each thread knows of its `count` elements: their sum,
// and their squared distances from their mean. Gives the parts of all warps, for row_sum() and, with any centre,
// row_distances(), both to be called before the next turn. `shift` is shift_of() the row.
template <class T> __device__ const Part<T> *share_parts(T sum, T distances, int count, int turn);
template <class T> __device__ T row_sum(const Part<T> *parts);
template <class T, class Index> __device__ T row_distances(const Part<T> *parts, T centre, Index shift);

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // x[1000, 512]
    float *out0;        // y[1000, 512]
};
#define PARAMETERS const float *__restrict__ in0, float *__restrict__ out0
#define TENSORS {in0, out0}
constexpr int SHARED_BYTES = 0;   // of a block
constexpr Index ROWS = 1000, COLUMNS = 512;
constexpr int GROUP = 32;           // threads of a row
constexpr int CLUSTER = 1;          // blocks of a group
constexpr int ROWS_OF_BLOCK = 4;    // groups
constexpr int ROWS_OF_GROUP = 1;    // which it makes one after the other
constexpr int ROWS_TOGETHER = 1;    // and at the same time, so that what is the same for every row is read once
constexpr Index ROWS_APART = 1;     // from one of them to the next
constexpr int TURNS = 1;            // reductions of a row
constexpr int RESULT_BYTES = 4;     // of the widest one, and a warp
constexpr int PARTIAL_BYTES = 0;    // of shared memory, for what warps leave; copies of rows lie behind it
constexpr int MIN_BLOCKS_PER_SM = 0;     // that a unit's registers must suffice for; 0: the compiler chooses
constexpr int VECTOR = 4;           // neighbouring elements that a thread reads and writes at once
constexpr int VECTORS = 4;          // of a thread
constexpr Index STEP = GROUP * VECTOR;   // from one vector of a thread to its next one

// Whether any of the thread's vector k lies in the row; `column` is where vector 0 begins.
__device__ __forceinline__ bool begins_inside(Index column, int k)
{
    return (k + 1) * STEP <= COLUMNS || column + k * STEP < COLUMNS;
}

// Elements of the row before that its first aligned vector begins with.
__device__ __forceinline__ Index shift_of(Index) { return 0; }

// What one vector of a row's elements reads.
struct Inputs {
    float x0[VECTOR];
};

__device__ __forceinline__ void load_elements(const Tensors &t, Index row, Index at, Inputs &in)
{
    load_vector<VECTOR>(t.in0, row * 512 + at, in.x0);
}

// Begins to copy the row that comes next, where rows are copied to shared memory ahead of their turn.
__device__ __forceinline__ void copy_ahead(const Tensors &, Index, Index) {}

// One row, pass by pass. Vector k of this thread starts at column + k * STEP. Groups beyond the last row repeat it
// without storing.
__device__ __forceinline__ void compute(const Tensors &t, Index row, Index column, bool stores, int made)
{
    Inputs inputs[VECTORS];
    UNROLL for (int k = 0; k < VECTORS; ++k)
        if (begins_inside(column, k))
            load_elements(t, row, column + k * STEP, inputs[k]);
    float total0 = Sum::identity<float>();
    UNROLL for (int k = 0; k < VECTORS; ++k)
        if (begins_inside(column, k)) {
            float terms0[VECTOR];
            UNROLL for (int e = 0; e < VECTOR; ++e)
                terms0[e] = inputs[k].x0[e];
            total0 = Sum::combine(total0, reduce_vector<Sum>(terms0));
        }
    const float v0 = reduce_row<Sum>(total0, TURNS * made);
    UNROLL for (int k = 0; k < VECTORS; ++k)
        if (begins_inside(column, k)) {
            float v1[VECTOR];
            UNROLL for (int e = 0; e < VECTOR; ++e)
                v1[e] = op_sub(inputs[k].x0[e], v0);
            if (stores)
                store_vector<VECTOR>(t.out0, row * 512 + column + k * STEP, v1);
        }
}
// </rollerc>

constexpr int THREADS = GROUP * ROWS_OF_BLOCK / CLUSTER;
constexpr int WARPS_OF_GROUP = (GROUP + WARP - 1) / WARP;
static_assert(GROUP % WARP == 0 || (GROUP < WARP && (GROUP & (GROUP - 1)) == 0), "whole warps, or a part of one");
static_assert(GROUP <= WARP || ROWS_OF_BLOCK == 1, "a group of several warps is a block, or a cluster of blocks");

// Of shared memory, before the copies of rows.
constexpr int PLACES_OF_TURNS = TURNS * ROWS_OF_GROUP * ROWS_TOGETHER > 1 ? 2 : 1;
static_assert(WARPS_OF_GROUP == 1 || PLACES_OF_TURNS * WARPS_OF_GROUP * RESULT_BYTES <= PARTIAL_BYTES,
              "what warps leave has room in shared memory");
static_assert(PARTIAL_BYTES <= SHARED_BYTES, "a launch gives a block as much");

constexpr bool FEW = WARPS_OF_GROUP <= 8;   // then each thread goes through the results of all warps

// Every warp leaves its result with every block of the group. Two turns have a place each, so that one barrier a turn is
// enough: a place is written again only after the barrier of the turn between, when it has been read. Blocks that combine
// their own warps' results first are slower (tuning-log 32).
//
//   places of a block   turn 0: warp 0, 1, 2, … of block 0 | warps of block 1 | …    turn 1: the same
template <class T> __device__ const T *share_result(const T &result, int turn)
{
    SHARED(turn % 2 * WARPS_OF_GROUP * RESULT_BYTES, T, place, [WARPS_OF_GROUP]);
    const int warp = (int)threadIdx.x / WARP, lane = lane_id();
    if (CLUSTER > 1) {
        if (turn == 0)
            cluster_wait();   // all blocks have started
        if (lane < CLUSTER)
            *cluster_map(&place[cluster_rank() * (WARPS_OF_GROUP / CLUSTER) + warp], lane) = result;
        cluster_sync();
    } else {
        if (lane == 0)
            place[warp] = result;
        block_sync();
    }
    return place;
}

template <class Reduction, class T> __device__ T reduce_row(T value, int turn)
{
    value = warp_reduce<Reduction>(value, op_min<int>(GROUP, WARP));
    if (WARPS_OF_GROUP == 1)
        return value;
    const T *results = share_result(value, turn);
    T total = Reduction::template identity<T>();
    UNROLL for (int i = FEW ? 0 : lane_id(); i < WARPS_OF_GROUP; i += FEW ? 1 : WARP)
        total = Reduction::combine(total, results[i]);
    return FEW ? total : warp_reduce<Reduction>(total);
}

template <class T> __device__ const Part<T> *share_parts(T sum, T distances, int count, int turn)
{
    const T total = warp_reduce<Sum>(sum);
    const int elements = warp_reduce<Sum>(count);
    const T mean = mean_of(total, elements);
    distances = warp_reduce<Sum>(distances + around_centre(sum, count, mean));
    return share_result(Part<T>{total, distances}, turn);
}

template <class T> __device__ T row_sum(const Part<T> *parts)
{
    T total = 0;
    UNROLL for (int i = FEW ? 0 : lane_id(); i < WARPS_OF_GROUP; i += FEW ? 1 : WARP)
        total += parts[i].sum;
    return FEW ? total : warp_reduce<Sum>(total);
}

// How many of the row's elements a warp has; all have some, since more than one vector of each thread is the row's.
template <class I> __device__ int elements_of_warp(int warp, I shift)
{
    constexpr int WIDTH = WARP * VECTOR;   // of its vectors at each STEP
    const I left = COLUMNS + shift - warp * WIDTH;
    return static_cast<int>(left / STEP * WIDTH + op_min<I>(left % STEP, WIDTH) - (warp == 0 ? shift : 0));
}

template <class T, class I> __device__ T row_distances(const Part<T> *parts, T centre, I shift)
{
    T total = 0;
    UNROLL for (int i = FEW ? 0 : lane_id(); i < WARPS_OF_GROUP; i += FEW ? 1 : WARP)
        total += parts[i].distances + around_centre(parts[i].sum, elements_of_warp(i, shift), centre);
    return FEW ? total : warp_reduce<Sum>(total);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS_PER_SM) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    if (CLUSTER > 1)
        cluster_arrive();
    const int thread = (int)((Index)blockIdx.x % CLUSTER) * THREADS + (int)threadIdx.x;
    const int lane = thread % GROUP;
    const Index first = (Index)blockIdx.x / CLUSTER * ROWS_OF_GROUP * ROWS_OF_BLOCK;   // of the block
    // A row that is no whole vectors begins within its first one, where the tensors are aligned.
    copy_ahead(t, first, lane * VECTOR - shift_of(first));
    for (int made = 0; made < ROWS_OF_GROUP && (made == 0 || first + made * ROWS_OF_BLOCK < ROWS); ++made) {
        const Index own = first + made * ROWS_OF_BLOCK + thread / GROUP;
        const Index own_row = own / ROWS_APART * (ROWS_APART * ROWS_TOGETHER) + own % ROWS_APART;
        const bool active = own_row < ROWS;   // else the group takes part in barriers and shuffles, and stores nothing
        const Index row = op_min<Index>(own_row, ROWS - 1);
        compute(t, row, lane * VECTOR - shift_of(row), active, made);
    }
}
}   // namespace KERNEL
