#include "front/onnx/extents.h"

#include <stdlib.h>
#include <string.h>

#include "front/onnx/access.h"
#include "front/onnx/graph.h"

static const Dims *shape_read(Arena *arena, const NameTable *shapes, const Bracket *bracket)
{
    return name_table_find(shapes, arena_strndup(arena, bracket->name, bracket->length));
}

void extents_reads(const NameTable *shapes, const char *expr, void (*tell)(void *, const char *),
                   void *context)
{
    Bracket bracket;
    for (const char *at = expr; bracket_next(&at, expr + strlen(expr), &bracket);) {
        const char *name = arena_strndup(shapes->arena, bracket.name, bracket.length);
        if (!bracket_is_reduction(&bracket) && name_table_find(shapes, name))
            tell(context, name);
    }
}

/* 1: it stands alone in dimensions of the extent only; 0: nowhere alone; -1: in one of another size. */
static int follows_in(const Bracket *access, const Dims *shape, const char *index, int64_t extent)
{
    int found = 0, d = 0;
    for (const char *at = access->inside; at < access->close && d < shape->rank; d++) {
        const char *end = place_end(at, access->close);
        at += *at == ' ';
        bool alone = strlen(index) == (size_t)(end - at) && memcmp(at, index, strlen(index)) == 0;
        if (alone && shape->size[d] != extent)
            return -1;
        found |= alone;
        at = end + 1;
    }
    return found;
}

bool extents_follow(Arena *arena, const NameTable *shapes, const char *expr, const char *end,
                    const char *index, int64_t extent)
{
    bool found = false;
    Bracket bracket;
    while (bracket_next(&expr, end, &bracket)) {
        const Dims *shape = bracket_is_reduction(&bracket) ? NULL : shape_read(arena, shapes, &bracket);
        int follows = shape ? follows_in(&bracket, shape, index, extent) : 0;
        if (follows < 0)
            return false;
        found |= follows;
    }
    return found;
}

/* `k:64, r:3` of a reduction, whose body follows. */
static void print_axes(StrBuf *out, const NameTable *shapes, const Bracket *reduction)
{
    const char *body = reduction->close + 1, *end = *body == '(' ? bracket_close(body + 1, '(', ')') : body;
    for (const char *at = reduction->inside; at < reduction->close;) {
        const char *comma = place_end(at, reduction->close), *colon = memchr(at, ':', (size_t)(comma - at));
        at += *at == ' ';
        const char *index = arena_strndup(out->arena, at, (size_t)((colon ? colon : comma) - at));
        bool follows =
            colon && extents_follow(out->arena, shapes, body, end, index, strtoll(colon + 1, NULL, 10));
        strbuf_puts(out, at == reduction->inside ? "" : ", ");
        strbuf_write(out, at, (size_t)((follows ? colon : comma) - at));
        at = comma + 1;
    }
}

void extents_print(StrBuf *out, const NameTable *shapes, const char *expr)
{
    const char *end = expr + strlen(expr), *done = expr;
    Bracket bracket;
    for (const char *at = expr; bracket_next(&at, end, &bracket);) {
        if (!bracket_is_reduction(&bracket))
            continue;
        strbuf_write(out, done, (size_t)(bracket.inside - done));
        print_axes(out, shapes, &bracket);
        done = at = bracket.close;
    }
    strbuf_puts(out, done);
}
