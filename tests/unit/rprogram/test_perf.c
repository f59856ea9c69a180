#include "model/perf.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../kernel/kinds.h"
#include "rprogram/rprogram.h"

static RProgram complete(const KernelKind *kind, const DeviceSpec *device, RTile shared,
                         RTile inner)
{
    RProgram program = {.tile = {[LEVEL_REGISTER] = inner, [LEVEL_SHARED] = shared}};
    PerfProblem problem = perf_problem(kind);
    PruneReason reason;
    int64_t footprint[] = {
        [LEVEL_REGISTER] = kind_footprint(kind, &inner, NULL, device, LEVEL_REGISTER),
        [LEVEL_SHARED] = kind_footprint(kind, &shared, &inner, device, LEVEL_SHARED)};
    ck_assert(rprogram_complete(kind, &problem, device, footprint, &program, &reason));
    rprogram_pad(kind, device, &program);
    return program;
}

/* matmul 4096^3 in blocks of 128 x 128 x 16 by 256 threads with 8 x 8 each. */
static RProgram square_matmul(const DeviceSpec *device)
{
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    return complete(&kind, device, (RTile){{128, 128, 16}}, (RTile){{8, 8, 1}});
}

/* 104 registers * 256 threads = 26624 of 65536: 2 blocks a unit; 33280 + 1024 of 167936 shared
   bytes would allow 4. */
START_TEST(registers_limit_the_resident_blocks)
{
    DeviceSpec device = a100();
    RProgram program = square_matmul(&device);
    ck_assert_int_eq(program.threads, 256);
    ck_assert_int_eq(program.registers, 104);
    ck_assert_int_eq(program.shared_bytes, 33280);
    ck_assert_int_eq(program.padding[0], 4);
    ck_assert_int_eq(program.perf.blocks_per_sm, 2);
    ck_assert_int_eq(program.perf.limiter, LIMIT_REGISTERS);
}
END_TEST

/* (4096/128)^2 = 1024 blocks; 2 on each of 108 units = 216 at a time: 4.74 waves, and the fifth is
   74 % full. */
START_TEST(waves_and_tail)
{
    DeviceSpec device = a100();
    RProgram program = square_matmul(&device);
    ck_assert_int_eq(program.grid, 1024);
    ck_assert_double_eq_tol(program.perf.waves, 1024 / 216.0, 1e-12);
    ck_assert_double_eq_tol(program.perf.tail_efficiency, 4.74074 / 5, 1e-5);
}
END_TEST

/* Of four tiles that run at once the last has all columns to go through, and the kernel ends with it; what is read is what all four need. */
START_TEST(tiles_that_run_at_once_end_with_the_longest)
{
    DeviceSpec device = a100();
    KernelKind kind = matmul_kind(512, 128, 4096);
    RProgram all = complete(&kind, &device, (RTile){{128, 128, 16}}, (RTile){{8, 8, 1}});
    kind.space->band = (Band){.exists = true, .axis = 2, .along = 0, .end = 8, .end_step = 8};
    RProgram part = complete(&kind, &device, (RTile){{128, 128, 16}}, (RTile){{8, 8, 1}});
    ck_assert_double_eq_tol(part.perf.compute_us, all.perf.compute_us, 1e-6 * all.perf.compute_us);
    ck_assert_double_eq_tol(part.perf.flops, all.perf.flops * 0.625, 1);
}
END_TEST

/* Row i needs k up to i alone: of 256 steps of 16 the first 128 rows make 8, the next 16, ... the last all of them, 132 on average.
   What they read and multiply is that part. */
START_TEST(steps_outside_of_a_band_are_not_made)
{
    DeviceSpec device = a100();
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    RProgram all = complete(&kind, &device, (RTile){{128, 128, 16}}, (RTile){{8, 8, 1}});
    kind.space->band = (Band){.exists = true, .axis = 2, .along = 0, .end = 1, .end_step = 1};
    RProgram part = complete(&kind, &device, (RTile){{128, 128, 16}}, (RTile){{8, 8, 1}});
    double share = 132 / 256.0;
    ck_assert_double_eq_tol(part.perf.flops, all.perf.flops * share, 1);
    ck_assert_double_eq_tol(part.perf.compute_us, all.perf.compute_us * share, 1e-6 * all.perf.compute_us);
    ck_assert_double_eq_tol(part.perf.l2_load_bytes, all.perf.l2_load_bytes * share, 1);
    ck_assert_double_eq_tol(part.perf.padding_waste, all.perf.padding_waste, 1e-12);
}
END_TEST

