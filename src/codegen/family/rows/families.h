// Reductions over rows, with what is made before and after them.
#pragma once
#include "kernel/family.h"

extern const Family rowwise_family, channelwise_family;
