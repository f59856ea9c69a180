#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "front/onnx/map.h"

static const char plain[] = "ijklmnop";

const char *fmt(const Map *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(m->arena, format, args);
    va_end(args);
    return text;
}

const char *letters_of(int rank)
{
    static const char *const first[] = {"",      "i",      "ij",      "ijk",     "ijkl",
                                        "ijklm", "ijklmn", "ijklmno", "ijklmnop"};
    return first[rank];
}

const char *literal(const Map *m, const GraphValue *value)
{
    if (value->type == DTYPE_B1)
        return constant_int(value, 0) ? "(1 == 1)" : "(1 == 0)";
    return is_real(value->type) ? literal_real(m->arena, value->type, constant_real(value, 0))
                                : literal_int(m->arena, constant_int(value, 0));
}

// ---- elements ----

const char *at(const Map *m, const GraphValue *value, const char *places)
{
    if (value->data && value->uniform)
        return literal(m, value);
    return fmt(m, "%s[%s]", draft_tensor(m->draft, value), places);
}

const char *at_padded(const Map *m, const GraphValue *value, const char *places, const char *otherwise)
{
    return fmt(m, "pad(%s[%s], %s)", draft_tensor(m->draft, value), places, otherwise);
}

const char *at_letters(const Map *m, const GraphValue *value, const char *letters, const char *all,
                       const Dims *extents)
{
    StrBuf places = strbuf_new(m->arena);
    for (int d = 0; d < value->shape.rank; d++) {
        const char *letter = strchr(all, letters[d]);
        bool repeats = letter && value->shape.size[d] == 1 && extents->size[letter - all] != 1;
        strbuf_printf(&places, "%s%c", d ? ", " : "", repeats ? '0' : letters[d]);
    }
    return at(m, value, places.text);
}

const char *at_broadcast(const Map *m, const GraphValue *value, const Dims *shape)
{
    return at_letters(m, value, plain + (shape->rank - value->shape.rank), plain, shape);
}

const char *at_channel(const Map *m, const GraphValue *vector, const Dims *shape, int axis)
{
    const char letter[] = {plain[axis], '\0'};
    if (shape_count(&vector->shape) != shape->size[axis] || vector->shape.rank != 1)
        refuse(m, "'%s' is no vector of %" PRId64 " elements", vector->name, shape->size[axis]);
    return at(m, vector, letter);
}

const char *at_only(const Map *m, const GraphValue *value)
{
    const char zeros[] = "00000000";
    return at(m, value, letters_list(m, zeros + MAX_RANK - value->shape.rank));
}

const char *at_place(const Map *m, const GraphValue *value, int axis, const char *place)
{
    StrBuf places = strbuf_new(m->arena);
    for (int d = 0; d < value->shape.rank; d++)
        strbuf_printf(&places, "%s%s", d ? ", " : "", d == axis ? place : fmt(m, "%c", plain[d]));
    return at(m, value, places.text);
}

const char *at_reduced(const Map *m, const GraphValue *value, const Dims *shape, const bool flags[MAX_RANK])
{
    char kept[MAX_RANK + 1] = {0};
    for (int d = 0, count = 0; d < shape->rank; d++)
        if (!flags[d])
            kept[count++] = plain[d];
    return at(m, value, letters_list(m, kept));
}

const char *letters_list(const Map *m, const char *letters)
{
    StrBuf out = strbuf_new(m->arena);
    for (int d = 0; letters[d]; d++)
        strbuf_printf(&out, "%s%c", d ? ", " : "", letters[d]);
    return out.text;
}

// ---- texts with places for operands ----

/* `{name=otherwise}` or `{name}`; returns what is behind it. */
static const char *expand_attribute(const Map *m, StrBuf *out, const char *brace)
{
    const char *end = strchr(brace, '}'), *equals = memchr(brace, '=', (size_t)(end - brace));
    const char *name = arena_strndup(m->arena, brace + 1, (size_t)((equals ? equals : end) - brace - 1));
    const char *otherwise = equals ? arena_strndup(m->arena, equals + 1, (size_t)(end - equals - 1)) : NULL;
    strbuf_puts(out, attribute_literal(m, name, otherwise));
    return end + 1;
}

const char *expand(const Map *m, const char *text, const Filling *filling)
{
    StrBuf out = strbuf_new(m->arena);
    while (*text)
        if (*text == '{') {
            text = expand_attribute(m, &out, text);
        } else if (*text != '$') {
            strbuf_putc(&out, *text++);
        } else {
            char which = text[1];
            const char *operand = which == 'r'   ? filling->axes
                                  : which == 'n' ? filling->count
                                                 : filling->operands[which - '0'];
            strbuf_puts(&out, operand ? operand : "");
            text += 2;
        }
    return out.text;
}
