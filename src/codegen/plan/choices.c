#include "codegen/plan/choices_parts.h"

#include <math.h>

#include "codegen/plan/diverse.h"
#include "model/perf.h"
#include "rtile/space.h"

static bool on_cuda_cores(const PlannedLaunch *launch)
{
    Unit unit = launch->kind->space->unit;
    return unit == UNIT_FP32 || unit == UNIT_FP64;
}

/* Adds the partial sums as a definition, so that the reference evaluator knows them. */
static const TensorOp **with_definition(Arena *arena, const Choice *before, const TensorOp *definition)
{
    const TensorOp **list = NEW_ARRAY(arena, const TensorOp *, before->partial_count + 1);
    for (int i = 0; i < before->partial_count; i++)
        list[i] = before->partial_ops[i];
    list[before->partial_count] = definition;
    return list;
}

/* A fusion as it is or rewritten, its kernels, and copies of inputs and outputs before and after them. */
typedef struct PlannedForm {
    const Rewrite *rewrite;   // NULL: as it is
    uint64_t passed_over;     // families that do not serve it: bit f
    const Fusion *fusion;
    ChoiceList ways;
    Choice before;
    Choice *behind[MAX_BEHIND];
    int behind_count;
    struct PlannedForm *next;
} PlannedForm;

static Choice with_behind(Planner *planner, const PlannedForm *form, Choice choice)
{
    return choice_extend_by_all(planner, choice, form->behind, form->behind_count);
}

/* Families of parts: any, or else those that tile both factors. */
typedef struct PartFamilies {
    bool any, tile_both;
    bool no_products;   // but of any, none that tile both
} PartFamilies;

static bool may_make_parts(const Family *family, PartFamilies of)
{
    bool excluded = of.no_products && family->tiles_both;
    return !excluded && (of.any || (of.tile_both && family->tiles_both));
}

/* Split-K: the time of the best kernels of both launches, and the kernel of the parts. */
typedef struct Split {
    double time_us;   // INFINITY: there is none
    int64_t parts;
    PartFamilies of;
    PlannedLaunch first;
} Split;

/* What is split, and the least time so far. */
typedef struct Splitting {
    const PlannedForm *form;
    bool slow;                  // see is_slow(): its kernels tell nothing of those of the parts
    double best_us;
    TileSeries *parts, *sums;   // of kernels of the parts, and of those that add them
    bool tried[2 * MAX_PARTS];   // so many parts, by all families
} Splitting;

/* A kernel of a part takes no less: its sums are shorter, and as many blocks more as there are parts fill SMs that idle. */
static double part_us(const PlannedLaunch *launch, int64_t parts)
{
    const PerfEstimate *perf = &launch->program->perf;
    double share = fmin(fmax(1.0 / (double)parts, perf->waves), 1);
    return perf->launch_us + share * (perf->time_us - perf->launch_us);
}

/* Nor does the launch that adds so many parts, behind those that bring the factors in order. */
static double sum_us(const Planner *planner, const Splitting *whole, int64_t parts)
{
    const DeviceSpec *device = planner->device;
    double bytes = (double)parts * (double)spatial_points(whole->form->fusion) * sizeof(float);
    return whole->form->before.time_us + device->launch_us + device->dram_latency_ns / 1e3 -
           device->early_launch_us + bytes / device->dram.bandwidth_gb_s / 1e3;
}

/* Nor do both, by what the family's kernels take of the whole sum, or by those of all (NULL). INFINITY: it has none. */
static double least_us(const Planner *planner, const Splitting *whole, int64_t parts, const Family *family)
{
    double least = INFINITY;
    for (int i = 0; i < whole->form->ways.count; i++) {
        const Choice *choice = whole->form->ways.choices[i];
        if (choice->count == 1 && (!family || choice->launches[0].family == family))
            least = fmin(least, part_us(&choice->launches[0], parts));
    }
    return least + sum_us(planner, whole, parts);
}

/* The power of two from which to begin: its time tells which others are not worth constructing. If parts have the
   tiles of the whole sum, 98 of them, 132 at a time, take 2/2 of its time in 2 parts and 3/4 in 4. */