/* L2 -> shared: 1024 blocks * 256 steps * (128*16 + 16*128) floats; 16 of a row of A take L2 a request of 32. Shared ->
   registers: 1024 * 256 threads * 4096 steps * (8 + 8) floats. C is stored once. */
START_TEST(matmul_traffic_by_hand)
{
    DeviceSpec device = a100();
    PerfEstimate perf = square_matmul(&device).perf;
    ck_assert_double_eq(perf.l2_load_bytes, 1024.0 * 256 * (4096 + 2048) * 4);
    ck_assert_double_eq(perf.l2_store_bytes, 4096.0 * 4096 * 4);
    ck_assert_double_eq(perf.shared_load_bytes, 1024.0 * 256 * 4096 * 16 * 4);
    ck_assert_double_eq(perf.shared_store_bytes, 1024.0 * 256 * 4096 * 4);
    ck_assert_double_eq(perf.flops, 2 * 4096.0 * 4096 * 4096);
    ck_assert_double_eq(perf.padding_waste, 0);
}
END_TEST

/* 216 resident blocks cover 7 of 32 rows of blocks (6.75, rounded up) and all columns; 5 such
   waves ask for A 5 * 896 rows and for B five times. L2 keeps 40 MiB of the three matrices' 192:
   hit 5/24. Once = 64 MiB each. A: 64 + (70 - 64) * 19/24 = 68.75 MiB, B: 64 + (320 - 64) * 19/24
   = 266.67 MiB. */
START_TEST(what_misses_l2_is_read_again)
{
    DeviceSpec device = a100();
    PerfEstimate perf = square_matmul(&device).perf;
    ck_assert_double_eq_tol(perf.dram_load_bytes / (1 << 20), 68.75 + 266.0 + 2.0 / 3, 1e-6);
    device.l2_bytes = 1 << 30;
    ck_assert_double_eq(square_matmul(&device).perf.dram_load_bytes, 2.0 * (64 << 20));
}
END_TEST

/* In panels of 15 rows of blocks, the root of 216, they cover 15 columns, too (14.4, rounded up), and 4.74 times as many: A and B
   are asked for 4.74 * 1920 rows and columns, 142.2 MiB each, of which 64 + 78.2 * 19/24 come from memory. Blocks four times as
   high as wide go through half as many rows. */
START_TEST(panels_are_nearly_square)
{
    DeviceSpec device = a100();
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    kind.schedule->order = ORDER_PANELS;
    RProgram program = complete(&kind, &device, (RTile){{128, 128, 16}}, (RTile){{8, 8, 1}});
    double asked = 1024 / 216.0 * 1920 / 64;
    ck_assert_int_eq(program.panel, 15);
    ck_assert_double_eq_tol(program.perf.dram_load_bytes / (1 << 20), 2 * (64 + (asked - 64) * 19 / 24), 1e-6);
    program = complete(&kind, &device, (RTile){{256, 64, 16}}, (RTile){{8, 8, 1}});
    ck_assert_int_eq(program.perf.blocks_per_sm, 2);
    ck_assert_int_eq(program.panel, 7);
}
END_TEST

/* 8192 bytes of shared memory and 64 threads of 32 registers: 32 blocks by count, by threads 32,
   by registers 32, by shared memory 164 / 9 = 18. */
START_TEST(each_limit_of_residency_can_bind)
{
    DeviceSpec device = a100();
    Limiter limiter;
    ck_assert_int_eq(perf_blocks_per_sm(&device, 64, 32, 8192, &limiter), 18);
    ck_assert_int_eq(limiter, LIMIT_SHARED);
    ck_assert_int_eq(perf_blocks_per_sm(&device, 64, 32, 0, &limiter), 32);
    ck_assert_int_eq(limiter, LIMIT_BLOCKS);
    ck_assert_int_eq(perf_blocks_per_sm(&device, 1024, 32, 0, &limiter), 2);
    ck_assert_int_eq(limiter, LIMIT_THREADS);
    ck_assert_int_eq(perf_blocks_per_sm(&device, 1024, 65, 0, &limiter), 0);   // 72 * 1024 > 65536
    ck_assert_int_eq(limiter, LIMIT_REGISTERS);
}
END_TEST

/* A scheduler has 65536 / 4 = 16384 registers: two warps of 200 a thread, not the half of a third one. */
START_TEST(each_scheduler_has_its_own_registers)
{
    DeviceSpec device = a100();
    Limiter limiter;
    ck_assert_int_eq(perf_blocks_per_sm(&device, 32, 200, 0, &limiter), 8);   // 65536 / (32 * 200) = 10
    ck_assert_int_eq(limiter, LIMIT_REGISTERS);
}
END_TEST

