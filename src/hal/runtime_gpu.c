// A GPU as a runtime: machine code runs in a worker, so that a crash or a hang is a result, on buffers between red zones.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "hal/gpu.h"
#include "hal/runtime.h"
#include "hal/worker.h"

enum { ALIGNMENT = 16, REASON_BYTES = 500, OPEN_SECONDS = 60 };   // a driver that wakes up takes a few

struct RuntimeModule {
    RuntimeSource source;
};

/* What worker and parent share; contents of the buffers lie behind it. */
typedef struct GpuReport {
    size_t bytes;   // of all that
    RuntimeStatus status;
    char reason[REASON_BYTES];
} GpuReport;

typedef struct GpuTask {
    Arena *arena;
    const RuntimeSource *source;
    const RuntimeJob *job;
    unsigned char **contents;   // shared: of each buffer, before the run and then after it
    int buffer_count;
    GpuReport *report;
    Gpu gpu;
    GpuBuffer *buffers;
} GpuTask;

static RuntimeStatus load(Arena *arena, const RuntimeSource *source, RuntimeModule **module, const char **reason)
{
    (void)reason;
    assert(source->cubin && source->launches);
    *module = NEW(arena, RuntimeModule);
    (*module)->source = *source;
    return RUNTIME_DONE;
}

// ---- the worker ----

static bool upload(GpuTask *task)
{
    for (int i = 0; i < task->buffer_count; i++) {
        int64_t bytes = task->job->buffer_bytes[i];
        if (!gpu_buffer_new(&task->gpu, &task->buffers[i], bytes) ||
            (bytes && !gpu_upload(&task->gpu, &task->buffers[i], task->contents[i], bytes)))
            return false;
    }
    return true;
}

static bool call(GpuTask *task)
{
    const RuntimeSource *source = task->source;
    bool all = task->job->only_launch < 0;
    const GpuBuffer *beside = &task->buffers[source->arg_count];
    GpuProgram program;
    double us;
    if (all && !gpu_copy(&task->gpu, &beside[BUFFER_PREPARED], &beside[BUFFER_WEIGHTS], source->copies, source->copy_count))
        return false;
    const Launch *launches = source->launches + (all ? 0 : task->job->only_launch);
    int count = all ? source->launch_count : 1;
    return gpu_load(&task->gpu, task->arena, gpu_code_of(task->arena, source->cubin, launches, count), launches, count, &program) &&
           gpu_call_timed(&task->gpu, &program, task->buffers, &us);
}

static const RuntimeTensor *tensor_in(const RuntimeJob *job, int buffer)
{
    int i = 0;
    while (i < job->tensor_count && job->tensors[i].buffer != buffer)
        i++;
    return i < job->tensor_count ? &job->tensors[i] : NULL;
}

/* A buffer that is only read is as it was, each of the others as the program left it. */
static bool download(GpuTask *task, int buffer)
{
    const RuntimeTensor *tensor = tensor_in(task->job, buffer);
    const char *name = tensor ? tensor->name : "an unused buffer";
    int64_t bytes = task->job->buffer_bytes[buffer];
    bool written = tensor && tensor->written;
    void *now = written ? task->contents[buffer] : arena_alloc(task->arena, (size_t)bytes);
    if (!gpu_buffer_check(&task->gpu, &task->buffers[buffer], name) ||
        (bytes && !gpu_download(&task->gpu, &task->buffers[buffer], now, bytes)))
        return false;
    if (written || memcmp(now, task->contents[buffer], (size_t)bytes) == 0)
        return true;
    snprintf(task->report->reason, REASON_BYTES, "writes to %s, which is only read", name);
    return false;
}

static void work(void *context)
{
    GpuTask *task = context;
    GpuReport *report = task->report;
    report->status = RUNTIME_MACHINE;
    task->buffers = NEW_ARRAY(task->arena, GpuBuffer, task->buffer_count);
    if (!gpu_open(&task->gpu, 0, report->reason, REASON_BYTES) || !upload(task))
        return;
    report->status = RUNTIME_WRONG;
    worker_alive();
    bool right = call(task);
    for (int i = 0; i < task->buffer_count && right; i++)
        right = download(task, i);
    report->status = right ? RUNTIME_DONE : RUNTIME_WRONG;
}

