#include "base/output.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/leftovers.h"

static Arena *arena;
static char *folder;

static void set_up(void)
{
    arena = arena_new();
    folder = temp_dir_make(arena);   // goes with the test's process
}

static void tear_down(void)
{
    arena_free(arena);
}

static const char *path(const char *name)
{
    return arena_printf(arena, "%s/%s", folder, name);
}

static const char *contents(const char *name)
{
    char *text = arena_alloc(arena, 4096);
    FILE *file = fopen(path(name), "rb");
    if (!file)
        return NULL;
    text[fread(text, 1, 4095, file)] = '\0';
    fclose(file);
    return text;
}

static int files_in(const char *where)
{
    DIR *entries = opendir(where);
    if (!entries)
        return -1;
    int count = -2;   // "." and ".."
    while (readdir(entries))
        count++;
    closedir(entries);
    return count;
}

/* The exit status of `what` in a child of its own. */
static int status_of(void (*what)(void))
{
    pid_t child = fork();
    if (child == 0) {
        what();
        exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

START_TEST(a_file_is_written_whole_with_the_umask)
{
    umask(027);
    output_write(path("a.cu"), "kernel", 6);
    ck_assert_str_eq(contents("a.cu"), "kernel");
    struct stat status;
    stat(path("a.cu"), &status);
    ck_assert_int_eq(status.st_mode & 0777, 0640);
    ck_assert_int_eq(files_in(folder), 1);
}
END_TEST

START_TEST(a_file_that_holds_the_same_bytes_is_not_touched)
{
    struct stat first, second, third;
    output_write(path("a.cu"), "kernel", 6);
    stat(path("a.cu"), &first);
    output_write(path("a.cu"), "kernel", 6);
    stat(path("a.cu"), &second);
    output_write(path("a.cu"), "Kernel", 6);
    stat(path("a.cu"), &third);
    ck_assert_uint_eq(first.st_ino, second.st_ino);
    ck_assert_int_eq(first.st_mtim.tv_nsec, second.st_mtim.tv_nsec);
    ck_assert_uint_ne(first.st_ino, third.st_ino);
    ck_assert_str_eq(contents("a.cu"), "Kernel");
}
END_TEST

/* What lies in several places is one file, however it is divided. */
START_TEST(parts_follow_each_other)
{
    const FilePart two[] = {{"kern", 4}, {"el", 2}}, other[] = {{"kern", 4}, {"eL", 2}};
    const FilePart three[] = {{"k", 1}, {"", 0}, {"ernel", 5}};
    struct stat first, second;
    OutputSet *set = output_set_new(arena);
    output_stage_parts(set, path("a.cu"), (FileParts){two, 2});
    output_commit(set);
    ck_assert_str_eq(contents("a.cu"), "kernel");
    stat(path("a.cu"), &first);
    output_stage_parts(set, path("a.cu"), (FileParts){three, 3});
    output_commit(set);
    stat(path("a.cu"), &second);
    ck_assert_uint_eq(first.st_ino, second.st_ino);
    output_stage_parts(set, path("a.cu"), (FileParts){other, 2});
    output_commit(set);
    ck_assert_str_eq(contents("a.cu"), "kerneL");
    ck_assert_uint_eq(file_parts_length((FileParts){three, 3}), 6);
    ck_assert_mem_eq(file_parts_join(arena, (FileParts){three, 3}), "kernel", 6);
}
END_TEST

/* Four kilobytes of a file that has none any more; errors go to "said". */
static const char *cut_off(void)
{
    signal(SIGBUS, SIG_DFL);   // not a sanitizer's
    output_install_signals();
    ck_assert_ptr_nonnull(freopen(path("said"), "w", stderr));
    int file = open(path("model"), O_RDWR | O_CREAT, 0600);
    ck_assert(ftruncate(file, 4096) == 0);
    const char *bytes = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    ck_assert(ftruncate(file, 0) == 0);
    return bytes;
}

static void write_what_was_cut_off(void)
{
    output_write(path("a.weights"), cut_off(), 4096);
}

static void read_what_was_cut_off(void)
{
    OutputSet *set = output_set_new(arena);
    output_stage(set, path("a.cu"), "new", 3);
    exit(*(volatile const char *)cut_off());
}

START_TEST(a_file_that_is_cut_off_meanwhile_is_told_of)
{
    ck_assert_int_eq(status_of(write_what_was_cut_off), EXIT_MACHINE);
    ck_assert_ptr_nonnull(strstr(contents("said"), "a.weights': a file was cut off"));
    ck_assert_int_eq(status_of(read_what_was_cut_off), -1);   // of the signal
    ck_assert_ptr_nonnull(strstr(contents("said"), "error: a file was cut off"));
    ck_assert_int_eq(files_in(folder), 2);
}
END_TEST

static void stage_two_of_which_one_fails(void)
{
    OutputSet *set = output_set_new(arena);
    output_stage(set, path("a.cu"), "new", 3);
    output_stage(set, path("missing/b.json"), "new", 3);
    output_commit(set);
}

START_TEST(a_failure_leaves_every_target_as_it_was)
{
    output_write(path("a.cu"), "old", 3);
    ck_assert_int_eq(status_of(stage_two_of_which_one_fails), EXIT_MACHINE);
    ck_assert_str_eq(contents("a.cu"), "old");
    ck_assert_int_eq(files_in(folder), 1);
}
END_TEST

START_TEST(nothing_changes_before_the_commit)
{
    OutputSet *set = output_set_new(arena);
    output_stage(set, path("a.cu"), "new", 3);
    ck_assert_ptr_null(contents("a.cu"));
    output_commit(set);
    ck_assert_str_eq(contents("a.cu"), "new");
}
END_TEST

static void write_to_a_folder(void) { output_write(folder, "x", 1); }
static void write_to_a_full_disk(void) { output_write("/dev/full", "x", 1); }
static void write_to_nowhere(void) { output_write("/dev/null", "x", 1); }

START_TEST(what_is_no_regular_file_is_written_directly_or_refused)
{
    ck_assert_int_eq(status_of(write_to_a_folder), EXIT_MACHINE);
    ck_assert_int_eq(status_of(write_to_a_full_disk), EXIT_MACHINE);
    ck_assert_int_eq(status_of(write_to_nowhere), 0);
    struct stat status;
    ck_assert_int_eq(stat("/dev/null", &status), 0);
    ck_assert(S_ISCHR(status.st_mode));
}
END_TEST

static bool is_link(const char *name)
{
    struct stat status;
    return lstat(path(name), &status) == 0 && S_ISLNK(status.st_mode);
}

START_TEST(a_symbolic_link_is_kept_and_its_target_written)
{
    mkdir(path("far"), 0700);
    output_write(path("far/target"), "old", 3);
    chmod(path("far/target"), 0604);
    ck_assert_int_eq(symlink("far/target", path("middle")), 0);
    ck_assert_int_eq(symlink(path("middle"), path("a.cu")), 0);
    output_write(path("a.cu"), "kernel", 6);
    ck_assert(is_link("a.cu") && is_link("middle") && !is_link("far/target"));
    ck_assert_str_eq(contents("far/target"), "kernel");
    struct stat status;
    stat(path("far/target"), &status);
    ck_assert_int_eq(status.st_mode & 0777, 0604);
    ck_assert_int_eq(files_in(path("far")), 1);
}
END_TEST

START_TEST(a_link_to_nothing_makes_what_it_leads_to)
{
    ck_assert_int_eq(symlink("target", path("a.cu")), 0);
    output_write(path("a.cu"), "kernel", 6);
    ck_assert(is_link("a.cu"));
    ck_assert_str_eq(contents("target"), "kernel");
}
END_TEST

static void write_to_a_link_to_itself(void) { output_write(path("circle"), "x", 1); }
static void write_to_a_link_into_no_folder(void) { output_write(path("astray"), "x", 1); }

START_TEST(links_that_lead_nowhere_are_refused)
{
    ck_assert_int_eq(symlink("circle", path("circle")), 0);
    ck_assert_int_eq(symlink("missing/target", path("astray")), 0);
    ck_assert_int_eq(status_of(write_to_a_link_to_itself), EXIT_MACHINE);
    ck_assert_int_eq(status_of(write_to_a_link_into_no_folder), EXIT_MACHINE);
    ck_assert_int_eq(files_in(folder), 2);
}
END_TEST

static void write_past_a_limit(void)
{
    output_install_signals();
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){4, 4});
    output_write(path("a.cu"), "kernel", 6);
}

