// Programmatic dependent launch: which launches begin while the previous one ends, and where each one waits.
// templates/prelude/intrinsics/chain.cuh describes the device side.
#pragma once
#include "codegen/cuda/kernel.h"
#include "hal/device.h"

/* Sets `early`, `finds_room`, `waits_last` and `lets_begin` of all launches, and `early` of their arguments,
   which are known. */
void chain_launches(Arena *arena, Launch *launches, int count, const DeviceSpec *device);

/* The first statements of the launch's kernel: after the statement that names its tensors, or after loads of
   arguments that are `early`; `joined`: on that statement's line. "" if it does not wait. */
const char *chain_opening(Arena *arena, const Launch *launch, bool joined);
