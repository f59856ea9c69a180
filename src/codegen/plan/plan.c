#include "codegen/plan/plan.h"

#include <assert.h>
#include <string.h>

#include "rprogram/memo.h"

enum {
    MAX_PARTS = 256,    // of a split reduction
    MIN_CHUNK = 128,    // points of a row whose statistics are taken together
    CHUNK_SIZES = 4,    // each four times the one before
    SMALL_CHUNK = 64,   // points of a row that a block makes elements of, at least,
    MAX_SMALL_CHUNK = 512,
    SMALL_ELEMENTS = 16384,   // or so many that all rows side by side have these
    PARTIAL_KEPT = 3          // kernels considered for the first half of each split
};

/* One way of computing one fusion: a launch, or several where its reductions are split over blocks. */
typedef struct Choice {
    PlannedLaunch launches[3];
    int count;
    double time_us;
    const TensorOp *const *partial_ops;   // definitions of what the launches pass on
    int partial_count;
    bool spare;               // not among the kept ones
    struct Choice *retained;  // the copy that plans hold; NULL: none does
} Choice;

typedef struct ChoiceList {
    Choice **choices;   // ascending in time; equal times keep the families' order
    int count, capacity;
} ChoiceList;

typedef struct Planner {
    Arena *arena;     // of what plans hold
    Arena *choices;   // of one fusion's choices: thousands, of which plans take a few
    Arena *scratch;   // of one construction
    bool alone;       // there is one fusion: its choices may stay, and no two constructions are alike
    const DeviceSpec *device;
    TileRules *drafts;     // of one family
    int keep;
    int most;              // programs of one construction; keep_diverse() chooses among them
    RProgram *programs;    // those
    ConstructMemo *memo;   // NULL: alone
    ConstructStats stats;
} Planner;

// ---- one fusion ----

static bool comes_before(const Choice *left, const Choice *right)
{
    return left->time_us != right->time_us ? left->time_us < right->time_us : left->count < right->count;
}

static void add_choice(Planner *planner, ChoiceList *list, Choice choice)
{
    Arena *arena = planner->choices;
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 16;
        Choice **grown = NEW_ARRAY(arena, Choice *, list->capacity);
        if (list->count)
            memcpy(grown, list->choices, sizeof(Choice *) * (size_t)list->count);
        list->choices = grown;
    }
    Choice *added = NEW(arena, Choice);
    *added = choice;
    int at = list->count++;
    for (; at > 0 && comes_before(added, list->choices[at - 1]); at--)
        list->choices[at] = list->choices[at - 1];
    list->choices[at] = added;
}

static int construct(Planner *planner, const TileRules *rules)
{
    Arena *scratch = planner->scratch;
    arena_reset(scratch);
    if (planner->alone)
        return rprogram_construct(scratch, rules, planner->device, planner->most, planner->programs, &planner->stats);
    return construct_memo_ask(planner->memo, scratch, rules, planner->programs, &planner->stats);
}

static bool has_variant(const Family *family, const char *name)
{
    const char *const *variant = family->variants;
    while (*variant && strcmp(*variant, name) != 0)
        variant++;
    return *variant;
}

static void add_family(Planner *planner, ChoiceList *list, const Family *family, const Fusion *fusion)
{
    int count = family->rules(fusion, planner->device, planner->drafts);
    assert(count <= MAX_VARIANTS);
    for (int v = 0; v < count; v++) {
        assert(has_variant(family, planner->drafts[v].variant_name));
        TileRules *rules = NEW(planner->choices, TileRules);
        *rules = planner->drafts[v];
        int made = construct(planner, rules);
        for (int i = 0; i < made; i++)
            add_choice(planner, list,
                       (Choice){
                           .launches = {{family, fusion, rules, planner->programs[i]}},
                           .count = 1,
                           .time_us = planner->programs[i].perf.time_us,
                       });
    }
}

static void add_families(Planner *planner, ChoiceList *list, const Fusion *fusion)
{
    for (int f = 0; families[f]; f++)
        if (families[f]->matches(fusion, planner->device))
            add_family(planner, list, families[f], fusion);
}

static ChoiceList single_launches(Planner *planner, const Fusion *fusion)
{
    ChoiceList list = {0};
    add_families(planner, &list, fusion);
    return list;
}

