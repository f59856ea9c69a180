// Windows whose elements are added where they lie: transposed convolutions, columns as an image.
//
// An element at `o` gets something from the taps t for which o + pad - dilation*t is a multiple of the
// stride. Those are the same for each `o` of one phase, o modulo the stride: a phase is a plain window of
// stride 1. A test of every tap would read stride times as much.
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "front/onnx/map.h"
#include "front/onnx/operators.h"

enum { MOST_PHASES = 64 };   // each is an argument of the kernel that interleaves them

/* What one phase, or all of them, is made of. */
typedef struct Phase {
    const char *axes;        // "r:2, s:2"; "": one tap
    const char *taps;        // "2*r + 1, 2*s": of the window
    const char *places;      // "h - r, v - s + 1": of the tensor
    const char *condition;   // of terms that are there; "": all are
    bool empty;              // no tap at all
} Phase;

typedef const char *PhaseTerm(const Map *m, const void *context, const Phase *phase);

static char tap_letter(const Window *w, int d) { return "qrs"[d + 3 - w->rank]; }

static void add_axis(StrBuf *axes, char letter, int64_t count)
{
    if (count > 1)
        strbuf_printf(axes, "%s%c:%" PRId64, axes->length ? ", " : "", letter, count);
}

/* `h + 1 - 2*r`, without what is 0 */
static const char *place_text(const Map *m, char letter, int64_t offset, int64_t factor, char tap,
                              bool one_tap)
{
    const char *place = affine(m, 1, letter, offset);
    if (one_tap)
        return place;
    return factor == 1 ? fmt(m, "%s - %c", place, tap) : fmt(m, "%s - %" PRId64 "*%c", place, factor, tap);
}

/* The tap that is the first of a phase; -1: it has none. */
static int64_t first_tap(const Window *w, int d, int64_t phase)
{
    for (int64_t tap = 0; tap < w->kernel[d] && tap < w->stride[d]; tap++)
        if ((phase + w->before[d] - tap * w->dilation[d]) % w->stride[d] == 0)
            return tap;
    return -1;
}

static Phase phase_of(const Map *m, const Window *w, const int64_t phases[3])
{
    StrBuf axes = strbuf_new(m->arena), taps = strbuf_new(m->arena), places = strbuf_new(m->arena);
    for (int d = 0; d < w->rank; d++) {
        int64_t common = greatest_common_divisor(w->stride[d], w->dilation[d]), step = w->stride[d] / common;
        int64_t first = first_tap(w, d, phases[d]);
        if (first < 0)
            return (Phase){.empty = true};
        int64_t count = (w->kernel[d] - 1 - first) / step + 1;
        int64_t offset = (phases[d] + w->before[d] - first * w->dilation[d]) / w->stride[d];
        char tap = tap_letter(w, d);
        add_axis(&axes, tap, count);
        add_place(&taps, count > 1 ? affine(m, step, tap, first) : fmt(m, "%" PRId64, first));
        add_place(&places,
                  place_text(m, window_letters(w)[d], offset, w->dilation[d] / common, tap, count == 1));
    }
    return (Phase){axes.text, taps.text, places.text, "", false};
}

/* The first tap of each element, as a remainder. */
static const char *first_tap_text(const Map *m, const Window *w, int d, int64_t common)
{
    int64_t step = w->stride[d] / common, inverse = 1;
    while (inverse < step && inverse * (w->dilation[d] / common) % step != 1)
        inverse++;
    const char *place = affine(m, 1, window_letters(w)[d], w->before[d]);
    place = common > 1 ? fmt(m, "(%s)/%" PRId64, place, common) : fmt(m, "(%s)", place);
    return step == 1      ? "0"
           : inverse == 1 ? fmt(m, "%s%%%" PRId64, place, step)
                          : fmt(m, "(%" PRId64 "*(%s))%%%" PRId64, inverse, place, step);
}

