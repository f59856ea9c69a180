#include "codegen/plan/diverse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double EQUAL_TIMES = 1e-4;   // a share: the model sees no difference

/* The launch that a choice is told by, and not by those that bring its factors in order. */
static const PlannedLaunch *lead(const Choice *choice) { return &choice->launches[choice->copies]; }

bool choice_same_family(const Choice *left, const Choice *right)
{
    return left->count == right->count && lead(left)->family == lead(right)->family;
}

bool launches_same_kernels(const PlannedLaunch *left, const PlannedLaunch *right, int count)
{
    bool same = true;
    for (int i = 0; i < count && same; i++)
        same = left[i].family == right[i].family && strcmp(left[i].kind->name, right[i].kind->name) == 0;
    return same;
}

bool choice_same_kernels(const Choice *left, const Choice *right)
{
    return left->count == right->count && launches_same_kernels(left->launches, right->launches, left->count);
}

static bool same_tile(const Choice *left, const Choice *right, Level level)
{
    return choice_same_family(left, right) &&
           memcmp(&lead(left)->program->tile[level], &lead(right)->program->tile[level], sizeof(RTile)) == 0;
}

static bool same_register_tile(const Choice *left, const Choice *right)
{
    return same_tile(left, right, LEVEL_REGISTER);
}

static bool same_shared_tile(const Choice *left, const Choice *right)
{
    return same_tile(left, right, LEVEL_SHARED);
}

static int compare_sizes(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

/* The tile's sizes, whatever the axes that they lie along. */
static RTile sorted_sizes(RTile tile)
{
    qsort(tile.size, MAX_AXES, sizeof *tile.size, compare_sizes);
    return tile;
}

/* Axes have changed places, and the model sees no difference: blocks of 64 x 128 and of 128 x 64 of a square
   product. */
static bool is_mirrored(const Choice *left, const Choice *right)
{
    if (!choice_same_kernels(left, right) ||
        fabs(left->time_us - right->time_us) > EQUAL_TIMES * left->time_us)
        return false;
    const RProgram *a = lead(left)->program, *b = lead(right)->program;
    bool same = a->threads == b->threads;
    for (Level level = LEVEL_REGISTER; level <= LEVEL_SHARED && same; level++) {
        RTile of_a = sorted_sizes(a->tile[level]), of_b = sorted_sizes(b->tile[level]);
        same = memcmp(&of_a, &of_b, sizeof of_a) == 0;
    }
    return same;
}

/* The same kernel with the same tiles, of the fusion or of forms that differ in names alone: sums in so many parts, which are
   found in two ways, or the rows of one chunk, whatever its size. */
static bool is_same_launch(const PlannedLaunch *left, const PlannedLaunch *right)
{
    const RProgram *a = left->program, *b = right->program;
    const FamilyChoice *of_a = &left->kind->choice, *of_b = &right->kind->choice;
    return a->grid == b->grid && a->threads == b->threads && a->registers == b->registers && a->cluster == b->cluster &&
           a->shared_bytes == b->shared_bytes && a->panel == b->panel && memcmp(a->tile, b->tile, sizeof a->tile) == 0 &&
           launches_same_kernels(left, right, 1) && of_a->bytes == of_b->bytes &&
           (!of_a->bytes || memcmp(of_a->value, of_b->value, of_a->bytes) == 0);
}

bool launches_same(const PlannedLaunch *left, const PlannedLaunch *right, int count)
{
    bool same = true;
    for (int i = 0; i < count && same; i++)
        same = is_same_launch(&left[i], &right[i]);
    return same;
}

static bool is_same(const Choice *left, const Choice *right)
{
    return left->count == right->count && launches_same(left->launches, right->launches, left->count);
}

static bool is_same_or_mirrored(const Choice *left, const Choice *right)
{
    return is_mirrored(left, right) || is_same(left, right);
}

int best_of_families(const ChoiceList *list, Choice **found)
{
    int count = 0;
    for (int i = 0; i < list->count && list->choices[i]->time_us <= FAR_SLOWER * list->choices[0]->time_us; i++) {
        int k = 0;
        while (k < count && !choice_same_family(found[k], list->choices[i]))
            k++;
        if (k == count)
            found[count++] = list->choices[i];
    }
    return count;
}

/* How many of the choices that are kept share something with this one. */
static int count_kept(const ChoiceList *list, const Choice *choice,
                      bool (*share)(const Choice *, const Choice *))
{
    int count = 0;
    for (int i = 0; i < list->count; i++)
        count += !list->choices[i]->spare && share(list->choices[i], choice);
    return count;
}

/* What is asked of the choices that are kept, less each time that places are left. */
typedef enum Asked { NEW_FAMILY, NEW_TILES, NO_MIRROR, NOTHING_MORE } Asked;

static bool is_admitted(const ChoiceList *list, const Choice *choice, Asked asked, int share)
{
    if (asked == NOTHING_MORE)
        return count_kept(list, choice, is_same) == 0;
    if (choice->time_us > FAR_SLOWER * list->choices[0]->time_us || count_kept(list, choice, is_same_or_mirrored))
        return false;
    if (asked == NEW_FAMILY)
        return count_kept(list, choice, choice_same_family) == 0;
    return asked == NO_MIRROR || (count_kept(list, choice, same_register_tile) < share &&
                                  count_kept(list, choice, same_shared_tile) < share);
}

void keep_diverse(ChoiceList *list, int keep)
{
    int kept = 0, share = (keep + 4) / 5;
    for (int i = 0; i < list->count; i++)
        list->choices[i]->spare = true;
    for (Asked asked = NEW_FAMILY; asked <= NOTHING_MORE; asked++)
        for (int i = 0; i < list->count && (kept < keep || asked == NEW_FAMILY); i++)
            if (list->choices[i]->spare && is_admitted(list, list->choices[i], asked, share)) {
                list->choices[i]->spare = false;
                kept++;
            }
    int count = 0;
    for (int i = 0; i < list->count; i++)
        if (!list->choices[i]->spare)
            list->choices[count++] = list->choices[i];
    list->count = count;
}
