#include "clock/find_gpu.h"

#include <math.h>

#include "base/diag.h"
#include "hal/worker.h"

enum {
    MAX_GPUS = 16,
    OPEN_SECONDS = 60,   // a driver that wakes up takes a few
    REASON_BYTES = 500
};

typedef struct Probe {
    int count;
    GpuInfo infos[MAX_GPUS];
    char reason[REASON_BYTES];
} Probe;

static void probe_work(void *context)
{
    Probe *probe = context;
    probe->count = gpu_list(probe->infos, MAX_GPUS, probe->reason, sizeof probe->reason);
}

/* The memory tells relatives apart that have the same number of SMs. */
static bool matches(const GpuInfo *gpu, const DeviceSpec *device)
{
    double memory = (double)gpu->memory_bytes / (double)device->dram_bytes;
    return gpu->sm_count == device->sm_count && gpu->capability == arch_capability(device->arch) &&
           fabs(memory - 1) < 0.15;
}

static void ask_driver(const char *option, Probe *probe)
{
    Worker worker;
    if (!worker_start(&worker, &(WorkerLimits){.seconds = OPEN_SECONDS}, probe_work, probe))
        fatal(EXIT_MACHINE, "no further process can be started");
    while (worker.state == WORKER_RUNNING)
        worker_wait(&worker, 1);
    if (worker.state != WORKER_DONE)
        fatal(EXIT_MACHINE, "%s: the driver of the GPU %s", option,
              worker.state == WORKER_TIMEOUT ? "does not answer" : "crashes");
    if (probe->count == 0)
        fatal(EXIT_MACHINE, "%s: %s", option, probe->reason);
}

GpuInfo find_gpu(const char *option, const DeviceSpec *device, bool force)
{
    Probe *probe = worker_share(sizeof *probe);
    if (!probe)
        fatal(EXIT_MACHINE, "out of memory");
    ask_driver(option, probe);
    GpuInfo gpu = probe->infos[0];
    for (int i = probe->count - 1; i >= 0; i--)
        if (matches(&probe->infos[i], device))
            gpu = probe->infos[i];
    worker_unshare(probe, sizeof *probe);
    if (!matches(&gpu, device) && !force)
        fatal(EXIT_MACHINE,
              "the GPU here, %s (%d SMs, compute capability %d.%d, %.0f GiB), is not the device '%s' (%d "
              "SMs, %s, "
              "%.0f GiB); --force-device takes it all the same",
              gpu.name, gpu.sm_count, gpu.capability / 10, gpu.capability % 10,
              (double)gpu.memory_bytes / (1 << 30), device->name, device->sm_count, device->arch,
              (double)device->dram_bytes / (1 << 30));
    return gpu;
}

const char *gpu_driver_text(Arena *arena, const GpuInfo *gpu)
{
    return arena_printf(arena, "CUDA %d.%d", gpu->driver / 1000, gpu->driver % 1000 / 10);
}
