// Tensors that numbers fill: triangles, diagonals, ranges.
#include <inttypes.h>
#include <math.h>

#include "base/checked.h"
#include "front/onnx/map.h"
#include "front/onnx/operators.h"
#include "front/onnx/tensor.h"
#include "front/onnx/triangle.h"

void map_trilu(Map *m)
{
    const GraphValue *x = need(m, 0);
    Ints offset = maybe(m, 1) ? need_ints(m, 1) : (Ints){0};
    int rank = x->shape.rank;
    if (rank < 2)
        refuse(m, "a tensor of %d dimensions is no matrix", rank);
    int64_t rows = x->shape.size[rank - 2], columns = x->shape.size[rank - 1];
    int64_t k = offset.count ? smaller(larger(offset.items[0], -rows - 1), columns + 1) : 0;
    bool upper = attribute_int(m, "upper", 1) != 0;
    comment(m, upper ? "upper" : "lower");
    const char *letters = letters_of(rank);
    Triangle triangle = {.upper = upper, .diagonal = k};
    const char *inside = triangle_condition(m, &triangle, letters[rank - 2], letters[rank - 1]);
    if (x->data && constant_is_one_value(x))   // of a mask: no element is read
        define(m, out(m, 0), x->type, &x->shape, letters,
               fmt(m, "select(%s, %s, %s)", inside, literal(m, x), zero_of(x->type)));
    else
        define_moved(
            m, out(m, 0), x->type, &x->shape, letters,
            fmt(m, "select(%s, %s, %s)", inside, at(m, x, letters_list(m, letters)), zero_of(x->type)));
}

void map_eye_like(Map *m)
{
    const GraphValue *x = need(m, 0);
    DType type = x->type;
    const char *problem =
        has_attribute(m, "dtype") ? tensor_type((int)attribute_int(m, "dtype", 0), &type) : NULL;
    if (problem || x->shape.rank != 2)
        refuse(m, problem ? "to %s" : "a tensor that is no matrix", problem);
    int64_t k = smaller(larger(attribute_int(m, "k", 0), -x->shape.size[0]), x->shape.size[1]);
    const char *diagonal = fmt(m, "j == %s", affine(m, 1, 'i', k));
    define(m, out(m, 0), type, &x->shape, "ij",
           type == DTYPE_B1 ? diagonal : fmt(m, "select(%s, 1, 0)", diagonal));
}

/* How many numbers there are from `first` in steps to `end`. */
static int64_t range_count(const Map *m, double first, double end, double step)
{
    double count = ceil((end - first) / step);
    if (step == 0 || !isfinite(count) || count > (double)((int64_t)1 << 40))
        refuse(m, "a range from %g to %g in steps of %g", first, end, step);
    return count > 0 ? (int64_t)count : 0;
}

void map_range(Map *m)
{
    for (int i = 0; i < 3; i++) {
        if (!need(m, i)->data)
            need_ints(m, i);   // refuses, and says how to bind it
        if (shape_count(&need(m, i)->shape) != 1 || need(m, i)->type != need(m, 0)->type)
            refuse(m, "'%s' is no scalar of the others' type", need(m, i)->name);
    }
    const GraphValue *first = need(m, 0), *end = need(m, 1), *step = need(m, 2);
    DType type = first->type;
    int64_t count;
    if (is_real(type)) {
        count = range_count(m, constant_real(first, 0), constant_real(end, 0), constant_real(step, 0));
    } else {
        int64_t from = constant_int(first, 0), by = constant_int(step, 0), room;
        if (by == 0 || by == INT64_MIN || !__builtin_sub_overflow(constant_int(end, 0), from, &room) == 0)
            refuse(m, "steps of %" PRId64, by);
        room = by > 0 ? room : -room;
        count = room > 0 ? (room - 1) / (by > 0 ? by : -by) + 1 : 0;
    }
    define(m, out(m, 0), type, &(Dims){1, {count}}, "i",
           fmt(m, "%s + cast(i, %s) * %s", literal(m, first),
               dtype_info[is_real(type) ? (type == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32) : DTYPE_I64].name,
               literal(m, step)));
}
