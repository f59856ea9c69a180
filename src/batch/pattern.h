// Names with holes: "{name}_{N}.cu" for a kernel whose define N is 4096 is "softmax_4096.cu".
#pragma once
#include "base/source.h"
#include "front/lower.h"

typedef struct PatternValues {
    const char *expr;     // {expr}
    const char *device;   // {device}
    const char *name;     // {name}; NULL: not known yet
    const ParamOverride *defines;   // {N}
    int define_count;
} PatternValues;

/* A hole that nothing fills is an error with EXIT_INPUT at `loc`, where the pattern stands. */
const char *pattern_fill(Arena *arena, const char *pattern, Loc loc, const PatternValues *values);
