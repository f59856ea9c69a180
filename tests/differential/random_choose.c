#include <assert.h>
#include <ctype.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "differential/generate.h"
#include "differential/random_programs.h"
#include "front/lower.h"
#include "front/parse.h"

// ---- variants ----

void list_variants(Run *run)
{
    for (int f = 0; families[f]; f++)
        for (const char *const *name = families[f]->variants; *name; name++) {
            assert(run->variant_count < MOST_VARIANTS);
            run->variants[run->variant_count++] = (Variant){families[f], *name, 0};
        }
}

static Variant *variant_of(Run *run, const PlannedLaunch *launch)
{
    Variant *variant = run->variants;
    while (variant->family != launch->family || strcmp(variant->name, launch->rules->variant_name) != 0)
        variant++;
    return variant;
}

/* How often its rarest launch was proven. */
static int64_t rarity(Run *run, const Plan *plan)
{
    int64_t least = INT64_MAX;
    for (int k = 0; k < plan->count; k++) {
        int64_t proven = variant_of(run, &plan->launches[k])->proven;
        least = proven < least ? proven : least;
    }
    return least;
}

// ---- which candidates ----

/* Of the text without its numbers: FNV-1a. */
static uint64_t structure_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *c = text; *c; c++)
        if (!isdigit((unsigned char)*c))
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    return hash;
}

static Candidate make_candidate(Arena *arena, Subject *subject, const PlanList *plans, int rank,
                                const DeviceSpec *device)
{
    TemplateStore templates = {.arena = arena};
    Kernel *kernel = codegen_kernel(arena, &(CodegenRequest){
        .name = arena_printf(arena, "p%llu_%d", (unsigned long long)subject->number, rank + 1),
        .program = subject->program,
        .plan = &plans->plans[rank],
        .device = device,
        .templates = &templates,
        .rank = rank,
        .kept = plans->count,
    });
    return (Candidate){.subject = subject, .plan = &plans->plans[rank], .kernel = kernel, .rank = rank,
                       .structure = structure_of(kernel->behind_prelude)};
}

static bool is_chosen(const Subject *subject, const Candidate *candidate)
{
    bool chosen = false;
    for (int i = 0; i < subject->count; i++)
        chosen |= subject->candidates[i].structure == candidate->structure;
    return chosen;
}

static void add_candidate(Run *run, Subject *subject, const Candidate *candidate)
{
    subject->candidates[subject->count++] = *candidate;
    for (int k = 0; k < candidate->plan->count; k++)
        variant_of(run, &candidate->plan->launches[k])->proven++;
}

/* Of structures that are not chosen yet: the rarest, or any. False: there is none. */
static bool choose_next(Run *run, Subject *subject, const Candidate *all, int count, bool rarest, uint64_t start)
{
    const Candidate *best = NULL;
    for (int i = 0; i < count; i++) {
        const Candidate *candidate = &all[(start + (uint64_t)i) % (uint64_t)count];
        if (!is_chosen(subject, candidate) && (!best || (rarest && rarity(run, candidate->plan) < rarity(run, best->plan))))
            best = candidate;
    }
    if (best)
        add_candidate(run, subject, best);
    return best;
}

/* In turn the structure that was proven least, and any other. */
static void choose(Run *run, Subject *subject, const Candidate *all, int count)
{
    if (run->candidate) {
        if (run->candidate <= count)
            add_candidate(run, subject, &all[run->candidate - 1]);
        return;
    }
    uint64_t start = generate_hash(run->seed + subject->number);
    while (subject->count < run->structures && choose_next(run, subject, all, count, subject->count % 2 == 0, start))
        start = generate_hash(start);
}

// ---- the pipeline ----

static jmp_buf refusal;
static bool compiling;
static char refusal_message[2000];

void on_fatal(int exit_code, const char *message, void *context)
{
    (void)context;
    if (!compiling) {
        printf("random_programs: %s\n", message);
        exit(2);
    }
    snprintf(refusal_message, sizeof refusal_message, "exit %d: %s", exit_code, message);
    longjmp(refusal, 1);
}

bool choose_candidates(Run *run, Arena *arena, Subject *subject, const DeviceSpec *device)
{
    compiling = true;
    if (setjmp(refusal)) {
        compiling = false;
        run->refused++;
        report(run, subject, -1, device, "refused", refusal_message);
        return false;
    }
    subject->text = generate(arena, run->seed, subject->number);
    Source *source = source_from_text(arena, "random.te", subject->text, strlen(subject->text));
    subject->program = lower(arena, parse(arena, lex(arena, source)), NULL, 0);
    FusionPlans fusions = fuse(arena, subject->program);
    PlanList plans = plan_program(arena, &fusions, device, KEEP);
    if (!plans.count)
        fatal(EXIT_NO_PROGRAM, "the device can hold no program for this expression");
    subject->kept = plans.count;
    subject->candidates = NEW_ARRAY(arena, Candidate, plans.count);
    subject->elements = NEW_ARRAY(arena, int64_t, subject->program->output_count);
    subject->judged = NEW_ARRAY(arena, int64_t, subject->program->output_count);
    Candidate *all = NEW_ARRAY(arena, Candidate, plans.count);
    for (int rank = 0; rank < plans.count; rank++)
        all[rank] = make_candidate(arena, subject, &plans, rank, device);
    choose(run, subject, all, plans.count);
    compiling = false;
    return true;
}
