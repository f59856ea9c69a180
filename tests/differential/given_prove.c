// A batch of programs as one of the runtime: most of a proof's time is the C++ compiler's, which sees a batch as one
// translation unit.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "codegen/cuda/trim.h"
#include "differential/given_programs.h"
#include "hal/runtime.h"

enum { SECONDS = 120, POISON = 0xff };

typedef struct Buffer {
    const Given *given;
    const Tensor *tensor;
    int input;   // of the program; -1: it is an output
} Buffer;

typedef struct Batch {
    Arena *arena;
    Given **programs;
    int count, buffer_count, pass;
    Buffer *buffers;
    int64_t workspace;
} Batch;

static void lay_out(Batch *batch)
{
    int count = 0;
    for (int c = 0; c < batch->count; c++)
        count += batch->programs[c]->program->input_count + batch->programs[c]->program->output_count;
    batch->buffers = NEW_ARRAY(batch->arena, Buffer, count);
    for (int c = 0; c < batch->count; c++) {
        Given *given = batch->programs[c];
        const Program *program = given->program;
        given->first_buffer = batch->buffer_count;
        for (int i = 0; i < program->input_count; i++)
            batch->buffers[batch->buffer_count++] = (Buffer){given, program->inputs[i], i};
        for (int i = 0; i < program->output_count; i++)
            batch->buffers[batch->buffer_count++] = (Buffer){given, program->outputs[i], -1};
        given->workspace_offset = batch->workspace;
        batch->workspace += round_up(given->kernel->workspace_bytes, WORKSPACE_ALIGNMENT);
    }
}

/* The kernels of all of them behind one prelude. */
static void write_kernels(StrBuf *out, const Batch *batch, const DeviceSpec *device)
{
    StrBuf body = strbuf_new(out->arena);
    for (int c = 0; c < batch->count; c++)
        strbuf_puts(&body, batch->programs[c]->kernel->without_prelude);
    Trim *prelude = trim_new(&(TemplateStore){.arena = out->arena}, target_of(device, false), "batch", 0);
    trim_add_user(prelude, body.text);
    trim_take(prelude);
    trim_write_prelude(out, prelude);
    for (int c = 0; c < batch->count; c++)
        strbuf_printf(out, "namespace %s_prelude = batch_prelude;\n", batch->programs[c]->kernel->name);
    strbuf_write(out, body.text, body.length);
}

static const char *batch_text(const Batch *batch, const DeviceSpec *device)
{
    StrBuf out = strbuf_new(batch->arena);
    write_kernels(&out, batch, device);
    strbuf_puts(&out, "\nextern \"C\" int batch_launch(");
    for (int b = 0; b < batch->buffer_count; b++)
        strbuf_printf(&out, "void *a%d, ", b);
    strbuf_puts(&out, "void *workspace, void *stream)\n{\n");
    for (int c = 0; c < batch->count; c++) {
        const Given *given = batch->programs[c];
        strbuf_printf(&out, "    if (int status = %s_launch(", given->kernel->name);
        for (int i = 0; i < given->program->input_count + given->program->output_count; i++)
            strbuf_printf(&out, "a%d, ", given->first_buffer + i);
        strbuf_printf(&out, "(char *)workspace + %" PRId64 ", stream))\n        return status;\n",
                      given->workspace_offset);
    }
    strbuf_puts(&out, "    return 0;\n}\n");
    return out.text;
}

// ---- runs ----

static void fill(void *context, int tensor, int64_t offset, int64_t bytes, void *memory)
{
    const Batch *batch = context;
    const Buffer *buffer = &batch->buffers[tensor];
    if (batch->pass == GIVEN) {
        memcpy(memory, (const char *)buffer->given->elements[buffer->input] + offset, (size_t)bytes);
        return;
    }
    GivenInputs inputs = given_inputs(buffer->given, batch->pass);
    DType type = buffer->tensor->dtype;
    int64_t first = offset * 8 / dtype_info[type].bits, count = bytes * 8 / dtype_info[type].bits;
    memset(memory, 0, (size_t)bytes);
    for (int64_t i = 0; i < count && first + i < tensor_elements(buffer->tensor); i++)
        dtype_store(type, memory, i, given_element(&inputs, buffer->input, first + i));
}

