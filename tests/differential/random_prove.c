// A batch as one program of the runtime: the inputs of all programs, the outputs of all candidates, a piece of
// workspace for each. Most of a proof's time is the C++ compiler's, which sees a batch as one translation unit.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "differential/generate.h"
#include "differential/random_programs.h"
#include "hal/runtime.h"

enum { SECONDS = 60, POISON = 0xff };

typedef struct Buffer {
    const Subject *subject;
    const Tensor *tensor;
    int input;   // of the program; -1: it is an output
} Buffer;

typedef struct Batch {
    const Run *run;
    Arena *arena;
    Candidate *const *candidates;   // those of a program side by side
    int count, buffer_count, pass;
    Buffer *buffers;
    int64_t workspace;
} Batch;

// ---- reports ----

void report(Run *run, const Subject *subject, const char *which, const DeviceSpec *device, const char *what,
            const char *why)
{
    bool random = strncmp(device->name, "random-", strlen("random-")) == 0;
    run->failures++;
    printf("FAIL  program %" PRIu64 " of seed %" PRIu64 " on %s: %s: %s\n"
           "      again: random_programs --seed %" PRIu64 " --first %" PRIu64 "%s --device %s%s%s\n%s\n",
           subject->number, run->seed, device->name, what, why, run->seed, subject->number,
           run->moves ? " --moves" : "", device->name, which, random ? "; --print-device prints the device" : "", subject->text);
    fflush(stdout);
}

/* Once: its batch may be proven again for another's sake. */
static void report_candidate(Run *run, Arena *arena, Candidate *candidate, const DeviceSpec *device,
                             const char *what, const char *why)
{
    const char *which = candidate->variant ? arena_printf(arena, " --variant '%s'", candidate->variant)
                                           : arena_printf(arena, " --candidate %d", candidate->rank + 1);
    if (!candidate->failed)
        report(run, candidate->subject, which, device, what, why);
    candidate->failed = true;
}

// ---- the reference ----

RandomInputs inputs_of(const Run *run, const Subject *subject, int pass)
{
    InputKind special = (InputKind)(INPUT_NEGATIVE + subject->number % (INPUT_KINDS - INPUT_NEGATIVE));
    const InputKind kinds[PASSES] = {INPUT_REAL, INPUT_WHOLE, special};
    return (RandomInputs){subject->program, run->seed + subject->number, kinds[pass]};
}

static int64_t judged(const Value *expected, int64_t count)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++)
        found += isfinite(expected[i].bound);
    return found;
}

bool set_expected(const Run *run, Arena *arena, Subject *subject)
{
    const Program *program = subject->program;
    int64_t *found = NEW_ARRAY(arena, int64_t, program->output_count);
    for (int p = 0; p < PASSES; p++) {
        RandomInputs inputs = inputs_of(run, subject, p);
        Evaluator *truth = evaluator_new(arena, program, (InputSource){random_input_element, &inputs});
        evaluator_allow(truth, run->math);
        subject->expected[p] = NEW_ARRAY(arena, Value *, program->output_count);
        for (int i = 0; i < program->output_count; i++) {
            int64_t count = tensor_elements(program->outputs[i]);
            subject->expected[p][i] = NEW_ARRAY(arena, Value, count);
            evaluate_range(truth, program->outputs[i], 0, count, subject->expected[p][i]);
            found[i] += judged(subject->expected[p][i], count);
        }
        evaluator_free(truth);
    }
    bool enough = true;
    for (int i = 0; i < program->output_count; i++)
        enough &= 2 * found[i] >= PASSES * tensor_elements(program->outputs[i]);
    return enough;
}

// ---- buffers ----

static void add_buffer(Batch *batch, const Subject *subject, const Tensor *tensor, int input)
{
    batch->buffers[batch->buffer_count++] = (Buffer){subject, tensor, input};
}

/* Is it the first of its program's in the batch? */
static bool leads(const Batch *batch, int c)
{
    return c == 0 || batch->candidates[c - 1]->subject != batch->candidates[c]->subject;
}

