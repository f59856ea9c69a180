#include "base/utf8.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

typedef struct Row {
    const char *text;
    size_t bytes;
    uint32_t code;
} Row;

START_TEST(whole_characters_are_shown)
{
    static const Row rows[] = {
        {"a", 1, 'a'},
        {" ", 1, ' '},
        {"~", 1, '~'},
        {"\xc3\xa4", 2, 0xe4},
        {"\xe6\x95\xb0", 3, 0x6570},
        {"\xf0\x9f\x99\x82", 4, 0x1f642},
        {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
        {"\xc2\xa0", 2, 0xa0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t code = 0;
        ck_assert_uint_eq(utf8_shown(rows[i].text, strlen(rows[i].text), &code), rows[i].bytes);
        ck_assert_uint_eq(code, rows[i].code);
    }
}
END_TEST

START_TEST(what_is_none_or_moves_the_cursor_is_not)
{
    static const char *const texts[] = {
        "", "\n", "\x1b[2J", "\x7f",
        "\x80",                        // begins none
        "\xc3", "\xc3(", "\xe6\x95",   // cut off
        "\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf",   // longer than needed
        "\xed\xa0\x80",                // a surrogate
        "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80",       // past U+10FFFF
        "\xc2\x85",                    // next line
        "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x80\xa8",   // right to left, isolate, line separator
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(utf8_shown(texts[i], strlen(texts[i]), NULL) == 0, "row %zu", i);
}
END_TEST

START_TEST(nothing_is_read_past_the_length)
{
    ck_assert_uint_eq(utf8_shown("\xc3\xa4", 1, NULL), 0);
    ck_assert_uint_eq(utf8_shown("a", 0, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("utf8");
    TCase *cases = tcase_create("utf8");
    tcase_add_test(cases, whole_characters_are_shown);
    tcase_add_test(cases, what_is_none_or_moves_the_cursor_is_not);
    tcase_add_test(cases, nothing_is_read_past_the_length);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
