// The GPU of this machine that a device file describes.
#pragma once
#include "hal/device.h"
#include "hal/gpu.h"

/* None, or another one unless `force`: EXIT_MACHINE, and `option` is what wanted it. */
GpuInfo find_gpu(const char *option, const DeviceSpec *device, bool force);

/* "CUDA 13.0" */
const char *gpu_driver_text(Arena *arena, const GpuInfo *gpu);