/* 96 threads occupy two warps of 64: 2048 / 128 = 16 blocks, where warps of 32 leave room for 2048
   / 96 = 21. */
START_TEST(a_partial_warp_occupies_a_whole_one)
{
    DeviceSpec device = a100();
    Limiter limiter;
    ck_assert_int_eq(perf_blocks_per_sm(&device, 96, 16, 0, &limiter), 21);
    device.warp_size = 64;
    ck_assert_int_eq(perf_blocks_per_sm(&device, 96, 16, 0, &limiter), 16);
}
END_TEST

START_TEST(half_the_bandwidth_takes_twice_the_time)
{
    KernelKind kind = elementwise_kind(100000000);
    DeviceSpec device = a100();
    double whole_us = complete(&kind, &device, (RTile){{2048}}, (RTile){{8}}).perf.time_us;
    device.dram.bandwidth_gb_s /= 2;
    double half_us = complete(&kind, &device, (RTile){{2048}}, (RTile){{8}}).perf.time_us;
    ck_assert_double_ge(half_us / whole_us, 1.85);
    ck_assert_double_le(half_us / whole_us, 2.0);
}
END_TEST

START_TEST(half_the_peak_slows_what_computes)
{
    DeviceSpec device = a100();
    double whole_us = square_matmul(&device).perf.compute_us;
    device.peak[UNIT_FP32] /= 2;
    double half_us = square_matmul(&device).perf.compute_us;
    ck_assert_double_ge(half_us / whole_us, 1.85);
    ck_assert_double_le(half_us / whole_us, 2.0);
}
END_TEST

/* 1x1 tiles read 8 bytes from shared memory for 2 flop: 19.5 TB/s feed 4.9 Tflop/s at most. */
START_TEST(small_register_tiles_starve)
{
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    DeviceSpec device = a100();
    RProgram one = complete(&kind, &device, (RTile){{32, 32, 16}}, (RTile){{1, 1, 1}});
    RProgram four = complete(&kind, &device, (RTile){{64, 64, 16}}, (RTile){{4, 4, 1}});
    RProgram eight = square_matmul(&device);
    ck_assert_int_eq(one.perf.bound_by, BOUND_SHARED);
    ck_assert_double_gt(one.perf.time_us, 3.5 * eight.perf.time_us);
    ck_assert_double_gt(four.perf.time_us, eight.perf.time_us);
    ck_assert_int_eq(eight.perf.bound_by, BOUND_COMPUTE);
}
END_TEST

/* Threads that load four floats keep four times the bytes under way. */
START_TEST(vectors_fill_the_memory_pipe)
{
    KernelKind kind = elementwise_kind(100000000);
    DeviceSpec device = a100();
    kind.space->rule[LEVEL_REGISTER][0] = (AxisRule){1, 16};
    double scalar_us = complete(&kind, &device, (RTile){{256}}, (RTile){{1}}).perf.time_us;
    double vector_us = complete(&kind, &device, (RTile){{1024}}, (RTile){{4}}).perf.time_us;
    ck_assert_double_gt(scalar_us, 1.1 * vector_us);
}
END_TEST

/* Of what is shorter than memory's time a quarter shows with 16 warps on an SM, and an eighth with 64; of what threads compute between their
   only load and their store as much as if their block were one warp. */
START_TEST(warps_hide_by_their_root)
{
    DeviceSpec device = a100();
    KernelKind kind = elementwise_kind(1 << 26);
    for (int blocks = 2; blocks <= 8; blocks *= 4) {
        device.max_blocks_per_sm = blocks;   // of eight warps
        PerfEstimate perf = complete(&kind, &device, (RTile){{2048}}, (RTile){{8}}).perf;
        double shorter_us = perf.special_us + perf.shared_us + perf.l2_us + perf.start_us;
        ck_assert_int_eq(perf.blocks_per_sm, blocks);
        ck_assert(perf.bound_by == BOUND_DRAM);
        ck_assert_double_eq_tol(perf.unhidden_us, shorter_us / sqrt(8.0 * blocks) + perf.compute_us / sqrt(blocks), 1e-9);
    }
}
END_TEST

