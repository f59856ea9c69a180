// Fourier transforms: products with a table of sines and cosines.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

enum { LARGEST_TABLE = 1 << 24 };

/* Elements [in][part][out][part] of the table: part 0 is real, 1 imaginary. */
typedef struct Transform {
    int64_t length;   // N of e^(-2 pi i k n / N)
    int64_t in, out;
    int in_parts, out_parts;
    bool inverse, mirrors;      // `mirrors`: the input is one half of a symmetric spectrum
    const GraphValue *window;   // a constant that the table holds; NULL: none
} Transform;

static double cosine(int64_t turn, int64_t length)
{
    turn %= length;
    if (4 * turn % length == 0)   // a quarter: exact
        return (double[]){1, 0, -1, 0}[4 * turn / length];
    return cos(2 * M_PI * (double)turn / (double)length);
}

static double sine(int64_t turn, int64_t length)
{
    turn %= length;
    if (4 * turn % length == 0)
        return (double[]){0, 1, 0, -1}[4 * turn / length];
    return sin(2 * M_PI * (double)turn / (double)length);
}

/* What part `r` of element n gives to part `c` of k. */
static double coefficient(const Transform *t, int64_t n, int r, int64_t k, int c)
{
    int64_t turn = n * k % t->length;
    double direction = t->inverse ? 1 : -1;
    double value = r == c ? cosine(turn, t->length) : (c ? direction : -direction) * sine(turn, t->length);
    bool twice = t->mirrors && n > 0 && 2 * n != t->length;
    if (t->window)
        value *= constant_real(t->window, n);
    return value * (twice ? 2 : 1) / (t->inverse ? (double)t->length : 1);
}

static const GraphValue *define_table(Map *m, const Transform *t, DType type)
{
    double cells = (double)t->in * t->in_parts * (double)t->out * t->out_parts;
    if (cells > LARGEST_TABLE)
        refuse(m, "a transform of %" PRId64 " elements, whose table would have %g", t->length, cells);
    char *data = NEW_ARRAY(m->arena, char, (int64_t)cells *constant_bytes(type));
    int64_t cell = 0;
    for (int64_t n = 0; n < t->in; n++)
        for (int r = 0; r < t->in_parts; r++)
            for (int64_t k = 0; k < t->out; k++)
                for (int c = 0; c < t->out_parts; c++, cell++) {
                    double value = coefficient(t, n, r, k, c);
                    if (type == DTYPE_F64)
                        ((double *)(void *)data)[cell] = value;
                    else
                        ((float *)(void *)data)[cell] = (float)value;
                }
    GraphValue *table = part(m, out(m, 0), "table");
    give(m, table, type, (Dims){4, {t->in, t->in_parts, t->out, t->out_parts}}, data);
    return table;
}

static DType table_type(const GraphValue *x) { return x->type == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32; }

static int64_t scalar_of(const Map *m, int input)
{
    Ints given = need_ints(m, input);
    if (given.count != 1)
        refuse(m, "'%s' is no scalar", need(m, input)->name);
    return given.items[0];
}

static int parts_of(const Map *m, const GraphValue *x)
{
    int64_t parts = x->shape.rank ? x->shape.size[x->shape.rank - 1] : 0;
    if ((parts != 1 && parts != 2) || !is_real(x->type))
        refuse(m, "a tensor %s without a last dimension of real and imaginary parts",
               shape_text(m->arena, &x->shape));
    return (int)parts;
}

static int transformed_axis(const Map *m, const GraphValue *x)
{
    bool is_input = m->node->version >= 20;
    int64_t given = !is_input ? attribute_int(m, "axis", 1) : maybe(m, 2) ? scalar_of(m, 2) : -2;
    int axis = axis_of(m, given, x->shape.rank);
    if (axis == x->shape.rank - 1)
        refuse(m, "the last dimension holds real and imaginary parts");
    return axis;
}

