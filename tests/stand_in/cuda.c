// A stand-in for the CUDA driver where there is no GPU: its memory is this process's, and what a kernel does is what its
// "machine code" says in a word.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/cuda.h"

static const char *loaded;   // the word
static int launches;

int cuInit(unsigned flags) { return (int)flags; }
int cuDriverGetVersion(int *version) { return *version = 12030, 0; }
int cuGetErrorName(int error, const char **name) { return *name = error == 209 ? "NO_BINARY_FOR_GPU" : "ERROR", 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal; }
int cuDeviceGetName(char *name, int bytes, int device) { return name[0] = '\0', bytes + device < 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { return *value = attribute, device; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = 1 << 30, device; }
int cuDevicePrimaryCtxRetain(CudaContext *context, int device) { return *context = NULL, device; }
int cuCtxSetCurrent(CudaContext context) { return context != NULL; }
int cuMemGetInfo_v2(size_t *free, size_t *total) { return *free = *total = 1 << 30, 0; }
int cuMemAlloc_v2(CudaPointer *memory, size_t bytes) { return *memory = (CudaPointer)aligned_alloc(256, (bytes + 255) / 256 * 256), 0; }
int cuMemFree_v2(CudaPointer memory) { return free((void *)memory), 0; }
int cuMemsetD8_v2(CudaPointer memory, unsigned char value, size_t bytes) { return memset((void *)memory, value, bytes), 0; }
int cuMemcpyHtoD_v2(CudaPointer to, const void *from, size_t bytes) { return memcpy((void *)to, from, bytes), 0; }
int cuMemcpyDtoDAsync_v2(CudaPointer to, CudaPointer from, size_t bytes, void *stream)
{
    return (void)stream, memcpy((void *)to, (void *)from, bytes), 0;
}
int cuMemcpyDtoH_v2(void *to, CudaPointer from, size_t bytes) { return memcpy(to, (void *)from, bytes), 0; }
int cuModuleUnload(CudaModule module) { return module == NULL; }
int cuFuncSetAttribute(CudaFunction function, int attribute, int value) { return !function || attribute < 0 || value < 0; }
int cuStreamCreate(CudaStream *stream, unsigned flags) { return *stream = NULL, flags != 1; }
int cuStreamSynchronize(CudaStream stream) { return stream != NULL; }
int cuEventCreate(CudaEvent *event, unsigned flags) { return *event = NULL, (int)flags; }
int cuEventRecord(CudaEvent event, CudaStream stream) { return event || stream; }
int cuEventElapsedTime(float *milliseconds, CudaEvent from, CudaEvent to) { return *milliseconds = 1, from || to; }
int cuStreamBeginCapture_v2(CudaStream stream, int mode) { return stream || mode < 0; }
int cuStreamEndCapture(CudaStream stream, CudaGraph *graph) { return *graph = NULL, stream != NULL; }
int cuGraphInstantiateWithFlags(CudaGraphRun *run, CudaGraph graph, unsigned long long flags) { return *run = NULL, graph || flags; }
int cuGraphLaunch(CudaGraphRun run, CudaStream stream) { return run || stream; }
int cuGraphExecDestroy(CudaGraphRun run) { return run != NULL; }
int cuGraphDestroy(CudaGraph graph) { return graph != NULL; }

int cuModuleLoadData(CudaModule *module, const void *image)
{
    loaded = image;
    *module = (CudaModule)(uintptr_t)image;
    return strcmp(image, "of another GPU") == 0 ? 209 : 0;
}

int cuModuleGetFunction(CudaFunction *function, CudaModule module, const char *name)
{
    *function = (CudaFunction)(uintptr_t)name;
    return module == NULL;
}

/* Every launch of a kernel (x, y, w) of 256 floats each: w = 2 x by the first, y = w + 1 by the second. */
int cuLaunchKernelEx(const CudaLaunchConfig *config, CudaFunction function, void **parameters, void **extra)
{
    float *x = *(float **)parameters[0], *y = *(float **)parameters[1], *w = *(float **)parameters[2];
    const char *name = (const char *)function;
    if (strcmp(loaded, "crashes") == 0)
        raise(SIGKILL);
    while (strcmp(loaded, "hangs") == 0)
        sleep(1);
    if (strcmp(loaded, "writes beside") == 0)
        y[256] = 1;
    if (strcmp(loaded, "writes to x") == 0)
        x[7] = 1;
    for (int i = 0; i < 256; i++)
        if (name[strlen(name) - 1] == '0')
            w[i] = 2 * x[i];
        else
            y[i] = w[i] + 1;
    return extra || ++launches > 2 || config->grid[0] != 4 || config->block[0] != 64;
}
