#include "front/foreign.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/strbuf.h"

typedef enum ForeignKind { FUNCTION, REDUCTION, ALONG, OPERATOR, NAME } ForeignKind;

typedef struct Foreign {
    ForeignKind kind;
    const char *names, *operands, *mend, *note;
} Foreign;

static const Foreign table[] = {
#define FOREIGN(kind, names, operands, mend, note, value) {kind, names, operands, mend, note},
#include "front/foreign.def"
#undef FOREIGN
};

/* What stands between expressions in other languages. */
static const char *const punctuation[][2] = {
    {";", "nothing stands between statements"},
    {"{", "indices and reduction variables stand in [ ]"},
    {"@", "a matrix product is y[i, j] = sum[k](a[i, k] * b[k, j])"},
    {".", "a function has no module before it and no tensor: exp(x[i]), sum[j](x[i, j])"},
    {":=", "a definition is y[i] = ..."},
    {"->", "a definition is y[i] = ..."},
};

enum {
    ROWS = sizeof table / sizeof *table,
    PUNCTUATION = sizeof punctuation / sizeof *punctuation,
};

/* Is the word one of those in a row? Of an operator only the first one is. */
static bool has_name(const Foreign *row, const char *word)
{
    if (row->kind == OPERATOR && *row->names != *word)
        return false;
    size_t length = strlen(word);
    for (const char *name = row->names; *name; name += *name == ' ') {
        size_t end = strcspn(name, " ");
        if (end == length && memcmp(name, word, length) == 0)
            return true;
        if (row->kind == OPERATOR)
            return false;
        name += end;
    }
    return false;
}

static const Foreign *find(const char *word, ForeignKind first, ForeignKind last)
{
    for (const Foreign *row = table; row < table + ROWS; row++)
        if (row->kind >= first && row->kind <= last && has_name(row, word))
            return row;
    return NULL;
}

/* `silu(a)`, `dot of a[j] and b[j] over j`, `a ** b` */
static void print_use(StrBuf *out, const Foreign *row, const char *word)
{
    int operands = (int)strlen(row->operands);
    switch (row->kind) {
    case FUNCTION:
        strbuf_printf(out, "%s(%.*s)", word, 3 * operands - 2, "a, b, c");
        return;
    case REDUCTION:
    case ALONG:
        strbuf_printf(out, "%s of %s %s j", word, operands == 1 ? "a[j]" : "a[j] and b[j]",
                      row->kind == ALONG ? "along" : "over");
        return;
    case OPERATOR:
        for (const char *c = strchr(row->names, ' ') + 1; *c; c++)
            strbuf_putc(out, *c == '_' ? ' ' : *c);
        return;
    case NAME:
        return;
    }
}

static const char *operands_word(const Foreign *row)
{
    return *row->operands == 'b' ? "bits" : *row->operands == 'i' ? "integers" : "real numbers";
}

/* Adjacent rows of one name differ in their operands. */
static const char *say(Arena *arena, const Foreign *row, const char *word)
{
    StrBuf out = strbuf_new(arena);
    print_use(&out, row, word);
    const Foreign *end = row;
    while (end < table + ROWS && end->kind == row->kind && has_name(end, word))
        end++;
    bool several = end - row > 1;
    for (const Foreign *at = row; at < end; at++) {
        strbuf_printf(&out, "%s%s", at > row ? ", " : " is ", at->mend);
        if (several)
            strbuf_printf(&out, " of %s", operands_word(at));
        if (at->note)
            strbuf_printf(&out, " (%s)", at->note);
    }
    return out.text;
}

const char *foreign_function(Arena *arena, const char *name)
{
    const Foreign *row = find(name, FUNCTION, ALONG);
    return row ? say(arena, row, name) : NULL;
}

const char *foreign_value(Arena *arena, const char *name)
{
    const Foreign *row = find(name, NAME, NAME);
    return row ? arena_printf(arena, "write %s", row->mend) : NULL;
}

const char *foreign_operator(Arena *arena, const char *symbol)
{
    for (int i = 0; i < PUNCTUATION; i++)
        if (*punctuation[i][0] == *symbol && strcmp(punctuation[i][0], symbol) == 0)
            return punctuation[i][1];
    const Foreign *row = find(symbol, OPERATOR, OPERATOR);
    return row ? say(arena, row, symbol) : NULL;
}

const char *foreign_in_brackets(const char *symbol)
{
    return strcmp(symbol, "//") == 0 ? "a // b of constants is floor(a / b), of an index a / b" : NULL;
}

const char *foreign_symbol(Arena *arena, const char *text, int length)
{
    for (int i = 0; i < length; i++)
        if (!ispunct((unsigned char)text[i]))   // of most symbols the next character
            return NULL;
    const char *symbol = arena_strndup(arena, text, strnlen(text, (size_t)length));
    return foreign_operator(arena, symbol) ? symbol : NULL;
}
