// What the child of a checked run keeps beside the program's memory (interp/shadow.cpp uses it).
#pragma once
#include "hal/interp/interface.h"
#include "hal/interp_memory.h"

/* Adds it to `host`; false: there is not enough memory. The memory goes with the process. */
bool interp_shadow_make(InterpHost *host, const InterpMemory *memory, const RuntimeJob *job);

/* The same for the dynamic shared memory of a team of blocks, in place of those of the call
   before. */
bool interp_shadow_make_shared(InterpHost *host, int64_t bytes, int blocks);

/* Of regions in buffers `first` … `last`: what was written there is only to be read from now on, or of no use, or
   nothing is known of it again. */
typedef enum ShadowChange { SHADOW_SEAL, SHADOW_CLOSE, SHADOW_FORGET } ShadowChange;
void interp_shadow_change(InterpHost *host, const RuntimeJob *job, int first, int last, ShadowChange change);

/* The cells of a stretch of a tensor; false: there is not enough memory. */
bool interp_shadow_cast(InterpShadow *shadow);
