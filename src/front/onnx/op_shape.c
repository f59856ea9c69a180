// Constants, shapes, and the same elements in other shapes.
#include <inttypes.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"
#include "front/onnx/tensor.h"

// ---- constants ----

static void give_tensor(Map *m, const Onnx__TensorProto *tensor)
{
    DType type;
    Dims shape;
    const char *problem;
    const void *data = tensor_read(m->arena, m->model, tensor, &type, &shape, &problem);
    if (problem)
        refuse(m, "%s", problem);
    give(m, out(m, 0), type, shape, data);
}

static void give_reals(Map *m, Reals reals, int rank)
{
    give(m, out(m, 0), DTYPE_F32, shape_of(rank, (int64_t[]){reals.count}), reals.items);
}

void map_constant(Map *m)
{
    Ints ints = attribute_ints(m, "value_ints");
    if (attribute_tensor(m, "value")) {
        give_tensor(m, attribute_tensor(m, "value"));
    } else if (has_attribute(m, "value_int")) {
        int64_t value = attribute_int(m, "value_int", 0);
        give_ints(m, out(m, 0), 1, &value);
        out(m, 0)->shape.rank = 0;
    } else if (has_attribute(m, "value_float")) {
        float value = (float)attribute_real(m, "value_float", 0);
        give_reals(m, (Reals){1, memcpy(NEW(m->arena, float), &value, sizeof value)}, 0);
    } else if (has_attribute(m, "value_floats")) {
        give_reals(m, attribute_reals(m, "value_floats"), 1);
    } else if (has_attribute(m, "value_ints")) {
        give_ints(m, out(m, 0), ints.count, ints.items);
    } else {
        refuse(m, "a constant that is no tensor and no numbers");
    }
}

void map_constant_of_shape(Map *m)
{
    Ints sizes = need_ints(m, 0);
    const Onnx__TensorProto *tensor = attribute_tensor(m, "value");
    DType type = DTYPE_F32;
    Dims one = {0};
    const char *problem = NULL;
    const void *data = tensor ? tensor_read(m->arena, m->model, tensor, &type, &one, &problem) : "\0\0\0";
    if (problem)
        refuse(m, "%s", problem);
    if (sizes.count > MAX_RANK || shape_count(&one) != 1)
        refuse(m, "%d dimensions of a value of %" PRId64 " elements", sizes.count, shape_count(&one));
    give_uniform(m, out(m, 0), type, shape_of(sizes.count, sizes.items), data);
}

void map_shape(Map *m)
{
    const GraphValue *x = need(m, 0);
    int rank = x->shape.rank;
    int64_t first = attribute_int(m, "start", 0), end = attribute_int(m, "end", rank);
    first = first < 0 ? first + rank : first;
    end = end < 0 ? end + rank : end;
    first = first < 0 ? 0 : first > rank ? rank : first;
    end = end < first ? first : end > rank ? rank : end;
    give_ints(m, out(m, 0), (int)(end - first), x->shape.size + first);
}

void map_size(Map *m)
{
    int64_t *count = NEW(m->arena, int64_t);
    *count = shape_count(&need(m, 0)->shape);
    give(m, out(m, 0), DTYPE_I64, (Dims){0}, count);
}

// ---- the same elements ----

void map_identity(Map *m)
{
    const GraphValue *x = need(m, 0);
    view_as(m, out(m, 0), x, &x->shape);
}

/* In inference nothing is dropped, nor of none. */
void map_dropout(Map *m)
{
    bool trains = maybe(m, 2) && constant_int(need_constant(m, 2), 0);
    if (trains && (!maybe(m, 1) || constant_real(need_constant(m, 1), 0) != 0))
        refuse(m, "elements dropped at random, as in training");
    const GraphValue *x = need(m, 0);
    if (out(m, 0))
        view_as(m, out(m, 0), x, &x->shape);
    if (out(m, 1)) {
        if (m->node->version < 10)
            refuse_output(m, 1, "a mask of numbers");
        give_uniform(m, out(m, 1), DTYPE_B1, x->shape, "\1");
    }
}

/* One size may be -1: what is left; 0 is the input's, unless `allowzero`. */
void map_reshape(Map *m)
{
    const GraphValue *x = need(m, 0);
    Ints sizes = m->node->version < 5 ? attribute_ints(m, "shape") : need_ints(m, 1);
    Dims shape = {.rank = sizes.count};
    if (sizes.count > MAX_RANK)
        refuse(m, "%d dimensions; a tensor has at most %d", sizes.count, MAX_RANK);
    int64_t known = 1, open = -1, total = shape_count(&x->shape);
    for (int d = 0; d < sizes.count; d++) {
        bool copies = sizes.items[d] == 0 && !attribute_int(m, "allowzero", 0);
        if (copies && d >= x->shape.rank)
            refuse(m, "dimension %d of %s is to be copied", d, shape_text(m->arena, &x->shape));
        shape.size[d] = copies ? x->shape.size[d] : sizes.items[d];
        if (sizes.items[d] == -1)
            open = d;
        else if (__builtin_mul_overflow(known, shape.size[d], &known))
            refuse(m, "the shape is too large");
    }
    if (open >= 0)
        shape.size[open] = known > 0 ? total / known : 0;
    view_as(m, out(m, 0), x, &shape);
}

void map_flatten(Map *m)
{
    const GraphValue *x = need(m, 0);
    int64_t axis = attribute_int(m, "axis", 1);
    axis = axis == x->shape.rank ? axis : axis_of(m, axis, x->shape.rank);
    Dims shape = {2, {1, 1}};
    for (int d = 0; d < x->shape.rank; d++)
        shape.size[d >= axis] *= x->shape.size[d];
    view_as(m, out(m, 0), x, &shape);
}

void map_squeeze(Map *m)
{
    const GraphValue *x = need(m, 0);
    bool flags[MAX_RANK], given = axes_given(m, "axes", 1, x->shape.rank, flags);
    Dims shape = {0};
    for (int d = 0; d < x->shape.rank; d++) {
        if (given && flags[d] && x->shape.size[d] != 1)
            refuse(m, "dimension %d of %s is not 1", d, shape_text(m->arena, &x->shape));
        if (given ? !flags[d] : x->shape.size[d] != 1)
            shape.size[shape.rank++] = x->shape.size[d];
    }
    view_as(m, out(m, 0), x, &shape);
}

void map_unsqueeze(Map *m)
{
    const GraphValue *x = need(m, 0);
    Ints axes = m->node->version < 13 ? attribute_ints(m, "axes") : need_ints(m, 1);
    int rank = x->shape.rank + axes.count;
    if (rank > MAX_RANK)
        refuse(m, "%d dimensions; a tensor has at most %d", rank, MAX_RANK);
    bool flags[MAX_RANK] = {false};
    for (int i = 0; i < axes.count; i++) {
        int axis = axis_of(m, axes.items[i], rank);
        if (flags[axis])
            refuse(m, "dimension %d is inserted twice", axis);
        flags[axis] = true;
    }
    Dims shape = {.rank = rank};
    for (int d = 0, from = 0; d < rank; d++)
        shape.size[d] = flags[d] || from == x->shape.rank ? 1 : x->shape.size[from++];
    view_as(m, out(m, 0), x, &shape);
}
