#include "explain/timed_kernels.h"

#include <stdlib.h>

/* Of equal times the one that comes first in the program stays first. */
static int by_time(const void *left, const void *right)
{
    const TimedKernel *a = left, *b = right;
    if (a->call_us != b->call_us)
        return a->call_us < b->call_us ? 1 : -1;
    return a->kernel < b->kernel ? -1 : a->kernel > b->kernel;
}

TimedKernel *timed_kernels(Arena *arena, const Report *report)
{
    TimedKernel *list = NEW_ARRAY(arena, TimedKernel, report->kernel_count);
    for (int i = 0; i < report->kernel_count; i++) {
        const ReportKernel *kernel = &report->kernels[i];
        list[i] =
            (TimedKernel){.kernel = kernel, .call_us = kernel->times * kernel->candidates[0].measured_us};
        for (int c = 0; c < kernel->count; c++) {
            list[i].failed += kernel->candidates[c].status != NULL;
            if (kernel->candidates[c].model_rank == 1)
                list[i].model_us = kernel->candidates[c].measured_us;
        }
    }
    qsort(list, (size_t)report->kernel_count, sizeof *list, by_time);
    return list;
}
