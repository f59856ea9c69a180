#include "codegen/plan/choices.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "codegen/plan/diverse.h"
#include "ir/row_tiles.h"
#include "ir/stream.h"
#include "rtile/space.h"

enum {
    MAX_PARTS = 256,    // of a split reduction
    DEEP_OUTPUTS = 256, // at least, of a reduction
    DEEP_TERMS = 16,    // of at least so many terms for each of them
    FEW_WAVES = 2,      // of a product's blocks: more of them may fill the last wave, or fewer be larger
    PRODUCT_PARTS = 32,
    MIN_CHUNK = 128,    // points of a row whose statistics are taken together
    CHUNK_SIZES = 4,    // each four times the one before
    SMALL_CHUNK = 64,   // points of a row that a block makes elements of, at least,
    MAX_SMALL_CHUNK = 512,
    SMALL_ELEMENTS = 16384,   // or so many that all rows side by side have these
    MIN_TILE_COLUMNS = 64,    // of a product whose rows are reduced where they are made
    MAX_TILE_COLUMNS = 256,
    PARTIAL_KEPT = 3          // kernels considered for the first half of each split
};

static const double FAR_BEHIND = 8, FAR_IN_PARTS = 1.5;   // times the best, of a sum and of parts of it
static const double PAST_THE_BEST = 1.25;   // times the least so far: more parts take longer still
static const double MORE_THAN_ONCE = 1.25;   // times what every tensor takes once; a second pass over the largest takes more

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
        return rprogram_construct(scratch, rules, planner->device, planner->most, planner->programs,
                                  &planner->stats);
    return construct_memo_ask(planner->memo, scratch, rules, planner->programs, &planner->stats);
}

/* With the threads that a family adds to those that compute, a launch may have too many. */
static bool fits_a_launch(Planner *planner, const Family *family, const RProgram *program)
{
    int threads = launch_threads(family, program, planner->device);
    bool fits = program->grid <= device_most_blocks(planner->device, threads);
    planner->stats.feasible -= !fits;
    planner->stats.pruned[PRUNE_GRID] += !fits;
    return fits;
}

static void add_family(Planner *planner, ChoiceList *list, const Family *family, Viewed *viewed)
{
    arena_reset(planner->drafting);
    TileRules *drafts = arena_room(planner->drafting, MAX_VARIANTS * sizeof *drafts);
    int count = family_rules(planner->drafting, family, viewed, drafts);
    const void *view = family_view(family, viewed);
    for (int v = 0; v < count; v++) {
        drafts[v].without = planner->target->without;
        const TileRules *rules = rules_copy(planner->choices, &drafts[v]);
        int made = construct(planner, rules);
        PlannedLaunch *launches = arena_room(planner->choices, (size_t)made * sizeof *launches);
        for (int i = 0; i < made; i++) {
            if (!fits_a_launch(planner, family, &planner->programs[i]))
                continue;
            launches[i] = (PlannedLaunch){family, viewed->fusion, view, rules, planner->programs[i]};
            add_choice(planner, list,
                       (Choice){.launches = &launches[i], .count = 1, .time_us = planned_us(&launches[i])});
        }
    }
}

/* Those of all families but some (bit f). */
static void add_families(Planner *planner, ChoiceList *list, Viewed *viewed, uint64_t others)
{
    for (int f = 0; planner->families[f]; f++)
        if (!(others >> f & 1))
            add_family(planner, list, planner->families[f], viewed);
}

static void add_launches(Planner *planner, ChoiceList *list, const Fusion *fusion, uint64_t others)
{
    Viewed viewed = {.arena = planner->arena, .fusion = fusion, .target = planner->target};
    add_families(planner, list, &viewed, others);
}

/* A kernel that has a block for part of the SMs only would take so long on all of them. */
static double spread_us(const Planner *planner, const PlannedLaunch *launch)
{
    double share = (double)launch->program.dealt / planner->device->sm_count;
    return planned_us(launch) * (share < 1 ? share : 1);
}

