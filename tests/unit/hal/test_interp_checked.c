// Checked accesses: bugs that hide from values are found whatever the order of threads; and other orders.
#include "interp_test.h"

#define SHARED_INPUT "SHARED_AT(0, float, As, [256]); const int t = threadIdx.x;\n"

static const struct { const char *kernel, *what; } HIDDEN[] = {
    {SHARED_INPUT "As[t] = load(x, t); store(y, t, As[t / 2]);", "a race: reads what another thread writes"},
    {SHARED_INPUT "As[t] = load(x, t); block_sync(); const float v = As[255 - t];\n"
     "As[t] = v; store(y, t, v);", "a race: reads what another thread writes"},
    {SHARED_INPUT "As[t / 2] = 1; block_sync(); store(y, t, As[t / 2]);", "a race: writes what another thread writes"},
    {SHARED_INPUT "As[t] = load(x, t); store(y, t, As[t & ~1]);", "a race: reads"},        // within a warp
    {SHARED_INPUT "As[t] = load(x, t); warp_shuffle(t, 0); store(y, t, As[t ^ 1]);", "a race: reads"},
    {SHARED_INPUT "As[t] = load(x, t); warp_sync(); store(y, t, As[t & ~32]);", "a race: reads"},
    {SHARED_INPUT "if (t < 255) As[t] = 1; block_sync(); store(y, t, As[t]);", "shared memory that nobody has written"},
    {SHARED_INPUT "As[t] = 1; store(y, 0, As[t]);", "a race: writes what another thread writes"},
    {"SHARED_AT(0, signed char, As, [4]); As[threadIdx.x % 2] = 1;", "a race: writes"},      // bytes in turn
    {"SHARED_AT(0, f16, As, [4]); As[threadIdx.x % 2] = f16{1};", "a race: writes"},
    {"SHARED_AT(0, signed char, As, [256]); const int t = threadIdx.x; As[t] = 1; block_sync();\n"
     "if (t == 1) As[2] = 3; if (t == 5) As[1] = As[0] + As[3]; if (t == 40) store(y, 0, As[1] + As[2]);", "a race: "},
    {"SHARED_AT(0, f16, As, [256]); const int t = threadIdx.x; As[t] = f16{1}; block_sync();\n"
     "if (t < 2) store(y, t, widen(As[t])); if (t == 70) As[1] = f16{2};", "a race: "},
    {"SHARED_AT(0, signed char, As, [4]); if (threadIdx.x != 2) As[threadIdx.x & 3 ? 0 : 1] = 0; store(y, 0, As[2]);",
     "shared memory that nobody has written"},
    {"if (threadIdx.x == 0) store(y, blockIdx.x / 2, 1.0f);", "writes what another block of this launch writes"},
    {"if (threadIdx.x == 0) { store(y, blockIdx.x, 1.0f); if (blockIdx.x) store(y, 9, load(y, blockIdx.x - 1)); }",
     "reads what another block of this launch writes"},
    {"store(y, threadIdx.x, load(y, threadIdx.x + 1));", "reads a tensor where nobody has written it"},
    {"if (threadIdx.x == 0) store(y, 0, load(x, 1000));", "reads at byte 4000 of x"},     // within the alignment
    {"volatile char far[300 << 10]; far[0] = 1; store(y, threadIdx.x, far[0]);",          // than its stack holds
     "outside of every buffer"},
    {SHARED_INPUT "async_copy16(&As[t % 64 * 4], x + t % 64 * 4); async_commit(); store(y, t, As[t]);",
     "an asynchronous copy that is under way"},
    {SHARED_INPUT "if (t == 0) { async_copy16(&As[0], x); async_commit(); async_wait<1>(); store(y, 0, As[0]); }",
     "an asynchronous copy that is under way"},
    {SHARED_INPUT "if (t == 0) { async_copy16(&As[0], x); async_commit(); async_wait<0>(); } store(y, t, As[0]);",
     "a race: "},
    {"if (threadIdx.x == 0) { SHARED_AT(0, float, As, [4]); async_copy16(&As[0], x); async_commit(); }",
     "ends before its asynchronous copies have landed"},
    {"const int far = (blockIdx.x + 1) * 1000000000; store(y, (far * 3) & 255, 1.0f);", "a product overflows"},
    {"int far = 2147483647 - threadIdx.x; store(y, (far + 1) & 255, 1.0f);", "a sum overflows"},
    {"float v[4] = {}, sum = 0; for (int i = 0; i <= 4; ++i) sum += v[i]; store(y, threadIdx.x, sum);", "past the end of an array"},
    {"SHARED_AT(0, float, As, [4][8]); if (threadIdx.x % 16 == 0) As[0][threadIdx.x / 16] = 0;", "past the end of an array"},
};

