#include "clock/profile_bench.h"

#include <math.h>

#include "ir/prepared.h"

enum { MIN_SETS = 2 };

static const double MEMORY_SHARE = 0.8;   // of what the GPU has free

// ---- buffers ----

static int64_t bytes_of_set(const Bench *bench)
{
    int64_t bytes = 0;
    for (int i = 0; i < argument_count(bench_program(bench)); i++)
        bytes +=
            tensor_bytes(argument_tensor(bench_program(bench), i));   // of weights as much is prepared, about
    return bytes;
}

/* Together more than three times the L2, of which one set's share is always the next to be used: what a call
   reads has left the cache since it was read last. */
static int wanted_sets(Bench *bench)
{
    double bytes = (double)bytes_of_set(bench),
           affordable = MEMORY_SHARE * (double)gpu_free_bytes(&bench->gpu) / bytes;
    double sets = ceil(3.0 * (double)bench->l2_bytes / bytes);
    sets = fmin(fmax(sets, MIN_SETS), MAX_SETS);
    return (int)fmax(fmin(sets, affordable), 1);
}

/* Where an input is filled: a buffer, or a part of the file of weights. */
static GpuBuffer place_of(const Bench *bench, const GpuBuffer *set, int input)
{
    const Program *program = bench_program(bench);
    if (!program->inputs[input]->is_weight)
        return set[input];
    return (GpuBuffer){bench->weights.memory + (CudaPointer)weight_offset(program, input),
                       tensor_bytes(program->inputs[input])};
}

bool bench_fill_inputs(Bench *bench, const GpuBuffer *set, int class)
{
    const Program *program = bench_program(bench);
    for (int i = 0; i < program->input_count; i++) {
        GpuBuffer place = place_of(bench, set, i);
        if (!gpu_fill(&bench->gpu, &place, tensor_elements(program->inputs[i]),
                      bench->reference->inputs[class][i].element_bytes, &bench->tables[class][i]))
            return false;
    }
    return true;
}

static bool upload_tables(Bench *bench, int class)
{
    int count = bench_program(bench)->input_count;
    bench->tables[class] = NEW_ARRAY(bench->arena, GpuBuffer, count);
    for (int i = 0; i < count; i++) {
        const ProfileInput *input = &bench->reference->inputs[class][i];
        if (!gpu_buffer_new(&bench->gpu, &bench->tables[class][i], sizeof input->stored) ||
            !gpu_upload(&bench->gpu, &bench->tables[class][i], input->stored, sizeof input->stored))
            return false;
    }
    return true;
}

static bool make_set(Bench *bench, GpuBuffer **set)
{
    int count = argument_count(bench_program(bench));
    *set = NEW_ARRAY(bench->arena, GpuBuffer, count + BUFFERS_BESIDE);
    for (int i = 0; i < count; i++) {
        const Tensor *tensor = argument_tensor(bench_program(bench), i);
        if (!tensor->is_weight && !gpu_buffer_new(&bench->gpu, &(*set)[i], tensor_bytes(tensor)))
            return false;
    }
    (*set)[bench_beside(bench, BUFFER_WEIGHTS)] = bench->weights;
    return bench_fill_inputs(bench, *set, 0);
}

bool bench_make_buffers(Bench *bench)
{
    for (int class = 0; class < INPUT_CLASSES; class ++)
        if (!upload_tables(bench, class))
            return false;
    int64_t weights = program_weight_bytes(bench_program(bench));
    if (weights && !gpu_buffer_new(&bench->gpu, &bench->weights, weights))
        return false;
    bench->set_count = wanted_sets(bench);
    for (int i = 0; i < bench->set_count; i++)
        if (!make_set(bench, &bench->sets[i]))
            return false;
    return true;
}

static void free_set(Bench *bench, GpuBuffer *set)
{
    for (int i = 0; i <= bench_beside(bench, BUFFER_PREPARED); i++)
        gpu_buffer_free(&bench->gpu, &set[i]);
}

void bench_free_buffers(Bench *bench)
{
    for (int i = 0; i < bench->set_count; i++)
        free_set(bench, bench->sets[i]);
    for (int class = 0; class < INPUT_CLASSES; class ++)
        for (int i = 0; i < bench_program(bench)->input_count; i++)
            gpu_buffer_free(&bench->gpu, &bench->tables[class][i]);
    gpu_buffer_free(&bench->gpu, &bench->weights);
}

// ---- one candidate on the GPU ----

bool bench_load(Bench *bench, int position, Loaded *loaded)
{
    const Candidate *candidate = &bench->list->items[position];
    const Kernel *kernel = candidate->kernel;
    int prepared = kernel->prepare_count, called = kernel->launch_count - prepared;
    const GpuCode *codes = bench->slots[position].codes;
    *loaded = (Loaded){.candidate = candidate, .slot = &bench->slots[position]};
    return (!prepared ||
            gpu_load(&bench->gpu, bench->arena, codes, kernel->launches, prepared, &loaded->prepare)) &&
           gpu_load(&bench->gpu, bench->arena, codes + prepared, kernel->launches + prepared, called,
                    &loaded->program);
}

static bool make_beside(Bench *bench, BufferBeside which, int64_t bytes)
{
    for (int i = 0; i < bench->set_count; i++)
        gpu_buffer_free(&bench->gpu, &bench->sets[i][bench_beside(bench, which)]);
    for (int i = 0; i < bench->set_count && bytes > 0; i++)
        if (!gpu_buffer_new(&bench->gpu, &bench->sets[i][bench_beside(bench, which)], bytes))
            return false;
    return true;
}

bool bench_make_workspaces(Bench *bench, int64_t workspace, int64_t prepared)
{
    return make_beside(bench, BUFFER_WORKSPACE, workspace) && make_beside(bench, BUFFER_PREPARED, prepared);
}

bool bench_prepare(Bench *bench, const Loaded *loaded, const GpuBuffer *set)
{
    const Kernel *kernel = loaded->candidate->kernel;
    double us;
    return gpu_copy(&bench->gpu, &set[bench_beside(bench, BUFFER_PREPARED)], &bench->weights, kernel->copies,
                    kernel->copy_count) &&
           (!kernel->prepare_count || gpu_call_timed(&bench->gpu, &loaded->prepare, set, &us));
}

void bench_unload(Bench *bench, Loaded *loaded)
{
    gpu_series_free(&bench->gpu, &loaded->series);
    gpu_unload(&bench->gpu, &loaded->prepare);
    gpu_unload(&bench->gpu, &loaded->program);
}
