// The memory that launches share. It is checked before any kernel is written; a failure is a bug in rollerc.
#pragma once
#include "codegen/cuda/kernel.h"
#include "codegen/family/family.h"

/* Checks that what launches read and write is aligned, within the workspace, and does not overlap the launch's
   other operands, and that each read sees the last write. Places may be reused. */
void memory_check_launches(const Kernel *kernel);