START_TEST(a_hidden_bug_is_found)
{
    float_input();
    Case c = FLOATS;
    c.kernel = HIDDEN[_i].kernel;
    c.shared = 1024;
    c.checked = true;
    run_badly(c, HIDDEN[_i].what);
}
END_TEST

// Run twice, the second time as a launch that begins early; what it forgets.
static const struct { const char *kernel, *what; } FORGETFUL[] = {
    {"store(y, threadIdx.x, 1.0f); wait_for_earlier();", "touches what an earlier launch writes, without waiting"},
    {"if (threadIdx.x != 77) wait_for_earlier(); store(y, threadIdx.x, 1.0f);", "touches what an earlier launch writes"},
    {"if (threadIdx.x != 77) wait_for_earlier();", "ended without waiting for the earlier launches"},
    {"if (threadIdx.x == 77) return; const WaitsAtItsEnd waits_at_its_end;", "ended without waiting for the earlier launches"},
};

START_TEST(a_launch_that_does_not_wait_is_found)
{
    float_input();
    Case c = FLOATS;
    c.grid = "1", c.kernel = FORGETFUL[_i].kernel;
    c.checked = c.early = true;
    run_badly(c, FORGETFUL[_i].what);
}
END_TEST

/* The stream may have been given anything before the program. */
START_TEST(a_first_launch_waits_before_it_reads)
{
    float_input();
    Case c = FLOATS;
    c.grid = "1", c.kernel = "if (load(x, threadIdx.x) == 3e33f) return; wait_for_earlier(); store(y, threadIdx.x, 1.0f);";
    c.checked = c.early = true;
    RuntimeResult result = run_well(c);
    runtime_interp.release(&result);
    c.first = true;
    run_badly(c, "touches what an earlier launch writes, without waiting");
}
END_TEST

START_TEST(a_launch_that_waits_is_right)
{
    static const char *const kernels[] = {
        "wait_for_earlier(); store(y, threadIdx.x, load(x, threadIdx.x));",
        "const WaitsAtItsEnd waits_at_its_end; SHARED_AT(0, float, As, [256]); As[threadIdx.x] = 1; if (threadIdx.x == 7) return;",
    };
    const float *x = float_input();
    Case c = FLOATS;
    c.grid = "1", c.kernel = kernels[_i % 2], c.shared = 1024;
    c.checked = c.early = true, c.first = _i / 2;
    RuntimeResult result = run_well(c);
    ck_assert(_i % 2 == 1 || ((float *)result.buffers[1])[9] == x[9]);
    runtime_interp.release(&result);
}
END_TEST

/* Under the right order the values are right too: only these show the bug. */
START_TEST(some_order_shows_a_missing_barrier)
{
    const float *x = float_input();
    Case c = FLOATS;
    c.kernel = SHARED_INPUT "As[t] = load(x, t); store(y, t, As[t < 192 ? t + 64 : t]);";
    c.shared = 1024;
    c.schedule = (RuntimeSchedule)_i;
    RuntimeResult result = run_well(c);
    bool right = true;
    for (int i = 0; i < 192; i++)
        right &= ((float *)result.buffers[1])[i] == x[i + 64];
    ck_assert_int_eq(right, _i == RUNTIME_HIGHEST_FIRST);
    runtime_interp.release(&result);
}
END_TEST

