// A rollerc whose GPU is a stand-in: candidates are "timed" by their places, and the environment says what fails.
//
// STAND_IN_FAULTS=N: every N-th candidate of a kernel crashes; 1: all do. STAND_IN_WHOLE=model: the plan that the model has first is
// the fastest of the whole program, else the one that was made of the fastest kernels is.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/embedded.h"
#include "clock/profile.h"

void profile_find_gpu(Arena *arena, const char *option, const DeviceSpec *device, bool force, CandidateList *list)
{
    (void)arena, (void)option, (void)force;
    list->gpu = device->title ? device->title : device->name;
    list->driver = "stand-in";
}

JitRequest profile_helpers(void)
{
    return (JitRequest){.text = embedded_find("src/hal/gpu/helpers.cu")->text, .name = "helpers.cu"};
}

static int faults(void)
{
    const char *every = getenv("STAND_IN_FAULTS");
    return every ? atoi(every) : 0;
}

/* Of a kernel the later candidates are the faster ones: the model is wrong about all of them. */
static double time_of(const Candidate *candidate, bool whole)
{
    const char *first = getenv("STAND_IN_WHOLE");
    bool model = first && strcmp(first, "model") == 0;
    return whole ? (candidate->model_rank == 0 ? 50 : model ? 40 : 60) : 200 - candidate->model_rank;
}

struct Profiler {
    Arena *arena;
    const ProfileJob *jobs;
    ProfileOptions options;
    int next;
};

Profiler *profile_begin(Arena *arena, const ProfileJob *jobs, int count, const DeviceSpec *device, const ProfileOptions *options)
{
    (void)count, (void)device;
    Profiler *profiler = NEW(arena, Profiler);
    *profiler = (Profiler){arena, jobs, *options, 0};
    return profiler;
}

void profile_take_helpers(Profiler *profiler, const JitResult *helpers)
{
    (void)profiler;
    if (helpers->status != JIT_DONE)
        fatal(EXIT_MACHINE, "%s", helpers->reason);
}

static void time_candidate(const Profiler *profiler, Candidate *candidate)
{
    bool part = profiler->options.quiet;
    if (part && faults() && candidate->model_rank % faults() == 0) {
        candidate->status = CANDIDATE_FAULT;
        candidate->reason = "ends the process that runs it (Killed)";
        return;
    }
    double us = time_of(candidate, !part);
    candidate->status = CANDIDATE_OK;
    candidate->measured = NEW(profiler->arena, Measurement);
    *candidate->measured = (Measurement){.warmup = 1, .reps = 1, .buffer_sets = 1, .min_us = us, .median_us = us,
                                         .mean_us = us, .p95_us = us, .elements = part};
}

void profile_take_job(Profiler *profiler)
{
    int job = profiler->next++;
    const CandidateList *list = profiler->jobs[job].list;
    fprintf(stderr, "clock: %lld bytes, %d candidates, %s\n", (long long)program_bytes(profiler->jobs[job].program), list->count,
            profiler->options.quiet ? "a kernel" : "the whole");
    for (int i = 0; i < list->count; i++)
        if (list->items[i].compiled)
            time_candidate(profiler, &list->items[i]);
    if (profiler->options.done)
        profiler->options.done(profiler->options.context, job);
}

void profile_end(Profiler *profiler) { (void)profiler; }