START_TEST(a_small_grid_leaves_bandwidth_unused)
{
    KernelKind kind = elementwise_kind(1 << 17);
    DeviceSpec device = a100();
    RProgram few = complete(&kind, &device, (RTile){{16384}}, (RTile){{16}});
    RProgram many = complete(&kind, &device, (RTile){{1024}}, (RTile){{4}});
    ck_assert_int_eq(few.grid, 8);
    ck_assert_int_eq(many.grid, 128);
    ck_assert_double_gt(few.perf.time_us, many.perf.time_us);
}
END_TEST

/* 4099 rows in blocks of 128 are 33 * 128 = 4224 rows of work: 2.96 % of it outside. */
START_TEST(padding_is_work_but_no_traffic)
{
    KernelKind kind = matmul_kind(4099, 4096, 4096);
    DeviceSpec device = a100();
    PerfEstimate perf = complete(&kind, &device, (RTile){{128, 128, 16}},
                                 (RTile){{8, 8, 1}}).perf;
    ck_assert_double_eq_tol(perf.padding_waste, 1 - 4099 / 4224.0, 1e-12);
    ck_assert_double_eq_tol(perf.l2_store_bytes, 4099 * 4096.0 * 4, 1);
}
END_TEST

/* Special functions: one a point at 2436 G/s: 1e8 / 2436e3 = 41 us. */
START_TEST(special_functions_have_their_own_rate)
{
    KernelKind kind = elementwise_kind(100000000);
    DeviceSpec device = a100();
    kind.space->special = 1;
    PerfEstimate perf = complete(&kind, &device, (RTile){{2048}}, (RTile){{8}}).perf;
    ck_assert_double_eq_tol(perf.special_us, 1e8 / 2436e3, 0.5);
}
END_TEST

/* A second buffer lets the next tile arrive during this one's work. */
START_TEST(a_second_stage_hides_the_loads)
{
    KernelKind kind = matmul_kind(2048, 2048, 2048);
    DeviceSpec device = a100();
    RTile shared = {{256, 128, 8}}, inner = {{16, 8, 1}};
    double two_us = complete(&kind, &device, shared, inner).perf.time_us;
    kind.schedule->stages = 1;
    double one_us = complete(&kind, &device, shared, inner).perf.time_us;
    ck_assert_double_gt(one_us, two_us);
}
END_TEST

/* Warps of tensor-core tiles 64 x 64 x 16: 4 warps of 32 threads hold a block of 128 x 128. */
START_TEST(a_tensor_core_tile_belongs_to_a_warp)
{
    KernelKind kind = matmul_kind(4096, 4096, 4096);
    DeviceSpec device = a100();
    kind.threads.of_tile = 32;
    kind.space->unit = UNIT_TENSOR_F16;
    kind.space->tiles[0].element_bits = kind.space->tiles[1].element_bits = 16;
    RProgram program = complete(&kind, &device, (RTile){{128, 128, 32}}, (RTile){{64, 64, 16}});
    ck_assert_int_eq(program.threads, 128);
    double gflop_s = program.perf.flops / program.perf.time_us / 1e3;
    double share_of_peak = gflop_s / device.peak[UNIT_TENSOR_F16];
    ck_assert_double_gt(share_of_peak, 0.4);
    ck_assert_double_lt(share_of_peak, 1.0);
}
END_TEST

/* y[s] = sum over r of x[s,r] + mask[q,r], for 32,768 rows s = (h,q) of 8192 floats, as many masks as `queries`. */
static PerfEstimate masked_rows(const DeviceSpec *device, int64_t queries)
{
    KernelKind kind = reduce_kind(32768, 8192);
    DataTile *mask = &kind.space->tiles[kind.space->tile_count++];
    *mask = kind.space->tiles[0];
    mask->repeats[0] = (Repeats){.run = 1, .cycle = queries, .again = 32768 / queries};
    return complete(&kind, device, (RTile){{1, 4096}}, (RTile){{1, 4}}).perf;
}

/* Every row reads its mask from L2. That of 512 queries, 16 MiB, is needed again after 16 MiB of x, which L2 keeps: memory sees
   it once. That of 4096 queries is needed after 256 MiB in all, of which L2 keeps 40: of the 7 * 128 MiB that come again
   216/256 miss. */
START_TEST(what_rows_share_comes_from_l2)
{
    DeviceSpec device = a100();
    double mib = 1 << 20, x = 1024 * mib;
    PerfEstimate small = masked_rows(&device, 512), large = masked_rows(&device, 4096);
    ck_assert_double_eq(small.l2_load_bytes, 2 * x);
    ck_assert_double_eq(large.l2_load_bytes, 2 * x);
    ck_assert_double_eq(small.dram_load_bytes, x + 16 * mib);
    ck_assert_double_eq_tol(large.dram_load_bytes / mib, 1024 + 128 + 7 * 128 * 216.0 / 256, 0.1);
}
END_TEST

