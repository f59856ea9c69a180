// Convolutions with few filters: lines, planes and boxes of pixels, channels mostly last, and of filters none, one or a few,
// in any order of their axes. Products want many filters and depthwise kernels a filter for each channel: between them lies
// what becomes one of the other when a sum is cut in parts.
#include <inttypes.h>
#include <string.h>

#include "differential/generate_parts.h"

enum { MOST_SIDES = 3, MOST_SUMMANDS = 150000, MOST_PIXELS = 12000 };

/* Along one side of the image. */
typedef struct Side {
    int64_t outputs, taps, inputs, step, dilation, above;
    bool turned;   // the filter's last tap meets the first pixel
} Side;

typedef struct Convolution {
    Arena *arena;
    Random random;
    Side sides[MOST_SIDES];
    int side_count;
    int64_t images, channels, filters;   // 0: there is no such axis
    bool padded;
} Convolution;

static int64_t below(Convolution *c, int64_t count) { return random_below(&c->random, count); }
static bool chance(Convolution *c, int percent) { return random_chance(&c->random, percent); }

static Side choose_side(Convolution *c, int64_t most)
{
    static const int64_t lines[] = {7, 16, 31, 64, 64, 100, 128}, sides[] = {1, 3, 5, 8, 13, 16},
                         taps[] = {1, 2, 3, 3, 5, 7};
    Side side = {.outputs = c->side_count == 1 ? PICK(&c->random, lines) : PICK(&c->random, sides),
                 .taps = PICK(&c->random, taps),
                 .step = chance(c, 75) ? 1 : 2,
                 .dilation = chance(c, 80) ? 1 : 2};
    side.outputs = side.outputs < most ? side.outputs : most;
    side.inputs = side.step * (side.outputs - 1) + side.dilation * (side.taps - 1) + 1;
    side.above = c->padded ? below(c, side.taps + 1) : 0;
    if (c->padded)
        side.inputs = side.inputs > 2 * side.above ? side.inputs - 2 * side.above : 1;
    side.turned = chance(c, 20);
    return side;
}

static void choose_sizes(Convolution *c)
{
    static const int64_t images[] = {0, 1, 2, 3, 8, 8, 8},
                         channels[] = {1, 2, 3, 8, 8, 16, 16, 17, 32, 32, 64},
                         filters[] = {0, 0, 0, 0, 1, 1, 2, 3, 5, 8};
    static const int sides[] = {1, 1, 1, 2, 2, 3};
    c->side_count = PICK(&c->random, sides);
    c->padded = chance(c, 40);
    c->images = PICK(&c->random, images);
    c->channels = PICK(&c->random, channels);
    c->filters = PICK(&c->random, filters);
    int64_t points = (c->images ? c->images : 1) * (c->filters ? c->filters : 1), pixels = c->channels;
    for (int i = 0; i < c->side_count; i++) {
        int64_t left = MOST_SUMMANDS / (points * c->channels),
                most = MOST_PIXELS / (pixels * (c->images ? c->images : 1));
        c->sides[i] = choose_side(c, most > 1 ? most : 1);
        if (c->sides[i].outputs * c->sides[i].taps > left)
            c->sides[i] = (Side){.outputs = 1, .taps = 1, .inputs = 1, .step = 1, .dilation = 1};
        points *= c->sides[i].outputs * c->sides[i].taps;
        pixels *= c->sides[i].inputs;
    }
}

// ---- as text: an axis as it is written in an index, and its extent ----

typedef struct Dimensions {
    const char *index[2 + MOST_SIDES];
    int64_t extent[2 + MOST_SIDES];
    int count;
} Dimensions;

static void add(Dimensions *dims, const char *index, int64_t extent)
{
    if (!extent)
        return;
    dims->index[dims->count] = index;
    dims->extent[dims->count++] = extent;
}

static void shuffle(Convolution *c, Dimensions *dims)
{
    for (int i = dims->count - 1; i > 0; i--) {
        int j = (int)below(c, i + 1);
        const char *index = dims->index[i];
        int64_t extent = dims->extent[i];
        dims->index[i] = dims->index[j], dims->extent[i] = dims->extent[j];
        dims->index[j] = index, dims->extent[j] = extent;
    }
}

