// Programs of a list through the whole compiler and the CPU interpreter, many in one translation unit.
//
//   given_programs < LIST       a line a program, tabs between: NAME, TEXT.te, ARGUMENTS, WEIGHTS, RESULTS (- is none),
//                               and then, or not: DEVICE (h200), MATH (exact), KEPT (10), RANK (1), SPECIAL
//
// ARGUMENTS holds the elements of the first inputs, one after the other, WEIGHTS those of the others, each at the
// next multiple of 256. RESULTS gets the outputs in the same way as ARGUMENTS, then of each of their elements two
// doubles: what the reference says it is, and how far a kernel may be from that. The candidate RANK of KEPT is run: on
// what is given, or random numbers, checked; on whole numbers; and on inputs of one of the special kinds, which SPECIAL
// chooses. Where nothing is given, and no SPECIAL either, it is run on all kinds. All are compared with the
// reference. A line of the output is `ok NAME: …`, `FAIL NAME: why`, or `LARGE NAME: …`: nothing is given, and
// `rollerc --verify` would not run it so.
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/diag.h"
#include "codegen/plan/plan.h"
#include "differential/given_programs.h"
#include "front/lower.h"
#include "front/parse.h"
#include "ir/compose.h"
#include "ir/fuse.h"
#include "ir/prepared.h"
#include "prove/verify_parts.h"

enum { BATCH = 25, MAX_LINE = 4096, MAX_PROGRAMS = 10000 };

// ---- errors of the input: the program at hand fails ----

static jmp_buf refusal;
static const Given *at_hand;
static char message_at_hand[2000];

static void on_fatal(int exit_code, const char *message, void *context)
{
    (void)context;
    if (!at_hand) {
        fprintf(stderr, "given_programs: %s\n", message);
        exit(2);
    }
    snprintf(message_at_hand, sizeof message_at_hand, "exit %d: %s", exit_code, message);
    longjmp(refusal, 1);
}

// ---- inputs ----

static char *read_file(Arena *arena, const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        fatal(EXIT_INPUT, "cannot read %s", path);
    long bytes = ftell(file);
    rewind(file);
    char *text = arena_room(arena, (size_t)bytes + 1);
    *length = fread(text, 1, (size_t)bytes, file);
    fclose(file);
    return text;
}

/* The elements of all inputs: as many of them as there are lie in ARGUMENTS, the others in WEIGHTS. */
static void read_elements(Arena *arena, Given *given)
{
    size_t length, weights_length = 0, at = 0;
    const char *arguments = read_file(arena, given->arguments, &length);
    const char *weights = given->weights ? read_file(arena, given->weights, &weights_length) : NULL;
    given->elements = NEW_ARRAY(arena, const void *, given->program->input_count);
    int i = 0;
    for (; i < given->program->input_count && at < length;
         at += (size_t)tensor_bytes(given->program->inputs[i++]))
        given->elements[i] = arguments + at;
    if (at != length)
        fatal(EXIT_INPUT, "the first %d inputs take %zu bytes, and %zu are given", i, at, length);
    for (at = 0; i < given->program->input_count; i++) {
        at = (size_t)round_up((int64_t)at, WEIGHT_ALIGNMENT);
        given->elements[i] = weights + at;
        at += (size_t)tensor_bytes(given->program->inputs[i]);
    }
    if (at > weights_length)
        fatal(EXIT_INPUT, "the weights take %zu bytes, and their file has %zu", at, weights_length);
}

int given_passes(const Given *given) { return given->arguments || given->special ? PASSES : INPUT_KINDS; }

/* A case's own, whatever stands beside it: FNV-1a. */
static uint64_t seed_of(const Given *given)
{
    uint64_t seed = 1469598103934665603u;
    for (const char *c = given->name; *c; c++)
        seed = (seed ^ (unsigned char)*c) * 1099511628211u;
    return seed;
}

InputKind given_kind(const Given *given, int pass)
{
    uint64_t special = given->special ? strtoull(given->special, NULL, 10) : seed_of(given);
    bool one = given_passes(given) == PASSES && pass >= INPUT_NEGATIVE;
    InputKind drawn = (InputKind)(INPUT_NEGATIVE + special % (INPUT_KINDS - INPUT_NEGATIVE));
    InputKind kind = one ? drawn : (InputKind)pass;
    while (!input_kind_applies(given->program, kind))
        kind = kind + 1 < INPUT_KINDS ? kind + 1 : INPUT_NEGATIVE;
    return kind;
}

static double given_element(void *context, int input, int64_t element)
{
    const Given *given = context;
    return dtype_load(given->program->inputs[input]->dtype, given->elements[input], element);
}

static InputSource source_of(Arena *arena, Given *given, int pass)
{
    return pass == GIVEN && given->elements
               ? (InputSource){given_element, given}
               : random_input_source(arena,
                                     (RandomInputs){given->program, seed_of(given), given_kind(given, pass)});
}

// ---- the pipeline ----

static void set_expected(Arena *arena, Given *given, EvalMath math)
{
    const Program *program = given->program;
    for (int p = 0; p < given_passes(given); p++) {
        given->inputs[p] = source_of(arena, given, p);
        Evaluator *truth = evaluator_new(arena, program, given->inputs[p]);
        evaluator_allow(truth, math);
        given->expected[p] = NEW_ARRAY(arena, Value *, program->output_count);
        for (int i = 0; i < program->output_count; i++) {
            int64_t count = tensor_elements(program->outputs[i]);
            given->expected[p][i] = NEW_ARRAY(arena, Value, count);
            evaluate_range(truth, program->outputs[i], 0, count, given->expected[p][i]);
        }
        evaluator_free(truth);
    }
}

