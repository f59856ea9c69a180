// ---- words of the language ----

#define DEVICE [[maybe_unused]] static __device__ __forceinline__
#define SPECIAL template <> [[maybe_unused]] __device__ __forceinline__   // a function, for one type

// SHARED(0, float, As, [BK][BM + PAD]): the array `As` at byte 0 of the dynamic shared memory.
#define SHARED(offset, Type, name, ...) \
    [[maybe_unused]] Type(&name) __VA_ARGS__ = *reinterpret_cast<Type(*) __VA_ARGS__>(rollerc_shared + (offset))
