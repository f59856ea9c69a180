// The layers of networks, each in a few lines: which axes they work on is random, and so are the types.
#include <inttypes.h>

#include "differential/generate_net.h"

#define TEXT(net, list) PICK(&(net)->random, list)

static bool chance(Net *net, int percent) { return random_chance(&net->random, percent); }

/* What the layer works on, as it is read, and its axes. */
typedef struct Now {
    const char *x;
    Set axes;
} Now;

static Now now(Net *net) { return (Now){net_read(net, &net->now), net_set(&net->now)}; }

static const char *read(Net *net, Held held) { return net_read(net, &held); }

/* The mean over some axes: a definition over the others. */
static Held mean_of(Net *net, Set axes, Set over, const char *term)
{
    const char *list = net_list(net, over);
    return net_define(net, axes & ~over, NET_ROUNDED, "sum%s(%s) / %" PRId64, list, term,
                      net_points(net, over));
}

// ---- pointwise ----

static void scale_and_shift(Net *net)
{
    Now n = now(net);
    const char *scale = net_input(net, net_any(net, n.axes), NET_WEIGHT);
    const char *shift = net_input(net, net_any(net, n.axes), NET_WEIGHT);
    net->now = net_define(net, n.axes, NET_ROUNDED, "%s * %s + %s", n.x, scale, shift);
}

static void residual(Net *net)
{
    static const char *const operations[] = {"+", "-", "+ 0.5 *", "*"};
    Now n = now(net);
    const char *operation = TEXT(net, operations),
               *z = net_input(net, chance(net, 70) ? n.axes : net_some(net, n.axes), NET_REAL);
    net->now = net_define(net, n.axes, NET_ROUNDED, "%s %s %s", n.x, operation, z);
}

static void activation(Net *net)
{
    static const char *const before[] = {
        "relu(", "tanh(", "atan(", "sigmoid(", "abs(", "min(6, relu(3 + ", "log(1 + exp(-abs("};
    static const char *const behind[] = {")", ")", ")", ")", ")", "))", ")))"};
    Now n = now(net);
    int64_t kind = random_below(&net->random, 9);
    if (kind < 7)
        net->now = net_define(net, n.axes, NET_ROUNDED, "%s%s%s", before[kind], n.x, behind[kind]);
    else if (kind == 7)
        net->now = net_define(net, n.axes, NET_ROUNDED, "0.5 * %s * (1 + erf(%s * 0.70710678))", n.x, n.x);
    else
        net->now = net_define(net, n.axes, NET_ROUNDED, "%s * sigmoid(%s)", n.x, n.x);
}

static void dropout(Net *net)
{
    Now n = now(net);
    const char *mask = net_input(net, chance(net, 70) ? n.axes : net_some(net, n.axes), NET_BIT);
    net->now = net_define(net, n.axes, NET_ROUNDED, "select(%s, %s * 1.25, 0)", mask, n.x);
}

/* The bits that the backward pass will read. */
static void kept_mask(Net *net)
{
    Now n = now(net);
    Held mask = net_define(net, n.axes, NET_OUTPUT, "%s > 0.0625", n.x);
    net->now = net_define(net, n.axes, NET_ROUNDED, "select(%s, %s, 0.1 * %s)", read(net, mask), n.x, n.x);
}

/* Squeeze and excite: elements times something made of a statistic over any axes. */
static void gate(Net *net)
{
    static const char *const openings[] = {"sigmoid(", "tanh(0.5 + ", "relu(0.5 * "};
    Now n = now(net);
    Set over = net_some(net, n.axes), rest = n.axes & ~over;
    Held mean = mean_of(net, n.axes, over, n.x);
    const char *weight = net_input(net, net_any(net, rest), NET_REAL), *opening = TEXT(net, openings);
    Held opened = net_define(net, rest, NET_ROUNDED, "%s%s * %s)", opening, read(net, mean), weight);
    net->now = net_define(net, n.axes, NET_ROUNDED, "%s * %s", n.x, read(net, opened));
}

// ---- normalisations ----

/* Of what is normalised: weights over any axes, as a group norm, an adaptive norm or none has them. */
static void with_weights(Net *net, Set axes, const char *x)
{
    const char *scale = net_input(net, net_any(net, axes), NET_WEIGHT),
               *shift = net_input(net, net_any(net, axes), NET_WEIGHT);
    switch (random_below(&net->random, 4)) {
    case 0: net->now = net_define(net, axes, NET_ROUNDED, "%s", x); break;
    case 1: net->now = net_define(net, axes, NET_ROUNDED, "%s * %s", x, scale); break;
    case 2: net->now = net_define(net, axes, NET_ROUNDED, "%s * %s + %s", x, scale, shift); break;
    default: net->now = net_define(net, axes, NET_ROUNDED, "%s * (1 + %s) + %s", x, scale, shift);
    }
}

