#include "batch/results.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/diag.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/output.h"
#include "base/strbuf.h"

// ---- a file ----

/* NULL, with errno: it cannot be read. It may be longer than any file that a person writes. */
static char *read_text(Arena *arena, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    StrBuf text = strbuf_new(arena);
    char piece[16384];
    for (size_t got; (got = fread(piece, 1, sizeof piece, file)) > 0;)
        strbuf_write(&text, piece, got);
    bool failed = ferror(file);
    fclose(file);
    for (size_t i = 0; i < text.length; i++)   // no end before the end, whatever happened to the file
        if (!text.text[i])
            text.text[i] = '?';
    return failed ? NULL : text.text;
}

static bool read_line(Arena *arena, const char *line, Result *result)
{
    const char *wrong;
    Json *json = json_read(line, &wrong);
    if (!json)
        return false;
    const char *output = json_string(json_get(json, "output")),
               *content = json_string(json_get(json, "content"));
    const char *status = json_string(json_get(json, "status"));
    bool whole = output && content && status;
    if (whole)
        *result = (Result){arena_strdup(arena, output), arena_strdup(arena, content), line,
                           .done = strcmp(status, "done") == 0};
    json_free(json);
    return whole;
}

static void add_shard(Arena *arena, Results *results, Shard shard)
{
    if ((results->shard_count & (results->shard_count - 1)) == 0) {   // 0, 1, 2, 4, …: the array is full
        Shard *larger = NEW_ARRAY(arena, Shard, 2 * results->shard_count + 1);
        for (int i = 0; i < results->shard_count; i++)
            larger[i] = results->shards[i];
        results->shards = larger;
    }
    results->shards[results->shard_count++] = shard;
}

bool results_are_kept(const char *path)
{
    struct stat found;
    return strcmp(path, "-") != 0 && (stat(path, &found) != 0 || S_ISREG(found.st_mode));
}

void results_read(Arena *arena, Results *results, const char *path, bool strict)
{
    char *rest = read_text(arena, path);
    if (!rest && (strict || errno != ENOENT))
        fatal(strict ? EXIT_INPUT : EXIT_MACHINE, "cannot read '%s': %s", path, strerror(errno));
    int number = 0;
    for (char *line; rest && *rest;) {
        Result result;
        Shard shard;
        number++;
        line = strsep(&rest, "\n");
        if (read_line(arena, line, &result)) {
            result.place = arena_printf(arena, "%s:%d", path, number);
            results_add(arena, results, result);
        } else if (shard_read(line, &shard)) {
            add_shard(arena, results, shard);
        } else if (strict) {
            fatal(EXIT_INPUT,
                  "%s:%d: this is no result of a kernel; let the run that wrote it come to its end", path,
                  number);
        }
    }
}

void results_write(Arena *arena, const Results *results, const char *path)
{
    StrBuf text = strbuf_new(arena);
    for (int i = 0; i < results->shard_count; i++)
        strbuf_printf(&text, "%s\n", shard_line(arena, &results->shards[i]));
    for (int i = 0; i < results->count; i++)
        strbuf_printf(&text, "%s\n", results->items[i].line);
    output_write(path, text.text, text.length);
}

// ---- all of them ----

void results_add(Arena *arena, Results *results, Result result)
{
    if (results->count == results->capacity) {
        Result *larger = NEW_ARRAY(arena, Result, 2 * results->capacity + 64);
        for (int i = 0; i < results->count; i++)
            larger[i] = results->items[i];
        results->items = larger;
        results->capacity = 2 * results->capacity + 64;
    }
    result.number = results->added++;
    results->items[results->count++] = result;
}

static int by_output(const void *left, const void *right)
{
    const Result *a = left, *b = right;
    return strcmp(a->output, b->output);
}

static int by_age(const void *left, const void *right)
{
    const Result *a = left, *b = right;
    int order = by_output(a, b);
    return order ? order : a->number - b->number;
}

