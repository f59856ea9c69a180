// What `-d rtile`, `-d rprogram` and the end of `-d fusion` show.
#include <inttypes.h>

#include "codegen/plan/plan.h"
#include "kernel/schedule/print.h"

void plan_kinds_print(StrBuf *out, const FusionPlans *fusions, const Target *target)
{
    Arena *scratch = arena_new();
    const Family *const *served_by = families_of(target->device);
    KernelKind *variants = arena_room(out->arena, MAX_VARIANTS * sizeof *variants);
    for (int p = 0; p < fusions->count; p++)
        for (int k = 0; k < fusions->plans[p].count; k++) {
            Viewed viewed = {.arena = out->arena, .fusion = fusions->plans[p].fusions[k], .target = target};
            for (int f = 0; served_by[f]; f++) {
                arena_reset(scratch);
                int count = family_kinds(scratch, served_by[f], &viewed, variants);
                for (int v = 0; v < count; v++) {
                    strbuf_printf(out, "plan %s, kernel %d through %s (%s)\n", fusions->plans[p].name, k,
                                  served_by[f]->name, variants[v].name);
                    kind_print(out, &variants[v]);
                }
            }
        }
    arena_free(scratch);
}

void plan_list_print(StrBuf *out, const PlanList *list)
{
    for (int i = 0; i < list->count; i++) {
        const Plan *plan = &list->plans[i];
        strbuf_printf(out, "candidate %d: %.3f us, plan %s\n", i + 1, plan->time_us, plan->fusion_plan);
        for (int k = 0; k < plan->count; k++) {
            const PlannedLaunch *launch = &plan->launches[k];
            strbuf_printf(out, "  kernel %d through %s (%s)\n", k, launch->family->name, launch->kind->name);
            rprogram_print(out, launch->kind, launch->program);
        }
    }
    strbuf_printf(out, "generated %" PRId64 ", feasible %" PRId64 "\n", list->stats.generated,
                  list->stats.feasible);
}

Counts planned_counts(Arena *arena, const PlannedLaunch *launch, const DeviceSpec *device, bool last)
{
    CountedBlock block = {
        .shared = &launch->program->tile[LEVEL_SHARED],
        .inner = &launch->program->tile[LEVEL_REGISTER],
        .threads = launch_threads(launch->family, launch->program, device),
        .turns = launch->program->turns,
        .grid = launch->program->grid,
        .panel = launch->program->panel,
        .last = last,
        .work = launch->family->work,
        .view = launch->view,
    };
    return schedule_count(arena, launch->kind, launch->fusion, device, &block);
}

void plan_schedules_print(StrBuf *out, const Plan *plan, const DeviceSpec *device)
{
    for (int k = 0; k < plan->count; k++) {
        const PlannedLaunch *launch = &plan->launches[k];
        strbuf_printf(out, "kernel %d through %s\n", k, launch->family->name);
        schedule_print(out, launch->kind, launch->fusion, pace_name[perf_cost(launch->kind)->pace]);
        for (int last = 0; last < 2; last++) {
            Counts counts = planned_counts(out->arena, launch, device, last);
            strbuf_printf(out, "  %s block\n", last ? "last" : "first");
            counts_print(out, launch->kind->space, &counts);
        }
    }
}

const char *plan_schedule_text(Arena *arena, const PlannedLaunch *launch)
{
    StrBuf text = strbuf_new(arena);
    schedule_print_short(&text, launch->kind, launch->fusion);
    return text.text;
}

static void matching_families_print(StrBuf *out, const Fusion *fusion, const Target *target)
{
    Arena *scratch = arena_new();
    const Family *const *served_by = families_of(target->device);
    KernelKind *variants = arena_room(scratch, MAX_VARIANTS * sizeof *variants);
    Viewed viewed = {.arena = out->arena, .fusion = fusion, .target = target};
    int shown = 0;
    for (int f = 0; served_by[f]; f++)
        if (family_kinds(scratch, served_by[f], &viewed, variants))
            strbuf_printf(out, "%s%s", shown++ ? ", " : "", served_by[f]->name);
    strbuf_puts(out, shown ? "" : "no family alone");
    arena_free(scratch);
}

void plan_families_print(StrBuf *out, const FusionPlans *fusions, const Target *target, const PlanList *list)
{
    for (int p = 0; p < fusions->count; p++)
        for (int k = 0; k < fusions->plans[p].count; k++) {
            strbuf_printf(out, "plan %s, kernel %d can go through ", fusions->plans[p].name, k);
            matching_families_print(out, fusions->plans[p].fusions[k], target);
            strbuf_puts(out, "\n");
        }
    if (!list->count)
        return;
    strbuf_printf(out, "best: plan %s", list->plans[0].fusion_plan);
    for (int k = 0; k < list->plans[0].count; k++)
        strbuf_printf(out, "%s through %s", ",", list->plans[0].launches[k].family->name);
    strbuf_puts(out, "\n");
}