/* All phases at once: taps are a remainder of the place. */
static Phase all_phases(const Map *m, const Window *w)
{
    StrBuf axes = strbuf_new(m->arena), taps = strbuf_new(m->arena), places = strbuf_new(m->arena),
           condition = strbuf_new(m->arena);
    for (int d = 0; d < w->rank; d++) {
        int64_t common = greatest_common_divisor(w->stride[d], w->dilation[d]), step = w->stride[d] / common;
        int64_t count = ceil_div(w->kernel[d], step),
                shift = ceil_div((step - 1) * w->dilation[d], w->stride[d]);
        const char *first = first_tap_text(m, w, d, common);
        const char *place = affine(m, 1, window_letters(w)[d], w->before[d]);
        char tap = tap_letter(w, d);
        add_axis(&axes, tap, count);
        const char *taken = count > 1 ? fmt(m, "%s + %" PRId64 "*%c", first, step, tap) : first;
        add_place(&taps, taken);
        add_place(&places, fmt(m, "(%s + %" PRId64 " - %" PRId64 "*(%s))/%" PRId64 " - %" PRId64 "%s", place,
                               shift * w->stride[d], w->dilation[d], first, w->stride[d], shift,
                               count > 1 ? fmt(m, " - %" PRId64 "*%c", w->dilation[d] / common, tap) : ""));
        if (common > 1)
            strbuf_printf(&condition, "%s(%s) %% %" PRId64 " == 0", condition.length ? " && " : "", place,
                          common);
        if (w->kernel[d] % step)
            strbuf_printf(&condition, "%s%s < %" PRId64, condition.length ? " && " : "", taken, w->kernel[d]);
    }
    return (Phase){axes.text, taps.text, places.text, condition.text, false};
}

/* Element of the result, whose phases alternate from dimension `d` on. */
static const char *interleaved(Map *m, const Window *w, const Dims *shape, const char *axes, PhaseTerm *term,
                               const void *context, int64_t phases[3], int d, DType type)
{
    if (d == w->rank) {
        Dims part_shape = *shape;
        StrBuf places = strbuf_new(m->arena);
        for (int i = 0; i < shape->rank; i++) {
            int64_t stride = i < 2 ? 1 : w->stride[i - 2];
            part_shape.size[i] = ceil_div(shape->size[i], stride);
            add_place(&places, stride == 1 ? fmt(m, "%c", axes[i]) : fmt(m, "%c/%" PRId64, axes[i], stride));
        }
        Phase phase = phase_of(m, w, phases);
        GraphValue *value = part(m, out(m, 0), "phase");
        define(m, value, type, &part_shape, axes, term(m, context, &phase));
        return at(m, value, places.text);
    }
    int64_t *ends = NEW_ARRAY(m->arena, int64_t, w->stride[d]);
    const char **elements = NEW_ARRAY(m->arena, const char *, w->stride[d]);
    for (phases[d] = 0; phases[d] < w->stride[d]; phases[d]++) {
        ends[phases[d]] = phases[d] + 1;
        elements[phases[d]] = interleaved(m, w, shape, axes, term, context, phases, d + 1, type);
    }
    return select_range(m, fmt(m, "%c%%%" PRId64, axes[d + 2], w->stride[d]), ends, elements,
                        (int)w->stride[d]);
}

/* `term` makes the sum of one phase. */
static void define_phases(Map *m, const Window *w, const Dims *shape, const char *axes, DType type,
                          PhaseTerm *term, const void *context)
{
    int64_t count = 1, phases[3] = {0};
    for (int d = 0; d < w->rank && count <= MOST_PHASES; d++)
        count *= w->stride[d];
    if (count == 1 || count > MOST_PHASES) {
        Phase phase = count == 1 ? phase_of(m, w, phases) : all_phases(m, w);
        define(m, out(m, 0), type, shape, axes, term(m, context, &phase));
        return;
    }
    const char *all = interleaved(m, w, shape, axes, term, context, phases, 0, type);
    define_moved(m, out(m, 0), type, shape, axes, all);
}

static const char *phase_sum(const Map *m, const Phase *phase, const char *more, const char *element)
{
    if (*phase->condition)
        element = fmt(m, "select(%s, %s, 0)", phase->condition, element);
    const char *comma = *more && *phase->axes ? ", " : "";
    return *more || *phase->axes ? fmt(m, "sum[%s%s%s](%s)", more, comma, phase->axes, element) : element;
}