/* Blocks in between are left out, and what they own; the ends are not. */
START_TEST(an_end_that_is_not_written_is_noticed)
{
    float_input();
    Case c = FLOATS;
    c.kernel = _i ? INDEX "if (i < 1023) store(y, i, 1.0f);" : INDEX "if (i > 0) store(y, i, 1.0f);";
    c.out_bytes = 4096, c.max_blocks = 2;
    c.lazy = c.checked = c.ends_written = true;
    run_badly(c, _i ? "the last element of y is not written" : "the first element of y is not written");
}
END_TEST

static const char *const SYNCHRONISED[] = {
    // bytes and halves of one word belong to different threads
    "SHARED_AT(0, signed char, As, [512]); const int t = threadIdx.x; As[t] = 1; As[t + 256] = As[t];\n"
    "block_sync(); As[255 - t] = As[255 - t] + As[511 - t]; block_sync();\n"
    "if (t < 64) reinterpret_cast<unsigned *>(As)[t] = 0x01020304; block_sync(); store(y, t, As[t ^ 3]);",
    "SHARED_AT(0, f16, As, [256]); const int t = threadIdx.x; As[t] = narrow<f16>(load(x, t)); warp_sync();\n"
    "const float v = widen(As[t ^ 1]); warp_sync(); As[t] = narrow<f16>(v); block_sync();\n"
    "const signed char c = reinterpret_cast<signed char *>(As)[2 * t]; block_sync();\n"
    "As[255 - t] = f16{(unsigned short)c};",
    SHARED_INPUT "As[t] = load(x, t); block_sync(); store(y, t, As[255 - t]);",
    SHARED_INPUT "As[t] = load(x, t);\nif (t < 128) roles_sync<256>();\nelse\nroles_sync<256>();\nstore(y, t, As[255 - t]);",
    SHARED_INPUT "As[t] = load(x, t); warp_sync(); const float v = As[t ^ 1]; warp_sync(); As[t] = v;\n"
                 "block_sync(); store(y, t, As[t ^ 64]);",
    SHARED_INPUT "As[t] = 0; const float v = As[t]; block_sync(); As[t / 2 * 2 + 1 - t % 2] = v;",
    SHARED_INPUT "for (int stage = 0; stage < 4; stage++) {\n"   // a ring of two
                 "    float *tile = As + stage % 2 * 128;\n"
                 "    if (t < 32) async_copy16(tile + t * 4, x + stage * 128 + t * 4);\n"
                 "    async_commit(); async_wait<0>(); block_sync();\n"
                 "    store(y, t, tile[t % 128]); }",
};

START_TEST(what_is_synchronised_is_no_race)
{
    float_input();
    Case c = FLOATS;
    c.kernel = SYNCHRONISED[_i];
    c.shared = 1024, c.grid = "1";
    c.checked = true, c.schedule = RUNTIME_PRIORITY;
    RuntimeResult result = run_well(c);
    runtime_interp.release(&result);
}
END_TEST

START_TEST(the_line_of_a_race_is_named)
{
    float_input();
    Case c = FLOATS;
    c.kernel = "#line 100 \"race.cu\"\n" SHARED_INPUT "As[t] = load(x, t);\nconst float v = As[t / 2];\ny[t] = v;";
    c.shared = 1024;
    c.checked = true;
    run_badly(c, "race.cu:102: a race: reads what another thread writes (byte ");
    run_badly(c, "of the shared memory), at race.cu:101");
}
END_TEST

