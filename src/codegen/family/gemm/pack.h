// Pack: factors whose rows are not aligned to 16-byte vectors are copied to rows that are, padded with zeros; bytes
// and floats that tensor cores read along k are transposed to be contiguous along k.
//
//     A[4095, 1001]  ->  A.packed[4095, 1024]        one launch each, at a copy's speed
//     B[1001, 4097]  ->  B.packed[1024, 4160]        k is 1024 then: the additional products are zeros
//                        B.packed[4097, 1008]        of bytes
//
// Tensor cores multiply elements, and a factor may be computed from them. Where each of its values is exactly an
// element of a type (exact_type.h), it is computed ahead in the same way, once instead of once a tile:
//
//     select(m[i, k], A[i, k], 0)   ->  A.packed of f16         cast(w[j, k], f32) of i8  ->  w.packed of f16
#pragma once
#include "kernel/family.h"

/* Not offered if a copy would be larger than its source. */
extern const Rewrite pack_for_tensor_cores;
