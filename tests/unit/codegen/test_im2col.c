// Which convolutions bulk copies bring in im2col mode: what the driver and the instruction take, and one past it.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/family/gemm/convolution_turn.h"
#include "codegen/family/gemm/im2col.h"
#include "codegen/family/gemm/parts.h"
#include "codegen/family/gemm/phases.h"
#include "front/lower.h"
#include "front/parse.h"

static Arena *arena;

static void setup(void) { arena = arena_new(); }

static void teardown(void) { arena_free(arena); }

static const Fusion *fusion_of(const char *text)
{
    const Source *source = source_from_text(arena, "case.te", text, strlen(text));
    return fuse(arena, lower(arena, parse(arena, lex(arena, source)), NULL, 0)).plans[0].fusions[0];
}

/* By the view, which asks more of the filter. */
static bool finds(const char *text, Im2col *im2col)
{
    const Target target = {.device = device_read(arena, "h200"), .math = EVAL_EXACT};
    const Products *view = product_view(arena, fusion_of(text), &target);
    if (!view || !view->boxed)
        return false;
    ck_assert_ptr_nonnull(view->boxed->pixels);   // no boxes of lines
    *im2col = *view->boxed->pixels;
    return true;
}

static const Product *boxed_of(const char *text)
{
    const Target target = {.device = device_read(arena, "h200"), .math = EVAL_EXACT};
    const Products *view = product_view(arena, fusion_of(text), &target);
    return view ? view->boxed : NULL;
}

#define IMAGES "input x[3, 20, 30, 64] : f16  input w[64, 3, 3, 64] : f16  "
#define SUM(h, v) "sum[r, s, c](pad(x[n, " h ", " v ", c], 0) * w[f, r, s, c])  output y : f16"

START_TEST(corners_follow_from_the_outputs)
{
    Im2col of;
    ck_assert(finds(IMAGES "y[n, h:20, v:30, f] = " SUM("h + r - 1", "v + s - 1"), &of));
    ck_assert(of.walk.count == 2 && of.images == 3 && of.channels == 64 && of.step == 64 &&
              of.taps.extent == 9);
    ck_assert(of.lower[0] == -1 && of.upper[0] == -1 && of.lower[1] == -1 && of.upper[1] == -1);
    /* 10 outputs two apart reach from -1 to 17 of 20, 15 from 0 to 28 of 30. */
    ck_assert(finds(IMAGES "y[n, h:10, v:15, f] = " SUM("2*h + r - 1", "2*v + s"), &of));
    ck_assert(of.lower[0] == -1 && of.upper[0] == 18 - 20 && of.lower[1] == 0 && of.upper[1] == 29 - 30);
    /* The last tap sees the first pixel. */
    ck_assert(finds(IMAGES "y[n, h:20, v:30, f] = " SUM("h - r + 1", "v - 2*s + 3"), &of));
    ck_assert(of.lower[0] == -1 && of.lower[1] == -1 && of.walk.axis[1].dilation == -2);
    /* Outputs end before the image does. */
    ck_assert(finds(IMAGES "y[n, h:20, v:7, f] = " SUM("h + r - 1", "v + s + 4"), &of));
    ck_assert(of.lower[1] == 4 && of.upper[1] == 11 - 30);
}
END_TEST

START_TEST(taps_are_counted_as_the_filter_has_them)
{
    Im2col of;
    ck_assert(finds("input x[3, 20, 30, 64] : f16  input w[2, 64, 5, 64] : f16  y[n, h:20, v:30, f] = "
                    "sum[c, r, s](pad(x[n, h + r - 1, v + s - 1, c], 0) * w[s, f, r, c])  output y : f16",
                    &of) == false);
    ck_assert(finds("input x[3, 20, 30, 64] : f16  input w[2, 5, 64, 64] : f16  y[n, h:20, v:30, f] = "
                    "sum[c, r, s](pad(x[n, h + r - 1, v + s - 1, c], 0) * w[s, r, c, f])  output y : f16",
                    &of));
    ck_assert(of.walk.axis[0].taps == 5 && of.walk.tap_step[0] == 1);
    ck_assert(of.walk.axis[1].taps == 2 && of.walk.tap_step[1] == 5);
}
END_TEST

