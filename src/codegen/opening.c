#include "codegen/opening.h"

#include <string.h>

enum {
    MAX_LINES = 60,     // a screen; no example has half of it
    MAX_COLUMNS = 100   // of a line of the expression
};

/* Where a line that is too long is broken: behind its last space, or anywhere. */
static size_t line_length(const char *text, size_t length)
{
    if (length <= MAX_COLUMNS)
        return length;
    size_t at = MAX_COLUMNS;
    while (at > MAX_COLUMNS / 2 && text[at - 1] != ' ')
        at--;
    return text[at - 1] == ' ' ? at : MAX_COLUMNS;
}

/* A statement, as at most so many lines of the file; returns how many, one more if it is cut. It is made of the
   language's tokens, so no character of it means anything in a comment: no backslash ends a line, and none is
   outside of ASCII. */
static int write_statement(StrBuf *out, const char *text, size_t length, int most)
{
    int lines = 0;
    while (length > 0 && lines < most) {
        size_t part = line_length(text, length), shown = part;
        while (shown > 0 && text[shown - 1] == ' ')
            shown--;
        strbuf_printf(out, "//   %s%.*s\n", lines++ ? "    " : "", (int)shown, text);
        text += part, length -= part;
    }
    return length > 0 ? most + 1 : lines;
}

/* Its first lines; who needs them all has the ranking. */
static void write_expression(StrBuf *out, const char *text)
{
    int lines = 0, statements = 0, whole = 0;
    for (const char *end; *text; text = end + 1, statements++) {
        end = strchr(text, '\n');
        if (lines < MAX_LINES)
            lines += write_statement(out, text, (size_t)(end - text), MAX_LINES - lines);
        whole += lines <= MAX_LINES;
        lines = lines == MAX_LINES ? lines + 1 : lines;   // what follows has no room
    }
    if (whole < statements)
        strbuf_printf(out, "//   … cut here: %d of %d statements are shown\n", whole, statements);
}

void write_opening(StrBuf *out, const CodegenRequest *request)
{
    strbuf_printf(out,
                  "// %s, by rollerc " ROLLERC_VERSION " for the device %s, is yours: it carries no licence obligations of"
                  " rollerc. What it computes:\n",
                  request->name, request->device->name);
    StrBuf text = strbuf_new(out->arena);
    if (!request->expr)
        program_print(&text, request->program);
    write_expression(out, request->expr ? request->expr : text.text);
    strbuf_puts(out, "\n");
}
