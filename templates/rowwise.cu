// Row kernel: reductions along rows, with pointwise steps before, between and after them.
//
// A group of GROUP threads owns a row, VECTORS vectors of VECTOR neighbouring elements each, one group's width apart, so
// that the accesses of a warp are contiguous. It goes over the row in passes. `compute` keeps the row in registers or in
// shared memory, so that memory sees it once; where neither can hold it, every pass reads the row again.
//
//   lane        0        1       …    GROUP-1  |    0        1      …
//   elements [VECTOR] [VECTOR]   …   [VECTOR]  | [VECTOR] [VECTOR]  …        <- VECTORS times, the last one ragged
//
// Groups within a warp reduce by shuffles, larger ones through shared memory as well. A block holds ROWS_OF_BLOCK groups.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// The result of a reduction over what the threads of a row's group hold, known to all of them. `round` counts the reductions of
// all rows that the group makes.
template <class Reduction, class T> __device__ T reduce_row(T value, int round);

// What a warp knows of its part of a row: `distances` is the sum of the squared ones from the part's own mean.
template <class T> struct alignas(2 * sizeof(T)) Part {
    T sum, distances;
};

// sum[j](x[j]) and sum[j](sq(x[j] - centre)) in one round, from what each thread knows of its `count` elements: their sum,
// and their squared distances from their mean. Gives the parts of all warps, for row_sum() and, with any centre,
// row_distances(), both to be called before the next round.
template <class T> __device__ const Part<T> *share_parts(T sum, T distances, int count, int round);
template <class T> __device__ T row_sum(const Part<T> *parts);
template <class T, class Index> __device__ T row_distances(const Part<T> *parts, T centre, Index row);

// Of vector k of a thread whose vector 0 begins at `column`: all of it lies in the row; its elements from `begin` up to `end`
// do; the others become what changes no reduction.
template <class Index> __device__ __forceinline__ bool is_whole(Index column, int k);
template <class Index> __device__ __forceinline__ int begin_of(Index column, int k);
template <class Index> __device__ __forceinline__ int end_of(Index column, int k);
template <class Reduction, class T, int N, class Index>
__device__ __forceinline__ void leave_out(T (&terms)[N], Index column, int k);

