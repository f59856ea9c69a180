// What stands beside a tensor: constants, reflections, edges, repetitions.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

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

/* The constant beside a tensor; `is_number`: as pad() takes it. */
static const char *pad_value(const Map *m, const GraphValue *x, bool *is_number)
{
    const GraphValue *value = m->node->version < 11 ? NULL : maybe(m, 2);
    *is_number = !value || (value->data && !isnan(constant_real(value, 0)));
    if (value && shape_count(&value->shape) != 1)
        refuse(m, "'%s' is no scalar", value->name);
    if (value && value->type != x->type)
        refuse(m, "'%s' is of another type than '%s'", value->name, x->name);
    if (m->node->version < 11)
        return attribute_literal(m, "value", "0");
    if (!value)
        return "0";
    if (*is_number && x->type == DTYPE_B1)
        return constant_int(value, 0) ? "1" : "0";
    return value->data ? literal(m, value) : at(m, value, value->shape.rank ? "0" : "");
}

/* `i >= 1 && i < 4`: where a point lies within the tensor. */
static void add_inside(StrBuf *inside, char letter, int64_t before, int64_t size, bool ends)
{
    if (before > 0)
        strbuf_printf(inside, "%s%c >= %" PRId64, inside->length ? " && " : "", letter, before);
    if (ends)
        strbuf_printf(inside, "%s%c < %" PRId64, inside->length ? " && " : "", letter, before + size);
}

static const char *pad_with_constant(const Map *m, const GraphValue *x, const int64_t *before,
                                     const int64_t *after)
{
    StrBuf places = strbuf_new(m->arena), inside = strbuf_new(m->arena);
    for (int d = 0; d < x->shape.rank; d++) {
        char letter = letters_of(MAX_RANK)[d];
        add_inside(&inside, letter, before[d], x->shape.size[d], after[d] > 0);
        add_place(&places, affine(m, 1, letter, -before[d]));
    }
    bool is_number;
    const char *value = pad_value(m, x, &is_number);
    if (!inside.length)
        return at(m, x, places.text);
    return is_number ? at_padded(m, x, places.text, value)
                     : fmt(m, "select(%s, %s, %s)", inside.text, at_padded(m, x, places.text, "0"), value);
}

/* Where along dimension `d` the elements lie that stand beside the tensor: a vector that is an index. */
static const char *place_beside(Map *m, const GraphValue *x, int d, int64_t before, int64_t after,
                                const char *mode)
{
    int64_t size = x->shape.size[d], total = size + before + after;
    char letter = letters_of(MAX_RANK)[d];
    const char *place = affine(m, 1, letter, -before);
    if (size == 1)
        return "0";
    if (before <= 0 && after <= 0)
        return place;
    if (strcmp(mode, "wrap") == 0)
        return fmt(m, "(%s)%%%" PRId64,
                   affine(m, 1, letter, before < 0 ? -before : (size - before % size) % size), size);
    GraphValue *vector = part(m, out(m, 0), fmt(m, "at%d", d));
    const char *expr = place;   // an index is clamped: the edge
    if (strcmp(mode, "reflect") == 0) {
        int64_t period = 2 * (size - 1), shift = before < 0 ? -before : (period - before % period) % period;
        expr = fmt(m, "%" PRId64 " - abs(%" PRId64 " - (%s) %% %" PRId64 ")", size - 1, size - 1,
                   affine(m, 1, letter, shift), period);
    }
    define(m, vector, DTYPE_I32, &(Dims){1, {total}}, fmt(m, "%c", letter), expr);
    return at(m, vector, fmt(m, "%c", letter));
}

void map_pad(Map *m)
{
    const GraphValue *x = need(m, 0);
    const char *mode = attribute_text(m, "mode", "constant");
    bool is_constant = strcmp(mode, "constant") == 0;
    if (!is_constant && strcmp(mode, "reflect") != 0 && strcmp(mode, "edge") != 0 &&
        strcmp(mode, "wrap") != 0)
        refuse(m, "mode '%s'", mode);
    int64_t before[MAX_RANK], after[MAX_RANK];
    read_pads(m, x->shape.rank, before, after);
    Dims shape = {.rank = x->shape.rank};
    for (int d = 0; d < shape.rank; d++) {
        shape.size[d] = x->shape.size[d] + before[d] + after[d];
        if (shape.size[d] < 1 || (!is_constant && (x->shape.size[d] < 1 || shape.size[d] > INT32_MAX)))
            refuse(m, "pads of %" PRId64 " and %" PRId64 " beside %" PRId64 " elements", before[d], after[d],
                   x->shape.size[d]);
    }
    if (!is_constant)
        comment(m, "%s", mode);
    StrBuf places = strbuf_new(m->arena);
    for (int d = 0; d < shape.rank && !is_constant; d++)
        add_place(&places, place_beside(m, x, d, before[d], after[d], mode));
    define_moved(m, out(m, 0), x->type, &shape, letters_of(shape.rank),
                 is_constant ? pad_with_constant(m, x, before, after) : at(m, x, places.text));
}

/* Sizes of some axes, of which as much is cut off or added on both sides. */
void map_center_crop_pad(Map *m)
{
    const GraphValue *x = need(m, 0);
    Ints sizes = need_ints(m, 1), axes = attribute_ints(m, "axes");
    int rank = x->shape.rank;
    if (sizes.count != (axes.count ? axes.count : rank))
        refuse(m, "%d sizes for %d axes", sizes.count, axes.count ? axes.count : rank);
    int64_t first[MAX_RANK] = {0};
    Dims shape = x->shape;
    for (int i = 0; i < sizes.count; i++) {
        int d = axes.count ? axis_of(m, axes.items[i], rank) : i;
        int64_t more = sizes.items[i] - x->shape.size[d];
        if (sizes.items[i] < 1 || sizes.items[i] > INT32_MAX)
            refuse(m, "a size of %" PRId64, sizes.items[i]);
        first[d] = more > 0 ? -(more / 2) : -more / 2;
        shape.size[d] = sizes.items[i];
    }
    StrBuf places = strbuf_new(m->arena);
    bool pads = false;
    for (int d = 0; d < rank; d++) {
        add_place(&places, affine(m, 1, letters_of(MAX_RANK)[d], first[d]));
        pads |= shape.size[d] > x->shape.size[d];
    }
    define_moved(m, out(m, 0), x->type, &shape, letters_of(rank),
                 pads ? at_padded(m, x, places.text, "0") : at(m, x, places.text));
}
