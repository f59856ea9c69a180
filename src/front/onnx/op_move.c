// Elements that are read elsewhere: permutations, slices, gathers, pads, concatenations.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "front/onnx/map.h"
#include "front/onnx/operators.h"

/* `i`, `i + 3`, `9 - i`, `2*i + 1` */
static const char *affine(const Map *m, int64_t factor, char letter, int64_t offset)
{
    const char *index = factor == 1 ? fmt(m, "%c", letter) : fmt(m, "%" PRId64 "*%c", factor, letter);
    if (factor < 0)
        return factor == -1 ? fmt(m, "%" PRId64 " - %c", offset, letter)
                            : fmt(m, "%" PRId64 " - %" PRId64 "*%c", offset, -factor, letter);
    return offset == 0
               ? index
               : fmt(m, "%s %c %" PRId64, index, offset < 0 ? '-' : '+', offset < 0 ? -offset : offset);
}

static void add_place(StrBuf *places, const char *place)
{
    strbuf_printf(places, "%s%s", places->length ? ", " : "", place);
}

void map_transpose(Map *m)
{
    const GraphValue *x = need(m, 0);
    Ints given = attribute_ints(m, "perm");
    int rank = x->shape.rank;
    if (given.count && given.count != rank)
        refuse(m, "'perm' has %d axes for %d dimensions", given.count, rank);
    Dims shape = {.rank = rank};
    char letters[MAX_RANK + 1] = {0};
    for (int d = 0; d < rank; d++) {
        int from = given.count ? axis_of(m, given.items[d], rank) : rank - 1 - d;
        if (letters[from])
            refuse(m, "'perm' has axis %d twice", from);
        letters[from] = letters_of(MAX_RANK)[d];
        shape.size[d] = x->shape.size[from];
    }
    move(m, out(m, 0), x, &shape, letters_list(m, letters));
}

void map_expand(Map *m)
{
    const GraphValue *x = need(m, 0);
    Ints sizes = need_ints(m, 1);
    if (sizes.count > MAX_RANK)
        refuse(m, "%d dimensions; a tensor has at most %d", sizes.count, MAX_RANK);
    Dims wanted = shape_of(sizes.count, sizes.items), shape = broadcast_shapes(m, &x->shape, &wanted);
    define_moved(m, out(m, 0), x->type, &shape, letters_of(shape.rank), at_broadcast(m, x, &shape));
}

// ---- concatenation ----

/* The element of input `value`, which begins at `offset` of the axis; beside it anything. */
static const char *at_joined(const Map *m, const GraphValue *value, int axis, int64_t offset,
                             const Dims *shape)
{
    if (value->data && value->uniform)
        return literal(m, value);
    StrBuf places = strbuf_new(m->arena);
    for (int d = 0; d < shape->rank; d++)
        add_place(&places, affine(m, 1, letters_of(shape->rank)[d], d == axis ? -offset : 0));
    return value->shape.size[axis] == shape->size[axis] ? at(m, value, places.text)
                                                        : at_padded(m, value, places.text, "0");
}

static Dims joined_shape(const Map *m, int axis)
{
    Dims shape = need(m, 0)->shape;
    for (int i = 1; i < m->node->input_count; i++) {
        const Dims *next = &need(m, i)->shape;
        bool fits = next->rank == shape.rank;
        for (int d = 0; d < shape.rank && fits; d++)
            fits = d == axis || next->size[d] == shape.size[d];
        if (!fits)
            refuse(m, "%s and %s cannot stand one behind the other", shape_text(m->arena, &shape),
                   shape_text(m->arena, next));
        shape.size[axis] += next->size[axis];
    }
    return shape;
}

void map_concat(Map *m)
{
    if (m->node->version >= 4 && !has_attribute(m, "axis"))
        refuse(m, "it lacks the attribute 'axis'");
    int axis = axis_of(m, attribute_int(m, "axis", 1), need(m, 0)->shape.rank);
    Dims shape = joined_shape(m, axis);
    const char *all = NULL;
    int64_t offset = shape.size[axis];
    for (int i = m->node->input_count - 1; i >= 0;
         i--) {   // from the last one: each before it is asked for first
        const GraphValue *value = need(m, i);
        int64_t end = offset;
        offset -= value->shape.size[axis];
        if (end == offset)
            continue;   // it has no elements
        const char *element = at_joined(m, value, axis, offset, &shape);
        all = all ? fmt(m, "select(%c < %" PRId64 ", %s, %s)", letters_of(MAX_RANK)[axis], end, element, all)
                  : element;
    }
    comment(m, "axis %d", axis);
    define(m, out(m, 0), need(m, 0)->type, &shape, letters_of(shape.rank), all ? all : "0");
}

