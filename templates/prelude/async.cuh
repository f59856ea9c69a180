// ---- asynchronous copies of vectors ----

// Copies N elements inside their tensor.
template <int N, class T, class Index> DEVICE void copy_async(T *shared, const T *p, Index index)
{
    UNROLL for (int i = 0; i < N; i += AT_ONCE<T, N>)
        async_copy16(shared + i, p + index + i);
}

// As copy_async(). Unless `inside`, elements may lie beyond the end of the tensor; those become zeros.
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
