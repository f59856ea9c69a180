#include "batch/pattern.h"

#include <string.h>

#include "base/diag.h"
#include "base/strbuf.h"

static const char *value_of(const char *hole, const PatternValues *values)
{
    for (int i = 0; i < values->define_count; i++)
        if (strcmp(values->defines[i].name, hole) == 0)
            return values->defines[i].text;
    return strcmp(hole, "expr") == 0     ? values->expr
           : strcmp(hole, "device") == 0 ? values->device
           : strcmp(hole, "name") == 0   ? values->name
                                         : NULL;
}

static _Noreturn void reject_hole(Arena *arena, const char *hole, Loc loc, const PatternValues *values)
{
    StrBuf all = strbuf_new(arena);
    strbuf_puts(&all, values->name ? "{expr}, {device}, {name}" : "{expr}, {device}");
    for (int i = 0; i < values->define_count; i++)
        strbuf_printf(&all, ", {%s}", values->defines[i].name);
    diag_fatal(loc, EXIT_INPUT, "nothing fills {%s}; this kernel has %s", hole, all.text);
}

const char *pattern_fill(Arena *arena, const char *pattern, Loc loc, const PatternValues *values)
{
    StrBuf out = strbuf_new(arena);
    for (const char *at = pattern; *at; at++) {
        if (*at != '{') {
            strbuf_putc(&out, *at);
            continue;
        }
        const char *end = strchr(at, '}');
        if (!end) {   // nor has what follows a hole
            strbuf_puts(&out, at);
            break;
        }
        const char *hole = arena_strndup(arena, at + 1, (size_t)(end - at) - 1),
                   *value = value_of(hole, values);
        if (!value)
            reject_hole(arena, hole, loc, values);
        strbuf_puts(&out, value);
        at = end;
    }
    return out.text;
}
