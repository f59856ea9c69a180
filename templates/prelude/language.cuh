// ---- words of the language ----

#define DEVICE [[maybe_unused]] static __device__ __forceinline__

#ifdef ROLLERC_INTERP
#define UNROLL
#else
#define UNROLL _Pragma("unroll")
#endif

#ifdef ROLLERC_INTERP
#define UNROLL_4
#else
#define UNROLL_4 _Pragma("unroll 4")
#endif

// SHARED(0, float, As, [BK][BM + PAD]): the array `As` at byte 0 of the dynamic shared memory.
#ifndef ROLLERC_INTERP
extern __shared__ __align__(16) unsigned char rollerc_shared[];
#endif
#define SHARED(offset, Type, name, ...) \
    Type(&name) __VA_ARGS__ = *reinterpret_cast<Type(*) __VA_ARGS__>(rollerc_shared + (offset))
