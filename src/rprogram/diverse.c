// Which of the constructed programs are kept: the fastest, but not ten with nearly the same tiles. Those share the
// model's error, so a set that spans register and block tiles is likelier to hold the true best.
#include "base/checked.h"
#include "rprogram/rprogram.h"

enum { DISTINCT_TILES = 4 };   // limit of the search: register tiles, and block tiles, among the kept programs

/* Along the axes of outputs, of blocks; along all, of threads. */
static bool same_tile(const TileSpace *space, const RProgram *a, const RProgram *b, Level level)
{
    int i = 0;
    while (i < space->axis_count && (a->tile[level].size[i] == b->tile[level].size[i] ||
                                     (level == LEVEL_SHARED && space->axes[i].reduction)))
        i++;
    return i == space->axis_count;
}

typedef struct Selection {
    const TileSpace *space;
    RProgram *const *sorted;
    int count, keep;
    bool *picked;
    const RProgram **picks;
    int picked_count;
} Selection;

/* Have fewer than `most` of the picked programs the tile of this one? */
static bool is_rare(const Selection *s, const RProgram *program, Level level, int most)
{
    int alike = 0;
    for (int i = 0; i < s->picked_count && alike < most; i++)
        alike += same_tile(s->space, s->picks[i], program, level);
    return alike < most;
}

/* Three passes over the programs, each less strict. */
typedef enum DiversityPass { PASS_BOTH_RARE, PASS_ONE_NEW, PASS_ANY } DiversityPass;

static bool admits(const Selection *s, DiversityPass pass, const RProgram *program)
{
    int cap = (int)ceil_div(s->keep, DISTINCT_TILES);
    if (pass == PASS_ANY)
        return true;
    if (pass == PASS_ONE_NEW)
        return is_rare(s, program, LEVEL_REGISTER, 1) || is_rare(s, program, LEVEL_SHARED, 1);
    return is_rare(s, program, LEVEL_REGISTER, cap) && is_rare(s, program, LEVEL_SHARED, cap);
}

static void take(Selection *s, int i)
{
    if (s->picked[i] || s->picked_count == s->keep)
        return;
    s->picked[i] = true;
    s->picks[s->picked_count++] = s->sorted[i];
}

static void pick(Selection *s, DiversityPass pass)
{
    for (int i = 0; i < s->count && s->picked_count < s->keep; i++)
        if (!s->picked[i] && admits(s, pass, s->sorted[i]))
            take(s, i);
}

/* The fastest, and the fastest as a part of split-K, however slow it is alone: it decides whether sums are split. */
static void pick_fastest(Selection *s, const DeviceSpec *device)
{
    int of_parts = 0;
    for (int i = 1; i < s->count; i++)
        if (rprogram_spread_us(s->sorted[i], device) < rprogram_spread_us(s->sorted[of_parts], device))
            of_parts = i;
    take(s, 0);
    take(s, of_parts);
}

int rprogram_diverse(Arena *arena, const KernelKind *kind, const DeviceSpec *device, RProgram *const *sorted,
                     int count, int keep, RProgram *kept)
{
    Selection s = {.space = kind->space, .sorted = sorted, .count = count, .keep = keep};
    s.picked = NEW_ARRAY(arena, bool, count);
    s.picks = NEW_ARRAY(arena, const RProgram *, keep);
    pick_fastest(&s, device);
    for (DiversityPass pass = PASS_BOTH_RARE; pass <= PASS_ANY; pass++)
        pick(&s, pass);

    int written = 0;
    for (int i = 0; i < count; i++)
        if (s.picked[i])
            kept[written++] = *sorted[i];
    return written;
}
