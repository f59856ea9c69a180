// Programs on given inputs through the whole compiler and the CPU interpreter: what ONNX's backend tests need.
//
//   given_programs [--device h200] < LIST       a line a program: NAME, TEXT.te, ARGUMENTS, WEIGHTS or -, RESULTS; tabs between
//
// ARGUMENTS holds the elements of the first inputs, one after the other, WEIGHTS those of the others, each at the next multiple
// of 256. RESULTS gets the outputs in the same way as ARGUMENTS, then of each of their elements two doubles: what the
// reference says it is, and how far a kernel may be from that. The first candidate of each program is run: on what is given,
// checked; on whole numbers; and on inputs of one of the special kinds. All are compared with the reference. A line of the
// output is `ok NAME: …` or `FAIL NAME: why`.
#include <argp.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/diag.h"
#include "differential/given_programs.h"
#include "front/lower.h"
#include "front/parse.h"
#include "ir/compose.h"
#include "ir/fuse.h"
#include "ir/prepared.h"

enum { BATCH = 25, CANDIDATES = 10, MAX_LINE = 4096, MAX_PROGRAMS = 10000 };

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

GivenInputs given_inputs(const Given *given, int pass)
{
    uint64_t seed = 1469598103934665603u;
    for (const char *c = given->name; *c; c++)
        seed =
            (seed ^ (unsigned char)*c) * 1099511628211u;   // FNV-1a: a case's own, whatever stands beside it
    InputKind special = (InputKind)(INPUT_NEGATIVE + seed % (INPUT_KINDS - INPUT_NEGATIVE));
    const InputKind kinds[PASSES] = {INPUT_REAL, INPUT_WHOLE, special};
    return (GivenInputs){given, {given->program, seed, kinds[pass]}, pass};
}

double given_element(void *context, int input, int64_t element)
{
    GivenInputs *inputs = context;
    if (inputs->pass == GIVEN)
        return dtype_load(inputs->of->program->inputs[input]->dtype, inputs->of->elements[input], element);
    return random_input_element(&inputs->drawn, input, element);
}

// ---- the pipeline ----

static void set_expected(Arena *arena, Given *given)
{
    const Program *program = given->program;
    for (int p = 0; p < PASSES; p++) {
        GivenInputs inputs = given_inputs(given, p);
        Evaluator *truth = evaluator_new(arena, program, (InputSource){given_element, &inputs});
        given->expected[p] = NEW_ARRAY(arena, Value *, program->output_count);
        for (int i = 0; i < program->output_count; i++) {
            int64_t count = tensor_elements(program->outputs[i]);
            given->expected[p][i] = NEW_ARRAY(arena, Value, count);
            evaluate_range(truth, program->outputs[i], 0, count, given->expected[p][i]);
        }
        evaluator_free(truth);
    }
}

static void compile_first(Arena *arena, Given *given, int number, const DeviceSpec *device)
{
    given->program = lower(arena, parse(arena, lex(arena, source_read(arena, given->path))), NULL, 0);
    read_elements(arena, given);
    set_expected(arena, given);
    Program *composed = compose(arena, given->program);
    FusionPlans fusions = fuse(arena, composed);
    const Target target = {.device = device, .math = EVAL_EXACT};
    PlanList plans = plan_program(arena, &fusions, &target, CANDIDATES);
    if (!plans.count)
        fatal(EXIT_NO_PROGRAM, "the device can hold no program for this expression");
    TemplateStore templates = {.arena = arena};
    given->kernel = codegen_kernel(arena, &(CodegenRequest){.name = arena_printf(arena, "p%d", number),
                                                            .program = composed,
                                                            .plan = &plans.plans[0],
                                                            .device = device,
                                                            .templates = &templates,
                                                            .kept = plans.count});
}

static bool try_compile(Arena *arena, Given *given, int number, const DeviceSpec *device)
{
    at_hand = given;
    if (setjmp(refusal) == 0)
        compile_first(arena, given, number, device);
    else
        given->failure = arena_strdup(arena, message_at_hand);
    at_hand = NULL;
    return !given->failure;
}

// ---- batches ----

static void prove_batch(Arena *arena, Given *programs, int count, const char *device_name)
{
    DeviceSpec *device = device_read(arena, device_name);
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
        else
            printf("ok %s: %" PRId64 " elements, %" PRId64 " too close to call\n", programs[i].name,
                   programs[i].compared, programs[i].unjudged);
    fflush(stdout);
}

/* In a child: a bug that stops the compiler costs one batch, which is then taken program by program. */
static void prove_apart(Given *programs, int count, const char *device)
{
    pid_t child = fork();
    if (child == 0) {
        prove_batch(arena_new(), programs, count, device);
        exit(0);
    }
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
        return;
    for (int i = 0; i < count && count > 1; i++)
        prove_apart(&programs[i], 1, device);
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
    const char **const fields[] = {&given->name, &given->path, &given->arguments, &given->weights,
                                   &given->results};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++, text = NULL)
        if (!(*fields[i] = strtok_r(text, "\t", &rest)))
            fatal(EXIT_USAGE, "a line of the list has five fields, with tabs between them");
    if (strcmp(given->weights, "-") == 0)
        given->weights = NULL;
    return true;
}

static const struct argp_option options[] = {
    {"device", 'd', "NAME", 0, "a device of devices/ or a file (default h200)", 0},
    {0},
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    if (key != 'd')
        return ARGP_ERR_UNKNOWN;
    *(const char **)state->input = text;
    return 0;
}

int main(int argc, char **argv)
{
    const char *device = "h200";
    argp_parse(&(struct argp){.options = options, .parser = parse_option}, argc, argv, 0, NULL, &device);
    diag_configure((DiagOptions){.quiet = true, .on_fatal = on_fatal});
    Arena *arena = arena_new();
    static Given programs[MAX_PROGRAMS];
    int count = 0;   // all are read first: a child that ends sets the place in a file that it shares back
    while (count < MAX_PROGRAMS && read_given(arena, &programs[count]))
        count++;
    for (int first = 0; first < count; first += BATCH)
        prove_apart(&programs[first], count - first < BATCH ? count - first : BATCH, device);
    arena_free(arena);
    return 0;
}
