// Random sums with factors, quotients and powers (generate_factors.c), as the text has them and as fusion makes them, at
// values over the whole range of their types.
//
//   factor_programs --count 10000 --seed 7     programs 0 to 9999 of seed 7
//   factor_programs --seed 7 --first 123       program 123 alone
//
// Every kernel is evaluated with each operation rounded, as on a device.
//
//   legal     what it makes lies within the reference's bounds: else --verify would refuse it
//   in range  where the text's own order, rounded, comes near the value in double, so does the kernel: nothing was
//             infinite or lost on the way. Inputs are positive then, so that sums lose no digits.
#include <argp.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "differential/fusion_eval.h"
#include "differential/generate.h"
#include "front/lower.h"
#include "front/parse.h"
#include "ir/eval.h"

typedef struct Run {
    uint64_t seed, first, count, number;
    int64_t programs, waiting, elements, legal, in_range, failures;
} Run;

/* One program with one set of inputs. */
typedef struct Case {
    Run *run;
    Arena *arena;
    const char *text;
    const Program *program;
    Memory *exact, *rounded, *kernel;   // the text in double and rounded, and what fusion made of it
    Evaluator *truth;
    const char *inputs;   // what they hold
    bool is_wide;         // any positive values; else a RandomInputs
    RandomInputs random;
    int centre[128];      // of wide inputs, by first letter of the name: powers of two
} Case;

static uint64_t hash_of(const Case *one, uint64_t a, uint64_t b)
{
    return generate_hash(one->random.seed ^ generate_hash(a * 1000003 + b));
}

// ---- inputs ----

/* Values near each other in a tensor, the shared ones often near those that they divide. */
static void choose_centres(Case *one)
{
    static const char letters[] = "abstvd";
    int a = (int)(hash_of(one, 1, 0) % 276) - 148;
    for (size_t i = 0; i < sizeof letters - 1; i++) {
        uint64_t hash = hash_of(one, 2, i);
        int any = (int)(hash_of(one, 3, i) % 276) - 148;
        one->centre[(int)letters[i]] = hash % 4 == 0 ? any : hash % 4 == 1 ? 0 : hash % 4 == 2 ? -a : a;
    }
    one->centre['a'] = a;
}

/* bf16 above 2^48 is outside of what the language promises of products, v * n must be a number in the end. */
static int clamped(const Tensor *tensor, int exponent)
{
    int most = tensor->dtype == DTYPE_F16 ? 15 : tensor->dtype == DTYPE_BF16 ? 47 : 126;
    int least = tensor->dtype == DTYPE_F16 ? -24 : tensor->dtype == DTYPE_BF16 ? -48 : -149;
    if (tensor->name[0] == 'v') {
        most = most < 118 ? most : 118;
        least = least > -60 ? least : -60;
    }
    return exponent > most ? most : exponent < least ? least : exponent;
}

static double wide_element(const Case *one, int input, int64_t element)
{
    const Tensor *tensor = one->program->inputs[input];
    uint64_t hash = hash_of(one, 100 + (uint64_t)input, (uint64_t)element);
    double fraction = (double)(hash >> 12) * 0x1p-52;
    if (tensor->name[0] == 't')
        return dtype_round(tensor->dtype, 40 * fraction - 20);
    if (tensor->dtype == DTYPE_B1)
        return 1;
    if (!dtype_info[tensor->dtype].is_real)
        return 1 + (double)(hash % 100);
    int exponent = one->centre[(int)tensor->name[0]] + (int)(hash % 3);
    return dtype_round(tensor->dtype, ldexp(1 + fraction, clamped(tensor, exponent)));
}

static double input_element(void *context, int input, int64_t element)
{
    Case *one = context;
    return one->is_wide ? wide_element(one, input, element) : random_input_element(&one->random, input, element);
}

static void fill(Case *one, Memory *memory)
{
    for (int i = 0; i < one->program->input_count; i++) {
        Storage *storage = memory_of(memory, one->program->inputs[i]);
        for (int64_t e = 0; e < storage->count; e++) {
            double value = input_element(one, i, e);
            if (dtype_info[storage->tensor->dtype].is_real)
                storage->elements[e].real = value;
            else
                storage->elements[e].whole = (int64_t)value;
            storage->written[e] = true;
        }
    }
}

// ---- the text ----

typedef struct Reads {
    Tensor **tensors;
    int count;
} Reads;

static void read_visit(Expr *expr, void *context)
{
    Reads *reads = context;
    if (expr->kind != EXPR_ACCESS)
        return;
    for (int i = 0; i < reads->count; i++)
        if (reads->tensors[i] == expr->access.tensor)
            return;
    reads->tensors[reads->count++] = expr->access.tensor;
}