/* At a limit and one past it. */
static const struct {
    const char *inside, *beyond;
} LIMITS[] = {
    /* Lower corners of two axes, and of three; of one there is more room. */
    {IMAGES "y[n, h:150, v:30, f] = " SUM("h + r - 128", "v + s - 1"),
     IMAGES "y[n, h:150, v:30, f] = " SUM("h + r - 129", "v + s - 1")},
    {"input x[2, 20, 20, 20, 64] : f16  input w[64, 3, 3, 3, 64] : f16  y[n, d:20, h:20, v:30, f] = "
     "sum[q, r, s, c](pad(x[n, d + q, h + r, v + s - 16, c], 0) * w[f, q, r, s, c])  output y : f16",
     "input x[2, 20, 20, 20, 64] : f16  input w[64, 3, 3, 3, 64] : f16  y[n, d:20, h:20, v:30, f] = "
     "sum[q, r, s, c](pad(x[n, d + q, h + r, v + s - 17, c], 0) * w[f, q, r, s, c])  output y : f16"},
    {"input x[3, 300, 64] : f16  input w[64, 3, 64] : f16  y[n, v:300, f] = sum[s, c](pad(x[n, v + s - 129, "
     "c], 0) * w[f, s, c])  output y : f16",
     "input x[3, 99, 64] : f16  input w[64, 3, 64] : f16  y[n, v:40000, f] = sum[s, c](pad(x[n, v + s - "
     "32769, c], 0) * w[f, s, c])  output y : f16"},
    /* Upper corners: outputs that end so far before the image. */
    {"input x[3, 20, 160, 64] : f16  input w[64, 3, 3, 64] : f16  y[n, h:20, v:33, f] = " SUM("h + r - 1",
                                                                                              "v + s - 1"),
     "input x[3, 20, 160, 64] : f16  input w[64, 3, 3, 64] : f16  y[n, h:20, v:32, f] = " SUM("h + r - 1",
                                                                                              "v + s - 1")},
    /* Taps so far away. */
    {"input x[3, 20, 300, 64] : f16  input w[64, 3, 2, 64] : f16  y[n, h:20, v:300, f] = " SUM("h + r - 1",
                                                                                               "v + 255*s"),
     "input x[3, 20, 300, 64] : f16  input w[64, 3, 2, 64] : f16  y[n, h:20, v:300, f] = " SUM("h + r - 1",
                                                                                               "v + 256*s")},
    {"input x[2, 9, 9, 40, 64] : f16  input w[64, 3, 3, 2, 64] : f16  y[n, d:9, h:9, v:40, f] = "
     "sum[q, r, s, c](pad(x[n, d + q - 1, h + r - 1, v + 31*s - 15, c], 0) * w[f, q, r, s, c])  output y : "
     "f16",
     "input x[2, 9, 9, 40, 64] : f16  input w[64, 3, 3, 2, 64] : f16  y[n, d:9, h:9, v:40, f] = "
     "sum[q, r, s, c](pad(x[n, d + q - 1, h + r - 1, v + 32*s - 15, c], 0) * w[f, q, r, s, c])  output y : "
     "f16"},
    /* Outputs so far apart. */
    {IMAGES "y[n, h:2, v:3, f] = " SUM("8*h + r", "8*v + s"),
     IMAGES "y[n, h:2, v:3, f] = " SUM("9*h + r", "8*v + s")},
    /* Channels of 16 bytes; their rest is zero, or there is none. */
    {"input x[3, 20, 30, 72] : f16  input w[64, 3, 3, 72] : f16  y[n, h:20, v:30, f] = " SUM("h + r - 1",
                                                                                             "v + s - 1"),
     "input x[3, 20, 30, 76] : f16  input w[64, 3, 3, 76] : f16  y[n, h:20, v:30, f] = " SUM("h + r - 1",
                                                                                             "v + s - 1")},
    {"input x[3, 20, 30, 128] : f16  input w[64, 3, 3, 64] : f16  y[n, h:20, v:30, f] = "
     "sum[r, s, c:64](pad(x[n, h + r - 1, v + s - 1, c], 0) * w[f, r, s, c])  output y : f16",
     "input x[3, 20, 30, 128] : f16  input w[64, 3, 3, 72] : f16  y[n, h:20, v:30, f] = "
     "sum[r, s, c:72](pad(x[n, h + r - 1, v + s - 1, c], 0) * w[f, r, s, c])  output y : f16"},
};

START_TEST(what_the_hardware_takes)
{
    Im2col of;
    ck_assert_msg(finds(LIMITS[_i].inside, &of), "%s", LIMITS[_i].inside);
    ck_assert_msg(!finds(LIMITS[_i].beyond, &of), "%s", LIMITS[_i].beyond);
}
END_TEST

