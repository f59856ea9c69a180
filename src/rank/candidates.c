#include "rank/candidates.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/progress.h"

enum { MANY_KERNELS = 8 };   // of one text: enough for threads of the compiler to share

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

void candidates_add(Arena *arena, CandidateList *list, const Plan *plan)
{
    Candidate *items = NEW_ARRAY(arena, Candidate, list->count + 1);
    memcpy(items, list->items, sizeof *items * (size_t)list->count);
    items[list->count++] = (Candidate){.plan = plan};
    list->items = items;
}

void candidates_write(Arena *arena, CandidateList *list, int first, int count, const CodegenRequest *base)
{
    for (int i = first; i < first + count; i++) {
        CodegenRequest request = *base;
        request.plan = list->items[i].plan;
        request.rank = list->items[i].model_rank - 1;
        request.kept = list->count;
        list->items[i].kernel = codegen_kernel(arena, &request);
    }
}

// ---- compilation ----

/* What all lists need: those before `ready` have it. */
typedef struct Wanted {
    CandidateList *const *lists;
    int ***texts;   // of each list and candidate, of each kernel its text; NULL: not compiled now
    int count, ready;
    const CompileEvents *events;
} Wanted;

struct Compilation {
    Arena *arena;
    JitOptions how;
    bool progress;
    JitRequest *requests;
    const JitResult **results;   // NULL: not compiled yet
    const Candidate **askers;    // of each text the candidate whose whole it is; NULL: a kernel of some
    int count, room;
    int before, done;   // texts of earlier calls; of this one, that are compiled
    int first;          // that comes first; -1: none does
    Wanted wanted;
};

Compilation *compilation_new(Arena *arena, const JitOptions *how, bool progress)
{
    Compilation *compilation = NEW(arena, Compilation);
    *compilation = (Compilation){.arena = arena, .how = *how, .progress = progress};
    return compilation;
}

static void make_room(Compilation *compilation, int more)
{
    Compilation old = *compilation;
    compilation->room = old.count + more;
    compilation->requests = NEW_ARRAY(old.arena, JitRequest, compilation->room);
    compilation->results = NEW_ARRAY(old.arena, const JitResult *, compilation->room);
    compilation->askers = NEW_ARRAY(old.arena, const Candidate *, compilation->room);
    if (old.count == 0)
        return;
    memcpy(compilation->requests, old.requests, sizeof *old.requests * (size_t)old.count);
    memcpy(compilation->results, old.results, sizeof *old.results * (size_t)old.count);
    memcpy(compilation->askers, old.askers, sizeof *old.askers * (size_t)old.count);
}

static int add_text(Compilation *compilation, JitRequest request, const Candidate *asker)
{
    int i = 0;
    while (i < compilation->count && strcmp(compilation->requests[i].text, request.text) != 0)
        i++;
    if (i == compilation->count) {
        compilation->requests[i] = request;
        compilation->askers[i] = asker;
        compilation->count++;
    }
    return i;
}

/* Position of the text among all. */
static int take_text(Compilation *compilation, const Kernel *kernel, int piece, const Candidate *asker)
{
    const char *text = kernel->pieces ? kernel->pieces[piece] : kernel->source;
    int kernels = kernel->pieces ? 1 : kernel->kernel_count;
    JitRequest request = {text, arena_printf(compilation->arena, "%s.cu", kernel->name), kernels,
                          kernels >= MANY_KERNELS};
    return add_text(compilation, request, kernel->pieces ? NULL : asker);
}

static bool is_compiled_now(const Candidate *candidate)
{
    return candidate->kernel && !candidate->compiled && !candidate_failed(candidate);
}

/* The texts of each candidate's kernels. */
static int **take_texts(Compilation *compilation, const CandidateList *list)
{
    int **texts = NEW_ARRAY(compilation->arena, int *, list->count);
    for (int i = 0; i < list->count; i++) {
        const Kernel *kernel = list->items[i].kernel;
        if (!is_compiled_now(&list->items[i]))
            continue;
        texts[i] = NEW_ARRAY(compilation->arena, int, kernel->kernel_count);
        for (int k = 0; k < kernel->kernel_count; k++)
            texts[i][k] = take_text(compilation, kernel, k, &list->items[i]);
    }
    return texts;
}

/* All must do: the first that fails says why. */
static void take_results(const Compilation *compilation, Candidate *candidate, const int *texts)
{
    const JitResult **compiled =
        NEW_ARRAY(compilation->arena, const JitResult *, candidate->kernel->kernel_count);
    for (int k = 0; k < candidate->kernel->kernel_count; k++) {
        const JitResult *result = compiled[k] = compilation->results[texts[k]];
        if (result->status == JIT_MACHINE)
            fatal(EXIT_MACHINE, "%s", result->reason);
        if (result->status == JIT_DONE)
            continue;
        candidate->status = result->status == JIT_TIMEOUT ? CANDIDATE_TIMEOUT : CANDIDATE_COMPILE_ERROR;
        candidate->reason = result->reason;
        return;
    }
    candidate->compiled = compiled;
}

static bool list_is_ready(const Compilation *compilation, int list)
{
    const Wanted *wanted = &compilation->wanted;
    bool ready = true;
    for (int i = 0; i < wanted->lists[list]->count; i++)
        for (int k = 0; wanted->texts[list][i] && k < wanted->lists[list]->items[i].kernel->kernel_count; k++)
            ready &= compilation->results[wanted->texts[list][i][k]] != NULL;
    return ready;
}

