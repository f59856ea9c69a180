// The interpreter's intrinsics: what an emitted file has between "// <rollerc: intrinsics>" and "// </rollerc>",
// and templates/prelude/intrinsics/ for the templates as they stand. All else of an emitted file is compiled
// as it is. Behind twin.h, and for each emitted file anew: the namespace may be called something else.

#define UNROLL
#define UNROLL_4

namespace rollerc {

// ---- threads ----

constexpr int WARP = ROLLERC_WARP;   // 32 or 64, told to the compiler
template <int LANES> struct LaneMaskOf { using type = unsigned; };
template <> struct LaneMaskOf<64> { using type = unsigned long long; };
using LaneMask = LaneMaskOf<WARP>::type;   // bit i: lane i

static inline int next_turn(int turn, int turns) { return rollerc_interp::next_turn(turn, turns); }
static inline void block_sync(ROLLERC_PLACE) { rollerc_interp::barrier(place); }
template <int THREADS> static inline void roles_sync(ROLLERC_PLACE)
{
    rollerc_interp::roles_barrier(THREADS, place);
}
static inline void warp_sync(ROLLERC_PLACE) { rollerc_interp::warp_barrier(place); }
static inline int lane_id() { return rollerc_interp::here.lane; }
static inline LaneMask warp_ballot(bool vote, ROLLERC_PLACE)
{
    return static_cast<LaneMask>(rollerc_interp::ballot(vote, place));
}

// Groups of `width` adjacent lanes; a lane whose partner lies outside its group keeps its own value.
template <class T> static inline T warp_shuffle(T value, int lane, int width = WARP, ROLLERC_PLACE)
{
    const int group = lane_id() & ~(width - 1);
    return rollerc_interp::exchange_value(value, group | (lane & (width - 1)), place);
}
template <class T> static inline T warp_shuffle_xor(T value, int mask, int width = WARP, ROLLERC_PLACE)
{
    const int self = lane_id(), partner = self ^ mask;
    const bool inside = (partner & ~(width - 1)) <= (self & ~(width - 1));
    return rollerc_interp::exchange_value(value, inside ? partner : self, place);
}
template <class T> static inline T warp_shuffle_down(T value, int delta, int width = WARP, ROLLERC_PLACE)
{
    const int self = lane_id();
    const bool inside = (self & (width - 1)) + delta < width;
    return rollerc_interp::exchange_value(value, inside ? self + delta : self, place);
}

// ---- reals of 16 bits, in integer arithmetic ----

struct f16 { unsigned short bits; };   // 1 sign, 5 exponent, 10 fraction
struct bf16 { unsigned short bits; };   // 1 sign, 8 exponent, 7 fraction

static __forceinline__ float widen(f16 x)
{
    const unsigned sign = (x.bits & 0x8000u) << 16;
    const unsigned rest = (x.bits & 0x7fffu) << 13;
    if (rest >= 0x0f800000u)   // infinity, NaN
        return __uint_as_float(sign | 0x70000000u | rest);
    const plain_float two_to_112 = __uint_as_float(0x77800000u);   // biases: 127 - 15
    const plain_float magnitude = __uint_as_float(rest) * two_to_112;
    return sign ? -magnitude : magnitude;
}

// To the nearest, ties to even.
static __forceinline__ f16 f16_of(float x)
{
    const unsigned bits = __float_as_uint(x);
    const unsigned sign = bits >> 16 & 0x8000u;
    const unsigned magnitude = bits & 0x7fffffffu;
    unsigned rounded;
    if (magnitude > 0x7f800000u)         // NaN
        rounded = 0x7fffu;
    else if (magnitude >= 0x47800000u)   // 2^16 and up
        rounded = 0x7c00u;
    else if (magnitude < 0x38800000u)    // below 2^-14: the last bit of 0.5f weighs 2^-24, its upper half is cut off
        rounded = __float_as_uint(__uint_as_float(magnitude) + 0.5f);
    else                                 // a carry may reach the exponent, up to infinity
        rounded = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    return f16{static_cast<unsigned short>(sign | rounded)};
}

// To the nearest, ties to even: the upper half and a carry from the lower one.
static __forceinline__ bf16 bf16_rounded(float x)
{
    const unsigned bits = __float_as_uint(x);
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const unsigned rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return bf16{static_cast<unsigned short>(is_nan ? 0x7fffu : rounded)};
}

static inline float softmax_exp_f16(float a) { return expf(a); }
static inline float softmax_exp_bf16(float a) { return expf(a); }
static inline float power_of_two(float a) { return exp2f(a); }
static inline float reciprocal_of(float a) { return 1.0f / a; }

// Both rounded: the first in the lower half of a register.
static inline unsigned pair_of(f16, float low, float high)
{
    return f16_of(low).bits | static_cast<unsigned>(f16_of(high).bits) << 16;
}
static inline unsigned pair_of(bf16, float low, float high)
{
    return bf16_rounded(low).bits | static_cast<unsigned>(bf16_rounded(high).bits) << 16;
}

// ---- blocks and launches ----

static inline int cluster_rank() { return rollerc_interp::cluster_rank(); }
static inline int cluster_size() { return rollerc_interp::cluster_size(); }
static inline void cluster_arrive(ROLLERC_PLACE) { rollerc_interp::cluster_arrive(place); }
static inline void cluster_wait(ROLLERC_PLACE) { rollerc_interp::cluster_wait(place); }
static inline void cluster_sync(ROLLERC_PLACE)
{
    rollerc_interp::cluster_arrive(place);
    rollerc_interp::cluster_wait(place);
}
static inline void cluster_leave(ROLLERC_PLACE) { cluster_sync(place); }
template <class T> static inline T *cluster_map(T *shared, int rank, ROLLERC_PLACE)
{
    return static_cast<T *>(rollerc_interp::cluster_map(shared, rank, place));
}
static inline void grid_sync(ROLLERC_PLACE) { rollerc_interp::grid_barrier(place); }
static inline void let_next_begin() {}
static inline void hold_loads() {}
static inline void wait_for_earlier() { rollerc_interp::wait_for_earlier(); }

// ---- memory ----

template <class Chunk> static inline Chunk read_global(const Chunk *p) { return *p; }
template <class Chunk> static __forceinline__ Chunk stream_global(const Chunk *p) { return *p; }
template <class Index, class T, int N> static inline void load_below(Index k, Index end, const T *p, T (&out)[N])
{
    for (int i = 0; i < N; i++)
        out[i] = k < end ? p[i] : T();
}

// By one access.
template <int N> static __forceinline__ void store_shared(void *shared, const unsigned (&words)[N])
{
    struct alignas(N * 4) Words {
        unsigned at[N];
    } copy;
    for (int i = 0; i < N; i++)
        copy.at[i] = words[i];
    *static_cast<Words *>(shared) = copy;
}

static inline void async_copy16(void *shared, const void *global, ROLLERC_PLACE)
{
    rollerc_interp::async_copy(shared, global, 16, place);
}
static inline const void *async_zeros()
{
    alignas(16) static const unsigned zeros[4] = {};
    return zeros;
}
template <class T>
static inline void async_copy_element_or_zero(bool exists, T *shared, const T *global, ROLLERC_PLACE)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "what there are instructions for");
    rollerc_interp::async_copy(shared, exists ? global : static_cast<const T *>(async_zeros()), static_cast<int>(sizeof(T)), place);
}
static inline void async_commit(ROLLERC_PLACE) { rollerc_interp::async_commit(place); }
template <int N> static inline void async_wait(ROLLERC_PLACE)
{
    rollerc_interp::async_wait(static_cast<unsigned>(N), place);
}
static inline void async_copy16_or_zero(bool exists, void *shared, const void *global, ROLLERC_PLACE)
{
    async_copy16(shared, exists ? global : async_zeros(), place);
}
static inline void async_copy16_of_line(bool exists, void *shared, const void *global, ROLLERC_PLACE)
{
    async_copy16_or_zero(exists, shared, global, place);
}

