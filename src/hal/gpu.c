#include "hal/gpu.h"

#include <stdio.h>
#include <string.h>

#include "hal/device.h"

enum {
    RED_ZONE = 64 << 10,   // bytes on each side of a buffer
    RED = 0xa5,
    HELPER_THREADS = 256,
    HELPER_BLOCKS = 4096
};

#define TRY(call, what)                                                                                      \
    do {                                                                                                     \
        int error_ = (call);                                                                                 \
        if (error_ != CUDA_SUCCESS)                                                                          \
            return failed(gpu, error_, what);                                                                \
    } while (0)

static bool failed(Gpu *gpu, int error, const char *what)
{
    snprintf(gpu->reason, gpu->reason_bytes, "%s: %s", what, cuda_error_name(&gpu->cuda, error));
    return false;
}

// ---- the machine ----

static bool describe(const Cuda *cuda, int ordinal, GpuInfo *info)
{
    int device, major = 0, minor = 0;
    size_t bytes = 0;
    *info = (GpuInfo){.ordinal = ordinal};
    if (cuda->device_get(&device, ordinal) != CUDA_SUCCESS ||
        cuda->device_name(info->name, sizeof info->name, device) != CUDA_SUCCESS ||
        cuda->device_attribute(&info->sm_count, CUDA_SM_COUNT, device) != CUDA_SUCCESS ||
        cuda->device_attribute(&major, CUDA_CAPABILITY_MAJOR, device) != CUDA_SUCCESS ||
        cuda->device_attribute(&minor, CUDA_CAPABILITY_MINOR, device) != CUDA_SUCCESS ||
        cuda->device_memory(&bytes, device) != CUDA_SUCCESS ||
        cuda->driver_version(&info->driver) != CUDA_SUCCESS)
        return false;
    info->capability = 10 * major + minor;
    info->memory_bytes = (int64_t)bytes;
    return true;
}

int gpu_list(GpuInfo *infos, int most, char *reason, size_t reason_bytes)
{
    Cuda cuda;
    int present = 0, count = 0;
    if (!cuda_open(&cuda, reason, reason_bytes))
        return 0;
    cuda.device_count(&present);
    for (int i = 0; i < present && count < most; i++)
        count += describe(&cuda, i, &infos[count]);
    if (count == 0)
        snprintf(reason, reason_bytes, "there is no usable GPU: the driver shows none");
    return count;
}

bool gpu_open(Gpu *gpu, int ordinal, char *reason, size_t reason_bytes)
{
    CudaContext context;
    int device;
    *gpu = (Gpu){.reason = reason, .reason_bytes = reason_bytes};
    if (!cuda_open(&gpu->cuda, reason, reason_bytes))
        return false;
    TRY(gpu->cuda.driver_version(&gpu->driver), "cannot use the GPU");
    TRY(gpu->cuda.device_get(&device, ordinal), "cannot find the GPU again");
    TRY(gpu->cuda.context_retain(&context, device), "cannot use the GPU");
    TRY(gpu->cuda.context_use(context), "cannot use the GPU");
    TRY(gpu->cuda.stream_new(&gpu->stream, 1),
        "cannot use the GPU");   // 1: not ordered with the default stream
    TRY(gpu->cuda.event_new(&gpu->start, 0), "cannot use the GPU");
    TRY(gpu->cuda.event_new(&gpu->stop, 0), "cannot use the GPU");
    return true;
}

bool gpu_load_helpers(Gpu *gpu, const void *cubin)
{
    TRY(gpu->cuda.module_load(&gpu->helpers, cubin), "cannot load the helper kernels");
    return true;
}

int64_t gpu_free_bytes(Gpu *gpu)
{
    size_t free = 0, total = 0;
    return gpu->cuda.memory_info(&free, &total) == CUDA_SUCCESS ? (int64_t)free : 0;
}

static bool wait_for_stream(Gpu *gpu)
{
    TRY(gpu->cuda.stream_wait(gpu->stream), "running it fails");
    return true;
}

// ---- buffers ----

bool gpu_buffer_new(Gpu *gpu, GpuBuffer *buffer, int64_t bytes)
{
    CudaPointer whole;
    TRY(gpu->cuda.memory_new(&whole, (size_t)bytes + 2 * RED_ZONE), "not enough memory on the GPU");
    *buffer = (GpuBuffer){whole + RED_ZONE, bytes};
    return gpu_buffer_poison(gpu, buffer, 0);
}

void gpu_buffer_free(Gpu *gpu, GpuBuffer *buffer)
{
    if (buffer->memory)
        gpu->cuda.memory_free(buffer->memory - RED_ZONE);
    *buffer = (GpuBuffer){0};
}

