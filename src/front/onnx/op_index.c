// Elements as indices: gathers.
#include <inttypes.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

// ---- indices ----

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
const GraphValue *indices_from_front(Map *m, const GraphValue *indices, int64_t size)
{
    if (is_real(indices->type) || indices->type == DTYPE_B1)
        refuse(m, "'%s' are no integers", indices->name);
    if (indices->data)
        return known_indices(m, indices, size);
    GraphValue *counted = part(m, indices, "at");
    const char *index = at_broadcast(m, indices, &indices->shape);
    define(m, counted, indices->type, &indices->shape, letters_of(indices->shape.rank),
           fmt(m, "select(%s < 0, %s + %" PRId64 ", %s)", index, index, size, index));
    return counted;
}

// ---- gathers ----

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

/* One element of `x` for each index along the axis. */
void map_gather_elements(Map *m)
{
    const GraphValue *x = need(m, 0), *indices = need(m, 1);
    int rank = x->shape.rank, axis = axis_of(m, attribute_int(m, "axis", 0), rank);
    if (indices->shape.rank != rank)
        refuse(m, "indices %s of a tensor %s", shape_text(m->arena, &indices->shape),
               shape_text(m->arena, &x->shape));
    indices = indices_from_front(m, indices, x->shape.size[axis]);
    StrBuf places = strbuf_new(m->arena);
    for (int d = 0; d < rank; d++) {
        if (d != axis && indices->shape.size[d] > x->shape.size[d])
            refuse(m, "indices %s of a tensor %s", shape_text(m->arena, &indices->shape),
                   shape_text(m->arena, &x->shape));
        add_place(&places, d == axis ? at(m, indices, letters_list(m, letters_of(rank)))
                                     : fmt(m, "%c", letters_of(rank)[d]));
    }
    move(m, out(m, 0), x, &indices->shape, places.text);
}

/* The `c`-th of the coordinates in the last dimension of `indices`, for each point of the others. */
static const GraphValue *coordinate(Map *m, const GraphValue *indices, int c, int64_t size)
{
    Dims shape = indices->shape;
    shape.rank--;
    const char *letters = letters_list(m, letters_of(shape.rank)), *comma = shape.rank ? ", " : "";
    GraphValue *one = part(m, indices, fmt(m, "at%d", c));
    const char *index = at(m, indices, fmt(m, "%s%s%d", letters, comma, c));
    define(m, one, DTYPE_I64, &shape, letters_of(shape.rank),
           fmt(m, "select(%s < 0, %s + %" PRId64 ", %s)", index, index, size, index));
    return one;
}

/* The last dimension of the indices holds coordinates, behind the first `batch_dims` that both have. */
void map_gather_nd(Map *m)
{
    const GraphValue *x = need(m, 0), *indices = need(m, 1);
    int64_t batch = attribute_int(m, "batch_dims", 0);
    int points = indices->shape.rank - 1;
    int64_t taken = points >= 0 ? indices->shape.size[points] : 0;
    if (batch < 0 || points < batch || taken < 1 || batch + taken > x->shape.rank)
        refuse(m, "coordinates %s of a tensor %s", shape_text(m->arena, &indices->shape),
               shape_text(m->arena, &x->shape));
    Dims shape = indices->shape;
    shape.rank = points;
    int rest = x->shape.rank - (int)(batch + taken);
    if (points + rest > MAX_RANK)
        refuse(m, "%d dimensions; a tensor has at most %d", points + rest, MAX_RANK);
    StrBuf places = strbuf_new(m->arena);
    for (int d = 0; d < x->shape.rank; d++) {
        bool is_batch = d < batch, is_taken = !is_batch && d < batch + taken;
        if (is_batch && x->shape.size[d] != indices->shape.size[d])
            refuse(m, "%s and %s differ in the first dimensions", shape_text(m->arena, &x->shape),
                   shape_text(m->arena, &indices->shape));
        if (is_taken) {
            const GraphValue *one = coordinate(m, indices, d - (int)batch, x->shape.size[d]);
            add_place(&places, at(m, one, letters_list(m, letters_of(points))));
        } else {
            add_place(&places, fmt(m, "%c", letters_of(MAX_RANK)[is_batch ? d : shape.rank]));
        }
        if (!is_batch && !is_taken)
            shape.size[shape.rank++] = x->shape.size[d];
    }
    move(m, out(m, 0), x, &shape, places.text);
}