START_TEST(others_are_left_alone)
{
    Im2col of;
    static const char *const others[] = {
        /* Zeros lie within the image. */
        "input x[3, 20, 30, 64] : f16  input w[64, 3, 3, 64] : f16  y[n, h:20, v:30, f] = "
        "sum[r, s, c](pad(x[n, h + r - 1, v + s - 1, c], 1) * w[f, r, s, c])  output y : f16",
        /* Channels come before pixels. */
        "input x[3, 64, 20, 30] : f16  input w[64, 64, 3, 3] : f16  y[n, f, h:20, v:30] = "
        "sum[r, s, c](pad(x[n, c, h + r - 1, v + s - 1], 0) * w[f, c, r, s])  output y : f16",
        /* Rows of outputs are not in the order of the image's. */
        IMAGES "y[n, v:30, h:20, f] = " SUM("h + r - 1", "v + s - 1"),
        /* Filters have no channels or rows side by side. */
        "input x[3, 20, 30, 64] : f16  input w[64, 64, 3, 3] : f16  y[n, h:20, v:30, f] = "
        "sum[r, s, c](pad(x[n, h + r - 1, v + s - 1, c], 0) * w[f, c, r, s])  output y : f16",
        /* A group has channels of a part of a line. */
        "input x[3, 20, 30, 2, 32] : f16  input w[2, 64, 3, 3, 32] : f16  y[n, h:20, v:30, g, f] = "
        "sum[r, s, c](pad(x[n, h + r - 1, v + s - 1, g, c], 0) * w[g, f, r, s, c])  output y : f16",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!finds(others[i], &of), "%s", others[i]);
    /* Of whole lines groups are batches. */
    ck_assert(finds("input x[3, 20, 30, 2, 64] : f16  input w[2, 64, 3, 3, 64] : f16  y[n, h:20, v:30, g, f] = "
                    "sum[r, s, c](pad(x[n, h + r - 1, v + s - 1, g, c], 0) * w[g, f, r, s, c])  output y : f16", &of));
}
END_TEST

/* Where what is made are planes. */
START_TEST(pixels_are_columns)
{
    Im2col of;
    ck_assert(finds(IMAGES "y[n, f, h:10, v:15] = " SUM("2*h + r - 1", "2*v + s"), &of));
    ck_assert(of.factor == 1 && of.pixels == GROUP_N && of.seen == GROUP_K && im2col_has_rows(&of));
    ck_assert(of.lower[0] == -1 && of.upper[0] == 18 - 20 && of.taps.extent == 9);
    ck_assert(finds(IMAGES "y[n, h:10, v:15, f] = " SUM("2*h + r - 1", "2*v + s"), &of));
    ck_assert(of.factor == 0 && of.pixels == GROUP_M && im2col_has_rows(&of));
    /* Rows of a plane begin within vectors, and the plane itself is whole ones. */
    const char *planes = IMAGES "y[n, f, h:20, v:30] = " SUM("h + r - 1", "v + s - 1");
    ck_assert(product_stores_vectors(fusion_of(planes), &boxed_of(planes)->group[GROUP_N], 8));
}
END_TEST

/* Images of planes are batches of a product whose first factor has none. */
START_TEST(images_are_batches)
{
    const Product *product = boxed_of("input x[3, 64, 4, 6] : f16  input w[72, 64] : f16  y[n, f, h, v] = "
                                      "sum[c](x[n, c, h, v] * w[f, c])  output y : f16");
    ck_assert(product && !product->pixels && product->group[GROUP_BATCH].extent == 3);
    ck_assert(product->group[GROUP_N].extent == 24 && !product->lines[1].along_k);
    ck_assert(product->lines[0].batch == 0 && product->lines[1].batch == 64 * 24 && product->lines[1].line == 24);
    /* 98 bytes are no vectors. */
    ck_assert(!boxed_of("input x[3, 64, 7, 7] : f16  input w[72, 64] : f16  y[n, f, h, v] = "
                        "sum[c](x[n, c, h, v] * w[f, c])  output y : f16"));
}
END_TEST

/* Pixels that the walk has are those of the definition. */
START_TEST(positions_of_pixels)
{
    Im2col of;
    ck_assert(finds(IMAGES "y[n, h:10, v:15, f] = " SUM("2*h + r - 1", "2*v + s"), &of));
    ck_assert_int_eq(pixel_at(&of.walk, 0, 0), -1);   // row -1
    ck_assert_int_eq(pixel_at(&of.walk, 0, 3), 0);    // tap (1, 0): row 0, column 0
    ck_assert_int_eq(pixel_at(&of.walk, 150 + 15 + 2, 8),
                     600 + 3 * 30 + 6);   // image 1, output (1, 2), tap (2, 2)
    ck_assert_int_eq(pixels_of(&of.walk, 3 * 150), 3 * 600);
    ck_assert_double_eq(pixels_per_output(&of.walk),
                        20.0 / 10 * 30.0 / 15);   // row 19 is seen by the last tap, column 30 is none
}
END_TEST

