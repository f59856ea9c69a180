#include "mutation/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_word_char(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

/* The end of the number, name or symbol that begins here. */
static const char *skip_word(const char *at)
{
    static const char *const pairs[] = {"<=", ">=", "==", "!=", "&&", "||"};
    if (is_word_char(*at)) {
        bool number = isdigit((unsigned char)*at) || *at == '.';
        while (is_word_char(*at) ||
               (number && (*at == '-' || *at == '+') && (at[-1] == 'e' || at[-1] == 'E')))
            at++;
        return at;
    }
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strncmp(at, pairs[i], 2) == 0)
            return at + 2;
    return at + 1;
}

static void add(Words *words, Word added)
{
    if (words->count == words->room) {
        int room = 2 * words->room + 64;
        Word *items = NEW_ARRAY(words->arena, Word, room);
        memcpy(items, words->items ? words->items : &added, (size_t)words->count * sizeof *items);
        words->items = items;
        words->room = room;
    }
    words->items[words->count++] = added;
}

Words words_of(Arena *arena, const char *text)
{
    Words words = {.arena = arena};
    bool begins_line = true;
    while (*text) {
        const char *end = *text == '#' ? text + strcspn(text, "\n") : skip_word(text);
        if (*text == '\n')
            begins_line = true;
        else if (*text != '#' && !isspace((unsigned char)*text)) {
            add(&words, (Word){arena_strndup(arena, text, (size_t)(end - text)), begins_line});
            begins_line = false;
        }
        text = end;
    }
    return words;
}

/* `x[i, 2*j]`, not `x [ i , 2 * j ]`: what was found is read by people. */
static bool needs_blank(const char *left, const char *right)
{
    static const char *const tight_right[] = {"[", "(", "]", ")", ",", ":"};
    for (size_t i = 0; i < sizeof tight_right / sizeof *tight_right; i++)
        if (strcmp(right, tight_right[i]) == 0)
            return strchr("[(", *right) && !is_word_char(*left) && !strchr("[(", *left);
    return !strchr("[(:", *left);
}

static void print_words(StrBuf *out, const Words *words, int first, int end)
{
    for (int i = first; i < end; i++) {
        if (i > first && words->items[i].begins_line)
            strbuf_putc(out, '\n');
        else if (i > first && needs_blank(words->items[i - 1].text, words->items[i].text))
            strbuf_putc(out, ' ');
        strbuf_puts(out, words->items[i].text);
    }
}

void words_print(StrBuf *out, const Words *words)
{
    print_words(out, words, 0, words->count);
    strbuf_putc(out, '\n');
}

const char *words_text(const Words *words, int first, int end)
{
    StrBuf out = strbuf_new(words->arena);
    print_words(&out, words, first, end);
    return out.text;
}

void words_replace(Words *words, int at, int count, const char *text)
{
    Words added = words_of(words->arena, text), changed = {.arena = words->arena};
    bool begins_line = at < words->count && words->items[at].begins_line;
    for (int i = 0; i < at; i++)
        add(&changed, words->items[i]);
    for (int i = 0; i < added.count; i++)
        add(&changed, (Word){added.items[i].text, i ? added.items[i].begins_line : begins_line});
    for (int i = at + count; i < words->count; i++)
        add(&changed, words->items[i]);
    *words = changed;
}

// ---- questions ----

const char *word(const Words *words, int at)
{
    return at >= 0 && at < words->count ? words->items[at].text : "";
}

bool word_is(const Words *words, int at, const char *text) { return strcmp(word(words, at), text) == 0; }

bool word_is_name(const Words *words, int at)
{
    char first = *word(words, at);
    return isalpha((unsigned char)first) || first == '_';
}

bool word_is_number(const Words *words, int at)
{
    char first = *word(words, at);
    return isdigit((unsigned char)first) || first == '.';
}

/* What the word adds to the depth of brackets. */
static int nesting(const Words *words, int at)
{
    char first = *word(words, at);
    return first == '[' || first == '(' ? 1 : first == ']' || first == ')' ? -1 : 0;
}

/* Of the bracket at `open` its partner, or the end. */
static int closing_of(const Words *words, int open)
{
    for (int at = open, depth = 0; at < words->count; at++) {
        depth += nesting(words, at);
        if (depth == 0)
            return at;
    }
    return words->count;
}

int words_behind(const Words *words, int open)
{
    int closing = closing_of(words, open);
    return closing < words->count ? closing + 1 : closing;
}

int operand_count(const Words *words, int open)
{
    int closing = closing_of(words, open), count = closing > open + 1;
    for (int at = open, depth = 0; at < closing; at++) {
        depth += nesting(words, at);
        count += depth == 1 && word_is(words, at, ",");
    }
    return count;
}

void operand_find(const Words *words, int open, int k, int *first, int *end)
{
    int closing = closing_of(words, open), at = open + 1;
    for (int seen = 0, depth = 1; at < closing && seen < k; at++) {
        depth += nesting(words, at);
        seen += depth == 1 && word_is(words, at, ",");
    }
    *first = at;
    for (int depth = 1; at < closing && !(depth == 1 && word_is(words, at, ",")); at++)
        depth += nesting(words, at);
    *end = at;
}
