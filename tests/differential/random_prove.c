// Proofs of random programs, many candidates in a batch: those of a program side by side, which share its inputs.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "differential/batch.h"
#include "differential/generate.h"
#include "differential/random_programs.h"

enum { SECONDS = 60 };

/* What a batch is made of. */
typedef struct Proof {
    Run *run;
    const DeviceSpec *device;
    Candidate *const *candidates;
} Proof;

// ---- reports ----

void report(Run *run, const Subject *subject, const char *which, const DeviceSpec *device, const char *what,
            const char *why)
{
    bool random = strncmp(device->name, "random-", strlen("random-")) == 0;
    run->failures++;
    printf("FAIL  program %" PRIu64 " of seed %" PRIu64 " on %s: %s: %s\n"
           "      again: random_programs --seed %" PRIu64 " --first %" PRIu64 "%s --device %s%s%s\n%s\n",
           subject->number, run->seed, device->name, what, why, run->seed, subject->number,
           run->kind ? run->kind : "", device->name, which, random ? "; --print-device prints the device" : "", subject->text);
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

bool set_expected(const Run *run, Arena *arena, Subject *subject)
{
    const Program *program = subject->program;
    int64_t *found = NEW_ARRAY(arena, int64_t, program->output_count);
    for (int p = 0; p < PASSES; p++) {
        subject->inputs[p] = random_input_source(arena, inputs_of(run, subject, p));
        Evaluator *truth = evaluator_new(arena, program, subject->inputs[p]);
        evaluator_allow(truth, run->math);
        subject->expected[p] = NEW_ARRAY(arena, Value *, program->output_count);
        for (int i = 0; i < program->output_count; i++) {
            int64_t count = tensor_elements(program->outputs[i]);
            subject->expected[p][i] = NEW_ARRAY(arena, Value, count);
            evaluate_range(truth, program->outputs[i], 0, count, subject->expected[p][i]);
            found[i] += batch_judged(subject->expected[p][i], count);
        }
        evaluator_free(truth);
    }
    bool enough = true;
    for (int i = 0; i < program->output_count; i++)
        enough &= 2 * found[i] >= PASSES * tensor_elements(program->outputs[i]);
    return enough;
}

// ---- batches ----

/* Is it the first of its program's? */
static bool leads(Candidate *const *candidates, int c)
{
    return c == 0 || candidates[c - 1]->subject != candidates[c]->subject;
}

static Batch batch_of(Arena *arena, Proof *proof, int count)
{
    Candidate *const *candidates = proof->candidates;
    int buffers = 0, inputs = 0;
    for (int c = 0; c < count; c++)
        buffers += candidates[c]->subject->program->input_count + candidates[c]->subject->program->output_count;
    Batch batch = batch_new(arena, count, buffers, proof);
    for (int c = 0; c < count; c++) {
        const Subject *subject = candidates[c]->subject;
        const char *label = arena_printf(arena, "program %" PRIu64, subject->number);
        if (leads(candidates, c))
            inputs = batch_add_inputs(&batch, subject, label, subject->program);
        batch_add_kernel(&batch, subject, label, subject->program, candidates[c]->kernel, inputs);
    }
    return batch;
}

static void fill(const Batch *batch, const BatchBuffer *buffer, int64_t offset, int64_t bytes, void *memory)
{
    const Subject *subject = buffer->owner;
    batch_draw(buffer, subject->inputs[batch->pass], offset, bytes, memory);
}

// ---- comparison ----

/* One output of all candidates of a program. */
static void compare_output(const Batch *batch, const Subject *subject, int start, int end, int output,
                           const RuntimeResult *result, const char **why)
{
    Run *run = ((const Proof *)batch->context)->run;
    const Tensor *tensor = subject->program->outputs[output];
    const Value *expected = subject->expected[batch->pass][output];
    int64_t count = tensor_elements(tensor);
    run->elements += count * (end - start);
    run->unjudged += (count - batch_judged(expected, count)) * (end - start);
    for (int c = start; c < end; c++)
        if (!why[c])
            why[c] = batch_difference(batch->arena, tensor, result->buffers[batch->kernels[c].first_output + output],
                                      expected);
}

static void compare_batch(const Batch *batch, const RuntimeResult *result)
{
    const Proof *proof = batch->context;
    const char **why = NEW_ARRAY(batch->arena, const char *, batch->count);
    for (int start = 0, end; start < batch->count; start = end) {
        const Subject *subject = proof->candidates[start]->subject;
        for (end = start + 1; end < batch->count && !leads(proof->candidates, end);)
            end++;
        for (int i = 0; i < subject->program->output_count; i++)
            compare_output(batch, subject, start, end, i, result, why);
        for (int c = start; c < end; c++)
            if (why[c])
                report_candidate(proof->run, batch->arena, proof->candidates[c], proof->device,
                                 input_kind_name[inputs_of(proof->run, subject, batch->pass).kind], why[c]);
    }
}

// ---- proofs ----

/* A batch that fails as a whole is proven again half by half. */
void prove(Run *run, Arena *arena, Candidate *const *candidates, int count, const DeviceSpec *device)
{
    Batch batch = batch_of(arena, &(Proof){run, device, candidates}, count);
    const char *why = "";
    if (batch_prove(&batch, device, fill, compare_batch, SECONDS, &why))
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