// A row, and where the thread's vector 0 begins in it.
template <class Index> struct RowStart {
    static constexpr int FIRST_ROUND = 0, ROUNDS = 0;   // reductions before, and of itself
    Index row, column;

    template <class... Any> __device__ __forceinline__ void finish(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void store_row(const Any &...) const {}
};

// A pass over it, which knows what the passes before have found out. One says what it does of these:
//
//   make             elements of a vector
//   add              of it to the pass' totals
//   store_elements   some of them, to memory
//   finish           the totals of all threads, and what is made of them
//   store_row        some of these, to memory
template <class Earlier> struct Pass : Earlier {
    using Before = Earlier;
    static constexpr int FIRST_ROUND = Earlier::FIRST_ROUND + Earlier::ROUNDS, ROUNDS = 0;
    static constexpr bool READS = false, WEIGHTS = false;   // elements of the row; what is the same for every row

    template <class... Any> __device__ __forceinline__ void make(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void add(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void store_elements(const Any &...) const {}
    template <class... Any> __device__ __forceinline__ void finish(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void store_row(const Any &...) const {}
};

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
constexpr Index ROWS_APART = 1;     // from one of them to the next, which begins alike
constexpr int ROUNDS = 1;           // reductions of a row
constexpr int RESULT_BYTES = 4;     // of the widest one, and a warp
constexpr int PARTIAL_BYTES = 0;    // of shared memory, for what warps leave; copies of rows lie behind it
constexpr int MIN_BLOCKS_PER_SM = 0;     // that its registers must suffice for; 0: the compiler chooses
constexpr int VECTOR = 4;           // neighbouring elements that a thread reads and writes at once
constexpr int VECTORS = 4;          // of a thread
constexpr Index STEP = GROUP * VECTOR;            // from one vector of a thread to its next one
constexpr int PLACES = GROUP / CLUSTER * VECTOR;  // and of its copy in shared memory
constexpr bool UNALIGNED = false;   // rows are no whole vectors: each begins within its first one
constexpr bool KEPT = true;         // in registers; else every pass reads the row, or its copy
constexpr bool COPIED = false;      // to shared memory,
constexpr bool AHEAD = false;       // while the row before is made
constexpr bool WEIGHTS_FIRST = false;   // before the row, so that no reduction waits for them
constexpr bool MASKED = false;      // what a mask leaves out is not read
#define UNROLL_VECTORS UNROLL

// A row as it is stored, in shared memory. Each thread reads what it has copied itself.
struct Copy {};

__device__ __forceinline__ void copy_elements(const Tensors &, Copy &, Index, Index, int, bool) {}

// What one vector of a row's elements reads.
struct Inputs {
    float x0[VECTOR];
};

__device__ __forceinline__ void load_elements(const Tensors &t, const Copy &, int, Index row, Index at, Inputs &in, bool)
{
    load_vector<VECTOR>(t.in0, row * 512 + at, in.x0);
}

// What is the same for every row.
struct Weights {};

__device__ __forceinline__ void load_weights(const Tensors &, Index, Index, Weights &, bool) {}

// What the passes make of it.
struct Elements {
    float v1[VECTOR];
};

struct Start : RowStart<Index> {};

struct Pass0 : Pass<Start> {
    static constexpr int ROUNDS = 1;
    static constexpr bool READS = true;
    float total0 = Sum::identity<float>();
    float v0;

    __device__ __forceinline__ void add(const Tensors &, int, const Inputs &in, const Weights &, const Elements &)
    {
        float terms0[VECTOR];
        UNROLL for (int e = 0; e < VECTOR; ++e)
            terms0[e] = in.x0[e];
        total0 = Sum::combine(total0, reduce_vector<Sum>(terms0));
    }
    __device__ __forceinline__ void finish(const Tensors &, int round) { v0 = reduce_row<Sum>(total0, round); }
};

struct Pass1 : Pass<Pass0> {
    static constexpr bool READS = true;

    __device__ __forceinline__ void make(const Tensors &, int, const Inputs &in, const Weights &, Elements &el)
    {
        UNROLL for (int e = 0; e < VECTOR; ++e)
            el.v1[e] = op_sub(in.x0[e], v0);
    }
    __device__ __forceinline__ void store_elements(const Tensors &t, int k, const Elements &el) const
    {
        store_vector<VECTOR>(t.out0, row * 512 + column + k * STEP, el.v1);
    }
};
using LastPass = Pass1;
// </rollerc>

constexpr int THREADS = GROUP * ROWS_OF_BLOCK / CLUSTER;
constexpr int WARPS_OF_GROUP = (GROUP + WARP - 1) / WARP;
static_assert(GROUP % WARP == 0 || (GROUP < WARP && (GROUP & (GROUP - 1)) == 0), "whole warps, or a part of one");
static_assert(GROUP <= WARP || ROWS_OF_BLOCK == 1, "a group of several warps is a block, or a cluster of blocks");

// Of shared memory, before the copies of rows.
constexpr int PLACES_OF_ROUNDS = ROUNDS * ROWS_OF_GROUP * ROWS_TOGETHER > 1 ? 2 : 1;
static_assert(WARPS_OF_GROUP == 1 || PLACES_OF_ROUNDS * WARPS_OF_GROUP * RESULT_BYTES <= PARTIAL_BYTES,
              "what warps leave has room in shared memory");
static_assert(PARTIAL_BYTES <= SHARED_BYTES, "a launch gives a block as much");
static_assert(!COPIED || PARTIAL_BYTES + ROWS_TOGETHER * (int)sizeof(Copy) <= SHARED_BYTES, "rows have room in shared memory");
static_assert(ROWS_TOGETHER == 1 || (!KEPT && ROWS_OF_GROUP == 1), "only rows in shared memory are made together");

// ---- where the row begins and ends ----

// Elements of the row before that its first aligned vector begins with.
__device__ __forceinline__ Index shift_of(Index row) { return UNALIGNED ? row * COLUMNS % VECTOR : 0; }

// Whether any of the thread's vector k lies in the row, or all of it; `column` is where vector 0 begins. Of all but the row's
// first and last vectors that is known as the loop over k is unrolled.
__device__ __forceinline__ bool begins_inside(Index column, int k)
{
    return (k + 1) * STEP <= COLUMNS || column + k * STEP < COLUMNS;
}

template <class I> __device__ bool is_whole(I column, int k)
{
    return (k > 0 || column >= 0) && ((k + 1) * STEP <= COLUMNS || column + k * STEP + VECTOR <= COLUMNS);
}

template <class I> __device__ int begin_of(I column, int k)
{
    return k > 0 || column >= 0 ? 0 : static_cast<int>(-column);
}

template <class I> __device__ int end_of(I column, int k)
{
    return is_whole(column, k) ? VECTOR : static_cast<int>(op_min<I>(COLUMNS - column - k * STEP, VECTOR));
}

template <class Reduction, class T, int N, class I> __device__ void leave_out(T (&terms)[N], I column, int k)
{
    if (!is_whole(column, k))
        UNROLL for (int e = 0; e < N; ++e)
            if (!inside(column + k * STEP + e, COLUMNS))
                terms[e] = Reduction::template identity<T>();
}

// Of vector k of every thread: it ends in the row; it and its neighbours lie in the row.
__device__ __forceinline__ bool ends_inside(int k) { return (k + 1) * STEP <= COLUMNS; }
__device__ __forceinline__ bool is_inner(int k) { return k > 0 && (k + 1) * STEP + VECTOR <= COLUMNS; }

// ---- reductions ----

constexpr bool FEW = WARPS_OF_GROUP <= 8;   // then each thread goes through the results of all warps

// Every warp leaves its result with every block of the group. Two rounds have a place each, so that one barrier a round is
// enough: a place is written again only after the barrier of the round between, when it has been read. Blocks that combine
// their own warps' results first are slower (tuning-log 32).
//
//   places of a block   round 0: warp 0, 1, 2, … of block 0 | warps of block 1 | …    round 1: the same
template <class T> __device__ const T *share_result(const T &result, int round)
{
    SHARED(round % 2 * WARPS_OF_GROUP * RESULT_BYTES, T, place, [WARPS_OF_GROUP]);
    const int warp = (int)threadIdx.x / WARP, lane = lane_id();
    if (CLUSTER > 1) {
        if (round == 0)
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

template <class Reduction, class T> __device__ T reduce_row(T value, int round)
{
    value = warp_reduce<Reduction>(value, op_min<int>(GROUP, WARP));
    if (WARPS_OF_GROUP == 1)
        return value;
    const T *results = share_result(value, round);
    T total = Reduction::template identity<T>();
    UNROLL for (int i = FEW ? 0 : lane_id(); i < WARPS_OF_GROUP; i += FEW ? 1 : WARP)
        total = Reduction::combine(total, results[i]);
    return FEW ? total : warp_reduce<Reduction>(total);
}

template <class T> __device__ const Part<T> *share_parts(T sum, T distances, int count, int round)
{
    const T total = warp_reduce<Sum>(sum);
    const int elements = warp_reduce<Sum>(count);
    const T mean = mean_of(total, elements);
    distances = warp_reduce<Sum>(distances + around_centre(sum, count, mean));
    return share_result(Part<T>{total, distances}, round);
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

template <class T, class I> __device__ T row_distances(const Part<T> *parts, T centre, I row)
{
    const I shift = shift_of(row);
    T total = 0;
    UNROLL for (int i = FEW ? 0 : lane_id(); i < WARPS_OF_GROUP; i += FEW ? 1 : WARP)
        total += parts[i].distances + around_centre(parts[i].sum, elements_of_warp(i, shift), centre);
    return FEW ? total : warp_reduce<Sum>(total);
}

// ---- passes ----

// What a thread has of the rows that it is at; of every vector, where it is kept.
struct Work {
    const Tensors &t;
    Copy *copies;   // of rows that are made together
    const Inputs *inputs;
    const Weights *weights;
    Elements *elements;
    bool stores;
    int made;   // rows before
};

// Begins to copy the thread's part of a row.
__device__ __forceinline__ void copy_row(const Tensors &t, Copy &copy, Index row, Index column)
{
    UNROLL_VECTORS for (int k = 0; k < VECTORS; ++k)
        if (begins_inside(column, k))
            copy_elements(t, copy, row, column + k * STEP, (int)threadIdx.x * VECTOR + k * PLACES, ends_inside(k));
    async_commit();
}

// Vector k of a row. Groups beyond the last row repeat it without storing; a row that is not kept has a block of its own.
template <class Pass>
__device__ __forceinline__ void make_vector(const Work &work, Pass &pass, const Copy &copy, const Weights &weights, int k)
{
    Inputs read;
    if (MASKED && !KEPT)
        read = {};
    if (Pass::READS && !KEPT)
        load_elements(work.t, copy, (int)threadIdx.x * VECTOR + k * PLACES, pass.row, pass.column + k * STEP, read,
                      ends_inside(k));
    const Inputs &in = KEPT ? work.inputs[k] : read;
    Elements &el = work.elements[KEPT ? k : 0];
    pass.make(work.t, k, in, weights, el);
    pass.add(work.t, k, in, weights, el);
    if (work.stores || !KEPT)
        pass.store_elements(work.t, k, el);
}

template <class Pass> __device__ __forceinline__ void finish_row(const Work &work, Pass &pass, int round)
{
    pass.finish(work.t, round);
    if (work.stores && pass.column <= 0)
        pass.store_row(work.t);
}

// One pass over rows that are made together. Vector by vector, where that saves to read the weights for each of them; else row
// by row, the first time each as soon as it has come.
template <class Pass> __device__ __forceinline__ void walk(const Work &work, LastPass (&rows)[ROWS_TOGETHER])
{
    const Index column = rows[0].column;
    const int round = (ROUNDS * work.made + Pass::FIRST_ROUND) * ROWS_TOGETHER;   // of the first row
    if (ROWS_TOGETHER == 1 || Pass::WEIGHTS) {
        if (ROWS_TOGETHER > 1 && Pass::FIRST_ROUND == 0)
            async_wait<0>();
        UNROLL_VECTORS for (int k = 0; k < VECTORS; ++k)
            if (begins_inside(column, k)) {
                Weights read;
                if (Pass::WEIGHTS && !WEIGHTS_FIRST)
                    load_weights(work.t, rows[0].row, column + k * STEP, read, is_inner(k));
                UNROLL for (int r = 0; r < ROWS_TOGETHER; ++r)
                    make_vector<Pass>(work, rows[r], work.copies[r], WEIGHTS_FIRST ? work.weights[k] : read, k);
            }
        UNROLL for (int r = 0; r < ROWS_TOGETHER; ++r)
            finish_row<Pass>(work, rows[r], round + Pass::ROUNDS * r);
    } else
        UNROLL for (int r = 0; r < ROWS_TOGETHER; ++r) {
            if (Pass::FIRST_ROUND == 0)
                r + 1 < ROWS_TOGETHER ? async_wait<1>() : async_wait<0>();
            UNROLL_VECTORS for (int k = 0; k < VECTORS; ++k)
                if (begins_inside(column, k))
                    make_vector<Pass>(work, rows[r], work.copies[r], Weights(), k);
            finish_row<Pass>(work, rows[r], round + Pass::ROUNDS * r);
        }
}

// Begins to copy the row behind this one, if the group makes it.
__device__ __forceinline__ void copy_next(const Work &work, Index row, Index column)
{
    const Index next = row + 1;
    if (work.made + 1 < ROWS_OF_GROUP && next < ROWS)
        copy_row(work.t, work.copies[0], next, column + shift_of(row) - shift_of(next));
}

// All passes up to this one.
template <class Pass> __device__ __forceinline__ void walk_all(const Work &work, LastPass (&rows)[ROWS_TOGETHER])
{
    if constexpr (Pass::FIRST_ROUND > 0)
        walk_all<typename Pass::Before>(work, rows);
    walk<Pass>(work, rows);
    if (AHEAD && Pass::FIRST_ROUND == 0)
        copy_next(work, rows[0].row, rows[0].column);
}

// ROWS_TOGETHER rows, from the first one on each ROWS_APART from the one before. Vector k of this thread starts at
// column + k * STEP in all of them.
__device__ __forceinline__ void compute(const Tensors &t, Index first, Index column, bool stores, int made)
{
    SHARED(PARTIAL_BYTES, Copy, copies, [ROWS_TOGETHER]);
    if (COPIED && !AHEAD)
        UNROLL for (int r = 0; r < ROWS_TOGETHER; ++r)
            copy_row(t, copies[r], first + r * ROWS_APART, column);
    if (COPIED && ROWS_TOGETHER == 1)
        async_wait<0>();
    Weights weights[WEIGHTS_FIRST ? VECTORS : 1];
    if (WEIGHTS_FIRST)
        UNROLL for (int k = 0; k < VECTORS; ++k)
            if (begins_inside(column, k))
                load_weights(t, first, column + k * STEP, weights[k], is_inner(k));
    Inputs inputs[KEPT ? VECTORS : 1];
    if (KEPT && MASKED)
        UNROLL for (int k = 0; k < VECTORS; ++k)
            inputs[k] = {};
    if (KEPT)
        UNROLL for (int k = 0; k < VECTORS; ++k)
            if (begins_inside(column, k))
                load_elements(t, copies[0], (int)threadIdx.x * VECTOR + k * PLACES, first, column + k * STEP, inputs[k],
                              ends_inside(k));
    Elements elements[KEPT ? VECTORS : 1];
    LastPass rows[ROWS_TOGETHER];
    const Work work = {t, copies, inputs, weights, elements, stores, made};
    UNROLL for (int r = 0; r < ROWS_TOGETHER; ++r) {
        rows[r].row = first + r * ROWS_APART;
        rows[r].column = column;
        finish_row<Start>(work, rows[r], 0);
    }
    walk_all<LastPass>(work, rows);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS_PER_SM) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    if (CLUSTER > 1)
        cluster_arrive();
    const int thread = (int)((Index)blockIdx.x % CLUSTER) * THREADS + (int)threadIdx.x;
    const int lane = thread % GROUP;
    const Index first = (Index)blockIdx.x / CLUSTER * ROWS_OF_GROUP * ROWS_OF_BLOCK;   // of the block
    SHARED(PARTIAL_BYTES, Copy, copy, );
    if (AHEAD)
        copy_row(t, copy, first, lane * VECTOR - shift_of(first));
    for (int made = 0; made < ROWS_OF_GROUP && (made == 0 || first + made * ROWS_OF_BLOCK < ROWS); ++made) {
        const Index own = first + made * ROWS_OF_BLOCK + thread / GROUP;
        const Index own_row = own / ROWS_APART * (ROWS_APART * ROWS_TOGETHER) + own % ROWS_APART;
        const bool active = own_row < ROWS;   // else the group takes part in barriers and shuffles, and stores nothing
        const Index row = op_min<Index>(own_row, ROWS - 1);
        compute(t, row, lane * VECTOR - shift_of(row), active, made);
    }
}
#undef UNROLL_VECTORS
}   // namespace KERNEL