bool gpu_buffer_poison(Gpu *gpu, const GpuBuffer *buffer, int poison)
{
    CudaPointer end = buffer->memory + (CudaPointer)buffer->bytes;
    TRY(gpu->cuda.memory_set(buffer->memory - RED_ZONE, RED, RED_ZONE), "cannot write to a buffer");
    TRY(gpu->cuda.memory_set(end, RED, RED_ZONE), "cannot write to a buffer");
    if (buffer->bytes)
        TRY(gpu->cuda.memory_set(buffer->memory, (unsigned char)poison, (size_t)buffer->bytes),
            "cannot write to a buffer");
    TRY(gpu->cuda.stream_wait(NULL),
        "cannot write to a buffer");   // our stream does not wait for the default one
    return true;
}

static bool is_red(const unsigned char *zone, int *at)
{
    for (*at = 0; *at < RED_ZONE; ++*at)
        if (zone[*at] != RED)
            return false;
    return true;
}

bool gpu_buffer_check(Gpu *gpu, const GpuBuffer *buffer, const char *name)
{
    static unsigned char zone[RED_ZONE];
    int at;
    TRY(gpu->cuda.to_host(zone, buffer->memory - RED_ZONE, RED_ZONE), "cannot read a buffer");
    if (!is_red(zone, &at)) {
        snprintf(gpu->reason, gpu->reason_bytes, "writes %d bytes before the start of %s", RED_ZONE - at,
                 name);
        return false;
    }
    TRY(gpu->cuda.to_host(zone, buffer->memory + (CudaPointer)buffer->bytes, RED_ZONE),
        "cannot read a buffer");
    if (!is_red(zone, &at)) {
        snprintf(gpu->reason, gpu->reason_bytes, "writes %d bytes behind the end of %s", at, name);
        return false;
    }
    return true;
}

bool gpu_upload(Gpu *gpu, const GpuBuffer *buffer, const void *bytes, int64_t count)
{
    TRY(gpu->cuda.to_device(buffer->memory, bytes, (size_t)count), "cannot write to a buffer");
    TRY(gpu->cuda.stream_wait(NULL),
        "cannot write to a buffer");   // small copies return before they are done
    return true;
}

bool gpu_download(Gpu *gpu, const GpuBuffer *buffer, void *bytes, int64_t count)
{
    TRY(gpu->cuda.to_host(bytes, buffer->memory, (size_t)count), "cannot read a buffer");
    return true;
}

bool gpu_copy(Gpu *gpu, const GpuBuffer *to, const GpuBuffer *from, const LaunchCopy *copies, int count)
{
    for (int i = 0; i < count; i++)
        TRY(gpu->cuda.copy(to->memory + (CudaPointer)copies[i].to, from->memory + (CudaPointer)copies[i].from,
                           (size_t)copies[i].bytes, gpu->stream),
            "cannot copy weights");
    return true;
}

// ---- helper kernels ----

/* `fill_4`, `gather_1`, …: each takes two pointers, a third one or none, and a count. */
static bool run_helper(Gpu *gpu, const char *kind, int element_bytes, void **parameters)
{
    char name[32];
    CudaFunction function;
    CudaLaunchConfig config = {
        .grid = {HELPER_BLOCKS, 1, 1}, .block = {HELPER_THREADS, 1, 1}, .stream = gpu->stream};
    snprintf(name, sizeof name, "rollerc_%s_%d", kind, element_bytes);
    TRY(gpu->cuda.module_function(&function, gpu->helpers, name), "cannot find a helper kernel");
    TRY(gpu->cuda.launch(&config, function, parameters, NULL), "cannot start a helper kernel");
    return wait_for_stream(gpu);
}

bool gpu_fill(Gpu *gpu, const GpuBuffer *buffer, int64_t elements, int element_bytes, const GpuBuffer *table)
{
    CudaPointer out = buffer->memory, values = table->memory;
    void *parameters[] = {&out, &values, &elements};
    return run_helper(gpu, "fill", element_bytes, parameters);
}

bool gpu_gather(Gpu *gpu, const GpuBuffer *from, int element_bytes, const int64_t *elements, int64_t count,
                void *out)
{
    int width = element_bytes ? element_bytes : 4;
    GpuBuffer places = {0}, values = {0};
    bool done = gpu_buffer_new(gpu, &places, count * 8) && gpu_buffer_new(gpu, &values, count * width) &&
                gpu_upload(gpu, &places, elements, count * 8);
    CudaPointer in = from->memory;
    void *parameters[] = {&values.memory, &in, &places.memory, &count};
    done = done && run_helper(gpu, "gather", element_bytes, parameters);
    int error = done ? gpu->cuda.to_host(out, values.memory, (size_t)(count * width)) : CUDA_SUCCESS;
    gpu_buffer_free(gpu, &places);
    gpu_buffer_free(gpu, &values);
    return done && (error == CUDA_SUCCESS || failed(gpu, error, "cannot read a buffer"));
}

