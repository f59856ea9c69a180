// Broadcasting, reductions, contractions, moves.
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "front/onnx/map.h"

// ---- broadcasting ----

Dims broadcast_shapes(const Map *m, const Dims *shape, const Dims *other)
{
    Dims result = shape->rank >= other->rank ? *shape : *other;
    for (int d = 1; d <= result.rank; d++) {
        int64_t a = d <= shape->rank ? shape->size[shape->rank - d] : 1;
        int64_t b = d <= other->rank ? other->size[other->rank - d] : 1;
        if (a != b && a != 1 && b != 1)
            refuse(m, "shapes %s and %s do not go together", shape_text(m->arena, shape),
                   shape_text(m->arena, other));
        result.size[result.rank - d] = a == 1 ? b : a;
    }
    return result;
}

Dims broadcast_shape(const Map *m, int first, int end)
{
    Dims shape = {0};
    for (int i = first; i < end; i++)
        if (maybe(m, i))
            shape = broadcast_shapes(m, &shape, &maybe(m, i)->shape);
    return shape;
}

bool broadcasts_to(const Map *m, const GraphValue *value, const Dims *shape)
{
    Dims both = broadcast_shapes(m, &value->shape, shape);
    return shape_equal(&both, shape);
}

/* Before version 7 the second operand's dimensions began at `axis` of the first. */
static const char *at_axis(const Map *m, const GraphValue *value, const Dims *shape)
{
    int rank = value->shape.rank, axis = axis_of(m, attribute_int(m, "axis", 0), shape->rank);
    if (axis + rank > shape->rank)
        refuse(m, "the operand of %d dimensions does not fit at axis %d", rank, axis);
    return at_letters(m, value, letters_of(shape->rank) + axis, letters_of(shape->rank), shape);
}

void broadcast(Map *m, DType type, const char *text)
{
    bool old = m->node->version < 7 && has_attribute(m, "axis");
    Dims shape = old ? need(m, 0)->shape : broadcast_shape(m, 0, m->node->input_count);
    Filling filling = {0};
    bool uniform = m->folding;
    for (int i = 0; i < m->node->input_count && i < 10; i++)
        uniform &= !maybe(m, i) || maybe(m, i)->uniform;
    for (int i = 0; i < m->node->input_count && i < 10; i++)
        if (maybe(m, i))
            filling.operands[i] =
                i == 1 && old ? at_axis(m, maybe(m, i), &shape) : at_broadcast(m, maybe(m, i), &shape);
    GraphValue *result = out(m, 0);
    define(m, result, type, uniform ? &(Dims){0} : &shape, letters_of(shape.rank), expand(m, text, &filling));
    if (uniform && shape_count(&shape) > 0) {   // one element stands for all
        result->uniform = true;
        result->shape = shape;
    }
}

// ---- reductions ----

static const char reduction_letters[] = "rstuvdfh";

void reduce(Map *m, GraphValue *value, DType type, const GraphValue *x, const bool flags[MAX_RANK], bool keep,
            const char *text)
{
    StrBuf places = strbuf_new(m->arena), axes = strbuf_new(m->arena), count = strbuf_new(m->arena);
    Dims shape = {0};
    int64_t total = 1;
    for (int d = 0, r = 0; d < x->shape.rank; d++) {
        char letter = flags[d] ? reduction_letters[r++] : letters_of(MAX_RANK)[shape.rank];
        strbuf_printf(&places, "%s%c", d ? ", " : "", letter);
        if (flags[d]) {
            strbuf_printf(&axes, "%s%c:%" PRId64, axes.length ? ", " : "", letter, x->shape.size[d]);
            total *= x->shape.size[d];
        }
        if (!flags[d] || keep)
            shape.size[shape.rank++] = flags[d] ? 1 : x->shape.size[d];
    }
    strbuf_printf(&count, "%" PRId64, total);
    const char *element = at(m, x, places.text);
    define(m, value, type, &shape, letters_of(shape.rank),
           expand(m, text, &(Filling){{element}, axes.length ? axes.text : "r:1", count.text}));
}

// ---- contractions ----

void letter_extents(const Map *m, const Factor *terms, int count, int64_t extents[26])
{
    memset(extents, 0, 26 * sizeof *extents);
    for (int t = 0; t < count; t++)
        for (int d = 0; d < terms[t].value->shape.rank; d++) {
            int64_t *extent = &extents[terms[t].letters[d] - 'a'], size = terms[t].value->shape.size[d];
            if (*extent > 1 && size > 1 && *extent != size)
                refuse(m, "shapes %s and %s do not go together", shape_text(m->arena, &terms[0].value->shape),
                       shape_text(m->arena, &terms[t].value->shape));
            *extent = size > *extent ? size : *extent;
        }
}

Dims shape_of_letters(const char *letters, const int64_t extents[26])
{
    Dims shape = {.rank = (int)strlen(letters)};
    for (int d = 0; d < shape.rank; d++)
        shape.size[d] = extents[letters[d] - 'a'];
    return shape;
}

/* `k:64, l:3`: the letters that the result has not. */
static const char *summed(const Map *m, const char *result, const int64_t extents[26])
{
    StrBuf out = strbuf_new(m->arena);
    for (char letter = 'a'; letter <= 'z'; letter++)
        if (extents[letter - 'a'] && !strchr(result, letter))
            strbuf_printf(&out, "%s%c:%" PRId64, out.length ? ", " : "", letter, extents[letter - 'a']);
    return out.text;
}

/* An operand whose dimensions of size 1 are read at 0 where another's are larger. */
static const char *factor(const Map *m, const Factor *term, const int64_t extents[26])
{
    Dims shape = shape_of_letters(term->letters, extents);
    return at_letters(m, term->value, term->letters, term->letters, &shape);
}

const char *contraction(const Map *m, const char *result, const Factor *terms, int count)
{
    int64_t extents[26];
    letter_extents(m, terms, count, extents);
    StrBuf product = strbuf_new(m->arena);
    for (int t = 0; t < count; t++)
        strbuf_printf(&product, "%s%s", t ? " * " : "", factor(m, &terms[t], extents));
    const char *axes = summed(m, result, extents);
    return *axes ? fmt(m, "sum[%s](%s)", axes, product.text) : product.text;
}

// ---- moves ----

void move(Map *m, GraphValue *value, const GraphValue *x, const Dims *shape, const char *places)
{
    define_moved(m, value, x->type, shape, letters_of(shape->rank), at(m, x, places));
}
