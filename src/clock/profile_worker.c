#include "clock/profile_worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/worker.h"
#include "ir/prepared.h"

enum {
    MAX_SETS = 24,   // copies of the buffers
    MIN_SETS = 2,
    MAX_CALLS = 240,    // of a series
    MAX_SAMPLES = 20,   // series that are timed
    ROUNDS = 15,        // of the best, in turn
};

static const double SERIES_US = 2e3;      // at least, so that starting it does not count
static const double WARM_UP_US = 30e3;    // until the clocks are up
static const double BUDGET_US = 60e3;     // for timing one candidate; a slower one is timed once
static const double MEMORY_SHARE = 0.8;   // of what the GPU has free

/* Of the worker. */
typedef struct Bench {
    const ProfileTask *task;
    Arena *arena;
    Gpu gpu;
    GpuBuffer *sets[MAX_SETS];   // each: inputs, outputs, what lies beside them; the file of weights is one for all
    int set_count;
    GpuBuffer weights;
    GpuBuffer *tables[INPUT_CLASSES];   // one for each input
    char reason[PROFILE_REASON];
} Bench;

/* A candidate on the GPU, ready to be called. */
typedef struct Loaded {
    const Candidate *candidate;
    ProfileSlot *slot;
    GpuProgram prepare, program;   // what is launched once, and in each call
    GpuSeries series;
    double samples[MAX_SAMPLES];   // microseconds a call
    int sample_count;
} Loaded;

static const Program *program_of(const Bench *bench) { return bench->task->reference->program; }

static int beside_of(const Bench *bench, BufferBeside which) { return buffer_beside(program_of(bench), which); }

// ---- buffers ----

static int64_t bytes_of_set(const Bench *bench)
{
    int64_t bytes = 0;
    for (int i = 0; i < argument_count(program_of(bench)); i++)
        bytes += tensor_bytes(argument_tensor(program_of(bench), i));   // of weights as much is prepared, about
    return bytes;
}

/* Together more than three times the L2, of which one set's share is always the next to be used: what a call
   reads has left the cache since it was read last. */
static int wanted_sets(Bench *bench)
{
    double bytes = (double)bytes_of_set(bench),
           affordable = MEMORY_SHARE * (double)gpu_free_bytes(&bench->gpu) / bytes;
    double sets = ceil(3.0 * (double)bench->task->l2_bytes / bytes);
    sets = fmin(fmax(sets, MIN_SETS), MAX_SETS);
    return (int)fmax(fmin(sets, affordable), 1);
}

/* Where an input is filled: a buffer, or a part of the file of weights. */
static GpuBuffer place_of(const Bench *bench, const GpuBuffer *set, int input)
{
    const Program *program = program_of(bench);
    if (!program->inputs[input]->is_weight)
        return set[input];
    return (GpuBuffer){bench->weights.memory + (CudaPointer)weight_offset(program, input),
                       tensor_bytes(program->inputs[input])};
}

static bool fill_inputs(Bench *bench, const GpuBuffer *set, int class)
{
    const Program *program = program_of(bench);
    for (int i = 0; i < program->input_count; i++) {
        GpuBuffer place = place_of(bench, set, i);
        if (!gpu_fill(&bench->gpu, &place, tensor_elements(program->inputs[i]),
                      bench->task->reference->inputs[class][i].element_bytes, &bench->tables[class][i]))
            return false;
    }
    return true;
}

static bool upload_tables(Bench *bench, int class)
{
    int count = program_of(bench)->input_count;
    bench->tables[class] = NEW_ARRAY(bench->arena, GpuBuffer, count);
    for (int i = 0; i < count; i++) {
        const ProfileInput *input = &bench->task->reference->inputs[class][i];
        if (!gpu_buffer_new(&bench->gpu, &bench->tables[class][i], sizeof input->stored) ||
            !gpu_upload(&bench->gpu, &bench->tables[class][i], input->stored, sizeof input->stored))
            return false;
    }
    return true;
}

static bool make_set(Bench *bench, GpuBuffer **set)
{
    int count = argument_count(program_of(bench));
    *set = NEW_ARRAY(bench->arena, GpuBuffer, count + BUFFERS_BESIDE);
    for (int i = 0; i < count; i++) {
        const Tensor *tensor = argument_tensor(program_of(bench), i);
        if (!tensor->is_weight && !gpu_buffer_new(&bench->gpu, &(*set)[i], tensor_bytes(tensor)))
            return false;
    }
    (*set)[beside_of(bench, BUFFER_WEIGHTS)] = bench->weights;
    return fill_inputs(bench, *set, 0);
}

