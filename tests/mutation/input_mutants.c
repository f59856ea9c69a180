// Mutants of programs and device files through the whole compiler, to the text of kernels and the ranking. It is built
// with sanitizers; run_input_mutants.py runs it.
//
//   input_mutants --seed 7 --first 0 --count 5000 examples/*.te devices/*.yaml
//   input_mutants --seed 7 --first 123 --print …       mutant 123, and its device
//
// Only the program or the device may stop the pipeline: exit codes 1 and 3. All mutants go through one process. If one
// ends it, the parent, which shares a page with it, tells which one that was and goes on behind it.
#include <argp.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"
#include "codegen/codegen.h"
#include "front/lower.h"
#include "front/parse.h"
#include "ir/compose.h"
#include "ir/fuse.h"
#include "mutation/mutate.h"
#include "rank/candidates.h"
#include "rank/ranking.h"

enum {
    MAX_SEEDS = 1000,
    MAX_FAILURES = 20,   // then it ends: one bug has many mutants
    TICK_MS = 100,
    MAX_TICKS = 20,         // of CPU time for one mutant: 2 s, with sanitizers
    MAX_MEGABYTES = 1024,   // resident, with what the sanitizers need
    EXIT_SANITIZER = 99,
    EXIT_LIMIT = 98
};

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "exitcode=99:detect_leaks=0:quarantine_size_mb=16:allocator_may_return_null=1";   // 99: EXIT_SANITIZER
}

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) { return "exitcode=99:print_stacktrace=1"; }

// ---- seeds and mutants ----

typedef struct Seed {
    const char *path, *text;
    uint64_t hash;        // of the path's last part
    DeviceSpec *device;   // of a device file
} Seed;

typedef struct Seeds {
    Seed items[MAX_SEEDS];
    int count;
} Seeds;

typedef struct Mutant {
    uint64_t number;
    const char *program, *device_text;   // device_text NULL: `device` as it is
    const Seed *device;
    StrBuf done;   // what was changed
} Mutant;

/* The one that the number likes best: a new file takes its share of the numbers, the others keep theirs. */
static const Seed *choose_seed(const Seeds *seeds, uint64_t number)
{
    const Seed *best = seeds->items;
    for (int i = 1; i < seeds->count; i++)
        if (chance_hash(number ^ seeds->items[i].hash) > chance_hash(number ^ best->hash))
            best = &seeds->items[i];
    return best;
}

typedef struct Run {
    uint64_t seed, first, count;
    bool print;
    Seeds programs, devices;
} Run;

static Mutant mutant_make(Arena *arena, const Run *run, uint64_t number)
{
    uint64_t state = chance_hash(chance_hash(run->seed) + number);
    Chance of_program = {chance_hash(state + 1)}, of_device = {chance_hash(state + 2)};
    const Seed *program = choose_seed(&run->programs, state);
    const Seed *other = choose_seed(&run->programs, of_program.state);
    Mutant mutant = {
        .number = number, .device = choose_seed(&run->devices, state), .done = strbuf_new(arena)};
    strbuf_puts(&mutant.done, program->path);
    mutant.program = mutate_program(arena, of_program, program->text, other->text, &mutant.done);
    strbuf_printf(&mutant.done, "; %s", mutant.device->path);
    if (percent(&of_device, 20))
        mutant.device_text = mutate_device(arena, of_device, mutant.device->text, &mutant.done);
    return mutant;
}

// ---- the pipeline ----

static jmp_buf refusal;
static int refused_with;   // an exit code
static bool compiling;

typedef struct Shared {
    uint64_t number;   // of the mutant at hand
    int64_t compiled, rejected;
    char why[1000];   // it ended with another code, or beyond a limit
} Shared;

static Shared *shared;
static volatile sig_atomic_t ticks;

static void on_fatal(int exit_code, const char *message, void *context)
{
    (void)context;
    if (!compiling) {
        fprintf(stderr, "input_mutants: %s\n", message);
        exit(2);
    }
    snprintf(shared->why, sizeof shared->why, "exit %d: %s", exit_code, message);
    refused_with = exit_code;
    longjmp(refusal, 1);
}

static void print_stages(Arena *arena, const Token *tokens, const Ast *ast, const Program *program)
{
    StrBuf out = strbuf_new(arena);
    tokens_print(&out, tokens);
    ast_print(&out, ast);
    program_print(&out, program);
}

