#include "front/onnx/formula.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_part(char c) { return isalnum((unsigned char)c) || c == '_'; }

static size_t word_length(const char *text)
{
    size_t length = 0;
    while (is_part(text[length]))
        length++;
    return length;
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

// ---- moves ----

/* Behind the access that begins here; NULL: none does. */
static const char *behind_access(const char *text)
{
    size_t length = word_length(text);
    if (!length || isdigit((unsigned char)*text) || text[length] != '[')
        return NULL;
    Bracket bracket = {text, length, text + length + 1, bracket_close(text + length + 1, '[', ']')};
    return bracket_is_reduction(&bracket) ? NULL : bracket.close + 1;
}

static const char *behind_move(const char *text);

/* Behind a reduction that chooses one of its elements. */
static const char *behind_choice(const char *text)
{
    size_t length = word_length(text);
    bool chooses = is_word(text, length, "max") || is_word(text, length, "min");
    if (!chooses || text[length] != '[')
        return NULL;
    const char *body = bracket_close(text + length + 1, '[', ']') + 1;
    const char *end = *body == '(' ? behind_move(body + 1) : NULL;
    return end && *end == ')' ? end + 1 : NULL;
}

/* `word(…)`, of whose operands those from `first` on are moves. */
static const char *behind_call(const char *text, const char *word, int first)
{
    size_t length = word_length(text);
    if (!is_word(text, length, word) || text[length] != '(')
        return NULL;
    const char *at = text + length + 1, *close = bracket_close(at, '(', ')');
    for (int i = 0; at < close; i++) {
        const char *end = place_end(at, close);
        if (i >= first && behind_move(at) != end)
            return NULL;
        at = end + 1;
    }
    return *close ? close + 1 : NULL;
}

static const char *behind_number(const char *text)
{
    bool negative = text[0] == '(' && text[1] == '-', leads = *text == '-';
    const char *from = text + (negative ? 2 : leads);
    char *end;
    if (!isdigit((unsigned char)*from) && strncmp(from, "inf", 3) != 0)
        return NULL;
    strtod(from, &end);
    return negative ? (*end == ')' ? end + 1 : NULL) : end;
}

/* Behind what only moves elements, or stands for one; NULL: it does more. */
static const char *behind_move(const char *text)
{
    text += *text == ' ';
    const char *end = behind_number(text);
    end = end ? end : behind_access(text);
    end = end ? end : behind_call(text, "pad", 0);
    end = end ? end : behind_call(text, "select", 1);
    end = end ? end : behind_choice(text);
    if (!end && *text == '(') {
        end = behind_move(text + 1);
        end = end && *end == ')' ? end + 1 : NULL;
    }
    return end;
}

static bool is_move(const char *expr)
{
    const char *end = behind_move(expr);
    return end && *end == '\0' && strchr(expr, '[');
}

bool formula_is_access(const char *expr)
{
    const char *end = behind_access(expr);
    end = end ? end : behind_call(expr, "pad", 0);
    return end && *end == '\0';
}

// ---- products ----

/* Are there two different accesses in the text? The square of one is a statistic. */
static bool reads_two(const char *text, const char *end)
{
    const char *first = NULL;
    size_t length = 0;
    for (; text < end; text++) {
        const char *behind = is_part(*text) ? behind_access(text) : NULL;
        if (behind && first && ((size_t)(behind - text) != length || memcmp(first, text, length) != 0))
            return true;
        if (behind) {
            first = text;
            length = (size_t)(behind - text);
            text = behind - 1;
        } else {
            text += word_length(text) ? word_length(text) - 1 : 0;
        }
    }
    return false;
}

/* Axes of one element sum nothing. */
static bool sums_some(const Bracket *sum)
{
    bool some = false;
    for (const char *at = sum->inside; at < sum->close; at = place_end(at, sum->close) + 1) {
        const char *colon = memchr(at, ':', (size_t)(place_end(at, sum->close) - at));
        some |= !colon || strtoll(colon + 1, NULL, 10) > 1;
    }
    return some;
}

static bool is_product(const char *expr)
{
    Bracket bracket;
    for (const char *at = expr, *end = at + strlen(at); bracket_next(&at, end, &bracket);) {
        const char *body = bracket.close + 1;
        if (!bracket_is_reduction(&bracket) || !is_word(bracket.name, bracket.length, "sum") || *body != '(')
            continue;
        const char *close = bracket_close(body + 1, '(', ')');
        if (strstr(body, " * ") && strstr(body, " * ") < close && reads_two(body + 1, close) &&
            sums_some(&bracket))
            return true;
    }
    return false;
}

// ---- what must be fine ----

/* Functions whose results are as exact in a narrow type as their operands. */
static bool is_coarse(const char *word, size_t length)
{
    static const char *const words[] = {"abs",   "max",  "min",    "floor", "ceil",
                                        "round", "relu", "select", "pad",   "cast"};
    bool coarse = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        coarse |= is_word(word, length, words[i]);
    return coarse;
}

static bool has_function(const char *expr)
{
    for (const char *at = expr; *at;) {
        size_t length = word_length(at);
        Bracket bracket = {at, length, at, at};
        if (length && !isdigit((unsigned char)*at) && at[length] == '(' && !is_coarse(at, length))
            return true;
        if (length && at[length] == '[' && bracket_is_reduction(&bracket))
            return true;
        at += length ? length : 1;
    }
    return false;
}

/* Sizes and offsets within brackets do not count. */
static bool has_large_number(const char *expr, double largest)
{
    for (const char *at = expr; *at;) {
        char *end = (char *)at + (word_length(at) ? word_length(at) : 1);
        if (*at == '[')
            end = (char *)bracket_close(at + 1, '[', ']');
        else if (isdigit((unsigned char)*at) && fabs(strtod(at, &end)) > largest)
            return true;
        at = end;
    }
    return false;
}

FormulaKind formula_kind(const char *expr, double largest)
{
    if (is_product(expr))
        return FORMULA_PRODUCT;
    if (has_large_number(expr, largest))
        return FORMULA_FINE;
    if (is_move(expr))
        return FORMULA_MOVE;
    return has_function(expr) ? FORMULA_FINE : FORMULA_POINT;
}