/* Layer, group, instance and batch norm differ in the axes that they run over. */
static void norm(Net *net)
{
    Now n = now(net);
    Set over = net_some(net, n.axes), rest = n.axes & ~over;
    Held mean = mean_of(net, n.axes, over, n.x);
    const char *centred = net_text(net, "(%s - %s)", n.x, read(net, mean));
    Held var = mean_of(net, n.axes, over, net_text(net, "sq(%s)", centred));
    if (chance(net, 50)) {
        Held inv = net_define(net, rest, NET_ROUNDED, "rsqrt(%s + 1e-3)", read(net, var));
        with_weights(net, n.axes, net_text(net, "%s * %s", centred, read(net, inv)));
    } else {
        with_weights(net, n.axes, net_text(net, "%s * rsqrt(%s + 1e-3)", centred, read(net, var)));
    }
    if (chance(net, 15)) {
        const char *running = net_input(net, rest, NET_REAL);
        net_define(net, rest, NET_OUTPUT | NET_ROUNDED, "0.9 * %s + 0.1 * %s", running, read(net, mean));
    }
}

static void rms_norm(Net *net)
{
    Now n = now(net);
    Held square = mean_of(net, n.axes, net_some(net, n.axes), net_text(net, "sq(%s)", n.x));
    with_weights(net, n.axes, net_text(net, "%s * rsqrt(%s + 1e-3)", n.x, read(net, square)));
}

/* Means over several sets of axes, all taken away. */
static void centring(Net *net)
{
    Now n = now(net);
    Held first = mean_of(net, n.axes, net_some(net, n.axes), n.x),
         second = mean_of(net, n.axes, net_some(net, n.axes), n.x);
    const char *of_first = read(net, first), *of_second = read(net, second);
    net->now = net_define(net, n.axes, NET_ROUNDED, "%s - %s - 2 * %s", n.x, of_first, of_second);
}

/* Gradients of a norm: of the elements and, over the other axes, of its weights. */
static void norm_backward(Net *net)
{
    Now n = now(net);
    Set over = net_some(net, n.axes), rest = n.axes & ~over, weights = net_any(net, n.axes);
    const char *dy = net_input(net, n.axes, NET_REAL), *mean = net_input(net, rest, NET_REAL),
               *inv = net_input(net, rest, NET_REAL);
    const char *weight = net_input(net, weights, NET_WEIGHT);
    Held hat = net_define(net, n.axes, NET_ROUNDED, "(%s - %s) * %s", n.x, mean, inv);
    Held grown = net_define(net, n.axes, NET_ROUNDED, "%s * %s", dy, weight);
    const char *h = read(net, hat), *g = read(net, grown);
    Held first = mean_of(net, n.axes, over, g),
         second = mean_of(net, n.axes, over, net_text(net, "%s * %s", g, h));
    if (n.axes & ~weights && chance(net, 70)) {
        const char *others = net_list(net, n.axes & ~weights);
        net_define(net, weights, NET_OUTPUT | NET_ROUNDED, "sum%s(%s * %s)", others, dy, h);
        net_define(net, weights, NET_OUTPUT | NET_ROUNDED, "sum%s(%s)", others, dy);
    }
    const char *a = read(net, first), *b = read(net, second);
    net->now = net_define(net, n.axes, NET_ROUNDED, "(%s - %s - %s * %s) * %s", g, a, h, b, inv);
}

// ---- softmax, attention, losses ----

/* Of a row's elements: masked by bits or by numbers over any axes, or by position. */
static const char *masked(Net *net, Now n, Set over)
{
    const char *bits = net_input(net, net_some(net, n.axes), NET_BIT),
               *numbers = net_input(net, net_some(net, n.axes), NET_REAL);
    int column = net_one(net, over), row = net_one(net, n.axes & ~over);
    switch (random_below(&net->random, 5)) {
    case 0: return net_text(net, "select(%s, %s, -1e4)", bits, n.x);
    case 1: return net_text(net, "%s * 0.125 + %s", n.x, numbers);
    case 2:
        if (row >= 0)
            return net_text(net, "select(%c <= %d * %c + 1, %s, -inf)", net_axis(column),
                            1 + (int)random_below(&net->random, 3), net_axis(row), n.x);
        return n.x;
    default: return n.x;
    }
}

