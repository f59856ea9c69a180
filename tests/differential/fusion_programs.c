// Random programs and all that fusion makes of them, against the reference evaluator; no kernel is written.
//
//   fusion_programs --count 2000 --seed 7      programs 0 to 1999 of seed 7
//   fusion_programs --seed 7 --first 123       program 123 alone
//   fusion_programs --program file.te          one of your own
//
// Of each program every fusion plan is evaluated, and of every fused kernel forms that it can be cut into; of some
// programs also all candidates of a device. All of them are made before the first is evaluated, and a kernel's forms
// before itself: one that shares what it rewrites with another is found too.
#include <argp.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "codegen/plan/plan.h"
#include "differential/fusion_eval.h"
#include "differential/generate.h"
#include "front/lower.h"
#include "front/parse.h"
#include "ir/compose.h"
#include "ir/eval.h"
#include "ir/row_tiles.h"
#include "ir/stream.h"

typedef enum Form {
    FORM_INLINE,   // this and the next five: the fusion plans' own kernels
    FORM_MATERIALIZE,
    FORM_ROWS,
    FORM_BESIDE,
    FORM_STREAM,
    FORM_TILES,
    FORM_SPLIT,
    FORM_PARTIAL,
    FORM_COMBINE,
    FORM_ELEMENTS,
    FORM_CHUNKS,
    FORM_COLUMNS,
    FORM_TILE_PARTIAL,
    FORM_TILE_COMBINE,
    FORM_CANDIDATE,   // any of these, as a device's candidates have them
    FORMS
} Form;

static const char *const form_name[FORMS] = {"inline",  "materialize", "rows",         "beside",       "stream",   "tiles", "split",
                                             "partial", "combine",     "elements", "chunks",     "columns",      "tile_partial", "tile_combine",
                                             "candidate"};

static const char *const devices[] = {"a100", "mi50", "v100", "h200"};

enum {
    CUTS = 2,       // ways in which a kernel is split, and cut
    ROW_CUTS = 8,   // of one that makes elements of rows: they are rare
    MOST_CUT = 9,   // kernels that each of them makes
    KEEP = 30,      // candidates
    TRIES = 12,     // programs until one is small enough
    PLANNED = 8     // of so many programs one has its candidates evaluated: choosing them takes longest
};

static const double MOST_WORK = 6e6;       // node evaluations of one program's kernels: some 30 ms
static const double LARGE_PROGRAM = 1e5;   // more than that in the program itself, and another stands in for it

/* One kernel to evaluate. */
typedef struct Step {
    Form form;
    const Fusion *fusion;
    int64_t size;    // parts, or points of a chunk
    bool is_first;   // of those that need each other
} Step;

/* Kernels that together make all outputs of the program. */
typedef struct Sequence {
    const char *name;
    Step *steps;
    int count;
} Sequence;

typedef struct Case {
    Arena *arena;
    uint64_t state;   // of choices
    const Program *program;
    RandomInputs inputs;
    Evaluator *truth;
    const Program *composed;
    Evaluator *parts;   // of the composed program: its temporaries may lie in another order
    Value **expected;   // by tensor id, made when asked for
    Memory *memory;
    Sequence *sequences;
    int sequence_count;
    double left;   // work that may still be done
} Case;

typedef struct Run {
    uint64_t seed, first, count;
    const char *file;
    uint64_t number;   // of the program under way
    int64_t programs, large, plans, kernels[FORMS], elements, unjudged, failures;
} Run;

// ---- choices ----

static int64_t below(Case *one, int64_t count)
{
    one->state = generate_hash(one->state);
    return (int64_t)(one->state >> 16) % count;
}

/* A usual size, or any: at most `most`. */
static int64_t choose_size(Case *one, int64_t most)
{
    static const int64_t sizes[] = {2, 3, 4, 5, 7, 8, 16, 64, 128};
    int64_t size = sizes[below(one, (int64_t)(sizeof sizes / sizeof *sizes))];
    return size > most || below(one, 3) == 0 ? 1 + below(one, most) : size;
}

