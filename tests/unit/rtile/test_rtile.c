#include "rtile/rtile.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "rtile/space.h"
#include "spaces.h"

/* 2*h + p for 4 h's and 3 p's reaches 2*3 + 1*2 + 1 = 9 rows; 2*w + q for 8 and 3 reaches 17
   columns. */
START_TEST(a_window_tile_reaches_over_its_neighbours)
{
    const TileSpace *space = window_space(64, 56, 56);
    RTile tile = {{2, 4, 8, 3, 3}};
    ck_assert_int_eq(data_tile_elements(&space->tiles[0], &tile, 5), 2 * 9 * 17);
    ck_assert_int_eq(data_tile_elements(&space->tiles[1], &tile, 5), 2 * 4 * 8);
}
END_TEST

/* The input is 113 wide. 64 outputs reach 2*63 + 2 + 1 = 129 columns, but there are no more than
   113. */
START_TEST(bytes_are_clipped_to_the_tensor)
{
    const TileSpace *space = window_space(1, 56, 56);
    RTile tile = {{1, 1, 64, 3, 3}};
    ck_assert_double_eq(data_tile_bytes(&space->tiles[0], &tile, 5), 3 * 113 * 4);
}
END_TEST

/* A[m,k], rows of 4096 floats: 128 rows of 16 floats are 128 runs of 64 bytes = 2 transactions of
   32. */
START_TEST(aligned_rows_move_their_bytes)
{
    const TileSpace *space = matmul_space(4096, 4096, 4096);
    RTile tile = {{128, 128, 16}};
    ck_assert_double_eq(data_tile_traffic(&space->tiles[0], &tile, 3, 32), 128 * 64);
    ck_assert_double_eq(data_tile_traffic(&space->tiles[1], &tile, 3, 32), 16 * 512);
}
END_TEST

/* A row of one float moves a whole transaction. 5 floats (20 bytes) somewhere in a long row start
   at one of 8 places of a transaction; from 4 of them they reach into the next: 32 or 64 bytes, 48
   on average. */
START_TEST(short_rows_move_whole_transactions)
{
    const TileSpace *space = matmul_space(4096, 4096, 4096);
    RTile one = {{128, 1, 1}}, five = {{1, 1, 5}};
    ck_assert_double_eq(data_tile_traffic(&space->tiles[0], &one, 3, 32), 128 * 32);
    ck_assert_double_eq(data_tile_traffic(&space->tiles[0], &five, 3, 32), 48);
}
END_TEST

/* Rows of 4099 floats start anywhere: 32 floats = 128 bytes move 128 + 32 - 4 = 156 on average. */
START_TEST(rows_of_a_prime_length_are_never_aligned)
{
    const TileSpace *space = matmul_space(64, 64, 4099);
    RTile tile = {{1, 1, 32}};
    ck_assert_double_eq(data_tile_traffic(&space->tiles[0], &tile, 3, 32), 156);
}
END_TEST

/* [8, 5] taken whole is one run of 40 floats = 160 bytes, 5 transactions; not 8 runs of 20. */
START_TEST(full_inner_dimensions_join_into_one_run)
{
    const TileSpace *space = matmul_space(8, 4, 5);
    RTile tile = {{8, 4, 5}};
    ck_assert_double_eq(data_tile_traffic(&space->tiles[0], &tile, 3, 32), 160);
}
END_TEST

START_TEST(huge_tiles_saturate_instead_of_overflowing)
{
    const TileSpace *space = matmul_space(1ll << 40, 1ll << 40, 1ll << 40);
    RTile problem = rtile_problem(space);
    ck_assert_int_eq(data_tile_elements(&space->tiles[0], &problem, 3), INT64_MAX);
    ck_assert_double_eq_tol(data_tile_bytes(&space->tiles[0], &problem, 3) / 0x1p82, 1,
                            1e-12);
    ck_assert_double_gt(data_tile_traffic(&space->tiles[0], &problem, 3, 32), 0x1p81);
}
END_TEST

/* scale[b,c] of 8 * 4096 rows (b,t) of 3072 floats: two rows have room for 6144 of them, but 3072 move. */
START_TEST(a_scale_that_rows_share_moves_once)
{
    DataTile scale = {.rank = 2, .dims = {dim(0, 8 * 4096), dim(1, 3072)}, .repeats = {{4096, 8, 1}}, .element_bits = 32};
    RTile two = {{2, 3072}}, all = {{8 * 4096, 3072}};
    ck_assert_int_eq(data_tile_elements(&scale, &two, 2), 2 * 3072);
    ck_assert_int_eq(data_tile_distinct(&scale, &two, 2), 3072);
    ck_assert_double_eq(data_tile_traffic(&scale, &two, 2, 32), 3072 * 4);
    ck_assert_double_eq(data_tile_bytes(&scale, &all, 2), 8 * 3072 * 4);
}
END_TEST