// ---- programs ----

static bool load_function(Gpu *gpu, GpuProgram *program, const GpuCode *codes, int k)
{
    const Launch *launch = &program->launches[k];
    CudaFunction *function = &program->functions[k];
    int first = 0;
    while (codes[first].cubin != codes[k].cubin)
        first++;
    if (first == k)
        TRY(gpu->cuda.module_load(&program->modules[k], codes[k].cubin), "loading it fails");
    TRY(gpu->cuda.module_function(function, program->modules[first], codes[k].entry), launch->entry);
    if (launch->asks_shared)
        TRY(gpu->cuda.function_set(*function, CUDA_MAX_DYNAMIC_SHARED, (int)launch->shared_bytes),
            launch->entry);
    if (launch_cluster_blocks(launch) > PORTABLE_CLUSTER_BLOCKS)
        TRY(gpu->cuda.function_set(*function, CUDA_NON_PORTABLE_CLUSTER, 1), launch->entry);
    return true;
}

bool gpu_load(Gpu *gpu, Arena *arena, const GpuCode *codes, const Launch *launches, int launch_count,
              GpuProgram *program)
{
    *program = (GpuProgram){.launches = launches, .launch_count = launch_count};
    program->modules = NEW_ARRAY(arena, CudaModule, launch_count);
    program->functions = NEW_ARRAY(arena, CudaFunction, launch_count);
    for (int k = 0; k < launch_count; k++)
        if (!load_function(gpu, program, codes, k))
            return false;
    return true;
}

void gpu_unload(Gpu *gpu, GpuProgram *program)
{
    for (int k = 0; k < program->launch_count; k++)
        if (program->modules[k])
            gpu->cuda.module_unload(program->modules[k]);
    *program = (GpuProgram){0};
}

static CudaLaunchConfig config_of(Gpu *gpu, const Launch *launch, CudaLaunchAttribute *attributes)
{
    CudaLaunchConfig config = {
        .shared_bytes = (unsigned)launch->shared_bytes, .stream = gpu->stream, .attributes = attributes};
    for (int d = 0; d < 3; d++) {
        config.grid[d] = (unsigned)launch->grid[d];
        config.block[d] = (unsigned)launch->block[d];
    }
    if (launch->cooperative)
        attributes[config.attribute_count++] = (CudaLaunchAttribute){CUDA_COOPERATIVE, 0, {.cooperative = 1}};
    if (launch_cluster_blocks(launch) > 1)
        attributes[config.attribute_count++] =
            (CudaLaunchAttribute){CUDA_CLUSTER,
                                  0,
                                  {.cluster = {(unsigned)launch->cluster[0], (unsigned)launch->cluster[1],
                                               (unsigned)launch->cluster[2]}}};
    if (launch->early && gpu->driver >= CUDA_GRAPHS_BEGIN_EARLY)
        attributes[config.attribute_count++] = (CudaLaunchAttribute){CUDA_BEGINS_EARLY, 0, {.early = 1}};
    return config;
}

/* As templates/prelude/intrinsics/launch.cuh has it; 128 bytes at a multiple of 64. */
typedef struct EncodedMap {
    _Alignas(64) unsigned char bytes[128];
} EncodedMap;

static bool encode_map(Gpu *gpu, const TensorMap *map, CudaPointer start, EncodedMap *encoded)
{
    enum { LINES_OF_128_BYTES = 3, PROMOTION_128_BYTES = 2 };
    static const int types[] = {[1] = 0, [2] = 1, [4] = 2}, tf32 = 11;   // unsigned integers
    const Cuda *cuda = &gpu->cuda;
    int type = map->tf32 ? tf32 : types[map->element_bytes];
    uint64_t sizes[MAX_MAP_RANK], strides[MAX_MAP_RANK];
    uint32_t box[MAX_MAP_RANK], steps[MAX_MAP_RANK] = {1, 1, 1, 1, 1};
    if (map->pixel_axes ? !cuda->describe_pixels : !cuda->describe_tensor) {
        snprintf(gpu->reason, gpu->reason_bytes,
                 "the driver is too old for bulk copies: it has no cuTensorMapEncode%s",
                 map->pixel_axes ? "Im2col" : "Tiled");
        return false;
    }
    for (int d = 0; d < map->rank; d++) {
        sizes[d] = (uint64_t)map->sizes[d];
        box[d] = (uint32_t)map->box[d];
        if (d > 0)
            strides[d - 1] = (uint64_t)map->strides[d - 1];
    }
    for (int i = 0; i < map->pixel_axes; i++)
        steps[i + 1] = (uint32_t)map->steps[i];
    void *from = (void *)(uintptr_t)(start + (CudaPointer)map->start);
    TRY(map->pixel_axes ? cuda->describe_pixels(encoded, type, (unsigned)map->rank, from, sizes, strides,
                                                map->lower, map->upper, box[0], box[1], steps, 0,
                                                LINES_OF_128_BYTES, PROMOTION_128_BYTES, 0)
                        : cuda->describe_tensor(encoded, type, (unsigned)map->rank, from, sizes, strides, box,
                                                steps, 0, LINES_OF_128_BYTES, PROMOTION_128_BYTES, 0),
        "cannot describe a tensor for bulk copies");
    return true;
}

