// Column kernel: reductions over outer axes for each of the innermost positions (channels of NHWC), with
// pointwise steps before, between and after them. Global memory is read once.
//
// A thread computes VECTOR contiguous channels and holds POSITIONS_EACH positions of them in registers. LANES
// adjacent threads access contiguous channels; GROUPS rows of threads share the positions:
//
//                 channels   lane 0   lane 1   …   lane LANES-1
//   position 0    group 0   [VECTOR] [VECTOR]  …  [VECTOR]
//   position 1    group 1   [VECTOR] [VECTOR]  …  [VECTOR]
//   …                                                              GROUPS positions at a time
//
// A channel is reduced across the groups: by shuffles within a warp, through shared memory across warps.
// Where nothing is reduced, or only sums are, the block iterates in steps of GROUPS * POSITIONS_EACH
// positions.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// Reduces this thread's channels across all groups; all of them get the results. Reductions alternate between
// two buffers in shared memory, 0 and 1, so that one barrier each suffices.
template <class Reduction, class T, int COUNT> __device__ void reduce_columns(T (&value)[COUNT], int place);

// A thread's first channel, and its first position of a step.
template <class Index> struct Here {
    Index slab, channel, position;
    int before, count;   // its positions in previous steps, and in this one
    bool stores;
};

// The values of channels before the first pass.
struct ChannelStart {
    static constexpr int PASSES = 0;
    template <class... Any> __device__ __forceinline__ void finish(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void store_channels(const Any &...) const {}
};

// A pass; it inherits the results of earlier passes. It overrides some of:
//
//   start            totals, before the first step      finish           totals of a step
//   begin            each step                          conclude         totals of all steps
//   make             elements of a position             store_channels   stores results of the totals
//   add              adds elements to the totals
//   store_elements   stores elements
//   pack_elements    stores one-bit elements, by whole warps
template <class Earlier> struct Pass : Earlier {
    using Before = Earlier;
    static constexpr int PASSES = Earlier::PASSES + 1;
    static constexpr bool STORES = false;   // elements

    template <class... Any> __device__ __forceinline__ void start(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void begin(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void make(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void add(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void store_elements(const Any &...) const {}
    template <class... Any> __device__ __forceinline__ void pack_elements(const Any &...) const {}
    template <class... Any> __device__ __forceinline__ void finish(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void conclude(const Any &...) {}
    template <class... Any> __device__ __forceinline__ void store_channels(const Any &...) const {}
};

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // x[100, 64]
    float *out0;        // y[100, 64]
};
#define PARAMETERS const float *__restrict__ in0, float *__restrict__ out0
#define TENSORS {in0, out0}
constexpr Region PARTIAL = {0, 8704};   // of shared memory, in bytes
constexpr int SHARED_BYTES = 8704;   // of a block
constexpr Index CHANNELS = 64;
constexpr Index POSITIONS = 100;
constexpr int LANES = 16;           // threads along the channels
constexpr int GROUPS = 16;          // threads along the positions
constexpr int VECTOR = 4;           // contiguous channels of an access
constexpr int POSITIONS_EACH = 7;   // of a thread
constexpr int RESULT_BYTES = 4;     // of the widest reduction
constexpr bool CARRIED = false;     // totals are kept from step to step
constexpr bool BACKWARDS = false;   // the last blocks first: L2 may still hold what they read

// Invariants: inputs that a thread loads once for its channels.
struct Invariants {};

__device__ __forceinline__ void load_invariants(const Tensors &, Index, Index, Invariants &) {}

// What the channels of one position load.
struct Inputs {
    Packed<float, VECTOR> x0;
};

__device__ __forceinline__ void load_elements(const Tensors &t, Index, Index channel, Index at, Inputs &in)
{
    load_packed(t.in0, at * 64 + channel, in.x0);
}

// What the passes compute of them.
struct Elements {
    float v1[VECTOR];
};

struct Start : ChannelStart {};

struct Pass0 : Pass<Start> {
    float total0[VECTOR];
    float v0[VECTOR];

    __device__ __forceinline__ void start(const Tensors &, const Here<Index> &, const Invariants &)
    {
        UNROLL for (int e = 0; e < VECTOR; ++e)
            total0[e] = Sum::identity<float>();
    }
    __device__ __forceinline__ void add(const Tensors &, const Here<Index> &, Index, const Inputs &in, const Invariants &,
                                        const Elements &)
    {
        UNROLL for (int e = 0; e < VECTOR; ++e)
            total0[e] = Sum::combine(total0[e], in.x0[e]);
    }
    __device__ __forceinline__ void finish(const Tensors &, const Here<Index> &, const Invariants &)
    {
        reduce_columns<Sum>(total0, 0);
        UNROLL for (int e = 0; e < VECTOR; ++e)
            v0[e] = total0[e];
    }
};

struct Pass1 : Pass<Pass0> {
    static constexpr bool STORES = true;

    __device__ __forceinline__ void make(const Tensors &, const Here<Index> &, Index, const Inputs &in, const Invariants &,
                                         Elements &el)
    {
        UNROLL for (int e = 0; e < VECTOR; ++e)
            el.v1[e] = op_sub(in.x0[e], v0[e]);
    }
    __device__ __forceinline__ void store_elements(const Tensors &t, const Here<Index> &here, Index at, const Elements &el) const
    {
        store_vector<VECTOR>(t.out0, at * 64 + here.channel, el.v1);
    }
};
using LastPass = Pass1;
// </rollerc>

constexpr int THREADS = LANES * GROUPS;
constexpr int TILE = LANES * VECTOR;                              // channels of a block
constexpr Index TILES = (CHANNELS + TILE - 1) / TILE;
constexpr int GROUPS_OF_WARP = (WARP + LANES - 1) / LANES;        // reduced by shuffles
constexpr int PARTIALS = (GROUPS + GROUPS_OF_WARP - 1) / GROUPS_OF_WARP;
constexpr Index STEP = GROUPS * POSITIONS_EACH;                   // positions
constexpr bool EVEN = POSITIONS % STEP == 0;                      // every step is a whole one
static_assert(THREADS % WARP == 0, "whole warps");
static_assert((LANES & (LANES - 1)) == 0, "groups lie at the same lanes of every warp");
static_assert(CHANNELS % VECTOR == 0, "channels are whole vectors");

constexpr int PLACE_BYTES = (PARTIALS + 1) * TILE * RESULT_BYTES;   // one row for the groups of each warp, one for the totals

template <class Reduction, class T, int COUNT> __device__ void reduce_columns(T (&value)[COUNT], int place)
{
    UNROLL for (int e = 0; e < COUNT; ++e)
        for (int mask = LANES; mask < WARP; mask *= 2)
            value[e] = Reduction::combine(value[e], warp_shuffle_xor(value[e], mask));
    if (PARTIALS == 1)
        return;
    SHARED_AT(place * PLACE_BYTES, T, partial, [PARTIALS + 1][TILE]);
    static_assert(PARTIALS == 1 || 2 * PLACE_BYTES <= PARTIAL.bytes, "both places have room");
    const int thread = (int)threadIdx.x, lane = thread % LANES, group = thread / LANES;
    if (group % GROUPS_OF_WARP == 0)
        UNROLL for (int e = 0; e < COUNT; ++e)
            partial[group / GROUPS_OF_WARP][lane * VECTOR + e] = value[e];
    block_sync();
    for (int channel = thread; channel < TILE; channel += THREADS) {
        T total = partial[0][channel];
        UNROLL for (int i = 1; i < PARTIALS; ++i)
            total = Reduction::combine(total, partial[i][channel]);
        partial[PARTIALS][channel] = total;
    }
    block_sync();
    UNROLL for (int e = 0; e < COUNT; ++e)
        value[e] = partial[PARTIALS][lane * VECTOR + e];
}

// Whether there is a position k steps of GROUPS after `position`.
__device__ __forceinline__ bool is_inside(Index position, int k)
{
    return EVEN || position + k * GROUPS < POSITIONS;
}

// How many of the next POSITIONS_EACH positions of this thread exist, from `position` on.
__device__ __forceinline__ int positions_inside(Index position)
{
    if (EVEN)
        return POSITIONS_EACH;
    const Index left = (POSITIONS - position + GROUPS - 1) / GROUPS;   // a group begins less than GROUPS after the last position
    return static_cast<int>(op_min(left, static_cast<Index>(POSITIONS_EACH)));
}

// ---- passes ----

// What a thread has loaded.
struct Work {
    const Tensors &t;
    const Inputs *inputs;   // of its positions
    const Invariants &invariants;
};

// One pass over the thread's positions of a step. Past the last position it computes position 0, and adds and
// stores nothing.
template <class Pass> __device__ __forceinline__ void walk(const Work &work, Here<Index> &here, Pass &pass)
{
    if (!CARRIED)
        pass.start(work.t, here, work.invariants);
    here.before = static_cast<int>(here.position / GROUPS);
    here.count = positions_inside(here.position);
    pass.begin(work.t, here, work.invariants);
    UNROLL for (int k = 0; k < POSITIONS_EACH; ++k) {
        const bool within = (!Pass::STORES || here.stores) && is_inside(here.position, k);
        const Index at = within ? here.position + k * GROUPS : 0;
        Elements el;
        pass.make(work.t, here, at, work.inputs[k], work.invariants, el);
        pass.pack_elements(work.t, here, at, el, within);
        if (within) {
            pass.add(work.t, here, at, work.inputs[k], work.invariants, el);
            pass.store_elements(work.t, here, at, el);
        }
    }
    pass.finish(work.t, here, work.invariants);
    if (!CARRIED && here.stores && here.position == 0)
        pass.store_channels(work.t, here);
}

// All passes up to this one.
template <class Pass> __device__ __forceinline__ void walk_all(const Work &work, Here<Index> &here, Pass &pass)
{
    if constexpr (Pass::PASSES > 1)
        walk_all<typename Pass::Before>(work, here, pass);
    walk<Pass>(work, here, pass);
}

template <class Pass> __device__ __forceinline__ void start_all(const Work &work, const Here<Index> &here, Pass &pass)
{
    if constexpr (Pass::PASSES > 1)
        start_all<typename Pass::Before>(work, here, pass);
    pass.start(work.t, here, work.invariants);
}

// A step of this thread's channels. Its position k is `position + k * GROUPS`.
__device__ __forceinline__ void compute(const Work &work, Here<Index> &here, LastPass &pass)
{
    pass.Start::finish(work.t, here, work.invariants);
    if (!CARRIED && here.stores && here.position == 0)
        pass.Start::store_channels(work.t, here);
    walk_all<LastPass>(work, here, pass);
}

// The results of the totals of all steps, stored by the first group.
__device__ __forceinline__ void conclude(const Work &work, Here<Index> &here, LastPass &pass)
{
    here.count = static_cast<int>(here.position < POSITIONS ? (POSITIONS - here.position + GROUPS - 1) / GROUPS : 0);
    pass.Start::finish(work.t, here, work.invariants);
    pass.conclude(work.t, here, work.invariants);
    if (here.stores && here.position == 0) {
        pass.Start::store_channels(work.t, here);
        pass.store_channels(work.t, here);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    const Index group = (Index)threadIdx.x / LANES, lane = (Index)threadIdx.x % LANES;
    const Index block = BACKWARDS ? (Index)(gridDim.x - 1 - blockIdx.x) : (Index)blockIdx.x;
    const Index tile = block % TILES, slab = block / TILES;
    const Index own_channel = tile * TILE + lane * VECTOR;
    const bool active = own_channel < CHANNELS;   // other threads only take part in barriers and shuffles
    const Index channel = active ? own_channel : CHANNELS - VECTOR;

    Invariants invariants;
    load_invariants(t, slab, channel, invariants);
    Inputs inputs[POSITIONS_EACH];
    const Work work = {t, inputs, invariants};
    Here<Index> here = {slab, channel, group, 0, 0, active};
    LastPass pass;
    if (CARRIED)
        start_all<LastPass>(work, here, pass);
    for (Index first = 0; first < POSITIONS; first += STEP) {
        here.position = first + group;
        UNROLL for (int k = 0; k < POSITIONS_EACH; ++k)   // past the last position: any, so that no load waits for a branch
            load_elements(t, slab, channel, is_inside(here.position, k) ? here.position + k * GROUPS : first, inputs[k]);
        compute(work, here, pass);
    }
    here.position = group;
    if (CARRIED)
        conclude(work, here, pass);
}
}   // namespace KERNEL
