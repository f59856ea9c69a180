#include "model/superstep.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "../kernel/kinds.h"
#include "rprogram/rprogram.h"

/* 1000 units of 6 workers: 10 Gflop/s, 8 GB/s to the others and 16 GB/s to its own memory each. */
static DeviceSpec units(void)
{
    return (DeviceSpec){
        .name = "units",
        .dialect = DIALECT_NONE,
        .clock_mhz = 1000,
        .sm_count = 1000,
        .lanes_per_sm = 5,
        .warp_size = 1,
        .schedulers_per_sm = 1,
        .max_threads_per_block = 6,
        .max_threads_per_sm = 6,
        .max_blocks_per_sm = 1,
        .registers_per_sm = 288,
        .registers_per_thread = 48,
        .register_granule = 1,
        .shared_per_block = 240 << 10,
        .shared_per_block_optin = 240 << 10,
        .shared_per_sm = 256 << 10,
        .shared_reserved_per_block = 16 << 10,
        .shared_banks = 1,
        .shared_bank_bytes = 16,
        .dram = {8000, 4},
        .l2 = {8000, 4},
        .shared = {16000, 16},
        .dram_bytes = 256 << 20,
        .dram_latency_ns = 150,
        .launch_us = 0.2,
        .superstep_us = 0.1,
        .peak = {[UNIT_FP32] = 10000, [UNIT_SFU] = 1000},
    };
}

static RProgram complete(RTile shared, RTile inner, const DeviceSpec *device)
{
    KernelKind kind = matmul_kind(640, 1024, 512);
    kind.schedule->stages = 1;
    RProgram program = {.tile = {[LEVEL_REGISTER] = inner, [LEVEL_SHARED] = shared}};
    PerfProblem problem = perf_problem(&kind);
    PruneReason reason;
    int64_t footprint[] = {[LEVEL_REGISTER] = 4 * 40,
                           [LEVEL_SHARED] = kind_footprint(&kind, &shared, &inner, device, LEVEL_SHARED)};
    ck_assert(rprogram_complete(&kind, &problem, device, footprint, &program, &reason));
    return program;
}

/* Blocks of 24 x 32 over 640 x 1024: 27 x 32 = 864 of 1000 units, one round. Steps of 64 along 512: 8 supersteps. */
START_TEST(phases_by_hand)
{
    DeviceSpec device = units();
    PerfEstimate perf = complete((RTile){{24, 32, 64}}, (RTile){{4, 4, 4}}, &device).perf;
    ck_assert_double_eq(perf.supersteps, 8);
    ck_assert_double_eq_tol(perf.waves, 0.864, 1e-12);
    ck_assert_double_eq_tol(perf.latency_us, 8 * 0.25, 1e-12);   // 0.1 to meet, 0.15 on the way
    // 24 x 512 and 512 x 32 floats: 114,688 bytes at 8 GB/s
    ck_assert_double_eq_tol(perf.dram_us, 114688 / 8e3, 1e-9);
    // 48 register tiles for 6 workers are 8 each: all are busy. 24 x 32 x 512 points of 2 flop at 10 Gflop/s
    ck_assert_double_eq_tol(perf.compute_us, 24 * 32 * 512 * 2 / 10e3, 1e-9);
    // 48 tiles x 128 steps of 4 x 4 + 4 x 4 floats, and the sums once, at 16 GB/s
    ck_assert_double_eq_tol(perf.shared_us, (48 * 128 * 128 + 24 * 32 * 4) / 16e3, 1e-9);
    ck_assert_double_eq_tol(perf.time_us, perf.compute_us + perf.dram_us + 2 + 0.2, 1e-9);
    ck_assert_int_eq(perf.bound_by, BOUND_COMPUTE);
}
END_TEST

/* The parts of the time that a ranking shows add up to it. */
START_TEST(parts_add_up)
{
    DeviceSpec device = units();
    PerfEstimate perf = complete((RTile){{8, 16, 8}}, (RTile){{4, 4, 4}}, &device).perf;
    double longest = fmax(fmax(perf.compute_us, perf.dram_us), perf.shared_us);
    ck_assert_double_eq_tol(longest + perf.unhidden_us + perf.tail_us + perf.wait_us + perf.launch_us,
                            perf.time_us, 1e-9);
}
END_TEST

/* 80 x 64 blocks on 1000 units are 6 rounds, each with 8 times as many supersteps as steps of 64 take. */
START_TEST(small_tiles_pay_for_their_meetings)
{
    DeviceSpec device = units();
    PerfEstimate small = complete((RTile){{8, 16, 8}}, (RTile){{4, 4, 4}}, &device).perf;
    ck_assert_double_eq(small.supersteps, 6 * 64);
    ck_assert_double_gt(small.dram_us,
                        complete((RTile){{24, 32, 64}}, (RTile){{4, 4, 4}}, &device).perf.dram_us);
}
END_TEST

/* 7 register tiles take 6 workers as long as 12 would. */
START_TEST(workers_without_a_tile_wait)
{
    DeviceSpec device = units();
    PerfEstimate seven = complete((RTile){{28, 4, 64}}, (RTile){{4, 4, 4}}, &device).perf,
                 six = complete((RTile){{24, 4, 64}}, (RTile){{4, 4, 4}}, &device).perf;
    double rounds = ceil(23 * 256 / 1000.0) / ceil(27 * 256 / 1000.0);
    ck_assert_double_eq_tol(seven.compute_us / six.compute_us, 2 * rounds, 1e-9);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("superstep");
    TCase *tests = tcase_create("superstep");
    tcase_add_test(tests, phases_by_hand);
    tcase_add_test(tests, parts_add_up);
    tcase_add_test(tests, small_tiles_pay_for_their_meetings);
    tcase_add_test(tests, workers_without_a_tile_wait);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
