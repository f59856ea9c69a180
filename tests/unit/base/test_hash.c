#include "base/hash.h"

#include <check.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"

/* FIPS 180-4, the example of one block. */
static const char hash_of_abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

START_TEST(a_text_and_a_file_of_the_same_bytes_have_one_hash)
{
    Arena *arena = arena_new();
    const char *file = arena_printf(arena, "%s/abc", temp_dir_make(arena));
    output_write(file, "abc", 3);
    ck_assert_str_eq(hash_of(arena, "abc", 3), hash_of_abc);
    ck_assert_str_eq(hash_of_file(arena, file), hash_of_abc);
    arena_free(arena);
}
END_TEST

START_TEST(what_cannot_be_read_has_none)
{
    Arena *arena = arena_new();
    ck_assert_ptr_null(hash_of_file(arena, "/nowhere"));
    ck_assert_ptr_null(hash_of_file(arena, "/"));   // opens, but is no file
    char *pipe = arena_printf(arena, "%s/pipe", temp_dir_make(arena));
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    alarm(5);   // it would wait for a writer
    ck_assert_ptr_null(hash_of_file(arena, pipe));
    alarm(0);
    arena_free(arena);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("hash");
    tcase_add_test(cases, a_text_and_a_file_of_the_same_bytes_have_one_hash);
    tcase_add_test(cases, what_cannot_be_read_has_none);
    Suite *suite = suite_create("hash");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
