// One GPU as a place to run emitted programs: buffers with red zones, calls, times. It takes machine code
// and launch shapes, never tiles. Only for workers: after a kernel's error the process can use the GPU no
// more.
//
// Everything returns false after a failure, and `gpu->reason` says what failed.
#pragma once
#include "base/arena.h"
#include "hal/cuda.h"
#include "hal/launch.h"

enum { GPU_TABLE = 1 << 12 };   // values that inputs are made of

typedef struct GpuInfo {
    int ordinal;
    int sm_count, capability;   // 90: compute capability 9.0
    int driver;                 // 13000: CUDA 13.0
    int64_t memory_bytes;
    char name[100];
} GpuInfo;

typedef struct Gpu {
    Cuda cuda;
    int driver;   // its version: 12030
    CudaStream stream;
    CudaEvent start, stop;
    CudaModule helpers;
    char *reason;
    size_t reason_bytes;
} Gpu;

/* Memory between two red zones; `bytes` of it are the program's. */
typedef struct GpuBuffer {
    CudaPointer memory;
    int64_t bytes;
} GpuBuffer;

/* Where a launch's kernel is. */
typedef struct GpuCode {
    const unsigned char *cubin;
    const char *entry;
} GpuCode;

typedef struct GpuProgram {
    CudaModule *modules;       // of each launch; that of a cubin stands where it is first named, else NULL
    CudaFunction *functions;   // one for each launch
    const Launch *launches;
    int launch_count;
} GpuProgram;

/* Many calls, one after another, prepared so that launching costs the GPU nothing. */
typedef struct GpuSeries {
    CudaGraph graph;
    CudaGraphRun run;
    int calls;
} GpuSeries;

/* Facts of each GPU, at most `most`; the number of them. Needs no gpu_open. */
int gpu_list(GpuInfo *infos, int most, char *reason, size_t reason_bytes);

bool gpu_open(Gpu *gpu, int ordinal, char *reason, size_t reason_bytes);
/* The machine code of src/hal/gpu/helpers.cu, for gpu_fill and gpu_gather. */
bool gpu_load_helpers(Gpu *gpu, const void *cubin);
int64_t gpu_free_bytes(Gpu *gpu);

bool gpu_buffer_new(Gpu *gpu, GpuBuffer *buffer, int64_t bytes);
void gpu_buffer_free(Gpu *gpu, GpuBuffer *buffer);
/* Every byte is `poison`, and the red zones are whole again. */
bool gpu_buffer_poison(Gpu *gpu, const GpuBuffer *buffer, int poison);
bool gpu_buffer_check(Gpu *gpu, const GpuBuffer *buffer, const char *name);
bool gpu_upload(Gpu *gpu, const GpuBuffer *buffer, const void *bytes, int64_t count);
bool gpu_download(Gpu *gpu, const GpuBuffer *buffer, void *bytes, int64_t count);

/* Copies from one buffer to another, in the order of the calls. */
bool gpu_copy(Gpu *gpu, const GpuBuffer *to, const GpuBuffer *from, const LaunchCopy *copies, int count);

/* Element i becomes table[hash of i]; `element_bytes` 0: bits, of a table of bytes. */
bool gpu_fill(Gpu *gpu, const GpuBuffer *buffer, int64_t elements, int element_bytes, const GpuBuffer *table);
/* out[i] = elements[i] of `from`; `element_bytes` 0: the 32-bit word that holds it. */
bool gpu_gather(Gpu *gpu, const GpuBuffer *from, int element_bytes, const int64_t *elements, int64_t count,
                void *out);

/* One code for each launch; several may be of one cubin. */
bool gpu_load(Gpu *gpu, Arena *arena, const GpuCode *codes, const Launch *launches, int launch_count,
              GpuProgram *program);
void gpu_unload(Gpu *gpu, GpuProgram *program);

/* One call of the whole program, timed and waited for. */
bool gpu_call_timed(Gpu *gpu, const GpuProgram *program, const GpuBuffer *buffers, double *us);

/* `calls` calls that use one set of buffers after the other. */
bool gpu_series_new(Gpu *gpu, GpuSeries *series, const GpuProgram *program, const GpuBuffer *const *sets,
                    int set_count, int calls);
void gpu_series_free(Gpu *gpu, GpuSeries *series);
/* Time of one call, on average over the series. */
bool gpu_series_time(Gpu *gpu, const GpuSeries *series, double *us);
