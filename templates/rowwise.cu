// Row kernel: reductions along rows, with pointwise steps before, between and after them.
//
// A group of GROUP threads computes a row. A thread has VECTORS vectors of VECTOR contiguous elements, one group's
// width apart, so accesses of a warp are coalesced. The row stays in registers or in shared memory for all PASSES;
// a row that fits neither is read again by every pass. A block has ROWS_OF_BLOCK groups.
//
//   lane        0        1       …    GROUP-1  |    0        1      …
//   elements [VECTOR] [VECTOR]   …   [VECTOR]  | [VECTOR] [VECTOR]  …        <- VECTORS times, the last one ragged
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// Reduces across the threads of a row's group; all of them get the result. `round` counts the reductions of all
// rows of the group.
template <class Reduction, class T> __device__ T reduce_row(T value, int round);

// A warp's part of a row: its sum, and the sum of squared distances from the part's own mean.
template <class T> struct alignas(2 * sizeof(T)) Part {
    T sum, distances;
};

// sum[j](x[j]) and sum[j](sq(x[j] - centre)) in one round. Each thread passes the sum of its `count` elements and
// their squared distances from their mean. Returns the parts of all warps, for row_sum() and row_distances() with
// any centre; both must be called before the next round.
template <class T> __device__ const Part<T> *share_parts(T sum, T distances, int count, int round);
template <class T> __device__ T row_sum(const Part<T> *parts);
template <class T, class Index> __device__ T row_distances(const Part<T> *parts, T centre, Index row);

// Of vector k of a thread whose vector 0 begins at `column`: whether all of it lies in the row; and which of its
// elements do, from `begin` to before `end`. The others are set to the reduction's identity.
template <class Index> __device__ __forceinline__ bool is_whole(Index column, int k);
template <class Index> __device__ __forceinline__ int begin_of(Index column, int k);
template <class Index> __device__ __forceinline__ int end_of(Index column, int k);
template <class Reduction, class T, int N, class Index>
__device__ __forceinline__ void leave_out(T (&terms)[N], Index column, int k);

__device__ __forceinline__ bool ends_inside(int k);   // vector k of every thread
__device__ __forceinline__ bool is_inner(int k);      // and of the adjacent ones

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // x[1000, 512]
    float *out0;        // y[1000, 512]
};
#define PARAMETERS const float *__restrict__ in0, float *__restrict__ out0
#define TENSORS {in0, out0}
constexpr Region PARTIAL = {0, 0};   // of shared memory, in bytes
constexpr Region COPIES = {0, 0};
constexpr int SHARED_BYTES = 0;   // of a block
constexpr Index ROWS = 1000;
constexpr Index COLUMNS = 512;
constexpr int THREADS = 128, MIN_BLOCKS_PER_SM = 0;   // of a block; of the launch bounds, 0: unset
constexpr int GROUP = 32, ROWS_OF_BLOCK = 4;   // threads of a row; groups of a block
constexpr int CLUSTER = 1;          // blocks of a group
constexpr int ROWS_OF_GROUP = 1;    // rows that a group computes one after the other
constexpr int ROWS_TOGETHER = 1;    // rows that it computes at a time, which share the loads of weights
constexpr Index ROWS_APART = 1;     // from one of these rows to the next, with the same alignment
constexpr int PASSES = 2;           // over a row
template <int PASS> constexpr bool READS = PASS == 0 || PASS == 1;   // elements of the row
template <int PASS> constexpr bool WEIGHS = false;                   // weights: the same for every row
constexpr int ROUNDS = 1;           // reductions of a row
template <int PASS> constexpr int ROUNDS_BEFORE = PASS == 0 ? 0 : 1;
constexpr bool MEETS = false;       // each reduction crosses warps, through shared memory
constexpr int RESULT_BYTES = 4;     // of the widest result, per warp
constexpr bool FEW = true;          // every thread reduces the results of all warps; else lanes share them
constexpr int VECTOR = 4, VECTORS = 4;   // contiguous elements of an access; accesses of a thread
constexpr Index STEP = GROUP * VECTOR;            // from one vector of a thread to the next
constexpr int PLACES = GROUP / CLUSTER * VECTOR;  // and of its copy in shared memory
constexpr bool UNALIGNED = false;   // rows are not aligned to vectors
constexpr bool KEPT = true;         // in registers; else every pass reads the row, or its copy
constexpr bool COPIED = false;      // to shared memory,
constexpr bool AHEAD = false;       // during the previous row
constexpr bool WEIGHTS_FIRST = false;   // weights are loaded before the row, so that no reduction waits for them
constexpr bool WEIGHED = false;     // some inputs are the same for every row
constexpr bool MASKED = false;      // masked elements are not read
constexpr bool STARTS = false;      // some values of a row precede its first pass
constexpr bool STORES_ELEMENTS = true, STORES_VALUES = false;   // of a row; its results
constexpr int VECTORS_AT_ONCE = 4;          // vectors that are loaded before the first is used; 0: compilers choose
#define UNROLL_VECTORS UNROLL

