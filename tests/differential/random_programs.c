// Random programs through the whole compiler and the CPU interpreter, against the reference evaluator.
//
//   random_programs --count 2000 --seed 7      programs 0 to 1999 of seed 7
//   random_programs --seed 7 --first 123       program 123 alone
//   random_programs --seed 7 --first 123 --print
//
// Most of a proof's time is the C++ compiler's: BATCH programs share one translation unit and one run. A batch that
// fails as a whole is proven again program by program.
#include <argp.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/output.h"
#include "codegen/codegen.h"
#include "codegen/prelude.h"
#include "differential/generate.h"
#include "front/lower.h"
#include "front/parse.h"
#include "hal/runtime.h"
#include "ir/eval.h"

enum { BATCH = 50, KEEP = 10, SECONDS = 60, CHUNK = 1024, POISON = 0xff, MOST_FAMILIES = 16 };

static const char *const devices[] = {"a100", "mi50", "a100", "v100", "h200"};   // of batches 0, 1, …, then again

// ---- programs ----

typedef struct Case {
    uint64_t number;
    const char *text;
    Program *program;
    Kernel *kernel;
    RandomInputs inputs;
    Evaluator *truth;
    int first_buffer;   // of the batch's
    int rank, kept;     // the candidate that is proven
} Case;

typedef struct Run {
    uint64_t seed, first, count;
    bool print;
    const char *device;     // NULL: by batch
    int64_t programs, elements, unjudged, failures, refused, families[MOST_FAMILIES], launches;
} Run;

static jmp_buf refusal;
static bool compiling;
static char refusal_message[2000];

static void on_fatal(int exit_code, const char *message, void *context)
{
    (void)context;
    if (!compiling) {
        printf("random_programs: %s\n", message);
        exit(2);
    }
    snprintf(refusal_message, sizeof refusal_message, "exit %d: %s", exit_code, message);
    longjmp(refusal, 1);
}

static void report(Run *run, const Case *one, const char *device, const char *what, const char *why)
{
    run->failures++;
    printf("FAIL  program %" PRIu64 " of seed %" PRIu64 " on %s, candidate %d of %d: %s: %s\n"
           "      again: random_programs --seed %" PRIu64 " --first %" PRIu64 " --device %s\n%s\n",
           one->number, run->seed, device, one->rank + 1, one->kept, what, why, run->seed, one->number, device, one->text);
    fflush(stdout);
}

static void count_families(Run *run, const Plan *plan)
{
    for (int k = 0; k < plan->count; k++)
        for (int f = 0; families[f] && f < MOST_FAMILIES; f++)
            run->families[f] += families[f] == plan->launches[k].family;
    run->launches += plan->count;
}

/* Of the families that candidates begin with any one, then any of its candidates: few families offer many. */
static int choose_rank(const PlanList *plans, uint64_t hash)
{
    const Family *found[MOST_FAMILIES];
    int families_found = 0, of_family = 0, ranks[KEEP];
    for (int i = 0; i < plans->count; i++) {
        const Family *family = plans->plans[i].launches[0].family;
        int f = 0;
        while (f < families_found && found[f] != family)
            f++;
        found[f] = family;
        families_found += f == families_found;
    }
    const Family *chosen = found[hash % (uint64_t)families_found];
    for (int i = 0; i < plans->count; i++)
        if (plans->plans[i].launches[0].family == chosen)
            ranks[of_family++] = i;
    return ranks[(hash >> 32) % (uint64_t)of_family];
}