/* `[n, p + s, c]`, `[8, 71, 8]` or `[n:8, p:64]` */
enum { INDICES = 1, EXTENTS = 2 };
static const char *list(Convolution *c, const Dimensions *dims, unsigned what)
{
    StrBuf out = strbuf_new(c->arena);
    strbuf_puts(&out, "[");
    for (int d = 0; d < dims->count; d++) {
        strbuf_printf(&out, "%s%s", d ? ", " : "", what & INDICES ? dims->index[d] : "");
        if (what & EXTENTS)
            strbuf_printf(&out, "%s%" PRId64, what & INDICES ? ":" : "", dims->extent[d]);
    }
    strbuf_puts(&out, "]");
    return out.text;
}

static const char *const outputs[] = {"p", "q", "r"}, *const taps[] = {"s", "t", "u"};

static const char *pixel_of(Convolution *c, int side)
{
    const Side *s = &c->sides[side];
    int64_t first = s->turned ? s->dilation * (s->taps - 1) - s->above : -s->above;
    return arena_printf(c->arena, "%" PRId64 "*%s %c %" PRId64 "*%s + %" PRId64, s->step, outputs[side],
                        s->turned ? '-' : '+', s->dilation, taps[side], first);
}

static Dimensions image_of(Convolution *c, bool channels_last)
{
    Dimensions dims = {.count = 0};
    add(&dims, "n", c->images);
    if (!channels_last)
        add(&dims, "c", c->channels);
    for (int i = 0; i < c->side_count; i++)
        add(&dims, pixel_of(c, i), c->sides[i].inputs);
    if (channels_last)
        add(&dims, "c", c->channels);
    return dims;
}

static Dimensions filter_of(Convolution *c)
{
    Dimensions dims = {.count = 0};
    add(&dims, "o", c->filters);
    add(&dims, "c", c->channels);
    for (int i = 0; i < c->side_count; i++)
        add(&dims, taps[i], c->sides[i].taps);
    if (chance(c, 50))
        shuffle(c, &dims);
    return dims;
}

static Dimensions sums_of(Convolution *c, bool channels_last)
{
    Dimensions dims = {.count = 0};
    add(&dims, "n", c->images);
    if (!channels_last)
        add(&dims, "o", c->filters);
    for (int i = 0; i < c->side_count; i++)
        add(&dims, outputs[i], c->sides[i].outputs);
    if (channels_last)
        add(&dims, "o", c->filters);
    if (chance(c, 15))
        shuffle(c, &dims);
    return dims;
}

static const char *epilogue(Convolution *c, const char *sum)
{
    switch (below(c, 5)) {
    case 0: return arena_printf(c->arena, "relu(%s + 0.5)", sum);
    case 1: return arena_printf(c->arena, "%s * 0.25 + p", sum);
    default: return sum;
    }
}

char *generate_convolution(Arena *arena, uint64_t state)
{
    static const char *const types[] = {"f32", "f32", "f16", "f16", "bf16", "bf16", "f64", "i8"};
    Convolution convolution = {.arena = arena, .random = {state}}, *c = &convolution;
    choose_sizes(c);
    bool last = chance(c, 70);
    const char *type = PICK(&c->random, types);
    Dimensions image = image_of(c, last), filter = filter_of(c), sums = sums_of(c, last),
               summed = {.count = 0};
    add(&summed, "c", c->channels);
    for (int i = 0; i < c->side_count; i++)
        add(&summed, taps[i], c->sides[i].taps);
    const char *x = arena_printf(arena, c->padded ? "pad(x%s, 0)" : "x%s", list(c, &image, INDICES)),
               *w = arena_printf(arena, "w%s", list(c, &filter, INDICES));
    const char *product = strcmp(type, "i8") == 0 ? generate_whole_term(arena, state, x, w)
                                                  : generate_term(arena, state, x, w, "b[]"),
               *sum = arena_printf(arena, "y%s", list(c, &sums, INDICES));
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out, "input x%s : %s\ninput w%s : %s\ninput b[] : f32\n", list(c, &image, EXTENTS), type,
                  list(c, &filter, EXTENTS), type);
    strbuf_printf(&out, "y%s = sum%s(%s)\n", list(c, &sums, INDICES | EXTENTS),
                  list(c, &summed, INDICES | EXTENTS), product);
    strbuf_printf(&out, "z%s = %s\noutput z : %s\n%s", list(c, &sums, INDICES | EXTENTS), epilogue(c, sum),
                  chance(c, 50) && strcmp(type, "i8") != 0 ? type : "f32", chance(c, 20) ? "output y\n" : "");
    return out.text;
}
