#include "codegen/plan/plan.h"

#include <string.h>

#include "base/checked.h"
#include "codegen/plan/choices.h"
#include "codegen/plan/diverse.h"
#include "codegen/plan/others.h"
#include "codegen/plan/steps.h"
#include "ir/fuse_join.h"

enum { WIDE = 4 };                        // limit of the search: times as many routes are followed as plans are kept
static const double LIGHT = 0.2;          // limit of the search: other tiles for a launch of less than this share of a plan's time are no other plan

/* A plan as a list from its last step. Plans share their common beginnings. */
typedef struct Route {
    const struct Route *before;   // NULL: the start, without a launch
    PlanStep step;
    const char *fusion_plan;
    int number;                   // of the fusion plan: of equal routes that of the first stays first
    double time_us;
    int64_t workspace_bytes;
} Route;

/* By fusion: bytes of temporaries that earlier fusions have written and this or a later one reads. Temporaries of which it
   writes a part are its own. */
static int64_t *kept_bytes(Arena *arena, const FusionPlan *plan, const Program *program)
{
    int *end = NEW_ARRAY(arena, int, program->tensor_count);   // after the last reader, or the next fusion that writes a part
    int64_t *kept = NEW_ARRAY(arena, int64_t, plan->count + 2);
    for (int f = 0; f < plan->count; f++)
        for (int i = 0; i < plan->fusions[f]->input_count; i++)
            end[plan->fusions[f]->inputs[i]->id] = f + 1;
    for (int f = plan->count - 1; f >= 0; f--)
        for (int i = 0; i < plan->fusions[f]->output_count; i++) {
            const Tensor *tensor = plan->fusions[f]->outputs[i];
            int until = end[tensor->id];
            end[tensor->id] = f;
            if (tensor->role != ROLE_TEMPORARY || until <= f + 1)
                continue;
            kept[f + 1] += round_up(tensor_bytes(tensor), WORKSPACE_ALIGNMENT);
            kept[until] -= round_up(tensor_bytes(tensor), WORKSPACE_ALIGNMENT);
        }
    for (int f = 0; f < plan->count; f++)
        kept[f + 1] += kept[f];
    return kept;
}

/* Those with room for their workspaces come first, however long they take: others cannot run. */
static bool goes_before(const Route *left, const Route *right, int64_t room)
{
    bool fits = left->workspace_bytes <= room;
    if (fits != (right->workspace_bytes <= room))
        return fits;
    return left->time_us != right->time_us ? left->time_us < right->time_us : left->number < right->number;
}

/* Inserts in order, behind equals; keeps at most `keep`. */
static int insert_route(Route *routes, int count, int keep, Route route, int64_t room)
{
    int at = count;
    while (at > 0 && goes_before(&route, &routes[at - 1], room))
        at--;
    if (at >= keep)
        return count;
    int last = count < keep ? count : keep - 1;
    memmove(routes + at + 1, routes + at, sizeof(Route) * (size_t)(last - at));
    routes[at] = route;
    return count < keep ? count + 1 : keep;
}

/* It differs from an earlier choice in the sizes of tiles only. */
static bool is_variation(const ChoiceList *choices, int c)
{
    bool found = false;
    for (int i = 0; i < c && !found; i++)
        found = choice_same_kernels(choices->choices[i], choices->choices[c]);
    return found;
}

/* Choices in which plans may differ: for prepared tensors the best only. */
static int ways_of(const Planner *planner, const ChoiceList *choices)
{
    int most = choices->count && choice_is_prepared(choices->choices[0]) ? 1 : planner->keep;
    return choices->count < most ? choices->count : most;
}

/* What a call of the plan saves whose last step the choice is, if it has a single launch. */
static double overlap_us(const Route *before, const Choice *choice)
{
    for (const Route *r = before; r->before; r = r->before)
        if (!step_is_prepared(&r->step))
            return 0;
    return launches_overlap_us(choice->launches, choice->count);
}

/* All combinations of `routes` with `choices`, the best of them: K-best sums, one fusion at a time; `ends`: the plan's last. */
static int combine(Planner *planner, const Route *routes, int count, const Fusion *fusion, const ChoiceList *choices, int64_t kept,
                   bool ends, Route *best)
{
    int found = 0, keep = WIDE * planner->keep, ways = ways_of(planner, choices);
    const ChoiceList *of_families = planner->alone || ways < 2 ? NULL : ways_of_families(planner, choices);
    for (int r = 0; r < count; r++)
        for (int c = 0; c < ways; c++) {
            Choice *choice = choices->choices[c];
            Route longer = {.before = &routes[r], .step = {fusion, choice, kept, of_families}, .fusion_plan = routes[r].fusion_plan,
                            .number = routes[r].number};
            longer.time_us = routes[r].time_us + choice->time_us - (ends ? overlap_us(&routes[r], choice) : 0);
            longer.workspace_bytes = larger(routes[r].workspace_bytes, step_bytes(&longer.step));
            if (found == keep && !goes_before(&longer, &best[found - 1], planner->room))
                continue;
            if (choice->time_us >= LIGHT * longer.time_us || !is_variation(choices, c))
                found = insert_route(best, found, keep, longer, planner->room);
        }
    for (int i = 0; i < found && !planner->alone; i++)
        best[i].step.choice = choice_retain(planner->arena, choices, best[i].step.choice);
    return found;
}

