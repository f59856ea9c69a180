#include <math.h>
#include <stdlib.h>

#include "base/stopwatch.h"
#include "clock/profile_bench.h"
#include "hal/worker.h"

enum {
    MAX_CALLS = 240,   // of a series
    ROUNDS = 15,       // of the best, in turn
    TOP = 3            // which are those
};

static const double SERIES_US = 2e3;     // at least, so that starting it does not count
static const double WARM_UP_US = 30e3;   // until the clocks are up
static const double WARM_US = 5e3;       // the same if they are
static const double STAYS_WARM = 0.05;   // seconds after work
static const double BUDGET_US = 30e3;    // for timing one candidate; the best are timed again
static const double SLOW_US = 60e3;      // a series that takes longer is none: it is timed once

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void summarise(Loaded *loaded)
{
    Measurement *m = &loaded->slot->measurement;
    double *samples = loaded->samples, sum = 0, squares = 0;
    int count = loaded->sample_count;
    qsort(samples, (size_t)count, sizeof *samples, ascending);
    for (int i = 0; i < count; i++)
        sum += samples[i];
    m->mean_us = sum / count;
    for (int i = 0; i < count; i++)
        squares += (samples[i] - m->mean_us) * (samples[i] - m->mean_us);
    m->stdev_us = sqrt(squares / count);
    m->min_us = samples[0];
    m->median_us = (samples[(count - 1) / 2] + samples[count / 2]) / 2;
    m->p95_us = samples[(int)ceil(0.95 * count) - 1];
    m->reps = count * (loaded->series.calls ? loaded->series.calls : 1);
}

static bool prepare_all(Bench *bench, const Loaded *loaded)
{
    for (int i = 0; i < bench->set_count && bench->weights.bytes; i++)
        if (!bench_prepare(bench, loaded, bench->sets[i]))
            return false;
    return true;
}

static bool prepare_series(Bench *bench, Loaded *loaded, double us)
{
    double passes = fmax(ceil(SERIES_US / (us * bench->set_count)), 1);
    int calls = (int)fmin(passes * bench->set_count, MAX_CALLS / bench->set_count * bench->set_count);
    return gpu_series_new(&bench->gpu, &loaded->series, &loaded->program,
                          (const GpuBuffer *const *)bench->sets, bench->set_count, calls);
}

static bool warm_up(Bench *bench, Loaded *loaded, double us)
{
    double wanted = seconds_now() < bench->warm_until ? WARM_US : WARM_UP_US;
    int series = (int)ceil(wanted / (us * loaded->series.calls));
    for (int i = 0; i < series; i++)
        if (!gpu_series_time(&bench->gpu, &loaded->series, &us))
            return false;
    loaded->slot->measurement.warmup = series * loaded->series.calls;
    return true;
}

/* Too slow to be worth more. Cores are busy with other candidates, and a pause of this process between two
   commands looks like a slow kernel: so one that seems slow is called again. */
static bool find_slow(Bench *bench, const Loaded *loaded, double *us, bool *is_slow)
{
    double again = *us;
    if (*us * bench->set_count > SLOW_US &&
        !gpu_call_timed(&bench->gpu, &loaded->program, bench->sets[0], &again))
        return false;
    *us = fmin(*us, again);
    *is_slow = *us * bench->set_count > SLOW_US;
    return true;
}

bool bench_time(Bench *bench, Loaded *loaded, double us)
{
    bool is_slow;
    loaded->slot->measurement.buffer_sets = bench->set_count;
    if (!find_slow(bench, loaded, &us, &is_slow))
        return false;
    if (is_slow) {
        loaded->samples[loaded->sample_count++] = us;
        loaded->slot->measurement.buffer_sets = 1;
        summarise(loaded);
        return true;
    }
    if (!prepare_all(bench, loaded) || !prepare_series(bench, loaded, us) || !warm_up(bench, loaded, us))
        return false;
    double left = BUDGET_US;
    while (loaded->sample_count < MAX_SAMPLES && (left > 0 || loaded->sample_count == 0)) {
        double *sample = &loaded->samples[loaded->sample_count++];
        if (!gpu_series_time(&bench->gpu, &loaded->series, sample))
            return false;
        left -= *sample * loaded->series.calls;
    }
    bench->warm_until = seconds_now() + STAYS_WARM;
    summarise(loaded);
    return true;
}

// ---- the best ----

/* The positions of the fastest that took several samples. */
static int find_best(const Bench *bench, int *best)
{
    int count = 0;
    for (int i = 0; i < bench->list->count; i++) {
        const ProfileSlot *slots = bench->slots;
        if (!slots[i].finished || slots[i].status != CANDIDATE_OK || slots[i].measurement.warmup == 0)
            continue;
        int at = count < TOP ? count++ : TOP;
        for (; at > 0 && slots[best[at - 1]].measurement.median_us > slots[i].measurement.median_us; at--)
            if (at < TOP)
                best[at] = best[at - 1];
        if (at < TOP)
            best[at] = i;
    }
    return count;
}

bool bench_time_again(Bench *bench)
{
    int best[TOP], count = find_best(bench, best);
    Loaded loaded[TOP];
    int64_t workspace = 0, prepared = 0;
    for (int i = 0; i < count; i++) {
        const Kernel *kernel = bench->list->items[best[i]].kernel;
        workspace = kernel->workspace_bytes > workspace ? kernel->workspace_bytes : workspace;
        prepared = kernel->prepared_bytes > prepared ? kernel->prepared_bytes : prepared;
    }
    if (count < 2 || !bench_make_workspaces(bench, workspace, prepared))
        return true;
    for (int i = 0; i < count; i++)
        if (!bench_load(bench, best[i], &loaded[i]) ||
            !prepare_series(bench, &loaded[i], loaded[i].slot->measurement.median_us))
            return false;
    for (int round = -1; round < ROUNDS; round++) {   // the first one warms up
        for (int i = 0; i < count; i++)
            if (!prepare_all(bench, &loaded[i]) ||   // each its own, in the place of the others'
                !gpu_series_time(&bench->gpu, &loaded[i].series, &loaded[i].samples[round < 0 ? 0 : round]))
                return false;
        worker_alive();
    }
    for (int i = 0; i < count; i++) {
        loaded[i].sample_count = ROUNDS;
        summarise(&loaded[i]);
        bench_unload(bench, &loaded[i]);
    }
    return true;
}
