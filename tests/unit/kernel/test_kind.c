#include "kernel/kind.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kinds.h"

/* As 16 x (128 + 4) and Bs 16 x 128 floats, two buffers: 2 * 4 * (2112 + 2048) = 33280 bytes.
   Registers: 64 accumulators, 8 + 8 inputs, 24 others = 104, 4 bytes each. */
START_TEST(matmul_footprints)
{
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    DeviceSpec device = a100();
    RTile shared = {{128, 128, 16}}, inner = {{8, 8, 1}};
    ck_assert_int_eq(kind_footprint(&kind, &shared, &inner, &device, LEVEL_SHARED), 33280);
    ck_assert_int_eq(kind_footprint(&kind, &inner, NULL, &device, LEVEL_REGISTER), 416);
}
END_TEST

/* A warp's 64 x 64 tile with k 16: (4096 + 1024 + 1024) values of 32 bits over 32 threads =
   192, and 24 others. */
START_TEST(a_warp_shares_its_register_tile)
{
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    DeviceSpec device = a100();
    RTile inner = {{64, 64, 16}};
    kind.threads.of_tile = 32;
    ck_assert_int_eq(kind_footprint(&kind, &inner, NULL, &device, LEVEL_REGISTER),
                     4 * (192 + 24));
}
END_TEST

static double reuse_score(const KernelKind *kind, const RTile *tile, const RTile *grown, const RTile *inner,
                          Level level)
{
    DeviceSpec device = a100();
    TileCost cost = {rtile_traffic(kind->space, tile, &device, level), kind_footprint(kind, tile, inner, &device, level)};
    TileCost more = {rtile_traffic(kind->space, grown, &device, level), kind_footprint(kind, grown, inner, &device, level)};
    return rtile_reuse_score(&cost, &more);
}

/* Per point of a 1x1 register tile two floats arrive, and one in 4096 leaves: Q = 8 + 4/4096
   bytes. 2x1 needs three floats for two points: Q = 6 + 4/4096. It takes 2 + 2 + 1 registers
   instead of 1 + 1 + 1: S = 2 bytes / 8 bytes. */
START_TEST(register_reuse_by_hand)
{
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    DeviceSpec device = a100();
    RTile one = {{1, 1, 1}}, two = {{2, 1, 1}};
    ck_assert_double_eq_tol(rtile_traffic(kind.space, &one, &device, LEVEL_REGISTER), 8 + 4 / 4096.0,
                            1e-12);
    ck_assert_double_eq_tol(reuse_score(&kind, &one, &two, NULL, LEVEL_REGISTER), 0.25, 1e-12);
}
END_TEST

/* A block of 128 x 128: each A and B element serves 128 points, Q = 4/128 + 4/128 + 4/4096 bytes.
   With 64 rows, B serves only 64: 4/64 + 4/128 + 4/4096. Growing 64 -> 128 rows saves 4/128 for 2
   buffers * 16 * 64 floats = 8192 bytes. */
START_TEST(shared_reuse_by_hand)
{
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    DeviceSpec device = a100();
    RTile small = {{64, 128, 16}}, large = {{128, 128, 16}}, inner = {{8, 8, 1}};
    ck_assert_double_eq_tol(rtile_traffic(kind.space, &large, &device, LEVEL_SHARED),
                            8 / 128.0 + 4 / 4096.0, 1e-12);
    double score = reuse_score(&kind, &small, &large, &inner, LEVEL_SHARED);
    ck_assert_double_eq_tol(score, (4 / 128.0) / 8192, 1e-15);
}
END_TEST

START_TEST(elementwise_tiles_reuse_nothing)
{
    KernelKind kind = elementwise_kind(1 << 20);
    RTile small = {{256}}, large = {{512}}, inner = {{4}};
    ck_assert_double_eq(reuse_score(&kind, &small, &large, &inner, LEVEL_SHARED), 0);
}
END_TEST

START_TEST(a_kind_prints_as_a_table)
{
    Arena *arena = arena_new();
    StrBuf out = strbuf_new(arena);
    KernelKind kind = elementwise_kind(1000);
    kind_print(&out, &kind);
    ck_assert_ptr_nonnull(strstr(out.text,
                                 "rules elementwise: 1 stages, 1 flop a point on fp32\n"));
    ck_assert_ptr_nonnull(strstr(out.text, "  store     [i] 32 bits\n"));
    arena_free(arena);
}
END_TEST

/* A family's own layout is all of a block's shared memory. */
START_TEST(a_layout_of_its_own_is_the_footprint)
{
    DeviceSpec device = a100();
    KernelKind kind = reduce_kind(1000, 4096);
    RTile tile = {{4, 1024}};
    ck_assert_int_eq(kind_footprint(&kind, &tile, &tile, &device, LEVEL_SHARED), 128);
    layout_add(&kind.shared, "COPIES", 36800);
    ck_assert_int_eq(kind_footprint(&kind, &tile, &tile, &device, LEVEL_SHARED), 36928);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("kind");
    tcase_add_test(cases, matmul_footprints);
    tcase_add_test(cases, a_warp_shares_its_register_tile);
    tcase_add_test(cases, register_reuse_by_hand);
    tcase_add_test(cases, shared_reuse_by_hand);
    tcase_add_test(cases, elementwise_tiles_reuse_nothing);
    tcase_add_test(cases, a_kind_prints_as_a_table);
    tcase_add_test(cases, a_layout_of_its_own_is_the_footprint);
    Suite *suite = suite_create("kind");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
