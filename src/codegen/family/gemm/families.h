// The families of products: one is offered where another is not, and their factors are packed for them.
#pragma once
#include "kernel/family.h"

extern const Family matmul_family, gemm_family, wgmma_family, bulk_family, skinny_family;
