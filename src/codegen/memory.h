// The memory that a launch is given holds all that its kernel lays out in it. Checked before any kernel is
// written: what reaches beyond it is a bug in rollerc. The emitted file says the same of the types it
// declares, by static_assert.
#pragma once
#include "codegen/cuda/kernel.h"
#include "codegen/family/family.h"

/* Shared memory of a block, and what the launch has for itself. Ends the program if there is too little. */
void memory_check_launch(const Launch *launch, KernelMemory used);

/* What launches read and write lies where it may: aligned, within the workspace, apart from what else the launch uses, and
   what is read is what was written there last. Places may be used again. */
void memory_check_launches(const Kernel *kernel);
