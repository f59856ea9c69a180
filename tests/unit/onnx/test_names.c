#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "front/onnx/extents.h"
#include "front/onnx/graph.h"
#include "front/onnx/names.h"

static Arena *arena;

static void set_up(void) { arena = arena_new(); }
static void tear_down(void) { arena_free(arena); }

static const char *first_name(const char *name, const char *op)
{
    NameTable taken = name_table_new(arena);
    return names_take(&taken, name, op);
}

START_TEST(a_name_says_its_module)
{
    ck_assert_str_eq(first_name("/layer1/conv1/Conv_output_0", "Conv"), "layer1_conv1");
    ck_assert_str_eq(first_name("/layer1/bn/Conv_output_0", "Conv"), "layer1_bn_conv");
    ck_assert_str_eq(first_name("/Conv_output_0", "Conv"), "conv");
    ck_assert_str_eq(first_name("/query/MatMul_1_output_0", "MatMul"), "query_matmul_1");
    ck_assert_str_eq(first_name("/layer1/layer1.0/conv1/Conv_output_0", "Conv"), "layer1_0_conv1");
    ck_assert_str_eq(first_name("/layer1/layer10/conv1/Conv_output_0", "Conv"), "layer1_layer10_conv1");
    ck_assert_str_eq(first_name("/layer1/conv1/Conv_output_1", "Conv"), "layer1_conv1_conv_output_1");
}
END_TEST

START_TEST(what_is_no_name_becomes_one)
{
    ck_assert_str_eq(first_name("184", NULL), "v184");
    ck_assert_str_eq(first_name("a.b::c--d", NULL), "a_b_c_d");
    ck_assert_str_eq(first_name("", NULL), "v");
    ck_assert_str_eq(first_name("gr\xc3\xb6\xc3\x9f" "e", NULL), "gr_e");
}
END_TEST

START_TEST(words_and_index_variables_stay_free)
{
    ck_assert_str_eq(first_name("input", NULL), "input_");
    ck_assert_str_eq(first_name("weight", NULL), "weight_");
    ck_assert_str_eq(first_name("f16", NULL), "f16_");
    ck_assert_str_eq(first_name("k", NULL), "k_");
    ck_assert_str_eq(first_name("x", NULL), "x");
}
END_TEST

START_TEST(names_differ_and_are_short)
{
    char longest[201];
    memset(longest, 'a', 200);
    longest[200] = '\0';
    NameTable taken = name_table_new(arena);
    const char *first = names_take(&taken, longest, NULL), *second = names_take(&taken, longest, NULL);
    ck_assert_uint_le(strlen(second), 63);
    ck_assert_str_ne(first, second);
    for (int i = 0; i < 1000; i++)
        names_take(&taken, arena_printf(arena, "n%d", i), NULL);
    ck_assert_str_eq(names_take(&taken, "n7", NULL), "n7_2");
}
END_TEST

/* The expression without extents that follow, of x[4, 5] and w[3]. */
static const char *printed(const char *expr)
{
    NameTable shapes = name_table_new(arena);
    Dims x = {2, {4, 5}}, w = {1, {3}};
    name_table_set(&shapes, "x", &x);
    name_table_set(&shapes, "w", &w);
    StrBuf out = strbuf_new(arena);
    extents_print(&out, &shapes, expr);
    return out.text;
}

START_TEST(extents_that_follow_are_left_out)
{
    ck_assert_str_eq(printed("sum[r:3](x[i, j + r] * w[r])"), "sum[r](x[i, j + r] * w[r])");
    ck_assert_str_eq(printed("sum[r:3](x[i, j + r])"), "sum[r:3](x[i, j + r])");
    ck_assert_str_eq(printed("sum[r:4](x[r, 0]) + max[r:3](x[0, r])"), "sum[r](x[r, 0]) + max[r:3](x[0, r])");
    ck_assert_str_eq(printed("sum[r:4, s:5](x[r, s])"), "sum[r, s](x[r, s])");
    ck_assert_str_eq(printed("sum[r:3](x[w[r], 0])"), "sum[r](x[w[r], 0])");
    ck_assert_str_eq(printed("sum[r:3](x[r, r] + w[r])"), "sum[r:3](x[r, r] + w[r])");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("names");
    TCase *tests = tcase_create("names");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    const TTest *const all[] = {a_name_says_its_module, what_is_no_name_becomes_one, words_and_index_variables_stay_free,
                                names_differ_and_are_short, extents_that_follow_are_left_out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tcase_add_test(tests, all[i]);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
