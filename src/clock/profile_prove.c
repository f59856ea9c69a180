#include <stdio.h>

#include "clock/profile_bench.h"
#include "hal/worker.h"

static bool poison(Bench *bench, int byte)
{
    for (int i = bench_program(bench)->input_count; i <= bench_beside(bench, BUFFER_PREPARED); i++)
        if (bench->sets[0][i].bytes > 0 && !gpu_buffer_poison(&bench->gpu, &bench->sets[0][i], byte))
            return false;
    return true;
}

static const char *buffer_name(const Bench *bench, int buffer)
{
    static const char *const names[] = {[BUFFER_WORKSPACE] = "the workspace",
                                        [BUFFER_PREPARED] = "what is prepared",
                                        [BUFFER_WEIGHTS] = "the weights"};
    int beside = buffer - argument_count(bench_program(bench));
    return beside >= 0 ? names[beside] : tensor_shown(argument_tensor(bench_program(bench), buffer))->name;
}

static bool check_red_zones(Bench *bench)
{
    for (int i = 0; i <= bench_beside(bench, BUFFER_WEIGHTS); i++)
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
    const Sample *sample = &bench->reference->samples[output];
    const GpuBuffer *buffer = &bench->sets[0][bench_program(bench)->input_count + output];
    int element_bytes = dtype_info[sample->tensor->dtype].bits / 8;
    int64_t count = sample->evaluated[class];
    if (!count)
        return CANDIDATE_OK;
    void *seen = arena_alloc(bench->arena, (size_t)count * 8);
    if (!gpu_gather(&bench->gpu, buffer, element_bytes, sample->elements, count, seen))
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
    if (!bench_fill_inputs(bench, bench->sets[0], class) || !poison(bench, poisons[class]) ||
        !bench_prepare(bench, loaded, bench->sets[0]) ||
        !gpu_call_timed(&bench->gpu, &loaded->program, bench->sets[0], us) || !check_red_zones(bench))
        return CANDIDATE_FAULT;
    worker_alive();
    CandidateStatus status = CANDIDATE_OK;
    for (int i = 0; i < bench_program(bench)->output_count && status == CANDIDATE_OK; i++)
        status = compare_output(bench, i, class, comparison);
    return status;
}

/* The reals come last: they are what is timed. */
CandidateStatus bench_prove(Bench *bench, Loaded *loaded, double *us)
{
    Comparison comparison = {0};
    CandidateStatus status = CANDIDATE_OK;
    for (int class = INPUT_CLASSES - 1; class >= 0 && status == CANDIDATE_OK; class --)
        status = prove_class(bench, loaded, class, us, &comparison);
    Measurement *measurement = &loaded->slot->measurement;
    measurement->elements = comparison.elements;
    measurement->unjudged = comparison.unjudged;
    measurement->max_abs = comparison.max_abs;
    measurement->max_of_bound = comparison.max_of_bound;
    return status;
}
