// Which kernels of a random program are proven: of the candidates that the driver would keep, and of kinds that are
// rarely among them.
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "codegen/family/rows/passes.h"
#include "ir/compose.h"
#include "differential/generate.h"
#include "differential/random_programs.h"
#include "front/lower.h"
#include "front/parse.h"

enum {
    RANKED = 10,   // candidates that the driver keeps;
    KEEP = 20,     // twice as many: some kinds of kernels are seldom the best
    TRIES = 5,   // programs until one proves something
    FEW = 4      // proofs of a kind of kernel, which comes first until it has them
};

// ---- variants ----

void list_variants(Run *run)
{
    for (int f = 0; families[f]; f++)
        for (const char *const *name = families[f]->variants; *name; name++) {
            assert(run->variant_count < MOST_VARIANTS);
            run->variants[run->variant_count++] = (Variant){.family = families[f], .name = *name};
        }
}

static Variant *variant_named(Run *run, const Family *family, const char *name)
{
    Variant *variant = run->variants;
    while (variant->family != family || strcmp(variant->name, name) != 0)
        variant++;
    return variant;
}

static Variant *variant_of(Run *run, const PlannedLaunch *launch)
{
    return variant_named(run, launch->family, launch->kind->name);
}

/* Addresses are made in another way for each: how often the variant was proven under more or fewer axes, and keeping
   statistics beside elements or not. */
static int64_t *proven_alike(Run *run, const PlannedLaunch *launch)
{
    const Fusion *fusion = launch->fusion;
    int axes = fusion->spatial_count < MOST_AXES ? fusion->spatial_count : MOST_AXES;
    bool elements = false, statistics = false;
    for (int i = 0; i < fusion->op_count; i++) {
        bool of_elements = fusion_is_of_elements(fusion, &fusion->ops[i]);
        elements |= fusion->ops[i].stored && of_elements;
        statistics |= fusion->ops[i].stored && !of_elements;
    }
    return &variant_of(run, launch)->proven_alike[axes][elements && statistics];
}