// ---- ConvTranspose ----

typedef struct Transposed {
    const GraphValue *x, *weights, *bias;
    int64_t groups, features;
} Transposed;

static const char *conv_term(const Map *m, const void *context, const Phase *phase)
{
    const Transposed *t = context;
    int64_t inputs = t->x->shape.size[1], taken = inputs / t->groups, each = t->features / t->groups;
    if (phase->empty)
        return t->bias ? at(m, t->bias, "f") : "0";
    const char *channel = group_channel(m, t->groups, t->features, inputs);
    const char *feature = each == 1 ? "0" : t->groups == 1 ? "f" : fmt(m, "f%%%" PRId64, each);
    const char *tap = fmt(m, "%s, %s, %s", channel, feature, phase->taps);
    const char *weight = *phase->condition ? at_padded(m, t->weights, tap, "0") : at(m, t->weights, tap);
    const char *product =
        fmt(m, "%s * %s", at_padded(m, t->x, fmt(m, "n, %s, %s", channel, phase->places), "0"), weight);
    const char *sum = phase_sum(m, phase, taken == 1 ? "" : fmt(m, "k:%" PRId64, taken), product);
    return t->bias ? fmt(m, "%s + %s", sum, at(m, t->bias, "f")) : sum;
}

static void read_sizes(const Map *m, const char *name, int64_t least, int rank, int64_t *items)
{
    Ints given = attribute_ints(m, name);
    if (given.count && given.count != rank)
        refuse(m, "'%s' has %d integers where %d are needed", name, given.count, rank);
    for (int d = 0; d < given.count; d++) {
        if (given.items[d] < least || given.items[d] > 1 << 24)
            refuse(m, "'%s' has %" PRId64, name, given.items[d]);
        items[d] = given.items[d];
    }
}

/* The pads that make the result as large as it is wanted. */
static void pad_to_result(Window *w, int d, int64_t full, bool upper)
{
    int64_t total = larger(full - w->result[d], 0);
    w->before[d] = upper ? total / 2 : total - total / 2;
}

