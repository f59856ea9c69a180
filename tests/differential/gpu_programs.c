// Programs proven on the GPU that is here, whole and with every kind of inputs, as the interpreter proves them elsewhere.
//
//   gpu_programs DEVICE CANDIDATES REPLAYS PROGRAM.te…          the first candidates of each; tests/gpu.py runs it
//
// Then each is called REPLAYS times in graphs of CALLS calls, every other call with zeros in the same workspace: the last
// call of each graph must leave the bits that the proven call left, since every kernel adds in a fixed order.
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "front/lex.h"
#include "front/lower.h"
#include "front/parse.h"
#include "hal/gpu.h"
#include "ir/compose.h"
#include "prove/verify.h"
#include "rank/candidates.h"

enum { SECONDS = 120, CALLS = 5 /* odd */, REASON_BYTES = 500 };   // that compiling or proving a candidate may take

// ---- the GPU as a runtime ----

/* Of this process, which a fault or a hang ends: each program has one of its own. */
static Gpu gpu;
static char reason[REASON_BYTES];
static const Candidate *current;
static int replays;

struct RuntimeModule {
    RuntimeSource source;
};

typedef struct GpuRun {
    Arena *arena;
    const RuntimeSource *source;
    const RuntimeJob *job;
    int buffer_count;
    GpuBuffer *buffers, *zeros;   // of a call with other inputs in the same workspace
    const RuntimeTensor **tensors;   // a tensor in each buffer; NULL: none
    void **before, **after;          // contents
    GpuProgram program;
} GpuRun;

static RuntimeStatus load(Arena *arena, const RuntimeSource *source, RuntimeModule **module, const char **why)
{
    (void)why;
    *module = NEW(arena, RuntimeModule);
    (*module)->source = *source;
    return RUNTIME_DONE;
}

static void fill(GpuRun *run)
{
    const RuntimeJob *job = run->job;
    for (int i = 0; i < run->buffer_count; i++) {
        run->before[i] = arena_alloc(run->arena, (size_t)job->buffer_bytes[i]);
        run->after[i] = arena_alloc(run->arena, (size_t)job->buffer_bytes[i]);
        memset(run->before[i], job->poison, (size_t)job->buffer_bytes[i]);
    }
    for (int i = 0; i < job->tensor_count; i++) {
        const RuntimeTensor *tensor = &job->tensors[i];
        run->tensors[tensor->buffer] = tensor;
        if (!tensor->written)
            job->fill(job->context, i, 0, tensor->bytes, (char *)run->before[tensor->buffer] + tensor->offset);
    }
}

static bool is_written(const GpuRun *run, int buffer) { return run->tensors[buffer] && run->tensors[buffer]->written; }

static bool upload(GpuRun *run)
{
    const int arguments = run->source->arg_count;
    for (int i = 0; i < run->buffer_count; i++) {
        int64_t bytes = run->job->buffer_bytes[i];
        if (!gpu_buffer_new(&gpu, &run->buffers[i], bytes) ||
            (bytes && !gpu_upload(&gpu, &run->buffers[i], run->before[i], bytes)))
            return false;
        if (i >= arguments)
            run->zeros[i] = run->buffers[i];
        else if (!gpu_buffer_new(&gpu, &run->zeros[i], bytes))
            return false;
    }
    return true;
}

static const char *name_of(const GpuRun *run, int buffer)
{
    return run->tensors[buffer] ? run->tensors[buffer]->name : "an unused buffer";
}

/* What is not written is as it was. */
static bool download(GpuRun *run, int buffer)
{
    int64_t bytes = run->job->buffer_bytes[buffer];
    void *now = is_written(run, buffer) ? run->after[buffer] : arena_alloc(run->arena, (size_t)bytes);
    if (!gpu_buffer_check(&gpu, &run->buffers[buffer], name_of(run, buffer)) ||
        (bytes && !gpu_download(&gpu, &run->buffers[buffer], now, bytes)))
        return false;
    if (is_written(run, buffer) || memcmp(now, run->before[buffer], (size_t)bytes) == 0)
        return true;
    snprintf(reason, sizeof reason, "writes to %s, which is only read", name_of(run, buffer));
    return false;
}

