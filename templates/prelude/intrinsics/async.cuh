// ---- asynchronous copies from global to shared memory (cp.async) ----

// Starts an asynchronous copy of 16 bytes. async_wait<N>() waits until all but the last N committed groups
// have completed. There is no L2 cache hint: ptxas 13.0 may encode a copy with one as an illegal instruction,
// where it finds a part of the shared address that is uniform.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE void async_copy16(void *shared, const void *global)
{ asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(shared_address(shared)), "l"(global) : "memory"); }
// Copies one element of 4 or 8 bytes, or writes zeros unless the source exists. Such copies go through L1.
template <class T> DEVICE void async_copy_element_or_zero(bool exists, T *shared, const T *global)
{ asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
               : : "r"(shared_address(shared)), "l"(global), "n"(sizeof(T)), "r"(exists ? (int)sizeof(T) : 0) : "memory"); }
DEVICE void async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
#else
DEVICE void async_copy16(void *shared, const void *global)
{
    *static_cast<Words<4> *>(shared) = *static_cast<const Words<4> *>(global);
}
template <class T> DEVICE void async_copy_element_or_zero(bool exists, T *shared, const T *global)
{
    *shared = exists ? *global : T();
}
DEVICE void async_commit() {}
template <int N> DEVICE void async_wait() {}
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// Copies 16 bytes, or writes zeros unless the source exists.
DEVICE void async_copy16_or_zero(bool exists, void *shared, const void *global)
{ asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               : : "r"(shared_address(shared)), "l"(global), "r"(exists ? 16 : 0) : "memory"); }
// The same for a line that is read as a whole: L2 loads 128 bytes of it at once.
DEVICE void async_copy16_of_line(bool exists, void *shared, const void *global)
{ asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
               : : "r"(shared_address(shared)), "l"(global), "r"(exists ? 16 : 0) : "memory"); }
#else
DEVICE void async_copy16_or_zero(bool exists, void *shared, const void *global)
{
    if (exists)
        async_copy16(shared, global);
    else
        *static_cast<Words<4> *>(shared) = Words<4>();
}
DEVICE void async_copy16_of_line(bool exists, void *shared, const void *global) { async_copy16_or_zero(exists, shared, global); }
#endif
