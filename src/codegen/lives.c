#include "codegen/lives.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

enum {
    APART = 16,            // launches that far apart hardly run side by side
    MAX_PAIRS = 1 << 20,   // that are looked at: 1,448 lives of which each meets each
    MAX_LOOKS = 1 << 20    // at others, until what was found is good enough: about 20 ms
};

/* Launches that lie further behind the last reader come after it, path or not; and times of what is alive at once that such a
   plan may take. */
static const struct {
    int window;
    double most;
} RELAXED[] = {{INT_MAX, 1.15}, {APART, 1.5}, {0, INFINITY}};

typedef struct Span {
    int64_t start, end;
} Span;

typedef struct Turn {
    double weight;   // the heaviest first
    int life;
} Turn;

typedef struct Placing {
    Arena *arena;
    Life *lives;
    int count;
    const BitRows *later;
    int *first_of;     // by launch: its first life; behind the last launch their number
    int (*pairs)[2];   // lives that must lie apart
    int pair_count;
    int *others_of;    // by life: where its others begin in `others`
    int *others;
    Turn *turns;       // in which they are placed
    bool *placed;
    int64_t *best;     // places so far
    int64_t looks;
    Span *taken;
} Placing;

static int last_user(const Life *life)
{
    int last = life->other_count ? life->others[life->other_count - 1] : life->writer;
    for (int i = 0; i < life->reader_count; i++)
        last = life->readers[i] > last ? life->readers[i] : last;
    return last;
}

static int64_t most_alive(const Placing *p)
{
    int launches = p->later->count;
    int64_t *change = NEW_ARRAY(p->arena, int64_t, launches + 1), alive = 0, most = 0;
    for (int i = 0; i < p->count; i++) {
        change[p->lives[i].writer] += p->lives[i].bytes;
        change[last_user(&p->lives[i]) + 1] -= p->lives[i].bytes;
    }
    for (int k = 0; k < launches; k++) {
        alive += change[k];
        most = larger(most, alive);
    }
    return most;
}

// ---- who must lie apart ----

static bool has_ended(const Placing *p, const Life *life, int launch)
{
    bool ended = bit_get(p->later, life->writer, launch);
    for (int i = 0; i < life->other_count && ended; i++)
        ended = bit_get(p->later, life->others[i], launch);
    for (int i = 0; i < life->reader_count && ended; i++)
        ended = bit_get(p->later, life->readers[i], launch);
    return ended;
}

static bool add_pair(Placing *p, int life, int other)
{
    if (p->pair_count == MAX_PAIRS)
        return false;
    p->pairs[p->pair_count][0] = life;
    p->pairs[p->pair_count++][1] = other;
    return true;
}

/* When each of the other's writers begins. */
static bool has_ended_for(const Placing *p, const Life *of, const Life *other)
{
    bool ended = has_ended(p, of, other->writer);
    for (int i = 0; i < other->other_count && ended; i++)
        ended = has_ended(p, of, other->others[i]);
    return ended;
}

/* Those that the life meets, of the ones that begin with it or later. */
static bool find_pairs_of(Placing *p, int life, int window)
{
    const Life *of = &p->lives[life];
    int64_t end = smaller((int64_t)last_user(of) + window + 1, p->later->count);
    for (int launch = of->writer; launch < end; launch++) {
        int from = launch == of->writer ? life + 1 : p->first_of[launch];
        for (int other = from; other < p->first_of[launch + 1]; other++)
            if (!has_ended_for(p, of, &p->lives[other]) && !add_pair(p, life, other))
                return false;
    }
    return true;
}

static void list_others(Placing *p)
{
    memset(p->others_of, 0, sizeof(int) * (size_t)(p->count + 2));
    int *end_of = p->others_of + 1;   // of each life, once all are listed
    for (int i = 0; i < p->pair_count; i++)
        for (int side = 0; side < 2; side++)
            end_of[p->pairs[i][side] + 1]++;
    for (int i = 0; i < p->count; i++)
        end_of[i + 1] += end_of[i];
    for (int i = 0; i < p->pair_count; i++)
        for (int side = 0; side < 2; side++)
            p->others[end_of[p->pairs[i][side]]++] = p->pairs[i][1 - side];
}

/* False: there are too many. */
static bool find_pairs(Placing *p, int window)
{
    p->pair_count = 0;
    for (int i = 0; i < p->count; i++)
        if (!find_pairs_of(p, i, window))
            return false;
    list_others(p);
    return true;
}

// ---- where they lie ----