static void hand_out(Compilation *compilation)
{
    Wanted *wanted = &compilation->wanted;
    for (; wanted->ready < wanted->count && list_is_ready(compilation, wanted->ready); wanted->ready++) {
        CandidateList *list = wanted->lists[wanted->ready];
        for (int i = 0; i < list->count; i++)
            if (wanted->texts[wanted->ready][i])
                take_results(compilation, &list->items[i], wanted->texts[wanted->ready][i]);
        if (wanted->events && wanted->events->list)
            wanted->events->list(wanted->events->context, wanted->ready);
    }
}

static void tell_compiled(Compilation *compilation, int text, const JitResult *result)
{
    const Candidate *asker = compilation->askers[text];
    int all = compilation->count - compilation->before - (compilation->first >= 0);
    const char *whose =
        asker ? arena_printf(compilation->arena, "(candidate %d", asker->model_rank) : "kernels";
    compilation->done++;
    if (compilation->progress && result->status != JIT_MACHINE)
        progress("compiled %d of %d %s%s%s%s", compilation->done, all, whose, result->reason ? ": " : "",
                 result->reason ? result->reason : "", asker ? ")" : "");
}

/* For jit_compile(), of which this is told after each text. */
static void take_result(void *context, int index, const JitResult *result)
{
    Compilation *compilation = context;
    int text = compilation->before + index;
    compilation->results[text] = result;
    if (text != compilation->first)
        tell_compiled(compilation, text, result);
    else if (compilation->wanted.events->first)
        compilation->wanted.events->first(compilation->wanted.events->context, result);
    hand_out(compilation);
}

static void compile_texts(Compilation *compilation)
{
    int count = compilation->count - compilation->before;
    JitResult *results = NEW_ARRAY(compilation->arena, JitResult, count);
    JitOptions options = compilation->how;
    options.done = take_result;
    options.context = compilation;
    compilation->done = 0;
    jit_compile(compilation->arena, compilation->requests + compilation->before, count, &options, results);
    for (int i = 0; i < count; i++)   // also those that could not even be started
        compilation->results[compilation->before + i] = &results[i];
    if (compilation->progress && count)
        progress_end();
}

static int most_texts(CandidateList *const *lists, int count)
{
    int most = 0;
    for (int l = 0; l < count; l++)
        for (int i = 0; i < lists[l]->count; i++)
            most += lists[l]->items[i].kernel ? lists[l]->items[i].kernel->kernel_count : 0;
    return most;
}

void candidates_compile(Compilation *compilation, CandidateList *const *lists, int list_count,
                        const JitRequest *first, const CompileEvents *events)
{
    make_room(compilation, most_texts(lists, list_count) + 1);
    compilation->before = compilation->count;
    compilation->first = first ? add_text(compilation, *first, NULL) : -1;
    Wanted *wanted = &compilation->wanted;
    *wanted = (Wanted){lists, NEW_ARRAY(compilation->arena, int **, list_count), list_count, 0, events};
    for (int l = 0; l < list_count; l++)
        wanted->texts[l] = take_texts(compilation, lists[l]);
    compile_texts(compilation);
    hand_out(compilation);
}

CandidateCode candidate_code(Arena *arena, const Candidate *candidate, int launch)
{
    const Kernel *kernel = candidate->kernel;
    const Launch *of = &kernel->launches[launch];
    const char *first = arena_printf(arena, "%s_k0", kernel->name);
    return (CandidateCode){candidate->compiled[of->kernel], kernel->pieces ? first : of->entry};
}

bool candidate_spills(const Candidate *candidate)
{
    bool spills = false;
    for (int k = 0; candidate->compiled && k < candidate->kernel->kernel_count; k++)
        spills |= jit_spills(candidate->compiled[k]);
    return spills;
}

// ---- as compiled ----

/* What the model expects with the registers that the compiler took. With fewer than expected it stays at what
   it said, so that one that is not compiled needs not be to come behind. */
static double launch_judged_us(const PlannedLaunch *launch, const DeviceSpec *device, int registers)
{
    Limiter limiter;
    RProgram program = *launch->program;
    program.registers = registers;
    int blocks = perf_blocks_per_sm(device, program.threads, registers, program.shared_bytes, &limiter);
    if (blocks == 0 || blocks >= launch->program->perf.blocks_per_sm)
        return launch->program->perf.time_us;
    PerfProblem problem = perf_problem(launch->kind);
    double judged_us = perf_estimate(launch->kind, &problem, &program, device).time_us;
    return judged_us > launch->program->perf.time_us ? judged_us : launch->program->perf.time_us;
}

/* Of a call, which runs no launch of NAME_prepare. */
static void judge(Arena *arena, Candidate *candidate, const DeviceSpec *device)
{
    const Plan *plan = candidate->plan;
    candidate->judged_us = plan->time_us;
    for (int k = plan->prepare_count; k < plan->count; k++) {
        CandidateCode code = candidate_code(arena, candidate, k);
        const JitKernel *kernel = jit_find_kernel(code.compiled, code.entry);
        if (kernel)
            candidate->judged_us += launch_judged_us(&plan->launches[k], device, kernel->registers) -
                                    plan->launches[k].program->perf.time_us;
    }
}

void candidates_judge(Arena *arena, CandidateList *list, const DeviceSpec *device)
{
    for (int i = 0; i < list->count; i++)
        if (list->items[i].compiled)
            judge(arena, &list->items[i], device);
}

double candidate_judged_us(const Candidate *candidate)
{
    return candidate->judged_us > 0 ? candidate->judged_us : candidate->plan->time_us;
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
    return candidate_judged_us(candidate) * (candidate_spills(candidate) ? SPILL_FACTOR : 1);
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
