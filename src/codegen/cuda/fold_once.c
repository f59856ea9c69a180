#include <string.h>

#include "codegen/cuda/fold_parts.h"

/* Of ` ++i` 1, and of ` i = next_turn(i, TURNS)`, which is as much on a device; of ` --i` -1. 0: it is something else. */
static int step_of(Slice step, Slice name)
{
    Slice token;
    bool up = slice_starts(step, " ++");
    if (up || slice_starts(step, " --")) {
        step.start += strlen(" ++");
        return !token_read(&step, &token) || !slice_same(token, name) || token_read(&step, &token) ? 0 : up ? 1 : -1;
    }
    static const char *const turn[] = {"=", "next_turn", "("};
    bool same = token_read(&step, &token) && slice_same(token, name);
    for (int i = 0; i < 3 && same; i++)
        same = token_read(&step, &token) && slice_equals(token, turn[i]);
    return same && token_read(&step, &token) && slice_same(token, name);
}

/* `int i = 0; i < 1; ++i`, which steps nothing else: of a loop that runs once, the variable and its value, a digit. */
static bool runs_once(const ConditionFold *fold, Slice header, Slice *name, int64_t *first)
{
    Slice type, token, start, condition;
    if (!token_read(&header, &type) || !token_read(&header, name) || !is_name(*name) || !token_read(&header, &token) ||
        *token.start != '=')
        return false;
    start = header, token_read_to_semicolon(&header, token), start.end = header.start - 1;
    condition = header, token_read_to_semicolon(&header, token), condition.end = header.start - 1;
    int step = step_of(header, *name);
    if (!step || !constants_evaluate(fold->constants, start, first) || *first < 0 || *first > 9)
        return false;
    Constant value = {true, *first};
    Constants inside = {.table = {.arena = fold->constants->table.arena}, .outer = fold->constants};
    *word_place(&inside.table, *name) = &value;
    int64_t holds;
    if (!constants_evaluate(&inside, condition, &holds) || !holds)
        return false;
    value.value += step;
    return constants_evaluate(&inside, condition, &holds) && !holds;
}

/* Nothing in the body leaves it, or calls something else by that name. */
static bool can_replace(const ConditionFold *fold, Slice body, Slice name)
{
    static const char *const leaves[] = {"break", "continue", "goto", NULL};
    Slice token, last = {0};
    while (token_read(&body, &token)) {
        for (const char *const *word = leaves; *word; word++)
            if (slice_equals(token, *word))
                return false;
        if (slice_same(token, name) && !fold_is_member(fold->text, token) && is_name(last) && !slice_equals(last, "return"))
            return false;
        last = token;
    }
    return true;
}

/* Text that has not been removed begins with this. */
static bool is_there(const ConditionFold *fold, const char *at, const char *text)
{
    return strncmp(at, text, strlen(text)) == 0 && !fold->removed[at - fold->text];
}

/* The digit for the name. Of `x + 0 * y` and `0 * y + x` x stays, of `0 * y + 0` a zero. */
static void replace(ConditionFold *fold, Slice name, char digit)
{
    Slice rest = {name.end, fold->text + fold->length}, token = {name.end, name.end};
    fold->text[name.start - fold->text] = digit;
    fold_remove(fold, name.start + 1, name.end);
    if (digit != '0')
        return;
    if (slice_starts(rest, " * ") || slice_starts(rest, " / ") || slice_starts(rest, " % ")) {
        while (token_read(&rest, &token) && !strchr("+-,;)]}?:<>=!&|^", *token.start))
            if (strchr("({[", *token.start))
                token_read_group(&rest, *token.start);
        while (token.start[-1] == ' ' || token.start[-1] == '\n')
            token.start--;
        fold_remove(fold, name.end, token.start);
    }
    Slice behind = {token.start, fold->text + fold->length};
    if (is_there(fold, name.start - 3, " + "))
        fold_remove(fold, name.start - 3, token.start);
    else if (is_there(fold, behind.start, " + ") && (strchr("([", name.start[-1]) || (name.start[-1] == ' ' && strchr("=,", name.start[-2]))))
        fold_remove(fold, name.start, token.start + strlen(" + "));
}

static void replace_all(ConditionFold *fold, Slice body, Slice name, char digit)
{
    const char *own = arena_strndup(fold->constants->table.arena, name.start, slice_length(name));
    Slice token;
    while (token_read(&body, &token))
        if (slice_equals(token, own) && !fold_is_member(fold->text, token))
            replace(fold, token, digit);
}

bool fold_once(ConditionFold *fold, Slice header, Slice body)
{
    Slice name;
    int64_t first;
    if (!runs_once(fold, header, &name, &first) || !can_replace(fold, body, name))
        return false;
    replace_all(fold, body, name, (char)('0' + first));
    return true;
}