// ---- what is evaluated ----

static void add_step(Sequence *sequence, Form form, const Fusion *fusion, int64_t size, bool is_first)
{
    if (fusion && fusion->op_count)
        sequence->steps[sequence->count++] = (Step){form, fusion, size, is_first};
}

static void add_split(Case *one, Sequence *sequence, const Fusion *fusion, int64_t parts)
{
    const FusionPair *pair = fusion_split(one->arena, fusion, parts);
    if (!pair)
        return;
    add_step(sequence, FORM_SPLIT, pair->partial, parts, true);
    add_step(sequence, FORM_SPLIT, pair->final, parts, false);
}

static void add_stream_split(Case *one, Sequence *sequence, const Fusion *fusion, int64_t parts)
{
    const StreamParts *split = fusion->streams ? stream_split(one->arena, fusion, parts) : NULL;
    if (!split)
        return;
    add_step(sequence, FORM_SPLIT, split->partial, parts, true);
    add_step(sequence, FORM_SPLIT, split->results, parts, false);
    add_step(sequence, FORM_SPLIT, split->rows, parts, false);
}

static void add_cut(Case *one, Sequence *sequence, const Fusion *fusion, int64_t most)
{
    const FusionPhases *phases = fusion_cut(one->arena, fusion, most);
    if (!phases)
        return;
    add_step(sequence, FORM_PARTIAL, phases->partial, most, true);
    add_step(sequence, FORM_COMBINE, phases->combine, most, false);
    add_step(sequence, FORM_ELEMENTS, phases->elements, most, false);
    add_step(sequence, FORM_CHUNKS, phases->chunks, most, false);
    add_step(sequence, FORM_COLUMNS, phases->columns, most, false);
}

/* Of a product's rows, whose columns are the first of the axes that are reduced. */
static void add_tiles(Case *one, Sequence *sequence, const Fusion *fusion, int64_t columns)
{
    const RowTiles *tiles = row_tiles_cut(one->arena, fusion, columns);
    if (!tiles)
        return;
    add_step(sequence, FORM_TILE_PARTIAL, tiles->partial, columns, true);
    add_step(sequence, FORM_TILE_COMBINE, tiles->combine, columns, false);
}

static void add_forms(Case *one, Sequence *sequence, const Fusion *fusion)
{
    int64_t row = 1;
    for (int a = fusion->spatial_count; a < fusion->axis_count; a++)
        row *= fusion->axes[a].extent;
    int cuts = row == 1 ? 0 : fusion_is_uniform(fusion) ? CUTS : ROW_CUTS;
    for (int i = 0; i < cuts; i++) {
        add_split(one, sequence, fusion, choose_size(one, row));
        add_cut(one, sequence, fusion, choose_size(one, row));
        add_tiles(one, sequence, fusion, choose_size(one, fusion->axes[fusion->spatial_count].extent));
    }
    add_stream_split(one, sequence, fusion, 2 + below(one, 5));
}

static Sequence *new_sequence(Case *one, const char *name, int most_steps)
{
    Sequence *sequence = &one->sequences[one->sequence_count++];
    *sequence = (Sequence){.name = name, .steps = NEW_ARRAY(one->arena, Step, most_steps)};
    return sequence;
}

static void add_fusion_plan(Case *one, const FusionPlan *plan)
{
    Sequence *sequence = new_sequence(one, plan->name, plan->count * (ROW_CUTS * MOST_CUT + 1));
    Form form = FORM_INLINE;
    while (strcmp(form_name[form], plan->name) != 0)
        form++;
    for (int f = 0; f < plan->count; f++) {
        add_forms(one, sequence, plan->fusions[f]);
        add_step(sequence, form, plan->fusions[f], 0, true);
    }
}

