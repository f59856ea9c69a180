// Machine code that was compiled before, by content: one file for each text, options and compiler.
//
// An entry is named by the hash of all that it was made from, and begins with the hash of all that follows:
// a torn or damaged entry counts as missing. Whole files are renamed into place, so any number of
// processes may share a folder.
#pragma once
#include "hal/jit.h"

/* `folder`/nvrtc, which is made if it is not there; if there can be none, an error with EXIT_MACHINE. NULL,
   with a warning: others could put code there, which would be run. */
JitCache *jit_cache_open(Arena *arena, const char *folder, int64_t max_bytes);

/* False: not there, or not as it was written. */
bool jit_cache_load(Arena *arena, const JitCache *cache, const char *key, JitResult *result);

/* A failure to write is ignored. */
void jit_cache_store(const JitCache *cache, const char *key, const JitResult *result);

/* Removes the entries that were used longest ago until the rest is no larger than the cache may be. */
void jit_cache_trim(const JitCache *cache);
