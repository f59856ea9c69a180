// Devices and tile spaces that the tests of this floor share. The records are filled by hand from
// data sheets, so that these tests depend on no device file.
#pragma once
#include "rtile/rtile.h"

/* What device files that say nothing of it get, in round numbers. */
#define TEST_TIMING \
    .l2_port_share = 2, \
    .timing = {.block_start_cycles = 1.4, .operand_cycles = 24, .barrier_cycles = 30, .warp_copy_cycles = 12.4, \
               .block_wait_us = 1, .copy_wait_us = 0.4, .cluster_barrier_us = 0.9, .grid_barrier_us = 1.8}

static inline DeviceSpec a100(void)
{
    return (DeviceSpec){
        .name = "a100", .clock_mhz = 1410, .sm_count = 108, .lanes_per_sm = 64, .warp_size = 32,
        .schedulers_per_sm = 4, .max_threads_per_block = 1024, .max_threads_per_sm = 2048,
        .max_blocks_per_sm = 32, .registers_per_sm = 65536, .registers_per_thread = 255,
        .register_granule = 8, .shared_per_block = 48 << 10, .shared_per_block_optin = 163 << 10,
        .shared_per_sm = 164 << 10, .shared_reserved_per_block = 1 << 10, .shared_banks = 32,
        .shared_bank_bytes = 4, .dram = {1555, 32}, .l2 = {4800, 32}, .shared = {19490, 128},
        .l2_bytes = 40 << 20, .dram_bytes = 40ll << 30, .dram_latency_ns = 480, .l2_latency_ns = 240, .launch_us = 2.5,
        .peak = {[UNIT_FP32] = 19490, [UNIT_FP64] = 9746, [UNIT_INT32] = 9746, [UNIT_SFU] = 2436,
                 [UNIT_TENSOR_F16] = 312000, [UNIT_TENSOR_TF32] = 156000},
        .has = {.async_copy = true, .mma = true},
        TEST_TIMING,
    };
}

static inline DeviceSpec v100(void)
{
    return (DeviceSpec){
        .name = "v100", .clock_mhz = 1530, .sm_count = 80, .lanes_per_sm = 64, .warp_size = 32,
        .schedulers_per_sm = 4, .max_threads_per_block = 1024, .max_threads_per_sm = 2048,
        .max_blocks_per_sm = 32, .registers_per_sm = 65536, .registers_per_thread = 255,
        .register_granule = 8, .shared_per_block = 48 << 10, .shared_per_block_optin = 96 << 10,
        .shared_per_sm = 96 << 10, .shared_banks = 32, .shared_bank_bytes = 4, .dram = {900, 32},
        .l2 = {2155, 32}, .shared = {15667, 128}, .l2_bytes = 6 << 20, .dram_bytes = 16ll << 30,
        .dram_latency_ns = 440, .l2_latency_ns = 220, .launch_us = 3,
        .peak = {[UNIT_FP32] = 15667, [UNIT_FP64] = 7834, [UNIT_INT32] = 15667, [UNIT_SFU] = 1958,
                 [UNIT_TENSOR_F16] = 125000},
        .has = {.mma = true},
        TEST_TIMING,
    };
}

/* One of the two GPUs of the board. Its banks are 8 bytes wide. */
static inline DeviceSpec k80(void)
{
    return (DeviceSpec){
        .name = "k80", .clock_mhz = 875, .sm_count = 13, .lanes_per_sm = 192, .warp_size = 32,
        .schedulers_per_sm = 4, .max_threads_per_block = 1024, .max_threads_per_sm = 2048,
        .max_blocks_per_sm = 16, .registers_per_sm = 131072, .registers_per_thread = 255,
        .register_granule = 8, .shared_per_block = 48 << 10, .shared_per_block_optin = 48 << 10,
        .shared_per_sm = 112 << 10, .shared_banks = 32, .shared_bank_bytes = 8, .dram = {240, 32},
        .l2 = {600, 32}, .shared = {2912, 256}, .l2_bytes = 1536 << 10, .dram_bytes = 12ll << 30,
        .dram_latency_ns = 600, .l2_latency_ns = 300, .launch_us = 5,
        .peak = {[UNIT_FP32] = 4368, [UNIT_FP64] = 1456, [UNIT_INT32] = 1456, [UNIT_SFU] = 364},
        TEST_TIMING,
    };
}

static inline Dim dim(int axis, int64_t size)
{
    return (Dim){affine_axis(axis), size};
}

/* Of spaces: it lasts as long as the program. */
static inline Arena *of_spaces(void)
{
    static Arena *arena;
    return arena = arena ? arena : arena_new();
}