/* ReLU of 1000 floats: 4000 bytes in and out, in 125 sectors. Read twice they are the same sectors. */
START_TEST(traffic_is_counted)
{
    float_input();
    Case c = FLOATS;
    c.kernel = _i ? INDEX "if (i < 1000) store(y, i, op_max(load(x, i), load(x, 999 - i)));"
                  : INDEX "if (i < 1000) store(y, i, op_relu(load(x, i)));";
    c.checked = true;
    RuntimeResult result = run_well(c);
    ck_assert_int_eq(result.launch_count, 1);
    ck_assert_int_eq(result.traffic[0].read_bytes, _i ? 8 * N : 4 * N);
    ck_assert_int_eq(result.traffic[0].written_bytes, 4 * N);
    ck_assert_int_eq(result.traffic[0].read_sectors, N * 4 / 32);
    ck_assert_int_eq(result.traffic[0].written_sectors, N * 4 / 32);
    runtime_interp.release(&result);
}
END_TEST

/* Blocks of 256 over 1000 floats: the first one 1024 bytes in 32 sectors, the last one 232 elements in 29. Each goes through shared
   memory, two sums of its first warp and one barrier. */
START_TEST(single_blocks_are_counted)
{
    float_input();
    Case c = FLOATS;
    c.kernel = SHARED_INPUT INDEX "As[t] = i < 1000 ? load(x, i) : 0; block_sync();\n"
                                  "const float v = warp_shuffle_xor(As[t], 1) + warp_shuffle_xor(As[t], 2);\n"
                                  "if (i < 1000) store(y, i, v);";
    c.shared = 1024, c.checked = c.counts = true;
    RuntimeResult result = run_well(c);
    for (int b = 0; b < 2; b++) {
        const RuntimeCounts *counts = &result.counts[b];
        ck_assert_int_eq(counts->read_sectors[0], b ? 29 : 32);
        ck_assert_int_eq(counts->written_sectors[1], b ? 29 : 32);
        ck_assert_int_eq(counts->written_sectors[0] + counts->read_sectors[1], 0);
        ck_assert_int_eq(counts->shared_written, 1024);
        ck_assert_int_eq(counts->shared_read, 2048);
        ck_assert_int_eq(counts->block_barriers, 1);
        ck_assert_int_eq(counts->warp_meetings, 2);
        ck_assert_int_eq(counts->cluster_barriers + counts->grid_barriers + counts->waits, 0);
    }
    runtime_interp.release(&result);
}
END_TEST

/* Of 256 threads, in the last block of 232: a fused multiply-add, another product and sum, a product of integers that are no
   indices, a maximum, and a function. What is made of constants, an index or a condition counts as nothing. */
START_TEST(arithmetic_is_counted)
{
    float_input();
    Case c = FLOATS;
    c.kernel = INDEX "constexpr float third = 1.0f / 3.0f;\n"
                     "if (i < 1000) { float v = fmaf(load(x, i), third, 1.0f); v += v * v;\n"
                     "    const int twice = op_mul(static_cast<int>(i) * 2 + 1, 2);\n"
                     "    if (v > 0.5f) v = op_max(v, 0.0f); else v = op_max(-v, static_cast<float>(twice));\n"
                     "    store(y, i, op_exp(v)); }";
    c.checked = c.counts = true;
    RuntimeResult result = run_well(c);
    for (int b = 0; b < 2; b++) {
        const RuntimeCounts *counts = &result.counts[b];
        int threads = b ? 232 : 256;
        ck_assert_int_eq(counts->multiplications, 3 * threads);
        ck_assert_int_eq(counts->additions, 2 * threads);
        ck_assert_int_eq(counts->comparisons, threads);
        ck_assert_int_eq(counts->functions, threads);
        ck_assert_int_eq(counts->tensor_products, 0);
    }
    runtime_interp.release(&result);
}
END_TEST

/* A ring of two stages: at each of four waits the next copy may stay under way, at the last there is none. What is copied is written
   to shared memory once. */
