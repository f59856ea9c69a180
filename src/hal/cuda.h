// The part of the CUDA driver's interface that rollerc calls: own prototypes, no header and no link. Only
// for workers: a driver that was started does not survive a fork.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned long long CudaPointer;
typedef struct CudaContextObject *CudaContext;
typedef struct CudaModuleObject *CudaModule;
typedef struct CudaFunctionObject *CudaFunction;
typedef struct CudaStreamObject *CudaStream;
typedef struct CudaEventObject *CudaEvent;
typedef struct CudaGraphObject *CudaGraph;
typedef struct CudaGraphRunObject *CudaGraphRun;

enum {   // of cuda.h
    CUDA_SUCCESS = 0,
    CUDA_SM_COUNT = 16,
    CUDA_CAPABILITY_MAJOR = 75,
    CUDA_CAPABILITY_MINOR = 76,
    CUDA_MAX_DYNAMIC_SHARED = 8,
    CUDA_NON_PORTABLE_CLUSTER = 14,
    CUDA_COOPERATIVE = 2,
    CUDA_CLUSTER = 4,
    CUDA_BEGINS_EARLY = 6,   // programmatic stream serialization
    CUDA_GRAPHS_BEGIN_EARLY = 12030,   // the first driver whose graphs have it
    CUDA_CAPTURE_THIS_THREAD = 1,
};

typedef union CudaLaunchValue {
    unsigned char bytes[64];
    int cooperative;
    int early;
    unsigned cluster[3];
} CudaLaunchValue;

typedef struct CudaLaunchAttribute {
    int id;
    int padding;
    CudaLaunchValue value;
} CudaLaunchAttribute;

typedef struct CudaLaunchConfig {
    unsigned grid[3], block[3], shared_bytes;
    CudaStream stream;
    CudaLaunchAttribute *attributes;
    unsigned attribute_count;
} CudaLaunchConfig;

typedef struct Cuda {
    int (*init)(unsigned flags);
    int (*driver_version)(int *version);
    int (*error_name)(int error, const char **name);
    int (*device_count)(int *count);
    int (*device_get)(int *device, int ordinal);
    int (*device_name)(char *name, int bytes, int device);
    int (*device_attribute)(int *value, int attribute, int device);
    int (*device_memory)(size_t *bytes, int device);
    int (*context_retain)(CudaContext *context, int device);
    int (*context_use)(CudaContext context);
    int (*memory_info)(size_t *free, size_t *total);
    int (*memory_new)(CudaPointer *memory, size_t bytes);
    int (*memory_free)(CudaPointer memory);
    int (*memory_set)(CudaPointer memory, unsigned char value, size_t bytes);
    int (*to_device)(CudaPointer to, const void *from, size_t bytes);
    int (*to_host)(void *to, CudaPointer from, size_t bytes);
    int (*copy)(CudaPointer to, CudaPointer from, size_t bytes, CudaStream stream);
    int (*module_load)(CudaModule *module, const void *image);
    int (*module_unload)(CudaModule module);
    int (*module_function)(CudaFunction *function, CudaModule module, const char *name);
    int (*function_set)(CudaFunction function, int attribute, int value);
    /* Newer drivers only; sizes and strides in 64 bits, the rest in 32. */
    int (*describe_tensor)(void *map, int type, unsigned rank, void *start, const uint64_t *sizes,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                           int interleave, int swizzle, int promotion, int fill);
    int (*describe_pixels)(void *map, int type, unsigned rank, void *start, const uint64_t *sizes,
                           const uint64_t *strides, const int *lower, const int *upper, uint32_t channels,
                           uint32_t pixels, const uint32_t *steps, int interleave, int swizzle, int promotion,
                           int fill);
    int (*launch)(const CudaLaunchConfig *config, CudaFunction function, void **parameters, void **extra);
    int (*stream_new)(CudaStream *stream, unsigned flags);
    int (*stream_wait)(CudaStream stream);
    int (*event_new)(CudaEvent *event, unsigned flags);
    int (*event_record)(CudaEvent event, CudaStream stream);
    int (*event_elapsed)(float *milliseconds, CudaEvent from, CudaEvent to);
    int (*capture_begin)(CudaStream stream, int mode);
    int (*capture_end)(CudaStream stream, CudaGraph *graph);
    int (*graph_prepare)(CudaGraphRun *run, CudaGraph graph, unsigned long long flags);
    int (*graph_launch)(CudaGraphRun run, CudaStream stream);
    int (*graph_run_free)(CudaGraphRun run);
    int (*graph_free)(CudaGraph graph);
} Cuda;

/* Loads and starts the driver. False: `reason` says why there is no usable GPU. */
bool cuda_open(Cuda *cuda, char *reason, size_t reason_bytes);

/* "CUDA_ERROR_ILLEGAL_ADDRESS" */
const char *cuda_error_name(const Cuda *cuda, int error);