/* The definition as it stands, as a kernel. */
static const Fusion *fusion_of(Arena *arena, const Program *program, const TensorOp *op)
{
    Fusion *fusion = NEW(arena, Fusion);
    Reads reads = {NEW_ARRAY(arena, Tensor *, program->tensor_count), 0};
    Affine dims[MAX_AXES];
    uint32_t all = (1u << op->axis_count) - 1, spatial = (1u << op->spatial_count) - 1;
    for (int d = 0; d < op->spatial_count; d++)
        dims[d] = affine_axis(d);
    expr_visit(op->body, read_visit, &reads);
    *fusion = (Fusion){.spatial_count = op->spatial_count, .axis_count = op->axis_count, .op_count = 1};
    memcpy(fusion->axes, op->axes, sizeof op->axes);
    for (int a = 0; a < op->axis_count; a++)
        fusion->axes[a].reduction = a >= op->spatial_count;
    fusion->ops = NEW(arena, FusedOp);
    *fusion->ops = (FusedOp){.out = op->out, .stored = true, .spatial = spatial, .reduced = all & ~spatial,
                             .reduce = op->reduce, .body = op->body, .store = access_new(arena, op->out, dims)};
    fusion->inputs = reads.tensors;
    fusion->input_count = reads.count;
    fusion->outputs = NEW(arena, Tensor *);
    fusion->outputs[fusion->output_count++] = op->out;
    return fusion;
}

// ---- comparison ----

static double element_of(Memory *memory, const Tensor *tensor, int64_t element)
{
    Scalar value = memory_of(memory, tensor)->elements[element];
    return dtype_info[tensor->dtype].is_real ? value.real : (double)value.whole;
}

static void report(Case *one, const char *plan, const Tensor *tensor, int64_t element, const char *why)
{
    one->run->failures++;
    printf("FAIL  program %" PRIu64 " of seed %" PRIu64 ", plan %s, %s, %s[%" PRId64 "]: %s\n"
           "      again: factor_programs --seed %" PRIu64 " --first %" PRIu64 "\n%s\n",
           one->run->number, one->run->seed, plan, one->inputs, tensor->name, element, why, one->run->seed,
           one->run->number, one->text);
}

static bool is_near(double value, double exact, double share) { return fabs(value - exact) <= share * fabs(exact); }

/* Numbers that the type holds with all digits, of inputs for which the text's order loses none. */
static bool is_in_range(const Case *one, const Tensor *tensor, double exact, double rounded)
{
    bool is_half = tensor->dtype == DTYPE_F16;
    double least = is_half ? 0x1p-13 : 0x1p-120, most = is_half ? 0x1p15 : 0x1p126;
    bool is_judged = one->is_wide && (is_half || tensor->dtype == DTYPE_F32) && !strstr(one->text, "sin(") &&
                     !strstr(one->text, "cos(") && !strstr(one->text, "f64");
    return is_judged && fabs(exact) >= least && fabs(exact) <= most &&
           is_near(rounded, exact, is_half ? 0x1p-10 : 0x1p-13);
}

static bool compare(Case *one, const char *plan, const Tensor *tensor)
{
    int64_t count = tensor_elements(tensor);
    Value *values = NEW_ARRAY(one->arena, Value, count);
    evaluate_range(one->truth, tensor, 0, count, values);
    for (int64_t e = 0; e < count; e++) {
        double seen = element_of(one->kernel, tensor, e), exact = element_of(one->exact, tensor, e),
               rounded = element_of(one->rounded, tensor, e);
        one->run->elements++;
        one->run->legal += isfinite(values[e].bound);
        if (isfinite(values[e].bound) && !value_allows(tensor->dtype, seen, values[e])) {
            report(one, plan, tensor, e,
                   arena_printf(one->arena, "%.9g is not legal, %.9g within %.3g is", seen, values[e].real,
                                values[e].bound));
            return false;
        }
        if (!is_in_range(one, tensor, exact, rounded))
            continue;
        one->run->in_range++;
        if (!is_near(seen, exact, 0x1p-9)) {
            report(one, plan, tensor, e, arena_printf(one->arena, "%.9g left the range, %.9g is right", seen, exact));
            return false;
        }
    }
    return true;
}