/* 4096 rows of 8192 in blocks of 1024 threads, two on each of 108 units: 19 rounds. In each the threads' results meet in ten
   steps, a barrier each of 30 cycles at 1410 MHz, two blocks at a time. 216 rows are one round. The first load takes 0.48 us. */
START_TEST(waits_are_those_of_the_device)
{
    KernelKind kind = reduce_kind(4096, 8192);
    DeviceSpec device = a100();
    RTile shared = {{1, 4096}}, inner = {{1, 4}};
    double barriers_us = 10 * 30 / 1410.0 / 2;
    ck_assert_double_eq_tol(complete(&kind, &device, shared, inner).perf.latency_us, 0.48 + 19 * barriers_us, 1e-9);
    device.timing.barrier_cycles *= 3;
    KernelKind few = reduce_kind(216, 8192);
    ck_assert_double_eq_tol(complete(&few, &device, shared, inner).perf.latency_us, 0.48 + 3 * barriers_us, 1e-9);
}
END_TEST

/* The same blocks, which load, compute and store once: a round waits for its load, each but the first 1 us for the one before it, and
   in clusters of two half as much again, until both places are free; twice as many blocks share the rows then, and 38 rounds. Threads draw L2's bytes at twice their unit's share, two blocks at a
   time: a quarter of the time that all bytes take shows beside the waiting. */
START_TEST(blocks_that_work_once_wait_to_begin_and_to_end)
{
    KernelKind kind = reduce_kind(4096, 8192);
    DeviceSpec device = a100();
    RTile shared = {{1, 4096}}, inner = {{1, 4}};
    kind.cost = &(KindCost){.pace = PACE_IN_TURN};
    PerfEstimate alone = complete(&kind, &device, shared, inner).perf;
    ck_assert_double_eq_tol(alone.latency_us, 19 * 0.48 + 18 * 1 + alone.l2_us / 2 / 2, 1e-9);
    kind.schedule->cluster = 2, kind.schedule->cluster_axis = 1;   // r
    PerfEstimate pairs = complete(&kind, &device, shared, inner).perf;
    ck_assert_double_eq_tol(pairs.latency_us, 38 * 0.48 + 37 * 1.5 + pairs.l2_us / 2 / 2, 1e-9);
}
END_TEST

/* Clusters add up what their blocks have summed: they meet before and after, be they of two blocks or of eight. Those of sixteen,
   which are not portable, take as long as three meetings. */
START_TEST(clusters_meet_twice)
{
    DeviceSpec device = a100();
    device.has.clusters = true, device.max_blocks_per_cluster = 16;
    DeviceSpec slower = device;
    slower.timing.cluster_barrier_us += 1;
    KernelKind kind = reduce_kind(12, 8192);
    RTile shared = {{1, 1024}}, inner = {{1, 4}};
    for (int cluster = 2; cluster <= 16; cluster *= 2) {
        kind.schedule->cluster = cluster, kind.schedule->cluster_axis = 1;   // r
        double us = complete(&kind, &device, shared, inner).perf.latency_us;
        ck_assert_double_eq_tol(complete(&kind, &slower, shared, inner).perf.latency_us, us + (cluster > 8 ? 3 : 2), 1e-9);
    }
}
END_TEST

/* Rows of 1024 floats in one block each, 216 of them: all that is loaded is in flight at once, so that the first load's latency is the
   only one, and passes at the bandwidth as what is stored does. */
START_TEST(loads_in_flight_wait_once)
{
    DeviceSpec device = a100();
    KernelKind kind = reduce_kind(216, 1024);
    PerfEstimate perf = complete(&kind, &device, (RTile){{1, 1024}}, (RTile){{1, 4}}).perf;
    double moving_us = (perf.dram_load_bytes + perf.dram_store_bytes) / device.dram.bandwidth_gb_s / 1e3;
    ck_assert_double_eq_tol(perf.dram_us, moving_us, 1e-9);
}
END_TEST

/* A register step has 64 multiply-adds, which keep a scheduler's 16 lanes busy for 128 cycles. Of its 8 elements of a tile each takes
   16 instructions, and 4 are loads: 196 cycles. The 5 of a thread's whole life do not show. */
