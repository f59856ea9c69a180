// ---- copies that may be under way while the threads go on ----

// Copies of 16 bytes may be under way until async_wait<N>(): all groups but the last N have then landed.
#ifndef ROLLERC_INTERP
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE void async_copy16(void *shared, const void *global)
{
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(target), "l"(global) : "memory");
}
// The same with read_global's priority in L2.
DEVICE void async_read16(void *shared, const void *global)
{
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("{ .reg .b64 policy;\n"
                 "  createpolicy.fractional.L2::evict_last.b64 policy;\n"
                 "  cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, policy; }"
                 :
                 : "r"(target), "l"(global)
                 : "memory");
}
// One element of 4 or 8 bytes; these pass L1.
template <class T> DEVICE void async_copy_element(T *shared, const T *global)
{
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                 :
                 : "r"(target), "l"(global), "n"(sizeof(T))
                 : "memory");
}
// The same, or zeros where there is nothing to read.
template <class T> DEVICE void async_copy_element_or_zero(bool exists, T *shared, const T *global)
{
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :
                 : "r"(target), "l"(global), "n"(sizeof(T)), "r"(exists ? static_cast<int>(sizeof(T)) : 0)
                 : "memory");
}
DEVICE void async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#else
DEVICE void async_copy16(void *shared, const void *global)
{
    *static_cast<Vector<unsigned, 4> *>(shared) = *static_cast<const Vector<unsigned, 4> *>(global);
}
template <class T> DEVICE void async_copy_element(T *shared, const T *global) { *shared = *global; }
template <class T> DEVICE void async_copy_element_or_zero(bool exists, T *shared, const T *global)
{
    *shared = exists ? *global : T();
}
DEVICE void async_commit() {}
template <int N> DEVICE void async_wait() {}
DEVICE void async_read16(void *shared, const void *global) { async_copy16(shared, global); }
#endif
#endif

// N elements, all inside their tensor; read_async has read_global's priority in L2.
template <int N, class T, class Index> DEVICE void copy_async(T *shared, const T *p, Index index)
{
    UNROLL for (int i = 0; i < N; i += AT_ONCE<T, N>)
        async_copy16(shared + i, p + index + i);
}
template <int N, class T, class Index> DEVICE void read_async(T *shared, const T *p, Index index)
{
    UNROLL for (int i = 0; i < N; i += AT_ONCE<T, N>)
        async_read16(shared + i, p + index + i);
}

// The same where some may lie beyond the end of their tensor, unless `inside`; those become zeros.
template <int N, class T, class Index>
DEVICE void copy_inside(bool inside, T *shared, const T *p, Index index, Index size)
{
    if (inside || index + N <= size) {
        copy_async<N>(shared, p, index);
        return;
    }
#pragma unroll 1
    for (int i = 0; i < N; i++)
        shared[i] = index + i < size ? p[index + i] : T();
}
