// What the two halves of the channelwise family share.
#pragma once
#include "codegen/family.h"
#include "codegen/reads.h"

/* Space axes. */
enum { CHANNEL, SLAB, POSITION };

/* The axes that are reduced over, or gone through in chunks. */
uint32_t channelwise_positions(const Fusion *fusion);

/* The spatial axis along which what is read at every element lies side by side; -1: there is none. */
int channelwise_axis(const Fusion *fusion);

/* Channels of one access: 16 bytes of the narrowest tensor that is read at every element. */
int channelwise_vector(const Fusion *fusion);

/* Of the widest reduction, in shared memory. */
int64_t channelwise_result_bytes(const Fusion *fusion);

/* What is read at every element, in vectors of channels. */
Walk channelwise_walk(const Fusion *fusion, int vector);

/* Family.emit */
void channelwise_emit(StrBuf *out, const KernelPlan *plan);
