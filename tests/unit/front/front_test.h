// Shared by the tests of this floor: text in, the stage's result or the error's message out.
#pragma once
#include <check.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "front/lower.h"
#include "front/parse.h"

static Arena *arena;
static jmp_buf on_error;
static int error_code;
static char error_message[4096];

static void leave(int exit_code, const char *message, void *context)
{
    (void)context;
    error_code = exit_code;
    strncpy(error_message, message, sizeof error_message - 1);
    longjmp(on_error, 1);
}

static void set_up(void)
{
    arena = arena_new();
    diag_configure((DiagOptions){.quiet = true, .on_fatal = leave});
}

static void tear_down(void)
{
    arena_free(arena);
}

static inline const Token *tokens_of(const char *text)
{
    const Token *tokens = lex(arena, source_from_text(arena, "test.te", text, strlen(text)));
    diag_finish();
    return tokens;
}

static inline const char *ast_text(const char *text)
{
    StrBuf out = strbuf_new(arena);
    const Ast *ast = parse(arena, tokens_of(text));
    diag_finish();
    ast_print(&out, ast);
    return out.text;
}

static inline Program *program_of(const char *text)
{
    return lower(arena, parse(arena, tokens_of(text)), NULL, 0);
}

/* The first op, printed, without its line end. */
static inline const char *op_text(const char *text)
{
    StrBuf out = strbuf_new(arena);
    op_print(&out, program_of(text)->ops[0]);
    out.text[out.length - 1] = '\0';
    return out.text;
}

#define ck_assert_error(code, part, call)                                           \
    do {                                                                            \
        if (setjmp(on_error) == 0) {                                                \
            (void)(call);                                                           \
            ck_abort_msg("no error for: %s", #call);                                \
        }                                                                           \
        ck_assert_int_eq(error_code, code);                                         \
        bool found = strstr(error_message, part) != NULL;                           \
        ck_assert_msg(found, "'%s' is not in: %s", part, error_message);            \
    } while (0)

/* Without forks: a test that fails says so, and a crash is a crash. */
static int run_tests(const char *name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed;
}

#define RUN_TESTS(name, tests) run_tests(name, tests, sizeof(tests) / sizeof *(tests))
