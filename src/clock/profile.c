#include "clock/profile.h"

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
    OPEN_SECONDS = 60,   // a driver that wakes up takes a few
    HANG_SECONDS = 10    // between two signs of life: then a kernel is taken to hang
};

// ---- the GPU ----

void profile_find_gpu(Arena *arena, const char *option, const DeviceSpec *device, bool force, CandidateList *list)
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

// ---- candidates ----

static void show(const Candidate *candidate, const ProfileSlot *slot)
{
    const Measurement *m = &slot->measurement;
    if (slot->status == CANDIDATE_OK)
        progress("candidate %d: %.2f us (predicted %.2f), %" PRId64 " elements right", candidate->model_rank,
                 m->median_us, candidate->plan->time_us, m->elements - m->unjudged);
    else
        progress("candidate %d: %s: %s", candidate->model_rank, candidate_status_name[slot->status],
                 slot->reason);
}

static void show_new(const ProfileTask *task, int *shown)
{
    const CandidateList *list = task->list;
    const ProfileBoard *board = task->board;
    for (; *shown < list->count && (board->slots[*shown].finished || *shown < board->current); ++*shown)
        if (board->slots[*shown].finished && !task->quiet)
            show(&list->items[*shown], &board->slots[*shown]);
}

/* The candidate that was at work when the worker ended is to blame, unless it said so itself. */
static void blame(ProfileBoard *board, const Worker *worker, int count, int hang_seconds)
{
    if (board->current >= count || board->slots[board->current].finished)
        return;
    ProfileSlot *slot = &board->slots[board->current];
    slot->finished = true;
    slot->status = worker->state == WORKER_TIMEOUT ? CANDIDATE_TIMEOUT : CANDIDATE_FAULT;
    if (worker->state == WORKER_TIMEOUT)
        snprintf(slot->reason, sizeof slot->reason, "does not end within %d s", hang_seconds);
    else
        snprintf(slot->reason, sizeof slot->reason, "ends the process that runs it (%s)",
                 worker->signal ? strsignal(worker->signal) : "it exited");
}

/* One worker, until it is done or a candidate brought it down. */
static void run_worker(ProfileTask *task, int hang_seconds, int *shown)
{
    Worker worker;
    ProfileBoard *board = task->board;
    board->opened = false;
    board->current = task->first;
    if (!worker_start(&worker, &(WorkerLimits){.seconds = OPEN_SECONDS}, profile_work, task))
        fatal(EXIT_MACHINE, "no further process can be started");
    while (worker.state == WORKER_RUNNING) {
        worker_wait(&worker, 1);
        worker_limit(&worker, hang_seconds);   // it said that the GPU is open
        show_new(task, shown);
    }
    if (!board->opened)
        fatal(EXIT_MACHINE, "cannot profile: %s",
              board->reason[0] ? board->reason : "the GPU's driver ends the process");
    blame(board, &worker, task->list->count, hang_seconds);
    show_new(task, shown);
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

void profile(Arena *arena, const Program *program, const DeviceSpec *device, const JitResult *helpers,
             const ProfileOptions *options, CandidateList *list)
{
    if (helpers->status != JIT_DONE)
        fatal(EXIT_MACHINE, "cannot compile the profiler's own kernels: %s", helpers->reason);
    size_t bytes = sizeof(ProfileBoard) + (size_t)list->count * sizeof(ProfileSlot);
    ProfileBoard *board = worker_share(bytes);
    if (!board)
        fatal(EXIT_MACHINE, "out of memory");
    ProfileTask task = {
        .list = list,
        .reference = profile_reference(arena, program, options->math, options->most_work),
        .quiet = options->quiet,
        .helpers = helpers->cubin,
        .l2_bytes = device->l2_bytes,
        .gpu = list->gpu_ordinal,
        .board = board,
    };
    int shown = 0;
    do {
        run_worker(&task, options->hang_seconds ? options->hang_seconds : HANG_SECONDS, &shown);
        task.first = board->current + 1;
    } while (!board->done && task.first <= list->count);
    if (!options->quiet)
        progress_end();
    for (int i = 0; i < list->count; i++)
        take_slot(arena, &list->items[i], &board->slots[i]);
    worker_unshare(board, bytes);
}
