#include "option_error.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/nearest.h"
#include "base/strbuf.h"

#define usage_error(...) fatal(EXIT_USAGE, __VA_ARGS__)

static bool is_last(const struct argp_option *option)
{
    return !option->name && !option->key && !option->doc && !option->group;
}

static bool is_spelled(const struct argp_option *option, const char *name, size_t length)
{
    bool is_option = option->name && !(option->flags & OPTION_DOC);
    return is_option && strncmp(option->name, name, length) == 0;
}

static _Noreturn void unknown(Arena *arena, const struct argp_option *table, const char *command,
                              const char *name, size_t length)
{
    Nearest nearest = nearest_to(arena_printf(arena, "--%.*s", (int)length, name));
    for (const struct argp_option *option = table; !is_last(option); option++)
        if (is_spelled(option, "", 0))
            nearest_try(&nearest, arena_printf(arena, "--%s", option->name));
    const char *advice = nearest_suggestion(arena, &nearest);
    usage_error("unknown option '%s'%s", nearest.word,
                *advice ? advice : arena_printf(arena, "; `%s --help' shows them", command));
}

/* `--NAME` or `--NAME=VALUE`, where NAME may be the beginning of an option's. */
static _Noreturn void refuse_long(Arena *arena, const struct argp_option *table, const char *command,
                                  const char *word)
{
    const char *name = word + 2, *value = strchr(name, '=');
    size_t length = strcspn(name, "=");
    const struct argp_option *meant = NULL;
    StrBuf all = strbuf_new(arena);
    int count = 0;
    for (const struct argp_option *option = table; !is_last(option); option++)
        if (is_spelled(option, name, length)) {
            strbuf_printf(&all, "%s--%s", count++ ? ", " : "", option->name);
            meant = option;
        }
    if (count == 0)
        unknown(arena, table, command, name, length);
    if (count > 1)
        usage_error("'--%.*s' may stand for %s", (int)length, name, all.text);
    if (value)
        usage_error("--%s takes no value; '%s' is given", meant->name, value + 1);
    usage_error("--%s wants %s", meant->name, meant->arg);
}

static const struct argp_option *find_letter(const struct argp_option *table, char letter)
{
    for (const struct argp_option *option = table; !is_last(option); option++)
        if (option->key == letter && !(option->flags & OPTION_DOC))
            return option;
    return NULL;
}

/* `-qZ`: letters in a row, of which one may take what follows. Returns if nothing is wrong with this word. */
static void refuse_letters(const struct argp_option *table, const char *command, const char *word)
{
    for (const char *letter = word + 1; *letter; letter++) {
        const struct argp_option *option = find_letter(table, *letter);
        if (!option)
            usage_error("unknown option '-%c'; `%s --help' shows them", *letter, command);
        if (option->arg && letter[1])
            return;
        if (option->arg)
            usage_error("-%c wants %s", *letter, option->arg);
    }
}

void option_error(Arena *arena, const struct argp_option *table, const struct argp_state *state)
{
    /* The word is behind us, or still before us where letters follow the one that is wrong. */
    for (int i = state->next - 1; i <= state->next && i < state->argc; i++) {
        const char *word = state->argv[i];
        if (i > 0 && strncmp(word, "--", 2) == 0)
            refuse_long(arena, table, state->name, word);
        if (i > 0 && word[0] == '-')
            refuse_letters(table, state->name, word);
    }
    usage_error("the command line is wrong; `%s --help' shows the options", state->name);
}

_Noreturn void option_print_help(const struct argp_state *state, unsigned what)
{
    argp_help(state->root_argp, stdout, what, state->name);
    exit(EXIT_DONE);
}