// A copy of a row in shared memory. Each thread reads only what it has copied itself.
struct Copy {};

__device__ __forceinline__ void copy_elements(const Tensors &, Index, Index, int, int) {}

// What one vector of a row's elements loads.
struct Inputs {
    float x0[VECTOR];
};

__device__ __forceinline__ void load_elements(const Tensors &t, Index row, Index at, int, int, Inputs &in)
{
    load_vector<VECTOR>(t.in0, row * 512 + at, in.x0);
}

__device__ __forceinline__ void load_ends(const Tensors &, Index, Index, Inputs &) {}

// Weights: inputs that are the same for every row.
struct Weights {};

// What the passes compute of a vector.
struct Elements {
    float v1[VECTOR];
};

// A row, the column of the thread's vector 0, and the results of the passes.
struct Row {
    Index row, column;
    float total0 = Sum::identity<float>();
    float v0;

    template <int PASS> __device__ __forceinline__ void make(const Tensors &, Index, int, const Inputs &in, Elements &el)
    {
        if constexpr (PASS == 0) {
            float terms0[VECTOR];
            UNROLL for (int e = 0; e < VECTOR; ++e)
                terms0[e] = in.x0[e];
            total0 = Sum::combine(total0, reduce_vector<Sum>(terms0));
        }
        if constexpr (PASS == 1) {
            UNROLL for (int e = 0; e < VECTOR; ++e)
                el.v1[e] = op_sub(in.x0[e], v0);
        }
    }
    template <int PASS> __device__ __forceinline__ void store_elements(const Tensors &t, Index at, int, const Elements &el) const
    {
        if constexpr (PASS == 1)
            store_vector<VECTOR>(t.out0, row * 512 + at, el.v1);
    }
    template <int PASS> __device__ __forceinline__ void finish(const Tensors &)
    {
        if constexpr (PASS == 0)
            v0 = warp_reduce<Sum>(total0, GROUP);
    }
};
// </rollerc>

constexpr int WARPS_OF_GROUP = (GROUP + WARP - 1) / WARP;
constexpr bool RAGGED = VECTORS * STEP > COLUMNS;   // vectors of some threads cross the end of the row
// Of rows that begin anywhere, vectors past the end load again what the thread has, or the row's first one: elements are
// converted as they come, and a branch around that would wait for its loads before the next ones. For the same reason
// what crosses the end of a tensor is loaded last.
constexpr bool REPEATS = RAGGED && UNALIGNED && !AHEAD && !MASKED;
static_assert(THREADS == GROUP * ROWS_OF_BLOCK / CLUSTER, "blocks are whole groups, or groups whole blocks");
static_assert(MEETS || WARPS_OF_GROUP == 1, "warps that share a row meet");
static_assert(GROUP % WARP == 0 || (GROUP < WARP && (GROUP & (GROUP - 1)) == 0), "whole warps, or a part of one");
static_assert(GROUP <= WARP || ROWS_OF_BLOCK == 1, "a group of several warps is a block, or a cluster of blocks");