static inline TileSpace *space_made(TileSpace space) { return arena_copy(of_spaces(), &space, sizeof space); }

/* C[m,n] = sum over k of A[m,k] * B[k,n]: A transposed into shared memory, B as it is. */
static inline TileSpace *matmul_space(int64_t m, int64_t n, int64_t k)
{
    TileSpace *space = space_made((TileSpace){
        .axis_count = 3,
        .axes = {{"m", m, false}, {"n", n, false}, {"k", k, true}},
        .tile_count = 3,
        .tiles = {{.rank = 2, .dims = {dim(0, m), dim(2, k)}, .element_bits = 32, .staged = true,
                   .staged_inner = 0, .staged_granule = 4, .scatter = 1},
                  {.rank = 2, .dims = {dim(2, k), dim(1, n)}, .element_bits = 32, .staged = true,
                   .staged_inner = 1, .staged_granule = 4, .scatter = 1},
                  {.rank = 2, .dims = {dim(0, m), dim(1, n)}, .element_bits = 32, .output = true,
                   .scatter = 1}},
        .flops = 2,
        .unit = UNIT_FP32,
    });
    space->rule[LEVEL_REGISTER][0] = space->rule[LEVEL_REGISTER][1] = (AxisRule){1, 16};
    space->rule[LEVEL_REGISTER][2] = (AxisRule){1, 1};
    space->rule[LEVEL_SHARED][0] = space->rule[LEVEL_SHARED][1] = (AxisRule){1, 256};
    space->rule[LEVEL_SHARED][2] = (AxisRule){8, 32};
    return space;
}

/* y[i] = f(x[i]) */
static inline TileSpace *elementwise_space(int64_t count)
{
    TileSpace *space = space_made((TileSpace){
        .axis_count = 1,
        .axes = {{"i", count, false}},
        .tile_count = 2,
        .tiles = {{.rank = 1, .dims = {dim(0, count)}, .element_bits = 32, .scatter = 1},
                  {.rank = 1, .dims = {dim(0, count)}, .element_bits = 32, .output = true,
                   .scatter = 1}},
        .flops = 1,
        .unit = UNIT_FP32,
    });
    space->rule[LEVEL_REGISTER][0] = (AxisRule){4, 16};
    space->rule[LEVEL_SHARED][0] = (AxisRule){4, 8192};
    return space;
}

/* y[s] = sum over r of x[s,r], the threads of a block side by side along r. */
static inline TileSpace *reduce_space(int64_t s, int64_t r)
{
    TileSpace *space = space_made((TileSpace){
        .least_reducers = 1,
        .axis_count = 2,
        .axes = {{"s", s, false}, {"r", r, true}},
        .tile_count = 2,
        .tiles = {{.rank = 2, .dims = {dim(0, s), dim(1, r)}, .element_bits = 32, .scatter = 1},
                  {.rank = 1, .dims = {dim(0, s)}, .element_bits = 32, .output = true,
                   .scatter = 1}},
        .flops = 1,
        .unit = UNIT_FP32,
    });
    space->rule[LEVEL_REGISTER][0] = (AxisRule){1, 1};
    space->rule[LEVEL_REGISTER][1] = (AxisRule){4, 16};
    space->rule[LEVEL_SHARED][0] = (AxisRule){1, 16};
    space->rule[LEVEL_SHARED][1] = (AxisRule){4, 4096};
    return space;
}

/* y[c,h,w] = sum over p, q of x[c, 2*h+p, 2*w+q], a 3x3 window with stride 2 read from global
   memory. */
static inline TileSpace *window_space(int64_t c, int64_t h, int64_t w)
{
    Affine row = {.coef = {[1] = 2, [3] = 1}}, column = {.coef = {[2] = 2, [4] = 1}};
    TileSpace *space = space_made((TileSpace){
        .axis_count = 5,
        .axes = {{"c", c, false}, {"h", h, false}, {"w", w, false},
                 {"p", 3, true}, {"q", 3, true}},
        .tile_count = 2,
        .tiles = {{.rank = 3, .dims = {dim(0, c), {row, 2 * h + 1}, {column, 2 * w + 1}},
                   .element_bits = 32, .scatter = 2},
                  {.rank = 3, .dims = {dim(0, c), dim(1, h), dim(2, w)}, .element_bits = 32,
                   .output = true, .scatter = 1}},
        .flops = 1,
        .unit = UNIT_FP32,
    });
    for (int a = 0; a < 5; a++) {
        bool spatial = a < 3;
        space->rule[LEVEL_REGISTER][a] = (AxisRule){1, spatial && a > 0 ? 4 : 1};
        space->rule[LEVEL_SHARED][a] = (AxisRule){1, spatial ? 256 : 3};
    }
    return space;
}
