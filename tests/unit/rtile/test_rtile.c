#include "rtile/rtile.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "spaces.h"

/* 2*h + p for 4 h's and 3 p's reaches 2*3 + 1*2 + 1 = 9 rows; 2*w + q for 8 and 3 reaches 17
   columns. */
START_TEST(a_window_tile_reaches_over_its_neighbours)
{
    TileRules rules = window_rules(64, 56, 56);
    RTile tile = {{2, 4, 8, 3, 3}};
    ck_assert_int_eq(data_tile_elements(&rules.space->tiles[0], &tile, 5), 2 * 9 * 17);
    ck_assert_int_eq(data_tile_elements(&rules.space->tiles[1], &tile, 5), 2 * 4 * 8);
}
END_TEST

/* The input is 113 wide. 64 outputs reach 2*63 + 2 + 1 = 129 columns, but there are no more than
   113. */
START_TEST(bytes_are_clipped_to_the_tensor)
{
    TileRules rules = window_rules(1, 56, 56);
    RTile tile = {{1, 1, 64, 3, 3}};
    ck_assert_double_eq(data_tile_bytes(&rules.space->tiles[0], &tile, 5), 3 * 113 * 4);
}
END_TEST

/* A[m,k], rows of 4096 floats: 128 rows of 16 floats are 128 runs of 64 bytes = 2 transactions of
   32. */
START_TEST(aligned_rows_move_their_bytes)
{
    TileRules rules = matmul_rules(4096, 4096, 4096);
    RTile tile = {{128, 128, 16}};
    ck_assert_double_eq(data_tile_traffic(&rules.space->tiles[0], &tile, 3, 32), 128 * 64);
    ck_assert_double_eq(data_tile_traffic(&rules.space->tiles[1], &tile, 3, 32), 16 * 512);
}
END_TEST

/* A row of one float moves a whole transaction. 5 floats (20 bytes) somewhere in a long row start
   at one of 8 places of a transaction; from 4 of them they reach into the next: 32 or 64 bytes, 48
   on average. */
START_TEST(short_rows_move_whole_transactions)
{
    TileRules rules = matmul_rules(4096, 4096, 4096);
    RTile one = {{128, 1, 1}}, five = {{1, 1, 5}};
    ck_assert_double_eq(data_tile_traffic(&rules.space->tiles[0], &one, 3, 32), 128 * 32);
    ck_assert_double_eq(data_tile_traffic(&rules.space->tiles[0], &five, 3, 32), 48);
}
END_TEST

/* Rows of 4099 floats start anywhere: 32 floats = 128 bytes move 128 + 32 - 4 = 156 on average. */
START_TEST(rows_of_a_prime_length_are_never_aligned)
{
    TileRules rules = matmul_rules(64, 64, 4099);
    RTile tile = {{1, 1, 32}};
    ck_assert_double_eq(data_tile_traffic(&rules.space->tiles[0], &tile, 3, 32), 156);
}
END_TEST

/* [8, 5] taken whole is one run of 40 floats = 160 bytes, 5 transactions; not 8 runs of 20. */
START_TEST(full_inner_dimensions_join_into_one_run)
{
    TileRules rules = matmul_rules(8, 4, 5);
    RTile tile = {{8, 4, 5}};
    ck_assert_double_eq(data_tile_traffic(&rules.space->tiles[0], &tile, 3, 32), 160);
}
END_TEST

/* As 16 x (128 + 4) and Bs 16 x 128 floats, two buffers: 2 * 4 * (2112 + 2048) = 33280 bytes.
   Registers: 64 accumulators, 8 + 8 inputs, 24 others = 104, 4 bytes each. */
START_TEST(matmul_footprints)
{
    TileRules rules = matmul_rules(4096, 4096, 4096);
    DeviceSpec device = a100();
    RTile shared = {{128, 128, 16}}, inner = {{8, 8, 1}};
    ck_assert_int_eq(rtile_footprint(&rules, &shared, &inner, &device, LEVEL_SHARED), 33280);
    ck_assert_int_eq(rtile_footprint(&rules, &inner, NULL, &device, LEVEL_REGISTER), 416);
}
END_TEST

/* A warp's 64 x 64 tile with k 16: (4096 + 1024 + 1024) values of 32 bits over 32 threads =
   192, and 24 others. */
START_TEST(a_warp_shares_its_register_tile)
{
    TileRules rules = matmul_rules(4096, 4096, 4096);
    DeviceSpec device = a100();
    RTile inner = {{64, 64, 16}};
    rules.tile_threads = 32;
    ck_assert_int_eq(rtile_footprint(&rules, &inner, NULL, &device, LEVEL_REGISTER),
                     4 * (192 + 24));
}
END_TEST

static double reuse_score(const TileRules *rules, const RTile *tile, const RTile *grown, const RTile *inner,
                          Level level)
{
    DeviceSpec device = a100();
    TileCost cost = rtile_cost(rules, tile, inner, &device, level);
    TileCost more = rtile_cost(rules, grown, inner, &device, level);
    return rtile_reuse_score(&cost, &more);
}

