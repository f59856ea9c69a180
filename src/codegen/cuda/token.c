#include "codegen/cuda/token.h"

#include <limits.h>
#include <string.h>

Slice slice_of(const char *text) { return (Slice){text, text + strlen(text)}; }

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

/* What a character may begin. A table, since all of the prelude is read for every kernel. */
enum { SPACE = 1, DIGIT = 2, LETTER = 4, OPENS_SKIPPED = 8, BRACKET = 16, SEMICOLON = 32 };
static const unsigned char kinds[UCHAR_MAX + 1] = {
    ['\t' ... '\r'] = SPACE, [' '] = SPACE,          ['0' ... '9'] = DIGIT,
    ['A' ... 'Z'] = LETTER,  ['a' ... 'z'] = LETTER, ['_'] = LETTER,
    ['/'] = OPENS_SKIPPED,   ['"'] = OPENS_SKIPPED,  ['\''] = OPENS_SKIPPED,
    ['('] = BRACKET,         [')'] = BRACKET,        ['['] = BRACKET,
    [']'] = BRACKET,         ['{'] = BRACKET,        ['}'] = BRACKET,
    ['<'] = BRACKET,         ['>'] = BRACKET,        [';'] = SEMICOLON,
};
static bool is_any_of(const char *at, int kind) { return kinds[(unsigned char)*at] & kind; }

bool is_name(Slice token) { return token.start < token.end && is_any_of(token.start, LETTER); }

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
    if (is_any_of(at, SPACE)) {
        while (at < end && is_any_of(at, SPACE))
            at++;
    } else if (*at == '/' && at + 1 < end && at[1] == '/') {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        return line_end ? line_end : end;
    } else if (*at == '"' || *at == '\'') {
        return skip_string(at, end);
    } else if (is_any_of(at, DIGIT)) {
        while (at < end &&
               (is_any_of(at, DIGIT | LETTER) || *at == '.'))   // a sign behind an exponent is a token:
            at++;                                               // that hurts nobody
    }
    return at;
}

bool token_read(Slice *rest, Slice *token)
{
    const char *at = rest->start, *end = rest->end;
    while (at < end && is_any_of(at, SPACE | DIGIT | OPENS_SKIPPED)) {
        const char *behind = is_any_of(at, SPACE) ? at + 1 : token_skip(at, end);
        if (behind == at)
            break;   // a / that divides
        at = behind;
    }
    *token = (Slice){at, at};
    if (at < end)
        token->end++;
    if (at < end && is_any_of(at, LETTER))
        while (token->end < end && is_any_of(token->end, LETTER | DIGIT))
            token->end++;
    rest->start = token->end;
    return at < end;
}

bool token_count_braces(Slice text, int *depth, char *last)
{
    for (const char *at = text.start, *behind; at < text.end; at = behind) {
        behind = is_any_of(at, SPACE | OPENS_SKIPPED) ? token_skip(at, text.end) : at;
        if (behind == text.end && (*at == '"' || *at == '\''))
            return false;
        if (behind > at)
            continue;
        *depth += (*at == '{') - (*at == '}');
        for (behind++; behind < text.end && !is_any_of(behind, SPACE | OPENS_SKIPPED | BRACKET);)
            behind++;
        *last = behind[-1];
    }
    return true;
}

/* The next one outside of comments and strings. */
static const char *find_any_of(const char *at, const char *end, int kind)
{
    while (at < end && !is_any_of(at, kind)) {
        const char *behind = is_any_of(at, OPENS_SKIPPED) ? token_skip(at, end) : at;
        at = behind > at ? behind : at + 1;
    }
    return at;
}

static char closing(char open) { return open == '(' ? ')' : open == '<' ? '>' : (char)(open + 2); }

Slice token_read_group(Slice *rest, char open)
{
    const char *start = rest->start, *at;
    while ((at = find_any_of(rest->start, rest->end, BRACKET)) < rest->end && *at != closing(open)) {
        rest->start = at + 1;
        if (*at == '(' || *at == '{' || *at == '[' || *at == open)
            token_read_group(rest, *at);
    }
    rest->start = at + (at < rest->end);
    return (Slice){start, at};
}

void token_read_to_semicolon(Slice *rest, Slice token)
{
    for (const char *at = token.start; *at != ';'; rest->start++) {
        if (*at == '(' || *at == '{' || *at == '[')
            token_read_group(rest, *at);
        at = rest->start = find_any_of(rest->start, rest->end, BRACKET | SEMICOLON);
        if (at == rest->end)
            return;
    }
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
    while (line.start < line.end && is_any_of(line.start, SPACE))
        line.start++;
    return line.start == line.end;
}
