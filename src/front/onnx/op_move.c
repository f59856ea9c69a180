// Elements that are read elsewhere: permutations, repetitions, concatenations, slices.
#include <inttypes.h>

#include "base/checked.h"
#include "front/onnx/map.h"
#include "front/onnx/operators.h"

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

/* Before version 6 so many times along one axis, then along each. */
static void read_repeats(const Map *m, int rank, int64_t repeats[MAX_RANK])
{
    Ints given = need_ints(m, 1);
    for (int d = 0; d < rank; d++)
        repeats[d] = m->node->version < 6 || given.count != rank ? 1 : given.items[d];
    if (m->node->version < 6) {
        Ints axis = need_ints(m, 2);
        if (given.count != 1 || axis.count != 1)
            refuse(m, "%d numbers of repetitions along %d axes", given.count, axis.count);
        repeats[axis_of(m, axis.items[0], rank)] = given.items[0];
    } else if (given.count != rank) {
        refuse(m, "%d numbers of repetitions for %d dimensions", given.count, rank);
    }
}

void map_tile(Map *m)
{
    const GraphValue *x = need(m, 0);
    int64_t repeats[MAX_RANK];
    read_repeats(m, x->shape.rank, repeats);
    Dims shape = {.rank = x->shape.rank};
    StrBuf places = strbuf_new(m->arena);
    for (int d = 0; d < shape.rank; d++) {
        char letter = letters_of(MAX_RANK)[d];
        int64_t size = x->shape.size[d];
        if (repeats[d] < 0 || !checked_mul(size, repeats[d], &shape.size[d]))
            refuse(m, "%" PRId64 " repetitions", repeats[d]);
        add_place(&places, repeats[d] == 1 ? fmt(m, "%c", letter)
                           : size == 1     ? "0"
                                           : fmt(m, "%c%%%" PRId64, letter, size));
    }
    move(m, out(m, 0), x, &shape, places.text);
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
    int axis = axis_of(m, attribute_int(m, "axis", 1), need(m, 0)->shape.rank), count = 0;
    Dims shape = joined_shape(m, axis);
    int64_t *ends = NEW_ARRAY(m->arena, int64_t, m->node->input_count), offset = 0;
    const char **elements = NEW_ARRAY(m->arena, const char *, m->node->input_count);
    for (int i = 0; i < m->node->input_count; i++) {
        const GraphValue *value = need(m, i);
        if (value->type != need(m, 0)->type)
            refuse(m, "'%s' is of another type", value->name);
        if (value->shape.size[axis] == 0)
            continue;
        elements[count] = at_joined(m, value, axis, offset, &shape);
        offset += value->shape.size[axis];
        ends[count++] = offset;
    }
    comment(m, "axis %d", axis);
    const char *all =
        count ? select_range(m, fmt(m, "%c", letters_of(MAX_RANK)[axis]), ends, elements, count) : "0";
    define(m, out(m, 0), need(m, 0)->type, &shape, letters_of(shape.rank), all);
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

// ---- splits ----

/* How many elements of the axis each output has: given, or alike, the last one what is left. */
static void read_splits(const Map *m, int64_t size, int64_t *each)
{
    bool is_input = maybe(m, 1) != NULL;
    int count = m->node->output_count;
    Ints given = is_input ? need_ints(m, 1) : attribute_ints(m, "split");
    if (given.count && given.count != count)
        refuse(m, "%d sizes for %d outputs", given.count, count);
    if (attribute_int(m, "num_outputs", count) != count)
        refuse(m, "'num_outputs' is %" PRId64 " for %d outputs", attribute_int(m, "num_outputs", count),
               count);
    if (!given.count && size % count && m->node->version < 18)
        refuse(m, "%" PRId64 " elements cannot be split into %d alike", size, count);
    int64_t alike = ceil_div(size, count), left = size;
    for (int i = 0; i < count; i++) {
        each[i] = given.count ? given.items[i] : smaller(alike, left);
        if (each[i] < 0 || each[i] > left)
            refuse(m, "the sizes are not those of %" PRId64 " elements", size);
        left -= each[i];
    }
    if (left)
        refuse(m, "the sizes leave %" PRId64 " of %" PRId64 " elements", left, size);
}

void map_split(Map *m)
{
    const GraphValue *x = need(m, 0);
    int axis = axis_of(m, attribute_int(m, "axis", 0), x->shape.rank);
    int64_t *each = NEW_ARRAY(m->arena, int64_t, m->node->output_count), offset = 0;
    read_splits(m, x->shape.size[axis], each);
    comment(m, "axis %d", axis);
    for (int i = 0; i < m->node->output_count; i++) {
        Dims shape = x->shape;
        shape.size[axis] = each[i];
        StrBuf places = strbuf_new(m->arena);
        for (int d = 0; d < shape.rank; d++)
            add_place(&places, affine(m, 1, letters_of(MAX_RANK)[d], d == axis ? offset : 0));
        if (out(m, i))
            move(m, out(m, i), x, &shape, places.text);
        offset += each[i];
    }
}
