// Choices by constants within expressions: of `SPLITS > 1 ? group : 0` one side stays, of `MASKS && x` what is not known.
#include <ctype.h>
#include <string.h>

#include "codegen/cuda/fold_parts.h"

void fold_remove(ConditionFold *fold, const char *start, const char *end)
{
    for (const char *at = start; at < end; at++)
        fold->removed[at - fold->text] = true;
    fold->any = true;
}

// ---- operators outside of brackets ----

/* `name<`, without a blank, opens a template's arguments. */
static bool opens(Slice token, const char *start)
{
    return strchr("({[", *token.start) ||
           (*token.start == '<' && token.start > start && (isalnum((unsigned char)token.start[-1]) || token.start[-1] == '_'));
}

/* The first place of any of these; NULL: there is none. */
static const char *find_operator(Slice text, const char *const *words)
{
    Slice rest = text, token;
    while (token_read(&rest, &token)) {
        for (const char *const *word = words; *word; word++)
            if (slice_starts((Slice){token.start, text.end}, *word))
                return token.start;
        if (opens(token, text.start))
            token_read_group(&rest, *token.start);
    }
    return NULL;
}

static const char *find_one(Slice text, const char *word) { return find_operator(text, (const char *const[]){word, NULL}); }

/* Of the ? before `text`; `::` is none. */
static const char *find_colon(Slice text)
{
    static const char *const words[] = {"::", "?", ":", NULL};
    for (int depth = 0; (text.start = find_operator(text, words)); text.start += text.start[1] == ':' ? 2 : 1) {
        depth += *text.start == '?';
        if (*text.start == ':' && text.start[1] != ':' && depth-- == 0)
            return text.start;
    }
    return NULL;
}

static Slice without_blanks(Slice text)
{
    while (text.start < text.end && isspace((unsigned char)*text.start))
        text.start++;
    while (text.start < text.end && isspace((unsigned char)text.end[-1]))
        text.end--;
    return text;
}

/* The next of what `word` separates. */
static bool read_operand(Slice *rest, const char *word, Slice *operand)
{
    if (!rest->start)
        return false;
    const char *end = find_one(*rest, word);
    *operand = without_blanks((Slice){rest->start, end ? end : rest->end});
    rest->start = end ? end + strlen(word) : NULL;
    return true;
}

// ---- conditions ----

bool fold_only_asks(Slice condition)
{
    Slice token, last = {0};
    while (token_read(&condition, &token)) {
        bool calls = *token.start == '(' && is_name(last);
        bool assigns = *token.start == '=' && (!last.start || !strchr("=!<>", *last.start)) &&
                       !slice_starts(condition, "=");
        bool steps = last.start && strchr("+-", *token.start) && *last.start == *token.start;
        if (calls || assigns || steps)
            return false;
        last = token;
    }
    return true;
}

bool fold_evaluate(const Constants *constants, Slice condition, int64_t *value)
{
    static const char *const others[] = {"||", "?", NULL};
    condition = without_blanks(condition);
    if (constants_evaluate(constants, condition, value))
        return true;
    Slice rest = condition, operand;
    while (!find_operator(condition, others) && read_operand(&rest, "&&", &operand))
        if (constants_evaluate(constants, operand, value) && !*value)
            return fold_only_asks(condition);
    return false;
}

/* Operands of && that hold go, and those of || that do not, as long as a truth value is left. */
static void fold_operands(ConditionFold *fold, Slice text, const char *word, bool neutral, bool asks)
{
    int64_t value;
    Slice rest = text, operand;
    int left = 0, removed = 0;
    while (read_operand(&rest, word, &operand))
        *(constants_evaluate(fold->constants, operand, &value) && !value == !neutral ? &removed : &left) += 1;
    if (left < (asks ? 1 : 2) || !removed)
        return;
    const char *end = NULL;   // of the last one that stays
    for (rest = text; read_operand(&rest, word, &operand);)
        if (!(constants_evaluate(fold->constants, operand, &value) && !value == !neutral))
            end = operand.end;
        else if (end)
            fold_remove(fold, end, operand.end), end = operand.end;
        else
            fold_remove(fold, operand.start, without_blanks((Slice){rest.start, rest.end}).start);
}

