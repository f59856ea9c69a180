#include "clock/micro.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "hal/worker.h"

enum {
    DATA_MIB = 512,      // some ten times what L2 holds
    SAMPLES = 11,
    WARM_UP_CALLS = 100, // of some 5 ms: until clocks and power are steady
    PATIENCE_SECONDS = 60,
    NUMBERS = 4          // p[]
};

/* What is made of one run. */
typedef enum Yields {
    YIELDS_BANDWIDTH,   // of `read_…`: GB/s
    YIELDS_RATE,        // `work` of each thread and p[0], in 1e9 a second
    YIELDS_NS,          // by the kernel's own clock, of each of p[0]
    YIELDS_US,
    YIELDS_CYCLES,
    YIELDS_DRAWN,       // GB/s of one block: `work` bytes of each thread and p[0]
    YIELDS_LAUNCH,      // us of one of a series of launches
    YIELDS_BLOCK        // cycles for each block of the launch
} Yields;

/* A measurement: how a kernel is launched. */
typedef struct Micro {
    const char *path, *what, *entry;
    Yields yields;
    int blocks;          // of each SM; 0: `grid` in all
    int grid;
    int threads, cluster, shared_bytes;
    bool cooperative;
    double work;         // of a thread for each of p[0]
    int p[NUMBERS];
    int ways;            // loads under way of a thread, of `read_…`
    double l2_share;     // p[0] is this much of L2
    const char *before;  // a kernel that prepares `data`: with p[3]
    int since;           // compute capability,
    bool wgmma;          // and this one
    bool lasting;        // after a second of load
} Micro;

#define RATE(path_, entry_, threads_, blocks_, shared_, work_, times, since_)                       \
    {.path = path_, .entry = entry_, .yields = YIELDS_RATE, .blocks = blocks_, .threads = threads_, \
     .shared_bytes = shared_, .work = work_, .p = {times}, .since = since_}
#define TENSOR(name, work_, since_) \
    RATE("peak_gflop_s.tensor_" name, "micro_mma_" name, 512, 2, 0, work_, 5000, since_)
#define WGMMA(...)                                                                                                   \
    {.entry = "micro_wgmma_" __VA_ARGS__, .yields = YIELDS_RATE, .blocks = 1, .threads = 512, .shared_bytes = 49152, \
     .p = {8000}, .wgmma = true}
#define FLOWING(blocks_, ways_, what_)                                                                            \
    {.what = what_, .entry = "micro_read_" #ways_, .yields = YIELDS_BANDWIDTH, .blocks = blocks_, .threads = 256, \
     .ways = ways_, .p = {DATA_MIB << 10, 1}}
#define FOOTPRINT(share, what_)                                                                                  \
    {.what = what_, .entry = "micro_read_1", .yields = YIELDS_BANDWIDTH, .blocks = 4, .threads = 256, .ways = 1, \
     .p = {0, 20}, .l2_share = share}
#define CHASE(path_, what_, entry_, lines, steps, warm, since_)                                   \
    {.path = path_, .what = what_, .entry = entry_, .yields = YIELDS_NS, .grid = 1, .threads = 1, \
     .p = {steps, warm, 0, lines}, .before = "micro_link", .since = since_}
#define DEPENDENT(chains, warps)                                                                         \
    {.what = "fma, " #chains " chain(s), " #warps " warp(s) a scheduler", .entry = "micro_fma_" #chains, \
     .yields = YIELDS_RATE, .blocks = 1, .threads = 128 * warps, .work = 32 * chains, .p = {2000}}

/* A line of 128 bytes each: 2^22 are ten times L2, 2^14 always in it. */
enum { FAR_LINES = 22, NEAR_LINES = 14, NEAR = 1 << NEAR_LINES };

/* So few that they wait for memory and not for each other. */
#define FEW_UNDER_WAY "read, 4 KiB an SM under way"
enum { FEW_BYTES = 4096 };

