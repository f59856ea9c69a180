// Random programs through the whole compiler and the CPU interpreter: what its parts share.
#pragma once
#include "differential/batch.h"
#include "differential/generate.h"

enum { BATCH = 25, MOST_VARIANTS = 128, MOST_AXES = 4 };

typedef struct Subject Subject;

/* One way of computing a program. */
typedef struct Candidate {
    Subject *subject;
    const Plan *plan;
    Kernel *kernel;
    int rank;              // among those that the driver would keep; -1: it is made of
    const char *variant;   // this kind of kernel, "rowwise/ahead", though the model prefers others
    uint64_t structure;    // of its text without numbers
    bool failed;
} Candidate;

struct Subject {
    uint64_t number;   // of the program; 2^32 more: it stands in for another
    const char *text;
    Program *program;
    Program *composed;   // as fusion takes it
    Candidate *candidates;   // those that are proven
    int count;
    Candidate *ranked;       // the first of the driver's ranking, which are compiled
    int ranked_count;
    InputSource inputs[PASSES];
    Value **expected[PASSES];   // by output
};

/* A family's kind of kernel, and how many were proven. */
typedef struct Variant {
    const Family *family;
    const char *name;
    int64_t proven;
    int64_t proven_alike[MOST_AXES + 1][2];   // by axes that are not reduced over; by statistics kept beside elements
} Variant;

/* What was asked for, and what came of it. Batches are proven in child processes, which share it. */
typedef struct Run {
    uint64_t seed, first, count;
    const char *device;          // NULL: by batch
    const char *variant;         // NULL: any
    int candidate, structures;   // the only one, 0: any; how many of a program are proven,
    int compile, nvrtc;          // how many of its first are compiled; by NVRTC, too, those of every how manieth program
    bool print, print_device;
    const char *kind;   // programs of this one alone: " --moves", " --chains"; NULL: of all
    char *(*generate)(Arena *arena, uint64_t seed, uint64_t number);
    EvalMath math;      // what the batch's kernels may do
    uint64_t current;   // number of the program that is compiled
    int64_t programs, kernels, elements, unjudged, failures, refused, replaced, compiled, compiled_by_nvrtc;
    Variant variants[MOST_VARIANTS];
    int variant_count;
} Run;

/* A program of the run. */
static inline char *text_of(Arena *arena, const Run *run, uint64_t number)
{
    return (run->kind ? run->generate : generate)(arena, run->seed, number);
}

// ---- random_choose.c ----

/* Rows for all variants that the families name. */
void list_variants(Run *run);

/* The driver's pipeline, and those of its candidates that are to be proven. False: the program was refused, which is
   a bug of the generator or of the compiler. */
bool choose_candidates(Run *run, Arena *arena, Subject *subject, const DeviceSpec *device);

/* For diag_configure(). */
void on_fatal(int exit_code, const char *message, void *context);

// ---- random_compile.c ----

/* One that does not compile is reported, and counted as a failure. */
void compile(Run *run, Arena *arena, Candidate *const *candidates, int count, const DeviceSpec *device);

// ---- random_prove.c ----

/* Compares all of them with the reference, and counts. */
void prove(Run *run, Arena *arena, Candidate *const *candidates, int count, const DeviceSpec *device);

/* `which`: the options that pick the candidate, or nothing. */
void report(Run *run, const Subject *subject, const char *which, const DeviceSpec *device, const char *what,
            const char *why);

/* The inputs of one of the passes: reals, whole numbers, and one of the special kinds. */
RandomInputs inputs_of(const Run *run, const Subject *subject, int pass);

/* Sets what is expected in all passes. False: hardly anything of some output can be judged, so that a proof would prove
   nothing. */
bool set_expected(const Run *run, Arena *arena, Subject *subject);
