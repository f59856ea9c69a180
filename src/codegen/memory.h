// What launches share. Checked before any kernel is written: what is not so is a bug in rollerc.
#pragma once
#include "codegen/cuda/kernel.h"
#include "codegen/family/family.h"

/* What launches read and write lies where it may: aligned, within the workspace, apart from what else the launch uses, and
   what is read is what was written there last. Places may be used again. */
void memory_check_launches(const Kernel *kernel);
