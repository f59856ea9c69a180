// ---- launches ----

#if defined(__HIP__) && !defined(__HIPCC_RTC__)
template <class Kernel>
static inline hipError_t launch_kernel(Kernel *kernel, dim3 grid, dim3 block, void **args, size_t shared, hipStream_t stream)
{
    return hipLaunchKernel(reinterpret_cast<const void *>(kernel), grid, block, args, shared, stream);
}
#endif

#if defined(__HIP__) && !defined(__HIPCC_RTC__)
template <class Kernel> static inline hipError_t set_attribute(Kernel *kernel, hipFuncAttribute attribute, int value)
{
    return hipFuncSetAttribute(reinterpret_cast<const void *>(kernel), attribute, value);
}
#endif

// Launches with programmatic dependent launch, which graphs support since CUDA 12.3.
#if !defined(__HIP__) && !defined(__CUDACC_RTC__)
template <class Kernel>
static cudaError_t launch_early(Kernel *kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
    int driver = 0;
    cudaLaunchAttribute early = {cudaLaunchAttributeProgrammaticStreamSerialization, {}, {}};
    early.val.programmaticStreamSerializationAllowed =
        CUDART_VERSION >= 12030 && cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12030;
    const cudaLaunchConfig_t config = {grid, block, shared, stream, &early, 1};
    return cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(kernel), args);
}
#endif

// Launches with a cluster and, if `early`, as launch_early().
#if !defined(__HIP__) && !defined(__CUDACC_RTC__)
template <class Kernel> static cudaError_t launch_with(Kernel *kernel, dim3 grid, dim3 block, void **args, size_t shared,
                                                       cudaStream_t stream, bool early, dim3 cluster, bool cooperative = false)
{
    int driver = 0;
    cudaLaunchAttribute with[] = {{cudaLaunchAttributeCooperative, {}, {}}, {cudaLaunchAttributeProgrammaticStreamSerialization, {}, {}},
                                  {cudaLaunchAttributeClusterDimension, {}, {}}};
    with[0].val.cooperative = cooperative;
    with[1].val.programmaticStreamSerializationAllowed =
        early && CUDART_VERSION >= 12030 && cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12030;
    with[2].val.clusterDim = {cluster.x, cluster.y, cluster.z};
    const cudaLaunchConfig_t config = {grid, block, shared, stream, with, cluster.x * cluster.y * cluster.z > 1 ? 3u : 2u};
    return cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(kernel), args);
}
#endif

// Calls a function of the driver, which programs need not be linked with.
#if !defined(__HIP__) && !defined(__CUDACC_RTC__)
template <class... Args> static cudaError_t call_driver(const char *name, Args... args)
{
    void *function = nullptr;
#if CUDART_VERSION >= 12050
    cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault);
#else
    cudaGetDriverEntryPoint(name, &function, cudaEnableDefault);
#endif
    return !function ? cudaErrorNotSupported : ((int (*)(Args...))function)(args...) ? cudaErrorInvalidValue : cudaSuccess;
}
#endif

// Encodes a tensor for bulk copies: type of CUtensorMapDataType, sizes and box in elements, strides in bytes. L2 promotes by 128.
#if !defined(__HIP__) && !defined(__CUDACC_RTC__)
template <int RANK> static cudaError_t describe_tensor(TensorMap *map, const void *start, int type,
    const unsigned long long (&sizes)[RANK], const unsigned long long (&strides)[RANK > 1 ? RANK - 1 : 1], const unsigned (&box)[RANK])
{
    const unsigned steps[] = {1, 1, 1, 1, 1};
    return call_driver("cuTensorMapEncodeTiled", map, type, RANK, start, sizes, strides, box, steps, 0, 3, 2, 0);
}
#endif

