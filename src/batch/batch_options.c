#include "batch/batch_options.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/path.h"
#include "batch/shards.h"
#include "hal/worker.h"
#include "option_error.h"
#include "options.h"

#define usage_error(...) fatal(EXIT_USAGE, __VA_ARGS__)

enum {
    KEY_SHARD = 256, KEY_JSON, KEY_CACHE, KEY_NINJA, KEY_LIST, KEY_MERGE, KEY_PARTIAL, KEY_COLOUR, KEY_USAGE,
};

// clang-format off
static const struct argp_option table[] = {
    {0, 0, 0, 0, "What is made:", 1},
    {"shard", KEY_SHARD, "I/N", 0,
     "Only the part I, from 0, of N parts, which are told apart by the outputs' names", 1},
    {"keep-going", 'k', 0, 0, "After a failure go on with the other kernels", 1},
    {"jobs", 'j', "N", 0, "Kernels at once (default: as many as there are cores)", 1},
    {"cache", KEY_CACHE, "DIR", 0,
     "Keep machine code in DIR, as without `batch' (default: $ROLLERC_CACHE)", 1},

    {0, 0, 0, 0, "What is written instead:", 2},
    {"ninja", KEY_NINJA, "FILE", 0, "A build file for Ninja, to be run from the current folder", 2},
    {"list", KEY_LIST, 0, 0, "The command lines, to stdout", 2},
    {"merge", KEY_MERGE, 0, 0, "The results of all shards in one: to --json, or stdout", 2},
    {"partial", KEY_PARTIAL, 0, 0, "With --merge: although shards, or kernels of them, are missing", 2},

    {0, 0, 0, 0, "Results and messages:", 3},
    {"json", KEY_JSON, "FILE", 0, "The results, one JSON object a line (default: MANIFEST.jsonl, of a shard "
                                  "MANIFEST.I-of-N.jsonl, in the current folder)", 3},
    {"verbose", 'v', 0, 0, "Name every kernel", 3},
    {"quiet", 'q', 0, 0, "Say nothing but errors", 3},
    {"color", KEY_COLOUR, "WHEN", 0, "auto (default), always or never", 3},

    {0, 0, 0, 0, "Help:", -1},
    {"help", 'h', 0, 0, "Give this help", -1},
    {"usage", KEY_USAGE, 0, 0, "Give a short usage message", -1},
    {0},
};
// clang-format on

typedef struct BatchLine {
    Arena *arena;
    BatchOptions *options;
    char **files;   // the arguments that are no options
    int file_count;
    bool merge;
    const char *colour;
} BatchLine;

static int read_number(const char *text, char **end)
{
    errno = 0;
    long value = strtol(text, end, 10);
    return isdigit((unsigned char)*text) && !errno && value <= MAX_SHARDS ? (int)value : -1;
}

static void read_shard(BatchOptions *options, const char *text)
{
    char *slash, *end = "-";
    options->shard = read_number(text, &slash);
    options->shards = *slash == '/' ? read_number(slash + 1, &end) : -1;
    if (options->shard < 0 || options->shards < 1 || *end)
        usage_error("--shard wants I/N, such as 0/4, not '%s'", text);
    if (options->shard >= options->shards)
        usage_error("--shard counts from 0: of %d shards the last one is %d/%d", options->shards,
                    options->shards - 1, options->shards);
}

static int read_jobs(const char *text)
{
    char *end;
    int jobs = read_number(text, &end);
    if (jobs < 1 || jobs > MAX_BATCH_JOBS || *end)
        usage_error("--jobs wants a whole number from 1 to %d, not '%s'", MAX_BATCH_JOBS, text);
    return jobs;
}

static const char *read_colour(const char *when)
{
    if (strcmp(when, "auto") != 0 && strcmp(when, "always") != 0 && strcmp(when, "never") != 0)
        usage_error("unknown word '%s' for --color; it is one of auto, always, never", when);
    return when;
}

