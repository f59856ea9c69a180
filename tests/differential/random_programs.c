// Random programs through the whole compiler and the CPU interpreter, against the reference evaluator.
//
//   random_programs --count 2000 --seed 7                            programs 0 to 1999 of seed 7
//   random_programs --seed 7 --first 123 --device v100               program 123 alone, on one device
//   random_programs --seed 7 --first 123 --candidate 4               and one of its candidates
//   random_programs --seed 7 --first 123 --print                     what it is
//   random_programs --device random-31 --print-device > d.yaml       and the device
//
//   random_programs --count 100 --seed 7 --compile 10 --nvrtc 1      all ten candidates are compiled, by NVRTC, too
//
// Of each program one candidate or two are proven, not of one structure (their text without its numbers): first the one whose
// kind of kernel was proven least so far, then any. The last lines say how often each kind was.
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"
#include "differential/generate.h"
#include "differential/random_programs.h"

// ---- devices ----

/* random-1016 has two SMs that can do what an h200's can: small products fill them, so that blocks work in pairs. */
static const char *const devices[] = {"h200", "a100",      "h100", "mi50",    "v100",        "k80",    "random-1016",
                                      "h200", "rtx2080ti", "h100", "rtx3090", "random-1016", "rtx4090"};

/* Batches take the devices of devices/ and random ones in turn. */
static const char *device_of(Arena *arena, uint64_t batch)
{
    if (batch % 2 == 0)
        return devices[batch / 2 % (sizeof devices / sizeof *devices)];
    return arena_printf(arena, "random-%" PRIu64, batch / 2);
}

static const char *text_of_device(Arena *arena, const char *name)
{
    const char *prefix = "random-", *text = device_text(name);
    if (strncmp(name, prefix, strlen(prefix)) != 0)
        return text ? text : "";
    return generate_device(arena, strtoull(name + strlen(prefix), NULL, 10));
}

/* f32 products of every eighth batch may be rounded to tf32: on each device of devices/ in its turn. */
static EvalMath math_of(uint64_t batch) { return batch % 8 == 4 ? EVAL_TF32 : EVAL_EXACT; }

static DeviceSpec *read_device(Arena *arena, const char *name)
{
    const char *text = text_of_device(arena, name);
    if (!*text)
        return device_read(arena, name);
    return device_parse(arena, source_from_text(arena, name, text, strlen(text)));
}

// ---- batches ----

static void prove_numbers(Run *run, uint64_t first, uint64_t count)
{
    Arena *arena = arena_new();
    const DeviceSpec *device = read_device(arena, run->device ? run->device : device_of(arena, first / BATCH));
    run->math = math_of(first / BATCH);
    Subject *subjects = NEW_ARRAY(arena, Subject, (int64_t)count);
    Candidate **candidates = NEW_ARRAY(arena, Candidate *, (int64_t)count * (run->structures + 1));
    Candidate **ranked = NEW_ARRAY(arena, Candidate *, (int64_t)count * run->compile);
    int found = 0, ranked_count = 0;
    for (uint64_t i = 0; i < count; i++) {
        Subject *subject = &subjects[i];
        run->current = subject->number = first + i;
        if (!choose_candidates(run, arena, subject, device))
            continue;
        for (int c = 0; c < subject->count; c++)
            candidates[found++] = &subject->candidates[c];
        for (int c = 0; c < subject->ranked_count; c++)
            ranked[ranked_count++] = &subject->ranked[c];
    }
    compile(run, arena, ranked, ranked_count, device);
    run->kernels += found;
    if (found)
        prove(run, arena, candidates, found, device);
    arena_free(arena);
}

/* In a child: a bug that stops the compiler is a failure, too, and the next batch begins afresh. */
static void prove_apart(Run *run, uint64_t first, uint64_t count)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        prove_numbers(run, first, count);
        exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        run->failures++;
        printf("FAIL  the batch from %" PRIu64 " of seed %" PRIu64 " ends with status %d; program %" PRIu64
               " was compiled last\n",
               first, run->seed, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
               run->current);
    }
    run->programs += (int64_t)count;
}