/* The driver's pipeline, and one of the candidates it would keep. False: it was refused, which is a bug of generate(). */
static bool compile_case(Arena *arena, Run *run, Case *one, const DeviceSpec *device)
{
    one->text = generate(arena, run->seed, one->number);
    compiling = true;
    if (setjmp(refusal)) {
        compiling = false;
        run->refused++;
        report(run, one, device->name, "refused", refusal_message);
        return false;
    }
    const char *name = arena_printf(arena, "p%" PRIu64, one->number);
    Source *source = source_from_text(arena, arena_printf(arena, "%s.te", name), one->text, strlen(one->text));
    one->program = lower(arena, parse(arena, lex(arena, source)), NULL, 0);
    FusionPlans fusions = fuse(arena, one->program);
    PlanList plans = plan_program(arena, &fusions, device, KEEP);
    if (!plans.count)
        fatal(EXIT_NO_PROGRAM, "the device can hold no program for this expression");
    one->kept = plans.count;
    one->rank = choose_rank(&plans, generate_hash(run->seed + one->number));
    TemplateStore templates = {.arena = arena};
    one->kernel = codegen_kernel(arena, &(CodegenRequest){
        .name = name,
        .program = one->program,
        .plan = &plans.plans[one->rank],
        .device = device,
        .templates = &templates,
        .rank = one->rank,
        .kept = plans.count,
    });
    count_families(run, &plans.plans[one->rank]);
    compiling = false;
    return true;
}

// ---- a batch as one program of the runtime: all arguments of all programs, then one workspace that they share ----

static int argument_count(const Case *one)
{
    return one->program->input_count + one->program->output_count;
}

static const Tensor *argument(const Case *one, int i)
{
    const Program *program = one->program;
    return i < program->input_count ? program->inputs[i] : program->outputs[i - program->input_count];
}

static const char *batch_text(Arena *arena, Case *const *cases, int count)
{
    StrBuf out = strbuf_new(arena), body = strbuf_new(arena);
    for (int c = 0; c < count; c++)
        strbuf_puts(&body, cases[c]->kernel->behind_prelude);
    prelude_write(&out, &(TemplateStore){.arena = arena}, body.text);
    strbuf_write(&out, body.text, body.length);
    body = strbuf_new(arena);
    strbuf_puts(&out, "\nextern \"C\" int batch_launch(");
    for (int c = 0; c < count; c++) {
        strbuf_printf(&body, "    if (int status = %s_launch(", cases[c]->kernel->name);
        for (int i = 0; i < argument_count(cases[c]); i++) {
            strbuf_printf(&out, "void *a%d, ", cases[c]->first_buffer + i);
            strbuf_printf(&body, "a%d, ", cases[c]->first_buffer + i);
        }
        strbuf_puts(&body, "workspace, stream))\n        return status;\n");
    }
    strbuf_printf(&out, "void *workspace, void *stream)\n{\n%s    return 0;\n}\n", body.text);
    return out.text;
}

typedef struct Batch {
    Arena *arena;
    Case *const *cases;
    int count, buffers;
    const Case **case_of;        // of each buffer
    int64_t workspace;
} Batch;

static void fill(void *context, int tensor, int64_t offset, int64_t bytes, void *memory)
{
    const Batch *batch = context;
    const Case *one = batch->case_of[tensor];
    const Tensor *what = argument(one, tensor - one->first_buffer);
    int64_t first = offset * 8 / dtype_info[what->dtype].bits, count = bytes * 8 / dtype_info[what->dtype].bits;
    memset(memory, 0, (size_t)bytes);
    for (int64_t i = 0; i < count && first + i < tensor_elements(what); i++)
        dtype_store(what->dtype, memory, i, random_input_element((void *)(uintptr_t)&one->inputs, tensor - one->first_buffer, first + i));
}

/* One way to run a batch. The same build serves all: compiling it takes longest. */
typedef struct Pass {
    InputKind kind;
    RuntimeSchedule schedule;
    bool checked;
} Pass;

static RuntimeResult run_batch(Batch *batch, const RuntimeModule *module, const Pass *pass)
{
    int count = batch->buffers + (batch->workspace > 0);
    int64_t *bytes = NEW_ARRAY(batch->arena, int64_t, batch->buffers + 1);
    RuntimeTensor *tensors = NEW_ARRAY(batch->arena, RuntimeTensor, count);
    for (int b = 0; b < batch->buffers; b++) {
        const Case *one = batch->case_of[b];
        const Tensor *tensor = argument(one, b - one->first_buffer);
        bytes[b] = tensor_bytes(tensor);
        tensors[b] = (RuntimeTensor){
            .name = arena_printf(batch->arena, "%s of %s", tensor->name, one->kernel->name),
            .buffer = b,
            .bytes = bytes[b],
            .written = b - one->first_buffer >= one->program->input_count,
        };
    }
    bytes[batch->buffers] = batch->workspace;
    if (batch->workspace > 0)
        tensors[batch->buffers] = (RuntimeTensor){
            .name = "workspace", .buffer = batch->buffers, .bytes = batch->workspace, .written = true};
    return runtime_interp.run(batch->arena, module, &(RuntimeJob){
        .buffer_bytes = bytes,
        .tensors = tensors,
        .tensor_count = count,
        .fill = fill,
        .context = batch,
        .poison = POISON,
        .only_launch = -1,
        .max_blocks = INT64_MAX,
        .schedule = pass->schedule,
        .checked = pass->checked,
        .seconds = SECONDS,
    });
}