/* What softmax and its logarithm share: elements below their row's maximum, and the sum of their exponentials. */
typedef struct Exponents {
    const char *below, *sum;
} Exponents;

static Exponents exponents(Net *net, Now n, Set over)
{
    Held from = net_define(net, n.axes, NET_ROUNDED, "%s", masked(net, n, over));
    const char *x = read(net, from), *list = net_list(net, over);
    Held most = net_define(net, n.axes & ~over, NET_ROUNDED, "max%s(%s)", list, x);
    const char *below = net_text(net, "(%s - %s)", x, read(net, most));
    Held sum = net_define(net, n.axes & ~over, NET_EXACT, "sum%s(exp(%s))", list, below);
    return (Exponents){below, read(net, sum)};
}

static void softmax(Net *net)
{
    Now n = now(net);
    Exponents e = exponents(net, n, net_some(net, n.axes));
    if (chance(net, 70))
        net->now = net_define(net, n.axes, NET_ROUNDED, "exp(%s) / %s", e.below, e.sum);
    else
        net->now = net_define(net, n.axes, NET_ROUNDED, "%s - log(%s)", e.below, e.sum);
}

static void softmax_backward(Net *net)
{
    Now n = now(net);
    Set over = net_some(net, n.axes);
    const char *y = net_input(net, n.axes, NET_REAL), *list = net_list(net, over);
    Held dot = net_define(net, n.axes & ~over, NET_ROUNDED, "sum%s(%s * %s)", list, n.x, y);
    net->now = net_define(net, n.axes, NET_ROUNDED, "%s * (%s - %s)", y, n.x, read(net, dot));
}

/* Cross entropy with smoothed labels, and its gradient. */
static void cross_entropy(Net *net)
{
    Now n = now(net);
    int class = net_one(net, n.axes);
    Set rows = n.axes & ~(1u << class);
    Exponents e = exponents(net, n, 1u << class);
    const char *label = net_input(net, rows, NET_INDEX), *list = net_list(net, 1u << class);
    const char *target = net_text(net, "(select(%c == %s, 0.875, 0) + 0.125 / %" PRId64 ")", net_axis(class),
                                  label, net->extent[class]);
    Held loss = net_define(net, rows, NET_OUTPUT | NET_ROUNDED, "-sum%s(%s * (%s - log(%s)))", list, target,
                           e.below, e.sum);
    if (rows && chance(net, 50))
        net_define(net, 0, NET_OUTPUT, "sum%s(%s) / %" PRId64, net_list(net, rows), read(net, loss),
                   net_points(net, rows));
    net->now = net_define(net, n.axes, NET_ROUNDED, "(exp(%s) / %s - %s) * 0.25", e.below, e.sum, target);
}

/* Mean squares or absolute differences over any axes, and the gradient. */
static void regression(Net *net)
{
    Now n = now(net);
    const char *target = net_input(net, n.axes, NET_REAL), *f = chance(net, 50) ? "sq" : "abs";
    Held difference = net_define(net, n.axes, NET_ROUNDED, "%s - %s", n.x, target);
    const char *d = read(net, difference);
    Held loss = mean_of(net, n.axes, net_some(net, n.axes), net_text(net, "%s(%s)", f, d));
    net_define(net, net_set(&loss), NET_OUTPUT, "%s", read(net, loss));
    net->now = net_define(net, n.axes, NET_ROUNDED, "%s * 2 / %" PRId64, d, net_points(net, n.axes));
}

// ---- reductions ----

static void statistic(Net *net)
{
    static const char *const combiners[] = {"sum", "max", "min", "sum"};
    Now n = now(net);
    Set over = net_some(net, n.axes);
    const char *combiner = TEXT(net, combiners), *list = net_list(net, over);
    Held made = net_define(net, n.axes & ~over, NET_ROUNDED | NET_OUTPUT, "%s%s(%s)", combiner, list, n.x);
    if (chance(net, 40))
        net->now = made;
    else if (chance(net, 70))
        net->now = net_define(net, n.axes, NET_ROUNDED, "%s - 0.25 * %s", n.x, read(net, made));
}

