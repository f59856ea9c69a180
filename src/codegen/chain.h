// Launches that begin while the one before them ends, the first of a program like the others:
// templates/prelude/intrinsics/chain.cuh says how that works on the device. Here is decided who begins early and who waits where.
#pragma once
#include "codegen/cuda/kernel.h"
#include "hal/device.h"

/* Sets `early`, `finds_room`, `waits_last` and `lets_begin` of all launches, whose arguments are known, and `early` of these. */
void chain_launches(Arena *arena, Launch *launches, int count, const DeviceSpec *device);

/* What the launch's kernel begins with, behind the statement that names its tensors, or behind loads of arguments that are
   `early`; `joined`: in that one's line. "" where it waits for nobody. */
const char *chain_opening(Arena *arena, const Launch *launch, bool joined);