/* Fusions [first, end) of a plan as one kernel; NULL: they cannot be one. */
static Fusion *joint_of(Arena *arena, const FusionPlan *plan, const Program *program, int first, int end)
{
    if (first < 0 || !fusions_may_join(plan->fusions[first], plan->fusions[end - 1]))
        return NULL;
    bool *needed = NEW_ARRAY(arena, bool, program->tensor_count);
    for (int t = 0; t < program->output_count; t++)
        needed[program->outputs[t]->id] = true;
    for (int f = 0; f < plan->count; f++)
        for (int i = 0; i < plan->fusions[f]->input_count && (f < first || f >= end); i++)
            needed[plan->fusions[f]->inputs[i]->id] = true;
    return fusion_join(arena, plan->fusions + first, end - first, needed);
}

/* The best routes through the first fusions of a plan. */
typedef struct Routes {
    Route *routes;
    int count;
} Routes;

/* Adds routes that compute the last fusion in one kernel with those before it. */
static void add_joints(Planner *planner, const FusionPlan *fusions, const Program *program,
                       const int64_t *kept, Routes *routes, int end)
{
    int keep = WIDE * planner->keep;
    Routes *longer = &routes[end];
    for (int count = 2; count <= MAX_JOINED; count++) {
        const Fusion *joint = joint_of(planner->arena, fusions, program, end - count, end);
        if (!joint)
            continue;
        const Routes *before = &routes[end - count];
        Route *others = NEW_ARRAY(planner->arena, Route, keep);
        ChoiceList choices = choices_of(planner, joint);
        int made = combine(planner, before->routes, before->count, joint, &choices, kept[end - count],
                           end == fusions->count, others);
        for (int i = 0; i < made; i++)
            longer->count = insert_route(longer->routes, longer->count, keep, others[i], planner->room);
    }
}

/* A later kernel may compute the fusion at `first` with those up to one behind `end`. */
static bool may_join_across(const FusionPlan *fusions, int first, int end)
{
    bool joins = false;
    for (int last = end; last < fusions->count && last < first + MAX_JOINED; last++)
        joins |= fusions_may_join(fusions->fusions[first], fusions->fusions[last]);
    return joins;
}

/* No route through the first fusions takes less than the last one that is kept of earlier plans. */
static bool leads_nowhere(const Planner *planner, const FusionPlan *fusions, const Routes *routes, int end, const Route *last)
{
    bool nowhere = last && (!routes[end].count || !goes_before(routes[end].routes, last, planner->room));
    for (int first = end > MAX_JOINED ? end - MAX_JOINED + 1 : 0; nowhere && first < end; first++)
        nowhere = !may_join_across(fusions, first, end) || !routes[first].count ||
                  !goes_before(routes[first].routes, last, planner->room);
    return nowhere;
}

/* Those that come before `last` (NULL: all). */
static int routes_of(Planner *planner, const FusionPlan *fusions, int number, const Program *program, const Route *last,
                     const Route **found)
{
    const int64_t *kept = kept_bytes(planner->arena, fusions, program);
    Routes *routes = NEW_ARRAY(planner->arena, Routes, fusions->count + 1);
    routes[0] = (Routes){NEW(planner->arena, Route), 1};
    routes[0].routes->fusion_plan = fusions->name;
    routes[0].routes->number = number;
    for (int f = 0; f < fusions->count; f++) {
        if (leads_nowhere(planner, fusions, routes, f, last))
            return 0;
        ChoiceList choices = choices_of(planner, fusions->fusions[f]);
        Routes *longer = &routes[f + 1];
        longer->routes = NEW_ARRAY(planner->arena, Route, WIDE * planner->keep);
        longer->count = combine(planner, routes[f].routes, routes[f].count, fusions->fusions[f], &choices, kept[f],
                                f + 1 == fusions->count, longer->routes);
        add_joints(planner, fusions, program, kept, routes, f + 1);
    }
    *found = routes[fusions->count].routes;
    return routes[fusions->count].count;
}

static Plan plan_of(Arena *arena, const Route *route, int64_t room)
{
    int count = 0;
    for (const Route *r = route; r->before; r = r->before)
        count++;
    PlanStep *steps = NEW_ARRAY(arena, PlanStep, count);
    int at = count;
    for (const Route *r = route; r->before; r = r->before)
        steps[--at] = r->step;
    return plan_of_steps(arena, route->fusion_plan, steps, count, room);
}

// ---- which plans are kept ----

/* Limit of the search: a fifth of the plans may be there for their families alone. */
static int share_of_families(int keep) { return keep / 5; }

static const PlannedLaunch *main_launch(const Plan *plan)
{
    const PlannedLaunch *longest = plan->launches;
    for (int i = 1; i < plan->count; i++)
        if (planned_us(&plan->launches[i]) > planned_us(longest))
            longest = &plan->launches[i];
    return longest;
}

