// Ways of computing a fusion in one launch, lists of ways, and ways in several launches made of them.
#include "codegen/plan/choices_parts.h"

#include <string.h>

Planner planner_new(Arena *arena, const Target *target, int keep, bool alone, int64_t room)
{
    return (Planner){
        .arena = arena,
        .choices = alone ? arena : arena_new(),
        .alone = alone,
        .passing = arena_new(),
        .drafting = arena_new(),
        .scratch = arena_new(),
        .target = target,
        .device = target->device,
        .families = families_of(target->device),
        .keep = keep,
        .room = room,
        .memo = construct_memo_new(arena, target, 2 * keep),
    };
}

void planner_free(Planner *planner)
{
    if (!planner->alone)
        arena_free(planner->choices);
    arena_free(planner->passing);
    arena_free(planner->drafting);
    arena_free(planner->scratch);
}

static bool comes_before(const Choice *left, const Choice *right)
{
    return left->time_us != right->time_us ? left->time_us < right->time_us : left->count < right->count;
}

int64_t choice_bytes(const Choice *choice)
{
    int64_t bytes = 0;
    for (int i = 0; i < choice->count; i++) {
        const Fusion *fusion = choice->launches[i].fusion;
        for (int k = 0; k < fusion->output_count; k++)
            if (fusion->outputs[k]->role == ROLE_TEMPORARY)
                bytes += round_up(tensor_bytes(fusion->outputs[k]), WORKSPACE_ALIGNMENT);
    }
    return bytes;
}

void choices_add(Planner *planner, ChoiceList *list, Choice choice)
{
    Arena *arena = planner->choices;
    if (list->count && choice_bytes(&choice) > planner->room && choice_bytes(list->choices[0]) <= planner->room)
        return;   // it cannot run, and would take the place of what can
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 16;
        Choice **grown = NEW_ARRAY(arena, Choice *, list->capacity);
        if (list->count)
            memcpy(grown, list->choices, sizeof(Choice *) * (size_t)list->count);
        list->choices = grown;
    }
    Choice *added = arena_copy(arena, &choice, sizeof choice);
    int at = list->count++;
    for (; at > 0 && comes_before(added, list->choices[at - 1]); at--)
        list->choices[at] = list->choices[at - 1];
    list->choices[at] = added;
}

static const RProgram *construct(Planner *planner, const ChoiceList *list, const KernelKind *kind, int *made)
{
    double known_us = list->count ? list->choices[0]->time_us : 0;
    arena_reset(planner->scratch);
    return construct_memo_ask(planner->memo, planner->scratch, planner->choices, kind, planner->series,
                              known_us, made, &planner->stats);
}

/* With the threads or blocks that a family adds to those of the program, a launch may have too many. */
static bool fits_a_launch(Planner *planner, const PlannedLaunch *launch)
{
    KernelPlan plan = {
        .fusion = launch->fusion,
        .kind = launch->kind,
        .program = launch->program,
        .threads = launch_threads(launch->family, launch->program, planner->device),
    };
    bool fits = launch_blocks(launch->family, &plan) <= device_most_blocks(planner->device, plan.threads);
    planner->stats.feasible -= !fits;
    planner->stats.pruned[PRUNE_GRID] += !fits;
    return fits;
}

static void add_family(Planner *planner, ChoiceList *list, const Family *family, Viewed *viewed)
{
    arena_reset(planner->drafting);
    KernelKind *drafts = arena_room(planner->drafting, MAX_VARIANTS * sizeof *drafts);
    int count = family_kinds(planner->drafting, family, viewed, drafts);
    const void *view = family_view(family, viewed);
    for (int v = 0; v < count; v++) {
        int made;
        drafts[v].space->unpadded = planner->target->without & PART_BANK_PADDING;
        const RProgram *programs = construct(planner, list, &drafts[v], &made);
        const KernelKind *kind = made ? kind_copy(planner->choices, &drafts[v]) : NULL;
        PlannedLaunch *launches = arena_room(planner->choices, (size_t)made * sizeof *launches);
        for (int i = 0; i < made; i++) {
            launches[i] = (PlannedLaunch){family, viewed->fusion, view, kind, &programs[i]};
            if (fits_a_launch(planner, &launches[i]))
                choices_add(planner, list,
                            (Choice){.launches = &launches[i], .count = 1, .time_us = planned_us(&launches[i])});
        }
    }
}

void choices_add_families(Planner *planner, ChoiceList *list, Viewed *viewed, uint64_t others)
{
    for (int f = 0; planner->families[f]; f++)
        if (!(others >> f & 1))
            add_family(planner, list, planner->families[f], viewed);
}

void choices_add_launches(Planner *planner, ChoiceList *list, const Fusion *fusion, uint64_t others)
{
    Viewed viewed = {.arena = planner->arena, .fusion = fusion, .target = planner->target};
    choices_add_families(planner, list, &viewed, others);
}