/* Families that are far behind the best kernel even where their blocks are as many as one likes. */
static void pass_over_slow_families(Planner *planner, const ChoiceList *list, double far)
{
    for (int f = 0; planner->families[f] && list->count; f++) {
        double least_us = INFINITY;
        for (int i = 0; i < list->count; i++)
            if (list->choices[i]->count == 1 && list->choices[i]->launches[0].family == planner->families[f])
                least_us = fmin(least_us, spread_us(planner, &list->choices[i]->launches[0]));
        if (isfinite(least_us) && least_us > far * list->choices[0]->time_us)
            planner->passed_over |= UINT64_C(1) << f;
    }
}

/* Of parts of a sum, fewer of them before more; or of what is rewritten. */
static ChoiceList part_launches(Planner *planner, const Fusion *fusion)
{
    ChoiceList list = {0};
    add_launches(planner, &list, fusion, planner->passed_over);
    if (!planner->rewrite)
        pass_over_slow_families(planner, &list, FAR_IN_PARTS);
    return list;
}

static ChoiceList single_launches(Planner *planner, const Fusion *fusion)
{
    ChoiceList list = {0};
    add_launches(planner, &list, fusion, 0);
    return list;
}

/* The rules as they outlive others: one copy for all choices that hold them. */
static const TileRules *retain_rules(Arena *arena, const ChoiceList *choices, const TileRules *rules)
{
    for (int c = 0; c < choices->count; c++) {
        const Choice *choice = choices->choices[c];
        for (int i = 0; i < choice->count && choice->retained; i++)
            if (choice->launches[i].rules == rules)
                return choice->retained->launches[i].rules;
    }
    return rules_copy(arena, rules);
}

Choice *choice_retain(Arena *arena, const ChoiceList *choices, Choice *choice)
{
    if (choice->retained)
        return choice->retained;
    Choice *copy = arena_room(arena, sizeof *copy);
    *copy = *choice;
    size_t bytes = (size_t)choice->count * sizeof *choice->launches;
    PlannedLaunch *launches = memcpy(arena_room(arena, bytes), choice->launches, bytes);
    for (int i = 0; i < copy->count; i++)
        launches[i].rules = retain_rules(arena, choices, choice->launches[i].rules);
    copy->launches = launches;
    choice->retained = copy;
    return copy;
}

/* The best few ways of a part of the fusion. The others make room for those of the next part. */
static ChoiceList best_of(Planner *planner, ChoiceList (*ways)(Planner *, const Fusion *), const Fusion *part,
                          int keep)
{
    Arena *lasting = planner->choices;
    planner->choices = planner->passing;
    ChoiceList all = ways(planner, part), best = {0};
    planner->choices = lasting;
    for (int i = 0; i < all.count && i < keep; i++)
        add_choice(planner, &best, *choice_retain(lasting, &all, all.choices[i]));
    arena_reset(planner->passing);
    return best;
}

/* The launches of a choice, and one more. */
static Choice choice_extend(Planner *planner, Choice choice, const Choice *last)
{
    size_t bytes = (size_t)choice.count * sizeof *choice.launches;
    PlannedLaunch *launches = arena_room(planner->choices, bytes + sizeof *launches);
    if (bytes)
        memcpy(launches, choice.launches, bytes);
    launches[choice.count++] = last->launches[0];
    choice.launches = launches;
    choice.time_us += last->time_us;
    return choice;
}

/* The partial sums as a definition behind those that there are, so that the reference evaluator knows
   them. */
static const TensorOp **with_definition(Arena *arena, const Choice *before, const TensorOp *definition)
{
    const TensorOp **list = NEW_ARRAY(arena, const TensorOp *, before->partial_count + 1);
    for (int i = 0; i < before->partial_count; i++)
        list[i] = before->partial_ops[i];
    list[before->partial_count] = definition;
    return list;
}