/* bias[b,q] of rows (b,h,q) of 2 batches, 16 heads and 512 queries: those of a head differ, those of the next head are the
   same again, those of the next batch are others. */
START_TEST(a_mask_comes_again_with_every_head)
{
    DataTile bias = {.rank = 1, .dims = {dim(0, 2 * 16 * 512)}, .repeats = {{1, 512, 16}}, .element_bits = 32};
    const int64_t rows[][2] = {{100, 100}, {512, 512}, {1000, 512}, {16 * 512, 512}, {16 * 512 + 1, 1024}, {2 * 16 * 512, 1024}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_int_eq(data_tile_distinct(&bias, &(RTile){{rows[i][0]}}, 1), rows[i][1]);
}
END_TEST

/* x[c, h + r, v + s] of 16 bits, 161 wide: 32 outputs (c, r, s) next to each other are nine taps of three planes and five of a
   fourth, whose rows are 322 bytes apart: eleven lines of 128 bytes, where half a line of elements is asked for. Eight elements of a thread
   that lie side by side are as many lines as bytes. */
START_TEST(taps_of_planes_lie_in_lines_of_their_own)
{
    Tensor image = {.dtype = DTYPE_F16, .rank = 3, .shape = {29, 161, 161}};
    Fusion fusion = {.spatial_count = 3, .axis_count = 5,
                     .axes = {{.extent = 29}, {.extent = 3}, {.extent = 3}, {.extent = 81}, {.extent = 81}}};
    Dim dims[] = {{affine_axis(0), 29}, {{.coef = {0, 1, 0, 2}, .constant = 0}, 161}, {{.coef = {0, 0, 1, 0, 2}}, 161}};
    Access access = {&image, 3, dims};
    DeviceSpec device = {.warp_size = 32, .shared = {.transaction_bytes = 128}};
    ck_assert_double_eq(access_lines(&access, &fusion, 0, 3, 1, 1, &device), 11 * 2);
    Fusion flat = {.spatial_count = 0, .axis_count = 1, .axes = {{.extent = 4096}}};
    Dim line = {affine_axis(0), 4096};
    Access row = {&image, 1, &line};
    ck_assert_double_eq(access_lines(&row, &flat, 0, 1, 8, 8, &device), 1);
    ck_assert_double_eq(access_lines(&row, &flat, 0, 1, 1, 1, &device), 2);   // a load of 64 bytes has a turn, too
    ck_assert_double_eq(access_lines(&row, &flat, 0, 1, 8, 1, &device), 8);   // each of eight that are loaded alone
}
END_TEST

/* Elements of 4 bytes that L1 has: of words in one bank one each cycle, and four lines; but a load takes its least. */
START_TEST(loads_take_the_cycles_of_their_banks_and_lines)
{
    Tensor image = {.dtype = DTYPE_F32, .rank = 1, .shape = {1 << 20}};
    Fusion fusion = {.spatial_count = 1, .axis_count = 1, .axes = {{.extent = 4096}}};
    DeviceSpec device = {.warp_size = 32, .shared = {.transaction_bytes = 128}};
    const double cycles[][2] = {{1, 1.75}, {3, 1.75}, {4, 4}, {32, 32}, {33, 8}};
    for (size_t i = 0; i < sizeof cycles / sizeof *cycles; i++) {
        Dim dim = {{.coef = {(int64_t)cycles[i][0]}}, 1 << 20};
        Access access = {&image, 1, &dim};
        ck_assert_double_eq(access_cycles(&access, &fusion, -1, 1, 1.75, &device), cycles[i][1]);
    }
    Dim line = {affine_axis(0), 1 << 20};
    Access row = {&image, 1, &line};
    ck_assert_double_eq(access_cycles(&row, &fusion, 0, 4, 1.75, &device), 4);   // four positions of a thread
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("rtile");
    tcase_add_test(cases, taps_of_planes_lie_in_lines_of_their_own);
    tcase_add_test(cases, loads_take_the_cycles_of_their_banks_and_lines);
    tcase_add_test(cases, a_window_tile_reaches_over_its_neighbours);
    tcase_add_test(cases, bytes_are_clipped_to_the_tensor);
    tcase_add_test(cases, aligned_rows_move_their_bytes);
    tcase_add_test(cases, short_rows_move_whole_transactions);
    tcase_add_test(cases, rows_of_a_prime_length_are_never_aligned);
    tcase_add_test(cases, full_inner_dimensions_join_into_one_run);
    tcase_add_test(cases, huge_tiles_saturate_instead_of_overflowing);
    tcase_add_test(cases, a_scale_that_rows_share_moves_once);
    tcase_add_test(cases, a_mask_comes_again_with_every_head);
    Suite *suite = suite_create("rtile");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
