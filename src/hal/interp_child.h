// The child process of the CPU interpreter: it runs a program once, so that a crash or a hang is a result, and
// reports how it ended.
#pragma once
#include "hal/interp/interface.h"
#include "hal/interp_counts.h"
#include "hal/interp_memory.h"
#include "hal/runtime.h"

enum { INTERP_WHERE_BYTES = 200, INTERP_WHAT_BYTES = 800 };

/* What the child tells its parent, in memory that they share. */
typedef struct InterpReport {
    RuntimeStatus status;
    bool trapped;   // by a check that does not say which it is
    int64_t blocks_run, blocks_total;
    int launch_count;
    RuntimeTraffic traffic[INTERP_MAX_LAUNCHES];
    unsigned pc, other_pc;   // of accesses that are wrong; 0: not known
    char where[INTERP_WHERE_BYTES];   // "launch 1, block (3,0,0), thread 17, "
    char what[INTERP_WHAT_BYTES];
} InterpReport;

/* What it runs. */
typedef struct InterpTask {
    const RuntimeJob *job;
    const RuntimeSource *source;
    const char *object;          // the file that holds the program
    void **buffers;              // arguments of its launcher
    InterpMemory *memory;
    InterpCounts *counts;        // NULL: none are wanted
    InterpReport *report;
} InterpTask;

_Noreturn void interp_child_run(const InterpTask *task);
