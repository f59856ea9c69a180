#include "codegen/cuda/token.h"

#include <string.h>

Slice slice_of(const char *text) { return (Slice){text, text + strlen(text)}; }

size_t slice_length(Slice slice) { return (size_t)(slice.end - slice.start); }

/* Behind what both begin with. */
static const char *common_end(Slice slice, const char **word)
{
    const char *at = slice.start;
    for (; at < slice.end && **word && *at == **word; at++)
        ++*word;
    return at;
}

bool slice_starts(Slice slice, const char *word)
{
    common_end(slice, &word);
    return !*word;
}

bool slice_equals(Slice slice, const char *word) { return common_end(slice, &word) == slice.end && !*word; }

bool slice_same(Slice a, Slice b)
{
    return slice_length(a) == slice_length(b) && memcmp(a.start, b.start, slice_length(a)) == 0;
}

/* As <ctype.h> has them, which asks the locale each time: all of the prelude is read for every kernel. */
static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }

bool is_name(Slice token) { return token.start < token.end && is_name_start(*token.start); }

static const char *skip_string(const char *at, const char *end)
{
    for (const char *p = at + 1; p < end; p++)
        if (*p == '\\')
            p++;
        else if (*p == *at)
            return p + 1;
    return end;
}

const char *token_skip(const char *at, const char *end)
{
    if (is_space(*at)) {
        while (at < end && is_space(*at))
            at++;
    } else if (*at == '/' && at + 1 < end && at[1] == '/') {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        return line_end ? line_end : end;
    } else if (*at == '"' || *at == '\'') {
        return skip_string(at, end);
    } else if (is_digit(*at)) {
        while (at < end && (is_name_char(*at) || *at == '.'))   // a sign behind an exponent is a token:
            at++;                                               // that hurts nobody
    }
    return at;
}

bool token_read(Slice *rest, Slice *token)
{
    const char *at = rest->start, *end = rest->end, *before;
    do {
        before = at;
        at = at < end ? token_skip(at, end) : at;
    } while (at != before);
    *token = (Slice){at, at};
    if (at < end)
        token->end++;
    if (at < end && is_name_start(*at))
        while (token->end < end && is_name_char(*token->end))
            token->end++;
    rest->start = token->end;
    return at < end;
}

static char closing(char open) { return open == '(' ? ')' : open == '<' ? '>' : (char)(open + 2); }

Slice token_read_group(Slice *rest, char open)
{
    Slice group = *rest, token;
    while (token_read(rest, &token) && *token.start != closing(open))
        if (*token.start == '(' || *token.start == '{' || *token.start == '[' || *token.start == open)
            token_read_group(rest, *token.start);
    group.end = token.start;
    return group;
}

Slice line_read(Slice *rest)
{
    const char *newline = memchr(rest->start, '\n', (size_t)(rest->end - rest->start));
    Slice line = {rest->start, newline ? newline + 1 : rest->end};
    rest->start = line.end;
    return line;
}

bool line_is_blank(Slice line)
{
    while (line.start < line.end && is_space(*line.start))
        line.start++;
    return line.start == line.end;
}