// ---- tensor cores ----

using i8 = signed char;
using u8 = unsigned char;
using f32 = float;
using f64 = double;
using i32 = int;

// Of products of elements of a type: what a lane has of a factor, and of a sum.
template <rollerc_interp::TileElement ELEMENT, class WordOfFactor, class SumOfProducts> struct Tile {
    static constexpr rollerc_interp::TileElement element = ELEMENT;
    using Word = WordOfFactor;
    using Sum = SumOfProducts;
};
template <class T> struct TileOf;
template <> struct TileOf<f16> : Tile<rollerc_interp::TILE_F16, unsigned, float> {};
template <> struct TileOf<bf16> : Tile<rollerc_interp::TILE_BF16, unsigned, float> {};
template <> struct TileOf<f32> : Tile<rollerc_interp::TILE_TF32, unsigned, float> {};
template <> struct TileOf<i8> : Tile<rollerc_interp::TILE_I8, unsigned, int> {};
template <> struct TileOf<u8> : Tile<rollerc_interp::TILE_U8, unsigned, int> {};
template <> struct TileOf<f64> : Tile<rollerc_interp::TILE_F64, f64, f64> {};
template <class T> using FactorOf = typename TileOf<T>::Word;
template <class T> using SumOf = typename TileOf<T>::Sum;

