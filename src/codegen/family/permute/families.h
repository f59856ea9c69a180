// Axes in another order.
#pragma once
#include "kernel/family.h"

extern const Family permute_family;