// ---- slices ----

static int64_t clamp(int64_t value, int64_t low, int64_t high) { return smaller(larger(value, low), high); }

/* One axis: from `start` in steps of `step` to `end`, negative ones counted from the back. */
typedef struct SliceAxis {
    int64_t first, step, count;
} SliceAxis;

static SliceAxis slice_of(const Map *m, int64_t size, int64_t start, int64_t end, int64_t step)
{
    if (step == 0 || step == INT64_MIN)
        refuse(m, "a step of %" PRId64, step);
    start = start < 0 ? start + size : start;
    end = end < 0 && end >= -size ? end + size : end;
    start = step > 0 ? clamp(start, 0, size) : clamp(start, 0, size - 1);
    end = step > 0 ? clamp(end, 0, size) : clamp(end, -1, size);
    int64_t room = step > 0 ? end - start : start - end, stride = step > 0 ? step : -step;
    return (SliceAxis){start, step, room > 0 ? (room - 1) / stride + 1 : 0};
}

void map_slice(Map *m)
{
    const GraphValue *x = need(m, 0);
    bool old = m->node->version < 10;
    Ints starts = old ? attribute_ints(m, "starts") : need_ints(m, 1);
    Ints ends = old ? attribute_ints(m, "ends") : need_ints(m, 2);
    Ints axes = old ? attribute_ints(m, "axes") : maybe(m, 3) ? need_ints(m, 3) : (Ints){0};
    Ints steps = !old && maybe(m, 4) ? need_ints(m, 4) : (Ints){0};
    if (starts.count != ends.count || (axes.count && axes.count != starts.count) ||
        (steps.count && steps.count != starts.count) || (!axes.count && starts.count > x->shape.rank))
        refuse(m, "%d starts, %d ends, %d axes, %d steps", starts.count, ends.count, axes.count, steps.count);
    SliceAxis slices[MAX_RANK];
    for (int d = 0; d < x->shape.rank; d++)
        slices[d] = (SliceAxis){0, 1, x->shape.size[d]};
    for (int i = 0; i < starts.count; i++) {
        int d = axes.count ? axis_of(m, axes.items[i], x->shape.rank) : i;
        slices[d] =
            slice_of(m, x->shape.size[d], starts.items[i], ends.items[i], steps.count ? steps.items[i] : 1);
    }
    Dims shape = {.rank = x->shape.rank};
    StrBuf places = strbuf_new(m->arena);
    for (int d = 0; d < shape.rank; d++) {
        shape.size[d] = slices[d].count;
        add_place(&places, affine(m, slices[d].step, letters_of(MAX_RANK)[d], slices[d].first));
    }
    move(m, out(m, 0), x, &shape, places.text);
}

// ---- gather ----

/* Indices that are known, none of them negative any more. */
static const GraphValue *known_indices(Map *m, const GraphValue *indices, int64_t size)
{
    int64_t count = indices->uniform ? 1 : shape_count(&indices->shape),
            *places = NEW_ARRAY(m->arena, int64_t, count + 1);
    for (int64_t i = 0; i < count; i++) {
        int64_t place = constant_int(indices, i);
        if (place < -size || place >= size)
            refuse(m, "index %" PRId64 " of a dimension of %" PRId64, place, size);
        places[i] = place < 0 ? place + size : place;
    }
    GraphValue *known = part(m, indices, "at");
    if (indices->uniform)
        give_uniform(m, known, DTYPE_I64, indices->shape, places);
    else
        give(m, known, DTYPE_I64, indices->shape, places);
    return known;
}

/* Negative ones are counted from the back. */
static const GraphValue *indices_from_front(Map *m, const GraphValue *indices, int64_t size)
{
    if (is_real(indices->type) || indices->type == DTYPE_B1)
        refuse(m, "'%s' are no integers", indices->name);
    if (indices->data)
        return known_indices(m, indices, size);
    GraphValue *counted = part(m, out(m, 0), "at");
    const char *index = at_broadcast(m, indices, &indices->shape);
    define(m, counted, indices->type, &indices->shape, letters_of(indices->shape.rank),
           fmt(m, "select(%s < 0, %s + %" PRId64 ", %s)", index, index, size, index));
    return counted;
}

