// Programs on inputs that somebody gives, through the whole compiler and the CPU interpreter: what its parts share.
#pragma once
#include "differential/batch.h"

enum { GIVEN = 0 };   // the pass that runs on what is given, the others on what is drawn

/* A program, what it is run on, and what came of it. */
typedef struct Given {
    const char *name, *path;                     // of the text
    const char *arguments, *weights, *results;   // files; `weights` NULL: there are none
    Program *program;
    const void **elements;      // by input: as they lie in memory
    Kernel *kernel;             // the first candidate
    Value **expected[PASSES];   // by output
    int64_t compared, unjudged;
    const char *failure;   // NULL: none
} Given;

/* Elements of its inputs, in a pass: an InputSource. */
typedef struct GivenInputs {
    const Given *of;
    RandomInputs drawn;
    int pass;
} GivenInputs;
GivenInputs given_inputs(const Given *given, int pass);
double given_element(void *inputs, int input, int64_t element);

// ---- given_prove.c ----

/* Runs all of them in all passes, compares them with the reference, and writes the results of the first pass. */
void given_prove(Arena *arena, Given **programs, int count, const DeviceSpec *device);