/* 100 outputs under 9 taps of 72 channels, in steps of 128: each pixel is one that another output sees, too. */
START_TEST(pixels_are_counted_once)
{
    const DataTile tile = {.rank = 2,
                           .element_bits = 16,
                           .dims = {{affine_axis(0), 100}, {affine_axis(1), 9 * 128}},
                           .taps = {.k = 1, .step = 128, .channels = 72, .pixels = 1}};
    const RTile whole = {{100, 9 * 128}}, first = {{50, 64}}, tap = {{50, 128}}, three = {{50, 3 * 128}};
    ck_assert_double_eq(data_tile_bytes(&tile, &whole, 2), 100 * 72 * 2);
    ck_assert_double_eq(data_tile_bytes(&tile, &first, 2), 50 * 64 * 2);
    ck_assert_double_eq(data_tile_bytes(&tile, &tap, 2), 50 * 72 * 2);
    ck_assert_double_eq(data_tile_bytes(&tile, &three, 2), 50 * 72 * 2);
    DataTile filter = tile;
    filter.taps.pixels = 0;
    ck_assert_double_eq(data_tile_bytes(&filter, &whole, 2), 100 * 9 * 72 * 2);
}
END_TEST

#define PLANES "input x[3, 64, 20, 30] : f16  input w[72, 64, 3, 3] : f16  "
#define PLANES_SUM "sum[c, r, s](pad(x[n, c, h + r - 1, v + s - 1], 0) * w[f, c, r, s])  "

static const Rewritten *rewritten_on(const Rewrite *rewrite, const char *text, const char *device)
{
    const Target target = {.device = device_read(arena, device), .math = EVAL_EXACT};
    const Fusion *fusion = fusion_of(text);
    const void *view = product_view(arena, fusion, &target);
    return view ? rewrite->make(arena, view, fusion, &target) : NULL;
}

static const Rewritten *turned_on(const char *text, const char *device)
{
    return rewritten_on(&turn_planes, text, device);
}

START_TEST(planes_are_turned_to_pixels)
{
    const char *text = PLANES "y[n, f, h:20, v:30] = " PLANES_SUM "output y : f16";
    const Rewritten *turned = turned_on(text, "h200");
    ck_assert(turned && turned->before_count == 2 && turned->behind_count == 1);
    const Tensor *x = turned->before[0]->outputs[0], *w = turned->before[1]->outputs[0],
                 *y = turned->main->outputs[0];
    ck_assert(x->shape[0] == 3 && x->shape[1] == 20 && x->shape[2] == 30 && x->shape[3] == 64);
    ck_assert(w->shape[0] == 72 && w->shape[1] == 3 && w->shape[2] == 3 && w->shape[3] == 64);
    ck_assert(y->shape[0] == 3 && y->shape[1] == 20 && y->shape[2] == 30 && y->shape[3] == 72);
    ck_assert(!turned_on(text, "a100"));   // has no such copies
    /* A residual has an element for each output: the kernel that turns the sums back adds it. */
    turned = turned_on(PLANES "input z[3, 72, 20, 30] : f16  t[n, f, h:20, v:30] = " PLANES_SUM
                              "  y[n, f, h, v] = t[n, f, h, v] + z[n, f, h, v]  output y : f16",
                       "h200");
    ck_assert(turned && turned->main->op_count == 1 && turned->behind[0]->op_count == 2);
    /* Filters that have their channels side by side stay. */
    turned = turned_on("input x[3, 64, 20, 30] : f16  input w[72, 3, 3, 64] : f16  y[n, f, h:20, v:30] = "
                       "sum[c, r, s](pad(x[n, c, h + r - 1, v + s - 1], 0) * w[f, r, s, c])  output y : f16",
                       "h200");
    ck_assert(turned && turned->before_count == 1);
}
END_TEST

