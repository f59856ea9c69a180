// Pack: factors whose rows do not begin at pieces of 16 bytes are copied to where they do, with zeros behind
// each row; bytes and floats that tensor cores would read along k, to where k is innermost.
//
//     A[4095, 1001]  ->  A.packed[4095, 1024]        one launch each, at a copy's speed
//     B[1001, 4097]  ->  B.packed[1024, 4160]        k is 1024 then: what is added are products of zeros
//                        B.packed[4097, 1008]        of bytes
//     A[4095, 1001]  ->  A.packed[4095, 1004]        of floats that lanes multiply
//
// Tensor cores multiply elements, and a factor may be made of them. Where each of its values is an element of
// a type exactly (exact_type.h), it is made ahead in the same way, once in place of once for each tile:
//
//     select(m[i, k], A[i, k], 0)   ->  A.packed of f16         cast(w[j, k], f32) of i8  ->  w.packed of f16
#pragma once
#include "kernel/family.h"

/* For tensor cores; for lanes where those cannot multiply it. There is nothing to gain, too, if a copy would be
   larger than what it is made of. */
extern const Rewrite pack_for_tensor_cores, pack_for_lanes;
