// ---- words of the language ----

#if !defined(ROLLERC_INTERP) && defined(__HIP__) && !defined(__HIPCC_RTC__)
#include <hip/hip_runtime.h>
#endif

#define DEVICE [[maybe_unused]] static __device__ __forceinline__
#define SPECIAL template <> [[maybe_unused]] __device__ __forceinline__   // a function, for one type

// SHARED(0, float, As, [BK][BM + PAD]): the array `As` at byte 0 of the dynamic shared memory.
#ifndef ROLLERC_INTERP
extern __shared__ __align__(16) unsigned char rollerc_shared[];
#endif
#define SHARED(offset, Type, name, ...) \
    [[maybe_unused]] Type(&name) __VA_ARGS__ = *reinterpret_cast<Type(*) __VA_ARGS__>(rollerc_shared + (offset))