/* The mean of those that a mask leaves. */
static void masked_mean(Net *net)
{
    Now n = now(net);
    Set over = net_some(net, n.axes), masked_axes = over | net_any(net, n.axes);
    const char *mask = net_input(net, masked_axes, NET_BIT), *list = net_list(net, over);
    Held count = net_define(net, masked_axes & ~over, NET_EXACT, "sum%s(%s)", list, mask);
    Held sum = net_define(net, n.axes & ~over, NET_ROUNDED, "sum%s(select(%s, %s, 0))", list, mask, n.x);
    const char *of_count = read(net, count), *of_sum = read(net, sum);
    Held mean =
        net_define(net, n.axes & ~over, NET_OUTPUT | NET_ROUNDED, "%s / max(%s, 1)", of_sum, of_count);
    if (chance(net, 60))
        net->now = net_define(net, n.axes, NET_ROUNDED, "select(%s, %s - %s, 0)", mask, n.x, read(net, mean));
}

/* Gradients are cut to a norm of one. */
static void clipping(Net *net)
{
    Now n = now(net);
    Held square = net_define(net, 0, NET_EXACT, "sum%s(sq(%s))", net_list(net, n.axes), n.x);
    net->now = net_define(net, n.axes, NET_ROUNDED, "%s * min(1, rsqrt(%s + 1e-3))", n.x, read(net, square));
}

// ---- products and windows ----

/* Along one axis, into a new one: a linear layer; with other axes beside, a batched one. */
static void projection(Net *net)
{
    static const int64_t widths[] = {1, 2, 3, 5, 8, 16, 24, 33, 64};
    Now n = now(net);
    int inner = net_one(net, n.axes), outer = net_new_axis(net, TEXT(net, widths));
    if (outer < 0 || net_points(net, n.axes | 1u << outer) > 8 * net->most)
        return;
    Set batch = chance(net, 25) ? net_any(net, n.axes) : 0;
    const char *weight = net_input(net, batch | 1u << inner | 1u << outer, NET_REAL),
               *list = net_list(net, 1u << inner);
    net->now = net_define(net, (n.axes & ~(1u << inner)) | 1u << outer, NET_ROUNDED, "sum%s(%s * %s)", list,
                          n.x, weight);
    if (chance(net, 40))
        scale_and_shift(net);
}

/* Scores of attention: two tensors of the same rows, whose positions are two axes. */
static void scores(Net *net)
{
    Now n = now(net);
    int inner = net_one(net, n.axes), query = net_one(net, n.axes & ~(1u << inner));
    int key = query < 0 ? -1 : net_new_axis(net, net->extent[query]);
    if (key < 0 || net_points(net, n.axes | 1u << key) > 8 * net->most)
        return;
    Set keys = (n.axes & ~(1u << query)) | 1u << key;
    const char *k = net_input(net, keys, NET_REAL), *list = net_list(net, 1u << inner);
    net->now = net_define(net, (n.axes | 1u << key) & ~(1u << inner), NET_ROUNDED, "sum%s(%s * %s) * 0.125",
                          list, n.x, k);
}

/* Pooling and depthwise filters along one or two axes, with a stride. */
static void window(Net *net)
{
    static const char *const combiners[] = {"max", "sum", "min"};
    Now n = now(net);
    int along = net_one(net, n.axes), taps = 2 + (int)random_below(&net->random, 4);
    int64_t stride = chance(net, 60) ? 1 : 2;
    int out = net_new_axis(net, (net->extent[along] + stride - 1) / stride), tap = net_new_axis(net, taps);
    if (tap < 0)
        return;
    const char *index =
        net_text(net, "%" PRId64 "*%c + %c - %d", stride, net_axis(out), net_axis(tap), taps / 2);
    const char *x = net_text(net, "pad(%s, 0)", net_read_at(net, &net->now, along, index)),
               *list = net_list(net, 1u << tap);
    Set axes = (n.axes & ~(1u << along)) | 1u << out;
    if (chance(net, 50)) {
        const char *weight = net_input(net, 1u << tap | net_any(net, axes), NET_REAL);
        net->now = net_define(net, axes, NET_ROUNDED, "sum%s(%s * %s)", list, x, weight);
    } else {
        net->now = net_define(net, axes, NET_ROUNDED, "%s%s(%s)", TEXT(net, combiners), list, x);
    }
}

/* Where the filter's tap meets the image: any step, dilation, padding and direction. -1: there are too many axes. */
static int slide(Net *net, int axis, const char **indices)
{
    int64_t taps = 1 + random_below(&net->random, 10), step = chance(net, 75) ? 1 : 2, dilation = chance(net, 75) ? 1 : 2;
    int tap = net_new_axis(net, taps), turned = chance(net, 30);
    if (tap < 0)
        return -1;
    int64_t padding = random_below(&net->random, taps + 1) * (turned ? -1 : 1);
    indices[axis] = net_text(net, "%" PRId64 "*%c %c %" PRId64 "*%c - %" PRId64, step, net_axis(axis), turned ? '-' : '+',
                             dilation, net_axis(tap), padding);
    return tap;
}