static int by_start(const void *left, const void *right)
{
    const Span *a = left, *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

/* The lowest gap that is large enough between those that it meets. */
static int64_t lowest_gap(Placing *p, int life)
{
    int count = 0;
    p->looks += p->others_of[life + 1] - p->others_of[life];
    for (int i = p->others_of[life]; i < p->others_of[life + 1]; i++) {
        const Life *other = &p->lives[p->others[i]];
        if (p->placed[p->others[i]])
            p->taken[count++] = (Span){other->offset, other->offset + other->bytes};
    }
    qsort(p->taken, (size_t)count, sizeof *p->taken, by_start);
    int64_t at = 0;
    for (int i = 0; i < count && p->taken[i].start < at + p->lives[life].bytes; i++)
        at = larger(at, p->taken[i].end);
    return at;
}

static int64_t place_in_order(Placing *p)
{
    int64_t bytes = 0;
    memset(p->placed, 0, sizeof *p->placed * (size_t)p->count);
    for (int i = 0; i < p->count; i++) {
        Life *life = &p->lives[p->turns[i].life];
        life->offset = lowest_gap(p, p->turns[i].life);
        p->placed[p->turns[i].life] = true;
        bytes = larger(bytes, life->offset + life->bytes);
    }
    return bytes;
}

static int by_weight(const void *left, const void *right)
{
    const Turn *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return a->life - b->life;
}

/* Large ones first; those first that are large for long; as the stream makes them. */
static double weight_of(const Life *life, int rule)
{
    double bytes = (double)life->bytes;
    return rule == 0 ? bytes : rule == 1 ? bytes * (last_user(life) - life->writer + 1) : -life->writer;
}

enum { RULES = 3, ROUNDS = 32 };

static int64_t place_by(Placing *p, int rule)
{
    for (int i = 0; i < p->count; i++)
        p->turns[i] = (Turn){weight_of(&p->lives[i], rule), i};
    qsort(p->turns, (size_t)p->count, sizeof *p->turns, by_weight);
    return place_in_order(p);
}

/* The life that ends last comes first, so that it finds its gap while there is one. */
static int64_t place_again(Placing *p)
{
    int top = 0;
    for (int i = 1; i < p->count; i++) {
        const Life *life = &p->lives[p->turns[i].life], *highest = &p->lives[p->turns[top].life];
        if (life->offset + life->bytes > highest->offset + highest->bytes)
            top = i;
    }
    Turn turn = p->turns[top];
    memmove(p->turns + 1, p->turns, sizeof turn * (size_t)top);
    p->turns[0] = turn;
    return place_in_order(p);
}

/* Keeps the places if they take less than those before. */
static void keep_better(const Placing *p, int64_t bytes, int64_t *least)
{
    if (bytes >= *least)
        return;
    *least = bytes;
    for (int i = 0; i < p->count; i++)
        p->best[i] = p->lives[i].offset;
}

/* The best of some orders; of each that takes more than `enough`, of others that follow from it. */
static int64_t place_best(Placing *p, int64_t enough)
{
    int64_t least = INT64_MAX;
    p->looks = 0;
    for (int rule = 0; rule < RULES && least > enough; rule++) {
        keep_better(p, place_by(p, rule), &least);
        for (int round = 0; round < ROUNDS && least > enough && p->looks < MAX_LOOKS; round++)
            keep_better(p, place_again(p), &least);
    }
    for (int i = 0; i < p->count; i++)
        p->lives[i].offset = p->best[i];
    return least;
}

/* One behind the other. */
static int64_t place_apart(Placing *p)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->count; i++) {
        p->lives[i].offset = bytes;
        bytes += p->lives[i].bytes;
    }
    return bytes;
}

static Placing placing_of(Arena *arena, Life *lives, int count, const BitRows *later)
{
    int64_t pairs = smaller(MAX_PAIRS, (int64_t)count * (count - 1) / 2);
    Placing p = {
        .arena = arena,
        .lives = lives,
        .count = count,
        .later = later,
        .first_of = NEW_ARRAY(arena, int, later->count + 1),
        .pairs = arena_room(arena, sizeof(int[2]) * (size_t)pairs),
        .others_of = NEW_ARRAY(arena, int, count + 2),
        .others = arena_room(arena, sizeof(int[2]) * (size_t)pairs),
        .turns = NEW_ARRAY(arena, Turn, count),
        .placed = NEW_ARRAY(arena, bool, count),
        .best = NEW_ARRAY(arena, int64_t, count),
        .taken = NEW_ARRAY(arena, Span, count),
    };
    for (int launch = 0, life = 0; launch <= later->count; launch++) {
        while (life < count && lives[life].writer < launch)
            life++;
        p.first_of[launch] = life;
    }
    return p;
}

LivesPlan lives_place(Life *lives, int count, const BitRows *later)
{
    Arena *scratch = arena_new();
    Placing placing = placing_of(scratch, lives, count, later);
    LivesPlan plan = {.alive = most_alive(&placing)};
    for (size_t i = 0; i < sizeof RELAXED / sizeof *RELAXED; i++) {
        plan.window = RELAXED[i].window;
        bool found = find_pairs(&placing, plan.window);
        plan.bytes = found ? place_best(&placing, plan.alive + plan.alive / 32) : place_apart(&placing);
        if (found && (double)plan.bytes <= RELAXED[i].most * (double)plan.alive)
            break;
    }
    arena_free(scratch);
    return plan;
}
