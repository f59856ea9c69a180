// Groups of the axes of x[a:2, b:3, c:4], whose element (a, b, c) is 12*a + 4*b + c.
#include "build.h"
#include "ir/axis_group.h"

static const Fusion fusion = {
    .axes = {{.extent = 2}, {.extent = 3}, {.extent = 4}}, .axis_count = 3, .spatial_count = 3};
static const Affine offset = {.coef = {12, 4, 1}};

static AxisGroup group_of(const int *axes, int count)
{
    AxisGroup group = {.extent = 1};
    for (int i = 0; i < count; i++)
        axis_group_add(&group, &fusion, axes[i]);
    return group;
}

#define GROUP(...) group_of((const int[]){__VA_ARGS__}, (int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)))

START_TEST(a_group_is_as_long_as_its_axes_together)
{
    AxisGroup group = GROUP(0, 2);
    ck_assert_int_eq(group.extent, 2 * 4);
    ck_assert_int_eq(axis_group_innermost(&group), 2);
    ck_assert_uint_eq(axis_group_mask(&group), 5);
}
END_TEST

START_TEST(neighbours_are_a_stride_apart)
{
    AxisGroup rows = GROUP(0, 1), all = GROUP(0, 1, 2), none = {.extent = 1};
    ck_assert_int_eq(axis_group_stride(&rows, &offset), 4);   // from (0, 2) to (1, 0): 8 to 12
    ck_assert(axis_group_has_stride(&rows, &fusion, &offset, 4));
    ck_assert(!axis_group_has_stride(&rows, &fusion, &offset, 1));
    ck_assert(axis_group_has_stride(&all, &fusion, &offset, 1));
    ck_assert_int_eq(axis_group_stride(&none, &offset), 0);
}
END_TEST

START_TEST(axes_with_others_between_them_have_no_stride)
{
    AxisGroup group = GROUP(0, 2);   // from (0, 3) to (1, 0): 3 to 12
    ck_assert_int_eq(axis_group_stride(&group, &offset), 1);
    ck_assert(!axis_group_has_stride(&group, &fusion, &offset, 1));
}
END_TEST

START_TEST(what_does_not_move_has_the_stride_0)
{
    AxisGroup group = GROUP(1);
    ck_assert(axis_group_has_stride(&group, &fusion, &(Affine){.coef = {12, 0, 1}}, 0));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_group_is_as_long_as_its_axes_together);
    tcase_add_test(tests, neighbours_are_a_stride_apart);
    tcase_add_test(tests, axes_with_others_between_them_have_no_stride);
    tcase_add_test(tests, what_does_not_move_has_the_stride_0);
}

int main(void) { return build_run("axis_group", add); }