static bool same_steps(const Sequence *left, const Sequence *right)
{
    if (left->count != right->count)
        return false;
    for (int s = 0; s < left->count; s++)
        if (left->steps[s].fusion != right->steps[s].fusion)
            return false;
    return true;
}

/* Candidates often differ in their tiles alone. */
static void add_candidate(Case *one, const Plan *plan, const char *device)
{
    Sequence *sequence = new_sequence(one, device, plan->count);
    for (int k = 0; k < plan->count; k++)
        add_step(sequence, FORM_CANDIDATE, plan->launches[k].fusion, 0, k == 0);
    for (int i = 0; i + 1 < one->sequence_count; i++)
        if (same_steps(&one->sequences[i], sequence)) {
            one->sequence_count--;
            return;
        }
}

static void list_sequences(Run *run, Case *one, const FusionPlans *plans)
{
    one->sequences = NEW_ARRAY(one->arena, Sequence, plans->count + KEEP);
    if (run->file || run->number % PLANNED == 0) {
        const char *name = devices[run->number / PLANNED % (sizeof devices / sizeof *devices)];
        const Target target = {.device = device_read(one->arena, name), .math = EVAL_EXACT};
        PlanList list = plan_program(one->arena, plans, &target, KEEP);
        for (int i = 0; i < list.count; i++)
            add_candidate(one, &list.plans[i], name);
    }
    for (int p = 0; p < plans->count; p++)
        add_fusion_plan(one, &plans->plans[p]);
    run->plans += one->sequence_count;
}

// ---- comparison ----

static const Value *expected_of(Case *one, const Tensor *tensor)
{
    Value **values = &one->expected[tensor->id];
    if (!*values) {
        int64_t count = tensor_elements(tensor);
        *values = NEW_ARRAY(one->arena, Value, count);
        if (tensor->role == ROLE_TEMPORARY)
            evaluate_range(one->parts, one->composed->tensors[tensor->id], 0, count, *values);
        else
            evaluate_range(one->truth, one->program->tensors[tensor->id], 0, count, *values);
    }
    return *values;
}

static double seen_by_reader(const Storage *storage, int64_t element)
{
    Scalar value = storage->elements[element];
    return dtype_info[storage->tensor->dtype].is_real ? value.real : (double)value.whole;
}

/* Both values were computed in double and differ, if at all, by 2^-29 of what a kernel in f32 may err: what is farther
   apart than 2^-10 of that was computed in another way, although one term left out of 100,000 stays within the bound.
   Bounds below 2^-40 are those of f64, and of sums that are exact unless they are made of chunks' means. A kernel that streams, or what
   reads it, may have rounded a row's shares at another scale, by the whole bound. */
static bool is_right(DType type, double seen, Value expected, bool streams)
{
    if (!dtype_info[type].is_real || !isfinite(expected.real) || streams)
        return value_allows(type, seen, expected);
    double least = 0x1p-40 * (1 + fabs(expected.real));
    double bound = expected.bound > least ? fmax(expected.bound * 0x1p-10, least) : least;
    return fabs(seen - expected.real) <= bound;
}

static const char *compare(Run *run, Case *one, const Fusion *fusion, bool streams)
{
    for (int i = 0; i < fusion->output_count; i++) {
        int id = fusion->outputs[i]->id;
        if (id < 0 || id >= one->program->tensor_count)   // only these kernels know it, or what is composed
            continue;
        const Storage *storage = memory_of(one->memory, fusion->outputs[i]);
        const Value *expected = expected_of(one, storage->tensor);
        run->elements += storage->count;
        for (int64_t e = 0; e < storage->count; e++) {
            double seen = seen_by_reader(storage, e);
            if (!storage->written[e])   // another kernel's part of a concatenation
                continue;
            if (!isfinite(expected[e].bound))
                run->unjudged++;
            else if (!is_right(storage->tensor->dtype, seen, expected[e], streams))
                return arena_printf(one->arena,
                                    "element %" PRId64 " of %s is %.17g, expected %.17g within %.3g", e,
                                    storage->tensor->name, seen, expected[e].real, expected[e].bound);
        }
    }
    return NULL;
}