/* What is made stays as it is to lie: pixels are columns of the product. */
START_TEST(factors_alone_are_turned)
{
    const Rewritten *turned =
        rewritten_on(&turn_planes_to_columns, PLANES "y[n, f, h:20, v:30] = " PLANES_SUM "output y : f16", "h200");
    ck_assert(turned && turned->before_count == 2 && turned->behind_count == 0);
    const Tensor *y = turned->main->outputs[0];
    ck_assert(y->role == ROLE_OUTPUT && y->shape[1] == 72);
    /* Of 1x1 the image; the filter's rows may be contiguous along either. */
    turned = rewritten_on(&turn_planes_to_columns,
                          "input x[3, 64, 7, 7] : f16  input w[64, 72] : f16  y[n, f, h, v] = "
                          "sum[c](x[n, c, h, v] * w[c, f])  output y : f16", "h200");
    ck_assert(turned && turned->before_count == 1 && turned->behind_count == 0);
    /* Planes of whole vectors are read as they lie. */
    ck_assert(!rewritten_on(&turn_planes_to_columns,
                            "input x[3, 64, 4, 6] : f16  input w[64, 72] : f16  y[n, f, h, v] = "
                            "sum[c](x[n, c, h, v] * w[c, f])  output y : f16", "h200"));
}
END_TEST

/* Channels of all groups follow each other in a pixel; 20 channels of a pixel are 24. */
START_TEST(groups_and_odd_channels_are_turned)
{
    const Rewritten *turned =
        turned_on("input x[3, 2, 64, 20, 30] : f16  input w[2, 72, 64, 3, 3] : f16  y[n, g, f, h:20, v:30] = "
                  "sum[c, r, s](pad(x[n, g, c, h + r - 1, v + s - 1], 0) * w[g, f, c, r, s])  output y : f16", "h200");
    ck_assert(turned && turned->before_count == 2 && turned->behind_count == 1);
    const Tensor *x = turned->before[0]->outputs[0], *y = turned->main->outputs[0];
    ck_assert(x->shape[1] == 20 && x->shape[3] == 2 && x->shape[4] == 64 && y->shape[3] == 2 && y->shape[4] == 72);
    turned = turned_on("input x[3, 20, 20, 30] : f16  input w[72, 20, 3, 3] : f16  y[n, f, h:20, v:30] = " PLANES_SUM
                       "output y : f16", "h200");
    ck_assert(turned && turned->before[0]->outputs[0]->shape[3] == 24 && turned->before[1]->outputs[0]->shape[3] == 24);
}
END_TEST

/* By a stride of as many taps there are no windows: columns of each phase are channels. */
START_TEST(phases_without_windows_are_turned)
{
    const Rewritten *turned =
        turned_on("input d[3, 50, 19, 19] : f16  input w[50, 72, 3, 3] : f16  x[n, c, h, a, v, b] = "
                  "sum[f](d[n, f, h, v] * w[f, c, a, b])  output x : f16", "h200");
    ck_assert(turned && turned->before_count == 2 && turned->behind_count == 1);
    const Tensor *w = turned->before[1]->outputs[0], *x = turned->main->outputs[0];
    ck_assert(w->shape[0] == 72 && w->shape[3] == 56 && x->shape[1] == 19 && x->shape[5] == 72);
}
END_TEST

#define BY_PHASE \
    "sum[p:2, q:2, f](pad(d[n, f, h + p, v + q], 0) * pad(w[f, c, a - 2*p + 1, b - 2*q + 1], 0))  output x : f16"

/* The last phase and its tap become dimensions of the filter, whose channels end in zeros. */
START_TEST(planes_by_phase_are_columns)
{
    const char *text = "input d[3, 70, 8, 9] : f16  input w[70, 96, 3, 3] : f16  x[n, c, h:8, a:2, v:9, b:2] = " BY_PHASE;
    const Rewritten *turned = rewritten_on(&turn_planes_to_phases, text, "h200");
    ck_assert(turned && turned->before_count == 2 && turned->behind_count == 0);
    const Tensor *d = turned->before[0]->outputs[0], *w = turned->before[1]->outputs[0];
    ck_assert(d->rank == 4 && d->shape[3] == 72 && w->rank == 5);
    ck_assert(w->shape[0] == 3 && w->shape[1] == 2 && w->shape[2] == 96 && w->shape[3] == 2 && w->shape[4] == 72);
    /* Boxes have 64 whole columns; channels that come last are no planes. */
    ck_assert(!rewritten_on(&turn_planes_to_phases, "input d[3, 64, 8, 9] : f16  input w[64, 72, 3, 3] : f16  "
                            "x[n, c, h:8, a:2, v:9, b:2] = " BY_PHASE, "h200"));
    ck_assert(!rewritten_on(&turn_planes_to_phases, "input d[3, 64, 8, 9] : f16  input w[64, 96, 3, 3] : f16  "
                            "x[n, h:8, a:2, v:9, b:2, c] = " BY_PHASE, "h200"));
}
END_TEST

