// ---- programmatic dependent launch ----

// Waits wherever the kernel returns.
struct WaitsAtItsEnd {
    __device__ __forceinline__ ~WaitsAtItsEnd() { wait_for_earlier(); }
};
