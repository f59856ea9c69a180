#include "front/onnx/access.h"

#include <ctype.h>
#include <string.h>

static bool is_part(char c) { return isalnum((unsigned char)c) || c == '_'; }

const char *bracket_close(const char *inside, char open, char close)
{
    int depth = 1;
    for (; *inside; inside++) {
        depth += (*inside == open) - (*inside == close);
        if (depth == 0)
            break;
    }
    return inside;
}

bool bracket_next(const char **at, const char *end, Bracket *found)
{
    for (const char *open = *at; open < end; open++)
        if (*open == '[') {
            const char *name = open;
            while (name > *at && is_part(name[-1]))
                name--;
            *found = (Bracket){name, (size_t)(open - name), open + 1, bracket_close(open + 1, '[', ']')};
            *at = open + 1;
            return true;
        }
    return false;
}

bool bracket_is_reduction(const Bracket *bracket)
{
    static const char *const words[] = {"sum", "prod", "max", "min"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == bracket->length && memcmp(words[i], bracket->name, bracket->length) == 0)
            return true;
    return false;
}

const char *place_end(const char *at, const char *end)
{
    int depth = 0;
    for (; at < end && (depth > 0 || *at != ','); at++)
        depth += (*at == '[' || *at == '(') - (*at == ']' || *at == ')');
    return at;
}

const char *access_place(Arena *arena, const Bracket *access, int d)
{
    const char *at = access->inside, *end = place_end(at, access->close);
    for (; d > 0 && end < access->close; d--) {
        at = end + 1;
        end = place_end(at, access->close);
    }
    at += at < end && *at == ' ';
    return arena_strndup(arena, at, (size_t)(end - at));
}

// ---- rewriting ----

typedef struct AccessRewriting {
    Arena *arena;
    FindHome *find;
    void *context;
    const char *axes, *letters;
} AccessRewriting;

static void rewrite(const AccessRewriting *r, StrBuf *out, const char *text);

/* An index variable stands alone; of everything else the letters are those of a word. */
static void put_word(const AccessRewriting *r, StrBuf *out, const char *word, size_t length)
{
    const char *axis = length == 1 && r->letters ? strchr(r->axes, *word) : NULL;
    if (axis)
        strbuf_putc(out, r->letters[axis - r->axes]);
    else
        strbuf_write(out, word, length);
}

static void put_access(const AccessRewriting *r, StrBuf *out, const Bracket *access, const Home *home)
{
    int rank = 0;
    for (const char *at = access->inside; at < access->close; rank++)
        at = place_end(at, access->close) + 1;
    strbuf_printf(out, "%s[", home->name);
    for (int p = 0; p < rank; p++) {
        strbuf_puts(out, p ? ", " : "");
        rewrite(r, out, access_place(r->arena, access, home->order.rank ? home->order.at[p] : p));
    }
    strbuf_putc(out, ']');
}

static void rewrite(const AccessRewriting *r, StrBuf *out, const char *text)
{
    while (*text) {
        size_t length = 0;
        while (is_part(text[length]))
            length++;
        if (length && text[length] == '[') {
            Bracket access = {text, length, text + length + 1, bracket_close(text + length + 1, '[', ']')};
            const Home *home = bracket_is_reduction(&access)
                                   ? NULL
                                   : r->find(r->context, arena_strndup(r->arena, text, length));
            if (home) {
                put_access(r, out, &access, home);
                text = access.close + 1;
                continue;
            }
        }
        if (length)
            put_word(r, out, text, length);
        else
            strbuf_putc(out, *text);
        text += length ? length : 1;
    }
}

const char *access_rewrite(Arena *arena, const char *expr, FindHome *find, void *context, const char *axes,
                           const char *letters)
{
    StrBuf out = strbuf_new(arena);
    rewrite(&(AccessRewriting){arena, find, context, axes, letters}, &out, expr);
    return out.text;
}
