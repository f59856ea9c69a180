// The proof and the clock on a GPU: every candidate runs there, is compared with the reference, and only
// then timed.
//
// Both go on while candidates are compiled: the reference on all cores, the GPU with those that are there.
#pragma once
#include "clock/profile_board.h"

typedef struct ProfileOptions {
    EvalMath math;      // what the kernels were allowed to do
    int hang_seconds;   // after which a kernel is taken to hang; 0: 10
    int jobs;           // processes of the reference; 0: as many as there are cores
    bool quiet;         // nothing is said of single candidates
    double most_work;   // scalar operations of one element: outputs that take more are not compared; 0: any
    /* After each job, in their order: its candidates have what became of them. May be NULL. */
    void (*done)(void *context, int job);
    void *context;
} ProfileOptions;

typedef struct Profiler Profiler;

/* Finds the GPU that the device file describes and notes its name in `list`. None: EXIT_MACHINE. One of
   another kind will do if `force`. `option`: what asks for it, as written. */
void profile_find_gpu(Arena *arena, const char *option, const DeviceSpec *device, bool force,
                      CandidateList *list);

/* The text of its own kernels, to be compiled with those of the candidates. */
JitRequest profile_helpers(void);

/* Begins with all that can be done before there is machine code. The candidates have their texts. The jobs
   are copied, their lists are not. */
Profiler *profile_begin(Arena *arena, const ProfileJob *jobs, int count, const DeviceSpec *device,
                        const ProfileOptions *options);

/* What became of its own kernels. */
void profile_take_helpers(Profiler *profiler, const JitResult *helpers);

/* The candidates of the next job are compiled, or failed: they are timed when their turn comes. */
void profile_take_job(Profiler *profiler);

/* Waits until all jobs are done. What fails gets its status and reason, and the others go on. */
void profile_end(Profiler *profiler);
