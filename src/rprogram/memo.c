#include "rprogram/memo.h"

#include <math.h>
#include <string.h>

#include "base/words.h"

enum { MOST_BYTES = 512 << 20 };   // of memory, for kinds that may occur again, 20 KB each

/* A hash of all of a kind, its space and its schedule that a construction can depend on. Kinds are not compared beside it: that two
   which differ have the same 128 bits is less likely than an error of the machine. */
typedef struct Key {
    uint64_t first, second;
} Key;

typedef struct MemoEntry {
    Key key;
    const RProgram *programs;
    int count;
} MemoEntry;

struct ConstructMemo {
    Arena *arena;
    const Target *target;
    int keep;
    RProgram *kept;          // of the last construction
    WordTable entries;       // MemoEntry by its key
    size_t bytes;            // of kinds whose programs are stored
};

ConstructMemo *construct_memo_new(Arena *arena, const Target *target, int keep)
{
    ConstructMemo *memo = NEW(arena, ConstructMemo);
    *memo = (ConstructMemo){.arena = arena, .target = target, .keep = keep, .entries = {.arena = arena}};
    memo->kept = NEW_ARRAY(arena, RProgram, keep);
    return memo;
}

/* The halves of the product, combined, so that high bits of the factors change low ones, too. */
static uint64_t mixed(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Two hashes, 16 bytes at a time. */
static void add_bytes(Key *key, const void *bytes, size_t length)
{
    const char *at = bytes;
    for (size_t taken; length; at += taken, length -= taken) {
        uint64_t words[2] = {0};
        taken = length < sizeof words ? length : sizeof words;
        if (taken == sizeof words)
            memcpy(words, at, sizeof words);
        else
            memcpy(words, at, taken);
        key->first = mixed(key->first ^ words[0], words[1] ^ 0x9E3779B97F4A7C15u);
        key->second = mixed(key->second ^ words[1], words[0] ^ 0xC2B2AE3D27D4EB4Fu);
    }
}

/* `tried`: of the kind whose tiles are tried; 0: all are constructed. */
static Key key_of(Arena *arena, const KernelKind *kind, Key tried)
{
    KernelKind own = *kind;
    own.space = NULL, own.schedule = NULL, own.choice.value = NULL, own.name = NULL;
    TileSpace *space = space_copy(arena, kind->space);
    TapPhases phases = space->phases ? *space->phases : (TapPhases){.count = 0};
    space->phases = NULL, phases.offsets = NULL;   // where elements lie makes no difference
    for (int a = 0; a < space->axis_count; a++)
        space->axes[a].name = NULL;
    for (int i = 0; i < space->tile_count; i++)
        space->tiles[i].name = NULL;
    add_bytes(&tried, &own, sizeof own);
    add_bytes(&tried, space, space_bytes(space));
    add_bytes(&tried, kind->schedule, schedule_bytes(kind->schedule));
    add_bytes(&tried, &phases, sizeof phases);
    add_bytes(&tried, kind->choice.value, kind->choice.bytes);
    return tried;
}

static Slice bytes_of(const Key *key) { return (Slice){(const char *)key, (const char *)(key + 1)}; }

// ---- series ----

typedef struct KnownTiles {
    const char *name;       // of the kind
    const KindCost *cost;
    int axis_count;
    double terms;           // of a sum
    Key key;
    const RProgram *programs;
    int count;
    struct KnownTiles *next;
} KnownTiles;

static double terms_of(const KernelKind *kind)
{
    double terms = 1;
    for (int a = 0; a < kind->space->axis_count; a++)
        terms *= kind->space->axes[a].reduction ? (double)kind->space->axes[a].extent : 1;
    return terms;
}

static void add_known(TileSeries *series, const KernelKind *kind, Key key, const RProgram *programs, int count)
{
    KnownTiles *known = NEW(series->arena, KnownTiles);
    *known = (KnownTiles){
        .name = kind->name,
        .cost = kind->cost,
        .axis_count = kind->space->axis_count,
        .terms = terms_of(kind),
        .key = key,
        .programs = programs,
        .count = count,
        .next = series->first,
    };
    series->first = known;
}

/* How many times as long the longer sums are. */
static double sums_apart(double terms, const KnownTiles *known)
{
    return fmax(terms / known->terms, known->terms / terms);
}

/* Tiles of the kind whose sums are nearest in length; NULL: none are near. */
static const KnownTiles *known_tiles(const TileSeries *series, const KernelKind *kind)
{
    static const double NEAR = 4.3;   // limit of the search: four times, and parts that are rounded up
    const KnownTiles *nearest = NULL;
    double terms = terms_of(kind);
    for (const KnownTiles *known = series ? series->first : NULL; known; known = known->next)
        if (strcmp(known->name, kind->name) == 0 && known->cost == kind->cost &&
            known->axis_count == kind->space->axis_count &&
            sums_apart(terms, known) < (nearest ? sums_apart(terms, nearest) : NEAR))
            nearest = known;
    return nearest;
}

const RProgram *construct_memo_ask(ConstructMemo *memo, Arena *scratch, Arena *choices,
                                   const KernelKind *kind, TileSeries *series, double known_us, int *count,
                                   ConstructStats *stats)
{
    Key key = key_of(scratch, kind, (Key){0});
    MemoEntry *entry = word_find(&memo->entries, bytes_of(&key));
    const KnownTiles *known = entry ? NULL : known_tiles(series, kind);
    if (known) {
        key = key_of(scratch, kind, known->key);
        entry = word_find(&memo->entries, bytes_of(&key));
    }
    const RProgram *programs = entry ? entry->programs : NULL;
    *count = entry ? entry->count : 0;
    stats->stopped = false;
    if (known && !entry)
        *count = rprogram_construct_like(scratch, kind, memo->target, known->programs, known->count,
                                         memo->kept, stats);
    if (!*count && !entry)   // nor is any of the known tiles legal
        *count = rprogram_construct(scratch, kind, memo->target, known_us, memo->keep, memo->kept, stats);
    size_t bytes = (size_t)*count * sizeof *programs;
    bool remembers = !stats->stopped && memo->bytes + bytes <= MOST_BYTES;
    if (!entry)
        programs = arena_copy(remembers ? memo->arena : series ? series->arena : choices, memo->kept, bytes);
    if (series && !known && *count && !stats->stopped)
        add_known(series, kind, key, programs, *count);
    if (entry || !remembers)
        return programs;
    memo->bytes += bytes;
    entry = arena_copy(memo->arena, &(MemoEntry){key, programs, *count}, sizeof *entry);
    *word_place(&memo->entries, bytes_of(&entry->key)) = entry;
    return programs;
}
