// Windows that slide: convolutions and pooling.
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "front/onnx/map.h"

enum { LARGEST = 1 << 30 };   // of a stride, a dilation, a pad: no sum of some overflows

static void read_list(const Map *m, const char *name, int64_t least, int rank, int64_t *items)
{
    Ints given = attribute_ints(m, name);
    if (given.count && given.count != rank)
        refuse(m, "'%s' has %d integers where %d are needed", name, given.count, rank);
    for (int d = 0; d < given.count; d++) {
        if (given.items[d] < least || given.items[d] > LARGEST)
            refuse(m, "'%s' has %" PRId64, name, given.items[d]);
        items[d] = given.items[d];
    }
}

static int64_t reach(const Window *w, int d) { return w->dilation[d] * (w->kernel[d] - 1) + 1; }

/* As many results as there are strides in the input. */
static void pad_to_same(Window *w, bool more_before)
{
    for (int d = 0; d < w->rank; d++) {
        w->result[d] = ceil_div(w->in[d], w->stride[d]);
        int64_t total = larger((w->result[d] - 1) * w->stride[d] + reach(w, d) - w->in[d], 0);
        w->before[d] = more_before ? total - total / 2 : total / 2;
        w->after[d] = total - w->before[d];
    }
}

/* The last window begins inside the tensor or the pad before it. */
static void count_results(const Map *m, Window *w)
{
    for (int d = 0; d < w->rank; d++) {
        int64_t room = w->in[d] + w->before[d] + w->after[d] - reach(w, d);
        if (room < 0)
            refuse(m,
                   "the window reaches over %" PRId64 " elements, and with its pads the tensor has %" PRId64,
                   reach(w, d), room + reach(w, d));
        w->result[d] = (w->ceils ? ceil_div(room, w->stride[d]) : room / w->stride[d]) + 1;
        if (w->ceils && (w->result[d] - 1) * w->stride[d] >= w->in[d] + w->before[d])
            w->result[d]--;
    }
}

Window window_of(const Map *m, const GraphValue *x, const int64_t *kernel)
{
    draft_slide(m->draft);
    Window w = {.rank = x->shape.rank - 2, .ceils = attribute_int(m, "ceil_mode", 0) != 0};
    if (w.rank < 1 || w.rank > 3)
        refuse(m, "'%s' has %d dimensions; 3 to 5 can be taken", x->name, x->shape.rank);
    int64_t pads[6] = {0};
    for (int d = 0; d < w.rank; d++) {
        w.in[d] = x->shape.size[d + 2];
        w.kernel[d] = kernel[d];
        w.stride[d] = w.dilation[d] = 1;
        if (kernel[d] < 1 || kernel[d] > LARGEST)
            refuse(m, "a window of %" PRId64 " elements", kernel[d]);
    }
    read_list(m, "strides", 1, w.rank, w.stride);
    read_list(m, "dilations", 1, w.rank, w.dilation);
    read_list(m, "pads", 0, 2 * w.rank, pads);
    memcpy(w.before, pads, sizeof w.before);
    memcpy(w.after, pads + w.rank, (size_t)w.rank * sizeof *pads);
    const char *automatic = attribute_text(m, "auto_pad", "NOTSET");
    if (strcmp(automatic, "SAME_UPPER") == 0 || strcmp(automatic, "SAME_LOWER") == 0)
        pad_to_same(&w, strcmp(automatic, "SAME_LOWER") == 0);
    else if (strcmp(automatic, "NOTSET") == 0 || strcmp(automatic, "VALID") == 0)
        count_results(m, &w);
    else
        refuse(m, "auto_pad '%s'", automatic);
    return w;
}

Dims window_result(const Window *w, int64_t batch, int64_t channels)
{
    Dims shape = {w->rank + 2, {batch, channels}};
    memcpy(shape.size + 2, w->result, (size_t)w->rank * sizeof *w->result);
    return shape;
}

const char *window_letters(const Window *w)
{
    static const char *const letters[] = {"h", "hv", "dhv"};
    return letters[w->rank - 1];
}

