// A CUDA driver without a GPU, for the profiler: its memory is this process's, and every kernel writes zeros, or what
// STAND_IN_BUGS says: "crash 4x128,hang 8x256," are those of as many blocks and threads in x. The profiler's own kernels do
// what they do on a GPU.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/cuda.h"

enum { RED = 0xa5, BROKEN = 700 };   // of gpu.c; an illegal address

static bool recording, broken;
static unsigned blocks;   // of what ran last, from which its time follows

int cuInit(unsigned flags) { return (int)flags; }
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuGetErrorName(int error, const char **name) { return *name = error == BROKEN ? "ILLEGAL_ADDRESS" : "ERROR", 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal; }
int cuDeviceGetName(char *name, int bytes, int device) { return snprintf(name, (size_t)bytes, "zeros"), device; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { return *value = attribute, device; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = 1 << 30, device; }
int cuDevicePrimaryCtxRetain(CudaContext *context, int device) { return *context = NULL, device; }
int cuCtxSetCurrent(CudaContext context) { return context != NULL; }
int cuMemGetInfo_v2(size_t *free, size_t *total) { return *free = *total = 1 << 30, 0; }
int cuMemFree_v2(CudaPointer memory) { return free((void *)memory), 0; }
int cuMemcpyHtoD_v2(CudaPointer to, const void *from, size_t bytes) { return memcpy((void *)to, from, bytes), 0; }
int cuMemcpyDtoH_v2(void *to, CudaPointer from, size_t bytes) { return memcpy(to, (void *)from, bytes), broken ? BROKEN : 0; }
int cuModuleUnload(CudaModule module) { return module == NULL; }
int cuFuncSetAttribute(CudaFunction function, int attribute, int value) { return !function || attribute < 0 || value < 0; }
int cuStreamCreate(CudaStream *stream, unsigned flags) { return *stream = NULL, flags != 1; }
int cuStreamSynchronize(CudaStream stream) { return stream || broken ? BROKEN : 0; }
int cuEventCreate(CudaEvent *event, unsigned flags) { return *event = NULL, (int)flags; }
int cuEventRecord(CudaEvent event, CudaStream stream) { return event || stream; }
int cuStreamBeginCapture_v2(CudaStream stream, int mode) { return recording = true, stream || mode < 0; }
int cuStreamEndCapture(CudaStream stream, CudaGraph *graph) { return recording = false, *graph = (CudaGraph)(uintptr_t)blocks, stream != NULL; }
int cuGraphLaunch(CudaGraphRun run, CudaStream stream) { return blocks = (unsigned)(uintptr_t)run, stream != NULL; }
int cuGraphExecDestroy(CudaGraphRun run) { return run == NULL; }
int cuGraphDestroy(CudaGraph graph) { return graph == NULL; }

int cuMemAlloc_v2(CudaPointer *memory, size_t bytes)
{
    return *memory = (CudaPointer)aligned_alloc(256, (bytes + 255) / 256 * 256), *memory == 0;
}

/* Poison is zero: so kernels need write nothing. */
int cuMemsetD8_v2(CudaPointer memory, unsigned char value, size_t bytes)
{
    return memset((void *)memory, value == RED ? RED : 0, bytes), 0;
}

int cuMemcpyDtoDAsync_v2(CudaPointer to, CudaPointer from, size_t bytes, void *stream)
{
    return memcpy((void *)to, (void *)from, bytes), stream != NULL;
}

int cuGraphInstantiateWithFlags(CudaGraphRun *run, CudaGraph graph, unsigned long long flags)
{
    return *run = (CudaGraphRun)(void *)graph, flags != 0;
}

int cuEventElapsedTime(float *milliseconds, CudaEvent from, CudaEvent to)
{
    return *milliseconds = 1 + (float)(blocks % 97) / 97, from || to;
}

int cuTensorMapEncodeTiled(void) { return 0; }
int cuTensorMapEncodeIm2col(void) { return 0; }

int cuModuleLoadData(CudaModule *module, const void *image)
{
    *module = (CudaModule)(uintptr_t)image;
    return memcmp(image, "\177ELF", 4) != 0;
}

int cuModuleGetFunction(CudaFunction *function, CudaModule module, const char *name)
{
    *function = (CudaFunction)(void *)strdup(name);
    return module == NULL;
}

/* As helpers.cu has it. */
static void help(const char *name, void **parameters)
{
    unsigned char *out = *(unsigned char **)parameters[0];
    const unsigned char *in = *(unsigned char **)parameters[1];
    bool gathers = strstr(name, "gather") != NULL;
    size_t width = (size_t)(name[strlen(name) - 1] - '0');
    const long long *elements = gathers ? *(long long **)parameters[2] : NULL, count = *(long long *)parameters[gathers ? 3 : 2];
    for (long long i = 0; i < count; i++) {
        unsigned long long x = (unsigned long long)i * 0x9e3779b97f4a7c15ull, hash = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull >> 52;
        memcpy(out + (size_t)i * width, in + width * (gathers ? (size_t)elements[i] : (size_t)hash), width);
    }
}

static int misbehave(const char *bug, void **parameters)
{
    if (strncmp(bug, "crash", 5) == 0)
        raise(SIGKILL);
    while (strncmp(bug, "hang", 4) == 0)
        sleep(1);
    if (strncmp(bug, "fault", 5) == 0)
        broken = true;
    if (strncmp(bug, "beside", 6) == 0)
        *(*(unsigned char **)parameters[0] - 1) = 0;
    return 0;
}

int cuLaunchKernelEx(const CudaLaunchConfig *config, CudaFunction function, void **parameters, void **extra)
{
    const char *name = (const char *)function, *bugs = getenv("STAND_IN_BUGS");
    char shape[50];
    if (strncmp(name, "rollerc_", 8) == 0)
        return help(name, parameters), 0;
    snprintf(shape, sizeof shape, " %ux%u,", config->grid[0], config->block[0]);
    blocks = config->grid[0];
    const char *at = bugs ? strstr(bugs, shape) : NULL;
    while (at && at > bugs && at[-1] != ',')
        at--;
    return recording || !at ? extra != NULL : misbehave(at, parameters);
}
