// What the analysis of depthwise convolutions sees in expressions, all axes turned forwards.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/family/depthwise/turn.h"
#include "codegen/family/depthwise/view.h"
#include "codegen/family/depthwise/windows.h"
#include "front/lower.h"
#include "front/parse.h"

static Arena *arena;

static void setup(void) { arena = arena_new(); }

static void teardown(void) { arena_free(arena); }

/* The shape of the text's first kernel; false: it has none. */
static bool find(const char *text, Depthwise *shape)
{
    const Source *source = source_from_text(arena, "case.te", text, strlen(text));
    FusionPlans plans = fuse(arena, lower(arena, parse(arena, lex(arena, source)), NULL, 0));
    return depthwise_find(plans.plans[0].fusions[0], shape);
}

/* The text's first kernel between copies; NULL: it needs none. */
static const Rewritten *turn(const char *text)
{
    const Source *source = source_from_text(arena, "case.te", text, strlen(text));
    FusionPlans plans = fuse(arena, lower(arena, parse(arena, lex(arena, source)), NULL, 0));
    const Fusion *fusion = plans.plans[0].fusions[0];
    const Target target = {.device = device_read(arena, "h200"), .math = EVAL_EXACT};
    const void *view = depthwise_view(arena, fusion, &target);
    return view ? turn_images.make(arena, view, fusion, &target) : NULL;
}

