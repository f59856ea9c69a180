// Integers that stand for real numbers: (integer - zero point) * scale.
#include <inttypes.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"
#include "front/onnx/tensor.h"

// ---- scales and zero points ----

/* A scale or zero point at a point "ijkl…" of `shape`: one for all, one for each of an axis, or since version
   21 one for each block of the axis. */
static const char *at_blocks(const Map *m, const GraphValue *value, const Dims *shape)
{
    if (shape_count(&value->shape) == 1)
        return at_only(m, value);
    int64_t block = attribute_int(m, "block_size", 0);
    int axis = axis_of(m, attribute_int(m, "axis", 1), shape->rank);
    if (!block)
        return at_channel(m, value, shape, axis);
    bool fits = value->shape.rank == shape->rank && block > 0;
    for (int d = 0; d < shape->rank && fits; d++)
        fits = value->shape.size[d] == (d == axis ? (shape->size[d] + block - 1) / block : shape->size[d]);
    if (!fits)
        refuse(m, "'%s' has no element for each block of %" PRId64, value->name, block);
    return at_place(m, value, axis, fmt(m, "%c/%" PRId64, letters_of(MAX_RANK)[axis], block));
}

/* `real`, which is rounded, plus its zero point, in a type of 8 bits. */
static const char *saturated(const Map *m, DType type, const char *real, const char *zero)
{
    if (type != DTYPE_I8 && type != DTYPE_U8)
        refuse(m, "to %s; only i8 and u8 can be quantised to", dtype_info[type].name);
    const char *sum = zero ? fmt(m, "round(%s) + %s", real, zero) : fmt(m, "round(%s)", real);
    return fmt(m, "cast(min(max(%s, %d), %d), %s)", sum, type == DTYPE_I8 ? -128 : 0,
               type == DTYPE_I8 ? 127 : 255, dtype_info[type].name);
}

/* The type that an attribute names; `otherwise` where it does not. */
static DType type_of_attribute(const Map *m, DType otherwise)
{
    DType type;
    int64_t given = attribute_int(m, "output_dtype", 0);
    const char *problem = given ? tensor_type((int)given, &type) : NULL;
    if (problem)
        refuse(m, "to %s", problem);
    return given ? type : otherwise;
}

void map_quantize(Map *m)
{
    const GraphValue *x = need(m, 0), *scale = need(m, 1), *zero = maybe(m, 2);
    DType type = zero ? zero->type : type_of_attribute(m, DTYPE_U8);
    const char *real = fmt(m, "%s / %s", at_broadcast(m, x, &x->shape), at_blocks(m, scale, &x->shape));
    define(m, out(m, 0), type, &x->shape, letters_of(x->shape.rank),
           saturated(m, type, real, zero ? at_blocks(m, zero, &x->shape) : NULL));
}

void map_dequantize(Map *m)
{
    const GraphValue *x = need(m, 0), *scale = need(m, 1), *zero = maybe(m, 2);
    const char *element = at_broadcast(m, x, &x->shape);
    if (is_real(x->type) || x->type == DTYPE_B1)
        refuse(m, "of %s, and integers are expected", dtype_info[x->type].name);
    if (zero)
        element = fmt(m, "(%s - %s)", element, at_blocks(m, zero, &x->shape));
    define(m, out(m, 0), type_of_attribute(m, scale->type), &x->shape, letters_of(x->shape.rank),
           fmt(m, "%s * %s", element, at_blocks(m, scale, &x->shape)));
}

/* An output where it is wanted, else a part. */
static GraphValue *output_or_part(Map *m, const GraphValue *x, int output, const char *suffix)
{
    return out(m, output) ? out(m, output) : part(m, x, suffix);
}

/* The scale makes the range of the data, with 0 in it, that of u8. */
void map_dynamic_quantize(Map *m)
{
    const GraphValue *x = need(m, 0);
    bool flags[MAX_RANK];
    for (int d = 0; d < MAX_RANK; d++)
        flags[d] = true;
    GraphValue *low = part(m, x, "low"), *high = part(m, x, "high"),
               *scale = output_or_part(m, x, 1, "scale"), *zero = output_or_part(m, x, 2, "zero");
    Dims scalar = {0};
    reduce(m, low, x->type, x, flags, false, "min(min[$r]($0), 0)");
    reduce(m, high, x->type, x, flags, false, "max(max[$r]($0), 0)");
    define(m, scale, DTYPE_F32, &scalar, "", fmt(m, "(%s - %s) / 255", at(m, high, ""), at(m, low, "")));
    const char *zero_real = fmt(m, "min(max(-%s / %s, 0), 255)", at(m, low, ""), at(m, scale, ""));
    define(m, zero, DTYPE_U8, &scalar, "", fmt(m, "cast(round(%s), u8)", zero_real));
    if (out(m, 0))
        define(m, out(m, 0), DTYPE_U8, &x->shape, letters_of(x->shape.rank),
               saturated(m, DTYPE_U8, fmt(m, "%s / %s", at_broadcast(m, x, &x->shape), at(m, scale, "")),
                         at(m, zero, "")));
}

