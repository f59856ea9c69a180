#include "codegen/plan/others.h"

#include <string.h>

#include "codegen/plan/diverse.h"
#include "codegen/plan/steps.h"

/* In the place of a step of the first plan. */
typedef struct Other {
    int at;
    PlanStep step;
    double more_us;   // than the plan's own
} Other;

const ChoiceList *ways_of_families(Planner *planner, const ChoiceList *choices)
{
    ChoiceList *list = NEW(planner->arena, ChoiceList);
    list->choices = NEW_ARRAY(planner->arena, Choice *, choices->count);
    list->count = best_of_families(choices, list->choices);
    for (int i = 0; i < list->count; i++)
        list->choices[i] = choice_retain(planner->arena, choices, list->choices[i]);
    return list;
}

/* The step that computes it; NULL: none. Of plans with the same fusions all have it at the same place. */
static const PlanStep *step_of_fusion(const Plan *plan, const Fusion *fusion, int at)
{
    if (at < plan->step_count && plan->steps[at].fusion == fusion)
        return &plan->steps[at];
    int s = 0;
    while (s < plan->step_count && plan->steps[s].fusion != fusion)
        s++;
    return s < plan->step_count ? &plan->steps[s] : NULL;
}

bool plan_has_family(const Plan *plan, const PlanStep *step, int at)
{
    const PlanStep *own = step_of_fusion(plan, step->fusion, at);
    return own && choice_same_family(own->choice, step->choice);
}

static bool is_met(const Plan *plans, int count, const PlanStep *step, int at)
{
    int i = 0;
    while (i < count && !plan_has_family(&plans[i], step, at))
        i++;
    return i < count;
}

/* Inserts in order of time; keeps at most `most`. */
static int insert_other(Other *others, int count, int most, Other other)
{
    int at = count;
    while (at > 0 && other.more_us < others[at - 1].more_us)
        at--;
    if (at >= most)
        return count;
    int last = count < most ? count : most - 1;
    memmove(others + at + 1, others + at, sizeof(Other) * (size_t)(last - at));
    others[at] = other;
    return last + 1;
}

static int others_of(const Plan *plans, int count, int most, Other *others)
{
    int found = 0;
    for (int at = 0; at < plans->step_count; at++) {
        PlanStep step = plans->steps[at];
        double own_us = step.choice->time_us;
        for (int i = 0; step.families && i < step.families->count; i++) {
            step.choice = step.families->choices[i];
            if (!is_met(plans, count, &step, at))
                found = insert_other(others, found, most, (Other){at, step, step.choice->time_us - own_us});
        }
    }
    return found;
}

static Plan plan_with(Arena *arena, const Plan *plan, const Other *other, int64_t room)
{
    PlanStep *steps = NEW_ARRAY(arena, PlanStep, plan->step_count);
    memcpy(steps, plan->steps, sizeof(PlanStep) * (size_t)plan->step_count);
    steps[other->at] = other->step;
    return plan_of_steps(arena, plan->fusion_plan, steps, plan->step_count, room);
}

static bool plan_goes_before(const Plan *left, const Plan *right)
{
    return left->fits == right->fits ? left->time_us < right->time_us : left->fits;
}

int add_other_families(Arena *arena, Plan *plans, int count, int most, int64_t room)
{
    if (!count || !most)
        return count;
    Other *others = NEW_ARRAY(arena, Other, most);
    int found = others_of(plans, count, most, others);
    Plan best = plans[0];
    for (int i = 0; i < found; i++) {
        Plan plan = plan_with(arena, &best, &others[i], room);
        int at = count++;
        for (; at > 0 && plan_goes_before(&plan, &plans[at - 1]); at--)
            plans[at] = plans[at - 1];
        plans[at] = plan;
    }
    return count;
}