static void expect_shape(const Tensor *tensor, const char *name, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t shape[] = {a, b, c, d};
    ck_assert_str_eq(tensor->name, name);
    ck_assert_int_eq(tensor->rank, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(tensor->shape[i], shape[i]);
}

/* The program's plan in which windows slide side by side; NULL: it has none. */
static const FusionPlan *plan_beside(const char *text)
{
    const Source *source = source_from_text(arena, "case.te", text, strlen(text));
    FusionPlans plans = fuse(arena, lower(arena, parse(arena, lex(arena, source)), NULL, 0));
    const FusionPlan *last = &plans.plans[plans.count - 1];
    return strcmp(last->name, "beside") == 0 ? last : NULL;
}

static void expect_axis(const WindowAxis *axis, int64_t outputs, int64_t taps, int64_t inputs, int64_t stride, int64_t dilation,
                        int64_t first)
{
    ck_assert_int_eq(axis->outputs, outputs);
    ck_assert_int_eq(axis->taps, taps);
    ck_assert_int_eq(axis->inputs, inputs);
    ck_assert_int_eq(axis->stride, stride);
    ck_assert_int_eq(axis->dilation, dilation);
    ck_assert_int_eq(-axis->pad, first);
}

static void expect_strides(const WindowAxis *axis, int64_t x_stride, int64_t w_stride)
{
    ck_assert_int_eq(axis->x_stride, x_stride);
    ck_assert_int_eq(axis->w_stride, w_stride);
}

static void expect_extents(const Depthwise *shape, int64_t batch, int64_t channel, int64_t multiplier, int64_t summed)
{
    ck_assert_int_eq(shape->batch.extent, batch);
    ck_assert_int_eq(shape->channel.extent, channel);
    ck_assert_int_eq(shape->multiplier.extent, multiplier);
    ck_assert_int_eq(shape->summed.extent, summed);
}

#define NHWC_IMAGE "input x[4, 10, 12, 6] : f16\ninput w[3, 3, 6] : f16\ninput b[6] : f32\ninput z[4, 10, 12, 6] : f16\n"
#define NHWC_SUMS "sum[r, s](pad(x[n, h + r - 1, v + s - 1, c], 0) * w[r, s, c])"

/* Neighbours along columns lie side by side then, as a bias does not ask for anything else. */
START_TEST(images_of_channels_are_turned_and_results_back)
{
    const Rewritten *turned = turn(NHWC_IMAGE "y[n, h:10, v:12, c] = relu(" NHWC_SUMS " + b[c])\noutput y : f16\n");
    ck_assert(turned && turned->before_count == 1 && turned->behind_count == 1 && turned->definition_count == 2);
    expect_shape(turned->before[0]->outputs[0], "x.turned", 4, 6, 10, 12);
    expect_shape(turned->main->outputs[0], "y.turned", 4, 6, 10, 12);
    ck_assert_str_eq(turned->behind[0]->outputs[0]->name, "y");
    Depthwise shape;
    ck_assert(depthwise_find(turned->main, &shape) && shape.image[1].x_stride == 1 && shape.image[0].x_stride == 12);
}
END_TEST

/* z is read where y is written, as it lies. */
START_TEST(a_residual_stays_with_who_turns_the_sums_back)
{
    const Rewritten *turned =
        turn(NHWC_IMAGE "y[n, h:10, v:12, c] = " NHWC_SUMS " + z[n, h, v, c]\noutput y : f16\n");
    ck_assert(turned && turned->behind_count == 1 && turned->main->op_count == 1);
    ck_assert_int_eq(turned->main->outputs[0]->dtype, DTYPE_F32);   // not rounded before z is added
    ck_assert_int_eq(turned->behind[0]->input_count, 2);           // the sums and z
}
END_TEST

START_TEST(both_factors_of_a_filters_gradient_are_turned)
{
    const Rewritten *turned = turn("input x[4, 10, 12, 6] : f16\ninput dy[4, 10, 12, 6] : f16\n"
                                "dw[r:3, s:3, c] = sum[n, h, v](pad(x[n, h + r - 1, v + s - 1, c], 0) * dy[n, h, v, c])\n"
                                "output dw : f32\n");
    ck_assert(turned && turned->before_count == 2 && turned->behind_count == 0);
}
END_TEST

START_TEST(images_of_planes_are_not_turned)
{
    ck_assert_ptr_null(turn("input x[4, 6, 10, 12] : f16\ninput w[6, 3, 3] : f16\n"
                            "y[n, c, h:10, v:12] = sum[r, s](pad(x[n, c, h + r - 1, v + s - 1], 0) * w[c, r, s])\n"
                            "output y : f16\n"));
}
END_TEST

START_TEST(forward_with_a_multiplier_stride_and_dilation)
{
    Depthwise shape;
    ck_assert(find("input x[4, 6, 33, 35] : f16\ninput w[6, 2, 5, 3] : f16\n"
                   "y[n, c, m, h:17, v:18] = sum[r, s](pad(x[n, c, 2*h + r - 2, 2*v + 3*s - 3], 0) * w[c, m, r, s])\noutput y\n",
                   &shape));
    expect_extents(&shape, 4, 6, 2, 1);
    ck_assert_int_eq(shape.image_count, 2);
    expect_axis(&shape.image[0], 17, 5, 33, 2, 1, -2);
    expect_axis(&shape.image[1], 18, 3, 35, 2, 3, -3);
    expect_strides(&shape.image[0], 35, 3);
    expect_strides(&shape.image[1], 1, 1);
    ck_assert_int_eq(shape.x_origin, 0);   // the padding is the axes' own
    ck_assert_int_eq(shape.w_origin, 0);
}
END_TEST

START_TEST(channels_last_and_factors_in_the_other_order)
{
    Depthwise shape;
    ck_assert(find("input x[4, 32, 30, 6] : f32\ninput w[5, 3, 6] : f32\n"
                   "y[n, h:28, v:30, c] = sum[r, s](w[r, s, c] * pad(x[n, h + r, v + s - 1, c], 0))\noutput y\n",
                   &shape));
    expect_extents(&shape, 4, 6, 1, 1);
    expect_axis(&shape.image[0], 28, 5, 32, 1, 1, 0);
    expect_axis(&shape.image[1], 30, 3, 30, 1, 1, -1);
    expect_strides(&shape.image[0], 180, 18);
    expect_strides(&shape.image[1], 6, 6);
}
END_TEST

START_TEST(gradient_of_the_input_turns_the_filter)
{
    /* Tap k of 7, first along the axis, is r = 6 - k: h - r + 3 = h + k - 3. */
    Depthwise shape;
    ck_assert(find("input dy[4, 6, 32, 32] : f32\ninput w[6, 7, 7] : f32\n"
                   "dx[n, c, h:32, v:32] = sum[r, s](pad(dy[n, c, h - r + 3, v - s + 3], 0) * w[c, r, s])\noutput dx\n",
                   &shape));
    expect_axis(&shape.image[0], 32, 7, 32, 1, 1, -3);
    ck_assert(shape.image[0].taps_turned && !shape.image[0].input_turned);
    expect_strides(&shape.image[0], 32, -7);
    expect_strides(&shape.image[1], 1, -1);
    ck_assert_int_eq(shape.w_origin, 48);   // both last taps
    ck_assert_int_eq(shape.x_origin, 0);
}
END_TEST

START_TEST(input_that_is_read_backwards_is_turned)
{
    /* Position p' = 9 - p of 10: 9 - (9 - h - r) = h + r. */
    Depthwise shape;
    ck_assert(find("input x[4, 10] : f32\ninput w[3] : f32\n"
                   "y[n, h:8] = sum[r](x[n, 9 - h - r] * w[r])\noutput y\n",
                   &shape));
    expect_axis(&shape.image[0], 8, 3, 10, 1, 1, 0);
    ck_assert(shape.image[0].input_turned && !shape.image[0].taps_turned);
    expect_strides(&shape.image[0], -1, 1);
    ck_assert_int_eq(shape.x_origin, 9);
    expect_extents(&shape, 4, 1, 1, 1);
}
END_TEST

START_TEST(gradient_of_a_strided_input_has_a_filter_for_each_phase)
{
    Depthwise shape;
    ck_assert(find("input dy[4, 6, 16, 16] : f32\ninput w[6, 7, 7] : f32\n"
                   "dx[n, c, h:16, a:2, v:16, b:2] = "
                   "sum[r:4, s:4](pad(dy[n, c, h - r + 2, v - s + 2], 0) * pad(w[c, 2*r + a, 2*s + b], 0))\noutput dx\n",
                   &shape));
    expect_extents(&shape, 4, 6, 4, 1);
    ck_assert_str_eq(factor_access(shape.x)->tensor->name, "dy");
    expect_axis(&shape.image[0], 16, 4, 16, 1, 1, -1);
    expect_strides(&shape.image[0], 16, -14);
    expect_strides(&shape.image[1], 1, -2);
    ck_assert_int_eq(shape.w_origin, 3 * 14 + 3 * 2);
}
END_TEST

START_TEST(gradient_of_the_filter_has_pixels_for_taps)
{
    Depthwise shape;
    ck_assert(find("input dy[4, 6, 16, 18] : f32\ninput x[4, 6, 32, 36] : f32\n"
                   "dw[c, r:7, s:5] = sum[n, h, v](dy[n, c, h, v] * pad(x[n, c, 2*h + r - 3, 2*v + s - 2], 0))\noutput dw\n",
                   &shape));
    expect_extents(&shape, 1, 6, 1, 4);
    expect_axis(&shape.image[0], 7, 16, 32, 1, 2, -3);
    expect_axis(&shape.image[1], 5, 18, 36, 1, 2, -2);
    expect_strides(&shape.image[0], 36, 18);
}
END_TEST

#define IMAGE "input x[4, 6, 32, 32] : f32\ninput w[6, 7, 3] : f32\ninput u[6, 4, 3] : f16\n"
#define SUM "a[n, c, h:32, v:32] = sum[r, s](pad(x[n, c, h + r - 3, v + 3*s - 3], 0) * w[c, r, s])\n"

START_TEST(a_window_covers_those_of_all_filters)
{
    /* Down 7 taps from -3 on and 4 from 2 on: -3 … 5. Along 3 with gaps, -3 … 3, and 3 from -1 on between. */
    const FusionPlan *plan = plan_beside(
        IMAGE SUM "b[n, c, h:32, v:32] = sum[r, s](pad(x[n, c, h + r + 2, v + s - 1], 0) * u[c, r, s])\n"
                  "y[n, c, h, v] = a[n, c, h, v] * b[n, c, h, v]\noutput y\n");
    Windows windows;
    ck_assert(plan && plan->count == 1 && windows_find(plan->fusions[0], &windows));
    ck_assert_int_eq(windows.count, 2);
    ck_assert(windows_number(&windows, 1) == 1 && windows_number(&windows, 2) == -1);
    expect_axis(&windows.shape[1].image[0], 32, 4, 32, 1, 1, 2);
    expect_axis(&windows.shape[0].image[1], 32, 3, 32, 1, 3, -3);
    expect_axis(&windows.all.image[0], 32, 9, 32, 1, 1, -3);
    expect_axis(&windows.all.image[1], 32, 7, 32, 1, 1, -3);
}
END_TEST

START_TEST(one_filter_is_its_own_cover)
{
    const char *text = IMAGE SUM "output a\n";
    const Source *source = source_from_text(arena, "case.te", text, strlen(text));
    FusionPlans plans = fuse(arena, lower(arena, parse(arena, lex(arena, source)), NULL, 0));
    Windows windows;
    ck_assert(windows_find(plans.plans[0].fusions[0], &windows));
    expect_axis(&windows.all.image[1], 32, 3, 32, 1, 3, -3);
}
END_TEST

START_TEST(windows_that_stay_apart)
{
    const char *const others[] = {
        /* other inputs, what needs a, other points, no window */
        "b[n, c, h:32, v:32] = sum[r:4, s:3](pad(x[n, c, 2*h + r, v + s - 1], 0) * u[c, r, s])\n",
        "b[n, c, h:32, v:32] = sum[r, s](pad(x[n, c, h + r, v + s], 0) * u[c, r, s] * a[n, c, h, v])\n",
        "b[n, c, h:31, v:32] = sum[r, s](pad(x[n, c, h + r, v + s], 0) * u[c, r, s])\n",
        "b[n, c, h:32, v:32] = sum[r:4, s:3](x[n, c, r, s] * u[c, r, s] + h + v)\n",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_ptr_null(plan_beside(arena_printf(arena, IMAGE SUM "%soutput a\noutput b\n", others[i])));
}
END_TEST

START_TEST(maxima_beside_sums_are_no_filters)
{
    const FusionPlan *plan = plan_beside(
        IMAGE SUM
        "b[n, c, h:32, v:32] = max[r:3, s:3](pad(x[n, c, h + r - 1, v + s - 1], 0))\noutput a\noutput b\n");
    Windows windows;
    ck_assert(plan && plan->count == 1 && !windows_find(plan->fusions[0], &windows));
}
END_TEST

START_TEST(one_to_three_dimensions)
{
    Depthwise shape;
    ck_assert(find("input x[4, 6, 9, 10, 11] : f32\ninput w[6, 3, 3, 5] : f32\n"
                   "y[n, c, d:9, h:10, v:11] = sum[q, r, s]("
                   "pad(x[n, c, d + q - 1, h + r - 1, v + s - 2], 0) * w[c, q, r, s])\noutput y\n",
                   &shape));
    ck_assert_int_eq(shape.image_count, 3);
    expect_axis(&shape.image[2], 11, 5, 11, 1, 1, -2);
    expect_strides(&shape.image[0], 110, 15);
    /* A row of taps: lines of the image that are padded have one tap, others are a batch. */
    ck_assert(find("input x[4, 6, 10, 11] : f32\ninput w[6, 5] : f32\n"
                   "y[n, c, h:12, v:11] = sum[s](pad(x[n, c, h - 1, v + s - 2], 0) * w[c, s])\noutput y\n",
                   &shape));
    ck_assert_int_eq(shape.image_count, 2);
    expect_axis(&shape.image[0], 12, 1, 10, 1, 1, -1);
    expect_strides(&shape.image[0], 11, 0);
    ck_assert(find("input x[4, 6, 10, 11] : f32\ninput w[6, 5] : f32\n"
                   "y[n, c, h, v:7] = sum[s](x[n, c, h, v + s] * w[c, s])\noutput y\n",
                   &shape));
    ck_assert_int_eq(shape.image_count, 1);
    expect_extents(&shape, 40, 6, 1, 1);
}
END_TEST

START_TEST(dense_convolutions_sum_over_channels)
{
    Depthwise shape;
    ck_assert(find("input x[4, 6, 10, 11] : f32\ninput w[8, 6, 3, 3] : f32\n"
                   "y[n, f, h:8, v:9] = sum[c, r, s](x[n, c, h + r, v + s] * w[f, c, r, s])\noutput y\n",
                   &shape));
    expect_extents(&shape, 4, 1, 8, 6);
}
END_TEST

START_TEST(what_has_another_form_is_left_alone)
{
    Depthwise shape;
    static const char *const others[] = {
        "input a[8, 8] : f32\ninput b[8, 8] : f32\nc[i, j] = sum[k](a[i, k] * b[k, j])\noutput c\n",
        "input x[4, 10] : f32\ny[n, h:8] = sum[r:3](x[n, h + r])\noutput y\n",
        "input x[4, 10] : f32\ninput w[3] : f32\ny[n, h:8] = max[r](x[n, h + r] * w[r])\noutput y\n",
        "input x[4, 10] : f32\ninput w[3] : f32\ny[n, h:10] = sum[r](pad(x[n, h + r], 1) * w[r])\noutput y\n",
        "input x[4, 10] : f32\ninput w[8, 3] : f32\ny[n, h:8] = sum[r](x[n, h + r] * w[h, r])\noutput y\n",
        "input x[10, 10] : f32\ninput w[3] : f32\ny[i:8, j:8] = sum[r](x[i + r, j + r] * w[r])\noutput y\n",
        "input x[11] : f32\ninput w[3] : f32\ny[n:8, a:2] = sum[r](x[n + a + r] * w[r])\noutput y\n",
        "input x[4, 10] : f32\ninput w[3] : f32\ninput v[5] : f32\n"
        "y[n, h:8] = sum[r, q](x[n, h + r] * w[r] + v[q])\noutput y\n",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!find(others[i], &shape), "%s", others[i]);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("depthwise");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, images_of_channels_are_turned_and_results_back);
    tcase_add_test(tests, a_residual_stays_with_who_turns_the_sums_back);
    tcase_add_test(tests, both_factors_of_a_filters_gradient_are_turned);
    tcase_add_test(tests, images_of_planes_are_not_turned);
    tcase_add_test(tests, forward_with_a_multiplier_stride_and_dilation);
    tcase_add_test(tests, channels_last_and_factors_in_the_other_order);
    tcase_add_test(tests, gradient_of_the_input_turns_the_filter);
    tcase_add_test(tests, input_that_is_read_backwards_is_turned);
    tcase_add_test(tests, gradient_of_a_strided_input_has_a_filter_for_each_phase);
    tcase_add_test(tests, gradient_of_the_filter_has_pixels_for_taps);
    tcase_add_test(tests, a_window_covers_those_of_all_filters);
    tcase_add_test(tests, one_filter_is_its_own_cover);
    tcase_add_test(tests, windows_that_stay_apart);
    tcase_add_test(tests, maxima_beside_sums_are_no_filters);
    tcase_add_test(tests, one_to_three_dimensions);
    tcase_add_test(tests, dense_convolutions_sum_over_channels);
    tcase_add_test(tests, what_has_another_form_is_left_alone);
    Suite *suite = suite_create("depthwise");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