void map_gather(Map *m)
{
    const GraphValue *x = need(m, 0), *indices = need(m, 1);
    int axis = axis_of(m, attribute_int(m, "axis", 0), x->shape.rank),
        rank = x->shape.rank - 1 + indices->shape.rank;
    if (rank > MAX_RANK)
        refuse(m, "%d dimensions; a tensor has at most %d", rank, MAX_RANK);
    indices = indices_from_front(m, indices, x->shape.size[axis]);
    const char *letters = letters_of(rank);
    const char *place = at(m, indices, letters_list(m, fmt(m, "%.*s", indices->shape.rank, letters + axis)));
    Dims shape = {.rank = rank};
    StrBuf places = strbuf_new(m->arena);
    int to = 0;
    for (int d = 0; d < x->shape.rank; d++) {
        add_place(&places, d == axis ? place : fmt(m, "%c", letters[to]));
        for (int i = 0; d == axis && i < indices->shape.rank; i++)
            shape.size[to++] = indices->shape.size[i];
        if (d != axis)
            shape.size[to++] = x->shape.size[d];
    }
    move(m, out(m, 0), x, &shape, places.text);
}

// ---- pad ----

/* The pads before each dimension and behind; before version 11 attributes. */
static void read_pads(const Map *m, int rank, int64_t before[MAX_RANK], int64_t after[MAX_RANK])
{
    Ints pads = m->node->version < 2    ? attribute_ints(m, "paddings")
                : m->node->version < 11 ? attribute_ints(m, "pads")
                                        : need_ints(m, 1);
    Ints axes = maybe(m, 3) ? need_ints(m, 3) : (Ints){0};
    int count = maybe(m, 3) ? axes.count : rank;
    if (pads.count != 2 * count)
        refuse(m, "%d pads of %d dimensions", pads.count, count);
    memset(before, 0, MAX_RANK * sizeof *before);
    memset(after, 0, MAX_RANK * sizeof *after);
    for (int i = 0; i < count; i++) {
        int d = maybe(m, 3) ? axis_of(m, axes.items[i], rank) : i;
        before[d] = pads.items[i];
        after[d] = pads.items[i + count];
        if (llabs(before[d]) > 1LL << 40 || llabs(after[d]) > 1LL << 40)
            refuse(m, "a pad of %" PRId64 " and %" PRId64, before[d], after[d]);
    }
}

/* What stands beside the tensor, and whether it is a number. */
static const char *pad_value(const Map *m, const GraphValue *x, bool *is_number)
{
    const GraphValue *value = m->node->version < 11 ? NULL : maybe(m, 2);
    *is_number = !value || value->data;
    if (m->node->version < 11)
        return attribute_literal(m, "value", "0");
    if (!value)
        return x->type == DTYPE_B1 ? "(1 == 0)" : "0";
    return at(m, value, value->shape.rank ? "0" : "");
}

/* `i >= 1 && i < 4`: where a point lies within the tensor. */
static void add_inside(StrBuf *inside, char letter, int64_t before, int64_t size, bool ends)
{
    if (before > 0)
        strbuf_printf(inside, "%s%c >= %" PRId64, inside->length ? " && " : "", letter, before);
    if (ends)
        strbuf_printf(inside, "%s%c < %" PRId64, inside->length ? " && " : "", letter, before + size);
}

void map_pad(Map *m)
{
    const GraphValue *x = need(m, 0);
    if (strcmp(attribute_text(m, "mode", "constant"), "constant") != 0)
        refuse(m, "mode '%s'", attribute_text(m, "mode", ""));
    int64_t before[MAX_RANK], after[MAX_RANK];
    read_pads(m, x->shape.rank, before, after);
    Dims shape = {.rank = x->shape.rank};
    StrBuf places = strbuf_new(m->arena), inside = strbuf_new(m->arena);
    for (int d = 0; d < shape.rank; d++) {
        char letter = letters_of(MAX_RANK)[d];
        shape.size[d] = x->shape.size[d] + before[d] + after[d];
        add_inside(&inside, letter, before[d], x->shape.size[d], after[d] > 0);
        add_place(&places, affine(m, 1, letter, -before[d]));
    }
    bool is_number;
    const char *value = pad_value(m, x, &is_number), *element = at(m, x, places.text);
    if (inside.length && is_number)
        element = at_padded(m, x, places.text, value);
    else if (inside.length)
        element = fmt(m, "select(%s, %s, %s)", inside.text, at_padded(m, x, places.text, "0"), value);
    define_moved(m, out(m, 0), x->type, &shape, letters_of(shape.rank), element);
}
