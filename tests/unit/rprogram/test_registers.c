#include "rprogram/registers.h"

#include <check.h>
#include <stdlib.h>

#include "../kernel/kinds.h"
#include "rprogram/rprogram.h"

/* Tiles of 8 x 8 a thread and 128 x 128 x 16 a block, of 256 threads. */
static RProgram program_of(const KernelKind *kind, const DeviceSpec *device)
{
    RProgram program = {.tile = {[LEVEL_REGISTER] = {{8, 8, 1}}, [LEVEL_SHARED] = {{128, 128, 16}}}, .threads = 256};
    const RTile *inner = &program.tile[LEVEL_REGISTER], *shared = &program.tile[LEVEL_SHARED];
    program.shared_bytes = kind_footprint(kind, shared, inner, device, LEVEL_SHARED);
    return program;
}

static RegisterBudget budget_of(const KernelKind *kind, const DeviceSpec *device)
{
    RProgram program = program_of(kind, device);
    const RTile *inner = &program.tile[LEVEL_REGISTER];
    return register_budget(kind, device, &program, kind_footprint(kind, inner, NULL, device, LEVEL_REGISTER));
}

static int64_t taken_of(const KernelKind *kind, const DeviceSpec *device)
{
    RProgram program = program_of(kind, device);
    return registers_taken(kind, device, &program, budget_of(kind, device));
}

/* 64 sums, 16 inputs and 24 others. */
START_TEST(what_a_thread_holds_is_counted)
{
    DeviceSpec device = a100();
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    ck_assert_int_eq(budget_of(&kind, &device).enough, 64 + 16 + 24);
    ck_assert_int_eq(budget_of(&kind, &device).passing, 0);
    ck_assert_int_eq(taken_of(&kind, &device), 64 + 16 + 24);
}
END_TEST

/* Without asynchronous copies 128 x 16 elements of each factor and their padding pass through 256 threads: 17
   words. */
START_TEST(tiles_pass_through_registers)
{
    DeviceSpec device = v100();
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    ck_assert_int_eq(budget_of(&kind, &device).passing, 17);
    ck_assert_int_eq(budget_of(&kind, &device).enough, 64 + 16 + 24 + 17);
}
END_TEST

static int64_t half_of_the_budget(const KernelKind *kind, const RTile *block, const RTile *inner, RegisterBudget budget)
{
    ck_assert_int_eq(kind->space->axis_count, 3);
    ck_assert_int_eq(block->size[0], 128);
    ck_assert_int_eq(inner->size[0], 8);
    return budget.enough / 2;
}

static int64_t twice_the_budget(const KernelKind *kind, const RTile *block, const RTile *inner, RegisterBudget budget)
{
    (void)kind, (void)block, (void)inner;
    return 2 * budget.enough;
}

/* The family's figure is taken as far as one block has room for it: 256 threads have 128 of 32768 registers. */
START_TEST(a_family_counts_by_itself)
{
    DeviceSpec device = a100();
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    kind.registers.taken = half_of_the_budget;
    ck_assert_int_eq(taken_of(&kind, &device), 52);
    kind.registers.taken = twice_the_budget;
    ck_assert_int_eq(taken_of(&kind, &device), 208);
    device.registers_per_sm = 32768;
    ck_assert_int_eq(taken_of(&kind, &device), 128);
    device = a100();
    device.registers_per_thread = 200;
    ck_assert_int_eq(taken_of(&kind, &device), 200);
}
END_TEST

/* Launch bounds promise the blocks of the budget, and time is estimated with those that are there. */
START_TEST(bounds_promise_what_the_budget_has)
{
    DeviceSpec device = a100();
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    kind.registers.taken = half_of_the_budget;
    RProgram program = program_of(&kind, &device);
    PerfProblem problem = perf_problem(&kind);
    PruneReason reason;
    const int64_t footprint[] = {
        [LEVEL_REGISTER] = kind_footprint(&kind, &program.tile[LEVEL_REGISTER], NULL, &device, LEVEL_REGISTER),
        [LEVEL_SHARED] = program.shared_bytes};
    ck_assert(rprogram_complete(&kind, &problem, &device, footprint, &program, &reason));
    ck_assert_int_eq(program.registers, 52);
    ck_assert_int_eq(program.perf.blocks_per_sm, 4);
    ck_assert_int_eq(rprogram_least_blocks(&program, program.threads), 2);
}
END_TEST

/* No bound at all: ten warps were given 96 registers, and kept 344 bytes in memory. */
START_TEST(one_block_of_ten_warps_is_a_bound)
{
    ck_assert_int_eq(rprogram_least_blocks(&(RProgram){.sure_blocks = 1}, 320), 1);
    ck_assert_int_eq(rprogram_least_blocks(&(RProgram){.sure_blocks = 7}, 64), 6);
}
END_TEST

START_TEST(steps_of_a_block)
{
    KernelKind kind = matmul_kind(4096, 4096, 17);
    ck_assert(!kind_is_one_step(&kind, &(RTile){{128, 128, 16}}));
    ck_assert(kind_is_one_step(&kind, &(RTile){{128, 128, 24}}));
    kind.schedule->cluster = 2;   // each block has one of the two
    kind.schedule->cluster_axis = 2;
    ck_assert(kind_is_one_step(&kind, &(RTile){{128, 128, 16}}));
    ck_assert_int_eq(kind_registers(&kind, &(RTile){{8, 8, 1}}, 1), 64 + 16 + 24);
    ck_assert_int_eq(kind_registers(&kind, &(RTile){{8, 8, 1}}, 2), 64 + 32 + 24);
}
END_TEST

START_TEST(vectors_fill_registers)
{
    ck_assert_int_eq(vector_registers(8, 8, 16), 4);
    ck_assert_int_eq(vector_registers(8, 1, 16), 8);   // each alone
    ck_assert_int_eq(vector_registers(3, 2, 16), 2);
    ck_assert_int_eq(vector_registers(1, 8, 16), 1);   // one for all
    ck_assert_int_eq(vector_registers(32, 8, 1), 4);
    ck_assert_int_eq(vector_registers(2, 4, 128), 8);
    ck_assert_int_eq(vector_registers(0, 4, 32), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("registers");
    TCase *cases = tcase_create("registers");
    suite_add_tcase(suite, cases);
    tcase_add_test(cases, what_a_thread_holds_is_counted);
    tcase_add_test(cases, tiles_pass_through_registers);
    tcase_add_test(cases, a_family_counts_by_itself);
    tcase_add_test(cases, bounds_promise_what_the_budget_has);
    tcase_add_test(cases, one_block_of_ten_warps_is_a_bound);
    tcase_add_test(cases, steps_of_a_block);
    tcase_add_test(cases, vectors_fill_registers);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