static Window transposed_window(const Map *m, const Transposed *t)
{
    Window w = {.rank = t->x->shape.rank - 2, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    if (w.rank < 1 || w.rank > 3)
        refuse(m, "'%s' has %d dimensions; 3 to 5 can be taken", t->x->name, t->x->shape.rank);
    int64_t more[3] = {0}, pads[6] = {0}, wanted[3] = {0};
    memcpy(w.kernel, t->weights->shape.size + 2, (size_t)w.rank * sizeof *w.kernel);
    read_sizes(m, "strides", 1, w.rank, w.stride);
    read_sizes(m, "dilations", 1, w.rank, w.dilation);
    read_sizes(m, "output_padding", 0, w.rank, more);
    read_sizes(m, "pads", 0, 2 * w.rank, pads);
    Ints shape = attribute_ints(m, "output_shape");
    if (shape.count == w.rank + 2)   // with batch and channels, as some models have it
        memcpy(wanted, shape.items + 2, (size_t)w.rank * sizeof *wanted);
    else
        read_sizes(m, "output_shape", 1, w.rank, wanted);
    const char *automatic = attribute_text(m, "auto_pad", "NOTSET");
    bool upper = strcmp(automatic, "SAME_UPPER") == 0, same = upper || strcmp(automatic, "SAME_LOWER") == 0;
    if (!same && strcmp(automatic, "NOTSET") != 0 && strcmp(automatic, "VALID") != 0)
        refuse(m, "auto_pad '%s'", automatic);
    for (int d = 0; d < w.rank; d++) {
        w.in[d] = t->x->shape.size[d + 2];
        int64_t full = w.stride[d] * (w.in[d] - 1) + more[d] + (w.kernel[d] - 1) * w.dilation[d] + 1;
        w.before[d] = pads[d];
        w.result[d] = shape.count ? wanted[d]
                      : same      ? w.in[d] * w.stride[d]
                                  : full - pads[d] - pads[w.rank + d];
        if (same && !shape.count && full < w.result[d])
            refuse(m, "auto_pad '%s' of windows that are smaller than their strides", automatic);
        if (shape.count || same)
            pad_to_result(&w, d, full, upper);
        if (w.result[d] < 1)
            refuse(m, "a result of %" PRId64 " elements", w.result[d]);
    }
    return w;
}

void map_conv_transpose(Map *m)
{
    Transposed t = {need(m, 0), need(m, 1), maybe(m, 2), attribute_int(m, "group", 1), 0};
    const Dims *x = &t.x->shape, *w = &t.weights->shape;
    if (x->rank != w->rank || x->rank < 3 || x->size[1] != w->size[0] || t.groups < 1 ||
        x->size[1] % t.groups)
        refuse(m, "the shapes %s and %s in %" PRId64 " groups are those of no transposed convolution",
               shape_text(m->arena, x), shape_text(m->arena, w), t.groups);
    t.features = w->size[1] * t.groups;
    if (t.bias && shape_count(&t.bias->shape) != t.features)
        refuse(m, "a bias %s for %" PRId64 " channels", shape_text(m->arena, &t.bias->shape), t.features);
    Window window = transposed_window(m, &t);
    window_comment(m, &window);
    if (t.groups > 1)
        comment(m, "%" PRId64 " groups", t.groups);
    Dims shape = window_result(&window, x->size[0], t.features);
    define_phases(m, &window, &shape, fmt(m, "nf%s", window_letters(&window)), t.x->type, conv_term, &t);
}

// ---- Col2Im ----

static const char *column_term(const Map *m, const void *context, const Phase *phase)
{
    const GraphValue *columns = context;
    if (phase->empty)
        return zero_of(columns->type);
    return phase_sum(m, phase, "",
                     at_padded(m, columns, fmt(m, "n, f, %s, %s", phase->taps, phase->places), "0"));
}

void map_col2im(Map *m)
{
    const GraphValue *x = need(m, 0);
    Ints image = need_ints(m, 1), block = need_ints(m, 2);
    Window w = {.rank = image.count, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    if (w.rank < 1 || w.rank > 3 || block.count != w.rank || x->shape.rank != 3)
        refuse(m, "images of %d dimensions of columns %s", w.rank, shape_text(m->arena, &x->shape));
    int64_t pads[6] = {0}, taps = 1, count = 1;
    read_sizes(m, "strides", 1, w.rank, w.stride);
    read_sizes(m, "dilations", 1, w.rank, w.dilation);
    read_sizes(m, "pads", 0, 2 * w.rank, pads);
    Dims seen = {2, {x->shape.size[0], 0}};
    for (int d = 0; d < w.rank; d++) {
        w.before[d] = pads[d];
        w.result[d] = image.items[d];
        w.kernel[d] = block.items[d];
        if (image.items[d] < 1 || image.items[d] > 1 << 24 || block.items[d] < 1 || block.items[d] > 1 << 24)
            refuse(m, "blocks of %" PRId64 " in %" PRId64 " elements", block.items[d], image.items[d]);
        int64_t room = w.result[d] + pads[d] + pads[w.rank + d] - w.dilation[d] * (w.kernel[d] - 1) - 1;
        w.in[d] = room < 0 ? 0 : room / w.stride[d] + 1;
        taps = smaller(taps * w.kernel[d], 1 << 24);
        count = smaller(count * w.in[d], (int64_t)1 << 32);
        seen.size[seen.rank++] = w.kernel[d];
    }
    for (int d = 0; d < w.rank; d++)
        seen.size[seen.rank++] = w.in[d];
    seen.size[1] = x->shape.size[1] / taps;
    if (count != x->shape.size[2] || seen.size[1] * taps != x->shape.size[1])
        refuse(m, "columns %s are not those of %" PRId64 " taps at %" PRId64 " places",
               shape_text(m->arena, &x->shape), taps, count);
    window_comment(m, &w);
    GraphValue *columns = part(m, out(m, 0), "columns");
    view_as(m, columns, x, &seen);
    Dims shape = window_result(&w, x->shape.size[0], seen.size[1]);
    define_phases(m, &w, &shape, fmt(m, "nf%s", window_letters(&w)), x->type, column_term, columns);
}