START_TEST(items_say_instructions)
{
    DeviceSpec device = a100();
    KernelKind kind = matmul_kind(4096, 4096, 4096), plain = matmul_kind(4096, 4096, 4096);
    schedule_load(kind.schedule, (Move){.tiles = 3, .to = PLACE_SHARED});
    schedule_load(kind.schedule, (Move){.tiles = 1, .from = PLACE_SHARED, .instructions = 16});
    schedule_product(kind.schedule, 1);
    schedule_takes(kind.schedule, 5, 0);
    PerfProblem problem = perf_problem(&kind);
    ck_assert_double_eq(problem.thread_instructions, 5);
    ck_assert_double_eq(problem.instructions[0], 16);
    ck_assert_double_eq(problem.instructions[1], 0);
    RTile shared = {{128, 128, 16}}, inner = {{8, 8, 1}};
    double without_us = complete(&plain, &device, shared, inner).perf.compute_us;
    double with_us = complete(&kind, &device, shared, inner).perf.compute_us;
    ck_assert_double_gt(with_us, 1.4 * without_us);
    ck_assert_double_lt(with_us, 1.7 * without_us);
}
END_TEST

/* 32 outputs of 31 taps over 32 inputs, padded by 15: 752 pairs meet an input. A warp has 4 channels of 8 lines, and where it leaves
   out only what none of them needs, it multiplies 864. */
START_TEST(a_warp_leaves_out_what_none_of_its_lanes_needs)
{
    enum { C, H, W, P, Q };
    DeviceSpec device = a100();
    double us[2];
    for (int skips = 0; skips < 2; skips++) {
        KernelKind kind = window_kind(4096, 32, 32);
        Dim *row = &kind.space->tiles[0].dims[1];
        *row = (Dim){{.coef = {[H] = 1, [P] = 1}, .constant = -15}, 32};
        kind.space->axes[P].extent = 31;
        kind.registers.input_buffers = 1;
        schedule_loop(kind.schedule, (Loop){.axis = P, .by_thread = true, .skips = skips ? H : 0});
        PerfProblem problem = perf_problem(&kind);
        ck_assert_int_eq(problem.skips, skips ? H : 0);
        ck_assert_int_eq(problem.skipped.pad, skips ? 15 : 0);
        us[skips] = complete(&kind, &device, (RTile){{4, 32, 32, 31, 3}}, (RTile){{1, 1, 32, 1, 3}}).perf.compute_us;
    }
    ck_assert_double_gt(us[1], 1.02 * us[0]);
    ck_assert_double_le(us[1], 864.0 / 752 * us[0]);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("perf");
    tcase_add_test(cases, registers_limit_the_resident_blocks);
    tcase_add_test(cases, each_scheduler_has_its_own_registers);
    tcase_add_test(cases, waves_and_tail);
    tcase_add_test(cases, steps_outside_of_a_band_are_not_made);
    tcase_add_test(cases, tiles_that_run_at_once_end_with_the_longest);
    tcase_add_test(cases, matmul_traffic_by_hand);
    tcase_add_test(cases, what_misses_l2_is_read_again);
    tcase_add_test(cases, panels_are_nearly_square);
    tcase_add_test(cases, each_limit_of_residency_can_bind);
    tcase_add_test(cases, a_partial_warp_occupies_a_whole_one);
    tcase_add_test(cases, half_the_bandwidth_takes_twice_the_time);
    tcase_add_test(cases, half_the_peak_slows_what_computes);
    tcase_add_test(cases, small_register_tiles_starve);
    tcase_add_test(cases, vectors_fill_the_memory_pipe);
    tcase_add_test(cases, warps_hide_by_their_root);
    tcase_add_test(cases, a_small_grid_leaves_bandwidth_unused);
    tcase_add_test(cases, padding_is_work_but_no_traffic);
    tcase_add_test(cases, special_functions_have_their_own_rate);
    tcase_add_test(cases, a_second_stage_hides_the_loads);
    tcase_add_test(cases, a_tensor_core_tile_belongs_to_a_warp);
    tcase_add_test(cases, what_rows_share_comes_from_l2);
    tcase_add_test(cases, waits_are_those_of_the_device);
    tcase_add_test(cases, blocks_that_work_once_wait_to_begin_and_to_end);
    tcase_add_test(cases, clusters_meet_twice);
    tcase_add_test(cases, loads_in_flight_wait_once);
    tcase_add_test(cases, items_say_instructions);
    tcase_add_test(cases, a_warp_leaves_out_what_none_of_its_lanes_needs);
    Suite *suite = suite_create("perf");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
