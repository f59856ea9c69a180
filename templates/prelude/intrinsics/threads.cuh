// ---- threads ----

#define UNROLL _Pragma("unroll")
#define UNROLL_4 _Pragma("unroll 4")
extern __shared__ __align__(16) unsigned char rollerc_shared[];
#if defined(__HIP__) && defined(__AMDGCN_WAVEFRONT_SIZE)
constexpr int WARP = __AMDGCN_WAVEFRONT_SIZE;
#elif defined(__HIP__)
constexpr int WARP = 64;
#else
constexpr int WARP = 32;
#endif
#if defined(__HIP__)
using LaneMask = unsigned long long;   // bit i: lane i
#else
using LaneMask = unsigned;
#endif

DEVICE int next_turn(int turn, int) { return turn + 1; }   // of a persistent block; the interpreter may skip some
DEVICE void block_sync() { __syncthreads(); }

// Synchronises all THREADS of a block from code of warps in different roles.
#if defined(__HIP__)
template <int THREADS> DEVICE void roles_sync() { __syncthreads(); }
#else
template <int THREADS> DEVICE void roles_sync() { asm volatile("barrier.sync 1, %0;" ::"n"(THREADS) : "memory"); }
#endif

#if defined(__HIP__)
DEVICE void warp_sync() { __builtin_amdgcn_wave_barrier(); }
#else
DEVICE void warp_sync() { __syncwarp(0xffffffffu); }
#endif

#if defined(__HIP__)
DEVICE int lane_id() { return static_cast<int>(__lane_id()); }
#else
DEVICE int lane_id() { int lane; asm("mov.u32 %0, %%laneid;" : "=r"(lane)); return lane; }
#endif

#if defined(__HIP__)
DEVICE LaneMask warp_ballot(bool vote) { return __ballot(vote); }
#else
DEVICE LaneMask warp_ballot(bool vote) { return __ballot_sync(0xffffffffu, vote); }
#endif

#if defined(__HIP__)
template <class T> DEVICE T warp_shuffle(T x, int lane, int n = WARP) { return __shfl(x, lane, n); }
template <class T> DEVICE T warp_shuffle_xor(T x, int mask, int n = WARP) { return __shfl_xor(x, mask, n); }
template <class T> DEVICE T warp_shuffle_down(T x, unsigned by, int n = WARP) { return __shfl_down(x, by, n); }
#else
template <class T> DEVICE T warp_shuffle(T x, int lane, int n = WARP) { return __shfl_sync(~0u, x, lane, n); }
template <class T> DEVICE T warp_shuffle_xor(T x, int mask, int n = WARP) { return __shfl_xor_sync(~0u, x, mask, n); }
template <class T> DEVICE T warp_shuffle_down(T x, unsigned by, int n = WARP) { return __shfl_down_sync(~0u, x, by, n); }
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE float op_max(float a, float b) { float c; asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b)); return c; }
DEVICE float op_min(float a, float b) { float c; asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b)); return c; }
#endif

// Reads global memory. Accesses of 16 bytes hint L2 to keep what they read longer than what is written: 0.95
// to 0.99 of the time where as much is written as read.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <class Chunk> DEVICE Chunk read_global(const Chunk *p)
{
    if (sizeof(Chunk) != 16)
        return *p;
    union { Chunk chunk; unsigned words[4]; } read;
    asm volatile("{ .reg .b64 policy;\n  createpolicy.fractional.L2::evict_last.b64 policy;\n"
                 "  ld.global.L1::evict_last.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], policy; }"
                 : "=r"(read.words[0]), "=r"(read.words[1]), "=r"(read.words[2]), "=r"(read.words[3]) : "l"(p));
    return read.chunk;
}
#else
template <class Chunk> DEVICE Chunk read_global(const Chunk *p) { return *p; }
#endif