static error_t read_option(int key, char *value, struct argp_state *state)
{
    BatchLine *line = state->input;
    BatchOptions *options = line->options;
    switch (key) {
    case ARGP_KEY_ARG: line->files[line->file_count++] = value; break;
    case KEY_SHARD: read_shard(options, value); break;
    case 'k': options->keep_going = true; break;
    case 'j': options->jobs = read_jobs(value); break;
    case KEY_JSON: options->results = value; break;
    case KEY_CACHE: options->cache = value; break;
    case KEY_NINJA: options->ninja = value; break;
    case KEY_LIST: options->list = true; break;
    case KEY_MERGE: line->merge = true; break;
    case KEY_PARTIAL: options->partial = true; break;
    case 'v': options->verbose = true, options->quiet = false; break;
    case 'q': options->quiet = true, options->verbose = false; break;
    case KEY_COLOUR: line->colour = read_colour(value); break;
    case 'h': option_print_help(state, ARGP_HELP_STD_HELP);
    case KEY_USAGE: option_print_help(state, ARGP_HELP_USAGE);
    case ARGP_KEY_ERROR: option_error(line->arena, table, state);
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const char manual[] =
    "Compile all kernels of a manifest, expressions x defines x devices, that are not there yet.\v"
    "What was made from the same expression, device, options and rollerc is not made again, so a run that "
    "was "
    "cut off goes on where it was. Outputs and results are named from the current folder, what a manifest "
    "names is looked for beside it.\n\n"
    "Exit codes: 0 all is there; else the largest of the kernels' own, 1 for a wrong manifest or results that "
    "are missing, 2 for wrong usage.";

static void take_merged(BatchLine *line)
{
    if (!line->file_count)
        usage_error(
            "--merge wants the results of shards: rollerc batch --merge a.jsonl b.jsonl --json all.jsonl");
    line->options->merged = line->files;
    line->options->merged_count = line->file_count;
    if (!line->options->results)
        line->options->results = "-";
}

static void take_manifest(BatchLine *line)
{
    BatchOptions *options = line->options;
    if (options->partial)
        usage_error("--partial without --merge");
    if (line->file_count != 1)
        usage_error(line->file_count ? "one manifest, please: '%s' and '%s' are given"
                                     : "no manifest; `rollerc batch --help' shows the options",
                    line->files[0], line->files[1]);
    options->manifest = line->files[0];
    const char *stem =
        strcmp(options->manifest, "-") == 0 ? "batch" : path_stem(line->arena, options->manifest);
    if (!options->results)
        options->results = options->shards == 1 ? arena_printf(line->arena, "%s.jsonl", stem)
                                                : arena_printf(line->arena, "%s.%d-of-%d.jsonl", stem,
                                                               options->shard, options->shards);
    if (path_same(line->arena, options->results, options->manifest))
        usage_error("'%s' is the manifest and would be overwritten by --json", options->manifest);
    if (options->ninja && path_same(line->arena, options->ninja, options->manifest))
        usage_error("'%s' is the manifest and would be overwritten by --ninja", options->manifest);
}

BatchOptions *batch_options_parse(Arena *arena, int argc, char **argv)
{
    BatchOptions *options = NEW(arena, BatchOptions);
    *options = (BatchOptions){.shards = 1, .jobs = worker_cores()};
    if (options->jobs > MAX_BATCH_JOBS)
        options->jobs = MAX_BATCH_JOBS;
    BatchLine line = {.arena = arena, .options = options, .files = NEW_ARRAY(arena, char *, argc + 1)};
    diag_configure(
        (DiagOptions){.colour = options_want_colour(NULL)});   // for errors in the command line itself

    argv[0] = "rollerc batch";
    const struct argp argp = {.options = table,
                              .parser = read_option,
                              .args_doc = "MANIFEST.yaml\n--merge RESULTS.jsonl...",
                              .doc = manual};
    error_t error = argp_parse(&argp, argc, argv, ARGP_NO_HELP | ARGP_NO_ERRS, NULL, &line);
    if (error)
        fatal(error == ENOMEM ? EXIT_MACHINE : EXIT_USAGE, "%s", strerror(error));
    options->colour = options_want_colour(line.colour);
    if (line.merge)
        take_merged(&line);
    else
        take_manifest(&line);
    return options;
}
