// Where a program of many launches spends its time: a row for each kernel, however often it is launched.
#pragma once
#include "explain/report.h"

typedef struct KernelTime {
    const ReportLaunch *first;   // of its launches
    int launches;
    double time_us;              // of all of them
} KernelTime;

typedef struct KernelTimes {
    KernelTime *kernels;   // the longest first
    int count;
} KernelTimes;

KernelTimes kernel_times(Arena *arena, const ReportCandidate *candidate);

/* Whether the launch is the first one of its kernel. */
bool kernel_times_begins(const KernelTimes *list, const ReportLaunch *launch);

/* How near it is to what limits it, 0 to 1: the part of its time that the longest term takes alone. */
double kernel_share_of_limit(const KernelTime *kernel);

/* `layer1_conv1 and 5 more`; "": the ranking does not say what launches make. */
const char *kernel_makes(Arena *arena, const KernelTime *kernel);
