#include "rprogram/memo.h"

#include <math.h>
#include <string.h>

enum {
    FIRST_CAPACITY = 512,   // places of the hash table
    MOST_BYTES = 512 << 20  // of memory, for kinds that may occur again, 20 KB each
};

/* A hash of all of a kind, its space and its schedule that a construction can depend on. Kinds are not compared beside it: that two
   which differ have the same 128 bits is less likely than an error of the machine. */
typedef struct Key {
    uint64_t first, second;
} Key;

typedef struct MemoEntry {
    bool used;
    Key key;
    const RProgram *programs;
    int count;
} MemoEntry;

struct ConstructMemo {
    Arena *arena;
    const Target *target;
    int keep;
    RProgram *kept;          // of the last construction
    MemoEntry *entries;      // by hash; at least half of them are free
    size_t count, capacity;  // a power of two
    size_t bytes;            // of kinds whose programs are stored
};

ConstructMemo *construct_memo_new(Arena *arena, const Target *target, int keep)
{
    ConstructMemo *memo = NEW(arena, ConstructMemo);
    *memo = (ConstructMemo){.arena = arena, .target = target, .keep = keep, .capacity = FIRST_CAPACITY};
    memo->entries = NEW_ARRAY(arena, MemoEntry, memo->capacity);
    memo->kept = NEW_ARRAY(arena, RProgram, keep);
    return memo;
}

/* Two multiplicative hashes, eight bytes at a time; what products have above goes below for the next ones. */
static void add_bytes(Key *key, const void *bytes, size_t length)
{
    const char *at = bytes;
    for (uint64_t word = 0; length; word = 0) {
        size_t taken = length < sizeof word ? length : sizeof word;
        if (taken == sizeof word)
            memcpy(&word, at, sizeof word);
        else
            memcpy(&word, at, taken);
        key->first = (key->first ^ word) * 0x9E3779B97F4A7C15u;
        key->second = (key->second ^ word) * 0xC2B2AE3D27D4EB4Fu;
        key->first ^= key->first >> 32;
        key->second ^= key->second >> 29;
        at += taken, length -= taken;
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

/* Where the kind is, or would be. */
static MemoEntry *place_of(const ConstructMemo *memo, Key key)
{
    size_t at = key.first & (memo->capacity - 1);
    while (memo->entries[at].used && (memo->entries[at].key.first != key.first || memo->entries[at].key.second != key.second))
        at = (at + 1) & (memo->capacity - 1);
    return &memo->entries[at];
}

static void grow(ConstructMemo *memo)
{
    ConstructMemo grown = *memo;
    grown.capacity *= 2;
    grown.entries = NEW_ARRAY(memo->arena, MemoEntry, grown.capacity);
    for (size_t i = 0; i < memo->capacity; i++)
        if (memo->entries[i].used)
            *place_of(&grown, memo->entries[i].key) = memo->entries[i];
    *memo = grown;
}

// ---- series ----

typedef struct KnownTiles {
    const KernelKind *kind;
    Key key;
    const RProgram *programs;
    int count;
    struct KnownTiles *next;
} KnownTiles;

static void add_known(TileSeries *series, const KernelKind *kind, Key key, const RProgram *programs, int count)
{
    KnownTiles *known = NEW(series->arena, KnownTiles);
    *known = (KnownTiles){
        .kind = kind_copy(series->arena, kind),
        .key = key,
        .programs = programs,
        .count = count,
        .next = series->first,
    };
    series->first = known;
}

/* How many times as long the longer sums of two kinds are. */
static double sums_apart(const KernelKind *kind, const KernelKind *other)
{
    double longer = 1;
    for (int a = 0; a < kind->space->axis_count; a++)
        if (kind->space->axes[a].reduction)
            longer *= (double)kind->space->axes[a].extent / (double)other->space->axes[a].extent;
    return fmax(longer, 1 / longer);
}

/* Tiles of the kind whose sums are nearest in length; NULL: none are near. */
static const KnownTiles *known_tiles(const TileSeries *series, const KernelKind *kind)
{
    static const double NEAR = 4.3;   // limit of the search: four times, and parts that are rounded up
    const KnownTiles *nearest = NULL;
    for (const KnownTiles *known = series ? series->first : NULL; known; known = known->next)
        if (strcmp(known->kind->name, kind->name) == 0 && known->kind->cost == kind->cost &&
            known->kind->space->axis_count == kind->space->axis_count &&
            sums_apart(kind, known->kind) < (nearest ? sums_apart(kind, nearest->kind) : NEAR))
            nearest = known;
    return nearest;
}

const RProgram *construct_memo_ask(ConstructMemo *memo, Arena *scratch, Arena *choices,
                                   const KernelKind *kind, TileSeries *series, double known_us, int *count,
                                   ConstructStats *stats)
{
    Key key = key_of(scratch, kind, (Key){0});
    MemoEntry *entry = place_of(memo, key);
    const KnownTiles *known = entry->used ? NULL : known_tiles(series, kind);
    if (known) {
        key = key_of(scratch, kind, known->key);
        entry = place_of(memo, key);
    }
    bool remembered = entry->used;
    const RProgram *programs = entry->programs;
    *count = entry->count;
    stats->stopped = false;
    if (known && !remembered)
        *count = rprogram_construct_like(scratch, kind, memo->target, known->programs, known->count,
                                         memo->kept, stats);
    if (!*count && !remembered)   // nor is any of the known tiles legal
        *count = rprogram_construct(scratch, kind, memo->target, known_us, memo->keep, memo->kept, stats);
    size_t bytes = (size_t)*count * sizeof *programs;
    bool remembers = !stats->stopped && memo->bytes + bytes <= MOST_BYTES;
    if (!remembered)
        programs = arena_copy(remembers ? memo->arena : series ? series->arena : choices, memo->kept, bytes);
    if (series && !known && *count && !stats->stopped)
        add_known(series, kind, key, programs, *count);
    if (remembered || !remembers)
        return programs;
    memo->bytes += bytes;
    *entry = (MemoEntry){true, key, programs, *count};
    if (2 * ++memo->count > memo->capacity)
        grow(memo);
    return programs;
}
