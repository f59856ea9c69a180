#include "rtile/rtile.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "spaces.h"

/* All legal sizes of an axis, as "1 2 4". */
static const char *sizes(Arena *arena, const TileSpace *space, Level level, const RTile *inner,
                         int axis,
                         double tolerance)
{
    StrBuf out = strbuf_new(arena);
    Tolerance shape = {.allowed = tolerance};
    for (int64_t s = 0; (s = rtile_next_size(space, level, inner, axis, s, &shape)) != 0;)
        strbuf_printf(&out, out.length ? " %ld" : "%ld", (long)s);
    return out.text;
}

/* Four banks of one element: the columns of a [3,4] tile lie in one bank each; in [3,5] they do
   not. */
START_TEST(a_3_by_4_tile_on_4_banks_is_padded_to_3_by_5)
{
    ck_assert_int_eq(bank_padding(4, 1, 4, 1, 4, 4), 1);
    ck_assert_int_eq(bank_padding(5, 1, 4, 1, 4, 4), 0);
}
END_TEST

/* 32 banks of 4 bytes, f32: an odd row length needs nothing; 128 = 4 * 32 needs one element for
   single reads, and four for reads of four: rows then start at banks 0, 4, 8, … Rows of 20 start
   at 0, 20, 8, 28, 16, 4, 24, 12: good as they are. */
START_TEST(f32_rows_on_32_banks)
{
    ck_assert_int_eq(bank_padding(33, 1, 4, 1, 32, 4), 0);
    ck_assert_int_eq(bank_padding(32, 1, 4, 1, 32, 4), 1);
    ck_assert_int_eq(bank_padding(128, 1, 4, 1, 32, 4), 1);
    ck_assert_int_eq(bank_padding(128, 4, 4, 4, 32, 4), 4);
    ck_assert_int_eq(bank_padding(20, 4, 4, 4, 32, 4), 0);
}
END_TEST

/* f16: 64 of them fill the banks; vectors of 8 need rows that step by 8. K80: 64 f32 fill its
   8-byte banks. */
START_TEST(half_elements_and_wide_banks)
{
    ck_assert_int_eq(bank_padding(64, 8, 2, 8, 32, 4), 8);
    ck_assert_int_eq(bank_padding(72, 8, 2, 8, 32, 4), 0);
    ck_assert_int_eq(bank_padding(128, 4, 4, 4, 32, 8), 4);
    ck_assert_int_eq(bank_padding(66, 1, 4, 1, 32, 8), 0);
}
END_TEST

/* Of matmul, A is transposed on its way into shared memory and padded; B is written and read along
   its rows. */
START_TEST(only_tiles_crossed_by_a_warp_are_padded)
{
    TileSpace *space = matmul_space(4096, 4096, 4096);
    DeviceSpec device = a100();
    RTile shared = {{128, 128, 16}}, inner = {{8, 8, 1}};
    ck_assert_int_eq(staged_lines(space, &space->tiles[0], &shared, &inner, &device).padding, 4);
    ck_assert_int_eq(staged_lines(space, &space->tiles[1], &shared, &inner, &device).padding, 0);
    RTile one_row = {{128, 128, 1}};
    ck_assert_int_eq(staged_lines(space, &space->tiles[0], &one_row, &inner, &device).padding, 0);
}
END_TEST

START_TEST(sizes_double_and_stop_at_the_limit)
{
    Arena *arena = arena_new();
    TileSpace *space = matmul_space(4096, 4096, 4096);
    ck_assert_str_eq(sizes(arena, space, LEVEL_REGISTER, NULL, 0, 0), "1 2 4 8 16");
    ck_assert_str_eq(sizes(arena, space, LEVEL_REGISTER, NULL, 2, 0), "1");
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, NULL, 2, 0), "8 16 32");
    arena_free(arena);
}
END_TEST

/* 96 = 3 * 32 divides 12288 = 3 * 4096. */
START_TEST(small_odd_multiples_count_when_they_divide_the_axis)
{
    Arena *arena = arena_new();
    TileSpace *space = matmul_space(12288, 1, 64);
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, NULL, 0, 0),
                     "1 2 3 4 6 8 12 16 24 32 48 64 96 128 192 256");
    arena_free(arena);
}
END_TEST

START_TEST(a_shared_size_is_a_multiple_of_the_register_size)
{
    Arena *arena = arena_new();
    TileSpace *space = matmul_space(4096, 4096, 4096);
    RTile inner = {{8, 4, 1}};
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, &inner, 0, 0), "8 16 32 64 128 256");
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, &inner, 2, 0), "8 16 32");
    arena_free(arena);
}
END_TEST

/* Nothing but 1 divides 4099, but 256 wastes only 17 * 256 - 4099 = 253 of it: 6.2 %. Of 17, 8
   wastes 7 (41 %), 16 wastes 15 (88 %), and 17 and 32 cover it whole. */
