#include "rprogram/rprogram.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../kernel/kinds.h"

enum { KEEP = 10 };

typedef struct Result {
    RProgram kept[KEEP];
    int count;
    ConstructStats stats;
} Result;

static Result construct(const KernelKind *kind, const DeviceSpec *device)
{
    Result result;
    memset(&result, 0, sizeof result);
    Arena *arena = arena_new();
    result.count = rprogram_construct(arena, kind, &(Target){.device = device}, 0, KEEP, result.kept, &result.stats);
    arena_free(arena);
    return result;
}

static int distinct(const Result *result, Level level, int axis_count)
{
    int found = 0;
    for (int i = 0; i < result->count; i++) {
        bool fresh = true;
        for (int j = 0; j < i; j++)
            fresh &= memcmp(result->kept[i].tile[level].size, result->kept[j].tile[level].size,
                            (size_t)axis_count * sizeof(int64_t)) != 0;
        found += fresh;
    }
    return found;
}

static void check_ascending(const Result *result)
{
    for (int i = 1; i < result->count; i++)
        ck_assert_double_le(result->kept[i - 1].perf.time_us, result->kept[i].perf.time_us);
}

/* Every kept program keeps the device's limits, and its tiles nest and cover the problem. */
static void check_legal(const Result *result, const KernelKind *kind, const DeviceSpec *device)
{
    for (int i = 0; i < result->count; i++) {
        const RProgram *p = &result->kept[i];
        ck_assert_int_le(p->threads, device->max_threads_per_block);
        ck_assert_int_le(p->registers, device->registers_per_thread);
        ck_assert_int_le(p->shared_bytes, device->shared_per_block_optin);
        ck_assert_int_ge(p->perf.blocks_per_sm, 1);
        for (int a = 0; a < kind->space->axis_count; a++)
            ck_assert_int_eq(p->tile[LEVEL_SHARED].size[a] % p->tile[LEVEL_REGISTER].size[a], 0);
    }
}

static void check_matmul(DeviceSpec device)
{
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    Result result = construct(&kind, &device);
    ck_assert_int_eq(result.count, KEEP);
    check_ascending(&result);
    check_legal(&result, &kind, &device);
    ck_assert_int_ge(distinct(&result, LEVEL_REGISTER, 3), 4);
    ck_assert_int_ge(distinct(&result, LEVEL_SHARED, 2), 4);   // m and n: block tiles

    const RProgram *best = &result.kept[0];
    const int64_t *inner = best->tile[LEVEL_REGISTER].size;
    const int64_t *shared = best->tile[LEVEL_SHARED].size;
    ck_assert_int_ge(inner[0] * inner[1], 64);
    ck_assert_int_ge(shared[0] * shared[1], 64 * 64);
    double gflop_s = 2 * 4096.0 * 4096 * 4096 / best->perf.time_us / 1e3;
    double share_of_peak = gflop_s / device.peak[UNIT_FP32];
    ck_assert_double_ge(share_of_peak, 0.5);
    ck_assert_double_le(share_of_peak, 1.0);
}

START_TEST(matmul_on_three_devices)
{
    check_matmul(a100());
    check_matmul(v100());
    check_matmul(k80());
}
END_TEST

START_TEST(the_same_call_gives_the_same_bytes)
{
    KernelKind kind = matmul_kind(1000, 4099, 33);
    DeviceSpec device = v100();
    Result first = construct(&kind, &device), second = construct(&kind, &device);
    ck_assert_int_gt(first.count, 0);
    ck_assert_mem_eq(&first, &second, sizeof first);
}
END_TEST

START_TEST(every_program_tried_is_accounted_for)
{
    KernelKind kind = matmul_kind(4099, 17, 128);
    DeviceSpec device = a100();
    Result result = construct(&kind, &device);
    int64_t pruned = 0;
    for (int reason = 0; reason < PRUNE_COUNT; reason++)
        pruned += result.stats.pruned[reason];
    ck_assert_int_eq(result.stats.generated, pruned + result.count);
    ck_assert_int_eq(result.stats.feasible, result.stats.pruned[PRUNE_SLOWER] + result.count);
}
END_TEST

START_TEST(construction_stays_small)
{
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    DeviceSpec device = a100();
    ck_assert_int_lt(construct(&kind, &device).stats.generated, 3000);
}
END_TEST

START_TEST(prime_extents_have_programs)
{
    const int64_t extents[][3] = {{4099, 4099, 4099}, {17, 17, 17}, {1, 4099, 17}, {7, 1, 1},
                                  {1, 1, 1}};
    DeviceSpec device = a100();
    for (int i = 0; i < 5; i++) {
        KernelKind kind = matmul_kind(extents[i][0], extents[i][1], extents[i][2]);
        Result result = construct(&kind, &device);
        ck_assert_int_gt(result.count, 0);
        check_ascending(&result);
        check_legal(&result, &kind, &device);
    }
}
END_TEST

/* 2^38 rows in blocks of at most 256 need 2^30 blocks. 2^40 would need 2^32, more than a launch
   may have. */
START_TEST(huge_extents)
{
    DeviceSpec device = a100();
    KernelKind fits = matmul_kind(1ll << 38, 1, 64), too_large = matmul_kind(1ll << 40, 1, 64);
    ck_assert_int_gt(construct(&fits, &device).count, 0);
    Result none = construct(&too_large, &device);
    ck_assert_int_eq(none.count, 0);
    ck_assert_int_gt(none.stats.pruned[PRUNE_GRID], 0);
}
END_TEST

