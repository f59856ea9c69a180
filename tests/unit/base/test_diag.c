#include "base/diag.h"

#include <check.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Caught {
    jmp_buf leave;
    int exit_code;
    char message[4096];
} Caught;

static Caught caught;

static void on_fatal(int exit_code, const char *message, void *context)
{
    (void)context;
    caught.exit_code = exit_code;
    snprintf(caught.message, sizeof caught.message, "%s", message);
    longjmp(caught.leave, 1);
}

/* The message of an error at [offset, offset + length) of `text`. */
static const char *error_at(Arena *arena, const char *text, uint32_t offset, uint32_t length, const char *says)
{
    const Source *source = source_from_text(arena, "a.te", text, strlen(text));
    diag_configure((DiagOptions){.on_fatal = on_fatal});
    if (setjmp(caught.leave) == 0)
        diag_fatal((Loc){source, offset, length}, EXIT_INPUT, "%s", says);
    return caught.message;
}

START_TEST(an_error_shows_its_line_with_a_caret)
{
    Arena *arena = arena_new();
    //                         0         1
    //                         0123456789012345
    const char *text = "input x[4]\ny[i] = xyz[i]\n";
    ck_assert_str_eq(error_at(arena, text, 18, 3, "unknown name 'xyz'"),
                     "a.te:2:8: error: unknown name 'xyz'\n"
                     "    y[i] = xyz[i]\n"
                     "           ^~~");
    ck_assert_int_eq(caught.exit_code, EXIT_INPUT);
    arena_free(arena);
}
END_TEST

START_TEST(an_error_at_the_end_of_the_text_points_behind_it)
{
    Arena *arena = arena_new();
    ck_assert_str_eq(error_at(arena, "y[i", 3, 0, "expected ']'"), "a.te:1:4: error: expected ']'\n    y[i\n       ^");
    arena_free(arena);
}
END_TEST

static const Source *attempted;

static void refuse(void *context)
{
    diag_fatal((Loc){attempted, 0, 1}, EXIT_INPUT, "error %d", *(int *)context);
}

static void succeed(void *context) { *(int *)context = 7; }

static void abandon(void *context)
{
    (void)context;
    diag_abandon();
}

/* on_fatal is told of the first. */
START_TEST(attempts_that_fail_end_the_program_when_all_are_made)
{
    Arena *arena = arena_new();
    int number = 1;
    attempted = source_from_text(arena, "a.te", "text", 4);
    diag_configure((DiagOptions){.on_fatal = on_fatal});
    ck_assert(setjmp(caught.leave) == 0);
    diag_finish();
    ck_assert(diag_attempt(succeed, &number));
    ck_assert(!diag_attempt(refuse, &number));
    ck_assert(!diag_attempt(abandon, NULL));
    number = 2;
    ck_assert(!diag_attempt(refuse, &number));
    if (setjmp(caught.leave) == 0)
        diag_finish();
    ck_assert_str_eq(caught.message, "a.te:1:1: error: error 7\n    text\n    ^");
    ck_assert_int_eq(caught.exit_code, EXIT_INPUT);
    if (setjmp(caught.leave) == 0)
        diag_finish();   // they are forgotten then
    else
        ck_abort();
    arena_free(arena);
}
END_TEST

START_TEST(the_twentieth_error_ends_it)
{
    Arena *arena = arena_new();
    int number = 1;
    volatile int made = 0;
    attempted = source_from_text(arena, "a.te", "text", 4);
    diag_configure((DiagOptions){.on_fatal = on_fatal});
    if (setjmp(caught.leave) == 0)
        for (;; made++)
            diag_attempt(refuse, &number);
    ck_assert_int_eq(made, 19);
    arena_free(arena);
}
END_TEST

START_TEST(control_characters_never_reach_the_terminal)
{
    Arena *arena = arena_new();
    const char *message = error_at(arena, "\033[31m\xff", 0, 1, "unexpected \033 here");
    for (const char *c = message; *c; c++)
        ck_assert_msg(*c == '\n' || (*c >= ' ' && *c <= '~'), "byte %d", *c);
    arena_free(arena);
}
END_TEST

START_TEST(a_line_of_a_megabyte_is_cut)
{
    Arena *arena = arena_new();
    char *text = arena_alloc(arena, 1 << 20);
    memset(text, 'x', (1 << 20) - 1);
    ck_assert_uint_lt(strlen(error_at(arena, text, 500000, 10, "too long")), 500);
    arena_free(arena);
}
END_TEST

START_TEST(an_error_without_a_place_names_the_program)
{
    diag_configure((DiagOptions){.on_fatal = on_fatal});
    if (setjmp(caught.leave) == 0)
        fatal(EXIT_USAGE, "no input file");
    ck_assert_str_eq(caught.message, "rollerc: error: no input file");
    ck_assert_int_eq(caught.exit_code, EXIT_USAGE);
}
END_TEST

/* What fatal() says in a place. */
static const char *placed(Arena *arena, int exit_code)
{
    const Source *source = source_from_text(arena, "a.yaml", "top-k: 0\n", 9);
    diag_configure((DiagOptions){.on_fatal = on_fatal});
    diag_place((Loc){source, 7, 1});
    if (setjmp(caught.leave) == 0)
        fatal(exit_code, "--top-k wants more");
    diag_place((Loc){0});
    return caught.message;
}

START_TEST(an_option_that_stands_in_a_file_is_wrong_there)
{
    Arena *arena = arena_new();
    ck_assert_str_eq(placed(arena, EXIT_USAGE), "a.yaml:1:8: error: --top-k wants more\n"
                                                "    top-k: 0\n"
                                                "           ^");
    ck_assert_int_eq(caught.exit_code, EXIT_INPUT);
    ck_assert_str_eq(placed(arena, EXIT_MACHINE), "rollerc: error: --top-k wants more");   // no fault of the file
    ck_assert_int_eq(caught.exit_code, EXIT_MACHINE);
    arena_free(arena);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("diag");
    tcase_add_test(cases, an_error_shows_its_line_with_a_caret);
    tcase_add_test(cases, an_error_at_the_end_of_the_text_points_behind_it);
    tcase_add_test(cases, control_characters_never_reach_the_terminal);
    tcase_add_test(cases, attempts_that_fail_end_the_program_when_all_are_made);
    tcase_add_test(cases, the_twentieth_error_ends_it);
    tcase_add_test(cases, a_line_of_a_megabyte_is_cut);
    tcase_add_test(cases, an_error_without_a_place_names_the_program);
    tcase_add_test(cases, an_option_that_stands_in_a_file_is_wrong_there);
    Suite *suite = suite_create("diag");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
