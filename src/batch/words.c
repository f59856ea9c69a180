#include "batch/words.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/strbuf.h"

static bool is_plain(const char *word)
{
    for (const char *c = word; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-+=./,:@%", *c))
            return false;
    return *word != '\0';
}

const char *words_quote(Arena *arena, const char *word)
{
    if (is_plain(word))
        return word;
    StrBuf out = strbuf_new(arena);
    strbuf_putc(&out, '\'');
    for (const char *c = word; *c; c++)
        if (*c == '\'')
            strbuf_puts(&out, "'\\''");
        else
            strbuf_putc(&out, *c);
    strbuf_putc(&out, '\'');
    return out.text;
}
