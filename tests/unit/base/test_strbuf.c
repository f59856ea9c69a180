#include "base/strbuf.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char *shortest(Arena *arena, double value)
{
    StrBuf out = strbuf_new(arena);
    strbuf_double(&out, value);
    return out.text;
}

START_TEST(text_grows_past_its_first_capacity)
{
    Arena *arena = arena_new();
    StrBuf out = strbuf_new(arena);
    for (int i = 0; i < 10000; i++)
        strbuf_puts(&out, "abc");
    ck_assert_uint_eq(out.length, 30000);
    ck_assert_uint_eq(strlen(out.text), 30000);
    arena_free(arena);
}
END_TEST

START_TEST(formatted_text_longer_than_the_stack_buffer_is_whole)
{
    Arena *arena = arena_new();
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out, "%0500d|", 7);
    ck_assert_uint_eq(out.length, 501);
    ck_assert_str_eq(out.text + 499, "7|");
    arena_free(arena);
}
END_TEST

START_TEST(doubles_are_the_shortest_that_read_back)
{
    Arena *arena = arena_new();
    ck_assert_str_eq(shortest(arena, 0.1), "0.1");
    ck_assert_str_eq(shortest(arena, 3.0), "3");
    ck_assert_str_eq(shortest(arena, 1e-5), "1e-05");
    ck_assert_str_eq(shortest(arena, 1.0 / 3.0), "0.3333333333333333");
    ck_assert_str_eq(shortest(arena, 0.1 + 0.2), "0.30000000000000004");
    ck_assert_double_eq(strtod(shortest(arena, 5e-324), NULL), 5e-324);
    arena_free(arena);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("strbuf");
    tcase_add_test(cases, text_grows_past_its_first_capacity);
    tcase_add_test(cases, formatted_text_longer_than_the_stack_buffer_is_whole);
    tcase_add_test(cases, doubles_are_the_shortest_that_read_back);
    Suite *suite = suite_create("strbuf");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