static const Micro micros[] = {
    {.what = "fp32", .entry = "micro_fma_8", .yields = YIELDS_RATE, .blocks = 2, .threads = 1024, .work = 256, .p = {5000}},
    RATE("peak_gflop_s.fp64", "micro_fp64", 1024, 2, 0, 128, 5000, 0),
    RATE("peak_gflop_s.int32", "micro_int32", 1024, 2, 0, 256, 2500, 0),
    RATE("peak_gflop_s.sfu", "micro_sfu", 1024, 2, 0, 128, 600, 0),
    TENSOR("f16", 4096, 80),
    TENSOR("bf16", 4096, 80),
    TENSOR("tf32", 2048, 80),
    TENSOR("f64", 2048, 90),
    TENSOR("i8", 8192, 80),
    WGMMA("f16", .path = "peak_gflop_s.wgmma_f16", .work = 8192),
    WGMMA("bf16", .path = "peak_gflop_s.wgmma_bf16", .work = 8192),
    WGMMA("tf32", .path = "peak_gflop_s.wgmma_tf32", .work = 4096),
    WGMMA("i8", .path = "peak_gflop_s.wgmma_i8", .work = 16384),
    {.what = "tensor_f16 after a second of load", .entry = "micro_mma_f16", .yields = YIELDS_RATE, .blocks = 2, .threads = 512,
     .work = 4096, .p = {5000}, .since = 80, .lasting = true},
    WGMMA("f16", .what = "wgmma_f16 after a second of load", .work = 8192, .lasting = true),
    RATE("shared.bandwidth_gb_s", "micro_shared_read", 1024, 2, 0, 128, 5000, 0),
    {.path = "l2.bandwidth_gb_s", .entry = "micro_read_1", .yields = YIELDS_BANDWIDTH, .blocks = 8, .threads = 256,
     .ways = 1, .p = {0, 20}, .l2_share = 0.75},
    {.path = "dram.bandwidth_gb_s", .entry = "micro_read_4", .yields = YIELDS_BANDWIDTH, .blocks = 8, .threads = 256,
     .ways = 4, .p = {DATA_MIB << 10, 1}},
    {.path = "compute.launch_us", .entry = "micro_nothing", .yields = YIELDS_LAUNCH, .grid = 1, .threads = 32},
    {.path = "timing.block_start_cycles", .entry = "micro_nothing", .yields = YIELDS_BLOCK, .grid = 1000000, .threads = 64},
    {.path = "timing.barrier_cycles", .entry = "micro_barrier", .yields = YIELDS_CYCLES, .blocks = 1, .threads = 256, .p = {2000}},
    {.path = "timing.grid_barrier_us", .entry = "micro_grid_barrier", .yields = YIELDS_US, .blocks = 1, .threads = 256,
     .cooperative = true, .p = {500}, .since = 60},
    CHASE(NULL, "load from memory, alone", "micro_chase_loads", FAR_LINES, 4096, 0, 0),
    CHASE("l2.latency_ns", NULL, "micro_chase_loads", NEAR_LINES, NEAR, NEAR, 0),
    CHASE(NULL, "asynchronous copy, from memory", "micro_chase_copies", FAR_LINES, 4096, 0, 80),
    CHASE(NULL, "asynchronous copy, from L2", "micro_chase_copies", NEAR_LINES, NEAR, NEAR, 80),
    CHASE(NULL, "bulk copy, from memory", "micro_chase_bulk", FAR_LINES, 4096, 0, 90),
    CHASE(NULL, "bulk copy, from L2", "micro_chase_bulk", NEAR_LINES, NEAR, NEAR, 90),
    {.what = "shared memory, load to use", .entry = "micro_chase_shared", .yields = YIELDS_CYCLES, .grid = 1, .threads = 1, .p = {4096}},
    {.path = "timing.cluster_barrier_us", .entry = "micro_cluster_barrier", .yields = YIELDS_US, .grid = 32, .threads = 256, .cluster = 2,
     .p = {2000}, .since = 90},
    {.what = "clusters of 4 meet", .entry = "micro_cluster_barrier", .yields = YIELDS_US, .grid = 32, .threads = 256, .cluster = 4,
     .p = {2000}, .since = 90},
    {.what = "clusters of 8 meet", .entry = "micro_cluster_barrier", .yields = YIELDS_US, .grid = 32, .threads = 256, .cluster = 8,
     .p = {2000}, .since = 90},
    {.path = "shared.exchange_gb_s", .entry = "micro_exchange", .yields = YIELDS_DRAWN, .grid = 120, .threads = 256, .cluster = 4,
     .work = 64, .p = {500}, .since = 90},
    {.what = "one SM from L2", .entry = "micro_read_4", .yields = YIELDS_BANDWIDTH, .grid = 1, .threads = 1024, .ways = 4, .p = {2048, 10}},
    FLOWING(1, 1, FEW_UNDER_WAY),
    FLOWING(1, 2, "read, 8 KiB an SM under way"),
    FLOWING(1, 4, "read, 16 KiB an SM under way"),
    FLOWING(2, 4, "read, 32 KiB an SM under way"),
    FLOWING(4, 4, "read, 64 KiB an SM under way"),
    FOOTPRINT(0.25, "read again, 0.25 of L2"),
    FOOTPRINT(0.5, "read again, 0.5 of L2"),
    FOOTPRINT(0.9, "read again, 0.9 of L2"),
    FOOTPRINT(1.2, "read again, 1.2 of L2"),
    FOOTPRINT(2, "read again, 2 times L2"),
    DEPENDENT(1, 1),
    DEPENDENT(1, 4),
    DEPENDENT(2, 1),
    DEPENDENT(2, 4),
    DEPENDENT(4, 1),
    DEPENDENT(4, 4),
};
enum { MICRO_COUNT = sizeof micros / sizeof *micros };
static_assert(MICRO_COUNT + 2 <= MAX_MICRO, "and two that follow from others");

