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

void profile(Arena *arena, const Program *program, const DeviceSpec *device, const JitResult *helpers, const ProfileOptions *options,
             CandidateList *list)
{
    (void)device;
    if (helpers->status != JIT_DONE)
        fatal(EXIT_MACHINE, "%s", helpers->reason);
    fprintf(stderr, "clock: %lld bytes, %d candidates, %s\n", (long long)program_bytes(program), list->count,
            options->quiet ? "a kernel" : "the whole");
    for (int i = 0; i < list->count; i++) {
        Candidate *candidate = &list->items[i];
        if (!candidate->compiled)
            continue;
        if (options->quiet && faults() && candidate->model_rank % faults() == 0) {
            candidate->status = CANDIDATE_FAULT;
            candidate->reason = "ends the process that runs it (Killed)";
            continue;
        }
        double us = time_of(candidate, !options->quiet);
        candidate->status = CANDIDATE_OK;
        candidate->measured = NEW(arena, Measurement);
        *candidate->measured = (Measurement){.warmup = 1, .reps = 1, .buffer_sets = 1, .min_us = us, .median_us = us,
                                             .mean_us = us, .p95_us = us, .elements = options->quiet};
    }
}
