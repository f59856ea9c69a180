#include "hal/cuda.h"

#include <stdio.h>

#include "hal/shared_library.h"

static const char *const names[] = {"libcuda.so.1", NULL};   // of the driver: never in a toolkit's folder

static const LibrarySymbol symbols[] = {
    LIBRARY_SYMBOL(Cuda, init, "cuInit"),
    LIBRARY_SYMBOL(Cuda, driver_version, "cuDriverGetVersion"),
    LIBRARY_SYMBOL(Cuda, error_name, "cuGetErrorName"),
    LIBRARY_SYMBOL(Cuda, device_count, "cuDeviceGetCount"),
    LIBRARY_SYMBOL(Cuda, device_get, "cuDeviceGet"),
    LIBRARY_SYMBOL(Cuda, device_name, "cuDeviceGetName"),
    LIBRARY_SYMBOL(Cuda, device_attribute, "cuDeviceGetAttribute"),
    LIBRARY_SYMBOL(Cuda, device_memory, "cuDeviceTotalMem_v2"),
    LIBRARY_SYMBOL(Cuda, context_retain, "cuDevicePrimaryCtxRetain"),
    LIBRARY_SYMBOL(Cuda, context_use, "cuCtxSetCurrent"),
    LIBRARY_SYMBOL(Cuda, memory_info, "cuMemGetInfo_v2"),
    LIBRARY_SYMBOL(Cuda, memory_new, "cuMemAlloc_v2"),
    LIBRARY_SYMBOL(Cuda, memory_free, "cuMemFree_v2"),
    LIBRARY_SYMBOL(Cuda, memory_set, "cuMemsetD8_v2"),
    LIBRARY_SYMBOL(Cuda, to_device, "cuMemcpyHtoD_v2"),
    LIBRARY_SYMBOL(Cuda, to_host, "cuMemcpyDtoH_v2"),
    LIBRARY_SYMBOL(Cuda, copy, "cuMemcpyDtoDAsync_v2"),
    LIBRARY_SYMBOL(Cuda, module_load, "cuModuleLoadData"),
    LIBRARY_SYMBOL(Cuda, module_unload, "cuModuleUnload"),
    LIBRARY_SYMBOL(Cuda, module_function, "cuModuleGetFunction"),
    LIBRARY_SYMBOL(Cuda, function_set, "cuFuncSetAttribute"),
    {"cuTensorMapEncodeTiled", offsetof(Cuda, describe_tensor), true},   // 12.0
    {"cuTensorMapEncodeIm2col", offsetof(Cuda, describe_pixels), true},
    LIBRARY_SYMBOL(Cuda, launch, "cuLaunchKernelEx"),
    LIBRARY_SYMBOL(Cuda, stream_new, "cuStreamCreate"),
    LIBRARY_SYMBOL(Cuda, stream_wait, "cuStreamSynchronize"),
    LIBRARY_SYMBOL(Cuda, event_new, "cuEventCreate"),
    LIBRARY_SYMBOL(Cuda, event_record, "cuEventRecord"),
    LIBRARY_SYMBOL(Cuda, event_elapsed, "cuEventElapsedTime"),
    LIBRARY_SYMBOL(Cuda, capture_begin, "cuStreamBeginCapture_v2"),
    LIBRARY_SYMBOL(Cuda, capture_end, "cuStreamEndCapture"),
    LIBRARY_SYMBOL(Cuda, graph_prepare, "cuGraphInstantiateWithFlags"),
    LIBRARY_SYMBOL(Cuda, graph_launch, "cuGraphLaunch"),
    LIBRARY_SYMBOL(Cuda, graph_run_free, "cuGraphExecDestroy"),
    LIBRARY_SYMBOL(Cuda, graph_free, "cuGraphDestroy"),
};

const char *cuda_error_name(const Cuda *cuda, int error)
{
    const char *name = NULL;
    return cuda->error_name(error, &name) == CUDA_SUCCESS && name ? name : "an unknown error";
}

bool cuda_open(Cuda *cuda, char *reason, size_t reason_bytes)
{
    char missing[500];
    if (!library_open(names, symbols, sizeof symbols / sizeof *symbols, cuda, missing, sizeof missing)) {
        snprintf(reason, reason_bytes, "there is no usable GPU: no driver (libcuda.so.1) is installed");
        return false;
    }
    int error = cuda->init(0);
    if (error != CUDA_SUCCESS)
        snprintf(reason, reason_bytes, "there is no usable GPU: the driver says %s",
                 cuda_error_name(cuda, error));
    return error == CUDA_SUCCESS;
}