JitRequest micro_kernels(void)
{
    return (JitRequest){
        .text = embedded_find("src/hal/gpu/micro.cu")->text, .name = "micro.cu", .kernels = 40};
}

// ---- the worker ----

enum { BUFFER_DATA, BUFFER_NUMBERS, BUFFER_OUT, BUFFERS };

typedef struct MicroBench {
    const DeviceSpec *device;
    const GpuInfo *info;
    const JitResult *kernels;
    MicroReport *report;
    Arena *arena;
    Gpu gpu;
    GpuBuffer buffers[BUFFERS];
    LaunchArg args[BUFFERS];
    unsigned runs;
} MicroBench;

static bool runs_on(const Micro *micro, const MicroBench *bench)
{
    return micro->since <= bench->info->capability && (bench->device->has.wgmma || !micro->wgmma);
}

static int64_t grid_of(const MicroBench *bench, const Micro *micro)
{
    return micro->blocks ? (int64_t)micro->blocks * bench->info->sm_count : micro->grid;
}

static Launch launch_of(const MicroBench *bench, const Micro *micro)
{
    int cluster = micro->cluster ? micro->cluster : 1;
    return (Launch){.entry = micro->entry,
                    .grid = {grid_of(bench, micro), 1, 1},
                    .block = {micro->threads, 1, 1},
                    .cluster = {cluster, 1, 1},
                    .shared_bytes = micro->shared_bytes,
                    .asks_shared = micro->shared_bytes > 0,
                    .cooperative = micro->cooperative,
                    .args = (LaunchArg *)bench->args,
                    .arg_count = BUFFERS};
}

/* KiB that are read each time: whole rounds of the grid's loads. */
static int read_kib(const MicroBench *bench, const Micro *micro)
{
    int64_t round = grid_of(bench, micro) * micro->threads * micro->ways / 64, wanted = micro->p[0];
    if (micro->l2_share > 0)
        wanted = (int64_t)(micro->l2_share * (double)bench->device->l2_bytes / 1024);
    return (int)(wanted < round ? round : wanted / round * round);
}

typedef struct Ready {
    Launch launch;
    GpuProgram program;
    int p[NUMBERS];
} Ready;

