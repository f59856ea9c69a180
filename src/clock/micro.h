// The micro-profiler (Roller, OSDI'22, 4): what a GPU does, measured by kernels that each do one thing
// (src/hal/gpu/micro.cu). It knows no program.
#pragma once
#include "hal/device.h"
#include "hal/gpu.h"
#include "hal/jit.h"

enum { MAX_MICRO = 96, MICRO_REASON = 500 };

/* One measurement. */
typedef struct MicroValue {
    const char *path;   // of the key that it is the value of; NULL: it stands in a table
    char what[60];      // "read, 16 KiB an SM under way"
    const char *unit;
    double median;
    double spread;   // half of the range of the middle half of the samples, as a share of the median
} MicroValue;

typedef struct MicroReport {
    MicroValue values[MAX_MICRO];
    int count;
    bool done;
    char reason[MICRO_REASON];
} MicroReport;

/* The text of the kernels. */
JitRequest micro_kernels(void);

/* Runs them on the GPU, in a process of its own. False: the report says why not. `device`: what is known of
   it already. */
bool micro_measure(const DeviceSpec *device, const GpuInfo *gpu, const JitResult *kernels,
                   MicroReport *report);
