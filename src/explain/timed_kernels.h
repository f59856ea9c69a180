// Kernels of a program of many that were timed by themselves, and what the clock changed.
#pragma once
#include "explain/report.h"

typedef struct TimedKernel {
    const ReportKernel *kernel;
    double call_us;         // of all that the program has of it
    double model_us;        // of one, as the model would have made it; 0: that failed
    int failed;             // of its candidates
} TimedKernel;

/* Those that take most of a call first; as many as the report has. */
TimedKernel *timed_kernels(Arena *arena, const Report *report);