static bool make_buffers(Bench *bench)
{
    for (int class = 0; class < INPUT_CLASSES; class++)
        if (!upload_tables(bench, class))
            return false;
    int64_t weights = program_weight_bytes(program_of(bench));
    if (weights && !gpu_buffer_new(&bench->gpu, &bench->weights, weights))
        return false;
    bench->set_count = wanted_sets(bench);
    for (int i = 0; i < bench->set_count; i++)
        if (!make_set(bench, &bench->sets[i]))
            return false;
    return true;
}

// ---- one candidate on the GPU ----

static const GpuCode *codes_of(Arena *arena, const Candidate *candidate)
{
    GpuCode *codes = NEW_ARRAY(arena, GpuCode, candidate->kernel->launch_count);
    for (int k = 0; k < candidate->kernel->launch_count; k++) {
        CandidateCode code = candidate_code(arena, candidate, k);
        codes[k] = (GpuCode){code.compiled->cubin, code.entry};
    }
    return codes;
}

/* What lies beside the arguments belongs to a candidate: it differs in size. */
static bool load(Bench *bench, int position, Loaded *loaded)
{
    const Candidate *candidate = &bench->task->list->items[position];
    const Kernel *kernel = candidate->kernel;
    int prepared = kernel->prepare_count, called = kernel->launch_count - prepared;
    const GpuCode *codes = codes_of(bench->arena, candidate);
    *loaded = (Loaded){.candidate = candidate, .slot = &bench->task->board->slots[position]};
    return (!prepared || gpu_load(&bench->gpu, bench->arena, codes, kernel->launches, prepared, &loaded->prepare)) &&
           gpu_load(&bench->gpu, bench->arena, codes + prepared, kernel->launches + prepared, called, &loaded->program);
}

static bool make_beside(Bench *bench, BufferBeside which, int64_t bytes)
{
    for (int i = 0; i < bench->set_count; i++)
        gpu_buffer_free(&bench->gpu, &bench->sets[i][beside_of(bench, which)]);
    for (int i = 0; i < bench->set_count && bytes > 0; i++)
        if (!gpu_buffer_new(&bench->gpu, &bench->sets[i][beside_of(bench, which)], bytes))
            return false;
    return true;
}

static bool make_workspaces(Bench *bench, int64_t workspace, int64_t prepared)
{
    return make_beside(bench, BUFFER_WORKSPACE, workspace) && make_beside(bench, BUFFER_PREPARED, prepared);
}

/* What NAME_prepare does, for a set of buffers. */
static bool prepare(Bench *bench, const Loaded *loaded, const GpuBuffer *set)
{
    const Kernel *kernel = loaded->candidate->kernel;
    double us;
    return gpu_copy(&bench->gpu, &set[beside_of(bench, BUFFER_PREPARED)], &bench->weights, kernel->copies,
                    kernel->copy_count) &&
           (!kernel->prepare_count || gpu_call_timed(&bench->gpu, &loaded->prepare, set, &us));
}

static bool prepare_all(Bench *bench, const Loaded *loaded)
{
    for (int i = 0; i < bench->set_count && bench->weights.bytes; i++)
        if (!prepare(bench, loaded, bench->sets[i]))
            return false;
    return true;
}

static void unload(Bench *bench, Loaded *loaded)
{
    gpu_series_free(&bench->gpu, &loaded->series);
    gpu_unload(&bench->gpu, &loaded->prepare);
    gpu_unload(&bench->gpu, &loaded->program);
}

// ---- the proof ----

static bool poison(Bench *bench, int byte)
{
    for (int i = program_of(bench)->input_count; i <= beside_of(bench, BUFFER_PREPARED); i++)
        if (bench->sets[0][i].bytes > 0 && !gpu_buffer_poison(&bench->gpu, &bench->sets[0][i], byte))
            return false;
    return true;
}

static const char *buffer_name(const Bench *bench, int buffer)
{
    static const char *const names[] = {
        [BUFFER_WORKSPACE] = "the workspace", [BUFFER_PREPARED] = "what is prepared", [BUFFER_WEIGHTS] = "the weights"};
    int beside = buffer - argument_count(program_of(bench));
    return beside >= 0 ? names[beside] : tensor_shown(argument_tensor(program_of(bench), buffer))->name;
}

static bool check_red_zones(Bench *bench)
{
    for (int i = 0; i <= beside_of(bench, BUFFER_WEIGHTS); i++)
        if (bench->sets[0][i].bytes > 0 &&
            !gpu_buffer_check(&bench->gpu, &bench->sets[0][i], buffer_name(bench, i)))
            return false;
    return true;
}