/* Per point of a 1x1 register tile two floats arrive, and one in 4096 leaves: Q = 8 + 4/4096
   bytes. 2x1 needs three floats for two points: Q = 6 + 4/4096. It takes 2 + 2 + 1 registers
   instead of 1 + 1 + 1: S = 2 bytes / 8 bytes. */
START_TEST(register_reuse_by_hand)
{
    TileRules rules = matmul_rules(4096, 4096, 4096);
    DeviceSpec device = a100();
    RTile one = {{1, 1, 1}}, two = {{2, 1, 1}};
    ck_assert_double_eq_tol(rtile_traffic(&rules, &one, &device, LEVEL_REGISTER), 8 + 4 / 4096.0,
                            1e-12);
    ck_assert_double_eq_tol(reuse_score(&rules, &one, &two, NULL, LEVEL_REGISTER), 0.25, 1e-12);
}
END_TEST

/* A block of 128 x 128: each A and B element serves 128 points, Q = 4/128 + 4/128 + 4/4096 bytes.
   With 64 rows, B serves only 64: 4/64 + 4/128 + 4/4096. Growing 64 -> 128 rows saves 4/128 for 2
   buffers * 16 * 64 floats = 8192 bytes. */
START_TEST(shared_reuse_by_hand)
{
    TileRules rules = matmul_rules(4096, 4096, 4096);
    DeviceSpec device = a100();
    RTile small = {{64, 128, 16}}, large = {{128, 128, 16}}, inner = {{8, 8, 1}};
    ck_assert_double_eq_tol(rtile_traffic(&rules, &large, &device, LEVEL_SHARED),
                            8 / 128.0 + 4 / 4096.0, 1e-12);
    double score = reuse_score(&rules, &small, &large, &inner, LEVEL_SHARED);
    ck_assert_double_eq_tol(score, (4 / 128.0) / 8192, 1e-15);
}
END_TEST

START_TEST(elementwise_tiles_reuse_nothing)
{
    TileRules rules = elementwise_rules(1 << 20);
    RTile small = {{256}}, large = {{512}}, inner = {{4}};
    ck_assert_double_eq(reuse_score(&rules, &small, &large, &inner, LEVEL_SHARED), 0);
}
END_TEST

START_TEST(huge_tiles_saturate_instead_of_overflowing)
{
    TileRules rules = matmul_rules(1ll << 40, 1ll << 40, 1ll << 40);
    RTile problem = rtile_problem(rules.space);
    ck_assert_int_eq(data_tile_elements(&rules.space->tiles[0], &problem, 3), INT64_MAX);
    ck_assert_double_eq_tol(data_tile_bytes(&rules.space->tiles[0], &problem, 3) / 0x1p82, 1,
                            1e-12);
    ck_assert_double_gt(data_tile_traffic(&rules.space->tiles[0], &problem, 3, 32), 0x1p81);
}
END_TEST

START_TEST(rules_print_as_a_table)
{
    Arena *arena = arena_new();
    StrBuf out = strbuf_new(arena);
    TileRules rules = elementwise_rules(1000);
    tile_rules_print(&out, &rules);
    ck_assert_ptr_nonnull(strstr(out.text,
                                 "rules elementwise: 1 stages, 1 flop a point on fp32\n"));
    ck_assert_ptr_nonnull(strstr(out.text, "  store     [i] 32 bits\n"));
    arena_free(arena);
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

/* A family's own layout is all of a block's shared memory. */
START_TEST(a_layout_of_its_own_is_the_footprint)
{
    DeviceSpec device = a100();
    TileRules rules = reduce_rules(1000, 4096);
    RTile tile = {{4, 1024}};
    ck_assert_int_eq(rtile_footprint(&rules, &tile, &tile, &device, LEVEL_SHARED), 128);
    layout_add(&rules.shared, "COPIES", 36800);
    ck_assert_int_eq(rtile_footprint(&rules, &tile, &tile, &device, LEVEL_SHARED), 36928);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("rtile");
    tcase_add_test(cases, a_window_tile_reaches_over_its_neighbours);
    tcase_add_test(cases, bytes_are_clipped_to_the_tensor);
    tcase_add_test(cases, aligned_rows_move_their_bytes);
    tcase_add_test(cases, short_rows_move_whole_transactions);
    tcase_add_test(cases, rows_of_a_prime_length_are_never_aligned);
    tcase_add_test(cases, full_inner_dimensions_join_into_one_run);
    tcase_add_test(cases, matmul_footprints);
    tcase_add_test(cases, a_warp_shares_its_register_tile);
    tcase_add_test(cases, register_reuse_by_hand);
    tcase_add_test(cases, shared_reuse_by_hand);
    tcase_add_test(cases, elementwise_tiles_reuse_nothing);
    tcase_add_test(cases, huge_tiles_saturate_instead_of_overflowing);
    tcase_add_test(cases, rules_print_as_a_table);
    tcase_add_test(cases, a_scale_that_rows_share_moves_once);
    tcase_add_test(cases, a_mask_comes_again_with_every_head);
    tcase_add_test(cases, a_layout_of_its_own_is_the_footprint);
    Suite *suite = suite_create("rtile");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
