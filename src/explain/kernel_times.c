#include "explain/kernel_times.h"

#include <stdlib.h>
#include <string.h>

#include "explain/why.h"

static KernelTime *time_of(KernelTimes *list, const ReportLaunch *launch)
{
    int i = 0;
    while (i < list->count && strcmp(list->kernels[i].first->kernel, launch->kernel) != 0)
        i++;
    if (i == list->count)
        list->kernels[list->count++] = (KernelTime){.first = launch};
    return &list->kernels[i];
}

/* Of equal times the one that is launched first stays first. */
static int by_time(const void *left, const void *right)
{
    const KernelTime *a = left, *b = right;
    if (a->time_us != b->time_us)
        return a->time_us < b->time_us ? 1 : -1;
    return a->first < b->first ? -1 : a->first > b->first;
}

KernelTimes kernel_times(Arena *arena, const ReportCandidate *candidate)
{
    KernelTimes list = {.kernels = NEW_ARRAY(arena, KernelTime, candidate->launch_count)};
    for (int i = 0; i < candidate->launch_count; i++) {
        KernelTime *kernel = time_of(&list, &candidate->launches[i]);
        kernel->launches++;
        kernel->time_us += candidate->launches[i].costs.time;
    }
    qsort(list.kernels, (size_t)list.count, sizeof *list.kernels, by_time);
    return list;
}

bool kernel_times_begins(const KernelTimes *list, const ReportLaunch *launch)
{
    int i = 0;
    while (i < list->count && list->kernels[i].first != launch)
        i++;
    return i < list->count;
}

double kernel_share_of_limit(const KernelTime *kernel)
{
    const Costs *costs = &kernel->first->costs;
    return costs->time > 0 ? costs->term[longest_term(costs)] / costs->time : 0;
}

const char *kernel_makes(Arena *arena, const KernelTime *kernel)
{
    const char *makes = kernel->first->makes;
    return !makes                  ? ""
           : kernel->launches == 1 ? makes
                                   : arena_printf(arena, "%s and %d more", makes, kernel->launches - 1);
}
