// The proof of a kernel: it is run on a runtime and every element it writes is compared with the reference evaluator.
//
// A program that is small enough runs whole, as its launcher runs it. A larger one is proven launch by launch, on some of
// its blocks: what earlier launches would have made is then given by the reference.
#pragma once
#include "codegen/kernel.h"
#include "hal/device.h"
#include "hal/runtime.h"

typedef enum VerifyStatus { VERIFY_RIGHT, VERIFY_WRONG, VERIFY_MACHINE } VerifyStatus;

typedef struct VerifyReport {
    VerifyStatus status;
    const char *message;                // what is wrong; NULL if nothing is
    bool sampled;                       // only some blocks were run
    int64_t blocks_run, blocks_total;
    int64_t elements;                   // compared, over all input classes
    int64_t unjudged;                   // of these: too close to a decision for the reference to say anything
} VerifyReport;

typedef struct VerifyOptions {
    uint64_t seed;                      // of inputs and of the choice of blocks
    double whole_work;                  // scalar operations up to which a program runs whole; 0: the default
    int seconds;                        // then a run is taken to hang; 0: the default
} VerifyOptions;

/* `program` is what the user asked for; `kernel->program` adds the temporaries that the plan made. */
VerifyReport verify(Arena *scratch, const Program *program, const Kernel *kernel, const DeviceSpec *device,
                    const VerifyOptions *options);