// ---- comparison ----

/* What is wrong with an output; NULL: nothing. */
static const char *compare(Arena *arena, Run *run, const Case *one, int output, const void *memory)
{
    const Tensor *tensor = one->program->outputs[output];
    Value expected[CHUNK];
    for (int64_t first = 0, all = tensor_elements(tensor); first < all; first += CHUNK) {
        int64_t count = all - first < CHUNK ? all - first : CHUNK;
        evaluate_range(one->truth, tensor, first, count, expected);
        run->elements += count;
        for (int64_t i = 0; i < count; i++) {
            double seen = dtype_load(tensor->dtype, memory, first + i);
            if (!isfinite(expected[i].bound))
                run->unjudged++;
            else if (!value_allows(tensor->dtype, seen, expected[i]))
                return arena_printf(arena, "element %" PRId64 " of %s is %.17g, expected %.17g within %.3g", first + i,
                                    tensor->name, seen, expected[i].real, expected[i].bound);
        }
    }
    const uint32_t *words = memory;
    int64_t bits = tensor_elements(tensor);
    if (tensor->dtype == DTYPE_B1 && bits % 32 != 0 && words[bits / 32] >> bits % 32 != 0)
        return arena_printf(arena, "the padding bits of %s are not zero", tensor->name);
    return NULL;
}

static void compare_batch(Run *run, Batch *batch, const RuntimeResult *result, const DeviceSpec *device)
{
    for (int c = 0; c < batch->count; c++) {
        Case *one = batch->cases[c];
        const char *why = NULL;
        one->truth = evaluator_new(batch->arena, one->program, (InputSource){random_input_element, &one->inputs});
        for (int i = 0; i < one->program->output_count && !why; i++)
            why = compare(batch->arena, run, one, i, result->buffers[one->first_buffer + one->program->input_count + i]);
        evaluator_free(one->truth);
        if (why)
            report(run, one, device->name, input_kind_name[one->inputs.kind], why);
    }
}

// ---- proofs ----

static void choose_inputs(Batch *batch, const Run *run, InputKind kind)
{
    for (int c = 0; c < batch->count; c++)
        batch->cases[c]->inputs = (RandomInputs){batch->cases[c]->program, run->seed + batch->cases[c]->number, kind};
}

/* False: it failed as a whole, for the reason given. */
static bool prove_batch(Run *run, Batch *batch, const DeviceSpec *device, const char **why)
{
    const char *text = batch_text(batch->arena, batch->cases, batch->count);
    RuntimeSource source = {
        .name = "batch",
        .text = text,
        .length = strlen(text),
        .arg_count = batch->buffers,
        .limits = runtime_limits(device),
        .builds = RUNTIME_CHECKED,
    };
    RuntimeModule *module;
    if (runtime_interp.load(batch->arena, &source, &module, why) != RUNTIME_DONE)
        return false;
    InputKind special = (InputKind)(INPUT_NEGATIVE + batch->cases[0]->number / BATCH % (INPUT_KINDS - INPUT_NEGATIVE));
    const Pass passes[] = {
        {INPUT_REAL, RUNTIME_LOWEST_FIRST, true},
        {INPUT_WHOLE, RUNTIME_HIGHEST_FIRST, false},
        {special, RUNTIME_PRIORITY, false},
    };
    for (size_t p = 0; p < sizeof passes / sizeof *passes; p++) {
        choose_inputs(batch, run, passes[p].kind);
        RuntimeResult result = run_batch(batch, module, &passes[p]);
        bool done = result.status == RUNTIME_DONE;
        if (done)
            compare_batch(run, batch, &result, device);
        else
            *why = result.reason;
        runtime_interp.release(&result);
        if (!done)
            return false;
    }
    return true;
}

