// Names with holes, and words that a shell must read as they are.
#include <check.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "batch/pattern.h"
#include "batch/words.h"

static const ParamOverride defines[] = {{.name = "N", .text = "4096"}, {.name = "eps", .text = "1e-5"}};
static const PatternValues values = {
    .expr = "softmax", .device = "h200", .name = "soft", .defines = defines, .define_count = 2};

static Arena *arena;
static jmp_buf error_exit;
static char error_text[4096];

static void open_arena(void) { arena = arena_new(); }
static void close_arena(void) { arena_free(arena); }

static void catch_error(int exit_code, const char *message, void *context)
{
    (void)exit_code, (void)context;
    snprintf(error_text, sizeof error_text, "%s", message);
    longjmp(error_exit, 1);
}

static const char *fill(const char *pattern)
{
    const Source *source = source_from_text(arena, "k.yaml", pattern, strlen(pattern));
    return pattern_fill(arena, pattern, (Loc){source, 0, 1}, &values);
}

START_TEST(holes_are_filled_by_what_a_kernel_has)
{
    ck_assert_str_eq(fill("{device}/{name}_{N}.cu"), "h200/soft_4096.cu");
    ck_assert_str_eq(fill("{expr}{expr}-{eps}"), "softmaxsoftmax-1e-5");
    ck_assert_str_eq(fill("no holes } and {no end"), "no holes } and {no end");
    ck_assert_str_eq(fill(""), "");
}
END_TEST

START_TEST(a_hole_that_nothing_fills_is_an_error_that_names_what_would)
{
    diag_configure((DiagOptions){.on_fatal = catch_error});
    if (!setjmp(error_exit))
        fill("{M}");
    ck_assert_str_eq(error_text, "k.yaml:1:1: error: nothing fills {M}; this kernel has {expr}, {device}, {name}, {N}, {eps}\n"
                                 "    {M}\n"
                                 "    ^");
}
END_TEST

START_TEST(a_shell_reads_the_words_back)
{
    static const char *const words[] = {"--device=h200", "a b", "it's", "$HOME", "*", "", "a\\b", "\"x\"", "~", "{a,b}"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        FILE *shell = popen(arena_printf(arena, "printf %%s %s", words_quote(arena, words[i])), "r");
        char said[100] = "";
        said[fread(said, 1, sizeof said - 1, shell)] = '\0';
        pclose(shell);
        ck_assert_str_eq(said, words[i]);
    }
    ck_assert_str_eq(words_quote(arena, "-DN=4096"), "-DN=4096");   // quoted only where it must be
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("names");
    tcase_add_checked_fixture(cases, open_arena, close_arena);
    tcase_add_test(cases, holes_are_filled_by_what_a_kernel_has);
    tcase_add_test(cases, a_hole_that_nothing_fills_is_an_error_that_names_what_would);
    tcase_add_test(cases, a_shell_reads_the_words_back);
    Suite *suite = suite_create("names");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
