#include "hal/launch_order.h"

#include <stdlib.h>

/* A launch that reads or writes, and how. */
typedef struct Use {
    int launch;
    const LaunchArg *arg;
    struct Use *before;
} Use;

/* Bytes of a buffer that the same launches touch, up to where the next section begins. */
typedef struct Section {
    int buffer;
    int64_t offset;
    Use *uses;   // the last one first, without those before a write of the same bytes
} Section;

typedef struct Sweep {
    Arena *arena;
    const Launch *launches;
    Section *sections;   // in order
    int section_count;
    int *seen;       // by launch: the last one that was found to come after it, plus 1
    int *found;      // launches before the current one
    int found_count;
} Sweep;

static int by_start(const void *left, const void *right)
{
    const Section *a = left, *b = right;
    if (a->buffer != b->buffer)
        return a->buffer < b->buffer ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int descending(const void *left, const void *right)
{
    return *(const int *)right - *(const int *)left;
}

/* Where arguments begin and end. */
static void find_sections(Sweep *sweep, int count)
{
    int most = 0, kept = 0;
    for (int k = 0; k < count; k++)
        most += 2 * sweep->launches[k].arg_count;
    Section *sections = NEW_ARRAY(sweep->arena, Section, most);
    for (int k = 0, n = 0; k < count; k++)
        for (int i = 0; i < sweep->launches[k].arg_count; i++) {
            const LaunchArg *arg = &sweep->launches[k].args[i];
            sections[n++] = (Section){arg->buffer, arg->offset, NULL};
            sections[n++] = (Section){arg->buffer, arg->offset + arg->bytes, NULL};
        }
    qsort(sections, (size_t)most, sizeof *sections, by_start);
    for (int i = 0; i < most; i++)
        if (i == 0 || by_start(&sections[i], &sections[i - 1]) != 0)
            sections[kept++] = sections[i];
    sweep->sections = sections;
    sweep->section_count = kept;
}

static Section *section_of(const Sweep *sweep, const LaunchArg *arg)
{
    Section wanted = {.buffer = arg->buffer, .offset = arg->offset};
    return bsearch(&wanted, sweep->sections, (size_t)sweep->section_count, sizeof wanted, by_start);
}

static bool holds(const LaunchArg *arg, const Section *section)
{
    return section->buffer == arg->buffer && section->offset < arg->offset + arg->bytes;
}

static void note(Sweep *sweep, int launch, int before)
{
    if (before == launch || sweep->seen[before] == launch + 1)
        return;
    sweep->seen[before] = launch + 1;
    sweep->found[sweep->found_count++] = before;
}

/* Those that touched the argument's bytes before. */
static void find_before(Sweep *sweep, int launch, const LaunchArg *arg)
{
    for (const Section *section = section_of(sweep, arg); holds(arg, section); section++)
        for (const Use *t = section->uses; t; t = t->before)
            if ((t->arg->written || arg->written) && launch_args_overlap(t->arg, arg))
                note(sweep, launch, t->launch);
}

/* Whoever meets the other's bytes of the section meets the argument's, too. */
static bool covers(const LaunchArg *arg, const LaunchArg *other)
{
    bool same_rows = arg->row == other->row && arg->offset == other->offset && arg->bytes == other->bytes;
    return !arg->row || arg->row_end - arg->row_first == arg->row ||
           (same_rows && arg->row_first <= other->row_first && other->row_end <= arg->row_end);
}

static void forget_covered(Section *section, const LaunchArg *arg)
{
    for (Use **t = &section->uses; *t;)
        if (covers(arg, (*t)->arg))
            *t = (*t)->before;
        else
            t = &(*t)->before;
}

static void touch(Sweep *sweep, int launch, const LaunchArg *arg)
{
    for (Section *section = section_of(sweep, arg); holds(arg, section); section++) {
        if (arg->written)
            forget_covered(section, arg);
        Use *use = NEW(sweep->arena, Use);
        *use = (Use){launch, arg, section->uses};
        section->uses = use;
    }
}

/* From the latest of those found to the first: who ends before one of them is no more than that. */
static void set_after(Sweep *sweep, LaunchOrder *order, Launch *launch, int number)
{
    qsort(sweep->found, (size_t)sweep->found_count, sizeof *sweep->found, descending);
    int *after = NEW_ARRAY(sweep->arena, int, sweep->found_count);
    int kept = 0;
    for (int i = 0; i < sweep->found_count; i++) {
        int before = sweep->found[i];
        if (bit_get(order, number, before))
            continue;
        after[kept++] = before;
        bit_set(order, number, before);
        bit_row_join(order, number, before);
    }
    for (int i = 0; i < kept / 2; i++) {
        int last = after[kept - 1 - i];
        after[kept - 1 - i] = after[i];
        after[i] = last;
    }
    launch->after = after;
    launch->after_count = kept;
}

void launches_order(Arena *arena, Launch *launches, int count)
{
    LaunchOrder order = bit_rows_new(arena, count);
    Sweep sweep = {.arena = arena,
                   .launches = launches,
                   .seen = NEW_ARRAY(arena, int, count),
                   .found = NEW_ARRAY(arena, int, count)};
    find_sections(&sweep, count);
    for (int k = 0; k < count; k++) {
        sweep.found_count = 0;
        for (int i = 0; i < launches[k].arg_count; i++)
            find_before(&sweep, k, &launches[k].args[i]);
        for (int i = 0; i < launches[k].arg_count; i++)
            touch(&sweep, k, &launches[k].args[i]);
        set_after(&sweep, &order, &launches[k], k);
    }
}

LaunchOrder launches_stated_order(Arena *arena, const Launch *launches, int count)
{
    LaunchOrder order = bit_rows_new(arena, count);
    for (int k = 0; k < count; k++)
        for (int i = 0; i < launches[k].after_count; i++) {
            bit_set(&order, k, launches[k].after[i]);
            bit_row_join(&order, k, launches[k].after[i]);
        }
    return order;
}

int launches_unordered(const Launch *launches, int count, const LaunchOrder *order, int *later)
{
    for (*later = 1; *later < count; ++*later)
        for (int k = 0; k < *later; k++)
            if (!bit_get(order, *later, k) && launches_meet(&launches[k], &launches[*later]))
                return k;
    return -1;
}