static int describe_tensors(const Batch *batch, RuntimeTensor *tensors, int64_t *bytes)
{
    int count = batch->buffer_count;
    for (int b = 0; b < count; b++) {
        const Buffer *buffer = &batch->buffers[b];
        bytes[b] = tensor_bytes(buffer->tensor);
        const char *name = arena_printf(batch->arena, "%s of %s", buffer->tensor->name, buffer->given->name);
        tensors[b] =
            (RuntimeTensor){.name = name, .buffer = b, .bytes = bytes[b], .written = buffer->input < 0};
    }
    bytes[batch->buffer_count] = batch->workspace;
    for (int c = 0; c < batch->count; c++) {
        const Given *given = batch->programs[c];
        if (given->kernel->workspace_bytes)
            tensors[count++] = (RuntimeTensor){
                .name = arena_printf(batch->arena, "workspace of %s", given->name),
                .buffer = batch->buffer_count,
                .offset = given->workspace_offset,
                .bytes = given->kernel->workspace_bytes,
                .written = true,
            };
    }
    return count;
}

static RuntimeResult run_batch(Batch *batch, const RuntimeModule *module)
{
    static const RuntimeSchedule schedules[PASSES] = {RUNTIME_LOWEST_FIRST, RUNTIME_HIGHEST_FIRST,
                                                      RUNTIME_PRIORITY};
    int64_t *bytes = NEW_ARRAY(batch->arena, int64_t, batch->buffer_count + 1);
    RuntimeTensor *tensors = NEW_ARRAY(batch->arena, RuntimeTensor, batch->buffer_count + batch->count);
    int count = describe_tensors(batch, tensors, bytes);
    return runtime_interp.run(batch->arena, module,
                              &(RuntimeJob){
                                  .buffer_bytes = bytes,
                                  .tensors = tensors,
                                  .tensor_count = count,
                                  .fill = fill,
                                  .context = batch,
                                  .poison = POISON,
                                  .only_launch = -1,
                                  .max_blocks = INT64_MAX,
                                  .schedule = schedules[batch->pass],
                                  .checked = batch->pass == GIVEN,
                                  .seconds = SECONDS,
                              });
}

// ---- results ----

/* What is wrong with an output; NULL: nothing. */
static const char *compare(const Batch *batch, Given *given, int output, const void *memory)
{
    const Tensor *tensor = given->program->outputs[output];
    const Value *expected = given->expected[batch->pass][output];
    int64_t count = tensor_elements(tensor);
    for (int64_t i = 0; i < count; i++) {
        given->compared++;
        given->unjudged += !isfinite(expected[i].bound);
        if (isfinite(expected[i].bound) && !element_allowed(tensor->dtype, memory, i, expected[i]))
            return arena_printf(
                batch->arena, "on %s inputs element %" PRId64 " of %s is %.17g, expected %.17g within %.3g",
                batch->pass == GIVEN ? "the given"
                                     : input_kind_name[given_inputs(given, batch->pass).drawn.kind],
                i, tensor->name, dtype_load(tensor->dtype, memory, i), expected[i].real, expected[i].bound);
    }
    return NULL;
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

static void take_results(Batch *batch, const RuntimeResult *result)
{
    for (int c = 0; c < batch->count; c++) {
        Given *given = batch->programs[c];
        void *const *outputs = result->buffers + given->first_buffer + given->program->input_count;
        for (int i = 0; i < given->program->output_count && !given->failure; i++)
            given->failure = compare(batch, given, i, outputs[i]);
        if (batch->pass == GIVEN && !given->failure)
            write_results(given, outputs);
    }
}

/* False: it failed as a whole, for the reason given. */
static bool prove_together(Batch *batch, const DeviceSpec *device, const char **why)
{
    const char *text = batch_text(batch, device);
    RuntimeSource source = {
        .name = "batch",
        .text = text,
        .length = strlen(text),
        .arg_count = batch->buffer_count,
        .limits = runtime_limits(device),
        .builds = RUNTIME_CHECKED,
    };
    RuntimeModule *module;
    if (runtime_interp.load(batch->arena, &source, &module, why) != RUNTIME_DONE)
        return false;
    for (batch->pass = 0; batch->pass < PASSES; batch->pass++) {
        RuntimeResult result = run_batch(batch, module);
        bool done = result.status == RUNTIME_DONE;
        if (done)
            take_results(batch, &result);
        else
            *why = result.reason;
        runtime_interp.release(&result);
        if (!done)
            return false;
    }
    return true;
}

/* A batch that fails as a whole is proven again half by half. */
void given_prove(Arena *arena, Given **programs, int count, const DeviceSpec *device)
{
    Batch batch = {.arena = arena, .programs = programs, .count = count};
    lay_out(&batch);
    const char *why = "";
    if (prove_together(&batch, device, &why))
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