static void report(Run *run, Case *one, const Sequence *sequence, const Step *step, const char *why)
{
    StrBuf kernel = strbuf_new(one->arena);
    fusion_print(&kernel, step->fusion);
    run->failures++;
    printf("FAIL  program %" PRIu64 " of seed %" PRIu64 ", %s: %s (%" PRId64
           "), %s: %s\n      again: fusion_programs ",
           run->number, run->seed, sequence->name, form_name[step->form], step->size,
           input_kind_name[one->inputs.kind], why);
    if (run->file)
        printf("--program %s\n%s\n", run->file, kernel.text);
    else
        printf("--seed %" PRIu64 " --first %" PRIu64 "\n%s\n", run->seed, run->number, kernel.text);
}

// ---- one program ----

static double input_element(void *context, int input, int64_t element)
{
    Case *one = context;
    return seen_by_reader(memory_of(one->memory, one->program->inputs[input]), element);
}

static void fill_inputs(Case *one)
{
    for (int i = 0; i < one->program->input_count; i++) {
        Storage *storage = memory_of(one->memory, one->program->inputs[i]);
        for (int64_t e = 0; e < storage->count; e++) {
            double value = random_input_element(&one->inputs, i, e);
            if (dtype_info[storage->tensor->dtype].is_real)
                storage->elements[e].real = value;
            else
                storage->elements[e].whole = (int64_t)value;
        }
        memset(storage->written, true, sizeof(bool) * (size_t)storage->count);
    }
}

/* Work of the step and of those that need it. */
static double work_of_group(const Sequence *sequence, int first)
{
    double work = 0;
    for (int s = first; s < sequence->count && (s == first || !sequence->steps[s].is_first); s++)
        work += fusion_steps(sequence->steps[s].fusion);
    return work;
}

/* Forms and candidates are left out where they are too much work, the fusion plans' own kernels never. */
static bool prove_sequence(Run *run, Case *one, const Sequence *sequence)
{
    bool wanted = false, streams = false;
    memory_forget(one->memory);
    for (int s = 0; s < sequence->count; s++) {
        const Step *step = &sequence->steps[s];
        if (step->is_first) {
            double work = work_of_group(sequence, s);
            wanted = step->form < FORM_SPLIT || work <= one->left;
            one->left -= wanted ? work : 0;
        }
        if (!wanted)
            continue;
        const char *why = fusion_evaluate(one->memory, step->fusion);
        streams |= step->fusion->streams;
        why = why ? why : compare(run, one, step->fusion, streams);
        run->kernels[step->form]++;
        if (why) {
            report(run, one, sequence, step, why);
            return false;
        }
    }
    for (int i = 0; i < one->program->output_count && wanted; i++)
        if (!memory_of(one->memory, one->program->outputs[i])->written[0]) {
            report(run, one, sequence, &sequence->steps[sequence->count - 1], "an output is missing");
            return false;
        }
    return true;
}

/* What the reference evaluator has to do for it. */
static double work_of_program(const Program *program)
{
    double work = 0;
    for (int i = 0; i < program->op_count; i++) {
        double points = expr_size(program->ops[i]->body);
        for (int a = 0; a < program->ops[i]->axis_count; a++)
            points *= (double)program->ops[i]->axes[a].extent;
        work += points;
    }
    return work;
}

/* Random reals tell most; one program in four has others. */
static InputKind choose_inputs(Case *one, const Program *program)
{
    InputKind kind = below(one, 4) == 0 ? (InputKind)below(one, INPUT_KINDS) : INPUT_REAL;
    return input_kind_applies(program, kind) ? kind : INPUT_REAL;
}

