#include <string.h>

#include "base/strbuf.h"
#include "codegen/cuda/fold_parts.h"

const char *fold_comment_above(const ConditionFold *fold, const char *statement)
{
    const char *line = statement;
    while (line > fold->text && line[-1] != '\n')
        line--;
    if (line + strspn(line, " ") != statement)
        return statement;
    while (line > fold->text) {
        const char *above = line - 1;
        while (above > fold->text && above[-1] != '\n')
            above--;
        if (strncmp(above + strspn(above, " "), "//", 2) != 0)
            return line + strspn(line, " ");
        line = above;
    }
    return statement;
}

static bool is_member(const char *text, Slice name)
{
    return name.start > text && (name.start[-1] == '.' || name.start[-1] == '>');
}

int fold_count_word(const ConditionFold *fold, Slice text, Slice word)
{
    Slice token;
    int count = 0;
    while (token_read(&text, &token))
        count += !fold->removed[token.start - fold->text] && slice_same(token, word) &&
                 !is_member(fold->text, token);
    return count;
}

/* A variable is read behind its declaration, mostly soon: long functions are not searched for each. */
static bool is_read_behind(const ConditionFold *fold, Slice statement, Slice name)
{
    Slice rest = {statement.end, fold->function.end}, token;
    while (token_read(&rest, &token))
        if (!fold->removed[token.start - fold->text] && slice_same(token, name) && !is_member(fold->text, token))
            return true;
    return false;
}

bool fold_constant(ConditionFold *fold, Slice statement)
{
    Slice rest = statement, token, name = {0};
    bool says_so = *statement.start == '[';
    if (says_so)
        token_read(&rest, &token), token_read_group(&rest, '[');
    if (!token_read(&rest, &token) || !slice_equals(token, "const"))
        return false;
    const char *start = token.start;
    while (token_read(&rest, &token) && *token.start != '=')
        name = token;
    if (!is_name(name) || memchr(rest.start, ',', slice_length(rest)))
        return false;
    bool is_used = is_read_behind(fold, statement, name), goes = !is_used && fold_only_asks(rest);
    if (goes)
        fold_remove(fold, fold_comment_above(fold, statement.start), statement.end);
    else if (says_so && is_used)
        fold_remove(fold, statement.start, start);
    return goes;
}