/* `only`: whose kernels may make the parts; NULL: anyone's. Returns what the best one takes. */
static double add_split(Planner *planner, ChoiceList *list, const Choice *before, const Fusion *fusion,
                        int64_t parts, const Family *only)
{
    FusionPair *pair = fusion_split(planner->arena, fusion, parts);
    double best_us = INFINITY;
    if (!pair)
        return best_us;
    prepared_mark_parts(fusion, (Fusion *[]){pair->partial, pair->final}, 2);
    ChoiceList first = best_of(planner, part_launches, pair->partial, PARTIAL_KEPT),
               second = best_of(planner, single_launches, pair->final, 1);
    Choice split = *before;
    split.partial_ops = with_definition(planner->arena, before, pair->definition);
    split.partial_count++;
    for (int i = 0; i < first.count && second.count; i++) {
        if (only && first.choices[i]->launches[0].family != only)
            continue;
        Choice choice = choice_extend(planner, split, first.choices[i]);
        choice = choice_extend(planner, choice, second.choices[0]);
        best_us = fmin(best_us, choice.time_us);
        add_choice(planner, list, choice);
    }
    return best_us;
}

/* Outputs that share what they read, and far more terms of each: a block that makes them all over a part of
   the terms reuses most. */
static bool is_deep(const Fusion *fusion)
{
    int64_t outputs = spatial_points(fusion);
    if (!fusion_is_reduction(fusion) || outputs < DEEP_OUTPUTS ||
        reduction_points(fusion) < DEEP_TERMS * outputs)
        return false;
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    uint32_t spatial = fusion->ops[0].spatial;
    for (int i = 0; i < count; i++)
        if (found[i].op == 0 && (access_axes(found[i].access) & spatial) != spatial)
            return true;
    return false;
}

/* Of other families' kernels than the first one's the one that is best where its blocks are as many as one
   likes, if it takes less than half as long then; or NULL. */
static const PlannedLaunch *best_spread(const Planner *planner, const ChoiceList *list)
{
    const PlannedLaunch *best = NULL;
    double least_us = spread_us(planner, &list->choices[0]->launches[0]) / 2;
    for (int i = 1; i < list->count; i++) {
        const PlannedLaunch *launch = &list->choices[i]->launches[0];
        if (list->choices[i]->count == 1 && launch->family != list->choices[0]->launches[0].family &&
            spread_us(planner, launch) < least_us) {
            least_us = spread_us(planner, launch);
            best = launch;
        }
    }
    return best;
}

/* SMs without a block, for each block. */
static int64_t idle_sms(const Planner *planner, const PlannedLaunch *launch)
{
    int64_t dealt = launch->program.dealt;
    return 2 * (int64_t)planner->device->sm_count / (dealt ? dealt : 1);
}

/* Fewer parts would leave most SMs idle still. */
static bool employs(int64_t parts, int64_t idle) { return parts <= 2 * idle && parts * 4 > idle; }

/* Where a kernel leaves SMs idle, its reduction may be spread over more blocks: the best one's, or that of
   one which would be best then. `spread`: that one, or NULL. */
static void add_splits(Planner *planner, ChoiceList *list, const Choice *before, const Fusion *fusion,
                       const PlannedLaunch *best, const PlannedLaunch *spread)
{
    bool rewritten = planner->rewrite, deep = is_deep(fusion);
    int64_t idle = idle_sms(planner, best);
    if (deep)
        idle = 2 * planner->device->sm_count;   // a block for each part: its outputs share what it reads
    bool short_of_blocks = (rewritten || best->family->tiles_both) && best->program.perf.waves < FEW_WAVES;
    double best_us = before->time_us + planned_us(best);
    if (!rewritten)
        pass_over_slow_families(planner, list, FAR_BEHIND);
    for (int64_t parts = 2; parts <= MAX_PARTS; parts *= 2) {
        bool of_all = employs(parts, idle) || (short_of_blocks && parts <= PRODUCT_PARTS);
        if (!of_all && !(spread && employs(parts, idle_sms(planner, spread))))
            continue;
        double time_us = add_split(planner, list, before, fusion,
                                   deep || rewritten ? fusion_even_parts(fusion, parts) : parts,
                                   of_all ? NULL : spread->family);
        if (isfinite(time_us) && time_us > PAST_THE_BEST * best_us)
            break;
        best_us = fmin(best_us, time_us);
    }
}

