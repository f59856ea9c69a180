// Kinds of kernels over the spaces of the tests.
#pragma once
#include "../rtile/spaces.h"
#include "kernel/kind.h"

static inline Schedule *schedule_empty(void) { return NEW(of_spaces(), Schedule); }

static inline KernelKind matmul_kind(int64_t m, int64_t n, int64_t k)
{
    KernelKind kind = {
        .space = matmul_space(m, n, k),
        .schedule = schedule_empty(),
        .name = "matmul",
        .registers.accumulator_bits = 32,
        .lay_out = lay_out_staged,
        .registers.others = 24,
        .registers.input_buffers = 1,
    };
    kind.schedule->stages = 2;
    return kind;
}

static inline KernelKind elementwise_kind(int64_t count)
{
    KernelKind kind = {
        .space = elementwise_space(count),
        .schedule = schedule_empty(),
        .name = "elementwise",
        .registers.accumulator_bits = 32,
        .registers.others = 10,
        .registers.input_buffers = 1,
    };
    return kind;
}

static inline KernelKind reduce_kind(int64_t s, int64_t r)
{
    KernelKind kind = {
        .space = reduce_space(s, r),
        .schedule = schedule_empty(),
        .name = "row",
        .registers.accumulator_bits = 32,
        .registers.others = 10,
        .registers.input_buffers = 1,
        .shared = {.bytes = 128, .beside = 128},
    };
    return kind;
}

static inline KernelKind window_kind(int64_t c, int64_t h, int64_t w)
{
    KernelKind kind = {
        .space = window_space(c, h, w),
        .schedule = schedule_empty(),
        .name = "window",
        .registers.accumulator_bits = 32,
        .registers.others = 20,
        .registers.input_buffers = 0,
    };
    return kind;
}
