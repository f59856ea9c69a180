#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "mutation/mutate.h"

static const char *const edges[] = {
    "0",     "1",    "2",     "7",     "31",      "33",         "64",
    "96",    "1000", "65535", "65536", "1048576", "2147483647", "1099511627776",
    "0.001", "-1",   "true",  "false", "none"};

/* The value of `  key: value   # comment` as a place in the line; NULL: there is none. */
static const char *value_of(const char *line)
{
    const char *colon = strpbrk(line, ":#\n");
    if (!colon || *colon != ':')
        return NULL;
    const char *value = colon + 1 + strspn(colon + 1, " ");
    return *value && !strchr("#\n", *value) ? value : NULL;
}

/* A number becomes a multiple or a part of itself, a capability the opposite; anything may become an edge. */
static const char *changed_value(Arena *arena, Chance *chance, const char *value, size_t length)
{
    if (percent(chance, 15))
        return PICK(chance, edges);
    if (strncmp(value, "true", 4) == 0)
        return "false";
    if (strncmp(value, "false", 5) == 0)
        return "true";
    if (!isdigit((unsigned char)*value))
        return arena_strndup(arena, value, length);
    double number = strtod(value, NULL);
    static const double factors[] = {2, 3, 4, 16, 1.5, 0.5, 0.25, 1.0 / 16, 0.75};
    double changed = number * PICK(chance, factors);
    return number == (double)(int64_t)number ? arena_printf(arena, "%.0f", changed)
                                             : arena_printf(arena, "%g", changed);
}

static void mutate_line(StrBuf *out, Chance *chance, const char *line, StrBuf *done)
{
    const char *value = value_of(line);
    size_t before = (size_t)(value - line), length = strcspn(value, " #\n");
    const char *changed = changed_value(out->arena, chance, value, length);
    strbuf_write(out, line, before);
    strbuf_puts(out, changed);
    strbuf_putc(out, '\n');
    strbuf_printf(done, "%s%.*s%s", done->length ? ", " : "", (int)(before - strspn(line, " ")),
                  line + strspn(line, " "), changed);
}

char *mutate_device(Arena *arena, Chance chance, const char *text, StrBuf *done)
{
    StrBuf out = strbuf_new(arena);
    for (const char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n';
        if (value_of(line) && percent(&chance, 2))   // one of fifty: values contradict each other easily
            mutate_line(&out, &chance, line, done);
        else
            strbuf_write(&out, line, (size_t)(end - line));
    }
    return out.text;
}