/* Of 13 channels there are 16, of which the last three are zeros, in both factors; the sum goes over all of them. */
START_TEST(channels_end_with_a_piece)
{
    const Rewritten *longer =
        rewritten_on(&lengthen_channels, "input x[3, 13, 20, 30] : f16  input w[72, 13, 3, 3] : f16  "
                     "y[n, f, h:20, v:30] = " PLANES_SUM "output y : f16", "a100");
    ck_assert(longer && longer->before_count == 2 && longer->behind_count == 0);
    const Tensor *x = longer->before[0]->outputs[0], *w = longer->before[1]->outputs[0];
    ck_assert(x->shape[1] == 20 && x->shape[3] == 16 && w->shape[0] == 72 && w->shape[3] == 16);
    ck_assert(longer->main->axes[longer->main->axis_count - 1].extent == 16);   // along k they come last
    ck_assert(longer->main->outputs[0]->role == ROLE_OUTPUT);
    /* Elements that lie so are no reason to copy them. */
    ck_assert(!rewritten_on(&lengthen_channels, IMAGES "y[n, h:20, v:30, f] = " SUM("h + r - 1", "v + s - 1"), "h200"));
    /* Behind the channels of a part there are others, and a bias has one for each channel that there is. */
    ck_assert(!rewritten_on(&lengthen_channels, "input x[3, 20, 30, 15] : f16  input w[72, 3, 3, 13] : f16  "
                            "y[n, h:20, v:30, f] = sum[r, s, c:13](pad(x[n, h + r - 1, v + s - 1, c], 0) * "
                            "w[f, r, s, c])  output y : f16", "h200"));
}
END_TEST

#define ODD_GRADIENT "sum[n, h, v](d[n, f, h, v] * pad(x[n, c, h + r - 1, v + s - 1], 0))  "

/* Gradients of filters have channels along their rows, and images along k. */
START_TEST(channels_of_gradients_end_with_a_piece)
{
    const char *text = "input x[3, 13, 20, 30] : f16  input d[3, 10, 20, 30] : f16  w[f, c, r:3, s:3] = " ODD_GRADIENT
                       "output w : f16";
    const Rewritten *longer = rewritten_on(&lengthen_channels_of_rows, text, "h200");
    ck_assert(longer && longer->before_count == 2 && longer->behind_count == 1);
    const Tensor *w = longer->main->outputs[0];
    ck_assert(w->shape[0] == 16 && w->shape[1] == 3 && w->shape[2] == 3 && w->shape[3] == 16);
    longer = rewritten_on(&lengthen_channels, text, "h200");
    ck_assert(longer && longer->behind_count == 0 && longer->before[0]->outputs[0]->shape[3] == 8);
    /* What is added to the sums has no more channels than there are. */
    ck_assert(!rewritten_on(&lengthen_channels_of_rows, "input x[3, 13, 20, 30] : f16  input d[3, 10, 20, 30] : f16  "
                            "input b[10] : f16  t[f, c, r:3, s:3] = " ODD_GRADIENT
                            "w[f, c, r, s] = t[f, c, r, s] + b[f]  output w : f16", "h200"));
}
END_TEST

START_TEST(others_are_not_turned)
{
    static const char *const others[] = {
        IMAGES "y[n, h:20, v:30, f] = " SUM("h + r - 1", "v + s - 1"),   // pixels as they are
        "input a[256, 512] : f16  input b[512, 256] : f16  y[i, j] = sum[k](a[i, k] * b[k, j])  output y : "
        "f16",
        "input x[3, 64, 20, 31] : f16  input w[72, 64] : f16  y[n, f, p, q] = sum[c](x[n, c, p, q] * w[f, "
        "c])  output y : f16",
        "input x[3, 64, 20, 30] : f16  input w[64, 3, 3] : f16  y[n, c, h:20, v:30] = "
        "sum[r, s](pad(x[n, c, h + r - 1, v + s - 1], 0) * w[c, r, s])  output y : f16",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!turned_on(others[i], "h200"), "%s", others[i]);
}
END_TEST

#define GRADIENT "input x[3, 20, 30, 128] : f16  input d[3, 10, 15, 72] : f16  "
#define GRADIENT_SUM "sum[v, n, h](d[n, h, v, f] * pad(x[n, 2*h + r - 1, 2*v + s, c], 0))  output w : f16"