static void prove(Run *run, Arena *arena, const Program *program)
{
    Case one = {.arena = arena,
                .state = generate_hash(run->seed ^ generate_hash(~run->number)),
                .program = program,
                .left = MOST_WORK};
    run->programs++;
    const Program *composed = compose(arena, program);
    FusionPlans plans = fuse(arena, composed);
    list_sequences(run, &one, &plans);
    one.inputs = (RandomInputs){program, run->seed + run->number, choose_inputs(&one, program)};
    one.expected = NEW_ARRAY(arena, Value *, program->tensor_count);
    one.memory = memory_new(arena, composed);
    fill_inputs(&one);
    one.composed = composed;
    one.truth = evaluator_new(arena, program, (InputSource){input_element, &one});
    one.parts = evaluator_new(arena, composed, (InputSource){input_element, &one});
    for (int i = 0; i < one.sequence_count; i++)
        if (!prove_sequence(run, &one, &one.sequences[i]))
            break;
    evaluator_free(one.parts);
    evaluator_free(one.truth);
}

// ---- the command line ----

static jmp_buf refusal;

/* generate() promises programs that compile. */
static void on_fatal(int exit_code, const char *message, void *context)
{
    Run *run = context;
    run->failures++;
    printf("FAIL  program %" PRIu64 " of seed %" PRIu64 ": exit %d: %s\n", run->number, run->seed, exit_code,
           message);
    longjmp(refusal, 1);
}

static const Program *read_program(Arena *arena, const Source *source)
{
    return lower(arena, parse(arena, lex(arena, source)), NULL, 0);
}

/* For what is too large the program 2^32 further on stands in. */
static void prove_number(Run *run, Arena *arena, uint64_t number)
{
    run->number = number;
    if (setjmp(refusal))
        return;
    for (int t = 0; t < TRIES; t++, run->number += UINT64_C(1) << 32) {
        arena_reset(arena);
        const char *text = generate(arena, run->seed, run->number);
        const Program *program = read_program(arena, source_from_text(arena, "random.te", text, strlen(text)));
        if (work_of_program(program) <= LARGE_PROGRAM) {
            prove(run, arena, program);
            return;
        }
    }
    run->large++;
}

static void prove_file(Run *run, Arena *arena)
{
    arena_reset(arena);
    if (!setjmp(refusal))
        prove(run, arena, read_program(arena, source_read(arena, run->file)));
}

static const struct argp_option options[] = {
    {"count", 'n', "N", 0, "how many programs (default 1)", 0},
    {"seed", 's', "N", 0, "of the generator", 0},
    {"first", 'f', "N", 0, "number of the first program", 0},
    {"program", 'p', "FILE", 0, "this one instead", 0},
    {0},
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    Run *run = state->input;
    switch (key) {
    case 'n': run->count = strtoull(text, NULL, 10); return 0;
    case 's': run->seed = strtoull(text, NULL, 10); return 0;
    case 'f': run->first = strtoull(text, NULL, 10); return 0;
    case 'p': run->file = text; return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* `name=count` words, which run_fusion.py adds up. */
static void summarize(const Run *run)
{
    printf("programs=%" PRId64 " large=%" PRId64 " plans=%" PRId64, run->programs, run->large, run->plans);
    for (Form form = 0; form < FORMS; form++)
        printf(" %s=%" PRId64, form_name[form], run->kernels[form]);
    printf(" compared=%" PRId64 " unjudged=%" PRId64 " failed=%" PRId64 "\n", run->elements, run->unjudged,
           run->failures);
}

int main(int argc, char **argv)
{
    Run run = {.count = 1};
    argp_parse(&(struct argp){.options = options, .parser = parse_option}, argc, argv, 0, NULL, &run);
    diag_configure((DiagOptions){.quiet = true, .on_fatal = on_fatal, .context = &run});
    Arena *arena = arena_new();
    if (run.file)
        prove_file(&run, arena);
    else
        for (uint64_t i = 0; i < run.count; i++)
            prove_number(&run, arena, run.first + i);
    arena_free(arena);
    summarize(&run);
    return run.failures ? 1 : 0;
}
