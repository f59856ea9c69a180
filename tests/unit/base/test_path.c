#include "base/path.h"

#include <check.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"

static Arena *arena;
static char *folder;

static void set_up(void)
{
    arena = arena_new();
    folder = temp_dir_make(arena);   // goes with the test's process
    ck_assert_int_eq(chdir(folder), 0);
    mkdir("sub", 0700);
    output_write("here", "x", 1);
}

static void tear_down(void)
{
    arena_free(arena);
}

static bool same(const char *left, const char *right)
{
    bool result = path_same(arena, left, right);
    ck_assert(result == path_same(arena, right, left));
    return result;
}

START_TEST(a_file_is_known_under_all_its_names)
{
    const char *absolute = arena_printf(arena, "%s/here", folder);
    ck_assert_int_eq(link("here", "hard"), 0);
    ck_assert_int_eq(symlink("../here", "sub/soft"), 0);
    ck_assert(same("here", "./here") && same("here", "sub/../here") && same("here", absolute));
    ck_assert(same("here", "hard") && same("here", "sub/soft") && same("hard", "sub/soft"));
    ck_assert(!same("here", "sub/here") && !same("here", "there"));
}
END_TEST

START_TEST(so_is_one_that_is_not_there_yet)
{
    const char *absolute = arena_printf(arena, "%s/new", folder);
    ck_assert_int_eq(symlink("../new", "sub/soft"), 0);
    ck_assert_int_eq(symlink("sub", "folder"), 0);
    ck_assert(same("new", "./new") && same("new", "sub/../new") && same("new", absolute) && same("new", "sub/soft"));
    ck_assert(same("sub/new", "folder/new"));
    ck_assert(!same("new", "newer") && !same("new", "sub/new") && !same("none/new", "missing/new"));
}
END_TEST

START_TEST(a_pipe_has_one_end_to_write_to)
{
    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    ck_assert(same("pipe", "./pipe"));
    ck_assert(same("/dev/null", "/dev/null"));
    ck_assert(!same("/dev/null", "/dev/../dev/null"));   // what goes there overwrites nothing
}
END_TEST

START_TEST(links_are_followed_to_where_nothing_is_yet)
{
    ck_assert_int_eq(symlink("../new", "sub/soft"), 0);
    ck_assert_int_eq(symlink("sub/soft", "softer"), 0);
    ck_assert_int_eq(symlink("circle", "circle"), 0);
    ck_assert_str_eq(path_target(arena, "here"), "here");
    ck_assert_str_eq(path_target(arena, "softer"), "sub/../new");
    ck_assert_ptr_null(path_target(arena, "circle"));
    ck_assert(!same("circle", "./circle"));
}
END_TEST

START_TEST(a_suffix_begins_at_the_last_dot_of_the_name)
{
    ck_assert_str_eq(path_suffix("models/softmax.te"), ".te");
    ck_assert_str_eq(path_suffix("models.d/softmax"), "");
    ck_assert_str_eq(path_suffix(".hidden"), "");
    ck_assert_str_eq(path_stem(arena, "models/soft.max.te"), "soft.max");
    ck_assert_str_eq(path_stem(arena, ".hidden"), ".hidden");
    ck_assert_str_eq(path_stem(arena, "models/"), "");
}
END_TEST

START_TEST(folders_are_made_with_those_before_them)
{
    ck_assert(path_make_folders(arena, "a/b//c"));
    ck_assert_int_eq(access("a/b/c", F_OK), 0);
    ck_assert(path_make_folders(arena, "a/b/c/"));   // there already
    ck_assert(path_make_folders(arena, arena_printf(arena, "%s/a/d", folder)));
    ck_assert(!path_make_folders(arena, "here"));
    ck_assert(!path_make_folders(arena, "here/below"));
    ck_assert(!path_make_folders(arena, ""));
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("path");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, a_file_is_known_under_all_its_names);
    tcase_add_test(cases, so_is_one_that_is_not_there_yet);
    tcase_add_test(cases, a_pipe_has_one_end_to_write_to);
    tcase_add_test(cases, links_are_followed_to_where_nothing_is_yet);
    tcase_add_test(cases, a_suffix_begins_at_the_last_dot_of_the_name);
    tcase_add_test(cases, folders_are_made_with_those_before_them);
    Suite *suite = suite_create("path");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
