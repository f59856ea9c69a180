// ---- language ----

#define DEVICE [[maybe_unused]] static __device__ __forceinline__

// SHARED(TILE, float, As, [BK][BM + PAD]): the array `As` in the region TILE of shared memory.
#define SHARED_AT(offset, Type, name, ...) \
    [[maybe_unused]] Type(&name) __VA_ARGS__ = *reinterpret_cast<Type(*) __VA_ARGS__>(rollerc_shared + (offset))
#define SHARED(REGION, Type, name, ...) SHARED_AT(REGION.at, Type, name, __VA_ARGS__); \
    static_assert((int)sizeof(Type __VA_ARGS__) <= REGION.bytes, #name " has room in " #REGION)