static void lay_out(Batch *batch)
{
    int count = 0;
    for (int c = 0; c < batch->count; c++)
        count += batch->candidates[c]->subject->program->input_count +
                 batch->candidates[c]->subject->program->output_count;
    batch->buffers = NEW_ARRAY(batch->arena, Buffer, count);
    for (int c = 0; c < batch->count; c++) {
        Candidate *candidate = batch->candidates[c];
        Subject *subject = candidate->subject;
        if (leads(batch, c)) {
            subject->first_buffer = batch->buffer_count;
            for (int i = 0; i < subject->program->input_count; i++)
                add_buffer(batch, subject, subject->program->inputs[i], i);
        }
        candidate->first_buffer = batch->buffer_count;
        for (int i = 0; i < subject->program->output_count; i++)
            add_buffer(batch, subject, subject->program->outputs[i], -1);
        candidate->workspace_offset = batch->workspace;
        batch->workspace += round_up(candidate->kernel->workspace_bytes, WORKSPACE_ALIGNMENT);
    }
}

static const char *batch_text(const Batch *batch, const DeviceSpec *device)
{
    Arena *arena = batch->arena;
    StrBuf out = strbuf_new(arena);
    write_kernels(&out, batch->candidates, batch->count, device);
    strbuf_puts(&out, "\nextern \"C\" int batch_launch(");
    for (int b = 0; b < batch->buffer_count; b++)
        strbuf_printf(&out, "void *a%d, ", b);
    strbuf_puts(&out, "void *workspace, void *stream)\n{\n");
    for (int c = 0; c < batch->count; c++) {
        const Candidate *candidate = batch->candidates[c];
        const Program *program = candidate->subject->program;
        strbuf_printf(&out, "    if (int status = %s_launch(", candidate->kernel->name);
        for (int i = 0; i < program->input_count; i++)
            strbuf_printf(&out, "a%d, ", candidate->subject->first_buffer + i);
        for (int i = 0; i < program->output_count; i++)
            strbuf_printf(&out, "a%d, ", candidate->first_buffer + i);
        strbuf_printf(&out, "(char *)workspace + %" PRId64 ", stream))\n        return status;\n",
                      candidate->workspace_offset);
    }
    strbuf_puts(&out, "    return 0;\n}\n");
    return out.text;
}

static void fill(void *context, int tensor, int64_t offset, int64_t bytes, void *memory)
{
    const Batch *batch = context;
    const Buffer *buffer = &batch->buffers[tensor];
    RandomInputs inputs = inputs_of(batch->run, buffer->subject, batch->pass);
    DType type = buffer->tensor->dtype;
    int64_t first = offset * 8 / dtype_info[type].bits, count = bytes * 8 / dtype_info[type].bits;
    memset(memory, 0, (size_t)bytes);
    for (int64_t i = 0; i < count && first + i < tensor_elements(buffer->tensor); i++)
        dtype_store(type, memory, i, random_input_element(&inputs, buffer->input, first + i));
}

// ---- runs ----

static int describe_tensors(const Batch *batch, RuntimeTensor *tensors, int64_t *bytes)
{
    int count = batch->buffer_count;
    for (int b = 0; b < count; b++) {
        const Buffer *buffer = &batch->buffers[b];
        bytes[b] = tensor_bytes(buffer->tensor);
        const char *name = arena_printf(batch->arena, "%s of program %" PRIu64, buffer->tensor->name,
                                        buffer->subject->number);
        tensors[b] =
            (RuntimeTensor){.name = name, .buffer = b, .bytes = bytes[b], .written = buffer->input < 0};
    }
    bytes[batch->buffer_count] = batch->workspace;
    for (int c = 0; c < batch->count; c++) {
        const Kernel *kernel = batch->candidates[c]->kernel;
        if (kernel->workspace_bytes)
            tensors[count++] = (RuntimeTensor){
                .name = arena_printf(batch->arena, "workspace of %s", kernel->name),
                .buffer = batch->buffer_count,
                .offset = batch->candidates[c]->workspace_offset,
                .bytes = kernel->workspace_bytes,
                .written = true,
            };
    }
    return count;
}