/* The same kernels, with the same register tile of the longest one. */
static bool same_idea(const Plan *left, const Plan *right)
{
    return left->count == right->count &&
           launches_same_kernels(left->launches, right->launches, left->count) &&
           memcmp(&main_launch(left)->program->tile[LEVEL_REGISTER],
                  &main_launch(right)->program->tile[LEVEL_REGISTER], sizeof(RTile)) == 0;
}

/* Marks at most `most` plans of each idea, in order, until `keep` are marked. */
static int mark_ideas(const Plan *plans, int count, int most, int keep, int marked, bool *is_kept)
{
    for (int i = 0; i < count && marked < keep; i++) {
        int alike = 0;
        for (int k = 0; k < i; k++)
            alike += is_kept[k] && same_idea(&plans[k], &plans[i]);
        if (is_kept[i] || alike >= most)
            continue;
        is_kept[i] = true;
        marked++;
    }
    return marked;
}

/* For some step the plan has a family that no marked plan before it has there. */
static bool has_new_family(const Plan *plans, int i, const bool *is_kept)
{
    bool is_new = false;
    for (int s = 0; s < plans[i].step_count && !is_new; s++) {
        is_new = true;
        for (int k = 0; k < i && is_new; k++)
            is_new = !is_kept[k] || !plan_has_family(&plans[k], &plans[i].steps[s], s);
    }
    return is_new;
}

/* Marks the first plan, and at most `most` after it that have a new family in some step. */
static int mark_families(const Plan *plans, int count, int most, bool *is_kept)
{
    int marked = 0;
    for (int i = 0; i < count && marked <= most; i++) {
        is_kept[i] = has_new_family(plans, i, is_kept);
        marked += is_kept[i];
    }
    return marked;
}

static bool same_text(Arena *scratch, const Fusion *left, const Fusion *right)
{
    StrBuf of_left = strbuf_new(scratch), of_right = strbuf_new(scratch);
    fusion_print(&of_left, left);
    fusion_print(&of_right, right);
    return strcmp(of_left.text, of_right.text) == 0;
}

/* One program, of definitions that were fused in two ways which come to the same. */
static bool same_program(Arena *scratch, const Plan *left, const Plan *right)
{
    bool same = left->count == right->count && launches_same(left->launches, right->launches, left->count);
    for (int i = 0; i < left->count && same; i++)
        same = left->launches[i].fusion == right->launches[i].fusion ||
               same_text(scratch, left->launches[i].fusion, right->launches[i].fusion);
    return same;
}

/* Of plans in order of time those that are there for the first time. */
static int keep_first(Arena *scratch, Plan *plans, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        bool seen = false;
        for (int k = 0; k < kept && !seen; k++)
            seen = same_program(scratch, &plans[k], &plans[i]);
        if (!seen)
            plans[kept++] = plans[i];
    }
    return kept;
}

/* Of plans in order of time those that are ranked: the best of every family, different ideas, then variations of these. */
static int keep_ideas(Arena *scratch, Plan *plans, int count, int keep)
{
    bool *is_kept = NEW_ARRAY(scratch, bool, count);
    int marked = mark_families(plans, count, share_of_families(keep), is_kept), kept = 0;
    marked = mark_ideas(plans, count, (keep + 4) / 5, keep, marked, is_kept);
    mark_ideas(plans, count, count, keep, marked, is_kept);
    for (int i = 0; i < count; i++)
        if (is_kept[i])
            plans[kept++] = plans[i];
    return kept;
}

static bool is_one_kernel(const FusionPlans *fusions)
{
    for (int p = 0; p < fusions->count; p++)
        if (fusions->plans[p].count > 1)
            return false;
    return true;
}

PlanList plan_program(Arena *arena, const FusionPlans *fusions, const Target *target, int keep)
{
    bool alone = is_one_kernel(fusions);
    int64_t room = target->device->dram_bytes - program_bytes(fusions->program);
    Planner planner = planner_new(arena, target, keep, alone, room);
    PlanList list = {.plans = NEW_ARRAY(arena, Plan, WIDE * keep + share_of_families(keep))};
    Route *best = NEW_ARRAY(arena, Route, WIDE * keep);
    for (int p = fusions->count - 1; p >= 0; p--) {   // the last ones have the fewest launches
        const Route *routes, *last = list.count == WIDE * keep ? &best[WIDE * keep - 1] : NULL;
        int count = routes_of(&planner, &fusions->plans[p], p, fusions->program, last, &routes);
        for (int i = 0; i < count; i++)
            list.count = insert_route(best, list.count, WIDE * keep, routes[i], planner.room);
        if (count && fusions->plans[p].has_chains)
            break;
    }
    for (int i = 0; i < list.count; i++)
        list.plans[i] = plan_of(arena, &best[i], planner.room);
    list.count = add_other_families(arena, list.plans, list.count, share_of_families(keep), planner.room);
    arena_reset(planner.scratch);
    list.count = keep_first(planner.scratch, list.plans, list.count);
    list.count = keep_ideas(planner.scratch, list.plans, list.count, keep);
    list.stats = planner.stats;
    planner_free(&planner);
    return list;
}