static EvalMath math_named(const char *name)
{
    for (int math = 0; math <= EVAL_FAST; math++)
        if (strcmp(name, eval_math_name[math]) == 0)
            return (EvalMath)math;
    fatal(EXIT_USAGE, "there is no --math=%s", name);
}

static void compile_candidate(Arena *arena, Given *given, int number, const DeviceSpec *device)
{
    EvalMath math = math_named(given->math);
    int rank = atoi(given->rank) - 1;
    given->program = lower(arena, parse(arena, lex(arena, source_read(arena, given->path))), NULL, 0);
    given->program->fast_math = math == EVAL_FAST;
    if (given->arguments)
        read_elements(arena, given);
    Program *composed = compose(arena, given->program);
    FusionPlans fusions = fuse(arena, composed);
    const Target target = {.device = device, .math = math};
    PlanList plans = plan_program(arena, &fusions, &target, atoi(given->kept));
    if (!plans.count)
        fatal(EXIT_NO_PROGRAM, "the device can hold no program for this expression");
    if (rank < 0 || rank >= plans.count)
        fatal(EXIT_USAGE, "there is no candidate %s: %d were kept", given->rank, plans.count);
    TemplateStore templates = {.arena = arena};
    given->kernel = codegen_kernel(arena, &(CodegenRequest){.name = arena_printf(arena, "p%d", number),
                                                            .program = composed,
                                                            .plan = &plans.plans[rank],
                                                            .device = device,
                                                            .templates = &templates,
                                                            .rank = rank,
                                                            .kept = plans.count,
                                                            .fast_math = math == EVAL_FAST});
    bool whole =
        given->special ? !verify_is_too_large(given->kernel, 0, true) : verify_is_small(given->kernel);
    given->large = !given->arguments && !whole;
    if (!given->large)
        set_expected(arena, given, math);
}

static bool try_compile(Arena *arena, Given *given, int number, const DeviceSpec *device)
{
    at_hand = given;
    if (setjmp(refusal) == 0)
        compile_candidate(arena, given, number, device);
    else
        given->failure = arena_strdup(arena, message_at_hand);
    at_hand = NULL;
    return !given->failure && !given->large;
}

// ---- batches ----

static void prove_batch(Arena *arena, Given *programs, int count)
{
    DeviceSpec *device = device_read(arena, programs->device);
    Given *compiled[BATCH];
    int found = 0;
    for (int i = 0; i < count; i++)
        if (try_compile(arena, &programs[i], i, device))
            compiled[found++] = &programs[i];
    if (found)
        given_prove(arena, compiled, found, device);
    for (int i = 0; i < count; i++)
        if (programs[i].failure)
            printf("FAIL %s: %s\n", programs[i].name, programs[i].failure);
        else if (programs[i].large)
            printf("LARGE %s: it is not run whole\n", programs[i].name);
        else
            printf("ok %s: %" PRId64 " elements, %" PRId64 " too close to call\n", programs[i].name,
                   programs[i].compared, programs[i].unjudged);
    fflush(stdout);
}

/* In a child: a bug that stops the compiler costs one batch, which is then taken program by program. */
static void prove_apart(Given *programs, int count)
{
    pid_t child = fork();
    if (child == 0) {
        prove_batch(arena_new(), programs, count);
        exit(0);
    }
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
        return;
    for (int i = 0; i < count && count > 1; i++)
        prove_apart(&programs[i], 1);
    if (count == 1)
        printf("FAIL %s: the compiler ends with status %d\n", programs->name,
               WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    fflush(stdout);
}

// ---- the list ----

static bool read_given(Arena *arena, Given *given)
{
    char line[MAX_LINE], *rest;
    if (!fgets(line, sizeof line, stdin))
        return false;
    char *text = arena_strdup(arena, line);
    text[strcspn(text, "\n")] = '\0';
    *given = (Given){.device = "h200", .math = "exact", .kept = "10", .rank = "1"};
    const char **const fields[] = {&given->name,    &given->path,   &given->arguments, &given->weights,
                                   &given->results, &given->device, &given->math,      &given->kept,
                                   &given->rank,    &given->special};
    enum { LEAST = 5, MOST = sizeof fields / sizeof *fields };
    int found = 0;
    for (char *field; found < MOST && (field = strtok_r(found ? NULL : text, "\t", &rest)); found++)
        *fields[found] = strcmp(field, "-") == 0 ? NULL : field;
    if (found != LEAST && found != MOST)
        fatal(EXIT_USAGE, "a line of the list has %d or %d fields, with tabs between them", LEAST, MOST);
    return true;
}

/* For the same device, with as many passes: as many as one translation unit takes. */
static int batch_at(const Given *programs, int count)
{
    int end = 1;
    while (end < count && end < BATCH && strcmp(programs[end].device, programs->device) == 0 &&
           given_passes(&programs[end]) == given_passes(programs))
        end++;
    return end;
}

int main(void)
{
    diag_configure((DiagOptions){.quiet = true, .on_fatal = on_fatal});
    Arena *arena = arena_new();
    static Given programs[MAX_PROGRAMS];
    int count = 0;   // all are read first: a child that ends sets the place in a file that it shares back
    while (count < MAX_PROGRAMS && read_given(arena, &programs[count]))
        count++;
    for (int first = 0, size; first < count; first += size) {
        size = batch_at(&programs[first], count - first);
        prove_apart(&programs[first], size);
    }
    arena_free(arena);
    return 0;
}
