// The host's twin of CUDA: what a generated file and its prelude need to compile as plain C++.
//
// It comes before the generated text, with intrinsics.h behind it, and includes nothing but calls.h: the whole
// program then compiles in a fraction of a second. Threads are fibers (machine.h); one block runs at a time, or a
// cluster, or the grid of a cooperative launch.

#include "calls.h"

#define ROLLERC_INTERP 1
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__

// ---- the mathematical library, without its header ----

extern "C" {
float expf(float);      double exp(double);
float exp2f(float);     double exp2(double);
float logf(float);      double log(double);
float sqrtf(float);     double sqrt(double);
float tanhf(float);     double tanh(double);
float erff(float);      double erf(double);
float sinf(float);      double sin(double);
float cosf(float);      double cos(double);
float atanf(float);     double atan(double);
float asinf(float);     double asin(double);
float acosf(float);     double acos(double);
float powf(float, float);
float fmaf(float, float, float);
double pow(double, double);
float fabsf(float);     double fabs(double);
float fmaf(float, float, float);
float floorf(float);    double floor(double);
float ceilf(float);     double ceil(double);
float rintf(float);     double rint(double);
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

// Bytes of b and a, numbered 7…4 3…0; hexadecimal digit i of the selector says which becomes byte i.
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector)
{
    const unsigned long long bytes = static_cast<unsigned long long>(b) << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; i++)
        result |= static_cast<unsigned>(bytes >> (selector >> 4 * i & 7u) * 8 & 0xffu) << 8 * i;
    return result;
}
using plain_float = float;   // whatever the program has in its place
#ifdef ROLLERC_COUNTED
#include "arithmetic.h"
#endif

// ---- threads ----

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

// ---- the CUDA runtime, as far as a launcher uses it ----

// A graph's launches are the machine's own (add_node() in intrinsics.h): there is one at a time.
typedef void *cudaGraph_t;
struct cudaGraphNode_t {
    int number;
};
static inline cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned)
{
    static int only;
    *graph = &only;
    return cudaSuccess;
}
static inline cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }

static inline cudaError_t cudaGetLastError() { return cudaSuccess; }

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

static inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return rollerc_interp::settle(); }
enum cudaMemcpyKind { cudaMemcpyDefault = 4 };
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t)
{
    return rollerc_interp::copy(to, from, bytes);
}

template <class... Params>
static inline cudaError_t cudaFuncSetAttribute(void (*kernel)(Params...), cudaFuncAttribute attribute,
                                               int value)
{
    return rollerc_interp::allow(reinterpret_cast<void *>(kernel), attribute, value);
}

// ---- and HIP's ----

#define hipError_t cudaError_t
#define hipSuccess cudaSuccess
#define hipErrorInvalidValue cudaErrorInvalidValue
#define hipStream_t cudaStream_t
#define hipMemcpyAsync cudaMemcpyAsync
#define hipMemcpyDefault cudaMemcpyDefault
#define hipLaunchCooperativeKernel cudaLaunchCooperativeKernel
#define hipFuncAttributeMaxDynamicSharedMemorySize cudaFuncAttributeMaxDynamicSharedMemorySize
