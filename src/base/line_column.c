#include <string.h>

#include "base/source.h"

LineColumn source_line_column(Loc loc)
{
    const char *text = loc.source->text;
    size_t offset = loc.offset < loc.source->length ? loc.offset : loc.source->length;
    LineColumn at = {.line = 1, .start = text};
    for (size_t i = 0; i < offset; i++)
        if (text[i] == '\n') {
            at.line++;
            at.start = text + i + 1;
        }
    at.column = (int)(text + offset - at.start) + 1;
    const char *end = memchr(at.start, '\n', loc.source->length - (size_t)(at.start - text));
    at.length = (int)((end ? end : text + loc.source->length) - at.start);
    return at;
}
