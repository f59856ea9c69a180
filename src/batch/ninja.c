#include "batch/ninja.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/strbuf.h"
#include "batch/content.h"
#include "batch/words.h"

/* A path where Ninja divides by blanks and colons. */
static void write_path(StrBuf *out, const char *path)
{
    for (; *path; path++) {
        if (*path == ' ' || *path == ':' || *path == '$')
            strbuf_putc(out, '$');
        strbuf_putc(out, *path);
    }
}

/* The rest of a line, where only '$' means something to Ninja. */
static void write_value(StrBuf *out, const char *value)
{
    for (; *value; value++) {
        if (*value == '$')
            strbuf_putc(out, '$');
        strbuf_putc(out, *value);
    }
}

static void write_word(StrBuf *out, const char *word) { write_value(out, words_quote(out->arena, word)); }

static const char *path_of_program(Arena *arena)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length < 0 || length == sizeof path)
        fatal(EXIT_MACHINE, "cannot find rollerc itself: %s", strerror(errno));
    return arena_strndup(arena, path, (size_t)length);
}

static void write_option(StrBuf *out, const char *option, const char *value)
{
    strbuf_printf(out, " %s ", option);
    write_word(out, value);
}

/* Files that keep their bytes are not touched (restat), so nothing that is made from them is made again. */
static void write_kinds(StrBuf *out, const char *program)
{
    strbuf_puts(out, "# Written by rollerc batch; run ninja in the folder from which it was written.\n"
                     "ninja_required_version = 1.8\n\n"
                     "rollerc = ");
    write_word(out, program);
    strbuf_puts(out, "\n\n"
                     "rule kernel\n"
                     "  command = $rollerc $words\n"
                     "  restat = 1\n"
                     "  description = Constructing $out\n\n"
                     "rule manifest\n"
                     "  command = $rollerc batch $in --ninja $out$words\n"
                     "  generator = 1\n"
                     "  restat = 1\n"
                     "  description = Reading $in\n\n");
}

/* This file is written anew when the manifest changes. */
static void write_itself(StrBuf *out, const BatchOptions *options)
{
    strbuf_puts(out, "build ");
    write_path(out, options->ninja);
    strbuf_puts(out, ": manifest ");
    write_path(out, options->manifest);
    strbuf_puts(out, "\n  words =");
    if (options->shards > 1)
        strbuf_printf(out, " --shard %d/%d", options->shard, options->shards);
    if (options->cache)
        write_option(out, "--cache", options->cache);
    strbuf_puts(out, "\n");
}

static void write_paths(StrBuf *out, const char *before, const char *const *paths)
{
    for (; *paths; paths++) {
        strbuf_puts(out, before);
        write_path(out, *paths);
        before = " ";
    }
}

static void write_entry(Arena *arena, StrBuf *out, const Entry *entry, const char *program, const char *cache)
{
    strbuf_puts(out, "\nbuild ");
    write_path(out, entry->output);
    write_paths(out, " | ", entry->files + 1);
    strbuf_puts(out, ": kernel ");
    write_path(out, entry->expr);
    write_paths(out, " | ", (const char *[]){program, NULL});
    write_paths(out, " ", inputs_of(arena, entry) + 1);
    strbuf_puts(out, "\n  words =");
    for (int i = 1; i < entry->word_count; i++) {
        strbuf_putc(out, ' ');
        write_word(out, entry->words[i]);
    }
    if (cache)
        write_option(out, "--cache", cache);
    strbuf_puts(out, "\n");
}

char *ninja_text(Arena *arena, const Manifest *manifest, const BatchOptions *options)
{
    StrBuf out = strbuf_new(arena);
    const char *program = path_of_program(arena);
    write_kinds(&out, program);
    write_itself(&out, options);
    for (int i = 0; i < manifest->count; i++)
        write_entry(arena, &out, &manifest->entries[i], program, options->cache);
    return out.text;
}
