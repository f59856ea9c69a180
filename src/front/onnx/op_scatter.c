// Elements that are written elsewhere: for each element of the result the updates that reach it.
#include <inttypes.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

/* What becomes of an element that updates reach: `hit` says whether update `r` does, `update` is it. Without
   a reduction the last one that does is the element; else they are joined with what was there. */
static const char *joined(const Map *m, const GraphValue *x, const char *old, const char *axis,
                          const char *hit, const char *update)
{
    const char *how = attribute_text(m, "reduction", "none");
    if (x->type == DTYPE_B1)
        refuse(m, "a reduction '%s' of bools", how);
    if (strcmp(how, "add") == 0)
        return fmt(m, "%s + sum[%s](select(%s, %s, 0))", old, axis, hit, update);
    if (strcmp(how, "mul") == 0)
        return fmt(m, "%s * prod[%s](select(%s, %s, 1))", old, axis, hit, update);
    if (strcmp(how, "max") == 0 || strcmp(how, "min") == 0)
        return fmt(m, "%s(%s, %s[%s](select(%s, %s, %s)))", how, old, how, axis, hit, update, old);
    refuse(m, "reduction '%s'", how);
}

static bool replaces(const Map *m) { return strcmp(attribute_text(m, "reduction", "none"), "none") == 0; }

// ---- along one axis ----

typedef struct Scatter {
    const GraphValue *x, *indices, *updates;
    int axis;
    bool pads;   // the indices are smaller than the tensor
} Scatter;

/* Update `place` along the axis, at the point of the others. */
static const char *at_update(const Map *m, const Scatter *s, const GraphValue *value, const char *place,
                             const char *otherwise)
{
    StrBuf places = strbuf_new(m->arena);
    for (int d = 0; d < s->x->shape.rank; d++)
        add_place(&places, d == s->axis ? place : fmt(m, "%c", letters_of(MAX_RANK)[d]));
    return s->pads ? at_padded(m, value, places.text, otherwise) : at(m, value, places.text);
}

static Scatter read_scatter(Map *m)
{
    Scatter s = {.x = need(m, 0), .indices = need(m, 1), .updates = need(m, 2)};
    int rank = s.x->shape.rank;
    s.axis = axis_of(m, attribute_int(m, "axis", 0), rank);
    bool fits = shape_equal(&s.indices->shape, &s.updates->shape) && s.indices->shape.rank == rank;
    for (int d = 0; d < rank && fits; d++) {
        fits = d == s.axis || s.indices->shape.size[d] <= s.x->shape.size[d];
        s.pads |= d != s.axis && s.indices->shape.size[d] < s.x->shape.size[d];
    }
    if (!fits)
        refuse(m, "updates %s at indices %s of a tensor %s", shape_text(m->arena, &s.updates->shape),
               shape_text(m->arena, &s.indices->shape), shape_text(m->arena, &s.x->shape));
    s.indices = indices_from_front(m, s.indices, s.x->shape.size[s.axis]);
    return s;
}

void map_scatter_elements(Map *m)
{
    Scatter s = read_scatter(m);
    const Dims *shape = &s.x->shape;
    const char *letters = letters_of(shape->rank), *old = at(m, s.x, letters_list(m, letters));
    const char *axis = fmt(m, "r:%" PRId64, s.indices->shape.size[s.axis]);
    const char *hit = fmt(m, "%s == %c", at_update(m, &s, s.indices, "r", "-1"), letters[s.axis]);
    if (!replaces(m)) {
        define(m, out(m, 0), s.x->type, shape, letters,
               joined(m, s.x, old, axis, hit, at_update(m, &s, s.updates, "r", "0")));
        return;
    }
    GraphValue *last = part(m, out(m, 0), "last");
    define(m, last, DTYPE_I32, shape, letters, fmt(m, "max[%s](select(%s, r, -1))", axis, hit));
    const char *which = at(m, last, letters_list(m, letters));
    define_moved(m, out(m, 0), s.x->type, shape, letters,
                 fmt(m, "select(%s >= 0, %s, %s)", which, at_update(m, &s, s.updates, which, "0"), old));
}

// ---- at coordinates ----

/* The row of the tensor, seen as rows, that each update goes to: [updates]. */
static const GraphValue *rows_of(Map *m, const GraphValue *x, const GraphValue *indices, int64_t updates)
{
    int taken = (int)indices->shape.size[indices->shape.rank - 1];
    GraphValue *list = part(m, out(m, 0), "coordinates"), *rows = part(m, out(m, 0), "rows");
    view_as(m, list, indices, &(Dims){2, {updates, taken}});
    StrBuf row = strbuf_new(m->arena);
    int64_t stride = 1;
    for (int d = taken - 1; d >= 0; d--) {
        const char *index = at(m, list, fmt(m, "i, %d", d));
        strbuf_printf(&row, "%sselect(%s < 0, %s + %" PRId64 ", %s)", row.length ? " + " : "", index, index,
                      x->shape.size[d], index);
        if (stride > 1)
            strbuf_printf(&row, " * %" PRId64, stride);
        stride *= x->shape.size[d];
    }
    define(m, rows, DTYPE_I64, &(Dims){1, {updates}}, "i", row.text);
    return rows;
}

