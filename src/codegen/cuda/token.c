#include "codegen/cuda/token.h"

#include <ctype.h>
#include <string.h>

Slice slice_of(const char *text) { return (Slice){text, text + strlen(text)}; }

size_t slice_length(Slice slice) { return (size_t)(slice.end - slice.start); }

bool slice_starts(Slice slice, const char *word)
{
    size_t length = strlen(word);
    return slice_length(slice) >= length && memcmp(slice.start, word, length) == 0;
}

bool slice_equals(Slice slice, const char *word)
{
    return slice_starts(slice, word) && slice_length(slice) == strlen(word);
}

int slice_compare(Slice a, Slice b)
{
    size_t length_a = slice_length(a), length_b = slice_length(b);
    int order = memcmp(a.start, b.start, length_a < length_b ? length_a : length_b);
    return order ? order : (length_a > length_b) - (length_a < length_b);
}

static bool is_name_start(char c) { return isalpha((unsigned char)c) || c == '_'; }
static bool is_name_char(char c) { return isalnum((unsigned char)c) || c == '_'; }

bool is_name(Slice token) { return token.start < token.end && is_name_start(*token.start); }

const char *token_skip(const char *at, const char *end)
{
    Slice rest = {at, end};
    if (isspace((unsigned char)*at))
        return at + 1;
    if (slice_starts(rest, "//")) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        return line_end ? line_end : end;
    }
    if (*at == '"' || *at == '\'') {
        for (const char *p = at + 1; p < end; p++)
            if (*p == '\\')
                p++;
            else if (*p == *at)
                return p + 1;
        return end;
    }
    if (isdigit((unsigned char)*at))
        while (at < end &&
               (is_name_char(*at) || *at == '.'))   // a sign behind an exponent is a token: that hurts nobody
            at++;
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
    while (line.start < line.end && isspace((unsigned char)*line.start))
        line.start++;
    return line.start == line.end;
}