static bool is_as_it_was(GpuRun *run, int buffer, void *now, int calls)
{
    size_t bytes = (size_t)run->job->buffer_bytes[buffer];
    if (!gpu_buffer_check(&gpu, &run->buffers[buffer], name_of(run, buffer)) ||
        (bytes && !gpu_download(&gpu, &run->buffers[buffer], now, (int64_t)bytes)))
        return false;
    if (memcmp(now, run->after[buffer], bytes) == 0)
        return true;
    size_t first = 0, different = 0;
    for (size_t i = bytes; i-- > 0;)
        if (((char *)now)[i] != ((char *)run->after[buffer])[i])
            first = i, different++;
    snprintf(reason, sizeof reason, "after %d calls in graphs %zu bytes of %s differ, the first is %zu", calls, different,
             name_of(run, buffer), first);
    return false;
}

static bool copy_weights(GpuRun *run)
{
    const RuntimeSource *source = run->source;
    const GpuBuffer *beside = &run->buffers[source->arg_count];
    return gpu_copy(&gpu, &beside[BUFFER_PREPARED], &beside[BUFFER_WEIGHTS], source->copies, source->copy_count);
}

static bool replay(GpuRun *run)
{
    GpuSeries series;
    const GpuBuffer *sets[] = {run->buffers, run->zeros};
    double us;
    void **now = NEW_ARRAY(run->arena, void *, run->buffer_count);
    for (int i = 0; i < run->buffer_count; i++)
        now[i] = arena_alloc(run->arena, (size_t)run->job->buffer_bytes[i]);
    bool right = gpu_series_new(&gpu, &series, &run->program, sets, 2, CALLS);
    for (int calls = CALLS; calls <= replays && right; calls += CALLS) {
        for (int i = 0; i < run->buffer_count && right; i++)
            right = !is_written(run, i) || gpu_buffer_poison(&gpu, &run->buffers[i], run->job->poison);
        right = right && copy_weights(run) && gpu_series_time(&gpu, &series, &us);
        for (int i = 0; i < run->buffer_count && right; i++)
            right = !is_written(run, i) || is_as_it_was(run, i, now[i], calls);
    }
    gpu_series_free(&gpu, &series);
    return right;
}

static bool call(GpuRun *run)
{
    const RuntimeSource *source = run->source;
    double us;
    GpuCode *codes = NEW_ARRAY(run->arena, GpuCode, source->launch_count);
    for (int k = 0; k < source->launch_count; k++) {
        CandidateCode code = candidate_code(run->arena, current, k);
        codes[k] = (GpuCode){code.compiled->cubin, code.entry};
    }
    bool right = upload(run) && copy_weights(run) &&
                 gpu_load(&gpu, run->arena, codes, source->launches, source->launch_count, &run->program) &&
                 gpu_call_timed(&gpu, &run->program, run->buffers, &us);
    for (int i = 0; i < run->buffer_count && right; i++)
        right = download(run, i);
    return right && replay(run);
}

static RuntimeResult execute(Arena *arena, const RuntimeModule *module, const RuntimeJob *job)
{
    int count = runtime_buffer_count(&module->source);
    GpuRun run = {.arena = arena,
                  .source = &module->source,
                  .job = job,
                  .buffer_count = count,
                  .buffers = NEW_ARRAY(arena, GpuBuffer, count),
                  .zeros = NEW_ARRAY(arena, GpuBuffer, count),
                  .tensors = NEW_ARRAY(arena, const RuntimeTensor *, count),
                  .before = NEW_ARRAY(arena, void *, count),
                  .after = NEW_ARRAY(arena, void *, count)};
    assert(!job->checked && !job->lazy && !job->counts && job->only_launch < 0);
    fill(&run);
    bool right = call(&run);
    alarm(SECONDS);
    gpu_unload(&gpu, &run.program);
    for (int i = 0; i < count; i++) {
        gpu_buffer_free(&gpu, &run.buffers[i]);
        if (i < module->source.arg_count)
            gpu_buffer_free(&gpu, &run.zeros[i]);
    }
    return (RuntimeResult){.status = right ? RUNTIME_DONE : RUNTIME_WRONG,
                           .reason = arena_strdup(arena, reason),
                           .buffer_count = count,
                           .buffers = run.after};
}