/* The bits behind the last element of a b1 tensor are zero. */
static bool check_tail(Bench *bench, const Tensor *tensor, const GpuBuffer *buffer)
{
    int64_t last = tensor_elements(tensor) - 1;
    uint32_t word = 0;
    if (tensor->dtype != DTYPE_B1 || last % 32 == 31)
        return true;
    if (!gpu_gather(&bench->gpu, buffer, 0, &last, 1, &word))
        return false;
    if (word >> (last % 32 + 1) == 0)
        return true;
    snprintf(bench->reason, sizeof bench->reason, "the padding bits of %s are not zero",
             tensor_shown(tensor)->name);
    return false;
}

static CandidateStatus compare_output(Bench *bench, int output, int class, Comparison *comparison)
{
    const Sample *sample = &bench->task->reference->samples[output];
    const GpuBuffer *buffer = &bench->sets[0][program_of(bench)->input_count + output];
    int element_bytes = dtype_info[sample->tensor->dtype].bits / 8;
    if (!sample->count)
        return CANDIDATE_OK;
    void *seen = arena_alloc(bench->arena, (size_t)sample->count * 8);
    if (!gpu_gather(&bench->gpu, buffer, element_bytes, sample->elements, sample->count, seen))
        return CANDIDATE_FAULT;
    bool right = sample_compare(sample, class, seen, comparison, bench->reason, sizeof bench->reason) &&
                 check_tail(bench, sample->tensor, buffer);
    return right ? CANDIDATE_OK : CANDIDATE_WRONG;
}

/* One run on one class of inputs. The classes differ in what outputs hold before, too. */
static CandidateStatus prove_class(Bench *bench, const Loaded *loaded, int class, double *us,
                                   Comparison *comparison)
{
    static const int poisons[INPUT_CLASSES] = {0xff, 0x00};
    if (!fill_inputs(bench, bench->sets[0], class) || !poison(bench, poisons[class]) ||
        !prepare(bench, loaded, bench->sets[0]) ||
        !gpu_call_timed(&bench->gpu, &loaded->program, bench->sets[0], us) || !check_red_zones(bench))
        return CANDIDATE_FAULT;
    worker_alive();
    CandidateStatus status = CANDIDATE_OK;
    for (int i = 0; i < program_of(bench)->output_count && status == CANDIDATE_OK; i++)
        status = compare_output(bench, i, class, comparison);
    return status;
}

/* `us`: what the last run took. The reals come last: they are what is timed. */
static CandidateStatus prove(Bench *bench, Loaded *loaded, double *us)
{
    Comparison comparison = {0};
    CandidateStatus status = CANDIDATE_OK;
    for (int class = INPUT_CLASSES - 1; class >= 0 && status == CANDIDATE_OK; class--)
        status = prove_class(bench, loaded, class, us, &comparison);
    Measurement *measurement = &loaded->slot->measurement;
    measurement->elements = comparison.elements;
    measurement->unjudged = comparison.unjudged;
    measurement->max_abs = comparison.max_abs;
    measurement->max_of_bound = comparison.max_of_bound;
    return status;
}

// ---- the clock ----

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void summarise(Loaded *loaded)
{
    Measurement *m = &loaded->slot->measurement;
    double *samples = loaded->samples, sum = 0, squares = 0;
    int count = loaded->sample_count;
    qsort(samples, (size_t)count, sizeof *samples, ascending);
    for (int i = 0; i < count; i++)
        sum += samples[i];
    m->mean_us = sum / count;
    for (int i = 0; i < count; i++)
        squares += (samples[i] - m->mean_us) * (samples[i] - m->mean_us);
    m->stdev_us = sqrt(squares / count);
    m->min_us = samples[0];
    m->median_us = (samples[(count - 1) / 2] + samples[count / 2]) / 2;
    m->p95_us = samples[(int)ceil(0.95 * count) - 1];
    m->reps = count * (loaded->series.calls ? loaded->series.calls : 1);
}

static bool prepare_series(Bench *bench, Loaded *loaded, double us)
{
    double passes = fmax(ceil(SERIES_US / (us * bench->set_count)), 1);
    int calls = (int)fmin(passes * bench->set_count, MAX_CALLS / bench->set_count * bench->set_count);
    return gpu_series_new(&bench->gpu, &loaded->series, &loaded->program,
                          (const GpuBuffer *const *)bench->sets, bench->set_count, calls);
}

static bool warm_up(Bench *bench, Loaded *loaded, double us)
{
    int series = (int)ceil(WARM_UP_US / (us * loaded->series.calls));
    for (int i = 0; i < series; i++)
        if (!gpu_series_time(&bench->gpu, &loaded->series, &us))
            return false;
    loaded->slot->measurement.warmup = series * loaded->series.calls;
    return true;
}

