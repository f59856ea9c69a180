#include "rank/candidates.h"

#include <stdlib.h>

#include "base/diag.h"
#include "base/progress.h"

static const double SPILL_FACTOR = 2;   // ranks a kernel that spills behind all of its own class that do not

const char *const candidate_status_name[] = {
    [CANDIDATE_NOT_RUN] = "not_run", [CANDIDATE_OK] = "ok",       [CANDIDATE_COMPILE_ERROR] = "compile_error",
    [CANDIDATE_TIMEOUT] = "timeout", [CANDIDATE_WRONG] = "wrong", [CANDIDATE_FAULT] = "fault",
};

CandidateList candidates_of_plans(Arena *arena, const PlanList *plans)
{
    CandidateList list = {.items = NEW_ARRAY(arena, Candidate, plans->count), .count = plans->count};
    for (int i = 0; i < plans->count; i++)
        list.items[i] = (Candidate){.plan = &plans->plans[i], .model_rank = i + 1};
    return list;
}

void candidates_write(Arena *arena, CandidateList *list, int first, int count, const CodegenRequest *base)
{
    for (int i = first; i < first + count; i++) {
        CodegenRequest request = *base;
        request.plan = list->items[i].plan;
        request.rank = i;
        request.kept = list->count;
        list->items[i].kernel = codegen_kernel(arena, &request);
    }
}

// ---- compilation ----

typedef struct Compilation {
    Candidate **candidates;   // by the position of their request
    int done, count;
    bool progress;
} Compilation;

static void report_compiled(void *context, int index, const JitResult *result)
{
    Compilation *compilation = context;
    if (index == compilation->count)   // the text beside them
        return;
    compilation->done++;
    if (!compilation->progress || result->status == JIT_MACHINE)
        return;
    progress("compiled %d of %d (candidate %d%s%s)", compilation->done, compilation->count,
             compilation->candidates[index]->model_rank, result->reason ? ": " : "",
             result->reason ? result->reason : "");
}

static void take_result(Candidate *candidate, JitResult *result)
{
    if (result->status == JIT_DONE) {
        candidate->compiled = result;
        return;
    }
    candidate->status = result->status == JIT_TIMEOUT ? CANDIDATE_TIMEOUT : CANDIDATE_COMPILE_ERROR;
    candidate->reason = result->reason;
}

const JitResult *candidates_compile(Arena *arena, CandidateList *list, const JitOptions *how, bool progress,
                                    const JitRequest *beside)
{
    Compilation compilation = {.candidates = NEW_ARRAY(arena, Candidate *, list->count),
                               .progress = progress};
    JitRequest *requests = NEW_ARRAY(arena, JitRequest, list->count + 1);
    JitResult *results = NEW_ARRAY(arena, JitResult, list->count + 1);
    for (int i = 0; i < list->count; i++) {
        const Kernel *kernel = list->items[i].kernel;
        if (!kernel || list->items[i].compiled || candidate_failed(&list->items[i]))
            continue;
        requests[compilation.count] =
            (JitRequest){kernel->source, arena_printf(arena, "%s.cu", kernel->name), kernel->kernel_count};
        compilation.candidates[compilation.count++] = &list->items[i];
    }
    if (beside)
        requests[compilation.count] = *beside;
    JitOptions options = *how;
    options.done = report_compiled;
    options.context = &compilation;
    jit_compile(arena, requests, compilation.count + (beside != NULL), &options, results);
    if (progress)
        progress_end();
    for (int i = 0; i < compilation.count; i++) {
        if (results[i].status == JIT_MACHINE)
            fatal(EXIT_MACHINE, "%s", results[i].reason);
        take_result(compilation.candidates[i], &results[i]);
    }
    return beside ? &results[compilation.count] : NULL;
}

// ---- order ----

bool candidate_failed(const Candidate *candidate)
{
    return candidate->status != CANDIDATE_OK && candidate->status != CANDIDATE_NOT_RUN;
}

/* 0: timed, 1: only estimated, 2: failed. */
static int group_of(const Candidate *candidate)
{
    return candidate_failed(candidate) ? 2 : candidate->measured ? 0 : 1;
}

/* The model knows nothing of spills. */
static double expected_us(const Candidate *candidate)
{
    bool spills = candidate->compiled && jit_spills(candidate->compiled);
    return candidate->plan->time_us * (spills ? SPILL_FACTOR : 1);
}

static int compare(const void *left, const void *right)
{
    const Candidate *a = left, *b = right;
    if (group_of(a) != group_of(b))
        return group_of(a) - group_of(b);
    if (a->plan->fits != b->plan->fits)
        return a->plan->fits ? -1 : 1;
    double a_us = a->measured ? a->measured->median_us : expected_us(a);
    double b_us = b->measured ? b->measured->median_us : expected_us(b);
    return group_of(a) == 2 || a_us == b_us ? a->model_rank - b->model_rank : a_us < b_us ? -1 : 1;
}

int candidates_contenders(const CandidateList *list)
{
    int count = 0;
    while (count + 1 < list->count && (candidate_failed(list->items) ||
                                       list->items[count + 1].plan->time_us < expected_us(list->items)))
        count++;
    return count;
}

void candidates_sort(CandidateList *list)
{
    qsort(list->items, (size_t)list->count, sizeof *list->items, compare);
}