/* The best kernel of each. False: one of them has none. */
static bool best_each(Planner *planner, Fusion *const *fusions, int count, Choice **best)
{
    for (int i = 0; i < count; i++) {
        ChoiceList ways = best_of(planner, single_launches, fusions[i], 1);
        if (!ways.count)
            return false;
        best[i] = ways.choices[0];
    }
    return true;
}

static Choice extend_by_all(Planner *planner, Choice choice, Choice *const *more, int count)
{
    for (int i = 0; i < count; i++)
        choice = choice_extend(planner, choice, more[i]);
    return choice;
}

/* Kernels of another form of the fusion, with those before and behind it. */
static void add_rewritten(Planner *planner, ChoiceList *list, const Rewritten *form)
{
    Choice *before[MAX_BEFORE], *behind[MAX_BEHIND];
    double share = planner->rewrite->most_share;
    if (!best_each(planner, form->before, form->before_count, before) ||
        !best_each(planner, form->behind, form->behind_count, behind))
        return;
    Choice begun = {.partial_ops = form->definitions, .partial_count = form->definition_count};
    begun = extend_by_all(planner, begun, before, form->before_count);
    begun.copies = form->before_count;
    double copies_us = extend_by_all(planner, begun, behind, form->behind_count).time_us;
    if (share && copies_us > share * list->choices[0]->time_us)
        return;
    ChoiceList main = part_launches(planner, form->main);
    for (int i = 0; i < main.count; i++) {
        Choice choice = choice_extend(planner, begun, main.choices[i]);
        add_choice(planner, list, extend_by_all(planner, choice, behind, form->behind_count));
    }
    if (main.count && planner->rewrite->splits)
        add_splits(planner, list, &begun, form->main, &main.choices[0]->launches[0], NULL);
}

static bool offers(const Family *family, const Rewrite *rewrite)
{
    const Rewrite *const *own = family->rewrites;
    while (own && *own && *own != rewrite)
        own++;
    return own && *own;
}

/* Of those that offer the rewrite; the others gain nothing from it. */
static void plan_rewritten(Planner *planner, ChoiceList *list, Viewed *viewed, const Rewrite *rewrite, int first)
{
    const void *view = family_view(planner->families[first], viewed);
    const Rewritten *form =
        view ? rewrite->make(planner->arena, view, viewed->fusion, planner->target) : NULL;
    if (!form)
        return;
    prepared_mark_parts(viewed->fusion, form->before, form->before_count);
    prepared_mark_parts(viewed->fusion, (Fusion *[]){form->main}, 1);
    prepared_mark_parts(viewed->fusion, form->behind, form->behind_count);
    planner->rewrite = rewrite;
    planner->passed_over = 0;
    for (int f = 0; planner->families[f]; f++)
        planner->passed_over |= (uint64_t)!offers(planner->families[f], rewrite) << f;
    add_rewritten(planner, list, form);
}

/* In each form that some families want, once. */
static void add_all_rewritten(Planner *planner, ChoiceList *list, Viewed *viewed)
{
    for (int f = 0; planner->families[f]; f++)
        for (int r = 0; planner->families[f]->rewrites && planner->families[f]->rewrites[r]; r++) {
            int first = 0;
            while (!offers(planner->families[first], planner->families[f]->rewrites[r]))
                first++;
            if (first == f)
                plan_rewritten(planner, list, viewed, planner->families[f]->rewrites[r], f);
        }
}

