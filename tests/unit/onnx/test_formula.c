// What an expression of the importer does with what it reads.
#include <check.h>
#include <stdlib.h>

#include "front/onnx/formula.h"

static FormulaKind kind(const char *expr) { return formula_kind(expr, 65504); }

START_TEST(moves_choose_elements)
{
    ck_assert_int_eq(kind("x[i, 2*j + 1]"), FORMULA_MOVE);
    ck_assert_int_eq(kind("pad(x[i, j - 1], (-inf))"), FORMULA_MOVE);
    ck_assert_int_eq(kind("select(j < 3, pad(x[i, j], 0), pad(y[i, j - 3], 0))"), FORMULA_MOVE);
    ck_assert_int_eq(kind("select(m[i] == 0 && i < 2, 0.0, x[at[i] + 1])"), FORMULA_MOVE);
    ck_assert_int_eq(kind("max[r:3, s:3](pad(x[2*h + r, s], -inf))"), FORMULA_MOVE);
    ck_assert_int_eq(kind("-x[i]"), FORMULA_POINT);
    ck_assert_int_eq(kind("max(x[i], 0)"), FORMULA_POINT);
    ck_assert_int_eq(kind("x[i] * 2.0"), FORMULA_POINT);
}
END_TEST

START_TEST(products_are_of_different_elements)
{
    ck_assert_int_eq(kind("sum[k:4](a[i, k] * b[k, j]) + c[j]"), FORMULA_PRODUCT);
    ck_assert_int_eq(kind("sum[k:4](a[i, k] * a[j, k])"), FORMULA_PRODUCT);
    ck_assert_int_eq(kind("2.0 * sum[k:4, r:3](pad(x[n, k, h + r], 0) * w[f, k, r])"), FORMULA_PRODUCT);
    ck_assert_int_eq(kind("sum[k:4](x[k] * x[k])"), FORMULA_FINE);
    ck_assert_int_eq(kind("sum[k:1](a[i, k] * b[k, j])"), FORMULA_FINE);
    ck_assert_int_eq(kind("sum[r:9](sq(x[i, r])) / 9"), FORMULA_FINE);
}
END_TEST

START_TEST(functions_and_large_numbers_are_fine)
{
    ck_assert_int_eq(kind("exp(x[i] - m[0])"), FORMULA_FINE);
    ck_assert_int_eq(kind("select(c[i], x[i], (-1e+09))"), FORMULA_FINE);
    ck_assert_int_eq(kind("x[i + 100000]"), FORMULA_MOVE);
    ck_assert_int_eq(kind("x[i] + 1e-12"), FORMULA_POINT);
    ck_assert_int_eq(kind("min(max(x[i], 0.0), 6.0)"), FORMULA_POINT);
}
END_TEST

START_TEST(an_access_keeps_its_type)
{
    ck_assert(formula_is_access("x[i, j]"));
    ck_assert(formula_is_access("pad(x[i, j - 1], 0)"));
    ck_assert(!formula_is_access("x[i] + x[j]"));
    ck_assert(!formula_is_access("max[r:3](x[r])"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("formula");
    TCase *tests = tcase_create("formula");
    const TTest *const all[] = {moves_choose_elements, products_are_of_different_elements, functions_and_large_numbers_are_fine,
                                an_access_keeps_its_type};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tcase_add_test(tests, all[i]);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