/* A depthwise convolution of another tensor along one or two axes, as a branch beside. */
static void filter(Net *net)
{
    const char *indices[NET_AXES] = {NULL};
    Now n = now(net);
    int along = net_one(net, n.axes), down = chance(net, 60) ? net_one(net, n.axes & ~(1u << along)) : -1;
    int tap = slide(net, along, indices), other = tap >= 0 && down >= 0 ? slide(net, down, indices) : -1;
    if (tap < 0 || (down >= 0 && other < 0))
        return;
    Set taps = 1u << tap | (other >= 0 ? 1u << other : 0), image = 1u << along | (down >= 0 ? 1u << down : 0);
    if (net_points(net, n.axes | taps) > 8 * net->most)
        return;
    Held x = net_new_input(net, n.axes, NET_REAL);
    const char *weight = net_input(net, taps | net_any(net, n.axes & ~image), NET_REAL);
    Held sum = net_define(net, n.axes, NET_ROUNDED, "sum%s(pad(%s, 0) * %s)", net_list(net, taps),
                          net_read_with(net, &x, indices), weight);
    net->now = net_define(net, n.axes, NET_ROUNDED, "%s + %s", read(net, sum), n.x);
}

// ---- halves of an axis ----

/* An axis of two halves; -1: there is none. */
static int even_axis(Net *net, Set axes)
{
    Set even = 0;
    for (int a = 0; a < net->axis_count; a++)
        even |= axes >> a & 1 && net->extent[a] % 2 == 0 ? 1u << a : 0;
    return net_one(net, even);
}

static void gated_linear_unit(Net *net)
{
    static const char *const gates[] = {"sigmoid(", "relu(", "tanh("};
    Now n = now(net);
    int axis = even_axis(net, n.axes), half = axis < 0 ? -1 : net_new_axis(net, net->extent[axis] / 2);
    if (half < 0)
        return;
    bool turns = chance(net, 40);   // neighbours instead of halves
    const char *first = turns ? net_text(net, "2*%c", net_axis(half)) : net_text(net, "%c", net_axis(half));
    const char *second = turns ? net_text(net, "2*%c + 1", net_axis(half))
                               : net_text(net, "%c + %" PRId64, net_axis(half), net->extent[half]);
    const char *value = net_read_at(net, &net->now, axis, first),
               *gate = net_read_at(net, &net->now, axis, second);
    net->now = net_define(net, (n.axes & ~(1u << axis)) | 1u << half, NET_ROUNDED, "%s * %s%s)", value,
                          TEXT(net, gates), gate);
}

/* The two halves of an axis are turned by an angle that hangs on other axes. */
static void rotary(Net *net)
{
    Now n = now(net);
    int axis = even_axis(net, n.axes);
    if (axis < 0)
        return;
    int64_t half = net->extent[axis] / 2;
    Set angles = 1u << axis | net_any(net, n.axes);
    const char *cosine = net_input(net, angles, NET_REAL), *sine = net_input(net, angles, NET_REAL);
    const char *ahead =
        net_read_at(net, &net->now, axis, net_text(net, "%c + %" PRId64, net_axis(axis), half));
    const char *behind =
        net_read_at(net, &net->now, axis, net_text(net, "%c - %" PRId64, net_axis(axis), half));
    net->now = net_define(net, n.axes, NET_ROUNDED,
                          "%s * %s + select(%c < %" PRId64 ", -pad(%s, 0), pad(%s, 0)) * %s", n.x, cosine,
                          net_axis(axis), half, ahead, behind, sine);
}

// ---- training and numbers of few bits ----

static void optimiser_step(Net *net)
{
    Now n = now(net);
    const char *weight = net_input(net, n.axes, NET_REAL), *first = net_input(net, n.axes, NET_REAL);
    const char *second = net_input(net, n.axes, NET_REAL),
               *rate = net_input(net, net_any(net, n.axes), NET_REAL);
    Held m = net_define(net, n.axes, NET_OUTPUT | NET_ROUNDED, "0.9 * %s + 0.1 * %s", first, n.x);
    Held v = net_define(net, n.axes, NET_OUTPUT | NET_ROUNDED, "0.99 * abs(%s) + 0.01 * sq(%s)", second, n.x);
    const char *of_m = read(net, m), *of_v = read(net, v);
    net->now = net_define(net, n.axes, NET_OUTPUT | NET_ROUNDED, "%s - 0.01 * %s * %s / (sqrt(%s) + 1e-3)",
                          weight, rate, of_m, of_v);
}