static inline void load_matrices(unsigned (&tile)[4], const void *line, ROLLERC_PLACE)
{
    const rollerc_interp::MatrixLine own = *static_cast<const rollerc_interp::MatrixLine *>(line);
    rollerc_interp::load_matrices(&own, false, tile, place);
}
static inline void load_matrices_turned(unsigned (&tile)[4], const void *line, ROLLERC_PLACE)
{
    const rollerc_interp::MatrixLine own = *static_cast<const rollerc_interp::MatrixLine *>(line);
    rollerc_interp::load_matrices(&own, true, tile, place);
}
template <class T>
static inline void multiply_tiles(T, const FactorOf<T> (&a)[4], FactorOf<T> b0, FactorOf<T> b1, SumOf<T> (&c)[4],
                                  ROLLERC_PLACE)
{
    const FactorOf<T> b[2] = {b0, b1};
    rollerc_interp::multiply_tiles(TileOf<T>::element, false, a, b, c, place);
}
template <class T>
static inline void multiply_half_tiles(T, unsigned a0, unsigned a1, unsigned b, float (&c)[4], ROLLERC_PLACE)
{
    const unsigned a[4] = {a0, a1}, both[2] = {b};
    rollerc_interp::multiply_tiles(TileOf<T>::element, true, a, both, c, place);
}

static inline unsigned shared_address(const void *p)
{
    return rollerc_interp::SHARED_START +
           static_cast<unsigned>(static_cast<const unsigned char *>(p) - rollerc_shared);
}
static inline void show_operands(ROLLERC_PLACE) { rollerc_interp::show_operands(place); }
template <class Value, int COUNT> static inline void open_products(Value (&)[COUNT], ROLLERC_PLACE)
{
    rollerc_interp::open_products(place);
}
static inline void close_products(ROLLERC_PLACE) { rollerc_interp::close_products(place); }
template <int N, class Value, int COUNT> static inline void wait_products(Value (&)[COUNT], ROLLERC_PLACE)
{
    rollerc_interp::wait_products(static_cast<unsigned>(N), place);
}
template <class Element, int COLUMNS> struct Product {};
template <class Element, int COLUMNS> struct Held {};
template <bool TURN_A, bool TURN_B, class T, int COLUMNS>
static inline void multiply_shared(Product<T, COLUMNS>, SumOf<T> (&c)[COLUMNS / 2], unsigned long long a,
                                   unsigned long long b, bool adds = true, ROLLERC_PLACE)
{
    for (int i = 0; i < COLUMNS / 2 && !adds; i++)
        c[i] = 0;
    rollerc_interp::multiply_shared({TileOf<T>::element, COLUMNS, a, b, TURN_A, TURN_B}, c, place);
}
template <bool TURN_B, class T, int COLUMNS>
static inline void multiply_held(Held<T, COLUMNS>, float (&c)[COLUMNS / 2], const unsigned (&a)[4],
                                 unsigned long long b, ROLLERC_PLACE)
{
    rollerc_interp::multiply_held({TileOf<T>::element, COLUMNS, 0, b, false, TURN_B}, a, c, place);
}
static inline unsigned hold_word(unsigned word) { return word; }
static inline void drop_sum(float &) {}
static inline int same_in_warp(int x) { return x; }

// ---- bulk copies ----

struct alignas(64) TensorMap {   // holds a TensorBox
    unsigned char opaque[128];
};

