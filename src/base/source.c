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
    Source *source = source_from_text(arena, name, text, length);
    free(text);
    if (length > max_bytes)
        diag_fatal((Loc){source, (uint32_t)max_bytes, 1}, EXIT_INPUT,
                   "a file has at most %zu bytes, this one goes on here", max_bytes);
    return source;
}

Source *source_read(Arena *arena, const char *path)
{
    return source_read_long(arena, path, SOURCE_MAX_BYTES);
}
