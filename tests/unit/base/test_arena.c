#include "base/arena.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

START_TEST(memory_is_zeroed_and_aligned)
{
    Arena *arena = arena_new();
    for (size_t size = 0; size < 100; size++) {
        char *memory = arena_alloc(arena, size);
        ck_assert_uint_eq((uintptr_t)memory % 16, 0);
        for (size_t i = 0; i < size; i++)
            ck_assert_int_eq(memory[i], 0);
        memset(memory, 0xff, size);
    }
    arena_free(arena);
}
END_TEST

START_TEST(objects_larger_than_a_chunk_do_not_disturb_small_ones)
{
    Arena *arena = arena_new();
    char *small = arena_strdup(arena, "small");
    char *large = arena_alloc(arena, 1 << 20);
    memset(large, 'x', 1 << 20);
    char *next = arena_strdup(arena, "next");
    ck_assert_str_eq(small, "small");
    ck_assert_str_eq(next, "next");
    ck_assert_int_eq(next - small, 16);   // still filling the first chunk
    arena_free(arena);
}
END_TEST

START_TEST(strings_are_copied)
{
    Arena *arena = arena_new();
    ck_assert_str_eq(arena_strndup(arena, "softmax.te", 7), "softmax");
    ck_assert_str_eq(arena_printf(arena, "%s_k%d", "relu", 3), "relu_k3");
    arena_free(arena);
}
END_TEST

START_TEST(a_product_that_overflows_ends_the_program)
{
    arena_alloc_array(arena_new(), SIZE_MAX / 2, 3);   // EXIT_MACHINE
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("arena");
    tcase_add_test(cases, memory_is_zeroed_and_aligned);
    tcase_add_test(cases, objects_larger_than_a_chunk_do_not_disturb_small_ones);
    tcase_add_test(cases, strings_are_copied);
    tcase_add_exit_test(cases, a_product_that_overflows_ends_the_program, 4);
    Suite *suite = suite_create("arena");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