START_TEST(pixels_are_k_of_a_filters_gradient)
{
    Im2col of;
    ck_assert(finds(GRADIENT "w[f, r:3, s:2, c] = " GRADIENT_SUM, &of));
    ck_assert(of.factor == 1 && of.pixels == GROUP_K && of.seen == GROUP_N && of.outputs.extent == 450);
    /* The corners of the convolution itself, whose taps these are: 15 outputs two apart end at 28 of 30. */
    ck_assert(of.lower[0] == -1 && of.upper[0] == 18 - 20 && of.lower[1] == 0 && of.upper[1] == 29 - 30);
    ck_assert(of.walk.axis[0].stride == 2 && of.walk.axis[0].dilation == 1 && of.walk.tap_step[0] == 2);
    /* Where filters are innermost, rows are the first factor's. */
    ck_assert(finds(GRADIENT "w[r:3, s:2, c, f] = " GRADIENT_SUM, &of));
    ck_assert(of.factor == 0 && of.seen == GROUP_M);
}
END_TEST

START_TEST(other_gradients_are_left_alone)
{
    Im2col of;
    static const char *const others[] = {
        /* Channels are not innermost; a box would hold those of two taps; elements are not turned. */
        GRADIENT "w[f, c, r:3, s:2] = " GRADIENT_SUM,
        "input x[3, 20, 30, 72] : f16  input d[3, 20, 30, 64] : f16  w[f, r:3, s:3, c] = "
        "sum[n, h, v](d[n, h, v, f] * pad(x[n, h + r - 1, v + s - 1, c], 0))  output w : f16",
        "input x[3, 20, 30, 128] : i8  input d[3, 20, 30, 128] : i8  w[f, r:3, s:3, c] = "
        "sum[n, h, v](d[n, h, v, f] * pad(x[n, h + r - 1, v + s - 1, c], 0))  output w",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!finds(others[i], &of), "%s", others[i]);
}
END_TEST

/* 450 pixels are eight steps of 64, so there are no more parts, though three tiles of 256 columns leave room for 44. */
START_TEST(parts_begin_at_any_pixel)
{
    const Target target = {.device = device_read(arena, "h200"), .math = EVAL_EXACT};
    const Fusion *fusion = fusion_of(GRADIENT "w[f, r:3, s:2, c] = " GRADIENT_SUM);
    const Rewritten *parts = parts_of_square_tiles.make(arena, product_view(arena, fusion, &target), fusion, &target);
    ck_assert(!parts);   // as many as of wider tiles
    parts = parts_of_wide_tiles.make(arena, product_view(arena, fusion, &target), fusion, &target);
    ck_assert(parts && parts->before_count == 0 && parts->behind_count == 1);
    const Products *view = product_view(arena, parts->main, &target);
    ck_assert(view && view->boxed && !view->tiled && !view->skinny);
    ck_assert(view->boxed->share.chunk == 64 && view->boxed->group[GROUP_BATCH].extent == 8 &&
              view->boxed->group[GROUP_K].extent == 64);
    ck_assert(!parts_of_wide_tiles.make(arena, view, parts->main, &target));   // of parts there are none
}
END_TEST

#define PHASED "input d[3, 20, 30, 64] : f16  input w[64, 3, 3, 128] : f16  "

START_TEST(each_phase_has_taps_of_its_own)
{
    const Product *product =
        boxed_of(PHASED "x[n, h:20, a:2, v:30, b:2, c] = sum[p:2, q:2, f](pad(d[n, h + p, v + q, f], 0) * "
                        "pad(w[f, a - 2*p + 1, b - 2*q + 1, c], 0))  output x : f16");
    ck_assert(product && product->phased);
    const TapPhases *phases = &product->phased->phases;
    ck_assert(phases->count == 4 && phases->columns == 128 && phases->taps == 4 && phases->channels == 64);
    int taps = 0;
    for (int p = 0; p < 4; p++)
        taps += tap_count(phases->used[p]);
    ck_assert(taps == 9 && tap_count(phases->used[0]) == 1 && tap_count(phases->used[3]) == 4);
    ck_assert(tap_count(phases_used(phases, 0, 128)) == 1 && tap_count(phases_used(phases, 64, 128)) == 2);
    ck_assert_int_eq(phases_extent(phases, 1, 64), 9 * 64 / 4);
    ck_assert_int_eq(phases_extent(phases, 48, 64), 9 * 96 / 4);   // of a tap two steps
    ck_assert_int_eq(phases_extent(phases, 1, 256), (2 + 4) * 64 / 2);   // a tile has the taps of two phases
    /* Phase (1, 1) under tap (0, 0) is row 2, column 2 of the filter. */
    bool found = false;
    for (int tap = 0; tap < 4; tap++)
        found |= phases->offsets[3 * 4 + tap] == (2 * 3 + 2) * 128;
    ck_assert(found);
    /* A tile has all 72 columns of a phase; of 40 it would be less than a box. */
    ck_assert(boxed_of("input d[3, 20, 30, 64] : f16  input w[64, 3, 3, 72] : f16  x[n, h:20, a:2, v:30, b:2, c] = "
                       "sum[p:2, q:2, f](pad(d[n, h + p, v + q, f], 0) * pad(w[f, a - 2*p + 1, b - 2*q + 1, c], 0))  "
                       "output x : f16"));
    ck_assert(!boxed_of("input d[3, 20, 30, 64] : f16  input w[64, 3, 3, 40] : f16  x[n, h:20, a:2, v:30, b:2, c] = "
                        "sum[p:2, q:2, f](pad(d[n, h + p, v + q, f], 0) * pad(w[f, a - 2*p + 1, b - 2*q + 1, c], 0))  "
                        "output x : f16"));
}
END_TEST