static bool ready_of(MicroBench *bench, const Micro *micro, Ready *ready)
{
    ready->launch = launch_of(bench, micro);
    memcpy(ready->p, micro->p, sizeof ready->p);
    if (micro->yields == YIELDS_BANDWIDTH)
        ready->p[0] = read_kib(bench, micro);
    const GpuCode code = {bench->kernels->cubin, ready->launch.entry};
    return gpu_load(&bench->gpu, bench->arena, &code, &ready->launch, 1, &ready->program);
}

static bool run(MicroBench *bench, Ready *ready, double *us)
{
    static const uint64_t none[2];
    worker_alive();
    return gpu_upload(&bench->gpu, &bench->buffers[BUFFER_NUMBERS], ready->p, sizeof ready->p) &&
           gpu_upload(&bench->gpu, &bench->buffers[BUFFER_OUT], none, sizeof none) &&
           gpu_call_timed(&bench->gpu, &ready->program, bench->buffers, us);
}

/* One that only prepares what others measure. */
static bool prepare(MicroBench *bench, const char *entry, int number)
{
    Ready ready;
    double us;
    const Micro micro = {.entry = entry, .yields = YIELDS_NS, .blocks = 8, .threads = 256, .p = {number}};
    bool done = ready_of(bench, &micro, &ready) && run(bench, &ready, &us);
    gpu_unload(&bench->gpu, &ready.program);
    return done;
}

static bool time_series(MicroBench *bench, Ready *ready, double *us)
{
    enum { CALLS = 100 };
    GpuSeries series;
    const GpuBuffer *sets[] = {bench->buffers};
    bool done = gpu_series_new(&bench->gpu, &series, &ready->program, sets, 1, CALLS);
    for (int i = 0; i < 2 && done; i++)   // the first one warms up
        done = gpu_series_time(&bench->gpu, &series, us);
    gpu_series_free(&bench->gpu, &series);
    return done;
}

