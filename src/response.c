#include "response.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/source.h"
#include "base/strbuf.h"

enum {
    MAX_NESTING = 8,        // @files inside @files
    MAX_ARGUMENTS = 4096,   // so that a few files that name each other cannot fill the memory
};

static void expand_word(Arena *arena, Arguments *arguments, char *word, int nesting);

/* One word as GNU tools read it: blanks divide, a backslash takes the next character as it is, quotes hold
   blanks. */
static char *next_word(Arena *arena, const char **text)
{
    const char *at = *text;
    while (isspace((unsigned char)*at))
        at++;
    if (!*at)
        return NULL;
    StrBuf word = strbuf_new(arena);
    char quote = '\0';
    for (; *at && (quote || !isspace((unsigned char)*at)); at++) {
        if (*at == '\\' && at[1])
            strbuf_putc(&word, *++at);
        else if (quote ? *at == quote : *at == '"' || *at == '\'')
            quote = quote ? '\0' : *at;
        else
            strbuf_putc(&word, *at);
    }
    *text = at;
    return word.text;
}

static void expand_file(Arena *arena, Arguments *arguments, const char *path, int nesting)
{
    if (nesting > MAX_NESTING)
        fatal(EXIT_USAGE, "response files are nested more than %d deep at '@%s'", MAX_NESTING, path);
    if (access(path, R_OK) != 0)
        fatal(EXIT_USAGE, "cannot read the response file '%s': %s", path, strerror(errno));
    const char *text = source_read(arena, path)->text;
    for (char *word; (word = next_word(arena, &text));)
        expand_word(arena, arguments, word, nesting);
}

static void expand_word(Arena *arena, Arguments *arguments, char *word, int nesting)
{
    if (word[0] == '@' && word[1]) {
        expand_file(arena, arguments, word + 1, nesting + 1);
        return;
    }
    if (arguments->count == MAX_ARGUMENTS)
        fatal(EXIT_USAGE, "more than %d arguments", MAX_ARGUMENTS);
    arguments->words[arguments->count++] = word;
}

Arguments response_files_expand(Arena *arena, int argc, char **argv)
{
    Arguments arguments = {.words = NEW_ARRAY(arena, char *, MAX_ARGUMENTS + 1)};
    for (int i = 0; i < argc; i++)
        if (i == 0)
            arguments.words[arguments.count++] = argv[0];
        else
            expand_word(arena, &arguments, argv[i], 0);
    return arguments;
}