// Encodes images (channel, one to three spatial axes from the innermost one on, image) for bulk copies in im2col mode. A copy
// brings a run of pixels, of each 128 bytes of channels. Pixels run from the lower corner to the upper corner, which is relative
// to the image's end, in steps: a filter of three taps with a pixel of padding at either side has the corners -1 and -1.
#if !defined(__HIP__) && !defined(__CUDACC_RTC__)
template <int RANK>
static cudaError_t describe_pixels(TensorMap *map, const void *start, int type, const unsigned long long (&sizes)[RANK],
                                   const unsigned long long (&strides)[RANK - 1], const int (&lower)[RANK - 2],
                                   const int (&upper)[RANK - 2], const unsigned (&steps)[RANK - 2], unsigned pixels)
{
    unsigned every[RANK] = {};
    for (int d = 0; d < RANK; d++)
        every[d] = d > 0 && d < RANK - 1 ? steps[d - 1] : 1;
    const int channels = type > 1 ? 32 : 128 >> type;
    return call_driver("cuTensorMapEncodeIm2col", map, type, RANK, start, sizes, strides, lower, upper, channels, pixels, every, 0,
                       3, 2, 0);
}
#endif

// Adds an edge of a graph. `early`: a programmatic edge, the second node may begin as the blocks of the first
// one let it.
#if defined(CUDART_VERSION) && !defined(__HIP__) && !defined(__CUDACC_RTC__)
static inline cudaError_t add_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to, bool early)
{
#if CUDART_VERSION >= 12030
    int driver = 0;
    cudaGraphEdgeData edge = {};
    if (early && cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12030) {
        edge.from_port = cudaGraphKernelNodePortProgrammatic;
        edge.type = cudaGraphDependencyTypeProgrammatic;
    }
#if CUDART_VERSION >= 13000
    return cudaGraphAddDependencies(graph, &from, &to, &edge, 1);
#else
    return edge.from_port ? cudaGraphAddDependencies_v2(graph, &from, &to, &edge, 1) : cudaGraphAddDependencies(graph, &from, &to, 1);
#endif
#else
    (void)early;
    return cudaGraphAddDependencies(graph, &from, &to, 1);
#endif
}
#endif

// The numbers of a node's predecessors; -1 ends the list.
#if defined(CUDART_VERSION) && !defined(__HIP__) && !defined(__CUDACC_RTC__)
template <int... NODE> static inline const int *after()
{
    static const int nodes[] = {NODE..., -1};
    return nodes;
}
#endif

// Adds kernel `number` to a graph. `before` lists its predecessors; -1 ends the list. Before CUDA 12.3 kernel
// nodes have no programmatic edges: the kernel then begins when its predecessors have completed. The
// arguments are copied.
#if defined(CUDART_VERSION) && !defined(__HIP__) && !defined(__CUDACC_RTC__)
template <class Kernel>
static inline cudaError_t add_node(cudaGraph_t graph, cudaGraphNode_t *nodes, int number, const int *before, Kernel *kernel, void **args,
                                   dim3 grid, dim3 block, dim3 cluster, size_t shared, bool cooperative, bool early)
{
    cudaKernelNodeParams params = {};
    params.func = reinterpret_cast<void *>(kernel);
    params.gridDim = grid;
    params.blockDim = block;
    params.sharedMemBytes = static_cast<unsigned>(shared);
    params.kernelParams = args;
    cudaError_t status = cudaGraphAddKernelNode(&nodes[number], graph, nullptr, 0, &params);
    cudaKernelNodeAttrValue value = {};
    if (status == cudaSuccess && cooperative) {
        value.cooperative = 1;
        status = cudaGraphKernelNodeSetAttribute(nodes[number], cudaKernelNodeAttributeCooperative, &value);
    }
#if CUDART_VERSION >= 11080
    if (status == cudaSuccess && cluster.x * cluster.y * cluster.z > 1) {
        value = {};
        value.clusterDim.x = cluster.x;
        value.clusterDim.y = cluster.y;
        value.clusterDim.z = cluster.z;
        status = cudaGraphKernelNodeSetAttribute(nodes[number], cudaLaunchAttributeClusterDimension, &value);
    }
#endif
    for (; status == cudaSuccess && *before >= 0; before++)
        status = add_edge(graph, nodes[*before], nodes[number], early);
    return status;
}
#endif