/* In this order, and of several with one output the last. */
static void sort(Results *results, int (*compare)(const void *, const void *))
{
    int kept = 0;
    if (results->count)
        qsort(results->items, (size_t)results->count, sizeof *results->items, compare);
    for (int i = 0; i < results->count; i++)
        if (i + 1 == results->count || by_output(&results->items[i], &results->items[i + 1]) != 0)
            results->items[kept++] = results->items[i];
    results->count = kept;
}

void results_sort(Results *results) { sort(results, by_age); }

const Result *results_find(const Results *results, const char *output)
{
    const Result key = {.output = output};
    return results->count ? bsearch(&key, results->items, (size_t)results->count, sizeof key, by_output)
                          : NULL;
}

static bool file_holds(Arena *arena, const Json *file, const char *wanted)
{
    const char *path = json_string(json_get(file, "path")), *hash = json_string(json_get(file, "sha256"));
    const char *found = path && strcmp(path, wanted) == 0 ? hash_of_file(arena, path) : NULL;
    return found && hash && strcmp(found, hash) == 0;
}

bool result_holds(Arena *arena, const Result *result, const Entry *entry)
{
    const char *wrong, **wanted = entry->files;
    Json *json = json_read(result->line, &wrong);
    const Json *files = json_get(json, "files"), *file = json_is_array(files) ? json_first(files) : NULL;
    for (; file && *wanted && file_holds(arena, file, *wanted); wanted++)
        file = json_next(file);
    bool all = !file && !*wanted;
    json_free(json);
    return all;
}

// ---- shards ----

/* Of one output: what was made after what failed, and then by the text, so that it does not matter which came
   first. */
static int by_worth(const void *left, const void *right)
{
    const Result *a = left, *b = right;
    int order = by_output(a, b);
    if (order == 0)
        order = a->done - b->done;
    return order ? order : strcmp(a->line, b->line);
}

/* One output was made from two contents: which of them is there now, nobody knows. */
static void refuse_disagreement(const Results *read, const Results *merged)
{
    for (int i = 0; i < read->count; i++) {
        const Result *one = &read->items[i], *other = results_find(merged, one->output);
        if (one->done && strcmp(one->content, other->content) != 0)
            fatal(EXIT_INPUT, "%s and %s speak of '%s' made from different inputs; run the older one again",
                  one->place, other->place, one->output);
    }
}

/* In words; NULL: nothing. */
static const char *what_is_missing(Arena *arena, const Results *read, const Results *merged)
{
    const char **outputs = NEW_ARRAY(arena, const char *, merged->count);
    for (int i = 0; i < merged->count; i++)
        outputs[i] = merged->items[i].output;
    return shards_missing(arena, read->shards, read->shard_count, outputs, merged->count);
}

void results_merge(Arena *arena, char *const *paths, int count, bool partial, const char *target)
{
    Results read = {0};
    for (int i = 0; i < count; i++)
        results_read(arena, &read, paths[i], true);
    Results merged = {.items = NEW_ARRAY(arena, Result, read.count), .count = read.count};
    for (int i = 0; i < read.count; i++)
        merged.items[i] = read.items[i];
    sort(&merged, by_worth);
    refuse_disagreement(&read, &merged);
    const char *missing = what_is_missing(arena, &read, &merged);
    if (missing && !partial)
        fatal(EXIT_INPUT,
              "there are no results of %s; run what is missing to its end, or allow it by --partial",
              missing);
    if (missing) {   // and the file goes on saying so
        merged.shards = read.shards;
        merged.shard_count = read.shard_count;
    }
    int failed = 0;
    for (int i = 0; i < merged.count; i++)
        failed += !merged.items[i].done;
    results_write(arena, &merged, target);
    talk("%d results of %d files, %d of kernels that failed%s%s", merged.count, count, failed,
         missing ? "; none of " : "", missing ? missing : "");
}