/* The partial sums as a definition, so that the reference evaluator knows them. */
static const TensorOp **partial_definition(Arena *arena, const Fusion *partial)
{
    const TensorOp **list = NEW(arena, const TensorOp *);
    TensorOp *op = NEW(arena, TensorOp);
    op->out = partial->ops[0].out;
    op->spatial_count = partial->spatial_count;
    op->axis_count = partial->axis_count;
    memcpy(op->axes, partial->axes, sizeof op->axes);
    op->reduce = partial->ops[0].reduce;
    op->body = partial->ops[0].body;
    list[0] = op;
    return list;
}

static void add_split(Planner *planner, ChoiceList *list, const Fusion *fusion, int64_t parts)
{
    FusionPair *pair = fusion_split(planner->arena, fusion, parts);
    if (!pair)
        return;
    ChoiceList first = single_launches(planner, pair->partial),
               second = single_launches(planner, pair->final);
    const TensorOp **definition = partial_definition(planner->arena, pair->partial);
    for (int i = 0; i < first.count && i < PARTIAL_KEPT && second.count; i++)
        add_choice(planner, list,
                   (Choice){
                       .launches = {first.choices[i]->launches[0], second.choices[0]->launches[0]},
                       .count = 2,
                       .time_us = first.choices[i]->time_us + second.choices[0]->time_us,
                       .partial_ops = definition,
                       .partial_count = 1,
                   });
}

static bool same_family(const Choice *left, const Choice *right)
{
    return left->count == right->count && left->launches[0].family == right->launches[0].family;
}

/* Points of a row that one block makes elements of: units idle in the end for no longer than that takes. */
static int64_t small_chunk(const Fusion *fusion)
{
    int64_t points = SMALL_ELEMENTS;
    for (int a = 0; a < fusion->spatial_count; a++)
        points /= fusion->axes[a].extent;
    return points < SMALL_CHUNK ? SMALL_CHUNK : points > MAX_SMALL_CHUNK ? MAX_SMALL_CHUNK : points;
}

/* Ways of making the elements: each family's best. Chunks are small, so that those which L2 still holds come first. */
static ChoiceList element_choices(Planner *planner, const Fusion *fusion)
{
    ChoiceList list = {0};
    const FusionPhases *small = fusion_cut(planner->arena, fusion, small_chunk(fusion));
    if (!small || small->elements->op_count == 0)
        return list;
    const FusionPhases *smallest = fusion_cut(planner->arena, fusion, SMALL_CHUNK);
    add_families(planner, &list, small->elements);
    add_families(planner, &list, small->chunks);
    add_families(planner, &list, smallest->chunks);
    if (small->columns)
        add_families(planner, &list, small->columns);
    int kept = 0;
    for (int i = 0; i < list.count; i++) {
        bool seen = false;
        for (int k = 0; k < kept; k++)
            seen |= same_family(list.choices[k], list.choices[i]);
        if (!seen)
            list.choices[kept++] = list.choices[i];
    }
    list.count = kept;
    return list;
}

/* The launches of a choice, and one more. */
static Choice choice_extend(Choice choice, const Choice *last)
{
    choice.launches[choice.count++] = last->launches[0];
    choice.time_us += last->time_us;
    return choice;
}

/* Statistics of chunks of the rows, the rows' own, the elements. */
static void add_phases(Planner *planner, ChoiceList *list, const FusionPhases *phases,
                       const ChoiceList *elements)
{
    ChoiceList first = {0}, second = {0};
    add_families(planner, &first, phases->partial);
    add_families(planner, &second, phases->combine);
    for (int i = 0; i < first.count && i < PARTIAL_KEPT && second.count; i++) {
        Choice choice = choice_extend(*first.choices[i], second.choices[0]);
        choice.partial_ops = phases->definitions;
        choice.partial_count = phases->definition_count;
        for (int e = 0; e < elements->count; e++)
            add_choice(planner, list, choice_extend(choice, elements->choices[e]));
        if (phases->elements->op_count == 0)
            add_choice(planner, list, choice);
    }
}