/* Roller's M2: 128 x 1000 with 128 x 128 blocks would be 8 blocks for 80 units. */
START_TEST(small_operators_shrink_until_units_have_work)
{
    KernelKind kind = matmul_kind(128, 1000, 2048);
    DeviceSpec device = v100();
    Result result = construct(&kind, &device);
    ck_assert_int_eq(result.count, KEEP);
    ck_assert_int_ge(result.kept[0].grid, device.sm_count);
}
END_TEST

/* Half a warp of 64 lanes would idle in a block of 32 threads: all blocks hold whole warps. */
START_TEST(threads_come_in_whole_warps_of_the_device)
{
    KernelKind kind = matmul_kind(1024, 1024, 1024);
    DeviceSpec device = v100();
    device.warp_size = 64;
    Result result = construct(&kind, &device);
    ck_assert_int_eq(result.count, KEEP);
    for (int i = 0; i < result.count; i++)
        ck_assert_int_eq(result.kept[i].threads % 64, 0);
}
END_TEST

/* 3 x 5 outputs have no use for a whole warp. */
START_TEST(a_problem_below_one_warp_takes_a_partial_one)
{
    KernelKind kind = matmul_kind(3, 5, 64);
    DeviceSpec device = a100();
    Result result = construct(&kind, &device);
    ck_assert_int_gt(result.count, 0);
    ck_assert_int_le(result.kept[0].threads, 32);
}
END_TEST

START_TEST(elementwise_is_vectorised)
{
    KernelKind kind = elementwise_kind(100000000);
    DeviceSpec device = a100();
    Result result = construct(&kind, &device);
    ck_assert_int_eq(result.count, KEEP);
    check_legal(&result, &kind, &device);
    ck_assert_int_ge(result.kept[0].tile[LEVEL_REGISTER].size[0], 8);
    ck_assert_int_eq(result.kept[0].perf.bound_by, BOUND_DRAM);
    ck_assert_double_gt(8e8 / result.kept[0].perf.time_us / 1e3,
                        0.85 * device.dram.bandwidth_gb_s);
}
END_TEST

START_TEST(threads_share_the_axis_of_a_row_reduction)
{
    KernelKind kind = reduce_kind(1024, 100003);
    DeviceSpec device = a100();
    Result result = construct(&kind, &device);
    ck_assert_int_gt(result.count, 0);
    check_legal(&result, &kind, &device);
    const RProgram *best = &result.kept[0];
    ck_assert_int_ge(best->tile[LEVEL_SHARED].size[1], 128);
    ck_assert_int_eq(best->threads,
                     best->tile[LEVEL_SHARED].size[0] * best->tile[LEVEL_SHARED].size[1]
                                        / best->tile[LEVEL_REGISTER].size[1]);
}
END_TEST

START_TEST(windows_have_programs)
{
    KernelKind kind = window_kind(128 * 168, 7, 7);
    DeviceSpec device = v100();
    Result result = construct(&kind, &device);
    ck_assert_int_eq(result.count, KEEP);
    check_legal(&result, &kind, &device);
    ck_assert_int_eq(result.kept[0].perf.bound_by, BOUND_DRAM);
}
END_TEST

START_TEST(a_device_without_room_holds_none)
{
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    DeviceSpec device = a100();
    device.shared_per_block_optin = 64;
    ck_assert_int_eq(construct(&kind, &device).count, 0);
}
END_TEST

START_TEST(the_best_program_is_always_kept)
{
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    DeviceSpec device = a100();
    Arena *arena = arena_new();
    RProgram one;
    ConstructStats stats = {0};
    ck_assert_int_eq(rprogram_construct(arena, &kind, &(Target){.device = &device}, 0, 1, &one, &stats), 1);
    Result ten = construct(&kind, &device);
    ck_assert_mem_eq(one.tile, ten.kept[0].tile, sizeof one.tile);
    arena_free(arena);
}
END_TEST

START_TEST(a_program_prints_its_tiles_and_its_terms)
{
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    DeviceSpec device = a100();
    Result result = construct(&kind, &device);
    Arena *arena = arena_new();
    StrBuf out = strbuf_new(arena);
    rprogram_print(&out, &kind, &result.kept[0]);
    ck_assert_ptr_nonnull(strstr(out.text, "  global         4096      4096      4096\n"));
    ck_assert_ptr_nonnull(strstr(out.text, "bound by compute"));
    arena_free(arena);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("construct");
    tcase_add_test(cases, matmul_on_three_devices);
    tcase_add_test(cases, the_same_call_gives_the_same_bytes);
    tcase_add_test(cases, every_program_tried_is_accounted_for);
    tcase_add_test(cases, construction_stays_small);
    tcase_add_test(cases, prime_extents_have_programs);
    tcase_add_test(cases, huge_extents);
    tcase_add_test(cases, small_operators_shrink_until_units_have_work);
    tcase_add_test(cases, threads_come_in_whole_warps_of_the_device);
    tcase_add_test(cases, a_problem_below_one_warp_takes_a_partial_one);
    tcase_add_test(cases, elementwise_is_vectorised);
    tcase_add_test(cases, threads_share_the_axis_of_a_row_reduction);
    tcase_add_test(cases, windows_have_programs);
    tcase_add_test(cases, a_device_without_room_holds_none);
    tcase_add_test(cases, the_best_program_is_always_kept);
    tcase_add_test(cases, a_program_prints_its_tiles_and_its_terms);
    Suite *suite = suite_create("construct");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