static void check_scatter_nd(const Map *m, const GraphValue *x, const GraphValue *indices,
                             const GraphValue *updates)
{
    int points = indices->shape.rank - 1;
    int64_t taken = points >= 0 ? indices->shape.size[points] : 0;
    bool fits = taken >= 1 && taken <= x->shape.rank &&
                updates->shape.rank == points + x->shape.rank - taken && indices->type == DTYPE_I64;
    for (int d = 0; d < updates->shape.rank && fits; d++)
        fits = updates->shape.size[d] ==
               (d < points ? indices->shape.size[d] : x->shape.size[d - points + taken]);
    if (!fits)
        refuse(m, "updates %s at coordinates %s of a tensor %s", shape_text(m->arena, &updates->shape),
               shape_text(m->arena, &indices->shape), shape_text(m->arena, &x->shape));
}

/* The tensor is seen as rows, which coordinates number. */
void map_scatter_nd(Map *m)
{
    const GraphValue *x = need(m, 0), *indices = need(m, 1), *updates = need(m, 2);
    check_scatter_nd(m, x, indices, updates);
    int64_t taken = indices->shape.size[indices->shape.rank - 1], count = 1, rows = 1, each = 1;
    for (int d = 0; d < indices->shape.rank - 1; d++)
        count *= indices->shape.size[d];
    for (int d = 0; d < x->shape.rank; d++)
        *(d < taken ? &rows : &each) *= x->shape.size[d];
    if (count < 1 || rows < 1 || each < 1 || count > INT32_MAX)
        refuse(m, "%" PRId64 " updates", count);
    Dims shape = {2, {rows, each}};
    GraphValue *old = part(m, out(m, 0), "old"), *list = part(m, out(m, 0), "updates"),
               *made = part(m, out(m, 0), "new");
    view_as(m, old, x, &shape);
    view_as(m, list, updates, &(Dims){2, {count, each}});
    const char *hit = fmt(m, "%s == i", at(m, rows_of(m, x, indices, count), "r"));
    const char *axis = fmt(m, "r:%" PRId64, count), *before = at(m, old, "i, j");
    if (replaces(m)) {
        GraphValue *last = part(m, out(m, 0), "last");
        define(m, last, DTYPE_I32, &(Dims){1, {rows}}, "i", fmt(m, "max[%s](select(%s, r, -1))", axis, hit));
        const char *which = at(m, last, "i");
        define_moved(m, made, x->type, &shape, "ij",
                     fmt(m, "select(%s >= 0, %s, %s)", which, at(m, list, fmt(m, "%s, j", which)), before));
    } else {
        define(m, made, x->type, &shape, "ij", joined(m, x, before, axis, hit, at(m, list, "r, j")));
    }
    view_as(m, out(m, 0), made, &x->shape);
}

// ---- a cache ----

/* Each sequence of the batch is continued at its own place, or, circular, around its end. */
void map_tensor_scatter(Map *m)
{
    const GraphValue *past = need(m, 0), *update = need(m, 1), *first = maybe(m, 2);
    int rank = past->shape.rank, axis = axis_of(m, attribute_int(m, "axis", -2), rank);
    const char *mode = attribute_text(m, "mode", "linear");
    bool circular = strcmp(mode, "circular") == 0;
    bool fits = update->shape.rank == rank && axis > 0 && (circular || strcmp(mode, "linear") == 0) &&
                (!first || (first->shape.rank == 1 && first->shape.size[0] == past->shape.size[0]));
    for (int d = 0; d < rank && fits; d++)
        fits = d == axis ? update->shape.size[d] <= past->shape.size[d]
                         : update->shape.size[d] == past->shape.size[d];
    if (!fits)
        refuse(m, "mode '%s', an update %s of a cache %s", mode, shape_text(m->arena, &update->shape),
               shape_text(m->arena, &past->shape));
    int64_t size = past->shape.size[axis];
    const char *letters = letters_of(rank), *place = first ? fmt(m, "k - %s", at(m, first, "i")) : "k";
    GraphValue *from = part(m, out(m, 0), "at");
    define(m, from, DTYPE_I64, &(Dims){2, {past->shape.size[0], size}}, "ik",
           circular ? fmt(m, "(%s + %" PRId64 ") %% %" PRId64, place, size, size) : place);
    const char *at_new = at(m, from, fmt(m, "%c, %c", letters[0], letters[axis]));
    StrBuf places = strbuf_new(m->arena);
    for (int d = 0; d < rank; d++)
        add_place(&places, d == axis ? at_new : fmt(m, "%c", letters[d]));
    define_moved(m, out(m, 0), past->type, &past->shape, letters,
                 fmt(m, "select(%s >= 0 && %s < %" PRId64 ", %s, %s)", at_new, at_new,
                     update->shape.size[axis], at(m, update, places.text),
                     at(m, past, letters_list(m, letters))));
}
