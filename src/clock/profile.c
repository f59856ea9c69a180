#include "clock/profile.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/embedded.h"
#include "base/progress.h"
#include "clock/find_gpu.h"
#include "clock/profile_worker.h"
#include "hal/worker.h"

enum {
    OPEN_SECONDS = 60,             // a driver that wakes up takes a few
    HANG_SECONDS = 10,             // between two signs of life: then a kernel is taken to hang
    REFERENCE_SECONDS = 1 << 30,   // an element may take as long as it likes
    MAX_PROCESSES = 64             // of the reference
};

static const size_t SHARED_BYTES = (size_t)2 << 30;   // of addresses: the code of 320 candidates is 0.02 GB

struct Profiler {
    Arena *arena;
    ProfileOptions options;
    ProfileTask task;
    SharedMemory shared;
    Worker processes[1 + MAX_PROCESSES];   // the GPU's, and those of the reference
    int process_count;
    int told_jobs;             // whose results are in their lists
    int shown;                 // candidates of the next one that were shown
    const JitResult **taken;   // texts whose machine code is shared already
    const unsigned char **taken_code;
    int taken_count, taken_room;
};

// ---- the GPU ----

void profile_find_gpu(Arena *arena, const char *option, const DeviceSpec *device, bool force,
                      CandidateList *list)
{
    GpuInfo gpu = find_gpu(option, device, force);
    list->gpu_ordinal = gpu.ordinal;
    list->gpu = arena_strdup(arena, gpu.name);
    list->driver = gpu_driver_text(arena, &gpu);
}

// ---- the helper kernels ----

JitRequest profile_helpers(void)
{
    return (JitRequest){.text = embedded_find("src/hal/gpu/helpers.cu")->text, .name = "helpers.cu"};
}

// ---- machine code, for the worker ----

static void *take(Profiler *profiler, size_t bytes)
{
    void *taken = shared_take(&profiler->shared, bytes);
    if (!taken)
        fatal(EXIT_MACHINE, "the candidates have more than %zu GB of machine code", SHARED_BYTES >> 30);
    return taken;
}

static void *share(Profiler *profiler, const void *bytes, size_t count)
{
    return memcpy(take(profiler, count), bytes, count);
}

/* Once for all launches and candidates that are of one text. */
static const unsigned char *share_code(Profiler *profiler, const JitResult *compiled)
{
    for (int i = 0; i < profiler->taken_count; i++)
        if (profiler->taken[i] == compiled)
            return profiler->taken_code[i];
    assert(profiler->taken_count < profiler->taken_room);
    profiler->taken[profiler->taken_count] = compiled;
    const unsigned char *code = share(profiler, compiled->cubin, compiled->cubin_length);
    return profiler->taken_code[profiler->taken_count++] = code;
}

static void share_candidate(Profiler *profiler, const Candidate *candidate, ProfileSlot *slot)
{
    int count = candidate->kernel->launch_count;
    GpuCode *codes = take(profiler, sizeof *codes * (size_t)count);
    for (int k = 0; k < count; k++) {
        CandidateCode code = candidate_code(profiler->arena, candidate, k);
        const char *entry = share(profiler, code.entry, strlen(code.entry) + 1);
        codes[k] = (GpuCode){share_code(profiler, code.compiled), entry};
    }
    slot->codes = codes;
}

// ---- candidates ----

static const char *name_of(Arena *arena, const Candidate *candidate)
{
    return candidate->model_rank ? arena_printf(arena, "candidate %d", candidate->model_rank)
                                 : "the plan of the fastest kernels";
}

/* A model whose reference takes too long is compared kernel by kernel alone. */
static const char *proof_of(Arena *arena, const Measurement *m)
{
    return m->elements ? arena_printf(arena, "%" PRId64 " elements right", m->elements - m->unjudged)
                       : "its kernels are right, the whole is not compared";
}

static void show(Arena *arena, const Candidate *candidate, const ProfileSlot *slot)
{
    const Measurement *m = &slot->measurement;
    const char *name = name_of(arena, candidate);
    if (slot->status == CANDIDATE_OK)
        progress("%s: %.2f us (predicted %.2f), %s", name, m->median_us, candidate->plan->time_us,
                 proof_of(arena, m));
    else
        progress("%s: %s: %s", name, candidate_status_name[slot->status], slot->reason);
}