static bool sample(MicroBench *bench, const Micro *micro, Ready *ready, double *value)
{
    double us = 0, threads = (double)grid_of(bench, micro) * micro->threads;
    uint64_t own = 0;
    if (micro->yields == YIELDS_LAUNCH)
        return time_series(bench, ready, value);
    ready->p[2] = (int)(bench->runs++ * 2654435761u >> 1);   // where a chase begins
    if (!run(bench, ready, &us) || !gpu_download(&bench->gpu, &bench->buffers[BUFFER_OUT], &own, sizeof own))
        return false;
    switch (micro->yields) {
    case YIELDS_BANDWIDTH: *value = 1024.0 * ready->p[0] * ready->p[1] / us / 1e3; break;
    case YIELDS_RATE: *value = threads * micro->p[0] * micro->work / us / 1e3; break;
    case YIELDS_US: *value = (double)own / micro->p[0] / 1e3; break;
    case YIELDS_DRAWN: *value = micro->work * micro->threads * micro->p[0] / (double)own; break;
    case YIELDS_BLOCK: *value = us * bench->device->clock_mhz / (double)grid_of(bench, micro); break;
    default: *value = (double)own / micro->p[0];
    }
    return true;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static const char *unit_of(Yields yields)
{
    static const char *const names[] = {
        [YIELDS_BANDWIDTH] = "GB/s", [YIELDS_RATE] = "G/s",      [YIELDS_NS] = "ns",
        [YIELDS_US] = "us",          [YIELDS_CYCLES] = "cycles", [YIELDS_DRAWN] = "GB/s",
        [YIELDS_LAUNCH] = "us",      [YIELDS_BLOCK] = "cycles"};
    return names[yields];
}

static void note(MicroReport *report, const Micro *micro, double *samples)
{
    qsort(samples, SAMPLES, sizeof *samples, compare);
    MicroValue *value = &report->values[report->count++];
    double median = samples[SAMPLES / 2];
    *value = (MicroValue){.path = micro->path, .unit = unit_of(micro->yields), .median = median};
    value->spread = (samples[SAMPLES * 3 / 4] - samples[SAMPLES / 4]) / 2 / median;
    snprintf(value->what, sizeof value->what, "%s", micro->what ? micro->what : micro->path);
}

static bool measure(MicroBench *bench, const Micro *micro)
{
    Ready ready;
    double samples[SAMPLES], ignored;
    if (micro->before && !prepare(bench, micro->before, micro->p[3]))
        return false;
    bool done = ready_of(bench, micro, &ready);
    for (int i = 0; i < (micro->lasting ? 2 * WARM_UP_CALLS : 1) && done; i++)
        done = sample(bench, micro, &ready, &ignored);
    for (int i = 0; i < SAMPLES && done; i++)
        done = sample(bench, micro, &ready, &samples[i]);
    gpu_unload(&bench->gpu, &ready.program);
    if (done)
        note(bench->report, micro, samples);
    return done;
}

static bool begin(MicroBench *bench)
{
    static const int64_t bytes[BUFFERS] = {(int64_t)DATA_MIB << 20, 256, 256};
    if (!gpu_open(&bench->gpu, bench->info->ordinal, bench->report->reason, MICRO_REASON))
        return false;
    for (int i = 0; i < BUFFERS; i++) {
        bench->args[i] = (LaunchArg){.buffer = i, .bytes = bytes[i], .written = true};
        if (!gpu_buffer_new(&bench->gpu, &bench->buffers[i], bytes[i]))
            return false;
    }
    bool done = prepare(bench, "micro_fill", DATA_MIB);
    for (int i = 0; i < WARM_UP_CALLS && done; i++)
        done = prepare(bench, "micro_fma_8", 5000);
    return done;
}

static void work(void *context)
{
    MicroBench *bench = context;
    bench->arena = arena_new();
    bool done = begin(bench);
    for (int i = 0; i < MICRO_COUNT && done; i++)
        done = !runs_on(&micros[i], bench) || measure(bench, &micros[i]);
    bench->report->done = done;
}

// ---- the parent ----

static const MicroValue *value_named(const MicroReport *report, const char *what)
{
    for (int i = 0; i < report->count; i++)
        if (strcmp(report->values[i].what, what) == 0)
            return &report->values[i];
    return NULL;
}

/* How many even shares of L2's bandwidth one SM alone draws. */
static void add_port_share(MicroReport *report, const GpuInfo *gpu)
{
    const MicroValue *alone = value_named(report, "one SM from L2"),
                     *all = value_named(report, "l2.bandwidth_gb_s");
    MicroValue *share = &report->values[report->count++];
    *share = (MicroValue){.path = "l2.port_share", .what = "l2.port_share", .unit = "even shares"};
    share->median = fmax(alone->median * gpu->sm_count / all->median, 1);
    share->spread = alone->spread + all->spread;
}

/* Little's law: what is under way over what arrives. */
static void add_latency(MicroReport *report, const GpuInfo *gpu)
{
    const MicroValue *few = value_named(report, FEW_UNDER_WAY);
    MicroValue *latency = &report->values[report->count++];
    *latency = (MicroValue){.path = "dram.latency_ns", .what = "dram.latency_ns", .unit = "ns", .spread = few->spread};
    latency->median = (double)FEW_BYTES * gpu->sm_count / few->median;   // bytes / (GB/s) = ns
}

bool micro_measure(const DeviceSpec *device, const GpuInfo *gpu, const JitResult *kernels,
                   MicroReport *report)
{
    Worker worker;
    MicroReport *shared = worker_share(sizeof *shared);
    MicroBench bench = {.device = device, .info = gpu, .kernels = kernels, .report = shared};
    *report = (MicroReport){.reason = "no further process can be started"};
    if (!shared || !worker_start(&worker, &(WorkerLimits){.seconds = PATIENCE_SECONDS}, work, &bench))
        return false;
    while (worker.state == WORKER_RUNNING)
        worker_wait(&worker, 1);
    *report = *shared;
    worker_unshare(shared, sizeof *shared);
    if (!report->done && !report->reason[0])
        snprintf(report->reason, MICRO_REASON, "the GPU's driver %s",
                 worker.state == WORKER_TIMEOUT ? "does not answer" : "ends the process");
    if (report->done) {
        add_port_share(report, gpu);
        add_latency(report, gpu);
    }
    return report->done;
}