static bool start_launch(Gpu *gpu, const Launch *launch, CudaFunction function, const GpuBuffer *buffers)
{
    CudaPointer pointers[MAX_LAUNCH_ARGS];
    void *parameters[MAX_LAUNCH_ARGS + MAX_TENSOR_MAPS];
    EncodedMap maps[MAX_TENSOR_MAPS];
    CudaLaunchAttribute attributes[3];
    CudaLaunchConfig config = config_of(gpu, launch, attributes);
    for (int i = 0; i < launch->arg_count; i++) {
        pointers[i] =
            buffers[launch->args[i].buffer].memory + (CudaPointer)launch_arg_start(&launch->args[i]);
        parameters[i] = &pointers[i];
    }
    for (int i = 0; i < launch->map_count; i++) {
        parameters[launch->arg_count + i] = &maps[i];
        if (!encode_map(gpu, &launch->maps[i], pointers[launch->maps[i].arg], &maps[i]))
            return false;
    }
    TRY(gpu->cuda.launch(&config, function, parameters, NULL), launch->entry);
    return true;
}

/* Puts one call of the whole program into the stream. */
static bool gpu_call(Gpu *gpu, const GpuProgram *program, const GpuBuffer *buffers)
{
    for (int k = 0; k < program->launch_count; k++)
        if (!start_launch(gpu, &program->launches[k], program->functions[k], buffers))
            return false;
    return true;
}

// ---- time ----

static bool stop_clock(Gpu *gpu, double *us)
{
    float milliseconds = 0;
    TRY(gpu->cuda.event_record(gpu->stop, gpu->stream), "cannot time it");
    TRY(gpu->cuda.stream_wait(gpu->stream), "running it fails");
    TRY(gpu->cuda.event_elapsed(&milliseconds, gpu->start, gpu->stop), "cannot time it");
    *us = (double)milliseconds * 1e3;
    return true;
}

bool gpu_call_timed(Gpu *gpu, const GpuProgram *program, const GpuBuffer *buffers, double *us)
{
    TRY(gpu->cuda.event_record(gpu->start, gpu->stream), "cannot time it");
    return gpu_call(gpu, program, buffers) && stop_clock(gpu, us);
}

bool gpu_series_new(Gpu *gpu, GpuSeries *series, const GpuProgram *program, const GpuBuffer *const *sets,
                    int set_count, int calls)
{
    *series = (GpuSeries){.calls = calls};
    TRY(gpu->cuda.capture_begin(gpu->stream, CUDA_CAPTURE_THIS_THREAD), "cannot record a series of calls");
    bool called = true;
    for (int i = 0; i < calls && called; i++)
        called = gpu_call(gpu, program, sets[i % set_count]);
    int error = gpu->cuda.capture_end(gpu->stream, &series->graph);
    if (!called)
        return false;
    if (error != CUDA_SUCCESS)
        return failed(gpu, error, "cannot record a series of calls");
    TRY(gpu->cuda.graph_prepare(&series->run, series->graph, 0), "cannot prepare a series of calls");
    return true;
}

void gpu_series_free(Gpu *gpu, GpuSeries *series)
{
    if (series->run)
        gpu->cuda.graph_run_free(series->run);
    if (series->graph)
        gpu->cuda.graph_free(series->graph);
    *series = (GpuSeries){0};
}

bool gpu_series_time(Gpu *gpu, const GpuSeries *series, double *us)
{
    TRY(gpu->cuda.event_record(gpu->start, gpu->stream), "cannot time it");
    TRY(gpu->cuda.graph_launch(series->run, gpu->stream), "cannot start a series of calls");
    if (!stop_clock(gpu, us))
        return false;
    *us /= series->calls;
    return true;
}