static const CandidateList *list_of(const Profiler *profiler, int job)
{
    return profiler->task.jobs[job].list;
}

/* Candidates of the job at work that are finished. */
static void show_new(Profiler *profiler)
{
    int job = profiler->told_jobs;
    if (profiler->options.quiet || job == profiler->task.job_count)
        return;
    const CandidateList *list = list_of(profiler, job);
    const ProfileSlot *slots = profiler->task.slots[job];
    for (int *i = &profiler->shown; *i < list->count && (slots[*i].finished || !slots[*i].codes); ++*i)
        if (slots[*i].finished)
            show(profiler->arena, &list->items[*i], &slots[*i]);
}

static void take_slot(Arena *arena, Candidate *candidate, const ProfileSlot *slot)
{
    if (!candidate->compiled)
        return;
    candidate->status = slot->status;
    if (slot->status != CANDIDATE_OK) {
        candidate->reason = arena_strdup(arena, slot->reason);
        return;
    }
    candidate->measured = NEW(arena, Measurement);
    *candidate->measured = slot->measurement;
}

static void tell_finished(Profiler *profiler)
{
    show_new(profiler);
    while (profiler->told_jobs < profiler->task.board->finished_jobs) {
        int job = profiler->told_jobs;
        const CandidateList *list = list_of(profiler, job);
        for (int i = 0; i < list->count; i++)
            take_slot(profiler->arena, &list->items[i], &profiler->task.slots[job][i]);
        profiler->told_jobs++;
        profiler->shown = 0;
        if (profiler->options.done)
            profiler->options.done(profiler->options.context, job);
    }
}

// ---- the GPU's process ----

static int hang_seconds(const Profiler *profiler)
{
    return profiler->options.hang_seconds ? profiler->options.hang_seconds : HANG_SECONDS;
}

static void start_worker(Profiler *profiler)
{
    profiler->task.board->opened = false;
    const WorkerLimits limits = {.seconds = OPEN_SECONDS};
    if (!worker_start(&profiler->processes[0], &limits, profile_work, &profiler->task))
        fatal(EXIT_MACHINE, "no further process can be started");
}

/* The candidate that was at work when the worker ended is to blame, unless it said so itself. */
static void blame(Profiler *profiler, ProfileSlot *slot)
{
    const Worker *worker = &profiler->processes[0];
    slot->finished = true;
    slot->status = worker->state == WORKER_TIMEOUT ? CANDIDATE_TIMEOUT : CANDIDATE_FAULT;
    if (worker->state == WORKER_TIMEOUT)
        snprintf(slot->reason, sizeof slot->reason, "does not end within %d s", hang_seconds(profiler));
    else
        snprintf(slot->reason, sizeof slot->reason, "ends the process that runs it (%s)",
                 worker->signal ? strsignal(worker->signal) : "it exited");
}

/* Another one goes on behind the candidate that ended it. */
static void succeed(Profiler *profiler)
{
    ProfileTask *task = &profiler->task;
    ProfileBoard *board = task->board;
    if (!board->opened)
        fatal(EXIT_MACHINE, "cannot profile: %s",
              board->reason[0] ? board->reason : "the GPU's driver ends the process");
    task->first_job = board->job;
    task->first = board->candidate + 1;
    if (board->candidate == list_of(profiler, board->job)->count) {   // it timed the best again
        board->finished_jobs = ++task->first_job;
        task->first = 0;
    } else if (!task->slots[board->job][board->candidate].finished) {
        blame(profiler, &task->slots[board->job][board->candidate]);
    }
    if (task->first_job < task->job_count)
        start_worker(profiler);
    else
        board->done = true;
}

/* After something was heard of the worker. */
static void attend(Profiler *profiler)
{
    Worker *worker = &profiler->processes[0];
    ProfileBoard *board = profiler->task.board;
    if (worker->state == WORKER_RUNNING)
        worker_limit(worker, board->opened ? hang_seconds(profiler) : OPEN_SECONDS);
    else if (!board->done)
        succeed(profiler);
    tell_finished(profiler);
}

// ---- the reference ----

static void evaluate_references(void *context)
{
    const ProfileTask *task = context;
    int i;
    while ((i = atomic_fetch_add(&task->board->next_reference, 1)) < INPUT_CLASSES * task->job_count)
        reference_evaluate(task->references[i / INPUT_CLASSES], i % INPUT_CLASSES, task->math,
                           task->most_work);
}

