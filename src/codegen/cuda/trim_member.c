// Definitions as members of a struct.
#include <string.h>

#include "codegen/cuda/trim_parts.h"

Slice trim_leading_token(const char *text, bool *is_template)
{
    Slice rest = slice_of(text), token = {0};
    token_read(&rest, &token);
    *is_template = slice_equals(token, "template");
    if (*is_template && token_read(&rest, &token)) {
        token_read_group(&rest, '<');
        token_read(&rest, &token);
    }
    return token;
}

bool trim_is_type(Slice token)
{
    return slice_equals(token, "struct") || slice_equals(token, "using");
}

void trim_write_member(StrBuf *out, const char *text)
{
    bool is_template;
    Slice token = trim_leading_token(text, &is_template);
    if (trim_is_type(token) || slice_equals(token, "static_assert"))
        strbuf_puts(out, text);
    else
        strbuf_printf(out, "%.*sstatic %s", (int)(token.start - text), text, token.start);
}

bool trim_can_be_member(const TextUnit *unit)
{
    return !unit->condition && unit->text[0] != '#' && !strstr(unit->text, "\n#if") &&
           strncmp(unit->text, "template <>", strlen("template <>")) != 0;
}

void trim_indent(StrBuf *out, const char *text)
{
    Slice rest = slice_of(text);
    while (rest.start < rest.end) {
        Slice line = line_read(&rest);
        strbuf_puts(out, line_is_blank(line) ? "" : "    ");
        strbuf_write(out, line.start, slice_length(line));
    }
}
