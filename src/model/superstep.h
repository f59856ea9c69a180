// The model of devices whose units have no memory in common (Graphcore's IPU; Roller, OSDI'22, 5.4): a kernel goes by
// supersteps, as Valiant's bulk-synchronous machines do.
#pragma once
#include "model/perf.h"

/* Needs a completed program: all but `perf` filled in. */
PerfEstimate superstep_estimate(const KernelKind *kind, const RProgram *program, const DeviceSpec *device);
