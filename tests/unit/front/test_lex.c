#include <math.h>

#include "front_test.h"

START_TEST(integers_are_exact)
{
    const Token *token = tokens_of("0 007 9223372036854775807");
    ck_assert(!token[0].number.is_real && token[0].number.integer == 0);
    ck_assert(token[1].number.integer == 7);
    ck_assert(token[2].number.integer == INT64_MAX);
    ck_assert_int_eq(token[3].kind, TOKEN_END);
}
END_TEST

START_TEST(a_point_or_an_exponent_makes_a_real)
{
    const Token *token = tokens_of("1.0 .5 1e3 2.5E-1 1e+2");
    const double expected[] = {1, 0.5, 1000, 0.25, 100};
    for (int i = 0; i < 5; i++) {
        ck_assert(token[i].number.is_real);
        ck_assert_double_eq(token[i].number.real, expected[i]);
    }
}
END_TEST

START_TEST(the_longest_symbol_wins)
{
    const Token *token = tokens_of("<=<!===");   // <=  <  !=  ==
    ck_assert_str_eq(token[0].text, "<=");
    ck_assert_str_eq(token[1].text, "<");
    ck_assert_str_eq(token[2].text, "!=");
    ck_assert_str_eq(token[3].text, "==");
}
END_TEST

START_TEST(reserved_words_are_not_names)
{
    const Token *token = tokens_of("sum sums bf16 i64 Exp exp _");
    const bool reserved[] = {true, false, true, false, false, true, false};
    for (int i = 0; i < 7; i++)
        ck_assert_int_eq(token[i].kind, reserved[i] ? TOKEN_WORD : TOKEN_NAME);
}
END_TEST

START_TEST(a_place_is_where_the_token_is)
{
    const Token *token = tokens_of("# a comment\n  abc #\n+");
    ck_assert_uint_eq(token[0].loc.offset, 14);
    ck_assert_uint_eq(token[0].loc.length, 3);
    LineColumn plus = source_line_column(token[1].loc);
    ck_assert(plus.line == 3 && plus.column == 1);
}
END_TEST

START_TEST(the_end_is_behind_the_last_token)
{
    const Token *token = tokens_of("a\n\n# more\n");
    ck_assert_int_eq(source_line_column(token[1].loc).line, 1);
    ck_assert_uint_eq(token[1].loc.offset, 1);
}
END_TEST

START_TEST(a_zero_byte_is_an_error)
{
    const Source *source = source_from_text(arena, "test.te", "a\0b", 3);
    ck_assert_error(EXIT_INPUT, "byte 0x00", (lex(arena, source), diag_finish()));
}
END_TEST

START_TEST(numbers_print_as_they_read)
{
    const char *const texts[] = {"0", "9223372036854775807", "1.0", "1e-05", "0.1", "1e+300"};
    for (int i = 0; i < 6; i++) {
        StrBuf out = strbuf_new(arena);
        number_print(&out, tokens_of(texts[i])->number);
        ck_assert_str_eq(out.text, texts[i]);
    }
}
END_TEST

START_TEST(many_tokens_fit)
{
    char text[20001];
    memset(text, '+', 20000);
    text[20000] = '\0';
    const Token *token = tokens_of(text);
    ck_assert_int_eq(token[19999].kind, TOKEN_SYMBOL);
    ck_assert_int_eq(token[20000].kind, TOKEN_END);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        integers_are_exact, a_point_or_an_exponent_makes_a_real, the_longest_symbol_wins,
        reserved_words_are_not_names, a_place_is_where_the_token_is,
        the_end_is_behind_the_last_token, a_zero_byte_is_an_error, numbers_print_as_they_read,
        many_tokens_fit,
    };
    return RUN_TESTS("lex", tests);
}