static void start_references(Profiler *profiler)
{
    const WorkerLimits limits = {.seconds = REFERENCE_SECONDS};
    int wanted = profiler->options.jobs ? profiler->options.jobs : worker_cores();
    int all = INPUT_CLASSES * profiler->task.job_count;
    wanted = wanted < all ? wanted : all;
    wanted = wanted < MAX_PROCESSES ? wanted : MAX_PROCESSES;
    for (int i = 0; i < wanted; i++)
        if (!worker_start(&profiler->processes[profiler->process_count++], &limits, evaluate_references,
                          &profiler->task))
            fatal(EXIT_MACHINE, "no further process can be started");
}

static void check_reference(const Worker *worker)
{
    if (worker->state == WORKER_CRASHED)
        fatal(EXIT_MACHINE, "cannot profile: what computes the right values ends early (%s)",
              worker->signal ? strsignal(worker->signal) : "it exited");
}

// ---- from begin to end ----

static int count_texts(const ProfileJob *jobs, int count)
{
    int texts = 0;
    for (int j = 0; j < count; j++)
        for (int i = 0; i < jobs[j].list->count; i++)
            texts += jobs[j].list->items[i].kernel ? jobs[j].list->items[i].kernel->kernel_count : 0;
    return texts;
}

static void prepare_task(Profiler *profiler)
{
    ProfileTask *task = &profiler->task;
    Arena *arena = profiler->arena;
    task->board = take(profiler, sizeof *task->board);
    task->slots = NEW_ARRAY(arena, ProfileSlot *, task->job_count);
    task->references = NEW_ARRAY(arena, ProfileReference *, task->job_count);
    for (int j = 0; j < task->job_count; j++) {
        task->slots[j] = take(profiler, sizeof(ProfileSlot) * (size_t)task->jobs[j].list->count);
        task->references[j] = reference_new(arena, task->jobs[j].program, &profiler->shared);
    }
}

Profiler *profile_begin(Arena *arena, const ProfileJob *jobs, int count, const DeviceSpec *device,
                        const ProfileOptions *options)
{
    Profiler *profiler = NEW(arena, Profiler);
    ProfileJob *own = NEW_ARRAY(arena, ProfileJob, count);
    memcpy(own, jobs, sizeof *jobs * (size_t)count);
    *profiler = (Profiler){
        .arena = arena,
        .options = *options,
        .task = {.jobs = own,
                 .job_count = count,
                 .math = options->math,
                 .most_work = options->most_work,
                 .l2_bytes = device->l2_bytes,
                 .gpu = jobs[0].list->gpu_ordinal},
        .shared = {worker_share(SHARED_BYTES), SHARED_BYTES, 0},
        .process_count = 1,
        .taken_room = count_texts(jobs, count),
    };
    if (!profiler->shared.start)
        fatal(EXIT_MACHINE, "out of memory");
    profiler->taken = NEW_ARRAY(arena, const JitResult *, profiler->taken_room);
    profiler->taken_code = NEW_ARRAY(arena, const unsigned char *, profiler->taken_room);
    prepare_task(profiler);
    start_worker(profiler);
    start_references(profiler);
    return profiler;
}

void profile_take_helpers(Profiler *profiler, const JitResult *helpers)
{
    if (helpers->status != JIT_DONE)
        fatal(EXIT_MACHINE, "cannot compile the profiler's own kernels: %s", helpers->reason);
    profiler->task.board->helpers = share(profiler, helpers->cubin, helpers->cubin_length);
}

void profile_take_job(Profiler *profiler)
{
    ProfileTask *task = &profiler->task;
    int job = task->board->compiled_jobs;
    for (int i = 0; i < list_of(profiler, job)->count; i++)
        if (list_of(profiler, job)->items[i].compiled)
            share_candidate(profiler, &list_of(profiler, job)->items[i], &task->slots[job][i]);
    task->board->compiled_jobs = job + 1;
    worker_hear(&profiler->processes[0]);
    attend(profiler);
}

void profile_end(Profiler *profiler)
{
    int heard;
    while ((heard = worker_wait(profiler->processes, profiler->process_count)) >= 0)
        if (heard == 0)
            attend(profiler);
        else
            check_reference(&profiler->processes[heard]);
    if (!profiler->options.quiet)
        progress_end();
    worker_unshare(profiler->shared.start, profiler->shared.bytes);
}