static bool prove_plan(Case *one, const FusionPlan *plan)
{
    memory_forget(one->kernel);
    for (int f = 0; f < plan->count; f++) {
        const char *why = fusion_evaluate(one->kernel, plan->fusions[f]);
        if (why) {
            report(one, plan->name, plan->fusions[f]->outputs[0], 0, why);
            return false;
        }
    }
    for (int i = 0; i < one->program->output_count; i++)
        if (!compare(one, plan->name, one->program->outputs[i]))
            return false;
    return true;
}

// ---- one program ----

static Memory *memory_of_case(Case *one, bool rounds)
{
    Memory *memory = memory_new(one->arena, one->program);
    memory->rounds = rounds;
    fill(one, memory);
    return memory;
}

static bool prove(Case *one, const FusionPlans *plans)
{
    one->exact = memory_of_case(one, false);
    one->rounded = memory_of_case(one, true);
    one->kernel = memory_of_case(one, true);
    for (int i = 0; i < one->program->op_count; i++) {
        const Fusion *fusion = fusion_of(one->arena, one->program, one->program->ops[i]);
        fusion_evaluate(one->exact, fusion);
        fusion_evaluate(one->rounded, fusion);
    }
    one->truth = evaluator_new(one->arena, one->program, (InputSource){input_element, one});
    bool right = true;
    for (int p = 0; p < plans->count && right; p++)
        right = prove_plan(one, &plans->plans[p]);
    evaluator_free(one->truth);
    return right;
}

/* Sums that factors wait for. */
static bool has_waiting(const FusionPlans *plans)
{
    bool found = false;
    for (int p = 0; p < plans->count; p++)
        for (int f = 0; f < plans->plans[p].count; f++)
            for (int i = 0; i < plans->plans[p].fusions[f]->op_count; i++)
                found |= plans->plans[p].fusions[f]->ops[i].out->id < 0;
    return found;
}

static void prove_number(Run *run, Arena *arena)
{
    enum { WIDE = 3 };
    static const InputKind kinds[] = {INPUT_REAL, INPUT_ROWS, INPUT_WHOLE, INPUT_DENORMAL};
    arena_reset(arena);
    Case one = {.run = run, .arena = arena, .text = generate_factors(arena, run->seed, run->number)};
    const Source *source = source_from_text(arena, "factors.te", one.text, strlen(one.text));
    one.program = lower(arena, parse(arena, lex(arena, source)), NULL, 0);
    FusionPlans plans = fuse(arena, one.program);
    run->programs++;
    run->waiting += has_waiting(&plans);
    bool right = true;
    for (int i = 0; i < WIDE + 4 && right; i++) {
        one.is_wide = i < WIDE;
        one.random = (RandomInputs){one.program, run->seed + 7 * run->number + (uint64_t)i, kinds[i < WIDE ? 0 : i - WIDE]};
        one.inputs = one.is_wide ? "wide inputs" : input_kind_name[one.random.kind];
        choose_centres(&one);
        right = prove(&one, &plans);
    }
}

// ---- the command line ----

static const struct argp_option options[] = {
    {"count", 'n', "N", 0, "how many programs (default 1)", 0},
    {"seed", 's', "N", 0, "of the generator", 0},
    {"first", 'f', "N", 0, "number of the first program", 0},
    {0},
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    Run *run = state->input;
    switch (key) {
    case 'n': run->count = strtoull(text, NULL, 10); return 0;
    case 's': run->seed = strtoull(text, NULL, 10); return 0;
    case 'f': run->first = strtoull(text, NULL, 10); return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* generate_factors() promises programs that compile. */
static void on_fatal(int exit_code, const char *message, void *context)
{
    const Run *run = context;
    printf("FAIL  program %" PRIu64 " of seed %" PRIu64 ": exit %d: %s\n", run->number, run->seed, exit_code, message);
    exit(1);
}

/* `name=count` words, which run_factors.py adds up. */
static void summarize(const Run *run)
{
    printf("programs=%" PRId64 " waiting=%" PRId64 " elements=%" PRId64 " legal=%" PRId64 " in_range=%" PRId64
           " failed=%" PRId64 "\n",
           run->programs, run->waiting, run->elements, run->legal, run->in_range, run->failures);
}

int main(int argc, char **argv)
{
    Run run = {.count = 1};
    argp_parse(&(struct argp){.options = options, .parser = parse_option}, argc, argv, 0, NULL, &run);
    diag_configure((DiagOptions){.quiet = true, .on_fatal = on_fatal, .context = &run});
    Arena *arena = arena_new();
    for (uint64_t i = 0; i < run.count; i++) {
        run.number = run.first + i;
        prove_number(&run, arena);
    }
    arena_free(arena);
    summarize(&run);
    return run.failures ? 1 : 0;
}
