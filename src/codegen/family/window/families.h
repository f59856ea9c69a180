// Windows that slide over a tensor.
#pragma once
#include "kernel/family.h"

extern const Family window_family;