static void prove(Run *run, Arena *arena, Case *const *cases, int count, const DeviceSpec *device)
{
    Batch batch = {.arena = arena, .cases = cases, .count = count};
    for (int c = 0; c < count; c++) {
        cases[c]->first_buffer = batch.buffers;
        batch.buffers += argument_count(cases[c]);
        if (cases[c]->kernel->workspace_bytes > batch.workspace)
            batch.workspace = cases[c]->kernel->workspace_bytes;
    }
    batch.case_of = NEW_ARRAY(arena, const Case *, batch.buffers + 1);
    for (int c = 0; c < count; c++)
        for (int i = 0; i < argument_count(cases[c]); i++)
            batch.case_of[cases[c]->first_buffer + i] = cases[c];
    const char *why = "";
    if (prove_batch(run, &batch, device, &why))
        return;
    if (count == 1) {
        report(run, cases[0], device->name, "does not run", why);
        return;
    }
    int64_t before = run->failures;
    for (int c = 0; c < count; c++)
        prove(run, arena, &cases[c], 1, device);
    if (run->failures == before) {   // it fails in company only
        printf("FAIL  programs from %" PRIu64 " of seed %" PRIu64 " together on %s: %s\n", cases[0]->number, run->seed, device->name, why);
        run->failures++;
    }
}

static void prove_numbers(Run *run, uint64_t first, uint64_t count)
{
    Arena *arena = arena_new();
    const char *name = run->device ? run->device : devices[first / BATCH % (sizeof devices / sizeof *devices)];
    const DeviceSpec *device = device_read(arena, name);
    Case *cases[BATCH];
    int compiled = 0;
    for (uint64_t i = 0; i < count; i++) {
        Case *one = NEW(arena, Case);
        one->number = first + i;
        if (compile_case(arena, run, one, device))
            cases[compiled++] = one;
    }
    run->programs += (int64_t)count;
    if (compiled)
        prove(run, arena, cases, compiled, device);
    arena_free(arena);
}

// ---- the command line ----

static const struct argp_option options[] = {
    {"count", 'n', "N", 0, "how many programs (default 1)", 0},
    {"seed", 's', "N", 0, "of the generator", 0},
    {"first", 'f', "N", 0, "number of the first program", 0},
    {"device", 'd', "NAME", 0, "instead of one after the other", 0},
    {"print", 'p', NULL, 0, "only print the programs", 0},
    {0},
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    Run *run = state->input;
    switch (key) {
    case 'n': run->count = strtoull(text, NULL, 10); return 0;
    case 's': run->seed = strtoull(text, NULL, 10); return 0;
    case 'f': run->first = strtoull(text, NULL, 10); return 0;
    case 'd': run->device = text; return 0;
    case 'p': run->print = true; return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

int main(int argc, char **argv)
{
    Run run = {.count = 1};
    argp_parse(&(struct argp){.options = options, .parser = parse_option}, argc, argv, 0, NULL, &run);
    diag_configure((DiagOptions){.quiet = true, .on_fatal = on_fatal});
    uint64_t end = run.first + run.count;
    for (uint64_t next, first = run.first; first < end; first = next) {
        next = (first / BATCH + 1) * BATCH < end ? (first / BATCH + 1) * BATCH : end;
        if (!run.print) {
            prove_numbers(&run, first, next - first);
            continue;
        }
        Arena *arena = arena_new();
        for (uint64_t i = first; i < next; i++)
            puts(generate(arena, run.seed, i));
        arena_free(arena);
    }
    if (run.print)
        return 0;
    printf("seed %" PRIu64 ": %" PRId64 " programs, %" PRId64 " elements compared, of these %" PRId64
           " too close to call; %" PRId64 " launches:", run.seed, run.programs, run.elements, run.unjudged, run.launches);
    for (int f = 0; families[f] && f < MOST_FAMILIES; f++)
        printf(" %" PRId64 " %s", run.families[f], families[f]->name);
    printf("\n%" PRId64 " refused, %" PRId64 " failed\n", run.refused, run.failures);
    return run.failures ? 1 : 0;
}
