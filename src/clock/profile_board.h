// What the profiler and its workers share while they run: machine code goes one way, results the other.
#pragma once
#include <stdatomic.h>

#include "clock/profile_reference.h"
#include "rank/candidates.h"

enum { PROFILE_REASON = 500 };

/* Of one candidate. */
typedef struct ProfileSlot {
    const GpuCode *codes;   // of each launch, before its job is announced; NULL: it is not compiled
    bool finished;          // what follows is what the worker says of it
    CandidateStatus status;
    Measurement measurement;
    char reason[PROFILE_REASON];
} ProfileSlot;

/* All of it is shared memory. */
typedef struct ProfileBoard {
    _Atomic(const unsigned char *) helpers;   // machine code of src/hal/gpu/helpers.cu; NULL: not yet
    atomic_int compiled_jobs;                 // whose codes are there: the first so many
    atomic_int next_reference;                // to be evaluated: two of each job
    bool opened;                              // the GPU could be used, and holds the buffers of the job
    int job;                                  // at work
    int candidate;                            // its position; the count of them: timing the best again
    int finished_jobs;                        // the first so many
    bool done;
    char reason[PROFILE_REASON];   // of the worker itself
} ProfileBoard;

/* What is timed together: a program and its candidates. */
typedef struct ProfileJob {
    const Program *program;
    CandidateList *list;
} ProfileJob;

/* What workers need beside that; all of it was made before the fork. */
typedef struct ProfileTask {
    const ProfileJob *jobs;
    int job_count;
    ProfileSlot **slots;   // of each job, one for each candidate
    ProfileReference **references;
    EvalMath math;
    double most_work;
    int64_t l2_bytes;
    int gpu;
    int first_job, first;   // candidate of it to begin with
    ProfileBoard *board;
} ProfileTask;
