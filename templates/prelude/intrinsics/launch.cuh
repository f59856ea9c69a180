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

#if defined(CUDART_VERSION) && CUDART_VERSION >= 11080 && !defined(__CUDACC_RTC__)   // launches with attributes
template <class Kernel>
static inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, Kernel *kernel, void **args)
{
    return ::cudaLaunchKernelExC(config, reinterpret_cast<const void *>(kernel), args);
}
#endif

// The launch attribute of programmatic dependent launch. Graphs support it since CUDA 12.3.
#if !defined(__HIP__) && !defined(__CUDACC_RTC__)
static inline cudaLaunchAttribute begins_early()
{
    int driver = 0;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed =
        CUDART_VERSION >= 12030 && cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12030;
    return attribute;
}
#endif

// Encodes a tensor of up to five dimensions for bulk copies: `sizes` in elements, `strides` in bytes from the
// second dimension on, `box` in elements, 128 bytes along the first dimension. With `tf32` floats are rounded
// to tf32 as they are copied. The driver encodes it on the host; nothing is sent to the device.
#if !defined(__HIP__) && !defined(__CUDACC_RTC__)
template <int RANK>
static inline cudaError_t describe_tensor(TensorMap *map, const void *start, int element_bytes, const long long (&sizes)[RANK],
                                          const long long (&strides)[RANK > 1 ? RANK - 1 : 1], const int (&box)[RANK],
                                          bool tf32 = false)
{
    using Encode = int (*)(void *map, int type, unsigned rank, void *start, const unsigned long long *sizes,
                           const unsigned long long *strides, const unsigned *box, const unsigned *steps, int interleave,
                           int swizzle, int promotion, int fill);   // cuTensorMapEncodeTiled, of cuda.h
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
#else
    const cudaError_t status = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &entry, cudaEnableDefault, &found);
#endif
    if (status != cudaSuccess || found != cudaDriverEntryPointSuccess)
        return status != cudaSuccess ? status : cudaErrorNotSupported;
    unsigned long long counts[RANK], apart[RANK];
    unsigned boxes[RANK], steps[RANK];
    for (int d = 0; d < RANK; d++) {
        counts[d] = static_cast<unsigned long long>(sizes[d]);
        apart[d] = d + 1 < RANK ? static_cast<unsigned long long>(strides[d]) : 0;
        boxes[d] = static_cast<unsigned>(box[d]);
        steps[d] = 1;
    }
    const int bits = element_bytes == 1 ? 0 : element_bytes == 2 ? 1 : 2, type = tf32 ? 11 : bits;   // copied without conversion
    const int lines_of_128_bytes = 3, promotion_128_bytes = 2;   // 128-byte swizzle; L2 promotion: 256 bytes took up to 1.13 of the time
    const int error = reinterpret_cast<Encode>(entry)(map, type, RANK, const_cast<void *>(start), counts, apart, boxes, steps, 0,
                                                      lines_of_128_bytes, promotion_128_bytes, 0);
    return error == 0 ? cudaSuccess : cudaErrorInvalidValue;
}
#endif

// Encodes images (channel, one to three spatial axes from the innermost one on, image) for bulk copies in
// im2col mode. A copy brings a run of pixels, of each 128 bytes of channels. Pixels run from the lower corner
// to the upper corner in steps; the upper corner is relative to the image's end: a filter of three taps with
// a pixel of padding at either side has the corners -1 and -1.
#if !defined(__HIP__) && !defined(__CUDACC_RTC__)
template <int RANK>
static inline cudaError_t describe_pixels(TensorMap *map, const void *start, int element_bytes, const long long (&sizes)[RANK],
                                          const long long (&strides)[RANK - 1], const int (&lower)[RANK - 2],
                                          const int (&upper)[RANK - 2], const int (&steps)[RANK - 2], int pixels, bool tf32 = false)
{
    using Encode = int (*)(void *map, int type, unsigned rank, void *start, const unsigned long long *sizes,
                           const unsigned long long *strides, const int *lower, const int *upper, unsigned channels, unsigned pixels,
                           const unsigned *steps, int interleave, int swizzle, int promotion, int fill);   // cuTensorMapEncodeIm2col
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &entry, 12000, cudaEnableDefault, &found);
#else
    const cudaError_t status = cudaGetDriverEntryPoint("cuTensorMapEncodeIm2col", &entry, cudaEnableDefault, &found);
#endif
    if (status != cudaSuccess || found != cudaDriverEntryPointSuccess)
        return status != cudaSuccess ? status : cudaErrorNotSupported;
    unsigned long long counts[RANK], apart[RANK - 1];
    unsigned every[RANK];
    for (int d = 0; d < RANK; d++) {
        counts[d] = static_cast<unsigned long long>(sizes[d]);
        every[d] = d > 0 && d < RANK - 1 ? static_cast<unsigned>(steps[d - 1]) : 1;
    }
    for (int d = 0; d < RANK - 1; d++)
        apart[d] = static_cast<unsigned long long>(strides[d]);
    const int bits = element_bytes == 1 ? 0 : element_bytes == 2 ? 1 : 2, type = tf32 ? 11 : bits;   // copied without conversion
    const int lines_of_128_bytes = 3, promotion_128_bytes = 2;   // as of describe_tensor()
    const int error = reinterpret_cast<Encode>(entry)(map, type, RANK, const_cast<void *>(start), counts, apart, lower, upper,
                                                      static_cast<unsigned>(128 / element_bytes), static_cast<unsigned>(pixels), every,
                                                      0, lines_of_128_bytes, promotion_128_bytes, 0);
    return error == 0 ? cudaSuccess : cudaErrorInvalidValue;
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
