#include "rprogram/memo.h"

#include <math.h>
#include <string.h>

enum {
    FIRST_CAPACITY = 512,    // places of the hash table
    MOST_BYTES = 512 << 20,   // of memory, for kinds that occur again, 20 KB each
    FIRST_BYTES = 224 << 20   // of memory, for kinds that may do so: half of it
};

/* All of a kind, its space and its schedule that a construction can depend on, as bytes. */
typedef struct Key {
    uint64_t hash;
    size_t length;
    const char *bytes;
} Key;

/* Most kinds of a long program occur once: past FIRST_BYTES only their hash is stored. The rest is stored when they occur again. */
typedef struct MemoEntry {
    bool used;
    Key key;   // `bytes` NULL: it occurred once
    RProgram *programs;
    int count;
    ConstructStats stats;
} MemoEntry;

struct ConstructMemo {
    Arena *arena;
    const Target *target;
    int keep;
    MemoEntry *entries;      // by hash; at least half of them are free
    size_t count, capacity;  // a power of two
    size_t bytes;            // of kinds whose programs are stored
};

ConstructMemo *construct_memo_new(Arena *arena, const Target *target, int keep)
{
    ConstructMemo *memo = NEW(arena, ConstructMemo);
    *memo = (ConstructMemo){.arena = arena, .target = target, .keep = keep, .capacity = FIRST_CAPACITY};
    memo->entries = NEW_ARRAY(arena, MemoEntry, memo->capacity);
    return memo;
}

/* FNV-1a, eight bytes at a time. */
static uint64_t hash_of(const char *bytes, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u, word;
    for (size_t i = 0; i + sizeof word <= length; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        hash = (hash ^ word) * 0x100000001b3u;
    }
    return hash;
}

/* `tried`: the hash of the kind whose tiles are tried; 0: all are constructed. */
static Key key_of(Arena *arena, const KernelKind *kind, uint64_t tried)
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
    const struct Part {
        const void *bytes;
        size_t length;
    } parts[] = {{&own, sizeof own}, {space, space_bytes(space)}, {kind->schedule, schedule_bytes(kind->schedule)},
                 {&phases, sizeof phases}, {kind->choice.value, kind->choice.bytes}, {&tried, sizeof tried}};
    Key key = {.length = 0};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        key.length += parts[i].length;
    char *bytes = arena_room(arena, key.length), *end = bytes;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].length)
            end = (char *)memcpy(end, parts[i].bytes, parts[i].length) + parts[i].length;
    key.bytes = bytes;
    key.hash = hash_of(bytes, key.length);
    return key;
}

/* Where the kind is, or would be. */
static MemoEntry *place_of(const ConstructMemo *memo, const Key *key)
{
    for (size_t at = key->hash & (memo->capacity - 1);; at = (at + 1) & (memo->capacity - 1)) {
        MemoEntry *entry = &memo->entries[at];
        bool alike = entry->key.hash == key->hash &&
                     (!entry->key.bytes || !key->bytes ||
                      (entry->key.length == key->length && memcmp(entry->key.bytes, key->bytes, key->length) == 0));
        if (!entry->used || alike)
            return entry;
    }
}

static void grow(ConstructMemo *memo)
{
    ConstructMemo grown = *memo;
    grown.capacity *= 2;
    grown.entries = NEW_ARRAY(memo->arena, MemoEntry, grown.capacity);
    for (size_t i = 0; i < memo->capacity; i++)
        if (memo->entries[i].used)
            *place_of(&grown, &memo->entries[i].key) = memo->entries[i];
    *memo = grown;
}

static void add_stats(ConstructStats *sum, const ConstructStats *stats)
{
    sum->generated += stats->generated;
    sum->feasible += stats->feasible;
    for (int reason = 0; reason < PRUNE_COUNT; reason++)
        sum->pruned[reason] += stats->pruned[reason];
}

static void *copy_of(Arena *arena, const void *bytes, size_t length)
{
    return length ? memcpy(arena_room(arena, length), bytes, length) : NULL;
}

static void remember(Arena *arena, MemoEntry *entry, const Key *key, const RProgram *programs, int count,
                     const ConstructStats *stats)
{
    *entry = (MemoEntry){
        .used = true,
        .key = *key,
        .programs = copy_of(arena, programs, (size_t)count * sizeof *programs),
        .count = count,
        .stats = *stats,
    };
    entry->key.bytes = copy_of(arena, key->bytes, key->length);
}

// ---- series ----

typedef struct KnownTiles {
    const KernelKind *kind;
    uint64_t hash;   // of its key
    const RProgram *programs;
    int count;
    struct KnownTiles *next;
} KnownTiles;

struct TileSeries {
    Arena *arena;
    KnownTiles *first;
};

TileSeries *tile_series_new(Arena *arena)
{
    TileSeries *series = NEW(arena, TileSeries);
    series->arena = arena;
    return series;
}

static void add_known(TileSeries *series, const KernelKind *kind, uint64_t hash, const RProgram *programs, int count)
{
    KnownTiles *known = NEW(series->arena, KnownTiles);
    *known = (KnownTiles){
        .kind = kind_copy(series->arena, kind),
        .hash = hash,
        .programs = copy_of(series->arena, programs, (size_t)count * sizeof *programs),
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

/* All tiles are constructed where none of the known ones is legal. */
static int construct(const ConstructMemo *memo, Arena *scratch, const KernelKind *kind, const KnownTiles *known,
                     RProgram *kept, ConstructStats *stats)
{
    int count = known ? rprogram_construct_like(scratch, kind, memo->target, known->programs, known->count, kept, stats)
                      : 0;
    return count ? count : rprogram_construct(scratch, kind, memo->target, memo->keep, kept, stats);
}

int construct_memo_ask(ConstructMemo *memo, Arena *scratch, const KernelKind *kind, TileSeries *series, RProgram *kept,
                       ConstructStats *stats)
{
    const KnownTiles *known = known_tiles(series, kind);
    Key key = key_of(scratch, kind, known ? known->hash : 0);
    MemoEntry *entry = place_of(memo, &key);
    bool remembered = entry->key.bytes;
    ConstructStats own = remembered ? entry->stats : (ConstructStats){0};
    int count = remembered ? entry->count : construct(memo, scratch, kind, known, kept, &own);
    if (remembered && count)
        memcpy(kept, entry->programs, (size_t)count * sizeof *kept);
    add_stats(stats, &own);
    if (series && !known && count)
        add_known(series, kind, key.hash, kept, count);
    if (remembered)
        return count;
    bool is_new = !entry->used;
    size_t bytes = key.length + (size_t)count * sizeof *kept;
    if (memo->bytes + bytes <= (is_new ? FIRST_BYTES : MOST_BYTES)) {
        memo->bytes += bytes;
        remember(memo->arena, entry, &key, kept, count, &own);
    } else if (is_new)
        *entry = (MemoEntry){.used = true, .key = {.hash = key.hash}};
    if (is_new && 2 * ++memo->count > memo->capacity)
        grow(memo);
    return count;
}
