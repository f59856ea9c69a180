// ---- lists of launches ----

// Launches go to a stream, or become nodes of a graph. After an error none is made.
#if defined(__HIP__) && !defined(__HIPCC_RTC__)
struct Launches {
    hipStream_t stream;
    hipError_t status;
};
#endif
#if !defined(__HIP__) && !defined(__CUDACC_RTC__)
struct Launches {
    cudaStream_t stream;
    cudaError_t status;
    cudaGraph_t graph = nullptr;   // null: launches go to the stream
    cudaGraphNode_t *nodes = nullptr;
    int count = 0;   // nodes so far
};
#endif

// Launches a kernel, or adds it as a node. `after` lists the node's predecessors; -1 ends the list. `early`:
// the node may begin as the blocks of its predecessors let it, otherwise when they have completed.
#if defined(__HIP__) && !defined(__HIPCC_RTC__)
template <class Kernel>
static inline void make_launch(Launches &to, const int *, bool, Kernel *kernel, void **args, dim3 grid, dim3 block,
                               size_t shared, bool cooperative)
{
    if (to.status == hipSuccess)
        to.status = cooperative ? hipLaunchCooperativeKernel(kernel, grid, block, args, shared, to.stream)
                                : launch_kernel(kernel, grid, block, args, shared, to.stream);
}
#endif
#if !defined(__HIP__) && !defined(__CUDACC_RTC__)
template <class Kernel>
static inline void make_launch(Launches &to, const int *after, bool early, Kernel *kernel, void **args, dim3 grid,
                               dim3 block, size_t shared, bool cooperative)
{
    if (to.status != cudaSuccess)
        return;
    if (to.graph)
        to.status = add_node(to.graph, to.nodes, to.count++, after, kernel, args, grid, block, dim3(1, 1, 1), shared,
                             cooperative, early);
    else if (cooperative)
        to.status = cudaLaunchCooperativeKernel(kernel, grid, block, args, shared, to.stream);
    else
        to.status = cudaLaunchKernel(kernel, grid, block, args, shared, to.stream);
}
#endif

// As make_launch(), with a cluster size and, if `begins`, programmatic dependent launch.
#if !defined(__HIP__) && !defined(__CUDACC_RTC__)
template <class Kernel>
static inline void make_launch_with(Launches &to, const int *after, bool early, Kernel *kernel, void **args, dim3 grid,
                                    dim3 block, size_t shared, bool cooperative, dim3 cluster, bool begins)
{
    if (to.status != cudaSuccess)
        return;
    if (to.graph) {
        to.status = add_node(to.graph, to.nodes, to.count++, after, kernel, args, grid, block, cluster, shared,
                             cooperative, early);
        return;
    }
    to.status = launch_with(kernel, grid, block, args, shared, to.stream, begins, cluster, cooperative);
}
#endif
