// Kernels that the profiler needs itself: inputs are made where they are used, and samples of outputs
// collected. Compiled with NVRTC beside the candidates.

// The same as input_position() in src/clock/profile_reference.c: which of 4096 values an element has.
static __device__ unsigned input_position(long long element)
{
    const unsigned long long x = static_cast<unsigned long long>(element) * 0x9e3779b97f4a7c15ull;
    return static_cast<unsigned>((x ^ x >> 30) * 0xbf58476d1ce4e5b9ull >> 52);
}

static __device__ long long first_element()
{
    return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

static __device__ long long step() { return static_cast<long long>(gridDim.x) * blockDim.x; }

template <class T> static __device__ void fill(T *out, const T *table, long long count)
{
    for (long long i = first_element(); i < count; i += step())
        out[i] = table[input_position(i)];
}

template <class T>
static __device__ void gather(T *out, const T *in, const long long *elements, long long count)
{
    for (long long i = first_element(); i < count; i += step())
        out[i] = in[elements[i]];
}

#define HELPERS(bytes, T)                                                                                    \
    extern "C" __global__ void rollerc_fill_##bytes(T *out, const T *table, long long count)                 \
    {                                                                                                        \
        fill(out, table, count);                                                                             \
    }                                                                                                        \
    extern "C" __global__ void rollerc_gather_##bytes(T *out, const T *in, const long long *at,              \
                                                      long long count)                                       \
    {                                                                                                        \
        gather(out, in, at, count);                                                                          \
    }

HELPERS(1, unsigned char)
HELPERS(2, unsigned short)
HELPERS(4, unsigned)
HELPERS(8, unsigned long long)

// b1: element e is bit e % 32 of word e / 32; the bits behind the last element are zero.
extern "C" __global__ void rollerc_fill_0(unsigned *out, const unsigned char *table, long long count)
{
    for (long long word = first_element(); word < (count + 31) / 32; word += step()) {
        unsigned bits = 0;
        for (int i = 0; i < 32 && 32 * word + i < count; i++)
            bits |= static_cast<unsigned>(table[input_position(32 * word + i)]) << i;
        out[word] = bits;
    }
}

extern "C" __global__ void rollerc_gather_0(unsigned *out, const unsigned *in, const long long *at,
                                            long long count)
{
    for (long long i = first_element(); i < count; i += step())
        out[i] = in[at[i] / 32];
}