void map_dft(Map *m)
{
    const GraphValue *x = need(m, 0);
    Transform t = {
        .in_parts = parts_of(m, x), .out_parts = 2, .inverse = attribute_int(m, "inverse", 0) != 0};
    bool onesided = attribute_int(m, "onesided", 0) != 0;
    int axis = transformed_axis(m, x), rank = x->shape.rank;
    int64_t size = x->shape.size[axis];
    t.mirrors = onesided && t.inverse;
    t.length = maybe(m, 1) ? scalar_of(m, 1) : t.mirrors ? 2 * (size - 1) : size;
    if (size < 1 || t.length < 1 || t.length > LARGEST_TABLE || (t.mirrors && t.in_parts != 2))
        refuse(m, "a transform of %" PRId64 " elements of %d parts", t.length, t.in_parts);
    int64_t half = t.length / 2 + 1, taken = t.mirrors ? half : t.length;
    t.in = size < taken ? size : taken;
    t.out = onesided && !t.inverse ? half : t.length;
    t.out_parts = t.mirrors ? 1 : 2;
    comment(m, "axis %d%s%s", axis, t.inverse ? ", inverse" : "", onesided ? ", one side" : "");
    const GraphValue *table = define_table(m, &t, table_type(x));
    Dims shape = x->shape;
    shape.size[axis] = t.out;
    shape.size[rank - 1] = t.out_parts;
    StrBuf places = strbuf_new(m->arena);
    const char *letters = letters_of(rank);
    for (int d = 0; d < rank; d++)
        add_place(&places, d == axis        ? "r"
                           : d < rank - 1   ? fmt(m, "%c", letters[d])
                           : t.in_parts > 1 ? "s"
                                            : "0");
    define(m, out(m, 0), x->type, &shape, letters,
           fmt(m, "sum[r:%" PRId64 "%s](%s * %s)", t.in, t.in_parts > 1 ? ", s:2" : "", at(m, x, places.text),
               at(m, table,
                  fmt(m, "r, %s, %c, %c", t.in_parts > 1 ? "s" : "0", letters[axis], letters[rank - 1]))));
}

/* The frames, multiplied by a window that depends on data. */
static const GraphValue *windowed(Map *m, const GraphValue *x, const GraphValue *window, int64_t frames,
                                  int64_t length, int64_t step)
{
    GraphValue *value = part(m, out(m, 0), "frames");
    Dims shape = {4, {x->shape.size[0], frames, length, x->shape.size[2]}};
    define(m, value, wide(x->type), &shape, "nftc",
           fmt(m, "%s * %s", at(m, x, fmt(m, "n, %" PRId64 "*f + t, c", step)), at(m, window, "t")));
    return value;
}

void map_stft(Map *m)
{
    const GraphValue *x = need(m, 0), *window = maybe(m, 2);
    int64_t step = scalar_of(m, 1);
    Transform t = {.in_parts = parts_of(m, x), .out_parts = 2};
    if (x->shape.rank != 3)
        refuse(m, "a signal %s", shape_text(m->arena, &x->shape));
    t.length = maybe(m, 3) ? scalar_of(m, 3) : window ? shape_count(&window->shape) : x->shape.size[1];
    if (step < 1 || t.length < 1 || t.length > x->shape.size[1] ||
        (window && (window->shape.rank != 1 || window->shape.size[0] != t.length)))
        refuse(m, "frames of %" PRId64 " in steps of %" PRId64 " of a signal %s", t.length, step,
               shape_text(m->arena, &x->shape));
    int64_t frames = (x->shape.size[1] - t.length) / step + 1;
    t.in = t.length;
    t.out = attribute_int(m, "onesided", 1) ? t.length / 2 + 1 : t.length;
    t.window = window && window->data ? window : NULL;
    comment(m, "frames of %" PRId64 " in steps of %" PRId64, t.length, step);
    const GraphValue *table = define_table(m, &t, table_type(x));
    const char *part_place = t.in_parts > 1 ? "s" : "0";
    const char *element =
        window && !window->data
            ? at(m, windowed(m, x, window, frames, t.length, step), fmt(m, "n, f, r, %s", part_place))
            : at(m, x,
                 fmt(m, "n, %s%c + r, %s", step > 1 ? fmt(m, "%" PRId64 "*", step) : "", 'f', part_place));
    Dims shape = {4, {x->shape.size[0], frames, t.out, 2}};
    define(m, out(m, 0), x->type, &shape, "nfkc",
           fmt(m, "sum[r:%" PRId64 "%s](%s * %s)", t.in, t.in_parts > 1 ? ", s:2" : "", element,
               at(m, table, fmt(m, "r, %s, k, c", part_place))));
}