static void release(RuntimeResult *result) { (void)result; }

static const Runtime here = {.name = "gpu", .load = load, .run = execute, .release = release};

// ---- programs ----

typedef struct Task {
    const char *device, *path;
    int candidates;
} Task;

/* False: it is wrong. What is too large is passed over, and said. */
static bool prove_candidate(Arena *arena, const Task *task, const Program *program, const DeviceSpec *device)
{
    const char *names = "";
    VerifyReport report = {.message = current->reason, .status = VERIFY_WRONG};
    if (current->compiled)
        report = verify(arena, program, current->kernel, device, &(VerifyOptions){.runtime = &here, .seconds = SECONDS});
    for (int k = 0; k < current->plan->count; k++)
        names = arena_printf(arena, "%s%s%s", names, k ? ", " : "", current->plan->launches[k].family->name);
    bool right = report.status == VERIFY_RIGHT || report.sampled;
    printf("%s%s, candidate %d (%s): %" PRId64 " elements, %" PRId64 " unjudged%s%s\n", right ? "" : "WRONG ", task->path,
           current->model_rank, names, report.elements, report.unjudged, report.message ? ": " : "",
           report.message ? report.message : "");
    fflush(stdout);
    return right;
}

static bool prove_program(const Task *task)
{
    alarm(SECONDS);
    Arena *arena = arena_new();
    DeviceSpec *device = device_read(arena, task->device);
    TemplateStore templates = {.arena = arena};
    Program *program = lower(arena, parse(arena, lex(arena, source_read(arena, task->path))), NULL, 0);
    Program *composed = compose(arena, program);
    FusionPlans fusions = fuse(arena, composed);
    const Target target = {.device = device, .math = EVAL_EXACT};
    PlanList plans = plan_program(arena, &fusions, &target, task->candidates);
    CandidateList list = candidates_of_plans(arena, &plans);
    CodegenRequest base = {.name = "k", .program = composed, .device = device, .templates = &templates, .kept = plans.count};
    bool right = true;
    candidates_write(arena, &list, 0, list.count, &base);
    Compilation *compilation = compilation_new(arena, &(JitOptions){.arch = device->arch}, false);
    candidates_compile(compilation, &(CandidateList *){&list}, list.count > 0, NULL, NULL);
    alarm(SECONDS);
    if (!gpu_open(&gpu, 0, reason, sizeof reason)) {
        printf("%s\n", reason);
        return false;
    }
    for (int i = 0; i < list.count; i++) {
        current = &list.items[i];
        right &= prove_candidate(arena, task, program, device);
    }
    return right;
}

int main(int argc, char **argv)
{
    int wrong = 0, first = 4;
    replays = argc > first ? atoi(argv[3]) : 0;
    for (int i = first; i < argc; i++) {
        fflush(stdout);
        Task task = {.device = argv[1], .path = argv[i], .candidates = atoi(argv[2])};
        pid_t child = fork();
        if (child == 0)
            exit(!prove_program(&task));
        int status = 0;
        waitpid(child, &status, 0);
        wrong += status != 0;
        if (WIFSIGNALED(status))
            printf("WRONG %s: %s\n", argv[i], strsignal(WTERMSIG(status)));
    }
    printf("%d programs, %d wrong\n", argc - first, wrong);
    return argc <= first || wrong > 0;
}
