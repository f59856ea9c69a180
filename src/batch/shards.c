#include "batch/shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/strbuf.h"

int shard_of(Arena *arena, const char *output, int count)
{
    char *digits = hash_of(arena, output, strlen(output));
    digits[8] = '\0';   // 32 bits are plenty
    return (int)(strtoul(digits, NULL, 16) % (unsigned long)count);
}

// ---- the line ----

const char *shard_line(Arena *arena, const Shard *shard)
{
    Json *line = json_object();
    json_set_int(line, "shard", shard->index);
    json_set_int(line, "shards", shard->count);
    json_set_int(line, "kernels", shard->kernels);
    const char *text = json_text(arena, line, false);
    json_free(line);
    return text;
}

static bool read_count(const Json *line, const char *key, int least, int most, int *count)
{
    double value;
    if (!json_number(json_get(line, key), &value) || value < least || value > most)
        return false;
    *count = (int)value;
    return *count == value;
}

bool shard_read(const char *line, Shard *shard)
{
    const char *wrong;
    Json *json = json_read(line, &wrong);
    bool whole = json && read_count(json, "shards", 1, MAX_SHARDS, &shard->count) &&
                 read_count(json, "shard", 0, shard->count - 1, &shard->index) &&
                 read_count(json, "kernels", 0, 1 << 30, &shard->kernels);
    json_free(json);
    return whole;
}

// ---- what is missing ----

enum { MOST_NAMED = 8 };   // more shards than that are counted

typedef struct Missing {
    StrBuf words;
    int count;
} Missing;

static StrBuf *next_missing(Missing *missing)
{
    if (missing->count++ > 0)
        strbuf_puts(&missing->words, missing->count <= MOST_NAMED ? ", " : "");
    return &missing->words;
}

static void add_missing(Missing *missing, int index, int count, const Shard *shard, int found)
{
    if (shard && found >= shard->kernels)
        return;
    StrBuf *words = next_missing(missing);
    if (missing->count > MOST_NAMED)
        return;
    if (shard)
        strbuf_printf(words, "%d of the %d kernels of shard %d/%d", shard->kernels - found, shard->kernels,
                      index, count);
    else
        strbuf_printf(words, "shard %d/%d", index, count);
}

static int by_place(const void *left, const void *right)
{
    const Shard *a = left, *b = right;
    if (a->count != b->count)
        return a->count - b->count;
    return a->index != b->index ? a->index - b->index : a->kernels - b->kernels;
}

/* Shards of one division, which are sorted. Returns how many there are. */
static int compare_group(Arena *arena, const Shard *shards, int shard_count, const char *const *outputs,
                         int output_count, Missing *missing)
{
    int count = shards->count, at = 0;
    int *found = NEW_ARRAY(arena, int, count);
    for (int i = 0; i < output_count; i++)
        found[shard_of(arena, outputs[i], count)]++;
    for (int index = 0; index < count; index++) {
        const Shard *shard = NULL;
        for (; at < shard_count && shards[at].count == count && shards[at].index == index; at++)
            shard = &shards[at];   // of several runs of one shard the one of most kernels
        add_missing(missing, index, count, shard, found[index]);
    }
    return at;
}

const char *shards_missing(Arena *arena, Shard *shards, int shard_count, const char *const *outputs,
                           int output_count)
{
    Missing missing = {.words = strbuf_new(arena)};
    if (shard_count)
        qsort(shards, (size_t)shard_count, sizeof *shards, by_place);
    for (int i = 0; i < shard_count;)
        i += compare_group(arena, shards + i, shard_count - i, outputs, output_count, &missing);
    if (missing.count > MOST_NAMED)
        strbuf_printf(&missing.words, " and %d more", missing.count - MOST_NAMED);
    return missing.count ? missing.words.text : NULL;
}
