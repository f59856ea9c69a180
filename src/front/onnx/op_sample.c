// Elements at places that are computed.
#include <inttypes.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

// ---- AffineGrid ----

/* The coordinate of point `letter` of `size` between -1 and 1. */
static const char *grid_coordinate(const Map *m, char letter, int64_t size, bool corners, DType type)
{
    double step = 2.0 / (double)(corners ? size - 1 : size), first = corners ? -1 : step / 2 - 1;
    return fmt(m, "(cast(%c, %s) * %s + %s)", letter, dtype_info[type].name,
               literal_real(m->arena, type, step), literal_real(m->arena, type, first));
}

void map_affine_grid(Map *m)
{
    const GraphValue *theta = need(m, 0);
    Ints sizes = need_ints(m, 1);
    bool corners = attribute_int(m, "align_corners", 0) != 0;
    int rank = sizes.count - 2;
    if (rank < 2 || rank > 3 || theta->shape.rank != 3 || theta->shape.size[1] != rank ||
        theta->shape.size[2] != rank + 1 || theta->shape.size[0] != sizes.items[0])
        refuse(m, "a transformation %s in %d dimensions", shape_text(m->arena, &theta->shape), rank);
    Dims shape = {.rank = rank + 2, .size = {sizes.items[0]}};
    const char *letters = rank == 2 ? "nhvc" : "ndhvc";
    StrBuf sum = strbuf_new(m->arena);
    for (int d = rank - 1; d >= 0; d--) {
        int64_t size = sizes.items[d + 2];
        if (size < 1 + corners)
            refuse(m, "a grid of %" PRId64 " points", size);
        shape.size[d + 1] = size;
        strbuf_printf(&sum, "%s * %s + ", at(m, theta, fmt(m, "n, c, %d", rank - 1 - d)),
                      grid_coordinate(m, letters[d + 1], size, corners, wide(theta->type)));
    }
    shape.size[rank + 1] = rank;
    strbuf_puts(&sum, at(m, theta, fmt(m, "n, c, %d", rank)));
    define(m, out(m, 0), theta->type, &shape, letters, sum.text);
}

// ---- GridSample ----

typedef enum Neighbour { BESIDE_ZEROS, BESIDE_BORDER, BESIDE_REFLECTION } Neighbour;

typedef struct GridSampling {
    const GraphValue *x, *grid;
    int rank, taps;
    bool corners, cubic;
    Neighbour beside;
    const char *letters;   // of the grid's points: "nhv"
    Dims points;
} GridSampling;

/* `x` reflected at the borders of `size` elements until it lies between them. */
static const char *reflected(const Map *m, const GridSampling *s, const char *x, int64_t size)
{
    const char *low = s->corners ? "0" : "(-0.5)",
               *high = s->corners ? fmt(m, "%" PRId64, size - 1) : fmt(m, "%" PRId64 ".5", size - 1);
    const char *range = fmt(m, "%" PRId64, s->corners ? size - 1 : size);
    if (s->corners && size == 1)
        return fmt(m, "(%s * 0)", x);
    const char *turns = fmt(m, "floor(abs(%s - %s) / %s)", x, low, range);
    const char *rest = fmt(m, "(abs(%s - %s) - %s * %s)", x, low, turns, range);
    return fmt(m, "select(%s < %s || %s > %s, select(%s == 2 * floor(%s / 2), %s + %s, %s - %s), %s)", x, low,
               x, high, turns, turns, low, rest, high, rest, x);
}

/* Where the points lie along dimension `d` of the tensor, which the grid has in reverse. */
static const char *sample_places(Map *m, const GridSampling *s, int d, DType type)
{
    int64_t size = s->x->shape.size[d + 2];
    const char *points = letters_list(m, s->letters);
    const char *given = at(m, s->grid, fmt(m, "%s, %d", points, s->rank - 1 - d));
    GraphValue *plain = part(m, out(m, 0), fmt(m, "given%d", d)),
               *place = part(m, out(m, 0), fmt(m, "place%d", d));
    define(m, plain, type, &s->points, s->letters,
           s->corners ? fmt(m, "(%s + 1) / 2 * %" PRId64, given, size - 1)
                      : fmt(m, "((%s + 1) * %" PRId64 " - 1) / 2", given, size));
    const char *x = at(m, plain, points);
    x = s->taps == 1 ? fmt(m, "round(%s)", x) : x;
    if (s->beside == BESIDE_REFLECTION)
        x = reflected(m, s, x, size);
    else if (s->beside == BESIDE_BORDER)
        x = fmt(m, "select(%s < %s, 0, select(%s > %" PRId64 "%s, %" PRId64 ", %s))", x,
                s->corners ? "0" : "(-0.5)", x, size - 1, s->corners ? "" : ".5", size - 1, x);
    define(m, place, type, &s->points, s->letters, x);
    return at(m, place, points);
}

/* For each point and tap: the element's place; negative ones and those behind the end are beside the
   tensor. */
