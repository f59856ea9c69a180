// A plan as steps: each is a fusion and the way in which it is computed. Whoever knows better than the model which ways are fast
// makes another plan of the same fusions.
#include "codegen/plan/steps.h"

#include "codegen/plan/choices.h"

int64_t step_bytes(const PlanStep *step) { return step->kept_bytes + choice_bytes(step->choice); }

double launches_overlap_us(const PlannedLaunch *launches, int count)
{
    const PlannedLaunch *only = NULL;
    for (int i = 0; i < count; i++)
        if (!fusion_is_prepared(launches[i].fusion)) {
            if (only)
                return 0;
            only = &launches[i];
        }
    return only ? only->program->perf.overlap_us : 0;
}

/* NAME_prepare's launches come first, in their order: they read nothing of a call's. */
static void settle_prepared(Arena *arena, Plan *plan)
{
    PlannedLaunch *calls = NEW_ARRAY(arena, PlannedLaunch, plan->count);
    int call_count = 0;
    for (int i = 0; i < plan->count; i++)
        if (fusion_is_prepared(plan->launches[i].fusion))
            plan->launches[plan->prepare_count++] = plan->launches[i];
        else
            calls[call_count++] = plan->launches[i];
    for (int i = 0; i < call_count; i++)
        plan->launches[plan->prepare_count + i] = calls[i];
}

static void add_step(Plan *plan, const PlanStep *step)
{
    for (int i = 0; i < step->choice->count; i++)
        plan->launches[plan->count++] = step->choice->launches[i];
    for (int i = 0; i < step->choice->partial_count; i++)
        plan->partial_ops[plan->partial_count++] = step->choice->partial_ops[i];
    plan->time_us += step->choice->time_us;
    plan->workspace_bytes = larger(plan->workspace_bytes, step_bytes(step));
}

Plan plan_of_steps(Arena *arena, const char *fusion_plan, const PlanStep *steps, int count, int64_t room)
{
    Plan plan = {.fusion_plan = fusion_plan, .steps = steps, .step_count = count};
    int launches = 0, partials = 0;
    for (int i = 0; i < count; i++) {
        launches += steps[i].choice->count;
        partials += steps[i].choice->partial_count;
    }
    plan.launches = NEW_ARRAY(arena, PlannedLaunch, launches);
    plan.partial_ops = NEW_ARRAY(arena, const TensorOp *, partials);
    for (int i = 0; i < count; i++)
        add_step(&plan, &steps[i]);
    plan.fits = plan.workspace_bytes <= room;
    settle_prepared(arena, &plan);
    plan.time_us -= launches_overlap_us(plan.launches, plan.count);
    return plan;
}

bool step_is_prepared(const PlanStep *step) { return choice_is_prepared(step->choice); }

int step_ways(Arena *arena, const PlanStep *step, const Target *target, int keep, PlanStep *ways)
{
    Planner planner = planner_new(arena, target, keep, true, INT64_MAX);
    ChoiceList choices = choices_of(&planner, step->fusion);
    int count = choices.count < keep ? choices.count : keep;
    for (int i = 0; i < count; i++)
        ways[i] = (PlanStep){step->fusion, choices.choices[i], step->kept_bytes, NULL};
    planner_free(&planner);
    return count;
}
