// How large indices become when a definition is folded into its reader: pad(x[10^6 * i], 0) read at 10^6 *
// j is x[10^12 * j] below two guards. The front end checks that each of the two fits in 64 bits with its
// tensor's strides; four of them do not.
#pragma once
#include "ir/tensor_op.h"

/* Whether all that the reader reads by way of this access, through what is folded in, is at offsets below
   2^62 from 0. Both lists are by tensor id. */
bool reach_fits(const TensorOp *reader, const Access *access, const TensorOp *const *definition,
                const bool *inlined);
