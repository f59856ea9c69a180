#include "front/onnx/names.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/strbuf.h"
#include "front/lex.h"

/* Letters that stand for index variables in what the importer writes: a tensor is none of them. */
static const char index_letters[] = "cdfhijklmnopqrstuv";

enum { MOST = MAX_NAME - 8 };   // leaves room for `_2`, `_max`

/* `/layer1/conv1/Conv_output_0` without what says the operator again, if a part before it does, or is
   alike. */
static size_t useful_length(const char *name, const char *op)
{
    const char *slash = strrchr(name, '/'), *tail = slash ? strstr(slash, "_output_0") : NULL;
    if (!op || !tail || strcmp(tail, "_output_0") != 0)
        return strlen(name);
    const char *module = slash;
    while (module > name && module[-1] != '/')
        module--;
    size_t length = strlen(op), letters = (size_t)(slash - module);
    bool says_it = letters >= length && strncasecmp(module, op, length) == 0;
    return says_it && slash[1] && strncmp(slash + 1, op, length) == 0 ? (size_t)(slash - name)
                                                                      : (size_t)(tail - name);
}

/* Of a part that the next one says again, only that: `/layer1/layer1.0/conv1` is `/layer1.0/conv1`. */
static void drop_repeated(char *path)
{
    for (char *part = path + 1, *slash; (slash = strchr(part, '/'));) {
        size_t length = (size_t)(slash - part);
        if (strncmp(slash + 1, part, length) == 0 && slash[1 + length] == '.')
            memmove(part, slash + 1, strlen(slash + 1) + 1);
        else
            part = slash + 1;
    }
}

/* What is left of an exporter's path: `/attention/query/MatMul_1` ends in small letters, as modules do. */
static const char *useful(Arena *arena, const char *name, const char *op)
{
    char *path = arena_strndup(arena, name, useful_length(name, op)), *slash = strrchr(path, '/');
    if (!op || *path != '/')
        return path;
    if (strncmp(slash + 1, op, strlen(op)) == 0)
        for (char *c = slash + 1; *c; c++)
            *c = (char)tolower((unsigned char)*c);
    drop_repeated(path);
    return path;
}

static bool is_word(Arena *arena, const char *name)
{
    static const char *const contextual[] = {"weight", "view", "round", "atan", "asin", "acos", "i64"};
    for (size_t i = 0; i < sizeof contextual / sizeof *contextual; i++)
        if (strcmp(name, contextual[i]) == 0)
            return true;
    return lex(arena, source_from_text(arena, name, name, strlen(name)))->kind == TOKEN_WORD;
}

/* Letters, digits and single `_`, not a digit first; no word of the language, no index variable. */
static const char *legal(Arena *arena, const char *name)
{
    StrBuf out = strbuf_new(arena);
    for (size_t i = 0; name[i] && out.length < MOST; i++) {
        bool fits = isalnum((unsigned char)name[i]) && !(name[i] & 0x80);
        if (fits)
            strbuf_putc(&out, name[i]);
        else if (out.length && out.text[out.length - 1] != '_')
            strbuf_putc(&out, '_');
    }
    while (out.length && out.text[out.length - 1] == '_')
        out.text[--out.length] = '\0';
    if (!out.length)
        return "v";
    if (isdigit((unsigned char)*out.text))
        return arena_printf(arena, "v%s", out.text);
    bool is_letter = out.length == 1 && strchr(index_letters, *out.text);
    return is_letter || is_word(arena, out.text) ? arena_printf(arena, "%s_", out.text) : out.text;
}

const char *names_take(NameTable *taken, const char *name, const char *op)
{
    Arena *arena = taken->arena;
    const char *wanted = legal(arena, useful(arena, name, op)), *chosen = wanted;
    if (name_table_find(taken, wanted)) {
        const char *key =
            arena_printf(arena, "%s ", wanted);   // no name has a space: how many have wanted it
        int *next = name_table_find(taken, key);
        if (!next) {
            next = NEW(arena, int);
            name_table_set(taken, key, next);
        }
        for (*next = *next ? *next : 2; name_table_find(taken, chosen); ++*next)
            chosen = arena_printf(arena, "%s_%d", wanted, *next);
    }
    name_table_set(taken, chosen, (void *)chosen);
    return chosen;
}