static inline void mbarrier_init(unsigned long long *barrier, int arrivals, ROLLERC_PLACE)
{
    rollerc_interp::mbarrier_init(barrier, arrivals, place);
}
static inline void mbarrier_expect(unsigned long long *barrier, int bytes, ROLLERC_PLACE)
{
    rollerc_interp::mbarrier_expect(barrier, bytes, place);
}
static inline void mbarrier_arrive(unsigned long long *barrier, ROLLERC_PLACE)
{
    rollerc_interp::mbarrier_arrive(barrier, rollerc_interp::cluster_rank(), place);
}
static inline void mbarrier_arrive_at(unsigned long long *barrier, int rank, ROLLERC_PLACE)
{
    rollerc_interp::mbarrier_arrive(barrier, rank, place);
}
static inline void mbarrier_wait(unsigned long long *barrier, unsigned parity, ROLLERC_PLACE)
{
    rollerc_interp::mbarrier_wait(barrier, parity, place);
}
static inline void prefetch_map(const void *) {}
template <int RANK>
static inline void copy_box_at(void *target, const void *map, const int (&at)[RANK], unsigned long long *barrier,
                               ROLLERC_PLACE)
{
    rollerc_interp::BoxPlace from = {RANK, 0, {}, {}};
    for (int d = 0; d < RANK; d++)
        from.at[d] = at[d];
    rollerc_interp::bulk_copy(target, map, from, barrier, 1u << rollerc_interp::cluster_rank(), place);
}
static inline void copy_box(void *target, const void *map, int x, int y, int z, unsigned long long *barrier,
                            ROLLERC_PLACE)
{
    copy_box_at(target, map, {x, y, z}, barrier, place);
}
static inline void copy_box_to(unsigned blocks, void *target, const void *map, int x, int y, int z,
                               unsigned long long *barrier, ROLLERC_PLACE)
{
    rollerc_interp::bulk_copy(target, map, {3, 0, {x, y, z}, {}}, barrier, blocks, place);
}
template <int AXES>
static inline void copy_pixels(void *target, const void *map, const int (&at)[AXES + 2], const int (&offset)[AXES],
                               unsigned long long *barrier, ROLLERC_PLACE)
{
    rollerc_interp::BoxPlace from = {AXES + 2, AXES, {}, {}};
    for (int d = 0; d < AXES + 2; d++)
        from.at[d] = at[d];
    for (int i = 0; i < AXES; i++)
        from.offset[i] = offset[i];
    rollerc_interp::bulk_copy(target, map, from, barrier, 1u << rollerc_interp::cluster_rank(), place);
}
template <int N> static inline void give_registers()
{
    static_assert(N % 8 == 0 && N >= 24 && N <= 256, "as many as a thread may have");
}
template <int N> static inline void take_registers() { give_registers<N>(); }

// ---- what the launcher needs ----

template <class... Params>
static inline cudaError_t launch_with(void (*kernel)(Params...), dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t,
                                      bool early, dim3 cluster, bool cooperative = false)
{
    return rollerc_interp::launch(rollerc_interp::invocation_of(kernel, args), {grid, block, shared, cluster, cooperative, early});
}

template <class... Params>
static inline cudaError_t launch_early(void (*kernel)(Params...), dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
    return launch_with(kernel, grid, block, args, shared, stream, true, 1);
}

template <int... NODE> static inline const int *after()
{
    static const int nodes[] = {NODE..., -1};
    return nodes;
}

template <class... Params>
static inline cudaError_t add_node(cudaGraph_t, cudaGraphNode_t *nodes, int number, const int *after, void (*kernel)(Params...),
                                   void **args, dim3 grid, dim3 block, dim3 cluster, size_t shared, bool cooperative, bool early)
{
    static const size_t sizes[] = {sizeof(Params)..., 0};
    nodes[number] = {number};
    return rollerc_interp::add_node(number, after, rollerc_interp::invocation_of(kernel, args), sizes,
                                    {grid, block, shared, cluster, cooperative, early});
}

// The driver's CUtensorMapDataType: unsigned integers of 1, 2 and 4 bytes, and floats that are rounded.
enum { TF32 = 11 };
static inline int bytes_of(int type) { return type < 2 ? type + 1 : 4; }
template <int RANK>
static inline cudaError_t describe_tensor(TensorMap *map, const void *start, int type,
                                          const unsigned long long (&sizes)[RANK],
                                          const unsigned long long (&strides)[RANK > 1 ? RANK - 1 : 1],
                                          const unsigned (&box)[RANK])
{
    return rollerc_interp::encode_boxes(map, start, RANK, bytes_of(type), type == TF32, sizes, strides, box);
}
template <int RANK>
static inline cudaError_t describe_pixels(TensorMap *map, const void *start, int type,
                                          const unsigned long long (&sizes)[RANK], const unsigned long long (&strides)[RANK - 1],
                                          const int (&lower)[RANK - 2], const int (&upper)[RANK - 2],
                                          const unsigned (&steps)[RANK - 2], unsigned pixels)
{
    return rollerc_interp::encode_pixels(map, start, RANK, bytes_of(type), type == TF32, sizes, strides, lower, upper, steps, pixels);
}

// HIP's.
template <class... Params>
static inline cudaError_t launch_kernel(void (*kernel)(Params...), dim3 grid, dim3 block, void **args, size_t shared,
                                        cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}
template <class... Params>
static inline cudaError_t set_attribute(void (*kernel)(Params...), cudaFuncAttribute attribute, int value)
{
    return cudaFuncSetAttribute(kernel, attribute, value);
}

}   // namespace rollerc
