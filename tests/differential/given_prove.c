// Proofs of programs that somebody lists, many in a batch.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "differential/given_programs.h"

enum { SECONDS = 120 };

static void fill(const Batch *batch, const BatchBuffer *buffer, int64_t offset, int64_t bytes, void *memory)
{
    const Given *given = buffer->owner;
    if (batch->pass == GIVEN && given->elements)   // integers of 64 bits are no doubles
        memcpy(memory, (const char *)given->elements[buffer->input] + offset, (size_t)bytes);
    else
        batch_draw(buffer, given->inputs[batch->pass], offset, bytes, memory);
}

// ---- results ----

static const char *compare(const Batch *batch, Given *given, int output, const void *memory)
{
    const Tensor *tensor = given->program->outputs[output];
    const Value *expected = given->expected[batch->pass][output];
    int64_t count = tensor_elements(tensor);
    given->compared += count;
    given->unjudged += count - batch_judged(expected, count);
    const char *why = batch_difference(batch->arena, tensor, memory, expected);
    bool is_given = batch->pass == GIVEN && given->elements;
    const char *inputs = is_given ? "the given" : input_kind_name[given_kind(given, batch->pass)];
    return why ? arena_printf(batch->arena, "on %s inputs %s", inputs, why) : NULL;
}

static void write_results(Given *given, void *const *outputs)
{
    FILE *file = fopen(given->results, "wb");
    const Program *program = given->program;
    bool written = file;
    for (int i = 0; i < program->output_count && written; i++)
        written = fwrite(outputs[i], (size_t)tensor_bytes(program->outputs[i]), 1, file) == 1;
    for (int i = 0; i < program->output_count && written; i++)
        for (int64_t e = 0; e < tensor_elements(program->outputs[i]) && written; e++)
            written = fwrite(&given->expected[GIVEN][i][e].real, sizeof(double), 2, file) ==
                      2;   // and `bound` behind it
    if (!file || fclose(file) != 0 || !written)
        given->failure = "its results cannot be written";
}
_Static_assert(offsetof(Value, bound) == offsetof(Value, real) + sizeof(double), "both are written at once");

static void take_results(const Batch *batch, const RuntimeResult *result)
{
    Given **programs = batch->context;
    for (int c = 0; c < batch->count; c++) {
        Given *given = programs[c];
        void *const *outputs = result->buffers + batch->kernels[c].first_output;
        for (int i = 0; i < given->program->output_count && !given->failure; i++)
            given->failure = compare(batch, given, i, outputs[i]);
        if (batch->pass == GIVEN && given->results && !given->failure)
            write_results(given, outputs);
    }
}

static Batch batch_of(Arena *arena, Given **programs, int count)
{
    int buffers = 0;
    for (int c = 0; c < count; c++)
        buffers += programs[c]->program->input_count + programs[c]->program->output_count;
    Batch batch = batch_new(arena, count, buffers, programs);
    batch.passes = given_passes(programs[0]);
    for (int c = 0; c < count; c++) {
        const Given *given = programs[c];
        int inputs = batch_add_inputs(&batch, given, given->name, given->program);
        batch_add_kernel(&batch, given, given->name, given->program, given->kernel, inputs);
    }
    return batch;
}

/* A batch that fails as a whole is proven again half by half. */
void given_prove(Arena *arena, Given **programs, int count, const DeviceSpec *device)
{
    Batch batch = batch_of(arena, programs, count);
    const char *why = "";
    if (batch_prove(&batch, device, fill, take_results, SECONDS, &why))
        return;
    if (count == 1) {
        programs[0]->failure = why;
        return;
    }
    for (int c = 0; c < count; c++)
        programs[c]->compared = programs[c]->unjudged = 0;
    given_prove(arena, programs, count / 2, device);
    given_prove(arena, programs + count / 2, count - count / 2, device);
}