/* Both factors of a filter's gradient, and parts of its pixels. */
START_TEST(gradients_of_planes_are_turned)
{
    const Rewritten *turned =
        turned_on("input x[8, 64, 20, 30] : f16  input d[8, 72, 20, 30] : f16  w[f, c, r:3, s:3] = "
                  "sum[n, h, v](d[n, f, h, v] * pad(x[n, c, h + r - 1, v + s - 1], 0))  output w : f16", "h200");
    ck_assert(turned && turned->before_count == 2 && turned->behind_count == 2);
    const Tensor *parts = turned->main->outputs[0], *w = turned->behind[0]->outputs[0];
    ck_assert(parts->rank == 5 && parts->shape[1] == 72 && parts->shape[2] == 3 && parts->shape[4] == 64);
    ck_assert(w->rank == 4 && w->shape[0] == 72 && w->shape[1] == 3 && w->shape[3] == 64);
    /* Of 1x1 both are images, and what is made has the second one's channels last already. */
    turned = turned_on("input x[8, 64, 14, 14] : f16  input d[8, 72, 14, 14] : f16  w[f, c] = "
                       "sum[n, h, v](d[n, f, h, v] * x[n, c, h, v])  output w : f16", "h200");
    ck_assert(turned && turned->before_count == 2 && turned->behind_count == 0);
    turned = turned_on("input d[3, 64, 20, 30] : f16  input w[64, 128, 3, 3] : f16  "
                       "x[n, c, h:20, a:2, v:30, b:2] = sum[p:2, q:2, f](pad(d[n, f, h + p, v + q], 0) * "
                       "pad(w[f, c, a - 2*p + 1, b - 2*q + 1], 0))  output x : f16", "h200");
    ck_assert(turned && turned->before_count == 2 && turned->behind_count == 1);
    const Tensor *x = turned->main->outputs[0];
    ck_assert(x->rank == 6 && x->shape[2] == 2 && x->shape[4] == 2 && x->shape[5] == 128);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("im2col");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, corners_follow_from_the_outputs);
    tcase_add_test(tests, taps_are_counted_as_the_filter_has_them);
    tcase_add_loop_test(tests, what_the_hardware_takes, 0, sizeof LIMITS / sizeof *LIMITS);
    tcase_add_test(tests, others_are_left_alone);
    tcase_add_test(tests, pixels_are_columns);
    tcase_add_test(tests, images_are_batches);
    tcase_add_test(tests, positions_of_pixels);
    tcase_add_test(tests, pixels_are_counted_once);
    tcase_add_test(tests, pixels_are_k_of_a_filters_gradient);
    tcase_add_test(tests, other_gradients_are_left_alone);
    tcase_add_test(tests, parts_begin_at_any_pixel);
    tcase_add_test(tests, each_phase_has_taps_of_its_own);
    tcase_add_test(tests, gradients_of_planes_are_turned);
    tcase_add_test(tests, planes_are_turned_to_pixels);
    tcase_add_test(tests, factors_alone_are_turned);
    tcase_add_test(tests, groups_and_odd_channels_are_turned);
    tcase_add_test(tests, phases_without_windows_are_turned);
    tcase_add_test(tests, planes_by_phase_are_columns);
    tcase_add_test(tests, channels_end_with_a_piece);
    tcase_add_test(tests, channels_of_gradients_end_with_a_piece);
    tcase_add_test(tests, others_are_not_turned);
    Suite *suite = suite_create("im2col");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