/* `us`: what the proof took. */
static bool clock_candidate(Bench *bench, Loaded *loaded, double us)
{
    loaded->slot->measurement.buffer_sets = bench->set_count;
    if (us * bench->set_count > BUDGET_US) {   // too slow to be worth more
        loaded->samples[loaded->sample_count++] = us;
        loaded->slot->measurement.buffer_sets = 1;
        summarise(loaded);
        return true;
    }
    if (!prepare_all(bench, loaded) || !prepare_series(bench, loaded, us) || !warm_up(bench, loaded, us))
        return false;
    double left = BUDGET_US;
    while (loaded->sample_count < MAX_SAMPLES && (left > 0 || loaded->sample_count == 0)) {
        double *sample = &loaded->samples[loaded->sample_count++];
        if (!gpu_series_time(&bench->gpu, &loaded->series, sample))
            return false;
        left -= *sample * loaded->series.calls;
    }
    summarise(loaded);
    return true;
}

// ---- the candidates ----

static CandidateStatus try_candidate(Bench *bench, int position, Loaded *loaded)
{
    double us = 0;
    if (!load(bench, position, loaded) || !make_workspaces(bench, loaded->candidate->kernel->workspace_bytes,
                                                           loaded->candidate->kernel->prepared_bytes))
        return CANDIDATE_FAULT;
    worker_alive();
    CandidateStatus status = prove(bench, loaded, &us);
    if (status == CANDIDATE_OK && !clock_candidate(bench, loaded, us))
        status = CANDIDATE_FAULT;
    return status;
}

/* False: the GPU may be spoiled for this process. */
static bool measure(Bench *bench, int position)
{
    ProfileSlot *slot = &bench->task->board->slots[position];
    Loaded loaded;
    bench->reason[0] = '\0';
    slot->status = try_candidate(bench, position, &loaded);
    memcpy(slot->reason, bench->reason, sizeof slot->reason);
    if (slot->status != CANDIDATE_FAULT)
        unload(bench, &loaded);
    slot->finished = true;
    worker_alive();
    return slot->status != CANDIDATE_FAULT;
}

/* The positions of the fastest that took several samples. */
static int find_best(const ProfileTask *task, int *best)
{
    int count = 0;
    for (int i = 0; i < task->list->count; i++) {
        const ProfileSlot *slots = task->board->slots;
        if (!slots[i].finished || slots[i].status != CANDIDATE_OK || slots[i].measurement.warmup == 0)
            continue;
        int at = count < PROFILE_TOP ? count++ : PROFILE_TOP;
        for (; at > 0 && slots[best[at - 1]].measurement.median_us > slots[i].measurement.median_us; at--)
            if (at < PROFILE_TOP)
                best[at] = best[at - 1];
        if (at < PROFILE_TOP)
            best[at] = i;
    }
    return count;
}

/* The fastest in turn, a series of each: what the clocks do to one of them they do to all. */
static bool time_again(Bench *bench)
{
    int best[PROFILE_TOP], count = find_best(bench->task, best);
    Loaded loaded[PROFILE_TOP];
    int64_t workspace = 0, prepared = 0;
    for (int i = 0; i < count; i++) {
        const Kernel *kernel = bench->task->list->items[best[i]].kernel;
        workspace = kernel->workspace_bytes > workspace ? kernel->workspace_bytes : workspace;
        prepared = kernel->prepared_bytes > prepared ? kernel->prepared_bytes : prepared;
    }
    if (count < 2 || !make_workspaces(bench, workspace, prepared))
        return true;
    for (int i = 0; i < count; i++)
        if (!load(bench, best[i], &loaded[i]) ||
            !prepare_series(bench, &loaded[i], loaded[i].slot->measurement.median_us))
            return false;
    for (int round = -1; round < ROUNDS; round++) {   // the first one warms up
        for (int i = 0; i < count; i++)
            if (!prepare_all(bench, &loaded[i]) ||   // each its own, in the place of the others'
                !gpu_series_time(&bench->gpu, &loaded[i].series, &loaded[i].samples[round < 0 ? 0 : round]))
                return false;
        worker_alive();
    }
    for (int i = 0; i < count; i++) {
        loaded[i].sample_count = ROUNDS;
        summarise(&loaded[i]);
    }
    return true;
}

void profile_work(void *context)
{
    const ProfileTask *task = context;
    ProfileBoard *board = task->board;
    Bench bench = {.task = task, .arena = arena_new()};
    bool ready = gpu_open(&bench.gpu, task->gpu, task->helpers, bench.reason, sizeof bench.reason) &&
                 make_buffers(&bench);
    memcpy(board->reason, bench.reason, sizeof board->reason);
    if (!ready)
        return;
    board->opened = true;
    worker_alive();
    for (int i = task->first; i < task->list->count; i++) {
        board->current = i;
        if (task->list->items[i].compiled && !measure(&bench, i))
            return;
    }
    board->current = task->list->count;
    board->done = time_again(&bench);
}