// ---- the parent ----

/* What tensors hold before the run; bytes of none of them hold the poison. */
static void fill(const GpuTask *task)
{
    const RuntimeJob *job = task->job;
    for (int i = 0; i < task->buffer_count; i++)
        memset(task->contents[i], job->poison, (size_t)job->buffer_bytes[i]);
    for (int i = 0; i < job->tensor_count; i++) {
        const RuntimeTensor *tensor = &job->tensors[i];
        if (!tensor->written)
            job->fill(job->context, i, 0, tensor->bytes, task->contents[tensor->buffer] + tensor->offset);
    }
}

/* The worker's verdict, or what its end says. */
static void watch(GpuTask *task)
{
    Worker worker;
    GpuReport *report = task->report;
    report->status = RUNTIME_MACHINE;
    strcpy(report->reason, "no further process can be started");
    if (!worker_start(&worker, &(WorkerLimits){.seconds = OPEN_SECONDS}, work, task))
        return;
    while (worker.state == WORKER_RUNNING) {
        worker_wait(&worker, 1);
        worker_limit(&worker, task->job->seconds);   // it said that the GPU is open
    }
    bool opened = report->status != RUNTIME_MACHINE;
    if (worker.state == WORKER_TIMEOUT) {
        report->status = opened ? RUNTIME_TIMEOUT : RUNTIME_MACHINE;
        snprintf(report->reason, REASON_BYTES, opened ? "does not end within %d s" : "the driver does not answer",
                 task->job->seconds);
    } else if (worker.state == WORKER_CRASHED) {
        snprintf(report->reason, REASON_BYTES, "ends the process that runs it (%s)",
                 worker.signal ? strsignal(worker.signal) : "it exited");
    }
}

/* All of its blocks, and no other launch's. */
static int64_t blocks_of(const RuntimeSource *source, const RuntimeJob *job)
{
    int64_t blocks = 0;
    for (int k = 0; k < source->launch_count; k++)
        if (job->only_launch < 0 || job->only_launch == k)
            blocks += source->launches[k].grid[0] * source->launches[k].grid[1] * source->launches[k].grid[2];
    return blocks;
}

static RuntimeResult run(Arena *arena, const RuntimeModule *module, const RuntimeJob *job)
{
    const RuntimeSource *source = &module->source;
    int count = runtime_buffer_count(source);
    int64_t bytes = round_up(sizeof(GpuReport), ALIGNMENT);
    unsigned char **contents = NEW_ARRAY(arena, unsigned char *, count);
    assert(!job->checked && !job->lazy && !job->counts);
    for (int i = 0; i < count; i++)
        bytes += round_up(job->buffer_bytes[i], ALIGNMENT);
    GpuReport *report = worker_share((size_t)bytes);
    if (!report)
        return (RuntimeResult){.status = RUNTIME_MACHINE, .reason = "not enough memory for the buffers of the program"};
    report->bytes = (size_t)bytes;
    for (int i = count - 1; i >= 0; i--)
        contents[i] = (unsigned char *)report + (bytes -= round_up(job->buffer_bytes[i], ALIGNMENT));
    GpuTask task = {.arena = arena, .source = source, .job = job, .contents = contents, .buffer_count = count,
                    .report = report};
    fill(&task);
    watch(&task);
    int64_t blocks = blocks_of(source, job);
    return (RuntimeResult){.status = report->status,
                           .reason = arena_strdup(arena, report->reason),
                           .buffer_count = count,
                           .buffers = (void **)contents,
                           .blocks_run = blocks,
                           .blocks_total = blocks,
                           .launch_count = source->launch_count,
                           .mappings = report};
}

static void release(RuntimeResult *result)
{
    if (result->mappings)
        worker_unshare(result->mappings, ((GpuReport *)result->mappings)->bytes);
    result->mappings = NULL;
}

const Runtime runtime_gpu = {.name = "gpu", .load = load, .run = run, .release = release};
