// Along one axis: sums so far, where the largest lies, the k largest.
#include <inttypes.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

// ---- sums and products so far ----

void map_cumulate(Map *m)
{
    const GraphValue *x = need(m, 0);
    Ints given = need_ints(m, 1);
    if (given.count != 1)
        refuse(m, "%d axes; one is expected", given.count);
    int axis = axis_of(m, given.items[0], x->shape.rank);
    bool exclusive = attribute_int(m, "exclusive", 0) != 0, reverse = attribute_int(m, "reverse", 0) != 0;
    comment(m, "axis %d", axis);
    define(m, out(m, 0), x->type, &x->shape, letters_of(x->shape.rank),
           fmt(m, "%s[r:%" PRId64 "](select(r %s%s %c, %s, %d))", m->row->text, x->shape.size[axis],
               reverse ? ">" : "<", exclusive ? "" : "=", letters_of(MAX_RANK)[axis],
               at_place(m, x, axis, "r"), strcmp(m->row->text, "prod") == 0));
}

// ---- the first or last largest ----

/* Where it lies, as a tensor without the axis. NaN is larger and smaller than all others. */
static void define_place(Map *m, GraphValue *value, const GraphValue *x, int axis, const char *extreme,
                         bool last, bool keep)
{
    bool flags[MAX_RANK] = {false};
    flags[axis] = true;
    GraphValue *most = part(m, value, extreme);
    reduce(m, most, x->type, x, flags, false, fmt(m, "%s[$r]($0)", extreme));
    Dims shape = {0};
    StrBuf places = strbuf_new(m->arena);
    char letters[MAX_RANK + 1] = {0};
    for (int d = 0, kept = 0; d < x->shape.rank; d++) {
        char letter = letters_of(MAX_RANK)[shape.rank];
        strbuf_printf(&places, "%s%c", d ? ", " : "", d == axis ? 'r' : letter);
        if (d != axis)
            letters[kept++] = letter;
        if (d != axis || keep)
            shape.size[shape.rank++] = d == axis ? 1 : x->shape.size[d];
    }
    const char *element = at(m, x, places.text), *found = at(m, most, letters_list(m, letters));
    const char *nan = is_real(x->type) ? fmt(m, " || %s != %s", element, element) : "";
    int64_t size = x->shape.size[axis];
    define_typed(m, value, DTYPE_I64, &shape, letters_of(shape.rank),
                 fmt(m, "%s[r:%" PRId64 "](select(%s == %s%s, r, %" PRId64 "))", last ? "max" : "min", size,
                     element, found, nan, last ? -1 : size));
}

static void need_order(const Map *m, const GraphValue *x)
{
    if (x->type == DTYPE_B1)
        refuse(m, "'%s' are bools, which have no order", x->name);
}

void map_arg(Map *m)
{
    const GraphValue *x = need(m, 0);
    need_order(m, x);
    int axis = axis_of(m, attribute_int(m, "axis", 0), x->shape.rank);
    comment(m, "axis %d", axis);
    define_place(m, out(m, 0), x, axis, m->row->text, attribute_int(m, "select_last_index", 0) != 0,
                 attribute_int(m, "keepdims", 1) != 0);
}

/* 1 where the first largest of the axis lies; before version 13 of all from the axis on. */
void map_hardmax(Map *m)
{
    const GraphValue *x = need(m, 0);
    bool old = m->node->version < 13;
    int axis = axis_of(m, attribute_int(m, "axis", old ? 1 : -1), x->shape.rank + (old && x->shape.rank < 2));
    GraphValue *rows = part(m, out(m, 0), "rows"), *place = part(m, out(m, 0), "place"),
               *result = part(m, out(m, 0), "rows_hardmax");
    Dims shape = x->shape;
    if (old) {
        shape = (Dims){2, {1, 1}};
        for (int d = 0; d < x->shape.rank; d++)
            shape.size[d >= axis] *= x->shape.size[d];
        view_as(m, rows, x, &shape);
        axis = 1;
    }
    bool whole = shape_equal(&shape, &x->shape);
    define_place(m, place, whole ? x : rows, axis, "max", false, false);
    bool flags[MAX_RANK] = {false};
    flags[axis] = true;
    define_typed(
        m, whole ? out(m, 0) : result, x->type, &shape, letters_of(shape.rank),
        fmt(m, "select(%s == %c, 1, 0)", at_reduced(m, place, &shape, flags), letters_of(MAX_RANK)[axis]));
    if (!whole)
        view_as(m, out(m, 0), result, &x->shape);
}

// ---- the k largest ----

static int64_t top_count(const Map *m)
{
    if (m->node->version < 10)
        return attribute_int(m, "k", 0);
    Ints given = need_ints(m, 1);
    if (given.count != 1)
        refuse(m, "%d numbers of elements; one is expected", given.count);
    return given.items[0];
}

/* Does the element at `r` come before the one at `letter`? Equal ones in their order; NaN is the largest. */
static const char *comes_before(const Map *m, const GraphValue *x, int axis, char letter, bool largest)
{
    const char *a = at_place(m, x, axis, "r"), *b = at_place(m, x, axis, fmt(m, "%c", letter));
    const char *less = largest ? b : a, *more = largest ? a : b;
    if (!is_real(x->type))
        return fmt(m, "%s > %s || %s == %s && r < %c", more, less, a, b, letter);
    return fmt(m, "%s > %s || %s != %s && %s == %s || (%s == %s || %s != %s && %s != %s) && r < %c", more,
               less, more, more, less, less, a, b, a, a, b, b, letter);
}

/* Each element's rank is how many come before it; the k-th is the one of rank k. */
void map_top_k(Map *m)
{
    const GraphValue *x = need(m, 0);
    need_order(m, x);
    int axis = axis_of(m, attribute_int(m, "axis", -1), x->shape.rank);
    int64_t count = top_count(m), size = x->shape.size[axis];
    if (count < 0 || count > size)
        refuse(m, "%" PRId64 " of %" PRId64 " elements", count, size);
    char letter = letters_of(MAX_RANK)[axis];
    comment(m, "%" PRId64 " of %" PRId64, count, size);
    Dims shape = x->shape;
    GraphValue *named = out(m, 0) ? out(m, 0) : out(m, 1), *rank = part(m, named, "rank"),
               *place = out(m, 1) ? out(m, 1) : part(m, named, "place");
    define_typed(m, rank, DTYPE_I32, &shape, letters_of(shape.rank),
                 fmt(m, "sum[r:%" PRId64 "](select(%s, 1, 0))", size,
                     comes_before(m, x, axis, letter, attribute_int(m, "largest", 1) != 0)));
    shape.size[axis] = count;
    define_typed(
        m, place, DTYPE_I64, &shape, letters_of(shape.rank),
        fmt(m, "sum[r:%" PRId64 "](select(%s == %c, r, 0))", size, at_place(m, rank, axis, "r"), letter));
    if (out(m, 0))
        define_moved(m, out(m, 0), x->type, &shape, letters_of(shape.rank),
                     at_place(m, x, axis, at_broadcast(m, place, &shape)));
}