static const char *tap_places(Map *m, const GridSampling *s, int d, const char *place, char tap)
{
    int64_t size = s->x->shape.size[d + 2];
    GraphValue *taps = part(m, out(m, 0), fmt(m, "at%d", d));
    Dims shape = s->points;
    shape.size[shape.rank++] = s->taps;
    const char *letters = fmt(m, "%s%c", s->letters, tap);
    const char *first = s->taps == 1 ? fmt(m, "cast(%s, i64)", place) : fmt(m, "cast(floor(%s), i64)", place);
    const char *at_tap = s->taps == 1 ? first : fmt(m, "(%s + %c - %d)", first, tap, s->taps / 2 - 1);
    if (s->beside == BESIDE_REFLECTION && s->corners)
        at_tap = fmt(m, "select(%s < 0, -%s, select(%s >= %" PRId64 ", %" PRId64 " - %s, %s))", at_tap,
                     at_tap, at_tap, size, 2 * (size - 1), at_tap, at_tap);
    else if (s->beside == BESIDE_REFLECTION)
        at_tap = fmt(m, "select(%s < 0, -1 - %s, select(%s >= %" PRId64 ", %" PRId64 " - %s, %s))", at_tap,
                     at_tap, at_tap, size, 2 * size - 1, at_tap, at_tap);
    define(m, taps, DTYPE_I64, &shape, letters, at_tap);
    return at(m, taps, fmt(m, "%s, %c", letters_list(m, s->letters), s->taps == 1 ? '0' : tap));
}

/* For each point and tap: how much of the element is taken. */
static const char *tap_weights(Map *m, const GridSampling *s, int d, const char *place, char tap, DType type)
{
    GraphValue *weights = part(m, out(m, 0), fmt(m, "weight%d", d));
    Dims shape = s->points;
    shape.size[shape.rank++] = s->taps;
    const char *letters = fmt(m, "%s%c", s->letters, tap), *text = "1";
    const char *rest = fmt(m, "(%s - floor(%s))", place, place);
    if (s->cubic) {
        const char *x = fmt(m, "abs(%s - %c + 1)", rest, tap);
        text = fmt(
            m, "select(%s <= 1, (1.25 * %s - 2.25) * %s * %s + 1, ((-0.75 * %s + 3.75) * %s - 6) * %s + 3)",
            x, x, x, x, x, x, x);
    } else if (s->taps == 2) {
        text = fmt(m, "select(%c == 0, 1 - %s, %s)", tap, rest, rest);
    }
    define(m, weights, type, &shape, letters, text);
    return at(m, weights, letters_list(m, letters));
}

static GridSampling read_sample(const Map *m)
{
    GridSampling s = {
        .x = need(m, 0), .grid = need(m, 1), .corners = attribute_int(m, "align_corners", 0) != 0};
    const char *mode = attribute_text(m, "mode", "linear"),
               *beside = attribute_text(m, "padding_mode", "zeros");
    s.rank = s.x->shape.rank - 2;
    bool nearest = strcmp(mode, "nearest") == 0;
    s.cubic = strcmp(mode, "cubic") == 0 || strcmp(mode, "bicubic") == 0;
    s.taps = nearest ? 1 : s.cubic ? 4 : 2;
    if (s.taps == 2 && strcmp(mode, "linear") != 0 && strcmp(mode, "bilinear") != 0)
        refuse(m, "mode '%s'", mode);
    s.beside = strcmp(beside, "border") == 0       ? BESIDE_BORDER
               : strcmp(beside, "reflection") == 0 ? BESIDE_REFLECTION
                                                   : BESIDE_ZEROS;
    if (s.beside == BESIDE_ZEROS && strcmp(beside, "zeros") != 0)
        refuse(m, "padding_mode '%s'", beside);
    const Dims *grid = &s.grid->shape;
    if (s.rank < 1 || s.rank > 3 || grid->rank != s.rank + 2 || grid->size[0] != s.x->shape.size[0] ||
        grid->size[s.rank + 1] != s.rank || !is_real(s.grid->type))
        refuse(m, "a grid %s for a tensor %s", shape_text(m->arena, grid), shape_text(m->arena, &s.x->shape));
    if (s.cubic && s.beside == BESIDE_BORDER)
        refuse(m, "mode 'cubic' with padding_mode 'border', which ONNX and its runtimes take differently");
    for (int d = 0; d < s.rank; d++)
        if (s.cubic && s.beside == BESIDE_REFLECTION && s.x->shape.size[d + 2] < 3)
            refuse(m, "reflections of less than 3 elements");
    s.letters = (const char *[]){"nv", "nhv", "ndhv"}[s.rank - 1];
    s.points = *grid;
    s.points.rank--;
    return s;
}

void map_grid_sample(Map *m)
{
    GridSampling s = read_sample(m);
    if (s.taps > 1 && !is_real(s.x->type))
        refuse(m, "integers, of which an interpolation makes fractions");
    DType type = wide(s.grid->type);
    StrBuf weights = strbuf_new(m->arena), axes = strbuf_new(m->arena), places = strbuf_new(m->arena);
    for (int d = 0; d < s.rank; d++) {
        char tap = "qrs"[d + 3 - s.rank];
        const char *place = sample_places(m, &s, d, type);
        add_place(&places, tap_places(m, &s, d, place, tap));
        if (s.taps == 1)
            continue;
        strbuf_printf(&weights, "%s * ", tap_weights(m, &s, d, place, tap, type));
        strbuf_printf(&axes, "%s%c:%d", d ? ", " : "", tap, s.taps);
    }
    Dims shape = {.rank = s.rank + 2, .size = {s.x->shape.size[0], s.x->shape.size[1]}};
    memcpy(shape.size + 2, s.points.size + 1, (size_t)s.rank * sizeof *shape.size);
    const char *inside = fmt(m, "n, c, %s", places.text);
    const char *element = s.beside == BESIDE_ZEROS ? at_padded(m, s.x, inside, "0") : at(m, s.x, inside);
    const char *letters = fmt(m, "nc%s", s.letters + 1);
    if (s.taps == 1)
        define_moved(m, out(m, 0), s.x->type, &shape, letters, element);
    else
        define(m, out(m, 0), s.x->type, &shape, letters,
               fmt(m, "sum[%s](%s%s)", axes.text, weights.text, element));
}
