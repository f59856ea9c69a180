// Depthwise convolutions, those of few channels, and the gradients of depthwise filters.
#pragma once
#include "kernel/family.h"

extern const Family depthwise_family, strip_family, toeplitz_family, pairs_family, narrow_family, filter_direct_family,
    filter_strip_family, filter_gemm_family, filter_groups_family, filter_wide_family;