/* One build serves all passes: compiling it takes longest. */
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
                                  .checked = batch->pass == 0,
                                  .seconds = SECONDS,
                              });
}

// ---- comparison ----

/* What is wrong with an output; NULL: nothing. */
static const char *compare(Arena *arena, const Tensor *tensor, const void *memory, const Value *expected)
{
    int64_t count = tensor_elements(tensor);
    for (int64_t i = 0; i < count; i++) {
        double seen = dtype_load(tensor->dtype, memory, i);
        if (isfinite(expected[i].bound) && !element_allowed(tensor->dtype, memory, i, expected[i]))
            return arena_printf(arena, "element %" PRId64 " of %s is %.17g, expected %.17g within %.3g",
                                i, tensor->name, seen, expected[i].real, expected[i].bound);
    }
    const uint32_t *words = memory;
    bool padded = tensor->dtype == DTYPE_B1 && count % 32 != 0 && words[count / 32] >> count % 32 != 0;
    return padded ? arena_printf(arena, "the padding bits of %s are not zero", tensor->name) : NULL;
}

/* One output of all candidates of a program. */
static void compare_output(Run *run, const Batch *batch, int start, int end, int output, const Value *expected,
                           const RuntimeResult *result, const char **why)
{
    const Tensor *tensor = batch->candidates[start]->subject->program->outputs[output];
    int64_t count = tensor_elements(tensor);
    run->elements += count * (end - start);
    run->unjudged += (count - judged(expected, count)) * (end - start);
    for (int c = start; c < end; c++)
        if (!why[c])
            why[c] = compare(batch->arena, tensor,
                             result->buffers[batch->candidates[c]->first_buffer + output], expected);
}

static void compare_batch(Run *run, const Batch *batch, int pass, const RuntimeResult *result,
                          const DeviceSpec *device)
{
    const char **why = NEW_ARRAY(batch->arena, const char *, batch->count);
    for (int start = 0, end; start < batch->count; start = end) {
        const Subject *subject = batch->candidates[start]->subject;
        for (end = start + 1; end < batch->count && !leads(batch, end);)
            end++;
        for (int i = 0; i < subject->program->output_count; i++)
            compare_output(run, batch, start, end, i, subject->expected[pass][i], result, why);
        for (int c = start; c < end; c++)
            if (why[c])
                report_candidate(run, batch->arena, batch->candidates[c], device,
                                 input_kind_name[inputs_of(run, subject, pass).kind], why[c]);
    }
}

// ---- proofs ----

/* False: it failed as a whole, for the reason given. */
static bool prove_batch(Run *run, Batch *batch, const DeviceSpec *device, const char **why)
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
    for (int p = 0; p < PASSES; p++) {
        batch->pass = p;
        RuntimeResult result = run_batch(batch, module);
        bool done = result.status == RUNTIME_DONE;
        if (done)
            compare_batch(run, batch, p, &result, device);
        else
            *why = result.reason;
        runtime_interp.release(&result);
        if (!done)
            return false;
    }
    return true;
}

/* A batch that fails as a whole is proven again half by half. */
void prove(Run *run, Arena *arena, Candidate *const *candidates, int count, const DeviceSpec *device)
{
    Batch batch = {.run = run, .arena = arena, .candidates = candidates, .count = count};
    lay_out(&batch);
    const char *why = "";
    if (prove_batch(run, &batch, device, &why))
        return;
    if (count == 1) {
        report_candidate(run, arena, candidates[0], device, "does not run", why);
        return;
    }
    int64_t before = run->failures;
    prove(run, arena, candidates, count / 2, device);
    prove(run, arena, candidates + count / 2, count - count / 2, device);
    if (run->failures == before) {   // it fails in company only
        printf("FAIL  programs from %" PRIu64 " of seed %" PRIu64 " together on %s: %s\n",
               candidates[0]->subject->number, run->seed, device->name, why);
        run->failures++;
    }
}
