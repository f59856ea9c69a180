#include "codegen/plan/choices_parts.h"

#include <math.h>

#include "codegen/plan/diverse.h"
#include "model/perf.h"
#include "rtile/space.h"

static const double MANY_TIMES = 2;          // what its bytes and its arithmetic take

static bool on_cuda_cores(const PlannedLaunch *launch)
{
    Unit unit = launch->kind->space->unit;
    return unit == UNIT_FP32 || unit == UNIT_FP64;
}

/* Launches of a rewritten fusion, and of a part of a sum. */
static ChoiceList rewritten_launches(Planner *planner, const Fusion *fusion)
{
    ChoiceList list = {0};
    choices_add_launches(planner, &list, fusion, planner->passed_over);
    return list;
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

/* Launches before and after a fusion's kernels: copies of inputs and outputs in another layout. */
typedef struct Companions {
    Choice before;
    Choice *behind[MAX_BEHIND];
    int behind_count;
} Companions;

static Choice with_behind(Planner *planner, const Companions *companions, Choice choice)
{
    return choice_extend_by_all(planner, choice, companions->behind, companions->behind_count);
}

/* Families of parts: any; or else those that tile both factors, and one more (NULL: none). */
typedef struct PartFamilies {
    bool any, tile_both;
    bool no_products;   // of those none that tile both
    const Family *also;
} PartFamilies;

static bool may_make_parts(const Family *family, PartFamilies of)
{
    bool excluded = of.no_products && family->tiles_both;
    return !excluded && (of.any || (of.tile_both && family->tiles_both) || family == of.also);
}

/* Split-K: the time of the best kernels of both launches, and the kernel of the parts. */
typedef struct Split {
    double time_us;   // INFINITY: there is none
    int64_t parts;
    PartFamilies of;
    PlannedLaunch first;
} Split;

/* What is split: the fusion, its kernels, and the least time so far. */
typedef struct Splitting {
    const Companions *companions;
    const Fusion *fusion;
    const ChoiceList *ways;
    bool slow;                  // see is_slow(): its kernels tell nothing of those of the parts
    double best_us;
    TileSeries *parts, *sums;   // of kernels of the parts, and of those that add them
    bool tried[2 * MAX_PARTS];   // so many parts, by all families
} Splitting;

/* A kernel of a part takes no less: its sums are shorter, and as many blocks more as there are parts fill SMs that idle. */
static double part_us(const PlannedLaunch *launch, int64_t parts)
{
    const PerfEstimate *perf = &launch->program.perf;
    double share = fmin(fmax(1.0 / (double)parts, perf->waves), 1);
    return perf->launch_us + share * (perf->time_us - perf->launch_us);
}

/* Nor does the launch that adds so many parts, behind those that bring the factors in order. */
static double sum_us(const Planner *planner, const Splitting *whole, int64_t parts)
{
    const DeviceSpec *device = planner->device;
    double bytes = (double)parts * (double)spatial_points(whole->fusion) * sizeof(float);
    return whole->companions->before.time_us + device->launch_us + device->dram_latency_ns / 1e3 -
           device->early_launch_us + bytes / device->dram.bandwidth_gb_s / 1e3;
}

/* Nor do both, by what the family's kernels take of the whole sum, or by those of all (NULL). INFINITY: it has none. */
static double least_us(const Planner *planner, const Splitting *whole, int64_t parts, const Family *family)
{
    double least = INFINITY;
    for (int i = 0; i < whole->ways->count; i++) {
        const Choice *choice = whole->ways->choices[i];
        if (choice->count == 1 && (!family || choice->launches[0].family == family))
            least = fmin(least, part_us(&choice->launches[0], parts));
    }
    return least + sum_us(planner, whole, parts);
}

/* The power of two from which to begin: what it takes tells which others are not worth constructing. */
static int64_t first_parts(const Planner *planner, const Splitting *whole)
{
    int64_t best = 2;
    for (int64_t parts = 4; parts <= MAX_PARTS; parts *= 2)
        if (least_us(planner, whole, parts, NULL) < least_us(planner, whole, best, NULL))
            best = parts;
    return best;
}

static Split add_split(Planner *planner, ChoiceList *list, const Splitting *whole, int64_t parts, PartFamilies of)
{
    const Companions *companions = whole->companions;
    Split best = {.time_us = INFINITY};
    double all_us = least_us(planner, whole, parts, NULL), past_us = PAST_THE_BEST * whole->best_us;
    if (!whole->slow && all_us > past_us)
        return best;
    FusionPair *pair = fusion_split(planner->arena, whole->fusion, parts);
    if (!pair)
        return best;
    prepared_mark_parts(whole->fusion, (Fusion *[]){pair->partial, pair->final}, 2);
    uint64_t passed_over = planner->passed_over;
    for (int f = 0; planner->families[f]; f++) {
        double own_us = least_us(planner, whole, parts, planner->families[f]);
        bool slow = isfinite(own_us) && own_us > fmin(past_us, FAR_SLOWER * all_us);
        if (slow || !may_make_parts(planner->families[f], of))
            planner->passed_over |= (uint64_t)1 << f;
    }
    planner->series = whole->parts;
    ChoiceList first = choices_best_of(planner, rewritten_launches, pair->partial, PARTIAL_KEPT);
    planner->passed_over = passed_over;
    planner->series = whole->sums;
    ChoiceList second = choices_best_of(planner, choices_single, pair->final, 1);
    planner->series = NULL;
    Choice split = companions->before;
    split.partial_ops = with_definition(planner->arena, &companions->before, pair->definition);
    split.partial_count++;
    for (int i = 0; i < first.count && second.count; i++) {
        Choice choice = choice_extend(planner, split, first.choices[i]);
        choice = with_behind(planner, companions, choice_extend(planner, choice, second.choices[0]));
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
    const PerfEstimate *perf = &least->first.program.perf;
    if (perf->waves < 2 || reduction_points(whole->fusion) < FEW_TERMS * parts)
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
    const RProgram *program = &least.first.program;
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

/* The kernel of another family than the first one's that would be best with blocks for all SMs, if it then took less than
   half of the time; or NULL. */
static const PlannedLaunch *best_spread(const Planner *planner, const ChoiceList *list, const PlannedLaunch *first)
{
    const PlannedLaunch *best = NULL;
    double least_us = rprogram_spread_us(&first->program, planner->device) / 2;
    for (int i = 1; i < list->count; i++) {
        const PlannedLaunch *launch = &list->choices[i]->launches[0];
        double us = rprogram_spread_us(&launch->program, planner->device);
        if (list->choices[i]->count == 1 && launch->family != first->family && us < least_us) {
            least_us = us;
            best = launch;
        }
    }
    return best;
}

/* So many parts give that kernel blocks for all SMs, or another one of its family on tensor cores, whose blocks are larger. */
static bool employs(const Planner *planner, const ChoiceList *list, const PlannedLaunch *spread, int64_t parts)
{
    bool any = spread && choices_employ(parts, choices_idle_sms(planner, spread));
    for (int i = 1; i < list->count && spread && !any; i++) {
        const PlannedLaunch *launch = &list->choices[i]->launches[0];
        any = list->choices[i]->count == 1 && launch->family == spread->family && !on_cuda_cores(launch) &&
              choices_employ(parts, choices_idle_sms(planner, launch));
    }
    return any;
}

static double bytes_of_all(Tensor *const *tensors, int count)
{
    double bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += (double)tensor_elements(tensors[i]) * dtype_info[tensors[i]->dtype].bits / 8;
    return bytes;
}

/* A kernel on CUDA cores takes much longer than its bytes and its arithmetic, since threads compute addresses and reload
   elements. Another family, which has few blocks or no kernel for the whole sum, may be much faster on its parts. */
static bool is_slow(const Planner *planner, const Fusion *fusion, const PlannedLaunch *best)
{
    const PerfEstimate *perf = &best->program.perf;
    const DeviceSpec *device = planner->device;
    Unit unit = best->kind->space->unit;
    double bytes = bytes_of_all(fusion->inputs, fusion->input_count) +
                   bytes_of_all(fusion->outputs, fusion->output_count);
    double floor_us = bytes / device->dram.bandwidth_gb_s / 1e3 + 2 * perf->launch_us +
                      perf->flops / perf_unit_peak(device, unit) / 1e3;
    return on_cuda_cores(best) && !best->family->tiles_both && planned_us(best) > MANY_TIMES * floor_us;
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

/* Keeps the best of them, and the best one of another family. */
static void keep_split(Split *least, Split *other, Split split)
{
    bool better = split.time_us < least->time_us, another = split.first.family != least->first.family;
    if (another && (better || split.time_us < other->time_us))
        *other = better ? *least : split;
    if (better)
        *least = split;
}

/* Split-K where kernels leave SMs idle: in powers of two, then near the best of them, of which all tiles are constructed. Another
   family that is nearly as good may be better with all of its own. */
static void add_splits(Planner *planner, ChoiceList *list, const Companions *companions, const Fusion *fusion,
                       const ChoiceList *whole)
{
    const PlannedLaunch *best = &whole->choices[0]->launches[0];
    Splitting of = {
        .companions = companions,
        .fusion = fusion,
        .ways = whole,
        .slow = !planner->rewrite && is_slow(planner, fusion, best),
        .best_us = with_behind(planner, companions, companions->before).time_us + planned_us(best),
        .parts = &(TileSeries){.arena = planner->choices},
        .sums = &(TileSeries){.arena = planner->choices},
    };
    const PlannedLaunch *spread = best_spread(planner, whole, best);
    bool deep = is_deep(fusion), product = best->family->tiles_both && best->program.perf.waves < 1;
    int64_t idle = deep ? 2 * planner->device->sm_count : choices_idle_sms(planner, best);   // deep: a block for each part
    Split least = {.time_us = INFINITY}, other = least;
    int64_t first = first_parts(planner, &of);
    double last_us = 0;
    bool past = false;   // more parts of products only take longer to add
    for (int64_t power = 1; power <= MAX_PARTS; power *= 2) {
        int64_t parts = power == 1 ? first : power;
        past |= last_us > least.time_us && parts > least.parts && least.first.family->tiles_both &&
                !of.slow && !may_gain(planner, &of, &least, parts);
        PartFamilies makers = {.any = of.slow || choices_employ(parts, idle) || (product && on_cuda_cores(best)),
                               .tile_both = product,
                               .no_products = past,
                               .also = employs(planner, whole, spread, parts) ? spread->family : NULL};
        if (power == first || (!makers.any && !makers.tile_both && !makers.also))
            continue;
        int64_t even = deep || planner->rewrite ? fusion_even_parts(fusion, parts) : parts;
        of.tried[even] |= makers.any && !makers.no_products;
        Split split = add_split(planner, list, &of, even, makers);
        last_us = split.time_us;
        of.best_us = fmin(of.best_us, split.time_us);
        keep_split(&least, &other, split);
        /* More parts of a family that fills the SMs only take longer to add; another one may still have none that suit it. */
        bool fills = split.first.program.perf.waves >= 1 && !of.slow && power > first &&
                     split.first.family == least.first.family;
        if (fills && planned_us(&split.first) + sum_us(planner, &of, 2 * parts) > PAST_THE_BEST * of.best_us)
            break;
    }
    if (!isfinite(least.time_us))
        return;
    if (least.first.family->tiles_both)
        least = add_whole_waves(planner, list, &of, add_between(planner, list, &of, least));
    of.parts = of.sums = NULL;
    add_split(planner, list, &of, least.parts, least.of);
    if (other.time_us <= PAST_THE_BEST * of.best_us)
        add_split(planner, list, &of, other.parts, (PartFamilies){.also = other.first.family});
}

/* Kernels of the rewritten fusion, with the launches before and after it. */
static void add_rewritten(Planner *planner, ChoiceList *list, const Rewritten *form)
{
    Choice *before[MAX_BEFORE];
    Companions companions = {.behind_count = form->behind_count};
    if (!choices_best_each(planner, form->before, form->before_count, before) ||
        !choices_best_each(planner, form->behind, form->behind_count, companions.behind))
        return;
    Choice begun = {.partial_ops = form->definitions, .partial_count = form->definition_count};
    companions.before = choice_extend_by_all(planner, begun, before, form->before_count);
    companions.before.copies = form->before_count;
    double copies_us = with_behind(planner, &companions, companions.before).time_us;
    if (copies_us > list->choices[0]->time_us)
        return;
    ChoiceList main = rewritten_launches(planner, form->main);
    for (int i = 0; i < main.count; i++) {
        Choice choice = choice_extend(planner, companions.before, main.choices[i]);
        choices_add(planner, list, with_behind(planner, &companions, choice));
    }
    if (main.count && planner->rewrite->splits)
        add_splits(planner, list, &companions, form->main, &main);
}

static bool offers(const Family *family, const Rewrite *rewrite)
{
    const Rewrite *const *own = family->rewrites;
    while (own && *own && *own != rewrite)
        own++;
    return own && *own;
}

/* By families that offer the rewrite; the others gain nothing from it. */
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

/* Each rewrite that some family offers, once. */
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
    planner->rewrite = NULL;
    planner->passed_over = 0;
    add_splits(planner, &list, &(Companions){.behind_count = 0}, fusion, &list);
    add_all_rewritten(planner, &list, &viewed);
    keep_diverse(&list, planner->keep);
    return list;
}