static void print_plans(Arena *arena, const FusionPlans *fusions, const Target *target,
                        const PlanList *plans)
{
    StrBuf out = strbuf_new(arena);
    fusion_plans_print(&out, fusions);
    plan_families_print(&out, fusions, target, plans);
    device_print(&out, target->device);
    plan_kinds_print(&out, fusions, target);
    plan_list_print(&out, plans);
}

/* The driver's pipeline, with all that can be asked of it without another program. */
static void compile_mutant(Arena *arena, const Mutant *mutant)
{
    const char *text = mutant->device_text;
    const DeviceSpec *device =
        !text ? mutant->device->device
              : device_parse(arena, source_from_text(arena, "m.yaml", text, strlen(text)));
    Source *source = source_from_text(arena, "m.te", mutant->program, strlen(mutant->program));
    Token *tokens = lex(arena, source);
    Ast *ast = parse(arena, tokens);
    Program *program = lower(arena, ast, NULL, 0);
    Program *composed = compose(arena, program);
    FusionPlans fusions = fuse(arena, composed);
    RankingOptions options = {.name = "m"};
    options.top_k = mutant->number % 4 ? 10 : 1;
    const Target target = {.device = device, .math = EVAL_EXACT};
    PlanList plans = plan_program(arena, &fusions, &target, options.top_k);
    if (!plans.count && device_is_ranked_only(device))   // nor do kernels of more than 24 tensors fit (MAX_DATA_TILES)
        fatal(EXIT_INPUT, "an IPU has no memory but that of its tiles");
    if (!plans.count)
        fatal(EXIT_NO_PROGRAM, "the device can hold no program for this expression");
    if (mutant->number % 8 == 0) {
        print_stages(arena, tokens, ast, program);
        print_plans(arena, &fusions, &target, &plans);
    }
    CandidateList candidates = candidates_of_plans(arena, &plans);
    TemplateStore templates = {.arena = arena};
    CodegenRequest base = {.name = "m",
                           .program = composed,
                           .device = device,
                           .templates = &templates,
                           .fast_math = mutant->number % 16 == 1};
    if (!device_is_ranked_only(device)) {
        candidates_write(arena, &candidates, 0, 1, &base);
        candidates_write(arena, &candidates, (int)(mutant->number % (uint64_t)candidates.count), 1, &base);
        codegen_header(arena, candidates.items->kernel);
        candidates_sort(&candidates);
    }
    const PartList none = {0};
    StrBuf expr = strbuf_new(arena);
    ast_print_source(&expr, ast, NULL, 0);
    ranking_json(arena, &(Ranking){.options = &options, .expr = expr.text, .program = composed, .device = device, .stats = &plans.stats,
                                   .templates = &templates, .candidates = &candidates, .parts = &none, .emitted = candidates.items});
}

static int exit_code_of(Arena *arena, const Mutant *mutant)
{
    compiling = true;
    refused_with = EXIT_DONE;
    if (!setjmp(refusal))
        compile_mutant(arena, mutant);
    compiling = false;
    return refused_with;
}

// ---- the process that compiles ----

static void on_tick(int signal)
{
    (void)signal;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    if (!compiling || (++ticks < MAX_TICKS && usage.ru_maxrss / 1024 < MAX_MEGABYTES))
        return;
    strcpy(shared->why, ticks < MAX_TICKS ? "too much memory" : "too slow");
    _exit(EXIT_LIMIT);
}

/* False: not the user's fault. Every legal program has a kernel on every legal device that has one at all. */
static bool count_exit(int code)
{
    shared->compiled += code == EXIT_DONE;
    shared->rejected += code == EXIT_INPUT;
    if (code == EXIT_NO_PROGRAM)
        strcpy(shared->why, "no kernel for this device");
    return code == EXIT_DONE || code == EXIT_INPUT;
}

static _Noreturn void compile_numbers(const Run *run, uint64_t first)
{
    signal(SIGPROF, on_tick);
    struct timeval tick = {.tv_usec = TICK_MS * 1000};
    setitimer(ITIMER_PROF, &(struct itimerval){tick, tick}, NULL);
    for (uint64_t number = first; number < run->first + run->count; number++) {
        Arena *arena = arena_new();
        shared->number = number;
        shared->why[0] = '\0';
        ticks = 0;
        Mutant mutant = mutant_make(arena, run, number);
        int code = exit_code_of(arena, &mutant);
        arena_free(arena);
        if (!count_exit(code))
            _exit(EXIT_LIMIT);
    }
    _exit(0);
}

// ---- its parent ----

