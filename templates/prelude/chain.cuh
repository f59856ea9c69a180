// ---- launches that begin while the one before them ends ----

// However the kernel is left.
struct WaitsAtItsEnd {
    __device__ __forceinline__ ~WaitsAtItsEnd() { wait_for_earlier(); }
};