/* Points of a row that one block makes elements of: SMs idle in the end for no longer than that takes. */
static int64_t small_chunk(const Fusion *fusion)
{
    int64_t points = SMALL_ELEMENTS;
    for (int a = 0; a < fusion->spatial_count; a++)
        points /= fusion->axes[a].extent;
    return points < SMALL_CHUNK ? SMALL_CHUNK : points > MAX_SMALL_CHUNK ? MAX_SMALL_CHUNK : points;
}

/* Ways of making the elements: each family's best. Chunks are small, so that those which L2 still holds come
   first. */
static ChoiceList element_launches(Planner *planner, const Fusion *fusion)
{
    ChoiceList list = {0};
    const FusionPhases *small = fusion_cut(planner->arena, fusion, small_chunk(fusion));
    if (!small || small->elements->op_count == 0)
        return list;
    const FusionPhases *smallest = fusion_cut(planner->arena, fusion, SMALL_CHUNK);
    add_launches(planner, &list, small->elements, 0);
    add_launches(planner, &list, small->chunks, 0);
    add_launches(planner, &list, smallest->chunks, 0);
    if (small->columns)
        add_launches(planner, &list, small->columns, 0);
    int kept = 0;
    for (int i = 0; i < list.count; i++) {
        bool seen = false;
        for (int k = 0; k < kept; k++)
            seen |= choice_same_family(list.choices[k], list.choices[i]);
        if (!seen)
            list.choices[kept++] = list.choices[i];
    }
    list.count = kept;
    return list;
}

/* Statistics of chunks of the rows, the rows' own, the elements. */
static void add_phases(Planner *planner, ChoiceList *list, const FusionPhases *phases,
                       const ChoiceList *elements)
{
    ChoiceList first = best_of(planner, single_launches, phases->partial, PARTIAL_KEPT),
               second = best_of(planner, single_launches, phases->combine, 1);
    for (int i = 0; i < first.count && second.count; i++) {
        Choice choice = choice_extend(planner, *first.choices[i], second.choices[0]);
        choice.partial_ops = phases->definitions;
        choice.partial_count = phases->definition_count;
        for (int e = 0; e < elements->count; e++)
            add_choice(planner, list, choice_extend(planner, choice, elements->choices[e]));
        if (phases->elements->op_count == 0)
            add_choice(planner, list, choice);
    }
}

static void add_all_phases(Planner *planner, ChoiceList *list, const Fusion *fusion)
{
    ChoiceList elements = best_of(planner, element_launches, fusion, INT_MAX);
    for (int64_t chunk = MIN_CHUNK, i = 0; i < CHUNK_SIZES; chunk *= 4, i++) {
        const FusionPhases *phases = fusion_cut(planner->arena, fusion, chunk);
        if (!phases)
            continue;
        prepared_mark_parts(fusion, (Fusion *[]){phases->partial, phases->combine}, 2);
        add_phases(planner, list, phases, &elements);
    }
}

/* A product's rows: results of tiles as wide as a thread's sums allow, then the rows' own. */
static void add_row_tiles(Planner *planner, ChoiceList *list, const Fusion *fusion)
{
    for (int64_t columns = MAX_TILE_COLUMNS; columns >= MIN_TILE_COLUMNS; columns /= 2) {
        const RowTiles *tiles = row_tiles_cut(planner->arena, fusion, columns);
        if (!tiles)
            continue;
        prepared_mark_parts(fusion, (Fusion *[]){tiles->partial, tiles->combine}, 2);
        ChoiceList first = best_of(planner, single_launches, tiles->partial, PARTIAL_KEPT),
                   second = first.count ? best_of(planner, single_launches, tiles->combine, 1) : (ChoiceList){0};
        for (int i = 0; i < first.count && second.count; i++) {
            Choice choice = choice_extend(planner, *first.choices[i], second.choices[0]);
            choice.partial_ops = tiles->definitions;
            choice.partial_count = tiles->definition_count;
            add_choice(planner, list, choice);
        }
    }
}