static const char *tap_letters(const Window *w)
{
    static const char *const letters[] = {"r", "rs", "qrs"};
    return letters[w->rank - 1];
}

static const char *window_taps(const Map *m, const Window *w)
{
    StrBuf out = strbuf_new(m->arena);
    for (int d = 0; d < w->rank; d++)
        if (w->kernel[d] > 1)
            strbuf_printf(&out, "%s%c:%" PRId64, out.length ? ", " : "", tap_letters(w)[d], w->kernel[d]);
    return out.text;
}

const char *window_tap_places(const Map *m, const Window *w)
{
    StrBuf out = strbuf_new(m->arena);
    for (int d = 0; d < w->rank; d++)
        strbuf_printf(&out, "%s%c", d ? ", " : "", w->kernel[d] > 1 ? tap_letters(w)[d] : '0');
    return out.text;
}

const char *window_reduce(const Map *m, const char *reduction, const char *more, const Window *w,
                          const char *expr)
{
    const char *taps = window_taps(m, w), *comma = *more && *taps ? ", " : "";
    return *more || *taps ? fmt(m, "%s[%s%s%s](%s)", reduction, more, comma, taps, expr) : expr;
}

/* `2*h`, or `h` */
static void print_scaled(StrBuf *out, int64_t factor, char letter)
{
    if (factor != 1)
        strbuf_printf(out, "%" PRId64 "*", factor);
    strbuf_putc(out, letter);
}

const char *window_place(const Map *m, const Window *w, int d)
{
    StrBuf out = strbuf_new(m->arena);
    print_scaled(&out, w->stride[d], window_letters(w)[d]);
    if (w->kernel[d] > 1) {
        strbuf_puts(&out, " + ");
        print_scaled(&out, w->dilation[d], tap_letters(w)[d]);
    }
    if (w->before[d])
        strbuf_printf(&out, " - %" PRId64, w->before[d]);
    return out.text;
}

const char *window_places(const Map *m, const Window *w)
{
    StrBuf out = strbuf_new(m->arena);
    for (int d = 0; d < w->rank; d++)
        strbuf_printf(&out, "%s%s", d ? ", " : "", window_place(m, w, d));
    return out.text;
}

const char *window_count(const Map *m, const Window *w, int d, int64_t low, int64_t high)
{
    int64_t last = (w->result[d] - 1) * w->stride[d] + (w->kernel[d] - 1) * w->dilation[d] - w->before[d];
    if (-w->before[d] >= low && last < high)
        return fmt(m, "%" PRId64, w->kernel[d]);
    const char *place = window_place(m, w, d);
    return fmt(m, "sum[%c:%" PRId64 "](select(%s >= %" PRId64 " && %s < %" PRId64 ", 1, 0))",
               tap_letters(w)[d], w->kernel[d], place, low, place, high);
}

bool window_reaches_out(const Window *w)
{
    bool reaches = false;
    for (int d = 0; d < w->rank; d++)
        reaches |= w->before[d] > 0 ||
                   (w->result[d] - 1) * w->stride[d] + reach(w, d) - 1 - w->before[d] >= w->in[d];
    return reaches;
}

static bool all_are(const int64_t *items, int rank, int64_t value)
{
    bool same = true;
    for (int d = 0; d < rank; d++)
        same &= items[d] == value;
    return same;
}

/* `2`, or `2x1` where they differ */
static const char *sizes_text(const Map *m, const int64_t *items, int rank, bool always)
{
    StrBuf out = strbuf_new(m->arena);
    int shown = all_are(items, rank, items[0]) && !always ? 1 : rank;
    for (int d = 0; d < shown; d++)
        strbuf_printf(&out, "%s%" PRId64, d ? "x" : "", items[d]);
    return out.text;
}

void window_comment(Map *m, const Window *w)
{
    comment(m, "%s", sizes_text(m, w->kernel, w->rank, true));
    if (!all_are(w->stride, w->rank, 1))
        comment(m, "stride %s", sizes_text(m, w->stride, w->rank, false));
    if (!all_are(w->dilation, w->rank, 1))
        comment(m, "dilation %s", sizes_text(m, w->dilation, w->rank, false));
}