// ---- the command line ----

static const struct argp_option options[] = {
    {"count", 'n', "N", 0, "how many programs (default 1)", 0},
    {"seed", 's', "N", 0, "of the generator", 0},
    {"first", 'f', "N", 0, "number of the first program", 0},
    {"device", 'd', "NAME", 0, "random-N, a device of devices/ or a file, instead of one after the other", 0},
    {"candidate", 'c', "N", 0, "only this one", 0},
    {"variant", 'v', "FAMILY/NAME", 0, "only one that has this kind of kernel", 0},
    {"structures", 't', "N", 0,
     "candidates of a program that are proven, at most (default 2); of every other one less; 0: none", 0},
    {"compile", 'k', "N", 0, "how many of each program's first candidates are compiled, too (default 1)", 0},
    {"nvrtc", 'j', "N", 0,
     "those of every Nth program by NVRTC, where it is and knows the device (default 0: none)", 0},
    {"moves", 'm', NULL, 0, "only programs of moves: views, elements as indices, quotients and remainders", 0},
    {"chains", 'a', NULL, 0, "only two products with a softmax between them", 0},
    {"joined", 'o', NULL, 0, "only concatenations", 0},
    {"print", 'p', NULL, 0, "only print the programs", 0},
    {"print-device", 'y', NULL, 0, "only print the device file", 0},
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
    case 'c': run->candidate = atoi(text); return 0;
    case 'v': run->variant = text; return 0;
    case 't': run->structures = atoi(text); return 0;
    case 'k': run->compile = atoi(text); return 0;
    case 'j': run->nvrtc = atoi(text); return 0;
    case 'm': run->kind = " --moves", run->generate = generate_moves; return 0;
    case 'a': run->kind = " --chains", run->generate = generate_chains; return 0;
    case 'o': run->kind = " --joined", run->generate = generate_joined_alone; return 0;
    case 'p': run->print = true; return 0;
    case 'y': run->print_device = true; return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

static void print_programs(const Run *run)
{
    Arena *arena = arena_new();
    for (uint64_t i = run->first; i < run->first + run->count; i++) {
        puts(text_of(arena, run, i));
        arena_reset(arena);
    }
    arena_free(arena);
}

static void print_device_file(const Run *run)
{
    Arena *arena = arena_new();
    const char *name = run->device ? run->device : device_of(arena, run->first / BATCH);
    fputs(text_of_device(arena, name), stdout);
    arena_free(arena);
}

static void print_counts(const Run *run)
{
    for (int v = 0; v < run->variant_count; v++)
        printf("proven %s/%s: %" PRId64 "\n", run->variants[v].family->name, run->variants[v].name,
               run->variants[v].proven);
    printf("seed %" PRIu64 ": %" PRId64 " programs, %" PRId64 " candidates, %" PRId64
           " elements compared, of these %" PRId64 " too close to call\n%" PRId64
           " first candidates compiled, %" PRId64 " by NVRTC\n%" PRId64 " refused, %" PRId64 " replaced, %" PRId64
           " failed\n",
           run->seed, run->programs, run->kernels, run->elements, run->unjudged, run->compiled,
           run->compiled_by_nvrtc, run->refused, run->replaced, run->failures);
}

int main(int argc, char **argv)
{
    Run *run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run == MAP_FAILED)
        fatal(EXIT_MACHINE, "out of memory");
    *run = (Run){.count = 1, .structures = 2, .compile = 1};
    argp_parse(&(struct argp){.options = options, .parser = parse_option}, argc, argv, 0, NULL, run);
    diag_configure((DiagOptions){.quiet = true, .on_fatal = on_fatal});
    if (run->print || run->print_device) {
        (run->print ? print_programs : print_device_file)(run);
        return 0;
    }
    list_variants(run);
    uint64_t end = run->first + run->count;
    for (uint64_t next, first = run->first; first < end; first = next) {
        next = (first / BATCH + 1) * BATCH < end ? (first / BATCH + 1) * BATCH : end;
        prove_apart(run, first, next - first);
    }
    print_counts(run);
    return run->failures ? 1 : 0;
}
