#include "clock/profile_worker.h"

#include <string.h>
#include <unistd.h>

#include "base/stopwatch.h"
#include "clock/profile_bench.h"
#include "hal/worker.h"

static CandidateStatus try_candidate(Bench *bench, int position, Loaded *loaded)
{
    const Kernel *kernel = bench->list->items[position].kernel;
    double us = 0;
    if (!bench_load(bench, position, loaded) ||
        !bench_make_workspaces(bench, kernel->workspace_bytes, kernel->prepared_bytes))
        return CANDIDATE_FAULT;
    worker_alive();
    CandidateStatus status = bench_prove(bench, loaded, &us);
    if (status == CANDIDATE_OK && !bench_time(bench, loaded, us))
        status = CANDIDATE_FAULT;
    return status;
}

/* False: the GPU may be spoiled for this process. */
static bool measure(Bench *bench, int position)
{
    ProfileSlot *slot = &bench->slots[position];
    Loaded loaded;
    bench->reason[0] = '\0';
    slot->status = try_candidate(bench, position, &loaded);
    memcpy(slot->reason, bench->reason, sizeof slot->reason);
    if (slot->status != CANDIDATE_FAULT)
        bench_unload(bench, &loaded);
    slot->finished = true;
    worker_alive();
    return slot->status != CANDIDATE_FAULT;
}

// ---- what has to be there first ----

static bool has_helpers(const ProfileTask *task, int job)
{
    (void)job;
    return task->board->helpers != NULL;
}

static bool is_compiled(const ProfileTask *task, int job) { return task->board->compiled_jobs > job; }

static bool is_evaluated(const ProfileTask *task, int job)
{
    return reference_is_ready(task->references[job]);
}

/* Says now and then that it lives. */
static void wait_until(bool (*is_there)(const ProfileTask *task, int job), const ProfileTask *task, int job)
{
    enum { LOOK_US = 200 };
    double said = seconds_now();
    while (!is_there(task, job)) {
        usleep(LOOK_US);
        if (seconds_now() > said + 0.1) {
            worker_alive();
            said = seconds_now();
        }
    }
}

// ---- jobs ----

static bool open_gpu(const ProfileTask *task, Bench *bench)
{
    if (!gpu_open(&bench->gpu, task->gpu, bench->reason, sizeof bench->reason))
        return false;
    wait_until(has_helpers, task, 0);
    return gpu_load_helpers(&bench->gpu, task->board->helpers);
}

/* False: with this process it is over. */
static bool measure_all(const ProfileTask *task, Bench *bench, int first)
{
    ProfileBoard *board = task->board;
    for (int i = first; i < bench->list->count; i++) {
        board->candidate = i;
        if (bench->slots[i].codes && !measure(bench, i))
            return false;
    }
    board->candidate = bench->list->count;
    return bench_time_again(bench);
}

static bool do_job(const ProfileTask *task, Bench *bench, int job)
{
    ProfileBoard *board = task->board;
    bool is_first = job == task->first_job;
    bench->arena = arena_new();
    bench->list = task->jobs[job].list;
    bench->slots = task->slots[job];
    bench->reference = task->references[job];
    board->candidate = is_first ? task->first : 0;
    board->job = job;
    worker_alive();   // buffers take longer than a candidate may
    wait_until(is_compiled, task, job);
    wait_until(is_evaluated, task, job);
    if (!bench_make_buffers(bench))
        return false;
    board->opened = true;
    worker_alive();
    bool whole = measure_all(task, bench, is_first ? task->first : 0);
    if (whole)
        bench_free_buffers(bench);
    arena_free(bench->arena);
    return whole;
}

void profile_work(void *context)
{
    const ProfileTask *task = context;
    ProfileBoard *board = task->board;
    Bench bench = {.l2_bytes = task->l2_bytes};
    bool works = open_gpu(task, &bench);
    for (int job = task->first_job; job < task->job_count && works; job++) {
        board->opened = false;
        works = do_job(task, &bench, job);
        board->finished_jobs += works;
        worker_alive();
    }
    if (!board->opened)
        memcpy(board->reason, bench.reason, sizeof board->reason);
    board->done = works;
}