static void add_all_phases(Planner *planner, ChoiceList *list, const Fusion *fusion)
{
    ChoiceList elements = element_choices(planner, fusion);
    for (int64_t chunk = MIN_CHUNK, i = 0; i < CHUNK_SIZES; chunk *= 4, i++) {
        const FusionPhases *phases = fusion_cut(planner->arena, fusion, chunk);
        if (phases)
            add_phases(planner, list, phases, &elements);
    }
}

/* How many of the choices before `end` that are kept share something with the one at `end`. */
static int count_kept(const ChoiceList *list, int end, bool (*share)(const Choice *, const Choice *))
{
    int count = 0;
    for (int i = 0; i < end; i++)
        count += !list->choices[i]->spare && share(list->choices[i], list->choices[end]);
    return count;
}

static bool same_tile(const Choice *left, const Choice *right, Level level)
{
    return same_family(left, right) && memcmp(&left->launches[0].program.tile[level],
                                              &right->launches[0].program.tile[level], sizeof(RTile)) == 0;
}

static bool same_register_tile(const Choice *left, const Choice *right)
{
    return same_tile(left, right, LEVEL_REGISTER);
}

static bool same_shared_tile(const Choice *left, const Choice *right)
{
    return same_tile(left, right, LEVEL_SHARED);
}

/* In order of time, but with every family's best (the model may be wrong about a whole family), and at most a fifth of
   the kept ones with the same register tile or the same shared tile, as long as there are others. */
static void keep_diverse(ChoiceList *list, int keep)
{
    int kept = 0, share = (keep + 4) / 5;
    for (int i = 0; i < list->count; i++) {
        list->choices[i]->spare = count_kept(list, i, same_family) > 0;
        kept += !list->choices[i]->spare;
    }
    for (int strict = 1; strict >= 0; strict--)
        for (int i = 0; i < list->count && kept < keep; i++)
            if (list->choices[i]->spare && (!strict || (count_kept(list, i, same_register_tile) < share &&
                                                        count_kept(list, i, same_shared_tile) < share))) {
                list->choices[i]->spare = false;
                kept++;
            }
    int count = 0;
    for (int i = 0; i < list->count; i++)
        if (!list->choices[i]->spare)
            list->choices[count++] = list->choices[i];
    list->count = count;
}

/* Rows that are many and fit one block each need no others. */
static bool fills_device(const Planner *planner, const ChoiceList *list)
{
    if (!list->count)
        return false;
    const RProgram *program = &list->choices[0]->launches[0].program;
    return program->cluster == 1 && !program->cooperative && program->grid >= planner->device->sm_count;
}

/* Where the best kernel leaves units idle, its reduction may be spread over more blocks. */
static ChoiceList choices_of(Planner *planner, const Fusion *fusion)
{
    if (!planner->alone)
        arena_reset(planner->choices);
    ChoiceList list = single_launches(planner, fusion);
    if (!fusion_is_reduction(fusion) && !fills_device(planner, &list))
        add_all_phases(planner, &list, fusion);
    if (!list.count)
        return list;
    int64_t grid = list.choices[0]->launches[0].program.grid;
    int64_t idle =
        2 * (int64_t)planner->device->sm_count / (grid ? grid : 1);   // units without a block, for each block
    for (int64_t parts = 2; parts <= 2 * idle && parts <= MAX_PARTS; parts *= 2)
        if (parts * 4 > idle)   // fewer parts would leave most units idle still
            add_split(planner, &list, fusion, parts);
    keep_diverse(&list, planner->keep);
    return list;
}

// ---- the whole program ----

/* A plan from its end. What leads to it is shared with the other plans that go on from there. */
typedef struct Route {
    const struct Route *before;   // NULL: the start, without a launch
    Choice *choice;
    const char *fusion_plan;
    double time_us;
} Route;

/* Inserts in order of time, behind equals; keeps at most `keep`. */
static int insert_route(Route *routes, int count, int keep, Route route)
{
    int at = count;
    while (at > 0 && route.time_us < routes[at - 1].time_us)
        at--;
    if (at >= keep)
        return count;
    int last = count < keep ? count : keep - 1;
    memmove(routes + at + 1, routes + at, sizeof(Route) * (size_t)(last - at));
    routes[at] = route;
    return count < keep ? count + 1 : keep;
}