START_TEST(a_limit_on_the_size_of_files_is_a_failed_write)
{
    output_write(path("a.cu"), "old", 3);
    ck_assert_int_eq(status_of(write_past_a_limit), EXIT_MACHINE);
    ck_assert_str_eq(contents("a.cu"), "old");
    ck_assert_int_eq(files_in(folder), 1);
}
END_TEST

static void be_interrupted(void)
{
    output_install_signals();
    OutputSet *set = output_set_new(arena);
    output_stage(set, path("a.cu"), "new", 3);
    char *inner = temp_dir_make(arena);
    FILE *note = fopen(path("inner"), "wb");
    fputs(inner, note);
    fclose(note);
    mkdir(arena_printf(arena, "%s/deep", inner), 0700);
    output_write(arena_printf(arena, "%s/deep/file", inner), "x", 1);
    raise(SIGTERM);
}

START_TEST(a_signal_removes_everything_temporary)
{
    ck_assert_int_eq(status_of(be_interrupted), 143);
    ck_assert_int_eq(files_in(folder), 1);   // the note
    ck_assert_int_ne(access(contents("inner"), F_OK), 0);
}
END_TEST

START_TEST(what_may_be_missing_is_written_or_not_without_a_fuss)
{
    ck_assert(output_try_write(path("entry"), "old", 3));
    ck_assert(output_try_write(path("entry"), "new", 3));
    ck_assert_str_eq(contents("entry"), "new");
    ck_assert(!output_try_write(path("missing/entry"), "new", 3));
    mkdir(path("folder"), 0700);
    ck_assert(!output_try_write(path("folder"), "new", 3));   // a folder stands there
    ck_assert_int_eq(files_in(folder), 2);
}
END_TEST