static void fold_condition(ConditionFold *fold, Slice text, bool asks)
{
    bool has_or = find_one(text, "||");
    Slice rest = text, operand;
    fold_operands(fold, text, "||", false, asks);
    while (read_operand(&rest, "||", &operand))
        fold_operands(fold, operand, "&&", true, asks || has_or);
}

/* What stands between two separators; `asks`: only its truth matters. */
static void fold_segment(ConditionFold *fold, Slice text, bool asks)
{
    size_t length = slice_length(text);
    if (!memchr(text.start, '?', length) && !memchr(text.start, '&', length) && !memchr(text.start, '|', length))
        return;
    text = without_blanks(text);
    const char *question = find_one(text, "?"), *colon = question ? find_colon((Slice){question + 1, text.end}) : NULL;
    if (!colon) {
        fold_condition(fold, text, asks);
        return;
    }
    int64_t value;
    Slice condition = {text.start, question}, one = without_blanks((Slice){question + 1, colon}),
          other = without_blanks((Slice){colon + 1, text.end});
    if (!fold_evaluate(fold->constants, condition, &value)) {
        fold_condition(fold, without_blanks(condition), true);
        fold_segment(fold, one, asks);
        fold_segment(fold, other, asks);
        return;
    }
    Slice taken = value ? one : other;
    fold_remove(fold, text.start, taken.start);
    fold_remove(fold, taken.end, text.end);
    fold_segment(fold, taken, asks);
}

// ---- all of a text ----

/* Of what is left: 0 a name, a number, a call; 1 a product; 2 anything else. */
static int binding(const ConditionFold *fold, Slice text)
{
    int found = 0;
    Slice token;
    while (token_read(&text, &token)) {
        if (fold->removed[token.start - fold->text] || is_name(token) || *token.start == '.')
            continue;
        if (opens(token, fold->text))
            token_read_group(&text, *token.start);
        else
            found = strchr("*/%", *token.start) && found < 2 ? 1 : 2;
    }
    return found;
}

/* ( ) that nothing needs any more, behind `last`. */
static void unwrap(ConditionFold *fold, Slice last, Slice inside, const char *end)
{
    if (!memchr(fold->removed + (inside.start - fold->text), true, slice_length(inside)))
        return;
    const char *behind = inside.end + 1;
    while (behind < end && isspace((unsigned char)*behind))
        behind++;
    bool calls = last.start && (*last.start == ')' || *last.start == ']' || *last.start == '>' || is_name(last)) &&
                 !slice_equals(last, "return");
    bool begins = !last.start || strchr("(,=[{;", *last.start) || slice_equals(last, "return");
    bool ends = behind == end || strchr(",);]}", *behind);
    int least = begins && ends ? 2 : (begins || *last.start == '+') && (ends || strchr("+-", *behind)) ? 1 : 0;
    if (calls || binding(fold, inside) > least)
        return;
    fold_remove(fold, inside.start - 1, inside.start);
    fold_remove(fold, inside.end, inside.end + 1);
}

static bool separates(Slice token)
{
    bool assigns = *token.start == '=' && token.start[1] != '=' && !strchr("=!<>", token.start[-1]);
    return assigns || strchr(",;", *token.start) || slice_equals(token, "return") || slice_equals(token, "else");
}

static void fold_group(ConditionFold *fold, Slice text, bool asks)
{
    Slice rest = text, token, last = {0};
    const char *start = text.start;
    while (token_read(&rest, &token)) {
        if (*token.start == '#') {   // up to the end of its line
            line_read(&rest);
            start = rest.start;
        } else if (opens(token, fold->text)) {
            Slice inside = token_read_group(&rest, *token.start);
            fold_group(fold, inside, *token.start == '(' && (slice_equals(last, "if") || slice_equals(last, "while")));
            if (*token.start == '(')
                unwrap(fold, last, inside, text.end);
            if (*token.start == '{')
                start = rest.start;
            token.start = rest.start - 1;
        } else if (separates(token)) {
            fold_segment(fold, (Slice){start, token.start}, false);
            start = token.end;
        }
        last = token;
    }
    fold_segment(fold, (Slice){start, text.end}, asks);
}

void fold_choices(ConditionFold *fold, Slice text) { fold_group(fold, text, false); }
