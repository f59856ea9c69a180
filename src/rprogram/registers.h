// Registers of a thread: a budget, and how many of them compilers take.
#pragma once
#include "model/perf.h"

/* With fewer some kernels of the kind spill, so that tiles are held to it, and launch bounds promise no more blocks
   than have so many. Needs the program's tiles, threads and shared memory. `footprint`: of the register tile, bytes. */
RegisterBudget register_budget(const KernelKind *kind, const DeviceSpec *device, const RProgram *program,
                               int64_t footprint);

/* This decides how many blocks share an SM (tuning-log 133): always so few that one does. */
int64_t registers_taken(const KernelKind *kind, const DeviceSpec *device, const RProgram *program,
                        RegisterBudget budget);