// ---- products ----

/* A value of a whole matrix, of each of its rows or columns (`axis` from the end), or of the shape of
   such. */
static const char *at_lines(const Map *m, const GraphValue *value, const Dims *shape, int axis)
{
    if (shape_count(&value->shape) == 1)
        return at_only(m, value);
    if (value->shape.rank == 1 && axis >= 0 && axis < shape->rank)
        return at_channel(m, value, shape, axis);
    if (value->shape.rank == 1 || !broadcasts_to(m, value, shape))
        refuse(m, "'%s' %s does not fit %s", value->name, shape_text(m->arena, &value->shape),
               shape_text(m->arena, shape));
    return at_broadcast(m, value, shape);
}

/* The integers less their zero point, as i32. */
static GraphValue *define_shifted(Map *m, const GraphValue *named, const GraphValue *x,
                                  const GraphValue *zero, int axis)
{
    if (x->type != DTYPE_I8 && x->type != DTYPE_U8)
        refuse(m, "'%s' is of type %s, and i8 or u8 are expected", x->name, dtype_info[x->type].name);
    GraphValue *shifted = part(m, named, x->own);
    const char *element = at_broadcast(m, x, &x->shape);
    if (zero)
        element = fmt(m, "%s - %s", element, at_lines(m, zero, &x->shape, axis));
    define(m, shifted, DTYPE_I32, &x->shape, letters_of(x->shape.rank), element);
    return shifted;
}

/* `output`, of i32: what `mapping` makes of the two shifted operands and perhaps a third one. */
static void define_product(Map *m, Mapping *mapping, GraphValue *output, const GraphValue *const operands[3])
{
    Map inner = map_on(m, output, operands, operands[2] ? 3 : 2);
    mapping(&inner);
    m->comment = inner.comment;
}

void map_matmul_integer(Map *m)
{
    const GraphValue *a = need(m, 0), *b = need(m, 1);
    const GraphValue *operands[] = {define_shifted(m, out(m, 0), a, maybe(m, 2), a->shape.rank - 2),
                                    define_shifted(m, out(m, 0), b, maybe(m, 3), b->shape.rank - 1), NULL};
    define_product(m, map_matmul, out(m, 0), operands);
}

void map_conv_integer(Map *m)
{
    const GraphValue *operands[] = {define_shifted(m, out(m, 0), need(m, 0), maybe(m, 2), -1),
                                    define_shifted(m, out(m, 0), need(m, 1), maybe(m, 3), 0), NULL};
    define_product(m, map_conv, out(m, 0), operands);
}

/* Output 0 of the integer `sum`. Input 1 is the first operand's scale, along axis `rows`, `second_scale` the
   second's, along axis `columns`; 6 and 7 are the output's scale and zero point. */
static void define_requantized(Map *m, const GraphValue *sum, int second_scale, int rows, int columns)
{
    const char *scale = fmt(m, "%s * %s / %s", at_lines(m, need(m, 1), &sum->shape, rows),
                            at_lines(m, need(m, second_scale), &sum->shape, columns),
                            at_lines(m, need(m, 6), &sum->shape, rows));
    const char *real = fmt(m, "%s * (%s)", at_broadcast(m, sum, &sum->shape), scale);
    define(m, out(m, 0), need(m, 7)->type, &sum->shape, letters_of(sum->shape.rank),
           saturated(m, need(m, 7)->type, real, at_lines(m, need(m, 7), &sum->shape, rows)));
}

void map_qlinear_matmul(Map *m)
{
    const GraphValue *a = need(m, 0), *b = need(m, 3);
    GraphValue *sum = part(m, out(m, 0), "sum");
    const GraphValue *operands[] = {define_shifted(m, out(m, 0), a, need(m, 2), a->shape.rank - 2),
                                    define_shifted(m, out(m, 0), b, need(m, 5), b->shape.rank - 1), NULL};
    define_product(m, map_matmul, sum, operands);
    define_requantized(m, sum, 4, sum->shape.rank - 2, sum->shape.rank - 1);
}

void map_qlinear_conv(Map *m)
{
    GraphValue *sum = part(m, out(m, 0), "sum");
    const GraphValue *operands[] = {define_shifted(m, out(m, 0), need(m, 0), need(m, 2), -1),
                                    define_shifted(m, out(m, 0), need(m, 3), need(m, 5), 0), maybe(m, 8)};
    define_product(m, map_conv, sum, operands);
    define_requantized(m, sum, 4, -1, 1);
}