static int64_t first_parts(const Planner *planner, const Splitting *whole)
{
    int64_t best = 2;
    double best_us = INFINITY;
    for (int64_t parts = 2; parts <= MAX_PARTS; parts *= 2)
        for (int i = 0; i < whole->form->ways.count; i++) {
            const Choice *choice = whole->form->ways.choices[i];
            const PerfEstimate *perf = &choice->launches[0].program->perf;
            double waves = ceil(perf->waves * (double)parts) / (double)parts / ceil(perf->waves),
                   us = waves * (perf->time_us - perf->launch_us) + perf->launch_us + sum_us(planner, whole, parts);
            if (choice->count == 1 && us < best_us) {
                best = parts;
                best_us = us;
            }
        }
    return best;
}

static Split add_split(Planner *planner, ChoiceList *list, const Splitting *whole, int64_t parts, PartFamilies of)
{
    const PlannedForm *form = whole->form;
    Split best = {.time_us = INFINITY};
    double all_us = least_us(planner, whole, parts, NULL), past_us = PAST_THE_BEST * whole->best_us;
    if (!whole->slow && all_us > past_us)
        return best;
    FusionPair *pair = fusion_split(planner->arena, form->fusion, parts);
    if (!pair)
        return best;
    prepared_mark_parts(form->fusion, (Fusion *[]){pair->partial, pair->final}, 2);
    planner->passed_over = form->passed_over;
    for (int f = 0; planner->families[f]; f++) {
        double own_us = least_us(planner, whole, parts, planner->families[f]);
        bool slow = isfinite(own_us) && own_us > fmin(past_us, FAR_SLOWER * all_us);
        if (slow || !may_make_parts(planner->families[f], of))
            planner->passed_over |= (uint64_t)1 << f;
    }
    planner->series = whole->parts;
    ChoiceList first = choices_best_of(planner, choices_single, pair->partial, PARTIAL_KEPT);
    planner->passed_over = 0;
    planner->series = whole->sums;
    double both_us = first.count ? first.choices[0]->time_us + sum_us(planner, whole, parts) : INFINITY;
    if (both_us > past_us) {   // whatever adds them up
        planner->series = NULL;
        return first.count ? (Split){both_us, parts, of, first.choices[0]->launches[0]} : best;
    }
    ChoiceList second = choices_best_of(planner, choices_single, pair->final, 1);
    planner->series = NULL;
    Choice split = form->before;
    split.partial_ops = with_definition(planner->arena, &form->before, pair->definition);
    split.partial_count++;
    for (int i = 0; i < first.count && second.count; i++) {
        Choice choice = choice_extend(planner, split, first.choices[i]);
        choice = with_behind(planner, form, choice_extend(planner, choice, second.choices[0]));
        if (choice.time_us < best.time_us)
            best = (Split){choice.time_us, parts, of, first.choices[i]->launches[0]};
        choices_add(planner, list, choice);
    }
    return best;
}

/* Less than the best split so far takes, if so many parts of it filled the SMs evenly. Of few waves or few terms kernels may be
   others. */
static bool may_gain(const Planner *planner, const Splitting *whole, const Split *least, int64_t parts)
{
    enum { FEW_TERMS = 256 };           // limit of the search: a part of fewer may be a single step
    static const double WORTH = 0.99;   // limit of the search: what gains less is not constructed
    if (!isfinite(least->time_us))
        return true;
    const PerfEstimate *perf = &least->first.program->perf;
    if (perf->waves < 2 || reduction_points(whole->form->fusion) < FEW_TERMS * parts)
        return true;
    double idle_us = (1 - perf->tail_efficiency) * (perf->time_us - perf->launch_us),
           more_us = sum_us(planner, whole, parts) - sum_us(planner, whole, least->parts);
    return least->time_us - idle_us + more_us <= WORTH * least->time_us;
}

/* Adds a number of parts that was not tried yet; gives the better one of it and the best so far. */
static Split add_number(Planner *planner, ChoiceList *list, Splitting *whole, int64_t parts, Split least)
{
    if (parts < 2 || parts > MAX_PARTS || whole->tried[parts] || !may_gain(planner, whole, &least, parts))
        return least;
    whole->tried[parts] = true;
    Split split = add_split(planner, list, whole, parts, (PartFamilies){.any = true});
    return split.time_us < least.time_us ? split : least;
}

/* Powers of two seldom fill the last wave: 81 tiles in 8 parts, 264 at a time, are 2.45 waves and take as long as three; in
   13 parts they are four waves. */
static Split add_whole_waves(Planner *planner, ChoiceList *list, Splitting *whole, Split least)
{
    const RProgram *program = least.first.program;
    int64_t places = (int64_t)program->perf.blocks_per_sm * planner->device->sm_count;
    int64_t dealt = program->dealt, waves = dealt / places, power = least.parts;
    for (int64_t count = waves > 1 ? waves : 1; count <= waves + 1; count++)
        least = add_number(planner, list, whole, count * places * power / dealt, least);
    return least;
}

