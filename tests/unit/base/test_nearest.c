#include <check.h>
#include <stdlib.h>

#include "base/nearest.h"

static const char *nearest(const char *word)
{
    Nearest found = nearest_to(word);
    for (const char **known = (const char *[]){"input", "in", "output", "h200", "h100", "dram.bandwidth_gb_s", NULL}; *known; known++)
        nearest_try(&found, *known);
    return found.best;
}

START_TEST(a_typo_is_near)
{
    ck_assert_str_eq(nearest("inptu"), "input");            // two letters swapped are two slips
    ck_assert_str_eq(nearest("h20"), "h200");
    ck_assert_str_eq(nearest("dram.bandwith_gbs"), "dram.bandwidth_gb_s");
}
END_TEST

START_TEST(case_is_one_slip)
{
    ck_assert_str_eq(nearest("OUTPUT"), "output");
    ck_assert_str_eq(nearest("H200"), "h200");
}
END_TEST

START_TEST(another_word_is_not_near)
{
    ck_assert_ptr_null(nearest("xx"));
    ck_assert_ptr_null(nearest("if"));        // one letter of two would be "in"
    ck_assert_ptr_null(nearest("softmax"));
    ck_assert_ptr_null(nearest("a_name_that_is_longer_than_any_name_may_be_in_a_program_of_the_user"));
}
END_TEST

START_TEST(of_equals_the_longest_counts_then_the_first)
{
    ck_assert_str_eq(nearest("h300"), "h200");
    Nearest found = nearest_to("sqt");
    nearest_try(&found, "sq");
    nearest_try(&found, "sqrt");
    ck_assert_str_eq(found.best, "sqrt");
}
END_TEST

START_TEST(it_is_said_as_a_question)
{
    Arena *arena = arena_new();
    ck_assert_str_eq(nearest_suggestion(arena, &(Nearest){.best = "input"}), "; did you mean 'input'?");
    ck_assert_str_eq(nearest_suggestion(arena, &(Nearest){0}), "");
    arena_free(arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nearest");
    TCase *test = tcase_create("nearest");
    tcase_add_test(test, a_typo_is_near);
    tcase_add_test(test, case_is_one_slip);
    tcase_add_test(test, another_word_is_not_near);
    tcase_add_test(test, of_equals_the_longest_counts_then_the_first);
    tcase_add_test(test, it_is_said_as_a_question);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