/* Whole numbers of eight bits and the scale of each row. */
static void quantisation(Net *net)
{
    Now n = now(net);
    Set over = net_some(net, n.axes);
    Held scale = net_define(net, n.axes & ~over, NET_OUTPUT, "max(max%s(abs(%s)), 1e-3) / 100",
                            net_list(net, over), n.x);
    const char *rounded = net_text(net, "round(%s / %s)", n.x, read(net, scale));
    net_define(net, n.axes, NET_OUTPUT, "cast(max(min(%s, 127), -127), i8)", rounded);
}

static void other_order(Net *net)
{
    Now n = now(net);
    net->now = net_define(net, n.axes, NET_OUTPUT | NET_ROUNDED, chance(net, 60) ? "%s" : "%s * 0.5", n.x);
}

// ---- where networks begin ----

static void plain_input(Net *net, Set axes) { net->now = net_new_input(net, axes, NET_REAL); }

/* Several inputs over any axes each. */
static void broadcast_inputs(Net *net, Set axes)
{
    const char *first = net_input(net, net_some(net, axes), NET_REAL),
               *second = net_input(net, net_some(net, axes), NET_REAL);
    const char *third = net_input(net, axes, NET_REAL);
    net->now = net_define(net, axes, NET_ROUNDED, "%s * %s + %s", first, third, second);
}

static void dequantised(Net *net, Set axes)
{
    const char *bytes = net_input(net, axes, NET_BYTE), *scale = net_input(net, net_any(net, axes), NET_REAL);
    net->now = net_define(net, axes, NET_ROUNDED, "%s * %s", bytes, scale);
}

/* Rows of a table of a few words. */
static void embedding(Net *net, Set axes)
{
    int word = net_new_axis(net, 6), width = net_one(net, axes);
    const char *id = net_input(net, axes & ~(1u << width), NET_INDEX);
    const char *table = net_input(net, 1u << word | 1u << width, NET_REAL), *list = net_list(net, 1u << word);
    net->now =
        net_define(net, axes, NET_ROUNDED, "sum%s(select(%s == %c, %s, 0))", list, id, net_axis(word), table);
}

static void positions(Net *net, Set axes)
{
    const char *x = net_input(net, axes, NET_REAL);
    net->now = net_define(net, axes, NET_ROUNDED, "%s + 0.0009765625 * %c", x, net_axis(net_one(net, axes)));
}

void net_begin(Net *net)
{
    static void (*const beginnings[])(Net *, Set) = {plain_input, plain_input,      plain_input,
                                                     plain_input, broadcast_inputs, broadcast_inputs,
                                                     dequantised, embedding,        positions};
    TEXT(net, beginnings)(net, (1u << net->axis_count) - 1);
}

typedef struct Layer {
    void (*add)(Net *net);
    int weight, weight_of_rows;   // of programs with a long axis
} Layer;

static const Layer layers[] = {
    {scale_and_shift, 4, 2},   {residual, 4, 2},      {activation, 4, 1},     {dropout, 3, 2},
    {kept_mask, 3, 1},         {gate, 4, 3},          {norm, 12, 30},         {rms_norm, 5, 12},
    {centring, 5, 4},          {norm_backward, 7, 8}, {softmax, 10, 20},      {softmax_backward, 4, 8},
    {cross_entropy, 4, 5},     {regression, 3, 2},    {statistic, 6, 4},      {masked_mean, 4, 3},
    {clipping, 2, 2},          {projection, 6, 1},    {scores, 3, 0},         {window, 6, 2},
    {filter, 5, 1},
    {gated_linear_unit, 4, 2}, {rotary, 4, 2},        {optimiser_step, 3, 1}, {quantisation, 4, 4},
    {other_order, 5, 2},
};

static int weight_of(const Net *net, const Layer *layer)
{
    return net->row < 0 ? layer->weight : layer->weight_of_rows;
}

void net_add_layer(Net *net)
{
    int64_t total = 0;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        total += weight_of(net, &layers[i]);
    int64_t at = random_below(&net->random, total);
    const Layer *layer = layers;
    while (at >= weight_of(net, layer))
        at -= weight_of(net, layer++);
    layer->add(net);
}
