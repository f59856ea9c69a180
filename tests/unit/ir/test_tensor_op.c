// Affine forms and the small facts about tensors.
#include "build.h"

/* 2*oh + kh over the axes (oh, kh) */
static Affine strided(void)
{
    Affine form = affine_constant(0);
    form.coef[0] = 2;
    form.coef[1] = 1;
    return form;
}

START_TEST(a_tile_of_4_rows_and_3_taps_reaches_over_9_elements)
{
    Affine form = strided();
    ck_assert_int_eq(affine_extent(&form, (int64_t[]){4, 3}, 2), 9);   // 2*(4-1) + 1*(3-1) + 1
    form.coef[0] = -2;                                                 // flipped: as far
    ck_assert_int_eq(affine_extent(&form, (int64_t[]){4, 3}, 2), 9);
    ck_assert_int_eq(affine_extent(&form, (int64_t[]){1, 1}, 2), 1);
    form.coef[0] = INT64_MAX / 4;   // 31 such steps are no tensor's
    ck_assert_int_eq(affine_extent(&form, (int64_t[]){32, 3}, 2), (int64_t)1 << 62);
}
END_TEST

START_TEST(a_form_ranges_over_its_box)
{
    int64_t low, high;
    Affine form = strided();
    form.constant = -3;
    form.coef[1] = -1;
    ck_assert(affine_range(&form, (int64_t[]){5, 3}, 2, &low, &high));   // 2*[0,4] - [0,2] - 3
    ck_assert_int_eq(low, -5);
    ck_assert_int_eq(high, 5);
    form.coef[0] = INT64_MAX;
    ck_assert(!affine_range(&form, (int64_t[]){5, 3}, 2, &low, &high));
}
END_TEST

START_TEST(substitution_replaces_each_axis)
{
    /* oh = 4*a + b + 1, kh = c: 2*oh + kh + 5 = 8*a + 2*b + c + 7 */
    Affine form = strided(), forms[2] = {affine_axis(0), affine_axis(2)};
    form.constant = 5;
    forms[0].coef[0] = 4;
    forms[0].coef[1] = 1;
    forms[0].constant = 1;
    Affine result = affine_substitute(&form, forms, 2);
    ck_assert_int_eq(result.coef[0], 8);
    ck_assert_int_eq(result.coef[1], 2);
    ck_assert_int_eq(result.coef[2], 1);
    ck_assert_int_eq(result.constant, 7);
}
END_TEST

START_TEST(single_axes_and_constants_are_recognised)
{
    Affine axis = affine_axis(3), form = strided(), constant = affine_constant(7);
    ck_assert_int_eq(affine_single_axis(&axis), 3);
    ck_assert_int_eq(affine_single_axis(&form), -1);
    ck_assert_int_eq(affine_single_axis(&constant), -1);
    ck_assert(affine_is_constant(&constant) && !affine_is_constant(&axis));
    axis.constant = 1;
    ck_assert_int_eq(affine_single_axis(&axis), -1);
}
END_TEST

START_TEST(an_access_is_one_flat_offset)
{
    /* x[5][7] at [2*oh + kh - 1, c]: 7*(2*oh + kh - 1) + c */
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 5, 7);
    Affine row = strided();
    row.constant = -1;
    Expr *access = build_access(build, x, (Affine[]){row, affine_axis(2)});
    Affine offset = access_offset(&access->access);
    ck_assert_int_eq(offset.coef[0], 14);
    ck_assert_int_eq(offset.coef[1], 7);
    ck_assert_int_eq(offset.coef[2], 1);
    ck_assert_int_eq(offset.constant, -7);
    build_free(build);
}
END_TEST

START_TEST(b1_takes_whole_words)
{
    ck_assert_int_eq(dtype_bytes(DTYPE_B1, 1), 4);
    ck_assert_int_eq(dtype_bytes(DTYPE_B1, 32), 4);
    ck_assert_int_eq(dtype_bytes(DTYPE_B1, 33), 8);
    ck_assert_int_eq(dtype_bytes(DTYPE_BF16, 3), 6);
    ck_assert_int_eq(dtype_bytes(DTYPE_F64, (int64_t)1 << 40), (int64_t)1 << 43);
}
END_TEST

START_TEST(a_scalar_has_one_element)
{
    Build *build = build_new();
    ck_assert_int_eq(tensor_elements(build_tensor(build, ROLE_INPUT, DTYPE_F32, 0, NULL)), 1);
    ck_assert_int_eq(tensor_bytes(INPUT(build, DTYPE_F16, 3, 5)), 30);
    build_free(build);
}
END_TEST

START_TEST(a_reduction_starts_from_its_identity)
{
    Build *build = build_new();
    Arena *arena = build->arena;
    ck_assert(reduce_identity(arena, REDUCE_SUM, DTYPE_F32)->constant.real == 0);
    ck_assert(reduce_identity(arena, REDUCE_PROD, DTYPE_F64)->constant.real == 1);
    ck_assert(reduce_identity(arena, REDUCE_MAX, DTYPE_F32)->constant.real == -INFINITY);
    ck_assert(reduce_identity(arena, REDUCE_MIN, DTYPE_F32)->constant.real == INFINITY);
    ck_assert(reduce_identity(arena, REDUCE_MAX, DTYPE_I32)->constant.integer == INT32_MIN);
    ck_assert(reduce_identity(arena, REDUCE_MIN, DTYPE_I64)->constant.integer == INT64_MAX);
    ck_assert(reduce_identity(arena, REDUCE_PROD, DTYPE_I32)->constant.integer == 1);
    build_free(build);
}
END_TEST

START_TEST(substitution_in_a_tree_leaves_the_original_alone)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 8);
    Expr *body = build_op(build, OP_ADD, AT(build, x, 0), build_const(build, DTYPE_F32, 2), NULL);
    Affine shifted = affine_axis(1);
    shifted.constant = 3;
    Expr *copy = expr_substitute(build->arena, body, &shifted, 1);
    StrBuf text = strbuf_new(build->arena);
    Axis axes[] = {{"i", 8, false}, {"j", 5, false}};
    expr_print(&text, body, axes, 2);
    strbuf_puts(&text, " | ");
    expr_print(&text, copy, axes, 2);
    ck_assert_str_eq(text.text, "add(t[i], 2) | add(t[j + 3], 2)");
    ck_assert_int_eq(expr_size(body), 3);
    build_free(build);
}
END_TEST

START_TEST(a_cast_to_the_own_type_is_nothing)
{
    Build *build = build_new();
    Expr *body = build_const(build, DTYPE_F32, 1);
    ck_assert_ptr_eq(expr_cast(build->arena, DTYPE_F32, body), body);
    Expr *half = expr_cast(build->arena, DTYPE_F16, body);
    ck_assert(half->type == DTYPE_F32 && half->cast.to == DTYPE_F16);
    build_free(build);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_tile_of_4_rows_and_3_taps_reaches_over_9_elements);
    tcase_add_test(tests, a_form_ranges_over_its_box);
    tcase_add_test(tests, substitution_replaces_each_axis);
    tcase_add_test(tests, single_axes_and_constants_are_recognised);
    tcase_add_test(tests, an_access_is_one_flat_offset);
    tcase_add_test(tests, b1_takes_whole_words);
    tcase_add_test(tests, a_scalar_has_one_element);
    tcase_add_test(tests, a_reduction_starts_from_its_identity);
    tcase_add_test(tests, substitution_in_a_tree_leaves_the_original_alone);
    tcase_add_test(tests, a_cast_to_the_own_type_is_nothing);
}

int main(void)
{
    return build_run("tensor_op", add);
}
