#include "base/json.h"

#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>

START_TEST(keys_keep_their_order_and_values_are_exact)
{
    Arena *arena = arena_new();
    Json *root = json_object();
    json_set_int(root, "z", 9007199254740993);   // 2^53 + 1: no double
    json_set_int(root, "a", INT64_MIN);
    json_set_double(root, "third", 1.0 / 3.0);
    json_set_bool(root, "yes", true);
    json_set_string(root, "none", NULL);
    ck_assert_str_eq(json_text(arena, root, false),
                     "{\"z\":9007199254740993,\"a\":-9223372036854775808,"
                     "\"third\":0.3333333333333333,\"yes\":true,\"none\":null}");
    json_free(root);
    arena_free(arena);
}
END_TEST

START_TEST(strings_are_escaped_to_ascii)
{
    Arena *arena = arena_new();
    Json *root = json_array();
    json_push_string(root, "a\"b\\c\n\t\x01\xc3\xa4");
    ck_assert_str_eq(json_text(arena, root, false), "[\"a\\\"b\\\\c\\n\\t\\u0001??\"]");
    json_free(root);
    arena_free(arena);
}
END_TEST

START_TEST(indented_text_uses_two_blanks)
{
    Arena *arena = arena_new();
    Json *root = json_object();
    json_set_string(json_set_object(root, "device"), "name", "tab\there");
    Json *grid = json_set_array(root, "grid");
    json_push_int(grid, 64);
    json_push_int(grid, 1);
    ck_assert_str_eq(json_text(arena, root, true),
                     "{\n"
                     "  \"device\": {\n"
                     "    \"name\": \"tab\\there\"\n"
                     "  },\n"
                     "  \"grid\": [64, 1]\n"
                     "}\n");
    json_free(root);
    arena_free(arena);
}
END_TEST

START_TEST(infinity_is_a_bug)
{
    json_set_double(json_object(), "time_us", INFINITY);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("json");
    tcase_add_test(cases, keys_keep_their_order_and_values_are_exact);
    tcase_add_test(cases, strings_are_escaped_to_ascii);
    tcase_add_test(cases, indented_text_uses_two_blanks);
    tcase_add_test_raise_signal(cases, infinity_is_a_bug, SIGABRT);
    Suite *suite = suite_create("json");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
