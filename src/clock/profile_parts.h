// A program of many kernels on a GPU: the candidates of each different kernel are timed, then the whole as it follows from them.
#pragma once
#include "rank/parts.h"

/* What proves and times the compiled candidates of a program, and says of each what became of it: profile(), or a test's. */
typedef struct Clock {
    void (*measure)(const struct Clock *clock, Arena *arena, const Program *program, CandidateList *list);
    void *context;
} Clock;

/* Of each part; its best candidate comes first then. A part none of whose candidates is right ends the program with EXIT_WRONG. */
void profile_parts(Arena *arena, const Clock *clock, PartList *list);
