// Programs that somebody lists, through the whole compiler and the CPU interpreter: what its parts share.
#pragma once
#include "differential/batch.h"

enum { GIVEN = 0 };   // the pass that runs on what is given, if anything is, the others on what is drawn

/* A program, what it is run on, and what came of it. */
typedef struct Given {
    const char *name, *path;                     // of the text
    const char *arguments, *weights, *results;   // files; NULL: there are none
    const char *device, *math, *kept, *rank;     // which candidate, of how many
    const char *special;   // the number of the special inputs that it is run on; NULL: on all
    Program *program;
    const void **elements;             // by input: as they lie in memory; NULL: inputs of all kinds are drawn
    Kernel *kernel;                    // the candidate
    InputSource inputs[INPUT_KINDS];   // by pass
    Value **expected[INPUT_KINDS];     // and by output
    int64_t compared, unjudged;
    bool large;            // it is not run whole
    const char *failure;   // NULL: none
} Given;

int given_passes(const Given *given);
InputKind given_kind(const Given *given, int pass);   // of inputs that are drawn

// ---- given_prove.c ----

/* Runs all of them, which have as many passes each, compares them with the reference, and writes the results on what
   is given. */
void given_prove(Arena *arena, Given **programs, int count, const DeviceSpec *device);
