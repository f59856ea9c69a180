#include "base/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

Source *source_from_text(Arena *arena, const char *name, const char *text, size_t length)
{
    Source *source = NEW(arena, Source);
    *source = (Source){
        .name = arena_strdup(arena, name),
        .text = arena_strndup(arena, text, length),
        .length = length,
    };
    return source;
}

/* Bytes of the mark that editors may put before UTF-8, which says nothing; of another form there is an
   error. */
static size_t byte_order_mark(const char *name, const char *text, size_t length)
{
    bool wide = length >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0);
    if (wide)
        fatal(EXIT_INPUT, "'%s' is UTF-16 or UTF-32, as its byte-order mark says; save it as UTF-8", name);
    return length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

Source *source_read_long(Arena *arena, const char *path, size_t max_bytes)
{
    bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "<stdin>" : path;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    if (!file)
        fatal(errno == ENOMEM ? EXIT_MACHINE : EXIT_INPUT, "cannot read '%s': %s", name, strerror(errno));
    char *text = malloc(max_bytes + 1);   // not from the arena, which would clear megabytes
    if (!text)
        fatal(EXIT_MACHINE, "out of memory");
    size_t length = fread(text, 1, max_bytes + 1, file);
    int error = ferror(file) ? errno : 0;
    if (!is_stdin)
        fclose(file);
    if (error)
        fatal(EXIT_INPUT, "cannot read '%s': %s", name, strerror(error));
    size_t mark = byte_order_mark(name, text, length);
    Source *source = source_from_text(arena, name, text + mark, length - mark);
    free(text);
    if (length > max_bytes)
        diag_fatal((Loc){source, (uint32_t)(max_bytes - mark), 1}, EXIT_INPUT,
                   "a file has at most %zu bytes, this one goes on here", max_bytes);
    return source;
}

Source *source_read(Arena *arena, const char *path)
{
    return source_read_long(arena, path, SOURCE_MAX_BYTES);
}