START_TEST(copies_under_way_are_counted)
{
    float_input();
    Case c = FLOATS;
    c.kernel = SHARED_INPUT "const auto copy = [&](int s) {\n"
                            "    if (s < 4) { if (t < 32) async_copy16(As + s % 2 * 128 + t * 4, x + s * 128 + t * 4); }\n"
                            "    if (s < 4) async_commit(); };\n"
                            "copy(0);\n"
                            "for (int s = 0; s < 4; s++) {\n"
                            "    copy(s + 1); if (s < 3) async_wait<1>(); else async_wait<0>();\n"
                            "    block_sync(); store(y, s * 128 + t % 128, As[s % 2 * 128 + t % 128]); block_sync(); }";
    c.shared = 1024, c.grid = "1", c.block = "128", c.checked = c.counts = true;
    RuntimeResult result = run_well(c);
    ck_assert_int_eq(result.counts[0].waits, 4);
    ck_assert_int_eq(result.counts[0].pending, 3);
    ck_assert_int_eq(result.counts[0].block_barriers, 8);
    ck_assert_int_eq(result.counts[0].shared_written, 4 * 128 * 4);
    ck_assert_int_eq(result.counts[0].read_sectors[0], 4 * 128 * 4 / 32);
    runtime_interp.release(&result);
}
END_TEST

/* 2^31 + 4099 elements of f16; with 32-bit indices the last blocks would write before the tensor. */
static Case huge(const char *index)
{
    const char *kernel = "const %s;\nif (i < 2147487747LL) store(y, i, op_relu(load(x, i & 1023)));";
    return (Case){
        .kernel = arena_printf(arena, kernel, index), .in = "f16", .out = "f16", .in_bytes = 2048,
        .out_bytes = ((1LL << 31) + 4099) * 2, .grid = "2097157", .block = "1024", .lazy = true, .checked = true,
        .max_blocks = 16,
    };
}

START_TEST(a_tensor_past_two_to_the_31_is_sparse)
{
    float_input();
    RuntimeResult result = run_well(huge("long long i = blockIdx.x * 1024LL + threadIdx.x"));
    const uint16_t *y = result.buffers[1];
    ck_assert_int_ne(y[0], 0xffff);
    ck_assert_int_ne(y[(1LL << 31) + 4098], 0xffff);
    runtime_interp.release(&result);
}
END_TEST

START_TEST(an_index_of_32_bits_is_too_short_for_it)
{
    float_input();
    run_badly(huge("int i = int(blockIdx.x) * 1024 + int(threadIdx.x)"), "overflows its integer type");
    run_badly(huge("int i = blockIdx.x * 1024 + threadIdx.x"), "writes");   // 4 GB before y
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("interp");
    tcase_add_loop_test(tests, a_hidden_bug_is_found, 0, sizeof HIDDEN / sizeof *HIDDEN);
    tcase_add_loop_test(tests, a_launch_that_does_not_wait_is_found, 0, sizeof FORGETFUL / sizeof *FORGETFUL);
    tcase_add_loop_test(tests, a_launch_that_waits_is_right, 0, 4);
    tcase_add_test(tests, a_first_launch_waits_before_it_reads);
    tcase_add_loop_test(tests, some_order_shows_a_missing_barrier, 0, 3);
    tcase_add_loop_test(tests, an_end_that_is_not_written_is_noticed, 0, 2);
    tcase_add_loop_test(tests, what_is_synchronised_is_no_race, 0, sizeof SYNCHRONISED / sizeof *SYNCHRONISED);
    tcase_add_test(tests, the_line_of_a_race_is_named);
    tcase_add_loop_test(tests, traffic_is_counted, 0, 2);
    tcase_add_test(tests, single_blocks_are_counted);
    tcase_add_test(tests, copies_under_way_are_counted);
    tcase_add_test(tests, arithmetic_is_counted);
    tcase_add_test(tests, a_tensor_past_two_to_the_31_is_sparse);
    tcase_add_test(tests, an_index_of_32_bits_is_too_short_for_it);
    return run_tests(tests);
}