/* A child with a file of its own to remove, and one that never ends by itself. */
static void be_interrupted_with_children(void)
{
    output_install_signals();
    pid_t tidy = fork();
    if (tidy == 0) {
        temp_dir_make(arena);
        pause();
    }
    leftovers_add_child(tidy);
    pid_t stubborn = fork();
    if (stubborn == 0) {
        signal(SIGTERM, SIG_IGN);
        output_write(path("ready"), "", 0);
        for (;;)
            pause();
    }
    leftovers_add_child(stubborn);
    while (access(path("ready"), F_OK) != 0 || files_in(folder) < 2)
        usleep(1000);
    raise(SIGINT);
}

START_TEST(children_end_in_order_or_are_killed)
{
    setenv("TMPDIR", folder, 1);
    ck_assert_int_eq(status_of(be_interrupted_with_children), 130);
    ck_assert_int_eq(files_in(folder), 1);   // "ready"; the tidy child has removed its own folder
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("output");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, a_file_is_written_whole_with_the_umask);
    tcase_add_test(cases, a_file_that_holds_the_same_bytes_is_not_touched);
    tcase_add_test(cases, parts_follow_each_other);
    tcase_add_test(cases, a_file_that_is_cut_off_meanwhile_is_told_of);
    tcase_add_test(cases, a_failure_leaves_every_target_as_it_was);
    tcase_add_test(cases, nothing_changes_before_the_commit);
    tcase_add_test(cases, what_is_no_regular_file_is_written_directly_or_refused);
    tcase_add_test(cases, a_symbolic_link_is_kept_and_its_target_written);
    tcase_add_test(cases, a_link_to_nothing_makes_what_it_leads_to);
    tcase_add_test(cases, links_that_lead_nowhere_are_refused);
    tcase_add_test(cases, a_limit_on_the_size_of_files_is_a_failed_write);
    tcase_add_test(cases, a_signal_removes_everything_temporary);
    tcase_add_test(cases, what_may_be_missing_is_written_or_not_without_a_fuss);
    tcase_add_test(cases, children_end_in_order_or_are_killed);
    Suite *suite = suite_create("output");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