/* Numbers of parts between powers of two, by quarters: another tile may fill its waves with them. 50 tiles, 264 at a time, are
   0.76 waves in 4 parts and 1.52 in 8, but 0.95 in 5. Of parts that take no longer than two launches waves are a small part. */
static Split add_between(Planner *planner, ChoiceList *list, Splitting *whole, Split least)
{
    int64_t power = least.parts;
    bool short_parts = planned_us(&least.first) <= 2 * planner->device->launch_us;
    for (int quarters = 3; !short_parts && quarters < 8 && power * quarters / 4 <= MAX_PARTS; quarters++)
        least = add_number(planner, list, whole, power * quarters / 4, least);
    return least;
}

/* It takes much longer than its bytes and its arithmetic, with that of padding: threads compute addresses and
   reload elements. Another family, with few blocks or no kernel for the whole sum, may be much faster. */
static bool is_slow(const Planner *planner, const Fusion *fusion, const PlannedLaunch *best)
{
    static const double MANY_TIMES = 2;   // limit of the search
    const PerfEstimate *perf = &best->program->perf;
    int64_t bytes = tensors_bytes(fusion->inputs, fusion->input_count) +
                    tensors_bytes(fusion->outputs, fusion->output_count);
    double floor_us = (double)bytes / planner->device->dram.bandwidth_gb_s / 1e3 + 2 * perf->launch_us +
                      perf->flops / perf_unit_peak(planner->device, best->kind->space->unit) / 1e3;
    return planned_us(best) > MANY_TIMES * floor_us;
}

/* Outputs share what they read, and have more terms each than there are outputs: a block that computes all of them over a
   part of the terms reuses most. */
static bool is_deep(const Fusion *fusion)
{
    int64_t outputs = spatial_points(fusion);
    if (!fusion_is_reduction(fusion) || reduction_points(fusion) < outputs)
        return false;
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    uint32_t spatial = fusion->ops[0].spatial;
    for (int i = 0; i < count; i++)
        if (found[i].op == 0 && (access_axes(found[i].access) & spatial) != spatial)
            return true;
    return false;
}

/* Split-K where kernels leave SMs idle or are slow: in powers of two, then near the best of them, of which
   all tiles are constructed. */
static void add_splits(Planner *planner, ChoiceList *list, const PlannedForm *form)
{
    const ChoiceList *whole = &form->ways;
    const PlannedLaunch *best = &whole->choices[0]->launches[0];
    Splitting of = {
        .form = form,
        .slow = is_slow(planner, form->fusion, best),
        .best_us = list->choices[0]->time_us,
        .parts = &(TileSeries){.arena = planner->choices},
        .sums = &(TileSeries){.arena = planner->choices},
    };
    bool deep = is_deep(form->fusion), product = best->family->tiles_both && best->program->perf.waves < 1;
    int64_t idle = deep ? 2 * planner->device->sm_count : choices_idle_sms(planner, best);   // deep: a block for each part
    Split least = {.time_us = INFINITY};
    int64_t first = first_parts(planner, &of);
    double last_us = 0;
    bool past = false;   // more parts of products only take longer to add
    for (int64_t power = 1; power <= MAX_PARTS; power *= 2) {
        int64_t parts = power == 1 ? first : power;
        past |= last_us > least.time_us && parts > least.parts && least.first.family->tiles_both &&
                !of.slow && !may_gain(planner, &of, &least, parts);
        PartFamilies makers = {.any = of.slow || choices_employ(parts, idle) || (product && on_cuda_cores(best)),
                               .tile_both = product,
                               .no_products = past};
        if (power == first || (!makers.any && !makers.tile_both))
            continue;
        int64_t even = deep || form->rewrite ? fusion_even_parts(form->fusion, parts) : parts;
        of.tried[even] |= makers.any && !makers.no_products;
        Split split = add_split(planner, list, &of, even, makers);
        last_us = split.time_us;
        of.best_us = fmin(of.best_us, split.time_us);
        if (split.time_us < least.time_us)
            least = split;
        /* More parts of a family that fills the SMs only take longer to add; another one may still have none that suit it. */
        bool fills = isfinite(split.time_us) && split.first.program->perf.waves >= 1 && !of.slow &&
                     power > first && (split.first.family == least.first.family || past);
        if (fills && planned_us(&split.first) + sum_us(planner, &of, 2 * parts) > PAST_THE_BEST * of.best_us)
            break;
    }
    if (!isfinite(least.time_us))
        return;
    if (least.first.family->tiles_both)
        least = add_whole_waves(planner, list, &of, add_between(planner, list, &of, least));
    of.parts = of.sums = NULL;
    if (least.time_us <= PAST_THE_BEST * of.best_us)
        add_split(planner, list, &of, least.parts, least.of);
}