/* The kernel takes hardly longer than to move every tensor once: launches that go through the elements twice
   cannot be faster. Many rows that one block each holds are made so; 256 channels of an NHWC tensor fill a
   device too, but each block reads its channel in pieces of a sector. */
static bool is_near_one_pass(const Planner *planner, const ChoiceList *list)
{
    if (!list->count)
        return false;
    const PlannedLaunch *launch = &list->choices[0]->launches[0];
    const TileSpace *space = launch->rules->space;
    RTile problem = rtile_problem(space);
    double bytes = 0;
    for (int i = 0; i < space->tile_count; i++)
        bytes += data_tile_bytes(&space->tiles[i], &problem, space->axis_count);
    double once_us = bytes / planner->device->dram.bandwidth_gb_s / 1e3;
    return launch->program.perf.time_us <= MORE_THAN_ONCE * once_us + 2 * launch->program.perf.launch_us;
}

/* A chain's kernel for each part of its columns, and what combines them. */
static double add_stream_parts(Planner *planner, ChoiceList *list, const Fusion *fusion, int64_t count)
{
    const StreamParts *parts = stream_split(planner->arena, fusion, count);
    double best_us = INFINITY;
    if (!parts)
        return best_us;
    Fusion *all[] = {parts->partial, parts->results, parts->rows};
    int behind = parts->rows ? 2 : 1;
    Choice *last[2];
    prepared_mark_parts(fusion, all, 1 + behind);
    if (!best_each(planner, all + 1, behind, last))
        return best_us;
    Choice split = {.partial_ops = parts->definitions, .partial_count = parts->definition_count};
    ChoiceList first = best_of(planner, single_launches, parts->partial, PARTIAL_KEPT);
    for (int i = 0; i < first.count; i++) {
        Choice choice = choice_extend(planner, split, first.choices[i]);
        choice = extend_by_all(planner, choice, last, behind);
        best_us = fmin(best_us, choice.time_us);
        add_choice(planner, list, choice);
    }
    return best_us;
}

/* Where a chain's rows leave SMs idle. */
static void add_stream_splits(Planner *planner, ChoiceList *list, const Fusion *fusion)
{
    if (!list->count)
        return;
    double best_us = list->choices[0]->time_us;
    int64_t idle = idle_sms(planner, &list->choices[0]->launches[0]);
    for (int64_t parts = 2; parts <= MAX_PARTS; parts *= 2) {
        if (!employs(parts, idle))
            continue;
        double time_us = add_stream_parts(planner, list, fusion, parts);
        if (isfinite(time_us) && time_us > PAST_THE_BEST * best_us)
            break;
        best_us = fmin(best_us, time_us);
    }
}

ChoiceList choices_of(Planner *planner, const Fusion *fusion)
{
    if (!planner->alone)
        arena_reset(planner->choices);
    Viewed viewed = {.arena = planner->arena, .fusion = fusion, .target = planner->target};
    ChoiceList list = {0};
    add_families(planner, &list, &viewed, 0);
    if (fusion->streams) {
        add_row_tiles(planner, &list, fusion);
        add_stream_splits(planner, &list, fusion);
    }
    if (fusion->streams || fusion->joined) {
        keep_diverse(&list, planner->keep);
        return list;
    }
    if (!fusion_is_reduction(fusion) && !is_near_one_pass(planner, &list))
        add_all_phases(planner, &list, fusion);
    if (!list.count)
        return list;
    planner->rewrite = NULL;
    planner->passed_over = 0;
    add_splits(planner, &list, &(Choice){0}, fusion, &list.choices[0]->launches[0],
               best_spread(planner, &list));
    add_all_rewritten(planner, &list, &viewed);
    keep_diverse(&list, planner->keep);
    return list;
}