ChoiceList choices_single(Planner *planner, const Fusion *fusion)
{
    ChoiceList list = {0};
    choices_add_launches(planner, &list, fusion, planner->passed_over);
    return list;
}

/* The kind as it outlives others: one copy for all choices that hold them. */
static const KernelKind *retain_kind(Arena *arena, const ChoiceList *choices, const KernelKind *kind)
{
    for (int c = 0; c < choices->count; c++) {
        const Choice *choice = choices->choices[c];
        for (int i = 0; i < choice->count && choice->retained; i++)
            if (choice->launches[i].kind == kind)
                return choice->retained->launches[i].kind;
    }
    return kind_copy(arena, kind);
}

Choice *choice_retain(Arena *arena, const ChoiceList *choices, Choice *choice)
{
    if (choice->retained)
        return choice->retained;
    Choice *copy = arena_room(arena, sizeof *copy);
    *copy = *choice;
    size_t bytes = (size_t)choice->count * sizeof *choice->launches;
    PlannedLaunch *launches = memcpy(arena_room(arena, bytes), choice->launches, bytes);
    for (int i = 0; i < copy->count; i++) {
        launches[i].kind = retain_kind(arena, choices, choice->launches[i].kind);
        launches[i].program = arena_copy(arena, choice->launches[i].program, sizeof *launches[i].program);
    }
    copy->launches = launches;
    choice->retained = copy;
    return copy;
}

ChoiceList choices_best_of(Planner *planner, ChoiceList (*ways)(Planner *, const Fusion *), const Fusion *part,
                          int keep)
{
    Arena *lasting = planner->choices;
    planner->choices = planner->passing;
    ChoiceList all = ways(planner, part), best = {0};
    planner->choices = lasting;
    for (int i = 0; i < all.count && i < keep; i++)
        choices_add(planner, &best, *choice_retain(lasting, &all, all.choices[i]));
    arena_reset(planner->passing);
    return best;
}

/* The launch reads what an earlier one of the choice writes. */
static bool touches_earlier(const Choice *choice, const PlannedLaunch *launch)
{
    bool touches = false;
    for (int i = 0; i < choice->count; i++)
        for (int k = 0; k < choice->launches[i].fusion->output_count; k++)
            for (int n = 0; n < launch->fusion->input_count; n++)
                touches |= launch->fusion->inputs[n] == choice->launches[i].fusion->outputs[k];
    return touches;
}

/* What a launch behind those of the choice takes less than alone. One that reads nothing of theirs runs beside them
   (Launch.waits_last); others begin while the one before them ends (tuning-log 194). A lone warp finds a place beside any
   blocks and is there when they end (tuning-log 209). */
static double saved_us(const Planner *planner, const Choice *choice, const PlannedLaunch *launch)
{
    const PerfEstimate *perf = &launch->program->perf;
    if (!planner->device->has.early_launches || !choice->count || fusion_is_prepared(launch->fusion) ||
        fusion_is_prepared(choice->launches[choice->count - 1].fusion))
        return 0;
    if (!touches_earlier(choice, launch))
        return perf->wait_us + perf->launch_us;
    const PlannedLaunch *before = &choice->launches[choice->count - 1];
    if (before->family->copying_warps && before->program->perf.limiter == LIMIT_REGISTERS)   // all of an SM
        return 0;
    bool lone = launch->program->grid == 1 && launch->program->threads <= planner->device->warp_size;
    return (lone ? 2 : 1) * planner->device->early_launch_us;
}

Choice choice_extend(Planner *planner, Choice choice, const Choice *last)
{
    size_t bytes = (size_t)choice.count * sizeof *choice.launches;
    PlannedLaunch *launches = arena_room(planner->choices, bytes + sizeof *launches);
    double saved = saved_us(planner, &choice, &last->launches[0]);
    if (bytes)
        memcpy(launches, choice.launches, bytes);
    launches[choice.count++] = last->launches[0];
    choice.launches = launches;
    choice.time_us += last->time_us - saved;
    return choice;
}

int64_t choices_idle_sms(const Planner *planner, const PlannedLaunch *launch)
{
    int64_t dealt = launch->program->dealt;
    return 2 * (int64_t)planner->device->sm_count / (dealt ? dealt : 1);
}

bool choices_best_each(Planner *planner, Fusion *const *fusions, int count, Choice **best)
{
    for (int i = 0; i < count; i++) {
        ChoiceList ways = choices_best_of(planner, choices_single, fusions[i], 1);
        if (!ways.count)
            return false;
        best[i] = ways.choices[0];
    }
    return true;
}

Choice choice_extend_by_all(Planner *planner, Choice choice, Choice *const *more, int count)
{
    for (int i = 0; i < count; i++)
        choice = choice_extend(planner, choice, more[i]);
    return choice;
}
