#include "front_test.h"

/* The right side of `y[i] = TEXT`, with every operation in parentheses. */
static const char *parsed(const char *text)
{
    const char *statement = ast_text(arena_printf(arena, "y[i] = %s", text));
    return arena_strndup(arena, statement + 7, strlen(statement) - 8);
}

START_TEST(products_bind_before_sums)
{
    ck_assert_str_eq(parsed("1 + 2 * 3"), "(1 + (2 * 3))");
    ck_assert_str_eq(parsed("(1 + 2) * 3"), "((1 + 2) * 3)");
}
END_TEST

START_TEST(operators_are_left_associative)
{
    ck_assert_str_eq(parsed("8 - 4 - 2"), "((8 - 4) - 2)");
    ck_assert_str_eq(parsed("8 / 4 * 2"), "((8 / 4) * 2)");
}
END_TEST

START_TEST(signs_bind_closest)
{
    ck_assert_str_eq(parsed("-a * - -b"), "((-a) * (-(-b)))");
    ck_assert_str_eq(parsed("!-a"), "(!(-a))");
}
END_TEST

START_TEST(logic_binds_last)
{
    ck_assert_str_eq(parsed("a || b && c < d + 1"), "(a || (b && (c < (d + 1))))");
}
END_TEST

START_TEST(max_is_a_function_and_a_reduction)
{
    ck_assert_str_eq(parsed("max(a, max[j:4](b))"), "max(a, max[j:4](b))");
}
END_TEST

/* round, atan, asin and acos before "("; elsewhere they are names. */
START_TEST(some_functions_are_names_elsewhere)
{
    ck_assert_str_eq(parsed("round(a + round) * round[round]"), "(round((a + round)) * round[round])");
    ck_assert_str_eq(ast_text("param atan = 3 input acos[atan] : f32 asin[round] = atan ( acos[round] ) output asin"),
                     "param atan = 3\ninput acos[atan] : f32\nasin[round] = atan(acos[round])\noutput asin\n");
    ck_assert_error(EXIT_INPUT, "'atan' takes 1 operand, saw 2", ast_text("y[i] = atan(a, b)"));
    ck_assert_error(EXIT_INPUT, "'round' is a function and no reduction; write round(a), without [ ]",
                    ast_text("y[i] = round[j](x[j])"));
}
END_TEST

START_TEST(white_space_means_nothing)
{
    ck_assert_str_eq(ast_text("param N=4 param M\n=\nN output y y[ ]=x[]"),
                     "param N = 4\nparam M = N\noutput y\ny[] = x[]\n");
}
END_TEST

START_TEST(weights_and_views_are_words_only_before_a_name_with_brackets)
{
    const char *text = "weight weight[4] : f16\nview view[2, 2] = weight\noutput weight\nweight w[] : i8\n"
                       "view[weight] = (view[weight] * weight)\n";
    ck_assert_str_eq(ast_text(text), text);
}
END_TEST

START_TEST(what_is_printed_parses_to_the_same)
{
    const char *once = ast_text("input x[N, 2*N] : f16\n"
                                "y[i:N - 1, j] : b1 = !(sum[k:3](pad(x[i + k, j], -inf)) < pi)\n"
                                "z[] = select(a, cast(1e20, i8), .5) output y : b1");
    ck_assert_str_eq(ast_text(once), once);
}
END_TEST

static const char *source_text(const char *text, const ParamOverride *overrides, int count)
{
    StrBuf out = strbuf_new(arena);
    ast_print_source(&out, parse(arena, tokens_of(text)), overrides, count);
    return out.text;
}

/* Spaces within a line are the user's; comments, line ends and tabs become one. */
START_TEST(the_source_is_as_it_was_written)
{
    const char *text = "# one\nparam N=(2+ 2)  # two\n input x [N] : f32\r\n\ty[i]   = ((x[i]*2))# three\n#four\n\t + 1.50  output y\n#";
    const char *source = source_text(text, NULL, 0);
    ck_assert_str_eq(source, "param N=(2+ 2)\ninput x [N] : f32\ny[i]   = ((x[i]*2)) + 1.50\noutput y\n");
    ck_assert_str_eq(source_text(source, NULL, 0), source);
    ck_assert_str_eq(ast_text(source), ast_text(text));
}
END_TEST

START_TEST(the_source_has_params_as_they_were_set)
{
    const ParamOverride overrides[] = {{"N", "+64"}, {"eps", "-1e-3"}};
    ck_assert_str_eq(source_text("param N = 4 * M param eps  =# small\n1 param M = 8 # rows", overrides, 2),
                     "param N = 64\nparam eps  = -1e-3\nparam M = 8\n");
}
END_TEST

START_TEST(a_node_covers_its_words)
{
    const Ast *ast = parse(arena, tokens_of("y[i] = (a + b) * exp( c )"));
    Loc loc = ast->statements[0].value->loc;
    ck_assert_uint_eq(loc.offset, 7);
    ck_assert_uint_eq(loc.length, 18);   // "(a + b) * exp( c )"
    Loc left = ast->statements[0].value->apply.operands[0]->loc;
    ck_assert_uint_eq(left.length, 7);   // with its parentheses
}
END_TEST

START_TEST(an_error_says_what_it_wanted_and_what_it_saw)
{
    ck_assert_error(EXIT_INPUT, "test.te:1:13: error: expected ']' after the indices, saw ')'",
                    ast_text("y[i] = x[i,j)"));
    ck_assert_error(EXIT_INPUT, "expected an expression, saw the end of the file",
                    ast_text("y[i] = 1 +"));
}
END_TEST

START_TEST(reductions_are_counted)
{
    const Ast *ast = parse(arena, tokens_of("y[] = sum[i:2](max[j:2](i)) + min[i:2](i)"));
    ck_assert_int_eq(ast->reduction_count, 3);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        products_bind_before_sums, operators_are_left_associative, signs_bind_closest,
        logic_binds_last, max_is_a_function_and_a_reduction, some_functions_are_names_elsewhere, white_space_means_nothing,
        weights_and_views_are_words_only_before_a_name_with_brackets,
        what_is_printed_parses_to_the_same, the_source_is_as_it_was_written,
        the_source_has_params_as_they_were_set, a_node_covers_its_words,
        an_error_says_what_it_wanted_and_what_it_saw, reductions_are_counted,
    };
    return RUN_TESTS("parse", tests);
}
