// Ways of computing a fusion in parts: chunks of rows, tiles of a product's rows, columns of an attention.
#include "codegen/plan/choices_parts.h"

#include <limits.h>
#include <math.h>

#include "codegen/plan/diverse.h"
#include "ir/row_tiles.h"
#include "ir/stream.h"

enum {
    LANE_POINTS = 4,    // of a row's smallest chunk: 16 bytes of f32, a lane's widest access (PTX ISA, ld.v4)
    CHUNK_SIZES = 4,    // limit of the search: each four times the one before
    SMALL_CHUNK = 64,   // points of a row that a block makes elements of, at least,
    SMALL_ELEMENTS = 16384,   // or so many that all rows side by side have these
    MIN_TILE_COLUMNS = 64,    // limit of the search: of a product whose rows are reduced where they are made
    MAX_TILE_COLUMNS = 256
};

/* Points of a row for whose elements one block is launched: at the end SMs idle no longer than one block takes. */
static int64_t small_chunk(const Fusion *fusion)
{
    int64_t points = SMALL_ELEMENTS;
    for (int a = 0; a < fusion->spatial_count; a++)
        points /= fusion->axes[a].extent;
    return larger(points, SMALL_CHUNK);
}

/* Kernels of the elements: each family's best. Chunks are small, so that those that L2 still holds are read first. */
static ChoiceList element_launches(Planner *planner, const Fusion *fusion)
{
    ChoiceList list = {0};
    const FusionPhases *small = fusion_cut(planner->arena, fusion, small_chunk(fusion));
    if (!small || small->elements->op_count == 0)
        return list;
    const FusionPhases *smallest = fusion_cut(planner->arena, fusion, SMALL_CHUNK);
    choices_add_launches(planner, &list, small->elements, 0);
    choices_add_launches(planner, &list, small->chunks, 0);
    choices_add_launches(planner, &list, smallest->chunks, 0);
    if (small->columns)
        choices_add_launches(planner, &list, small->columns, 0);
    list.count = best_of_families(&list, list.choices);
    return list;
}

/* Three launches: statistics of chunks of rows, statistics of rows, elements. */
static void add_phases(Planner *planner, ChoiceList *list, const FusionPhases *phases,
                       const ChoiceList *elements)
{
    ChoiceList first = choices_best_of(planner, choices_single, phases->partial, PARTIAL_KEPT),
               second = choices_best_of(planner, choices_single, phases->combine, 1);
    for (int i = 0; i < first.count && second.count; i++) {
        Choice choice = choice_extend(planner, *first.choices[i], second.choices[0]);
        choice.partial_ops = phases->definitions;
        choice.partial_count = phases->definition_count;
        for (int e = 0; e < elements->count; e++)
            choices_add(planner, list, choice_extend(planner, choice, elements->choices[e]));
        if (phases->elements->op_count == 0)
            choices_add(planner, list, choice);
    }
}

void choices_add_phases(Planner *planner, ChoiceList *list, const Fusion *fusion)
{
    ChoiceList elements = choices_best_of(planner, element_launches, fusion, INT_MAX);
    for (int64_t chunk = LANE_POINTS * planner->device->warp_size, i = 0; i < CHUNK_SIZES; chunk *= 4, i++) {
        const FusionPhases *phases = fusion_cut(planner->arena, fusion, chunk);
        if (!phases)
            continue;
        prepared_mark_parts(fusion, (Fusion *[]){phases->partial, phases->combine}, 2);
        add_phases(planner, list, phases, &elements);
    }
}

/* Kernels of a part, each with the best ones that combine the parts. Returns the time of the best. */
static double add_combined(Planner *planner, ChoiceList *list, const Choice *begun, const Fusion *part,
                           Fusion *const *behind, int count)
{
    double best_us = INFINITY;
    Choice *last[MAX_BEHIND];
    ChoiceList first = choices_best_of(planner, choices_single, part, PARTIAL_KEPT);
    if (!first.count || !choices_best_each(planner, behind, count, last))
        return best_us;
    for (int i = 0; i < first.count; i++) {
        Choice choice = choice_extend(planner, *begun, first.choices[i]);
        choice = choice_extend_by_all(planner, choice, last, count);
        best_us = fmin(best_us, choice.time_us);
        choices_add(planner, list, choice);
    }
    return best_us;
}

void choices_add_row_tiles(Planner *planner, ChoiceList *list, const Fusion *fusion)
{
    for (int64_t columns = MAX_TILE_COLUMNS; columns >= MIN_TILE_COLUMNS; columns /= 2) {
        const RowTiles *tiles = row_tiles_cut(planner->arena, fusion, columns);
        if (!tiles)
            continue;
        prepared_mark_parts(fusion, (Fusion *[]){tiles->partial, tiles->combine}, 2);
        Choice begun = {.partial_ops = tiles->definitions, .partial_count = tiles->definition_count};
        add_combined(planner, list, &begun, tiles->partial, &(Fusion *){tiles->combine}, 1);
    }
}

/* Attention of parts of its columns, and the launches that combine them. Where sums of parts are more than what
   is read, as of as many rows as columns, blocks of a cluster keep theirs in shared memory instead. */
static double add_parts_of_stream(Planner *planner, ChoiceList *list, const Fusion *fusion, int64_t count)
{
    const StreamParts *parts = stream_split(planner->arena, fusion, count);
    if (!parts || (device_most_cluster_blocks(planner->device) > 1 &&
                   tensors_bytes(parts->partial->outputs, parts->partial->output_count) >
                       tensors_bytes(fusion->inputs, fusion->input_count)))
        return INFINITY;
    Fusion *all[] = {parts->partial, parts->results, parts->rows};
    int behind = parts->rows ? 2 : 1;
    prepared_mark_parts(fusion, all, 1 + behind);
    Choice begun = {.partial_ops = parts->definitions, .partial_count = parts->definition_count};
    return add_combined(planner, list, &begun, parts->partial, all + 1, behind);
}

void choices_add_stream_parts(Planner *planner, ChoiceList *list, const Fusion *fusion)
{
    if (!list->count)
        return;
    double best_us = list->choices[0]->time_us;
    const PlannedLaunch *whole = &list->choices[0]->launches[0];   // parts replace its clusters
    int64_t idle = choices_idle_sms(planner, whole) * whole->program->cluster;
    for (int64_t parts = 2; parts <= MAX_PARTS; parts *= 2) {
        if (!choices_employ(parts, idle))
            continue;
        double time_us = add_parts_of_stream(planner, list, fusion, parts);
        if (isfinite(time_us) && time_us > PAST_THE_BEST * best_us)
            break;
        best_us = fmin(best_us, time_us);
    }
}
