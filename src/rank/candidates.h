// The kept plans before they are a ranking: what is known of each grows from the model's estimate to what
// the compiler made of it and what a GPU measured.
#pragma once
#include "codegen/codegen.h"
#include "hal/jit.h"

typedef enum CandidateStatus {
    CANDIDATE_NOT_RUN,
    CANDIDATE_OK,   // right, and timed
    CANDIDATE_COMPILE_ERROR,
    CANDIDATE_TIMEOUT,   // compiling or running it does not end
    CANDIDATE_WRONG,     // wrong numbers
    CANDIDATE_FAULT      // it crashed, wrote outside its buffers or could not be launched
} CandidateStatus;

/* Times of one call on a GPU. */
typedef struct Measurement {
    int warmup, reps;   // calls
    int buffer_sets;    // that the calls used one after the other, so that L2 is cold
    double min_us, median_us, mean_us, p95_us, stdev_us;
    int64_t elements;      // compared with the reference before
    int64_t unjudged;      // of these: too close to a decision
    double max_abs;        // the largest error seen
    double max_of_bound;   // the same over what the reference allows there; 1 is the limit
} Measurement;

typedef struct Candidate {
    const Plan *plan;
    int model_rank;   // from 1; 0: it is made of what a clock found fastest
    CandidateStatus status;
    const char *reason;      // NULL: nothing is wrong
    Kernel *kernel;          // NULL: no text was needed
    const JitResult **
        compiled;   // of each kernel the text that holds it: its piece, or the whole; NULL: not compiled, or in vain
    double judged_us;        // with the registers that the compiler took; 0: not compiled
    Measurement *measured;   // NULL: not timed
} Candidate;

typedef struct CandidateList {
    Candidate *items;
    int count;
    const char *gpu, *driver;   // that measured; NULL: none
    int gpu_ordinal;
} CandidateList;

extern const char *const candidate_status_name[];

CandidateList candidates_of_plans(Arena *arena, const PlanList *plans);

/* One more, which has no place in the model's order. */
void candidates_add(Arena *arena, CandidateList *list, const Plan *plan);

/* The texts of candidates [first, first + count); `base` says all but the plan. */
void candidates_write(Arena *arena, CandidateList *list, int first, int count, const CodegenRequest *base);

/* What of a machine is made for a launch of a candidate that is compiled: the code, and the kernel's name in
   it. */
typedef struct CandidateCode {
    const JitResult *compiled;
    const char *entry;
} CandidateCode;
CandidateCode candidate_code(Arena *arena, const Candidate *candidate, int launch);
bool candidate_spills(const Candidate *candidate);

/* Texts and what became of them: equal ones are compiled once, whenever they come. */
typedef struct Compilation Compilation;
Compilation *compilation_new(Arena *arena, const JitOptions *how, bool progress);

/* While lists are compiled. */
typedef struct CompileEvents {
    void (*first)(void *context, const JitResult *result);   // of the text that comes first; may be NULL
    void (*list)(void *context, int list);   // all that the list needs is compiled, or failed; in their order
    void *context;
} CompileEvents;

/* Compiles the candidates of all lists that have a text and are not compiled yet, and before them a text
   `first`, unless that is NULL. Without an NVRTC for the architecture the program ends with EXIT_MACHINE. */
void candidates_compile(Compilation *compilation, CandidateList *const *lists, int list_count,
                        const JitRequest *first, const CompileEvents *events);

/* The model judges what is compiled again: registers that leave an SM fewer blocks than were planned make it
   slower. */
void candidates_judge(Arena *arena, CandidateList *list, const DeviceSpec *device);
double candidate_judged_us(const Candidate *candidate);

/* Of those behind the first in the model's order, how many may come before it now that it alone is compiled:
   all if it failed; if it spills or took more registers, those that are expected to be faster. */
int candidates_contenders(const CandidateList *list);

/* Best first: what was timed, by its median; then what was not, as the model judged it, where a kernel that
   spills registers counts as twice as slow as predicted; then what failed. */
void candidates_sort(CandidateList *list);

bool candidate_failed(const Candidate *candidate);