// Results of warps, in shared memory before the copies of rows. Several rounds alternate between two buffers: a
// round overwrites what the one before the last has read.
constexpr int PLACES_OF_WARPS = ROUNDS * ROWS_OF_GROUP * ROWS_TOGETHER > 1 ? 2 : 1;
static_assert(ROWS_TOGETHER == 1 || (!KEPT && ROWS_OF_GROUP == 1), "only rows in shared memory are made together");

// ---- where the row begins and ends ----

// How far a row begins after an aligned vector.
__device__ __forceinline__ Index shift_of(Index row) { return UNALIGNED ? row * COLUMNS % VECTOR : 0; }

// Whether some, or all, of the thread's vector k lies in the row; `column` is the column of vector 0. For all but
// the first and last vectors of a row this is a constant once the loop over k is unrolled.
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

__device__ __forceinline__ bool ends_inside(int k) { return (k + 1) * STEP <= COLUMNS; }
__device__ __forceinline__ bool is_inner(int k) { return k > 0 && (k + 1) * STEP + VECTOR <= COLUMNS; }

// ---- reductions ----

// Every warp writes its result to every block of the group. Rounds alternate between two buffers, so one barrier a
// round suffices: a buffer is reused after the barrier of the round between, when it has been read. If each block
// first reduced its own warps' results, the kernel would take 1.02 to 1.25 of the time.
//
//   buffers of a block   round 0: warp 0, 1, 2, … of block 0 | warps of block 1 | …    round 1: the same
template <class T> __device__ const T *share_result(const T &result, int round)
{
    SHARED_AT(round % 2 * WARPS_OF_GROUP * RESULT_BYTES, T, place, [WARPS_OF_GROUP]);
    static_assert(WARPS_OF_GROUP == 1 || PLACES_OF_WARPS * WARPS_OF_GROUP * RESULT_BYTES <= PARTIAL.bytes, "what warps leave has room");
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
    const T *results = share_result(warp_reduce<Reduction>(value), round);
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

// How many of the row's elements a warp has: at least one, since a row has more than one vector of each thread.
template <class I> __device__ int elements_of_warp(int warp, I shift)
{
    constexpr int WIDTH = WARP * VECTOR;   // elements of its vectors in a STEP
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

// Starts the copy of the thread's part of a row, the r-th of those computed at a time.
__device__ __forceinline__ void copy_row(const Tensors &t, int r, Index row, Index column)
{
    UNROLL_VECTORS for (int k = 0; k < VECTORS; ++k)
        if (begins_inside(column, k))
            copy_elements(t, row, column + k * STEP, k, r);
    async_commit();
}

// Starts the copy of the group's next row, if there is one.
template <class Row> __device__ __forceinline__ void copy_next(const Tensors &t, const Row &row, int made)
{
    const Index next = row.row + 1;
    if (made + 1 < ROWS_OF_GROUP && next < ROWS)
        copy_row(t, 0, next, row.column + shift_of(row.row) - shift_of(next));
}

// The results at the end of a pass; -1: before the first one.
template <int PASS, class Row> __device__ __forceinline__ void finish_row(const Tensors &t, Row &row, bool stores, int round)
{
    if constexpr (MEETS)
        row.template finish<PASS>(t, round);
    else
        row.template finish<PASS>(t);
    if constexpr (STORES_VALUES)
        if (stores && row.column <= 0)
            row.template store_values<PASS>(t);
}

// A pass and the following ones over a row in registers.
template <int PASS, class Row>
__device__ __forceinline__ void walk(const Tensors &t, Row &row, const Inputs *inputs, Elements *elements, bool stores, int made)
{
    UNROLL for (int k = 0; k < VECTORS; ++k) {
        const Index at = row.column + k * STEP;
        if (RAGGED && !begins_inside(row.column, k))
            continue;
        if constexpr (!WEIGHED) {
            row.template make<PASS>(t, at, k, inputs[k], elements[k]);
        } else if constexpr (WEIGHTS_FIRST) {
            row.template make<PASS>(t, at, k, inputs[k], elements[k], row.weights[k]);
        } else {
            Weights weights;
            if constexpr (WEIGHS<PASS>)
                load_weights(t, row.row, at, k, weights);
            row.template make<PASS>(t, at, k, inputs[k], elements[k], weights);
        }
        if constexpr (STORES_ELEMENTS)
            if (stores)
                row.template store_elements<PASS>(t, at, k, elements[k]);
    }
    if constexpr (MEETS || STORES_VALUES)
        finish_row<PASS>(t, row, stores, made * ROUNDS + ROUNDS_BEFORE<PASS>);
    else
        row.template finish<PASS>(t);
    if constexpr (AHEAD && PASS == 0)
        copy_next(t, row, made);
    if constexpr (PASS + 1 < PASSES)
        walk<PASS + 1>(t, row, inputs, elements, stores, made);
}

// Computes a row in registers. A group past the last row takes part in barriers and shuffles, and stores nothing.
template <class Row> __device__ __forceinline__ void make_row(const Tensors &t, int lane, Index own, int made)
{
    if (AHEAD)
        async_wait<0>();
    Row row;
    row.row = op_min<Index>(own, ROWS - 1), row.column = lane * VECTOR;
    if (UNALIGNED)
        row.column -= shift_of(row.row);
    if constexpr (WEIGHTS_FIRST && !REPEATS)
        UNROLL for (int k = 0; k < VECTORS; ++k)
            if (!RAGGED || begins_inside(row.column, k))
                load_weights(t, row.row, row.column + k * STEP, k, row.weights[k]);
    Inputs inputs[VECTORS];
    if (MASKED)
        UNROLL for (int k = 0; k < VECTORS; ++k)
            inputs[k] = {};
    if constexpr (REPEATS) {
        const bool begins = begins_inside(row.column, 0), loads = CLUSTER == 1 || begins;
        const Index spare = begins ? row.column : row.column - lane * VECTOR;
        const auto source = [&](int k) { return begins_inside(row.column, k) ? row.column + k * STEP : spare; };
        if constexpr (WEIGHTS_FIRST)
            UNROLL for (int k = 0; k < VECTORS; ++k)
                if (loads)
                    load_weights(t, row.row, source(k), k, row.weights[k]);
        UNROLL for (int k = 0; k < VECTORS; ++k)
            if (loads)
                load_elements(t, row.row, source(k), k, 0, inputs[k]);
        UNROLL for (int k = 0; k < VECTORS; ++k)
            if (!ends_inside(k))
                load_ends(t, row.row, row.column + k * STEP, inputs[k]);
    } else {
        UNROLL for (int k = 0; k < VECTORS; ++k)
            if (!RAGGED || begins_inside(row.column, k))
                load_elements(t, row.row, row.column + k * STEP, k, 0, inputs[k]);
    }
    Elements elements[VECTORS];
    if constexpr (STARTS)
        finish_row<-1>(t, row, own < ROWS, 0);
    walk<0>(t, row, inputs, elements, own < ROWS, made);
}

// Vector k of a row that every pass reads again.
template <int PASS, class Row, class... Weights>
__device__ __forceinline__ void make_vector(const Tensors &t, Row &row, int r, int k, const Weights &...weights)
{
    Inputs in;
    if (MASKED)
        in = {};
    if constexpr (READS<PASS>)
        load_elements(t, row.row, row.column + k * STEP, k, r, in);
    Elements el;
    row.template make<PASS>(t, row.column + k * STEP, k, in, el, weights...);
    if constexpr (STORES_ELEMENTS)
        row.template store_elements<PASS>(t, row.column + k * STEP, k, el);
}

// Vector k of the rows that are computed at a time: weights are loaded once for all.
template <int PASS, class Row> __device__ __forceinline__ void make_vectors(const Tensors &t, Row (&rows)[ROWS_TOGETHER], int k)
{
    if constexpr (WEIGHED) {
        Weights weights;
        if constexpr (WEIGHS<PASS>)
            load_weights(t, rows[0].row, rows[0].column + k * STEP, k, weights);
        UNROLL for (int r = 0; r < ROWS_TOGETHER; ++r)
            make_vector<PASS>(t, rows[r], r, k, weights);
    } else
        make_vector<PASS>(t, rows[0], 0, k);
}

// Vectors of a row that every pass reads from memory, from k on. All are loaded before the first is used, since no load passes a
// store, nor a branch around what converts it. `place` is k, or any other vector that has as much of the row on both sides.
// Those of `ENDS` may lie behind the row: the thread's first one is loaded again in their place.
template <int PASS, int COUNT, bool ENDS, class Row>
__device__ __forceinline__ void make_together(const Tensors &t, Row &row, int k, int place)
{
    const auto exists = [&](int j) { return !ENDS || begins_inside(row.column, k + j); };
    const auto source = [&](int j) { return exists(j) ? row.column + (k + j) * STEP : row.column; };
    Inputs in[COUNT];
    Elements el[COUNT];
    if (MASKED)
        UNROLL for (int j = 0; j < COUNT; ++j)
            in[j] = {};
    if constexpr (READS<PASS>)
        UNROLL for (int j = 0; j < COUNT; ++j)
            load_elements(t, row.row, source(j), place + j, 0, in[j]);
    if constexpr (WEIGHED) {
        Weights weights[COUNT];
        if constexpr (WEIGHS<PASS>)
            UNROLL for (int j = 0; j < COUNT; ++j)
                load_weights(t, row.row, source(j), place + j, weights[j]);
        UNROLL for (int j = 0; j < COUNT; ++j)
            if (exists(j))
                row.template make<PASS>(t, row.column + (k + j) * STEP, place + j, in[j], el[j], weights[j]);
    } else
        UNROLL for (int j = 0; j < COUNT; ++j)
            if (exists(j))
                row.template make<PASS>(t, row.column + (k + j) * STEP, place + j, in[j], el[j]);
    if constexpr (STORES_ELEMENTS)
        UNROLL for (int j = 0; j < COUNT; ++j)
            if (exists(j))
                row.template store_elements<PASS>(t, row.column + (k + j) * STEP, place + j, el[j]);
}

// A pass over such a row: groups of vectors that all threads have, then those that are left.
template <int PASS, class Row> __device__ __forceinline__ void walk_memory(const Tensors &t, Row &row)
{
    constexpr int INNER = (COLUMNS - (UNALIGNED ? VECTOR : 0)) / STEP, COUNT = WEIGHS<PASS> ? (VECTORS_AT_ONCE + 1) / 2 : VECTORS_AT_ONCE;
    constexpr int GROUPS = INNER / COUNT, LEFT = VECTORS - GROUPS * COUNT;
    if constexpr (GROUPS > 0)
        make_together<PASS, COUNT, false>(t, row, 0, 0);
#pragma unroll 1
    for (int g = 1; g < GROUPS; ++g)
        make_together<PASS, COUNT, false>(t, row, g * COUNT, 1);
    if constexpr (LEFT > 0)
        make_together<PASS, LEFT, true>(t, row, VECTORS - LEFT, VECTORS - LEFT);
}

// The passes up to this one over rows that are read again. Vector by vector where that saves loads of weights,
// otherwise row by row; the first pass begins on each row as soon as its copy has arrived.
template <int PASS, class Row>
__device__ __forceinline__ void walk_again(const Tensors &t, Row (&rows)[ROWS_TOGETHER], bool stores, int made)
{
    static_assert(PASS >= 0 && PASS < PASSES, "a pass of the rows'");
    if constexpr (PASS > 0)
        walk_again<PASS - 1>(t, rows, stores, made);
    const Index column = rows[0].column;
    const int round = (ROUNDS * made + ROUNDS_BEFORE<PASS>) * ROWS_TOGETHER;   // of the first row
    constexpr int EACH = ROUNDS_BEFORE<PASS + 1> - ROUNDS_BEFORE<PASS>;
    if constexpr (!COPIED && VECTORS_AT_ONCE > 0) {
        walk_memory<PASS>(t, rows[0]);
        finish_row<PASS>(t, rows[0], stores, round);
    } else if constexpr (ROWS_TOGETHER == 1 || WEIGHS<PASS>) {
        if (ROWS_TOGETHER > 1 && PASS == 0)
            async_wait<0>();
        UNROLL_VECTORS for (int k = 0; k < VECTORS; ++k)
            if (begins_inside(column, k))
                make_vectors<PASS>(t, rows, k);
        UNROLL for (int r = 0; r < ROWS_TOGETHER; ++r)
            finish_row<PASS>(t, rows[r], stores, round + EACH * r);
    } else
        UNROLL for (int r = 0; r < ROWS_TOGETHER; ++r) {
            if (PASS == 0)
                r + 1 < ROWS_TOGETHER ? async_wait<1>() : async_wait<0>();
            UNROLL_VECTORS for (int k = 0; k < VECTORS; ++k)
                if (begins_inside(column, k))
                    make_vector<PASS>(t, rows[r], r, k, Weights());
            finish_row<PASS>(t, rows[r], stores, round + EACH * r);
        }
}

// Computes ROWS_TOGETHER rows that every pass reads again, from memory or from their copies; they are ROWS_APART
// apart.
template <class Row> __device__ __forceinline__ void make_rows(const Tensors &t, int lane, Index own, int made)
{
    const Index own_row = own / ROWS_APART * (ROWS_APART * ROWS_TOGETHER) + own % ROWS_APART;
    const bool active = own_row < ROWS;
    const Index first = op_min<Index>(own_row, ROWS - 1), column = lane * VECTOR - shift_of(first);
    if (COPIED)
        UNROLL for (int r = 0; r < ROWS_TOGETHER; ++r)
            copy_row(t, r, first + r * ROWS_APART, column);
    if (COPIED && ROWS_TOGETHER == 1)
        async_wait<0>();
    Row rows[ROWS_TOGETHER];
    UNROLL for (int r = 0; r < ROWS_TOGETHER; ++r) {
        rows[r].row = first + r * ROWS_APART;
        rows[r].column = column;
        if constexpr (STARTS)
            finish_row<-1>(t, rows[r], active, 0);
    }
    walk_again<PASSES - 1>(t, rows, active, made);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS_PER_SM) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    int thread = (int)threadIdx.x;
    Index block = (Index)blockIdx.x;
    if (CLUSTER > 1) {
        cluster_arrive();
        thread += (int)(block % CLUSTER) * THREADS;
        block /= CLUSTER;
    }
    if (ROWS_OF_GROUP == 1) {
        if (KEPT)
            make_row<Row>(t, thread % GROUP, block * ROWS_OF_BLOCK + thread / GROUP, 0);
        else
            make_rows<Row>(t, thread % GROUP, block * ROWS_OF_BLOCK + thread / GROUP, 0);
    } else {
        const int lane = thread % GROUP;
        const Index first = block * ROWS_OF_GROUP * ROWS_OF_BLOCK;   // of the block
        if (AHEAD)
            copy_row(t, 0, first, lane * VECTOR - shift_of(first));
        for (int made = 0; made < ROWS_OF_GROUP && (made == 0 || first + made * ROWS_OF_BLOCK < ROWS); ++made) {
            const Index own = first + made * ROWS_OF_BLOCK + thread / GROUP;
            if (KEPT)
                make_row<Row>(t, lane, own, made);
            else
                make_rows<Row>(t, lane, own, made);
        }
    }
}
#undef UNROLL_VECTORS
}   // namespace KERNEL