/* The choice as it outlives the fusion's others. */
static Choice *retain(Arena *arena, Choice *choice)
{
    if (choice->retained)
        return choice->retained;
    Choice *copy = NEW(arena, Choice);
    *copy = *choice;
    for (int i = 0; i < copy->count; i++) {
        TileRules *rules = NEW(arena, TileRules);
        *rules = *choice->launches[i].rules;
        copy->launches[i].rules = rules;
    }
    choice->retained = copy;
    return copy;
}

/* All combinations of `routes` with `choices`, the best `keep` of them: K-best sums, one fusion at a time. */
static int combine(Planner *planner, const Route *routes, int count, const ChoiceList *choices, Route *best)
{
    int kept = 0;
    for (int r = 0; r < count; r++)
        for (int c = 0; c < choices->count && c < planner->keep; c++) {
            Route longer = {.before = &routes[r], .choice = choices->choices[c], .fusion_plan = routes[r].fusion_plan};
            longer.time_us = routes[r].time_us + longer.choice->time_us;
            if (kept == planner->keep && longer.time_us >= best[kept - 1].time_us)
                break;
            kept = insert_route(best, kept, planner->keep, longer);
        }
    for (int i = 0; i < kept && !planner->alone; i++)
        best[i].choice = retain(planner->arena, best[i].choice);
    return kept;
}

static int routes_of(Planner *planner, const FusionPlan *fusions, const Route **routes)
{
    Route *start = NEW(planner->arena, Route);
    start->fusion_plan = fusions->name;
    *routes = start;
    int count = 1;
    for (int f = 0; f < fusions->count; f++) {
        ChoiceList choices = choices_of(planner, fusions->fusions[f]);
        Route *longer = NEW_ARRAY(planner->arena, Route, planner->keep);
        count = combine(planner, *routes, count, &choices, longer);
        *routes = longer;
    }
    return count;
}

static Plan plan_of(Arena *arena, const Route *route)
{
    Plan plan = {.fusion_plan = route->fusion_plan, .time_us = route->time_us};
    for (const Route *r = route; r->before; r = r->before) {
        plan.count += r->choice->count;
        plan.partial_count += r->choice->partial_count;
    }
    plan.launches = NEW_ARRAY(arena, PlannedLaunch, plan.count);
    plan.partial_ops = NEW_ARRAY(arena, const TensorOp *, plan.partial_count);
    int launch = plan.count, partial = plan.partial_count;
    for (const Route *r = route; r->before; r = r->before) {
        for (int i = r->choice->count - 1; i >= 0; i--)
            plan.launches[--launch] = r->choice->launches[i];
        for (int i = r->choice->partial_count - 1; i >= 0; i--)
            plan.partial_ops[--partial] = r->choice->partial_ops[i];
    }
    return plan;
}

static bool is_one_kernel(const FusionPlans *fusions)
{
    for (int p = 0; p < fusions->count; p++)
        if (fusions->plans[p].count > 1)
            return false;
    return true;
}

PlanList plan_program(Arena *arena, const FusionPlans *fusions, const DeviceSpec *device, int keep)
{
    bool alone = is_one_kernel(fusions);
    Planner planner = {
        .arena = arena,
        .choices = alone ? arena : arena_new(),
        .alone = alone,
        .drafts = NEW_ARRAY(arena, TileRules, MAX_VARIANTS),
        .scratch = arena_new(),
        .device = device,
        .keep = keep,
        .memo = alone ? NULL : construct_memo_new(arena, device, 2 * keep),
        .most = 2 * keep,
        .programs = NEW_ARRAY(arena, RProgram, 2 * keep),
    };
    PlanList list = {.plans = NEW_ARRAY(arena, Plan, keep)};
    Route *best = NEW_ARRAY(arena, Route, keep);
    for (int p = 0; p < fusions->count; p++) {
        const Route *routes;
        int count = routes_of(&planner, &fusions->plans[p], &routes);
        for (int i = 0; i < count; i++)
            list.count = insert_route(best, list.count, keep, routes[i]);
    }
    for (int i = 0; i < list.count; i++)
        list.plans[i] = plan_of(arena, &best[i]);
    list.stats = planner.stats;
    if (!alone)
        arena_free(planner.choices);
    arena_free(planner.scratch);
    return list;
}
