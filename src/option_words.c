#include <string.h>

#include "base/path.h"
#include "base/strbuf.h"
#include "option_parts.h"

int option_choose(Arena *arena, const char *option, const char *word, const char *const *choices, int count)
{
    StrBuf list = strbuf_new(arena);
    for (int i = 0; i < count; i++) {
        if (strcmp(word, choices[i]) == 0)
            return i;
        strbuf_printf(&list, "%s%s", i ? ", " : "", choices[i]);
    }
    usage_error("unknown word '%s' for %s; it is one of %s", word, option, list.text);
}

char *option_stem(Arena *arena, const char *path)
{
    return strcmp(path, "-") == 0 ? arena_strdup(arena, "kernel") : path_stem(arena, path);
}