/* The last dimension, at these places. */
void map_array_feature_extractor(Map *m)
{
    const GraphValue *x = need(m, 0), *indices = need(m, 1);
    int rank = x->shape.rank;
    int64_t count = shape_count(&indices->shape);
    if (rank < 1 || rank > 2)
        refuse(m, "a tensor of %d dimensions", rank);
    indices = indices_from_front(m, indices, x->shape.size[rank - 1]);
    Dims flat = {1, {count}}, shape = {2, {rank == 2 ? x->shape.size[0] : 1, count}};
    GraphValue *vector = part(m, indices, "list");
    view_as(m, vector, indices, &flat);
    move(m, out(m, 0), x, &shape, fmt(m, "%s%s", rank == 2 ? "i, " : "", at(m, vector, "j")));
}

// ---- chosen elements ----

/* Those for which a condition holds that is known: of the whole, or slices along an axis. */
void map_compress(Map *m)
{
    const GraphValue *x = need(m, 0);
    Ints chosen = need_ints(m, 1);
    bool flat = !has_attribute(m, "axis");
    Dims whole = {1, {shape_count(&x->shape)}};
    if (flat) {
        GraphValue *vector = part(m, out(m, 0), "flat");
        view_as(m, vector, x, &whole);
        x = vector;
    }
    int axis = axis_of(m, attribute_int(m, "axis", 0), x->shape.rank), count = 0;
    int64_t *items = NEW_ARRAY(m->arena, int64_t, chosen.count + 1);
    for (int i = 0; i < chosen.count; i++)
        if (chosen.items[i] && i < x->shape.size[axis])
            items[count++] = i;
    Dims shape = x->shape;
    shape.size[axis] = count;
    if (!count)
        refuse(m, "nothing is chosen, and a tensor without elements is none");
    GraphValue *indices = part(m, out(m, 0), "at");
    give_ints(m, indices, count, items);
    StrBuf places = strbuf_new(m->arena);
    for (int d = 0; d < shape.rank; d++) {
        const char *letter = fmt(m, "%c", letters_of(MAX_RANK)[d]);
        add_place(&places, d == axis ? at(m, indices, letter) : letter);
    }
    move(m, out(m, 0), x, &shape, places.text);
}

/* The first elements of each sequence of a batch, from the last of them to the first. */
void map_reverse_sequence(Map *m)
{
    const GraphValue *x = need(m, 0), *lengths = need(m, 1);
    int rank = x->shape.rank, batch = axis_of(m, attribute_int(m, "batch_axis", 1), rank),
        time = axis_of(m, attribute_int(m, "time_axis", 0), rank);
    if (batch == time || lengths->shape.rank != 1 || lengths->shape.size[0] != x->shape.size[batch])
        refuse(m, "lengths %s of sequences %s", shape_text(m->arena, &lengths->shape),
               shape_text(m->arena, &x->shape));
    GraphValue *from = part(m, out(m, 0), "at");
    const char *length = at(m, lengths, "n");
    define(m, from, DTYPE_I64, &(Dims){2, {x->shape.size[batch], x->shape.size[time]}}, "nt",
           fmt(m, "select(t < %s, %s - 1 - t, t)", length, length));
    StrBuf places = strbuf_new(m->arena);
    const char *letters = letters_of(rank);
    for (int d = 0; d < rank; d++)
        add_place(&places, d == time ? at(m, from, fmt(m, "%c, %c", letters[batch], letters[time]))
                                     : fmt(m, "%c", letters[d]));
    move(m, out(m, 0), x, &x->shape, places.text);
}

/* One of two values for each of `depth` classes. */
void map_one_hot(Map *m)
{
    const GraphValue *indices = need(m, 0), *values = need(m, 2);
    int rank = indices->shape.rank + 1, axis = axis_of(m, attribute_int(m, "axis", -1), rank);
    if (!need(m, 1)->data)
        need_ints(m, 1);
    if (shape_count(&need(m, 1)->shape) != 1)
        refuse(m, "'%s' is no scalar", need(m, 1)->name);
    int64_t depth = constant_int(need(m, 1), 0);
    if (rank > MAX_RANK || depth < 1 || depth > INT32_MAX || shape_count(&values->shape) != 2)
        refuse(m, "%" PRId64 " classes of indices %s", depth, shape_text(m->arena, &indices->shape));
    Dims shape = {.rank = rank};
    StrBuf places = strbuf_new(m->arena);
    for (int d = 0; d < rank; d++) {
        shape.size[d] = d == axis ? depth : indices->shape.size[d - (d > axis)];
        if (d != axis)
            add_place(&places, fmt(m, "%c", letters_of(rank)[d]));
    }
    const char *index = at(m, indices, places.text);
    if (is_real(indices->type))
        index = fmt(m, "cast(%s, i64)", index);
    char letter = letters_of(rank)[axis];
    define(m, out(m, 0), values->type, &shape, letters_of(rank),
           fmt(m, "select(%s == %c || %s == %c - %" PRId64 ", %s, %s)", index, letter, index, letter, depth,
               at(m, values, "1"), at(m, values, "0")));
}
