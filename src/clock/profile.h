// The proof and the clock on a GPU: every candidate runs there, is compared with the reference, and only
// then timed.
#pragma once
#include "ir/eval.h"
#include "rank/candidates.h"

typedef struct ProfileOptions {
    EvalMath math;      // what the kernels were allowed to do
    int hang_seconds;   // after which a kernel is taken to hang; 0: 10
    bool quiet;         // nothing is said of single candidates
    double most_work;   // of the reference for one element, in scalar operations: outputs that take more are not compared; 0: any
} ProfileOptions;

/* Finds the GPU that the device file describes and notes its name in `list`. None: EXIT_MACHINE. One of
   another kind will do if `force`. `option`: what asks for it, as written. */
void profile_find_gpu(Arena *arena, const char *option, const DeviceSpec *device, bool force, CandidateList *list);

/* The text of its own kernels, to be compiled with those of the candidates. */
JitRequest profile_helpers(void);

/* Checks and times all candidates that were compiled; what fails gets its status and reason, and the others
   go on. `helpers`: what became of its own kernels. */
void profile(Arena *arena, const Program *program, const DeviceSpec *device, const JitResult *helpers,
             const ProfileOptions *options, CandidateList *list);
