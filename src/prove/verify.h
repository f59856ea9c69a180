// The proof of a kernel: it is run on the CPU interpreter, and what it writes is compared with the reference
// evaluator.
//
// A program that is small enough runs whole, as its launcher runs it. A larger one is proven launch by
// launch, on some of its blocks: the reference then gives what earlier launches would have made. Of equal
// launches the first is proven; of the others only that they take the right tensors.
#pragma once
#include "codegen/cuda/kernel.h"
#include "hal/runtime.h"
#include "ir/eval.h"

typedef enum VerifyStatus {
    VERIFY_RIGHT,
    VERIFY_WRONG,
    VERIFY_TIMEOUT,   // the proof takes too long, and says nothing of the kernel
    VERIFY_MACHINE
} VerifyStatus;

typedef struct VerifyReport {
    VerifyStatus status;
    const char *message;                // what is wrong, or what would take too long; NULL: nothing
    const char *unproven;               // the launch that was passed over, and why; NULL: there is none
    bool sampled;                       // only some blocks were run,
    bool estimated;                     // … and some of them on estimates of long reductions
    int64_t blocks_run, blocks_total;   // over all kinds of inputs
    int64_t elements;                   // compared
    int64_t unjudged;                   // of these: too close to a decision for the reference to say anything
    double seconds;                     // that the proof took
} VerifyReport;

/* What is zero gets its default. */
typedef struct VerifyOptions {
    uint64_t seed;                      // of inputs and of the choice of blocks
    EvalMath math;                      // what the kernel was allowed to do
    double whole_work;                  // scalar operations up to which a program runs whole
    int seconds;                        // of processor time for a run of the kernel
    const Runtime *runtime;             // runs it; NULL: the interpreter
    const char *weights;                // their file; NULL: they are drawn, like inputs
    bool progress;                      // a line on stderr as kernels are proven
} VerifyOptions;

/* Outputs are judged by `program`, what the user asked for; temporaries that the plan added by
   `kernel->program`. */
VerifyReport verify(Arena *scratch, const Program *program, const Kernel *kernel, const DeviceSpec *device,
                    const VerifyOptions *options);
