// A hash of all that an entry is made from: while it stays the same, so do the bytes of its files.
#pragma once
#include "batch/manifest.h"

/* The files that it is made from, the expression first, ended by NULL. */
const char **inputs_of(Arena *arena, const Entry *entry);

/* Of the command line, those files, this program and, for machine code, NVRTC. */
const char *content_of(Arena *arena, const Entry *entry);
