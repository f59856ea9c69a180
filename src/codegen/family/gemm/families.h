// The families of products: which is offered depends on the others, and factors are packed for them.
#pragma once
#include "kernel/family.h"

extern const Family matmul_family, gemm_family, bulk_family, skinny_family;