static bool offers(const Family *family, const Rewrite *rewrite)
{
    const Rewrite *const *own = family->rewrites;
    while (own && *own && *own != rewrite)
        own++;
    return own && *own;
}

/* Kernels of families that offer the rewrite, as this one does; others gain nothing from it. NULL: there are none, or
   the launches beside them take longer than the best choice so far. */
static PlannedForm *add_rewritten(Planner *planner, ChoiceList *list, Viewed *viewed, const Rewrite *rewrite,
                                  const Family *family)
{
    const void *view = family_view(family, viewed);
    const Rewritten *made = view ? rewrite->make(planner->arena, view, viewed->fusion, planner->target) : NULL;
    if (!made)
        return NULL;
    prepared_mark_parts(viewed->fusion, made->before, made->before_count);
    prepared_mark_parts(viewed->fusion, (Fusion *[]){made->main}, 1);
    prepared_mark_parts(viewed->fusion, made->behind, made->behind_count);
    Choice *before[MAX_BEFORE];
    PlannedForm *form = NEW(planner->choices, PlannedForm);
    form->behind_count = made->behind_count;
    if (!choices_best_each(planner, made->before, made->before_count, before) ||
        !choices_best_each(planner, made->behind, made->behind_count, form->behind))
        return NULL;
    Choice begun = {.partial_ops = made->definitions, .partial_count = made->definition_count};
    form->before = choice_extend_by_all(planner, begun, before, made->before_count);
    form->before.copies = made->before_count;
    if (with_behind(planner, form, form->before).time_us > list->choices[0]->time_us)
        return NULL;
    form->rewrite = rewrite;
    form->fusion = made->main;
    for (int f = 0; planner->families[f]; f++)
        form->passed_over |= (uint64_t)!offers(planner->families[f], rewrite) << f;
    choices_add_launches(planner, &form->ways, made->main, form->passed_over);
    for (int i = 0; i < form->ways.count; i++) {
        Choice choice = choice_extend(planner, form->before, form->ways.choices[i]);
        choices_add(planner, list, with_behind(planner, form, choice));
    }
    return form->ways.count ? form : NULL;
}

/* Each rewrite that some family offers, once. */
static PlannedForm *add_all_rewritten(Planner *planner, ChoiceList *list, Viewed *viewed)
{
    PlannedForm *forms = NULL, **last = &forms;
    for (int f = 0; planner->families[f]; f++)
        for (int r = 0; planner->families[f]->rewrites && planner->families[f]->rewrites[r]; r++) {
            const Rewrite *rewrite = planner->families[f]->rewrites[r];
            int first = 0;
            while (!offers(planner->families[first], rewrite))
                first++;
            if (first == f && (*last = add_rewritten(planner, list, viewed, rewrite, planner->families[f])))
                last = &(*last)->next;
        }
    return forms;
}

ChoiceList choices_of(Planner *planner, const Fusion *fusion)
{
    if (!planner->alone)
        arena_reset(planner->choices);
    Viewed viewed = {.arena = planner->arena, .fusion = fusion, .target = planner->target};
    ChoiceList list = {0};
    choices_add_families(planner, &list, &viewed, 0);
    if (fusion->streams) {
        choices_add_row_tiles(planner, &list, fusion);
        choices_add_stream_parts(planner, &list, fusion);
    }
    if (fusion->streams || fusion->joined) {
        keep_diverse(&list, planner->keep);
        return list;
    }
    if (!fusion_is_reduction(fusion))
        choices_add_phases(planner, &list, fusion);
    if (!list.count)
        return list;
    /* Whole sums of all forms first: they tell which parts are not worth constructing. */
    PlannedForm own = {.fusion = fusion, .ways = list};
    own.ways.choices = arena_copy(planner->choices, list.choices, (size_t)list.count * sizeof *list.choices);
    own.next = add_all_rewritten(planner, &list, &viewed);
    for (PlannedForm *form = &own; form; form = form->next)
        if (!form->rewrite || form->rewrite->splits)
            add_splits(planner, &list, form);
    keep_diverse(&list, planner->keep);
    return list;
}
