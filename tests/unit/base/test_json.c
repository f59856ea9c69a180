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

START_TEST(strings_are_escaped_but_for_letters)
{
    Arena *arena = arena_new();
    Json *root = json_array();
    json_push_string(root, "a\"b\\c\n\t\x01\xc3\xa4\xff");
    ck_assert_str_eq(json_text(arena, root, false), "[\"a\\\"b\\\\c\\n\\t\\u0001\xc3\xa4?\"]");
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

START_TEST(what_is_written_can_be_read)
{
    const char *wrong;
    Json *root = json_read("{\"a\": [1, 2.5, \"x\", true, {}], \"A\": null}", &wrong);
    const Json *item = json_first(json_get(root, "a"));
    double value = 0;
    ck_assert(json_number(item, &value) && value == 1);
    ck_assert(json_number(item = json_next(item), &value) && value == 2.5);
    ck_assert_str_eq(json_string(item = json_next(item)), "x");
    ck_assert(!json_number(item, &value) && !json_is_true(item) && !json_is_object(item));
    ck_assert(json_is_true(item = json_next(item)) && !json_string(item));
    ck_assert(json_is_object(item = json_next(item)) && !json_is_array(item));
    ck_assert_ptr_null(json_next(item));
    ck_assert_str_eq(json_key(json_get(root, "A")), "A");   // not the one in lower case
    ck_assert_ptr_null(json_get(json_get(root, "none"), "a"));
    json_free(root);
}
END_TEST

START_TEST(what_is_no_json_is_shown_where)
{
    const char *wrong, *text = "{\"a\": [1, }";
    ck_assert_ptr_null(json_read(text, &wrong));
    ck_assert_int_eq(wrong - text, 10);
    ck_assert_ptr_null(json_read("{} {}", &wrong));
    double value = 0;
    Json *huge = json_read("1e999", &wrong);
    ck_assert(!json_number(huge, &value));   // no number that one could reckon with
    json_free(huge);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("json");
    tcase_add_test(cases, keys_keep_their_order_and_values_are_exact);
    tcase_add_test(cases, strings_are_escaped_but_for_letters);
    tcase_add_test(cases, indented_text_uses_two_blanks);
    tcase_add_test(cases, what_is_written_can_be_read);
    tcase_add_test(cases, what_is_no_json_is_shown_where);
    tcase_add_test_raise_signal(cases, infinity_is_a_bug, SIGABRT);
    Suite *suite = suite_create("json");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
