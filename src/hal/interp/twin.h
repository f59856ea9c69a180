// The host's twin of CUDA: what a generated file and its prelude need to compile as plain C++.
//
// It comes before the generated text and includes nothing but calls.h and numbers.h: the whole program then
// compiles in a fraction of a second. Threads are fibers (machine.h); one block runs at a time, or a cluster,
// or the grid of a cooperative launch.
#include "calls.h"

#define ROLLERC_INTERP 1
#define UNROLL
#define UNROLL_4
#define thread_local   // the launcher runs on one thread
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__

// ---- the mathematical library, without its header ----

extern "C" {
float expf(float);      double exp(double);
float logf(float);      double log(double);
float sqrtf(float);     double sqrt(double);
float tanhf(float);     double tanh(double);
float erff(float);      double erf(double);
float sinf(float);      double sin(double);
float cosf(float);      double cos(double);
float powf(float, float);
float fmaf(float, float, float);
double pow(double, double);
float fabsf(float);     double fabs(double);
float fmaf(float, float, float);
float floorf(float);    double floor(double);
float ceilf(float);     double ceil(double);
}
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
#define __expf expf
#define __logf logf
#define __fdividef(a, b) ((a) / (b))

template <class To, class From> static inline To rollerc_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}
static inline unsigned __float_as_uint(float x) { return rollerc_bits<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return rollerc_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return rollerc_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return rollerc_bits<double>(x); }
#include "numbers.h"

// ---- threads ----

namespace rollerc {

constexpr int WARP = ROLLERC_WARP;   // 32 or 64, told to the compiler
template <int LANES> struct LaneMaskOf { using type = unsigned; };
template <> struct LaneMaskOf<64> { using type = unsigned long long; };
using LaneMask = LaneMaskOf<WARP>::type;   // bit i: lane i

}   // namespace rollerc

namespace rollerc_interp {

extern ROLLERC_EXPORT const Here here;

template <class T> static inline T exchange_value(T value, int source, Place place)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    bits = exchange(bits, source, place);
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

}   // namespace rollerc_interp

#define threadIdx (rollerc_interp::here.thread)
#define blockIdx (rollerc_interp::here.block)
#define blockDim (rollerc_interp::here.block_size)
#define gridDim (rollerc_interp::here.grid_size)
#define rollerc_shared (rollerc_interp::here.shared_memory)

// The caller's place: an argument that nobody writes.
#define ROLLERC_PLACE rollerc_interp::Place place = {__builtin_FILE(), __builtin_LINE()}

namespace rollerc {

static inline void block_sync(ROLLERC_PLACE) { rollerc_interp::barrier(place); }
static inline void warp_sync(ROLLERC_PLACE) { rollerc_interp::warp_barrier(place); }
static inline int lane_id() { return rollerc_interp::here.lane; }
static inline LaneMask warp_ballot(bool vote, ROLLERC_PLACE)
{
    return static_cast<LaneMask>(rollerc_interp::ballot(vote, place));
}

static inline int next_turn(int turn, int turns) { return rollerc_interp::next_turn(turn, turns); }
static inline int cluster_rank() { return rollerc_interp::cluster_rank(); }
static inline int cluster_size() { return rollerc_interp::cluster_size(); }
static inline void cluster_arrive(ROLLERC_PLACE) { rollerc_interp::cluster_arrive(place); }
static inline void cluster_wait(ROLLERC_PLACE) { rollerc_interp::cluster_wait(place); }
static inline void cluster_sync(ROLLERC_PLACE)
{
    rollerc_interp::cluster_arrive(place);
    rollerc_interp::cluster_wait(place);
}
template <class T> static inline T *cluster_map(T *shared, int rank, ROLLERC_PLACE)
{
    return static_cast<T *>(rollerc_interp::cluster_map(shared, rank, place));
}
static inline void grid_sync(ROLLERC_PLACE) { rollerc_interp::grid_barrier(place); }
static inline void let_next_begin() {}
static inline void wait_for_earlier() { rollerc_interp::wait_for_earlier(); }

// Groups of `width` neighbours; a lane whose partner lies outside its group keeps its own value.
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

template <class Chunk> static inline Chunk read_global(const Chunk *p) { return *p; }
static inline float softmax_exp_f16(float a) { return expf(a); }
static inline float softmax_exp_bf16(float a) { return expf(a); }

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
template <class Word, class Sum>
static inline void multiply_tiles_of(rollerc_interp::TileElement element, const Word (&a)[4], Word b0,
                                     Word b1, Sum (&c)[4], ROLLERC_PLACE)
{
    const Word b[2] = {b0, b1};
    rollerc_interp::multiply_tiles(element, a, b, c, place);
}
static inline void multiply_half_tiles_of(rollerc_interp::TileElement element, unsigned a0, unsigned a1,
                                          unsigned b, float (&c)[4], ROLLERC_PLACE)
{
    const unsigned a[4] = {a0, a1};
    multiply_tiles_of(element, a, b, 0u, c, place);
}

static inline unsigned shared_address(const void *p)
{
    return rollerc_interp::SHARED_START +
           static_cast<unsigned>(static_cast<const unsigned char *>(p) - rollerc_shared);
}
static inline void show_operands(ROLLERC_PLACE) { rollerc_interp::show_operands(place); }
static inline void open_products_of(ROLLERC_PLACE) { rollerc_interp::open_products(place); }
static inline void close_products(ROLLERC_PLACE) { rollerc_interp::close_products(place); }
static inline void wait_products_for(int groups, ROLLERC_PLACE)
{
    rollerc_interp::wait_products(static_cast<unsigned>(groups), place);
}
template <class Sum, int COUNT>
static inline void multiply_shared_of(rollerc_interp::TileElement element, Sum (&c)[COUNT],
                                      unsigned long long a, unsigned long long b, bool turn_a, bool turn_b,
                                      ROLLERC_PLACE)
{
    rollerc_interp::multiply_shared({element, COUNT * 2, a, b, turn_a, turn_b}, c, place);
}

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
static inline void copy_box(void *target, const void *map, int x, int y, int z, unsigned long long *barrier,
                            ROLLERC_PLACE)
{
    const int at[rollerc_interp::TENSOR_BOX_RANK] = {x, y, z};
    rollerc_interp::bulk_copy(target, map, at, barrier, 1u << rollerc_interp::cluster_rank(), place);
}
static inline void copy_box_to(unsigned blocks, void *target, const void *map, int x, int y, int z,
                               unsigned long long *barrier, ROLLERC_PLACE)
{
    const int at[rollerc_interp::TENSOR_BOX_RANK] = {x, y, z};
    rollerc_interp::bulk_copy(target, map, at, barrier, blocks, place);
}
static inline void async_copy16(void *shared, const void *global, ROLLERC_PLACE)
{
    rollerc_interp::async_copy(shared, global, 16, place);
}
template <class T> static inline void async_copy_element(T *shared, const T *global, ROLLERC_PLACE)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "what there are instructions for");
    rollerc_interp::async_copy(shared, global, static_cast<int>(sizeof(T)), place);
}
static inline const void *async_zeros()
{
    alignas(16) static const unsigned zeros[4] = {};
    return zeros;
}
template <class T> static inline void async_copy_element_or_zero(bool exists, T *shared, const T *global, ROLLERC_PLACE)
{
    async_copy_element(shared, exists ? global : static_cast<const T *>(async_zeros()), place);
}
static inline void async_commit(ROLLERC_PLACE) { rollerc_interp::async_commit(place); }
template <int N> static inline void async_wait(ROLLERC_PLACE)
{
    rollerc_interp::async_wait(static_cast<unsigned>(N), place);
}
static inline void async_read16(void *shared, const void *global, ROLLERC_PLACE)
{
    rollerc_interp::async_copy(shared, global, 16, place);
}

}   // namespace rollerc

