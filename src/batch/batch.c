#include "batch/batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "batch/batch_options.h"
#include "batch/content.h"
#include "batch/manifest.h"
#include "batch/ninja.h"
#include "batch/results.h"
#include "batch/run.h"
#include "batch/shards.h"
#include "batch/words.h"
#include "hal/jit_cache.h"

static void keep_shard(Arena *arena, Manifest *manifest, const BatchOptions *options)
{
    int kept = 0;
    for (int i = 0; i < manifest->count; i++)
        if (shard_of(arena, manifest->entries[i].output, options->shards) == options->shard)
            manifest->entries[kept++] = manifest->entries[i];
    manifest->count = kept;
}

static void list_commands(Arena *arena, const Manifest *manifest)
{
    StrBuf out = strbuf_new(arena);
    for (int i = 0; i < manifest->count; i++) {
        const Entry *entry = &manifest->entries[i];
        for (int w = 0; w < entry->word_count; w++)
            strbuf_printf(&out, "%s%s", w ? " " : "", words_quote(arena, entry->words[w]));
        strbuf_puts(&out, "\n");
    }
    output_write("-", out.text, out.length);
}

/* Divides the entries into results that still hold and jobs. Returns the number of jobs. */
static int find_changed(Arena *arena, const Manifest *manifest, const Results *known, Results *results,
                        Job *jobs)
{
    int count = 0;
    for (int i = 0; i < manifest->count; i++) {
        const Entry *entry = &manifest->entries[i];
        const char *content = content_of(arena, entry);
        const Result *before = results_find(known, entry->output);
        if (before && before->done && strcmp(before->content, content) == 0 &&
            result_holds(arena, before, entry))
            results_add(arena, results, *before);
        else
            jobs[count++] = (Job){entry, content};
    }
    return count;
}

/* The warning of a cache that cannot be used comes once, not for every kernel. */
static void check_cache(Arena *arena, BatchOptions *options, const Job *jobs, int count)
{
    const char *cache = options->cache ? options->cache : getenv("ROLLERC_CACHE");
    bool wanted = false;
    for (int i = 0; i < count && cache && *cache; i++)
        wanted |= jobs[i].entry->machine_code;
    if (wanted && !jit_cache_open(arena, cache, 0))
        options->cache = "";
}

static int make_kernels(Arena *arena, const Manifest *manifest, BatchOptions *options)
{
    bool kept = results_are_kept(options->results);
    Shard shard = {options->shard, options->shards, manifest->count};
    Results known = {0}, results = {.shards = &shard, .shard_count = shard.count > 1};
    if (kept)
        results_read(arena, &known, options->results, false);
    results_sort(&known);
    Job *jobs = NEW_ARRAY(arena, Job, manifest->count);
    int changed = find_changed(arena, manifest, &known, &results, jobs), unchanged = results.count;
    results_sort(&results);
    if (kept)
        results_write(arena, &results, options->results);   // without what no longer holds
    RunReport report = {0};
    if (changed) {
        check_cache(arena, options, jobs, changed);
        report = run(arena, options, jobs, changed, &results);
        results_sort(&results);
        results_write(arena, &results, options->results);
    }
    int left = changed - report.made - report.failed;
    talk("%d kernels: %d made, %d unchanged, %d failed%s", manifest->count, report.made, unchanged,
         report.failed, left ? arena_printf(arena, ", %d not tried (--keep-going)", left) : "");
    return report.exit_code;
}

int batch(int argc, char **argv)
{
    Arena *arena = arena_new();
    int exit_code = EXIT_DONE;
    BatchOptions *options = batch_options_parse(arena, argc, argv);
    Manifest manifest = {0};
    if (!options->merged) {
        manifest = manifest_read(arena, options->manifest);
        keep_shard(arena, &manifest, options);
    }
    diag_configure(
        (DiagOptions){.quiet = options->quiet, .verbose = options->verbose, .colour = options->colour});
    if (options->merged)
        results_merge(arena, options->merged, options->merged_count, options->partial, options->results);
    else if (options->list)
        list_commands(arena, &manifest);
    else if (options->ninja) {
        const char *text = ninja_text(arena, &manifest, options);
        output_write(options->ninja, text, strlen(text));
    } else {
        exit_code = make_kernels(arena, &manifest, options);
    }
    arena_free(arena);
    return exit_code;
}
