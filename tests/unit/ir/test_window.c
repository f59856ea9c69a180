// Windows of y[n:2, h:5, v:6] = sum[r:3, s:2](pad(x[n, 2*h + 3*r - 1, v + s], 0) * w[r, s]).
#include "build.h"
#include "ir/window.h"

enum { N, H, V, R, S };

static const Fusion fusion = {
    .axes = {{.extent = 2}, {.extent = 5}, {.extent = 6}, {.extent = 3}, {.extent = 2}}, .axis_count = 5, .spatial_count = 3};

static Affine form(int64_t constant, int64_t h, int64_t v, int64_t r, int64_t s)
{
    return (Affine){.constant = constant, .coef = {[H] = h, [V] = v, [R] = r, [S] = s}};
}

static bool find(Affine index, WindowAxis *axis) { return window_find(&fusion, &(Dim){index, 14}, axis); }

START_TEST(an_output_and_a_tap_meet)
{
    WindowAxis axis;
    ck_assert(find(form(-1, 2, 0, 3, 0), &axis));
    ck_assert(axis.output == H && axis.tap == R && axis.outputs == 5 && axis.taps == 3 && axis.inputs == 14);
    ck_assert(axis.stride == 2 && axis.dilation == 3 && axis.pad == 1);
    ck_assert(!window_is_dense(&axis));
    ck_assert(find(form(0, 0, 1, 0, 1), &axis) && window_is_dense(&axis));
}
END_TEST

START_TEST(without_a_tap_there_is_one)
{
    WindowAxis axis;
    ck_assert(find(form(2, -1, 0, 0, 0), &axis));
    ck_assert(axis.tap == -1 && axis.taps == 1 && axis.stride == -1 && axis.dilation == 1 && axis.pad == -2);
}
END_TEST

START_TEST(others_are_no_windows)
{
    WindowAxis axis;
    ck_assert(!find(form(0, 0, 0, 1, 0), &axis));   // no output's position
    ck_assert(!find(form(0, 6, 1, 1, 0), &axis));   // two of them
    ck_assert(!find(form(0, 1, 0, 2, 1), &axis));   // two taps
}
END_TEST

START_TEST(one_window_stands)
{
    WindowAxis axis;
    ck_assert(window_find_standing(&fusion, &(Dim){form(-1, 0, 0, 3, 0), 14}, &axis));
    ck_assert(axis.output == -1 && axis.outputs == 1 && axis.stride == 1 && axis.tap == R && axis.taps == 3);
    ck_assert(axis.dilation == 3 && axis.pad == 1 && axis.inputs == 14);
    ck_assert(window_find_standing(&fusion, &(Dim){form(-1, 2, 0, 3, 0), 14}, &axis) && axis.output == H);
    ck_assert(!window_find_standing(&fusion, &(Dim){form(0, 6, 1, 1, 0), 14}, &axis));
}
END_TEST

START_TEST(outputs_and_taps_change_places)
{
    WindowAxis axis, other;
    ck_assert(find(form(-1, 2, 0, 3, 0), &axis));
    other = window_exchanged(&axis);
    ck_assert(other.output == R && other.tap == H && other.outputs == 3 && other.taps == 5);
    ck_assert(other.stride == 3 && other.dilation == 2 && other.pad == 1 && other.inputs == 14);
    ck_assert_int_eq(window_pairs_inside(&other), window_pairs_inside(&axis));
}
END_TEST

/* sum[r](x[h + r] * w[r]) and sum[r](w[r]) of so many taps. */
static bool has_tap(bool beside, int64_t taps)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 5 + taps), *w = INPUT(build, DTYPE_F32, taps);
    Affine window = {.coef = {1, 1}};
    Expr *body = beside ? build_op(build, OP_MUL, build_access(build, x, &window), AT(build, w, 1), NULL)
                        : AT(build, w, 1);
    FusedOp sum = {.out = x, .reduce = REDUCE_SUM, .spatial = 1, .reduced = 2, .body = body};
    Fusion reduction = {.axes = {{.extent = 5}, {.extent = taps, .reduction = true}},
                        .axis_count = 2, .spatial_count = 1, .ops = &sum, .op_count = 1};
    bool found = window_has_tap(&reduction, 1);
    build_free(build);
    return found;
}

START_TEST(taps_are_short_and_stand_beside_outputs)
{
    ck_assert(has_tap(true, 3) && has_tap(true, 64));
    ck_assert(!has_tap(true, 65));   // a share of a split sum looks the same
    ck_assert(!has_tap(false, 3));
}
END_TEST

START_TEST(guards_of_dimensions_are_told_from_others)
{
    Build *build = build_new();
    Dim dims[] = {{affine_axis(N), 2}, {form(-1, 2, 0, 3, 0), 14}};
    Access access = {.tensor = INPUT(build, DTYPE_F32, 2, 14), .rank = 2, .dims = dims};
    Dim shorter = {dims[1].index, 13};
    ck_assert(window_guards(&(Guard){.count = 2, .bounds = dims}, &access));
    ck_assert(window_guards(&(Guard){.count = 1, .bounds = &dims[1]}, &access));
    ck_assert(!window_guards(&(Guard){.count = 1, .bounds = &shorter}, &access));
    build_free(build);
}
END_TEST

START_TEST(pairs_inside_are_counted)
{
    /* Each of 32 outputs meets inputs h - 15 to h + 15 of 32: 16, 17, … 31, 32 - 1 … : 2 * (16 + … + 31) = 752. */
    WindowAxis axis = {.outputs = 32, .taps = 31, .inputs = 32, .stride = 1, .dilation = 1, .pad = 15};
    ck_assert_int_eq(window_pairs_inside(&axis), 752);
    ck_assert_int_eq(window_reach(&axis, 4), 34);
    ck_assert_int_eq(window_open(&axis), 31);
    /* Outputs 0 to 7 need taps 8 to 30 between them, the next eight all 31, and the last ones as many as the first. */
    ck_assert_int_eq(window_pairs_together(&axis, 8), 8 * (23 + 31 + 31 + 23));
    ck_assert_int_eq(window_pairs_together(&axis, 1), 752);
    /* Stride 2, dilation 3, pad 3: output i meets 2i - 3, 2i, 2i + 3 of 7; of 4 outputs 1 + 1 + … : */
    axis = (WindowAxis){.outputs = 4, .taps = 3, .inputs = 7, .stride = 2, .dilation = 3, .pad = 3};
    ck_assert_int_eq(window_pairs_inside(&axis), 2 + 4 + 2);   // i = 2, 3; all; 0, 1
    ck_assert_int_eq(window_reach(&axis, 4), 13);
    ck_assert_int_eq(window_open(&axis), 4);
    /* Input that no window reaches, on either side. */
    axis = (WindowAxis){.outputs = 4, .taps = 3, .inputs = 2, .stride = 1, .dilation = 1, .pad = -5};
    ck_assert_int_eq(window_pairs_inside(&axis), 0);
    axis.pad = 9;
    ck_assert_int_eq(window_pairs_inside(&axis), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, an_output_and_a_tap_meet);
    tcase_add_test(tests, without_a_tap_there_is_one);
    tcase_add_test(tests, others_are_no_windows);
    tcase_add_test(tests, one_window_stands);
    tcase_add_test(tests, outputs_and_taps_change_places);
    tcase_add_test(tests, taps_are_short_and_stand_beside_outputs);
    tcase_add_test(tests, guards_of_dimensions_are_told_from_others);
    tcase_add_test(tests, pairs_inside_are_counted);
}

int main(void) { return build_run("window", add); }