static const char *why_it_ended(Arena *arena, int status)
{
    if (WIFSIGNALED(status))
        return arena_printf(arena, "%s",
                            WTERMSIG(status) == SIGABRT ? "assert" : strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) == EXIT_LIMIT)
        return shared->why;
    return WEXITSTATUS(status) == EXIT_SANITIZER ? "sanitizer"
                                                 : arena_printf(arena, "status %d", WEXITSTATUS(status));
}

static void print_mutant(const Mutant *mutant)
{
    printf("# %s\n%s", mutant->done.text, mutant->program);
    if (mutant->device_text)
        printf("---\n%s", mutant->device_text);
}

static void report(const Run *run, int status)
{
    Arena *arena = arena_new();
    Mutant mutant = mutant_make(arena, run, shared->number);
    printf("FAIL  mutant %" PRIu64 " of seed %" PRIu64 ": %s\n"
           "      again: tests/run_input_mutants.py --rollerc build/rollerc --seed %" PRIu64
           " --first %" PRIu64 " --count 1\n",
           mutant.number, run->seed, why_it_ended(arena, status), run->seed, mutant.number);
    mutant.device_text = NULL;   // what was changed says enough
    print_mutant(&mutant);
    fflush(stdout);
    arena_free(arena);
}

/* A process for the mutants from `first` on; its status. */
static int compile_apart(const Run *run, uint64_t first)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        compile_numbers(run, first);
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("input_mutants");
        exit(2);
    }
    return status;
}

static int compile_all(const Run *run)
{
    uint64_t first = run->first, end = first + run->count;
    int failures = 0;
    for (; first < end && failures < MAX_FAILURES; first = shared->number + 1) {
        int status = compile_apart(run, first);
        if (status == 0)
            break;
        report(run, status);
        failures++;
    }
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    printf("%" PRId64 " compiled, %" PRId64 " rejected, %d failures; %ld s of CPU time, at most %ld MB\n",
           shared->compiled, shared->rejected, failures,
           (long)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec), usage.ru_maxrss / 1024);
    return failures != 0;
}

// ---- the command line ----

static const struct argp_option options[] = {
    {"count", 'n', "N", 0, "how many mutants (default 1)", 0},
    {"seed", 's', "N", 0, "of all choices", 0},
    {"first", 'f', "N", 0, "number of the first mutant", 0},
    {"print", 'p', NULL, 0, "only print the mutants", 0},
    {0},
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    Run *run = state->input;
    switch (key) {
    case 'n': run->count = strtoull(text, NULL, 10); return 0;
    case 's': run->seed = strtoull(text, NULL, 10); return 0;
    case 'f': run->first = strtoull(text, NULL, 10); return 0;
    case 'p': run->print = true; return 0;
    case ARGP_KEY_ARG: {
        const char *ending = strrchr(text, '.');
        Seeds *seeds = ending && strcmp(ending, ".yaml") == 0 ? &run->devices : &run->programs;
        if (seeds->count == MAX_SEEDS)
            argp_error(state, "more than %d files", MAX_SEEDS);
        seeds->items[seeds->count++].path = text;
        return 0;
    }
    case ARGP_KEY_END:
        if (!run->programs.count || !run->devices.count)
            argp_error(state, "programs and devices are wanted");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0;
    while (*text)
        hash = chance_hash(hash + (unsigned char)*text++);
    return hash;
}

static void read_seeds(Arena *arena, Seeds *seeds, bool devices)
{
    for (Seed *seed = seeds->items; seed < seeds->items + seeds->count; seed++) {
        const char *slash = strrchr(seed->path, '/');
        const Source *source = source_read(arena, seed->path);
        seed->text = source->text;
        seed->hash = hash_text(slash ? slash + 1 : seed->path);
        seed->device = devices ? device_parse(arena, source) : NULL;
    }
}

int main(int argc, char **argv)
{
    static Run run = {.count = 1};
    const struct argp parser = {
        .options = options, .parser = parse_option, .args_doc = "PROGRAM.te… DEVICE.yaml…"};
    argp_parse(&parser, argc, argv, 0, NULL, &run);
    diag_configure((DiagOptions){.quiet = true, .on_fatal = on_fatal});
    Arena *arena = arena_new();
    read_seeds(arena, &run.programs, false);
    read_seeds(arena, &run.devices, true);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        fatal(EXIT_MACHINE, "out of memory");
    int result = 0;
    for (uint64_t i = 0; i < run.count && run.print; i++) {
        Mutant mutant = mutant_make(arena, &run, run.first + i);
        print_mutant(&mutant);
    }
    if (!run.print)
        result = compile_all(&run);
    arena_free(arena);
    return result;
}