START_TEST(prime_axes_open_up_with_the_tolerance)
{
    Arena *arena = arena_new();
    TileSpace *space = matmul_space(4099, 17, 7);
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, NULL, 0, 0), "1");
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, NULL, 0, 0.05), "1 2 4 8 16 32 64 128");
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, NULL, 0, 0.2), "1 2 4 8 16 32 64 128 256");
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, NULL, 1, 0), "1 17 32");
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, NULL, 1, 0.2), "1 2 4 17 32");
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, NULL, 1, 0.6), "1 2 4 8 17 32");
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, NULL, 1, 1.0), "1 2 4 8 16 17 32");
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, NULL, 2, 0), "8");   // covers the 7
    arena_free(arena);
}
END_TEST

START_TEST(an_axis_of_one_has_one_size)
{
    Arena *arena = arena_new();
    TileSpace *space = matmul_space(1, 1ll << 40, 1);
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, NULL, 0, 1), "1");
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, NULL, 1, 0), "1 2 4 8 16 32 64 128 256");
    arena_free(arena);
}
END_TEST

/* 136 in eights are 17: three tiles of 6 reach to 18, of 8 to 24; two of 9 to 18, of 16 to 32. */
START_TEST(even_sizes_reach_less_past_the_end_in_as_few_tiles)
{
    Arena *arena = arena_new();
    TileSpace *space = matmul_space(4096, 136, 4096);
    space->rule[LEVEL_SHARED][1] = (AxisRule){8, 256};
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, NULL, 1, 1), "8 16 32 64 128 136 256");
    space->even = 3;
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, NULL, 1, 1), "8 16 32 48 64 72 128 136 256");
    space->rule[LEVEL_SHARED][0] = (AxisRule){8, 256};
    ck_assert_str_eq(sizes(arena, space, LEVEL_SHARED, NULL, 0, 1), "8 16 32 64 128 256");
    arena_free(arena);
}
END_TEST

START_TEST(the_previous_size_undoes_the_next)
{
    TileSpace *space = matmul_space(4096, 17, 4096);
    Tolerance none = {0};
    ck_assert_int_eq(rtile_previous_size(space, NULL, 0, 128, &none), 64);
    ck_assert_int_eq(rtile_previous_size(space, NULL, 0, 1, &none), 0);
    ck_assert_int_eq(rtile_previous_size(space, NULL, 1, 17, &none), 1);
}
END_TEST

/* Of 17: tiles of 2 cover 18, of 4 cover 20, of 8 cover 24, of 16 cover 32. Nothing else is refused below 1/17. */
START_TEST(what_a_refused_size_would_waste_is_told)
{
    TileSpace *space = matmul_space(4096, 17, 4096);
    Tolerance none = {.refused = 1}, some = {.allowed = 0.1, .refused = 1}, even = {.refused = 1};
    ck_assert_int_eq(rtile_next_size(space, LEVEL_SHARED, NULL, 1, 1, &none), 17);
    ck_assert_double_eq_tol(none.refused, 1 / 17.0, 1e-12);
    ck_assert_int_eq(rtile_next_size(space, LEVEL_SHARED, NULL, 1, 2, &some), 17);
    ck_assert_double_eq_tol(some.refused, 3 / 17.0, 1e-12);
    ck_assert_int_eq(rtile_next_size(space, LEVEL_SHARED, NULL, 0, 64, &even), 128);
    ck_assert_double_eq(even.refused, 1);
}
END_TEST

/* Of 16-bit elements eight are a piece; lines of 2, 4 or a multiple of 8 pieces need no padding, others are filled up to that. */
START_TEST(lines_whose_pieces_change_places_are_filled_up)
{
    static const int64_t widths[][2] = {{16, 0}, {32, 0}, {64, 0}, {192, 0}, {8, 8}, {24, 8}, {40, 24}, {72, 56}};
    DeviceSpec device = v100();
    TileSpace *space = matmul_space(256, 256, 256);
    DataTile *a = &space->tiles[0];
    a->element_bits = 16;
    a->swizzled = true;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        RTile shared = {{widths[i][0], 64, 32}}, inner = {{1, 64, 1}};
        ck_assert_int_eq(staged_lines(space, a, &shared, &inner, &device).padding, widths[i][1]);
    }
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("align");
    tcase_add_test(cases, a_3_by_4_tile_on_4_banks_is_padded_to_3_by_5);
    tcase_add_test(cases, f32_rows_on_32_banks);
    tcase_add_test(cases, lines_whose_pieces_change_places_are_filled_up);
    tcase_add_test(cases, half_elements_and_wide_banks);
    tcase_add_test(cases, only_tiles_crossed_by_a_warp_are_padded);
    tcase_add_test(cases, sizes_double_and_stop_at_the_limit);
    tcase_add_test(cases, small_odd_multiples_count_when_they_divide_the_axis);
    tcase_add_test(cases, a_shared_size_is_a_multiple_of_the_register_size);
    tcase_add_test(cases, prime_axes_open_up_with_the_tolerance);
    tcase_add_test(cases, an_axis_of_one_has_one_size);
    tcase_add_test(cases, even_sizes_reach_less_past_the_end_in_as_few_tiles);
    tcase_add_test(cases, the_previous_size_undoes_the_next);
    tcase_add_test(cases, what_a_refused_size_would_waste_is_told);
    Suite *suite = suite_create("align");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