// ---- the CUDA runtime, as far as a launcher uses it ----

enum { CUDART_VERSION = 13000 };   // no macro: what guards itself by one is left out
typedef void *cudaStream_t;
enum cudaLaunchAttributeID {
    cudaLaunchAttributeClusterDimension,
    cudaLaunchAttributeCooperative,
    cudaLaunchAttributeProgrammaticStreamSerialization
};

struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    struct {
        struct {
            unsigned x, y, z;
        } clusterDim;
        int cooperative;
        int programmaticStreamSerializationAllowed;
    } val;
};

struct cudaLaunchConfig_t {   // filled in this order: two of CUDA's names are macros here
    dim3 grid, block;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};

static inline cudaError_t cudaGetLastError() { return cudaSuccess; }
static inline cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

namespace rollerc_interp {

template <int... I> struct Indices {};
template <int COUNT, int... I> struct Count : Count<COUNT - 1, COUNT - 1, I...> {};
template <int... I> struct Count<0, I...> { using type = Indices<I...>; };

template <class... Params, int... I>
static inline void call(void (*kernel)(Params...), [[maybe_unused]] void **args, Indices<I...>)
{
    kernel(*static_cast<Params *>(args[I])...);
}

template <class... Params> static void call_kernel(const Invocation &invocation)
{
    call(reinterpret_cast<void (*)(Params...)>(invocation.kernel), invocation.args,
         typename Count<sizeof...(Params)>::type());
}

template <class... Params> static Invocation invocation_of(void (*kernel)(Params...), void **args)
{
    return {call_kernel<Params...>, reinterpret_cast<void *>(kernel), args};
}

}   // namespace rollerc_interp

static inline cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

static inline cudaError_t cudaMemsetAsync(void *memory, int byte, size_t count, cudaStream_t)
{
    return rollerc_interp::clear(memory, byte, count);
}

template <class... Params>
static inline cudaError_t cudaLaunchKernel(void (*kernel)(Params...), dim3 grid, dim3 block, void **args,
                                           size_t shared, cudaStream_t)
{
    return rollerc_interp::launch(rollerc_interp::invocation_of(kernel, args),
                                  {grid, block, shared, dim3(), false, false});
}

template <class... Params>
static inline cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Params...), dim3 grid, dim3 block,
                                                      void **args, size_t shared, cudaStream_t)
{
    return rollerc_interp::launch(rollerc_interp::invocation_of(kernel, args),
                                  {grid, block, shared, dim3(), true, false});
}

template <class... Params>
static inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, void (*kernel)(Params...),
                                              void **args)
{
    rollerc_interp::LaunchShape shape = {config->grid, config->block, config->dynamicSmemBytes, dim3(),
                                         false, false};
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const cudaLaunchAttribute &attribute = config->attrs[i];
        if (attribute.id == cudaLaunchAttributeCooperative)
            shape.cooperative = attribute.val.cooperative;
        else if (attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization)
            shape.early = attribute.val.programmaticStreamSerializationAllowed;
        else
            shape.cluster =
                dim3(attribute.val.clusterDim.x, attribute.val.clusterDim.y, attribute.val.clusterDim.z);
    }
    return rollerc_interp::launch(rollerc_interp::invocation_of(kernel, args), shape);
}

template <class... Params>
static inline cudaError_t cudaFuncSetAttribute(void (*kernel)(Params...), cudaFuncAttribute attribute,
                                               int value)
{
    return rollerc_interp::allow(reinterpret_cast<void *>(kernel), attribute, value);
}