/* How often its rarest launch was proven. */
static int64_t rarity(Run *run, const Plan *plan)
{
    int64_t least = INT64_MAX;
    for (int k = 0; k < plan->count; k++) {
        int64_t proven = *proven_alike(run, &plan->launches[k]);
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

/* What there is to choose from. */
typedef struct Choices {
    Arena *arena;
    Subject *subject;
    const FusionPlans *fusions;
    const PlanList *plans;
    const DeviceSpec *device;
    const Target *target;
} Choices;

static Candidate make_candidate(const Choices *of, const Plan *plan, int rank, const char *variant)
{
    TemplateStore templates = {.arena = of->arena};
    Kernel *kernel = codegen_kernel(
        of->arena, &(CodegenRequest){
                       .name = arena_printf(of->arena, "p%" PRIu64 "_%d", of->subject->number, rank + 1),
                       .program = of->subject->composed,
                       .plan = plan,
                       .device = of->device,
                       .templates = &templates,
                       .rank = rank,
                       .kept = of->plans->count,
                   });
    return (Candidate){.subject = of->subject,
                       .plan = plan,
                       .kernel = kernel,
                       .rank = rank,
                       .variant = variant,
                       .structure = structure_of(kernel->without_prelude)};
}

static bool has_structure(const Subject *subject, uint64_t structure)
{
    bool found = false;
    for (int i = 0; i < subject->count; i++)
        found |= subject->candidates[i].structure == structure;
    return found;
}

static void add_candidate(Run *run, Subject *subject, Candidate candidate)
{
    subject->candidates[subject->count++] = candidate;
    for (int k = 0; k < candidate.plan->count; k++) {
        variant_of(run, &candidate.plan->launches[k])->proven++;
        ++*proven_alike(run, &candidate.plan->launches[k]);
    }
}

// ---- kinds of kernels that the model prefers only for programs too large to be proven here ----

/* A launch of the family, of the variant if one is named. */
static bool launch_of(const Choices *of, const Fusion *fusion, const Family *family, const char *name,
                      PlannedLaunch *launch)
{
    ConstructStats stats = {0};
    KernelKind *kinds = arena_room(of->arena, MAX_VARIANTS * sizeof *kinds);
    Viewed viewed = {.arena = of->arena, .fusion = fusion, .target = of->target};
    int count = family_kinds(of->arena, family, &viewed, kinds);
    for (int v = 0; v < count; v++) {
        if (name && strcmp(kinds[v].name, name) != 0)
            continue;
        RProgram *program = NEW(of->arena, RProgram);
        *launch = (PlannedLaunch){family, fusion, family_view(family, &viewed), &kinds[v], program};
        if (rprogram_construct(of->arena, &kinds[v], &(Target){.device = of->device}, 0, 1, program, &stats) > 0)
            return true;
    }
    return false;
}

static bool any_launch(const Choices *of, const Fusion *fusion, PlannedLaunch *launch)
{
    for (int f = 0; families[f]; f++)
        if (launch_of(of, fusion, families[f], NULL, launch))
            return true;
    return false;
}

/* A plan with launches of the variant wherever it can be; NULL: nowhere. */
static Plan *plan_with(const Choices *of, const Variant *variant)
{
    for (int p = 0; p < of->fusions->count; p++) {
        const FusionPlan *fusions = &of->fusions->plans[p];
        Plan *plan = NEW(of->arena, Plan);
        *plan = (Plan){.fusion_plan = fusions->name,
                       .launches = NEW_ARRAY(of->arena, PlannedLaunch, fusions->count)};
        bool found = false, whole = true;
        for (; plan->count < fusions->count && whole; plan->count++) {
            PlannedLaunch *launch = &plan->launches[plan->count];
            const Fusion *fusion = fusions->fusions[plan->count];
            bool wanted = launch_of(of, fusion, variant->family, variant->name, launch);
            found |= wanted;
            whole = wanted || any_launch(of, fusion, launch);
        }
        if (found && whole)
            return plan;
    }
    return NULL;
}

/* One bit a variant: some family offers it for some fusion. */
static uint64_t offered(Run *run, const Choices *of)
{
    uint64_t found = 0;
    KernelKind *kinds = arena_room(of->arena, MAX_VARIANTS * sizeof *kinds);
    for (int p = 0; p < of->fusions->count; p++)
        for (int k = 0; k < of->fusions->plans[p].count; k++) {
            Viewed viewed = {.arena = of->arena, .fusion = of->fusions->plans[p].fusions[k], .target = of->target};
            for (int f = 0; families[f]; f++) {
                int count = family_kinds(of->arena, families[f], &viewed, kinds);
                for (int v = 0; v < count; v++)
                    found |= UINT64_C(1)
                             << (variant_named(run, families[f], kinds[v].name) - run->variants);
            }
        }
    return found;
}

/* The rarest of which there can be a launch, if fewer than `most` of it were proven. */
static void add_rare(Run *run, const Choices *of, int64_t most)
{
    for (uint64_t found = offered(run, of); found;) {
        int rarest = -1;
        for (int v = 0; v < run->variant_count; v++)
            if (found >> v & 1 && run->variants[v].proven < (rarest < 0 ? most : run->variants[rarest].proven))
                rarest = v;
        if (rarest < 0)
            return;
        const Variant *variant = &run->variants[rarest];
        const char *name = arena_printf(of->arena, "%s/%s", variant->family->name, variant->name);
        const Plan *plan = plan_with(of, variant);
        if (plan) {
            add_candidate(run, of->subject, make_candidate(of, plan, -1, name));
            return;
        }
        found &= ~(UINT64_C(1) << rarest);
    }
}

// ---- the choice ----

/* Of those that were not tried yet: the rarest, or any; -1: none is left. */
static int next_rank(Run *run, const PlanList *plans, unsigned tried, bool rarest, uint64_t start)
{
    int best = -1;
    for (int i = 0; i < plans->count; i++) {
        int rank = (int)((start + (uint64_t)i) % (uint64_t)plans->count);
        bool better =
            best < 0 || (rarest && rarity(run, &plans->plans[rank]) < rarity(run, &plans->plans[best]));
        if (!(tried >> rank & 1) && better)
            best = rank;
    }
    return best;
}

/* With a kind of kernel that has not its FEW proofs: parts of a plan have kinds that add_rare() cannot make alone. */
static int next_with_few(Run *run, const PlanList *plans, unsigned tried)
{
    for (int rank = 0; rank < plans->count; rank++)
        for (int k = 0; k < plans->plans[rank].count; k++)
            if (!(tried >> rank & 1) && variant_of(run, &plans->plans[rank].launches[k])->proven < FEW)
                return rank;
    return -1;
}

/* In turn the candidate whose kinds of kernels were proven least, and any other; of every other program one less. */
static void choose_kept(Run *run, const Choices *of)
{
    int most = run->structures > 1 ? run->structures - (int)(of->subject->number % 2) : run->structures;
    uint64_t start = generate_hash(run->seed + of->subject->number);
    unsigned tried = 0;
    for (int tries = 0; tries < KEEP && of->subject->count < most; tries++) {
        int rank = next_with_few(run, of->plans, tried);
        if (rank < 0)
            rank = next_rank(run, of->plans, tried, of->subject->count % 2 == 0, start);
        if (rank < 0)
            return;
        tried |= 1u << rank;
        start = generate_hash(start);
        Candidate candidate = make_candidate(of, &of->plans->plans[rank], rank, NULL);
        if (!has_structure(of->subject, candidate.structure))
            add_candidate(run, of->subject, candidate);
    }
}

/* Planned anew: where twice as many are kept, another one is the first of one program in forty. */
static void choose_ranked(const Run *run, Choices of)
{
    PlanList ranked = plan_program(of.arena, of.fusions, of.target, RANKED);
    Subject *subject = of.subject;
    subject->ranked = NEW_ARRAY(of.arena, Candidate, ranked.count);
    of.plans = &ranked;
    for (int rank = 0; rank < run->compile && rank < ranked.count; rank++)
        subject->ranked[subject->ranked_count++] = make_candidate(&of, &ranked.plans[rank], rank, NULL);
}

static void choose(Run *run, const Choices *of)
{
    const PlanList *plans = of->plans;
    for (int v = 0; run->variant && v < run->variant_count; v++) {
        const Variant *variant = &run->variants[v];
        const char *name = arena_printf(of->arena, "%s/%s", variant->family->name, variant->name);
        const Plan *plan = strcmp(name, run->variant) == 0 ? plan_with(of, variant) : NULL;
        if (plan)
            add_candidate(run, of->subject, make_candidate(of, plan, -1, name));
    }
    if (run->candidate > 0 && run->candidate <= plans->count)
        add_candidate(run, of->subject,
                      make_candidate(of, &plans->plans[run->candidate - 1], run->candidate - 1, NULL));
    if (run->variant || run->candidate || !run->structures)
        return;
    int64_t least = INT64_MAX;
    for (int i = 0; i < plans->count; i++)
        for (int k = 0; k < plans->plans[i].count; k++) {
            int64_t proven = variant_of(run, &plans->plans[i].launches[k])->proven;
            least = proven < least ? proven : least;
        }
    add_rare(run, of, least < FEW ? FEW : least);
    choose_kept(run, of);
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

/* What has no values but NaN proves nothing: the program 2^32 further on stands in for it. */
static bool choose_program(Run *run, Arena *arena, Subject *subject)
{
    for (int t = 0; t < TRIES; t++, subject->number += UINT64_C(1) << 32) {
        subject->text = text_of(arena, run, subject->number);
        Source *source = source_from_text(arena, "random.te", subject->text, strlen(subject->text));
        subject->program = lower(arena, parse(arena, lex(arena, source)), NULL, 0);
        if (set_expected(run, arena, subject))
            return true;
        run->replaced++;
    }
    return false;
}

static bool is_random_device(const DeviceSpec *device) { return strcmp(device->title, "random device") == 0; }

bool choose_candidates(Run *run, Arena *arena, Subject *subject, const DeviceSpec *device)
{
    compiling = true;
    if (setjmp(refusal)) {
        compiling = false;
        run->refused++;
        report(run, subject, "", device, "refused", refusal_message);
        return false;
    }
    if (!choose_program(run, arena, subject))
        fatal(EXIT_BUG, "it proves little, and so do those that could stand in for it");
    subject->composed = compose(arena, subject->program);
    FusionPlans fusions = fuse(arena, subject->composed);
    const Target target = {.device = device, .math = run->math};
    PlanList plans = plan_program(arena, &fusions, &target, KEEP);
    if (!plans.count && is_random_device(device)) {   // of 78 registers a thread, say, 32 points of a one-bit output are too many
        run->replaced++;
        compiling = false;
        return false;
    }
    if (!plans.count)
        fatal(EXIT_NO_PROGRAM, "the device can hold no program for this expression");
    subject->candidates = NEW_ARRAY(arena, Candidate, run->structures + 1);
    const Choices choices = {arena, subject, &fusions, &plans, device, &target};
    if (run->compile && !run->variant && !run->candidate)
        choose_ranked(run, choices);
    choose(run, &choices);
    compiling = false;
    return true;
}
